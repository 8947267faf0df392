#pragma once

#if defined(__CUDACC__)

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "roost/detail/place/look_back.hpp"
#include "roost/detail/place/team.hpp"
#include "roost/error.hpp"

namespace roost {

namespace detail {
class pinned_word;
struct cuda_report;

/// See pinned_word.
struct report_words {
  struct word {
    std::byte* pinned;
    std::uint64_t* counts;
  };
  std::mutex lock;
  std::vector<word> free;
  std::size_t count = 0;
};
}  // namespace detail

/// Where a cuda place gets its memory. Derive from it to bring your own pool: both calls are ordered on the
/// stream, as cudaMallocAsync and cudaFreeAsync are, and may come from several threads.
class device_memory_resource {
 public:
  virtual ~device_memory_resource() = default;

  /// At least `bytes` bytes of device memory, aligned to 256, usable by work that the stream gets after this
  /// call. Throws roost::out_of_memory.
  virtual void* allocate(std::size_t bytes, cudaStream_t stream) = 0;

  /// Takes memory back once the stream's work so far has finished.
  virtual void deallocate(void* memory, std::size_t bytes, cudaStream_t stream) noexcept = 0;
};

/// The default: a CUDA memory pool of roost's own, one for each device. It keeps freed memory, so that the
/// next build does not request it from the system again; `trim()` returns it. After out_of_memory it keeps
/// nothing until an allocation succeeds: what the call that failed frees is there for others.
class device_memory_pool : public device_memory_resource {
 public:
  /// The pool of a device. Lives until the process ends. Throws device_error if there is no such device.
  static device_memory_pool& of(int device);

  void* allocate(std::size_t bytes, cudaStream_t stream) override;
  void deallocate(void* memory, std::size_t bytes, cudaStream_t stream) noexcept override;

  /// Bytes that the pool holds and no table uses: free for the next table, though the system counts them as
  /// in use. Memory that is deallocated on a stream counts once the stream has reached that point. May be
  /// called from several threads. Throws device_error.
  std::size_t kept() const;

  /// Returns memory that no table uses to the system.
  void trim();

  /// Lets kernels and copies of another device read and write the pool's memory. Throws device_error.
  void share_with(int device);

 private:
  friend class detail::pinned_word;
  explicit device_memory_pool(int device);
  cudaMemPool_t pool_ = nullptr;
  std::atomic<bool> is_short_ = false;  // the last allocation failed
  detail::report_words words_;
};

/// How many CUDA devices can be used here; 0 if there is no driver.
int cuda_devices() noexcept;

/// True if at least one CUDA device can be used.
inline bool cuda_available() noexcept { return cuda_devices() > 0; }

/// A CUDA device as a place: a stream of the device, and a memory resource.
///
///     roost::cuda gpu{stream};
///
/// Work is asynchronous on the stream unless a call returns a number to the host; those synchronise and say
/// so. Copies share the stream and the memory resource, which must outlive everything made with the place.
/// Two threads may not use one stream at the same time for calls that depend on each other; they may use
/// different cuda places.
class cuda {
 public:
  /// `stream`: of the device that is current now. `memory`: null for the device's pool. Throws device_error
  /// if there is no device.
  explicit cuda(cudaStream_t stream, device_memory_resource* memory = nullptr);

  cudaStream_t stream() const { return stream_; }
  int device() const { return device_; }
  device_memory_resource* memory() const { return memory_; }

  /// Calls f(i) on the device for every i in [0, n). `f` is copied there. Asynchronous.
  template <class F>
  void for_each(std::size_t n, const F& f) const;

  /// Waits for the stream. Throws device_error for what failed on the device since the last time.
  void synchronize() const;

  // What the algorithms of roost are built on; the same names as in roost::host.

  using report = detail::cuda_report;

  void expect_room(std::size_t) const {}  // a device grants nothing that it does not have
  void* allocate(std::size_t bytes) const { return memory_->allocate(bytes, stream_); }
  void deallocate(void* memory, std::size_t bytes) const noexcept {
    memory_->deallocate(memory, bytes, stream_);
  }
  void copy(void* target, const void* source, std::size_t bytes) const;
  void copy_from_host(void* target, const void* source, std::size_t bytes) const;
  void copy_to_host(void* target, const void* source, std::size_t bytes) const;  // synchronises
  void copy_to_word(const detail::pinned_word& word, const void* source, std::size_t bytes) const;
  void fill(void* memory, int byte, std::size_t bytes) const;

  /// Runs kernel(team, i, scratch) for every i in [0, teams); a team is a block of Kernel::threads threads.
  /// Scratch is shared memory if `scratch_bytes` fit there, else device memory if the kernel has a member
  /// `large_scratch` that is true. Throws device_error for others.
  template <class Kernel, class... Report>
  void launch(std::size_t teams, std::size_t scratch_bytes, const Kernel& kernel,
              const Report&... report) const;

  /// Runs several kernels in order in one launch, with a barrier between them; the launch has no more blocks
  /// than can run at once. Cheaper where there is little work: a launch costs 4 us, a barrier 1 us.
  /// `barrier`: a word of the place that is 0 before its first use; launches that may run at the same time
  /// need different words.
  template <class... Kernels>
  void launch_in_turn(std::uint32_t* barrier, const report& to,
                      const detail::stage<Kernels>&... stages) const;

  /// Calls launch(counts, report), whose last launch takes the report, and returns what the kernels added to
  /// `counts`, numbers that are 0 at first. It waits once, and nothing is copied or cleared. `keep`: memory
  /// of the place for another copy of the counts. Synchronises.
  template <class Counts, class Launch>
  Counts count(const Launch& launch, Counts* keep = nullptr) const;
  /// A launch that only reports, if the report is not empty.
  void tell(report to) const;

  /// Whether launch_in_turn has enough shared memory for a kernel.
  template <class Kernel>
  bool can_run_in_turn(const Kernel& kernel) const {
    return detail::scratch_bytes_of(kernel) + static_shared_bytes <= shared_bytes_;
  }

  /// Bytes of shared memory that a team can have.
  std::size_t scratch_most() const { return shared_bytes_ - static_shared_bytes; }

  /// target[i] = source[0] + ... + source[i - 1], for sums below 2^62. `target` may be `source`.
  /// Asynchronous.
  void exclusive_scan(const std::uint64_t* source, std::uint64_t* target, std::size_t n) const;

  /// The sum of f(i) for i in [0, n). Synchronises.
  template <class F>
  std::uint64_t sum(std::size_t n, const F& f) const;

 private:
  static constexpr std::size_t static_shared_bytes = 4 << 10;  // room for what a team's scan takes for itself

  /// Waits for the mark of a word, which the last launch sets.
  void wait_for(const detail::pinned_word& word) const;
  struct grid {
    std::size_t blocks;
    int threads;
    std::size_t shared_bytes = 0;
    bool waits = false;  // blocks wait for each other
  };
  void start(const void* kernel, const grid& grid, void** arguments, const char* what) const;

  cudaStream_t stream_;
  device_memory_resource* memory_;
  int device_ = 0;
  int processors_ = 0;            // multiprocessors of the device
  std::size_t shared_bytes_ = 0;  // shared memory that one block can have
};

}  // namespace roost

#include "roost/detail/place/cuda.hpp"

#endif  // __CUDACC__
