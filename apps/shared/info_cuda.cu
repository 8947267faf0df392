#include <dlfcn.h>

#include "info.hpp"
#include "place_choice.hpp"
#include "roost/cuda.hpp"
#include "roost/kernels.hpp"

namespace {

using roost::kernels::check;

/// The driver's library for links, NVML, if it is installed. (Neither its header nor the library is
/// required.)
class link_counter {
  using call = int (*)();
  using device_by_bus = int (*)(const char* bus, void** device);
  using link_state = int (*)(void* device, unsigned link, int* on);
  static constexpr unsigned links_most = 18;

 public:
  link_counter() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    if (library_ == nullptr) return;
    by_bus_ = find<device_by_bus>("nvmlDeviceGetHandleByPciBusId_v2");
    state_ = find<link_state>("nvmlDeviceGetNvLinkState");
    const auto init = find<call>("nvmlInit_v2");
    ready_ = init != nullptr && by_bus_ != nullptr && state_ != nullptr && init() == 0;
  }
  link_counter(const link_counter&) = delete;
  ~link_counter() {
    if (library_ == nullptr) return;
    const auto end = find<call>("nvmlShutdown");
    if (ready_ && end != nullptr) static_cast<void>(end());
    dlclose(library_);
  }

  /// The active NVLinks of a device.
  int count(int device) const {
    char bus[32] = {};
    void* handle = nullptr;
    if (!ready_ || cudaDeviceGetPCIBusId(bus, sizeof(bus), device) != cudaSuccess ||
        by_bus_(bus, &handle) != 0)
      return 0;
    int links = 0;
    for (unsigned link = 0; link < links_most; ++link) {
      int on = 0;
      links += state_(handle, link, &on) == 0 && on == 1 ? 1 : 0;
    }
    return links;
  }

 private:
  template <class F>
  F find(const char* name) const {
    return reinterpret_cast<F>(dlsym(library_, name));
  }

  void* library_;
  device_by_bus by_bus_ = nullptr;
  link_state state_ = nullptr;
  bool ready_ = false;
};

}  // namespace

bool roost::cuda_compiled() { return true; }
bool roost::cuda_here() { return cuda_available(); }

std::vector<device_facts> cuda_device_facts() {
  std::vector<device_facts> result;
  const link_counter links;
  const int devices = roost::cuda_devices();
  for (int device = 0; device < devices; ++device) {
    const roost::kernels::device_guard guard(device);
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    result.push_back({properties.name,
                      properties.major,
                      properties.minor,
                      properties.multiProcessorCount,
                      static_cast<std::size_t>(properties.l2CacheSize),
                      total,
                      free,
                      links.count(device),
                      {}});
    for (int other = 0; other < devices; ++other) {
      int can = 0;
      if (other != device) check(cudaDeviceCanAccessPeer(&can, device, other), "cudaDeviceCanAccessPeer");
      if (can != 0) result.back().peers.push_back(other);
    }
  }
  return result;
}
