#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <roost/error.hpp>
#include <set>
#include <utility>

#include "model_files.hpp"
#include "xml_file.hpp"

namespace roost::tools {
namespace {

/// A turn about one of the axes; exact for right angles.
affine turn(std::size_t axis, double degrees) {
  const double angle = degrees * std::numbers::pi / 180;
  double c = std::cos(angle), s = std::sin(angle);
  if (std::remainder(degrees, 90) == 0) c = std::round(c), s = std::round(s);
  const auto u = (axis + 1) % 3, v = (axis + 2) % 3;
  affine result;
  result.rows[u][u] = result.rows[v][v] = c;
  result.rows[u][v] = -s;
  result.rows[v][u] = s;
  return result;
}

class amf_reader {
 public:
  model_file read(std::string_view xml) {
    read_xml(xml, [&](const xml_tag& tag) { begin(tag); }, [&](auto name, auto text) { end(name, text); });
    std::vector<assembly::placed> items;  // those that no other one places
    for (const auto& id : order_) {
      if (!placed_.contains(id)) items.push_back({id, {}});
    }
    if (items.empty() && !order_.empty())
      refuse_because("each of its constellations is a part of another one");
    model_file result{parts_.build(items), unit_};
    result.shape.notes.insert(result.shape.notes.end(), notes_.begin(), notes_.end());
    return result;
  }

 private:
  /// What an <instance> says. Scales, mirrors and `printed` are PrusaSlicer's.
  struct instance {
    vec3 move{}, turns{}, scales{1, 1, 1}, mirrors{1, 1, 1};
    double scale = 1, printed = 1;
  };

  void begin(const xml_tag& tag) {
    const auto what = tag.name;
    if (!std::exchange(begun_, true)) {
      if (what != "amf")
        refuse_because(fmt::format("begins with <{}>, and not with <amf>", what.substr(0, 40)));
      unit_ = tag.find("unit").value_or("millimeter");
    } else if (what == "object" || what == "constellation") {
      if (object_ != nullptr) refuse_because(fmt::format("<{}> is in an object", what));
      const std::string id(tag["id"]);
      const auto [at, added] = parts_.objects.try_emplace(id);
      if (!added) refuse_because(fmt::format("there are two objects {}", id.substr(0, 40)));
      order_.push_back(id);
      object_ = &at->second;
      object_->said = fmt::format("{} {}", what, id.substr(0, 40));
    } else if (what == "metadata") {
      metadata_ = tag.find("type").value_or("");
    } else if (what == "vertex" || what == "triangle") {
      values_.fill(NAN);
    } else if (object_ == nullptr) {
      if (what == "mesh" || what == "instance") refuse_because(fmt::format("<{}> is in no object", what));
    } else if (what == "mesh") {
      first_ = static_cast<std::int64_t>(object_->vertices.size());
    } else if (what == "volume") {
      volume_ = object_->corners.size();
      tool_ = tag.find("type").value_or("") == "support" ? "support" : "";
    } else if (what == "instance") {
      here_ = {};
      object_->components.push_back({*placed_.emplace(tag["objectid"]).first, {}});
    } else if (what == "edge" || what == "normal") {
      refuse_because(fmt::format("has curved triangles (<{}>), not read here; export flat ones", what));
    }
  }

  void end(std::string_view what, std::string_view text) {
    if (what == "metadata") return end_metadata(text);
    if (object_ == nullptr) return;
    const auto number = [&](std::string_view name) { return xml_number(text, name); };
    const auto index = [&](std::string_view name) { return static_cast<double>(xml_index(text, name)); };
    if (put(what, values_, {"x", "y", "z"}, number) || put(what, values_, {"v1", "v2", "v3"}, index) ||
        put(what, here_.move, {"deltax", "deltay", "deltaz"}, number) ||
        put(what, here_.turns, {"rx", "ry", "rz"}, number) ||
        put(what, here_.scales, {"scalex", "scaley", "scalez"}, number) ||
        put(what, here_.mirrors, {"mirrorx", "mirrory", "mirrorz"}, number))
      return;
    if (what == "scale") here_.scale = number(what);
    if (what == "printable") here_.printed = number(what);
    if (what == "instance") end_instance();
    if (what == "object" || what == "constellation") object_ = nullptr;
    if (what == "volume" && !tool_.empty()) {
      object_->corners.resize(volume_);
      notes_.insert(fmt::format("volumes that are a {} are left out", tool_));
    }
    if (what != "vertex" && what != "triangle") return;
    if (std::ranges::any_of(values_, [](double x) { return std::isnan(x); }))
      refuse_because(fmt::format("<{}> has fewer than three numbers", what));
    if (what == "vertex") return object_->vertices.push_back(values_);
    for (const auto corner : values_) object_->corners.push_back(first_ + static_cast<std::int64_t>(corner));
  }

  /// Puts a value where its name is among these.
  static bool put(std::string_view what, vec3& to, const std::array<std::string_view, 3>& names, auto value) {
    const auto found = std::ranges::find(names, what);
    if (found == names.end()) return false;
    to[static_cast<std::size_t>(found - names.begin())] = value(what);
    return true;
  }

  /// Slic3r and PrusaSlicer say here that they made the file, and which volumes are no parts of the solid.
  void end_metadata(std::string_view text) {
    if (metadata_ == "cad" && text.starts_with("Slic3r")) radians_ = true;
    if (metadata_ == "slic3r.modifier" && text == "1" && tool_.empty()) tool_ = "modifier";
    if (metadata_ != "slic3r.volume_type" || text == "ModelPart") return;
    tool_ = text;
    if (tool_ == "NegativeVolume")
      refuse_because("has a negative volume, which is not taken off; export it as STL");
  }

  void end_instance() {
    affine where;
    for (std::size_t k = 0; k < 3; ++k) where.rows[k][k] = here_.scale * here_.scales[k] * here_.mirrors[k];
    for (std::size_t axis = 0; axis < 3; ++axis)
      where = turn(axis, here_.turns[axis] * (radians_ ? 180 / std::numbers::pi : 1)).after(where);
    where.shift = here_.move;
    object_->components.back().where = where;
    if (here_.printed != 0) return;
    object_->components.pop_back();
    notes_.insert("instances that are not printed are left out");
  }

  assembly parts_;
  std::vector<std::string> order_;
  std::set<std::string> placed_, notes_;
  std::string unit_, metadata_, tool_;
  bool begun_ = false, radians_ = false;  // Slic3r writes radians where AMF means degrees
  assembly::object* object_ = nullptr;    // this one is being read
  std::int64_t first_ = 0;                // vertex of its mesh
  std::size_t volume_ = 0;                // where its volume's corners begin
  vec3 values_{};
  instance here_;
};

}  // namespace

model_file read_amf(std::string_view xml) { return amf_reader().read(xml); }

}  // namespace roost::tools
