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
class sharded_set {
  using map = sharded_map<Key, none, Shards>;

 public:
  using key_type = Key;
  using place_type = typename Shards::place_type;
  using table_type = frozen_map<Key, none, place_type>;  ///< of a shard: a map to nothing
  using options = typename map::options;
  using ref_type = typename map::ref_type;

  /// Builds a set of the keys of all ranges, one for each shard.
  template <class Keys>
    requires(!std::is_same_v<Keys, sharded_set>)
  sharded_set(const Shards& shards, const Keys& keys, options chosen = {}) : map_(chosen) {
    rebuild(shards, keys);
  }

  /// An empty set without memory: see sharded_map.
  sharded_set() = default;
  explicit sharded_set(options chosen) : map_(chosen) {}

  /// Builds the set again with the same options. If it throws, the set is unchanged.
  template <class Keys>
  void rebuild(const Shards& shards, const Keys& keys) {
    constexpr const char* where = "roost::sharded_set";
    detail::check_parts(shards, where, keys);
    map_.build(shards, [&](auto& me) { return detail::alone_as<Key>(detail::of_shard<Shards>(keys, me)); });
  }

  /// results[s][i] = whether queries[s][i] is present, as bool. See sharded_map::find.
  template <class Queries, class Results>
  bulk_report contains(const Shards& shards, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return map_.contains(shards, queries, results, how);
  }

  /// Returns how many of the queries of all shards are present.
  template <class Queries>
  std::size_t count_found(const Shards& shards, const Queries& queries, bulk_options how = {}) const {
    return map_.count_found(shards, queries, how);
  }

  /// Writes the keys that each shard owns, each once, in no defined order, to its memory, with room for
  /// shard(s).size(). Returns size().
  template <class Keys>
  std::size_t retrieve_all(const Shards& shards, Keys&& keys) const {
    constexpr const char* where = "roost::sharded_set::retrieve_all";
    detail::check_parts(shards, where, keys);
    map_.tables_.each(shards, where, [&](auto& me, const table_type& mine) {
      Key* const target = detail::output<Key>(detail::of_shard<Shards>(keys, me), mine.size(), where);
      detail::retrieve_pairs(me.place(), mine.ref(), target, nullptr, mine.size());
    });
    return size();
  }

  /// Calls f(key) for every key, in parallel, on the shard that owns it.
  template <class F>
  void for_each(const Shards& shards, const F& f) const {
    map_.for_each(shards, f);
  }

  /// See sharded_map.
  ref_type ref() const
    requires(!detail::one_shard_a_process<Shards>)
  {
    return map_.ref();
  }
  const table_type& shard(std::size_t number) const { return map_.shard(number); }
  std::size_t size() const { return map_.size(); }
  bool empty() const { return map_.empty(); }
  std::size_t capacity() const { return map_.capacity(); }
  std::size_t bytes() const { return map_.bytes(); }
  double load_factor() const { return map_.load_factor(); }
  const options& build_options() const { return map_.build_options(); }
  bool valid(const Shards& shards) const { return map_.valid(shards); }

 private:
  map map_;
};

template <class Shards, class Keys>
sharded_set(const Shards&, const Keys&)
    -> sharded_set<detail::element_of<detail::range_of_shard<Shards, const Keys>>, Shards>;
template <class Shards, class Keys>
sharded_set(
    const Shards&, const Keys&,
    typename default_layout<detail::element_of<detail::range_of_shard<Shards, const Keys>>, none>::options)
    -> sharded_set<detail::element_of<detail::range_of_shard<Shards, const Keys>>, Shards>;

}  // namespace roost
