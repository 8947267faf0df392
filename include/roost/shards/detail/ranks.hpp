#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "roost/shards/detail/crew.hpp"

#if defined(__CUDACC__)
struct ncclComm;  // of nccl.h, which may be missing
#endif

// The shard of a process that is one of several. What happens when another one dies: nccl.hpp notices it by
// its deadline, abort() wakes everybody, and rank.hpp says what callers see.

namespace roost::detail {

/// The most words that ranks share at once: an error message, or some numbers each.
inline constexpr std::size_t rank_text_words = 64, rank_head_words = 2;
constexpr std::size_t rank_words(std::size_t ranks) {
  return std::max(rank_text_words, rank_head_words + ranks + 8);
}

/// The transport between ranks: all ranks call its members in the same order.
class rank_transport {
 public:
  virtual ~rank_transport() = default;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  /// Gathers words, in host memory. Returns when all have arrived.
  virtual void all_gather(std::span<const std::uint64_t> mine, std::span<std::uint64_t> all) = 0;
  /// Sends out[r] to rank r and receives in[r] from it, after the work queued on the place's stream so far.
  virtual std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in) = 0;
  /// Lets the place's stream wait for the data of an exchange.
  virtual void wait(std::uint64_t ticket) = 0;
  /// Returns when all exchanges are complete and sent memory may be freed.
  virtual void finish() = 0;
  virtual void abort() noexcept = 0;
};

/// A user's roost::communicator.
template <class Communicator, class Place>
class communicator_transport final : public rank_transport {
 public:
  communicator_transport(Communicator& all, const Place& place)
      : all_(all), place_(place), out_(all.size()), in_(all.size()) {}

  std::uint32_t rank() const override { return all_.rank(); }
  std::uint32_t size() const override { return all_.size(); }
  void all_gather(std::span<const std::uint64_t> mine, std::span<std::uint64_t> all) override {
    all_.all_gather(std::as_bytes(mine), std::as_writable_bytes(all));
  }
  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in) override {
    const std::uint32_t my = rank();
    for (std::uint32_t r = 0; r < size(); ++r) {
      if (r == my) continue;
      out_[r] = {static_cast<const std::byte*>(out[r].memory), out[r].bytes};
      in_[r] = {static_cast<std::byte*>(in[r].target()), in[r].bytes};
    }
    if (in[my].bytes != 0) place_.copy(in[my].target(), out[my].memory, in[my].bytes);
    place_.synchronize();
    all_.exchange(out_, in_);
    return 0;
  }
  void wait(std::uint64_t) override {}
  void finish() override {}
  void abort() noexcept override { all_.abort(); }

 private:
  Communicator& all_;
  const Place place_;
  std::vector<std::span<const std::byte>> out_;
  std::vector<std::span<std::byte>> in_;
};

inline void check_rank(std::uint32_t rank, std::uint32_t size) {
  check_shards(size, "roost::rank");
  if (rank < size) return;
  raise<invalid_argument>({"roost::rank: rank ", rank, " of ", size, "; ranks count from 0"});
}

/// The permanent state of a process in a group.
template <class Place>
struct rank_state {
  rank_state(const Place& where, std::unique_ptr<rank_transport> carrier)
      : place(where), transport(std::move(carrier)) {}
  const Place place;
  std::unique_ptr<rank_transport> transport;
  std::mutex running;
  bool broken = false;  // ranks no longer agree on the next call
};

template <class Place>
struct current_device {
  explicit current_device(const Place&) {}
};
#if defined(__CUDACC__)
template <>
struct current_device<cuda> : device_guard {
  explicit current_device(const cuda& place) : device_guard(place.device()) {}
};
#endif

/// A rank during one call. Each gather begins with whether the rank has failed; so a failing rank sends that
/// where the others send data, and all end together. Everything that may fail must do so before agree(); a
/// later failure leaves others waiting for data: then the group is broken for good.
template <class Place>
class rank_shard : public one_stream {
 public:
  using place_type = Place;

  explicit rank_shard(rank_state<Place>& state) : state_(state) {}

  std::uint32_t number() const { return transport().rank(); }
  std::uint32_t count() const { return transport().size(); }
  static constexpr std::uint32_t local() { return 0; }
  const Place& place() const { return state_.place; }

  /// Shares at most count() + 8 words with all ranks; all of them call it, with the same number of words.
  gathered gather(const std::vector<std::uint64_t>& words) { return tell(words, nullptr); }
  /// Returns when no rank can fail any more before the next gather().
  void agree() { tell({}, nullptr); }

  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in, int) {
    return carry([&] { return transport().exchange(out, in); });
  }
  void wait(std::uint64_t ticket) {
    carry([&] { transport().wait(ticket); });
  }
  void settle() noexcept { leave(false); }
  void leave(bool failed) noexcept {
    if (failed && !all_know_) give_up();
    try {
      transport().finish();
    } catch (...) {
      give_up();
    }
  }

  template <class F>
  void run(const F& f) {
    check();
    try {
      f(*this);
      agree();
    } catch (const std::exception& why) {
      tell_failure(why.what());
      throw;
    } catch (...) {
      tell_failure("an exception that is no std::exception");
      throw;
    }
  }

 private:
  rank_transport& transport() const { return *state_.transport; }

  void check() const {
    if (!state_.broken) return;
    raise<error>(
        {"roost::rank: rank ", number(),
         " cannot go on: a call has failed while data were on their way; end all ranks, or make new ones"});
  }
  void give_up() noexcept {
    if (!state_.broken) transport().abort();
    state_.broken = true;
  }
  template <class F>
  auto carry(const F& f) {
    check();  // leave() does not throw
    try {
      return f();
    } catch (...) {
      state_.broken = true;
      throw;
    }
  }

  /// Shares words of this rank with all others, or why it has failed. Throws rank_error on all ranks if any
  /// has failed or shares a different number of words.
  gathered tell(std::span<const std::uint64_t> words, const char* failure) {
    constexpr std::size_t head = rank_head_words;
    const std::size_t each = head + count() + 8;
    std::vector<std::uint64_t> mine(each, 0);
    gathered all(count(), each), result(count(), words.size());
    mine[0] = failure != nullptr;
    mine[1] = words.size();
    std::copy(words.begin(), words.end(), mine.begin() + head);
    carry([&] { transport().all_gather(mine, {all.of(0), each * count()}); });
    const auto first_with = [&](const auto& holds) {
      std::uint32_t r = 0;
      while (r < count() && !holds(r)) ++r;
      return r;
    };
    const std::uint32_t failed = first_with([&](std::uint32_t r) { return all(r, 0) != 0; });
    if (failed != count()) throw_failure(failed, failure);
    const std::uint32_t other = first_with([&](std::uint32_t r) { return all(r, 1) != all(0, 1); });
    if (other != count()) {
      all_know_ = true;
      throw rank_error("roost::rank: rank " + std::to_string(other) +
                           " makes another call than rank 0; all ranks must make the same calls in the same "
                           "order",
                       other);
    }
    for (std::uint32_t r = 0; r < count(); ++r) std::copy_n(all.of(r) + head, words.size(), result.of(r));
    return result;
  }

  /// Each rank that has failed shares the reason.
  [[noreturn]] void throw_failure(std::uint32_t failed, const char* why) {
    std::vector<std::uint64_t> mine(rank_text_words, 0), all(rank_text_words * count());
    if (why != nullptr) std::strncpy(reinterpret_cast<char*>(mine.data()), why, rank_text_words * 8 - 1);
    carry([&] { transport().all_gather(mine, all); });
    all_know_ = true;
    const std::string text = reinterpret_cast<const char*>(all.data() + failed * rank_text_words);
    throw rank_error("roost::rank: rank " + std::to_string(failed) + " has failed: " + text, failed);
  }

  void tell_failure(const char* why) noexcept {
    if (state_.broken || all_know_) return;
    try {
      tell({}, why);
    } catch (const rank_error&) {  // which all throw
    } catch (...) {
      give_up();
    }
  }

  rank_state<Place>& state_;
  bool all_know_ = false;  // all ranks know that the call fails
};

}  // namespace roost::detail
