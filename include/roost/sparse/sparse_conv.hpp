#pragma once

#include "roost/sparse/kernel_map.hpp"

/// \file
/// Convolution over the voxels of a kernel map, and its gradients.

namespace roost {

/// The channels of a convolution: numbers of each input row and of each output row. 1 to 2^16.
struct conv_channels {
  std::size_t in = 1, out = 1;
  /// cuda, numbers of type float: products of numbers rounded to 10 binary digits, by the tensor cores, as
  /// torch.backends.cudnn.allow_tf32 does. Several times as fast.
  bool tf32 = false;
};

/// The convolution of torch.nn.functional.conv2d and conv3d (a cross-correlation) on voxels that are there:
///
///     output[o][c] = bias[c] + the sum over k and i of input[neighbour(k, o)][i] * weights[k][i][c]
///
/// for each output row o of the map; offsets that reach no voxel add nothing.
///
///     const auto map = roost::submanifold(cpu, index);                       // 3 x 3 x 3
///     roost::sparse_conv(cpu, map.view(), {.in = 16, .out = 32}, features, weights, outputs, bias);
///     roost::sparse_conv(cpu, map.transposed(), {.in = 32, .out = 16}, ...);   // the transposed convolution
///
/// `map`: view() or transposed() of a kernel_map that has neighbours (not only pairs). `input`: its input
/// rows of channels.in numbers each, one row after the other. `weights`: [offset][in][out], the last fastest:
/// torch's (out, in, k[0], k[1], k[2]) permuted to (k[0], k[1], k[2], in, out). `output`: room for its output
/// rows of channels.out numbers, which must not overlap what is read. `bias`: channels.out numbers, or empty.
/// All are contiguous memory of the place, of one type: float or double, on cuda also __half and
/// __nv_bfloat16, whose sums are of type float.
///
/// Each output row has one owner, which goes through the offsets in their order. So results are the same from
/// run to run, with any number of threads; another kind of processor may round otherwise. A feature that is
/// not finite reaches only the outputs whose neighbourhood has it; weights must be finite on cuda.
///
/// cuda: asynchronous. Of a map with a fixed capacity the host checks the most that it holds. Fastest with
/// 16, 32, 64 or 128 channels out, channels in of which 16 bytes are whole ones, order::block and
/// kernel_map_options::by_masks. Needs compute capability 8.0; on Hopper compile for sm_90a, which makes
/// numbers of 16 bits a third faster.
///
/// Cost: 2 * in * out operations for each pair of rows, about as fast as one matrix product of the same work;
/// takes a copy of the weights, on the host also 512 bytes an output channel and thread. Throws
/// invalid_argument for a map without neighbours, other channels, or memory that is too short; out_of_memory.
template <class Place, class Input, class Weights, class Output>
void sparse_conv(const Place& place, const kernel_map_view& map, const conv_channels& channels,
                 const Input& input, const Weights& weights, Output&& output,
                 std::span<const detail::element_of<Input>> bias = {});

/// The gradient of what sparse_conv() read, from the gradient of what it wrote. `reverse`: the map the other
/// way round, which is map.transposed() for a convolution with map.view(), and map.view() for one with
/// map.transposed(); an even size, or a stride, needs kernel_map_options::inverse. `channels` and `weights`:
/// those of the convolution. Otherwise as sparse_conv().
template <class Place, class Gradient, class Weights, class Output>
void sparse_conv_input_gradient(const Place& place, const kernel_map_view& reverse,
                                const conv_channels& channels, const Gradient& output_gradient,
                                const Weights& weights, Output&& input_gradient);

/// The gradient of the weights, [offset][in][out], from what sparse_conv() read and the gradient of what it
/// wrote; `map` is that of the convolution. Numbers of the result are of type double for double, of type
/// float for the others. Sums are made of short sums, in a fixed order: the same from run to run with any
/// number of threads. Takes the memory of the weights of at most volume + 63 offsets, on cuda of volume +
/// 1023. Otherwise as sparse_conv().
template <class Place, class Input, class Gradient, class Output>
void sparse_conv_weight_gradient(const Place& place, const kernel_map_view& map,
                                 const conv_channels& channels, const Input& input,
                                 const Gradient& output_gradient, Output&& weight_gradient);

/// The gradient of the bias: the sum of the gradients of all output rows of the map, for each of
/// channels.out, of the types of sparse_conv_weight_gradient(). The same from run to run. Otherwise as
/// sparse_conv().
template <class Place, class Gradient, class Output>
void sparse_conv_bias_gradient(const Place& place, const kernel_map_view& map, const conv_channels& channels,
                               const Gradient& output_gradient, Output&& bias_gradient);

}  // namespace roost

#include "roost/sparse/detail/conv.hpp"
