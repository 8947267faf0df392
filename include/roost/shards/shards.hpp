#pragma once

#include <memory>
#include <vector>

#include "roost/place.hpp"
#include "roost/shards/detail/crew.hpp"

/// \file
/// Places of several shards: where a sharded table lives. A shard is a place with a part of the table: a GPU
/// (roost::gpus, roost::rank), or a part of this machine's memory (roost::host_shards).
///
/// A sharded table has the same calls as the table on one place. Where that takes one range, a sharded table
/// takes one range per shard, in memory of that shard: any range of ranges (vectors, spans, arrays) with one
/// element for each shard. Their lengths may differ, and some may be empty. Results that a call returns are a
/// std::vector with an element for each shard. (With roost::rank, where each process has one shard, they are
/// plain ranges and plain results.) Pairs have an order over all shards: first those of shard 0 in their
/// order, then those of shard 1, and so on. Answers are the same as those of one table on one place that was
/// built from all ranges in that order.
///
/// All calls synchronise. If one shard fails, the call throws that shard's exception, and tables are
/// unchanged. Const members may be called from several threads at once; the shards process the calls one at a
/// time.

namespace roost {

namespace detail {

/// A place that consists of shards.
template <class T>
concept shards_place = requires { typename T::shard_type; };

template <class Number>
std::size_t check_shards(Number shards, const char* where) {
  if (shards >= 1 && shards <= 64) return static_cast<std::size_t>(shards);
  raise<invalid_argument>({where, ": ", shards, " shards asked for; give 1 to 64"});
}

/// A shard whose memory is in this process, as is that of the others: an exchange is a copy.
class host_shard : public crew_shard {
 public:
  using place_type = host;

  host_shard(crew& all, std::uint32_t number, const host& place) : crew_shard(all, number), place_(&place) {}
  const host& place() const { return *place_; }

  /// Sends out[s] to shard s and receives in[s] from it.
  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in, int) {
    show(out);
    for (std::uint32_t s = 0; s < count(); ++s)
      place_->copy(const_cast<void*>(in[s].memory), shown_by(s).memory, in[s].bytes);
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

}  // namespace detail

/// Several shards in this machine's memory, with one thread for each. For programs and tests on machines
/// without GPUs: every step except the transport is the same as on several GPUs. One table on a roost::host
/// is faster.
///
///     roost::host_shards shards(3);
///     roost::sharded_map map(shards, keys, values);  // keys: std::vector<std::vector<int>> with 3 elements
///
/// Copies share the threads. Several threads may use it at once.
class host_shards {
 public:
  using place_type = host;
  using shard_type = detail::host_shard;

  /// Creates `shards` shards, 1 to 64, on one host. Throws invalid_argument.
  explicit host_shards(int shards, const host& place = host())
      : host_shards(std::vector<host>(detail::check_shards(shards, "roost::host_shards"), place)) {}
  /// A shard for each host, which may have threads and memory of its own.
  explicit host_shards(std::vector<host> places)
      : places_(std::move(places)),
        crew_(std::make_shared<detail::crew>(
            static_cast<std::uint32_t>(detail::check_shards(places_.size(), "roost::host_shards")))) {}

  /// How many shards there are.
  std::size_t size() const { return places_.size(); }
  /// The place of a shard.
  const host& operator[](std::size_t shard) const { return places_[shard]; }

  /// Whether each shard can read the memory of all.
  static constexpr bool all_readable() { return true; }

  /// Does nothing: all calls synchronise.
  void synchronize() const {}

  /// Runs f(shard) for all shards at once, each in its own thread: the basis of all sharded tables.
  template <class F>
  void run(const F& f) const {
    crew_->run([&](std::uint32_t number) {
      detail::host_shard me(*crew_, number, places_[number]);
      f(me);
    });
  }

 private:
  std::vector<host> places_;
  std::shared_ptr<detail::crew> crew_;
};

namespace detail {

/// Whether each process has one shard, so that ranges are plain ranges.
template <class Shards>
constexpr bool one_shard_a_process = requires { Shards::one_a_process; };

/// A T for each shard of this process.
template <class Shards, class T>
using each_shard = std::conditional_t<one_shard_a_process<Shards>, T, std::vector<T>>;

/// The part of one shard in a collection with one element for each shard of this process.
template <class Shards, class Parts>
decltype(auto) of_shard(Parts& parts, const typename Shards::shard_type& me) {
  if constexpr (one_shard_a_process<Shards>) {
    return (parts);
  } else {
    return (*(std::ranges::begin(parts) + me.local()));
  }
}

/// The type of a shard's part of a user's range.
template <class Shards, class Ranges>
using range_of_shard = std::remove_cvref_t<decltype(of_shard<Shards>(
    std::declval<Ranges&>(), std::declval<const typename Shards::shard_type&>()))>;

template <class Shards, class Ranges>
void check_part([[maybe_unused]] const Shards& shards, [[maybe_unused]] const Ranges& ranges,
                [[maybe_unused]] const char* where) {
  if constexpr (!one_shard_a_process<Shards>) {
    static_assert(
        std::ranges::random_access_range<const Ranges>,
        "a call for several shards takes a range for each: pass a vector of vectors, spans, arrays");
    if (std::ranges::size(ranges) == shards.size()) return;
    raise<invalid_argument>(
        {where, ": ", std::ranges::size(ranges), " ranges for ", shards.size(), " shards; give one a shard"});
  }
}

/// Throws invalid_argument unless there is a range for each shard.
template <class Shards, class... Ranges>
void check_parts(const Shards& shards, const char* where, const Ranges&... ranges) {
  (check_part(shards, ranges, where), ...);
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

}  // namespace detail
}  // namespace roost
