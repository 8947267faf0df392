#pragma once

#include <span>

#include "scene.hpp"

/// \file
/// Which grid a result needs.

namespace roost::tools {

/// The grid of `side` voxels a side for what an operation makes of meshes with these boxes, from left to
/// right. It encloses what the result can need: the first box for a difference; what all boxes share for an
/// intersection, or the first one if they share nothing; all boxes for others, in grids of fewer than 4
/// voxels a side, and where that is no coarser. Where another mesh reaches out of it, a layer of voxels
/// around the box shows what lies there, so that surfaces and their classes are as in a larger grid. It is
/// larger, too, if a corner would lie too far outside of it (farthest_steps).
frame frame_of_result(solid_op op, std::span<const bounds> boxes, std::uint32_t side);

/// The grid, or one about the same centre that is so much larger that no corner of a box lies further than
/// farthest_steps.
frame within_reach(frame grid, const bounds& box);

/// Whether one of the boxes that reach out of a grid has something within a voxel of it, so that a layer
/// around the result must show what lies there: with_layer().
bool needs_layer(const frame& grid, std::span<const bounds> boxes);

/// The grid with a layer of voxels around what it enclosed. It has at least 4 voxels a side.
frame with_layer(frame grid);

/// Whether a box reaches out of a grid, by more than rounding.
bool reaches_out_of(const frame& grid, const bounds& box);

/// Whether the result of an operation lies in the box of the first mesh.
bool stays_in_first(solid_op op);

}  // namespace roost::tools
