#include <map>
#include <mutex>

#include "operations.hpp"

// GPUs as places.

namespace roost::c {

const operations& at_cuda(int device) {
  if (device < 0 || device >= cuda_devices()) {
    detail::raise<device_error>({"roost: there is no CUDA device ", device});
  }
  static std::mutex lock;
  static auto* const all = new std::map<int, on<cuda>>;
  const std::lock_guard locked(lock);
  return all->try_emplace(device, device).first->second;
}

}  // namespace roost::c
