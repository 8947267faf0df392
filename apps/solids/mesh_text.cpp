#include "mesh_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <map>
#include <roost/error.hpp>
#include <span>
#include <utility>

#include "placement.hpp"

namespace roost::tools {

void refuse_because(const std::string& why) { throw invalid_argument(why); }
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

std::string_view short_of(std::string_view word) { return word.substr(0, 40); }

/// The lines of a text, one after the other, without comments after `#`.
class lines {
 public:
  explicit lines(std::string_view text) : rest_(text) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
  }
  std::size_t number() const { return number_; }

  /// Goes to the next line; `continued`: a backslash at its end continues it in the following line.
  bool next(bool continued = false) {
    if (rest_.empty()) return false;
    line_ = take();
    if (continued && goes_on(line_)) {
      joined_.clear();
      for (;; line_ = take()) {
        const bool more = goes_on(line_);
        joined_ += more ? line_.substr(0, line_.rfind('\\')) : line_;
        joined_ += ' ';
        if (!more || rest_.empty()) break;
      }
      line_ = joined_;
    }
    line_ = line_.substr(0, line_.find('#'));
    return true;
  }
  /// Goes to the next line that has a word.
  bool next_words() {
    while (next()) {
      if (line_.find_first_not_of(blanks) != line_.npos) return true;
    }
    return false;
  }

  /// Takes the next word off the line; empty at its end.
  std::string_view word() {
    line_.remove_prefix(std::min(line_.find_first_not_of(blanks), line_.size()));
    const auto result = line_.substr(0, line_.find_first_of(blanks));
    line_.remove_prefix(result.size());
    return result;
  }

  [[noreturn]] void refuse_line(const std::string& why) const {
    refuse_because(fmt::format("line {}: {}", number_, why));
  }

  double number_in(std::string_view word, std::string_view of) const {
    double result = 0;
    if (!to_number(word, result))
      refuse_line(word.empty() ? fmt::format("a number of {} is missing", of)
                               : fmt::format("'{}' is not a number of {}", short_of(word), of));
    return result;
  }

  static bool to_number(std::string_view word, double& number) {
    if (word.starts_with('+') && !word.starts_with("+-")) word.remove_prefix(1);
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (end != word.data() + word.size() || word.empty()) return false;
    // Too large or too small for a double: infinite, which is refused, or 0.
    if (failure == std::errc::result_out_of_range) number = std::strtod(std::string(word).c_str(), nullptr);
    return failure != std::errc::invalid_argument;
  }

  template <class Integer>
  static bool to_integer(std::string_view word, Integer& number) {
    if (word.starts_with('+') && !word.starts_with("+-")) word.remove_prefix(1);
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
    return failure == std::errc() && end == word.data() + word.size() && !word.empty();
  }

 private:
  std::string_view take() {
    auto end = rest_.find_first_of("\n\r");
    const auto line = rest_.substr(0, end);
    if (end == rest_.npos) {
      rest_ = {};
    } else {
      if (rest_.substr(end).starts_with("\r\n")) ++end;
      rest_.remove_prefix(end + 1);
    }
    ++number_;
    return line;
  }
  static bool goes_on(std::string_view line) {
    const auto last = line.find_last_not_of(blanks);
    return last != line.npos && line[last] == '\\';
  }

  std::string_view rest_, line_;
  std::string joined_;
  std::size_t number_ = 0;
};

std::string lower(std::string_view word) {
  std::string result(word);
  for (auto& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Position `v`: x y z, x y z w, or with a colour of 3 or 4 numbers.
std::array<double, 3> obj_vertex(lines& from, bool& weighted) {
  std::array<double, 7> n{};
  std::size_t count = 0;
  for (auto word = from.word(); !word.empty(); word = from.word()) {
    if (count == n.size()) from.refuse_line("a vertex has more than 7 numbers");
    n[count++] = from.number_in(word, "a vertex");
  }
  if (count < 3 || count == 5) from.refuse_line(fmt::format("a vertex has {} numbers", count));
  if (count == 4 && n[3] != 1) {
    if (n[3] == 0) from.refuse_line("a vertex has the weight 0, and lies nowhere");
    weighted = true;
    for (int i = 0; i < 3; ++i) n[static_cast<std::size_t>(i)] /= n[3];
  }
  return {n[0], n[1], n[2]};
}

template <class Number>
Number raw(std::string_view bytes, std::size_t at) {
  Number result;
  std::memcpy(&result, bytes.data() + at, sizeof(result));
  return result;
}

polygons binary_stl(std::string_view bytes) {
  constexpr std::size_t head = 84, record = 50;
  if (bytes.size() < head)
    refuse_because("is not an STL file: neither a text that begins with 'solid' nor 84 bytes long");
  const std::size_t count = raw<std::uint32_t>(bytes, head - 4), room = (bytes.size() - head) / record;
  if (count > room || (count == 0 && room != 0)) {
    refuse_because(fmt::format(
        "says that it has {} triangles, and has {} bytes, which are {}; it is damaged or cut short", count,
        bytes.size(), room));
  }
  polygons result;
  result.floats = true;
  result.vertices.reserve(3 * count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t corner = 0; corner < 3; ++corner) {
      std::array<double, 3> at{};
      for (std::size_t k = 0; k < 3; ++k)
        at[k] = static_cast<double>(raw<float>(bytes, head + i * record + 12 + (3 * corner + k) * 4));
      result.corners.push_back(static_cast<std::int64_t>(result.vertices.size()));
      result.vertices.push_back(at);
    }
    result.ends.push_back(result.corners.size());
  }
  if (const auto more = bytes.size() - head - count * record; more != 0) {
    result.notes.push_back(fmt::format("{} bytes behind its {} triangles are left out", more, count));
  }
  return result;
}

}  // namespace

std::string without_utf16(std::string text) {
  const bool little = text.starts_with("\xff\xfe");
  if (!little && !text.starts_with("\xfe\xff")) return text;
  std::size_t size = 0;
  for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
    const char low = text[i + (little ? 0 : 1)], high = text[i + (little ? 1 : 0)];
    text[size++] = high == 0 && static_cast<signed char>(low) > 0 ? low : '?';
  }
  text.resize(size);
  return text;
}

polygons read_obj(std::string_view text) {
  static constexpr std::string_view left_out[] = {"vt",       "vn",       "vp",         "l",        "p",
                                                  "o",        "g",        "s",          "mg",       "usemtl",
                                                  "mtllib",   "usemap",   "maplib",     "bevel",    "lod",
                                                  "c_interp", "d_interp", "shadow_obj", "trace_obj"};
  polygons result;
  bool weighted = false;
  std::string unknown;
  lines from(text);
  while (from.next(true)) {
    const auto what = from.word();
    if (what == "v") {
      result.vertices.push_back(obj_vertex(from, weighted));
    } else if (what == "f" || what == "fo") {
      const auto first = result.corners.size();
      for (auto word = from.word(); !word.empty(); word = from.word()) {
        const auto digits = word.substr(0, word.find('/'));
        std::int64_t number = 0;
        if (!lines::to_integer(digits, number) || number == 0)
          from.refuse_line(fmt::format("'{}' is not a corner of a face", short_of(word)));
        const auto count = static_cast<std::int64_t>(result.vertices.size());
        if (number < -count) {
          from.refuse_line(
              fmt::format("a face refers to vertex -{}, but there are {} so far", -number, count));
        }
        result.corners.push_back(number > 0 ? number - 1 : count + number);
      }
      if (result.corners.size() - first < 3) {
        result.corners.resize(first);  // a line or a point
      } else {
        result.ends.push_back(result.corners.size());
      }
    } else if (!what.empty() && unknown.empty() && std::ranges::find(left_out, what) == std::end(left_out)) {
      unknown = fmt::format("line {}: '{}' is left out, and all others that are not known", from.number(),
                            short_of(what));
    }
  }
  if (weighted) result.notes.emplace_back("vertices have weights: their positions are divided by them");
  if (!unknown.empty()) result.notes.push_back(unknown);
  return result;
}

/// A binary file may begin with 'solid', but its first 84 bytes have a 0 in the count.
bool is_binary_stl(std::string_view bytes) {
  const auto start = bytes.substr(0, 84);
  const auto word = start.substr(std::min(start.find_first_not_of(" \t\r\n\xef\xbb\xbf"), start.size()));
  return lower(word.substr(0, 5)) != "solid" || start.find('\0') != start.npos ||
         (bytes.size() >= 84 && bytes.size() == 84 + 50 * std::size_t{raw<std::uint32_t>(bytes, 80)});
}

polygons read_stl(std::string_view bytes) {
  if (is_binary_stl(bytes)) return binary_stl(bytes);
  polygons result;
  lines from(bytes);
  enum { nowhere, in_solid, in_facet, in_loop } where = nowhere;
  std::size_t first = 0, faces = 0;
  const auto expect = [&](bool right, std::string_view what) {
    if (!right)
      from.refuse_line(fmt::format("'{}' is not expected here; the file is damaged", short_of(what)));
  };
  while (from.next_words()) {
    for (auto next = from.word(); !next.empty(); next = from.word()) {
      const auto what = lower(next);
      if (what == "solid" || what == "endsolid") {
        expect(where == (what == "solid" ? nowhere : in_solid), next);
        where = what == "solid" ? in_solid : nowhere;
        break;  // a name follows
      } else if (what == "color" || what == "colour") {
        break;
      } else if (what == "facet") {
        expect(where == in_solid, next);
        where = in_facet;
        faces = result.ends.size();
      } else if (what == "normal") {
        expect(where == in_facet, next);
        for (int i = 0; i < 3; ++i) from.word();  // errors in it do no harm
      } else if (what == "outer") {
        expect(where == in_facet, next);
        where = in_loop;
        first = result.corners.size();
      } else if (what == "loop") {
        expect(where == in_loop, next);
      } else if (what == "vertex") {
        expect(where == in_loop, next);
        std::array<double, 3> at{};
        for (auto& x : at) x = from.number_in(from.word(), "a vertex");
        result.corners.push_back(static_cast<std::int64_t>(result.vertices.size()));
        result.vertices.push_back(at);
      } else if (what == "endloop") {
        expect(where == in_loop, next);
        if (const auto corners = result.corners.size() - first; corners < 3)
          from.refuse_line(fmt::format("a facet has {} corners; the file is damaged", corners));
        result.ends.push_back(result.corners.size());
        where = in_facet;
      } else if (what == "endfacet") {
        expect(where == in_facet, next);
        if (result.ends.size() == faces) from.refuse_line("a facet has no corners; the file is damaged");
        where = in_solid;
      } else {
        expect(false, next);
      }
    }
  }
  if (where != nowhere && where != in_solid) refuse_because("ends within a facet; it is cut short");
  if (where == in_solid) result.notes.emplace_back("has no 'endsolid' at its end; it may be cut short");
  return result;
}

polygons read_3ds(std::string_view bytes) {
  polygons result;
  std::map<std::string, int> names;  // of parts, and how often keyframes place them
  std::size_t first = 0, size = 0;   // the vertices of a part
  std::int64_t most = -1;
  const auto end_part = [&] {
    if (most >= static_cast<std::int64_t>(first + size))
      refuse_because("a face names a vertex that is not there; it is damaged");
    first = result.vertices.size();
    size = 0;
  };
  for (std::size_t at = 0; at + 6 <= bytes.size();) {
    const auto kind = raw<std::uint16_t>(bytes, at);
    const std::size_t length = raw<std::uint32_t>(bytes, at + 2);
    if (length < 6 || length > bytes.size() - at)
      refuse_because("has a chunk of a wrong length; it is damaged or cut short");
    const auto body = bytes.substr(at + 6, length - 6);
    const auto get = [&]<class T>(T, std::size_t place) {
      if (place + sizeof(T) > body.size()) refuse_because("has a chunk of a wrong length; it is damaged");
      return raw<T>(body, place);
    };
    const std::string name(body.substr(0, std::min<std::size_t>(body.find('\0'), 64)));
    at += length;
    if (kind == 0x4d4d || kind == 0x3d3d || kind == 0xb000 || kind == 0xb002 || kind == 0x4100) {
      at -= body.size();  // chunks follow
    } else if (kind == 0x4000) {
      end_part();
      names.emplace(name, 0);
      at -= body.size() - std::min(body.size(), name.size() + 1);
    } else if (const auto part = names.find(name);
               kind == 0xb010 && part != names.end() && ++part->second > 1) {
      refuse_because(
          fmt::format("'{:.40}' is placed twice by keyframes, which is not read; export glTF", name));
    } else if (kind == 0x4160) {
      affine map;
      for (std::size_t k = 0; k < 9; ++k) map.rows[k / 3][k % 3] = get(float{}, 4 * k);
      if (mirrors(map))
        refuse_because("has a part that is mirrored, which is not read from 3DS; export glTF");
    } else if (kind == 0x4110) {
      if (size != 0) refuse_because("has a part with two lists of vertices; it is damaged");
      size = get(std::uint16_t{}, 0);
      for (std::size_t i = 0; i < 3 * size; ++i) {
        if (i % 3 == 0) result.vertices.emplace_back();
        result.vertices.back()[i % 3] = get(float{}, 2 + 4 * i);
      }
    } else if (kind == 0x4120) {
      for (std::size_t i = 0; i < 3 * std::size_t{get(std::uint16_t{}, 0)}; ++i) {
        const auto corner = get(std::uint16_t{}, 2 + 8 * (i / 3) + 2 * (i % 3));
        result.corners.push_back(static_cast<std::int64_t>(first + corner));
        most = std::max(most, result.corners.back());
        if (i % 3 == 2) result.ends.push_back(result.corners.size());
      }
    }
  }
  end_part();
  result.floats = true;
  return result;
}

polygons read_off(std::string_view text) {
  lines from(text);
  if (!from.next_words()) refuse_because("is empty; an OFF file was expected");
  auto word = from.word();
  // [ST][C][N][4][n]OFF: in each, a vertex begins with its position.
  const auto end = word.find("OFF");
  if (end != word.npos) {
    const auto before = word.substr(0, end);
    if (before.find_first_not_of("STCN") != before.npos)
      refuse_because(fmt::format("is '{}', and not OFF of three dimensions", short_of(word)));
    word.remove_prefix(end + 3);  // ModelNet40 has the first number here, without a blank
    if (word.empty()) word = from.word();
    if (word == "BINARY") refuse_because("is a binary OFF file; write it as text");
    if (word.empty()) {
      if (!from.next_words()) refuse_because("ends behind its first line; it is cut short");
      word = from.word();
    }
  }
  std::uint64_t vertices = 0, faces = 0;
  if (!lines::to_integer(word, vertices) || !lines::to_integer(from.word(), faces))
    from.refuse_line("has no numbers of vertices and faces; it is not an OFF file");
  polygons result;
  for (std::uint64_t i = 0; i < vertices; ++i) {
    if (!from.next_words())
      refuse_because(fmt::format("has {} vertices of {}; it is cut short", i, vertices));
    std::array<double, 3> at{};
    for (auto& x : at) x = from.number_in(from.word(), "a vertex");
    result.vertices.push_back(at);
  }
  for (std::uint64_t i = 0; i < faces; ++i) {
    if (!from.next_words())
      refuse_because(
          fmt::format("has {} faces of {}; it is cut short, or has several vertices in a line", i, faces));
    std::uint64_t corners = 0;
    if (!lines::to_integer(from.word(), corners)) from.refuse_line("a face has no number of corners");
    for (std::uint64_t k = 0; k < corners; ++k) {
      const auto name = from.word();
      std::int64_t number = 0;
      if (!lines::to_integer(name, number) || number < 0) {
        from.refuse_line(name.empty() ? fmt::format("a face has {} corners of {}", k, corners)
                                      : fmt::format("'{}' is not a corner of a face", short_of(name)));
      }
      result.corners.push_back(number);
    }
    if (corners < 3) {
      result.corners.resize(result.corners.size() - corners);  // a line or a point
    } else {
      result.ends.push_back(result.corners.size());
    }
  }
  if (from.next_words())
    result.notes.push_back(
        fmt::format("line {} and what follows are behind its {} faces, and left out", from.number(), faces));
  return result;
}

}  // namespace roost::tools
