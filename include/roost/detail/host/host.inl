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

inline host_memory_pool& host_memory_pool::instance() {
  static auto* const pool = new host_memory_pool;  // outlives every static table
  return *pool;
}

// Only a piece of the very size is handed out again: builds of the same size are what the pool is for.
inline void* host_memory_pool::do_allocate(std::size_t bytes, std::size_t alignment) {
  std::pmr::memory_resource* const upstream = tbb::scalable_memory_resource();
  if (bytes < big) return upstream->allocate(bytes, alignment);
  {
    const std::lock_guard hold(lock_);
    used_bytes_ += bytes;
    most_bytes_ = std::max(most_bytes_, used_bytes_);
    const auto fits = [&](const piece& p) { return p.bytes == bytes && p.alignment == alignment; };
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(), fits);
    if (found != kept_.rend()) {
      void* const memory = found->memory;
      kept_bytes_ -= bytes;
      kept_.erase(std::next(found).base());
      return memory;
    }
  }
  try {
    return upstream->allocate(bytes, alignment);
  } catch (const std::bad_alloc&) {
    trim();  // what is kept may be in the way
  }
  try {
    return upstream->allocate(bytes, alignment);
  } catch (const std::bad_alloc&) {
    const std::lock_guard hold(lock_);
    used_bytes_ -= bytes;
    throw;
  }
}

inline void host_memory_pool::do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) {
  if (bytes < big) return tbb::scalable_memory_resource()->deallocate(memory, bytes, alignment);
  std::vector<piece> given_back;
  {
    const std::lock_guard hold(lock_);
    used_bytes_ -= bytes;
    kept_bytes_ += bytes;
    kept_.push_back({memory, bytes, alignment});
    while (kept_bytes_ + used_bytes_ > most_bytes_) {
      kept_bytes_ -= kept_.front().bytes;
      given_back.push_back(kept_.front());
      kept_.pop_front();
    }
  }
  for (const piece& p : given_back) tbb::scalable_memory_resource()->deallocate(p.memory, p.bytes, p.alignment);
}

inline void host_memory_pool::trim() {
  std::deque<piece> given_back;
  {
    const std::lock_guard hold(lock_);
    given_back.swap(kept_);
    kept_bytes_ = 0;
  }
  for (const piece& p : given_back) tbb::scalable_memory_resource()->deallocate(p.memory, p.bytes, p.alignment);
  static_cast<void>(scalable_allocation_command(TBBMALLOC_CLEAN_ALL_BUFFERS, nullptr));
}

inline std::pmr::memory_resource* host::default_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::pmr::new_delete_resource();  // the one that the sanitizers watch
#else
  return &host_memory_pool::instance();
#endif
}

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

/// Calls body(first, last) for pieces of [0, n) on the threads of an arena.
template <class Body>
void for_each_piece(tbb::task_arena& arena, std::size_t n, std::size_t grain, const Body& body) {
  if (n == 0) return;
  if (arena.max_concurrency() == 1 || n <= grain) {
    body(std::size_t{0}, n);
    return;
  }
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer does not see the order that oneTBB's library gives to its tasks, so here the pieces go to plain threads.
  const std::size_t pieces = ceil_div(n, grain);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) {
      body(i * grain, smaller(n, (i + 1) * grain));
    }
  };
  std::vector<std::future<void>> others(smaller<std::size_t>(static_cast<std::size_t>(arena.max_concurrency()), pieces) - 1);
  for (auto& other : others) other = std::async(std::launch::async, work);
  work();
  for (auto& other : others) other.get();
#else
  arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, n, grain),
                      [&](const tbb::blocked_range<std::size_t>& piece) { body(piece.begin(), piece.end()); });
  });
#endif
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
    alignas(64) std::byte small[16 << 10];  // enough for most kernels, which so run where there is no memory
    const std::size_t bytes = scratch_bytes <= sizeof(small) ? 0 : scratch_bytes;
    const auto free = [&](void* memory) { deallocate(memory, bytes); };
    const std::unique_ptr<void, decltype(free)> scratch(bytes == 0 ? nullptr : allocate(bytes), free);
    std::byte* const memory = bytes == 0 ? small : static_cast<std::byte*>(scratch.get());
    for (std::size_t i = first; i < last; ++i) {
      kernel(detail::serial_team{}, i, memory);
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
