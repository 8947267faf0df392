#pragma once

#include "apps/shared/csv.hpp"
#include "key_tables.hpp"

/// \file
/// Fields as keys. Columns of which every field is an integer as it would be printed are keys of 64 bits as
/// they are. Other fields become keys by a hash, and are compared byte by byte, so that different fields are
/// never taken for the same.

namespace roost::tools {

/// A hash of a text, another one for each seed.
using text_hash = text_key (*)(std::string_view text, std::uint64_t seed);

/// XXH3 of 128 bits.
text_key hash_text(std::string_view text, std::uint64_t seed);

/// Reads an integer that would be printed with the same characters, and fits. False for any other text.
bool read_integer(std::string_view text, std::uint64_t& key);

/// Rows of a join by what they match: each with each of its matches (inner), also those without a match
/// (left), also on both sides (outer); those with a match, once (semi), those without (anti).
enum class join_kind { inner, left, outer, semi, anti };

/// Whether empty keys match each other.
enum class empty_keys { match, never };

/// How many pairs of rows a join has in memory at once, about.
inline constexpr std::size_t matches_at_once = std::size_t{1} << 20;

/// The column of the right side of a join, which columns of the left side are matched with.
class field_matcher {
 public:
  struct options {
    join_kind kind = join_kind::inner;
    empty_keys empty = empty_keys::match;
    std::size_t key_columns = 1;  ///< of more than one, the fields are what csv_choice makes of them
    text_hash hash = hash_text;
    std::size_t most = matches_at_once;
  };

  /// What is given must live as long as the matcher. Throws roost::invalid_argument if there are more rows
  /// than their numbers of 32 bits can tell.
  field_matcher(const host& cpu, const key_tables& tables, const text_column& right, const options& how);

  /// Gives rows with equal fields to `use`: rows of `left` in their order, and for each those of the right
  /// side in theirs, or no_row. For semi and anti, `right` is empty. Unmatched rows of the right side, which
  /// are a part of outer, are not found here.
  void match(const text_column& left, const use_matches& use) const;

 private:
  bool can_match(std::string_view field) const;
  void match_pairs(const text_column& left, const use_matches& use) const;
  void match_first(const text_column& left, const use_matches& use) const;

  const host& cpu_;
  text_column right_;
  options how_;
  matcher_pointer<std::uint64_t> numbers_;  // if all fields of the right side are integers
  matcher_pointer<text_key> texts_;         // otherwise
  std::uint64_t seed_ = 0;                  // tells all fields of the right side apart
};

/// Different fields, in the order in which they come first.
struct different_fields {
  std::vector<std::uint32_t> rows;     // where each comes first
  std::vector<std::uint64_t> counts;   // how often it comes
  std::vector<std::uint32_t> numbers;  // which of them each field is
};

/// Counts the fields of a column. The first ones stand for as many as `weights` tells, the others for one.
/// Throws as field_matcher does.
different_fields count_fields(const host& cpu, const key_tables& tables, const text_column& column,
                              std::span<const std::uint64_t> weights = {}, text_hash hash = hash_text);

}  // namespace roost::tools
