#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sky.hpp"

/// \file
/// What `roost stars` knows of the sky: stars, and quads of them as patterns.

namespace roost::tools {

/// A star: its direction, and its magnitude (the fainter, the greater).
struct star {
  sky_vector at;
  float magnitude;
};

/// The shape of four stars that a picture may show together: the six distances between them, which neither
/// turn nor scale nor mirror change but for a factor.
struct quad_shape {
  static constexpr int ratios = 5;
  float longest;                ///< distance
  std::uint16_t ratio[ratios];  ///< of the others to it, ascending, in parts of 2^16
  std::uint16_t unused;
};

/// Four stars of a database, the brightest first, and their shape.
struct star_pattern {
  std::uint32_t star[4];
  quad_shape shape;  ///< distances are chords of the unit sphere
};

/// What `build` is asked for.
struct database_limits {
  double fov_least = 8, fov_most = 20;  ///< degrees: the width of the pictures to solve
  double magnitude_most = 99;           ///< stars that are fainter are left out
};

/// Stars in the order of their brightness, the brightest first, and patterns.
struct star_database {
  database_limits limits;
  double epoch = 2000;  ///< year of the positions
  std::vector<star> stars;
  std::vector<star_pattern> patterns;
  std::vector<std::string> names;  ///< of each star; most have none
};

/// Writes a database to a file: with checksums, and never half of one. Throws roost::file_error.
void save(const star_database& database, const std::filesystem::path& file);
/// Reads what save() wrote. Throws roost::file_error for a file that is cut off, damaged, of another version
/// or none of these.
star_database load_star_database(const std::filesystem::path& file);

}  // namespace roost::tools
