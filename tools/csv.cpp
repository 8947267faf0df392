#include "csv.hpp"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <roost/error.hpp>
#include <utility>

namespace roost::tools {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file, why));
}

/// A name from a file as a message of one line can hold it.
std::string printable(std::string_view name) {
  constexpr std::size_t most = 60;
  std::string result(name.substr(0, most));
  for (auto& c : result) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return name.size() > most ? result + "..." : result;
}

/// The fields of the row that is being parsed. Nothing may be thrown through libcsv, so it remembers that
/// memory is out.
class row_parser {
 public:
  row_parser() { start(); }
  ~row_parser() { csv_free(&parser_); }
  row_parser(const row_parser&) = delete;
  row_parser& operator=(const row_parser&) = delete;

  /// Forgets all, also what was parsed of a row.
  void restart() {
    csv_free(&parser_);
    start();
  }

  /// Parses a piece of text with at most one end of a row. Returns how many bytes of it could be.
  std::size_t parse(std::string_view piece) {
    const auto parsed = csv_parse(&parser_, piece.data(), piece.size(), on_field, on_row, this);
    expect_memory();
    return parsed;
  }

  /// The text has ended. Returns whether it could end here.
  bool finish() {
    const int status = csv_fini(&parser_, on_field, on_row, this);
    expect_memory();
    return status == 0;
  }

  bool complete() const { return complete_; }
  std::string_view text() const { return text_; }
  const std::vector<std::uint64_t>& ends() const { return ends_; }

  void clear() {
    text_.clear();
    ends_.clear();
    complete_ = false;
  }

 private:
  void start() {
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    csv_set_space_func(&parser_, [](unsigned char) { return 0; });  // else blanks around fields are lost
    csv_set_blk_size(&parser_, 1 << 16);
    clear();
  }

  void expect_memory() const {
    if (no_memory_ || csv_error(&parser_) == CSV_ENOMEM || csv_error(&parser_) == CSV_ETOOBIG)
      throw std::bad_alloc();
  }

  static void on_field(void* field, std::size_t size, void* self) noexcept {
    auto& row = *static_cast<row_parser*>(self);
    try {
      row.text_.append(static_cast<const char*>(field), size);
      row.ends_.push_back(row.text_.size());
    } catch (...) {
      row.no_memory_ = true;
    }
  }
  static void on_row(int, void* self) noexcept { static_cast<row_parser*>(self)->complete_ = true; }

  mutable csv_parser parser_ = {};
  std::string text_;
  std::vector<std::uint64_t> ends_;
  bool complete_ = false, no_memory_ = false;
};

class csv_reader {
 public:
  csv_reader(const std::string& file, bad_lines on_bad) : on_bad_(on_bad) {
    file_.name = file == "-" ? "standard input" : file;
    file_.table.text = read_text(file);
    file_.table.columns = 0;  // not known yet
  }

  csv_file read() {
    const std::string_view text = file_.table.text;
    if (text.empty()) refuse(file_.name, "is empty; a line with the names of the columns was expected");
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
      refuse(file_.name, "is in UTF-16; turn it into UTF-8 with: iconv -f UTF-16 -t UTF-8");
    }
    std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0, line = 1;
    std::size_t row_line = line, second_line = at,
                line_after = 0;  // of the row: its first line's number, where the next begins and ends
    bool open = false;           // a row has begun
    while (at < text.size()) {
      const auto end = line_end(at);
      const auto piece = text.substr(at, end - at);
      if (!open) {
        row_line = line;
        second_line = end;
        line_after = next_line_;
        open = piece.find_first_not_of("\r\n") != piece.npos;
      }
      const char* wrong = nullptr;
      if (const auto parsed = row_.parse(piece); parsed != piece.size()) {
        wrong = piece[parsed] == '"' ? "has a quote inside a field" : "has text behind a closing quote";
      } else if (end == text.size() && !row_.finish()) {
        wrong = "has a quote that is never closed";
      }
      at = end;
      ++line;
      if (wrong != nullptr) {
        skip(row_line, wrong);
        row_.restart();
        at = second_line;
        next_line_ = line_after;
        line = row_line + 1;
        open = false;
      } else if (row_.complete()) {
        file_.crlf |= file_.table.columns == 0 && piece.ends_with("\r\n");
        add(row_line);
        open = false;
      }
    }
    if (file_.table.columns == 0)
      refuse(file_.name, "has no header; a line with the names of the columns was expected");
    file_.table.text.resize(size_);
    return std::move(file_);
  }

 private:
  /// Where the line ends that begins here, its end included.
  std::size_t line_end(std::size_t at) {
    const std::string_view text = file_.table.text;
    if (at >= next_line_)
      next_line_ = std::min(text.find('\n', at), text.size() - 1) + 1;  // once, also in a text of CR alone
    const auto line = text.substr(at, next_line_ - at);
    const auto cr = line.find('\r');
    if (cr == line.npos || line.substr(cr + 1) == "\n") return next_line_;
    return at + cr + 1;
  }

  /// Keeps the row. Its fields take the place of their own text, which is not shorter.
  void add(std::size_t line) {
    auto& table = file_.table;
    const auto fields = row_.ends().size();
    if (table.columns != 0 && fields != table.columns) {
      skip(line,
           fmt::format("has {} field{} and the header {}", fields, fields == 1 ? "" : "s", table.columns));
    } else {
      table.columns = fields;
      std::memcpy(table.text.data() + size_, row_.text().data(), row_.text().size());
      for (const auto end : row_.ends()) table.ends.push_back(size_ + end);
      size_ += row_.text().size();
    }
    row_.clear();
  }

  void skip(std::size_t line, const std::string& why) {
    const auto what = fmt::format("line {} {}", line, why);
    if (file_.table.columns == 0)
      refuse(file_.name, fmt::format("{}; it should have the names of the columns", what));
    if (on_bad_ == bad_lines::fail)
      refuse(file_.name, fmt::format("{}; correct it, or leave such lines out with --bad-lines skip", what));
    if (file_.skipped++ == 0) file_.first_skipped = what;
  }

  bad_lines on_bad_;
  csv_file file_;
  row_parser row_;
  std::size_t size_ = 0;  // of the text that is kept, which lies before the text that is still to be read
  std::size_t next_line_ = 0;  // what lies behind the first LF that is not before the line
};

}  // namespace

bool csv_file::has_column(std::string_view column) const {
  for (std::size_t c = 0; c < table.columns; ++c) {
    if (table.field(0, c) == column) return true;
  }
  return false;
}

std::size_t csv_file::column(std::string_view column) const {
  constexpr std::size_t most_names = 20;
  std::size_t found = table.columns, times = 0;
  std::string names;
  for (std::size_t c = 0; c < table.columns; ++c) {
    const auto here = table.field(0, c);
    if (c < most_names) names += fmt::format("{}'{}'", c == 0 ? "" : ", ", printable(here));
    if (here != column) continue;
    found = c;
    ++times;
  }
  if (table.columns > most_names) names += fmt::format(" and {} more", table.columns - most_names);
  if (times == 0) refuse(name, fmt::format("has no column '{}'; it has {}", printable(column), names));
  if (times > 1)
    refuse(name, fmt::format("has {} columns '{}'; give them different names", times, printable(column)));
  return found;
}

csv_file read_csv(const std::string& file, bad_lines on_bad) { return csv_reader(file, on_bad).read(); }

void report_skipped(const csv_file& file) {
  if (file.skipped == 0) return;
  std::fputs(
      fmt::format("roost: {}: left out {} bad line{}; {}{}\n", file.name, file.skipped,
                  file.skipped == 1 ? "" : "s", file.skipped == 1 ? "" : "the first: ", file.first_skipped)
          .c_str(),
      stderr);
}

text_table read_lines(const std::string& file) {
  text_table result;
  result.text = read_text(file);
  auto& text = result.text;
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    std::memmove(text.data() + size, text.data() + at, end - at);
    size += end - at;
    result.ends.push_back(size);
    at = end + 1;
  }
  text.resize(size);
  return result;
}

void write_field(text_writer& out, std::string_view field, bool alone) {
  if (field.find_first_of(",\"\r\n") == field.npos && !(alone && field.empty())) {
    out.write(field);
    return;
  }
  out.write("\"");
  for (;;) {
    const auto quote = field.find('"');
    out.write(field.substr(0, quote));
    if (quote == field.npos) break;
    out.write("\"\"");
    field.remove_prefix(quote + 1);
  }
  out.write("\"");
}

}  // namespace roost::tools
