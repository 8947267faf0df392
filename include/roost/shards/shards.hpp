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

/// Several shards in this machine's memory, with one thread for each. For programs and tests on machines
/// without GPUs: every step except the transport is the same as on several GPUs. One table on a roost::host
/// is faster.
///
///     roost::host_shards shards(3);
///     roost::sharded_map map(shards, keys, values);  // keys: a vector of 3 vectors
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

}  // namespace roost
