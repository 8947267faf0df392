#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numbers.hpp"

/// \file
/// The reader of PLY files, for clouds and for meshes: vertices in double, and the corners of faces or of
/// triangle strips. Elements may be in any order; properties that are not needed are skipped.

namespace roost::tools {

struct ply_property {
  number_type count;  ///< of a list: the type of its count; 0 bytes: not a list
  number_type value;
  std::string_view name;  ///< in the file
};

struct ply_element {
  std::string_view name;  ///< in the file: `vertex`, `face`, `tristrips` ...
  std::uint64_t count = 0;
  std::vector<ply_property> properties;
};

struct ply_header {
  bool understood = false;  ///< the header was valid down to `end_header`
  bool ascii = false, big_endian = false;
  std::vector<ply_element> elements;  ///< no two with the same name
  std::size_t bytes = 0;              ///< of the header

  /// The number of elements with a name.
  std::uint64_t count(std::string_view name) const;
};

/// Reads the header of a PLY file. Stops, not understood, at the first line that is not PLY.
ply_header read_ply_header(std::string_view file);

/// Says what is missing from, or in excess in, a PLY file whose header was understood; empty if the file has
/// exactly the elements of its header.
std::string missing_in_ply(std::string_view file, const ply_header& header);

struct ply_shape {
  std::vector<std::array<double, 3>> vertices;
  bool single = false;  ///< x, y or z is stored as a float of 32 bits
  std::vector<std::uint32_t> sizes,
      corners;          ///< the number of corners of each face or strip; their vertices
  bool strips = false;  ///< they are triangle strips, ended by -1
};

/// Reads the vertices of a PLY file, if `surface`, also its faces or triangle strips. Throws
/// roost::invalid_argument, one line that begins with `name`, for a file that is not PLY, has no x, y and z,
/// or has more or less data than its header announces.
ply_shape read_ply(const std::string& name, std::string_view file, bool surface);

}  // namespace roost::tools
