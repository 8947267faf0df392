#include "point_cloud.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <roost/error.hpp>
#include <string_view>
#include <utility>

#include "apps/shared/numbers.hpp"
#include "apps/shared/ply.hpp"
#include "apps/shared/text_file.hpp"

namespace roost::tools {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file, why));
}

constexpr std::string_view blanks = " \t", marks = "#/%!";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

/// The lines of a text, whose ends are LF, CR LF, or CR.
struct lines_of {
  std::string_view rest;
  std::size_t number = 0;  ///< of the last line that was taken

  std::string_view take() {
    auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const auto end = line.find('\r'); end != line.npos) {
      const auto after = line.substr(end + 1);
      if (!after.empty())
        rest = {after.data(), static_cast<std::size_t>(rest.data() + rest.size() - after.data())};
      line = line.substr(0, end);
    }
    ++number;
    return line;
  }
};

enum class separator { blank, comma, semicolon };

/// The separator of the fields of a line. If blanks separate fields, commas without blanks beside them are
/// decimal marks.
separator separator_of(std::string_view line) {
  line = trimmed(line);
  bool quoted = false, beside = false, commas = false, several = false;
  std::size_t words = 1, commas_of_word = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto blank_at = [&](std::size_t k) { return blanks.find(line[k]) != blanks.npos; };
    if (line[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (line[i] == ';') return separator::semicolon;
    if (line[i] == ',') {
      commas = true;
      beside = beside || i == 0 || i + 1 == line.size() || blank_at(i - 1) || blank_at(i + 1);
      several = several || ++commas_of_word > 1;
    }
    if (blank_at(i) && !blank_at(i - 1)) ++words, commas_of_word = 0;
  }
  return commas && (beside || several || words < 3) ? separator::comma : separator::blank;
}

/// Removes blanks and quotes around fields. Characters in quotes are not separators.
void split(std::string_view line, separator by, std::vector<std::string_view>& fields) {
  fields.clear();
  line = trimmed(line);
  const std::string_view ends = by == separator::blank ? blanks : by == separator::comma ? "," : ";";
  while (!line.empty()) {
    auto field = line.substr(0, line.find_first_of(ends));
    if (line[0] == '"') {
      auto closed = line.find('"', 1);
      while (closed != line.npos && line.substr(closed + 1).starts_with('"'))
        closed = line.find('"', closed + 2);
      if (closed != line.npos) field = line.substr(0, line.find_first_of(ends, closed));
    }
    line.remove_prefix(field.size());
    field = trimmed(field);
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
      field = trimmed(field.substr(1, field.size() - 2));
    fields.push_back(field);
    if (by == separator::blank) {
      line = trimmed(line);
    } else if (!line.empty()) {
      line = trimmed(line.substr(1));
      if (line.empty()) fields.emplace_back();
    }
  }
}

bool all_digits(std::string_view word) {
  return std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_sign(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return word;
}

std::optional<std::uint64_t> natural_in(std::string_view word) {
  std::uint64_t result = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), result);
  if (failure != std::errc{} || end != word.data() + word.size()) return {};
  return result;
}

/// Reads the coordinates of a text, and checks that they all have the same decimal mark.
class coordinate_reader {
 public:
  std::optional<double> read(std::string_view field) {
    const auto comma = field.find(',');
    if (comma == field.npos) {
      points_ = points_ || (field.find('.') != field.npos && field.find('#') == field.npos);
      return number_of(field);
    }
    const auto whole = without_sign(field.substr(0, comma)), after = field.substr(comma + 1),
               fraction = after.substr(0, after.find_first_of("eEdD"));
    if (!all_digits(whole) || !all_digits(fraction) || fraction.empty()) return {};
    commas_ = true;
    const bool thousands =
        fraction == after && fraction.size() == 3 && !whole.empty() && whole.size() <= 3 && whole[0] != '0';
    if (!thousands) decimal_ = true;
    if (thousands && doubtful_.empty()) doubtful_ = field;
    std::string copy(field);
    copy[comma] = '.';
    return number_of(copy);
  }

  bool commas() const { return commas_; }
  bool fractions() const { return commas_ || points_; }

  /// The error in the decimal marks; empty if there is none.
  std::string problem() const {
    if (commas_ && points_) return "has decimal commas and decimal points; write it with points only";
    if (commas_ && !decimal_) {
      return fmt::format(
          "'{}' may have a decimal comma, or one between thousands; write it with a decimal point, or "
          "without",
          doubtful_);
    }
    return {};
  }

 private:
  bool points_ = false, commas_ = false, decimal_ = false;
  std::string doubtful_;
};

/// Adds a point, unless it is not finite.
void add(point_cloud& cloud, const std::array<double, 3>& at) {
  if (std::isfinite(at[0]) && std::isfinite(at[1]) && std::isfinite(at[2])) {
    cloud.points.push_back({at[0], at[1], at[2]});
  } else {
    cloud.not_finite.push_back(cloud.points.size() + cloud.not_finite.size());
  }
}

/// The structure of rows of text.
struct row_layout {
  separator by = separator::blank;
  std::array<std::size_t, 3> columns{0, 1, 2};
  std::size_t least = 0, most = 0;  // columns of a row: one fewer if the last field is empty
  bool named = false;               // a header names the columns
  bool comments = false;            // there may be comment lines
  bool count_lines = false;         // after the announced points, more may be announced
  std::optional<std::uint64_t> announced;
};

bool is_comment(std::string_view line) {
  return line.starts_with('#') || line.starts_with("//") || line.starts_with('%');
}

/// Whether a field and the one before it look like one number that was split: 1,05 at its decimal comma, or
/// 500 000.5 at its thousands.
bool looks_split(const std::vector<std::string_view>& fields, std::size_t column) {
  const auto field = fields[column];
  if (column == 0 || field.size() < 2 || field[0] != '0' || !all_digits(field.substr(1, 1))) return false;
  const auto before = without_sign(fields[column - 1]);
  return !before.empty() && all_digits(before);
}

/// Reads rows of text as points.
class row_reader {
 public:
  row_reader(const std::string& file, const lines_of& lines, const row_layout& layout)
      : file_(file), lines_(lines), layout_(layout), first_(lines.number + 1) {
    pairs_ = layout.by == separator::comma && !layout.named;
  }

  point_cloud read() {
    while (!lines_.rest.empty()) {
      line_ = trimmed(lines_.take());
      if (line_.empty()) continue;
      split(line_, layout_.by, fields_);
      if (layout_.comments && is_comment(line_)) {
        expect_comment();
      } else if (layout_.announced && rows_ == *layout_.announced) {
        read_announcement();
      } else {
        read_row();
      }
    }
    expect_sense();
    constexpr std::array<const char*, 3> between{"blanks", "commas", "semicolons"};
    cloud_.read_as = fmt::format("text, x, y, z in columns {}, {}, {} of {}, between {}{}",
                                 layout_.columns[0] + 1, layout_.columns[1] + 1, layout_.columns[2] + 1,
                                 layout_.most, between[static_cast<std::size_t>(layout_.by)],
                                 numbers_.commas() ? ", with decimal commas" : "");
    return std::move(cloud_);
  }

 private:
  [[noreturn]] void refuse_row(const std::string& why) const {
    refuse(file_, fmt::format("line {}: {}: '{}'", lines_.number, why, line_.substr(0, 60)));
  }

  std::optional<double> number_in(std::size_t column, coordinate_reader& numbers) const {
    return column < fields_.size() ? numbers.read(fields_[column]) : std::nullopt;
  }

  /// Refuses a comment line that may be a point with a text before its coordinates.
  void expect_comment() const {
    coordinate_reader numbers;
    const auto is_number = [&](std::size_t column) { return column != 0 && number_in(column, numbers); };
    if (layout_.named && std::ranges::all_of(layout_.columns, is_number))
      refuse_row("may be a comment or a point; delete it, or put quotes around its first field");
  }

  void read_announcement() {
    const auto more = layout_.count_lines && fields_.size() == 1 ? natural_in(fields_[0]) : std::nullopt;
    if (!more) refuse_row(fmt::format("there are more points than the {} that are announced", rows_));
    layout_.announced = more;
    rows_ = 0;
  }

  void read_row() {
    const auto most = fields_.size(), least = most - (fields_.back().empty() ? 1 : 0);
    if (layout_.most == 0) layout_.least = least, layout_.most = most;
    if (most < layout_.least || least > layout_.most)
      refuse_row(fmt::format("{} columns are expected, and it has {}", layout_.least, least));
    if (least < 3) refuse_row(fmt::format("x, y and z need 3 columns, and it has {}", least));
    std::array<double, 3> at{};
    for (std::size_t a = 0; a < 3; ++a) {
      const auto column = layout_.columns[a];
      const auto number = number_in(column, numbers_);
      if (!number) refuse_row(fmt::format("column {} is not a number", column + 1));
      if (looks_split(fields_, column)) {
        refuse_row(
            fmt::format("columns {} and {} look like one number that has a mark in it; write it without",
                        column, column + 1));
      }
      at[a] = *number;
    }
    if (all_rows_ == 0) look_at_first();
    pairs_ = pairs_ && fields_.size() >= 6 && fields_.size() % 2 == 0;
    for (std::size_t i = 0; pairs_ && i < fields_.size(); ++i) {
      const auto digits = i % 2 == 0 ? without_sign(fields_[i]) : fields_[i];
      pairs_ = !digits.empty() && all_digits(digits);
    }
    add(cloud_, at);
    ++rows_, ++all_rows_;
  }

  void look_at_first() {
    names_ = lines_.number == first_;
    for (std::size_t i = 0; i < fields_.size(); ++i) names_ = names_ && fields_[i] == fmt::to_string(i);
    if (layout_.named) return;  // other columns may hold anything
    for (const auto field : fields_) {
      const auto blank = field.find_first_of(blanks);
      if (blank != field.npos && number_of(field.substr(0, blank)))
        refuse_row("has blanks and other marks between numbers; write it with one of them");
    }
  }

  /// Refuses rows that, taken together, are ambiguous.
  void expect_sense() const {
    if (layout_.announced && rows_ < *layout_.announced)
      refuse(file_, fmt::format("is cut short: it has {} of {} points", rows_, *layout_.announced));
    if (const auto problem = numbers_.problem(); !problem.empty()) refuse(file_, problem);
    if (names_ && numbers_.fractions() && layout_.comments) {
      refuse(file_,
             fmt::format("line {}: 0, 1, 2 may be names of columns or a point; delete it, or write 0.0",
                         first_));
    }
    if (pairs_ && all_rows_ != 0) {
      refuse(file_,
             "has nothing but whole numbers between commas, or decimal commas; write decimal points, or the "
             "names of the columns first");
    }
  }

  const std::string& file_;
  lines_of lines_;
  row_layout layout_;
  std::size_t first_;  // line
  std::string_view line_;
  std::vector<std::string_view> fields_;
  point_cloud cloud_;
  coordinate_reader numbers_;
  std::uint64_t rows_ = 0, all_rows_ = 0;  // since the last announcement, and in all
  bool names_ = false;                     // the first row is 0, 1, 2 ...
  bool pairs_ = false;                     // every two columns may be one number: 1,5
};

/// The position of a number in a record.
struct record_field {
  std::size_t offset = 0;
  number_type type;
  bool big_endian = false;
  std::size_t stride = 0;       // from a number to the next point's; 0: the bytes of a point
  double scale = 1, shift = 0;  // the coordinate is number * scale + shift
};

/// The layout of records in a file.
struct record_layout {
  std::uint64_t count = 0;
  std::size_t bytes = 0;  // of all fields of a point
  std::array<record_field, 3> fields;
};

point_cloud read_records(const std::string& file, std::string_view bytes, const record_layout& layout) {
  const auto& [count, size, fields] = layout;
  if (size == 0 || bytes.size() / size < count) {
    refuse(file, fmt::format("is cut short: {} bytes of points, {} points of {} bytes are announced",
                             bytes.size(), count, size));
  }
  const auto rest = bytes.substr(count * size);
  if (rest.find_first_not_of(std::string_view(" \t\r\n\0", 5)) != rest.npos) {
    refuse(file, fmt::format("has {} bytes after the announced {} points of {} bytes; one of these "
                             "numbers is wrong",
                             rest.size(), count, size));
  }
  point_cloud cloud;
  cloud.points.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::array<double, 3> at{};
    for (std::size_t a = 0; a < 3; ++a) {
      const auto& [offset, type, big_endian, stride, scale, shift] = fields[a];
      at[a] = number_at(bytes.data() + i * (stride == 0 ? size : stride) + offset, type, big_endian);
      if (type.bytes == 8 && type.kind != number_type::floating && std::abs(at[a]) >= 0x1p53)
        refuse(file, fmt::format("point {} has the number {}, which does not fit a double; make it smaller",
                                 i + 1, at[a]));
      at[a] = at[a] * scale + shift;
    }
    add(cloud, at);
  }
  cloud.single = std::ranges::any_of(fields, [](const record_field& f) {
    return f.type.kind == number_type::floating && f.type.bytes == 4;
  });
  return cloud;
}

/// The axis of a name, with or without a unit: `x`, `X`, `y[m]`, `z (ft)`.
std::optional<std::size_t> axis_of(std::string_view name) {
  if (name.empty()) return {};
  const auto axis = std::string_view("xyzXYZ").find(name[0]);
  name = trimmed(name.substr(1));
  if (axis == std::string_view::npos || !(name.empty() || name[0] == '[' || name[0] == '(')) return {};
  return axis % 3;
}

/// Where x, y and z are among names, and how often each occurs.
struct found_axes {
  std::array<std::size_t, 3> at{}, times{};
  bool any() const { return times != std::array<std::size_t, 3>{}; }
  bool all() const { return times == std::array<std::size_t, 3>{1, 1, 1}; }
};
found_axes find_axes(const std::vector<std::string_view>& names) {
  found_axes result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto a = axis_of(names[i])) result.at[*a] = i, ++result.times[*a];
  }
  return result;
}

/// Refuses names in which x, y or z is missing or occurs more than once.
std::array<std::size_t, 3> expect_axes(const std::string& file, const char* what,
                                       const std::vector<std::string_view>& names) {
  const auto found = find_axes(names);
  for (std::size_t a = 0; a < 3; ++a) {
    if (found.times[a] == 1) continue;
    refuse(file, fmt::format("has {} {} {}", found.times[a] == 0 ? "no" : "more than one", what, "xyz"[a]));
  }
  return found.at;
}

/// The header of a PCD file.
struct pcd_header {
  std::vector<std::string_view> names, sizes, types, counts;  // of the fields of a point
  std::optional<std::uint64_t> points, width, height;
  std::string_view data;  // the encoding of the points
};

void expect_whole(const std::string& file, const pcd_header& header) {
  const auto& [names, sizes, types, counts, points, width, height, data] = header;
  if (!points || data.empty() || names.empty() || names.size() != sizes.size() ||
      names.size() != types.size() || names.size() != counts.size()) {
    refuse(file, "has a PCD header that is not whole: FIELDS, SIZE, TYPE and POINTS are needed, alike long");
  }
  if (width && height &&
      (*height == 0 ? *points != 0 : *points / *height != *width || *points % *height != 0)) {
    refuse(file,
           fmt::format("has a PCD header with {} POINTS, but WIDTH {} and HEIGHT {}; one of them is wrong",
                       *points, *width, *height));
  }
}

/// Reads the header's lines.
pcd_header read_pcd_header(const std::string& file, lines_of& lines) {
  pcd_header header;
  std::vector<std::string_view> words;
  while (!lines.rest.empty()) {
    split(lines.take(), separator::blank, words);
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto key = words[0];
    words.erase(words.begin());
    const auto number = words.size() == 1 ? natural_in(words[0]) : std::nullopt;
    if (key == "FIELDS") header.names = words;
    if (key == "SIZE") header.sizes = words;
    if (key == "TYPE") header.types = words;
    if (key == "COUNT") header.counts = words;
    if (key == "POINTS") header.points = number;
    if (key == "WIDTH") header.width = number;
    if (key == "HEIGHT") header.height = number;
    if (key != "DATA") continue;
    if (words.size() == 1) header.data = words[0];
    auto& [names, sizes, types, counts, points, width, height, data] = header;
    if (counts.empty()) counts.assign(names.size(), "1");
    if (!points && width && height && (*height == 0 || *width <= ~std::uint64_t{0} / *height))
      points = *width * *height;
    expect_whole(file, header);
    return header;
  }
  refuse(file, "has a PCD header without DATA");
}

/// The `size` bytes that LZF compressed; nothing if the text is not LZF.
std::optional<std::string> decompress_lzf(std::string_view text, std::size_t size) {
  std::string result;
  result.reserve(std::min(size, text.size() * 256));  // a file may claim any size
  while (!text.empty()) {
    const auto take = [&] {
      const auto byte = static_cast<unsigned char>(text.front());
      text.remove_prefix(1);
      return std::size_t{byte};
    };
    const auto control = take();
    if (control < 32) {  // this many bytes, and one more, as they are
      if (text.size() < control + 1) return {};
      result += text.substr(0, control + 1);
      text.remove_prefix(control + 1);
    } else {  // a copy of earlier bytes
      auto length = control >> 5;
      if (text.size() < (length == 7 ? 2u : 1u)) return {};
      if (length == 7) length += take();
      const auto back = ((control & 31) << 8) + take() + 1;
      if (back > result.size()) return {};
      for (length += 2; length > 0; --length) result += result[result.size() - back];
    }
    if (result.size() > size) return {};
  }
  return result.size() == size ? std::optional(std::move(result)) : std::nullopt;
}

/// Points of a compressed PCD file, in which fields are stored one after the other.
point_cloud read_compressed(const std::string& file, std::string_view bytes, record_layout records) {
  constexpr std::size_t head = 8;
  if (bytes.size() < head) refuse(file, "is cut short: its compressed points have no size");
  const auto size_at = [&](std::size_t at) {
    std::uint32_t size;
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    return std::size_t{size};
  };
  const std::size_t packed = size_at(0), size = size_at(4);
  if (bytes.size() - head < packed) {
    refuse(file, fmt::format("is cut short: {} bytes of compressed points, {} are announced",
                             bytes.size() - head, packed));
  }
  const auto points = decompress_lzf(bytes.substr(head, packed), size);
  if (!points) refuse(file, "has compressed points that are damaged");
  for (auto& field : records.fields) {
    field.offset *= records.count;
    field.stride = field.type.bytes;
  }
  return read_records(file, *points, records);
}

/// A LAS file (ASPRS, 1.0 to 1.4): its points begin with X, Y, Z, integers to which a scale and an offset
/// apply.
point_cloud read_las(const std::string& file, std::string_view text) {
  constexpr std::size_t least_head = 227, head_of_4 = 375;
  const auto number = [&]<class T>(T value, std::size_t at) {
    std::memcpy(&value, text.data() + at, sizeof(value));
    return value;
  };
  if (text.size() < least_head) refuse(file, "is cut short: a LAS header has 227 bytes or more");
  const auto minor = static_cast<unsigned char>(text[25]), format = static_cast<unsigned char>(text[104]);
  const std::size_t begin = number(std::uint32_t(), 96);
  const bool is_long = minor >= 4 && text[24] == 1;
  if (text[24] != 1 || minor > 4 || (is_long && text.size() < head_of_4))
    refuse(file, fmt::format("is a LAS file of version {}.{}; 1.0 to 1.4 are read", int{text[24]}, minor));
  if (format >= 64) {
    refuse(file,
           "is a LAZ file: compressed points are not read here; convert it by 'laszip -i a.laz -o a.las', "
           "'pdal translate a.laz a.las', or laspy with lazrs in Python");
  }
  record_layout layout;
  layout.bytes = number(std::uint16_t(), 105);
  layout.count = is_long ? number(std::uint64_t(), 247) : number(std::uint32_t(), 107);
  if (begin < least_head || begin > text.size() || layout.bytes < 20)
    refuse(file, "has a LAS header that is damaged: its points lie outside, or are too short");
  for (std::size_t a = 0; a < 3; ++a) {
    const double scale = number(double(), 131 + 8 * a), shift = number(double(), 155 + 8 * a);
    if (!std::isfinite(scale) || scale == 0 || !std::isfinite(shift))
      refuse(file, fmt::format("has a LAS header with the scale {} and the offset {}", scale, shift));
    layout.fields[a] = {4 * a, {number_type::whole, 4}, false, layout.bytes, scale, shift};
  }
  const auto points = text.substr(begin);
  const bool whole = points.size() / layout.bytes >= layout.count;
  auto cloud = read_records(file, whole ? points.substr(0, layout.count * layout.bytes) : points, layout);
  cloud.read_as = fmt::format("LAS 1.{}, points of format {}", minor, format);
  return cloud;
}

point_cloud read_pcd(const std::string& file, std::string_view text) {
  lines_of lines{text};
  const auto header = read_pcd_header(file, lines);
  const auto axes = expect_axes(file, "PCD field", header.names);
  row_layout rows;
  record_layout records;
  for (std::size_t i = 0; i < header.names.size(); ++i) {
    const auto name = header.names[i], type = header.types[i];
    const auto size = natural_in(header.sizes[i]), count = natural_in(header.counts[i]);
    const bool fitting =
        size && count && *count <= 4096 && (*size == 1 || *size == 2 || *size == 4 || *size == 8);
    const bool typed = type == "I" || type == "U" || (type == "F" && fitting && *size >= 4);
    if (!fitting || !typed)
      refuse(file, fmt::format("PCD field {} has no proper SIZE, TYPE and COUNT", name));
    for (std::size_t a = 0; a < 3; ++a) {
      if (axes[a] != i) continue;
      if (*count != 1) refuse(file, fmt::format("PCD field {} has COUNT {}; it needs 1", name, *count));
      const auto kind = type == "F"   ? number_type::floating
                        : type == "I" ? number_type::whole
                                      : number_type::natural;
      records.fields[a] = {records.bytes, {kind, static_cast<unsigned>(*size)}, false};
      rows.columns[a] = rows.most;
    }
    records.bytes += *size * *count;
    rows.most += *count;
  }
  point_cloud cloud;
  if (header.data == "ascii") {
    rows.least = rows.most;
    rows.announced = header.points;
    cloud = row_reader(file, lines, rows).read();
  } else if (header.data == "binary") {
    records.count = *header.points;
    cloud = read_records(file, lines.rest, records);
  } else if (header.data == "binary_compressed") {
    records.count = *header.points;
    cloud = read_compressed(file, lines.rest, records);
  } else {
    refuse(file, fmt::format("PCD data are '{}'; write them as ascii or binary", header.data));
  }
  cloud.read_as = fmt::format("PCD, {}", header.data);
  return cloud;
}

/// A type as numpy writes it: `<f4`, `>i8`, `|u1`; of 0 bytes if it is not a supported number.
std::pair<number_type, bool> type_of_numpy(std::string_view name) {
  const auto bytes = name.size() == 3 ? natural_in(name.substr(2)) : std::nullopt;
  if (!bytes) return {};
  const bool one = *bytes == 1, more = *bytes == 2 || *bytes == 4 || *bytes == 8;
  const auto kind = name[1] == 'f'   ? number_type::floating
                    : name[1] == 'i' ? number_type::whole
                                     : number_type::natural;
  if (!(one || more) || std::string_view("fiu").find(name[1]) == std::string_view::npos ||
      (name[1] == 'f' && *bytes < 4) || std::string_view("<>=|").find(name[0]) == std::string_view::npos)
    return {};
  return {{kind, static_cast<unsigned>(*bytes)}, name[0] == '>'};
}

/// A literal of Python: a text, a word (number, True), or several in brackets, those of {} by turns keys and
/// values.
struct literal {
  char kind = ' ';  ///< ' of a text, a bracket, or w
  std::string text;
  std::vector<literal> items;

  const literal& operator[](std::string_view key) const {
    static const literal none;
    for (std::size_t i = 0; kind == '{' && i + 1 < items.size(); i += 2) {
      if (items[i].text == key) return items[i + 1];
    }
    return none;
  }
};

/// Takes a literal from the beginning of a text; one of the kind ' ' if there is none.
literal take_literal(std::string_view& text, int depth = 0) {
  constexpr std::string_view between = " \t\n,:";
  const auto skip = [&] { text.remove_prefix(std::min(text.find_first_not_of(between), text.size())); };
  skip();
  if (text.empty() || depth > 16) return {};
  const char first = text[0];
  literal result{first, {}, {}};
  if (first == '\'' || first == '"') {
    result.kind = '\'';
    for (text.remove_prefix(1); !text.empty() && text[0] != first; text.remove_prefix(1)) {
      if (text[0] == '\\' && text.size() > 1) text.remove_prefix(1);
      result.text += text[0];
    }
  } else if (const auto bracket = std::string_view("([{").find(first); bracket != std::string_view::npos) {
    const char last = ")]}"[bracket];
    text.remove_prefix(1);
    for (skip(); !text.empty() && text[0] != last; skip()) {
      result.items.push_back(take_literal(text, depth + 1));
      if (result.items.back().kind == ' ') return {};
    }
  } else {
    result.kind = 'w';
    result.text = text.substr(0, text.find_first_of(" ,:)]}"));
    text.remove_prefix(result.text.size());
    return result.text.empty() ? literal() : result;
  }
  if (text.empty()) return {};
  text.remove_prefix(1);
  return result;
}

/// The numbers in a tuple; nothing if it is none.
std::optional<std::vector<std::uint64_t>> sides_in(const literal& tuple) {
  std::vector<std::uint64_t> sides;
  for (const auto& side : tuple.items) {
    const auto number = natural_in(side.text);
    if (!number || *number > std::uint64_t{1} << 40) return {};
    sides.push_back(*number);
  }
  return tuple.kind == '(' ? std::optional(sides) : std::nullopt;
}

/// The bytes of a field ('x', '<f4') or ('x', '<f4', (2,)); its type may be a list of fields.
std::optional<std::size_t> bytes_of_field(const literal& field) {
  if (field.kind != '(' || field.items.size() < 2 || field.items.size() > 3) return {};
  const auto& type = field.items[1];
  std::size_t bytes = 0;
  if (type.kind == '[') {
    for (const auto& inner : type.items) {
      const auto size = bytes_of_field(inner);
      if (!size) return {};
      bytes += *size;
    }
  } else {  // <f4, <U5, <M8[ns]; |O has no size
    if (type.text.size() < 3) return {};
    const auto size = natural_in(std::string_view(type.text).substr(2, type.text.find('[') - 2));
    if (!size) return {};
    bytes = *size * (type.text[1] == 'U' ? 4 : 1);
  }
  const auto sides = field.items.size() == 3 ? sides_in(field.items[2]) : std::vector<std::uint64_t>();
  if (!sides) return {};
  for (const auto side : *sides) bytes *= side;
  return bytes < std::size_t{1} << 32 ? std::optional(bytes) : std::nullopt;
}

/// The fields of a structured array: [('x', '<f4'), ('intensity', '|u1', (2,)), ('', '|V3')].
record_layout layout_of_fields(const std::string& file, const literal& fields) {
  record_layout layout;
  std::vector<std::string_view> names, types;
  std::vector<std::size_t> offsets;
  for (const auto& field : fields.items) {
    const auto bytes = bytes_of_field(field);
    const auto named = [&] { return field.items.empty() ? std::string() : field.items[0].text; };
    if (!bytes) {
      refuse(file,
             fmt::format("has the field '{}', whose size in bytes is not known; leave it out", named()));
    }
    // A field with a shape, or of fields, is not a coordinate. A name may be (title, name).
    const auto& name = field.items[0].items.size() == 2 ? field.items[0].items[1] : field.items[0];
    const bool single = field.items.size() == 2 && field.items[1].kind != '[';
    names.push_back(single ? std::string_view(name.text) : std::string_view());
    types.push_back(field.items[1].text);
    offsets.push_back(layout.bytes);
    layout.bytes += *bytes;
  }
  const auto axes = expect_axes(file, "field", names);
  for (std::size_t a = 0; a < 3; ++a) {
    const auto [type, big_endian] = type_of_numpy(types[axes[a]]);
    if (type.bytes == 0) {
      refuse(file, fmt::format("has the field '{}' of the type '{}'; coordinates are float32, float64 or "
                               "integers: convert it",
                               names[axes[a]], types[axes[a]]));
    }
    layout.fields[a] = {offsets[axes[a]], type, big_endian};
  }
  return layout;
}

/// The header is a dictionary of Python: {'descr': '<f4', 'fortran_order': False, 'shape': (100, 4), }
point_cloud read_npy(const std::string& file, std::string_view text) {
  const bool second = text.size() > 6 && text[6] >= 2;
  const std::size_t head = second ? 12 : 10;
  std::size_t length = 0;
  for (std::size_t i = 8; i < std::min(head, text.size()); ++i)
    length |= std::size_t{static_cast<unsigned char>(text[i])} << (i - 8) * 8;
  if (text.size() < head || text.size() - head < length) refuse(file, "is cut short: its header ends early");
  auto rest = text.substr(head, length);
  const auto header = take_literal(rest);
  const auto &descr = header["descr"], &order = header["fortran_order"];
  const auto found = sides_in(header["shape"]);
  if (!found || (descr.kind != '[' && descr.kind != '\'') || (order.text != "True" && order.text != "False"))
    refuse(file, "has a header of numpy that is not understood; save it anew with numpy.save");
  const auto& sides = *found;
  const auto shape = fmt::format("{}{}", fmt::join(sides, ", "), sides.size() == 1 ? "," : "");
  const auto refuse_shape = [&] {
    refuse(file,
           fmt::format("is an array of the shape ({}), another shape than (n, 3) or (n, 4 ...); save its "
                       "points as rows",
                       shape));
  };
  record_layout layout;
  std::string kind;
  if (descr.kind == '[') {
    layout = layout_of_fields(file, descr);
    kind = "fields x, y, z";
    if (sides.size() != 1) refuse_shape();
  } else {
    kind = descr.text;
    const auto [type, big_endian] = type_of_numpy(kind);
    if (type.bytes == 0)
      refuse(file,
             fmt::format("is an array of other numbers ('{}') than float32, float64 or integers; convert it",
                         kind));
    if (sides.size() != 2 || sides[1] < 3 || sides[1] > 4096) refuse_shape();
    // With three or four long rows, the rows are x, y and z.
    if ((sides[0] == 3 || sides[0] == 4) && sides[1] > sides[0]) refuse_shape();
    const bool columns_first = order.text == "True";
    layout.bytes = sides[1] * type.bytes;
    if (columns_first && sides[0] > text.size()) refuse(file, "is cut short");
    for (std::size_t a = 0; a < 3; ++a) {
      layout.fields[a] = {a * type.bytes * (columns_first ? sides[0] : 1), type, big_endian,
                          columns_first ? type.bytes : layout.bytes};
    }
  }
  layout.count = sides[0];
  auto cloud = read_records(file, text.substr(head + length), layout);
  cloud.read_as = fmt::format("NumPy, shape ({}) of {}", shape, kind);
  return cloud;
}

/// How much numbers `lag` apart differ, from 0 to 1, and how many were compared. Numbers differ least if
/// `lag` is the size of a record.
std::pair<double, std::size_t> unlikeness(const std::vector<float>& numbers, std::size_t lag) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i + lag < numbers.size(); ++i) {
    const double a = double{numbers[i]}, b = double{numbers[i + lag]};
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    ++count;
    if (a != b) sum += std::abs(a - b) / (std::abs(a) + std::abs(b));
  }
  return {count == 0 ? 0 : sum / static_cast<double>(count), count};
}

/// Refuses a file whose records may have a different size from the 4 floats of KITTI.
void expect_kitti(const std::string& file, std::string_view bytes) {
  constexpr std::array<std::size_t, 5> others{3, 5, 6, 7, 8};
  if (bytes.size() % 16 != 0) {
    std::string fitting;
    for (const auto other : others) {
      if (bytes.size() % (4 * other) == 0) fitting += fmt::format("{}{}", fitting.empty() ? "" : ", ", other);
    }
    refuse(file,
           fmt::format("has {} bytes; a KITTI scan has 16 for each point{}", bytes.size(),
                       fitting.empty() ? "" : fmt::format("; give --record {} if that is right", fitting)));
  }
  if (bytes.empty()) return;
  constexpr std::size_t enough = 1 << 18;
  std::vector<float> numbers(std::min(bytes.size() / 4, enough));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * 4);
  const auto large =
      std::ranges::count_if(numbers, [](float f) { return std::isfinite(f) && std::abs(f) > 1e10f; });
  if (static_cast<std::size_t>(large) > numbers.size() / 20)
    refuse(file, "has no coordinates in floats of 32 bits; if they are doubles, save them as .npy");
  bool negative = false;  // some intensity
  for (std::size_t i = 3; i < numbers.size(); i += 4) negative = negative || numbers[i] < 0;
  const auto [four, compared] = unlikeness(numbers, 4);
  // With few numbers, the similarity may be chance.
  const double nearly = compared == 0 ? 0 : 0.9 - 0.5 / std::sqrt(static_cast<double>(compared));
  std::pair<double, std::size_t> likeliest{2, 0};
  for (const auto other : others) {
    if (bytes.size() % (4 * other) != 0) continue;
    // Every second record is nearly as similar.
    const double here = unlikeness(numbers, other).first;
    const bool likely = other % 4 == 0 ? here < 0.8 * four : negative || four > nearly * here;
    if (likely) likeliest = std::min(likeliest, {here, other});
  }
  if (const auto other = likeliest.second; other != 0)
    refuse(file,
           fmt::format("may have records of 4 floats or of {0}; give --record 4 or --record {0}", other));
}

point_cloud read_floats(const std::string& file, std::string_view bytes, unsigned record) {
  if (record == 0) {
    if (bytes.starts_with("\x1f\x8b\x08"))
      refuse(file, "looks as if gzip had compressed it; name it .bin.gz, or give --record 4 if it is not");
    expect_kitti(file, bytes);
    record = 4;
  } else if (bytes.size() % (std::size_t{4} * record) != 0) {
    refuse(file, fmt::format("has {} bytes, which are not whole records of {} floats; give another --record",
                             bytes.size(), record));
  }
  record_layout layout;
  layout.bytes = std::size_t{4} * record;
  layout.count = bytes.size() / layout.bytes;
  for (std::size_t a = 0; a < 3; ++a) layout.fields[a] = {4 * a, {number_type::floating, 4}, false};
  auto cloud = read_records(file, bytes, layout);
  cloud.read_as = fmt::format("records of {} floats", record);
  return cloud;
}

point_cloud read_shape(const std::string& file, std::string_view text) {
  const auto shape = read_ply(file, text, false);
  point_cloud cloud;
  cloud.points.reserve(shape.vertices.size());
  for (const auto& at : shape.vertices) add(cloud, at);
  cloud.single = shape.single;
  cloud.read_as = "PLY";
  return cloud;
}

constexpr const char* unknown_text =
    "is not a point cloud: PLY, PCD, LAS, NPY and BIN (KITTI) are known, and text whose first line has "
    "numbers, "
    "or names of which three are x, y and z";

/// Names of columns: from a line of their own, or from a comment, which may be prose.
struct column_names {
  std::vector<std::string_view> names;
  separator by = separator::blank;
  std::size_t line = 0;
  bool sure = false;  // a line of their own

  std::size_t most() const { return names.size(); }
  std::size_t least() const { return names.size() - (!names.empty() && names.back().empty() ? 1 : 0); }
  /// Whether a row has a field for each name. There may be an empty last field.
  bool fit(const std::vector<std::string_view>& fields) const {
    const std::size_t fewest = fields.size() - (!fields.empty() && fields.back().empty() ? 1 : 0);
    return !names.empty() && least() <= fields.size() && fewest <= most();
  }
  bool fit(std::string_view line) const {
    std::vector<std::string_view> fields;
    split(line, by, fields);
    return fit(fields);
  }
};

/// Names may contain blanks if commas separate them.
column_names names_in(std::string_view line, std::size_t number) {
  column_names result{{}, separator_of(line), number};
  split(line, result.by, result.names);
  if (find_axes(result.names).all() || line.find(',') == line.npos) return result;
  column_names with_commas{{}, separator::comma, number};
  split(line, with_commas.by, with_commas.names);
  return find_axes(with_commas.names).all() ? with_commas : result;
}

/// Determines the structure of rows like this one. Their separator is that of the names, if it gives as many
/// fields.
void complete(row_layout& layout, const std::string& file, std::string_view line, std::size_t number,
              const column_names& names) {
  std::vector<std::string_view> fields;
  layout.by = names.by;
  split(line, layout.by, fields);
  if (!names.fit(fields) || names.by == separator::blank) {
    layout.by = separator_of(line);
    split(line, layout.by, fields);
  }
  layout.most = fields.size();
  layout.least = layout.most - (fields.back().empty() ? 1 : 0);
  if (names.names.empty()) return;
  const auto at = find_axes(names.names).at;
  layout.named = names.fit(fields);
  // Prose taken for names does no harm if x, y and z come first anyway.
  if (!layout.named && (names.sure || at != layout.columns)) {
    refuse(file, fmt::format("line {} names {} columns, but line {} has {}; write a name for each",
                             names.line, names.least(), number, layout.least));
  }
  layout.columns = at;
}

point_cloud read_columns(const std::string& file, std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    refuse(file, "is text in UTF-16; write it in UTF-8: iconv -f UTF-16 -t UTF-8");
  if (text.find('\0') != text.npos) refuse(file, unknown_text);
  lines_of lines{text}, rows = lines;
  row_layout layout;
  layout.comments = true;
  column_names names;
  while (!lines.rest.empty()) {
    auto line = trimmed(lines.take());
    if (line.empty()) continue;
    const bool comment = is_comment(line);
    if (comment) {  // names may follow a title: `# columns: x y z`
      const auto title = line.find(':');
      line = title == line.npos ? line : line.substr(title + 1);
      line.remove_prefix(std::min(line.find_first_not_of(marks), line.size()));
    }
    auto found = names_in(line, lines.number);
    const auto& fields = found.names;
    const auto axes = find_axes(fields);
    const bool number = !fields.empty() && coordinate_reader().read(fields[0]);
    const auto count = fields.size() == 1 ? natural_in(fields[0]) : std::nullopt;
    if (comment) {
      if (names.sure || !axes.all()) continue;
      names = std::move(found);
    } else if (count && !layout.announced && !names.sure) {
      layout.announced = count;
      layout.count_lines = true;
    } else if (!names.sure && (axes.all() || (axes.any() && !number && !names.fit(line)))) {
      expect_axes(file, "column", fields);
      names = std::move(found);
      names.sure = true;
    } else if (names.sure || number || names.fit(line)) {
      complete(layout, file, line, lines.number, names);
      break;
    } else {
      refuse(file, unknown_text);
    }
    rows = lines;
  }
  return row_reader(file, rows, layout).read();
}

bool is_pcd(std::string_view text) {
  lines_of lines{text.substr(0, 4096)};
  std::vector<std::string_view> words;
  while (!lines.rest.empty()) {
    const auto line = lines.take();
    split(line, separator::blank, words);
    if (words.empty()) continue;
    if (words[0] == "VERSION" || words[0] == "FIELDS" || line.starts_with("# .PCD")) return true;
    if (!words[0].starts_with('#')) return false;
  }
  return false;
}

}  // namespace

point_cloud read_point_cloud(const std::string& file, unsigned record) {
  static_assert(std::endian::native == std::endian::little);
  auto name = file;
  for (const std::string ending : {".gz", ".zst"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  const bool floats = record != 0 || name.ends_with(".bin");
  const bool packed = !floats || name != file;
  const std::string content =
      read_text(file, packed ? text_source::compression::undone : text_source::compression::kept);
  std::string_view text = content;
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (!floats && text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (text.starts_with("ASTM-E57"))
    refuse(file, "is an E57 file, which is not read here; convert it to LAS or PLY, as pdal does");
  auto cloud = floats                          ? read_floats(file, text, record)
               : text.starts_with("ply")       ? read_shape(file, text)
               : text.starts_with("\x93NUMPY") ? read_npy(file, text)
               : text.starts_with("LASF")      ? read_las(file, text)
               : is_pcd(text)                  ? read_pcd(file, text)
                                               : read_columns(file, text);
  if (cloud.points.empty()) {
    refuse(file, cloud.not_finite.empty()
                     ? std::string("has no points")
                     : fmt::format("none of its {} points is finite", cloud.not_finite.size()));
  }
  return cloud;
}

}  // namespace roost::tools
