#include "solution.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace roost::tools {
namespace {

constexpr double degree = std::numbers::pi / 180, degrees = 180 / std::numbers::pi;

}  // namespace

sky_point point_of(sky_vector direction) {
  const double ra = std::atan2(direction.y, direction.x) * degrees;
  return {ra < 0 ? ra + 360 : ra,
          std::atan2(static_cast<double>(direction.z), std::hypot(direction.x, direction.y)) * degrees};
}

sky_position position_of(const pointing& at, star_fields::size size) {
  const auto middle = point_of(at.z);
  const compass here(at.z);
  const double roll = std::atan2(-dot(at.x, here.north), -dot(at.y, here.north)) * degrees;
  return {middle.ra,
          middle.dec,
          roll < 0 ? roll + 360 : roll,
          2 * std::atan(size.width / 2 / at.focal) * degrees,
          3600 * degrees / at.focal,
          dot(cross(at.x, at.y), at.z) < 0};
}

sky_vector direction_of(double ra, double dec) {
  return {static_cast<float>(std::cos(dec * degree) * std::cos(ra * degree)),
          static_cast<float>(std::cos(dec * degree) * std::sin(ra * degree)),
          static_cast<float>(std::sin(dec * degree))};
}

bool spread(std::vector<centroid>& all, star_fields::size size) {
  constexpr int side = 4, crowded = side * side / 2;
  constexpr std::size_t brightest = 24;  // whose quads are looked up
  if (all.size() <= brightest) return false;
  const auto part = [](float at, float length) {
    return std::clamp(static_cast<int>((at / length + 0.5f) * side), 0, side - 1);
  };
  std::vector<std::size_t> seen(side * side), order(all.size()), rank;
  for (const auto& c : all)
    rank.push_back(seen[static_cast<std::size_t>(part(c.y, size.height) * side + part(c.x, size.width))]++);
  std::set<int> parts;
  for (std::size_t i = 0; i < brightest; ++i)
    parts.insert(part(all[i].y, size.height) * side + part(all[i].x, size.width));
  if (parts.size() > crowded) return false;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return rank[i]; });
  std::vector<centroid> sorted;
  for (const auto i : order) sorted.push_back(all[i]);
  all = std::move(sorted);
  return true;
}

}  // namespace roost::tools
