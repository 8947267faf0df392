#pragma once

#include <atomic>
#include <thread>

#include "support/place.hpp"

namespace test {

/// Calls f(i) for i in [0, n) from many threads at once. (place.for_each gives a host thread thousands in a
/// row.)
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

/// A thread of the host that calls change(i) for i = 0, 1, ... until it goes out of scope.
class changes_meanwhile {
 public:
  template <class Change>
  explicit changes_meanwhile(const Change& change)
      : thread_([this, change] {
          for (std::uint64_t i = 0; !stop_; count_ = ++i) change(i);
        }) {}
  ~changes_meanwhile() {
    stop_ = true;
    thread_.join();
  }
  /// Waits for a change that begins after this call: without it a test may be over before the first one.
  void wait_for_one() const {
    for (const std::uint64_t before = count_; count_ < before + 2;) std::this_thread::yield();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> count_{0};
  std::thread thread_;
};

/// Numbers without a pattern.
struct dice {
  std::uint64_t seed;
  ROOST_FN std::uint64_t operator()(std::uint64_t i, std::uint64_t sides) const {
    return roost::mix64(i, seed) % sides;
  }
};

}  // namespace test
