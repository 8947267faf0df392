#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "roost/sparse/coordinate_index.hpp"

// Voxels to measure with: the surface of a sphere, the view of a spinning laser scanner along a street, and
// sparse uniform noise.

namespace roost::bench {

using cloud = std::vector<coordinate<3>>;

enum class cloud_kind { shell, scanner, uniform };
inline const std::map<std::string, cloud_kind> cloud_kinds{
    {"shell", cloud_kind::shell}, {"scanner", cloud_kind::scanner}, {"uniform", cloud_kind::uniform}};

/// All voxels whose distance from the origin differs from a radius by less than 0.87, with the radius chosen
/// for about n voxels: on average, 16.4 of the 27 voxels around each are present, and 18 of a block of 64.
inline cloud shell_cloud(std::size_t n) {
  constexpr double thick = 0.87;
  const double radius = std::sqrt(static_cast<double>(n) / (8 * std::acos(-1.0) * thick)),
               outer = radius + thick, inner = std::max(radius - thick, 0.0);
  const int most = static_cast<int>(outer);
  cloud result;
  result.reserve(n + n / 16);
  for (int x = -most; x <= most; ++x) {
    for (int y = -most; y <= most; ++y) {
      const double across = static_cast<double>(x) * x + static_cast<double>(y) * y;
      if (across >= outer * outer) continue;
      const int end = static_cast<int>(std::sqrt(outer * outer - across)),
                begin = across < inner * inner ? static_cast<int>(std::sqrt(inner * inner - across)) : 0;
      for (int z = -end; z <= end; ++z) {
        if (z > -begin && z < begin) {
          z = begin - 1;
          continue;
        }
        if (std::abs(std::sqrt(across + static_cast<double>(z) * z) - radius) < thick)
          result.push_back({0, {x, y, z}});
      }
    }
  }
  return result;
}

/// A point that the scanner has measured, in metres, and how far away it was.
struct scanned_point {
  float x, y, z, distance;
};

/// The measurements of a spinning scanner that moves along a street: its rings point from 25 degrees below to
/// 15 above the horizon and see the ground, walls, cars and poles, with an error of 2 cm; one ray in 12 hits
/// nothing.
class street_scanner {
 public:
  explicit street_scanner(int rings = 64, int rays = 1800, std::uint64_t seed = 1)
      : rings_(rings), rays_(rays), random_(seed) {}

  /// One turn of the scanner, which stands at (x, 0, 1.8) on the ground z = 0.
  template <class Take>
  void sweep(double x, const Take& take) {
    const std::vector<box> boxes = boxes_near(x);
    std::vector<box> ahead;
    std::normal_distribution<double> error(0, 0.02);
    std::uniform_int_distribution<int> lot(0, 11);
    const double pi = std::acos(-1.0), from[3] = {x, 0, 1.8};
    for (int ray = 0; ray < rays_; ++ray) {
      const double around = 2 * pi * (ray + 0.5) / rays_, flat[3] = {std::cos(around), std::sin(around), 0};
      ahead.clear();
      for (const box& b : boxes) {
        if (b.hit<2>(from, flat) < far) ahead.push_back(b);
      }
      for (int ring = 0; ring < rings_; ++ring) {
        const double up = (-25 + 40.0 * ring / (rings_ - 1)) * pi / 180;
        const double to[3] = {std::cos(up) * flat[0], std::cos(up) * flat[1], std::sin(up)};
        double distance = to[2] < 0 ? -from[2] / to[2] : far;
        for (const box& b : ahead) distance = std::min(distance, b.hit<3>(from, to));
        if (distance >= far || lot(random_) == 0) continue;
        const double d = distance + error(random_);
        take(scanned_point{static_cast<float>(from[0] + d * to[0]), static_cast<float>(d * to[1]),
                           static_cast<float>(from[2] + d * to[2]), static_cast<float>(d)});
      }
    }
  }

 private:
  static constexpr double far = 80;

  struct box {
    double low[3], high[3];
    /// How far along a ray the box begins, in its first Axes axes; `far` if the ray misses it.
    template <int Axes>
    double hit(const double (&from)[3], const double (&to)[3]) const {
      double enter = 0, leave = far;
      for (int a = 0; a < Axes; ++a) {
        const double one = (low[a] - from[a]) / to[a], other = (high[a] - from[a]) / to[a];
        enter = std::max(enter, std::min(one, other));
        leave = std::min(leave, std::max(one, other));
      }
      return enter < leave && enter > 0 ? enter : far;
    }
  };

  /// Houses on both sides every 20 m, two cars and a pole for each.
  static std::vector<box> boxes_near(double x) {
    std::vector<box> result;
    const int here = static_cast<int>(std::floor(x / 20));
    for (int i = here - 4; i <= here + 4; ++i) {
      for (const int side : {-1, 1}) {
        std::mt19937_64 random(static_cast<std::uint64_t>(2 * i + side) * 7919);
        const auto between = [&](double a, double b) {
          return std::uniform_real_distribution<double>(a, b)(random);
        };
        const auto add = [&](double left, double right, double near_, double away, double high) {
          result.push_back({{20 * i + left, side > 0 ? near_ : -away, 0},
                            {20 * i + right, side > 0 ? away : -near_, high}});
        };
        const double front = between(8, 16);
        add(between(0, 2), between(14, 18), front, front + 10, between(4, 15));
        for (const double begin : {between(1, 4), between(9, 12)}) add(begin, begin + 4.3, 4, 5.8, 1.5);
        const double pole = between(5, 8);
        add(pole, pole + 0.2, 6, 6.2, 8);
      }
    }
    return result;
  }

  int rings_, rays_;
  std::mt19937_64 random_;
};

/// The same voxels in another order.
inline cloud scrambled(cloud voxels) {
  std::shuffle(voxels.begin(), voxels.end(), std::mt19937_64(7));
  return voxels;
}

/// The order of rows in an array.
inline bool row_by_row(const coordinate<3>& a, const coordinate<3>& b) {
  return std::lexicographical_compare(a.at, a.at + 3, b.at, b.at + 3);
}

/// n voxels of 10 cm: ten sweeps of a scanner that moves on by 1 m, the next ten out of sight of these, and
/// so on; the street repeats after 1.6 km.
inline cloud scanner_cloud(std::size_t n) {
  constexpr int metres = 200, parts = 8, voxels_of_metre = 10;
  cloud result;
  street_scanner scanner;
  std::vector<cloud> seen;
  for (int part = 0; result.size() < n; ++part) {
    if (part < parts) {
      cloud here;
      for (int i = 0; i < 10; ++i) {
        scanner.sweep(metres * part + i, [&](const scanned_point& p) {
          const auto voxel = [](float x) {
            return static_cast<std::int32_t>(std::floor(x * voxels_of_metre));
          };
          here.push_back({0, {voxel(p.x), voxel(p.y), voxel(p.z)}});
        });
      }
      std::sort(here.begin(), here.end(), row_by_row);
      here.erase(std::unique(here.begin(), here.end()), here.end());
      seen.push_back(std::move(here));
    }
    for (coordinate<3> c : seen[static_cast<std::size_t>(part % parts)]) {
      c.at[0] += part / parts * parts * metres * voxels_of_metre;
      result.push_back(c);
    }
  }
  result.resize(n);
  return result;
}

/// n voxels of a cube of 64 n voxels.
inline cloud uniform_cloud(std::size_t n) {
  const auto side = static_cast<std::int32_t>(std::cbrt(64.0 * static_cast<double>(n))) + 1;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int32_t> draw(-side / 2, side - side / 2 - 1);
  cloud result(n);
  for (auto& c : result) c = {0, {draw(random), draw(random), draw(random)}};
  return result;
}

/// About n voxels of a kind. (Some uniform ones occur twice.)
inline cloud make_cloud(cloud_kind kind, std::size_t n) {
  return kind == cloud_kind::shell     ? shell_cloud(n)
         : kind == cloud_kind::scanner ? scanner_cloud(n)
                                       : uniform_cloud(n);
}

}  // namespace roost::bench
