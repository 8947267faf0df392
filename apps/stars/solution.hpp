#pragma once

#include "solver.hpp"

/// \file
/// What a solution says of the sky.

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

/// Right ascension and declination of a direction, in degrees.
struct sky_point {
  double ra, dec;
};
sky_point point_of(sky_vector direction);

/// A direction, of degrees.
sky_vector direction_of(double ra, double dec);

/// North and east in the middle of a picture.
struct compass {
  sky_vector east, north;
  explicit compass(sky_vector away) {
    // At a pole every direction is south or north; any will do.
    const sky_vector side = cross({0, 0, 1}, away);
    east = dot(side, side) > 1e-12f ? unit(side) : sky_vector{0, 1, 0};
    north = cross(away, east);
  }
};

/// Where the brightest centroids lie in few parts of a picture, as lit trees do, takes those of all parts in
/// turn, the brightest of each first. Returns whether that is so.
bool spread(std::vector<centroid>& all, star_fields::size size);

}  // namespace roost::tools
