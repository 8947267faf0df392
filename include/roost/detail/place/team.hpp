#pragma once

#include <utility>

#include "roost/detail/place/config.hpp"

// A team: a group of workers with a rank, a size, a barrier and a scratch memory that they share. Algorithms
// are written once over teams. On the host a team is one thread; on cuda it is a thread block and its shared
// memory. Every member of a team must reach the same sync(), exclusive_scan() and any().

namespace roost {
class host;
class cuda;
}  // namespace roost

namespace roost::detail {

/// A number of a type that the device's atomics accept: only these two, whatever std::uint64_t is.
template <class T>
using atomic_word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;

template <class T>
ROOST_FN atomic_word<T>* atomic_at(T& word) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  return reinterpret_cast<atomic_word<T>*>(&word);
}

/// The host's team: one thread.
struct serial_team {
  using place = roost::host;
  static constexpr int size = 1;

  ROOST_FN int rank() const { return 0; }
  ROOST_FN void sync() const {}
  ROOST_FN bool any(bool mine) const { return mine; }

  /// A word of scratch that others may write to at the same time.
  template <class T>
  ROOST_FN T read(const T& word) const {
    return word;
  }

  /// Adds to a word of scratch; returns the previous value.
  template <class T>
  ROOST_FN T fetch_add(T& word, T amount) const {
    const T before = word;
    word += amount;
    return before;
  }

  // Collective operations of neighbours (on cuda: a warp). All of them must call these.

  static constexpr int near_size = 1;
  ROOST_FN void sync_near() const {}
  /// A bit for each neighbour, in order: set if its argument is true.
  ROOST_FN std::uint32_t ballot_near(bool mine) const { return mine ? 1 : 0; }
  /// Adds to a word of scratch.
  ROOST_FN void add_near(std::uint32_t& word, std::uint32_t amount) const { word += amount; }
  /// Sets a word of scratch to the minimum of it and the values of all neighbours.
  ROOST_FN void fetch_min_near(std::uint32_t& word, std::uint32_t value) const {
    word = smaller(word, value);
  }

  /// Stores a value in a word of scratch that others may write to at the same time; one of the values wins.
  template <class T>
  ROOST_FN void exchange(T& word, T value) const {
    word = value;
  }

  /// Sets a word of scratch to the minimum of it and a value; returns the previous value.
  template <class T>
  ROOST_FN T fetch_min(T& word, T value) const {
    const T before = word;
    if (value < before) word = value;
    return before;
  }

  /// Sets bits of a word of scratch.
  template <class T>
  ROOST_FN void fetch_or(T& word, T bits) const {
    word |= bits;
  }

  /// Compare-and-swap on a word of scratch (2, 4 or 8 bytes): stores `desired` if it holds `expected`;
  /// returns the previous value.
  template <class T>
  ROOST_FN T compare_exchange(T& word, T expected, T desired) const {
    const T before = word;
    if (before == expected) word = desired;
    return before;
  }

  /// sums[i] = counts[0] + ... + counts[i - 1]. `sums` may be `counts`.
  ROOST_FN void exclusive_scan(const std::uint32_t* counts, std::uint32_t* sums, std::uint32_t n) const {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t count = counts[i];
      sums[i] = sum;
      sum += count;
    }
  }
};

#if ROOST_ON_DEVICE
/// The sum of the values of the warp's lanes up to and including this one.
template <class T>
ROOST_FN T scan_warp(T sum) {
  ROOST_UNROLL
  for (int apart = 1; apart < 32; apart *= 2) {
    const T before = __shfl_up_sync(~0u, sum, apart);
    if (threadIdx.x % 32 >= static_cast<unsigned>(apart)) sum += before;
  }
  return sum;
}

/// Publishes a word to other blocks, and reads one.
ROOST_FN void publish_word(std::uint64_t* position, std::uint64_t word) {
  asm volatile("st.relaxed.gpu.b64 [%0], %1;" : : "l"(position), "l"(word) : "memory");
}
ROOST_FN std::uint64_t published_word(const std::uint64_t* position) {
  std::uint64_t word;
  asm volatile("ld.relaxed.gpu.b64 %0, [%1];" : "=l"(word) : "l"(position) : "memory");
  return word;
}

/// A barrier of all blocks of a grid, which must run at the same time; makes the writes of all blocks visible
/// to each. Each time, the blocks together add 2^31 to the word, so that it can be used again.
ROOST_FN void wait_for_all_blocks(std::uint32_t* barrier) {
  constexpr std::uint32_t all = 1u << 31;
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::uint32_t mine = blockIdx.x == 0 ? all - (gridDim.x - 1) : 1;
    std::uint32_t before, now;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(barrier), "r"(mine)
                 : "memory");
    do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(barrier) : "memory");
    while (((before ^ now) & all) == 0);
  }
  __syncthreads();
}
#endif

/// cuda's team: a block of `Size` threads. (The compiler's host pass names its members, but never runs them.)
template <int Size>
struct block_team
#if !ROOST_ON_DEVICE
    : serial_team
#endif
{
  using place = roost::cuda;
  static constexpr int size = Size;
  static constexpr int near_size = 32;

#if ROOST_ON_DEVICE
  ROOST_FN int rank() const { return static_cast<int>(threadIdx.x); }
  ROOST_FN void sync() const { __syncthreads(); }
  ROOST_FN bool any(bool mine) const { return __syncthreads_or(mine); }

  template <class T>
  ROOST_FN T read(const T& word) const {
    return *static_cast<const volatile T*>(&word);
  }

  template <class T>
  ROOST_FN T fetch_add(T& word, T amount) const {
    return atomicAdd(atomic_at(word), amount);
  }

  ROOST_FN void sync_near() const { __syncwarp(); }
  ROOST_FN std::uint32_t ballot_near(bool mine) const { return __ballot_sync(~0u, mine); }
  ROOST_FN void add_near(std::uint32_t& word, std::uint32_t amount) const {
#if __CUDA_ARCH__ >= 800
    amount = __reduce_add_sync(~0u, amount);
#else
    for (int apart = 16; apart != 0; apart /= 2) amount += __shfl_xor_sync(~0u, amount, apart);
#endif
    if (threadIdx.x % 32 == 0 && amount != 0) atomicAdd(&word, amount);
  }
  ROOST_FN void fetch_min_near(std::uint32_t& word, std::uint32_t value) const {
#if __CUDA_ARCH__ >= 800
    value = __reduce_min_sync(~0u, value);
#else
    for (int apart = 16; apart != 0; apart /= 2) value = smaller(value, __shfl_xor_sync(~0u, value, apart));
#endif
    if (threadIdx.x % 32 == 0) atomicMin(&word, value);
  }

  template <class T>
  ROOST_FN void exchange(T& word, T value) const {
    atomicExch(&word, value);
  }

  template <class T>
  ROOST_FN T fetch_min(T& word, T value) const {
    return atomicMin(atomic_at(word), value);
  }

  template <class T>
  ROOST_FN void fetch_or(T& word, T bits) const {
    atomicOr(atomic_at(word), bits);
  }

  template <class T>
  ROOST_FN T compare_exchange(T& word, T expected, T desired) const {
    if constexpr (sizeof(T) == 2) {
      return atomicCAS(&word, expected, desired);
    } else {
      return atomicCAS(atomic_at(word), expected, desired);
    }
  }

  ROOST_FN void exclusive_scan(const std::uint32_t* counts, std::uint32_t* sums, std::uint32_t n) const {
    static_assert(Size % 32 == 0);
    __shared__ std::uint32_t of_warp[Size / 32];
    const std::uint32_t each = ceil_div<std::uint32_t>(n, Size), first = smaller(threadIdx.x * each, n),
                        last = smaller(first + each, n);
    std::uint32_t mine = 0;
    for (std::uint32_t i = first; i < last; ++i) mine += counts[i];
    const std::uint32_t up_to_mine = scan_warp(mine), warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 31) of_warp[warp] = up_to_mine;
    __syncthreads();
    std::uint32_t sum = up_to_mine - mine;
    ROOST_UNROLL
    for (std::uint32_t w = 0; w + 1 < Size / 32; ++w) sum += w < warp ? of_warp[w] : 0;
    for (std::uint32_t i = first; i < last; ++i) {
      const std::uint32_t count = counts[i];
      sums[i] = sum;
      sum += count;
    }
    __syncthreads();
  }
#endif
};

/// Which of a block's n items a worker holds: item(held) if that is below `end`. InOrder: a warp's items
/// follow each other, in rows of one item a lane, so that (warp, held, lane) is the order of the items. Else
/// the block's rows do, which streams 3 to 5 % faster.
template <int Size, bool InOrder>
struct held_rows {
  static_assert(Size % 32 == 0);
  static constexpr int step = InOrder ? 32 : Size;
  int first, end;

  ROOST_FN held_rows(int rank, int n) : first(rank), end(n) {
    if constexpr (InOrder) {
      const int of_warp = 32 * ceil_div(n, Size);
      first = rank / 32 * of_warp + rank % 32;
      end = smaller(n, (rank / 32 + 1) * of_warp);
    }
  }
  ROOST_FN int item(int held) const { return first + held * step; }
};

/// Calls body(held, i) for the team's items i in [0, n), n <= PerWorker * Team::size, both ints. `held` in
/// [0, PerWorker) is the worker's own number for the item: it indexes what a worker keeps of its items
/// between two loops, in registers on a GPU. Both loops have the same n and InOrder.
template <int PerWorker, bool InOrder = false, class Team, class Body>
ROOST_FN void for_each_held(const Team& team, std::uint32_t n, const Body& body) {
  if constexpr (Team::size == 1) {
    for (int i = 0; i < static_cast<int>(n); ++i) body(i, i);
  } else if (n == PerWorker * Team::size) {  // the usual case, without a check for each item
    const held_rows<Team::size, InOrder> mine(team.rank(), PerWorker * Team::size);
    ROOST_UNROLL
    for (int held = 0; held < PerWorker; ++held) body(held, mine.item(held));
  } else {
    const held_rows<Team::size, InOrder> mine(team.rank(), static_cast<int>(n));
    ROOST_UNROLL
    for (int held = 0; held < PerWorker; ++held) {
      const int i = mine.item(held);
      if (i < mine.end) body(held, i);
    }
  }
}

/// The same if some bodies take longer than others: neighbours begin each body together. (A warp that has
/// diverged in one body does not reconverge by itself.)
template <int PerWorker, bool InOrder = false, class Team, class Body>
ROOST_FN void for_each_held_in_step(const Team& team, std::uint32_t n, const Body& body) {
  if constexpr (Team::size == 1) {
    for_each_held<PerWorker>(team, n, body);
  } else {
    const held_rows<Team::size, InOrder> mine(team.rank(), static_cast<int>(n));
    ROOST_UNROLL
    for (int held = 0; held < PerWorker; ++held) {
      const int i = mine.item(held);
      if (i < mine.end) body(held, i);
      team.sync_near();
    }
  }
}

/// The team's items source[first + i], i in [0, n), for several loops of for_each_held: each thread of a
/// block keeps its items in registers; a single worker reads them again, since they are in its cache.
template <int PerWorker, class Team, class Source, bool InOrder = false>
class held_items {
  using item = std::remove_cvref_t<decltype(std::declval<const Source&>()[0])>;

 public:
  ROOST_FN held_items(const Team& team, const Source& source, std::uint64_t first, std::uint32_t n) {
    for_each_held<PerWorker, InOrder>(team, n, [&](int held, int i) { item_[held] = source[first + i]; });
  }
  ROOST_FN const item& operator()(int held, int) const { return item_[held]; }

 private:
  item item_[PerWorker];
};

template <int PerWorker, class Source, bool InOrder>
class held_items<PerWorker, serial_team, Source, InOrder> {
 public:
  ROOST_FN held_items(const serial_team&, const Source& source, std::uint64_t first, std::uint32_t)
      : source_(&source), first_(first) {}
  ROOST_FN decltype(auto) operator()(int, int i) const {
    return (*source_)[first_ + static_cast<std::uint64_t>(i)];
  }

 private:
  const Source* source_;
  std::uint64_t first_;
};

/// Calls body(i) for i in [0, n), dealt out to the workers.
template <class Team, class Body>
ROOST_FN void for_each_of(const Team& team, std::uint32_t n, const Body& body) {
  ROOST_ROLLED
  for (std::uint32_t i = static_cast<std::uint32_t>(team.rank()); i < n; i += Team::size) body(i);
}

/// The same in step: see for_each_held_in_step.
template <class Team, class Body>
ROOST_FN void for_each_in_step(const Team& team, std::uint32_t n, const Body& body) {
  ROOST_ROLLED
  for (std::uint32_t first = 0; first < n; first += Team::size) {
    const std::uint32_t i = first + static_cast<std::uint32_t>(team.rank());
    if (i < n) body(i);
    team.sync_near();
  }
}

/// Hands out a team's scratch memory piece by piece. With a null base it only counts the bytes, so that a
/// kernel says how much scratch it needs with the code that uses it.
class scratch_memory {
 public:
  ROOST_FN explicit scratch_memory(std::byte* base) : base_(base) {}

  template <class T>
  ROOST_FN T* take(std::size_t n) {
    constexpr std::size_t alignment = larger<std::size_t>(16, alignof(T));
    used_ = (used_ + alignment - 1) / alignment * alignment;
    T* const piece = reinterpret_cast<T*>(base_ + used_);
    used_ += n * sizeof(T);
    return piece;
  }

  ROOST_FN std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// The bytes of scratch that a kernel takes.
template <class Kernel>
std::size_t scratch_bytes_of(const Kernel& kernel) {
  scratch_memory counted(nullptr);
  if constexpr (requires { kernel.scratch(counted); }) static_cast<void>(kernel.scratch(counted));
  return counted.used();
}

/// What a kernel takes of its scratch.
template <class Kernel>
ROOST_FN auto scratch_of(const Kernel& kernel, std::byte* memory) {
  scratch_memory all(memory);
  return kernel.scratch(all);
}

/// How many teams a multiprocessor should run at once, if a kernel (or an answer of a bulk call) specifies
/// it.
template <class Kernel>
constexpr int teams_at_once = [] {
  if constexpr (requires { Kernel::teams_at_once; }) {
    return Kernel::teams_at_once;
  } else {
    return 1;
  }
}();

/// A kernel and its number of teams: one of several kernels that run in order. Its needed(), called after the
/// previous kernels, may say that it has nothing to do; the kernel must not change what that depends on.
template <class Kernel>
struct stage {
  std::size_t teams;
  Kernel kernel;

  ROOST_FN bool needed() const {
    if constexpr (requires { kernel.needed(); }) return kernel.needed();
    return true;
  }
};

// Atomics on memory that all teams see. Relaxed: an order between teams comes from the end of a launch.

/// Reads a word that others may change at the same time.
template <class T>
ROOST_FN T peek(const T& word) {
#if ROOST_ON_DEVICE
  return *static_cast<const volatile T*>(&word);
#else
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
#endif
}

// Each changes a word, and returns what it was.
#if ROOST_ON_DEVICE
#define ROOST_CHANGE_WORD(name, on_gpu, on_host) \
  template <class T>                             \
  ROOST_FN T name(T& word, T value) {            \
    return on_gpu(atomic_at(word), value);       \
  }
#else
#define ROOST_CHANGE_WORD(name, on_gpu, on_host)    \
  template <class T>                                \
  ROOST_FN T name(T& word, T value) {               \
    return on_host(&word, value, __ATOMIC_RELAXED); \
  }
#endif
ROOST_CHANGE_WORD(fetch_add, atomicAdd, __atomic_fetch_add)
ROOST_CHANGE_WORD(fetch_and, atomicAnd, __atomic_fetch_and)
ROOST_CHANGE_WORD(fetch_or, atomicOr, __atomic_fetch_or)
ROOST_CHANGE_WORD(exchange, atomicExch, __atomic_exchange_n)
#undef ROOST_CHANGE_WORD

template <class T>
ROOST_FN void fetch_max(T& word, std::type_identity_t<T> value) {
#if ROOST_ON_DEVICE
  if (peek(word) < value) atomicMax(atomic_at(word), value);
#else
  T seen = peek(word);
  while (seen < value &&
         !__atomic_compare_exchange_n(&word, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}

template <class T>
ROOST_FN void fetch_min(T& word, std::type_identity_t<T> value) {
#if ROOST_ON_DEVICE
  // Reading the word before the atomic avoids contention on a word that many threads change.
  if (peek(word) <= value) return;
  atomicMin(atomic_at(word), value);
#else
  T seen = peek(word);
  while (seen > value &&
         !__atomic_compare_exchange_n(&word, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}

}  // namespace roost::detail
