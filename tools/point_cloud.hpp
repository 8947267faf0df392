#pragma once

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
  std::size_t not_finite = 0;       ///< points that were left out: rays that came back from nowhere
};

/// Reads the points of a PLY file (x, y, z of its vertices), a PCD file (ascii or binary), a NumPy array
/// (.npy of n rows and 3 or more columns of float32 or float64), a KITTI scan (.bin: x, y, z, intensity as
/// float32), or text: rows of numbers between commas, semicolons or blanks, of which the first three are x, y
/// and z, or the columns of these names in a header.
///
/// Throws roost::invalid_argument, one line that starts with the name of the file, for a file that is not
/// there, is none of these, is cut short, or has no points.
point_cloud read_point_cloud(const std::string& file);

}  // namespace roost::tools
