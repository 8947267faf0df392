#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "roost/detail/place/config.hpp"

// Keys and values to test with. Nothing here uses roost's own hashes.

namespace test {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// The types that a suite runs with: all of them, or in builds that would take too long a third: type number
/// ROOST_TEST_TYPES (0, 1 or 2; the last one if there are fewer) and every third after it.
#if defined(ROOST_TEST_TYPES)
template <std::size_t Number, class First, class... Rest>
struct every_third : every_third<Number - 1, Rest...> {};
template <std::size_t Number, class First>
struct every_third<Number, First> {
  using type = testing::Types<First>;
};
template <class First, class... Rest>
  requires(sizeof...(Rest) != 0)
struct every_third<0, First, Rest...> {
  using type = testing::Types<First>;
};
template <class First, class Second, class Third, class... Rest>
  requires(sizeof...(Rest) != 0)
struct every_third<0, First, Second, Third, Rest...> {
  template <class... More>
  static testing::Types<First, More...> before(testing::Types<More...>);
  using type = decltype(before(typename every_third<0, Rest...>::type()));
};
template <class... T>
using axis = typename every_third<ROOST_TEST_TYPES, T...>::type;
#else
template <class... T>
using axis = testing::Types<T...>;
#endif

/// For suites that take minutes to compile: where ROOST_TEST_DAY is set, a third of an axis, or of all types.
#if defined(ROOST_TEST_DAY)
template <class Types>
struct third_of;
template <class... T>
struct third_of<testing::Types<T...>> : every_third<ROOST_TEST_DAY, T...> {};
template <class... T>
using day_axis = typename third_of<axis<T...>>::type;
template <class... T>
using day_types = typename every_third<ROOST_TEST_DAY, T...>::type;
#else
template <class... T>
using day_axis = axis<T...>;
template <class... T>
using day_types = testing::Types<T...>;
#endif

/// Sanitizers take ten times as long: there, tests that are long take less. (Those named ..._large may be
/// left out.) Under compute-sanitizer, which no program can see, ROOST_TEST_SANITIZED is set.
#if ROOST_ASAN || ROOST_TSAN
inline const bool sanitized = true;
#else
inline const bool sanitized = std::getenv("ROOST_TEST_SANITIZED") != nullptr;
#endif

/// Where a build runs the tests whose threads differ, and only those (tests/CMakeLists.txt).
#if defined(ROOST_TEST_ONLY_THREADS)
inline constexpr bool only_threads = true;
#else
inline constexpr bool only_threads = false;
#endif

/// Keys and values of 12, 16 and 24 bytes.
struct twelve {
  std::uint32_t x, y, z;
  friend bool operator==(const twelve&, const twelve&) = default;
};
struct sixteen {
  std::uint64_t a, b;
  friend bool operator==(const sixteen&, const sixteen&) = default;
};
struct twentyfour {
  std::uint64_t a, b, c;
  friend bool operator==(const twentyfour&, const twentyfour&) = default;
};

/// A T for a number: different ones for different numbers, as far as T can tell them apart. The number stands
/// in the last bytes of every second struct, so that no part of a key can be forgotten.
template <class T>
T from_number(std::uint64_t number) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(number);
  } else if constexpr (requires { typename T::word; }) {
    return T(number);  // linked
  } else if constexpr (std::is_empty_v<T>) {
    return {};
  } else if constexpr (std::is_same_v<T, twelve>) {
    return {static_cast<std::uint32_t>(number >> 32), 7, static_cast<std::uint32_t>(number)};
  } else if constexpr (std::is_same_v<T, sixteen>) {
    return number % 2 == 0 ? sixteen{number, 0} : sixteen{0, number};
  } else {
    return number % 2 == 0 ? T{number, 0, 0} : T{0, 0, number};
  }
}

template <class T>
T all_ones() {
  T result;
  std::memset(static_cast<void*>(&result), 0xff, sizeof(T));
  return result;
}

template <class T>
struct hash_bytes {
  std::size_t operator()(const T& t) const {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&t), sizeof(T)});
  }
};

/// The oracle. emplace keeps the first, as the tables must.
template <class Key, class Value>
using oracle_map = std::unordered_map<Key, Value, hash_bytes<Key>>;
template <class Key>
using oracle_set = std::unordered_set<Key, hash_bytes<Key>>;

template <class T>
std::vector<T> from_numbers(const std::vector<std::uint64_t>& numbers) {
  std::vector<T> result;
  result.reserve(numbers.size());
  for (const std::uint64_t number : numbers) result.push_back(from_number<T>(number));
  return result;
}

using numbers = std::vector<std::uint64_t>;

/// 0 + start, step + start, 2 step + start ...
inline numbers multiples(std::size_t n, std::uint64_t step, std::uint64_t start = 0) {
  numbers result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = start + i * step;
  return result;
}

inline numbers random_numbers(std::size_t n, std::uint64_t seed, std::uint64_t most = ~std::uint64_t{0}) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::uint64_t> draw(0, most);
  numbers result(n);
  for (auto& number : result) number = draw(random);
  return result;
}

/// Numbers below `end`, of which k comes in proportion to 1 / (k + 1).
inline numbers skewed_numbers(std::size_t n, std::uint64_t seed, std::uint64_t end) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(0, std::log(static_cast<double>(end)));
  numbers result(n);
  for (auto& number : result) number = static_cast<std::uint64_t>(std::exp(draw(random))) - 1;
  return result;
}

/// Different random numbers of 32 bits.
inline numbers different_numbers(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::unordered_set<std::uint64_t> seen;
  numbers result;
  while (result.size() < n) {
    const std::uint64_t number = random() >> 32;
    if (seen.insert(number).second) result.push_back(number);
  }
  return result;
}

/// The voxels that a sphere's surface touches in a grid of 1024^3: 30-bit keys, z lowest.
inline numbers voxels_of_sphere(std::uint64_t radius) {
  numbers result;
  const auto centre = static_cast<std::int64_t>(512), r = static_cast<std::int64_t>(radius);
  for (std::int64_t x = -r; x <= r; ++x) {
    for (std::int64_t y = -r; y <= r; ++y) {
      for (std::int64_t z = -r; z <= r; ++z) {
        const std::int64_t d = x * x + y * y + z * z;
        if (d > r * r || d <= (r - 1) * (r - 1)) continue;
        result.push_back(static_cast<std::uint64_t>((centre + x) << 20 | (centre + y) << 10 | (centre + z)));
      }
    }
  }
  return result;
}

/// Another value for each place of the input, so that it shows which copy of a key has won.
template <class Value>
std::vector<Value> numbered_values(std::size_t n) {
  return from_numbers<Value>(multiples(n, 0x9e3779b97f4a7c15ull, 1));
}

template <class T>
std::vector<T> shuffled(std::vector<T> items, std::uint64_t seed) {
  std::shuffle(items.begin(), items.end(), std::mt19937_64(seed));
  return items;
}

}  // namespace test
