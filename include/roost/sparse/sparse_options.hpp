#pragma once

#include <array>
#include <optional>

#include "roost/pair.hpp"
#include "roost/sparse/detail/grid.hpp"

/// \file
/// Options, shapes and statistics of coordinate_index, kernel_map and sparse_conv.

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

/// All coordinates from `least` to `greatest`, both included. Empty if, on some axis, `least` is greater.
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

/// The kernel of a convolution over D axes. Offset k = (k[0], ... k[D - 1]) of an output voxel o reads the
/// input voxel
///
///     i = o * stride - padding + k * dilation          (on each axis)
///
/// as torch.nn.functional.conv2d and conv3d do, which are cross-correlations: the kernel is not mirrored.
/// Offsets are numbered with the last axis fastest, as in torch's weights (out, in, k[0], k[1], ...).
template <int D>
struct kernel_shape {
  static constexpr int size_most = 5;
  static constexpr int unset = -1;

  std::array<int, D> size = all(3);        ///< 1 to 5
  std::array<int, D> stride = all(unset);  ///< at least 1; unset: 1, or the size for pooling()
  std::array<int, D> dilation = all(1);    ///< at least 1
  /// Unset: dilation * (size - 1) / 2, rounded down, as with torch's padding = 'same'; for pooling(): 0. So
  /// the centre of a kernel of odd size is its middle voxel, of size 2 the first voxel, and of size 4 the
  /// second.
  std::array<int, D> padding = all(unset);

  /// The same size, stride and dilation on all axes.
  static kernel_shape cube(int size, int stride = unset, int dilation = 1) {
    return {all(size), all(stride), all(dilation), all(unset)};
  }
  static constexpr std::array<int, D> all(int number) {
    std::array<int, D> result{};
    for (int& each : result) each = number;
    return result;
  }
  /// The number of offsets.
  std::uint32_t volume() const {
    int result = 1;
    for (const int each : size) result *= each;
    return static_cast<std::uint32_t>(result);
  }
};

/// Which output voxels a convolution with a stride has.
enum class output_voxels {
  /// All voxels whose window contains an input voxel, which is where a dense convolution of ones is not 0. As
  /// spconv's SparseConv.
  reached,
  strided  ///< the input voxels divided by the stride, rounded down, as MinkowskiEngine
};

/// Options of a kernel map.
template <int D>
struct kernel_map_options {
  bool pairs = false;  ///< computes input_rows() and output_rows()
  bool inverse =
      false;  ///< computes the neighbours of transposed(), unless they are those of view() in reverse order
  /// cuda: also stores the neighbours ordered so that rows with equal masks are together; sparse_conv() then
  /// computes fewer products with missing neighbours. Takes the memory of neighbours() once more. Ignored on
  /// the host.
  bool by_masks = false;
  output_voxels outputs = output_voxels::reached;
  /// Outputs outside are left out: the bounds of a dense output.
  std::optional<coordinate_box<D>> bounds{};
  /// For rebuild_async(): the number of outputs and of pairs to reserve room for. 0: as many outputs as the
  /// input's capacity, and pairs for half of all offsets of these outputs.
  std::size_t capacity = 0, pairs_capacity = 0;
};

/// A kernel map as kernels use it: trivially copyable, valid while the map exists. Pointers are to memory of
/// the place, or null for parts that were not requested from the map.
struct kernel_map_view {
  static constexpr std::uint32_t no_row = roost::no_row<std::uint32_t>;

  std::uint32_t volume = 0;  ///< the number of offsets
  /// The numbers of rows known to the host (with a fixed capacity: upper bounds), and the exact ones in
  /// memory of the place.
  std::uint64_t inputs = 0, outputs = 0;
  const std::uint64_t *device_inputs = nullptr, *device_outputs = nullptr;

  /// The input row of offset k and output row o, or no_row, is neighbours[k * stride + o]; if the view is
  /// `turned`, it is that of offset volume - 1 - k. Null: this map has only pairs.
  const std::uint32_t* neighbours = nullptr;
  std::uint64_t stride = 0;
  bool turned = false;
  /// Bit k % 32 of masks[o * words + k / 32] says whether output row o has a neighbour at offset k (turned:
  /// at offset volume - 1 - k).
  const std::uint32_t* masks = nullptr;
  std::uint32_t words = 0;
  /// With options::by_masks: `ordered_neighbours` holds the columns of `neighbours` in another order of the
  /// output rows, and `order` the output row at each position.
  const std::uint32_t *order = nullptr, *ordered_neighbours = nullptr;

  /// Pairs of offset k are those from pair_begins[k] to pair_begins[k + 1], ordered by the rows of the
  /// map's own outputs (which are the inputs of a transposed view).
  const std::uint32_t *input_rows = nullptr, *output_rows = nullptr;
  const std::uint64_t* pair_begins = nullptr;
  std::uint64_t pairs = 0;  ///< known to the host

  /// The input row of an offset and an output row.
  ROOST_FN std::uint32_t neighbour(std::uint32_t k, std::uint64_t o) const {
    return neighbours[(turned ? volume - 1 - k : k) * stride + o];
  }
  /// Whether it is there, from one bit.
  ROOST_FN bool has_neighbour(std::uint32_t k, std::uint64_t o) const {
    const std::uint32_t bit = turned ? volume - 1 - k : k;
    return (masks[o * words + bit / 32] >> bit % 32 & 1) != 0;
  }
};

/// The channels of a convolution, 1 to 2^16: how many numbers each input row and each output row has.
struct conv_channels {
  std::size_t in = 1, out = 1;
  /// cuda, for float: the tensor cores multiply numbers rounded to 10 binary digits, as with
  /// torch.backends.cudnn.allow_tf32. Several times as fast.
  bool tf32 = false;
};

}  // namespace roost
