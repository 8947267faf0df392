#include "ply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <roost/error.hpp>
#include <system_error>
#include <utility>

namespace roost::tools {
namespace {

/// Takes the next line, without its end, off a text.
std::string_view take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

/// Takes the next word off a line; empty at its end.
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view blanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const auto word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  return word;
}

bool read_number(std::string_view word, std::uint64_t& number) {
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
  return failure == std::errc{} && end == word.data() + word.size();
}

struct type {
  std::string_view name;
  number_type stored;
};
using number = number_type;
constexpr std::array<type, 16> types{{{"char", {number::whole, 1}},
                                      {"int8", {number::whole, 1}},
                                      {"uchar", {number::natural, 1}},
                                      {"uint8", {number::natural, 1}},
                                      {"short", {number::whole, 2}},
                                      {"int16", {number::whole, 2}},
                                      {"ushort", {number::natural, 2}},
                                      {"uint16", {number::natural, 2}},
                                      {"int", {number::whole, 4}},
                                      {"int32", {number::whole, 4}},
                                      {"uint", {number::natural, 4}},
                                      {"uint32", {number::natural, 4}},
                                      {"float", {number::floating, 4}},
                                      {"float32", {number::floating, 4}},
                                      {"double", {number::floating, 8}},
                                      {"float64", {number::floating, 8}}}};

/// The type with a name; of 0 bytes if there is none.
number_type type_of(std::string_view name) {
  const auto found = std::ranges::find(types, name, &type::name);
  return found == types.end() ? number_type{} : found->stored;
}

/// The rest of a line that began with `property`: TYPE NAME, or list TYPE TYPE NAME. Its value has 0 bytes if
/// it is neither.
ply_property read_property(std::string_view line) {
  ply_property result;
  auto word = take_word(line);
  if (word == "list") {
    result.count = type_of(take_word(line));
    if (result.count.bytes == 0 || result.count.kind == number::floating) return {};
    word = take_word(line);
  }
  result.name = take_word(line);
  const bool named = !result.name.empty() && take_word(line).empty();
  if (named) result.value = type_of(word);
  return result;
}

/// Reads the values of a body, one after the other.
class body_reader {
 public:
  body_reader(std::string_view file, const ply_header& header)
      : rest_(file.substr(std::min(header.bytes, file.size()))), header_(header) {}

  /// Skips rows of `bytes` bytes, as far as there are any; returns how many.
  std::uint64_t pass(std::uint64_t rows, std::size_t bytes) {
    rows = std::min<std::uint64_t>(rows, rest_.size() / bytes);
    rest_.remove_prefix(rows * bytes);
    return rows;
  }

  /// A row of text is a line that is not blank.
  void begin_row() {
    while (header_.ascii && word_.empty() && !rest_.empty()) {
      line_ = take_line(rest_);
      word_ = take_word(line_);
    }
  }
  bool row_is_used_up() const { return word_.empty(); }
  bool file_is_used_up() {
    begin_row();
    return header_.ascii ? word_.empty()
                         : rest_.find_first_not_of(std::string_view(" \t\r\n\0", 5)) == rest_.npos;
  }

  bool pass(const number_type& type) { return header_.ascii ? !take().empty() : pass(1, type.bytes) == 1; }

  std::optional<double> value(const number_type& type) {
    if (header_.ascii) return number_of(take());
    if (rest_.size() < type.bytes) return {};
    const double result = number_at(rest_.data(), type, header_.big_endian);
    rest_.remove_prefix(type.bytes);
    return result;
  }

 private:
  std::string_view take() { return std::exchange(word_, take_word(line_)); }

  std::string_view rest_, line_, word_;
  const ply_header& header_;
};

/// The position of a value: the element, its property, the row and, in a list, the number of values.
struct ply_place {
  std::size_t element, property;
  std::uint64_t row;
};

/// Reads a whole body. wanted(element, property): take_value(place, value) is to be called for each value,
/// and take_list(place, count) before those of a list. Returns what is wrong with the body, if anything.
template <class Wanted, class TakeList, class TakeValue>
std::string walk(std::string_view file, const ply_header& header, const Wanted& wanted,
                 const TakeList& take_list, const TakeValue& take_value) {
  body_reader body(file, header);
  for (std::size_t e = 0; e < header.elements.size(); ++e) {
    const auto& [name, count, properties] = header.elements[e];
    const auto place = [&, n = count](std::uint64_t i) { return fmt::format("{} {} of {}", name, i + 1, n); };
    if (properties.empty() && count != 0)
      return fmt::format("{} has no properties", name);  // this loop would not end
    bool any = header.ascii;
    std::size_t bytes = 0;
    for (std::size_t p = 0; p < properties.size(); ++p) {
      any = any || wanted(e, p) || properties[p].count.bytes != 0;
      bytes += properties[p].value.bytes;
    }
    if (!any && count != 0) {
      if (const auto there = body.pass(count, bytes); there < count)
        return fmt::format("{} is not whole", place(there));
      continue;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      body.begin_row();
      for (std::size_t p = 0; p < properties.size(); ++p) {
        const auto& property = properties[p];
        const bool is_wanted = wanted(e, p);
        std::uint64_t values = 1;
        if (property.count.bytes != 0) {
          const auto said = body.value(property.count);
          if (!said || *said < 0 || *said > 0xffffffff || *said != std::floor(*said))
            return fmt::format("{} is not whole", place(i));
          values = static_cast<std::uint64_t>(*said);
          if (is_wanted) take_list(ply_place{e, p, i}, values);
        }
        for (std::uint64_t k = 0; k < values; ++k) {
          if (!is_wanted) {
            if (!body.pass(property.value)) return fmt::format("{} is not whole", place(i));
            continue;
          }
          const auto value = body.value(property.value);
          if (!value && !header.ascii) return fmt::format("{} is not whole", place(i));
          if (!value)
            return fmt::format("{} is not whole, or its {} is not a number", place(i), property.name);
          take_value(ply_place{e, p, i}, *value);
        }
      }
      if (!body.row_is_used_up())
        return fmt::format("{} has more numbers in its line than its header announces", place(i));
    }
  }
  return body.file_is_used_up() ? "" : "has more in it than its header announces";
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", name, why));
}

/// The properties x, y and z of a vertex.
std::array<std::size_t, 3> axes_of(const std::string& name, const ply_element& vertex) {
  std::array<std::size_t, 3> result{};
  for (std::size_t a = 0; a < 3; ++a) {
    const char axis[2] = {static_cast<char>('x' + a), static_cast<char>('X' + a)};
    const auto is_axis = [&](const ply_property& p) {
      return p.name.size() == 1 && (p.name[0] == axis[0] || p.name[0] == axis[1]);
    };
    const auto found = std::ranges::find_if(vertex.properties, is_axis);
    if (found == vertex.properties.end())
      refuse(name, fmt::format("its vertices have no property {}", axis[0]));
    if (std::ranges::count_if(vertex.properties, is_axis) != 1)
      refuse(name, fmt::format("its vertices have two properties {}; rename one of them", axis[0]));
    if (found->count.bytes != 0) refuse(name, fmt::format("{} of its vertices is a list", axis[0]));
    result[a] = static_cast<std::size_t>(found - vertex.properties.begin());
  }
  return result;
}

}  // namespace

std::uint64_t ply_header::count(std::string_view name) const {
  const auto found = std::ranges::find(elements, name, &ply_element::name);
  return found == elements.end() ? 0 : found->count;
}

ply_header read_ply_header(std::string_view file) {
  ply_header header;
  auto rest = file;
  if (auto line = take_line(rest); take_word(line) != "ply" || !file.starts_with("ply")) return header;
  while (!rest.empty()) {
    const bool at_margin = rest.front() == 'e';
    const bool ended = rest.find('\n') != rest.npos;
    auto line = take_line(rest);
    const auto word = take_word(line);
    if (word == "end_header") {
      header.understood = at_margin && ended && take_word(line).empty();
      header.bytes = file.size() - rest.size();
      return header;
    } else if (word == "format") {
      const auto format = take_word(line);
      header.ascii = format == "ascii";
      header.big_endian = format == "binary_big_endian";
      if (!header.ascii && !header.big_endian && format != "binary_little_endian") return header;
    } else if (word == "element") {
      ply_element element;
      element.name = take_word(line);
      const bool known =
          std::ranges::find(header.elements, element.name, &ply_element::name) != header.elements.end();
      // assimp reads digits at the beginning of a name as the element's count.
      const bool named =
          std::isalpha(static_cast<unsigned char>(element.name.empty() ? '0' : element.name[0])) != 0;
      if (known || !named || !read_number(take_word(line), element.count) || !take_word(line).empty())
        return header;
      header.elements.push_back(element);
    } else if (word == "property") {
      const auto property = read_property(line);
      if (property.value.bytes == 0 || header.elements.empty()) return header;
      header.elements.back().properties.push_back(property);
    } else if (word != "comment" && word != "obj_info") {
      return header;
    }
  }
  return header;
}

std::string missing_in_ply(std::string_view file, const ply_header& header) {
  return walk(
      file, header, [](std::size_t, std::size_t) { return false; }, [](const ply_place&, std::uint64_t) {},
      [](const ply_place&, double) {});
}

ply_shape read_ply(const std::string& name, std::string_view file, bool surface) {
  const auto header = read_ply_header(file);
  if (!header.understood)
    refuse(name, "has no proper PLY header ('ply' ... 'end_header'); it is damaged or cut short");
  const auto index_of = [&](std::string_view element) {
    return static_cast<std::size_t>(std::ranges::find(header.elements, element, &ply_element::name) -
                                    header.elements.begin());
  };
  const auto none = header.elements.size(), vertex = index_of("vertex");
  if (vertex == none) refuse(name, "has no element vertex");
  const auto axes = axes_of(name, header.elements[vertex]);
  ply_shape result;
  for (const auto axis : axes) {
    const auto type = header.elements[vertex].properties[axis].value;
    result.single = result.single || (type.kind == number::floating && type.bytes == 4 && !header.ascii);
  }
  std::size_t polygon = none, list = 0;
  if (surface) {
    result.strips = header.count("tristrips") != 0;
    if (result.strips && header.count("face") != 0)
      refuse(name, "has faces and triangle strips; write it with one of them");
    polygon = index_of(result.strips ? "tristrips" : "face");
  }
  if (polygon != none) {
    const auto& properties = header.elements[polygon].properties;
    const auto found = std::ranges::find_if(properties, [](const ply_property& p) {
      return p.count.bytes != 0 && (p.name == "vertex_indices" || p.name == "vertex_index");
    });
    if (found == properties.end() && header.elements[polygon].count != 0)
      refuse(name, fmt::format("its element {} has no list vertex_indices", header.elements[polygon].name));
    list = static_cast<std::size_t>(found - properties.begin());
  }
  std::string wrong;
  const auto wanted = [&](std::size_t e, std::size_t p) {
    return e == vertex ? std::ranges::find(axes, p) != axes.end() : e == polygon && p == list;
  };
  const auto take_list = [&](const ply_place&, std::uint64_t count) {
    result.sizes.push_back(static_cast<std::uint32_t>(count));
  };
  const auto take_value = [&](const ply_place& at, double value) {
    if (at.element == vertex) {
      if (result.vertices.size() == at.row) result.vertices.emplace_back();
      const auto axis = std::ranges::find(axes, at.property) - axes.begin();
      result.vertices.back()[static_cast<std::size_t>(axis)] = value;
      return;
    }
    const bool index = value == std::floor(value) && value >= -0x1p31 && value < 0x1p32;
    if (!index && wrong.empty())
      wrong = fmt::format("{} {} names vertex {}", header.elements[polygon].name, at.row + 1, value);
    result.corners.push_back(index ? static_cast<std::uint32_t>(static_cast<std::int64_t>(value)) : 0);
  };
  const auto problem = walk(file, header, wanted, take_list, take_value);
  if (wrong.empty()) wrong = problem;
  if (!wrong.empty()) refuse(name, fmt::format("{}; it is damaged or cut short", wrong));
  return result;
}

}  // namespace roost::tools
