#pragma once

#include <sched.h>

#include <atomic>
#include <cstring>

#include "roost/detail/place/copies.hpp"

#if ROOST_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// Whether 16 bytes are changed in one step. A program that defines ROOST_NO_WIDE_ATOMICS, in all its files,
// does not use 16-byte atomics. Host and device code may differ in this; types must not.
#if defined(ROOST_NO_WIDE_ATOMICS)
#define ROOST_WIDE_ATOMICS 0
#elif ROOST_ON_DEVICE
#define ROOST_WIDE_ATOMICS (__CUDA_ARCH__ >= 900)
#elif defined(__x86_64__)
#define ROOST_WIDE_ATOMICS 1
#else
#define ROOST_WIDE_ATOMICS __atomic_always_lock_free(16, nullptr)
#endif

// Atomics on slots of 4, 8 and 16 bytes in memory that several threads change at once. They are relaxed,
// except those with acquire or release in their names: a slot contains all that its reader needs. A
// slot is changed as a whole and in halves; on every processor that roost supports, accesses of both sizes to
// one aligned slot are atomic with respect to each other.

namespace roost::detail {

/// A slot's bits: a number of 4 or 8 bytes, or two of 8.
struct alignas(16) two_words {
  std::uint64_t low, high;
  ROOST_FN friend bool operator==(const two_words& a, const two_words& b) {
    return a.low == b.low && a.high == b.high;
  }
};

/// One half of a slot: first the key's, then the value's. Sets have the first only.
template <class Part, class Word>
ROOST_FN Part* half_of(Word* position, int which) {
  return reinterpret_cast<Part*>(position) + which;
}

#if ROOST_ON_DEVICE
/// The index of this thread in its warp.
ROOST_FN int lane_of_warp() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
#endif

/// Access to slots that several workers change at the same time.
struct shared_access {
  template <class Word>
  ROOST_FN static Word load(const Word* source) {
    if constexpr (sizeof(Word) == 16 && !ROOST_WIDE_ATOMICS) {
      return load_unlocked(source);
    } else {
#if ROOST_ON_DEVICE  // bypasses the first-level cache, which does not see other multiprocessors' changes
      if constexpr (sizeof(Word) == 16) {
        Word word;
        asm volatile("{ .reg .b128 both; ld.relaxed.gpu.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
                     : "=l"(word.low), "=l"(word.high)
                     : "l"(source)
                     : "memory");
        return word;
      } else {
        return *const_cast<const volatile Word*>(source);
      }
#else
      if constexpr (sizeof(Word) == 16) {
#if defined(__x86_64__)  // one load of 16 bytes is atomic on every processor with AVX
        using vector = long long __attribute__((vector_size(16)));
        vector both;
        asm volatile("movdqa %1, %0" : "=x"(both) : "m"(*reinterpret_cast<const vector*>(source)));
        return {static_cast<std::uint64_t>(both[0]), static_cast<std::uint64_t>(both[1])};
#else
        const uint128 both = __atomic_load_n(reinterpret_cast<const uint128*>(source), __ATOMIC_RELAXED);
        return {static_cast<std::uint64_t>(both), static_cast<std::uint64_t>(both >> 64)};
#endif
      } else {
        return __atomic_load_n(source, __ATOMIC_RELAXED);
      }
#endif
    }
  }

  /// A load with acquire order.
  template <class Word>
  ROOST_FN static Word load_acquire(const Word* source) {
#if ROOST_ON_DEVICE
    Word word;
    if constexpr (sizeof(Word) == 8) {
      asm volatile("ld.acquire.gpu.b64 %0, [%1];" : "=l"(word) : "l"(source) : "memory");
    } else if constexpr (sizeof(Word) == 4) {
      asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(word) : "l"(source) : "memory");
    } else {
      word = load(source);
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    return word;
#else
    return __atomic_load_n(source, __ATOMIC_ACQUIRE);
#endif
  }

  /// Adjacent slots, in 16-byte loads.
  template <int N, class Word>
  ROOST_FN static void load(const Word* source, Word (&target)[N]) {
#if ROOST_ON_DEVICE
    if constexpr (sizeof(Word) < 16 && N * sizeof(Word) % 16 == 0) {
      std::uint64_t pieces[N * sizeof(Word) / 8];
      ROOST_UNROLL
      for (int i = 0; i < static_cast<int>(N * sizeof(Word) / 16); ++i) {
        asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];"
                     : "=l"(pieces[2 * i]), "=l"(pieces[2 * i + 1])
                     : "l"(reinterpret_cast<const char*>(source) + 16 * i)
                     : "memory");
      }
      memcpy(target, pieces, sizeof(target));
    } else
#endif
    {
      ROOST_UNROLL
      for (int i = 0; i < N; ++i) target[i] = load(source + i);
    }
  }

  /// Compare-and-swap: stores `desired` if the slot holds `expected`; returns the previous value.
  template <class Word>
  ROOST_FN static Word compare_exchange(Word* position, const Word& expected, const Word& desired) {
    if constexpr (sizeof(Word) == 16 && !ROOST_WIDE_ATOMICS) {
      const Word before = load(position);  // a mismatch needs no lock
      if (!(before == expected)) return before;
      return change_locked(position, [&](Word& word) {
        if (word == expected) word = desired;
      });
    } else {
#if ROOST_ON_DEVICE
      if constexpr (sizeof(Word) == 16) {
        Word before;
        asm volatile(
            "{ .reg .b128 is, wants, was; mov.b128 is, {%3, %4}; mov.b128 wants, {%5, %6}; "
            "atom.relaxed.gpu.cas.b128 was, [%2], is, wants; "
            "mov.b128 {%0, %1}, was; }"
            : "=l"(before.low), "=l"(before.high)
            : "l"(position), "l"(expected.low), "l"(expected.high), "l"(desired.low), "l"(desired.high)
            : "memory");
        return before;
      } else {
        return atomicCAS(atomic_at(*position), expected, desired);
      }
#else
      if constexpr (sizeof(Word) == 16) {
#if defined(__x86_64__)
        Word before = expected;
        asm volatile("lock cmpxchg16b %0"
                     : "+m"(*position), "+a"(before.low), "+d"(before.high)
                     : "b"(desired.low), "c"(desired.high)
                     : "cc", "memory");
        return before;
#else
        uint128 before = static_cast<uint128>(expected.high) << 64 | expected.low;
        const uint128 wanted = static_cast<uint128>(desired.high) << 64 | desired.low;
        __atomic_compare_exchange_n(reinterpret_cast<uint128*>(position), &before, wanted, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        return {static_cast<std::uint64_t>(before), static_cast<std::uint64_t>(before >> 64)};
#endif
      } else {
        Word before = expected;
        __atomic_compare_exchange_n(position, &before, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        return before;
      }
#endif
    }
  }

  /// Stores `desired` if the slot holds zeros; returns the previous value.
  template <bool Repeatable, class Word>
  ROOST_FN static Word claim(Word* position, const Word& desired) {
    return compare_exchange(position, Word{}, desired);
  }

  /// Sets bits of the key's part; returns the previous value.
  template <class Part, class Word>
  ROOST_FN static Part set_key_bits(Word* position, Part bits) {
    if constexpr (sizeof(Word) == 16 && !ROOST_WIDE_ATOMICS) {
      const Part before = load(position).low;
      if ((before & bits) == bits) return before;
      return change_locked(position, [&](Word& word) { word.low |= bits; }).low;
    } else {
      return detail::fetch_or(*half_of<Part>(position, 0), bits);
    }
  }

  template <class Part, class Word>
  ROOST_FN static void set_value(Word* position, Part value) {
    if constexpr (sizeof(Word) == 16 && !ROOST_WIDE_ATOMICS) {
      change_locked(position, [&](Word& word) { word.high = value; });
    } else {
      store(half_of<Part>(position, 1), value);
    }
  }

  template <class Part, class Word>
  ROOST_FN static void add_to_value(Word* position, Part amount) {
    if constexpr (sizeof(Word) == 16 && !ROOST_WIDE_ATOMICS) {
      change_locked(position, [&](Word& word) { word.high += amount; });
    } else {
      detail::fetch_add(*half_of<Part>(position, 1), amount);
    }
  }

  template <class Word>
  ROOST_FN static void store(Word* position, Word value) {
#if ROOST_ON_DEVICE
    *const_cast<volatile Word*>(position) = value;
#else
    __atomic_store_n(position, value, __ATOMIC_RELAXED);
#endif
  }

  /// Takes a lock for all threads of a warp that want it at the same time: calls take() and give_back() once,
  /// and between them f() for each of the threads, one at a time. If take() returns false, f() is not called,
  /// and the result is false. A warp tries the lock once, and its threads never wait for each other. On the
  /// host each thread takes the lock for itself.
  template <class Take, class F, class GiveBack>
  ROOST_FN static bool in_turn([[maybe_unused]] const void* lock, const Take& take, const F& f,
                               const GiveBack& give_back) {
#if ROOST_ON_DEVICE
    const unsigned same = __match_any_sync(__activemask(), reinterpret_cast<unsigned long long>(lock));
    const int lane = lane_of_warp(), first = __ffs(static_cast<int>(same)) - 1;
    const bool leads = lane == first;
    if (__shfl_sync(same, leads && take() ? 1 : 0, first) == 0) return false;
    ROOST_ROLLED
    for (unsigned rest = same; rest != 0; rest &= rest - 1) {
      if (lane == __ffs(static_cast<int>(rest)) - 1) f();
      __syncwarp(same);
    }
    if (leads) give_back();
#else
    if (!take()) return false;
    f();
    give_back();
#endif
    return true;
  }

  /// Compare-and-swap with acquire order.
  ROOST_FN static std::uint32_t compare_exchange_acquire(std::uint32_t* position, std::uint32_t expected,
                                                         std::uint32_t desired) {
#if ROOST_ON_DEVICE
    std::uint32_t before;
    asm volatile("atom.acquire.gpu.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(position), "r"(expected), "r"(desired)
                 : "memory");
    return before;
#else
    __atomic_compare_exchange_n(position, &expected, desired, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    return expected;
#endif
  }

  /// A store with release order.
  template <class Word>
  ROOST_FN static void store_release(Word* position, Word value) {
#if ROOST_ON_DEVICE
    if constexpr (sizeof(Word) == 8) {
      asm volatile("st.release.gpu.b64 [%0], %1;" : : "l"(position), "l"(value) : "memory");
    } else {
      asm volatile("st.release.gpu.b32 [%0], %1;" : : "l"(position), "r"(value) : "memory");
    }
#else
    __atomic_store_n(position, value, __ATOMIC_RELEASE);
#endif
  }

  /// Clears bits with release order.
  ROOST_FN static void clear_release(std::uint64_t* position, std::uint64_t bits) {
#if ROOST_ON_DEVICE
    asm volatile("red.release.gpu.and.b64 [%0], %1;" : : "l"(position), "l"(~bits) : "memory");
#else
    __atomic_fetch_and(position, ~bits, __ATOMIC_RELEASE);
#endif
  }

  /// Waits some nanoseconds before the next attempt to take a lock: many threads that retry at once would
  /// delay its owner. A host thread that has waited long yields, since it may keep the owner from running at
  /// all.
  ROOST_FN static void wait([[maybe_unused]] unsigned nanoseconds) {
#if !ROOST_ON_DEVICE
    if (nanoseconds >= 1024) sched_yield();
#elif __CUDA_ARCH__ >= 700
    __nanosleep(nanoseconds);
#endif
  }

 private:
  // Without 16-byte atomics, a slot is changed under a lock: a bit pattern in its key part that no slot has
  // otherwise. Other threads of a warp may wait for the thread that holds the lock, which requires compute
  // capability 7.0.
  static constexpr std::uint64_t locked = std::uint64_t{1} << 62;

  template <class Change>
  ROOST_FN static two_words change_locked(two_words* position, const Change& change) {
    for (unsigned pause = 32;; pause = smaller(2 * pause, 32768u)) {
      const std::uint64_t key = load(&position->low);
      if (key == locked || !lock(&position->low, key)) {
        wait(pause);
        continue;
      }
      const two_words before{key, load(&position->high)};
      two_words word = before;
      change(word);
      store_release(&position->high, word.high);
      store_release(&position->low, word.low);
      return before;
    }
  }

  ROOST_FN static two_words load_unlocked(const two_words* source) {
    for (unsigned pause = 32;; pause = smaller(2 * pause, 32768u)) {
      const std::uint64_t key = load_acquire(&source->low);
      const two_words word{key, load_acquire(&source->high)};
      if (key != locked && load(&source->low) == key) return word;
      wait(pause);
    }
  }

  ROOST_FN static bool lock(std::uint64_t* position, std::uint64_t key) {
#if ROOST_ON_DEVICE
    const bool mine = compare_exchange(position, key, std::uint64_t{locked}) == key;
    __threadfence();
    return mine;
#else
    return __atomic_compare_exchange_n(position, &key, locked, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
#endif
  }
};

/// The same if most threads of a warp have slots to read at the same time. Loads of a GPU that bypass the
/// first-level cache request 16 bytes each from the second level. So two neighbours in a warp read the 32
/// bytes of the first with one instruction, then those of the second, and exchange halves. A thread whose
/// neighbour is elsewhere reads alone. For bulk lookups: a neighbour may not yet see what a thread itself has
/// just written.
struct paired_access : shared_access {
  using shared_access::load;
  template <int N, class Word>
  ROOST_FN static void load(const Word* source, Word (&target)[N]) {
#if ROOST_ON_DEVICE
    if constexpr (N * sizeof(Word) == 32 && (sizeof(Word) < 16 || ROOST_WIDE_ATOMICS)) {
      const int lane = lane_of_warp();
      const unsigned here = __activemask();
      const bool both = here >> (lane ^ 1) & 1, second = both && (lane & 1) != 0,
                 first = both && (lane & 1) == 0;
      const auto mine = reinterpret_cast<std::uint64_t>(source), other = __shfl_xor_sync(here, mine, 1);
      Word a[N / 2], b[N / 2];
      shared_access::load(reinterpret_cast<const Word*>(second ? other + 16 : mine),
                          a);  // of the first one's bytes
      shared_access::load(reinterpret_cast<const Word*>(first ? other : mine + 16),
                          b);  // of the second one's
      std::uint64_t halves[4];
      memcpy(halves, a, 16);
      memcpy(halves + 2, b, 16);
      ROOST_UNROLL
      for (int i = 0; i < 2; ++i) {
        const std::uint64_t got = __shfl_xor_sync(here, second ? halves[i] : halves[2 + i], 1);
        if (second) halves[i] = got;
        if (first) halves[2 + i] = got;
      }
      memcpy(target, halves, sizeof(target));
      return;
    }
#endif
    shared_access::load(source, target);
  }
};

/// The same for a team's scratch. Loads may return slightly old values there, since a change returns the
/// previous value anyway.
struct team_access : shared_access {
  using shared_access::load;
  template <int N, class Word>
  ROOST_FN static void load(const Word* source, Word (&target)[N]) {
    struct alignas(16) all {
      Word words[N];
    };
    if constexpr (sizeof(Word) == 16 && !ROOST_WIDE_ATOMICS) {
      shared_access::load(source, target);
    } else {
      const all read = detail::load(reinterpret_cast<const all*>(source));
      ROOST_UNROLL
      for (int i = 0; i < N; ++i) target[i] = read.words[i];
    }
  }

  /// Of 16 bytes, the first 8 are the key. The value may be written later, since nothing is added to it and
  /// all is read after the team's next barrier.
  template <bool Repeatable, class Word>
  ROOST_FN static Word claim(Word* position, const Word& desired) {
    if constexpr (sizeof(Word) == 16 && Repeatable && ROOST_WIDE_ATOMICS) {
      const std::uint64_t before = compare_exchange(&position->low, std::uint64_t{0}, desired.low);
      if (before == 0) position->high = desired.high;
      return {before, 0};
    } else {
      return compare_exchange(position, Word{}, desired);
    }
  }
};

/// The same for memory that only one worker uses. The bytes are copied, since a slot is accessed both as a
/// whole and in parts.
struct sole_access {
  template <class Word>
  ROOST_FN static Word load(const Word* source) {
    Word word;
    memcpy(&word, source, sizeof(Word));
    return word;
  }
  template <int N, class Word>
  ROOST_FN static void load(const Word* source, Word (&target)[N]) {
    memcpy(target, source, sizeof(target));
  }
  template <class Word>
  ROOST_FN static Word compare_exchange(Word* position, const Word& expected, const Word& desired) {
    const Word before = load(position);
    if (before == expected) store(position, desired);
    return before;
  }
  template <bool Repeatable, class Word>
  ROOST_FN static Word claim(Word* position, const Word& desired) {
    return compare_exchange(position, Word{}, desired);
  }
  template <class Part, class Word>
  ROOST_FN static Part set_key_bits(Word* position, Part bits) {
    Part* const key = half_of<Part>(position, 0);
    const Part before = load(key);
    store(key, static_cast<Part>(before | bits));
    return before;
  }
  template <class Part, class Word>
  ROOST_FN static void set_value(Word* position, Part value) {
    store(half_of<Part>(position, 1), value);
  }
  template <class Part, class Word>
  ROOST_FN static void add_to_value(Word* position, Part amount) {
    Part* const value = half_of<Part>(position, 1);
    store(value, static_cast<Part>(load(value) + amount));
  }

 private:
  template <class Word>
  ROOST_FN static void store(Word* position, Word value) {
    memcpy(position, &value, sizeof(Word));
  }
};

// A slot may refer to larger data that was written once. The writer calls publish(data) after writing the
// data and before changing the slot; the reader calls observe(data) after reading the slot and before reading
// the data. These are fences, so that slots stay relaxed. ThreadSanitizer does not understand fences, so it
// gets annotations.

ROOST_FN void publish([[maybe_unused]] void* written) {
#if ROOST_ON_DEVICE
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#elif ROOST_TSAN
  __tsan_release(written);
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

ROOST_FN void observe([[maybe_unused]] const void* found) {
#if ROOST_ON_DEVICE
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#elif ROOST_TSAN
  __tsan_acquire(const_cast<void*>(found));
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace roost::detail
