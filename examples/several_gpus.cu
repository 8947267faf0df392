// One map over all GPUs of this machine. Each GPU brings its own keys and looks up keys
// of all GPUs.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <roost/shards/gpus.hpp>
#include <roost/shards/sharded_map.hpp>
#include <vector>

/// Key i of GPU s.
struct key_of {
  std::uint32_t gpu, gpus;
  __host__ __device__ std::uint32_t operator()(std::size_t i) const {
    return roost::mix32(static_cast<std::uint32_t>(i) * gpus + gpu);
  }
};
struct value_of {
  std::uint32_t gpu;
  __host__ __device__ std::uint32_t operator()(std::size_t i) const {
    return static_cast<std::uint32_t>(i) * 64 + gpu;
  }
};

int main() {
  if (!roost::cuda_available()) {
    std::puts("several_gpus: no CUDA device can be used here");
    return 1;
  }
  constexpr std::size_t n = 1 << 22;  // on each GPU
  roost::gpus all;
  const auto gpus = static_cast<std::uint32_t>(all.size());
  // arrays of the GPU, or what it computes
  std::vector<roost::computed<key_of>> keys, queries;
  std::vector<roost::computed<value_of>> values;
  std::vector<roost::array<std::uint32_t, roost::cuda>> results;
  for (std::uint32_t s = 0; s < gpus; ++s) {
    const std::uint32_t other = (s + 1) % gpus;
    keys.emplace_back(n, key_of{s, gpus});
    values.emplace_back(n, value_of{s});
    // the keys that another one has brought
    queries.emplace_back(n, key_of{other, gpus});
    results.emplace_back(all[s], n);  // in the memory of GPU s
  }

  const roost::sharded_map map(all, keys, values);
  map.find(all, queries, results, ~0u);

  std::size_t wrong = 0;
  for (std::uint32_t s = 0; s < gpus; ++s) {
    const auto answers = roost::copy_to_host(all[s], results[s]);
    const value_of right{(s + 1) % gpus};
    for (std::size_t i = 0; i < n; ++i) wrong += answers[i] != right(i);
    std::printf("GPU %u has %zu of %zu pairs\n", s, map.shard(s).size(), map.size());
  }
  const bool right = wrong == 0 && map.size() == n * gpus;
  std::puts(right ? "several_gpus: right" : "several_gpus: wrong answers");
  return right ? 0 : 1;
}
