#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "roost/detail/place/host_memory.hpp"
#include "roost/place.hpp"

// Large memory of the host that work of a place can reach.

namespace roost::detail {

/// Pages of the host's memory from the system, which are not written to. Can be moved.
class pages {
 public:
  /// Throws out_of_memory.
  explicit pages(std::size_t bytes = 0) {
    if (bytes == 0) return;
    expect_room(bytes);
    hold(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes);
  }

  void* data() const { return memory_.get(); }
  std::size_t bytes() const { return memory_ ? memory_.get_deleter().bytes : 0; }

  /// Lets the system allocate all pages at once, zeroed by all processors. Pages for which this fails are
  /// allocated when they are first written.
  void populate() const {
#if defined(MADV_POPULATE_WRITE)
    constexpr std::size_t piece = std::size_t{64} << 20;
    const auto populate_piece = [&](const auto&, std::size_t i, std::byte*) {
      static_cast<void>(madvise(static_cast<std::byte*>(data()) + i * piece,
                                smaller(piece, bytes() - i * piece), MADV_POPULATE_WRITE));
    };
    host().launch(ceil_div(bytes(), piece), 0, populate_piece);
#endif
  }

  /// Changes the size: the contents stay, but may move to another address. Throws out_of_memory, and then
  /// nothing has changed.
  void resize(std::size_t size) {
    expect_room(size);
#if ROOST_TSAN  // which does not know mremap
    pages others(size);
    std::memcpy(others.data(), data(), std::min(size, bytes()));
    std::swap(memory_, others.memory_);
#else
    hold(mremap(data(), bytes(), size, MREMAP_MAYMOVE), size);
#endif
  }

 private:
  struct unmap {
    std::size_t bytes;
    void operator()(void* memory) const { static_cast<void>(munmap(memory, bytes)); }
  };

  [[noreturn]] static void throw_no_memory(std::size_t bytes) {
    detail::raise<out_of_memory>({"roost: a table needs ", bytes, " bytes, but the system has only ",
                                  bytes_of_host(), "; make it smaller"});
  }
  static void expect_room(std::size_t bytes) {
    if (bytes > bytes_of_host()) throw_no_memory(bytes);
  }
  /// Takes memory from the system, and drops the old pointer, whose memory the system has moved.
  void hold(void* memory, std::size_t bytes) {
    if (memory == MAP_FAILED) throw_no_memory(bytes);
    static_cast<void>(memory_.release());
    memory_ = {memory, unmap{bytes}};
    // Tables are read at random: with small pages every read would also miss the TLB.
    static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
  }

  std::unique_ptr<void, unmap> memory_;
};

/// Memory of the host that work of a place can reach. Can be moved.
template <class Place>
class reachable;

template <>
class reachable<host> : public pages {
 public:
  /// Throws out_of_memory.
  reachable(const host&, std::size_t bytes) : pages(bytes) {}

  /// Whether grow() can be called.
  bool can_grow() const { return bytes() != 0; }
  /// Makes it larger: the contents stay, but may move to another address, even if there is not enough memory
  /// (out_of_memory).
  void grow(std::size_t bytes) { resize(bytes); }
};

#if defined(__CUDACC__)
template <>
class reachable<cuda> {
 public:
  reachable(const cuda& place, std::size_t bytes) : place_(place) {
    if (bytes == 0) return;
    // The system kills processes that pin more memory than there is.
    const std::size_t available = bytes_available_on_host();
    if (bytes > available) throw_no_memory(bytes, available);
    const device_guard guard(place.device());
    pages_ = pages(bytes);
    if (pin()) return;
    pages_ = pages();  // a system that can pin only memory that CUDA allocates, which cannot grow
    if (cudaHostAlloc(&allocated_, bytes, flags) == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());
    throw_no_memory(bytes, available);
  }
  reachable(reachable&& other) noexcept
      : place_(other.place_),
        pages_(std::move(other.pages_)),
        allocated_(std::exchange(other.allocated_, nullptr)) {}
  reachable& operator=(reachable&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(pages_, other.pages_);
    std::swap(allocated_, other.allocated_);
    return *this;
  }
  ~reachable() {
    if (data() == nullptr) return;
    try {
      const device_guard guard(place_.device());
      static_cast<void>(cudaStreamSynchronize(place_.stream()));  // which may still use it
      static_cast<void>(allocated_ != nullptr ? cudaFreeHost(allocated_) : cudaHostUnregister(pages_.data()));
      static_cast<void>(cudaGetLastError());
    } catch (const device_error&) {  // the device is gone
    }
  }

  void* data() const { return allocated_ != nullptr ? allocated_ : pages_.data(); }
  bool can_grow() const { return pages_.bytes() != 0; }
  void grow(std::size_t bytes) {
    const std::size_t before = pages_.bytes(), available = bytes_available_on_host();
    if (bytes - before > available) throw_no_memory(bytes - before, available);
    const device_guard guard(place_.device());
    place_.synchronize();
    unpin();
    bool is_larger = false;
    try {
      pages_.resize(bytes);
      is_larger = pin();
      if (!is_larger) pages_.resize(before);
    } catch (const out_of_memory&) {
    }
    if (is_larger) return;
    if (!pin())
      detail::raise<device_error>(
          {"roost: host memory that was pinned can no longer be; the table cannot be used"});
    throw_no_memory(bytes - before, available);
  }

 private:
  static constexpr unsigned flags = cudaHostAllocPortable | cudaHostAllocMapped;

  [[noreturn]] static void throw_no_memory(std::size_t bytes, std::size_t available) {
    detail::raise<out_of_memory>({"roost: a table needs ", bytes,
                                  " bytes of pinned host memory, more than the ", available,
                                  " that can be had; let more of it lie in GPU memory, or make it smaller"});
  }
  /// True if work of the place can now access the pages, at the host's addresses.
  bool pin() {
    void* there = nullptr;
    pages_.populate();  // registering would do it with one thread
    if (cudaHostRegister(pages_.data(), pages_.bytes(), cudaHostRegisterPortable | cudaHostRegisterMapped) ==
        cudaSuccess) {
      if (cudaHostGetDevicePointer(&there, pages_.data(), 0) == cudaSuccess && there == pages_.data())
        return true;
      unpin();
    }
    static_cast<void>(cudaGetLastError());
    return false;
  }
  void unpin() const { check(cudaHostUnregister(pages_.data()), "cudaHostUnregister"); }

  cuda place_;
  pages pages_;
  void* allocated_ = nullptr;
};
#endif

}  // namespace roost::detail
