#pragma once

#include <span>
#include <vector>

#include "scene.hpp"

/// \file
/// The surface of voxels as a closed mesh of triangles.

namespace roost::tools {

/// Triangles that face outwards, and the positions of their corners, in voxels of the grid.
struct surface_mesh {
  std::vector<vec3> vertices;
  std::vector<triangle> triangles;
};

/// The surface of a solid: two triangles for each exposed side of a voxel. `exposed`: the voxels with such
/// sides, as voxel_word. Everything outside the grid is outside the solid, so the surface is closed at its
/// border, too.
///
/// `smooth`: corners move to where the surface may be, at most half a voxel along each axis, so that steps
/// disappear (surface nets, relaxed so that the volume stays as it is). Otherwise they are corners of voxels.
///
/// Each edge belongs to two triangles, which traverse it in opposite directions. Voxels that touch only at an
/// edge or a corner are not connected: each has a vertex of its own there. (Only if two such contacts are
/// opposite each other may an edge belong to four triangles, two in each direction.)
///
/// Takes about 200 bytes and a microsecond for each side. Throws invalid_argument for more than 2^31 sides.
surface_mesh mesh_of_voxels(const solid_columns& solid, std::span<const std::uint64_t> exposed, bool smooth);

/// The exposed sides of voxels: four corners each, counter-clockwise as seen from outside.
struct seen_sides {
  std::vector<std::uint64_t> corners;  ///< x, y and z, 16 bits each: x << 32 | y << 16 | z
  /// Which edge of the cube of eight voxels' centres about a corner the side crosses: 4 * axis + u + 2 * v is
  /// parallel to an axis, on the sides u and v of the next two axes.
  std::vector<std::uint8_t> edges;
};
seen_sides sides_of(const solid_columns& solid, std::span<const std::uint64_t> exposed);

/// Whether voxel (x, y, z) is inside a solid; voxels outside the grid are not.
bool is_inside(const solid_columns& solid, std::int64_t x, std::int64_t y, std::int64_t z);

}  // namespace roost::tools
