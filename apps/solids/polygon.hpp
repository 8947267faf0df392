#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

/// \file
/// Cutting polygons into triangles.

namespace roost::tools {

/// Cuts a polygon into size - 2 triangles, each of three positions in `corners`, with the orientation of the
/// polygon. The polygon may be concave, not quite planar, touch itself, or have corners on straight sides or
/// the same corner twice; every side is a side of exactly one triangle. A round one of 100,000 corners takes
/// a fraction of a second.
///
/// Returns false if it crosses itself, so that no cut is right; the triangles are then arbitrary.
bool cut_polygon(std::span<const std::array<double, 3>> corners,
                 std::vector<std::array<std::uint32_t, 3>>& triangles);

}  // namespace roost::tools
