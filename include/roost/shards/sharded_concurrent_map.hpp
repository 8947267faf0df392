#pragma once

#include "roost/concurrent_map.hpp"
#include "roost/group_by.hpp"
#include "roost/shards/detail/tables.hpp"

/// \file
/// sharded_concurrent_map: a concurrent_map over several shards, changed in bulk.

namespace roost {

/// A concurrent_map that is spread over several shards: for tables that change and are larger than the memory
/// of one GPU. Each key has one shard that owns it, which its hash tells; a shard has an ordinary
/// concurrent_map of the keys that it owns.
///
///     roost::gpus all;                                                  // or roost::host_shards
///     roost::sharded_concurrent_map<int, int, roost::gpus> map(all, 1000000);
///     map.insert_or_apply(all, words, counts, roost::plus());           // words[s]: a range of GPU s
///     map.find(all, queries, results, missing_value);
///
/// Calls, types, options and answers are those of concurrent_map; shards.hpp says what several ranges mean.
/// There are no run(), no insert_if(), and no changes through ref(), whose atomic operations are those of one
/// GPU. If a key comes several times in a batch, it is not defined which pair comes first.
///
/// Cost: a change sends each pair to its owner once, which then changes its map; lookups go as those of
/// sharded_map. Where few keys have many pairs, which would crowd one shard, each shard combines its pairs of
/// a key first.
///
/// Threads and failure: shards.hpp. Members that change the map need it for themselves. A member that throws
/// leaves the map with the pairs that it had, and some of the batch's.
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

  // Bulk calls that insert: for each shard a range of keys and one of values, equally long, in memory of the
  // shard. The report counts pairs of all shards. Throw invalid_argument, out_of_memory, device_error.

  /// Stores each pair whose key is not there.
  template <class Keys, class Values>
  insert_report insert(const Shards& shards, const Keys& keys, const Values& values, bulk_options how = {});

  /// Stores each pair; keys that are there get the new value.
  template <class Keys, class Values>
  insert_report insert_or_assign(const Shards& shards, const Keys& keys, const Values& values,
                                 bulk_options how = {});

  /// Stores each pair; a value v0 that is there becomes f(v0, v). f: associative and commutative.
  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Shards& shards, const Keys& keys, const Values& values, const F& f,
                                bulk_options how = {});

  /// Takes keys out; returns how many were there.
  template <class Keys>
  std::size_t erase(const Shards& shards, const Keys& keys, bulk_options how = {});

  /// Takes out the pairs for which f(key, value) is true, on the shard that owns them; returns how many.
  template <class F>
  std::size_t erase_if(const Shards& shards, const F& f);

  /// Takes all keys out.
  void clear(const Shards& shards);

  // Bulk lookups: for each shard a range of queries and one of results, at least as long, in memory of the
  // shard. See sharded_map for the ways that they go, what they take, and what they throw. Not beside
  // changes.

  /// results[s][i] = the value of queries[s][i], or `missing`.
  template <class Queries, class Results>
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const {
    return tables_.template find<Key>(shards, "roost::sharded_concurrent_map::find", queries, results,
                                      missing, how);
  }
  /// found[s][i] = whether queries[s][i] is there, as bool, and if so, results[s][i] = its value; other
  /// results stay as they are.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const {
    return tables_.template find_there<Key, Value>(shards, "roost::sharded_concurrent_map::find", queries,
                                                   results, found, how);
  }
  /// results[s][i] = whether queries[s][i] is there, as bool.
  template <class Queries, class Results>
  bulk_report contains(const Shards& shards, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return tables_.template contains<Key>(shards, "roost::sharded_concurrent_map::contains", queries, results,
                                          how);
  }
  /// Returns how many of the queries of all shards are there. Takes a byte of scratch memory for each query
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

  /// Calls f(key, value) for every pair, on the shard that owns it, in no defined order, many at once.
  template <class F>
  void for_each(const Shards& shards, const F& f) const;

  /// Makes room for n keys of all shards together, those included that are there. Throws as concurrent_map
  /// does; some shards may have more room then.
  void reserve(const Shards& shards, std::size_t n);

  /// Makes the maps of all shards as small as their keys allow.
  void shrink_to_fit(const Shards& shards);

  /// A handle for lookups in kernels and host loops: see sharded_map. Not beside changes.
  reader_type ref() const
    requires(!detail::one_shard_a_process<Shards>)
  {
    return tables_.ref("roost::sharded_concurrent_map::ref");
  }

  /// The ordinary map of a shard of this process: its statistics, size, bytes.
  const table_type& shard(std::size_t number) const { return tables_[number]; }

  /// How many keys, slots and bytes all shards have together. size() reads all slots.
  std::size_t size(const Shards& shards) const;
  std::size_t capacity(const Shards& shards) const;
  std::size_t bytes(const Shards& shards) const;

  /// Checks what must hold: the map of each shard is valid, and has only keys that the shard owns.
  bool valid(const Shards& shards) const {
    return tables_.valid(shards, "roost::sharded_concurrent_map::valid");
  }

 private:
  static std::size_t share_of(std::size_t n, std::size_t shards) {
    return detail::with_slack(static_cast<double>(n) / static_cast<double>(shards), n);
  }

  /// change(the map of a shard, place, keys, values) with the pairs that bring(me, source) brings.
  template <class Keys, class Values, class Bring, class Change>
  insert_report put(const Shards& shards, const char* where, const Keys& keys, const Values& values,
                    const Bring& bring, const Change& change);

  options options_;
  detail::tables_of_shards<table_type, Shards> tables_;
};

}  // namespace roost

#include "roost/shards/detail/concurrent_map.hpp"
