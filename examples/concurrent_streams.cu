// One stream fills a map, another queries it: what must be ordered, and how.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <roost/roost.hpp>

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

struct key_of {
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    return static_cast<std::uint32_t>(i) * 2654435761u;
  }
};

using map_type = roost::concurrent_map<std::uint32_t, std::uint32_t, roost::cuda>;

__global__ void visit(map_type::ref_type seen, const std::uint32_t* keys, int n,
                      int* fresh) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n && seen.insert(keys[i], 1) == roost::insertion::inserted)
    atomicAdd(fresh, 1);
}

int main() {
  if (!roost::cuda_available()) {
    std::puts("no CUDA device");
    return 0;
  }
  constexpr int n = 100000;
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t filled = nullptr;
  check(cudaStreamCreate(&first));
  check(cudaStreamCreate(&second));
  check(cudaEventCreate(&filled));
  bool good = false;
  {
    const roost::cuda gpu(first), other(second);
    roost::array<std::uint32_t, roost::cuda> keys(gpu, n);
    std::uint32_t* const to = keys.data();
    gpu.for_each(n, [=] __device__(std::size_t i) { to[i] = key_of{}(i / 2); });
    roost::array<int, roost::cuda> fresh(gpu, 1);
    gpu.fill(fresh.data(), 0, fresh.bytes());
    map_type map(gpu, n);
    visit<<<(n + 255) / 256, 256, 0, gpu.stream()>>>(map.ref(), keys.data(), n,
                                                     fresh.data());
    check(cudaGetLastError());
    // Kernels with refs may run on both streams at the same time; count must see
    // everything that visit did.
    check(cudaEventRecord(filled, gpu.stream()));
    check(cudaStreamWaitEvent(other.stream(), filled, 0));
    const std::size_t found = map.count_found(other, keys);
    good = found == n && roost::copy_to_host(gpu, fresh)[0] == n / 2 &&
           map.size(gpu) == n / 2;
  }
  std::printf("%s\n", good ? "half of the keys were new" : "wrong");
  check(cudaEventDestroy(filled));
  check(cudaStreamDestroy(second));
  check(cudaStreamDestroy(first));
  return good ? 0 : 1;
}
