#pragma once

#include "roost/cuda.hpp"
#include "roost/kernels.hpp"

namespace roost {

/// A stream of the current device, destroyed at the end of its scope.
class owned_stream {
 public:
  owned_stream() {
    if (!cuda_available())
      throw device_error(
          "no CUDA device can be used here; take --place host, or check the driver with nvidia-smi");
    kernels::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~owned_stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace roost
