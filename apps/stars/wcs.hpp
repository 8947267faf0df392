#pragma once

#include <filesystem>

#include "solution.hpp"

/// \file
/// World coordinates of pictures.

namespace roost::tools {

/// Writes a FITS header without a picture that holds the world coordinates (gnomonic projection): pixel (1,
/// 1) is the first one of the file. `lowest_first`: the file begins with the lowest row of the picture, not
/// with the uppermost; ROWORDER says which. Throws roost::error if the file cannot be written.
void write_wcs(const std::filesystem::path& file, const pointing& at, star_fields::size size,
               bool lowest_first);

}  // namespace roost::tools
