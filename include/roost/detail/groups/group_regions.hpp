#pragma once

#include "roost/detail/groups/frequent_keys.hpp"
#include "roost/detail/groups/key_indices.hpp"

// The kernels of grouping: the groups of each region, then those of all regions together. (Indices by the
// ordered table of index_kernel.hpp, with look-back in place of the second kernel, are simpler, but with
// eight copies a key they took 1.3 to 1.5 times as long on an H200: teams wait for each other while they hold
// their items in registers.)

namespace roost::detail {

/// The output of the groups of a region. Group g of a region whose first value is at b is at b + g, until the
/// number of earlier groups is known.
template <class Key, class Value>
struct group_output {
  Key* keys;
  Value* values;                // of all items
  const std::uint64_t* firsts;  // of each region: where its first value is
  std::uint32_t* starts;        // where each one's first value is, from b on
  std::uint64_t* sizes;         // groups of each region
  std::uint64_t* failed;        // regions with too many distinct keys, or too many items for one team
};

/// One step's digits of the indices of groups: of(index), below `count`.
template <class Of>
struct digits_of {
  std::uint32_t count;
  Of of;
};
template <class Of>
digits_of(std::uint32_t, Of) -> digits_of<Of>;

/// Groups the items of a region: orders their values by group, and within a group by item.
template <class Place, class Key, class Value>
struct group_regions {
  static constexpr bool one_worker = std::is_same_v<Place, host>;
  static constexpr int threads = group_tuning<cuda>::threads;
  static constexpr bool large_scratch = true;
  static constexpr int teams_at_once = group_tuning<cuda>::teams_at_once;
  static constexpr std::uint32_t tile = group_tile<Place, Key, Value>;
  static constexpr std::uint32_t digits = 256;  // of group indices, to order them in one step; else two of
  static constexpr std::uint32_t step_bits = 6;
  static_assert(one_worker || tile <= 1 << 2 * step_bits);
  using item = pair<Key, Value>;

  const item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  const std::uint32_t* overflowed;  // not 0: the partition lacks items
  regions_and_frequent_keys<Key> region_of;
  bool sampled;  // the frequent keys are known; if not, a region that one of them overloads is skipped
  group_output<Key, Value> target;

  struct pieces {
    key_indices<Key, tile> indices;
    std::uint32_t* next;   // of each group: the count of its items, then where the next one goes
    std::uint32_t* index;  // of each item, for one worker
    std::uint32_t* digit_count;
    std::uint16_t* warp_count;
    std::uint32_t* lanes;       // see rank_in_order: in the place of `next` and of the tile's keys
    std::uint32_t* tile_start;  // of each group of a tile in order
    std::uint32_t* tile_index;  // a tile in order: groups; both where the keys of a region of one tile have
                                // more slots, which then are no longer needed
    Value* tile_value;          // and values, where its keys were
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    constexpr bool sorts = !one_worker;
    pieces parts{};
    parts.indices = key_indices<Key, tile>::take(memory, region_of.spread,
                                                 (sorts ? 2 : 1) * key_indices<Key, tile>::slots_least);
    parts.index = memory.take<std::uint32_t>(one_worker ? tile : 0);
    if constexpr (sorts) {
      parts.tile_start = parts.indices.table.slot + key_indices<Key, tile>::slots_least;
      parts.tile_index = parts.tile_start + tile;
    }
    parts.digit_count = memory.take<std::uint32_t>(sorts ? digits : 0);
    parts.warp_count = memory.take<std::uint16_t>(sorts ? rank_counters<block_team<threads>>(digits) : 0);
    scratch_memory ranks = memory;
    parts.lanes = ranks.take<std::uint32_t>(sorts ? rank_counters<block_team<threads>>(digits) : 0);
    parts.next = memory.take<std::uint32_t>(tile);
    scratch_memory same = memory;
    parts.indices.tile_key = memory.take<Key>(tile);
    parts.tile_value = same.take<Value>(sorts ? tile : 0);
    if (same.used() > memory.used()) memory = same;
    if (ranks.used() > memory.used()) memory = ranks;
    return parts;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte* memory) const {
    constexpr int per_worker = static_cast<int>(tile) / Team::size;
    if (*overflowed != 0) return;
    pieces parts = scratch_of(*this, memory);
    const std::uint64_t begin = begins[region], count = ends[region] - begin, first = target.firsts[region];
    const bool one_tile = count <= tile;
    if (!sampled && count > std::uint64_t{group_tuning<Place>::tiles_most} * tile) {
      if (team.rank() == 0) fetch_add(*target.failed, std::uint64_t{1});
      return;
    }
    if (!one_tile) parts.indices.table.slots = key_indices<Key, tile>::slots_least;
    if (!one_tile && region_of.is_frequent(items[begin].key)) {
      if (team.rank() == 0) write_only_group(region, first);
      return;
    }
    using tile_items = held_items<per_worker, Team, const item*, true>;
    tile_items mine(team, items, begin, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count)));
    fill_words(team, parts.next, tile, 0);
    parts.indices.clear(team);
    item_indices<per_worker, Team> index(parts.index);
    const auto each_tile = [&](const auto& body) {
      for (std::uint64_t done = 0; done < count; done += tile) {
        const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - done));
        if (!one_tile) mine = tile_items(team, items, begin + done, n);
        if (!body(n)) return false;
      }
      return true;
    };
    const bool fits = each_tile([&](std::uint32_t n) {
      const auto write_key = [&](std::uint32_t g, int held, int i) {
        target.keys[first + g] = mine(held, i).key;
      };
      if (!parts.indices.add(team, mine, n, index, write_key)) return false;
      one_tile ? group_tile_alone(team, parts, first, mine, tile_indices<per_worker, Team>{n, index})
               : count_items<per_worker>(team, parts, n, index);
      return true;
    });
    if (!fits) {
      if (team.rank() == 0) fetch_add(*target.failed, std::uint64_t{1});
      return;
    }
    if (team.rank() == 0) target.sizes[region] = *parts.indices.size;
    if (one_tile) return;
    write_starts(team, parts, first);
    each_tile([&](std::uint32_t n) {
      for_each_held<per_worker, true>(
          team, n, [&](int held, int i) { index(held, i) = parts.indices.index_of(mine(held, i).key); });
      put_in_order(team, parts, first, mine, tile_indices<per_worker, Team>{n, index}, false);
      return true;
    });
  }

  /// The groups of the n items of a tile.
  template <int PerWorker, class Team>
  struct tile_indices {
    std::uint32_t n;
    item_indices<PerWorker, Team>& of;
  };

  /// Counts the items of a tile for each group.
  template <int PerWorker, class Team>
  ROOST_FN void count_items(const Team& team, const pieces& parts, std::uint32_t n,
                            item_indices<PerWorker, Team>& index) const {
    for_each_held<PerWorker, true>(team, n,
                                   [&](int held, int i) { team.fetch_add(parts.next[index(held, i)], 1u); });
    team.sync();
  }

  /// Groups the items of a region of one tile.
  template <int PerWorker, class Team, class Items>
  ROOST_FN void group_tile_alone(const Team& team, const pieces& parts, std::uint64_t first,
                                 const Items& mine, const tile_indices<PerWorker, Team>& indices) const {
    const std::uint32_t groups = *parts.indices.size, n = indices.n;
    if (groups == n) {  // all keys are distinct: their order is that of the items
      for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
        target.values[first + static_cast<std::uint32_t>(i)] = mine(held, i).value;
        target.starts[first + static_cast<std::uint32_t>(i)] = static_cast<std::uint32_t>(i);
      });
      return;
    }
    const bool counted_in_order = Team::size > 1 && groups <= digits;
    if (!counted_in_order) {
      count_items<PerWorker>(team, parts, n, indices.of);
      write_starts(team, parts, first);
    }
    put_in_order(team, parts, first, mine, indices, true);
    if (counted_in_order)
      for_each_of(team, groups, [&](std::uint32_t g) { target.starts[first + g] = parts.digit_count[g]; });
  }

  /// The group of a frequent key: all items of its region. for_each_frequent_item does the work for each
  /// item.
  ROOST_FN void write_only_group(std::size_t region, std::uint64_t first) const {
    target.sizes[region] = 1;
    target.keys[first] = items[begins[region]].key;
    target.starts[first] = 0;
  }

  template <class Team>
  ROOST_FN void write_starts(const Team& team, const pieces& parts, std::uint64_t first) const {
    const std::uint32_t groups = *parts.indices.size;
    team.exclusive_scan(parts.next, parts.next, groups);
    team.sync();
    for_each_of(team, groups, [&](std::uint32_t g) { target.starts[first + g] = parts.next[g]; });
  }

  /// Appends the values of a tile to those of earlier tiles.
  template <int PerWorker, class Team, class Items>
  ROOST_FN void put_in_order(const Team& team, const pieces& parts, std::uint64_t first, const Items& mine,
                             const tile_indices<PerWorker, Team>& indices, bool one_tile) const {
    const std::uint32_t n = indices.n;
    auto& index = indices.of;
    if constexpr (Team::size == 1) {
      for (int i = 0; i < static_cast<int>(n); ++i)
        target.values[first + parts.next[index(i, i)]++] = mine(i, i).value;
    } else {
      Value value[PerWorker];
      for_each_held<PerWorker, true>(team, n, [&](int held, int i) { value[held] = mine(held, i).value; });
      const std::uint32_t groups = *parts.indices.size;
      if (groups <= (one_tile ? digits : smaller(digits, tile / 8))) {
        // The starts of a region of one tile have not been counted: `next` is free, and slots may be in use.
        sort_by_digit(team, parts, one_tile ? parts.lanes : parts.tile_start, indices, value,
                      digits_of{groups, [](std::uint32_t g) { return g; }});
      } else {
        constexpr std::uint32_t low = (1u << step_bits) - 1;
        sort_by_digit(team, parts, parts.tile_start, indices, value,
                      digits_of{low + 1, [](std::uint32_t g) { return g & low; }});
        for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
          index(held, i) = parts.tile_index[i];
          value[held] = parts.tile_value[i];
        });
        sort_by_digit(
            team, parts, parts.tile_start, indices, value,
            digits_of{((groups - 1) >> step_bits) + 1, [](std::uint32_t g) { return g >> step_bits; }});
      }
      if (one_tile)
        return for_each_of(team, n, [&](std::uint32_t i) { target.values[first + i] = parts.tile_value[i]; });
      const auto begins_group = [&](std::uint32_t i) {
        return i == 0 || parts.tile_index[i - 1] != parts.tile_index[i];
      };
      for_each_of(team, n, [&](std::uint32_t i) {
        if (begins_group(i)) parts.tile_start[parts.tile_index[i]] = i;
      });
      team.sync();
      for_each_of(team, n, [&](std::uint32_t i) {
        const std::uint32_t g = parts.tile_index[i];
        target.values[first + parts.next[g] + (i - parts.tile_start[g])] = parts.tile_value[i];
      });
      team.sync();
      for_each_of(team, n, [&](std::uint32_t i) {
        if (i + 1 == n || begins_group(i + 1))
          parts.next[parts.tile_index[i]] += i + 1 - parts.tile_start[parts.tile_index[i]];
      });
      team.sync();
    }
  }

  /// One step of a radix sort of a tile by the indices of its groups. `lanes`: see rank_in_order.
  template <int PerWorker, class Team, class DigitOf>
  ROOST_FN void sort_by_digit(const Team& team, const pieces& parts, std::uint32_t* lanes,
                              const tile_indices<PerWorker, Team>& indices, const Value (&value)[PerWorker],
                              const digits_of<DigitOf>& digit) const {
    std::uint32_t rank[PerWorker];
    rank_in_order(
        team, indices.n, digit.count, [&](int held, int i) { return digit.of(indices.of(held, i)); },
        {lanes, parts.warp_count, parts.digit_count}, rank);
    team.exclusive_scan(parts.digit_count, parts.digit_count, digit.count);
    team.sync();
    for_each_held<PerWorker, true>(team, indices.n, [&](int held, int i) {
      const std::uint32_t position =
          parts.digit_count[digit_and_rank::digit(rank[held])] + digit_and_rank::rank(rank[held]);
      parts.tile_index[position] = indices.of(held, i);
      parts.tile_value[position] = value[held];
    });
    team.sync();
  }
};

template <class Key, class Value>
struct copy_value {
  const pair<Key, Value>* source;
  Value* target;
  ROOST_FN void operator()(std::uint64_t i, std::uint32_t, std::uint32_t) const {
    target[i] = source[i].value;
  }
};

/// Packs the groups of all regions.
template <class Place, class Key, class Value>
struct pack_groups {
  static constexpr int threads = 256;
  group_output<Key, Value> source;  // sizes: of the groups in earlier regions; one more than regions
  Key* keys;
  std::uint64_t* offsets;
  std::uint64_t groups, items;  // of all regions

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte*) const {
    constexpr int per_worker = build_tuning<Place>::held;
    constexpr std::uint32_t at_once = per_worker * Team::size;
    const auto size = static_cast<std::uint32_t>(source.sizes[region + 1] - source.sizes[region]);
    if (region == 0 && team.rank() == 0) offsets[groups] = items;
    for (std::uint32_t done = 0; done < size; done += at_once) {
      const std::uint32_t n = smaller(at_once, size - done);
      const std::uint64_t first = source.firsts[region] + done, position = source.sizes[region] + done;
      const held_items<per_worker, Team, const Key*> key(
          team, source.keys, first, n);  // all loads are in flight before the first is used
      const held_items<per_worker, Team, const std::uint32_t*> start(team, source.starts, first, n);
      for_each_held<per_worker>(team, n, [&](int held, int i) {
        const std::uint64_t g = position + static_cast<std::uint32_t>(i);
        keys[g] = key(held, i);
        offsets[g] = source.firsts[region] + start(held, i);
      });
    }
  }
};

}  // namespace roost::detail
