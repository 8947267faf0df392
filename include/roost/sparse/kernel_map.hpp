#pragma once

#include "roost/sparse/detail/map.hpp"

/// \file
/// Kernel maps: which input row each offset of a convolution's kernel reads, for each output row.

namespace roost {

/// The input row that each offset of a kernel reads, for each output row: the neighbourhoods over which
/// sparse convolution and pooling iterate. Make one with submanifold(), convolution(), pooling() or
/// generative(), and use it for every layer with the same voxels and shape.
///
///     const auto map = roost::submanifold(gpu, index);                 // 3 x 3 x 3
///     const auto down = roost::convolution(gpu, index, roost::kernel_shape<3>::cube(2, 2));
///     down.made_outputs().coordinates();                               // the output voxels
///     map.view().neighbour(k, row);                                    // in kernels
///
/// Rows are those of the indices. The map does not refer to the indices after it is built.
///
/// Cost: 4 bytes per row and offset, and 4 bytes per row for the masks. If a window spans at most two blocks
/// on each axis, its blocks are looked up (3.4 on average for 3 x 3 x 3), and bits are counted for each
/// offset.
///
/// Deterministic. Threads, streams, failure: as in frozen_map.
template <int D, class Place /* = host */>
class kernel_map {
  using table = detail::neighbour_table<D, Place>;

 public:
  using index_type = coordinate_index<D, Place>;
  using shape_type = kernel_shape<D>;
  using options = kernel_map_options<D>;
  static constexpr std::uint32_t no_row = roost::no_row<std::uint32_t>;

  /// A map without rows.
  kernel_map() = default;
  /// Called by submanifold() and the others below.
  explicit kernel_map(table&& made) : table_(std::move(made)) {}
  kernel_map(kernel_map&&) noexcept = default;
  kernel_map& operator=(kernel_map&&) noexcept = default;

  /// The number of offsets, of input rows, of output rows and of pairs (0 without options::pairs).
  std::uint32_t volume() const { return table_.volume(); }
  std::size_t input_size() const { return table_.inputs_; }
  std::size_t output_size() const { return table_.outputs_; }
  std::size_t pairs() const { return table_.pairs_; }

  /// The shape, with values for all members that were unset.
  const shape_type& shape() const { return table_.shape_; }
  /// The position of an offset relative to o * stride, the position of an output.
  std::array<int, D> offset(std::uint32_t k) const { return table_.offset(k); }

  /// The dense form: row k * neighbour_stride() + o is the input row of offset k and output row o, or no_row.
  /// Memory of the place.
  std::span<const std::uint32_t> neighbours() const { return table_.forward_.rows.span(); }
  std::size_t neighbour_stride() const { return table_.forward_.stride; }
  /// A bit for each offset, set if it has an input row: mask_words() words for each output row.
  std::span<const std::uint32_t> masks() const { return table_.forward_.masks.span(); }
  std::uint32_t mask_words() const { return table_.mask_words(); }

  /// The pairs form: grouped by offset, ordered by output row; those of offset k are from pair_begins()[k] to
  /// pair_begins()[k + 1]. Memory of the place. Empty without options::pairs.
  std::span<const std::uint32_t> input_rows() const { return table_.input_rows_.span().first(pairs()); }
  std::span<const std::uint32_t> output_rows() const { return table_.output_rows_.span().first(pairs()); }
  std::span<const std::uint64_t> pair_begins() const { return table_.pair_begins_.span(); }

  kernel_map_view view() const { return table_.view(); }
  /// The transposed view, without a copy: for transposed convolution, and for gradients of inputs. Input and
  /// output rows are exchanged; each offset keeps its weights. The view has neighbours if the map is
  /// submanifold with odd sizes, or has options::inverse.
  kernel_map_view transposed() const { return table_.transposed(); }

  /// The index of the outputs of convolution(), pooling() or generative(); invalid_argument for other maps.
  const index_type& made_outputs() const { return table_.made_outputs(); }

  /// Builds the map again, without waiting, if it is from submanifold() or has made_outputs(): for an index
  /// that was built by rebuild_async(), in CUDA graphs. The map must have been built from an index with a
  /// capacity (invalid_argument otherwise). The sizes on the host are right after finish(); views remain
  /// valid. Throws out_of_memory: the map is then empty.
  void rebuild_async(const Place& place, const index_type& inputs) { table_.rebuild_async(place, inputs); }
  /// Waits for rebuild_async(), and updates the sizes on the host. Throws build_error if outputs or pairs did
  /// not fit. Synchronises.
  void finish(const Place& place) { table_.finish(place); }

  std::size_t bytes() const { return table_.bytes(); }
  /// Checks the invariants: rows and masks agree, all rows exist, and pairs agree with neighbours.
  /// Synchronises.
  bool valid(const Place& place) const { return table_.valid(place); }

 private:
  table table_;
};

/// The map of a submanifold convolution: outputs are the input voxels, in the same rows. Any size and
/// dilation; the stride must be 1. Asynchronous on cuda without options::pairs. Throws invalid_argument for
/// an invalid shape, out_of_memory.
template <int D, class Place>
kernel_map<D, Place> submanifold(const Place& place, const coordinate_index<D, Place>& index,
                                 const kernel_shape<D>& shape = {},
                                 const kernel_map_options<D>& chosen = {}) {
  return kernel_map<D, Place>({place, detail::map_kind::submanifold, index, &index, shape, chosen});
}

/// The map of a convolution, and the index of its outputs (made_outputs(), in order::block). Coordinates of
/// outputs are on the grid of the stride: negative ones are rounded down. Synchronises. Throws
/// invalid_argument for an invalid shape or for outputs beyond 32 bits, and as coordinate_index does.
template <int D, class Place>
kernel_map<D, Place> convolution(const Place& place, const coordinate_index<D, Place>& inputs,
                                 const kernel_shape<D>& shape, const kernel_map_options<D>& chosen = {}) {
  return kernel_map<D, Place>({place, detail::map_kind::convolution, inputs, nullptr, shape, chosen});
}

/// The map of a convolution with given output voxels: those of an encoder for its decoder, for example.
template <int D, class Place>
kernel_map<D, Place> convolution(const Place& place, const coordinate_index<D, Place>& inputs,
                                 const coordinate_index<D, Place>& outputs, const kernel_shape<D>& shape,
                                 const kernel_map_options<D>& chosen = {}) {
  return kernel_map<D, Place>({place, detail::map_kind::convolution, inputs, &outputs, shape, chosen});
}

/// The map of a pooling: a convolution() whose stride defaults to its size, and whose padding defaults to 0.
template <int D, class Place>
kernel_map<D, Place> pooling(const Place& place, const coordinate_index<D, Place>& inputs,
                             kernel_shape<D> shape = kernel_shape<D>::cube(2),
                             const kernel_map_options<D>& chosen = {}) {
  for (std::size_t a = 0; a < D; ++a) {
    if (shape.stride[a] == kernel_shape<D>::unset) shape.stride[a] = shape.size[a];
    if (shape.padding[a] == kernel_shape<D>::unset) shape.padding[a] = 0;
  }
  return convolution(place, inputs, shape, chosen);
}

/// The map of a generative (transposed) convolution: each input makes the outputs o = i * stride - padding +
/// k * dilation for all k, as torch's conv_transpose3d does. Otherwise as convolution().
template <int D, class Place>
kernel_map<D, Place> generative(const Place& place, const coordinate_index<D, Place>& inputs,
                                const kernel_shape<D>& shape, const kernel_map_options<D>& chosen = {}) {
  return kernel_map<D, Place>({place, detail::map_kind::generative, inputs, nullptr, shape, chosen});
}

}  // namespace roost
