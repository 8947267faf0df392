#pragma once

#include <memory>

#include "roost/cuda.hpp"

// Streams and events of CUDA beside the stream of a place.

#if defined(__CUDACC__)

namespace roost::detail {

struct destroys_of_cuda {
  // Work that is queued on a stream still completes.
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
  void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
};
using owned_stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, destroys_of_cuda>;
using owned_event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, destroys_of_cuda>;

// For the current device.
inline owned_stream make_stream(int priority = 0) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
  return owned_stream(stream);
}
inline owned_event make_event(unsigned flags = cudaEventDisableTiming) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return owned_event(event);
}

inline void record_event(const owned_event& event, cudaStream_t stream) {
  check(cudaEventRecord(event.get(), stream), "cudaEventRecord");
}
/// Later work of a stream runs after the work that an event has recorded.
inline void wait_for_event(cudaStream_t stream, const owned_event& event) {
  check(cudaStreamWaitEvent(stream, event.get()), "cudaStreamWaitEvent");
}
/// Later work of `later` runs after all work queued on `earlier` so far.
inline void run_after(cudaStream_t later, cudaStream_t earlier, const owned_event& event) {
  record_event(event, earlier);
  wait_for_event(later, event);
}

/// Copies between any two memories, in the order of a stream.
inline void copy_on(cudaStream_t stream, void* target, const void* source, std::size_t bytes) {
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

}  // namespace roost::detail

#endif  // __CUDACC__
