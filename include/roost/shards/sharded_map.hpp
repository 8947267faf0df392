#pragma once

#include "roost/frozen_map.hpp"
#include "roost/shards/detail/tables.hpp"

/// \file
/// sharded_map: a frozen_map over several shards.

namespace roost {

/// A frozen_map that is spread over several shards: for tables larger than the memory of one GPU, and for
/// rates above one GPU's. Each key is owned by one shard, which its hash determines; a shard has an ordinary
/// frozen_map of the keys that it owns.
///
///     roost::gpus all;                                            // or roost::host_shards, roost::rank
///     roost::sharded_map map(all, keys, values);                  // keys[s]: a range of GPU s
///     map.find(all, queries, results, missing_value);             // results[s]: of queries[s], in their
///     order
///
/// Calls, types, options, duplicates and answers are those of frozen_map; shards.hpp says what several ranges
/// mean. If a key appears several times, its first pair wins: the first one in the lowest shard that has the
/// key.
///
/// Cost: a build sends each pair once to its owner, which then builds its table. A bulk lookup partitions
/// queries by owner and region in one step, sends them by ranges of regions while earlier ranges are
/// answered, and puts the answers back in query order; docs/several-gpus.md has the model and measurements.
/// Small batches read the tables of other shards in place, if possible. Queries of frequent keys, which would
/// overload one shard, are answered on the shard of the query. Scratch memory: about twice that of
/// frozen_map, plus four bytes and a key per query.
///
/// Threads and failure: shards.hpp.
template <class Key, class Value, class Shards = host_shards>
class sharded_map {
  static_assert(detail::check_types<Key, Value>());

 public:
  using key_type = Key;
  using mapped_type = Value;
  using place_type = typename Shards::place_type;
  using table_type = frozen_map<Key, Value, place_type>;  ///< of a shard
  using options = typename table_type::options;
  using ref_type = sharded_ref<typename table_type::ref_type>;

  /// Builds a map of keys[s][i] -> values[s][i]: for each shard a range of keys and one of values, of equal
  /// length, in memory of the shard. Throws invalid_argument, out_of_memory, device_error, build_error.
  template <class Keys, class Values>
  sharded_map(const Shards& shards, const Keys& keys, const Values& values, options chosen = {})
      : options_(chosen) {
    rebuild(shards, keys, values);
  }

  /// An empty map without memory; rebuild() fills it. Bulk calls find nothing in it.
  sharded_map() = default;
  explicit sharded_map(options chosen) : options_(chosen) {}

  /// Builds the map again with the same options. Both maps exist until all shards have succeeded; if one
  /// fails, the map is unchanged.
  template <class Keys, class Values>
  void rebuild(const Shards& shards, const Keys& keys, const Values& values);

  /// results[s][i] = the value of queries[s][i], or `missing`. `results`: contiguous memory of each shard, at
  /// least as long as its queries (invalid_argument otherwise). With path::direct, the tables of other shards
  /// are read in place, if possible; with path::regional, all queries are sent.
  template <class Queries, class Results>
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const;

  /// found[s][i] = whether queries[s][i] is present, as bool; if so, results[s][i] = its value. Other results
  /// are unchanged.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const;

  /// results[s][i] = whether queries[s][i] is present, as bool.
  template <class Queries, class Results>
  bulk_report contains(const Shards& shards, const Queries& queries, Results&& results,
                       bulk_options how = {}) const;

  /// Returns how many of the queries of all shards are present. Takes one byte of scratch memory per query
  /// more than contains().
  template <class Queries>
  std::size_t count_found(const Shards& shards, const Queries& queries, bulk_options how = {}) const;

  /// Writes the pairs that each shard owns, in no defined order, to its memory, with room for
  /// shard(s).size() of each (invalid_argument otherwise). Returns size().
  template <class Keys, class Values>
  std::size_t retrieve_all(const Shards& shards, Keys&& keys, Values&& values) const;

  /// Calls f(key, value) for every pair, in parallel on the shard that owns it, in no defined order.
  template <class F>
  void for_each(const Shards& shards, const F& f) const {
    tables_.each(shards, "roost::sharded_map::for_each",
                 [&](auto& me, const table_type& mine) { mine.for_each(me.place(), f); });
  }

  /// The handle for kernels and host loops, which reads the tables of all shards in place. Throws
  /// invalid_argument if the map is empty, or has more than 16 shards. (Needs roost::gpus that can read each
  /// other's memory. A roost::rank has no refs.)
  ref_type ref() const
    requires(!detail::one_shard_a_process<Shards>)
  {
    return tables_.ref("roost::sharded_map::ref");
  }

  /// The ordinary map of a shard of this process, with the pairs that it owns: its statistics, size, ref.
  const table_type& shard(std::size_t number) const { return tables_[number]; }

  /// Of all shards together.
  std::size_t size() const { return tables_.size(); }
  bool empty() const { return size() == 0; }
  std::size_t capacity() const { return tables_.slots(); }
  std::size_t bytes() const { return tables_.bytes(); }
  /// As in frozen_map.
  double load_factor() const { return tables_.load_factor(); }
  /// The options of its builds.
  const options& build_options() const { return options_; }

  /// Checks the invariants: the map of each shard is valid, and has only keys that the shard owns.
  bool valid(const Shards& shards) const { return tables_.valid(shards, "roost::sharded_map::valid"); }

 private:
  template <class K, class S>
  friend class sharded_set;
  template <class K, class S>
  friend class sharded_index;

  /// Builds the map from source_of(me), the pairs of each shard.
  template <class SourceOf>
  void build(const Shards& shards, const SourceOf& source_of);

  options options_{};
  detail::tables_of_shards<table_type, Shards> tables_;
};

template <class Shards, class Keys, class Values>
sharded_map(const Shards&, const Keys&, const Values&)
    -> sharded_map<detail::element_of<detail::range_of_shard<Shards, const Keys>>,
                   detail::element_of<detail::range_of_shard<Shards, const Values>>, Shards>;
template <class Shards, class Keys, class Values>
sharded_map(
    const Shards&, const Keys&, const Values&,
    typename default_layout<detail::element_of<detail::range_of_shard<Shards, const Keys>>,
                            detail::element_of<detail::range_of_shard<Shards, const Values>>>::options)
    -> sharded_map<detail::element_of<detail::range_of_shard<Shards, const Keys>>,
                   detail::element_of<detail::range_of_shard<Shards, const Values>>, Shards>;

}  // namespace roost

#include "roost/shards/detail/map.hpp"
