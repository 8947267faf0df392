#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
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

/// A unit of length.
struct length_unit {
  std::string name;   ///< `millimeter`, `inch` ...; empty: the file has no unit
  double metres = 0;  ///< its length
  explicit operator bool() const { return metres != 0; }
  friend bool operator==(const length_unit&, const length_unit&) = default;
};

/// A surface: every corner of every triangle names a vertex, and every coordinate is finite. Vertices are
/// floats near 0; in their file they are at origin + scale * vertex.
struct mesh {
  std::vector<point> vertices;
  std::vector<triangle> triangles;
  std::array<double, 3> origin{};  ///< 0 if the file's coordinates are near 0, relative to its size
  double scale = 1;
  length_unit unit{};                ///< of the file's coordinates
  double blur = 0;                   ///< how far a corner may be from its position in the file
  std::vector<std::string> notes{};  ///< what was left out of the file, and what is unusual in it
};

/// Reads a mesh: OBJ, PLY (with triangle strips), STL, OFF, glTF 2.0, 3DS, 3MF, AMF, COLLADA or FBX, as the
/// name ends; PLY and .glb files also by how they begin. Polygons become triangles, points and lines are left
/// out, and all parts of a scene are put in their positions; mirrored parts still face outwards. No file is
/// turned: axes are those of the file. Coordinates are read as doubles, but by assimp, which reads the last
/// two formats, as floats. OBJ, STL, OFF, PLY and AMF files of gzip are decompressed.
///
/// The unit is that of 3MF, AMF and FBX files; glTF is in metres, and so are COLLADA files, whose coordinates
/// assimp converts. Files of other formats have none.
///
/// Throws roost::invalid_argument, one line that starts with the name of the file, for a file that does not
/// exist, is not a mesh, has no triangles, names a vertex that does not exist, has a coordinate that is not
/// finite, or needs what is not read (an extension, compression, a skeleton in a format other than glTF).
mesh read_mesh(const std::filesystem::path& file);

/// The files of a folder with the endings of formats that are read, in the order of their names, with
/// numbers by value (2 before 10). Throws roost::invalid_argument if there is none, or the folder cannot be
/// read.
std::vector<std::filesystem::path> mesh_files_in(const std::filesystem::path& folder);

/// The index that ends one triangle strip of a list and begins the next: -1 in the file.
inline constexpr std::uint32_t strip_end = 0xffffffff;

/// The triangles of a list of triangle strips, all with the orientation of the first one of their strip.
/// Triangles that name a vertex twice, which strips use to turn corners, are left out.
std::vector<triangle> triangles_of_strips(std::span<const std::uint32_t> indices);

}  // namespace roost::tools
