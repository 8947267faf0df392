// Bodies of roost/host.hpp.

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace roost {

inline host::host(int threads, std::pmr::memory_resource* memory) : memory_(memory) {
  if (threads < 0) {
    throw invalid_argument("roost::host: " + std::to_string(threads) + " threads asked for; give 1 or more, or 0 for all cores");
  }
  state_ = std::make_shared<state>(threads);
}

inline std::pmr::memory_resource* host::default_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::pmr::new_delete_resource();  // the one that the sanitizers watch
#else
  static std::pmr::memory_resource* const resource = [] {
    // Fresh memory costs as much as a build: what tables free is kept, whatever its size.
    scalable_allocation_mode(TBBMALLOC_SET_HUGE_SIZE_THRESHOLD, std::numeric_limits<std::intptr_t>::max());
    return tbb::scalable_memory_resource();
  }();
  return resource;
#endif
}

inline void host::trim() { static_cast<void>(scalable_allocation_command(TBBMALLOC_CLEAN_ALL_BUFFERS, nullptr)); }

inline void* host::allocate(std::size_t bytes) const {
  try {
    void* const memory = memory_->allocate(bytes, alignment(bytes));
#if defined(__linux__)
    // Tables are read at random: with small pages every read would also miss the processor's list of pages.
    if (bytes >= huge_page) static_cast<void>(madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE));
#endif
    return memory;
  } catch (const std::bad_alloc&) {
    throw out_of_memory("roost::host: no memory for " + std::to_string(bytes) +
                        " bytes; use fewer keys or a higher load factor, or give the place another memory resource");
  }
}

inline void host::deallocate(void* memory, std::size_t bytes) const noexcept {
  memory_->deallocate(memory, bytes, alignment(bytes));
}

namespace detail {

/// Calls body(first, last) for pieces of [0, n) on the threads of an arena. The two atomics are the edges "spawned before run" and "run
/// before joined": oneTBB has them too, but a race detector that does not see into its library needs ours.
template <class Body>
void for_each_piece(tbb::task_arena& arena, std::size_t n, std::size_t grain, const Body& body) {
  if (n == 0) return;
  if (arena.max_concurrency() == 1 || n <= grain) {
    body(std::size_t{0}, n);
    return;
  }
  std::atomic<int> edge{0};
  arena.execute([&] {
    edge.store(1, std::memory_order_release);
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, n, grain), [&](const tbb::blocked_range<std::size_t>& piece) {
      static_cast<void>(edge.load(std::memory_order_acquire));
      body(piece.begin(), piece.end());
      edge.fetch_add(1, std::memory_order_release);
    });
    static_cast<void>(edge.load(std::memory_order_acquire));
  });
}

}  // namespace detail

template <class F>
void host::for_each(std::size_t n, const F& f) const {
  detail::for_each_piece(state_->arena, n, 4096, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) f(i);
  });
}

template <class Kernel>
void host::launch(std::size_t teams, std::size_t scratch_bytes, const Kernel& kernel) const {
  detail::for_each_piece(state_->arena, teams, 1, [&](std::size_t first, std::size_t last) {
    const auto free = [&](void* memory) { deallocate(memory, scratch_bytes + 16); };
    const std::unique_ptr<void, decltype(free)> scratch(allocate(scratch_bytes + 16), free);
    for (std::size_t i = first; i < last; ++i) {
      kernel(detail::serial_team{}, i, static_cast<std::byte*>(scratch.get()));
    }
  });
}

template <class F>
std::uint64_t host::sum(std::size_t n, const F& f) const {
  std::atomic<std::uint64_t> total{0};
  detail::for_each_piece(state_->arena, n, 4096, [&](std::size_t first, std::size_t last) {
    std::uint64_t mine = 0;
    for (std::size_t i = first; i < last; ++i) mine += f(i);
    total.fetch_add(mine, std::memory_order_relaxed);
  });
  return total.load();
}

}  // namespace roost
