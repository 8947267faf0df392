#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// Clouds of points, and the reader of their files.

namespace roost::tools {

struct cloud_point {
  double x, y, z;
};

struct point_cloud {
  std::vector<cloud_point> points;  ///< in the order of the file, all finite
  /// Which points of the file were left out: rays that hit nothing.
  std::vector<std::uint64_t> not_finite;
  std::string read_as;  ///< the format that was assumed, for people: `KITTI, records of 4 floats`
  bool single = false;  ///< the file stores coordinates as floats of 32 bits
};

/// Reads the points of
///
/// - a PLY file: x, y, z of its vertices, of any type of numbers, wherever they are;
/// - a PCD file, ascii, binary or compressed;
/// - a LAS file, of any version and format of points, but not compressed (LAZ);
/// - a NumPy array (.npy) of n rows and 3 or more columns of integers, float32 or float64, or a structured
///   one with fields x, y, z; in any byte order, rows first or columns first;
/// - a KITTI scan (.bin): records of 4 floats, the first three of which are x, y, z; or of `record` floats;
/// - text: rows of numbers separated by commas, semicolons or blanks, with decimal points, or with decimal
///   commas if commas are not separators. The first three columns are x, y, z, unless a header, which may be
///   a comment, names them. A line with the number of points may come first (.pts).
///
/// All files except those ending in .bin may be compressed by gzip or Zstandard. `record`, if not 0: the file
/// has only records of this many floats, whatever its name.
///
/// Throws roost::invalid_argument, one line that starts with the name of the file, for a file that does not
/// exist, is none of these, is ambiguous, is cut short or longer than it says, or has no points.
point_cloud read_point_cloud(const std::string& file, unsigned record = 0);

}  // namespace roost::tools
