#pragma once

#include <string>

#include "roost/place.hpp"
#include "table.hpp"

// Places, and results in their memory.

namespace roost::c {

template <class Place>
class at_place;

/// The CPU.
template <>
class at_place<host> {
 public:
  explicit at_place(int) {}
  static host get();
  static void wait_for(const host&, void*) {}
  static constexpr ArrowDeviceType type = ARROW_DEVICE_CPU;
};

#if defined(__CUDACC__)
/// A GPU, which is current as long as this lives.
template <>
class at_place<cuda> {
 public:
  explicit at_place(int device) noexcept : device_(device) {  // get() reports failures
    cudaGetDevice(&before_);
    cudaSetDevice(device);
  }
  at_place(const at_place&) = delete;
  ~at_place() { cudaSetDevice(before_); }
  /// Different threads use different streams.
  cuda get() const {
    cuda gpu(cudaStreamPerThread);
    if (gpu.device() != device_) {
      detail::raise<device_error>({"roost: CUDA device ", device_, " cannot be made the current one"});
    }
    return gpu;
  }
  static void wait_for(const cuda& gpu, void* event) {
    if (event == nullptr) return;
    detail::check(cudaStreamWaitEvent(gpu.stream(), *static_cast<cudaEvent_t*>(event), 0),
                  "cudaStreamWaitEvent");
  }
  static constexpr ArrowDeviceType type = ARROW_DEVICE_CUDA;

 private:
  int device_, before_ = 0;
};
#endif

/// Memory of a result.
struct result_buffer {
  const void* data = nullptr;
  std::shared_ptr<void> memory;
};
template <class T, class Place>
result_buffer buffer_of(array<T, Place>&& from, int device) {
  auto* const kept = new array<T, Place>(std::move(from));
  const auto release = [device](array<T, Place>* memory) {
    const at_place<Place> there(device);
    delete memory;
  };
  return {kept->data(), std::shared_ptr<array<T, Place>>(kept, release)};
}

/// An array that owns its buffers, the first of which is the bitmap, and its fields.
arrow_owner<ArrowArray> make_array(std::size_t rows, std::size_t nulls, std::vector<result_buffer> buffers,
                                   std::vector<arrow_owner<ArrowArray>> fields = {});
arrow_owner<ArrowSchema> make_schema(const std::string& format, const char* name,
                                     std::vector<arrow_owner<ArrowSchema>> fields = {});

inline void give(arrow_owner<ArrowSchema>& from, ArrowSchema* to) {
  *to = *from.get();
  from.get()->release = nullptr;
}
/// For memory whose work has finished.
inline void give(arrow_owner<ArrowArray>& from, ArrowDeviceArray* to, ArrowDeviceType type, int device) {
  *to = {};
  to->array = *from.get();
  to->device_type = type;
  to->device_id = device;
  from.get()->release = nullptr;
}

struct widen_row {
  const std::uint32_t* from;
  std::int64_t* to;
  ROOST_FN void operator()(std::size_t i) const {
    to[i] = from[i] == ~std::uint32_t{0} ? -1 : std::int64_t{from[i]};
  }
};

/// Row numbers as int64, the greatest as -1.
template <class Place>
arrow_owner<ArrowArray> rows_of(const Place& place, const array<std::uint32_t, Place>& rows, int device) {
  array<std::int64_t, Place> wide(place, rows.size());
  place.for_each(rows.size(), widen_row{rows.data(), wide.data()});
  return make_array(rows.size(), 0, {{}, buffer_of(std::move(wide), device)});
}

struct pack_bools {
  const bool* from;
  std::uint8_t* to;
  std::size_t n;
  ROOST_FN void operator()(std::size_t byte) const {
    std::uint32_t bits = 0;
    for (std::size_t i = byte * 8; i < n && i < byte * 8 + 8; ++i) bits |= std::uint32_t{from[i]} << i % 8;
    to[byte] = static_cast<std::uint8_t>(bits);
  }
};

struct count_missing {
  const bool* valid;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return !valid[i]; }
};

/// Bools as bits, and zeros up to a multiple of 64 bytes, as Arrow recommends: cuDF copies as many.
template <class Place>
array<std::uint8_t, Place> bits_of(const Place& place, std::span<const bool> bools) {
  array<std::uint8_t, Place> bits(place, detail::ceil_div(bools.size(), std::size_t{512}) * 64);
  place.for_each(bits.size(), pack_bools{bools.data(), bits.data(), bools.size()});
  return bits;
}

}  // namespace roost::c
