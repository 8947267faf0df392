// The memory of a cuda place from a memory resource of RMM or of CUDA's core libraries
// (CCCL): an adapter of some lines. What it is given needs the calls allocate(stream,
// bytes, alignment) and deallocate(stream, memory, bytes, alignment). Older resources
// take (bytes, stream).
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <roost/place.hpp>
#include <vector>

template <class Resource>
class adapted_memory : public roost::device_memory_resource {
 public:
  explicit adapted_memory(Resource& resource) : resource_(resource) {}

  void* allocate(std::size_t bytes, cudaStream_t stream) override try {
    return resource_.allocate(stream, bytes, 256);
  } catch (const std::bad_alloc& e) {  // rmm::out_of_memory is one
    throw roost::out_of_memory(e.what());
  }
  void deallocate(void* memory, std::size_t bytes,
                  cudaStream_t stream) noexcept override {
    resource_.deallocate(stream, memory, bytes, 256);
  }

 private:
  Resource& resource_;
};

/// What stands here for a resource of RMM: it counts, and refuses more than it has.
class counted_memory {
 public:
  explicit counted_memory(bool on_device) : on_device_(on_device) {}

  void* allocate(cudaStream_t stream, std::size_t bytes, std::size_t alignment) {
    void* memory = nullptr;
    if (bytes > most) throw std::bad_alloc();
    if (!on_device_) {
      memory = std::aligned_alloc(alignment,
                                  (bytes + alignment - 1) / alignment * alignment);
    } else if (cudaMallocAsync(&memory, bytes, stream) != cudaSuccess) {
      throw std::bad_alloc();
    }
    given_[memory] = bytes;
    total += bytes;
    return memory;
  }
  void deallocate(cudaStream_t stream, void* memory, std::size_t bytes,
                  std::size_t) noexcept {
    right = right && given_.count(memory) == 1 && given_[memory] == bytes;
    given_.erase(memory);
    if (on_device_) {
      cudaFreeAsync(memory, stream);
    } else {
      std::free(memory);
    }
  }
  bool nothing_is_out() const { return given_.empty(); }

  static constexpr std::size_t most = 1 << 20;
  std::size_t total = 0;
  bool right = true;  // all that came back was given, with as many bytes

 private:
  bool on_device_;
  std::map<void*, std::size_t> given_;
};

bool adapter_is_right() {  // without a device
  counted_memory upstream(false);
  adapted_memory memory(upstream);
  void* const a = memory.allocate(1000, nullptr);
  void* const b = memory.allocate(1, nullptr);
  bool refused = false;
  try {
    memory.allocate(counted_memory::most + 1, nullptr);
  } catch (const roost::out_of_memory&) {
    refused = true;
  }
  memory.deallocate(a, 1000, nullptr);
  const bool one_is_out = !upstream.nothing_is_out();
  memory.deallocate(b, 1, nullptr);
  return refused && one_is_out && upstream.nothing_is_out() && upstream.right &&
         upstream.total == 1001;
}

bool place_is_right() {
  cudaStream_t stream;
  if (cudaStreamCreate(&stream) != cudaSuccess) return false;
  counted_memory upstream(true);
  bool right = false;
  {
    adapted_memory memory(upstream);  // lives longer than what is made with the place
    roost::cuda gpu(stream, &memory);
    const std::vector<int> numbers{3, 1, 4, 1, 5};
    const auto there = roost::copy_to(gpu, numbers);
    right = roost::copy_to_host(gpu, there) == numbers && upstream.total != 0;
  }
  cudaStreamDestroy(stream);
  return right && upstream.right && upstream.nothing_is_out();
}

int main() {
  const bool right =
      adapter_is_right() && (!roost::cuda_available() || place_is_right());
  std::puts(right ? "memory_resource: right" : "memory_resource: wrong answers");
  return right ? 0 : 1;
}
