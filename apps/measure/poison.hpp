#pragma once

#if defined(__linux__)
#include <malloc.h>
#endif

#include "roost/place.hpp"

// The contents of memory before a run: a pattern that is never a correct answer, so that a run that writes
// nothing is detected.

namespace roost::bench {

/// Every byte of poisoned memory. Correct values of the workloads are odd or 0, and a bool is 0 or 1.
inline constexpr int poison = 0x5a;

/// The memory of a place; memory that is freed while a `poisoning` exists is filled with poison. Otherwise
/// the next build would get that memory with the previous table in it.
template <class Place>
class poisoned_memory;

/// While this exists, every poisoned_memory poisons freed memory. Not nested.
class poisoning {
 public:
  poisoning() { on_ = true; }
  ~poisoning() { on_ = false; }
  poisoning(const poisoning&) = delete;
  static bool on() { return on_; }

 private:
  inline static bool on_ = false;
};

template <>
class poisoned_memory<host> : public std::pmr::memory_resource {
 public:
  explicit poisoned_memory(const host& place) : from_(*place.memory()) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return from_.allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    if (poisoning::on()) std::memset(memory, poison, bytes);
    from_.deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource& from_;
};

#if defined(__CUDACC__)
template <>
class poisoned_memory<cuda> : public device_memory_resource {
 public:
  explicit poisoned_memory(const cuda& place) : from_(*place.memory()) {}
  void* allocate(std::size_t bytes, cudaStream_t stream) override { return from_.allocate(bytes, stream); }
  void deallocate(void* memory, std::size_t bytes, cudaStream_t stream) noexcept override {
    if (poisoning::on()) static_cast<void>(cudaMemsetAsync(memory, poison, bytes, stream));
    from_.deallocate(memory, bytes, stream);
  }

 private:
  device_memory_resource& from_;
};
#endif

/// The same place with the default memory: stadium_map reads from a device's pool how much of it is free.
inline host with_default_memory(const host& place) { return place; }

/// Returns unused memory to the system: from the pool, oneTBB and the C library.
inline void trim(const host&) {
  host_memory_pool::instance().trim();
#if defined(__GLIBC__)
  static_cast<void>(malloc_trim(0));
#endif
}

#if defined(__CUDACC__)
inline cuda with_default_memory(const cuda& place) { return cuda(place.stream()); }

inline void trim(const cuda& place) {
  place.synchronize();  // so that memory freed on the stream counts
  device_memory_pool::of(place.device()).trim();
}
#endif

}  // namespace roost::bench
