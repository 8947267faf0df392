#pragma once

#include "csv.hpp"
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

/// How many pairs of rows a join has in memory at once, about.
inline constexpr std::size_t matches_at_once = std::size_t{1} << 20;

/// Gives the rows of two columns with equal fields to `use`, as key_tables::join does: rows of `left` in
/// their order, and for each those of `right` in theirs. Throws roost::invalid_argument if there are more
/// rows than their numbers of 32 bits can tell.
void join_columns(const host& cpu, const key_tables& tables, join_kind kind, const text_column& left,
                  const text_column& right, const use_matches& use, text_hash hash = hash_text,
                  std::size_t most = matches_at_once);

/// Different fields, in the order in which they come first.
struct different_fields {
  std::vector<std::uint32_t> rows;    // where each comes first
  std::vector<std::uint64_t> counts;  // how often it comes
};

/// Counts the fields of a column. Throws as join_columns does.
different_fields count_fields(const host& cpu, const key_tables& tables, const text_column& column,
                              text_hash hash = hash_text);

}  // namespace roost::tools
