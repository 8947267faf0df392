#pragma once

#include "roost/frozen_multimap.hpp"
#include "roost/shards/detail/tables.hpp"

/// \file
/// sharded_multimap: a frozen_multimap over several shards.

namespace roost {

/// A frozen_multimap that is spread over several shards: all values of a key are on the shard that owns it,
/// in input order (those of the lowest shard first).
///
///     roost::sharded_multimap map(all, keys, values);     // keys[s], values[s]: ranges of shard s
///     map.count(all, queries, counts);
///     const auto found = map.retrieve(all, queries);      // found[s].offsets, found[s].values
///
/// Calls, types and options are those of frozen_multimap; shards.hpp says what several ranges mean. Cost: a
/// build sends each pair to its owner, which then builds its table. count(), find_first() and contains() work
/// like lookups in a sharded_map; retrieve() sends queries once and values back once. A key may have any
/// number of pairs that the memory of its owner can hold.
///
/// Threads and failure: shards.hpp.
template <class Key, class Value, class Shards = host_shards>
class sharded_multimap {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using place_type = typename Shards::place_type;
  using table_type = frozen_multimap<Key, Value, place_type>;  ///< of a shard
  using options = typename table_type::options;
  using ref_type = sharded_ref<typename table_type::ref_type>;

  /// Builds a map of keys[s][i] -> values[s][i]; see sharded_map. Throws invalid_argument, out_of_memory,
  /// device_error, build_error.
  template <class Keys, class Values>
  sharded_multimap(const Shards& shards, const Keys& keys, const Values& values, options chosen = {})
      : options_(chosen) {
    rebuild(shards, keys, values);
  }

  /// An empty map without memory.
  sharded_multimap() = default;
  explicit sharded_multimap(options chosen) : options_(chosen) {}

  /// Builds the map again with the same options. If it throws, the map is unchanged.
  template <class Keys, class Values>
  void rebuild(const Shards& shards, const Keys& keys, const Values& values);

  /// results[s][i] = the first value of queries[s][i], or `missing`. See sharded_map::find.
  template <class Queries, class Results>
  bulk_report find_first(const Shards& shards, const Queries& queries, Results&& results,
                         const Value& missing, bulk_options how = {}) const;

  /// counts[s][i] = the number of values of queries[s][i]; of an integer type. A count that the type cannot
  /// hold is stored as the largest value of the type.
  template <class Queries, class Counts>
  bulk_report count(const Shards& shards, const Queries& queries, Counts&& counts,
                    bulk_options how = {}) const;

  /// Returns the number of values of all queries of all shards together. Takes eight bytes of scratch memory
  /// per query.
  template <class Queries>
  std::uint64_t count_matches(const Shards& shards, const Queries& queries, bulk_options how = {}) const;

  /// results[s][i] = whether queries[s][i] is present, as bool.
  template <class Queries, class Results>
  bulk_report contains(const Shards& shards, const Queries& queries, Results&& results,
                       bulk_options how = {}) const;

  /// Returns how many of the queries of all shards are present.
  template <class Queries>
  std::size_t count_found(const Shards& shards, const Queries& queries, bulk_options how = {}) const;

  /// The results of retrieve and retrieve_pairs, of a shard: see frozen_multimap.
  using retrieved = typename table_type::retrieved;
  using retrieved_pairs = typename table_type::retrieved_pairs;
  /// Returns the values of all queries, for each shard in the order of its queries.
  template <class Queries>
  detail::each_shard<Shards, retrieved> retrieve(const Shards& shards, const Queries& queries) const;
  /// The same, with the number of the query (of its shard) beside each value.
  template <class Queries>
  detail::each_shard<Shards, retrieved_pairs> retrieve_pairs(const Shards& shards,
                                                             const Queries& queries) const;

  /// Calls f(key, value) for every pair, in parallel, on the shard that owns the key.
  template <class F>
  void for_each(const Shards& shards, const F& f) const {
    tables_.each(shards, "roost::sharded_multimap::for_each",
                 [&](auto& me, const table_type& mine) { mine.for_each(me.place(), f); });
  }

  /// Writes the pairs that each shard owns, the values of a key together, to its memory, with room for
  /// shard(s).size() of each (invalid_argument otherwise). Returns size().
  template <class Keys, class Values>
  std::size_t retrieve_all(const Shards& shards, Keys&& keys, Values&& values) const;

  /// See sharded_map. find() of a ref returns the values in place, on the shard that owns the key.
  ref_type ref() const
    requires(!detail::one_shard_a_process<Shards>)
  {
    return tables_.ref("roost::sharded_multimap::ref");
  }
  /// The ordinary multimap of a shard of this process.
  const table_type& shard(std::size_t number) const { return tables_[number]; }

  /// Of all shards together.
  std::size_t size() const { return tables_.size(); }
  bool empty() const { return size() == 0; }
  std::size_t key_count() const { return tables_.slots(); }
  bool has_unique_keys() const { return key_count() == size(); }
  std::size_t bytes() const { return tables_.bytes(); }

  /// Checks the invariants: the multimap of each shard is valid.
  bool valid(const Shards& shards) const;

 private:
  /// See detail::answer_of_run.
  const std::uint64_t* offsets_to_read(const typename Shards::shard_type& me) const {
    const table_type& mine = tables_.of(me);
    return mine.has_unique_keys() ? nullptr : mine.offsets().data();
  }

  options options_{};
  detail::tables_of_shards<table_type, Shards> tables_;
};

template <class Shards, class Keys, class Values>
sharded_multimap(const Shards&, const Keys&, const Values&)
    -> sharded_multimap<detail::element_of<detail::range_of_shard<Shards, const Keys>>,
                        detail::element_of<detail::range_of_shard<Shards, const Values>>, Shards>;

}  // namespace roost

#include "roost/shards/detail/multimap.hpp"
