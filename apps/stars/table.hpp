#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/shared/csv.hpp"

/// \file
/// Tables of numbers, as written by spreadsheets, archives and other programs.

namespace roost::tools {

/// A CSV file whose delimiter is determined by its header: commas, semicolons or tabs. Fields may have blanks
/// around them, and numbers a plus sign; if semicolons separate fields, a comma may be the decimal mark. In
/// names of columns, capitals, blanks and punctuation are ignored: "RA [deg]" is "radeg". A `_` at the
/// beginning is not.
class star_table {
 public:
  /// Throws roost::invalid_argument for a file that cannot be read. A line with more or fewer fields than the
  /// header is left out, with a message on stderr, or refused.
  star_table(const std::string& file, bad_lines on_bad);

  std::size_t rows() const { return csv_.rows(); }
  /// The column with the first of these names that occurs. Throws if two columns have it.
  std::optional<std::size_t> find(std::initializer_list<std::string_view> names) const;
  /// Throws for a column that was not found, listing the existing ones.
  [[noreturn]] void refuse_without(std::string_view what, std::string_view name) const;
  std::string_view text(std::size_t row, std::size_t column) const;
  /// The number in a field. False if it is not a number.
  bool read(std::size_t row, std::size_t column, double& number);
  const std::string& name() const { return csv_.name; }

 private:
  char delimiter_;
  csv_file csv_;
  std::vector<std::string> plain_names_;
  bool has_points_ = false, has_commas_ = false;
};

/// Reads a number with nothing around it but blanks. False for other text.
bool read_number(std::string_view text, double& number);

}  // namespace roost::tools
