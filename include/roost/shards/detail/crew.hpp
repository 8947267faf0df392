#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "roost/place.hpp"

// The shards of one process: one thread per shard runs the same function, and they meet in it at barriers.

namespace roost::detail {

/// A piece of memory that one shard sends and another one receives.
struct piece {
  const void* memory = nullptr;
  std::size_t bytes = 0;

  /// The memory of a piece that is received.
  void* target() const { return const_cast<void*>(memory); }
};

/// The numbers that the shards have shared with each other.
class gathered {
 public:
  gathered(std::uint32_t shards, std::size_t each) : each_(each), words_(shards * each) {}
  std::uint64_t* of(std::uint32_t shard) { return words_.data() + shard * each_; }
  const std::uint64_t* of(std::uint32_t shard) const { return words_.data() + shard * each_; }
  std::uint64_t operator()(std::uint32_t shard, std::size_t word = 0) const { return of(shard)[word]; }
  std::uint64_t sum(std::size_t word = 0) const {
    std::uint64_t result = 0;
    for (std::size_t i = word; i < words_.size(); i += each_) result += words_[i];
    return result;
  }
  std::uint64_t most(std::size_t word = 0) const {
    std::uint64_t result = 0;
    for (std::size_t i = word; i < words_.size(); i += each_) result = std::max(result, words_[i]);
    return result;
  }

 private:
  std::size_t each_;
  std::vector<std::uint64_t> words_;
};

/// Thrown in a shard because another one has failed; the exception of that one is reported.
struct stopped_by_another {};

/// Threads that run a function for several shards at once. The caller is the first shard's thread.
class crew {
 public:
  /// `patience`: how often a waiting thread polls before it sleeps. A sleeping thread wakes up some 10 us
  /// late.
  explicit crew(std::uint32_t count, int patience = 0)
      : count_(count), patience_(patience), scopes_left_(count), errors_(count), notes_(2 * count) {
    try {
      for (std::uint32_t number = 1; number < count; ++number)
        threads_.emplace_back([this, number] { serve(number); });
    } catch (...) {
      end();
      throw;
    }
  }
  ~crew() { end(); }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  std::uint32_t count() const { return count_; }

  /// f(number) for every shard. If some throw, the others end at their next meeting, and the exception of the
  /// first one that failed by itself is thrown. One call at a time: others wait.
  void run(const std::function<void(std::uint32_t)>& f) {
    const std::lock_guard one_at_a_time(running_);
    {
      const std::lock_guard hold(lock_);
      std::fill(errors_.begin(), errors_.end(), nullptr);
      std::fill(scopes_left_.begin(), scopes_left_.end(), 0);
      failed_ = false;
      met_ = ended_ = 0;
      job_ = &f;
      ++jobs_;
    }
    changed_.notify_all();
    work(0, f);
    std::unique_lock hold(lock_);
    wait_until(hold, [&] { return ended_ == count_; });
    rethrow();
  }

  // Called by the shards, while they run.

  /// A barrier: returns when all have arrived. Throws stopped_by_another if one will not arrive.
  void meet() {
    std::unique_lock hold(lock_);
    if (failed_) throw stopped_by_another();
    const std::uint64_t meeting = meetings_;
    if (++met_ == count_) {
      met_ = 0;
      ++meetings_;
      changed_.notify_all();
      return;
    }
    wait_until(hold, [&] { return meetings_ != meeting || failed_; });
    if (meetings_ == meeting) throw stopped_by_another();
  }

  void fail() {
    const std::lock_guard hold(lock_);
    failed_ = true;
    changed_.notify_all();
  }

  /// A shard leaves a scope: see in_use_by_others.
  void pass(std::uint32_t number) {
    const std::lock_guard hold(lock_);
    ++scopes_left_[number];
    changed_.notify_all();
  }
  /// The same, and returns when every other shard has left the same number of scopes, or has ended.
  void leave(std::uint32_t number) {
    pass(number);
    const std::uint64_t mine = scopes_left_[number];
    std::unique_lock hold(lock_);
    wait_until(hold, [&] {
      return std::all_of(scopes_left_.begin(), scopes_left_.end(),
                         [&](const auto& theirs) { return theirs >= mine; });
    });
  }

  /// The words that a shard shares in a turn.
  std::vector<std::uint64_t>& notes(std::uint32_t number, std::uint64_t turn) {
    return notes_[turn % 2 * count_ + number];
  }

 private:
  /// Polls a few times, without the lock, before it sleeps.
  template <class IsOver>
  void wait_until(std::unique_lock<std::mutex>& hold, const IsOver& is_over) {
    if (patience_ != 0) {
      hold.unlock();
      for (int i = 0; i < patience_ && !is_over(); ++i) std::this_thread::yield();
      hold.lock();
    }
    changed_.wait(hold, is_over);
  }

  void serve(std::uint32_t number) {
    using clock = std::chrono::steady_clock;
    clock::duration last{};  // of the last job: this thread polls for the next one for the same time
    for (std::uint64_t done = 0;;) {
      const std::function<void(std::uint32_t)>* job = nullptr;
      const auto comes = [&] { return jobs_ != done || ending_; };
      if (patience_ != 0) {
        const auto end = clock::now() + std::min<clock::duration>(last, std::chrono::milliseconds(10));
        while (!comes() && clock::now() < end) std::this_thread::yield();
      }
      {
        std::unique_lock hold(lock_);
        wait_until(hold, comes);
        if (jobs_ == done) return;
        done = jobs_;
        job = job_;
      }
      const auto begun = clock::now();
      work(number, *job);
      last = clock::now() - begun;
    }
  }

  void work(std::uint32_t number, const std::function<void(std::uint32_t)>& f) {
    try {
      f(number);
    } catch (...) {
      fail();
      errors_[number] = std::current_exception();
    }
    const std::lock_guard hold(lock_);
    scopes_left_[number] = ~std::uint64_t{0};
    ++ended_;
    changed_.notify_all();
  }

  void rethrow() const {
    for (const auto& error : errors_) {
      try {
        if (error) std::rethrow_exception(error);
      } catch (const stopped_by_another&) {
      }
    }
  }

  void end() {
    {
      const std::lock_guard hold(lock_);
      ending_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  const std::uint32_t count_;
  const int patience_;
  std::mutex running_, lock_;
  std::condition_variable changed_;
  const std::function<void(std::uint32_t)>* job_ = nullptr;
  // Polled by waiting threads.
  std::atomic<std::uint64_t> jobs_{0}, meetings_{0};
  std::atomic<std::uint32_t> ended_{0};
  std::atomic<bool> failed_{false}, ending_{false};
  std::vector<std::atomic<std::uint64_t>> scopes_left_;  // of each shard; the maximum once it has ended
  std::uint32_t met_ = 0;
  std::vector<std::exception_ptr> errors_;
  // The words that each shard shares, in two alternating turns: no shard is two turns ahead of another, since
  // they meet in each.
  std::vector<std::vector<std::uint64_t>> notes_;
  std::vector<std::thread> threads_;
};

/// A shard whose place has one stream, and whose steps are not recorded: see gpu_shard.
struct one_stream {
  void fork() {}
  void turn(std::uint32_t) {}
  void join() {}
  void mark(const char*, std::uint32_t = 0, int = -1) {}
};

/// A shard of a crew: what the transports of one process share.
class crew_shard : public one_stream {
 public:
  crew_shard(crew& all, std::uint32_t number) : all_(&all), number_(number) {}

  std::uint32_t number() const { return number_; }
  std::uint32_t count() const { return all_->count(); }
  std::uint32_t local() const { return number_; }

  /// As that of a rank.
  gathered gather(const std::vector<std::uint64_t>& words) {
    all_->notes(number_, notes_) = words;
    all_->meet();
    gathered result(count(), words.size());
    for (std::uint32_t s = 0; s < count(); ++s) std::ranges::copy(all_->notes(s, notes_), result.of(s));
    ++notes_;
    return result;
  }

  /// A shard that fails is noticed at the next meeting.
  void agree() {}

 protected:
  /// Shows each shard the address of its piece; returns those that all shards have shown this one.
  std::vector<void*> show(std::span<const piece> pieces) {
    std::vector<std::uint64_t> mine;
    for (const piece& each : pieces) mine.push_back(reinterpret_cast<std::uintptr_t>(each.memory));
    const gathered all = gather(mine);
    std::vector<void*> shown;
    for (std::uint32_t s = 0; s < count(); ++s)
      shown.push_back(reinterpret_cast<void*>(static_cast<std::uintptr_t>(all(s, number_))));
    ++exchanges_;
    return shown;
  }

  crew* all_;
  std::uint32_t number_;
  std::uint64_t notes_ = 0, exchanges_ = 0;
};

/// A scope in which other shards may use memory that this shard allocated before it. After the scope no shard
/// uses the memory, which may be freed in the order of the place's stream. This also holds if a shard fails.
/// If none fails, each has waited for all data that it receives.
template <class Shard>
class in_use_by_others {
 public:
  explicit in_use_by_others(Shard& me) : me_(me), exceptions_(std::uncaught_exceptions()) {}
  in_use_by_others(const in_use_by_others&) = delete;
  ~in_use_by_others() {
    if (std::uncaught_exceptions() > exceptions_) {
      me_.leave(!all_sent_);
    } else {
      me_.settle();
    }
  }

  /// No exchange follows: other shards receive all data that they wait for, even if this shard fails now.
  void all_sent() { all_sent_ = true; }

 private:
  Shard& me_;
  int exceptions_;
  bool all_sent_ = false;
};

template <class Number>
std::size_t check_shards(Number shards, const char* where) {
  if (shards >= 1 && shards <= 64) return static_cast<std::size_t>(shards);
  raise<invalid_argument>({where, ": ", shards, " shards; give 1 to 64"});
}

/// A shard whose memory is in this process, as is that of the others: an exchange is a copy.
class host_shard : public crew_shard {
 public:
  using place_type = host;

  host_shard(crew& all, std::uint32_t number, const host& place) : crew_shard(all, number), place_(&place) {}
  const host& place() const { return *place_; }

  /// Sends out[s] to shard s and receives in[s] from it.
  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in, int) {
    const std::vector<void*> sources = show(out);
    for (std::uint32_t s = 0; s < count(); ++s) place_->copy(in[s].target(), sources[s], in[s].bytes);
    return exchanges_;
  }
  void wait(std::uint64_t) const {}

  void settle() { all_->leave(number_); }
  void leave(bool failed) {
    if (failed) all_->fail();
    settle();
  }

 private:
  const host* place_;
};

// The parts of each shard in the collections of a call.

/// A place that consists of shards.
template <class T>
concept shards_place = requires { typename T::shard_type; };

/// Whether each process has one shard, so that ranges are plain ranges.
template <class Shards>
constexpr bool one_shard_a_process = requires { Shards::one_a_process; };

/// A T for each shard of this process.
template <class Shards, class T>
using each_shard = std::conditional_t<one_shard_a_process<Shards>, T, std::vector<T>>;

/// The part of one shard in a collection with one element for each shard of this process. `which`: the shard,
/// or its number in this process.
template <class Shards, class Parts, class Which>
decltype(auto) of_shard(Parts& parts, [[maybe_unused]] const Which& which) {
  if constexpr (one_shard_a_process<Shards>) {
    return (parts);
  } else if constexpr (std::is_integral_v<Which>) {
    return (*(std::ranges::begin(parts) + static_cast<std::ptrdiff_t>(which)));
  } else {
    return (*(std::ranges::begin(parts) + which.local()));
  }
}

/// The type of a shard's part of a user's range.
template <class Shards, class Ranges>
using range_of_shard = std::remove_cvref_t<decltype(of_shard<Shards>(
    std::declval<Ranges&>(), std::declval<const typename Shards::shard_type&>()))>;

/// The type of its elements.
template <class Shards, class Ranges>
using element_of_shard = element_of<range_of_shard<Shards, const Ranges>>;

/// Throws invalid_argument unless there is a range for each shard.
template <class Shards, class... Ranges>
void check_parts([[maybe_unused]] const Shards& shards, [[maybe_unused]] const char* where,
                 [[maybe_unused]] const Ranges&... ranges) {
  if constexpr (!one_shard_a_process<Shards>) {
    static_assert(
        (std::ranges::random_access_range<const Ranges> && ...),
        "a call for several shards takes a range for each: pass a vector of vectors, spans, arrays");
    for (const std::size_t count : {shards.size(), static_cast<std::size_t>(std::ranges::size(ranges))...}) {
      if (count == shards.size()) continue;
      raise<invalid_argument>(
          {where, ": ", count, " ranges for ", shards.size(), " shards; give one a shard"});
    }
  }
}

/// A default-constructed T for each shard of this process.
template <class Shards, class T>
each_shard<Shards, T> make_each(const Shards& shards) {
  if constexpr (one_shard_a_process<Shards>) {
    return T();
  } else {
    return std::vector<T>(shards.size());
  }
}

/// f(shard) of each shard of this process.
template <class Shards, class F>
auto collect(const Shards& shards, const F& f) {
  auto all = make_each<Shards, std::invoke_result_t<const F&, typename Shards::shard_type&>>(shards);
  shards.run([&](typename Shards::shard_type& me) { of_shard<Shards>(all, me) = f(me); });
  return all;
}

}  // namespace roost::detail
