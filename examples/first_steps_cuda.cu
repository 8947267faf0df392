// The first steps on a GPU: the map lives in device memory, the work runs on a stream.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

using numbers = std::vector<std::uint32_t>;

numbers look_up_on_the_gpu(cudaStream_t stream, const numbers& host_keys,
                           const numbers& host_values, const numbers& host_queries) {
  roost::cuda gpu{stream};
  auto keys = roost::copy_to(gpu, host_keys);  // or your device memory, as std::span
  auto values = roost::copy_to(gpu, host_values);
  auto queries = roost::copy_to(gpu, host_queries);
  roost::array<std::uint32_t, roost::cuda> results(gpu, queries.size());

  roost::frozen_map map(gpu, keys, values);
  map.find(gpu, queries, results, 99);  // asynchronous on the stream
  return roost::copy_to_host(gpu, results);
}

int main() {
  cudaStream_t stream;
  if (cudaStreamCreate(&stream) != cudaSuccess) {
    std::puts("first_steps_cuda: no CUDA device can be used here");
    return 1;
  }
  const bool right = look_up_on_the_gpu(stream, {3, 1, 4}, {30, 10, 40}, {4, 2, 3}) ==
                     numbers{40, 99, 30};
  cudaStreamDestroy(stream);
  std::puts(right ? "first_steps_cuda: right" : "first_steps_cuda: wrong answers");
  return right ? 0 : 1;
}
