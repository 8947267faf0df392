// Each block counts its own words in shared memory, and adds them to the map of all.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>

struct word_of {
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    return static_cast<std::uint32_t>(i % 1000) * 2654435761u;
  }
};

using all_counts = roost::concurrent_map<std::uint32_t, std::uint32_t, roost::cuda>;

struct add_to {
  all_counts::ref_type all;
  ROOST_FN void operator()(std::uint32_t word, std::uint32_t count) const {
    all.insert_or_apply(word, count, roost::plus());
  }
};

__global__ void count_words(const std::uint32_t* words, int n,
                            all_counts::ref_type all) {
  using small_map = roost::block_map<std::uint32_t, std::uint32_t, 2048>;
  __shared__ small_map::storage memory;
  const small_map mine(memory);
  const auto block = cooperative_groups::this_thread_block();
  mine.clear(block);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    if (mine.insert_or_apply(words[i], 1, roost::plus()) == roost::insertion::full)
      all.insert_or_apply(words[i], 1, roost::plus());
  }
  block.sync();
  mine.for_each(block, add_to{all});
}

int main() {
  constexpr int n = 1000000;
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
  bool good = true;
  {
    const roost::cuda gpu(stream);
    roost::array<std::uint32_t, roost::cuda> words(gpu, n), keys(gpu, 1000),
        counts(gpu, 1000);
    std::uint32_t* const to = words.data();
    gpu.for_each(n, [=] __device__(std::size_t i) { to[i] = word_of{}(i); });
    all_counts all(gpu, 1000);
    count_words<<<100, 256, 0, gpu.stream()>>>(words.data(), n, all.ref());
    if (cudaGetLastError() != cudaSuccess) return 1;
    good = all.retrieve_all(gpu, keys, counts) == 1000;
    for (const std::uint32_t count : roost::copy_to_host(gpu, counts))
      good &= count == n / 1000;
  }
  std::printf("%s\n", good ? "1000 words, 1000 times each" : "wrong");
  return cudaStreamDestroy(stream) == cudaSuccess && good ? 0 : 1;
}
