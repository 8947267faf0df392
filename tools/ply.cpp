#include "ply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <system_error>

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
  unsigned bytes;
  enum { floating, with_sign, without_sign } kind;
};
constexpr std::array<type, 16> types{{{"char", 1, type::with_sign},
                                      {"int8", 1, type::with_sign},
                                      {"uchar", 1, type::without_sign},
                                      {"uint8", 1, type::without_sign},
                                      {"short", 2, type::with_sign},
                                      {"int16", 2, type::with_sign},
                                      {"ushort", 2, type::without_sign},
                                      {"uint16", 2, type::without_sign},
                                      {"int", 4, type::with_sign},
                                      {"int32", 4, type::with_sign},
                                      {"uint", 4, type::without_sign},
                                      {"uint32", 4, type::without_sign},
                                      {"float", 4, type::floating},
                                      {"float32", 4, type::floating},
                                      {"double", 8, type::floating},
                                      {"float64", 8, type::floating}}};

/// The type of a name; null if it is none.
const type* type_of(std::string_view name) {
  const auto found = std::ranges::find(types, name, &type::name);
  return found == types.end() ? nullptr : found;
}

/// The rest of a line that began with `property`: TYPE NAME, or list TYPE TYPE NAME. Its bytes are
/// 0 if it is neither.
ply_property read_property(std::string_view line) {
  ply_property result;
  auto word = take_word(line);
  if (word == "list") {
    const auto* const count = type_of(take_word(line));
    if (count == nullptr || count->kind == type::floating) return {};
    result.count_bytes = count->bytes;
    result.count_signed = count->kind == type::with_sign;
    word = take_word(line);
  }
  const auto* const value = type_of(word);
  result.name = take_word(line);
  const bool named = !result.name.empty() && take_word(line).empty();
  if (value != nullptr && named) result.bytes = value->bytes, result.floating = value->kind == type::floating;
  return result;
}

/// Takes so many bytes off a body, if it has them.
bool take(std::string_view& body, std::uint64_t bytes) {
  if (bytes > body.size()) return false;
  body.remove_prefix(bytes);
  return true;
}

bool take_binary(std::string_view& body, const ply_property& property, bool big_endian) {
  if (property.count_bytes == 0) return take(body, property.bytes);
  if (body.size() < property.count_bytes) return false;
  std::uint64_t count = 0;
  for (unsigned i = 0; i < property.count_bytes; ++i) {
    const auto byte = static_cast<unsigned char>(body[big_endian ? i : property.count_bytes - 1 - i]);
    count = count << 8 | byte;
  }
  const bool negative = property.count_signed && count >> (8 * property.count_bytes - 1) != 0;
  body.remove_prefix(property.count_bytes);
  return !negative && take(body, count * property.bytes);  // at most 2^35
}

bool take_words(std::string_view& line, const ply_property& property) {
  std::uint64_t words = 1;
  if (property.count_bytes != 0 && !read_number(take_word(line), words)) return false;
  for (std::uint64_t i = 0; i < words; ++i) {
    if (take_word(line).empty()) return false;
  }
  return true;
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
      // assimp takes digits at the front of a name for the element's count.
      const bool named =
          std::isalpha(static_cast<unsigned char>(element.name.empty() ? '0' : element.name[0])) != 0;
      if (known || !named || !read_number(take_word(line), element.count) || !take_word(line).empty())
        return header;
      header.elements.push_back(element);
    } else if (word == "property") {
      const auto property = read_property(line);
      if (property.bytes == 0 || header.elements.empty()) return header;
      header.elements.back().properties.push_back(property);
    } else if (word != "comment" && word != "obj_info") {
      return header;
    }
  }
  return header;
}

std::string missing_in_ply(std::string_view file, const ply_header& header) {
  auto body = file.substr(std::min(header.bytes, file.size()));
  for (const auto& [name, count, properties] : header.elements) {
    const auto missing = [&, n = count](std::uint64_t i) {
      return fmt::format("{} {} of {} is not whole", name, i + 1, n);
    };
    if (properties.empty() && count != 0)
      return fmt::format("{} has no properties", name);  // nothing would end this loop
    for (std::uint64_t i = 0; i < count; ++i) {
      auto line = header.ascii ? take_line(body) : std::string_view();
      for (const auto& property : properties) {
        const bool whole =
            header.ascii ? take_words(line, property) : take_binary(body, property, header.big_endian);
        if (!whole) return missing(i);
      }
    }
  }
  return {};
}

}  // namespace roost::tools
