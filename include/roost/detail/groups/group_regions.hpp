#pragma once

#include "roost/detail/base/earlier_teams.hpp"
#include "roost/detail/groups/frequent_keys.hpp"

// The kernel of grouping.

namespace roost::detail {

/// What grouping or numbering a batch writes. Null: not wanted.
template <class Key>
struct key_output {
  Key* keys;
  pair<Key, std::uint32_t>* pairs;  // each key with its number
  std::uint64_t* keys_before;       // of each region: keys in those before, and at last all keys

  ROOST_FN void write(std::uint64_t number, const Key& key) const {
    if (keys != nullptr) keys[number] = key;
    if (pairs != nullptr) pairs[number] = {key, static_cast<std::uint32_t>(number)};
  }
};

/// What the host looks at.
struct group_outcome {
  std::uint32_t overflowed;  // the partition ran out of slack
  std::uint32_t failed;      // regions with too many different keys
  std::uint32_t copies;      // regions with copies of a key where all keys should be different
};

/// Groups the items of a region: puts their values in the order of the groups, and in a group in the order of
/// the items.
template <class Place, class Key, class Value>
struct group_regions {
  static constexpr bool one_worker = std::is_same_v<Place, host>;
  static constexpr int threads = group_tuning<cuda>::threads;
  static constexpr bool large_scratch = true;
  static constexpr int teams_at_once = group_tuning<cuda>::teams_at_once;
  static constexpr std::uint32_t tile = group_tile<Place, Key, Value>;
  static constexpr std::uint32_t digits = 256;  // of groups' numbers, for the order in one step; else two of
  static constexpr std::uint32_t step_bits = 6;
  static_assert(one_worker || tile <= 1 << 2 * step_bits);
  using item = pair<Key, Value>;

  const item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  regions_and_frequent_keys<Key> region_of;
  key_output<Key> target;
  std::uint64_t* offsets;
  Value* values;
  group_outcome* outcome;
  earlier_teams turns;

  struct pieces {
    std::uint64_t* shared;  // two words, one for each sum of all teams
    key_numbers<Key, tile> numbers;
    std::uint32_t* next;    // of each group: its items, then where the next one goes
    std::uint32_t* number;  // of each item, for one worker
    std::uint32_t* digit_count;
    std::uint16_t* warp_count;
    std::uint32_t* tile_start;   // of each group of a tile in order
    std::uint32_t* tile_number;  // a tile in order: groups; both where the keys of a region of one tile have
                                 // more slots, which then are no longer needed
    Value* tile_value;           // and values, where its keys were
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    constexpr bool sorts = !one_worker;
    pieces parts{};
    parts.shared = memory.take<std::uint64_t>(2);
    parts.numbers = key_numbers<Key, tile>::take(memory, region_of.spread,
                                                 (sorts ? 2 : 1) * key_numbers<Key, tile>::slots_least);
    parts.next = memory.take<std::uint32_t>(tile);
    parts.number = memory.take<std::uint32_t>(one_worker ? tile : 0);
    if constexpr (sorts) {
      parts.tile_start = parts.numbers.slot + key_numbers<Key, tile>::slots_least;
      parts.tile_number = parts.tile_start + tile;
    }
    parts.digit_count = memory.take<std::uint32_t>(sorts ? digits : 0);
    parts.warp_count = memory.take<std::uint16_t>(sorts ? rank_counters<block_team<threads>>(digits) : 0);
    scratch_memory same = memory;
    parts.numbers.tile_key = memory.take<Key>(tile);
    parts.tile_value = same.take<Value>(sorts ? tile : 0);
    if (same.used() > memory.used()) memory = same;
    return parts;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    constexpr int per_worker = static_cast<int>(tile) / Team::size;
    scratch_memory all(memory);
    pieces parts = scratch(all);
    const std::uint64_t region = turns.turn(team, parts.shared);
    const std::uint64_t first = begins[region], count = ends[region] - first;
    const bool one_tile = count <= tile;
    if (!one_tile) parts.numbers.slots = key_numbers<Key, tile>::slots_least;
    if (!one_tile && region_of.is_frequent(items[first].key)) return write_only_group(team, parts, region);

    fill_words(team, parts.next, tile, 0);
    parts.numbers.clear(team);
    item_numbers<per_worker, Team> number(parts.number);
    using tile_items = held_items<per_worker, Team, const item*, true>;
    tile_items mine(team, items, first, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count)));
    const auto each_tile = [&](const auto& body) {
      bool good = true;
      ROOST_ROLLED
      for (std::uint64_t done = 0; done < count && good; done += tile) {
        const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - done));
        if (!one_tile) mine = tile_items(team, items, first + done, n);
        good = body(n);
      }
      return good;
    };
    bool counted_in_order = false;
    const bool fits = each_tile([&](std::uint32_t n) {
      if (!parts.numbers.add(team, mine, n, number, [](std::uint32_t, int, int) {})) return false;
      counted_in_order =
          one_tile && (*parts.numbers.size == n || (Team::size > 1 && *parts.numbers.size <= digits));
      if (counted_in_order) return true;
      for_each_held<per_worker, true>(
          team, n, [&](int held, int i) { team.fetch_add(parts.next[number(held, i)], 1u); });
      team.sync();
      return true;
    });
    const std::uint32_t groups = fits ? *parts.numbers.size : 0;
    if (team.rank() == 0 && groups == 0 && count != 0) fetch_add(outcome->failed, 1u);
    const std::uint64_t base = begin_output(team, parts, region, groups);
    if (groups == 0) return;
    if (groups == count) {  // all keys are different: their order is that of the items
      for_each_held<per_worker, true>(team, groups, [&](int held, int i) {
        const auto g = static_cast<std::uint32_t>(i);
        values[first + g] = mine(held, i).value;
        target.write(base + g, mine(held, i).key);
        offsets[base + g] = first + g;
      });
      return;
    }
    if (!counted_in_order) {
      team.exclusive_scan(parts.next, parts.next, groups);
      team.sync();
      write_groups(team, parts, base, first, groups, parts.next);
    }
    each_tile([&](std::uint32_t n) {
      if (!one_tile) {
        for_each_held<per_worker, true>(
            team, n, [&](int held, int i) { number(held, i) = parts.numbers.number_of(mine(held, i).key); });
      }
      put_in_order<per_worker>(team, parts, first, mine, n, one_tile, number);
      return true;
    });
    if (counted_in_order) write_groups(team, parts, base, first, groups, parts.digit_count);
  }

  /// Returns how many groups there are in regions before.
  template <class Team>
  ROOST_FN std::uint64_t begin_output(const Team& team, const pieces& parts, std::uint64_t region,
                                      std::uint32_t groups) const {
    const std::uint64_t base = turns.sum_before(team, region, groups, parts.shared + 1);
    if (team.rank() == 0) target.keys_before[region + 1] = base + groups;
    return base;
  }

  /// `starts`: of each group's values, from the first of the region's on.
  template <class Team>
  ROOST_FN void write_groups(const Team& team, const pieces& parts, std::uint64_t base, std::uint64_t first,
                             std::uint32_t groups, const std::uint32_t* starts) const {
    for_each_of(team, groups, [&](std::uint32_t g) {
      target.write(base + g, parts.numbers.key[g]);
      offsets[base + g] = first + starts[g];
    });
    team.sync();  // before starts move on
  }

  /// The group of a frequent key: all items of its region. What is to do for each of them,
  /// for_each_frequent_item does.
  template <class Team>
  ROOST_FN void write_only_group(const Team& team, const pieces& parts, std::uint64_t region) const {
    const std::uint64_t base = begin_output(team, parts, region, 1);
    if (team.rank() != 0) return;
    target.write(base, items[begins[region]].key);
    offsets[base] = begins[region];
  }

  /// Writes the values of a tile behind those of earlier tiles.
  template <int PerWorker, class Team, class Items>
  ROOST_FN void put_in_order(const Team& team, const pieces& parts, std::uint64_t first, const Items& mine,
                             std::uint32_t n, bool one_tile, item_numbers<PerWorker, Team>& number) const {
    if constexpr (Team::size == 1) {
      for (int i = 0; i < static_cast<int>(n); ++i)
        values[first + parts.next[number(i, i)]++] = mine(i, i).value;
    } else {
      Value value[PerWorker];
      for_each_held<PerWorker, true>(team, n, [&](int held, int i) { value[held] = mine(held, i).value; });
      const std::uint32_t groups = *parts.numbers.size;
      if (groups <= digits) {
        sort_by_digit<PerWorker>(team, parts, n, number, value, groups, [](std::uint32_t g) { return g; });
      } else {
        sort_by_digit<PerWorker>(team, parts, n, number, value, 1 << step_bits,
                                 [](std::uint32_t g) { return g & ((1u << step_bits) - 1); });
        for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
          number(held, i) = parts.tile_number[i];
          value[held] = parts.tile_value[i];
        });
        sort_by_digit<PerWorker>(team, parts, n, number, value, ((groups - 1) >> step_bits) + 1,
                                 [](std::uint32_t g) { return g >> step_bits; });
      }
      if (one_tile)
        return for_each_of(team, n, [&](std::uint32_t i) { values[first + i] = parts.tile_value[i]; });
      const auto begins_group = [&](std::uint32_t i) {
        return i == 0 || parts.tile_number[i - 1] != parts.tile_number[i];
      };
      for_each_of(team, n, [&](std::uint32_t i) {
        if (begins_group(i)) parts.tile_start[parts.tile_number[i]] = i;
      });
      team.sync();
      for_each_of(team, n, [&](std::uint32_t i) {
        const std::uint32_t g = parts.tile_number[i];
        values[first + parts.next[g] + (i - parts.tile_start[g])] = parts.tile_value[i];
      });
      team.sync();
      for_each_of(team, n, [&](std::uint32_t i) {
        if (i + 1 == n || begins_group(i + 1))
          parts.next[parts.tile_number[i]] += i + 1 - parts.tile_start[parts.tile_number[i]];
      });
      team.sync();
    }
  }

  /// One step of a radix sort of a tile by the numbers of its groups.
  template <int PerWorker, class Team, class DigitOf>
  ROOST_FN void sort_by_digit(const Team& team, const pieces& parts, std::uint32_t n,
                              item_numbers<PerWorker, Team>& number, const Value (&value)[PerWorker],
                              std::uint32_t digit_count, const DigitOf& digit_of) const {
    std::uint32_t rank[PerWorker];
    rank_in_order(
        team, n, digit_count, [&](int held, int i) { return digit_of(number(held, i)); }, parts.warp_count,
        parts.digit_count, rank);
    team.exclusive_scan(parts.digit_count, parts.digit_count, digit_count);
    team.sync();
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
      const std::uint32_t position = parts.digit_count[digit_of(number(held, i))] + rank[held];
      parts.tile_number[position] = number(held, i);
      parts.tile_value[position] = value[held];
    });
    team.sync();
  }
};

template <class Key, class Value>
struct copy_value {
  const pair<Key, Value>* source;
  Value* target;
  ROOST_FN void operator()(std::uint64_t i, std::uint32_t) const { target[i] = source[i].value; }
};

}  // namespace roost::detail
