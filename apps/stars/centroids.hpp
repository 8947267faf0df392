#pragma once

#include "apps/shared/image_file.hpp"
#include "solver.hpp"

/// \file
/// Centroids: from CSV files, or found in pictures.

namespace roost::tools {

/// The points of light of a picture.
struct found_centroids {
  star_fields::size size;
  std::vector<centroid> at;   ///< the brightest first
  bool lowest_first = false;  ///< the file begins with the picture's lowest row
};

/// Finds stars in a picture: the background is subtracted, pixels above the noise are grouped into objects,
/// and their first moments are the centroids. Single bright pixels are ignored, and so are objects much
/// longer than all others (satellites).
found_centroids find_stars(const grey_image& image);

/// Reads a CSV file with columns x and y, in pixels from the left and upper edge of the picture, and, unless
/// the brightest come first, brightness (or flux) or magnitude. Rows that are not centroids, or are outside
/// the picture, are left out; stderr says how many. Throws roost::invalid_argument for a file that has only
/// such rows, is of a different picture, or is not a CSV file of centroids.
found_centroids read_centroids(const std::string& file, star_fields::size size);

}  // namespace roost::tools
