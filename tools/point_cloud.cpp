#include "point_cloud.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <roost/error.hpp>
#include <string_view>

#include "ply.hpp"
#include "text_file.hpp"

namespace roost::tools {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file, why));
}

std::string_view take_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// The fields of a line, between blanks; or each between two commas or semicolons.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> result;
  const bool separated = line.find_first_of(",;") != line.npos;
  constexpr std::string_view blanks = " \t";
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    if (line.empty()) return result;
    auto field = line.substr(0, line.find_first_of(separated ? ",;" : blanks));
    line.remove_prefix(std::min(field.size() + 1, line.size()));
    field = field.substr(0, field.find_last_not_of(blanks) + 1);
    result.push_back(field);
  }
}

template <class Number>
std::optional<Number> number_in(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  Number result{};
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), result);
  if (failure != std::errc{} || end != word.data() + word.size()) return {};
  return result;
}

/// Points as they come: what is not finite is left out.
void add(point_cloud& cloud, const std::array<double, 3>& at) {
  if (std::isfinite(at[0]) && std::isfinite(at[1]) && std::isfinite(at[2])) {
    cloud.points.push_back({at[0], at[1], at[2]});
  } else {
    ++cloud.not_finite;
  }
}

/// Lines of text of which some columns are x, y and z.
point_cloud read_rows(const std::string& file, std::string_view text, std::array<std::size_t, 3> columns,
                      std::size_t lines_before, std::optional<std::uint64_t> wanted = {}) {
  point_cloud cloud;
  std::uint64_t rows = 0;
  for (std::size_t line_number = lines_before + 1; !text.empty() && (!wanted || rows < *wanted);
       ++line_number) {
    const auto line = take_line(text);
    const auto fields = fields_of(line);
    if (fields.empty() || fields[0].starts_with('#')) continue;
    std::array<double, 3> at{};
    for (std::size_t a = 0; a < 3; ++a) {
      const auto number =
          columns[a] < fields.size() ? number_in<double>(fields[columns[a]]) : std::optional<double>();
      if (!number) {
        refuse(file, fmt::format("line {}: column {} is no number: '{}'", line_number, columns[a] + 1,
                                 line.substr(0, 60)));
      }
      at[a] = *number;
    }
    add(cloud, at);
    ++rows;
  }
  if (wanted && rows < *wanted)
    refuse(file, fmt::format("is cut short: {} points of {} are there", rows, *wanted));
  return cloud;
}

/// Where a number lies in a record.
struct record_field {
  std::size_t offset = 0;
  unsigned bytes = 0;  // 4 or 8, a floating-point number
};

point_cloud read_records(const std::string& file, std::string_view bytes, std::uint64_t count,
                         std::size_t record, const std::array<record_field, 3>& fields,
                         bool big_endian = false) {
  if (record == 0 || bytes.size() / record < count) {
    refuse(file, fmt::format("is cut short: {} bytes of points, {} points of {} bytes are announced",
                             bytes.size(), count, record));
  }
  point_cloud cloud;
  cloud.points.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::array<double, 3> at{};
    for (std::size_t a = 0; a < 3; ++a) {
      std::array<char, 8> raw{};
      std::memcpy(raw.data(), bytes.data() + i * record + fields[a].offset, fields[a].bytes);
      if (big_endian) std::reverse(raw.begin(), raw.begin() + fields[a].bytes);
      if (fields[a].bytes == 4) {
        float number = 0;
        std::memcpy(&number, raw.data(), 4);
        at[a] = static_cast<double>(number);
      } else {
        std::memcpy(&at[a], raw.data(), 8);
      }
    }
    add(cloud, at);
  }
  return cloud;
}

constexpr std::array<std::string_view, 3> axes{"x", "y", "z"};

point_cloud read_ply(const std::string& file, std::string_view text) {
  const ply_header header = read_ply_header(text);
  if (!header.understood) refuse(file, "has a PLY header that is not understood; write it anew");
  if (header.elements.empty() || header.elements[0].name != "vertex")
    refuse(file, "has no vertices as its first element");
  const auto& vertex = header.elements[0];
  std::array<record_field, 3> fields;
  std::array<std::size_t, 3> columns{};
  std::size_t offset = 0;
  for (std::size_t i = 0; i < vertex.properties.size(); ++i) {
    const auto& property = vertex.properties[i];
    if (property.count_bytes != 0) refuse(file, "has lists in its vertices; write it without");
    for (std::size_t a = 0; a < 3; ++a) {
      if (property.name != axes[a]) continue;
      if (!property.floating) refuse(file, fmt::format("{} is no float and no double", axes[a]));
      fields[a] = {offset, property.bytes};
      columns[a] = i;
    }
    offset += property.bytes;
  }
  for (std::size_t a = 0; a < 3; ++a) {
    if (fields[a].bytes == 0) refuse(file, fmt::format("its vertices have no property {}", axes[a]));
  }
  const auto body = text.substr(header.bytes);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end() - body.size(), '\n'));
  return header.ascii ? read_rows(file, body, columns, lines, vertex.count)
                      : read_records(file, body, vertex.count, offset, fields, header.big_endian);
}

point_cloud read_pcd(const std::string& file, std::string_view text) {
  std::vector<std::string_view> names, types, sizes, counts;
  std::optional<std::uint64_t> points;
  auto rest = text;
  for (std::size_t lines = 1; !rest.empty(); ++lines) {
    auto words = fields_of(take_line(rest));
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto key = words[0];
    words.erase(words.begin());
    if (key == "FIELDS") names = words;
    if (key == "SIZE") sizes = words;
    if (key == "TYPE") types = words;
    if (key == "COUNT") counts = words;
    if (key == "POINTS" && words.size() == 1) points = number_in<std::uint64_t>(words[0]);
    if (key != "DATA") continue;
    if (counts.empty()) counts.assign(names.size(), "1");
    if (!points || words.size() != 1 || names.empty() || names.size() != sizes.size() ||
        names.size() != types.size() || names.size() != counts.size()) {
      refuse(file, "has a PCD header that is not whole: FIELDS, SIZE, TYPE and POINTS are needed");
    }
    std::array<record_field, 3> fields;
    std::array<std::size_t, 3> columns{};
    std::size_t offset = 0, column = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto size = number_in<std::uint32_t>(sizes[i]), count = number_in<std::uint32_t>(counts[i]);
      if (!size || !count || *size > 8 || *count > 4096)
        refuse(file, fmt::format("PCD field {} has no proper SIZE and COUNT", names[i]));
      for (std::size_t a = 0; a < 3; ++a) {
        if (names[i] != axes[a]) continue;
        if (types[i] != "F" || *size < 4 || *count != 1)
          refuse(file, fmt::format("PCD field {} is no float and no double", axes[a]));
        fields[a] = {offset, *size};
        columns[a] = column;
      }
      offset += std::size_t{*size} * *count;
      column += *count;
    }
    for (std::size_t a = 0; a < 3; ++a) {
      if (fields[a].bytes == 0) refuse(file, fmt::format("has no PCD field {}", axes[a]));
    }
    if (words[0] == "ascii") return read_rows(file, rest, columns, lines, points);
    if (words[0] == "binary") return read_records(file, rest, *points, offset, fields);
    refuse(file, fmt::format("PCD data are '{}'; write them as ascii or binary", words[0]));
  }
  refuse(file, "has a PCD header without DATA");
}

/// The header is a dictionary of Python: {'descr': '<f4', 'fortran_order': False, 'shape': (100, 4), }
point_cloud read_npy(const std::string& file, std::string_view text) {
  const bool second = text.size() > 6 && text[6] >= 2;
  const std::size_t head = second ? 12 : 10;
  std::size_t length = 0;
  for (std::size_t i = 8; i < std::min(head, text.size()); ++i)
    length |= std::size_t{static_cast<unsigned char>(text[i])} << (i - 8) * 8;
  if (text.size() < head || text.size() - head < length) refuse(file, "is cut short: its header ends early");
  const auto header = text.substr(head, length);
  const unsigned bytes = header.find("'<f4'") != header.npos   ? 4
                         : header.find("'<f8'") != header.npos ? 8
                                                               : 0;
  if (bytes == 0) refuse(file, "is an array of other numbers than float32 or float64; convert it");
  if (header.find("'fortran_order': False") == header.npos)
    refuse(file, "is an array in Fortran's order; save numpy.ascontiguousarray(array)");
  auto shape = header.substr(std::min(header.find('(') + 1, header.size()));
  const auto sides = fields_of(shape.substr(0, shape.find(')')));
  const auto rows = sides.size() == 2 ? number_in<std::uint64_t>(sides[0]) : std::nullopt,
             columns = sides.size() == 2 ? number_in<std::uint64_t>(sides[1]) : std::nullopt;
  if (!rows || !columns || *columns < 3 || *columns > 4096)
    refuse(file, "is an array of another shape than (n, 3) or (n, 4 ...)");
  return read_records(file, text.substr(head + length), *rows, *columns * bytes,
                      {{{0, bytes}, {bytes, bytes}, {2 * std::size_t{bytes}, bytes}}});
}

point_cloud read_columns(const std::string& file, std::string_view text) {
  std::array<std::size_t, 3> columns{0, 1, 2};
  auto rest = text;
  std::size_t lines = 0;
  for (auto before = rest; !rest.empty(); before = rest) {
    const auto fields = fields_of(take_line(rest));
    if (fields.empty() || fields[0].starts_with('#')) {
      ++lines;
      continue;
    }
    if (number_in<double>(fields[0])) {
      rest = before;
      break;
    }
    for (std::size_t a = 0; a < 3; ++a) {
      const auto found = std::ranges::find_if(fields, [&](std::string_view field) {
        return field == axes[a] || (field.size() == 1 && field[0] == axes[a][0] - 'a' + 'A');
      });
      if (found == fields.end()) {
        refuse(file,
               "is no cloud of points: PLY, PCD, NPY and BIN (KITTI) are known, and text whose first "
               "line has numbers, or names of which three are x, y and z");
      }
      columns[a] = static_cast<std::size_t>(found - fields.begin());
    }
    ++lines;
    break;
  }
  return read_rows(file, rest, columns, lines);
}

}  // namespace

point_cloud read_point_cloud(const std::string& file) {
  static_assert(std::endian::native == std::endian::little);
  const std::string text = read_text(file);
  point_cloud cloud;
  if (file.ends_with(".bin")) {
    if (text.size() % 16 != 0)
      refuse(file, fmt::format("has {} bytes; a KITTI scan has 16 for each point", text.size()));
    cloud = read_records(file, text, text.size() / 16, 16, {{{0, 4}, {4, 4}, {8, 4}}});
  } else if (text.starts_with("ply")) {
    cloud = read_ply(file, text);
  } else if (text.starts_with("\x93NUMPY")) {
    cloud = read_npy(file, text);
  } else if (text.starts_with("# .PCD") || text.starts_with("VERSION")) {
    cloud = read_pcd(file, text);
  } else {
    cloud = read_columns(file, text);
  }
  if (cloud.points.empty()) {
    refuse(file, cloud.not_finite == 0 ? std::string("has no points")
                                       : fmt::format("none of its {} points is finite", cloud.not_finite));
  }
  return cloud;
}

}  // namespace roost::tools
