#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "roost/sparse/detail/neighbours.hpp"

#if defined(__CUDACC__)
#include <cub/block/block_radix_sort.cuh>
#endif

// The tables of a kernel_map, and their builds.

namespace roost {

template <int D, class Place>
class kernel_map;

}  // namespace roost

namespace roost::detail {

/// Throws unless a shape is valid.
template <int D>
void check_shape(const kernel_shape<D>& shape, bool strides, const char* where) {
  constexpr int most = 1 << 20;  // of steps, so that nothing overflows
  for (std::size_t a = 0; a < D; ++a) {
    const int size = shape.size[a], stride = shape.stride[a], dilation = shape.dilation[a],
              padding = shape.padding[a];
    const auto check = [&](bool good, const char* what, int number, const char* advice) {
      if (!good) raise<invalid_argument>({where, ": a ", what, " ", number, " on axis ", a, "; ", advice});
    };
    check(size >= 1 && size <= kernel_shape<D>::size_most, "kernel of size", size, "give 1 to 5");
    check(stride >= 1 && stride <= most && (strides || stride == 1), "stride of", stride,
          strides ? "give 1 to 2^20" : "outputs are the inputs: give 1");
    check(dilation >= 1 && dilation <= most, "dilation of", dilation, "give 1 to 2^20");
    check(padding >= kernel_shape<D>::unset && padding <= 5 * most, "padding of", padding,
          "give 0 to 5 * 2^20, or leave it unset");
  }
}

template <int D>
coordinate_box<D> everywhere() {
  constexpr auto lowest = std::numeric_limits<std::int32_t>::min(),
                 highest = std::numeric_limits<std::int32_t>::max();
  coordinate_box<D> box{{lowest, {}}, {highest, {}}};
  for (int a = 0; a < D; ++a) box.least.at[a] = lowest, box.greatest.at[a] = highest;
  return box;
}

#if defined(__CUDACC__)

// Orders a map's rows so that rows with equal neighbour masks are consecutive: then a tile of a convolution
// has few offsets. Rows stay in their group, whose neighbours are in the cache at the same time.

/// order[p]: the row at position p. Rows are sorted by their masks as numbers of a Gray code, whose first
/// digits are the offsets near the kernel's centre: then consecutive masks differ little.
struct order_by_masks {
  static constexpr int threads = 512, each = 16, group = threads * each;
  using sort = cub::BlockRadixSort<std::uint32_t, threads, each, std::uint16_t>;

  const std::uint32_t* masks;
  std::uint32_t words;
  int bits;                 // of a mask's first word
  std::uint8_t digits[32];  // which bit of the mask each digit is, the first digit first
  const std::uint64_t* count;
  std::uint64_t most;
  std::uint32_t* order;

  static std::size_t scratch_bytes() { return sizeof(typename sort::TempStorage); }

  template <class Team>
  ROOST_FN void operator()(const Team&, std::size_t index, std::byte* scratch) const {
#if ROOST_ON_DEVICE
    const std::uint64_t first = index * group, rows = *count;
    std::uint32_t keys[each];
    std::uint16_t from[each];
    ROOST_UNROLL
    for (int i = 0; i < each; ++i) {
      const std::uint32_t at = threadIdx.x * each + static_cast<std::uint32_t>(i);
      keys[i] = first + at < rows ? key_of(masks[(first + at) * words]) : ~0u;  // padding comes last
      from[i] = static_cast<std::uint16_t>(at);
    }
    sort(*reinterpret_cast<typename sort::TempStorage*>(scratch)).SortBlockedToStriped(keys, from, 0, bits);
    ROOST_UNROLL
    for (int i = 0; i < each; ++i) {
      const std::uint64_t position = first + static_cast<std::uint32_t>(i * threads) + threadIdx.x;
      if (position < most) order[position] = static_cast<std::uint32_t>(first) + from[i];
    }
#endif
  }

 private:
  ROOST_FN std::uint32_t key_of(std::uint32_t mask) const {
    std::uint32_t key = 0, digit = 0;
    for (int i = 0; i < bits; ++i) digit ^= mask >> digits[i] & 1, key = key << 1 | digit;
    return key;
  }
};

/// ordered[k][p]: the neighbour of the row at position p.
struct order_neighbours {
  static constexpr int threads = 512, group = order_by_masks::group;
  const std::uint32_t *neighbours, *order;
  std::uint64_t stride, most, groups;
  std::uint32_t* ordered;

  static std::size_t scratch_bytes() { return group * sizeof(std::uint32_t); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* scratch) const {
#if ROOST_ON_DEVICE
    auto* const here = reinterpret_cast<std::uint32_t*>(scratch);
    const std::uint64_t first = index % groups * group, begin = index / groups * stride + first;
    const std::uint32_t rows = static_cast<std::uint32_t>(smaller<std::uint64_t>(group, most - first));
    ROOST_UNROLL
    for (std::uint32_t i = threadIdx.x; i < group; i += threads)
      if (i < rows) here[i] = neighbours[begin + i];
    team.sync();
    ROOST_UNROLL
    for (std::uint32_t i = threadIdx.x; i < group; i += threads)
      if (i < rows) ordered[begin + i] = here[order[first + i] - static_cast<std::uint32_t>(first)];
#endif
  }
};

#endif  // __CUDACC__

enum class map_kind { submanifold, convolution, generative };

/// The call that makes such a map.
inline const char* call_of(map_kind kind) {
  return kind == map_kind::submanifold   ? "roost::submanifold"
         : kind == map_kind::convolution ? "roost::convolution"
                                         : "roost::generative";
}

/// The sizes of a map's inputs and outputs, from where they are; null: 0.
struct size_of_either {
  const std::uint64_t *inputs, *outputs;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t* const size = i == 0 ? inputs : outputs;
    return size != nullptr ? *size : 0;
  }
};

/// Neighbours of rows, and their masks.
template <class Place>
struct neighbour_arrays {
  array<std::uint32_t, Place> rows, masks;
  std::size_t stride = 0;

  void make_room(const Place& place, std::size_t most, std::uint32_t volume, std::uint32_t words) {
    stride = (most + 31) / 32 * 32;
    place.expect_room((volume * stride + most * words) * sizeof(std::uint32_t));
    rows = array<std::uint32_t, Place>(place, volume * stride);
    masks = array<std::uint32_t, Place>(place, most * words);
  }
  neighbour_output output(std::uint32_t words) const {
    return {const_cast<std::uint32_t*>(rows.data()), stride, const_cast<std::uint32_t*>(masks.data()), words};
  }
};

/// The contents of a kernel_map: the neighbours of each output row, and the tables that its options request.
template <int D, class Place>
class neighbour_table {
  using index_type = coordinate_index<D, Place>;
  using row_array = array<std::uint32_t, Place>;

 public:
  neighbour_table() = default;
  /// `outputs`: null if the map makes them.
  neighbour_table(const Place& place, map_kind kind, const index_type& inputs, const index_type* outputs,
                  const kernel_shape<D>& shape, const kernel_map_options<D>& options)
      : kind_(kind), shape_(shape), options_(options) {
    set_window();
    fixed_ = inputs.capacity() != 0 && (kind == map_kind::submanifold || outputs == nullptr);
    if (outputs != nullptr) {
      make(place, inputs, *outputs);
      return;
    }
    if (fixed_ && options_.capacity == 0) options_.capacity = inputs.capacity();
    if (!fixed_ && !inputs.empty()) check_outputs(inputs.bounds());
    made_.emplace();
    made_->table_.options_.rows_of_input = false;
    made_->table_.options_.capacity = fixed_ ? options_.capacity : 0;
    make_outputs(place, inputs);
    make(place, inputs, *made_);
  }

  std::uint32_t volume() const { return shape_.volume(); }
  std::uint32_t mask_words() const { return ceil_div(volume(), 32u); }

  std::array<int, D> offset(std::uint32_t k) const {
    std::array<int, D> result;
    for (std::size_t a = D; a-- != 0;) {
      const auto size = static_cast<std::uint32_t>(shape_.size[a]);
      result[a] = static_cast<int>(k % size) * shape_.dilation[a] - shape_.padding[a];
      k /= size;
    }
    return result;
  }

  kernel_map_view view() const {
    kernel_map_view result;
    result.volume = volume();
    result.inputs = inputs_most_, result.outputs = outputs_most_;
    if (sizes_.size() != 0) result.device_inputs = sizes_.data(), result.device_outputs = sizes_.data() + 1;
    result.neighbours = forward_.rows.data();
    result.stride = forward_.stride;
    result.masks = forward_.masks.data();
    result.words = mask_words();
    if (order_.size() != 0) result.order = order_.data(), result.ordered_neighbours = ordered_.data();
    if (options_.pairs) {
      result.input_rows = input_rows_.data(), result.output_rows = output_rows_.data();
      result.pair_begins = pair_begins_.data();
      result.pairs = fixed_ ? input_rows_.size() : pairs_;
    }
    return result;
  }

  kernel_map_view transposed() const {
    kernel_map_view result = view();
    std::swap(result.inputs, result.outputs);
    std::swap(result.device_inputs, result.device_outputs);
    std::swap(result.input_rows, result.output_rows);
    result.turned = kind_ == map_kind::submanifold;
    for (std::size_t a = 0; a < D; ++a)
      result.turned &= 2 * shape_.padding[a] == shape_.dilation[a] * (shape_.size[a] - 1);
    if (result.turned) return result;
    result.neighbours = result.masks = nullptr;
    if (options_.inverse) {
      result.neighbours = inverse_.rows.data();
      result.stride = inverse_.stride;
      result.masks = inverse_.masks.data();
      result.order = result.ordered_neighbours = nullptr;
    }
    return result;
  }

  const index_type& made_outputs() const {
    if (!made_) {
      raise<invalid_argument>(
          {"roost::kernel_map::made_outputs: this map has made no voxels; its outputs are "
           "those it was given"});
    }
    return *made_;
  }

  void rebuild_async(const Place& place, const index_type& inputs) {
    if (!fixed_ || inputs.capacity() != inputs_most_) {
      raise<invalid_argument>(
          {"roost::kernel_map::rebuild_async: the map must have been made from this index, "
           "or one of its capacity (options.capacity of coordinate_index)"});
    }
    try {
      if (made_) make_outputs(place, inputs);
      make(place, inputs, made_ ? *made_ : inputs);
    } catch (...) {
      if (made_) made_->table_.clear(place);
      for (auto* words : {&sizes_, &pair_begins_}) place.fill(words->data(), 0, words->bytes());
      inputs_ = outputs_ = pairs_ = 0;
      throw;
    }
  }

  void finish(const Place& place) {
    if (!fixed_) return;
    if (made_) made_->finish(place);
    std::uint64_t sizes[2] = {}, all = 0;
    place.copy_to_host(sizes, sizes_.data(), sizeof(sizes));
    inputs_ = sizes[0], outputs_ = sizes[1];
    if (!options_.pairs) return;
    place.copy_to_host(&all, pair_begins_.data() + volume(), sizeof(all));
    if (all > input_rows_.size()) {
      raise<build_error>({"roost::kernel_map: ", all, " pairs, and room for ", input_rows_.size(),
                          "; give options.pairs_capacity"});
    }
    pairs_ = all;
  }

  std::size_t bytes() const {
    return sizes_.bytes() + forward_.rows.bytes() + forward_.masks.bytes() + inverse_.rows.bytes() +
           inverse_.masks.bytes() + order_.bytes() + ordered_.bytes() + input_rows_.bytes() +
           output_rows_.bytes() + pair_begins_.bytes() + (made_ ? made_->bytes() : 0);
  }

  bool valid(const Place& place) const {
    if (sizes_.size() == 0) return true;
    if (made_ && !made_->valid(place)) return false;
    std::uint64_t sizes[2] = {}, all = 0;
    place.copy_to_host(sizes, sizes_.data(), sizeof(sizes));
    const auto good = [&](const neighbour_arrays<Place>& map, std::uint64_t rows, std::uint64_t sources) {
      return place.sum(rows * volume(), wrong_neighbour{map.output(mask_words()), rows, sources}) == 0;
    };
    if (!good(forward_, sizes[1], sizes[0])) return false;
    if (options_.inverse && !good(inverse_, sizes[0], sizes[1])) return false;
    if (!options_.pairs) return true;
    place.copy_to_host(&all, pair_begins_.data() + volume(), sizeof(all));
    return all <= input_rows_.size() &&
           place.sum(all, wrong_pair{forward_.output(mask_words()), volume(), pair_begins_.data(),
                                     input_rows_.data(), output_rows_.data(), sizes[1]}) == 0;
  }

 private:
  friend class kernel_map<D, Place>;

  /// Chooses what the shape leaves open.
  void set_window() {
    for (int& stride : shape_.stride) stride = stride == shape_.unset ? 1 : stride;
    check_shape(shape_, kind_ != map_kind::submanifold, call_of(kind_));
    for (std::size_t a = 0; a < D; ++a) {
      if (shape_.padding[a] == shape_.unset)
        shape_.padding[a] = shape_.dilation[a] * (shape_.size[a] - 1) / 2;
      window_.size[a] = shape_.size[a];
      window_.stride[a] = shape_.stride[a];
      window_.dilation[a] = shape_.dilation[a];
      window_.padding[a] = shape_.padding[a];
      const auto stride = static_cast<unsigned>(shape_.stride[a]);
      window_.shift[a] = std::has_single_bit(stride) ? std::countr_zero(stride) : -1;
    }
  }

  /// Throws if coordinates of outputs might need more than 32 bits.
  void check_outputs(const coordinate_box<D>& box) const {
    using limits = std::numeric_limits<std::int32_t>;
    for (int a = 0; a < D; ++a) {
      const std::int64_t reach = std::int64_t{window_.size[a] - 1} * window_.dilation[a];
      std::int64_t low = box.least.at[a], high = box.greatest.at[a];
      if (kind_ == map_kind::generative) {
        low = low * window_.stride[a] - window_.padding[a];
        high = high * window_.stride[a] - window_.padding[a] + reach;
      } else {
        low = window_.divided(a, low + window_.padding[a] - reach);
        high = window_.divided(a, high + window_.padding[a]);
      }
      if (options_.bounds) {
        low = std::max<std::int64_t>(low, options_.bounds->least.at[a]);
        high = std::min<std::int64_t>(high, options_.bounds->greatest.at[a]);
      }
      if (low < limits::min() || high > limits::max()) {
        raise<invalid_argument>({call_of(kind_), ": outputs from ", low, " to ", high, " on axis ", a,
                                 "; coordinates have 32 bits: give options.bounds, or move the inputs"});
      }
    }
  }

  std::size_t rows_of(const index_type& index) const { return fixed_ ? index.capacity() : index.size(); }

  void make_outputs(const Place& place, const index_type& inputs) {
    auto& made = made_->table_;
    const coordinate_box<D> bounds = options_.bounds ? *options_.bounds : everywhere<D>();
    const std::size_t most = rows_of(inputs);
    const auto build = [&](const auto& source, std::size_t likely) {
      if (fixed_ && made.has_memory()) {
        made.fill(place, source);
      } else {
        made.build(place, source, likely);
      }
    };
    const coordinate<D>* const sources = inputs.coordinates().data();
    if (kind_ == map_kind::generative) {
      const reached_voxels<D, false> source(sources, inputs.device_size(), most, window_, bounds);
      build(source, source.size());
    } else if (options_.outputs == output_voxels::reached) {
      const reached_voxels<D, true> source(sources, inputs.device_size(), most, window_, bounds);
      const bool grows = std::ranges::count(shape_.stride, 1) == D;
      build(source, grows ? 4 * most : most);
    } else {
      build(strided_voxels<D>{sources, inputs.device_size(), most, window_, bounds}, most);
    }
  }

  /// Computes the tables for given inputs and outputs.
  void make(const Place& place, const index_type& inputs, const index_type& outputs) {
    inputs_most_ = rows_of(inputs), outputs_most_ = rows_of(outputs);
    inputs_ = inputs.size(), outputs_ = outputs.size();
    if (sizes_.size() == 0) {
      sizes_ = array<std::uint64_t, Place>(place, 2);
      forward_.make_room(place, outputs_most_, volume(), mask_words());
      if (options_.inverse) inverse_.make_room(place, inputs_most_, volume(), mask_words());
    }
    write_numbers(place, 2, size_of_either{inputs.device_size(), outputs.device_size()}, sizes_.data());
    for (const bool inverse : {false, true}) {
      if (inverse && !options_.inverse) continue;
      inverse != (kind_ == map_kind::generative) ? find_rows<true>(place, inputs, outputs, inverse)
                                                 : find_rows<false>(place, inputs, outputs, inverse);
    }
    if (options_.by_masks) order_rows(place);
    if (options_.pairs) find_pairs(place);
  }

  /// The neighbours of each output among the inputs; inverse: of each input among the outputs.
  template <bool Backward>
  void find_rows(const Place& place, const index_type& inputs, const index_type& outputs, bool inverse) {
    const index_type &targets = inverse ? inputs : outputs, &sources = inverse ? outputs : inputs;
    const std::size_t most = inverse ? inputs_most_ : outputs_most_;
    if (most == 0) return;
    auto& to = inverse ? inverse_ : forward_;
    if (sources.device_size() == nullptr) {  // nothing will be found
      place.fill(to.rows.data(), 0xff, to.rows.bytes());
      return place.fill(to.masks.data(), 0, to.masks.bytes());
    }
    const coordinate<D>* const coordinates = targets.coordinates().data();
    const std::uint64_t* const count = sizes_.data() + (inverse ? 0 : 1);
    const neighbour_output target = to.output(mask_words());
    const auto launch = [&](const auto& kernel) {
      detail::launch(place, ceil_div<std::size_t>(most, kernel.tile), kernel);
    };
    sources.with_rows([&](const auto& all) {
      using rows_type = std::remove_cvref_t<decltype(all)>;
      if constexpr (!Backward && std::is_same_v<rows_type, block_rows<D>>) {
        using of_three = read_neighbours<Place, D, 3>;
        using of_any = read_neighbours<Place, D, 0>;
        if (of_three::takes(window_)) return launch(of_three{coordinates, count, all, window_, target});
        if (of_any::takes(window_)) return launch(of_any{coordinates, count, all, window_, target});
      }
      launch(look_up_neighbours<Place, D, rows_type, Backward>{coordinates, count, all, window_, target});
    });
  }

  void order_rows([[maybe_unused]] const Place& place) {
#if defined(__CUDACC__)
    if constexpr (!std::is_same_v<Place, host>) {
      if (outputs_most_ == 0) return;
      if (order_.size() == 0) {
        order_ = row_array(place, outputs_most_);
        ordered_ = row_array(place, forward_.rows.size());
      }
      const std::size_t groups = ceil_div<std::size_t>(outputs_most_, order_by_masks::group);
      const int bits = static_cast<int>(smaller(volume(), 32u));
      order_by_masks sort{.masks = forward_.masks.data(),
                          .words = mask_words(),
                          .bits = bits,
                          .digits = {},
                          .count = sizes_.data() + 1,
                          .most = outputs_most_,
                          .order = order_.data()};
      std::iota(sort.digits, sort.digits + bits, std::uint8_t{0});
      std::stable_sort(sort.digits, sort.digits + bits, [&](std::uint8_t a, std::uint8_t b) {
        return distance_from_centre(a) < distance_from_centre(b);
      });
      place.launch(groups, sort.scratch_bytes(), sort);
      const order_neighbours move{forward_.rows.data(), order_.data(), forward_.stride,
                                  outputs_most_,        groups,        ordered_.data()};
      place.launch(groups * volume(), move.scratch_bytes(), move);
    }
#endif
  }

  /// How far an offset of the kernel is from its centre: the sum of its distances on all axes, doubled.
  int distance_from_centre(int offset) const {
    int distance = 0;
    for (int a = D - 1; a >= 0; --a) {
      distance += std::abs(2 * (offset % window_.size[a]) - (window_.size[a] - 1));
      offset /= window_.size[a];
    }
    return distance;
  }

  void find_pairs(const Place& place) {
    using counts = group_pairs<false>;
    const std::size_t chunks = ceil_div<std::size_t>(outputs_most_, counts::rows_of_chunk);
    if (pair_begins_.size() == 0) pair_begins_ = zeros(place, volume() + std::size_t{1});
    if (chunks == 0) return;
    constexpr std::size_t chunks_of_team = std::is_same_v<Place, host> ? 1 : counts::threads / 32;
    array<std::uint64_t, Place> begins(place, volume() * chunks + 1);
    place.fill(begins.data() + volume() * chunks, 0, sizeof(std::uint64_t));
    const auto list = [&](auto writes) {
      const group_pairs<writes()> run{.map = forward_.output(mask_words()),
                                      .volume = volume(),
                                      .count = sizes_.data() + 1,
                                      .chunks = chunks,
                                      .pairs = begins.data(),
                                      .most = input_rows_.size(),
                                      .source_rows = input_rows_.data(),
                                      .target_rows = output_rows_.data()};
      launch(place, ceil_div(chunks, chunks_of_team), run);
    };
    list(std::false_type());
    place.exclusive_scan(begins.data(), begins.data(), begins.size());
    write_numbers(place, pair_begins_.size(), begin_of_offset{begins.data(), chunks}, pair_begins_.data());
    std::uint64_t room = options_.pairs_capacity;
    if (!fixed_) {
      place.copy_to_host(&room, pair_begins_.data() + volume(), sizeof(room));
      pairs_ = room;
    } else if (room == 0) {
      room = outputs_most_ * volume() / 2 + 1;
    }
    if (input_rows_.size() == 0) {
      input_rows_ = row_array(place, room);
      output_rows_ = row_array(place, room);
    }
    list(std::true_type());
  }

  map_kind kind_ = map_kind::submanifold;
  kernel_shape<D> shape_ = kernel_shape<D>::cube(1);
  window<D> window_{};
  kernel_map_options<D> options_{};
  bool fixed_ = false;                                // rebuild_async() may be called
  std::size_t inputs_ = 0, outputs_ = 0, pairs_ = 0;  // as far as the host knows
  std::size_t inputs_most_ = 0, outputs_most_ = 0;    // the room for them
  array<std::uint64_t, Place> sizes_;                 // of inputs and outputs
  neighbour_arrays<Place> forward_, inverse_;
  row_array order_, ordered_, input_rows_, output_rows_;
  array<std::uint64_t, Place> pair_begins_;
  std::optional<index_type> made_;
};

}  // namespace roost::detail
