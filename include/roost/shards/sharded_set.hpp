#pragma once

#include "roost/frozen_set.hpp"
#include "roost/shards/sharded_map.hpp"

/// \file
/// sharded_set: a frozen_set over several shards.

namespace roost {

/// A sharded_map without values: for membership tests in sets that are larger than the memory of one GPU, or
/// that need more queries per second than one GPU answers.
///
///     roost::sharded_set set(all, keys);            // keys[s]: a range of shard s
///     set.contains(all, queries, answers);
///
/// See sharded_map and shards.hpp for what the calls have in common: costs, errors, thread safety.
template <class Key, class Shards = host_shards>
class sharded_set : sharded_map<Key, none, Shards> {
  using map = sharded_map<Key, none, Shards>;

 public:
  using typename map::key_type, typename map::place_type, typename map::table_type, typename map::options,
      typename map::ref_type;

  /// Builds a set of the keys of all ranges, one for each shard.
  template <class Keys>
    requires(!std::is_same_v<Keys, sharded_set>)
  sharded_set(const Shards& shards, const Keys& keys, options chosen = {}) : map(chosen) {
    rebuild(shards, keys);
  }

  /// An empty set without memory: see sharded_map.
  sharded_set() = default;
  explicit sharded_set(options chosen) : map(chosen) {}

  /// Builds the set again with the same options. If it throws, the set is unchanged.
  template <class Keys>
  void rebuild(const Shards& shards, const Keys& keys) {
    constexpr const char* where = "roost::sharded_set";
    detail::check_parts(shards, where, keys);
    this->build(shards, [&](auto& me) { return detail::alone_as<Key>(detail::of_shard<Shards>(keys, me)); });
  }

  /// Writes the keys that each shard owns, each once, in no defined order, to its memory, with room for
  /// shard(s).size(). Returns size().
  template <class Keys>
  std::size_t retrieve_all(const Shards& shards, Keys&& keys) const {
    this->tables_.check(shards, "retrieve_all", keys);
    this->tables_.each(shards, "retrieve_all", [&](auto& me, const table_type& mine) {
      Key* const target = detail::output<Key>(detail::of_shard<Shards>(keys, me), mine.size(),
                                              "roost::sharded_set::retrieve_all");
      detail::retrieve_pairs(me.place(), mine.ref(), target, nullptr, mine.size());
    });
    return size();
  }

  // As in sharded_map; for_each calls f(key).
  using map::contains, map::count_found, map::for_each, map::ref, map::shard, map::size, map::empty,
      map::capacity, map::bytes, map::load_factor, map::build_options, map::valid;
};

template <class Shards, class Keys>
sharded_set(const Shards&, const Keys&,
            typename default_layout<detail::element_of_shard<Shards, Keys>, none>::options = {})
    -> sharded_set<detail::element_of_shard<Shards, Keys>, Shards>;

}  // namespace roost
