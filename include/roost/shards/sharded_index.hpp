#pragma once

#include "roost/join.hpp"
#include "roost/shards/sharded_map.hpp"
#include "roost/two_way_index.hpp"

/// \file
/// sharded_index: distinct keys of several shards <-> 0, 1, ... m - 1; and the distinct keys alone.

namespace roost {

/// A two_way_index over several shards: numbers the distinct keys of all ranges 0, 1, ... m - 1.
///
///     roost::sharded_index index(all, ids);       // ids[s]: a range of shard s
///     index.indices(s);                           // of each id of shard s, its index
///     index.keys(s);                              // the ids of indices index.first(s) and following
///     index.find(all, queries, results);
///
/// The keys of a shard have consecutive indices, those of shard 0 first. With index_order::first_occurrence,
/// the default, a key is on the shard where it occurs first, and all indices are those of a two_way_index of
/// all ranges in the order of the shards. With index_order::any, the fastest, the hash of a key determines
/// its shard. There is no index_order::by_key (invalid_argument).
///
/// Limits: 2^32 - 2 distinct keys, and 2^32 - 2 keys in one range. Cost: a build numbers each range, sends
/// each of its distinct keys once to the owner and back, builds a sharded_map and looks up the distinct keys
/// of each range.
///
/// Threads and failure: shards.hpp.
template <class Key, class Shards = host_shards>
class sharded_index {
  using map = sharded_map<Key, std::uint32_t, Shards>;

 public:
  using key_type = Key;
  using place_type = typename Shards::place_type;

  /// What find() writes for an absent key, unless you pass another value.
  static constexpr std::uint32_t no_index = ~std::uint32_t{0};

  using options = typename two_way_index<Key, place_type>::options;

  /// Numbers the keys of all ranges, one for each shard. Throws invalid_argument, out_of_memory,
  /// device_error, build_error.
  template <class Keys>
    requires(!std::is_same_v<Keys, sharded_index>)
  sharded_index(const Shards& shards, const Keys& keys, options chosen = {})
      : indices_({.load_factor = chosen.load_factor, .seed = chosen.seed}) {
    number_keys(shards, keys, chosen);
  }

  /// An empty index without memory.
  sharded_index() = default;

  /// results[s][i] = the index of queries[s][i], or `missing`. See sharded_map::find.
  template <class Queries, class Results>
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results,
                   std::uint32_t missing = no_index, bulk_options how = {}) const {
    return indices_.find(shards, queries, results, missing, how);
  }

  /// results[s][i] = whether queries[s][i] is present, as bool.
  template <class Queries, class Results>
  bulk_report contains(const Shards& shards, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return indices_.contains(shards, queries, results, how);
  }

  /// Returns how many of the queries of all shards are present.
  template <class Queries>
  std::size_t count_found(const Shards& shards, const Queries& queries, bulk_options how = {}) const {
    return indices_.count_found(shards, queries, how);
  }

  /// The keys of a shard of this process, and how often each appeared in all ranges (empty without
  /// options::counts). Memory of the shard. The first has the index first(shard).
  std::span<const Key> keys(std::size_t shard) const { return of(shard).keys.span(); }
  std::span<const std::uint64_t> counts(std::size_t shard) const { return of(shard).counts.span(); }
  std::uint32_t first(std::size_t shard) const { return of(shard).first; }
  /// The index of each key of a shard's range.
  std::span<const std::uint32_t> indices(std::size_t shard) const { return of(shard).indices.span(); }

  /// The number of distinct keys of all shards.
  std::size_t size() const { return indices_.size(); }
  bool empty() const { return size() == 0; }
  /// Of all shards' tables and arrays in this process.
  std::size_t bytes() const;

  /// Checks the invariants: each key has its index. Looks up every key.
  bool valid(const Shards& shards) const;

 private:
  struct part {
    array<Key, place_type> keys;
    array<std::uint64_t, place_type> counts;
    array<std::uint32_t, place_type> indices;
    std::uint32_t first = 0;
  };

  const part& of(std::size_t shard) const {
    if constexpr (detail::one_shard_a_process<Shards>) {
      return parts_;
    } else {
      return parts_[shard];
    }
  }

  template <class Keys>
  void number_keys(const Shards& shards, const Keys& keys, const options& chosen);

  detail::each_shard<Shards, part> parts_;
  map indices_;
};

template <class Shards, class Keys>
sharded_index(const Shards&, const Keys&)
    -> sharded_index<detail::element_of<detail::range_of_shard<Shards, const Keys>>, Shards>;
template <class Shards, class Keys>
sharded_index(const Shards&, const Keys&,
              typename two_way_index<detail::element_of<detail::range_of_shard<Shards, const Keys>>,
                                     typename Shards::place_type>::options)
    -> sharded_index<detail::element_of<detail::range_of_shard<Shards, const Keys>>, Shards>;

/// Returns the distinct keys of the ranges of all shards, each once: an array for each shard. With
/// index_order::first_occurrence a key is on the shard where it occurs first, in that order, so the
/// concatenated arrays are what unique() returns on one place; with index_order::any the hash of a key
/// determines its shard. Throws as sharded_index does.
template <detail::shards_place Shards, class Keys>
auto unique(const Shards& shards, const Keys& keys, index_order order = index_order::first_occurrence);

}  // namespace roost

#include "roost/shards/detail/index.hpp"
