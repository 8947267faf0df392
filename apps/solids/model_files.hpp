#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mesh_text.hpp"
#include "placement.hpp"

/// \file
/// Readers of 3MF and AMF, which are XML, mostly in a ZIP archive: objects that are placed once, several
/// times or not at all.

struct zip;

namespace roost::tools {

/// What such a file holds, in its unit.
struct model_file {
  polygons shape;
  std::string unit = "millimeter";  ///< its name, as the file has it
};

/// A part of a package by its name, or nothing.
using part_source = std::function<std::optional<std::string>(std::string_view name)>;

/// Each throws invalid_argument, without the file's name, for an invalid file, and for one that needs what is
/// not read (extensions of 3MF, curved triangles of AMF): docs/voxels.md says what that is.
model_file read_3mf(const part_source& parts);
model_file read_amf(std::string_view xml);

/// The parts of a ZIP archive, by their names as the Open Packaging Conventions compare them: without a slash
/// at the beginning, whatever their case. All that is read from it has at most 4 GiB. Throws
/// invalid_argument, without the file's name, if it is no archive, is damaged or encrypted.
class zip_archive {
 public:
  explicit zip_archive(std::string_view bytes);  ///< which have to stay
  ~zip_archive();
  zip_archive(const zip_archive&) = delete;
  zip_archive& operator=(const zip_archive&) = delete;

  std::optional<std::string> read(std::string_view name);
  /// The part whose name has this ending; throws unless there is exactly one.
  std::string read_only_one(std::string_view ending);

 private:
  zip* zip_ = nullptr;
  std::map<std::string, std::vector<std::uint64_t>> entries_;
  std::uint64_t left_ = std::uint64_t{1} << 32;
};

/// The name of a part, as names are compared.
std::string part_name(std::string_view name);

/// Objects of meshes and of other objects, and where they are placed.
class assembly {
 public:
  struct placed {
    std::string object;
    affine where;
  };
  struct object {
    std::string said;  ///< what messages call it
    std::vector<vec3> vertices;
    std::vector<std::int64_t> corners;  ///< of triangles
    std::vector<placed> components;
    std::string left_out;  ///< why, if it is not a part of the solid
    std::uint64_t size = 0;
    bool open = false;
  };
  std::map<std::string, object> objects;

  /// All triangles. Throws for an object that is not there, is a part of itself or more than 100 levels deep,
  /// for a triangle of a vertex that is not there, and for more than 2^27 vertices of all copies.
  polygons build(std::span<const placed> items);

 private:
  std::uint64_t measure(const std::string& name, int depth);
  void place(const object& what, const affine& where, polygons& result, std::map<std::string, int>& left_out);
};

}  // namespace roost::tools
