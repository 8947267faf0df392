#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <roost/error.hpp>

namespace roost::tools {
namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The delimiter of a header's names.
char delimiter_of(const std::string& file) {
  text_source source(file);
  if (!std::filesystem::is_regular_file(file))
    throw invalid_argument(fmt::format("{}: is a pipe or a device; give a file", file));
  std::string head(std::size_t{1} << 16, '\0');
  head.resize(source.read(head));
  constexpr std::array marks{',', ';', '\t'};
  std::array<int, marks.size()> counts{};
  bool quoted = false;
  const auto first = head.find_first_not_of("\r\n");
  for (auto i = first; i < head.size() && (quoted || (head[i] != '\n' && head[i] != '\r')); ++i) {
    if (head[i] == '"') quoted = !quoted;
    for (std::size_t m = 0; m < marks.size(); ++m) counts[m] += !quoted && head[i] == marks[m];
  }
  return marks[static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin())];
}

std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 'A' && byte <= 'Z') {
      result += static_cast<char>(byte - 'A' + 'a');
    } else if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte >= 0x80 ||
               (byte == '_' && result.empty())) {
      result += c;
    }
  }
  return result;
}

}  // namespace

bool read_number(std::string_view text, double& number) {
  text = without_blanks(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

star_table::star_table(const std::string& file, bad_lines on_bad)
    : delimiter_(delimiter_of(file)), csv_(read_csv(file, {delimiter_, on_bad})) {
  if (rows() == 0) read_csv(file, {delimiter_, bad_lines::refuse});  // reports why all lines were left out
  for (const auto& name : csv_.names) plain_names_.push_back(plain(name));
}

std::optional<std::size_t> star_table::find(std::initializer_list<std::string_view> names) const {
  for (const auto name : names) {
    const auto found = std::ranges::find(plain_names_, name);
    if (found == plain_names_.end()) continue;
    const auto again = std::find(found + 1, plain_names_.end(), name);
    const auto column = static_cast<std::size_t>(found - plain_names_.begin());
    if (again == plain_names_.end()) return column;
    throw invalid_argument(fmt::format("{}: has the columns '{}' and '{}'; rename or remove one of them",
                                       csv_.name, csv_.names[column],
                                       csv_.names[static_cast<std::size_t>(again - plain_names_.begin())]));
  }
  return {};
}

void star_table::refuse_without(std::string_view what, std::string_view name) const {
  double number;
  if (std::ranges::all_of(csv_.names, [&](const auto& field) { return read_number(field, number); })) {
    throw invalid_argument(fmt::format(
        "{}: begins with numbers; give it a first line with the names of the columns", csv_.name));
  }
  std::string there;
  for (const auto& one : csv_.names) {
    std::string shown = one.substr(0, 40);
    std::ranges::replace_if(
        shown, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, '?');
    there += fmt::format("{}'{}'", there.empty() ? "" : ", ", shown);
    if (there.size() > 400) {
      there += " and more";
      break;
    }
  }
  throw invalid_argument(fmt::format("{}: has no column for {}; it has {}; name one of them '{}'", csv_.name,
                                     what, there, name));
}

std::string_view star_table::text(std::size_t row, std::size_t column) const {
  return without_blanks(csv_.fields(column)[row]);
}

bool star_table::read(std::size_t row, std::size_t column, double& number) {
  const auto field = text(row, column);
  if (delimiter_ != ';') return read_number(field, number);
  const bool comma = field.find(',') != field.npos, point = field.find('.') != field.npos;
  std::string with_point(field);
  if (comma && !point) std::ranges::replace(with_point, ',', '.');
  if (!read_number(with_point, number)) return false;
  has_points_ |= point;
  has_commas_ |= comma;
  if (has_points_ && has_commas_) {
    throw invalid_argument(fmt::format(
        "{}: has numbers with decimal points and others with decimal commas; write all with points",
        csv_.name));
  }
  return true;
}

}  // namespace roost::tools
