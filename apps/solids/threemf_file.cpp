#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <roost/error.hpp>
#include <set>
#include <utility>

#include "model_files.hpp"
#include "xml_file.hpp"

namespace roost::tools {
namespace {

constexpr std::string_view core = "http://schemas.microsoft.com/3dmanufacturing/core/2015/02",
                           before_core = "http://schemas.microsoft.com/3dmanufacturing/2013/01",
                           production = "http://schemas.microsoft.com/3dmanufacturing/production/2015/06",
                           slices = "http://schemas.microsoft.com/3dmanufacturing/slice/2015/07",
                           start = "http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel";
/// Extensions that change no shape. (Slices may stand for a coarse mesh, which then says so.)
constexpr std::string_view harmless[] = {core, production, slices,
                                         "http://schemas.microsoft.com/3dmanufacturing/material/2015/02",
                                         "http://schemas.microsoft.com/3dmanufacturing/trianglesets/2021/07"};

bool is_harmless(std::string_view space) { return std::ranges::find(harmless, space) != std::end(harmless); }

/// What an extension is called whose shapes are not read: a part of the name of its namespace.
std::string_view shape_of(std::string_view space) {
  static constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"/beamlattice/", "beam lattices"},     {"/booleanoperations/", "Boolean operations"},
      {"/displacement/", "displaced meshes"}, {"/volumetric/", "volumetric shapes"},
      {"/implicit/", "implicit functions"},   {"/securecontent/", "encrypted content"},
      {"alternatives/", "alternative parts"}, {"/tetrahedron/", "tetrahedra"}};
  for (const auto& [part, name] : known) {
    if (space.find(part) != space.npos) return name;
  }
  return {};
}

[[noreturn]] void refuse_extension(std::string_view how, std::string_view space) {
  refuse_because(fmt::format("{} {} ('{}'), not read here; export a mesh of triangles", how,
                             shape_of(space).empty() ? "an extension" : shape_of(space), space));
}

affine transform_in(std::string_view text) {
  affine result;
  std::size_t n = 0;
  for (auto word = take_word(text); !word.empty(); word = take_word(text), ++n) {
    // Rows of a matrix on the right of points: columns of ours.
    if (n < 12) (n < 9 ? result.rows[n % 3][n / 3] : result.shift[n % 3]) = xml_number(word, "transform");
  }
  if (n != 12) refuse_because(fmt::format("a transform has {} numbers, and not 12", n));
  return result;
}

class package {
 public:
  explicit package(const part_source& parts) : parts_(parts) {}

  model_file read() {
    std::string root;
    read_part("_rels/.rels", [&](const xml_tag& tag) { find_model(tag, root); }, [](auto...) {});
    if (root.empty()) refuse_because("relates to no 3D model (_rels/.rels), and is not a 3MF file");
    needed_.push_back(root);
    for (std::set<std::string> known; !needed_.empty();) {
      part_ = std::exchange(needed_.back(), {});
      needed_.pop_back();
      if (!known.insert(part_).second) continue;
      space_.reset();
      object_ = nullptr;
      if (!read_part(
              part_, [&](const xml_tag& tag) { begin(tag, part_ == root); },
              [&](auto name, auto text) { end(name, text); }))
        refuse_because(fmt::format("its part '{}' is missing", part_.substr(0, 80)));
    }
    for (const auto* settings : {"Metadata/Slic3r_PE_model.config", "Metadata/model_settings.config"})
      read_part(settings, expect_no_tools, [](auto...) {});
    if (items_.empty()) refuse_because("builds nothing: it has no <item> that is printed");
    model_file result{objects_.build(items_), *unit_};
    result.shape.notes.insert(result.shape.notes.end(), notes_.begin(), notes_.end());
    return result;
  }

 private:
  /// False if there is no such part.
  bool read_part(std::string_view name, auto begin, auto end) {
    const auto xml = parts_(name);
    if (!xml) return false;
    try {
      read_xml(*xml, begin, end);
    } catch (const invalid_argument& e) {
      refuse_because(fmt::format("part {}: {}", name.substr(0, 80), e.what()));
    }
    return true;
  }

  static void find_model(const xml_tag& tag, std::string& root) {
    if (tag.name != "Relationship" || tag.find("Type").value_or("") != start) return;
    if (tag.find("TargetMode").value_or("Internal") != "Internal")
      refuse_because("its model is in another file");
    const auto target = part_name(tag["Target"]);
    if (!root.empty() && root != target) refuse_because("relates to several models, and one is read");
    root = target;
  }

  /// In settings of PrusaSlicer and Bambu Studio: for 3MF, their modifiers, supports and negative volumes are
  /// meshes like all others.
  static void expect_no_tools(const xml_tag& tag) {
    const auto key = tag.find("key").value_or("");
    auto kind = tag.find(tag.name == "part" ? "subtype" : "value").value_or("");
    if (tag.name != "part" && key != "volume_type" && (key != "modifier" || kind == "0")) return;
    if (kind != "ModelPart" && kind != "normal_part" && !kind.empty())
      refuse_because(
          fmt::format("has a {} of a slicer, which is no part of the solid ({}); remove it, or export STL",
                      key == "modifier" ? key : kind, tag.name));
  }

  void begin(const xml_tag& tag, bool in_root) {
    const auto what = tag.name;
    if (!space_) return begin_model(tag);
    if (tag.space != *space_) return begin_other(tag);
    const bool inside = object_ != nullptr;
    if (what == "object" && !inside) {
      begin_object(tag);
    } else if (what == "vertex" && inside) {
      object_->vertices.push_back(
          {xml_number(tag["x"], "x"), xml_number(tag["y"], "y"), xml_number(tag["z"], "z")});
    } else if (what == "triangle" && inside) {
      for (const auto* corner : {"v1", "v2", "v3"})
        object_->corners.push_back(xml_index(tag[corner], corner));
    } else if (what == "component" && inside) {
      object_->components.push_back(placed(tag));
    } else if (what == "object" || what == "vertex" || what == "triangle" || what == "component") {
      refuse_because(fmt::format("<{}> is not expected here", what));
    } else if (what == "item" && in_root) {
      if (tag.find("printable").value_or("1") != "0") {
        items_.push_back(placed(tag));
      } else {
        notes_.insert("items that are not printed are left out (printable=\"0\")");
      }
    } else if (what == "metadata") {
      metadata_ = tag.find("name").value_or("");
    }
  }

  void begin_model(const xml_tag& tag) {
    space_ = tag.space;
    if (tag.name != "model" || (!space_->empty() && *space_ != core && *space_ != before_core))
      refuse_because(fmt::format("begins with <{}> of '{}', and not with a model of 3MF", tag.name, *space_));
    const std::string unit(tag.find("unit").value_or("millimeter"));
    if (unit_.value_or(unit) != unit)
      refuse_because(fmt::format("is in {}, and another part in {}; write both in one unit", unit, *unit_));
    unit_ = unit;
    auto required = tag.find("requiredextensions").value_or("");
    for (auto prefix = take_word(required); !prefix.empty(); prefix = take_word(required)) {
      const auto space = tag.prefixes.find(prefix);
      if (space == tag.prefixes.end())
        refuse_because(fmt::format("requires '{}', which has no namespace", prefix));
      if (!is_harmless(space->second)) refuse_extension("requires", space->second);
    }
  }

  void begin_object(const xml_tag& tag) {
    const auto id = tag["id"], type = tag.find("type").value_or("model");
    const auto [at, added] = objects_.objects.try_emplace(key_of(part_, id));
    if (!added) refuse_because(fmt::format("there are two objects {}", id));
    object_ = &at->second;
    object_->said = fmt::format("object {}", id);
    if (type == "support" || type == "solidsupport" || type == "other") {
      object_->left_out = fmt::format("of type {}", type);
    } else if (type != "model" && type != "surface") {
      refuse_because(fmt::format("object {} is of type '{}', which 3MF does not have", id, type));
    }
    for (const char** at_ = tag.given; *at_ != nullptr; at_ += 2) {  // of slices, or alternatives
      if (std::string_view(at_[0]).ends_with("\nmeshresolution") ||
          std::string_view(at_[0]).ends_with("\nmodelresolution")) {
        if (trimmed(at_[1]) != "fullres")
          refuse_because(
              fmt::format("the mesh of object {} is '{}', in place of a shape that is not read here", id,
                          trimmed(at_[1])));
      }
    }
  }

  /// An element of an extension.
  void begin_other(const xml_tag& tag) {
    if (object_ == nullptr || is_harmless(tag.space)) return;
    if (!shape_of(tag.space).empty()) refuse_extension("has", tag.space);
    notes_.insert(fmt::format("<{}> of '{}' is left out", tag.name, tag.space));
  }

  void end(std::string_view name, std::string_view text) {
    // Cura's meshes that are tools, and no parts.
    static constexpr std::string_view tools[] = {"cura:infill_mesh", "cura:cutting_mesh", "cura:support_mesh",
                                                 "cura:anti_overhang_mesh"};
    if (name == "metadata" && object_ != nullptr && text == "True" &&
        std::ranges::find(tools, metadata_) != std::end(tools))
      object_->left_out = fmt::format("each a {}", metadata_);
    if (name == "object") object_ = nullptr;
  }

  static std::string key_of(std::string_view part, std::string_view id) {
    return fmt::format("{}\n{}", part, id);
  }

  /// Which object a component or an item places, and where.
  assembly::placed placed(const xml_tag& tag) {
    auto part = part_;
    if (const auto path = tag.find("path", production)) needed_.push_back(part = part_name(*path));
    const auto transform = tag.find("transform");
    return {key_of(part, tag["objectid"]), transform ? transform_in(*transform) : affine{}};
  }

  const part_source& parts_;
  assembly objects_{};
  std::vector<assembly::placed> items_{};
  std::optional<std::string> unit_{};
  std::vector<std::string> needed_{};  // parts that others refer to
  std::set<std::string> notes_{};
  // Of the part that is being read: its name, its namespace once the model has begun, its object.
  std::string part_{};
  std::optional<std::string> space_{};
  assembly::object* object_ = nullptr;
  std::string metadata_{};
};

}  // namespace

model_file read_3mf(const part_source& parts) { return package(parts).read(); }

}  // namespace roost::tools
