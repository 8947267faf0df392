#pragma once

#include <atomic>
#include <memory_resource>

#include "roost/detail/place/arrays.hpp"
#include "roost/detail/place/streams.hpp"

// The memory of an out-of-core call: what it may allocate on the device, and copies through pinned buffers.

namespace roost::detail {

/// Bytes of which no more than a limit are taken at the same time.
class byte_limit {
 public:
  explicit byte_limit(std::size_t bytes) : left_(bytes) {}

  /// False if that would be more than the limit.
  bool take(std::size_t bytes) {
    std::size_t left = left_.load(std::memory_order_relaxed);
    while (bytes <= left) {
      if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    }
    was_reached_.store(true, std::memory_order_relaxed);
    return false;
  }
  void give_back(std::size_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }

  /// Whether it has refused anything since the last call of this function.
  bool was_reached() { return was_reached_.exchange(false, std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> left_;
  std::atomic<bool> was_reached_ = false;
};

/// The memory resource of a place, up to a limit.
template <class Place>
class limited_memory;

template <>
class limited_memory<host> final : public byte_limit, public std::pmr::memory_resource {
 public:
  limited_memory(const host& place, std::size_t bytes) : byte_limit(bytes), upstream_(place.memory()) {}

  /// The place with this memory.
  host place(const host& like) { return host(like.threads(), this); }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (!take(bytes)) throw std::bad_alloc();
    try {
      return upstream_->allocate(bytes, alignment);
    } catch (...) {
      give_back(bytes);
      throw;
    }
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    upstream_->deallocate(memory, bytes, alignment);
    give_back(bytes);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* upstream_;
};

/// Two pinned buffers, and copies between them and a device. A copy may still run when the call returns;
/// wait(i) waits for the last one of buffer i.
template <class Device>
class pinned_buffers;

/// If the device is a host, which stands for a GPU in tests.
template <>
class pinned_buffers<host> {
 public:
  pinned_buffers(const host& cpu, const host&, std::size_t bytes_each)
      : bytes_(bytes_each), memory_(cpu, 2 * bytes_each) {}

  std::byte* operator[](int i) { return memory_.data() + static_cast<std::size_t>(i) * bytes_; }
  void copy(int, void* target, const void* source, std::size_t bytes) { std::memcpy(target, source, bytes); }
  void wait(int) {}
  /// Whether the device can copy this memory of the host without a buffer.
  static bool is_pinned(const void*, std::size_t) { return false; }

 private:
  std::size_t bytes_;
  array<std::byte, host> memory_;
};

#if defined(__CUDACC__)

template <>
class limited_memory<cuda> final : public byte_limit, public device_memory_resource {
 public:
  limited_memory(const cuda& place, std::size_t bytes) : byte_limit(bytes), upstream_(place.memory()) {}

  cuda place(const cuda& like) {
    const device_guard guard(like.device());
    return cuda(like.stream(), this);
  }

  void* allocate(std::size_t bytes, cudaStream_t stream) override {
    const std::size_t whole = granules(bytes);
    if (!take(whole)) raise<out_of_memory>({"roost: ", bytes, " bytes are more than device_bytes leave"});
    try {
      return upstream_->allocate(bytes, stream);
    } catch (...) {
      give_back(whole);
      throw;
    }
  }
  void deallocate(void* memory, std::size_t bytes, cudaStream_t stream) noexcept override {
    upstream_->deallocate(memory, bytes, stream);
    give_back(granules(bytes));
  }

 private:
  static std::size_t granules(std::size_t bytes) { return ceil_div<std::size_t>(bytes, 512) * 512; }

  device_memory_resource* upstream_;
};

template <>
class pinned_buffers<cuda> {
 public:
  pinned_buffers(const host&, const cuda& device, std::size_t bytes_each)
      : device_(device), bytes_(bytes_each) {
    const device_guard guard(device.device());
    for (owned_event& event : copied_) event = make_event();
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, 2 * bytes_each, cudaHostAllocPortable) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      raise<out_of_memory>({"roost: no pinned memory for ", 2 * bytes_each,
                            " bytes; give the out_of_core place fewer pinned_bytes"});
    }
    memory_ = static_cast<std::byte*>(memory);
  }
  /// Waits for all copies, those of a call that has thrown, too.
  ~pinned_buffers() {
    static_cast<void>(cudaStreamSynchronize(device_.stream()));
    static_cast<void>(cudaFreeHost(memory_));
    static_cast<void>(cudaGetLastError());
  }
  pinned_buffers(const pinned_buffers&) = delete;

  std::byte* operator[](int i) { return memory_ + static_cast<std::size_t>(i) * bytes_; }
  void copy(int i, void* target, const void* source, std::size_t bytes) {
    const device_guard guard(device_.device());
    copy_on(device_.stream(), target, source, bytes);
    record_event(copied_[i], device_.stream());
  }
  void wait(int i) { check(cudaEventSynchronize(copied_[i].get()), "cudaEventSynchronize"); }
  static bool is_pinned(const void* memory, std::size_t bytes) {
    const auto pinned = [](const void* at) {
      cudaPointerAttributes facts{};
      const bool known = cudaPointerGetAttributes(&facts, at) == cudaSuccess;
      if (!known) static_cast<void>(cudaGetLastError());
      return known && facts.type == cudaMemoryTypeHost;
    };
    return bytes != 0 && pinned(memory) && pinned(static_cast<const std::byte*>(memory) + bytes - 1);
  }

 private:
  cuda device_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
  owned_event copied_[2];
};

#endif

/// The elements of a user's range in host memory, as a source of copies.
template <class Sequence>
struct host_elements {
  using value_type = element_of<Sequence>;
  static constexpr bool is_stored = std::is_same_v<Sequence, sequence<const value_type*>>;
  Sequence all;

  void write(value_type* target, std::size_t first, std::size_t count) const {
    if constexpr (is_stored) {
      std::memcpy(target, all.first + first, count * sizeof(value_type));
    } else {
      for (std::size_t i = 0; i < count; ++i) target[i] = all[first + i];
    }
  }
  /// Where element `first` is, or null if the elements are computed.
  const value_type* stored_at([[maybe_unused]] std::size_t first) const {
    if constexpr (is_stored) return all.first + first;
    return nullptr;
  }
};
template <class Sequence>
host_elements(Sequence) -> host_elements<Sequence>;

/// body(first, count) for tiles of n elements of a T, on all threads of a host.
template <class T, class Body>
void for_each_tile(const host& cpu, std::size_t n, const Body& body) {
  constexpr std::size_t tile = larger<std::size_t>((std::size_t{256} << 10) / sizeof(T), 1);
  cpu.launch(ceil_div(n, tile), 0,
             [&](const auto&, std::size_t i, std::byte*) { body(i * tile, smaller(tile, n - i * tile)); });
}
/// Copies host memory.
template <class T>
void copy_elements(const host& cpu, T* target, const T* source, std::size_t n) {
  for_each_tile<T>(cpu, n, [&](std::size_t first, std::size_t count) {
    std::memcpy(static_cast<void*>(target + first), source + first, count * sizeof(T));
  });
}

/// Copies between host memory and a device. Memory that is not pinned goes through two pinned buffers: the
/// threads of the host fill or empty one while the device copies the other.
template <class Device>
class host_copies {
 public:
  host_copies(const host& cpu, const Device& device, std::size_t pinned_bytes)
      : cpu_(cpu),
        bytes_(pinned_bytes / 2 / alignment_most * alignment_most),
        buffers_(cpu, device, bytes_) {}

  /// target[i] = element first + i of the source. Asynchronous on cuda.
  template <class T, class Source>
  void in(T* target, const Source& source, std::size_t first, std::size_t count) {
    if constexpr (requires { source.stored_at(first); }) {
      const T* const from = source.stored_at(first);
      if (from != nullptr && buffers_.is_pinned(from, count * sizeof(T))) {
        return each_buffer<T>(count, [&](int turn, std::size_t done, std::size_t n) {
          buffers_.copy(turn, target + done, from + done, n * sizeof(T));
        });
      }
    }
    each_buffer<T>(count, [&](int turn, std::size_t done, std::size_t n) {
      buffers_.wait(turn);
      T* const buffer = reinterpret_cast<T*>(buffers_[turn]);
      for_each_tile<T>(cpu_, n, [&](std::size_t i, std::size_t some) {
        source.write(buffer + i, first + done + i, some);
      });
      buffers_.copy(turn, target + done, buffer, n * sizeof(T));
    });
  }

  /// Copies memory of the device to the host. Synchronises.
  template <class T>
  void out(T* target, const T* source, std::size_t count) {
    std::size_t waits = 0, waits_at = 0;  // elements in the other buffer
    const auto empty = [&](int turn) {
      buffers_.wait(turn);
      copy_elements(cpu_, target + waits_at, reinterpret_cast<const T*>(buffers_[turn]), waits);
    };
    int last = 0;
    each_buffer<T>(count, [&](int turn, std::size_t done, std::size_t n) {
      buffers_.copy(turn, buffers_[turn], source + done, n * sizeof(T));
      if (waits != 0) empty(1 - turn);
      waits = n, waits_at = done, last = turn;
    });
    if (waits != 0) empty(last);
  }

 private:
  /// body(buffer, first, count) for the elements of each buffer.
  template <class T, class Body>
  void each_buffer(std::size_t count, const Body& body) {
    static_assert(sizeof(T) <= 4096, "values of an out-of-core call have at most 4 KiB");
    const std::size_t most = bytes_ / sizeof(T);
    for (std::size_t done = 0; done < count; done += most, turn_ = 1 - turn_) {
      come_between();
      body(turn_, done, smaller(most, count - done));
    }
  }

  const host& cpu_;
  std::size_t bytes_;  // of a buffer
  int turn_ = 0;
  pinned_buffers<Device> buffers_;
};

}  // namespace roost::detail
