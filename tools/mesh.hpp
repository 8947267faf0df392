#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

/// \file
/// Triangle meshes, and the reader of their files.

namespace roost::tools {

struct point {
  float x, y, z;
  friend bool operator==(const point&, const point&) = default;
};

/// The corners of a triangle: three indices of vertices.
using triangle = std::array<std::uint32_t, 3>;

/// A surface: every corner of every triangle names a vertex, and every coordinate is finite.
struct mesh {
  std::vector<point> vertices;
  std::vector<triangle> triangles;
};

/// Reads a mesh of any format that assimp knows (OBJ, PLY, STL, 3DS, glTF ...), PLY with triangle
/// strips included. Polygons become triangles, points and lines are left out, all parts of a scene
/// are put where the scene has them.
///
/// Throws roost::invalid_argument, one line that starts with the name of the file, for a file that
/// is not there, is no mesh, has no triangles, names a vertex that it has not, or has a coordinate
/// that is not finite.
mesh read_mesh(const std::filesystem::path& file);

/// The files of a folder whose names end as those of formats that assimp knows, in the order of their names,
/// numbers by their values (2 before 10). Throws roost::invalid_argument if there is none, or the folder
/// cannot be read.
std::vector<std::filesystem::path> mesh_files_in(const std::filesystem::path& folder);

/// The index that ends one triangle strip of a list and begins the next: -1 in the file.
inline constexpr std::uint32_t strip_end = 0xffffffff;

/// The triangles of a list of triangle strips, all with the orientation of the first of their
/// strip. Triangles that name a vertex twice, which strips use to turn corners, are left out.
std::vector<triangle> triangles_of_strips(std::span<const std::uint32_t> indices);

}  // namespace roost::tools
