#include "csv.hpp"

#include <csv.h>
#include <fmt/format.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory_resource>
#include <new>
#include <roost/error.hpp>
#include <utility>

namespace roost::tools {

using namespace std::literals;

struct text_piece {
  big_string text;
  bool first = false, last = false;  ///< whether it is the first and the last piece
  bool returns = false;              ///< lines end with CR alone: there is no LF
  bool parsed = false;
  std::vector<std::string_view> fields, texts;
  std::pmr::monotonic_buffer_resource made;  ///< memory of fields and texts that differ from the file

  // For CSV files:
  std::size_t consumed = 0;  ///< bytes; what is left is a row that does not end here
  std::size_t lines = 0;     ///< in the consumed bytes
  std::size_t skipped = 0;   ///< bad lines
  std::size_t bad_line = 0;  ///< the first of them, counted from 0
  std::string why;           ///< what is wrong with it

  /// The same text as it was before it was parsed.
  std::shared_ptr<text_piece> unparsed() {
    auto same = std::make_shared<text_piece>();
    same->text = std::move(text);
    same->first = first, same->last = last, same->returns = returns;
    return same;
  }

  std::string_view keep(std::string_view s) {
    auto* const at = static_cast<char*>(made.allocate(std::max<std::size_t>(s.size(), 1), 1));
    std::memcpy(at, s.data(), s.size());
    return {at, s.size()};
  }
};

void text_rows::clear() {
  fields.clear();
  texts.clear();
  pieces.clear();
  bytes = 0;
}

namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file, why));
}

/// A hint if the header seems to have a different delimiter, or to be UTF-16.
std::string hint_of(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (name.find('\0') != name.npos)
      return "; if it is in UTF-16, turn it into UTF-8 with: iconv -f UTF-16LE -t UTF-8";
  }
  if (names.size() != 1) return {};
  for (const auto& [c, option] :
       {std::pair{'\t', "tab"}, std::pair{';', "';'"}, std::pair{'|', "'|'"}, std::pair{',', "','"}}) {
    if (names[0].find(c) != names[0].npos)
      return fmt::format("; if they are separated by {0}, add --delimiter {0}", option);
  }
  return {};
}

constexpr auto several = static_cast<std::size_t>(-1);  // instead of a number: more than one has the name

/// The fields of the row that is being parsed. Exceptions must not pass through libcsv, so it remembers that
/// memory ran out.
class row_parser {
 public:
  explicit row_parser(char delimiter) : delimiter_(delimiter) { start(); }
  ~row_parser() { csv_free(&parser_); }
  row_parser(const row_parser&) = delete;
  row_parser& operator=(const row_parser&) = delete;

  /// Clears everything, including a partly parsed row.
  void restart() {
    csv_free(&parser_);
    start();
  }

  /// Parses a piece of text with at most one end of a row. Returns how many bytes could be parsed.
  std::size_t parse(std::string_view piece) {
    const auto parsed = csv_parse(&parser_, piece.data(), piece.size(), on_field, on_row, this);
    expect_memory();
    return parsed;
  }

  /// Ends the text. Returns whether it may end here.
  bool finish() {
    const int status = csv_fini(&parser_, on_field, on_row, this);
    expect_memory();
    return status == 0;
  }

  bool complete() const { return complete_; }
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t field) const {
    const auto begin = field == 0 ? 0 : ends_[field - 1];
    return std::string_view(text_).substr(begin, ends_[field] - begin);
  }

  void clear() {
    text_.clear();
    ends_.clear();
    complete_ = false;
  }

 private:
  void start() {
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    csv_set_space_func(&parser_, [](unsigned char) { return 0; });  // else blanks around fields are lost
    csv_set_delim(&parser_, static_cast<unsigned char>(delimiter_));
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

  char delimiter_;
  mutable csv_parser parser_ = {};
  std::string text_;
  std::vector<std::size_t> ends_;
  bool complete_ = false, no_memory_ = false;
};

/// The fields of a line without quotes.
class plain_row {
 public:
  void split(std::string_view line, char delimiter) {
    line_ = line;
    if (begins_.size() < line.size() + 2) begins_.resize(line.size() + 2);  // as many as there may be
    auto* to = begins_.data();
    *to++ = 0;
    std::size_t at = 0;
#if defined(__SSE2__)  // 16 characters at a time
    const auto pattern = _mm_set1_epi8(delimiter);
    for (; at + 16 <= line.size(); at += 16) {
      const auto some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(line.data() + at));
      auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(some, pattern)));
      for (; found != 0; found &= found - 1)
        *to++ = at + static_cast<std::size_t>(std::countr_zero(found)) + 1;
    }
#endif
    for (; at < line.size(); ++at) {
      if (line[at] == delimiter) *to++ = at + 1;
    }
    *to = line.size() + 1;
    size_ = static_cast<std::size_t>(to - begins_.data());
  }

  std::size_t size() const { return size_; }
  std::string_view operator[](std::size_t field) const { return range(field, field + 1); }
  /// The text of some adjacent fields.
  std::string_view range(std::size_t first, std::size_t last) const {
    return first == last ? std::string_view{}
                         : line_.substr(begins_[first], begins_[last] - 1 - begins_[first]);
  }

 private:
  std::string_view line_;
  std::vector<std::size_t> begins_;
  std::size_t size_ = 0;
};

/// Parses the rows of a piece. Lines without quotes are split directly; all others go through libcsv.
class piece_parser {
 public:
  /// `columns`: the number of the header's columns.
  piece_parser(text_piece& piece, const csv_format& format, const csv_choice& choice, std::size_t columns)
      : piece_(piece),
        text_(piece.text),
        format_(format),
        choice_(choice),
        columns_(columns),
        row_(format.delimiter) {
    if (choice.text && !choice.text->empty()) {
      side_by_side_ = choice.text->back() - choice.text->front() + 1 == choice.text->size();
    }
    has_quotes_ = text_.find('"') != text_.npos;
    has_returns_ = text_.find('\r') != text_.npos;
  }

  void parse() {
    const auto rows =
        text_.size() / std::max<std::size_t>(columns_, 32);  // the likely number, or the most possible
    piece_.fields.reserve(rows * choice_.fields.size());
    if (choice_.text) piece_.texts.reserve(rows);
    while (at_ < text_.size() && parse_line()) {
    }
    piece_.consumed = at_;
    piece_.lines = line_;
  }

  /// Parses only the first row. False if it does not end in this piece.
  bool parse_header(std::vector<std::string>& names, bool& crlf) {
    while (at_ < text_.size()) {
      const auto before = at_;
      if (!parse_row_of_any_kind()) return !piece_.why.empty();
      piece_.consumed = at_;
      piece_.lines = line_;
      if (!piece_.why.empty()) return true;
      if (row_.size() == 0) continue;  // an empty line
      for (std::size_t c = 0; c < row_.size(); ++c) names.emplace_back(row_[c]);
      crlf = text_.substr(before, at_ - before).ends_with("\r\n");
      return true;
    }
    return false;
  }

 private:
  /// False if the text ends within a row, or at a bad line that must not be skipped.
  bool parse_line() {
    find_end();
    auto line = text_.substr(at_, line_end_ - at_);
    const auto next = line_end_ + (line_end_ < text_.size() ? 1 : 0);
    if (line_end_ == text_.size() && !piece_.last && !piece_.returns) return false;
    if (const auto cr = has_returns_ ? line.find('\r') : line.npos; cr != line.npos) {
      if (cr + 1 != line.size() || next == line_end_) return parse_quoted();
      line.remove_suffix(1);
    }
    if (has_quotes_ && line.find('"') != line.npos) return parse_quoted();
    at_ = next;
    ++line_;
    if (line.empty()) return true;
    plain_.split(line, format_.delimiter);
    if (plain_.size() != columns_) return skip(line_ - 1, wrong_count(plain_.size()));
    add(plain_);
    if (!choice_.text) return true;
    const auto& columns = *choice_.text;
    piece_.texts.push_back(side_by_side_ ? plain_.range(columns.front(), columns.back() + 1)
                                         : text_of(plain_));
    return true;
  }

  bool parse_quoted() {
    const auto line = line_;
    row_.clear();
    if (!parse_row_of_any_kind()) return false;
    if (row_.size() == 0) return true;
    if (row_.size() != columns_) return skip(line, wrong_count(row_.size()));
    add(row_);
    if (choice_.text) piece_.texts.push_back(text_of(row_));
    return true;
  }

  /// Parses a row into row_, which stays empty if a bad line was skipped or the line is empty.
  bool parse_row_of_any_kind() {
    const auto begin = at_, first_line = line_;
    auto second = begin;
    row_.clear();
    for (;;) {
      const auto end = piece_end();
      const auto piece = text_.substr(at_, end - at_);
      if (at_ == begin) {
        second = end;
        if (piece.find_first_not_of("\r\n") == piece.npos) {
          at_ = end;
          ++line_;
          return true;
        }
      }
      const char* wrong = nullptr;
      if (const auto parsed = row_.parse(piece); parsed != piece.size()) {
        wrong = piece[parsed] == '"' ? "has a quote inside a field" : "has text behind a closing quote";
      } else if (end == text_.size() && piece_.last && !row_.finish()) {
        wrong = "has a quote that is never closed";
      }
      at_ = end;
      ++line_;
      if (wrong != nullptr) {
        row_.restart();
        at_ = second;
        line_ = first_line + 1;
        line_end_known_ = false;
        return skip(first_line, wrong);
      }
      if (row_.complete()) return true;
      if (at_ == text_.size()) {
        row_.restart();
        at_ = begin;
        line_ = first_line;
        line_end_known_ = false;
        return false;
      }
    }
  }

  /// Finds the next LF, or the end of the text: searches only once, even if lines end with CR alone.
  void find_end() {
    if (line_end_known_ && at_ <= line_end_) return;
    line_end_ = std::min(text_.find('\n', at_), text_.size());
    line_end_known_ = true;
  }

  /// The end of the line that begins here, after its line end, which may be CR alone.
  std::size_t piece_end() {
    find_end();
    const auto next = std::min(line_end_ + 1, text_.size());
    const auto line = text_.substr(at_, next - at_);
    const auto cr = line.find('\r');
    if (cr == line.npos || line.substr(cr + 1) == "\n") return next;
    return at_ + cr + 1;
  }

  template <class Row>
  void add(const Row& row) {
    for (const auto& columns : choice_.fields) {
      piece_.fields.push_back(columns.size() == 1 ? kept(row, row[columns[0]]) : joined(row, columns));
    }
  }

  /// Several fields as one: each but the last is preceded by its size.
  template <class Row>
  std::string_view joined(const Row& row, const std::vector<std::size_t>& columns) {
    made_.clear();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string_view field = row[columns[i]];
      const std::uint64_t size = field.size();
      if (i + 1 < columns.size()) made_.append(reinterpret_cast<const char*>(&size), sizeof(size));
      made_.append(field);
    }
    return piece_.keep(made_);
  }

  std::string_view kept(const plain_row&, std::string_view field) { return field; }
  std::string_view kept(const row_parser&, std::string_view field) { return piece_.keep(field); }

  /// The columns of a row as they are written.
  template <class Row>
  std::string_view text_of(const Row& row) {
    if (choice_.text->empty()) return {};
    made_.clear();
    for (const auto c : *choice_.text) {
      if (c != choice_.text->front()) made_ += format_.delimiter;
      append_field(made_, row[c], format_.delimiter);
    }
    return piece_.keep(made_);
  }

  std::string wrong_count(std::size_t fields) const {
    return fmt::format("has {} field{} and the header {}", fields, fields == 1 ? "" : "s", columns_);
  }

  bool skip(std::size_t line, std::string why) {
    if (piece_.skipped++ == 0) {
      piece_.bad_line = line;
      piece_.why = std::move(why);
    }
    return format_.on_bad == bad_lines::skip;
  }

  text_piece& piece_;
  std::string_view text_;
  const csv_format& format_;
  const csv_choice& choice_;
  std::size_t columns_;
  row_parser row_;
  plain_row plain_;
  bool side_by_side_ = false;  // whether the text's columns are adjacent, and at least one
  bool has_quotes_ = false, has_returns_ = false;
  std::size_t at_ = 0, line_ = 0, line_end_ = 0;
  bool line_end_known_ = false;
  std::string made_;
};

}  // namespace

text_reader::text_reader(const host& cpu, const std::string& file, std::size_t piece_bytes)
    : cpu_(cpu), source_(file), piece_bytes_(piece_bytes) {}
text_reader::~text_reader() = default;

/// Text up to the end of a line, or to the end.
void text_reader::read_lines(big_string& text) {
  for (auto line_end = text.npos; line_end == text.npos;) {
    const auto before = text.size();
    const auto more = std::max(piece_bytes_, before);
    text.resize(before + more);
    const auto size = source_.read(std::span(text).subspan(before));
    text.resize(before + size);
    progress_.show(source_.name(), source_.taken(), source_.expected());
    ended_ = size < more;
    if (ended_) break;
    line_end = std::string_view(text).substr(before).rfind('\n');
    if (line_end == text.npos) continue;
    line_end += before;
    carry_ = text.substr(line_end + 1);
    text.resize(line_end + 1);
  }
}

/// Takes text with CRs alone that was already read, up to a CR.
void text_reader::take_lines(big_string& text) {
  const auto rest = std::string_view(carry_).substr(carry_taken_);
  const auto least = std::max(piece_bytes_, std::exchange(least_, 0));
  const auto size = least < rest.size() ? std::min(rest.find('\r', least), rest.size() - 1) + 1 : rest.size();
  if (size == carry_.size()) {
    text = std::exchange(carry_, {});
    return;
  }
  text = rest.substr(0, size);
  carry_taken_ += size;
  if (size == rest.size()) carry_ = {}, carry_taken_ = 0;
}

void text_reader::put_back(std::string_view text) {
  carry_.replace(0, carry_taken_, text);
  carry_taken_ = 0;
  least_ = 2 * text.size();
}

std::shared_ptr<text_piece> text_reader::next_piece() {
  if (ended_ && carry_.empty()) return {};
  auto piece = std::make_shared<text_piece>();
  auto& text = piece->text;
  if (!returns_) {
    text = std::exchange(carry_, {});
    if (!ended_) read_lines(text);
    returns_ = !begun_ && ended_ && text.find('\n') == text.npos;
    if (returns_) carry_ = std::exchange(text, {});
  }
  if (returns_) take_lines(text);
  piece->first = !std::exchange(begun_, true);
  piece->last = ended_ && carry_.empty();
  piece->returns = returns_;
  if (piece->first) {
    for (const auto& [mark, encoding] : {std::pair{"\xff\xfe\0\0"sv, "UTF-32"},
                                         {"\0\0\xfe\xff"sv, "UTF-32"},
                                         {"\xff\xfe"sv, "UTF-16"},
                                         {"\xfe\xff"sv, "UTF-16"}}) {
      if (text.starts_with(mark))
        refuse(name(), fmt::format("is in {0}; turn it into UTF-8 with: iconv -f {0} -t UTF-8", encoding));
    }
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  }
  return piece;
}

bool text_reader::accept(std::shared_ptr<text_piece>&) { return true; }

namespace {

/// The most rows that a text can have.
std::size_t rows_in(std::string_view text) {
  constexpr std::size_t step = 255;  // the most that a byte can count
  std::size_t rows = 1;
  for (std::size_t at = 0; at < text.size(); at += step) {
    const auto part = text.substr(at, step);
    std::uint8_t ends = 0;
    for (const char c : part) ends += c == '\n' || c == '\r' ? 1 : 0;
    rows += ends;
  }
  return rows;
}

}  // namespace

bool text_reader::read(text_rows& rows, std::size_t most_bytes, std::size_t most_rows) {
  progress_.start(source_.taken());
  std::size_t asked_for = rows.bytes;
  const auto rows_before = rows.fields.size();
  std::atomic<std::size_t> parsed_rows{rows_before};
  using shared_piece = std::shared_ptr<text_piece>;
  std::vector<shared_piece> wait;  // pieces for whose rows there is no room
  const auto first = [&](tbb::flow_control& control) -> shared_piece {
    shared_piece piece;
    if (asked_for < most_bytes && parsed_rows < most_rows) {
      if (waiting_.empty()) {
        piece = next_piece();
      } else {
        piece = std::move(waiting_.front());
        waiting_.pop_front();
      }
    }
    if (!piece) {
      control.stop();
      return piece;
    }
    asked_for += piece->text.size();
    return piece;
  };
  const auto parse_some = [&](shared_piece piece) {
    const auto more = most_rows == unlimited ? 0 : rows_in(piece->text);
    piece->parsed = parsed_rows.fetch_add(more) + more <= most_rows;
    if (piece->parsed) parse(*piece);
    return piece;
  };
  bool any = false;
  const auto add = [&](shared_piece piece) {
    if (!piece->parsed && !any) {  // the first one is always added
      parse(*piece);
      piece->parsed = true;
    }
    any = true;
    if (!piece->parsed || !wait.empty()) {
      wait.push_back(piece->parsed ? piece->unparsed() : std::move(piece));
      return;
    }
    if (!accept(piece)) return;
    rows.bytes += piece->text.size();
    rows.fields.insert(rows.fields.end(), piece->fields.begin(), piece->fields.end());
    rows.texts.insert(rows.texts.end(), piece->texts.begin(), piece->texts.end());
    piece->fields = {};
    piece->texts = {};
    rows.pieces.push_back(std::move(piece));
  };
  cpu_.execute([&] {
    const auto tokens = static_cast<std::size_t>(2 * cpu_.threads() + 1);
    tbb::parallel_pipeline(
        tokens, tbb::make_filter<void, shared_piece>(tbb::filter_mode::serial_in_order, first) &
                    tbb::make_filter<shared_piece, shared_piece>(tbb::filter_mode::parallel, parse_some) &
                    tbb::make_filter<shared_piece, void>(tbb::filter_mode::serial_in_order, add));
  });
  waiting_.insert(waiting_.begin(), wait.begin(), wait.end());
  return !ended_ || !carry_.empty() || !waiting_.empty();
}

void text_reader::report_skipped() const {
  if (!source_.ignores_rest()) return;
  std::fputs(
      fmt::format("roost: {}: left out what follows the compressed text, which is not compressed\n", name())
          .c_str(),
      stderr);
}

void line_reader::parse(text_piece& piece) const {
  const std::string_view text = piece.text;
  const char mark = piece.returns ? '\r' : '\n';
  piece.fields.reserve(text.size() / 32);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(mark, at), text.size());
    auto line = text.substr(at, end - at);
    if (line.ends_with('\r'))
      line.remove_suffix(1);  // of CR and LF; at the end of the text, the LF may be missing
    piece.fields.push_back(line);
    at = end + 1;
  }
}

csv_reader::csv_reader(const host& cpu, const std::string& file, const csv_format& format)
    : text_reader(cpu, file, format.piece_bytes), format_(format) {
  read_header();
}

void csv_reader::read_header() {
  auto piece = next_piece();
  if (!piece || piece->text.empty())
    refuse(name(), "is empty; a line with the names of the columns was expected");
  for (;;) {
    csv_format format = format_;
    format.on_bad = bad_lines::fail;
    const csv_choice none;
    piece_parser parser(*piece, format, none, 0);
    if (parser.parse_header(names_, crlf_)) break;
    if (piece->last) refuse(name(), "has no header; a line with the names of the columns was expected");
    put_back(piece->text);
    piece = next_piece();
  }
  if (!piece->why.empty()) {
    refuse(name(), fmt::format("line {} {}; it should have the names of the columns", piece->bad_line + 1,
                               piece->why));
  }
  lines_ = piece->lines;
  put_back(std::string_view(piece->text).substr(piece->consumed));
  for (std::size_t c = 0; c < names_.size(); ++c) {
    if (const auto [there, added] = columns_.emplace(names_[c], c); !added) there->second = several;
  }
}

std::size_t find_name(const std::string& file, const std::vector<std::string>& names,
                      std::string_view column) {
  constexpr std::size_t most_names = 20;
  if (const auto times = std::ranges::count(names, column); times > 1)
    refuse(file, fmt::format("has {} columns '{}'; give them different names", times, printable(column)));
  const auto found = std::ranges::find(names, column);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string there;
  for (std::size_t c = 0; c < std::min(names.size(), most_names); ++c)
    there += fmt::format("{}'{}'", c == 0 ? "" : ", ", printable(names[c]));
  if (names.size() > most_names) there += fmt::format(" and {} more", names.size() - most_names);
  refuse(file, fmt::format("has no column '{}'; it has {}{}", printable(column), there, hint_of(names)));
}

bool csv_reader::has_column(std::string_view column) const { return columns_.contains(column); }

std::size_t csv_reader::column(std::string_view column) const {
  const auto found = columns_.find(column);
  return found != columns_.end() && found->second != several ? found->second
                                                             : find_name(name(), names_, column);
}

void csv_reader::parse(text_piece& piece) const {
  piece_parser(piece, format_, choice_, names_.size()).parse();
}

bool csv_reader::accept(std::shared_ptr<text_piece>& piece) {
  if (!open_.empty()) {  // the piece does not begin with a row: parsed again with the text before it
    open_ += piece->text;
    if (!piece->last && open_.size() < 2 * tried_) return false;  // so that the total work stays small
    piece = piece->unparsed();
    piece->text = std::exchange(open_, {});
    parse(*piece);
  }
  if (piece->skipped != 0 && skipped_ == 0) {
    first_skipped_ = fmt::format("line {} {}", lines_ + piece->bad_line + 1, piece->why);
    if (format_.on_bad != bad_lines::skip) {
      refuse(name(), fmt::format("{}; correct it{}", first_skipped_,
                                 format_.on_bad == bad_lines::refuse
                                     ? ""
                                     : ", or leave such lines out with --bad-lines skip"));
    }
  }
  skipped_ += piece->skipped;
  lines_ += piece->lines;
  open_ = piece->text.substr(piece->consumed);
  tried_ = open_.size();
  return true;
}

void csv_reader::report_skipped() const {
  text_reader::report_skipped();
  if (skipped_ == 0) return;
  std::fputs(fmt::format("roost: {}: left out {} bad line{}; {}{}\n", name(), skipped_,
                         skipped_ == 1 ? "" : "s", skipped_ == 1 ? "" : "the first: ", first_skipped_)
                 .c_str(),
             stderr);
}

std::size_t csv_file::column(std::string_view column) const { return find_name(name, names, column); }

csv_file read_csv(const std::string& file, csv_format format) {
  const host cpu;
  csv_reader reader(cpu, file, format);
  csv_choice choice;
  for (std::size_t c = 0; c < reader.names().size(); ++c) choice.fields.push_back({c});
  reader.choose(choice);
  csv_file result{file == "-" ? "standard input" : file, reader.names(), {}};
  reader.read(result.table);
  if (result.rows() != 0) reader.report_skipped();
  return result;
}

std::vector<std::string_view> split_key(std::string_view key, std::size_t columns) {
  std::vector<std::string_view> fields;
  while (fields.size() + 1 < columns) {
    std::uint64_t size;
    std::memcpy(&size, key.data(), sizeof(size));
    fields.push_back(key.substr(sizeof(size), size));
    key.remove_prefix(sizeof(size) + size);
  }
  fields.push_back(key);
  return fields;
}

std::string printable(std::string_view name) {
  constexpr std::size_t most = 60;
  std::string result(name.substr(0, most));
  for (auto& c : result) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return name.size() > most ? result + "..." : result;
}

void append_field(std::string& row, std::string_view field, char delimiter) {
  const auto is_mark = [&](char c) { return c == delimiter || c == '"' || c == '\r' || c == '\n'; };
  if (std::ranges::none_of(field, is_mark)) {
    row += field;
    return;
  }
  row += '"';
  for (;;) {
    const auto quote = field.find('"');
    row += field.substr(0, quote);
    if (quote == field.npos) break;
    row += "\"\"";
    field.remove_prefix(quote + 1);
  }
  row += '"';
}

}  // namespace roost::tools
