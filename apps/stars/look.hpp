#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "sky.hpp"

/// \file
/// What numbers of a catalogue seem to be.

namespace roost::tools {

/// The units that positions, which should be in degrees, seem to have; empty if degrees are plausible.
inline std::string_view look_of(const std::vector<double>& ra, const std::vector<double>& dec) {
  constexpr std::size_t few = 10;  // too few to tell
  constexpr double pi = std::numbers::pi, reach = 1.0001;
  if (ra.size() < few) return {};
  const auto [west, east] = std::ranges::minmax(ra);
  const auto [south, north] = std::ranges::minmax(dec);
  const bool within = std::max(-south, north) <= pi / 2 * reach;  // possible as radians
  if (within && west >= -pi * reach && east <= 2 * pi * reach) return "radians";
  if (within && std::max(-south, north) > 1.4 && east - west > 30)
    return "declinations in radians and right ascensions in degrees";
  if (west < 0 || east > 24) return {};
  // All hours, or a much smaller extent from west to east than from south to north.
  const double across = (east - west) * std::cos((south + north) / 2 * degree);
  if ((west < 1 && east > 23) || across < (north - south) / 4)
    return east <= 2 * pi * reach && west < 0.5 && east > 5.5 ? "right ascensions in radians" : "hours";
  return {};
}

}  // namespace roost::tools
