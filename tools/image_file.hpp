#pragma once

#include <string>
#include <vector>

/// \file
/// Pictures from files.

namespace roost::tools {

/// Brightness of pixels, rows from the first one of the file.
struct grey_image {
  int width = 0, height = 0;
  std::vector<float> pixels;
};

/// What a file holds, by its first bytes.
enum class file_kind { picture, fits, other };
file_kind kind_of_file(const std::string& file);

/// Reads a picture (PNG, JPEG, BMP, PGM ..., with 8 or 16 bits a colour) as shades of grey from 0 to 255, or
/// the first picture of a FITS file with the numbers that it has. Throws roost::invalid_argument for what
/// cannot be read or is none.
grey_image read_image(const std::string& file);

}  // namespace roost::tools
