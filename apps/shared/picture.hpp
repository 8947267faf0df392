#pragma once

#include <cstdint>
#include <filesystem>
#include <roost/host.hpp>
#include <span>
#include <vector>

/// \file
/// Pictures of voxels.

namespace roost::tools {

/// The axis that points up in a picture.
enum class axis { x, y, z };

/// The colours of classes, red, green and blue, as pictures, files and the page in the browser have them.
inline constexpr std::uint8_t class_colours[3][3] = {{226, 212, 189}, {58, 128, 232}, {88, 196, 96}};

struct picture_options {
  int side = 1200;           ///< pixels, of a square picture
  axis up = axis::y;         ///< of the mesh
  bool upside_down = false;  ///< the axis points down, not up
  double turn = 30;          ///< degrees by which the eye is turned around the up axis
  double look_down = 20;     ///< degrees that the eye is above the horizon
  bool classes = false;      ///< colours show the class of a voxel, not its position
  std::uint32_t grid = 0;    ///< not 0: shows a whole grid of this side, however few its voxels
  /// Not empty: one for each voxel, whose keys must then ascend; colours show these shades, from dark blue
  /// (0) over green to yellow (255), not positions.
  std::span<const std::uint8_t> shades{};
};

/// A picture, rows from the top. Three bytes a pixel: red, green, blue; or one, grey.
struct picture {
  int width, height;
  int channels = 3;
  std::vector<std::uint8_t> pixels;
};

/// Draws voxels, given by the keys that voxelize() makes, as cubes seen from afar, on white. The colour of a
/// voxel is its position in the bounding box of all: x, y and z are red, green and blue; or its class, the
/// two bits above the key (the keys must then ascend): 0 is the colour of stone, 1 blue, 2 green. Without
/// voxels the picture is white.
picture draw_voxels(const host& cpu, std::span<const std::uint32_t> words,
                    const picture_options& options = {});

/// Writes a picture as PNG. Throws roost::error if the file cannot be written.
void write_png(const picture& image, const std::filesystem::path& file);

}  // namespace roost::tools
