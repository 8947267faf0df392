#pragma once

// Bodies of roost/host.hpp.

#include "roost/host.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "roost/detail/place/host_memory.hpp"

namespace roost {
namespace detail {

inline void* memory_after_fork::allocate(std::size_t bytes, std::size_t alignment) {
  void* const memory = std::pmr::new_delete_resource()->allocate(bytes, alignment);
  const std::lock_guard hold(lock_);
  mine_.insert(memory);
  return memory;
}

inline void memory_after_fork::deallocate(void* memory, std::size_t bytes, std::size_t alignment) {
  {
    const std::lock_guard hold(lock_);
    if (mine_.erase(memory) == 0) return;
  }
  std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
}

}  // namespace detail

inline host::state::state(int threads) {
  static const int noticed =
      pthread_atfork(nullptr, nullptr, [] { detail::after_fork = new detail::memory_after_fork; });
  if (noticed != 0) throw std::bad_alloc();
  // oneTBB would write to stderr that it ignores a request for more.
  const int wanted = threads > 0 ? std::min(threads, threads_there_are()) : tbb::task_arena::automatic;
  arena = std::make_unique<tbb::task_arena>(wanted);
}

inline host::host(int threads, std::pmr::memory_resource* memory) : memory_(memory) {
  if (threads < 0) {
    detail::raise<invalid_argument>(
        {"roost::host: ", threads, " threads; give 1 or more, or 0 for all cores"});
  }
  state_ = std::make_shared<state>(threads);
}

inline host_memory_pool& host_memory_pool::instance() {
  static auto* const pool = new host_memory_pool;  // outlives every static table
  return *pool;
}

// A build and a lookup by region that alternate should share their pieces: pairs are twice as large as keys,
// or slightly more, since their regions have different slack.
inline auto host_memory_pool::best_fit(std::size_t bytes, std::size_t alignment) -> pieces::iterator {
  auto best = kept_.end();
  for (auto position = kept_.begin(); position != kept_.end(); ++position) {
    const piece& p = position->second;
    if (p.alignment < alignment || p.bytes < bytes || p.bytes - bytes > bytes + bytes / 2) continue;
    if (best == kept_.end() || p.bytes < best->second.bytes) best = position;
  }
  return best;
}

inline void* host_memory_pool::hand_out(pieces::node_type node) {
  most_bytes_ = std::max(most_bytes_, used_bytes_);
  return used_.insert(std::move(node)).position->first;
}

// The oldest kept pieces, as many as there may not be beside those in use.
inline auto host_memory_pool::too_much() -> pieces {
  pieces oldest;
  while (!kept_.empty() && kept_bytes_ + used_bytes_ > most_bytes_) {
    const auto older = [](const auto& a, const auto& b) { return a.second.turn < b.second.turn; };
    const auto first = std::min_element(kept_.begin(), kept_.end(), older);
    kept_bytes_ -= first->second.bytes;
    oldest.insert(kept_.extract(first));
  }
  return oldest;
}

inline void host_memory_pool::give_back(const pieces& all) {
  for (const auto& [memory, p] : all) upstream_->deallocate(memory, p.bytes, p.alignment);
}

// Counted as used by its caller.
inline void* host_memory_pool::fresh(std::size_t bytes, std::size_t alignment) {
  if (!has_room(bytes)) throw std::bad_alloc();
  try {
    return upstream_->allocate(bytes, alignment);
  } catch (const std::bad_alloc&) {
    trim();  // kept memory may be what this allocation lacks
    return upstream_->allocate(bytes, alignment);
  }
}

inline void* host_memory_pool::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (detail::after_fork != nullptr) return detail::after_fork->allocate(bytes, alignment);
  if (bytes < big) return upstream_->allocate(bytes, alignment);
  pieces one{{nullptr, {bytes, alignment}}}, oldest;
  {
    const std::lock_guard hold(lock_);
    const auto found = best_fit(bytes, alignment);
    if (found != kept_.end()) {
      kept_bytes_ -= found->second.bytes;
      used_bytes_ += found->second.bytes;
      return hand_out(kept_.extract(found));
    }
    used_bytes_ += bytes;
    oldest = too_much();
  }
  give_back(oldest);
  auto node = one.extract(nullptr);
  try {
    node.key() = fresh(bytes, alignment);
  } catch (...) {
    const std::lock_guard hold(lock_);
    used_bytes_ -= bytes;
    throw;
  }
  const std::lock_guard hold(lock_);
  return hand_out(std::move(node));
}

inline void host_memory_pool::do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) {
  if (detail::after_fork != nullptr) return detail::after_fork->deallocate(memory, bytes, alignment);
  if (bytes < big) return upstream_->deallocate(memory, bytes, alignment);
  pieces oldest;
  {
    const std::lock_guard hold(lock_);
    auto node = used_.extract(memory);
    piece& p = node.mapped();  // its actual size, not the requested one
    used_bytes_ -= p.bytes;
    kept_bytes_ += p.bytes;
    p.turn = turns_++;
    kept_.insert(std::move(node));
    oldest = too_much();
  }
  give_back(oldest);
}

inline void host_memory_pool::trim() {
  if (detail::after_fork != nullptr) return;
  pieces given_back;
  {
    const std::lock_guard hold(lock_);
    given_back.swap(kept_);
    kept_bytes_ = 0;
  }
  give_back(given_back);
  if (upstream_ != tbb::scalable_memory_resource()) return;
  scalable_free(scalable_malloc(1));  // the command crashes in a process that has allocated nothing there
  static_cast<void>(scalable_allocation_command(TBBMALLOC_CLEAN_ALL_BUFFERS, nullptr));
}

inline bool host_memory_pool::has_room(std::size_t bytes) {
  if (upstream_ != tbb::scalable_memory_resource()) return true;  // it knows what it has
  if (detail::host_has_room(bytes)) return true;
  trim();
  return detail::host_has_room(bytes);
}

inline std::pmr::memory_resource* host::default_memory() {
#if ROOST_ASAN || ROOST_TSAN
  return std::pmr::new_delete_resource();  // the one that the sanitizers watch
#else
  return &host_memory_pool::instance();
#endif
}

inline void host::expect_room(std::size_t bytes) const {
  const bool of_system = memory_ == default_memory() || memory_ == std::pmr::new_delete_resource();
  if (!of_system) return;
  const std::size_t all = detail::bytes_of_host();
  if (bytes <= all && host_memory_pool::instance().has_room(bytes)) return;
  detail::raise<out_of_memory>(
      {"roost::host: no memory for ", bytes, " bytes, ",
       bytes <= all ? detail::bytes_available_on_host() : all,
       bytes <= all ? " are available" : " are all that this process can have",
       "; use fewer keys or a higher load factor, or give the place a memory resource that has more"});
}

inline void* host::allocate(std::size_t bytes) const {
  if (bytes > detail::bytes_of_host()) expect_room(bytes);
  try {
    void* const memory = memory_->allocate(bytes, alignment(bytes));
#if defined(__linux__)
    // Tables are read at random: with small pages every read would also miss the TLB.
    if (bytes >= huge_page) static_cast<void>(madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE));
#endif
    return memory;
  } catch (const std::bad_alloc&) {
    detail::raise<out_of_memory>(
        {"roost::host: no memory for ", bytes,
         " bytes; use fewer keys or a higher load factor, or give the place another memory resource"});
  }
}

inline void host::deallocate(void* memory, std::size_t bytes) const noexcept {
  memory_->deallocate(memory, bytes, alignment(bytes));
}

namespace detail {

/// Any work on pieces [first, last) of [0, n), so that oneTBB's templates are compiled once.
struct piece_work {
  void (*run)(const void* body, std::size_t first, std::size_t last);
  const void* body;
  void operator()(std::size_t first, std::size_t last) const { run(body, first, last); }
};

/// The same on this thread: at once, or, if it calls something between pieces, in about a thousand.
inline void each_in_turn(std::size_t n, std::size_t grain, const piece_work& work) {
  const std::size_t step = between_pieces == nullptr ? n : larger(grain, n / 1024 + 1);
  for (std::size_t first = 0; first < n; first += step) {
    if (first != 0) come_between();
    work(first, smaller(n, first + step));
  }
}

inline void for_each_piece(tbb::task_arena& arena, std::size_t n, std::size_t grain, const piece_work& work) {
  if (n == 0) return;
  if (n <= grain || after_fork != nullptr || arena.max_concurrency() == 1)
    return each_in_turn(n, grain, work);
#if ROOST_TSAN
  // ThreadSanitizer does not see how oneTBB's library orders its tasks, so here the pieces go to plain
  // threads.
  const std::size_t pieces = ceil_div(n, grain);
  std::atomic<std::size_t> next{0};
  const auto take_pieces = [&] {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) {
      work(i * grain, smaller(n, (i + 1) * grain));
    }
  };
  std::vector<std::future<void>> others(
      smaller<std::size_t>(static_cast<std::size_t>(arena.max_concurrency()), pieces) - 1);
  for (auto& other : others) other = std::async(std::launch::async, take_pieces);
  take_pieces();
  for (auto& other : others) other.get();
#else
  arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, n, grain),
                      [&](const tbb::blocked_range<std::size_t>& piece) {
                        come_between();
                        work(piece.begin(), piece.end());
                      });
  });
#endif
}

/// Calls body(first, last) for pieces of [0, n) on the threads of an arena.
template <class Body>
void for_each_piece(tbb::task_arena& arena, std::size_t n, std::size_t grain, const Body& body) {
  const auto run = [](const void* self, std::size_t first, std::size_t last) {
    (*static_cast<const Body*>(self))(first, last);
  };
  for_each_piece(arena, n, grain, piece_work{run, &body});
}

/// Scratch memory of one host thread: on the stack if it fits, so that most kernels run without memory.
class host_scratch {
 public:
  host_scratch(const host& place, std::size_t bytes)
      : place_(place),
        bytes_(bytes <= sizeof(small_) ? 0 : bytes),
        memory_(bytes_ == 0 ? small_ : place.allocate(bytes_)) {}
  ~host_scratch() {
    if (bytes_ != 0) place_.deallocate(memory_, bytes_);
  }
  host_scratch(const host_scratch&) = delete;
  host_scratch& operator=(const host_scratch&) = delete;
  std::byte* get() const { return static_cast<std::byte*>(memory_); }

 private:
  const host& place_;
  std::size_t bytes_;
  void* memory_;
  alignas(alignment_most) std::byte small_[16 << 10];
};

}  // namespace detail

template <class F>
void host::for_each(std::size_t n, const F& f) const {
  detail::for_each_piece(*state_->arena, n, 4096, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) f(i);
  });
}

template <class Kernel>
void host::launch(std::size_t teams, std::size_t scratch_bytes, const Kernel& kernel, report) const {
  detail::for_each_piece(*state_->arena, teams, 1, [&](std::size_t first, std::size_t last) {
    const detail::host_scratch scratch(*this, scratch_bytes);
    for (std::size_t i = first; i < last; ++i) kernel(detail::serial_team{}, i, scratch.get());
  });
}

template <class F>
std::uint64_t host::sum(std::size_t n, const F& f) const {
  std::atomic<std::uint64_t> total{0};
  detail::for_each_piece(*state_->arena, n, 4096, [&](std::size_t first, std::size_t last) {
    std::uint64_t mine = 0;
    for (std::size_t i = first; i < last; ++i) mine += f(i);
    total.fetch_add(mine, std::memory_order_relaxed);
  });
  return total.load();
}

}  // namespace roost
