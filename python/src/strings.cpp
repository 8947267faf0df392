#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string_view>

#include "bind.hpp"
#include "columns.hpp"
#include "roost/two_way_index.hpp"

// Strings on the host: 128 bits stand for each one, and what is equal in these is compared.

namespace roost::python {
namespace {

/// Strings side by side: string i is text[offsets[i]] to text[offsets[i + 1] - 1].
struct strings {
  const char* text;
  const std::int64_t* offsets;
  std::size_t count;

  strings(const input& characters, const input& begins)
      : text(static_cast<const char*>(characters.data())),
        offsets(span_of<std::int64_t>(begins).data()),
        count(rows_of(begins) - 1) {}
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
nb::tuple tell_apart(const input& characters, const input& begins) {
  const strings all(characters, begins);
  const host cpu = current<host>::get();
  for (std::uint64_t seed = 0; seed < 16; ++seed) {  // two that stay together under so many are no accident
    array<words<16>, host> keys;
    array<std::uint32_t, host> rows;
    const bool apart = without_gil([&] {
      keys = hashes(cpu, all, seed);
      const auto found = unique_all(cpu, keys, {index_order::any, true, true});
      rows = array<std::uint32_t, host>(cpu, all.count);
      return cpu.sum(all.count, [&](std::size_t i) {
        rows[i] = found.first[found.inverse[i]];
        return std::uint64_t{all[i] != all[rows[i]]};
      }) == 0;
    });
    if (!apart) continue;
    const nb::object words_of_all = to_python(cpu, std::move(keys));
    return nb::make_tuple(words_of_all, seed, to_python(cpu, std::move(rows)));
  }
  detail::raise<build_error>({"roost: 16 hash functions could not tell the strings apart; please report it"});
}

nb::object hash_strings(const input& characters, const input& begins, std::uint64_t seed) {
  const strings all(characters, begins);
  const host cpu = current<host>::get();
  return to_python(cpu, without_gil([&] { return hashes(cpu, all, seed); }));
}

/// Makes rows[i] -1 where string i is not that of the table's row.
void keep_equal(const input& characters, const input& begins, const input& table_characters,
                const input& table_begins, const output& numbers) {
  const strings queries(characters, begins), table(table_characters, table_begins);
  const auto rows = span_of<std::int64_t>(numbers, queries.count);
  without_gil([&] {
    current<host>::get().for_each(queries.count, [&](std::size_t i) {
      if (rows[i] >= 0 && queries[i] != table[static_cast<std::size_t>(rows[i])]) rows[i] = -1;
    });
  });
}

}  // namespace

void bind_strings(nb::module_& module) {
  module.def("tell_apart", &tell_apart);
  module.def("hash_strings", &hash_strings);
  module.def("keep_equal", &keep_equal);
}

}  // namespace roost::python
