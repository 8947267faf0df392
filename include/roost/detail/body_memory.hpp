#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "roost/detail/tuning.hpp"
#include "roost/place.hpp"

// Memory for the bodies of a table: of the place as far as a budget goes, then of the host.

namespace roost::detail {

/// What the system says that programs can still have, within the limit of a container.
inline std::size_t bytes_available_on_host() {
  std::size_t most = ~std::size_t{0};
  std::ifstream system("/proc/meminfo");
  for (std::string word; system >> word;) {
    std::size_t kib = 0;
    if (word == "MemAvailable:" && system >> kib) most = kib << 10;
  }
  std::size_t limit = 0, used = 0;
  if ((std::ifstream("/sys/fs/cgroup/memory.max") >> limit) && (std::ifstream("/sys/fs/cgroup/memory.current") >> used)) {
    most = smaller(most, limit - smaller(limit, used));
  }
  return most;
}

/// Memory of the host that work of a place can reach.
template <class Place>
struct reachable;

template <>
struct reachable<host> {
  static void* allocate(const host& place, std::size_t bytes) { return place.allocate(bytes); }
  static void deallocate(const host& place, void* memory, std::size_t bytes) noexcept { place.deallocate(memory, bytes); }
  /// Bytes of the place's memory that bodies may take.
  static std::size_t free_bytes(const host&) { return ~std::size_t{0}; }
};

#if defined(__CUDACC__)
template <>
struct reachable<cuda> {
  static void* allocate(const cuda& place, std::size_t bytes) {
    const device_guard guard(place.device());
    const std::size_t available = bytes_available_on_host();
    void* memory = nullptr;
    // The system kills who pins more than there is.
    if (bytes <= available && cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped) == cudaSuccess) return memory;
    static_cast<void>(cudaGetLastError());
    throw out_of_memory(
        "roost::stadium_map: " + std::to_string(bytes) + " bytes of pinned host memory asked for, about " + std::to_string(available) +
        " can be had; let more bodies lie in GPU memory (stadium_options::bodies, budget), or use fewer keys or a higher load factor");
  }
  static void deallocate(const cuda& place, void* memory, std::size_t) noexcept {
    static_cast<void>(cudaStreamSynchronize(place.stream()));  // which may still use it
    static_cast<void>(cudaFreeHost(memory));
  }
  static std::size_t free_bytes(const cuda& place) {
    const device_guard guard(place.device());
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<std::size_t>(tuning<cuda>::bodies_share * static_cast<double>(free));
  }
};
#endif

/// n elements that are not initialised: the first `near` in memory of the place, the others in memory of the host. Can be moved.
template <class T, class Place>
class body_memory {
 public:
  body_memory(const Place& place, std::size_t n, std::size_t near)
      : near_(place, near), far_(nullptr, give_back{place, (n - near) * sizeof(T)}), size_(n) {
    if (n != near) far_.reset(static_cast<T*>(reachable<Place>::allocate(place, (n - near) * sizeof(T))));
  }

  T* near() const { return const_cast<T*>(near_.data()); }
  T* far() const { return far_.get(); }
  std::size_t near_size() const { return near_.size(); }
  std::size_t near_bytes() const { return near_.bytes(); }
  std::size_t far_bytes() const { return (size_ - near_.size()) * sizeof(T); }

 private:
  struct give_back {
    Place place;
    std::size_t bytes;
    void operator()(T* memory) const { reachable<Place>::deallocate(place, memory, bytes); }
  };
  array<T, Place> near_;
  std::unique_ptr<T, give_back> far_;
  std::size_t size_;
};

}  // namespace roost::detail
