#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <roost/place.hpp>
#include <unordered_map>

namespace test {

/// A memory resource of the place under test that keeps books, and refuses when it is told to.
#if defined(__CUDACC__)
class watched_memory : public roost::device_memory_resource {
#else
class watched_memory : public std::pmr::memory_resource {
#endif
  template <class F>
  auto locked(const F& f) const {
    const std::lock_guard hold(lock_);
    return f();
  }

 public:
  std::size_t live_blocks() const {
    return locked([&] { return live_.size(); });
  }
  std::size_t live_bytes() const {
    return locked([&] { return live_bytes_; });
  }
  std::size_t most_bytes() const {
    return locked([&] { return most_bytes_; });
  }
  std::size_t allocations() const {
    return locked([&] { return allocations_; });
  }
  std::size_t wrong_returns() const {
    return locked([&] { return wrong_returns_; });
  }

  /// The only live block of so many bytes, and at most so many more, or null.
  void* block_of(std::size_t bytes, std::size_t more = 0) const {
    return locked([&] {
      void* only = nullptr;
      std::size_t count = 0;
      for (const auto& [block, size] : live_) {
        if (size >= bytes && size <= bytes + more) only = block, ++count;
      }
      return count == 1 ? only : nullptr;
    });
  }

  /// `good` more allocations succeed, then so many are refused.
  void refuse_after(std::size_t good, std::size_t bad = ~std::size_t{0}) {
    locked([&] { return good_left_ = good, bad_left_ = bad, refused_ = 0; });
  }
  /// Larger ones are refused.
  void refuse_over(std::size_t bytes) {
    locked([&] { return most_at_once_ = bytes; });
  }
  /// Returns how many were refused.
  std::size_t refuse_nothing() {
    const std::size_t all = locked([&] { return refused_; });
    refuse_after(~std::size_t{0});
    refuse_over(~std::size_t{0});
    return all;
  }

 private:
  bool allowed(std::size_t bytes) {
    return locked([&] {
      if (good_left_ != 0 || bad_left_ == 0) {
        good_left_ -= good_left_ != 0 && good_left_ != ~std::size_t{0};
        if (bytes <= most_at_once_) return true;
      } else if (bad_left_ != ~std::size_t{0}) {
        --bad_left_;
      }
      ++refused_;
      return false;
    });
  }
  void note(void* memory, std::size_t bytes) {
    locked([&] {
      live_.emplace(memory, bytes);
      live_bytes_ += bytes;
      if (live_bytes_ > most_bytes_) most_bytes_ = live_bytes_;
      return ++allocations_;
    });
  }
  bool forget(void* memory, std::size_t bytes) {
    return locked([&] {
      const auto known = live_.find(memory);
      if (known == live_.end() || known->second != bytes) {
        ++wrong_returns_;
        return false;
      }
      live_.erase(known);
      live_bytes_ -= bytes;
      return true;
    });
  }

#if defined(__CUDACC__)
 public:
  void* allocate(std::size_t bytes, cudaStream_t stream) override {
    if (!allowed(bytes)) throw roost::out_of_memory("test: refused");
    void* const memory = pool().allocate(bytes, stream);
    note(memory, bytes);
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes, cudaStream_t stream) noexcept override {
    if (forget(memory, bytes)) pool().deallocate(memory, bytes, stream);
  }

 private:
  static roost::device_memory_resource& pool() { return roost::device_memory_pool::of(0); }
#else
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    // Sanitizers end a process that asks for more than there is, so it is refused here.
    if (!allowed(bytes) || bytes > std::size_t{1} << 34) throw std::bad_alloc();
    void* const memory = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    std::memset(memory, 0xa5, bytes);  // nobody may rely on zeros
    note(memory, bytes);
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    if (!forget(memory, bytes)) return;
    std::memset(memory, 0x5a, bytes);  // nor on what was given back
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
#endif

  mutable std::mutex lock_;
  std::unordered_map<void*, std::size_t> live_;
  std::size_t live_bytes_ = 0, most_bytes_ = 0, allocations_ = 0, wrong_returns_ = 0;
  std::size_t good_left_ = ~std::size_t{0}, bad_left_ = ~std::size_t{0}, most_at_once_ = ~std::size_t{0},
              refused_ = 0;
};

}  // namespace test
