// Uses the installed package in device code: builds a small map and asks it from a kernel.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

int main() {
  cudaStream_t stream;
  if (cudaStreamCreate(&stream) != cudaSuccess) {
    std::puts("consumer_cuda: no device");
    return 1;
  }
  bool correct = false;
  {
    const std::vector<std::uint32_t> host_keys{3, 1, 4}, host_values{30, 10, 40};
    roost::cuda gpu{stream};
    auto keys = roost::copy_to(gpu, std::span(host_keys));
    auto values = roost::copy_to(gpu, std::span(host_values));
    const roost::frozen_map map(gpu, keys, values);
    roost::array<std::uint32_t, roost::cuda> results(gpu, 2);
    const auto ref = map.ref();
    std::uint32_t* const out = results.data();
    gpu.for_each(2, [ref, out] __host__ __device__(std::size_t i) {
      out[i] = ref.find(i == 0 ? 4u : 2u).value_or(7u);
    });
    const std::span<const std::uint32_t> answers(results.data(), results.size());
    correct = roost::copy_to_host(gpu, answers) == std::vector<std::uint32_t>{40, 7};
  }
  cudaStreamDestroy(stream);
  std::puts(correct ? "consumer_cuda: correct" : "consumer_cuda: wrong answers");
  return correct ? 0 : 1;
}
