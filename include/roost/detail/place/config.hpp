#pragma once

#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1204
#error "roost needs CUDA 12.4 or newer: take its nvcc"
#endif
// nvcc 12 does not know the builtins of these headers, which <immintrin.h> of g++ 12.4 and 13.3 includes.
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ < 13
#define _AMXTILEINTRIN_H_INCLUDED
#if __GNUC__ == 12
#define _AVX512BF16INTRIN_H_INCLUDED
#define _AVX512BF16VLINTRIN_H_INCLUDED
#endif
#endif
// Apple numbers its versions differently, and clang-tidy may be older.
#if defined(__clang__)                                                                          \
    ? __clang_major__ < 16 && !defined(__apple_build_version__) && !defined(__clang_analyzer__) \
    : defined(__GNUC__) && __GNUC__ < 12
#error "roost needs g++ 12 or newer, or clang 16 or newer: take one of these"
#endif

#if __cplusplus < 202002L
#error "roost needs C++20: compile with -std=c++20"
#include "-std=c++20"  // which is not there: the compiler stops here, and not after thousands of lines
#endif
#if defined(__has_include)
#if !__has_include(<oneapi/tbb/task_arena.h>)
#error "roost needs oneTBB: install it (Debian: apt-get install libtbb-dev)"
#endif
#endif

// How one source is compiled for two places. ROOST_FN marks what runs on both; ROOST_ON_DEVICE is 1 while the
// compiler makes GPU code, so that the few steps with a version of their own can choose.

#if defined(__CUDACC__)
#define ROOST_FN __host__ __device__ inline
#else
#define ROOST_FN inline
#endif

#if defined(__CUDA_ARCH__)
#define ROOST_ON_DEVICE 1
#define ROOST_UNROLL _Pragma("unroll")
#define ROOST_ROLLED _Pragma("unroll 1")
#else
#define ROOST_ON_DEVICE 0
#define ROOST_UNROLL
#define ROOST_ROLLED
#endif

// g++ takes a function that only prefetches for one that does nothing, and drops the call, unless it is
// inlined first.
#define ROOST_PREFETCH_FN [[gnu::always_inline]] ROOST_FN

// Long code that is rarely run: compiled once, not at every call.
#if defined(__CUDACC__)
#define ROOST_RARE_FN __host__ __device__ __noinline__
#else
#define ROOST_RARE_FN [[gnu::noinline]]
#endif

// g++ vectorises short loops only in a function of their own.
#if ROOST_ON_DEVICE
#define ROOST_VECTOR_FN ROOST_FN
#else
#define ROOST_VECTOR_FN [[gnu::noinline]] ROOST_FN
#endif

// Which sanitizer a host compiler builds with: g++ and new clang define macros, older clang knows features.
#if defined(__has_feature)
#define ROOST_HAS_FEATURE(name) __has_feature(name)
#else
#define ROOST_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || ROOST_HAS_FEATURE(address_sanitizer)
#define ROOST_ASAN 1
#else
#define ROOST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || ROOST_HAS_FEATURE(thread_sanitizer)
#define ROOST_TSAN 1
#else
#define ROOST_TSAN 0
#endif

// Whether refs notice that they have outlived their table: detail/table/ref_life.hpp. The same in all files
// of a program; CMake defines it for Debug.
#if !defined(ROOST_CHECK_REFS)
#define ROOST_CHECK_REFS 0
#endif

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "roost/fwd.hpp"

namespace roost::detail {

/// Whether the first of some types is one of two places.
template <class Place, class Other, class First = void, class...>
constexpr bool begins_with =
    std::is_convertible_v<First*, const Place*> || std::is_convertible_v<First*, const Other*>;

template <class T>
concept place_comes_first = begins_with<host, cuda, T>;

// ISO C++ has neither, and takes them for no numbers; GNU's dialect does.
__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

template <class T>
constexpr bool is_number = std::is_arithmetic_v<T> || std::is_same_v<T, int128> || std::is_same_v<T, uint128>;
template <class T>
constexpr bool is_integer = std::is_integral_v<T> && sizeof(T) <= 8;  // the same in both

/// The unsigned integer of the size of an integer, bool and characters included.
template <class T>
using unsigned_of = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;

/// Every array of a place and all scratch memory is aligned so: no key and no value may need more.
inline constexpr std::size_t alignment_most = 64;

template <class T>
ROOST_FN constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}

template <class T>
ROOST_FN constexpr T larger(T a, T b) {
  return a < b ? b : a;
}

template <class T>
ROOST_FN constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

/// a * b as it is rounded: compilers do not make a fused multiply-add of it, which would give other bits on
/// one place than on another.
ROOST_FN double rounded_product(double a, double b) {
#if ROOST_ON_DEVICE
  return __dmul_rn(a, b);
#else
  double result = a * b;
#if defined(__x86_64__) && defined(__GNUC__)
  asm("" : "+x"(result));
#elif defined(__aarch64__) && defined(__GNUC__)
  asm("" : "+w"(result));
#endif
  return result;
#endif
}

/// How many bits of a word are set.
template <std::unsigned_integral Word>
ROOST_FN std::uint32_t count_bits(Word word) {
#if ROOST_ON_DEVICE
  return static_cast<std::uint32_t>(sizeof(Word) <= 4 ? __popc(static_cast<unsigned>(word)) : __popcll(word));
#else
  return static_cast<std::uint32_t>(sizeof(Word) <= 4 ? __builtin_popcount(static_cast<unsigned>(word))
                                                      : __builtin_popcountll(word));
#endif
}

}  // namespace roost::detail
