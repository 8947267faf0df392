#pragma once

#include "image_file.hpp"

/// \file
/// PNG, JPEG and similar files, as viewers show them.

namespace roost::tools {

/// Throws roost::invalid_argument: what is wrong with a file.
[[noreturn]] void refuse(const std::string& file, const std::string& why);

/// A gigabyte of brightness.
inline constexpr std::size_t pixels_most = std::size_t{1} << 28;
/// Throws roost::invalid_argument for a picture that is too large.
void expect_size(const std::string& file, long width, long height);

/// Whether a file that begins like this is a picture, even one that read_still refuses.
bool is_still(const std::string& bytes);

/// Reads the first picture of a file as shades from 0 to 255: on white where it is transparent, and rotated
/// and mirrored as its EXIF data say. Gamma and colour profiles are not applied.
grey_image read_still(const std::string& file, std::string bytes);

}  // namespace roost::tools
