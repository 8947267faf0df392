#pragma once

#include <array>
#include <optional>

#include "roost/sparse/coordinate_options.hpp"

/// \file
/// Shapes, options and views of kernel_map.

namespace roost {

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
  ROOST_FN bool has_neighbour(std::uint32_t k, std::uint64_t o) const {
    const std::uint32_t bit = turned ? volume - 1 - k : k;
    return (masks[o * words + bit / 32] >> bit % 32 & 1) != 0;
  }
};

}  // namespace roost
