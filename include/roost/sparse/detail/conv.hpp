#pragma once

// The checks before a place's convolution runs.

#include "roost/sparse/kernel_map.hpp"

namespace roost::detail {

/// What a convolution reads and writes: rows of `depth` numbers, and of `columns`. Turned: it computes the
/// gradient of an input, so weights are [offset][columns][depth].
template <class T>
struct conv_operands {
  const kernel_map_view& map;
  std::uint64_t outputs;
  std::uint32_t depth, columns;
  bool turned;
  const T *input, *weights, *bias;  // no bias: null
  T* output;
};

/// The same of the gradient of weights.
template <class T, class Result>
struct weight_gradient_operands {
  const kernel_map_view& map;
  std::uint64_t outputs;
  const conv_channels& channels;
  const T *input, *gradient;
  Result* result;
};

/// The convolution of a place: see conv_host.hpp and conv_cuda.hpp.
template <class Place>
struct conv_backend {
  static_assert(sizeof(Place) == 0, "sparse_conv runs on roost::host and, compiled by nvcc, on roost::cuda");
};

/// The type in which products of such numbers are summed.
template <class T>
using conv_sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace roost::detail

#include "roost/sparse/detail/conv_cuda.hpp"
#include "roost/sparse/detail/conv_host.hpp"

namespace roost::detail {

template <class T, class... Ranges>
constexpr bool are_of_type = (std::is_same_v<element_of<Ranges>, T> && ...);

template <class Place, class T, class... Ranges>
constexpr bool check_conv_types() {
  static_assert(conv_backend<Place>::template takes<T>,
                "sparse_conv multiplies numbers of type float or double, on cuda also __half and "
                "__nv_bfloat16: convert them first");
  static_assert(are_of_type<T, Ranges...>,
                "features, weights and gradients of a convolution must have one type: convert them first");
  return true;
}

template <class T, class Range>
constexpr bool check_conv_sums() {
  static_assert(
      are_of_type<conv_sum<T>, Range>,
      "gradients of weights and bias are sums of many numbers: give memory of type double for double, "
      "of type float for the others");
  return true;
}

inline void check_channels(const conv_channels& channels, const char* where) {
  constexpr std::size_t most = std::size_t{1} << 16;
  for (const std::size_t each : {channels.in, channels.out}) {
    if (each < 1 || each > most) raise<invalid_argument>({where, ": ", each, " channels; give 1 to 65536"});
  }
}

inline void check_neighbours(const kernel_map_view& map, std::uint64_t outputs, const char* where) {
  if (map.neighbours != nullptr || outputs == 0) return;
  raise<invalid_argument>({where,
                           ": this view has no neighbours: make the map with options.inverse, which a "
                           "transposed view needs unless the map is submanifold with odd sizes"});
}

/// The memory of an argument, which has `rows` rows of `each` numbers, or more.
template <class Range>
auto* conv_memory(Range& range, std::uint64_t rows, std::size_t each, const char* what, const char* where) {
  static_assert(has_a_size<std::remove_const_t<Range>>());
  const std::size_t size = std::ranges::size(range);
  if (size / each < rows) {
    raise<invalid_argument>(
        {where, ": ", size, " numbers of ", what, "; ", rows, " rows of ", each, " are needed"});
  }
  return data_of(range);
}

/// A call, for what it throws: its name, and those of its input and its output.
struct conv_call {
  const kernel_map_view& map;
  const conv_channels& channels;
  const char *where, *input, *output;
};

/// A convolution or, turned, the gradient of its input.
template <bool Turned, class Place, class Input, class Weights, class Output>
void convolve(const Place& place, const conv_call& call, const Input& input, const Weights& weights,
              Output& output, std::span<const element_of<Input>> bias) {
  using type = element_of<Input>;
  using backend = conv_backend<Place>;
  static_assert(check_conv_types<Place, type, Weights, Output>());
  const auto& [map, channels, where, what_in, what_out] = call;
  check_channels(channels, where);
  const std::uint64_t inputs = backend::rows_of(map.device_inputs, map.inputs),
                      outputs = backend::rows_of(map.device_outputs, map.outputs);
  const auto depth = static_cast<std::uint32_t>(Turned ? channels.out : channels.in),
             columns = static_cast<std::uint32_t>(Turned ? channels.in : channels.out);
  const type* const from = conv_memory(input, inputs, depth, what_in, where);
  const type* const by = conv_memory(weights, map.volume, channels.in * channels.out, "weights", where);
  type* const to = conv_memory(output, outputs, columns, what_out, where);
  if (!bias.empty()) conv_memory(bias, 1, columns, "bias", where);
  check_neighbours(map, outputs, where);
  if (outputs == 0) return;
  const conv_operands<type> rows{.map = map,
                                 .outputs = outputs,
                                 .depth = depth,
                                 .columns = columns,
                                 .turned = Turned,
                                 .input = from,
                                 .weights = by,
                                 .bias = bias.empty() ? nullptr : bias.data(),
                                 .output = to};
  backend::template with_product<type>(place, channels, columns,
                                       [&](auto product) { backend::convolve(product, place, rows); });
}

template <class Place, class Input, class Gradient, class Output>
void weight_gradient(const Place& place, const kernel_map_view& map, const conv_channels& channels,
                     const Input& input, const Gradient& output_gradient, Output& weight_gradient) {
  using type = element_of<Input>;
  using backend = conv_backend<Place>;
  static_assert(check_conv_types<Place, type, Gradient>());
  if constexpr (!are_of_type<type, Output>) static_assert(check_conv_sums<type, Output>());
  constexpr const char* where = "roost::sparse_conv_weight_gradient";
  check_channels(channels, where);
  const std::uint64_t inputs = backend::rows_of(map.device_inputs, map.inputs),
                      outputs = backend::rows_of(map.device_outputs, map.outputs);
  const auto* const from = conv_memory(input, inputs, channels.in, "input", where);
  const auto* const by = conv_memory(output_gradient, outputs, channels.out, "output_gradient", where);
  auto* const to =
      conv_memory(weight_gradient, map.volume, channels.in * channels.out, "weight_gradient", where);
  check_neighbours(map, outputs, where);
  if (map.volume == 0) return;
  const weight_gradient_operands<type, element_of<Output>> rows{map, outputs, channels, from, by, to};
  backend::template with_product<type>(place, channels, std::max(channels.in, channels.out),
                                       [&](auto product) { backend::weight_gradient(product, place, rows); });
}

template <class Place, class Gradient, class Output>
void bias_gradient(const Place& place, const kernel_map_view& map, const conv_channels& channels,
                   const Gradient& output_gradient, Output& bias_gradient) {
  using type = element_of<Gradient>;
  using backend = conv_backend<Place>;
  static_assert(check_conv_types<Place, type>() && check_conv_sums<type, Output>());
  constexpr const char* where = "roost::sparse_conv_bias_gradient";
  check_channels(channels, where);
  const std::uint64_t outputs = backend::rows_of(map.device_outputs, map.outputs);
  const auto* const from = conv_memory(output_gradient, outputs, channels.out, "output_gradient", where);
  auto* const to = conv_memory(bias_gradient, 1, channels.out, "bias_gradient", where);
  backend::bias_gradient(place, map.device_outputs, outputs, channels.out, from, to);
}

}  // namespace roost::detail
