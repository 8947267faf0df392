#pragma once

#include <string>
#include <vector>

/// \file
/// Pictures from files.

namespace roost::tools {

/// Brightness of pixels, rows from the top of the picture as viewers show it.
struct grey_image {
  int width = 0, height = 0;
  std::vector<float> pixels;
  bool lowest_first = false;  ///< the file begins with the lowest row, as FITS files do
};

/// The kind of a file, by its first bytes. Throws roost::invalid_argument if it is not a file.
enum class file_kind { picture, fits, other };
file_kind kind_of_file(const std::string& file);

/// Reads a picture (PNG, JPEG, BMP, PGM ..., with 8 or 16 bits a colour) as shades of grey from 0 to 255, or
/// the first picture of a FITS file, also of one compressed by gzip or fpack. FITS numbers are unchanged if
/// floats hold them, otherwise their mean is subtracted; pixels without a number are filled from those around
/// them; three planes are colours. Takes 4 bytes a pixel, and some 4 more while it reads. Throws
/// roost::invalid_argument for a file that cannot be read, is not a picture, or has more than 2^28 pixels.
grey_image read_image(const std::string& file);

}  // namespace roost::tools
