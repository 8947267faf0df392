#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sky.hpp"

/// \file
/// The database of `roost stars`: stars, and quads of stars as patterns.

namespace roost::tools {

/// A star: its direction, and its magnitude (greater for fainter stars).
struct star {
  sky_vector at;
  float magnitude;
};

/// The shape of four stars that a picture may show together: the six distances between them, which rotations,
/// scales and reflections change at most by a common factor.
struct quad_shape {
  static constexpr int ratios = 5;
  float longest;                ///< distance
  std::uint16_t ratio[ratios];  ///< of the other distances to it, ascending, in units of 2^-16
  std::uint16_t unused;
};

/// Four stars of a database, the brightest first, and their shape.
struct star_pattern {
  std::uint32_t star[4];
  quad_shape shape;  ///< distances are chords of the unit sphere
};

/// The limits for `build`.
struct database_limits {
  double fov_least = 8, fov_most = 20;  ///< degrees: the width of the pictures to solve
  double magnitude_most = 99;           ///< fainter stars are left out
};

/// Stars, the brightest first, and patterns.
struct star_database {
  database_limits limits;
  double epoch = 2000;  ///< year of the positions
  std::vector<star> stars;
  std::vector<star_pattern> patterns;
  std::vector<std::string> names;  ///< of each star; most have none
};

/// Writes a database to a file: with checksums, and completely or not at all. Throws roost::file_error.
void save(const star_database& database, const std::filesystem::path& file);
/// Reads what save() wrote. Throws roost::file_error for a file that is cut off, damaged, of a different
/// version, or not a database.
star_database load_star_database(const std::filesystem::path& file);

}  // namespace roost::tools
