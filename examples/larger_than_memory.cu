// A table that is larger than the memory it may have on the GPU: tickets and as many
// pairs as fit lie there, the other pairs in host memory behind it.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <roost/stadium/stadium_map.hpp>
#include <utility>

using key = std::uint64_t;
using value = std::uint64_t;
using map_type = roost::stadium_map<key, value, roost::cuda>;

struct fill {
  key* keys;
  value* values;
  ROOST_FN void operator()(std::size_t i) const {
    keys[i] = roost::mix64(i);
    values[i] = i;
  }
};

// Kernels look up, insert and erase as they like, all at once. An erased key keeps its
// slot until a bulk call makes it free, so the map has room for half as many keys
// again.
__global__ void move_half(map_type::ref_type map, const key* keys, std::uint32_t n) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || i % 2 == 0) return;
  const auto found = map.find(keys[i]);
  if (!found) return;
  map.erase(keys[i]);
  map.insert(~keys[i], *found);  // no such key yet
}

struct is_wrong {
  map_type::reader_type map;
  const key* keys;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const auto old = map.find(keys[i]), moved = map.find(~keys[i]);
    return i % 2 == 0 ? !(old && *old == i && !moved) : !(moved && *moved == i && !old);
  }
};

bool check(cudaStream_t stream) {
  const roost::cuda gpu{stream};
  constexpr std::uint32_t n = 1u << 22;
  roost::array<key, roost::cuda> keys(gpu, n);
  roost::array<value, roost::cuda> values(gpu, n);
  gpu.for_each(n, fill{keys.data(), values.data()});

  map_type map(gpu, n + n / 2, {.budget = 32 << 20, .region_slots = 1 << 20});
  const auto report = map.insert(gpu, keys, values);
  const auto facts = map.statistics(gpu);
  std::printf(
      "%zu pairs: %zu MiB on the GPU and %zu MiB of tickets, %zu MiB in host memory\n",
      facts.size, facts.place_bytes >> 20, facts.board_bytes >> 20,
      facts.host_bytes >> 20);

  move_half<<<n / 256, 256, 0, stream>>>(map.ref(), keys.data(), n);
  const auto lookups = std::as_const(map).ref();
  const auto wrong = gpu.sum(n, is_wrong{lookups, keys.data()});
  return wrong == 0 && report.inserted == n && facts.host_bytes > facts.place_bytes &&
         map.size(gpu) == n && map.valid(gpu);
}

int main() {
  cudaStream_t stream;
  if (cudaStreamCreate(&stream) != cudaSuccess) {
    std::puts("larger_than_memory: no CUDA device can be used here");
    return 1;
  }
  const bool right = check(stream);
  cudaStreamDestroy(stream);
  std::puts(right ? "larger_than_memory: right" : "larger_than_memory: wrong answers");
  return right ? 0 : 1;
}
