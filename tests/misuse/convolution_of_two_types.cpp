// says: features, weights and gradients of a convolution must have one type
#include <roost/sparse/sparse_conv.hpp>

void convolve(const roost::kernel_map_view& map, std::span<float> features, std::span<double> weights) {
  roost::sparse_conv(roost::host(), map, {1, 1}, features, weights, features);
}
