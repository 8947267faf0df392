#pragma once

#include "roost/detail/place/past_cache.hpp"
#include "roost/detail/place/team.hpp"

#if defined(__CUDACC__)
#include <cuda_pipeline.h>
#endif

// Copies between memory of the place and a team's scratch.

namespace roost::detail {

/// Reads 16 bytes at a time where the type allows it.
template <class T>
ROOST_FN T load(const T* source) {
#if ROOST_ON_DEVICE
  if constexpr (alignof(T) % 16 == 0) {
    uint4 pieces[sizeof(T) / 16];
    ROOST_UNROLL
    for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i)
      pieces[i] = reinterpret_cast<const uint4*>(source)[i];
    T result;
    memcpy(&result, pieces, sizeof(T));
    return result;
  }
#endif
  return *source;
}

#if ROOST_ON_DEVICE
/// Two neighbours of a warp have two pieces each. Afterwards the even thread has the first pieces of both,
/// and the odd thread the second pieces.
inline __device__ void share_with_neighbour(bool odd, uint4& first, uint4& second) {
  const auto share = [&](std::uint32_t& a, std::uint32_t& b) {
    const std::uint32_t other = __shfl_xor_sync(~0u, odd ? a : b, 1);
    a = odd ? other : a;
    b = odd ? b : other;
  };
  share(first.x, second.x), share(first.y, second.y), share(first.z, second.z), share(first.w, second.w);
}
#endif

/// Writes target[i] = make(i) for i in [0, n), past the host's cache. Elements larger than 32 bytes are
/// written by two neighbours of a block together, 32 bytes at a time: one thread would write each 32 bytes of
/// memory in two halves.
template <class Team, class T, class Make>
ROOST_FN void write_each(const Team& team, std::uint32_t n, T* target, const Make& make) {
#if ROOST_ON_DEVICE
  if constexpr (sizeof(T) > 32) {
    constexpr int pieces = sizeof(T) / sizeof(uint4);
    const std::uint32_t odd = static_cast<std::uint32_t>(team.rank()) % 2;
    for_each_of(team, ceil_div(n, 32u) * 32, [&](std::uint32_t i) {  // whole warps
      uint4 piece[pieces] = {};
      if (i < n) {
        const T value = make(i);
        memcpy(piece, &value, sizeof(T));
      }
      const std::uint32_t even = i - odd;
      uint4* const mine = reinterpret_cast<uint4*>(target + even) + odd;
      ROOST_UNROLL
      for (int p = 0; p < pieces; p += 2) {
        share_with_neighbour(odd != 0, piece[p], piece[p + 1]);
        if (even < n) mine[p] = piece[p];
        if (even + 1 < n) mine[pieces + p] = piece[p + 1];
      }
    });
    return;
  }
#endif
  for_each_of(team, n, [&](std::uint32_t i) { write_past_cache(target + i, make(i)); });
  past_cache_done();
}

/// Copies a team's data to its scratch. To shared memory, all loads are in flight at once.
template <class Team, class T>
ROOST_FN void copy_in(const Team& team, const T* source, std::uint32_t n, T* target) {
#if ROOST_ON_DEVICE
  if (__isShared(target)) {
    static_assert(alignof(T) % 16 == 0);
    const uint4* const pieces_in = reinterpret_cast<const uint4*>(source);
    uint4* const pieces_out = reinterpret_cast<uint4*>(target);
    for_each_of(team, static_cast<std::uint32_t>(n * sizeof(T) / sizeof(uint4)), [&](std::uint32_t i) {
      __pipeline_memcpy_async(pieces_out + i, pieces_in + i, sizeof(uint4));
    });
    __pipeline_commit();
    __pipeline_wait_prior(0);
    return;
  }
#endif
  for_each_of(team, n, [&](std::uint32_t i) { target[i] = load(source + i); });
}

/// Writes those of a team's results in scratch for which is_changed(i) to memory. A host writes all of them,
/// since whole runs of cache lines bypass its cache.
template <class Team, class T, class IsChanged>
ROOST_FN void write_changed([[maybe_unused]] const Team& team, const T* source, std::uint32_t n, T* target,
                            [[maybe_unused]] const IsChanged& is_changed) {
#if ROOST_ON_DEVICE
  static_assert(alignof(T) % 16 == 0);
  constexpr std::uint32_t pieces = sizeof(T) / sizeof(uint4);
  const uint4* const pieces_in = reinterpret_cast<const uint4*>(source);
  uint4* const pieces_out = reinterpret_cast<uint4*>(target);
  for_each_of(team, n * pieces, [&](std::uint32_t i) {
    if (is_changed(i / pieces)) pieces_out[i] = pieces_in[i];
  });
#else
  copy_past_cache(target, source, n * sizeof(T));
  past_cache_done();
#endif
}

/// Writes all of them.
template <class Team, class T>
ROOST_FN void write_out(const Team& team, const T* source, std::uint32_t n, T* target) {
  write_changed(team, source, n, target, [](std::uint32_t) { return true; });
}

/// Sets n words of scratch, a multiple of 4.
template <class Team, class Word>
ROOST_FN void fill_words(const Team& team, Word* words, std::uint32_t n, std::type_identity_t<Word> word) {
#if ROOST_ON_DEVICE
  if constexpr (sizeof(Word) == sizeof(std::uint32_t)) {
    for_each_of(team, n / 4, [&](std::uint32_t i) {
      reinterpret_cast<uint4*>(words)[i] = make_uint4(word, word, word, word);
    });
    return;
  }
#endif
  for_each_of(team, n, [&](std::uint32_t i) { words[i] = word; });
}

}  // namespace roost::detail
