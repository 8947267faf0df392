#include "grid_choice.hpp"

#include <algorithm>
#include <cmath>

namespace roost::tools {
namespace {

/// The greatest distance that a box reaches from the centre of a grid along an axis.
double reach_of(const frame& grid, const bounds& box) {
  double reach = 0;
  for (std::size_t k = 0; k < 3; ++k)
    reach = std::max({reach, std::abs(box.high[k] - grid.centre[k]), std::abs(box.low[k] - grid.centre[k])});
  return reach;
}

/// Whether a box that extends beyond a grid comes within a voxel of it.
bool comes_near(const frame& grid, const bounds& box) {
  const double half = grid.length / 2 + grid.length / grid.side;
  for (std::size_t k = 0; k < 3; ++k) {
    if (box.low[k] > grid.centre[k] + half || box.high[k] < grid.centre[k] - half) return false;
  }
  return true;
}

/// The intersection of all boxes, or nothing if it is at most a point.
bounds shared_by(std::span<const bounds> boxes) {
  bounds result = boxes.front();
  for (const bounds& box : boxes) {
    for (std::size_t k = 0; k < 3; ++k) {
      result.low[k] = std::max(result.low[k], box.low[k]);
      result.high[k] = std::min(result.high[k], box.high[k]);
    }
  }
  for (std::size_t k = 0; k < 3; ++k) {
    if (result.low[k] > result.high[k]) return {};
  }
  return result.longest_side() > 0 ? result : bounds();
}

}  // namespace

bool stays_in_first(solid_op op) { return op == solid_op::difference || op == solid_op::intersection; }

bool reaches_out_of(const frame& grid, const bounds& box) {
  return reach_of(grid, box) > grid.length * (0.5 + 1e-9);
}

bool needs_layer(const frame& grid, std::span<const bounds> boxes) {
  return std::ranges::any_of(
      boxes, [&](const bounds& box) { return reaches_out_of(grid, box) && comes_near(grid, box); });
}

frame with_layer(frame grid) {
  grid.length *= grid.side / (grid.side - 2.0);
  return grid;
}

frame within_reach(frame grid, const bounds& box) {
  constexpr double spare = 256;  // for rounding errors
  const double least = reach_of(grid, box) / ((farthest_steps - spare) / (256.0 * grid.side) - 0.5);
  grid.length = std::max(grid.length, least);
  return grid;
}

frame frame_of_result(solid_op op, std::span<const bounds> boxes, std::uint32_t side) {
  bounds all;
  for (const bounds& box : boxes) all.add(box);
  const frame whole = frame_around(all, side);
  if (!stays_in_first(op) || side < 4) return whole;
  bounds needed = op == solid_op::intersection ? shared_by(boxes) : boxes.front();
  if (needed.empty()) needed = boxes.front();
  frame result = frame_around(needed, side);
  if (std::ranges::any_of(
          boxes, [&](const bounds& box) { return reaches_out_of(result, box) && comes_near(result, box); }))
    result.length *= side / (side - 2.0);
  result = within_reach(result, all);
  return result.length < whole.length ? result : whole;
}

}  // namespace roost::tools
