// says: sparse_conv runs on roost::host and, compiled by nvcc, on roost::cuda
#include <roost/sparse/sparse_conv.hpp>

struct another_place : roost::host {};
void convolve(const another_place& place, const roost::kernel_map_view& map, std::span<float> memory) {
  roost::sparse_conv(place, map, {1, 1}, memory, memory, memory);
}
