#pragma once

// Bodies of roost/sparse/kernel_map.hpp.

#include <bit>

#include "roost/sparse/kernel_map.hpp"

namespace roost {
namespace detail {

/// Throws unless a shape is valid.
template <int D>
void check_shape(const kernel_shape<D>& shape, bool strides, const char* where) {
  constexpr int most = 1 << 20;  // of steps, so that nothing overflows
  for (std::size_t a = 0; a < D; ++a) {
    const int size = shape.size[a], stride = shape.stride[a], dilation = shape.dilation[a],
              padding = shape.padding[a];
    if (size < 1 || size > kernel_shape<D>::size_most)
      detail::raise<invalid_argument>({where, ": a kernel of size ", size, " on axis ", a, "; give 1 to 5"});
    if (stride < 1 || stride > most || (!strides && stride != 1)) {
      detail::raise<invalid_argument>({where, ": a stride of ", stride, " on axis ", a,
                                       strides ? "; give 1 to 2^20" : "; outputs are the inputs: give 1"});
    }
    if (dilation < 1 || dilation > most)
      detail::raise<invalid_argument>(
          {where, ": a dilation of ", dilation, " on axis ", a, "; give 1 to 2^20"});
    if (padding < kernel_shape<D>::unset || padding > 5 * most)
      detail::raise<invalid_argument>(
          {where, ": a padding of ", padding, " on axis ", a, "; give 0 to 5 * 2^20, or leave it unset"});
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

}  // namespace detail

template <int D, class Place>
kernel_map<D, Place>::kernel_map(maps kind, const shape_type& shape, const options& chosen, const char* where)
    : kind_(kind), shape_(shape), options_(chosen) {
  for (int& stride : shape_.stride) stride = stride == shape_type::unset ? 1 : stride;
  detail::check_shape(shape_, kind != maps::submanifold, where);
  for (std::size_t a = 0; a < D; ++a) {
    if (shape_.padding[a] == shape_type::unset)
      shape_.padding[a] = shape_.dilation[a] * (shape_.size[a] - 1) / 2;
    window_.size[a] = shape_.size[a];
    window_.stride[a] = shape_.stride[a];
    window_.dilation[a] = shape_.dilation[a];
    window_.padding[a] = shape_.padding[a];
    const auto stride = static_cast<unsigned>(shape_.stride[a]);
    window_.shift[a] = std::has_single_bit(stride) ? std::countr_zero(stride) : -1;
  }
}

template <int D, class Place>
std::array<int, D> kernel_map<D, Place>::offset(std::uint32_t k) const {
  std::array<int, D> result;
  for (std::size_t a = D; a-- != 0;) {
    const auto size = static_cast<std::uint32_t>(shape_.size[a]);
    result[a] = static_cast<int>(k % size) * shape_.dilation[a] - shape_.padding[a];
    k /= size;
  }
  return result;
}

template <int D, class Place>
detail::neighbour_output kernel_map<D, Place>::forward() const {
  return {const_cast<std::uint32_t*>(neighbours_.data()), stride_, const_cast<std::uint32_t*>(masks_.data()),
          mask_words()};
}

/// Throws if coordinates of outputs might need more than 32 bits.
template <int D, class Place>
void kernel_map<D, Place>::check_outputs(const index_type& inputs, const char* where) const {
  if (inputs.empty() || is_fixed()) return;
  const auto& box = inputs.bounds();
  for (int a = 0; a < D; ++a) {
    const std::int64_t reach = std::int64_t{window_.size[a] - 1} * window_.dilation[a];
    std::int64_t low = box.least.at[a], high = box.greatest.at[a];
    if (kind_ == maps::generative) {
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
    if (low < std::numeric_limits<std::int32_t>::min() || high > std::numeric_limits<std::int32_t>::max()) {
      detail::raise<invalid_argument>(
          {where, ": outputs from ", low, " to ", high, " on axis ", a,
           "; coordinates have 32 bits: give options.bounds, or move the inputs"});
    }
  }
}

/// Prepares the map before its outputs are computed.
template <int D, class Place>
void kernel_map<D, Place>::prepare(const index_type& inputs, const char* where) {
  fixed_ = inputs.capacity() != 0;
  if (fixed_ && options_.capacity == 0) options_.capacity = inputs.capacity();
  check_outputs(inputs, where);
}

template <int D, class Place>
void kernel_map<D, Place>::make_outputs(const Place& place, const index_type& inputs) {
  const coordinate_box<D> bounds = options_.bounds ? *options_.bounds : detail::everywhere<D>();
  const std::size_t most = is_fixed() ? inputs.capacity() : inputs.size();
  const auto build = [&](const auto& source, std::size_t likely) {
    if (is_fixed() && made_->memory_.size() != 0) {
      made_->fill(place, source, false);
    } else {
      made_->build(place, source, likely);
    }
  };
  if (!made_) {
    made_.emplace();
    made_->options_.rows_of_input = false;
    made_->options_.capacity = is_fixed() ? options_.capacity : 0;
  }
  if (most == 0) return build(detail::sequence<const coordinate<D>*>{nullptr, 0}, 0);
  const coordinate<D>* const sources = inputs.coordinates_.data();
  if (kind_ == maps::generative) {
    const detail::reached_voxels<D, false> source(sources, inputs.device_size(), most, window_, bounds);
    build(source, source.size());
  } else if (options_.outputs == output_voxels::reached) {
    const detail::reached_voxels<D, true> source(sources, inputs.device_size(), most, window_, bounds);
    const bool grows = std::ranges::count(shape_.stride, 1) == D;
    build(source, grows ? 4 * most : most);
  } else {
    build(detail::strided_voxels<D>{sources, inputs.device_size(), most, window_, {bounds}}, most);
  }
}

/// Computes the tables for given inputs and outputs.
template <int D, class Place>
void kernel_map<D, Place>::make(const Place& place, const index_type& inputs, const index_type& outputs) {
  const auto rows_of = [&](const index_type& index) { return is_fixed() ? index.capacity() : index.size(); };
  const auto padded = [](std::size_t rows) { return (rows + 31) / 32 * 32; };
  inputs_most_ = rows_of(inputs), outputs_most_ = rows_of(outputs);
  inputs_ = inputs.size(), outputs_ = outputs.size();
  stride_ = padded(outputs_most_);
  if (sizes_.size() == 0) {
    sizes_ = detail::zeros(place, 2);
    place.expect_room((std::size_t{volume()} * stride_ + outputs_most_ * mask_words()) *
                      sizeof(std::uint32_t));
    neighbours_ = array<std::uint32_t, Place>(place, volume() * stride_);
    masks_ = array<std::uint32_t, Place>(place, outputs_most_ * mask_words());
    if (options_.inverse) {
      inverse_stride_ = padded(inputs_most_);
      inverse_ = array<std::uint32_t, Place>(place, volume() * inverse_stride_);
      inverse_masks_ = array<std::uint32_t, Place>(place, inputs_most_ * mask_words());
    }
  }
  if (inputs.device_size() != nullptr) place.copy(sizes_.data(), inputs.device_size(), sizeof(std::uint64_t));
  if (outputs.device_size() != nullptr)
    place.copy(sizes_.data() + 1, outputs.device_size(), sizeof(std::uint64_t));
  if (kind_ == maps::generative) {
    find_rows<true>(place, outputs, inputs, neighbours_, masks_);
    if (options_.inverse) find_rows<false>(place, inputs, outputs, inverse_, inverse_masks_);
  } else {
    find_rows<false>(place, outputs, inputs, neighbours_, masks_);
    if (options_.inverse) find_rows<true>(place, inputs, outputs, inverse_, inverse_masks_);
  }
  if (options_.by_masks) order_rows(place);
  if (options_.pairs) find_pairs(place);
}

template <int D, class Place>
template <bool Backward>
void kernel_map<D, Place>::find_rows(const Place& place, const index_type& targets, const index_type& sources,
                                     array<std::uint32_t, Place>& rows, array<std::uint32_t, Place>& masks) {
  const bool inverse = &rows == &inverse_;
  const std::size_t most = inverse ? inputs_most_ : outputs_most_;
  if (most == 0) return;
  if (sources.memory_.size() == 0) {  // nothing is found there
    place.fill(rows.data(), 0xff, rows.bytes());
    return place.fill(masks.data(), 0, masks.bytes());
  }
  const coordinate<D>* const coordinates = targets.coordinates_.data();
  const std::uint64_t* const count = sizes_.data() + (inverse ? 0 : 1);
  const detail::neighbour_output target{rows.data(), inverse ? inverse_stride_ : stride_, masks.data(),
                                        mask_words()};
  const auto launch = [&](const auto& kernel) {
    detail::launch(place, detail::ceil_div<std::size_t>(most, kernel.tile), kernel);
  };
  sources.with_rows([&](const auto& all) {
    using rows_type = std::remove_cvref_t<decltype(all)>;
    if constexpr (!Backward && std::is_same_v<rows_type, detail::block_rows<D>>) {
      using of_three = detail::read_neighbours<Place, D, 3>;
      using of_any = detail::read_neighbours<Place, D, 0>;
      if (of_three::takes(window_)) return launch(of_three{coordinates, count, all, window_, target});
      if (of_any::takes(window_)) return launch(of_any{coordinates, count, all, window_, target});
    }
    launch(
        detail::look_up_neighbours<Place, D, rows_type, Backward>{coordinates, count, all, window_, target});
  });
}

template <int D, class Place>
void kernel_map<D, Place>::order_rows([[maybe_unused]] const Place& place) {
#if defined(__CUDACC__)
  if constexpr (!std::is_same_v<Place, host>) {
    if (outputs_most_ == 0) return;
    if (order_.size() == 0) {
      order_ = array<std::uint32_t, Place>(place, outputs_most_);
      ordered_ = array<std::uint32_t, Place>(place, neighbours_.size());
    }
    const std::size_t groups = detail::ceil_div<std::size_t>(outputs_most_, detail::order_by_masks::group);
    const int bits = static_cast<int>(detail::smaller(volume(), 32u));
    const detail::order_by_masks sort{masks_.data(),     mask_words(),  bits,
                                      sizes_.data() + 1, outputs_most_, order_.data()};
    place.launch(groups, sort.scratch_bytes(), sort);
    const detail::order_neighbours move{neighbours_.data(), order_.data(), stride_,
                                        outputs_most_,      groups,        ordered_.data()};
    place.launch(groups * volume(), move.scratch_bytes(), move);
  }
#endif
}

template <int D, class Place>
void kernel_map<D, Place>::find_pairs(const Place& place) {
  const std::size_t chunks = detail::ceil_div<std::size_t>(outputs_most_, detail::pair_chunk);
  if (pair_begins_.size() == 0) pair_begins_ = detail::zeros(place, volume() + std::size_t{1});
  if (chunks == 0) return;
  constexpr std::size_t of_team =  // chunks
      std::is_same_v<Place, host> ? 1 : detail::count_pairs::threads / 32;
  const std::size_t teams = detail::ceil_div(chunks, of_team);
  array<std::uint64_t, Place> begins(place, volume() * chunks + 1);
  place.fill(begins.data() + volume() * chunks, 0, sizeof(std::uint64_t));
  const detail::pair_counts counts{forward(), volume(), sizes_.data() + 1, chunks};
  detail::launch(place, teams, detail::count_pairs{counts, begins.data()});
  place.exclusive_scan(begins.data(), begins.data(), begins.size());
  detail::write_numbers(place, pair_begins_.size(), detail::begin_of_offset{begins.data(), chunks},
                        pair_begins_.data());
  std::uint64_t room = 0;
  if (is_fixed()) {
    room = options_.pairs_capacity != 0 ? options_.pairs_capacity : outputs_most_ * volume() / 2 + 1;
  } else {
    place.copy_to_host(&room, pair_begins_.data() + volume(), sizeof(room));
    pairs_ = room;
  }
  if (input_rows_.size() == 0) {
    input_rows_ = array<std::uint32_t, Place>(place, room);
    output_rows_ = array<std::uint32_t, Place>(place, room);
  }
  detail::launch(place, teams,
                 detail::write_pairs{counts, begins.data(), input_rows_.size(), input_rows_.data(),
                                     output_rows_.data()});
}

template <int D, class Place>
kernel_map_view kernel_map<D, Place>::view() const {
  kernel_map_view result;
  result.volume = volume();
  result.inputs = inputs_most_, result.outputs = outputs_most_;
  if (sizes_.size() != 0) result.device_inputs = sizes_.data(), result.device_outputs = sizes_.data() + 1;
  result.neighbours = neighbours_.data();
  result.stride = stride_;
  result.masks = masks_.data();
  result.words = mask_words();
  if (order_.size() != 0) result.order = order_.data(), result.ordered_neighbours = ordered_.data();
  if (options_.pairs) {
    result.input_rows = input_rows_.data(), result.output_rows = output_rows_.data();
    result.pair_begins = pair_begins_.data();
    result.pairs = is_fixed() ? input_rows_.size() : pairs_;
  }
  return result;
}

template <int D, class Place>
kernel_map_view kernel_map<D, Place>::transposed() const {
  kernel_map_view result = view();
  std::swap(result.inputs, result.outputs);
  std::swap(result.device_inputs, result.device_outputs);
  std::swap(result.input_rows, result.output_rows);
  bool symmetric = kind_ == maps::submanifold;
  for (std::size_t a = 0; a < D; ++a)
    symmetric &= 2 * shape_.padding[a] == shape_.dilation[a] * (shape_.size[a] - 1);
  if (symmetric) {
    result.turned = true;
  } else if (options_.inverse) {
    result.neighbours = inverse_.data();
    result.stride = inverse_stride_;
    result.masks = inverse_masks_.data();
    result.order = result.ordered_neighbours = nullptr;
  } else {
    result.neighbours = nullptr;
    result.masks = nullptr;
  }
  return result;
}

template <int D, class Place>
auto kernel_map<D, Place>::made_outputs() const -> const index_type& {
  if (!made_) {
    detail::raise<invalid_argument>(
        {"roost::kernel_map::made_outputs: this map has made no voxels; its outputs are those it was given"});
  }
  return *made_;
}

template <int D, class Place>
void kernel_map<D, Place>::rebuild_async(const Place& place, const index_type& inputs) {
  constexpr const char* where = "roost::kernel_map::rebuild_async";
  if (!is_fixed() || inputs.capacity() != inputs_most_) {
    detail::raise<invalid_argument>({where,
                                     ": the map must have been made from this index, or one of its "
                                     "capacity (options.capacity of coordinate_index)"});
  }
  if (kind_ != maps::submanifold && !made_)
    detail::raise<invalid_argument>({where, ": a map whose outputs were given cannot be made anew"});
  if (made_) make_outputs(place, inputs);
  make(place, inputs, made_ ? *made_ : inputs);
}

template <int D, class Place>
void kernel_map<D, Place>::finish(const Place& place) {
  if (!is_fixed()) return;
  if (made_) made_->finish(place);
  std::uint64_t sizes[2] = {}, all = 0;
  place.copy_to_host(sizes, sizes_.data(), sizeof(sizes));
  inputs_ = sizes[0], outputs_ = sizes[1];
  if (!options_.pairs) return;
  place.copy_to_host(&all, pair_begins_.data() + volume(), sizeof(all));
  if (all > input_rows_.size()) {
    detail::raise<build_error>({"roost::kernel_map: ", all, " pairs, and room for ", input_rows_.size(),
                                "; give options.pairs_capacity"});
  }
  pairs_ = all;
}

template <int D, class Place>
std::size_t kernel_map<D, Place>::bytes() const {
  return sizes_.bytes() + neighbours_.bytes() + masks_.bytes() + inverse_.bytes() + inverse_masks_.bytes() +
         order_.bytes() + ordered_.bytes() + input_rows_.bytes() + output_rows_.bytes() +
         pair_begins_.bytes() + (made_ ? made_->bytes() : 0);
}

template <int D, class Place>
bool kernel_map<D, Place>::valid(const Place& place) const {
  if (sizes_.size() == 0) return true;
  if (made_ && !made_->valid(place)) return false;
  std::uint64_t sizes[2] = {}, all = 0;
  place.copy_to_host(sizes, sizes_.data(), sizeof(sizes));
  const auto wrong = [&](const detail::neighbour_output& map, std::uint64_t rows, std::uint64_t sources) {
    return place.sum(rows * volume(), detail::wrong_neighbour{map, rows, sources});
  };
  if (wrong(forward(), sizes[1], sizes[0]) != 0) return false;
  if (options_.inverse) {
    const detail::neighbour_output inverse{const_cast<std::uint32_t*>(inverse_.data()), inverse_stride_,
                                           const_cast<std::uint32_t*>(inverse_masks_.data()), mask_words()};
    if (wrong(inverse, sizes[0], sizes[1]) != 0) return false;
  }
  if (!options_.pairs) return true;
  place.copy_to_host(&all, pair_begins_.data() + volume(), sizeof(all));
  return all <= input_rows_.size() &&
         place.sum(all, detail::wrong_pair{forward(), volume(), pair_begins_.data(), input_rows_.data(),
                                           output_rows_.data(), sizes[1]}) == 0;
}

template <int D, class Place>
kernel_map<D, Place> submanifold(const Place& place, const coordinate_index<D, Place>& index,
                                 const kernel_shape<D>& shape, const kernel_map_options<D>& chosen) {
  using map = kernel_map<D, Place>;
  map result(map::maps::submanifold, shape, chosen, "roost::submanifold");
  result.fixed_ = index.capacity() != 0;
  result.make(place, index, index);
  return result;
}

template <int D, class Place>
kernel_map<D, Place> convolution(const Place& place, const coordinate_index<D, Place>& inputs,
                                 const kernel_shape<D>& shape, const kernel_map_options<D>& chosen) {
  using map = kernel_map<D, Place>;
  map result(map::maps::convolution, shape, chosen, "roost::convolution");
  result.prepare(inputs, "roost::convolution");
  result.make_outputs(place, inputs);
  result.make(place, inputs, *result.made_);
  return result;
}

template <int D, class Place>
kernel_map<D, Place> convolution(const Place& place, const coordinate_index<D, Place>& inputs,
                                 const coordinate_index<D, Place>& outputs, const kernel_shape<D>& shape,
                                 const kernel_map_options<D>& chosen) {
  using map = kernel_map<D, Place>;
  map result(map::maps::convolution, shape, chosen, "roost::convolution");
  result.make(place, inputs, outputs);
  return result;
}

template <int D, class Place>
kernel_map<D, Place> pooling(const Place& place, const coordinate_index<D, Place>& inputs,
                             kernel_shape<D> shape, const kernel_map_options<D>& chosen) {
  for (std::size_t a = 0; a < D; ++a) {
    if (shape.stride[a] == kernel_shape<D>::unset) shape.stride[a] = shape.size[a];
    if (shape.padding[a] == kernel_shape<D>::unset) shape.padding[a] = 0;
  }
  return convolution(place, inputs, shape, chosen);
}

template <int D, class Place>
kernel_map<D, Place> generative(const Place& place, const coordinate_index<D, Place>& inputs,
                                const kernel_shape<D>& shape, const kernel_map_options<D>& chosen) {
  using map = kernel_map<D, Place>;
  map result(map::maps::generative, shape, chosen, "roost::generative");
  result.prepare(inputs, "roost::generative");
  result.make_outputs(place, inputs);
  result.make(place, inputs, *result.made_);
  return result;
}

}  // namespace roost
