#pragma once

#include "roost/frozen_map.hpp"
#include "roost/shards/sharded_table.hpp"

/// \file
/// sharded_map: a frozen_map over several shards.

namespace roost {

/// A frozen_map that is spread over several shards: for tables larger than the memory of one GPU, and for
/// rates above one GPU's. Each key is owned by one shard, which its hash determines; a shard has an ordinary
/// frozen_map of the keys that it owns.
///
///     roost::gpus all;                                 // or roost::host_shards, roost::rank
///     roost::sharded_map map(all, keys, values);       // keys[s]: a range of GPU s
///     map.find(all, queries, results, missing_value);  // results[s]: of queries[s]
///
/// Calls, types, options, duplicates and answers are those of frozen_map; sharded_table.hpp has what all
/// sharded tables have, and shards.hpp says what several ranges mean. If a key appears more than once, its
/// first pair wins: the first one in the lowest shard that has the key.
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
class sharded_map : public sharded_table<frozen_map<Key, Value, typename Shards::place_type>, Shards> {
  static_assert(detail::check_types<Key, Value>());
  using table = sharded_table<frozen_map<Key, Value, typename Shards::place_type>, Shards>;

 public:
  using typename table::table_type, typename table::options;

  /// Builds a map of keys[s][i] -> values[s][i]: for each shard a range of keys and one of values, of equal
  /// length, in memory of the shard. Throws invalid_argument, out_of_memory, device_error, build_error.
  template <class Keys, class Values>
  sharded_map(const Shards& shards, const Keys& keys, const Values& values, options chosen = {})
      : sharded_map(chosen) {
    rebuild(shards, keys, values);
  }

  /// An empty map without memory; rebuild() fills it. Bulk calls find nothing in it.
  sharded_map() : sharded_map(options{}) {}
  explicit sharded_map(options chosen) : table("roost::sharded_map", chosen) {}

  /// Builds the map again with the same options. Both maps exist until all shards have succeeded; if one
  /// fails, the map is unchanged.
  template <class Keys, class Values>
  void rebuild(const Shards& shards, const Keys& keys, const Values& values) {
    detail::check_parts(shards, tables_.name(), keys, values);
    build(shards, [&](auto& me) {
      return detail::zip_as<Key, Value>(detail::of_shard<Shards>(keys, me),
                                        detail::of_shard<Shards>(values, me), tables_.name());
    });
  }

  /// Of all shards together.
  std::size_t size() const { return tables_.size(); }
  bool empty() const { return size() == 0; }
  std::size_t capacity() const { return tables_.slots(); }
  std::size_t bytes() const { return tables_.bytes(); }
  /// As in frozen_map.
  double load_factor() const { return tables_.load_factor(); }
  /// The options of its builds.
  const options& build_options() const { return options_; }

 protected:
  using table::options_, table::tables_;

  /// Builds the map from source_of(me), the pairs of each shard.
  template <class SourceOf>
  void build(const Shards& shards, const SourceOf& source_of) {
    tables_.build(shards, options_, [&](auto& me) {
      const auto source = source_of(me);
      if constexpr (!detail::is_large_value<Value>) {
        if (auto map = detail::build_as_they_come<table_type>(me, source, options_)) return std::move(*map);
      }
      const auto items = detail::bring_first_items(me, source, options_.seed);
      if constexpr (detail::is_large_value<Value>) {
        return table_type(me.place(), detail::keys_of(items), detail::values_of(items), options_);
      } else {
        return detail::frozen_source::build<table_type>(me.place(), detail::as_sequence(items.items),
                                                        options_);
      }
    });
  }
};

template <class Shards, class Keys, class Values>
sharded_map(const Shards&, const Keys&, const Values&,
            typename default_layout<detail::element_of_shard<Shards, Keys>,
                                    detail::element_of_shard<Shards, Values>>::options = {})
    -> sharded_map<detail::element_of_shard<Shards, Keys>, detail::element_of_shard<Shards, Values>, Shards>;

}  // namespace roost
