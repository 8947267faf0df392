#pragma once

#include "roost/frozen_multimap.hpp"
#include "roost/shards/detail/groups.hpp"
#include "roost/shards/sharded_table.hpp"

/// \file
/// sharded_multimap: a frozen_multimap over several shards.

namespace roost {

/// A frozen_multimap that is spread over several shards: all values of a key are on the shard that owns it,
/// in input order (those of the lowest shard first).
///
///     roost::sharded_multimap map(all, keys, values);  // keys[s], values[s]: of shard s
///     map.count(all, queries, counts);
///     const auto found = map.retrieve(all, queries);   // found[s].offsets, found[s].values
///
/// Calls, types and options are those of frozen_multimap; sharded_table.hpp has what all sharded tables have,
/// and shards.hpp says what several ranges mean. Cost: a build sends each pair to its owner, which then
/// builds its table. count(), find_first() and contains() work like lookups in a sharded_map; retrieve()
/// sends queries once and values back once. A key may have any number of pairs that the memory of its owner
/// can hold.
///
/// Threads and failure: shards.hpp.
template <class Key, class Value, class Shards = host_shards>
class sharded_multimap
    : public sharded_table<frozen_multimap<Key, Value, typename Shards::place_type>, Shards> {
  using table = sharded_table<frozen_multimap<Key, Value, typename Shards::place_type>, Shards>;

 public:
  using typename table::table_type, typename table::options;

  /// Builds a map of keys[s][i] -> values[s][i]; see sharded_map. Throws invalid_argument, out_of_memory,
  /// device_error, build_error.
  template <class Keys, class Values>
  sharded_multimap(const Shards& shards, const Keys& keys, const Values& values, options chosen = {})
      : sharded_multimap(chosen) {
    rebuild(shards, keys, values);
  }

  /// An empty map without memory.
  sharded_multimap() : sharded_multimap(options{}) {}
  explicit sharded_multimap(options chosen) : table("roost::sharded_multimap", chosen) {}

  /// Builds the map again with the same options. If it throws, the map is unchanged.
  template <class Keys, class Values>
  void rebuild(const Shards& shards, const Keys& keys, const Values& values) {
    detail::check_parts(shards, tables_.name(), keys, values);
    tables_.build(shards, options_, [&](auto& me) {
      const auto source = detail::zip_as<Key, Value>(detail::of_shard<Shards>(keys, me),
                                                     detail::of_shard<Shards>(values, me), tables_.name());
      const auto items = detail::bring_items(me, source, options_.seed);
      return table_type(me.place(), detail::keys_of(items), detail::values_of(items), options_);
    });
  }

  /// results[s][i] = the first value of queries[s][i], or `missing`. See sharded_map::find.
  template <class Queries, class Results>
  bulk_report find_first(const Shards& shards, const Queries& queries, Results&& results,
                         const Value& missing, bulk_options how = {}) const {
    return tables_.look_up(
        shards, "find_first", how,
        [&](auto& me, std::size_t n, const char* where, auto& target) {
          const Value* const values = empty() ? nullptr : tables_.of(me).values().data();
          return detail::write_first_value<Value>{offsets_to_read(me), values, missing,
                                                  detail::output<Value>(target, n, where)};
        },
        queries, results);
  }

  /// counts[s][i] = the number of values of queries[s][i]; of an integer type. A count that the type cannot
  /// hold is stored as the largest value of the type.
  template <class Queries, class Counts>
  bulk_report count(const Shards& shards, const Queries& queries, Counts&& counts,
                    bulk_options how = {}) const {
    using range = detail::range_of_shard<Shards, std::remove_reference_t<Counts>>;
    using number = std::remove_cvref_t<decltype(*detail::data_of(std::declval<range&>()))>;
    static_assert(std::is_integral_v<number> && !std::is_same_v<number, bool>, "counts are integers");
    return tables_.look_up(
        shards, "count", how,
        [&](auto& me, std::size_t n, const char* where, auto& target) {
          return detail::write_count<number>{{offsets_to_read(me)}, detail::output<number>(target, n, where)};
        },
        queries, counts);
  }

  /// Returns the number of values of all queries of all shards together. Takes eight bytes of scratch memory
  /// per query.
  template <class Queries>
  std::uint64_t count_matches(const Shards& shards, const Queries& queries, bulk_options how = {}) const {
    return tables_.template sum_of_answers<std::uint64_t>(
        shards, "count_matches", queries, how, [&](auto& me, std::uint64_t* target) {
          return detail::write_count<std::uint64_t>{{offsets_to_read(me)}, target};
        });
  }

  /// The results of retrieve and retrieve_pairs, of a shard: see frozen_multimap.
  using retrieved = typename table_type::retrieved;
  using retrieved_pairs = typename table_type::retrieved_pairs;
  /// Returns the values of all queries, for each shard in the order of its queries.
  template <class Queries>
  detail::each_shard<Shards, retrieved> retrieve(const Shards& shards, const Queries& queries) const {
    tables_.check(shards, "retrieve", queries);
    return detail::collect(shards, [&](auto& me) {
      const auto mine = detail::sequence_as<Key>(detail::of_shard<Shards>(queries, me));
      if (tables_.empty()) return retrieved{detail::zeros(me.place(), mine.size() + 1), {}};
      return detail::fetch_values(me, tables_.of(me), options_.seed, mine,
                                  "roost::sharded_multimap::retrieve");
    });
  }
  /// The same, with the number of the query (of its shard) beside each value.
  template <class Queries>
  detail::each_shard<Shards, retrieved_pairs> retrieve_pairs(const Shards& shards,
                                                             const Queries& queries) const {
    auto found = retrieve(shards, queries);
    return detail::collect(shards, [&](auto& me) {
      auto& mine = detail::of_shard<Shards>(found, me);
      return retrieved_pairs{
          detail::queries_of_matches<std::uint64_t>(me.place(), mine.offsets, mine.values.size()),
          std::move(mine.values)};
    });
  }

  /// Of all shards together.
  std::size_t size() const { return tables_.size(); }
  bool empty() const { return size() == 0; }
  /// The number of distinct keys.
  std::size_t key_count() const { return tables_.slots(); }
  /// True if each key has one value.
  bool has_unique_keys() const { return key_count() == size(); }
  std::size_t bytes() const { return tables_.bytes(); }

 private:
  using table::options_, table::tables_;

  /// See detail::answer_of_run.
  const std::uint64_t* offsets_to_read(const typename Shards::shard_type& me) const {
    return empty() || tables_.of(me).has_unique_keys() ? nullptr : tables_.of(me).offsets().data();
  }
};

template <class Shards, class Keys, class Values>
sharded_multimap(const Shards&, const Keys&, const Values&)
    -> sharded_multimap<detail::element_of_shard<Shards, Keys>, detail::element_of_shard<Shards, Values>,
                        Shards>;

}  // namespace roost
