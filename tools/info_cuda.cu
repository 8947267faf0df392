#include "info.hpp"
#include "place_choice.hpp"
#include "roost/cuda.hpp"

bool roost::cuda_compiled() { return true; }
bool roost::cuda_here() { return cuda_available(); }

std::vector<device_facts> cuda_device_facts() {
  std::vector<device_facts> result;
  for (int device = 0; device < roost::cuda_devices(); ++device) {
    const roost::detail::device_guard guard(device);
    cudaDeviceProp properties{};
    roost::detail::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    std::size_t free = 0, total = 0;
    roost::detail::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    result.push_back({properties.name, properties.major, properties.minor, properties.multiProcessorCount,
                      static_cast<std::size_t>(properties.l2CacheSize), total, free});
  }
  return result;
}
