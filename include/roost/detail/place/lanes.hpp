#pragma once

#include <cstring>

#include "roost/detail/place/config.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__SSE2__) && defined(__x86_64__) && !ROOST_ON_DEVICE
#define ROOST_LANES 1
#define ROOST_WIDE_FN [[gnu::target("avx2,bmi")]]
#else
#define ROOST_LANES 0
#define ROOST_WIDE_FN
#endif

// With sanitizers, a function into which everything is inlined takes half as long again to compile.
#if ROOST_ASAN || ROOST_TSAN
#define ROOST_FLAT_FN [[gnu::noinline]]
#else
#define ROOST_FLAT_FN [[gnu::noinline, gnu::flatten]]
#endif

// Comparisons of several numbers at once on a host's processor. Not for device code.

namespace roost::detail {

/// A bit for each of the first `Count` numbers of `Bits` bits that is equal to `wanted`; numbers of 32 bits
/// are first masked with `care`. Apart = 2: only every second number is compared. Reads whole pieces of 16
/// bytes; the address must be a multiple of 16.
template <int Bits, int Count, int Apart = 1>
ROOST_FN std::uint32_t equal_lanes(const void* numbers, std::uint32_t wanted, std::uint32_t care) {
  static_assert((Bits == 32 || (Bits == 16 && Apart == 1)) && Count <= 16);
#if ROOST_LANES
  constexpr int pieces = (Count * Bits + 127) / 128;
  const auto all = [](std::uint32_t number) {
    return Bits == 16 ? _mm_set1_epi16(static_cast<short>(number)) : _mm_set1_epi32(static_cast<int>(number));
  };
  const auto load = [&](int i) { return _mm_load_si128(static_cast<const __m128i*>(numbers) + i); };
  const auto piece = [&](int i) {
    if (i >= pieces) return _mm_setzero_si128();
    __m128i here = Apart == 1 ? load(i)
                              : _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(load(2 * i)),
                                                                _mm_castsi128_ps(load(2 * i + 1)), 0x88));
    if (Bits == 32) here = _mm_and_si128(here, all(care));
    return Bits == 16 ? _mm_cmpeq_epi16(here, all(wanted)) : _mm_cmpeq_epi32(here, all(wanted));
  };
  const __m128i bytes =
      Bits == 16 ? _mm_packs_epi16(piece(0), piece(1))
                 : _mm_packs_epi16(_mm_packs_epi32(piece(0), piece(1)), _mm_packs_epi32(piece(2), piece(3)));
  const auto bits = static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
  return Count * Bits % 128 == 0 ? bits : bits & ((1u << Count) - 1);
#else
  using number_type = std::conditional_t<Bits == 16, std::uint16_t, std::uint32_t>;
  std::uint32_t mask = 0;
  for (int i = 0; i < Count; ++i) {
    number_type number;
    std::memcpy(&number, static_cast<const number_type*>(numbers) + i * Apart, sizeof(number));
    mask |= std::uint32_t{(Bits == 16 ? number : number & care) == wanted} << i;
  }
  return mask;
#endif
}

#if ROOST_LANES
/// The same for 32 bits and processors with AVX2. Reads pieces of 32 bytes.
template <int Count, int Apart = 1>
ROOST_WIDE_FN inline std::uint32_t equal_wide_lanes(const void* numbers, std::uint32_t wanted,
                                                    std::uint32_t care) {
  static_assert(Count <= 8);
  const auto* const pieces = static_cast<const __m256i*>(numbers);
  __m256i here = _mm256_loadu_si256(pieces);
  if constexpr (Apart == 2) {
    here = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(here),
                                                 _mm256_castsi256_ps(_mm256_loadu_si256(pieces + 1)), 0x88));
    here = _mm256_permute4x64_epi64(here, 0xd8);
  }
  here = _mm256_and_si256(here, _mm256_set1_epi32(static_cast<int>(care)));
  const __m256i equal = _mm256_cmpeq_epi32(here, _mm256_set1_epi32(static_cast<int>(wanted)));
  const auto bits = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
  return Count == 8 ? bits : bits & ((1u << Count) - 1);
}

/// The same for 64 bits, without AVX2: both halves of a number must be equal.
template <int Count>
inline std::uint32_t equal_halves(const void* numbers, std::uint64_t wanted, std::uint64_t care) {
  const __m128i all = _mm_set1_epi64x(static_cast<long long>(wanted)),
                bits = _mm_set1_epi64x(static_cast<long long>(care));
  const auto equal = [&](int i) {
    const __m128i here = _mm_load_si128(static_cast<const __m128i*>(numbers) + i);
    return _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_and_si128(here, bits), all));
  };
  std::uint32_t mask = 0;
  ROOST_UNROLL
  for (int i = 0; i < (Count + 3) / 4; ++i) {
    const __m128 first = equal(2 * i), second = equal(2 * i + 1);
    const __m128 both = _mm_and_ps(_mm_shuffle_ps(first, second, 0x88), _mm_shuffle_ps(first, second, 0xdd));
    mask |= static_cast<std::uint32_t>(_mm_movemask_ps(both)) << 4 * i;
  }
  return Count % 4 == 0 ? mask : mask & ((1u << Count) - 1);
}

/// A bit for each of `Count` keys of 16 bytes that is equal to one.
template <int Count>
inline std::uint32_t equal_quads(const void* keys, const void* wanted) {
  const __m128i one = _mm_loadu_si128(static_cast<const __m128i*>(wanted));
  std::uint32_t mask = 0;
  ROOST_UNROLL
  for (int i = 0; i < Count; ++i) {
    const __m128i here = _mm_loadu_si128(static_cast<const __m128i*>(keys) + i);
    mask |= std::uint32_t{_mm_movemask_epi8(_mm_cmpeq_epi8(here, one)) == 0xffff} << i;
  }
  return mask;
}

/// The same as equal_halves with AVX2.
template <int Count>
ROOST_WIDE_FN inline std::uint32_t equal_long_lanes(const void* numbers, std::uint64_t wanted,
                                                    std::uint64_t care) {
  std::uint32_t mask = 0;
  ROOST_UNROLL
  for (int i = 0; i < (Count + 3) / 4; ++i) {
    const __m256i here = _mm256_and_si256(_mm256_loadu_si256(static_cast<const __m256i*>(numbers) + i),
                                          _mm256_set1_epi64x(static_cast<long long>(care)));
    const __m256i equal = _mm256_cmpeq_epi64(here, _mm256_set1_epi64x(static_cast<long long>(wanted)));
    mask |= static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal))) << 4 * i;
  }
  return Count % 4 == 0 ? mask : mask & ((1u << Count) - 1);
}
#endif

/// The number of the lowest bit, or -1.
ROOST_FN int first_of(std::uint32_t bits) {
#if ROOST_ON_DEVICE
  return __ffs(static_cast<int>(bits)) - 1;
#else
  return bits == 0 ? -1 : __builtin_ctz(bits);
#endif
}

/// A format of a table, for code that only processors with AVX2 run.
template <class Format>
struct wide : Format {};
template <class Format>
inline constexpr bool is_wide = false;
template <class Format>
inline constexpr bool is_wide<wide<Format>> = true;

/// Whether a format is worth separate code for AVX2: not if its tags are not whole bytes.
template <class Format>
inline constexpr bool gains_by_width = [] {
  if constexpr (requires { Format()().by_numbers(); }) {
    return ROOST_LANES && Format()().by_numbers();
  } else {
    return ROOST_LANES == 1;
  }
}();

/// The fastest of these for code that is compiled for a format.
template <class Format, int Bits, int Count, int Apart = 1>
ROOST_FN std::uint32_t equal_lanes_for(const void* numbers, std::uint32_t wanted, std::uint32_t care) {
#if ROOST_LANES
  if constexpr (is_wide<Format> && Bits == 32 && Count <= 8)
    return equal_wide_lanes<Count, Apart>(numbers, wanted, care);
#endif
  return equal_lanes<Bits, Count, Apart>(numbers, wanted, care);
}

/// f(format), in a function of its own into which everything is inlined, so that loops keep what they need in
/// registers.
template <class Format, class F>
ROOST_FLAT_FN ROOST_FN void run_flat(Format format, const F f) {
  f(format);
}

#if ROOST_LANES
template <class Format, class F>
ROOST_WIDE_FN ROOST_FLAT_FN inline void run_flat(wide<Format> format, const F f) {
  f(format);
}

inline bool has_wide_lanes() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
  return has;
}
#endif

/// f(format), in code for the processor that runs it: in one kind of code if a compiler is told, as by
/// -march=native, that all of them have AVX2.
template <class Format, class F>
ROOST_FN void run_for_this_processor(Format format, const F& f) {
  if constexpr (!gains_by_width<Format>) {
    run_flat(format, f);
  } else {
#if defined(__AVX2__) && defined(__BMI__)
    run_flat(wide<Format>(), f);
#elif ROOST_LANES
    if (has_wide_lanes()) return run_flat(wide<Format>(), f);
    run_flat(format, f);
#endif
  }
}

/// Calls f with a table's format, in code for the processor that runs it. `f` captures by value.
template <class Table, class F>
ROOST_FN void run_on_host(const Table& table, const F& f) {
  table.with_format([&](auto format) { run_for_this_processor(format, f); });
}

/// A kernel that a host runs in code for its processor, inlined into one function.
template <class Kernel>
struct for_this_processor : Kernel {
  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* scratch) const {
    struct plain {};
    run_for_this_processor(
        plain(), [=, kernel = static_cast<const Kernel&>(*this)](auto) { kernel(team, index, scratch); });
  }
};

}  // namespace roost::detail
