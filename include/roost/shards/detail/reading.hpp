#pragma once

#include <cstring>

#include "roost/place.hpp"

// Readbacks by the host, while the place continues to work.

namespace roost::detail {

/// A value in memory of a place, as it is after all work queued so far. The memory may be freed before the
/// host has the value.
template <class T, class Place>
class reading {
 public:
  reading(const Place& place, const T* source) { place.copy_to_host(&value_, source, sizeof(T)); }
  /// Waits for it.
  T get() { return value_; }

 private:
  T value_{};
};

#if defined(__CUDACC__)
template <class T>
class reading<T, cuda> {
 public:
  reading(const cuda& place, const T* source) : word_(sizeof(T)) {
    if (word_.get() == nullptr) {
      place.copy_to_host(&value_, source, sizeof(T));
      return;
    }
    check(cudaEventCreateWithFlags(&there_.event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    place.copy_to_word(word_.get(), source, sizeof(T));
    check(cudaEventRecord(there_.event, place.stream()), "cudaEventRecord");
  }

  T get() {
    if (there_.event == nullptr) return value_;
    check(cudaEventSynchronize(there_.event), "cudaEventSynchronize");
    std::memcpy(&value_, word_.get(), sizeof(T));
    return value_;
  }

 private:
  struct owned_event {
    cudaEvent_t event = nullptr;
    owned_event() = default;
    owned_event(const owned_event&) = delete;
    ~owned_event() {
      if (event == nullptr) return;
      static_cast<void>(cudaEventSynchronize(event));  // the word must not be reused before
      static_cast<void>(cudaEventDestroy(event));
    }
  };

  T value_{};
  pinned_word word_;
  owned_event there_;
};
#endif

}  // namespace roost::detail
