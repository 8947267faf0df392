#include "gltf.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <roost/error.hpp>
#include <system_error>
#include <utility>

#include "mesh.hpp"
#include "placement.hpp"

namespace roost::tools {
namespace {

using json = nlohmann::json;

[[noreturn]] void refuse(const std::string& why) { throw invalid_argument(why); }

/// A number of things, or of one of them: 12.0 is one, too.
std::optional<std::size_t> whole(const json& value) {
  constexpr double most = 0x1p53;
  if (value.is_number_float()) {
    const double x = value.get<double>();
    return x >= 0 && x < most && x == std::floor(x) ? std::optional(static_cast<std::size_t>(x))
                                                    : std::nullopt;
  }
  const bool fits = value.is_number_integer() && value.get<std::int64_t>() >= 0;
  return fits ? std::optional(value.get<std::size_t>()) : std::nullopt;
}

/// A value of the file, and what errors call it.
struct object {
  const json* value;
  std::string name;

  [[noreturn]] void refuse(const std::string& why) const { tools::refuse(name + " " + why); }
  /// The member of this name, or nullopt.
  std::optional<object> find(const std::string& key) const {
    if (!value->is_object()) refuse("is no object; the file is damaged");
    const auto at = value->find(key);
    return at == value->end() ? std::nullopt : std::optional(object{&*at, name + "." + key});
  }
  object at(const std::string& key) const {
    if (auto found = find(key)) return *found;
    refuse(fmt::format("has no '{}'; the file is damaged", key));
  }
  std::size_t number() const {
    if (const auto result = whole(*value)) return *result;
    refuse("is no number of a thing; the file is damaged");
  }
  std::size_t number_or(const char* key, std::size_t otherwise) const {
    const auto found = find(key);
    return found ? found->number() : otherwise;
  }
  /// The elements of an array.
  std::vector<object> items() const {
    if (!value->is_array()) refuse("is no array; the file is damaged");
    std::vector<object> result;
    for (const auto& item : *value) result.push_back({&item, fmt::format("{}[{}]", name, result.size())});
    return result;
  }
  std::vector<object> items_of(const char* key) const {
    const auto found = find(key);
    return found ? found->items() : std::vector<object>();
  }
  std::string text() const {
    if (!value->is_string()) refuse("is no text; the file is damaged");
    return value->get<std::string>();
  }
  std::vector<double> numbers() const {
    std::vector<double> result;
    for (const auto& item : items()) {
      if (!item.value->is_number()) item.refuse("is no number; the file is damaged");
      result.push_back(item.value->get<double>());
    }
    return result;
  }
  template <std::size_t N>
  std::array<double, N> numbers_or(const char* key, std::array<double, N> result) const {
    if (const auto found = find(key)) {
      const auto numbers = found->numbers();
      if (numbers.size() != N) found->refuse(fmt::format("has {} numbers of {}", numbers.size(), N));
      std::ranges::copy(numbers, result.begin());
    }
    return result;
  }
  std::optional<object> extension(const char* key) const {
    const auto all = find("extensions");
    return all ? all->find(key) : std::nullopt;
  }
};

std::string from_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  std::uint32_t bits = 0, count = 0;
  for (const char c : text.substr(0, text.find_last_not_of('=') + 1)) {
    const auto digit = digits.find(c);
    if (digit == digits.npos) refuse("a buffer's base64 has other characters; the file is damaged");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((count += 6) >= 8) result += static_cast<char>(bits >> (count -= 8));
  }
  return result;
}

/// `%20` is a blank.
std::string from_uri(std::string_view uri) {
  std::string result;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    unsigned byte = 0;
    const auto* const end = uri.data() + std::min(i + 3, uri.size());
    if (uri[i] == '%' && std::from_chars(uri.data() + i + 1, end, byte, 16).ptr == uri.data() + i + 3) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += uri[i];
    }
  }
  return result;
}

/// The types of an accessor's components.
struct component {
  std::size_t code, bytes;
  double (*read)(const char* at, bool normalized);
};
template <class T>
constexpr component component_of(std::size_t code) {
  return {code, sizeof(T), [](const char* at, bool normalized) {
            T value;
            std::memcpy(&value, at, sizeof(T));
            const auto x = static_cast<double>(value);
            if (!normalized || std::is_floating_point_v<T>) return x;
            return std::max(x / static_cast<double>(std::numeric_limits<T>::max()), -1.0);
          }};
}
constexpr std::size_t is_float = 5126;
constexpr component components[] = {component_of<std::int8_t>(5120),   component_of<std::uint8_t>(5121),
                                    component_of<std::int16_t>(5122),  component_of<std::uint16_t>(5123),
                                    component_of<std::uint32_t>(5125), component_of<float>(is_float)};

/// The numbers of an accessor.
struct elements {
  std::size_t count = 0, width = 0;
  std::vector<double> values;
  double coarse = 0;  ///< how far floats may be from what they were rounded from

  vec3 point(std::size_t i) const { return {values[3 * i], values[3 * i + 1], values[3 * i + 2]}; }
};

affine of_matrix(const double* m, const object& from) {
  affine result;
  for (std::size_t row = 0; row < 3; ++row) {
    result.rows[row] = {m[row], m[4 + row], m[8 + row]};
    result.shift[row] = m[12 + row];
    if (m[4 * row + 3] != 0) from.refuse("has a matrix with a perspective; apply it before export");
  }
  if (m[15] != 1) from.refuse("has a matrix with a perspective; apply it before export");
  return result;
}

affine of_parts(const vec3& move, const std::array<double, 4>& turn, const vec3& scale, const object& from) {
  const double length = std::hypot(std::hypot(turn[0], turn[1]), std::hypot(turn[2], turn[3]));
  if (!(std::abs(length - 1) < 0.02))
    from.refuse(fmt::format("has a rotation of length {:.6g} instead of 1; the file is damaged", length));
  const double x = turn[0] / length, y = turn[1] / length, z = turn[2] / length, w = turn[3] / length;
  affine result{{{{1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)},
                  {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)},
                  {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)}}},
                move};
  for (auto& row : result.rows) {
    for (std::size_t k = 0; k < 3; ++k) row[k] *= scale[k];
  }
  return result;
}

/// The most by which a map can move two points apart along an axis.
double stretch(const affine& map) {
  double most = 0;
  for (const auto& row : map.rows)
    most = std::max(most, std::abs(row[0]) + std::abs(row[1]) + std::abs(row[2]));
  return most;
}

/// Extensions of materials and the like, which change no shape, and those that are read.
bool is_known(std::string_view extension) {
  static constexpr std::string_view known[] = {
      "KHR_mesh_quantization",   "EXT_mesh_gpu_instancing", "KHR_node_visibility",  "KHR_animation_pointer",
      "EXT_structural_metadata", "EXT_mesh_features",       "EXT_instance_features"};
  static constexpr std::string_view begins[] = {"KHR_materials_", "KHR_texture_",     "KHR_lights_",
                                                "EXT_materials_", "EXT_texture_",     "EXT_lights_",
                                                "KHR_xmp",        "MSFT_texture_dds", "VRM"};
  return std::ranges::find(known, extension) != std::end(known) ||
         std::ranges::any_of(begins, [&](auto begin) { return extension.starts_with(begin); });
}

class gltf {
 public:
  gltf(std::string_view content, const std::filesystem::path& folder) : folder_(folder) {
    auto text = content;
    if (content.starts_with("glTF")) text = take_chunks(content);
    text = text.substr(0, text.find_last_not_of('\0') + 1);  // which some writers pad with
    try {
      json_ = json::parse(text);
    } catch (const json::exception& e) {
      const std::string_view why = e.what();
      refuse(fmt::format("is no valid JSON: {}", why.substr(why.find("] ") + 2)));
    }
    loaded_ = content.size();
    check_version();
  }

  polygons read() {
    place_nodes();
    for (std::size_t i = 0; i < shown_.size(); ++i) {
      if (shown_[i]) add_node(item("nodes", i, root_), where_[i]);
    }
    if (hidden_ != 0) result_.notes.push_back(fmt::format("{} nodes are hidden, and were left out", hidden_));
    return std::move(result_);
  }

 private:
  struct view {
    std::string_view bytes;
    std::size_t stride;  // or 0
  };

  /// Takes a .glb file apart; returns its JSON.
  std::string_view take_chunks(std::string_view content) {
    const auto word = [&](std::size_t at) {
      std::uint32_t value = 0;
      if (at + 4 > content.size()) refuse("is cut short");
      std::memcpy(&value, content.data() + at, 4);
      return std::size_t{value};
    };
    if (word(4) != 2) refuse(fmt::format("is version {} of .glb; export glTF 2.0", word(4)));
    if (word(8) > content.size())
      refuse(fmt::format("is cut short: {} of {} bytes", content.size(), word(8)));
    constexpr std::size_t is_json = 0x4e4f534a, is_bin = 0x004e4942;
    const auto end = word(8);
    std::string_view text;
    for (std::size_t at = 12; at + 8 <= end;) {
      const auto size = word(at), kind = word(at + 4);
      if (size > end - at - 8) refuse("has a chunk that is longer than the file; it is damaged or cut short");
      const auto chunk = content.substr(at + 8, size);
      if (at == 12 && kind != is_json) refuse("does not begin with JSON; the file is damaged");
      if (at == 12) text = chunk;
      if (kind == is_bin && !bin_) bin_ = chunk;
      at += 8 + size;
    }
    return text;
  }

  void check_version() const {
    const auto version = root_.at("asset").at("version").text();
    if (!version.starts_with("2.")) refuse(fmt::format("is glTF {}; export glTF 2.0", version.substr(0, 40)));
    for (const auto& extension : root_.items_of("extensionsRequired")) {
      const auto name = extension.text();
      if (is_known(name)) continue;
      refuse(fmt::format(
          "requires the extension {}, which is not read; export it without ({})", name.substr(0, 80),
          name.find("compression") != name.npos ? "no compression" : "glTF 2.0 that requires no extension"));
    }
  }

  object item(const char* list, std::size_t i, const object& from) const {
    const auto all = root_.find(list);
    const auto count = all && all->value->is_array() ? all->value->size() : 0;
    if (i >= count) from.refuse(fmt::format("names {}[{}], but there are {}", list, i, count));
    return {&(*all->value)[i], fmt::format("{}[{}]", list, i)};
  }

  /// Refuses what has no data, and says which extension may have it.
  [[noreturn]] void refuse_no_data(const object& of) const {
    std::vector<std::string> names;
    for (const auto& used : root_.items_of("extensionsUsed")) names.push_back(used.text().substr(0, 80));
    of.refuse(names.empty() ? "has no data; the file is damaged"
                            : fmt::format("has no data, unless an extension has it, of {}; export it without",
                                          fmt::join(names, ", ")));
  }

  std::string_view buffer(std::size_t i, const object& from) {
    const auto of = item("buffers", i, from);
    const auto size = of.at("byteLength").number();
    const auto uri = of.find("uri");
    std::string_view bytes;
    if (uri) {
      auto known = files_.find(i);
      if (known == files_.end()) {
        known = files_.emplace(i, content_of(*uri)).first;
        loaded_ += known->second.size();
      }
      bytes = known->second;
    } else if (i == 0 && bin_) {
      bytes = *bin_;
    } else {
      refuse_no_data(of);
    }
    if (bytes.size() < size)
      of.refuse(fmt::format("has {} bytes of {}; the file is damaged or cut short", bytes.size(), size));
    return bytes.substr(0, size);
  }

  std::string content_of(const object& uri) const {
    const auto text = uri.text();
    const auto shown = text.substr(0, 80);
    if (text.starts_with("data:")) {
      const auto comma = text.find(',');
      if (comma == text.npos || !text.substr(0, comma).ends_with(";base64"))
        uri.refuse(fmt::format("'{}' is not base64", shown.substr(0, shown.find(','))));
      return from_base64(std::string_view(text).substr(comma + 1));
    }
    if (text.find(':') < text.find('/')) uri.refuse(fmt::format("'{}' is no file beside this one", shown));
    for (const auto& name : {from_uri(text), text}) {
      std::error_code failure;
      const auto path = folder_ / name;
      if (!std::filesystem::is_regular_file(path, failure)) continue;
      std::ifstream stream(path, std::ios::binary);
      if (stream) return {std::istreambuf_iterator<char>(stream), {}};
    }
    uri.refuse(fmt::format("'{}' cannot be read; it must be beside this file", from_uri(shown)));
  }

  view view_of(const object& from, const char* key = "bufferView") {
    const auto of = item("bufferViews", from.at(key).number(), from);
    const auto bytes = buffer(of.at("buffer").number(), of);
    const auto offset = of.number_or("byteOffset", 0), size = of.at("byteLength").number();
    if (offset > bytes.size() || size > bytes.size() - offset)
      of.refuse(fmt::format("ends behind its buffer of {} bytes; the file is damaged", bytes.size()));
    return {bytes.substr(offset, size), of.number_or("byteStride", 0)};
  }

  /// Reads `count` elements of `width` components each, which begin at the byteOffset of `from`.
  void take(const object& from, const view& bytes, const component& kind, bool normalized,
            elements& to) const {
    const auto offset = from.number_or("byteOffset", 0), size = kind.bytes * to.width,
               step = bytes.stride == 0 ? size : bytes.stride, length = bytes.bytes.size();
    if (step < size) from.refuse(fmt::format("has a stride of {} bytes, but elements of {}", step, size));
    if (to.count != 0 &&
        (offset > length || size > length - offset || to.count - 1 > (length - offset - size) / step))
      from.refuse(fmt::format("has {} elements, which end behind its {} bytes; the file is damaged", to.count,
                              length));
    to.values.reserve(to.count * to.width);
    for (std::size_t i = 0; i < to.count; ++i) {
      for (std::size_t k = 0; k < to.width; ++k)
        to.values.push_back(kind.read(bytes.bytes.data() + offset + i * step + k * kind.bytes, normalized));
    }
  }

  const component& component_in(const object& of) const {
    const auto code = of.at("componentType").number();
    const auto found = std::ranges::find(components, code, &component::code);
    if (found == std::end(components)) of.refuse(fmt::format("has components of type {}", code));
    return *found;
  }

  /// The numbers of an accessor, which must be of this type, as `indices`: natural numbers.
  elements read(const object& from, std::string_view type, bool indices = false) {
    const auto of = item("accessors", from.number(), from);
    static const std::map<std::string_view, std::size_t> widths{
        {"SCALAR", 1}, {"VEC3", 3}, {"VEC4", 4}, {"MAT4", 16}};
    const auto& kind = component_in(of);
    if (of.at("type").text() != type) of.refuse(fmt::format("is not of type {}", type));
    if (indices && !(kind.code == 5121 || kind.code == 5123 || kind.code == 5125))
      of.refuse(fmt::format("has indices of type {}", kind.code));
    const auto flag = of.find("normalized");
    if (flag && !flag->value->is_boolean()) flag->refuse("is neither true nor false");
    const bool normalized = flag && flag->value->get<bool>();
    const auto sparse = of.find("sparse");
    elements result{of.at("count").number(), widths.at(type), {}, 0};
    if (of.find("bufferView")) {
      take(of, view_of(of), kind, normalized, result);
    } else if (!sparse) {
      refuse_no_data(of);
    }
    if (sparse) {
      const auto places = sparse->at("indices"), values = sparse->at("values");
      elements at{sparse->at("count").number(), 1, {}, 0}, to{at.count, result.width, {}, 0};
      take(places, {view_of(places).bytes, 0}, component_in(places), false, at);
      take(values, {view_of(values).bytes, 0}, kind, normalized, to);
      if (result.values.empty()) {
        if (result.count > loaded_) of.refuse(fmt::format("has {} elements, more than bytes", result.count));
        result.values.resize(result.count * result.width);
      }
      for (std::size_t i = 0; i < at.count; ++i) {
        if (!(at.values[i] >= 0 && at.values[i] < static_cast<double>(result.count)))
          of.refuse(
              fmt::format("replaces element {} of {}; the file is damaged", at.values[i], result.count));
        std::copy_n(to.values.begin() + static_cast<std::ptrdiff_t>(i * to.width), to.width,
                    result.values.begin() +
                        static_cast<std::ptrdiff_t>(at.values[i]) * static_cast<std::ptrdiff_t>(to.width));
      }
    }
    if (kind.code == is_float) {
      for (const double x : result.values) result.coarse = std::max(result.coarse, std::abs(x));
      result.coarse = half_step(result.coarse);
    }
    return result;
  }

  affine place_of(const object& node) const {
    const auto matrix = node.find("matrix");
    if (!matrix)
      return of_parts(node.numbers_or<3>("translation", {}), node.numbers_or<4>("rotation", {0, 0, 0, 1}),
                      node.numbers_or<3>("scale", {1, 1, 1}), node);
    if (node.find("translation") || node.find("rotation") || node.find("scale"))
      node.refuse("has both a matrix and parts of one; the file is damaged");
    return of_matrix(node.numbers_or<16>("matrix", {}).data(), node);
  }

  /// The nodes at which the scene to be read begins.
  std::vector<std::size_t> roots(const std::vector<std::size_t>& parents) {
    std::vector<std::size_t> result;
    const auto scenes = root_.items_of("scenes");
    if (scenes.empty()) {
      for (std::size_t i = 0; i < parents.size(); ++i) {
        if (parents[i] == none) result.push_back(i);
      }
      return result;
    }
    const auto chosen = root_.number_or("scene", 0);
    for (const auto& node : item("scenes", chosen, root_).items_of("nodes")) result.push_back(node.number());
    if (scenes.size() > 1) {
      result_.notes.push_back(fmt::format("has {} scenes; the {} was read", scenes.size(),
                                          root_.find("scene") ? "default one" : "first one"));
    }
    return result;
  }

  /// Fills where_ and shown_.
  void place_nodes() {
    const auto nodes = root_.items_of("nodes");
    std::vector<std::size_t> parents(nodes.size(), none);
    std::vector<std::vector<std::size_t>> children(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const auto& child : nodes[i].items_of("children")) {
        const auto c = child.number();
        if (c >= nodes.size()) child.refuse(fmt::format("is {}, but there are {} nodes", c, nodes.size()));
        if (parents[c] != none) nodes[c].refuse("has two parents; the file is damaged");
        parents[c] = i;
        children[i].push_back(c);
      }
    }
    where_.resize(nodes.size());
    shown_.resize(nodes.size(), false);
    std::vector<std::size_t> next;
    for (const auto i : roots(parents)) {
      if (i >= nodes.size()) refuse(fmt::format("its scene names nodes[{}] of {}", i, nodes.size()));
      if (parents[i] != none || shown_[i]) nodes[i].refuse("is in the scene twice; the file is damaged");
      shown_[i] = true;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (parents[i] == none) next.push_back(i);
    }
    std::size_t seen = 0;
    for (; !next.empty(); ++seen) {
      const auto i = next.back();
      next.pop_back();
      const auto above = parents[i] == none ? affine() : where_[parents[i]];
      where_[i] = above.after(place_of(nodes[i]));
      if (parents[i] != none) shown_[i] = shown_[parents[i]];
      const auto visibility = nodes[i].extension("KHR_node_visibility");
      const auto visible = visibility ? visibility->find("visible") : std::nullopt;
      if (shown_[i] && visible && *visible->value == false) {
        shown_[i] = false;
        ++hidden_;
      }
      next.insert(next.end(), children[i].begin(), children[i].end());
    }
    if (seen != nodes.size()) refuse("has nodes that are their own children; the file is damaged");
  }

  void add_node(const object& node, const affine& where) {
    const auto of = node.find("mesh");
    if (!of) return;
    const auto mesh = item("meshes", of->number(), node);
    std::vector<affine> places{where};
    double coarse = 0;
    if (const auto many = node.extension("EXT_mesh_gpu_instancing")) {
      if (node.find("skin")) node.refuse("has a skin and instances, which is not read");
      places = instances(many->at("attributes"), where, coarse);
    }
    const auto morphed = node.find("weights") ? node.find("weights") : mesh.find("weights");
    const auto weights = morphed ? morphed->numbers() : std::vector<double>();
    for (const auto& place : places) {
      // All axes scaled to 0 is how files hide what they have.
      if (stretch(place) == 0 && !node.find("skin")) {
        ++hidden_;
        continue;
      }
      const json* last = nullptr;
      std::size_t first = 0;
      for (const auto& primitive : mesh.at("primitives").items()) {
        const auto mode = primitive.number_or("mode", 4);
        if (mode > 6) primitive.refuse(fmt::format("has mode {}; the file is damaged", mode));
        if (mode < 4) continue;
        const auto attributes = primitive.at("attributes");
        if (!attributes.find("POSITION")) {
          result_.notes.push_back(primitive.name + " has no positions, and was left out");
          continue;
        }
        // Parts of several materials often share their vertices.
        const bool shared = last != nullptr && *attributes.value == *last && weights.empty();
        if (!shared) first = result_.vertices.size();
        const bool mirrored = shared ? mirrored_ : add_vertices(primitive, weights, node, place, coarse);
        mirrored_ = mirrored;
        last = attributes.value;
        add_triangles(primitive, first, mode, mirrored);
      }
    }
  }

  std::vector<affine> instances(const object& attributes, const affine& where, double& coarse) {
    std::array<std::optional<elements>, 3> parts;
    std::size_t count = 0;
    constexpr const char* names[] = {"TRANSLATION", "ROTATION", "SCALE"};
    for (std::size_t k = 0; k < 3; ++k) {
      if (const auto part = attributes.find(names[k])) {
        parts[k] = read(*part, k == 1 ? "VEC4" : "VEC3");
        if (count != 0 && parts[k]->count != count) part->refuse("is for another number of instances");
        count = parts[k]->count;
      }
    }
    if (parts[0]) coarse = parts[0]->coarse * stretch(where);
    std::vector<affine> result;
    for (std::size_t i = 0; i < count; ++i) {
      std::array<double, 4> turn{0, 0, 0, 1};
      if (parts[1])
        std::copy_n(parts[1]->values.begin() + static_cast<std::ptrdiff_t>(4 * i), 4, turn.begin());
      result.push_back(where.after(of_parts(parts[0] ? parts[0]->point(i) : vec3{}, turn,
                                            parts[2] ? parts[2]->point(i) : vec3{1, 1, 1}, attributes)));
    }
    return result;
  }

  /// Adds the vertices of a part; returns whether they are mirrored.
  bool add_vertices(const object& primitive, const std::vector<double>& weights, const object& node,
                    const affine& where, double coarse) {
    const auto attributes = primitive.at("attributes");
    auto positions = read(attributes.at("POSITION"), "VEC3");
    const auto targets = primitive.items_of("targets");
    for (std::size_t t = 0; t < weights.size(); ++t) {
      if (weights[t] == 0) continue;
      if (t >= targets.size())
        primitive.refuse(fmt::format("has {} of {} targets", targets.size(), weights.size()));
      const auto moved = targets[t].find("POSITION");
      if (!moved) continue;
      const auto by = read(*moved, "VEC3");
      if (by.count != positions.count) moved->refuse("has another number of vertices");
      for (std::size_t i = 0; i < by.values.size(); ++i) positions.values[i] += weights[t] * by.values[i];
    }
    if (positions.count > strip_end - result_.vertices.size()) refuse("has more than 2^32 - 2 vertices");
    const auto add = [&](const affine& map, std::size_t i) {
      result_.vertices.push_back(map(positions.point(i)));
      result_.blur = std::max(result_.blur, coarse + positions.coarse * stretch(map));
    };
    if (const auto skin = node.find("skin")) {
      const auto maps = bent(*skin, attributes, positions.count);
      for (std::size_t i = 0; i < positions.count; ++i) add(maps[i], i);
      return !maps.empty() && maps[0].mirrors();
    }
    for (std::size_t i = 0; i < positions.count; ++i) add(where, i);
    return where.mirrors();
  }

  /// Where the joints of a skin put each vertex.
  std::vector<affine> bent(const object& from, const object& attributes, std::size_t count) {
    const auto skin = item("skins", from.number(), from);
    std::vector<affine> joints;
    const auto inverse = skin.find("inverseBindMatrices");
    const auto matrices = inverse ? read(*inverse, "MAT4") : elements();
    for (const auto& joint : skin.at("joints").items()) {
      item("nodes", joint.number(), joint);
      auto map = where_[joint.number()];
      if (inverse && joints.size() >= matrices.count) inverse->refuse("has too few matrices");
      if (inverse) map = map.after(of_matrix(matrices.values.data() + 16 * joints.size(), skin));
      joints.push_back(map);
    }
    std::vector<affine> result(count, affine{});
    std::vector<double> sums(count);
    for (auto& map : result) map.rows = {};
    for (int set = 0; const auto of = attributes.find(fmt::format("JOINTS_{}", set)); ++set) {
      const auto which = read(*of, "VEC4", true),
                 much = read(attributes.at(fmt::format("WEIGHTS_{}", set)), "VEC4");
      if (which.count != count || much.count != count) of->refuse("has another number of vertices");
      for (std::size_t i = 0; i < 4 * count; ++i) {
        const double weight = much.values[i];
        if (weight == 0) continue;
        if (which.values[i] >= static_cast<double>(joints.size()))
          of->refuse(fmt::format("names joint {} of {}", which.values[i], joints.size()));
        const auto& joint = joints[static_cast<std::size_t>(which.values[i])];
        auto& map = result[i / 4];
        sums[i / 4] += weight;
        for (std::size_t k = 0; k < 3; ++k) {
          map.shift[k] += weight * joint.shift[k];
          for (std::size_t j = 0; j < 3; ++j) map.rows[k][j] += weight * joint.rows[k][j];
        }
      }
    }
    for (std::size_t i = 0; i < count; ++i) {  // sums of bytes, and of floats, are not quite 1
      if (!(sums[i] > 0))
        attributes.refuse(fmt::format("has no joint for vertex {}; repair the skin", i + 1));
      for (std::size_t k = 0; k < 3; ++k) {
        result[i].shift[k] /= sums[i];
        for (auto& x : result[i].rows[k]) x /= sums[i];
      }
    }
    return result;
  }

  void add_triangles(const object& primitive, std::size_t first, std::size_t mode, bool mirrored) {
    const auto count = result_.vertices.size() - first;
    std::vector<std::uint32_t> corners;
    if (const auto indices = primitive.find("indices")) {
      for (const double index : read(*indices, "SCALAR", true).values) {
        if (index >= static_cast<double>(count))
          indices->refuse(
              fmt::format("names vertex {}, but there are {}; the file is damaged", index, count));
        corners.push_back(static_cast<std::uint32_t>(index));
      }
    } else {
      for (std::uint32_t i = 0; i < count; ++i) corners.push_back(i);
    }
    const auto add = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
      if (mirrored) std::swap(b, c);
      for (const std::size_t corner : {a, b, c})
        result_.corners.push_back(static_cast<std::int64_t>(first + corner));
      result_.ends.push_back(result_.corners.size());
    };
    if (mode == 5) {
      for (const auto& [a, b, c] : triangles_of_strips(corners)) add(a, b, c);
    } else if (mode == 6) {
      for (std::size_t i = 2; i < corners.size(); ++i) add(corners[0], corners[i - 1], corners[i]);
    } else {
      if (corners.size() % 3 != 0)
        primitive.refuse(
            fmt::format("has {} corners, which are no triangles; it is damaged", corners.size()));
      for (std::size_t i = 0; i < corners.size(); i += 3) add(corners[i], corners[i + 1], corners[i + 2]);
    }
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::filesystem::path folder_;
  json json_;
  object root_{&json_, "it"};
  std::optional<std::string_view> bin_;  // of a .glb file
  std::map<std::size_t, std::string> files_;
  std::size_t loaded_ = 0, hidden_ = 0;
  std::vector<affine> where_;  // of each node
  std::vector<bool> shown_;
  bool mirrored_ = false;  // what was last added
  polygons result_;
};

}  // namespace

bool is_gltf(std::string_view ending, std::string_view content) {
  return ending == ".gltf" || ending == ".glb" || ending == ".vrm" || content.starts_with("glTF");
}

polygons read_gltf(std::string_view content, const std::filesystem::path& folder) {
  return gltf(content, folder).read();
}

}  // namespace roost::tools
