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

/// The input row that each offset of a kernel reads, for each output row: the neighbourhoods over which
/// sparse convolution and pooling iterate. Make one with submanifold(), convolution(), pooling() or
/// generative(), and use it for every layer with the same voxels and shape.
///
///     const auto map = roost::submanifold(gpu, index);                 // 3 x 3 x 3
///     const auto down = roost::convolution(gpu, index, roost::kernel_shape<3>::cube(2, 2));
///     down.outputs().coordinates();                                    // the output voxels
///     map.view().neighbour(k, row);                                    // in kernels
///
/// Rows are those of the indices. The map does not refer to the indices after it is built.
///
/// Cost: 4 bytes per row and offset, and 4 bytes per row for the masks. If a window spans at most two blocks
/// on each axis, its blocks are looked up (3.4 on average for 3 x 3 x 3), and bits are counted for each
/// offset.
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

  /// The shape, with values for all members that were unset.
  const shape_type& shape() const { return shape_; }
  /// The position of an offset relative to o * stride, the position of an output.
  std::array<int, D> offset(std::uint32_t k) const;

  /// The dense form: row k * neighbour_stride() + o is the input row of offset k and output row o, or no_row.
  /// Memory of the place.
  std::span<const std::uint32_t> neighbours() const { return neighbours_.span(); }
  std::size_t neighbour_stride() const { return stride_; }
  /// A bit for each offset, set if it has an input row: mask_words() words for each output row.
  std::span<const std::uint32_t> masks() const { return masks_.span(); }
  std::uint32_t mask_words() const { return detail::ceil_div(volume(), 32u); }

  /// The pairs form: grouped by offset, ordered by output row; those of offset k are from pair_begins()[k] to
  /// pair_begins()[k + 1]. Memory of the place. Empty without options::pairs.
  std::span<const std::uint32_t> input_rows() const { return input_rows_.span().first(pairs_); }
  std::span<const std::uint32_t> output_rows() const { return output_rows_.span().first(pairs_); }
  std::span<const std::uint64_t> pair_begins() const { return pair_begins_.span(); }

  kernel_map_view view() const;
  /// The transposed view, without a copy: for transposed convolution, and for gradients of inputs. Input and
  /// output rows are exchanged; each offset keeps its weights. The view has neighbours if the map is
  /// submanifold with odd sizes, or has options::inverse.
  kernel_map_view transposed() const;

  /// The index of the output voxels of convolution(), pooling() or generative(). Throws invalid_argument for
  /// other maps.
  const index_type& made_outputs() const;

  /// Builds the map again, without waiting, if it is from submanifold() or has made_outputs(): for an index
  /// that was built by rebuild_async(), in CUDA graphs. The map must have been built from an index with a
  /// capacity (invalid_argument otherwise). The sizes on the host are right after finish(); views remain
  /// valid.
  void rebuild_async(const Place& place, const index_type& inputs);
  /// Waits for rebuild_async(), and updates the sizes on the host. Throws build_error if outputs or pairs did
  /// not fit. Synchronises.
  void finish(const Place& place);

  std::size_t bytes() const;
  /// Checks the invariants: rows and masks agree, all rows exist, and pairs agree with neighbours.
  /// Synchronises.
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
  std::size_t inputs_ = 0, outputs_ = 0, pairs_ = 0;  // as far as the host knows,
  std::size_t inputs_most_ = 0, outputs_most_ = 0;    // and upper bounds: the room for them
  std::size_t stride_ = 0, inverse_stride_ = 0;
  array<std::uint64_t, Place> sizes_;  // of inputs and outputs
  array<std::uint32_t, Place> neighbours_, masks_, inverse_, inverse_masks_, order_, ordered_, input_rows_,
      output_rows_;
  array<std::uint64_t, Place> pair_begins_;
  std::optional<index_type> made_;
};

/// The map of a submanifold convolution: outputs are the input voxels, in the same rows. Any size and
/// dilation; the stride must be 1. Asynchronous on cuda without options::pairs. Throws invalid_argument for
/// an invalid shape, out_of_memory.
template <int D, class Place>
kernel_map<D, Place> submanifold(const Place& place, const coordinate_index<D, Place>& index,
                                 const kernel_shape<D>& shape = {}, const kernel_map_options<D>& chosen = {});

/// The map of a convolution, and the index of its outputs (made_outputs(), in order::block). Coordinates of
/// outputs are on the grid of the stride: negative ones are rounded down. Synchronises. Throws
/// invalid_argument for an invalid shape or for outputs beyond 32 bits, and as coordinate_index does.
template <int D, class Place>
kernel_map<D, Place> convolution(const Place& place, const coordinate_index<D, Place>& inputs,
                                 const kernel_shape<D>& shape, const kernel_map_options<D>& chosen = {});

/// The map of a convolution with given output voxels: those of an encoder for its decoder, for example.
template <int D, class Place>
kernel_map<D, Place> convolution(const Place& place, const coordinate_index<D, Place>& inputs,
                                 const coordinate_index<D, Place>& outputs, const kernel_shape<D>& shape,
                                 const kernel_map_options<D>& chosen = {});

/// The map of a pooling: a convolution() whose stride defaults to its size, and whose padding defaults to 0.
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
