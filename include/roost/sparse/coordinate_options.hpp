#pragma once

#include "roost/sparse/detail/grid.hpp"

/// \file
/// Options and statistics of coordinate_index.

namespace roost {

/// The order in which a coordinate_index numbers its voxels. Rows are the same every time, on every place,
/// with any number of threads.
enum class order {
  /// By batch, then along a space-filling curve (Morton's) from the corner of the bounding box, or row by row
  /// if the box is too wide for a curve of 63 bits. Rows of neighbours are close together, whatever the order
  /// of the input: the fastest order to build and to use.
  block,
  input  ///< by first occurrence in the input
};

/// How a coordinate_index stores its voxels.
enum class representation {
  automatic,  ///< blocks, unless there are more than half as many blocks as input coordinates
  /// Blocks of 64 voxels (8 x 8; 4 x 4 x 4; 2 x 2 x 4 x 4) as words of bits. For surfaces and solids: best
  /// from about two voxels per block.
  blocks,
  points  ///< one entry per voxel in a frozen_map: for thin clouds
};

/// All coordinates from `least` to `greatest`, both included. Empty if `least` exceeds `greatest` on some
/// axis.
template <int D>
struct coordinate_box {
  coordinate<D> least, greatest;
};

/// Facts about an index and its last build.
struct coordinate_statistics {
  std::size_t inputs = 0;       ///< coordinates passed to the build
  std::size_t size = 0;         ///< distinct coordinates
  std::size_t blocks = 0;       ///< blocks with voxels; 0 for points
  std::size_t superblocks = 0;  ///< superblocks (64 blocks) with voxels; 0 for points
  std::size_t bytes = 0;        ///< of the index, including coordinates() and rows_of_input()
  int restarts = 0;             ///< how often the build restarted, with more room or another seed
  roost::representation representation = representation::blocks;

  /// The mean number of voxels per block.
  double occupancy() const {
    return blocks == 0 ? 0 : static_cast<double>(size) / static_cast<double>(blocks);
  }
};

/// Options of coordinate_index.
struct coordinate_options {
  roost::order order = roost::order::block;
  roost::representation representation = roost::representation::automatic;
  bool rows_of_input = true;  ///< whether to compute rows_of_input()
  /// The number of coordinates to reserve room for, for rebuild_async(); the representation is then
  /// `blocks`. There is room for one superblock in 12 coordinates and one block in 2: give more for thinner
  /// clouds.
  std::size_t capacity = 0;
  std::uint64_t seed = 0;  ///< chooses the hash function; rows do not depend on it
};

}  // namespace roost
