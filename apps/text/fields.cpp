#include "fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "roost/columns/string_index.hpp"

namespace roost::tools {
namespace {

constexpr std::uint64_t seeds = 16;  // two texts that collide under all of these are no accident

void expect_few(std::size_t rows) {
  constexpr std::size_t most = no_row<std::uint32_t> - 1;
  if (rows > most)
    throw invalid_argument(
        fmt::format("{} rows are given, and at most {} can be told apart; split the input", rows, most));
}

/// The fields as integers, if all are integers.
std::optional<big_vector<std::uint64_t>> integers(const host& cpu, const text_column& column) {
  big_vector<std::uint64_t> keys(column.size());
  const auto others =
      cpu.sum(keys.size(), [&](std::size_t i) { return std::uint64_t{!read_integer(column[i], keys[i])}; });
  if (others != 0) return {};
  return keys;
}

/// Where each number first occurs.
std::vector<std::uint32_t> first_rows(const indexed_keys& keys) {
  std::vector<std::uint32_t> rows;
  rows.reserve(keys.counts.size());
  for (std::size_t i = 0; i < keys.numbers.size() && rows.size() < keys.counts.size(); ++i) {
    if (keys.numbers[i] == rows.size()) rows.push_back(static_cast<std::uint32_t>(i));
  }
  return rows;
}

/// Texts with keys that are equal exactly if the texts are.
struct exact_keys {
  std::uint64_t seed = 0;
  big_vector<text_key> keys;
  indexed_keys numbered;
  std::vector<std::uint32_t> rows;  // where each number first occurs
};

/// Hashes texts with one seed after another, until each text equals the first one with its key.
template <class Texts>
exact_keys tell_apart(const host& cpu, const key_tables& tables, std::size_t n, const Texts& text,
                      text_hash hash) {
  exact_keys result;
  result.keys.resize(n);
  for (; result.seed < seeds; ++result.seed) {
    cpu.for_each(n, [&](std::size_t i) { result.keys[i] = hash(text(i), result.seed); });
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

field_matcher::field_matcher(const host& cpu, const key_tables& tables, const text_column& right,
                             const options& how)
    : cpu_(cpu), right_(right), how_(how) {
  expect_few(right.size());
  std::vector<std::uint32_t> rows;
  rows.reserve(right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (can_match(right[i])) rows.push_back(static_cast<std::uint32_t>(i));
  }
  big_vector<std::uint64_t> numbers(rows.size());
  const auto others = cpu.sum(
      rows.size(), [&](std::size_t i) { return std::uint64_t{!read_integer(right[rows[i]], numbers[i])}; });
  if (others == 0) {
    numbers_ = tables.matcher(numbers, rows);
    return;
  }
  const auto exact =
      tell_apart(cpu, tables, rows.size(), [&](std::size_t i) { return right[rows[i]]; }, how.hash);
  seed_ = exact.seed;
  texts_ = tables.matcher(exact.keys, rows);
}

bool field_matcher::can_match(std::string_view field) const {
  if (how_.empty == empty_keys::match) return true;
  const auto fields = split_key(field, how_.key_columns);
  return std::ranges::none_of(fields, [](std::string_view f) { return f.empty(); });
}

namespace {

/// Left rows that may have matches, with their keys.
template <class Key>
struct left_keys {
  big_vector<Key> keys;
  std::vector<std::uint32_t> rows, others;
};

/// `read(i, key)`: returns whether row i may have matches, and sets its key.
template <class Key, class Read>
left_keys<Key> read_keys(const host& cpu, std::size_t n, const Read& read) {
  left_keys<Key> result;
  result.keys.resize(n);
  std::vector<std::uint8_t> good(n);
  const auto bad = cpu.sum(n, [&](std::size_t i) {
    good[i] = read(i, result.keys[i]);
    return std::uint64_t{!good[i]};
  });
  if (bad == 0) return result;  // `rows` is not needed
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    (good[i] ? result.rows : result.others).push_back(static_cast<std::uint32_t>(i));
    if (good[i]) result.keys[kept++] = result.keys[i];
  }
  result.keys.resize(kept);
  return result;
}

/// Removes pairs of rows for which `holds` is false. If `outer`, a row that loses all its pairs stays, with
/// no_row.
template <class Holds>
void keep_equal(const host& cpu, matches& pairs, bool outer, const Holds& holds) {
  constexpr auto none = no_row<std::uint32_t>;
  const auto n = pairs.left.size();
  const auto wrong = [&](std::size_t i) {
    return std::uint64_t{pairs.right[i] != none && !holds(pairs.left[i], pairs.right[i])};
  };
  if (cpu.sum(n, wrong) == 0) return;
  matches kept;
  for (std::size_t i = 0; i < n;) {
    const auto row = pairs.left[i];
    const auto kept_before = kept.left.size();
    const auto keep = [&](std::uint32_t right) {
      kept.left.push_back(row);
      kept.right.push_back(right);
    };
    for (; i < n && pairs.left[i] == row; ++i) {
      if (wrong(i) == 0) keep(pairs.right[i]);
    }
    if (outer && kept.left.size() == kept_before) keep(none);
  }
  pairs = std::move(kept);
}

/// Merges rows without matches, `others`, into the matches. `taken`: how many of the others were merged, in
/// order.
void put_others(matches& pairs, std::span<const std::uint32_t> others, std::size_t& taken, bool all) {
  constexpr auto none = no_row<std::uint32_t>;
  matches result;
  const auto put = [&](std::uint32_t left, std::uint32_t right) {
    result.left.push_back(left);
    result.right.push_back(right);
  };
  for (std::size_t i = 0; i < pairs.left.size(); ++i) {
    for (; taken < others.size() && others[taken] < pairs.left[i]; ++taken) put(others[taken], none);
    put(pairs.left[i], pairs.right[i]);
  }
  for (; all && taken < others.size(); ++taken) put(others[taken], none);
  pairs = std::move(result);
}

}  // namespace

void field_matcher::match(const text_column& left, const use_matches& use) const {
  expect_few(left.size());
  how_.kind == join_kind::semi || how_.kind == join_kind::anti ? match_first(left, use)
                                                               : match_pairs(left, use);
}

void field_matcher::match_pairs(const text_column& left, const use_matches& use) const {
  const bool outer = how_.kind != join_kind::inner;
  const auto match = [&](const auto& matcher, const auto& from, bool exact) {
    std::size_t taken = 0;
    matcher.match(from.keys, outer, how_.most, [&](matches& pairs) {
      if (!from.rows.empty()) {
        for (auto& row : pairs.left) row = from.rows[row];
      }
      const auto equal = [&](std::uint32_t l, std::uint32_t r) { return left[l] == right_[r]; };
      if (!exact) keep_equal(cpu_, pairs, outer, equal);
      if (outer && !from.others.empty()) put_others(pairs, from.others, taken, false);
      use(pairs);
    });
    if (!outer || taken == from.others.size()) return;
    matches rest;
    put_others(rest, from.others, taken, true);
    use(rest);
  };
  if (numbers_) {  // texts that are not integers have no match
    const auto read = [&](std::size_t i, std::uint64_t& key) { return read_integer(left[i], key); };
    match(*numbers_, read_keys<std::uint64_t>(cpu_, left.size(), read), true);
  } else {
    const auto read = [&](std::size_t i, text_key& key) {
      key = how_.hash(left[i], seed_);
      return can_match(left[i]);
    };
    match(*texts_, read_keys<text_key>(cpu_, left.size(), read), false);
  }
}

void field_matcher::match_first(const text_column& left, const use_matches& use) const {
  constexpr auto none = no_row<std::uint32_t>;
  std::vector<std::uint32_t> found;
  std::vector<std::uint8_t> good(left.size(), 1);
  if (numbers_) {
    big_vector<std::uint64_t> keys(left.size());
    cpu_.for_each(left.size(), [&](std::size_t i) { good[i] = read_integer(left[i], keys[i]); });
    found = numbers_->first(keys);
  } else {
    big_vector<text_key> keys(left.size());
    cpu_.for_each(left.size(), [&](std::size_t i) { keys[i] = how_.hash(left[i], seed_); });
    found = texts_->first(keys);
    cpu_.for_each(left.size(), [&](std::size_t i) {
      good[i] = found[i] != none && left[i] == right_[found[i]] && can_match(left[i]);
    });
  }
  matches rows;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool matched = good[i] && found[i] != none;
    if (matched == (how_.kind == join_kind::semi)) rows.left.push_back(static_cast<std::uint32_t>(i));
  }
  use(rows);
}

different_fields count_fields(const host& cpu, const key_tables& tables, const text_column& column,
                              std::span<const std::uint64_t> weights, text_hash hash) {
  expect_few(column.size());
  different_fields result;
  indexed_keys numbered;
  if (auto found = hash == hash_text ? tables.number(column) : std::nullopt) {
    numbered = std::move(*found);
    result.rows = first_rows(numbered);
  } else if (const auto keys = integers(cpu, column)) {
    numbered = tables.number(*keys);
    result.rows = first_rows(numbered);
  } else {
    auto exact = tell_apart(cpu, tables, column.size(), [&](std::size_t i) { return column[i]; }, hash);
    result.rows = std::move(exact.rows);
    numbered = std::move(exact.numbered);
  }
  result.counts = std::move(numbered.counts);
  result.numbers = std::move(numbered.numbers);
  for (std::size_t i = 0; i < weights.size(); ++i) result.counts[result.numbers[i]] += weights[i] - 1;
  return result;
}

}  // namespace roost::tools
