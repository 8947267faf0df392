#pragma once

#include <array>
#include <cstdint>
#include <roost/kernels.hpp>
#include <span>
#include <string_view>

#include "mesh.hpp"

/// \file
/// Where meshes are: how a mesh is rotated, moved and scaled, and where the grid is.

namespace roost::tools {

using vec3 = std::array<double, 3>;

/// A map of points: p -> rows * p + shift.
struct affine {
  std::array<vec3, 3> rows{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  vec3 shift{};

  vec3 operator()(const vec3& p) const;
  /// Applies `other` first, then this.
  affine after(const affine& other) const;
  friend bool operator==(const affine&, const affine&) = default;
};

/// Whether a map turns outward faces inwards.
bool mirrors(const affine& map);

/// How a mesh is put into a scene: a rotation and a scale about its own centre (the middle of its bounding
/// box), and a move.
struct placement {
  std::array<vec3, 3> linear{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  vec3 move{};  ///< in units of the longest side of the scene's first mesh
};

/// Reads a placement: any number of `rotate X Y Z DEGREES` (about this axis), `move X Y Z` and `scale S`,
/// applied from left to right. Moves are in units of the longest side of the scene's first mesh; rotations
/// and scales are about the mesh's own centre. Throws invalid_argument, which names the wrong word.
placement parse_placement(std::string_view text);

/// A box around points.
struct bounds {
  vec3 low, high;  ///< low > high: no point

  bounds();
  void add(const vec3& p);
  void add(const bounds& other);
  bool empty() const { return low[0] > high[0]; }
  vec3 centre() const;
  double longest_side() const;
};

/// The box around the corners of a mesh's triangles, in the file's coordinates (origin + scale * vertex) or
/// mapped by `where`.
bounds bounds_of(const mesh& surface);
bounds bounds_of(const mesh& surface, const affine& where);

/// Where a placement puts a mesh with this box. `unit`: of its moves. `onto`: if not null, the mesh is first
/// fitted to the centre and the longest side of this box.
affine place_mesh(const bounds& of_mesh, const placement& how, double unit, const bounds* onto = nullptr);

/// The cube of a grid: `side` voxels a side, with edges of `length` about `centre`. A point goes to ((p -
/// centre) / length + 0.5) * side, in voxels.
struct frame {
  std::uint32_t side = 0;
  vec3 centre{};
  double length = 1;
};

/// The frame whose cube the longest side of a box fills. (A single point is in the middle.)
frame frame_around(const bounds& box, std::uint32_t side);

/// Maps the vertices of a mesh, moved by `where` from the file's coordinates, to units of 1/256 of a voxel.
affine to_snapped(const frame& grid, const affine& where, const mesh& of = {});

}  // namespace roost::tools
