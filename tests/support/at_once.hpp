#pragma once

#include <atomic>
#include <thread>

#include "support/place.hpp"

namespace test {

/// Calls f(i) for i in [0, n) from many threads at once. (place.for_each gives a host thread thousands in a row.)
template <class F>
void at_once(std::size_t n, const F& f) {
  if constexpr (on_host) {
    constexpr std::size_t threads = 4;
    std::atomic<std::size_t> ready{0};
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        ++ready;
        while (ready < threads) {
        }
        for (std::size_t i = t; i < n; i += threads) f(i);
      });
    }
    for (auto& thread : all) thread.join();
  } else {
    test_place().for_each(n, f);
  }
}

/// Numbers without a pattern.
struct dice {
  std::uint64_t seed;
  ROOST_FN std::uint64_t operator()(std::uint64_t i, std::uint64_t sides) const { return roost::mix64(i, seed) % sides; }
};

}  // namespace test
