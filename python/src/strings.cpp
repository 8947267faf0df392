#include <string_view>

#include "bind.hpp"
#include "columns.hpp"
#include "roost/detail/place/xxhash.hpp"
#include "roost/two_way_index.hpp"

// Strings on the host: 128 bits stand for each one, and what is equal in these is compared.

namespace roost::python {
namespace {

/// Strings side by side: string i is text[offsets[i]] to text[offsets[i + 1] - 1].
struct strings {
  const char* text;
  const std::int64_t* offsets;
  std::size_t count;

  strings(const column& characters, const column& begins)
      : text(reinterpret_cast<const char*>(characters.data)),
        offsets(span_of<std::int64_t>(begins).data()),
        count(begins.rows - 1) {}
  std::string_view operator[](std::size_t i) const {
    return {text + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
  }
};

words<16> hash_of_string(std::string_view string, std::uint64_t seed) {
  const auto hash = XXH3_128bits_withSeed(string.data(), string.size(), seed);
  return {{hash.low64, hash.high64}};
}

array<words<16>, host> hashes(const host& cpu, const strings& all, std::uint64_t seed) {
  array<words<16>, host> keys(cpu, all.count);
  cpu.for_each(all.count, [&](std::size_t i) { keys[i] = hash_of_string(all[i], seed); });
  return keys;
}

/// The hashes of strings with a seed that tells them apart, the seed, and for each string the row of the
/// first one that is equal.
nb::tuple tell_apart(const column& characters, const column& begins) {
  const strings all(characters, begins);
  const call_place<host> at;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {  // two that stay together under so many are no accident
    array<words<16>, host> keys;
    array<std::uint32_t, host> rows;
    const bool apart = without_gil(at, [&](const host& cpu) {
      keys = hashes(cpu, all, seed);
      const auto found = unique_all(cpu, keys, {index_order::any, true, true});
      rows = array<std::uint32_t, host>(cpu, all.count);
      return cpu.sum(all.count, [&](std::size_t i) {
        rows[i] = found.first[found.inverse[i]];
        return std::uint64_t{all[i] != all[rows[i]]};
      }) == 0;
    });
    if (!apart) continue;
    const nb::object words_of_all = to_python(at, std::move(keys));
    return nb::make_tuple(words_of_all, seed, to_python(at, std::move(rows)));
  }
  detail::raise<build_error>({"roost: 16 hash functions could not tell the strings apart; please report it"});
}

nb::object hash_strings(const column& characters, const column& begins, std::uint64_t seed) {
  const strings all(characters, begins);
  const call_place<host> at;
  return to_python(at, without_gil(at, [&](const host& cpu) { return hashes(cpu, all, seed); }));
}

/// Makes rows[i] -1 where string i is not that of the table's row.
void keep_equal(const column& characters, const column& begins, const column& table_characters,
                const column& table_begins, const column& numbers) {
  const strings queries(characters, begins), table(table_characters, table_begins);
  const auto rows = span_of<std::int64_t>(numbers, queries.count);
  without_gil(call_place<host>(), [&](const host& cpu) {
    cpu.for_each(queries.count, [&](std::size_t i) {
      if (rows[i] >= 0 && queries[i] != table[static_cast<std::size_t>(rows[i])]) rows[i] = -1;
    });
  });
}

}  // namespace

void bind_strings(nb::module_& m) {
  m.def("tell_apart", &tell_apart);
  m.def("hash_strings", &hash_strings);
  m.def("keep_equal", &keep_equal);
}

}  // namespace roost::python
