#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <roost/shards/rank.hpp>
#include <thread>

#include "support/keys.hpp"
#include "support/place.hpp"

// Ranks that are threads of this process: what processes do, but for the transport.

namespace test {

/// Exchanges bytes by copies. A rank that has ended makes the others throw.
class thread_group {
 public:
  explicit thread_group(std::uint32_t count) : shown_(count) {}

  class member final : public roost::communicator {
   public:
    member(thread_group& all, std::uint32_t number) : all_(all), number_(number) {}
    std::uint32_t rank() const override { return number_; }
    std::uint32_t size() const override { return all_.size(); }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
      all_.shown_[number_] = {&mine, 1};
      all_.meet(number_);
      for (std::size_t r = 0; r < size(); ++r)
        std::copy(all_.shown_[r][0].begin(), all_.shown_[r][0].end(), all.begin() + r * mine.size());
      all_.meet(number_);
    }
    void exchange(std::span<const std::span<const std::byte>> out,
                  std::span<const std::span<std::byte>> in) override {
      EXPECT_TRUE(out[number_].empty() && in[number_].empty());
      all_.shown_[number_] = out;
      all_.meet(number_);
      for (std::size_t r = 0; r < size(); ++r) {
        const auto& piece = all_.shown_[r][number_];
        EXPECT_EQ(piece.size(), in[r].size());
        all_.carried_ += piece.size();
        test_place().copy(in[r].data(), piece.data(), std::min(piece.size(), in[r].size()));
      }
      test_place().synchronize();
      all_.meet(number_);
    }
    void abort() noexcept override { all_.end(number_); }

   private:
    thread_group& all_;
    const std::uint32_t number_;
  };

  std::uint32_t size() const { return static_cast<std::uint32_t>(shown_.size()); }

  /// The bytes that have come to all ranks.
  std::size_t carried() const { return carried_; }

  /// A rank is gone.
  void end(std::uint32_t number) {
    const std::lock_guard hold(lock_);
    if (gone_ == none) gone_ = number;
    changed_.notify_all();
  }

 private:
  static constexpr std::uint32_t none = ~0u;

  void meet(std::uint32_t number) {
    std::unique_lock hold(lock_);
    const u64 meeting = meetings_;
    if (gone_ == none && ++met_ == shown_.size()) {
      met_ = 0;
      ++meetings_;
      changed_.notify_all();
      return;
    }
    changed_.wait(hold, [&] { return meetings_ != meeting || gone_ != none; });
    if (meetings_ == meeting && gone_ != number)
      throw roost::rank_error("rank " + std::to_string(gone_) + " is gone", gone_);
  }

  std::vector<std::span<const std::span<const std::byte>>> shown_;
  std::mutex lock_;
  std::condition_variable changed_;
  u64 meetings_ = 0;
  std::size_t met_ = 0;
  std::atomic<std::size_t> carried_{0};
  std::uint32_t gone_ = none;
};

using rank_type = roost::rank<place_type>;

/// f(rank) on all ranks of a group; returns what each has thrown. A rank that throws is gone, as a process
/// would be. `odd`: the place of rank 1.
template <class F>
std::vector<std::exception_ptr> thrown_by_ranks(thread_group& group, const F& f,
                                                const place_type& odd = test_place()) {
  std::vector<std::exception_ptr> thrown(group.size());
  std::vector<std::thread> threads;
  for (std::uint32_t number = 0; number < group.size(); ++number) {
    threads.emplace_back([&, number] {
      try {
        thread_group::member me(group, number);
        f(roost::rank(me, number == 1 ? odd : test_place()));
      } catch (...) {
        thrown[number] = std::current_exception();
        group.end(number);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return thrown;
}

template <class F>
void on_ranks(thread_group& group, const F& f, const place_type& odd = test_place()) {
  for (const auto& thrown : thrown_by_ranks(group, f, odd)) {
    if (thrown) std::rethrow_exception(thrown);
  }
}

/// The same with a group of so many ranks.
template <class F>
void on_ranks(std::uint32_t count, const F& f, const place_type& odd = test_place()) {
  thread_group group(count);
  on_ranks(group, f, odd);
}

}  // namespace test
