#pragma once

#include "apps/shared/csv.hpp"
#include "key_tables.hpp"

/// \file
/// Fields as keys. Columns in which every field is an integer, written as it would be printed, become keys of
/// 64 bits directly. Other fields become keys by a hash, and are compared byte by byte, so that different
/// fields are never confused.

namespace roost::tools {

/// A hash of a text, different for each seed.
using text_hash = text_key (*)(std::string_view text, std::uint64_t seed);

/// XXH3 of 128 bits.
text_key hash_text(std::string_view text, std::uint64_t seed);

/// Reads an integer that fits and would be printed with the same characters. False for any other text.
bool read_integer(std::string_view text, std::uint64_t& key);

/// Which rows a join returns: each with each of its matches (inner), also left rows without a match (left),
/// also those of both sides (outer); rows with a match, once (semi), or without one (anti).
enum class join_kind { inner, left, outer, semi, anti };

/// Whether empty keys match each other.
enum class empty_keys { match, never };

/// About how many pairs of rows a join has in memory at once.
inline constexpr std::size_t matches_at_once = std::size_t{1} << 20;

/// The column of the right side of a join, with which columns of the left side are matched.
class field_matcher {
 public:
  struct options {
    join_kind kind = join_kind::inner;
    empty_keys empty = empty_keys::match;
    std::size_t key_columns = 1;  ///< if more than one, fields are those of csv_choice for several columns
    text_hash hash = hash_text;
    std::size_t most = matches_at_once;
  };

  /// The arguments must live as long as the matcher. Throws roost::invalid_argument if there are more rows
  /// than numbers of 32 bits.
  field_matcher(const host& cpu, const key_tables& tables, const text_column& right, const options& how);

  /// Passes rows with equal fields to `use`: rows of `left` in order, and for each the rows of the right side
  /// in order, or no_row. For semi and anti, `right` is empty. Unmatched rows of the right side, which outer
  /// includes, are not found here.
  void match(const text_column& left, const use_matches& use) const;

  /// How many left rows `match` should get: see key_matcher.
  std::size_t rows_at_once() const { return numbers_ ? numbers_->rows_at_once() : texts_->rows_at_once(); }

 private:
  bool can_match(std::string_view field) const;
  void match_pairs(const text_column& left, const use_matches& use) const;
  void match_first(const text_column& left, const use_matches& use) const;

  const host& cpu_;
  text_column right_;
  options how_;
  matcher_pointer<std::uint64_t> numbers_;  // if all fields of the right side are integers
  matcher_pointer<text_key> texts_;         // otherwise
  std::uint64_t seed_ = 0;                  // gives distinct keys to distinct fields of the right side
};

/// Distinct fields, in the order of their first occurrence.
struct different_fields {
  std::vector<std::uint32_t> rows;     // where each first occurs
  std::vector<std::uint64_t> counts;   // how often it occurs
  std::vector<std::uint32_t> numbers;  // the number of each field
};

/// Counts the fields of a column. The first ones count `weights` times each, the others once. Throws as
/// field_matcher does.
different_fields count_fields(const host& cpu, const key_tables& tables, const text_column& column,
                              std::span<const std::uint64_t> weights = {}, text_hash hash = hash_text);

}  // namespace roost::tools
