#pragma once

#include <array>

#include "roost/sparse/coordinate_index.hpp"
#include "roost/sparse/detail/mask_order.hpp"
#include "roost/sparse/detail/neighbours.hpp"

/// \file
/// Kernel maps: which input row each offset of a convolution's kernel reads, for each output row.

namespace roost {

/// The kernel of a convolution over D axes. Offset k = (k[0], ... k[D - 1]) of an output voxel o reads the
/// input voxel
///
///     i = o * stride - padding + k * dilation          (on each axis)
///
/// as torch.nn.functional.conv2d and conv3d do, which are cross-correlations: the kernel is not mirrored.
/// Offsets are numbered with the last axis fastest, as torch's weights (out, in, k[0], k[1], ...) lie.
template <int D>
struct kernel_shape {
  static constexpr int size_most = 5;
  static constexpr int unset = -1;

  std::array<int, D> size = all(3);        ///< 1 to 5
  std::array<int, D> stride = all(unset);  ///< 1 and more; unset: 1, and the size for pooling()
  std::array<int, D> dilation = all(1);    ///< 1 and more
  /// Unset: dilation * (size - 1) / 2, rounded down, as with torch's padding = 'same': the centre of an odd
  /// kernel is its middle, that of 2 voxels the first, that of 4 the second. pooling(): 0.
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

/// Which voxels a convolution with a stride makes.
enum class output_voxels {
  /// All whose window has an input: where a dense convolution of ones is not 0. What spconv's SparseConv
  /// does.
  reached,
  strided  ///< the input voxels divided by the stride, rounded down: what MinkowskiEngine does
};

/// Options of a kernel map.
template <int D>
struct kernel_map_options {
  bool pairs = false;    ///< makes input_rows() and output_rows()
  bool inverse = false;  ///< makes what transposed().neighbours() needs, where that is not the same turned
  /// cuda: also keeps neighbours in an order in which rows with equal masks are together. sparse_conv() makes
  /// fewer products with nothing then. Takes the memory of neighbours() once more. The host ignores it.
  bool by_masks = false;
  output_voxels outputs = output_voxels::reached;
  /// Outputs beyond are left out: the borders of a dense output.
  std::optional<coordinate_box<D>> bounds{};
  /// For rebuild_async(): room for so many outputs, and pairs. 0: as many as the input's capacity, and half
  /// of all offsets of these outputs.
  std::size_t capacity = 0, pairs_capacity = 0;
};

/// A kernel map as kernels use it: trivially copyable, valid while the map lives. Pointers are memory of the
/// place, or null for what the map was not asked to make.
struct kernel_map_view {
  static constexpr std::uint32_t no_row = roost::no_row<std::uint32_t>;

  std::uint32_t volume = 0;  ///< offsets
  /// Rows as the host knows them (with a fixed capacity: the most), and in memory of the place.
  std::uint64_t inputs = 0, outputs = 0;
  const std::uint64_t *device_inputs = nullptr, *device_outputs = nullptr;

  /// The input row of offset k and output row o, or no_row, is neighbours[k * stride + o]; if the view is
  /// `turned`, it is that of offset volume - 1 - k. Null: this map has only pairs.
  const std::uint32_t* neighbours = nullptr;
  std::uint64_t stride = 0;
  bool turned = false;
  /// Bit k % 32 of masks[o * words + k / 32]: whether there is one (turned: of offset volume - 1 - k).
  const std::uint32_t* masks = nullptr;
  std::uint32_t words = 0;
  /// With options::by_masks: the row at each position of ordered_neighbours, which are those of `neighbours`.
  const std::uint32_t *order = nullptr, *ordered_neighbours = nullptr;

  /// Pairs of offset k are those from pair_begins[k] to pair_begins[k + 1], ordered by the rows of the
  /// map's own outputs (which are the inputs of a transposed view).
  const std::uint32_t *input_rows = nullptr, *output_rows = nullptr;
  const std::uint64_t* pair_begins = nullptr;
  std::uint64_t pairs = 0;  ///< as the host knows them

  /// The input row of an offset and an output row.
  ROOST_FN std::uint32_t neighbour(std::uint32_t k, std::uint64_t o) const {
    return neighbours[(turned ? volume - 1 - k : k) * stride + o];
  }
  ROOST_FN bool has_neighbour(std::uint32_t k, std::uint64_t o) const {
    const std::uint32_t bit = turned ? volume - 1 - k : k;
    return (masks[o * words + bit / 32] >> bit % 32 & 1) != 0;
  }
};

/// Which input row each offset of a kernel reads, for each output row: the neighbourhoods that sparse
/// convolution and pooling go through. Make one with submanifold(), convolution(), pooling() or generative(),
/// and use it for every layer with the same voxels and shape.
///
///     const auto map = roost::submanifold(gpu, index);                 // 3 x 3 x 3
///     const auto down = roost::convolution(gpu, index, roost::kernel_shape<3>::cube(2, 2));
///     down.outputs().coordinates();                                    // voxels that it made
///     map.view().neighbour(k, row);                                    // in kernels
///
/// Rows are those of the indices. The map does not refer to the indices after it was made.
///
/// Cost: 4 bytes a row and offset, 4 bytes a row for the masks. A window that spans no more than two blocks
/// on each axis looks its blocks up, 3.4 of them on average for 3 x 3 x 3, and counts bits for each offset.
///
/// Deterministic. Threads, streams, failure: as in frozen_map.
template <int D, class Place = host>
class kernel_map {
 public:
  using index_type = coordinate_index<D, Place>;
  using shape_type = kernel_shape<D>;
  using options = kernel_map_options<D>;
  static constexpr std::uint32_t no_row = roost::no_row<std::uint32_t>;

  /// A map without rows.
  kernel_map() = default;
  kernel_map(kernel_map&&) noexcept = default;
  kernel_map& operator=(kernel_map&&) noexcept = default;

  /// The number of offsets, of input rows, of output rows and of pairs (0 without options::pairs).
  std::uint32_t volume() const { return shape_.volume(); }
  std::size_t input_size() const { return inputs_; }
  std::size_t output_size() const { return outputs_; }
  std::size_t pairs() const { return pairs_; }

  /// The shape, with all that was unset set.
  const shape_type& shape() const { return shape_; }
  /// What an offset adds to the position o * stride of an output.
  std::array<int, D> offset(std::uint32_t k) const;

  /// The dense form: row k * neighbour_stride() + o is the input row of offset k and output row o, or no_row.
  /// Memory of the place.
  std::span<const std::uint32_t> neighbours() const { return neighbours_.span(); }
  std::size_t neighbour_stride() const { return stride_; }
  /// A bit for each offset that has a row: mask_words() words for each output row.
  std::span<const std::uint32_t> masks() const { return masks_.span(); }
  std::uint32_t mask_words() const { return detail::ceil_div(volume(), 32u); }

  /// The pairs form: grouped by offset, ordered by output row; those of offset k are from pair_begins()[k] to
  /// pair_begins()[k + 1]. Memory of the place. Empty without options::pairs.
  std::span<const std::uint32_t> input_rows() const { return input_rows_.span().first(pairs_); }
  std::span<const std::uint32_t> output_rows() const { return output_rows_.span().first(pairs_); }
  std::span<const std::uint64_t> pair_begins() const { return pair_begins_.span(); }

  kernel_map_view view() const;
  /// The same the other way round, without a copy: for transposed convolution, and for gradients of inputs.
  /// Input and output rows are exchanged; weights are those of the same offset. Its neighbours are there if
  /// the map is submanifold with odd sizes, or has options::inverse.
  kernel_map_view transposed() const;

  /// The index of the voxels that convolution(), pooling() or generative() made. Throws invalid_argument for
  /// other maps.
  const index_type& made_outputs() const;

  /// Makes the map of a submanifold(), or a map with made_outputs(), anew, without a wait: for an index that
  /// was built by rebuild_async(), in CUDA graphs. The map must have been made from an index with a capacity
  /// (invalid_argument otherwise). What the host knows of sizes is right after finish(); views keep valid.
  void rebuild_async(const Place& place, const index_type& inputs);
  /// Waits, and takes over what was counted. Throws build_error if outputs or pairs did not fit.
  /// Synchronises.
  void finish(const Place& place);

  std::size_t bytes() const;
  /// Checks what must hold: rows and masks agree, rows are there, pairs are the same. Synchronises.
  bool valid(const Place& place) const;

 private:
  enum class maps { submanifold, convolution, generative };

  template <int A, class P>
  friend kernel_map<A, P> submanifold(const P&, const coordinate_index<A, P>&, const kernel_shape<A>&,
                                      const kernel_map_options<A>&);
  template <int A, class P>
  friend kernel_map<A, P> convolution(const P&, const coordinate_index<A, P>&, const kernel_shape<A>&,
                                      const kernel_map_options<A>&);
  template <int A, class P>
  friend kernel_map<A, P> convolution(const P&, const coordinate_index<A, P>&, const coordinate_index<A, P>&,
                                      const kernel_shape<A>&, const kernel_map_options<A>&);
  template <int A, class P>
  friend kernel_map<A, P> pooling(const P&, const coordinate_index<A, P>&, kernel_shape<A>,
                                  const kernel_map_options<A>&);
  template <int A, class P>
  friend kernel_map<A, P> generative(const P&, const coordinate_index<A, P>&, const kernel_shape<A>&,
                                     const kernel_map_options<A>&);

  kernel_map(maps kind, const shape_type& shape, const options& chosen, const char* where);

  void prepare(const index_type& inputs, const char* where);
  bool is_fixed() const { return fixed_; }
  void check_outputs(const index_type& inputs, const char* where) const;
  void make_outputs(const Place& place, const index_type& inputs);
  void make(const Place& place, const index_type& inputs, const index_type& outputs);
  template <bool Backward>
  void find_rows(const Place& place, const index_type& targets, const index_type& sources,
                 array<std::uint32_t, Place>& rows, array<std::uint32_t, Place>& masks);
  void find_pairs(const Place& place);
  void order_rows(const Place& place);
  detail::neighbour_output forward() const;

  maps kind_ = maps::submanifold;
  shape_type shape_ = shape_type::cube(1);
  detail::window<D> window_{};
  options options_{};
  bool fixed_ = false;
  std::size_t inputs_ = 0, outputs_ = 0, pairs_ = 0;  // as far as known,
  std::size_t inputs_most_ = 0, outputs_most_ = 0;    // and what there is room for
  std::size_t stride_ = 0, inverse_stride_ = 0;
  array<std::uint64_t, Place> sizes_;  // of inputs and outputs
  array<std::uint32_t, Place> neighbours_, masks_, inverse_, inverse_masks_, order_, ordered_, input_rows_,
      output_rows_;
  array<std::uint64_t, Place> pair_begins_;
  std::optional<index_type> made_;
};

/// The map of a submanifold convolution: outputs are the input voxels, in the same rows. Any size and
/// dilation; the stride must be 1. Asynchronous on cuda without options::pairs. Throws invalid_argument for a
/// shape that is none, out_of_memory.
template <int D, class Place>
kernel_map<D, Place> submanifold(const Place& place, const coordinate_index<D, Place>& index,
                                 const kernel_shape<D>& shape = {}, const kernel_map_options<D>& chosen = {});

/// The map of a convolution, and the index of its outputs (made_outputs(), in order::block). Coordinates of
/// outputs are on the grid of the stride: negative ones are rounded down. Synchronises. Throws
/// invalid_argument for a shape that is none or outputs beyond 32 bits, and as coordinate_index does.
template <int D, class Place>
kernel_map<D, Place> convolution(const Place& place, const coordinate_index<D, Place>& inputs,
                                 const kernel_shape<D>& shape, const kernel_map_options<D>& chosen = {});

/// The map of a convolution whose outputs are there: an encoder's voxels for its decoder, for example.
template <int D, class Place>
kernel_map<D, Place> convolution(const Place& place, const coordinate_index<D, Place>& inputs,
                                 const coordinate_index<D, Place>& outputs, const kernel_shape<D>& shape,
                                 const kernel_map_options<D>& chosen = {});

/// The map of a pooling: a convolution() whose stride is its size where that is unset, and whose padding is 0
/// where that is unset.
template <int D, class Place>
kernel_map<D, Place> pooling(const Place& place, const coordinate_index<D, Place>& inputs,
                             kernel_shape<D> shape = kernel_shape<D>::cube(2),
                             const kernel_map_options<D>& chosen = {});

/// The map of a generative (transposed) convolution: each input makes the outputs o = i * stride - padding +
/// k * dilation for all k, as torch's conv_transpose3d does. Otherwise as convolution().
template <int D, class Place>
kernel_map<D, Place> generative(const Place& place, const coordinate_index<D, Place>& inputs,
                                const kernel_shape<D>& shape, const kernel_map_options<D>& chosen = {});

}  // namespace roost

#include "roost/sparse/detail/map.hpp"
