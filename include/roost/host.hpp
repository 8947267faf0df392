#pragma once

// clang-format off
#include "roost/detail/place/config.hpp"  // before <immintrin.h>, which oneTBB includes
// clang-format on

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/scalable_allocator.h>
#include <oneapi/tbb/task_arena.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "roost/detail/place/team.hpp"
#include "roost/error.hpp"

#if ROOST_TSAN
#include <future>
#endif

namespace roost {
namespace detail {

/// The memory of a process that was forked from one with a host place. At the fork other threads may have
/// held locks and tasks of oneTBB, which are never released in the child. So the child works on the calling
/// thread, and does not touch what was allocated before.
class memory_after_fork {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment);
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment);

 private:
  std::mutex lock_;
  std::set<void*> mine_;
};

/// Null in a process that is not such a fork. Each fork has its own.
inline memory_after_fork* after_fork = nullptr;

/// If not null, this thread calls it between pieces of its work for a host. It may throw, which ends the
/// call.
inline thread_local void (*between_pieces)() = nullptr;

inline void come_between() {
  if (between_pieces != nullptr) between_pieces();
}

/// Sets it for a while; to null where a call that ends half-way would leave a table broken.
class calls_between_pieces {
 public:
  explicit calls_between_pieces(void (*function)()) : before_(std::exchange(between_pieces, function)) {}
  ~calls_between_pieces() { between_pieces = before_; }
  calls_between_pieces(const calls_between_pieces&) = delete;

 private:
  void (*before_)();
};

}  // namespace detail

/// The default memory of host places: oneTBB's scalable allocator, plus a pool that keeps large freed pieces
/// for the next build, since page faults cost a third of a build. A request may get a kept piece of up to two
/// and a half times its size. What is kept and what is in use are together no more than the most that was in
/// use at once; `trim()` returns what is kept. Any thread may use it.
class host_memory_pool : public std::pmr::memory_resource {
 public:
  /// Creates a pool of your own; all of its memory must be deallocated before its destruction. `upstream`:
  /// where its memory comes from; any thread may call it.
  explicit host_memory_pool(std::pmr::memory_resource* upstream = tbb::scalable_memory_resource())
      : upstream_(upstream) {}
  ~host_memory_pool() override { trim(); }
  host_memory_pool(const host_memory_pool&) = delete;

  /// The pool of the process. Lives until it ends.
  static host_memory_pool& instance();

  /// Returns memory that no table uses to the system.
  void trim();

  /// Whether so many bytes can be had now; returns the unused memory to the system if they could not without.
  /// The system grants more, and kills a process that uses it. (Amounts below 1 GiB are not compared.)
  bool has_room(std::size_t bytes);

 private:
  static constexpr std::size_t big = std::size_t{2} << 20;
  struct piece {
    std::size_t bytes = 0, alignment = 0;
    std::size_t turn = 0;  // when it was kept: the lowest is the oldest
  };
  // One type for kept and used pieces, which go from one to the other without a new node.
  using pieces = std::map<void*, piece>;

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  pieces::iterator best_fit(std::size_t bytes, std::size_t alignment);
  void* hand_out(pieces::node_type node);
  pieces too_much();
  void* fresh(std::size_t bytes, std::size_t alignment);
  void give_back(const pieces& all);

  std::pmr::memory_resource* const upstream_;
  std::mutex lock_;
  pieces kept_, used_;
  std::size_t kept_bytes_ = 0, used_bytes_ = 0, most_bytes_ = 0, turns_ = 0;
};

/// This machine's processor and memory as a place. Work runs on oneTBB threads; every call has finished when
/// it returns.
///
///     roost::host cpu;                  // all cores
///     roost::host one_thread{1};
///
/// Copies share the threads and the memory resource. A host may be used by several threads at once.
///
/// A process that was forked from one with a host works on the calling thread only, and keeps what its
/// parent's host_memory_pool had allocated. This is safe whatever other threads were doing at the fork.
///
/// Requests for more memory than the machine has, or than the process's control group allows, are refused
/// (out_of_memory): the system would grant them, and kill the process when it uses the memory. This check
/// does not apply to a memory resource of your own.
class host {
 public:
  /// `threads`: how many to use, 0 for all cores. Never more than oneTBB has: one per core that the process
  /// may use, unless a tbb::global_control with another max_allowed_parallelism is alive. `memory`: where
  /// tables and scratch memory come from, by default the host_memory_pool; it must outlive everything that is
  /// made with this place. Throws invalid_argument for a negative number.
  explicit host(int threads = 0, std::pmr::memory_resource* memory = default_memory());

  /// The number of threads that work here, which a tbb::global_control may currently reduce.
  int threads() const {
    return detail::after_fork != nullptr ? 1
                                         : std::min(state_->arena->max_concurrency(), threads_there_are());
  }

  std::pmr::memory_resource* memory() const { return memory_; }

  /// host_memory_pool::instance(). Large pieces of any resource are offered to the system for huge pages.
  static std::pmr::memory_resource* default_memory();

  /// Calls f(i) for every i in [0, n), in no particular order, from several threads.
  template <class F>
  void for_each(std::size_t n, const F& f) const;

  /// Runs f() with this place's threads: calls of oneTBB in f use no other threads.
  template <class F>
  void execute(const F& f) const {
    if (detail::after_fork != nullptr) return static_cast<void>(f());
    state_->arena->execute(f);
  }

  /// Does nothing: calls on the host have finished when they return.
  void synchronize() const {}

  // What the algorithms of roost are built on; the same names as in roost::cuda.

  /// What a launch tells a caller that waits: nothing, since it has finished when it returns.
  struct report {};

  /// Throws out_of_memory if this number of bytes cannot be allocated at the same time. Called before the
  /// first of several allocations.
  void expect_room(std::size_t bytes) const;
  void* allocate(std::size_t bytes) const;
  void deallocate(void* memory, std::size_t bytes) const noexcept;
  void copy(void* target, const void* source, std::size_t bytes) const {
    if (bytes) std::memcpy(target, source, bytes);
  }
  void copy_from_host(void* target, const void* source, std::size_t bytes) const {
    copy(target, source, bytes);
  }
  void copy_to_host(void* target, const void* source, std::size_t bytes) const {
    copy(target, source, bytes);
  }
  void fill(void* memory, int byte, std::size_t bytes) const {
    if (bytes) std::memset(memory, byte, bytes);
  }

  /// Runs kernel(team, i, scratch) for every i in [0, teams), each team with `scratch_bytes` of memory.
  template <class Kernel>
  void launch(std::size_t teams, std::size_t scratch_bytes, const Kernel& kernel, report = {}) const;

  /// Runs several kernels in order.
  template <class... Kernels>
  void launch_in_turn(std::uint32_t*, report, const detail::stage<Kernels>&... stages) const {
    const auto run = [&](const auto& stage) {
      if (stage.needed()) launch(stage.teams, detail::scratch_bytes_of(stage.kernel), stage.kernel);
    };
    (run(stages), ...);
  }

  /// Calls launch(counts, report) and returns the counts, 0 at first; `keep`: another copy, or null.
  template <class Counts, class Launch>
  Counts count(const Launch& launch, Counts* keep = nullptr) const {
    Counts sum{};
    launch(&sum, report());
    if (keep != nullptr) *keep = sum;
    return sum;
  }
  void tell(report) const {}

  /// Bytes of scratch that a team can have.
  std::size_t scratch_most() const { return std::size_t{1} << 30; }

  /// target[i] = source[0] + ... + source[i - 1], for sums below 2^62. `target` may be `source`.
  void exclusive_scan(const std::uint64_t* source, std::uint64_t* target, std::size_t n) const {
    std::exclusive_scan(source, source + n, target, std::uint64_t{0});
  }

  /// The sum of f(i) for i in [0, n).
  template <class F>
  std::uint64_t sum(std::size_t n, const F& f) const;

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  static std::size_t alignment(std::size_t n) { return n >= huge_page ? huge_page : detail::alignment_most; }

  static int threads_there_are() {
    if (detail::after_fork != nullptr) return 1;
    constexpr auto limit = tbb::global_control::max_allowed_parallelism;
    return static_cast<int>(std::min<std::size_t>(tbb::global_control::active_value(limit), 1 << 20));
  }

  struct state {
    explicit state(int threads);
    ~state() {
      if (detail::after_fork != nullptr) static_cast<void>(arena.release());  // to end it takes locks
    }
    state(const state&) = delete;
    std::unique_ptr<tbb::task_arena> arena;
  };

  std::shared_ptr<state> state_;
  std::pmr::memory_resource* memory_;
};

}  // namespace roost

#include "roost/detail/place/host.hpp"
