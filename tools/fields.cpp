#include "fields.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <optional>
#include <system_error>

namespace roost::tools {
namespace {

constexpr std::uint64_t seeds = 16;  // two texts that stay together under so many are no accident

void expect_few(std::size_t rows) {
  constexpr std::size_t most = no_row<std::uint32_t> - 1;
  if (rows > most)
    throw invalid_argument(
        fmt::format("{} rows are given, and at most {} can be told apart; split the input", rows, most));
}

/// The fields as integers, if all are.
std::optional<std::vector<std::uint64_t>> integers(const host& cpu, const text_column& column) {
  std::vector<std::uint64_t> keys(column.size());
  const auto others =
      cpu.sum(keys.size(), [&](std::size_t i) { return std::uint64_t{!read_integer(column[i], keys[i])}; });
  if (others != 0) return {};
  return keys;
}

std::vector<text_key> hashes(const host& cpu, const text_column& column, text_hash hash, std::uint64_t seed) {
  std::vector<text_key> keys(column.size());
  cpu.for_each(keys.size(), [&](std::size_t i) { keys[i] = hash(column[i], seed); });
  return keys;
}

/// Where each number comes first.
std::vector<std::uint32_t> first_rows(const numbered_keys& keys) {
  std::vector<std::uint32_t> rows;
  rows.reserve(keys.counts.size());
  for (std::size_t i = 0; i < keys.numbers.size() && rows.size() < keys.counts.size(); ++i) {
    if (keys.numbers[i] == rows.size()) rows.push_back(static_cast<std::uint32_t>(i));
  }
  return rows;
}

/// Texts with keys that are equal where the texts are, and only there.
struct exact_keys {
  std::vector<text_key> keys;
  numbered_keys numbered;
  std::vector<std::uint32_t> rows;  // where each number comes first
};

/// Hashes n texts with one seed after the other, until each text is the same as the first one with its key.
template <class Texts>
exact_keys tell_apart(const host& cpu, const key_tables& tables, std::size_t n, const Texts& text,
                      text_hash hash) {
  exact_keys result;
  result.keys.resize(n);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    cpu.for_each(n, [&](std::size_t i) { result.keys[i] = hash(text(i), seed); });
    result.numbered = tables.number(std::span<const text_key>(result.keys));
    result.rows = first_rows(result.numbered);
    const auto differs = [&](std::size_t i) {
      return std::uint64_t{text(i) != text(result.rows[result.numbered.numbers[i]])};
    };
    if (cpu.sum(n, differs) == 0) return result;
  }
  throw error(fmt::format(
      "{} hash functions could not tell the fields apart; please report it with the input", seeds));
}

/// Takes out pairs of rows whose fields differ. In a left join a row that loses all of its pairs stays, with
/// no_row.
void keep_equal(const host& cpu, matches& pairs, join_kind kind, const text_column& left,
                const text_column& right) {
  constexpr auto none = no_row<std::uint32_t>;
  const auto holds = [&](std::size_t i) {
    return pairs.right[i] == none || left[pairs.left[i]] == right[pairs.right[i]];
  };
  const auto n = pairs.left.size();
  if (cpu.sum(n, [&](std::size_t i) { return std::uint64_t{!holds(i)}; }) == 0) return;
  std::size_t kept = 0;
  const auto keep = [&](std::uint32_t l, std::uint32_t r) {
    pairs.left[kept] = l;
    pairs.right[kept++] = r;
  };
  for (std::size_t i = 0; i < n;) {
    const auto row = pairs.left[i];
    const auto kept_before = kept;
    for (; i < n && pairs.left[i] == row; ++i) {
      if (holds(i)) keep(row, pairs.right[i]);
    }
    if (kind == join_kind::left && kept == kept_before) keep(row, none);
  }
  pairs.left.resize(kept);
  pairs.right.resize(kept);
}

}  // namespace

text_key hash_text(std::string_view text, std::uint64_t seed) {
  const auto hash = XXH3_128bits_withSeed(text.data(), text.size(), seed);
  return {hash.low64, hash.high64};
}

bool read_integer(std::string_view text, std::uint64_t& key) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size()) return false;
  key = static_cast<std::uint64_t>(number);
  return text == "0" || text[text.front() == '-'] != '0';
}

void join_columns(const host& cpu, const key_tables& tables, join_kind kind, const text_column& left,
                  const text_column& right, const use_matches& use, text_hash hash, std::size_t most) {
  expect_few(left.size() + right.size());
  if (const auto a = integers(cpu, left)) {
    if (const auto b = integers(cpu, right)) return tables.join(kind, *a, *b, most, use);
  }
  if (kind == join_kind::inner || kind == join_kind::left) {
    return tables.join(kind, hashes(cpu, left, hash, 0), hashes(cpu, right, hash, 0), most,
                       [&](matches& pairs) {
                         keep_equal(cpu, pairs, kind, left, right);
                         use(pairs);
                       });
  }
  // The result does not tell which rows of the right side were taken for equal, so the keys must be exact
  // before.
  const auto text = [&](std::size_t i) { return i < left.size() ? left[i] : right[i - left.size()]; };
  const auto exact = tell_apart(cpu, tables, left.size() + right.size(), text, hash);
  const std::span keys(exact.keys);
  tables.join(kind, keys.first(left.size()), keys.subspan(left.size()), most, use);
}

different_fields count_fields(const host& cpu, const key_tables& tables, const text_column& column,
                              text_hash hash) {
  expect_few(column.size());
  if (const auto keys = integers(cpu, column)) {
    auto numbered = tables.number(*keys);
    return {first_rows(numbered), std::move(numbered.counts)};
  }
  auto exact = tell_apart(cpu, tables, column.size(), [&](std::size_t i) { return column[i]; }, hash);
  return {std::move(exact.rows), std::move(exact.numbered.counts)};
}

}  // namespace roost::tools
