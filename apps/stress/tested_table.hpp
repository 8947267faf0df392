#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "history.hpp"
#include "roost/place.hpp"

/// \file
/// A table and the state that it should have; and memory that refuses allocations.

namespace roost::stress {

/// A table does not have the state that it should have, or a call has another result.
struct difference : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect(bool good, const char* what) {
  if (!good) throw difference(what);
}

/// Throws a difference: a key has one value and should have another; no value: it is absent.
[[noreturn]] void throw_difference(const char* where, std::uint64_t key, std::optional<std::uint64_t> is,
                                   std::optional<std::uint64_t> should);

/// A table beside its expected state.
class tested_table {
 public:
  virtual ~tested_table() = default;

  /// Makes a call on both, and compares the results. Throws difference, invalid_argument for an unknown call.
  virtual void make(const call& one) = 0;
  /// Compares all of the table with what it should be.
  virtual void check() = 0;
  /// Spoils the expected state, if there is any, so that tests can see that this is noticed.
  virtual void spoil() = 0;
  virtual std::size_t keys() = 0;

  /// Files, of kinds that have them: writes the table; says whether a file has the expected state; continues
  /// with the table of a file.
  virtual void save(const std::filesystem::path&) {}
  virtual bool is_in(const std::filesystem::path&) { return true; }
  virtual void adopt(const std::filesystem::path&) {}
  /// The call that changes the table between two saves; empty if there are no files.
  virtual const char* change() const { return ""; }

  /// How many calls threw because memory was refused.
  std::size_t refusals() const { return refusals_; }

 protected:
  std::size_t refusals_ = 0;
};

/// What all tables have in common.
struct setting {
  int threads = 0;
  std::filesystem::path folder;
};

using table_pointer = std::unique_ptr<tested_table>;
table_pointer table_on_host(const history& of, const setting& in);
table_pointer table_on_cuda(const history& of, const setting& in);

/// Counts allocations, and refuses those that it should.
class refusals {
 public:
  /// Refuses allocations as a call says.
  void arm(std::uint64_t refused) {
    const std::lock_guard hold(lock_);
    good_ = refused == 0 ? ~std::uint64_t{0} : refused / 2 - 1;
    all_ = refused % 2 != 0;
    refused_ = 0;
  }
  /// Refuses none; returns how many were refused.
  std::size_t disarm() {
    const std::lock_guard hold(lock_);
    good_ = ~std::uint64_t{0};
    return refused_;
  }
  bool allows() {
    const std::lock_guard hold(lock_);
    if (good_ == ~std::uint64_t{0}) return true;
    if (good_ != 0) return --good_, true;
    if (!all_) good_ = ~std::uint64_t{0};
    ++refused_;
    return false;
  }
  void count(std::ptrdiff_t blocks) {
    const std::lock_guard hold(lock_);
    live_ += blocks;
  }
  std::ptrdiff_t live() const { return live_; }

 private:
  std::mutex lock_;
  std::uint64_t good_ = ~std::uint64_t{0};
  bool all_ = false;
  std::size_t refused_ = 0;
  std::ptrdiff_t live_ = 0;
};

/// Memory of the host that refuses; what it gives is not zero.
class refusing_host_memory final : public std::pmr::memory_resource, public refusals {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (!allows()) throw std::bad_alloc();
    void* const memory = host::default_memory()->allocate(bytes, alignment);
    std::memset(memory, 0xa5, bytes);
    count(1);
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    std::memset(memory, 0x5a, bytes);
    count(-1);
    host::default_memory()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

#if defined(__CUDACC__)
/// The same of the first GPU.
class refusing_device_memory final : public device_memory_resource, public refusals {
 public:
  void* allocate(std::size_t bytes, cudaStream_t stream) override {
    if (!allows()) throw out_of_memory("roost stress refuses this allocation");
    void* const memory = device_memory_pool::of(0).allocate(bytes, stream);
    count(1);
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes, cudaStream_t stream) noexcept override {
    count(-1);
    device_memory_pool::of(0).deallocate(memory, bytes, stream);
  }
};
#endif

/// Makes a call with the refusals that it asks for. If it throws out_of_memory, looks at what it has left
/// behind, by refused(), and makes it again. Returns what the call returns.
template <class Call, class Refused>
auto attempt(refusals& memory, std::uint64_t refused, std::size_t& count, const Call& make,
             const Refused& look) {
  if (refused != 0) {
    memory.arm(refused);
    try {
      if constexpr (std::is_void_v<decltype(make())>) {
        make();
        memory.disarm();
        return;
      } else {
        auto result = make();
        memory.disarm();
        return result;
      }
    } catch (const out_of_memory&) {
      expect(memory.disarm() != 0, "out_of_memory, although no memory was refused");
      ++count;
    }
    look();
  }
  return make();
}

}  // namespace roost::stress
