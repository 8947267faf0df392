#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text_file.hpp"

/// \file
/// Tables of text: the fields of a CSV file, or the lines of any file.

namespace roost::tools {

/// One column of a text_table, which must stay where it is.
class text_column {
 public:
  text_column(const char* text, const std::uint64_t* ends, std::size_t stride, std::size_t size)
      : text_(text), ends_(ends), stride_(stride), size_(size) {}

  std::size_t size() const { return size_; }
  std::string_view operator[](std::size_t row) const {
    const auto* const end = ends_ + row * stride_;
    return {text_ + end[0], static_cast<std::size_t>(end[1] - end[0])};
  }

 private:
  const char* text_;
  const std::uint64_t* ends_;  // where the field before the first one ends
  std::size_t stride_, size_;
};

/// Rows of fields, row by row in one buffer: field k is [ends[k], ends[k + 1]) of the text.
struct text_table {
  std::string text;
  std::vector<std::uint64_t> ends = {0};
  std::size_t columns = 1;

  std::size_t rows() const { return (ends.size() - 1) / columns; }
  std::string_view field(std::size_t row, std::size_t column) const { return column_from(row, column)[0]; }
  /// The column without the rows before `row`.
  text_column column_from(std::size_t row, std::size_t column) const {
    return {text.data(), ends.data() + row * columns + column, columns, rows() - row};
  }
};

/// What to do with a line that is no row of the table.
enum class bad_lines { fail, skip };

/// A CSV file. Row 0 of the table is the header.
struct csv_file {
  std::string name;
  text_table table;
  bool crlf = false;          ///< the header's line ends with CR and LF
  std::size_t skipped = 0;    ///< bad lines
  std::string first_skipped;  ///< which line, and what is wrong with it

  /// The rows without the header.
  std::size_t rows() const { return table.rows() - 1; }
  bool has_column(std::string_view column) const;
  /// Throws roost::invalid_argument, with the columns that there are, unless exactly one has the name.
  std::size_t column(std::string_view column) const;
  /// A column without the header.
  text_column fields(std::size_t column) const { return table.column_from(1, column); }
};

/// Reads a CSV file as RFC 4180 defines it: commas; quotes around fields with commas, quotes or line ends;
/// lines that end with CR and LF, LF, or CR. Blanks belong to the fields, empty lines to none, and a byte
/// order mark of UTF-8 is left out.
///
/// A bad line has a quote where none may be, or more or fewer fields than the header. What follows a quote
/// that is never closed is read again from the next line on. Throws roost::invalid_argument, one line that
/// starts with the name of the file, for a file that cannot be read, has no header, or has a bad line where
/// none may be skipped.
csv_file read_csv(const std::string& file, bad_lines on_bad);

/// Says on stderr how many lines of a file were left out, if any were.
void report_skipped(const csv_file& file);

/// The lines of a file, without their ends, as a table of one column and no header.
text_table read_lines(const std::string& file);

/// Writes a field, in quotes where it needs them. `alone`: it is its line's only one, which must not be
/// empty.
void write_field(text_writer& out, std::string_view field, bool alone = false);

}  // namespace roost::tools
