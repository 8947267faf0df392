#pragma once

#include <span>
#include <vector>

#include "scene.hpp"

/// \file
/// The surface of voxels as a closed mesh of triangles.

namespace roost::tools {

/// Triangles that look outwards, and where their corners are, in voxels of the grid.
struct surface_mesh {
  std::vector<vec3> vertices;
  std::vector<triangle> triangles;
};

/// The surface of a solid: two triangles for each side of a voxel that can be seen. `exposed`: the voxels
/// that have such sides, as voxel_word has them. What is outside of the grid is outside of the solid, so the
/// surface is closed at its border, too.
///
/// `smooth`: corners move to where the surface may lie, at most half a voxel along each axis, so that steps
/// disappear (surface nets, relaxed so that the volume stays as it is). Otherwise they are corners of voxels.
///
/// Each edge belongs to two triangles, which go along it in opposite ways. Voxels that touch at an edge or a
/// corner only do not hang together: each has a vertex of its own there. (Only where two such contacts lie
/// across from each other may an edge belong to four triangles, two each way.)
///
/// Takes about 200 bytes and a microsecond for each side. Throws invalid_argument for more than 2^31 sides.
surface_mesh mesh_of_voxels(const solid_columns& solid, std::span<const std::uint64_t> exposed, bool smooth);

/// The sides of voxels that can be seen: four corners each, which go around to the left as seen from outside.
struct seen_sides {
  std::vector<std::uint64_t> corners;  ///< x, y and z, 16 bits each: x << 32 | y << 16 | z
  /// Which edge of the cube of eight voxels' centres about a corner the side crosses: 4 * axis + u + 2 * v
  /// goes along an axis, on the sides u and v of the next two axes.
  std::vector<std::uint8_t> edges;
};
seen_sides sides_of(const solid_columns& solid, std::span<const std::uint64_t> exposed);

/// Whether voxel (x, y, z) is inside of a solid; those outside of the grid are not.
bool is_inside(const solid_columns& solid, std::int64_t x, std::int64_t y, std::int64_t z);

}  // namespace roost::tools
