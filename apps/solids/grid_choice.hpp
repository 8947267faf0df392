#pragma once

#include <span>

#include "scene.hpp"

/// \file
/// The grid that a result needs.

namespace roost::tools {

/// The grid of `side` voxels a side for the result of an operation on meshes with these boxes, from left to
/// right. It encloses what the result can need: the first box for a difference; the intersection of all boxes
/// for an intersection, or the first box if that is empty; all boxes for other operations, for grids of fewer
/// than 4 voxels a side, and if that is no coarser. If another mesh extends beyond it, a layer of voxels
/// around the box shows what is there, so that surfaces and their classes are as in a larger grid. The grid
/// is also larger if a corner would be too far outside (farthest_steps).
frame frame_of_result(solid_op op, std::span<const bounds> boxes, std::uint32_t side);

/// The grid, or one with the same centre that is large enough that no corner of a box is farther away than
/// farthest_steps.
frame within_reach(frame grid, const bounds& box);

/// Whether one of the boxes that extend beyond a grid comes within a voxel of it, so that a layer around the
/// result must show what is there: with_layer().
bool needs_layer(const frame& grid, std::span<const bounds> boxes);

/// The grid with a layer of voxels around its contents. It has at least 4 voxels a side.
frame with_layer(frame grid);

/// Whether a box extends beyond a grid by more than rounding.
bool reaches_out_of(const frame& grid, const bounds& box);

/// Whether the result of an operation is always in the box of the first mesh.
bool stays_in_first(solid_op op);

}  // namespace roost::tools
