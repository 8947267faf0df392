#include "solution.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace roost::tools {

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

pointing pointing_of(double ra, double dec, double roll, bool mirrored) {
  const sky_vector z = direction_of(ra, dec);
  const compass here(z);
  const auto c = static_cast<float>(std::cos(roll * degree)), s = static_cast<float>(std::sin(roll * degree));
  const float east = mirrored ? -1.f : 1.f;
  return {-c * east * here.east - s * here.north, s * east * here.east - c * here.north, z, 0};
}

sky_vector direction_of(double ra, double dec) {
  return {static_cast<float>(std::cos(dec * degree) * std::cos(ra * degree)),
          static_cast<float>(std::cos(dec * degree) * std::sin(ra * degree)),
          static_cast<float>(std::sin(dec * degree))};
}

std::vector<std::uint32_t> spread(std::span<const centroid> all, star_fields::size size) {
  constexpr int side = 4, crowded = side * side / 2;
  constexpr std::size_t brightest = 24;  // centroids whose quads are looked up
  if (all.size() <= brightest) return {};
  const auto part = [](float at, float length) {
    return std::clamp(static_cast<int>((at / length + 0.5f) * side), 0, side - 1);
  };
  std::vector<std::size_t> seen(side * side), rank;
  for (const auto& c : all)
    rank.push_back(seen[static_cast<std::size_t>(part(c.y, size.height) * side + part(c.x, size.width))]++);
  std::set<int> parts;
  for (std::size_t i = 0; i < brightest; ++i)
    parts.insert(part(all[i].y, size.height) * side + part(all[i].x, size.width));
  if (parts.size() > crowded) return {};
  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return rank[i]; });
  return order;
}

solved_fields solve_crowded(const star_fields& fields, const solve_options& options,
                            const solve_function& solve) {
  solved_fields result{solve(fields, options), std::vector<std::vector<std::uint32_t>>(fields.count())};
  star_fields again;
  std::vector<std::size_t> crowded;
  for (std::size_t i = 0; i < fields.count(); ++i) {
    if (result.solutions[i].solved) continue;
    const auto all =
        std::span(fields.centroids).subspan(fields.first[i], fields.first[i + 1] - fields.first[i]);
    auto order = spread(all, fields.sizes[i]);
    if (order.empty()) continue;
    std::vector<centroid> sorted;
    for (const auto c : order) sorted.push_back(all[c]);
    again.add(sorted, fields.sizes[i]);
    crowded.push_back(i);
    result.orders[i] = std::move(order);
  }
  if (crowded.empty()) return result;
  auto halved = options;  // since there are two tries
  halved.chance_most /= 2;
  const auto more = solve(again, halved);
  for (std::size_t k = 0; k < crowded.size(); ++k) {
    auto& solution = result.solutions[crowded[k]];
    if (more[k].solved) {
      solution = more[k];
      solution.log10_chance += std::log10(2.f);
    } else {
      solution.limited |= more[k].limited;
      result.orders[crowded[k]].clear();
    }
  }
  return result;
}

std::string reason_of(const field_solution& solution, std::size_t centroids, const solve_options& options) {
  std::string within;
  if (solution.limited && options.patterns_most == 0) within = " by the hint";
  if (solution.limited && options.patterns_most != 0)
    within = " within the limit of " + std::to_string(options.patterns_most) + " patterns";
  return "no solution" + within + " (" + std::to_string(centroids) + " centroids)";
}

}  // namespace roost::tools
