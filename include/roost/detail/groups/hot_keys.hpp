#pragma once

#include "roost/detail/groups/frequent_keys.hpp"
#include "roost/detail/groups/value_words.hpp"

// Frequent keys whose values the tiles of a partition add up, instead of moving them.

namespace roost::detail {

/// Chooses regions by the leading bits of the hash. Items of frequent keys are absorbed: a tile of the
/// partition combines their values, and adds them to `values` and `counts`.
template <class Key, class Value, class... F>
struct hot_keys {
  using reduce = reducers<Value, F...>;
  using table_type = team_table<std::uint16_t, look::exchange, true>;

  leading_bits spread;
  regions_and_frequent_keys<Key> found;  // by other regions
  const sample_outcome* seen;     // null if the host knows how many there are; else at most found.count are
                                  // absorbed, and none if there are more
  std::uint32_t slots;            // of a tile's table of these keys, a power of two: slots_for()
  typename reduce::words values;  // of each frequent key, in memory of the place
  std::uint32_t* counts;

  ROOST_FN std::uint32_t keys() const {
    if (found.count == 0 || seen == nullptr) return found.count;
    return seen->frequent <= found.count ? seen->frequent : 0;
  }

  ROOST_FN std::uint32_t operator()(const Key& key) const { return spread(key); }
  ROOST_FN bool absorbs_key(const Key& key) const { return keys() != 0 && found.is_frequent(key); }
  const leading_bits& after_absorbing() const { return spread; }

  static std::uint32_t slots_for(std::uint32_t keys) {
    return keys == 0 ? 0 : larger(256u, std::bit_ceil(4 * keys));
  }
  /// Scratch bytes of a tile.
  static std::size_t bytes(std::uint32_t keys) {
    return slots_for(keys) * sizeof(std::uint16_t) +
           keys * (sizeof(Key) + sizeof(std::uint32_t) + reduce::count * sizeof(typename reduce::word));
  }

  struct pieces {
    table_type table;  // of the indices of the keys
    Key* key;
    typename reduce::words value;
    std::uint32_t* count;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {{memory.take<std::uint16_t>(slots), slots},
            memory.take<Key>(found.count),
            reduce::take(memory, found.count),
            memory.take<std::uint32_t>(found.count)};
  }
  template <class Team>
  ROOST_FN void begin(const Team& team, const pieces& parts) const {
    if (found.count == 0) return;
    const std::uint32_t n = keys();
    parts.table.clear(team);
    for_each_of(team, n, [&](std::uint32_t f) {
      parts.key[f] = found.frequent[f];
      parts.count[f] = 0;
      reduce::clear(parts.value, f);
    });
    team.sync();
    for_each_of(team, n, [&](std::uint32_t f) {
      const auto no_copies = [](std::uint16_t) { return false; };
      parts.table.put(team, home(parts.key[f]), static_cast<std::uint16_t>(f), slots, no_copies);
    });
  }
  /// Whether an item is absorbed.
  template <class Team, class Item>
  ROOST_FN bool take(const Team& team, const pieces& parts, const Item& item) const {
    if (found.count == 0) return false;
    const std::uint16_t f = parts.table.slot[parts.table.find(home(item.key), [&](std::uint16_t other) {
      return other == table_type::empty || same_key(parts.key[other], item.key);
    })];
    if (f == table_type::empty || reduce::depends_on_order(value_of(item)))
      return false;  // the region reports it
    team.fetch_add(parts.count[f], 1u);
    reduce::add(team, parts.value, f, value_of(item));
    return true;
  }
  template <class Team>
  ROOST_FN void end(const Team& team, const pieces& parts) const {
    if (found.count == 0) return;
    team.sync();
    for_each_of(team, keys(), [&](std::uint32_t f) {
      if (parts.count[f] == 0) return;
      fetch_add(counts[f], parts.count[f]);
      reduce::each([&](auto of, int k) { of.combine_for_all(values.of[k][f], parts.value.of[k][f]); });
    });
  }

 private:
  ROOST_FN std::uint32_t home(const Key& key) const {  // by the last bits: the first ones are the region's
    return static_cast<std::uint32_t>(hash_of(key, spread.seed)) & (slots - 1);
  }
};

template <class Reduce>
struct clear_hot {
  typename Reduce::words values;
  std::uint32_t* counts;
  ROOST_FN void operator()(std::size_t f) const {
    counts[f] = 0;
    Reduce::clear(values, f);
  }
};

}  // namespace roost::detail
