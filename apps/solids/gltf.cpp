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

using nlohmann::json;
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

void expect(bool holds, const std::string& why) {
  if (!holds) throw invalid_argument(why);
}

/// A value of the file, and what errors call it.
struct object {
  const json* value;
  std::string name;

  void expect(bool holds, const std::string& why) const { tools::expect(holds, name + " " + why); }
  std::optional<object> find(const std::string& key) const {
    expect(value->is_object(), "is no object");
    const auto at = value->find(key);
    if (at == value->end()) return std::nullopt;
    return object{&*at, name.empty() ? key : name + "." + key};
  }
  object at(const std::string& key) const {
    const auto found = find(key);
    expect(found.has_value(), fmt::format("has no '{}'", key));
    return *found;
  }
  /// A number of things, or of one of them: 12.0 is one, too.
  std::size_t number() const {
    const double x = value->is_number() ? value->get<double>() : -1;
    expect(x >= 0 && x < 0x1p53 && x == std::floor(x), "is no number from 0 on");
    return static_cast<std::size_t>(x);
  }
  std::size_t number(const char* key, std::size_t otherwise) const {
    const auto found = find(key);
    return found ? found->number() : otherwise;
  }
  bool flag(const char* key, bool otherwise) const {
    const auto found = find(key);
    if (found) found->expect(found->value->is_boolean(), "is neither true nor false");
    return found ? found->value->get<bool>() : otherwise;
  }
  std::string text() const {
    expect(value->is_string(), "is no text");
    return value->get<std::string>();
  }
  std::vector<object> items() const {
    expect(value->is_array(), "is no array");
    std::vector<object> result;
    for (const auto& item : *value) result.push_back({&item, fmt::format("{}[{}]", name, result.size())});
    return result;
  }
  std::vector<object> items(const char* key) const {
    const auto found = find(key);
    return found ? found->items() : std::vector<object>();
  }
  std::vector<double> numbers(const char* key, std::vector<double> result, bool exactly = true) const {
    const auto found = find(key);
    if (!found) return result;
    const auto all = found->items();
    found->expect(!exactly || all.size() == result.size(), fmt::format("has {} numbers", all.size()));
    result.clear();
    for (const auto& item : all) {
      item.expect(item.value->is_number(), "is no number");
      result.push_back(item.value->get<double>());
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
    if (digit == digits.npos) throw invalid_argument("a buffer's base64 has other characters");
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
    const auto hex = uri.substr(i + 1, 2);
    if (uri[i] == '%' && hex.size() == 2 &&
        std::from_chars(hex.begin(), hex.end(), byte, 16).ptr == hex.end()) {
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
constexpr component components[] = {component_of<std::int8_t>(5120),   component_of<std::uint8_t>(5121),
                                    component_of<std::int16_t>(5122),  component_of<std::uint16_t>(5123),
                                    component_of<std::uint32_t>(5125), component_of<float>(5126)};

/// The numbers of an accessor.
struct elements {
  std::size_t count = 0, width = 0;
  std::vector<double> values{};
  double coarse = 0;  ///< how far floats may be from what they were rounded from

  const double* operator[](std::size_t i) const { return values.data() + i * width; }
};

affine of_matrix(const double* m, const object& from) {
  affine result;
  from.expect(m[3] == 0 && m[7] == 0 && m[11] == 0 && m[15] == 1, "has a perspective");
  for (std::size_t row = 0; row < 3; ++row) {
    result.rows[row] = {m[row], m[4 + row], m[8 + row]};
    result.shift[row] = m[12 + row];
  }
  return result;
}

affine of_parts(const double* move, const double* turn, const double* scale, const object& from) {
  const double length = std::hypot(std::hypot(turn[0], turn[1]), std::hypot(turn[2], turn[3]));
  from.expect(std::abs(length - 1) < 0.02, "has a rotation of another length than 1");
  const double x = turn[0] / length, y = turn[1] / length, z = turn[2] / length, w = turn[3] / length;
  affine result{{{{1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)},
                  {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)},
                  {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)}}},
                {move[0], move[1], move[2]}};
  for (auto& row : result.rows) {
    for (std::size_t k = 0; k < 3; ++k) row[k] *= scale[k];
  }
  return result;
}

/// How far apart a map moves two points that are 1 apart along each axis, at most, along an axis.
double stretch(const affine& map) {
  double most = 0;
  for (const auto& [x, y, z] : map.rows) most = std::max(most, std::abs(x) + std::abs(y) + std::abs(z));
  return most;
}

/// Extensions that are read, and those of materials and the like, which change no shape.
bool is_known(std::string_view extension) {
  static constexpr std::string_view begins[] = {"KHR_mesh_quantization",
                                                "EXT_mesh_gpu_instancing",
                                                "KHR_node_visibility",
                                                "KHR_materials_",
                                                "KHR_texture_",
                                                "KHR_lights_",
                                                "KHR_xmp",
                                                "KHR_animation_pointer",
                                                "KHR_technique",
                                                "EXT_materials_",
                                                "EXT_texture_",
                                                "EXT_lights_",
                                                "EXT_mesh_features",
                                                "EXT_structural_metadata",
                                                "MSFT_texture_dds",
                                                "VRM"};
  return std::ranges::any_of(begins, [&](auto begin) { return extension.starts_with(begin); });
}

class gltf {
 public:
  gltf(std::string_view content, const std::filesystem::path& folder)
      : folder_(folder), loaded_(content.size()) {
    auto text = content.starts_with("glTF") ? take_chunks(content) : content;
    text = text.substr(0, text.find_last_not_of('\0') + 1);  // which some writers pad with
    try {
      json_ = json::parse(text);
    } catch (const json::exception& e) {
      const std::string_view why = e.what();
      throw invalid_argument(fmt::format("is no valid JSON: {}", why.substr(why.find("] ") + 2)));
    }
    const auto version = root_.at("asset").at("version");
    expect(version.value->is_string() && version.text().starts_with("2."),
           fmt::format("is glTF {:.20}; export glTF 2.0", version.value->dump(-1, ' ', true)));
    for (const auto& extension : root_.items("extensionsRequired")) {
      const auto name = extension.text().substr(0, 80);
      expect(is_known(name),
             fmt::format("requires the extension {}, which is not read; export it {}", name,
                         name.find("compression") == name.npos ? "without" : "without compression"));
    }
  }

  polygons read() {
    place_nodes();
    for (std::size_t i = 0; i < shown_.size(); ++i) {
      if (shown_[i]) add_node(item("nodes", i, root_), where_[i]);
    }
    if (hidden_ != 0) result_.notes.push_back(fmt::format("{} hidden nodes were left out", hidden_));
    return std::move(result_);
  }

 private:
  struct bytes {
    std::string_view all;
    std::size_t stride;  // of elements, or 0
  };

  /// Takes a .glb file apart; returns its JSON.
  std::string_view take_chunks(std::string_view content) {
    const auto word = [&](std::size_t at) {
      std::uint32_t value = 0;
      expect(at + 4 <= content.size(), "is cut short");
      std::memcpy(&value, content.data() + at, 4);
      return std::size_t{value};
    };
    expect(word(4) == 2, fmt::format("is version {} of .glb; export glTF 2.0", word(4)));
    expect(word(8) <= content.size(), fmt::format("is cut short: {} of {} bytes", content.size(), word(8)));
    constexpr std::size_t is_json = 0x4e4f534a, is_bin = 0x004e4942;
    std::string_view text;
    for (std::size_t at = 12; at + 8 <= word(8); at += 8 + word(at)) {
      expect(word(at) <= word(8) - at - 8, "has a part that is longer than the file; it is damaged");
      expect(at != 12 || word(16) == is_json, "does not begin with JSON; it is damaged");
      const auto chunk = content.substr(at + 8, word(at));
      if (at == 12) text = chunk;
      if (word(at + 4) == is_bin && !bin_) bin_ = chunk;
    }
    return text;
  }

  object item(const char* list, std::size_t i, const object& from) const {
    const auto all = root_.find(list);
    const auto count = all && all->value->is_array() ? all->value->size() : 0;
    from.expect(i < count, fmt::format("names {}[{}], but there are {}", list, i, count));
    return {&(*all->value)[i], fmt::format("{}[{}]", list, i)};
  }

  std::string_view buffer(const object& from) {
    const auto i = from.number(), size = item("buffers", i, from).at("byteLength").number();
    const auto of = item("buffers", i, from);
    const auto uri = of.find("uri");
    if (uri && !files_.contains(i)) loaded_ += (files_[i] = content_of(*uri)).size();
    of.expect(uri || (i == 0 && bin_), fmt::format("has no data{}", hint()));
    const auto all = uri ? std::string_view(files_[i]) : *bin_;
    of.expect(size <= all.size(), fmt::format("has {} bytes of {}; it is cut short", all.size(), size));
    return all.substr(0, size);
  }

  /// Where data may be that is missing.
  std::string hint() const {
    const auto names = root_.find("extensionsUsed");
    return names ? fmt::format("; an extension may have it, of {}; export it without",
                               names->value->dump(-1, ' ', true))
                 : "; it is damaged";
  }

  std::string content_of(const object& uri) const {
    const auto text = uri.text();
    if (text.starts_with("data:")) {
      const auto comma = text.find(',');
      uri.expect(comma != text.npos && text.substr(0, comma).ends_with(";base64"), "is not base64");
      return from_base64(std::string_view(text).substr(comma + 1));
    }
    uri.expect(text.find(':') >= text.find('/'), fmt::format("'{:.80}' is no file beside this one", text));
    for (const auto& name : {from_uri(text), text}) {
      std::error_code failure;
      if (!std::filesystem::is_regular_file(folder_ / name, failure)) continue;
      if (std::ifstream stream(folder_ / name, std::ios::binary); stream)
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    throw invalid_argument(
        fmt::format("its file '{:.80}' cannot be read; it must be beside it", from_uri(text)));
  }

  bytes view_of(const object& from) {
    const auto of = item("bufferViews", from.at("bufferView").number(), from);
    const auto all = buffer(of.at("buffer"));
    const auto begin = of.number("byteOffset", 0), size = of.at("byteLength").number();
    of.expect(begin <= all.size() && size <= all.size() - begin, "ends behind its buffer");
    return {all.substr(begin, size), of.number("byteStride", 0)};
  }

  /// Reads `to.count` elements, which begin at the byteOffset of `from`.
  void take(const object& from, const bytes& source, const component& kind, bool normalized,
            elements& to) const {
    const auto begin = from.number("byteOffset", 0), size = kind.bytes * to.width, length = source.all.size(),
               step = source.stride == 0 ? size : source.stride;
    from.expect(step >= size, "has a stride that is smaller than its elements");
    from.expect(to.count == 0 || (begin <= length && size <= length - begin &&
                                  to.count - 1 <= (length - begin - size) / step),
                fmt::format("has {} elements, but {} bytes", to.count, length));
    to.values.reserve(to.count * to.width);
    for (std::size_t i = 0; i < to.count * to.width; ++i) {
      const auto at = begin + i / to.width * step + i % to.width * kind.bytes;
      to.values.push_back(kind.read(source.all.data() + at, normalized));
    }
  }

  const component& component_in(const object& of, bool index) const {
    const auto code = of.at("componentType").number();
    const auto* const found = std::ranges::find(components, code, &component::code);
    of.expect(found != std::end(components) && (!index || code % 2 == 1), fmt::format("is of type {}", code));
    return *found;
  }

  /// The numbers of an accessor, of a type that is given.
  elements read(const object& from, std::string_view type, bool index = false) {
    const auto of = item("accessors", from.number(), from);
    const auto& kind = component_in(of, index);
    of.expect(of.at("type").text() == type, fmt::format("is not of type {}", type));
    const std::size_t width = type == "SCALAR" ? 1 : type == "VEC3" ? 3 : type == "VEC4" ? 4 : 16;
    const bool normalized = of.flag("normalized", false);
    const auto sparse = of.find("sparse");
    elements result{of.at("count").number(), width};
    of.expect(sparse || of.find("bufferView"), fmt::format("has no data{}", hint()));
    if (of.find("bufferView")) take(of, view_of(of), kind, normalized, result);
    if (sparse) {
      const auto places = sparse->at("indices"), values = sparse->at("values");
      elements at{sparse->at("count").number(), 1}, by{at.count, width};
      take(places, {view_of(places).all, 0}, component_in(places, true), false, at);
      take(values, {view_of(values).all, 0}, kind, normalized, by);
      of.expect(of.find("bufferView") || result.count <= loaded_, "has more elements than there are bytes");
      result.values.resize(result.count * width);
      for (std::size_t i = 0; i < at.count; ++i) {
        const auto place = static_cast<std::size_t>(at.values[i]);
        if (place >= result.count) of.expect(false, fmt::format("replaces element {}", place));
        std::copy_n(by[i], width, result.values.data() + place * width);
      }
    }
    for (const double x : result.values) result.coarse = std::max(result.coarse, std::abs(x));
    result.coarse = kind.code == 5126 ? half_step(result.coarse) : 0;
    return result;
  }

  affine place_of(const object& node) const {
    const bool parts = node.find("translation") || node.find("rotation") || node.find("scale");
    node.expect(!parts || !node.find("matrix"), "has both a matrix and parts of one");
    if (node.find("matrix")) return of_matrix(node.numbers("matrix", std::vector<double>(16)).data(), node);
    return of_parts(node.numbers("translation", {0, 0, 0}).data(),
                    node.numbers("rotation", {0, 0, 0, 1}).data(), node.numbers("scale", {1, 1, 1}).data(),
                    node);
  }

  /// The nodes at which the scene to be read begins.
  std::vector<std::size_t> roots(const std::vector<std::size_t>& parents) {
    std::vector<std::size_t> result;
    const auto count = root_.items("scenes").size();
    if (count == 0) {
      for (std::size_t i = 0; i < parents.size(); ++i) {
        if (parents[i] == none) result.push_back(i);
      }
      return result;
    }
    for (const auto& node : item("scenes", root_.number("scene", 0), root_).items("nodes"))
      result.push_back(node.number());
    if (count > 1)
      result_.notes.push_back(fmt::format("has {} scenes; the {} one was read", count,
                                          root_.find("scene") ? "default" : "first"));
    return result;
  }

  /// Fills where_ and shown_.
  void place_nodes() {
    const auto nodes = root_.items("nodes");
    std::vector<std::size_t> parents(nodes.size(), none), next;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const auto& child : nodes[i].items("children")) {
        auto& parent = parents[(item("nodes", child.number(), child), child.number())];
        child.expect(parent == none, "has two parents; the file is damaged");
        parent = i;
      }
    }
    where_.resize(nodes.size());
    shown_.resize(nodes.size(), false);
    for (const auto i : roots(parents)) {
      item("nodes", i, root_);
      nodes[i].expect(parents[i] == none && !shown_[i], "is in the scene twice; the file is damaged");
      shown_[i] = true;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (parents[i] == none) next.push_back(i);
    }
    for (std::size_t k = 0; k < next.size(); ++k) {
      const auto i = next[k], parent = parents[i];
      where_[i] = (parent == none ? affine() : where_[parent]).after(place_of(nodes[i]));
      if (parent != none) shown_[i] = shown_[parent];
      const auto visibility = nodes[i].extension("KHR_node_visibility");
      if (shown_[i] && visibility && !visibility->flag("visible", true)) {
        shown_[i] = false;
        ++hidden_;
      }
      for (const auto& child : nodes[i].items("children")) next.push_back(child.number());
    }
    expect(next.size() == nodes.size(), "has nodes that are their own children; it is damaged");
  }

  void add_node(const object& node, const affine& where) {
    const auto of = node.find("mesh"), skin = node.find("skin");
    if (!of) return;
    const auto mesh = item("meshes", of->number(), node);
    std::vector<affine> places{where};
    double coarse = 0;
    if (const auto many = node.extension("EXT_mesh_gpu_instancing")) {
      node.expect(!skin, "has a skin and instances, which is not read; export it without");
      places = instances(many->at("attributes"), where, coarse);
    }
    const auto weights = (node.find("weights") ? node : mesh).numbers("weights", {}, false);
    for (const auto& place : places) {
      if (stretch(place) == 0 && !skin) {  // as which files hide nodes
        ++hidden_;
        continue;
      }
      const json* last = nullptr;
      std::size_t first = 0;
      bool mirrored = false;
      for (const auto& primitive : mesh.at("primitives").items()) {
        const auto mode = primitive.number("mode", 4);
        primitive.expect(mode <= 6, fmt::format("has mode {}", mode));
        const auto attributes = primitive.at("attributes");
        if (mode < 4 || !attributes.find("POSITION")) continue;
        // Parts of different materials often share their vertices.
        if (last == nullptr || *last != *attributes.value || !weights.empty()) {
          first = result_.vertices.size();
          mirrored = add_vertices(primitive, weights, skin, place, coarse);
        }
        last = attributes.value;
        add_triangles(primitive, mode, first, mirrored);
      }
    }
  }

  std::vector<affine> instances(const object& attributes, const affine& where, double& coarse) {
    const auto part = [&](const char* name, std::vector<double> otherwise) {
      if (const auto found = attributes.find(name))
        return read(*found, otherwise.size() == 4 ? "VEC4" : "VEC3");
      return elements{none, 0, std::move(otherwise)};  // of width 0: the same for all
    };
    const auto moves = part("TRANSLATION", {0, 0, 0}), turns = part("ROTATION", {0, 0, 0, 1}),
               scales = part("SCALE", {1, 1, 1});
    const auto count = std::min({moves.count, turns.count, scales.count});
    for (const auto& of : {moves.count, turns.count, scales.count})
      attributes.expect(of == none || of == count, "has lists of different lengths");
    coarse = moves.coarse * stretch(where);
    std::vector<affine> result;
    for (std::size_t i = 0; i < (count == none ? 0 : count); ++i)
      result.push_back(where.after(of_parts(moves[i], turns[i], scales[i], attributes)));
    return result;
  }

  /// Adds the vertices of a part; returns whether they are mirrored.
  bool add_vertices(const object& primitive, const std::vector<double>& weights,
                    const std::optional<object>& skin, const affine& where, double coarse) {
    const auto attributes = primitive.at("attributes");
    auto positions = read(attributes.at("POSITION"), "VEC3");
    const auto targets = primitive.items("targets");
    for (std::size_t t = 0; t < weights.size(); ++t) {
      if (weights[t] == 0) continue;
      primitive.expect(t < targets.size(),
                       fmt::format("has {} of {} targets", targets.size(), weights.size()));
      const auto moves = targets[t].find("POSITION");
      if (!moves) continue;
      const auto by = read(*moves, "VEC3");
      moves->expect(by.count == positions.count, "is for another number of vertices");
      for (std::size_t i = 0; i < by.values.size(); ++i) positions.values[i] += weights[t] * by.values[i];
    }
    expect(positions.count < strip_end - result_.vertices.size(), "has more than 2^32 - 2 vertices");
    const auto maps = skin ? bent(*skin, attributes, positions.count) : std::vector<affine>{where};
    for (std::size_t i = 0; i < positions.count; ++i) {
      const auto& map = maps[skin ? i : 0];
      result_.vertices.push_back(map({positions[i][0], positions[i][1], positions[i][2]}));
      if (i == 0 || skin) result_.blur = std::max(result_.blur, coarse + positions.coarse * stretch(map));
    }
    return !maps.empty() && mirrors(maps[0]);
  }

  /// Where the joints of a skin put each vertex.
  std::vector<affine> bent(const object& from, const object& attributes, std::size_t count) {
    const auto skin = item("skins", from.number(), from);
    const auto inverse = skin.find("inverseBindMatrices");
    const auto matrices = inverse ? read(*inverse, "MAT4") : elements();
    std::vector<affine> joints;
    for (const auto& joint : skin.at("joints").items()) {
      item("nodes", joint.number(), joint);
      joint.expect(!inverse || joints.size() < matrices.count, "has no matrix");
      const auto& place = where_[joint.number()];
      joints.push_back(inverse ? place.after(of_matrix(matrices[joints.size()], skin)) : place);
    }
    std::vector<affine> result(count, affine{{}, {}});
    std::vector<double> sums(count);
    for (int set = 0; const auto of = attributes.find(fmt::format("JOINTS_{}", set)); ++set) {
      const auto which = read(*of, "VEC4", true),
                 much = read(attributes.at(fmt::format("WEIGHTS_{}", set)), "VEC4");
      of->expect(which.count == count && much.count == count, "is for another number of vertices");
      for (std::size_t i = 0; i < 4 * count; ++i) {
        const double weight = much.values[i];
        if (weight == 0) continue;
        const auto j = static_cast<std::size_t>(which.values[i]);
        if (j >= joints.size()) of->expect(false, fmt::format("names joint {} of {}", j, joints.size()));
        auto& map = result[i / 4];
        sums[i / 4] += weight;
        for (std::size_t k = 0; k < 3; ++k) {
          map.shift[k] += weight * joints[j].shift[k];
          for (std::size_t l = 0; l < 3; ++l) map.rows[k][l] += weight * joints[j].rows[k][l];
        }
      }
    }
    for (std::size_t i = 0; i < count; ++i) {  // sums of bytes, and of floats, are not quite 1
      attributes.expect(sums[i] > 0, "has vertices without joints; repair the skin");
      for (std::size_t k = 0; k < 3; ++k) {
        result[i].shift[k] /= sums[i];
        for (auto& x : result[i].rows[k]) x /= sums[i];
      }
    }
    return result;
  }

  void add_triangles(const object& primitive, std::size_t mode, std::size_t first, bool mirrored) {
    const auto count = result_.vertices.size() - first;
    std::vector<std::uint32_t> corners(count);
    for (std::size_t i = 0; i < count; ++i) corners[i] = static_cast<std::uint32_t>(i);
    if (const auto indices = primitive.find("indices")) {
      corners.clear();
      for (const double index : read(*indices, "SCALAR", true).values) {
        if (index >= static_cast<double>(count))
          indices->expect(false,
                          fmt::format("names vertex {}, but there are {}; it is damaged", index, count));
        corners.push_back(static_cast<std::uint32_t>(index));
      }
    }
    const auto add = [&](std::size_t a, std::size_t b, std::size_t c) {
      if (mirrored) std::swap(b, c);
      for (const auto corner : {a, b, c})
        result_.corners.push_back(static_cast<std::int64_t>(first + corner));
      result_.ends.push_back(result_.corners.size());
    };
    primitive.expect(mode != 4 || corners.size() % 3 == 0,
                     fmt::format("has {} corners, which are no triangles", corners.size()));
    if (mode == 5) {
      for (const auto& [a, b, c] : triangles_of_strips(corners)) add(a, b, c);
    }
    for (std::size_t i = 2; mode == 6 && i < corners.size(); ++i) add(corners[0], corners[i - 1], corners[i]);
    for (std::size_t i = 2; mode == 4 && i < corners.size(); i += 3)
      add(corners[i - 2], corners[i - 1], corners[i]);
  }

  std::filesystem::path folder_;
  json json_;
  object root_{&json_, ""};
  std::optional<std::string_view> bin_;  // of a .glb file
  std::map<std::size_t, std::string> files_;
  std::size_t loaded_, hidden_ = 0;
  std::vector<affine> where_;  // of each node
  std::vector<bool> shown_;
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
