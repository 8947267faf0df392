#pragma once

#include "roost/sparse/detail/conv.hpp"

/// \file
/// Convolution over the voxels of a kernel map, and its gradients.

namespace roost {

/// The convolution of torch.nn.functional.conv2d and conv3d (a cross-correlation) on existing voxels:
///
///     output[o][c] = bias[c] + the sum over k and i of
///                    input[neighbour(k, o)][i] * weights[k][i][c]
///
/// for each output row o of the map; offsets that reach no voxel add nothing.
///
///     const auto map = roost::submanifold(cpu, index);  // 3 x 3 x 3
///     roost::sparse_conv(cpu, map.view(), {.in = 16, .out = 32}, features, weights,
///                        outputs, bias);
///     // The transposed convolution.
///     roost::sparse_conv(cpu, map.transposed(), {.in = 32, .out = 16}, outputs, turned,
///                        features);
///
/// `map`: view() or transposed() of a kernel_map that has neighbours (not only pairs). `input`: its input
/// rows of channels.in numbers each, contiguous. `weights`: [offset][in][out], the last fastest: torch's
/// (out, in, k[0], k[1], k[2]) permuted to (k[0], k[1], k[2], in, out). `output`: room for its output rows of
/// channels.out numbers, which must not overlap what is read. `bias`: channels.out numbers, or empty. All are
/// contiguous memory of the place, of one type: float or double, on cuda also __half and __nv_bfloat16, whose
/// sums are of type float.
///
/// Each output row is computed by one worker, which processes the offsets in order; on cuda, where there are
/// few rows, several workers share the offsets, as many as the number of rows says, and their sums are added
/// in order. So results are the same from run to run, with any number of threads; another kind of processor
/// may round differently. A feature that is not finite affects only the outputs whose neighbourhood contains
/// it; weights must be finite on cuda.
///
/// cuda: asynchronous. For a map with a fixed capacity, the host checks sizes against the capacity. Fastest
/// with 16, 32, 64, 128 or a multiple of 256 output channels, input rows whose size is a multiple of 16
/// bytes, order::block and kernel_map_options::by_masks. Needs compute capability 8.0; on Hopper compile for
/// sm_90a, which makes numbers of 16 bits a third faster.
///
/// Cost: 2 * in * out operations for each pair of rows, about as fast as one matrix product of the same work;
/// takes memory for a copy of the weights, on the host also 512 bytes per output channel and thread. Throws
/// invalid_argument for a map without neighbours, other channels, or memory that is too short; out_of_memory.
template <class Place, class Input, class Weights, class Output>
void sparse_conv(const Place& place, const kernel_map_view& map, const conv_channels& channels,
                 const Input& input, const Weights& weights, Output&& output,
                 std::span<const detail::element_of<Input>> bias = {}) {
  detail::convolve<false>(place, {map, channels, "roost::sparse_conv", "input", "output"}, input, weights,
                          output, bias);
}

/// The gradient of the input of sparse_conv(), from the gradient of its output. `reverse`: the opposite view
/// of the map, which is map.transposed() for a convolution with map.view(), and map.view() for one with
/// map.transposed(). An even size, or a stride, needs kernel_map_options::inverse. `channels` and `weights`:
/// those of the convolution. Otherwise as sparse_conv().
template <class Place, class Gradient, class Weights, class Output>
void sparse_conv_input_gradient(const Place& place, const kernel_map_view& reverse,
                                const conv_channels& channels, const Gradient& output_gradient,
                                const Weights& weights, Output&& input_gradient) {
  detail::convolve<true>(
      place, {reverse, channels, "roost::sparse_conv_input_gradient", "output_gradient", "input_gradient"},
      output_gradient, weights, input_gradient, {});
}

/// The gradient of the weights, [offset][in][out], from the input of sparse_conv() and the gradient of its
/// output; `map` is that of the convolution. The result is of type double for double, of type float for all
/// others, or of the type of the input, to which the sums are rounded. Sums are made of short sums in a fixed
/// order, so they are the same from run to run with any number of threads. Takes memory for the weights of at
/// most volume + 63 offsets, on cuda of volume + 1023. Otherwise as sparse_conv().
template <class Place, class Input, class Gradient, class Output>
void sparse_conv_weight_gradient(const Place& place, const kernel_map_view& map,
                                 const conv_channels& channels, const Input& input,
                                 const Gradient& output_gradient, Output&& weight_gradient) {
  detail::weight_gradient(place, map, channels, input, output_gradient, weight_gradient);
}

/// The gradient of the bias: the sum of the gradients of all output rows of the map, for each of
/// channels.out, of type double for double, of type float for all others. The same from run to run. Otherwise
/// as sparse_conv().
template <class Place, class Gradient, class Output>
void sparse_conv_bias_gradient(const Place& place, const kernel_map_view& map, const conv_channels& channels,
                               const Gradient& output_gradient, Output&& bias_gradient) {
  detail::bias_gradient(place, map, channels, output_gradient, bias_gradient);
}

}  // namespace roost
