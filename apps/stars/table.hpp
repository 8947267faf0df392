#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/shared/csv.hpp"

/// \file
/// Tables of numbers, as spreadsheets, archives and other programs write them.

namespace roost::tools {

/// A CSV file whose header's line tells what separates the fields: commas, semicolons or tabs. Fields may
/// have blanks around them and numbers a plus sign; where semicolons separate, a comma may be the decimal
/// mark. Of the columns' names, capitals, blanks and marks do not count: "RA [deg]" is "radeg". A `_` at the
/// beginning does.
class star_table {
 public:
  /// Throws roost::invalid_argument for what cannot be read. A line that has more or fewer fields than the
  /// header is left out, which is said on stderr, or refused.
  star_table(const std::string& file, bad_lines on_bad);

  std::size_t rows() const { return csv_.rows(); }
  /// The column that has the first of these names that any has. Throws if two have it.
  std::optional<std::size_t> find(std::initializer_list<std::string_view> names) const;
  /// Throws for a column that was not found, with those that there are.
  [[noreturn]] void refuse_without(std::string_view what, std::string_view name) const;
  std::string_view text(std::size_t row, std::size_t column) const;
  /// The number of a field. False for what is none.
  bool read(std::size_t row, std::size_t column, double& number);
  const std::string& name() const { return csv_.name; }

 private:
  char delimiter_;
  csv_file csv_;
  std::vector<std::string> plain_names_;
  bool has_points_ = false, has_commas_ = false;
};

/// A number with nothing around it but blanks. False for other text.
bool read_number(std::string_view text, double& number);

}  // namespace roost::tools
