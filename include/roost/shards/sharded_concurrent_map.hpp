#pragma once

#include "roost/concurrent_map.hpp"
#include "roost/group_by.hpp"
#include "roost/shards/detail/tables.hpp"

/// \file
/// sharded_concurrent_map: a concurrent_map over several shards, changed in bulk.

namespace roost {

/// A concurrent_map that is spread over several shards: for tables that change and are larger than the memory
/// of one GPU. Each key is owned by one shard, which its hash determines; a shard has an ordinary
/// concurrent_map of the keys that it owns.
///
///     roost::gpus all;                                                  // or roost::host_shards
///     roost::sharded_concurrent_map<int, int, roost::gpus> map(all, 1000000);
///     map.insert_or_apply(all, words, counts, roost::plus());           // words[s]: a range of GPU s
///     map.find(all, queries, results, missing_value);
///
/// Calls, types, options and answers are those of concurrent_map; shards.hpp says what several ranges mean.
/// There is no run(), no insert_if(), and no change through ref(), since a ref's atomic operations work
/// within one GPU only. If a key appears several times in a batch, the order in which its pairs take effect
/// is not defined.
///
/// Cost: a change sends each pair once to its owner, which then changes its map; lookups work as in
/// sharded_map. If few keys have many pairs, which would overload one shard, each shard first combines its
/// own pairs of a key.
///
/// Threads and failure: shards.hpp. Members that change the map must not overlap with anything else. If a
/// member throws, the map keeps its pairs and may hold part of the batch.
template <class Key, class Value, class Shards = host_shards>
class sharded_concurrent_map {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using place_type = typename Shards::place_type;
  using table_type = concurrent_map<Key, Value, place_type>;  ///< of a shard
  using options = concurrent_options;
  using reader_type = sharded_ref<typename table_type::reader_type>;

  /// An empty map with room for n keys of all shards together. Throws invalid_argument, out_of_memory.
  explicit sharded_concurrent_map(const Shards& shards, std::size_t n = 0, options chosen = {})
      : options_(chosen) {
    tables_.build(shards, chosen, "roost::sharded_concurrent_map",
                  [&](auto& me) { return table_type(me.place(), share_of(n, me.count()), options_); });
  }

  // Bulk inserts: for each shard a range of keys and one of values, of equal length, in memory of the shard.
  // The report counts pairs of all shards. They throw invalid_argument, out_of_memory, device_error.

  /// Stores each pair whose key is absent.
  template <class Keys, class Values>
  insert_report insert(const Shards& shards, const Keys& keys, const Values& values, bulk_options how = {});

  /// Stores each pair; present keys get the new value.
  template <class Keys, class Values>
  insert_report insert_or_assign(const Shards& shards, const Keys& keys, const Values& values,
                                 bulk_options how = {});

  /// Stores each pair; if the key is present with value v0, the value becomes f(v0, v). f: associative and
  /// commutative.
  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Shards& shards, const Keys& keys, const Values& values, const F& f,
                                bulk_options how = {});

  /// Removes keys; returns how many were present.
  template <class Keys>
  std::size_t erase(const Shards& shards, const Keys& keys, bulk_options how = {});

  /// Removes the pairs for which f(key, value) is true, which is called on the shard that owns them; returns
  /// how many.
  template <class F>
  std::size_t erase_if(const Shards& shards, const F& f);

  /// Removes all keys.
  void clear(const Shards& shards);

  // Bulk lookups: for each shard a range of queries and one of results, at least as long, in memory of the
  // shard. See sharded_map for paths, scratch memory and exceptions. Must not overlap with changes.

  /// results[s][i] = the value of queries[s][i], or `missing`.
  template <class Queries, class Results>
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const {
    return tables_.template find<Key>(shards, "roost::sharded_concurrent_map::find", queries, results,
                                      missing, how);
  }
  /// found[s][i] = whether queries[s][i] is present, as bool; if so, results[s][i] = its value. Other results
  /// are unchanged.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const {
    return tables_.template find_there<Key, Value>(shards, "roost::sharded_concurrent_map::find", queries,
                                                   results, found, how);
  }
  /// results[s][i] = whether queries[s][i] is present, as bool.
  template <class Queries, class Results>
  bulk_report contains(const Shards& shards, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return tables_.template contains<Key>(shards, "roost::sharded_concurrent_map::contains", queries, results,
                                          how);
  }
  /// Returns how many of the queries of all shards are present. Takes one byte of scratch memory per query
  /// more than contains().
  template <class Queries>
  std::size_t count_found(const Shards& shards, const Queries& queries, bulk_options how = {}) const {
    return tables_.template count_found<Key>(shards, "roost::sharded_concurrent_map::count_found", queries,
                                             how);
  }

  /// Writes the pairs that each shard owns, in no defined order, to its memory, with room for all of them:
  /// shard(s).size(place) (invalid_argument otherwise). Returns how many all shards have.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Shards& shards, Keys&& keys, Values&& values) const;

  /// Calls f(key, value) for every pair, in parallel on the shard that owns it, in no defined order.
  template <class F>
  void for_each(const Shards& shards, const F& f) const;

  /// Makes room for n keys of all shards together, including those already present. Throws as concurrent_map
  /// does; some shards may then already have more room.
  void reserve(const Shards& shards, std::size_t n);

  /// Makes the maps of all shards as small as their keys allow.
  void shrink_to_fit(const Shards& shards);

  /// A handle for lookups in kernels and host loops: see sharded_map. Must not overlap with changes.
  reader_type ref() const
    requires(!detail::one_shard_a_process<Shards>)
  {
    return tables_.ref("roost::sharded_concurrent_map::ref");
  }

  /// The ordinary map of a shard of this process: its statistics, size, bytes.
  const table_type& shard(std::size_t number) const { return tables_[number]; }

  /// The number of keys, slots and bytes of all shards together. size() reads all slots.
  std::size_t size(const Shards& shards) const;
  std::size_t capacity(const Shards& shards) const;
  std::size_t bytes(const Shards& shards) const;

  /// Checks the invariants: the map of each shard is valid, and has only keys that the shard owns.
  bool valid(const Shards& shards) const {
    return tables_.valid(shards, "roost::sharded_concurrent_map::valid");
  }

 private:
  static std::size_t share_of(std::size_t n, std::size_t shards) {
    return detail::with_slack(static_cast<double>(n) / static_cast<double>(shards), n);
  }

  /// Calls change(map of a shard, place, keys, values) with the pairs that bring(me, source) delivers.
  template <class Keys, class Values, class Bring, class Change>
  insert_report put(const Shards& shards, const char* where, const Keys& keys, const Values& values,
                    const Bring& bring, const Change& change);

  options options_;
  detail::tables_of_shards<table_type, Shards> tables_;
};

}  // namespace roost

#include "roost/shards/detail/concurrent_map.hpp"
