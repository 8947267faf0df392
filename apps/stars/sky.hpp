#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "roost/kernels.hpp"

/// \file
/// The celestial sphere: directions, and cells of about equal size that cover it. Angles are in radians.

namespace roost::tools {

/// A direction, or any vector of space. Directions on the sky are unit vectors of the ICRS: x to right
/// ascension 0, z to the north pole.
struct sky_vector {
  float x, y, z;
};
ROOST_FN sky_vector operator+(sky_vector a, sky_vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
ROOST_FN sky_vector operator-(sky_vector a, sky_vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
ROOST_FN sky_vector operator*(float s, sky_vector a) { return {s * a.x, s * a.y, s * a.z}; }
ROOST_FN float dot(sky_vector a, sky_vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
ROOST_FN sky_vector cross(sky_vector a, sky_vector b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
ROOST_FN float length(sky_vector a) { return std::sqrt(dot(a, a)); }
ROOST_FN sky_vector unit(sky_vector a) { return (1 / length(a)) * a; }

/// Any two axes that are perpendicular to a direction and to each other: first x second = the direction.
struct tangent_axes {
  sky_vector first, second;
  ROOST_FN explicit tangent_axes(sky_vector direction) {
    const sky_vector aside = std::abs(direction.z) < 0.7f ? sky_vector{0, 0, 1} : sky_vector{1, 0, 0};
    first = unit(cross(aside, direction));
    second = cross(direction, first);
  }
};

inline constexpr float pi = std::numbers::pi_v<float>;
inline constexpr double degree = std::numbers::pi / 180;   // in radians
inline constexpr double degrees = 180 / std::numbers::pi;  // of a radian

/// Cells of the sphere: bands of declination, each cut into cells of right ascension that are about as wide
/// as the band is high. Cells are numbered from the south pole on.
class sky_cells {
 public:
  /// The handle for both places.
  struct ref_type {
    const std::uint32_t* first;  // cell of each band, and the number of all cells
    std::uint32_t bands;

    ROOST_FN float height() const { return pi / static_cast<float>(bands); }
    ROOST_FN std::uint32_t cells() const { return first[bands]; }
    ROOST_FN std::uint32_t cells_of(std::uint32_t band) const { return first[band + 1] - first[band]; }
    ROOST_FN std::uint32_t band_at(float dec) const {
      const float at = (dec / pi + 0.5f) * static_cast<float>(bands);
      return at <= 0 ? 0 : kernels::smaller(static_cast<std::uint32_t>(at), bands - 1);
    }
    /// The cell of its band that a right ascension in [-pi, pi] falls into.
    ROOST_FN std::uint32_t cell_at(std::uint32_t band, float ra) const {
      const std::uint32_t n = cells_of(band);
      const float at = (ra / (2 * pi) + 0.5f) * static_cast<float>(n);
      return at <= 0 ? 0 : kernels::smaller(static_cast<std::uint32_t>(at), n - 1);
    }
    ROOST_FN std::uint32_t cell_of(sky_vector direction) const {
      const std::uint32_t band = band_at(declination(direction));
      return first[band] + cell_at(band, right_ascension(direction));
    }
    ROOST_FN static float declination(sky_vector d) {
      return std::asin(std::fmin(1.f, std::fmax(-1.f, d.z)));
    }
    ROOST_FN static float right_ascension(sky_vector d) { return std::atan2(d.y, d.x); }

    /// The band of a cell: the last one that does not begin after it.
    ROOST_FN std::uint32_t band_of(std::uint32_t cell) const {
      std::uint32_t low = 0, high = bands;
      while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        (first[middle] <= cell ? low : high) = middle;
      }
      return low;
    }
    /// The middle of a cell: the same on all places, since their sines of doubles differ too little to matter
    /// here.
    ROOST_FN sky_vector middle(std::uint32_t cell) const {
      const std::uint32_t band = band_of(cell);
      const double dec = (static_cast<float>(band) + 0.5f) * height() - pi / 2;
      const double ra =
          ((static_cast<float>(cell - first[band]) + 0.5f) / static_cast<float>(cells_of(band)) - 0.5f) * 2 *
          pi;
      return {static_cast<float>(std::cos(dec) * std::cos(ra)),
              static_cast<float>(std::cos(dec) * std::sin(ra)), static_cast<float>(std::sin(dec))};
    }

    /// Calls f(cell) for all cells that may hold directions within `radius` of one; some are a little
    /// farther.
    template <class F>
    ROOST_FN void for_each_near(sky_vector direction, float radius, const F& f) const {
      const float dec = declination(direction), ra = right_ascension(direction);
      const std::uint32_t last = band_at(dec + radius);
      for (std::uint32_t band = band_at(dec - radius); band <= last; ++band) {
        const std::uint32_t n = cells_of(band);
        std::uint32_t begin = 0, count = n;
        // Half of the ring's part that the circle reaches; near a pole that is all of it.
        const float sine = std::sin(radius) / std::fmax(1e-6f, std::cos(dec));
        if (radius < pi / 2 && std::abs(dec) + radius < pi / 2 && sine < 1) {
          const float reach = std::asin(sine) * 1.00001f + 1e-6f;
          const float cells = static_cast<float>(n);
          const float from = std::floor(((ra - reach) / (2 * pi) + 0.5f) * cells);
          const float to = std::floor(((ra + reach) / (2 * pi) + 0.5f) * cells);
          if (to - from + 1 < cells) {
            begin = static_cast<std::uint32_t>(from < 0 ? from + cells : from);
            count = static_cast<std::uint32_t>(to - from) + 1;
          }
        }
        for (std::uint32_t i = 0; i < count; ++i) {
          const std::uint32_t cell = begin + i;
          f(first[band] + (cell < n ? cell : cell - n));
        }
      }
    }
  };

  /// Where the bands begin, for ref_type; cells about `height` high.
  static std::vector<std::uint32_t> bands(double height) {
    const double all = std::numbers::pi;
    const auto n = static_cast<std::uint32_t>(std::ceil(all / height));
    std::vector<std::uint32_t> first{0};
    for (std::uint32_t band = 0; band < n; ++band) {
      const double dec = (band + 0.5) * all / n - all / 2;
      first.push_back(first.back() + static_cast<std::uint32_t>(std::ceil(2 * n * std::cos(dec))));
    }
    return first;
  }
};

}  // namespace roost::tools
