#pragma once

#include "roost/concurrent_map.hpp"
#include "roost/group_by.hpp"
#include "roost/shards/sharded_table.hpp"

/// \file
/// sharded_concurrent_map: a concurrent_map over several shards, changed in bulk.

namespace roost {

/// A concurrent_map that is spread over several shards: for tables that change and are larger than the memory
/// of one GPU. Each key is owned by one shard, which its hash determines; a shard has an ordinary
/// concurrent_map of the keys that it owns.
///
///     roost::gpus all;                                         // or roost::host_shards
///     roost::sharded_concurrent_map<int, int, roost::gpus> map(all, 1000000);
///     map.insert_or_apply(all, words, counts, roost::plus());  // words[s]: a range of GPU s
///     map.find(all, queries, results, missing_value);
///
/// Calls, types, options and answers are those of concurrent_map; sharded_table.hpp has what all sharded
/// tables have, and shards.hpp says what several ranges mean. There is no run(), no insert_if(), and no
/// change through ref(), since a ref's atomic operations work within one GPU only. If a key appears more than
/// once in a batch, the order in which its pairs take effect is not defined.
///
/// Cost: a change sends each pair once to its owner, which then changes its map; lookups work as in
/// sharded_map. If few keys have many pairs, which would overload one shard, each shard first combines its
/// own pairs of a key.
///
/// Threads and failure: shards.hpp. Members that change the map must not overlap with anything else. If a
/// member throws, the map keeps its pairs and may hold part of the batch.
template <class Key, class Value, class Shards = host_shards>
class sharded_concurrent_map
    : public sharded_table<concurrent_map<Key, Value, typename Shards::place_type>, Shards> {
  using table = sharded_table<concurrent_map<Key, Value, typename Shards::place_type>, Shards>;

 public:
  using typename table::table_type, typename table::options, typename table::place_type;
  using reader_type = typename table::ref_type;

  /// An empty map with room for n keys of all shards together. Throws invalid_argument, out_of_memory.
  explicit sharded_concurrent_map(const Shards& shards, std::size_t n = 0, options chosen = {})
      : table("roost::sharded_concurrent_map", chosen) {
    tables_.build(shards, chosen,
                  [&](auto& me) { return table_type(me.place(), share_of(n, me.count()), chosen); });
  }

  // Bulk inserts: for each shard a range of keys and one of values, of equal length, in memory of the shard.
  // The report counts pairs of all shards. They throw invalid_argument, out_of_memory, device_error.

  /// Stores each pair whose key is absent.
  template <class Keys, class Values>
  insert_report insert(const Shards& shards, const Keys& keys, const Values& values, bulk_options how = {}) {
    return put(shards, "insert", keys, values, bring_first(),
               [&](table_type& mine, const auto&... arguments) { return mine.insert(arguments..., how); });
  }

  /// Stores each pair; present keys get the new value.
  template <class Keys, class Values>
  insert_report insert_or_assign(const Shards& shards, const Keys& keys, const Values& values,
                                 bulk_options how = {}) {
    return put(
        shards, "insert_or_assign", keys, values, bring_first(),
        [&](table_type& mine, const auto&... arguments) { return mine.insert_or_assign(arguments..., how); });
  }

  /// Stores each pair; if the key is present with value v0, the value becomes f(v0, v). f: associative and
  /// commutative.
  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Shards& shards, const Keys& keys, const Values& values, const F& f,
                                bulk_options how = {}) {
    constexpr const char* where = "roost::sharded_concurrent_map::insert_or_apply";
    const auto bring = [&](auto& me, const auto& source) {
      return detail::bring_items_or(me, source, options_.seed, [&] {
        const auto combined =
            detail::group_by(me.place(), source.keys, source.values, f, {.counts = false}, where);
        return detail::bring_items(me, detail::zip_as<Key, Value>(combined.keys, combined.values, where),
                                   options_.seed);
      });
    };
    return put(shards, "insert_or_apply", keys, values, bring,
               [&](table_type& mine, const auto&... arguments) {
                 return mine.insert_or_apply(arguments..., f, how);
               });
  }

  /// Removes keys; returns how many were present.
  template <class Keys>
  std::size_t erase(const Shards& shards, const Keys& keys, bulk_options how = {}) {
    tables_.check(shards, "erase", keys);
    return tables_.sum(shards, "erase", [&](auto& me, table_type& mine) {
      const auto items = detail::bring_first_items(
          me, detail::alone_as<Key>(detail::of_shard<Shards>(keys, me)), options_.seed);
      return mine.erase(me.place(), detail::keys_of(items), how);
    });
  }

  /// Removes the pairs for which f(key, value) is true, which is called on the shard that owns them; returns
  /// how many.
  template <class F>
  std::size_t erase_if(const Shards& shards, const F& f) {
    return tables_.sum(shards, "erase_if",
                       [&](auto& me, table_type& mine) { return mine.erase_if(me.place(), f); });
  }

  /// Removes all keys.
  void clear(const Shards& shards) {
    tables_.each(shards, "clear", [](auto& me, table_type& mine) { mine.clear(me.place()); });
  }

  /// Makes room for n keys of all shards together, including those already present. Throws as concurrent_map
  /// does; some shards may then already have more room.
  void reserve(const Shards& shards, std::size_t n) {
    tables_.each(shards, "reserve",
                 [&](auto& me, table_type& mine) { mine.reserve(me.place(), share_of(n, me.count())); });
  }

  /// Makes the maps of all shards as small as their keys allow.
  void shrink_to_fit(const Shards& shards) {
    tables_.each(shards, "shrink_to_fit", [](auto& me, table_type& mine) { mine.shrink_to_fit(me.place()); });
  }

  /// The number of keys, slots and bytes of all shards together. size() reads all slots.
  std::size_t size(const Shards& shards) const {
    return tables_.sum(shards, "size",
                       [](auto& me, const table_type& mine) { return mine.size(me.place()); });
  }
  std::size_t capacity(const Shards& shards) const {
    return tables_.sum(shards, "capacity", [](auto&, const table_type& mine) { return mine.capacity(); });
  }
  std::size_t bytes(const Shards& shards) const {
    return tables_.sum(shards, "bytes", [](auto&, const table_type& mine) { return mine.bytes(); });
  }

 private:
  using table::options_, table::tables_;

  static std::size_t share_of(std::size_t n, std::size_t shards) {
    return detail::with_slack(static_cast<double>(n) / static_cast<double>(shards), n);
  }

  /// Sends items to the owners of their keys, of which one item is enough.
  auto bring_first() const {
    return [seed = options_.seed](auto& me, const auto& source) {
      return detail::bring_first_items(me, source, seed);
    };
  }

  /// Calls change(map of a shard, place, keys, values) with the pairs that bring(me, source) delivers.
  template <class Keys, class Values, class Bring, class Change>
  insert_report put(const Shards& shards, const char* call, const Keys& keys, const Values& values,
                    const Bring& bring, const Change& change) {
    tables_.check(shards, call, keys, values);
    const std::string where = tables_.name_of(call);
    insert_report report;
    tables_.each(shards, call, [&](auto& me, table_type& mine) {
      const auto source = detail::zip_as<Key, Value>(detail::of_shard<Shards>(keys, me),
                                                     detail::of_shard<Shards>(values, me), where.c_str());
      const auto items = bring(me, source);
      const insert_report here = change(mine, me.place(), detail::keys_of(items), detail::values_of(items));
      const detail::gathered all =
          me.gather({source.size(), here.inserted, here.full, static_cast<std::uint64_t>(here.rehashes)});
      if (me.local() != 0) return;
      report.inserted = all.sum(1);
      report.full = all.sum(2);
      report.present = all.sum(0) - report.inserted - report.full;
      report.path = here.path;
      report.rehashes = static_cast<int>(all.sum(3));
    });
    return report;
  }
};

}  // namespace roost
