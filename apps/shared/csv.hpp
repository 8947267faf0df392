#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "host_memory.hpp"
#include "progress_line.hpp"
#include "roost/host.hpp"
#include "text_column.hpp"
#include "text_file.hpp"

/// \file
/// Tables of text: rows of CSV files and lines of any file, read by several threads.

namespace roost::tools {

/// A piece of a file's text, and the rows found in it.
struct text_piece;

/// Rows, in the order of their file. The text that they view lives as long as they do.
struct text_rows {
  /// Removes everything.
  void clear();

  std::vector<std::shared_ptr<text_piece>> pieces;
  big_vector<std::string_view> fields;  ///< of a CSV: the chosen ones; otherwise the lines
  big_vector<std::string_view> texts;   ///< of a CSV, if chosen: rows as written, without line ends
  std::size_t bytes = 0;                ///< of the pieces
};

/// About how much a thread parses at a time: a huge page.
inline constexpr std::size_t text_piece_bytes = std::size_t{2} << 20;

/// Reads text in pieces: one thread reads, all parse, and the results are taken in the order of the file. A
/// byte order mark of UTF-8 at the beginning is left out, and UTF-16 and UTF-32 are refused.
class text_reader {
 public:
  virtual ~text_reader();
  text_reader(const text_reader&) = delete;
  text_reader& operator=(const text_reader&) = delete;

  /// Adds rows until `rows` has `most_bytes` bytes of text, or up to a piece more, or `most_rows` rows;
  /// before the call it must have fewer. Returns whether there may be more.
  bool read(text_rows& rows, std::size_t most_bytes = unlimited, std::size_t most_rows = unlimited);

  /// The option --output: with a file, progress is shown on a terminal even if standard output is one.
  void rows_go_to(const std::string& output) { progress_.rows_go_to(output); }

  /// Reports on stderr what was left out, if anything.
  virtual void report_skipped() const;

 protected:
  text_reader(const host& cpu, const std::string& file, std::size_t piece_bytes = text_piece_bytes);

  /// Text up to the end of a line, or all that is left; null at the end.
  std::shared_ptr<text_piece> next_piece();
  /// The next piece begins with this text, and is more than twice as long.
  void put_back(std::string_view text);
  /// Finds rows; the first begins at the beginning of the piece. Called from several threads at once.
  virtual void parse(text_piece& piece) const = 0;
  /// Checks the rows found, given all earlier pieces. False: there is nothing to add.
  virtual bool accept(std::shared_ptr<text_piece>& piece);

  const std::string& name() const { return source_.name(); }

 private:
  static constexpr auto unlimited = std::numeric_limits<std::size_t>::max();

  void read_lines(big_string& text);
  void take_lines(big_string& text);

  const host& cpu_;
  file_progress progress_;  // begins before the source waits for its first bytes
  text_source source_;
  std::size_t piece_bytes_;
  bool begun_ = false, ended_ = false, returns_ = false;
  big_string carry_;             // what was read after the last piece; for a text with CRs, all the text
  std::size_t carry_taken_ = 0;  // how much of it is in pieces
  std::size_t least_ = 0;        // of the next piece
  std::deque<std::shared_ptr<text_piece>> waiting_;  // not parsed, because they had too many rows
};

/// Reads the lines of a file, without their ends, as fields. They end with LF, or with CR and LF; in a text
/// without any LF, with CR. Other CRs belong to the line.
class line_reader final : public text_reader {
 public:
  /// `cpu` must live as long as the reader, here and below.
  line_reader(const host& cpu, const std::string& file) : text_reader(cpu, file) {}

 private:
  void parse(text_piece& piece) const override;
};

/// What to do with a line that is not a row of the table: skip it, or fail. `refuse` is `fail` for commands
/// without the option --bad-lines.
enum class bad_lines { fail, skip, refuse };

struct csv_format {
  char delimiter = ',';
  bad_lines on_bad = bad_lines::fail;
  std::size_t piece_bytes = text_piece_bytes;  ///< about how much a thread parses at a time
};

/// The parts of each row that a csv_reader takes.
struct csv_choice {
  /// The fields, and the columns of each. Fields of several columns differ if rows differ in any of them;
  /// split_key splits such a field.
  std::vector<std::vector<std::size_t>> fields;
  /// The columns of the row's text, ascending; without a value, the text is not taken.
  std::optional<std::vector<std::size_t>> text;
};

/// Reads a CSV file as RFC 4180 defines it: delimiters; quotes around fields with delimiters, quotes or line
/// ends; lines that end with CR and LF, LF, or CR. Blanks belong to the fields, empty lines are ignored, and
/// a byte order mark of UTF-8 is left out.
///
/// A bad line has a misplaced quote, or more or fewer fields than the header. After a quote that is never
/// closed, reading resumes at the next line. Throws roost::invalid_argument, one line that starts with the
/// name of the file, for a file that cannot be read, has no header, or has a bad line that must not be
/// skipped.
class csv_reader final : public text_reader {
 public:
  /// Reads the header.
  csv_reader(const host& cpu, const std::string& file, const csv_format& format = {});

  const std::vector<std::string>& names() const { return names_; }
  bool has_column(std::string_view column) const;
  /// Throws roost::invalid_argument, with the columns that there are, unless exactly one has the name.
  std::size_t column(std::string_view column) const;
  /// Whether the header's line ends with CR and LF.
  bool crlf() const { return crlf_; }

  /// Before the first read().
  void choose(csv_choice choice) { choice_ = std::move(choice); }

  void report_skipped() const override;

 private:
  void read_header();
  void parse(text_piece& piece) const override;
  bool accept(std::shared_ptr<text_piece>& piece) override;

  csv_format format_;
  csv_choice choice_;
  std::vector<std::string> names_;
  std::unordered_map<std::string_view, std::size_t> columns_;  // the column of each name, or `several`
  bool crlf_ = false;
  std::size_t lines_ = 0;      // before the next piece
  big_string open_;            // a row that began in earlier pieces and has not ended
  std::size_t tried_ = 0;      // how much of it has been parsed
  std::size_t skipped_ = 0;    // bad lines
  std::string first_skipped_;  // which line, and what is wrong with it
};

/// A CSV file as a whole.
struct csv_file {
  std::string name;
  std::vector<std::string> names;  ///< of the columns
  text_rows table;

  std::size_t rows() const { return table.fields.size() / names.size(); }
  text_column fields(std::size_t column) const { return {table.fields, column, names.size()}; }
  /// Like csv_reader::column.
  std::size_t column(std::string_view column) const;
};

/// Reads all fields of a file. Throws as csv_reader does. Reports skipped lines on stderr if any lines are
/// left.
csv_file read_csv(const std::string& file, csv_format format);

/// The column with a name. Throws roost::invalid_argument, whose text begins with `file`, if there is none or
/// more than one.
std::size_t find_name(const std::string& file, const std::vector<std::string>& names,
                      std::string_view column);

/// The fields of a key that consists of `columns` fields.
std::vector<std::string_view> split_key(std::string_view key, std::size_t columns);

/// A name from a file, in a form that fits in a one-line message.
std::string printable(std::string_view name);

/// Adds a field to a row, in quotes if it needs them.
void append_field(std::string& row, std::string_view field, char delimiter);

}  // namespace roost::tools
