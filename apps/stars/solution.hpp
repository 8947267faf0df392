#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "solver.hpp"

/// \file
/// What a solution says about the sky.

namespace roost::tools {

/// Where a picture points, in degrees.
struct sky_position {
  double ra, dec;  ///< of the picture's middle
  double roll;     ///< from up in the picture to north, counter-clockwise
  double fov;      ///< the width of the picture
  double scale;    ///< seconds of arc a pixel, in the middle
  bool mirrored;   ///< east is to the right where north is up
};
sky_position position_of(const pointing& at, star_fields::size size);
/// The inverse, as a hint, for a picture that is mirrored or not.
pointing pointing_of(double ra, double dec, double roll, bool mirrored);

/// Right ascension and declination of a direction, in degrees.
struct sky_point {
  double ra, dec;
};
sky_point point_of(sky_vector direction);

/// A direction from degrees.
sky_vector direction_of(double ra, double dec);

/// North and east in the middle of a picture.
struct compass {
  sky_vector east, north;
  explicit compass(sky_vector away) {
    // Also next to a pole it belongs to the right ascension that point_of() gives; at the pole that is 0.
    const float length = std::hypot(away.x, away.y);
    east = length > 0 ? sky_vector{-away.y / length, away.x / length, 0} : sky_vector{0, 1, 0};
    north = cross(away, east);
  }
};

/// If the brightest centroids are in few parts of a picture, such as on lit trees: the order that takes
/// centroids from all parts in turn, the brightest first. Otherwise empty.
std::vector<std::uint32_t> spread(std::span<const centroid> all, star_fields::size size);

/// The results for fields.
struct solved_fields {
  std::vector<field_solution> solutions;
  /// For each field, the order of its centroids that was solved; empty: the original order.
  std::vector<std::vector<std::uint32_t>> orders;
};
using solve_function = std::function<std::vector<field_solution>(const star_fields&, const solve_options&)>;

/// Solves fields; those without a solution whose brightest centroids are crowded are tried once more, in the
/// order of spread().
solved_fields solve_crowded(const star_fields& fields, const solve_options& options,
                            const solve_function& solve);

/// Why a field has no solution.
std::string reason_of(const field_solution& solution, std::size_t centroids, const solve_options& options);

}  // namespace roost::tools
