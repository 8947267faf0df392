#pragma once

#include <filesystem>

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

/// Writes a FITS header without a picture that holds the world coordinates (gnomonic projection): pixel
/// (1, 1) is the first one of the file. `lowest_first`: the file begins with the lowest row of the picture,
/// not with the uppermost, which ROWORDER says, too. Throws roost::error where the file cannot be written.
void write_wcs(const std::filesystem::path& file, const pointing& at, star_fields::size size,
               bool lowest_first);

}  // namespace roost::tools
