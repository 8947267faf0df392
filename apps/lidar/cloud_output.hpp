#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

/// \file
/// Writers of the results for a cloud.

namespace roost::tools {

/// The points of a voxel, combined.
struct voxel_of_points {
  double x, y, z;           ///< their mean
  std::uint32_t points;     ///< their number
  std::uint8_t neighbours;  ///< voxels present of the 27 around, including itself
};

/// The results for a cloud.
struct found_cloud {
  std::span<const voxel_of_points> voxels;  ///< already moved by `shift`
  std::span<const std::int64_t> labels;     ///< for each point of the file, the row of its voxel; -1: none
  std::array<double, 3> shift{};            ///< added to the coordinates of the file
  double size = 0;                          ///< side of a voxel
};

/// The ending of a name that determines the format of a file: `.ply`, `.csv`, `.npy` or `.npz`; empty for any
/// other.
std::string cloud_ending(const std::string& file);

/// Writes voxels: as vertices of a binary PLY file, as CSV with a header, or as a structured array of NumPy;
/// each with x, y, z in double, points and neighbours. Or as named arrays of NumPy (`.npz`, not compressed):
/// `xyz`, `counts`, `neighbours`, `labels`, `shift` and `size`; each is copied once in memory. Throws
/// roost::error if the file cannot be written.
void write_voxels(const std::string& file, const found_cloud& found);

/// Writes the voxel of each point, -1 for none: as an array of int64 (`.npy`), or as CSV with a header.
void write_labels(const std::string& file, std::span<const std::int64_t> labels);

}  // namespace roost::tools
