#pragma once

#include <bit>
#include <cmath>
#include <optional>

#include "roost/detail/base/numbers.hpp"
#include "roost/detail/partition/ranks.hpp"
#include "roost/frozen_map.hpp"

// Grouping: items with the same key come together. They are partitioned by region, in order; a team numbers
// the different keys of a region, and puts its items in the order of their keys' numbers. Keys that very many
// items have get regions of their own, which need no more than the partition. So groups come out in the order
// of their keys' hashes.

namespace roost::detail {

/// The items that a team groups at once, and the different keys that a region can have.
template <class Place, class Key, class Value>
constexpr std::uint32_t group_tile = [] {
  constexpr std::size_t fit =
      tuning<Place>::group_bytes / (sizeof(Key) + larger(sizeof(Key), sizeof(Value)) + 22);
  constexpr std::size_t threads = tuning<cuda>::group_threads;
  return static_cast<std::uint32_t>(
      larger<std::size_t>(smaller<std::size_t>(fit / threads, tuning<Place>::group_held_most), 1) * threads);
}();

/// A number for each of a team's items: a thread of a block has its own in registers.
template <int PerWorker, class Team>
class item_numbers {
 public:
  ROOST_FN explicit item_numbers(std::uint32_t*) {}
  ROOST_FN std::uint32_t& operator()(int held, int) { return number_[held]; }

 private:
  std::uint32_t number_[PerWorker];
};
template <int PerWorker>
class item_numbers<PerWorker, serial_team> {
 public:
  ROOST_FN explicit item_numbers(std::uint32_t* memory) : number_(memory) {}
  ROOST_FN std::uint32_t& operator()(int, int i) { return number_[i]; }

 private:
  std::uint32_t* number_;
};

/// Sets n words of scratch, a multiple of 4.
template <class Team>
ROOST_FN void fill_words(const Team& team, std::uint32_t* words, std::uint32_t n, std::uint32_t word) {
#if ROOST_ON_DEVICE
  for_each_of(team, n / 4, [&](std::uint32_t i) {
    reinterpret_cast<uint4*>(words)[i] = make_uint4(word, word, word, word);
  });
#else
  for_each_of(team, n, [&](std::uint32_t i) { words[i] = word; });
#endif
}

/// Numbers the different keys of a team's items, tile after tile, in the order in which they come first.
template <class Key, std::uint32_t Tile>
struct key_numbers {
  static constexpr std::uint32_t slots_least = 2 * Tile;
  static constexpr std::uint32_t none = ~0u;
  static constexpr std::uint32_t numbered =
      1u << 31;  // in a slot: below is a key's number, else the first item of this tile that has the key

  leading_bits region_of;  // what a key's region tells of its hash is the same for all of them
  std::uint32_t slots;
  std::uint32_t* slot;
  std::uint32_t* size;  // different keys
  std::uint32_t* warp_counts;
  Key* key;       // by number
  Key* tile_key;  // of the items of a tile

  ROOST_FN static key_numbers take(scratch_memory& memory, const leading_bits& region_of,
                                   std::uint32_t slots = slots_least) {
    key_numbers my;
    my.region_of = region_of;
    my.slots = slots;
    my.slot = memory.take<std::uint32_t>(slots);
    my.size = memory.take<std::uint32_t>(1);
    my.warp_counts = memory.take<std::uint32_t>(32);
    my.key = memory.take<Key>(Tile);
    return my;
  }

  template <class Team>
  ROOST_FN void clear(const Team& team) const {
    fill_words(team, slot, slots, none);
    if (team.rank() == 0) *size = 0;
    team.sync();
  }

  ROOST_FN std::uint32_t home_of(const Key& mine) const {
    const auto rest = split_hash(hash_of(mine, region_of.seed), region_of.regions).rest;
    return static_cast<std::uint32_t>(split_hash(rest, slots).digit);
  }

  /// The number of a key that has one.
  ROOST_FN std::uint32_t number_of(const Key& mine) const {
    for (std::uint32_t s = home_of(mine);; s = s + 1 == slots ? 0 : s + 1) {
      const std::uint32_t number = slot[s] & ~numbered;
      if (same_key(key[number], mine)) return number;
    }
  }

  /// number(held, i) = the number of the key of each of n items; on_new(number, held, i) hears of the first
  /// item of each key that had none. False if the keys are more than Tile: then the team has to stop.
  template <int PerWorker, class Team, class Items, class OnNew>
  ROOST_FN bool add(const Team& team, const Items& item, std::uint32_t n,
                    item_numbers<PerWorker, Team>& number, const OnNew& on_new) const {
    const std::uint32_t before = *size;
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) { tile_key[i] = item(held, i).key; });
    team.sync();
    bool full = false;
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
      const Key mine = item(held, i).key;
      const auto me = static_cast<std::uint32_t>(i);
      std::uint32_t s = home_of(mine);
      for (std::uint32_t steps = 0;; s = s + 1 == slots ? 0 : s + 1) {
        std::uint32_t seen = team.read(slot[s]);  // most find their key: a look is cheaper
        if (seen == none) seen = team.compare_exchange(slot[s], none, me);
        if (seen == none) break;
        const bool has_number = (seen & numbered) != 0;
        if (same_key(has_number ? key[seen & ~numbered] : tile_key[seen], mine)) {
          if (!has_number && me < seen) team.fetch_min(slot[s], me);
          break;
        }
        if (++steps == slots) {
          full = true;
          break;
        }
      }
      number(held, i) = s;
    });
    if (team.any(full)) return false;
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
      if (slot[number(held, i)] == static_cast<std::uint32_t>(i)) number(held, i) |= numbered;
    });
    const auto is_first = [&](int held, int i) { return (number(held, i) & numbered) != 0; };
    const auto name = [&](std::uint32_t fresh, int held, int i) {
      slot[number(held, i) & ~numbered] = fresh | numbered;
      key[fresh] = item(held, i).key;
      on_new(fresh, held, i);
    };
    std::uint32_t after = before;
    if constexpr (Team::size == 1) {
      for (int i = 0; i < static_cast<int>(n); ++i) {
        if (!is_first(i, i)) continue;
        if (after == Tile) return false;
        name(after++, i, i);
      }
    } else {
      std::uint32_t rank[PerWorker];
      after += rank_wanted(team, n, is_first, warp_counts, rank);
      if (after > Tile) return false;
      for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
        if (is_first(held, i)) name(before + rank[held], held, i);
      });
    }
    if (team.rank() == 0) *size = after;
    team.sync();
    for_each_held<PerWorker, true>(
        team, n, [&](int held, int i) { number(held, i) = slot[number(held, i) & ~numbered] & ~numbered; });
    return true;
  }
};

/// Chooses a key's region: by the leading bits of its hash, but keys that are known to be frequent have
/// regions of their own, behind those that they would be in. So all regions are in the order of their keys'
/// hashes.
template <class Key>
struct regions_and_frequent_keys {
  static constexpr std::uint32_t slots = tuning<cuda>::group_sample;

  leading_bits spread;
  int shift = 0;  // regions with the same leading bits share a slot: fewer than `slots`
  std::uint32_t count = 0;
  const Key* frequent = nullptr;        // in the order of their regions: those of slot s begin
  const std::uint16_t* slot = nullptr;  // at slot[s], and end at slot[s + 1]

  explicit regions_and_frequent_keys(const leading_bits& regions) : spread(regions) {
    while ((spread.regions - 1) >> shift >= slots) ++shift;
  }

  ROOST_FN std::uint32_t operator()(const Key& key) const {
    const std::uint32_t region = spread(key);
    if (count == 0) return region;
    std::uint32_t before = slot[region >> shift];
    for (std::uint32_t f = before; f < slot[(region >> shift) + 1]; ++f) {
      if (same_key(frequent[f], key)) return region + f + 1;
      before += spread(frequent[f]) < region ? 1 : 0;
    }
    return region + before;
  }

  ROOST_FN bool is_frequent(const Key& key) const {
    if (count == 0) return false;
    const std::uint32_t s = spread(key) >> shift;
    for (std::uint32_t f = slot[s]; f < slot[s + 1]; ++f) {
      if (same_key(frequent[f], key)) return true;
    }
    return false;
  }

  ROOST_FN std::uint32_t of_frequent(std::uint32_t f) const { return spread(frequent[f]) + f + 1; }

  /// The number, with those of frequent keys, of the first region at or behind one without.
  ROOST_FN std::uint32_t number_of(std::uint32_t region) const {
    return region + lower_bound(0u, count, [&](std::uint32_t f) { return spread(frequent[f]) < region; });
  }
};

/// Looks for keys that many items have, in a sample; one team.
template <class Place, class Key, class Source>
struct find_frequent_keys {
  static constexpr int threads = 1024;
  static constexpr bool large_scratch = true;
  static constexpr std::uint32_t sample = tuning<cuda>::group_sample;
  static constexpr std::uint32_t least = 4;  // in the sample: fewer tell little
  static constexpr std::uint32_t most = sample / least;
  using frequent_regions = regions_and_frequent_keys<Key>;
  static constexpr std::uint32_t slots = frequent_regions::slots;
  static_assert(slots <= sample);

  Source source;
  std::uint64_t step;      // items for one of the sample
  std::uint32_t at_least;  // in the sample
  frequent_regions to;     // which has none yet
  Key* frequent;
  std::uint16_t* slot;
  std::uint32_t* count;

  struct pieces {
    key_numbers<Key, sample> numbers;
    std::uint32_t* counts;  // of each different key; then of each slot
    std::uint32_t* rank;    // among those that are frequent
    std::uint32_t* number;
    std::uint32_t* chosen;
    std::uint32_t* region;  // of each that was chosen
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    pieces my;
    my.numbers = key_numbers<Key, sample>::take(memory, {to.spread.seed, 1});
    my.numbers.tile_key = memory.take<Key>(sample);
    my.counts = memory.take<std::uint32_t>(sample);
    my.rank = memory.take<std::uint32_t>(sample);
    my.number = memory.take<std::uint32_t>(std::is_same_v<Place, host> ? sample : 0);
    my.chosen = memory.take<std::uint32_t>(most);
    my.region = memory.take<std::uint32_t>(most);
    return my;
  }

  /// Item i of the sample: one of each piece of the items, but not of all the same place.
  struct sampled {
    const Source& source;
    std::uint64_t step;
    ROOST_FN auto operator[](std::size_t i) const { return source[i * step + mix64(i) % step]; }
  };

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    constexpr int per_worker = static_cast<int>(sample) / Team::size;
    scratch_memory all(memory);
    const pieces my = scratch(all);
    my.numbers.clear(team);
    for_each_of(team, sample, [&](std::uint32_t g) { my.counts[g] = 0; });
    team.sync();
    const sampled items{source, step};
    const held_items<per_worker, Team, sampled, true> mine(team, items, 0, sample);
    item_numbers<per_worker, Team> number(my.number);
    static_cast<void>(my.numbers.add(team, mine, sample, number,
                                     [](std::uint32_t, int, int) {}));  // they cannot be too many
    for_each_held<per_worker, true>(team, sample,
                                    [&](int held, int i) { team.fetch_add(my.counts[number(held, i)], 1u); });
    team.sync();
    for_each_of(team, sample, [&](std::uint32_t g) { my.rank[g] = my.counts[g] >= at_least ? 1 : 0; });
    team.sync();
    team.exclusive_scan(my.rank, my.rank, sample);
    team.sync();
    const std::uint32_t found = my.rank[sample - 1] + (my.counts[sample - 1] >= at_least ? 1 : 0);
    for_each_of(team, sample, [&](std::uint32_t g) {
      if (my.counts[g] < at_least) return;
      my.chosen[my.rank[g]] = g;
      my.region[my.rank[g]] = to.spread(my.numbers.key[g]);
    });
    team.sync();
    for_each_of(team, slots, [&](std::uint32_t s) { my.counts[s] = 0; });
    team.sync();
    for_each_of(team, found, [&](std::uint32_t c) {  // they are few
      std::uint32_t place = 0;
      for (std::uint32_t other = 0; other < found; ++other) {
        place += my.region[other] < my.region[c] || (my.region[other] == my.region[c] && other < c) ? 1 : 0;
      }
      frequent[place] = my.numbers.key[my.chosen[c]];
      team.fetch_add(my.counts[my.region[c] >> to.shift], 1u);
    });
    team.sync();
    team.exclusive_scan(my.counts, my.counts, slots);
    team.sync();
    for_each_of(team, slots, [&](std::uint32_t s) { slot[s] = static_cast<std::uint16_t>(my.counts[s]); });
    if (team.rank() == 0) {
      slot[slots] = static_cast<std::uint16_t>(found);
      *count = found;
    }
  }
};

/// What the groups of a region are written to. Group g of a region whose first item is at b stands at b + g,
/// until it is known how many there are before.
template <class Key, class Value>
struct group_output {
  Key* keys;
  Value* firsts;           // the first value of each; not for ordered groups
  std::uint32_t* counts;   // items of each; of ordered groups where the first one is, from b on
  std::uint64_t* sizes;    // groups of each region
  Value* values;           // of ordered groups
  std::uint16_t* numbers;  // of each item, the number of its group in the region; or null
  std::uint32_t* failed;   // regions with too many different keys
};

/// Groups the items of a region. Ordered: also puts their values in the order of the groups, and in a group
/// in the order of the items.
template <class Place, class Key, class Value, bool Ordered>
struct group_regions {
  static constexpr bool one_worker = std::is_same_v<Place, host>;
  static constexpr int threads = tuning<cuda>::group_threads;
  static constexpr bool large_scratch = true;
  static constexpr int teams_at_once = tuning<cuda>::group_teams_at_once + (Ordered ? 0 : 1);
  static constexpr std::uint32_t tile = group_tile<Place, Key, Value>;
  static constexpr std::uint32_t digits =
      256;  // of groups' numbers, for the order in one step; else two steps of
  static constexpr std::uint32_t step_bits = 6;
  static_assert(one_worker || tile <= 1 << 2 * step_bits);
  using item = pair<Key, Value>;

  const item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  regions_and_frequent_keys<Key> region_of;
  group_output<Key, Value> to;

  struct pieces {
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
    constexpr bool sorts = Ordered && !one_worker;
    pieces my{};
    my.numbers = key_numbers<Key, tile>::take(memory, region_of.spread,
                                              (sorts ? 2 : 1) * key_numbers<Key, tile>::slots_least);
    my.next = memory.take<std::uint32_t>(tile);
    my.number = memory.take<std::uint32_t>(one_worker ? tile : 0);
    if constexpr (sorts) {
      my.tile_start = my.numbers.slot + key_numbers<Key, tile>::slots_least;
      my.tile_number = my.tile_start + tile;
    }
    my.digit_count = memory.take<std::uint32_t>(sorts ? digits : 0);
    my.warp_count = memory.take<std::uint16_t>(sorts ? rank_counters<block_team<threads>>(digits) : 0);
    scratch_memory same = memory;
    my.numbers.tile_key = memory.take<Key>(tile);
    my.tile_value = same.take<Value>(sorts ? tile : 0);
    if (same.used() > memory.used()) memory = same;
    return my;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte* memory) const {
    constexpr int per_worker = static_cast<int>(tile) / Team::size;
    scratch_memory all(memory);
    pieces my = scratch(all);
    const std::uint64_t first = begins[region], count = ends[region] - first;
    const bool one_tile = count <= tile;
    if (!one_tile) my.numbers.slots = key_numbers<Key, tile>::slots_least;
    if (!one_tile && region_of.is_frequent(items[first].key)) {
      if (team.rank() == 0) write_only_group(region, first, count);
      return;
    }
    fill_words(team, my.next, tile, 0);
    my.numbers.clear(team);
    item_numbers<per_worker, Team> number(my.number);
    const auto each_tile = [&](const auto& body) {
      for (std::uint64_t done = 0; done < count; done += tile) {
        const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - done));
        const held_items<per_worker, Team, const item*, true> mine(team, items, first + done, n);
        if (!body(mine, n, first + done)) return false;
      }
      return true;
    };
    const auto count_items = [&](std::uint32_t n) {
      for_each_held<per_worker, true>(team, n,
                                      [&](int held, int i) { team.fetch_add(my.next[number(held, i)], 1u); });
      team.sync();
    };
    const bool fits = each_tile([&](const auto& mine, std::uint32_t n, [[maybe_unused]] std::uint64_t at) {
      const bool good = my.numbers.add(team, mine, n, number, [&](std::uint32_t g, int held, int i) {
        to.keys[first + g] = mine(held, i).key;
        if constexpr (!Ordered) to.firsts[first + g] = mine(held, i).value;
      });
      if (!good) return false;
      if constexpr (Ordered) {
        if (one_tile && *my.numbers.size == n) {  // all keys are different: their order is that of the items
          for_each_held<per_worker, true>(team, n, [&](int held, int i) {
            to.values[first + static_cast<std::uint32_t>(i)] = mine(held, i).value;
            to.counts[first + static_cast<std::uint32_t>(i)] = static_cast<std::uint32_t>(i);
          });
          return true;
        }
        const std::uint32_t groups = *my.numbers.size;
        const bool counted_in_order = Team::size > 1 && one_tile && groups <= digits;
        if (!counted_in_order) count_items(n);
        if (one_tile) {
          if (!counted_in_order) write_starts(team, my, first);
          put_in_order<per_worker>(team, my, first, mine, n, true, number);
          if (counted_in_order)
            for_each_of(team, groups, [&](std::uint32_t g) { to.counts[first + g] = my.digit_count[g]; });
        }
      } else {
        if (to.numbers != nullptr) {
          for_each_held<per_worker, true>(team, n, [&](int held, int i) {
            to.numbers[at + static_cast<std::uint32_t>(i)] = static_cast<std::uint16_t>(number(held, i));
          });
        }
        count_items(n);
      }
      return true;
    });
    if (!fits) {
      if (team.rank() == 0) fetch_add(*to.failed, 1u);
      return;
    }
    if (team.rank() == 0) to.sizes[region] = *my.numbers.size;
    if constexpr (Ordered) {
      if (one_tile) return;
      write_starts(team, my, first);
      each_tile([&](const auto& mine, std::uint32_t n, std::uint64_t) {
        for_each_held<per_worker, true>(
            team, n, [&](int held, int i) { number(held, i) = my.numbers.number_of(mine(held, i).key); });
        put_in_order<per_worker>(team, my, first, mine, n, false, number);
        return true;
      });
    } else {
      for_each_of(team, *my.numbers.size, [&](std::uint32_t g) { to.counts[first + g] = my.next[g]; });
    }
  }

  /// The group of a frequent key: all items of its region. What is to do for each of them,
  /// for_each_frequent_item does.
  ROOST_FN void write_only_group(std::size_t region, std::uint64_t first, std::uint64_t count) const {
    to.sizes[region] = 1;
    to.keys[first] = items[first].key;
    if constexpr (!Ordered) to.firsts[first] = items[first].value;
    to.counts[first] = Ordered ? 0 : static_cast<std::uint32_t>(count);
  }

  template <class Team>
  ROOST_FN void write_starts(const Team& team, const pieces& my, std::uint64_t first) const {
    const std::uint32_t groups = *my.numbers.size;
    team.exclusive_scan(my.next, my.next, groups);
    team.sync();
    for_each_of(team, groups, [&](std::uint32_t g) { to.counts[first + g] = my.next[g]; });
  }

  /// Writes the values of a tile behind those of earlier tiles.
  template <int PerWorker, class Team, class Items>
  ROOST_FN void put_in_order(const Team& team, const pieces& my, std::uint64_t first, const Items& mine,
                             std::uint32_t n, bool one_tile, item_numbers<PerWorker, Team>& number) const {
    if constexpr (Team::size == 1) {
      for (int i = 0; i < static_cast<int>(n); ++i)
        to.values[first + my.next[number(i, i)]++] = mine(i, i).value;
    } else {
      Value value[PerWorker];
      for_each_held<PerWorker, true>(team, n, [&](int held, int i) { value[held] = mine(held, i).value; });
      const std::uint32_t groups = *my.numbers.size;
      if (groups <= digits) {
        sort_by_digit<PerWorker>(team, my, n, number, value, groups, [](std::uint32_t g) { return g; });
      } else {
        sort_by_digit<PerWorker>(team, my, n, number, value, 1 << step_bits,
                                 [](std::uint32_t g) { return g & ((1u << step_bits) - 1); });
        for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
          number(held, i) = my.tile_number[i];
          value[held] = my.tile_value[i];
        });
        sort_by_digit<PerWorker>(team, my, n, number, value, ((groups - 1) >> step_bits) + 1,
                                 [](std::uint32_t g) { return g >> step_bits; });
      }
      if (one_tile)
        return for_each_of(team, n, [&](std::uint32_t i) { to.values[first + i] = my.tile_value[i]; });
      const auto begins_group = [&](std::uint32_t i) {
        return i == 0 || my.tile_number[i - 1] != my.tile_number[i];
      };
      for_each_of(team, n, [&](std::uint32_t i) {
        if (begins_group(i)) my.tile_start[my.tile_number[i]] = i;
      });
      team.sync();
      for_each_of(team, n, [&](std::uint32_t i) {
        const std::uint32_t g = my.tile_number[i];
        to.values[first + my.next[g] + (i - my.tile_start[g])] = my.tile_value[i];
      });
      team.sync();
      for_each_of(team, n, [&](std::uint32_t i) {
        if (i + 1 == n || begins_group(i + 1))
          my.next[my.tile_number[i]] += i + 1 - my.tile_start[my.tile_number[i]];
      });
      team.sync();
    }
  }

  /// One step of a radix sort of a tile by the numbers of its groups.
  template <int PerWorker, class Team, class DigitOf>
  ROOST_FN void sort_by_digit(const Team& team, const pieces& my, std::uint32_t n,
                              item_numbers<PerWorker, Team>& number, const Value (&value)[PerWorker],
                              std::uint32_t digit_count, const DigitOf& digit_of) const {
    std::uint32_t rank[PerWorker];
    rank_in_order(
        team, n, digit_count, [&](int held, int i) { return digit_of(number(held, i)); }, my.warp_count,
        my.digit_count, rank);
    team.exclusive_scan(my.digit_count, my.digit_count, digit_count);
    team.sync();
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
      const std::uint32_t at = my.digit_count[digit_of(number(held, i))] + rank[held];
      my.tile_number[at] = number(held, i);
      my.tile_value[at] = value[held];
    });
    team.sync();
  }
};

/// put(i, region) for the items of frequent keys. Teams share all items, of whatever key, so that any key is
/// work for all.
template <class Place, class Key, class Put>
struct each_frequent_item {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = tuning<Place>::expand_tile;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  regions_and_frequent_keys<Key> region_of;
  std::uint64_t n;
  Put put;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::uint64_t first = index * tile, end = smaller(first + tile, n);
    std::uint32_t f = lower_bound(0u, region_of.count,
                                  [&](std::uint32_t i) { return ends[region_of.of_frequent(i)] <= first; });
    for (; f < region_of.count; ++f) {
      const std::uint32_t region = region_of.of_frequent(f);
      if (begins[region] >= end) return;
      const std::uint64_t from = larger(begins[region], first);
      for_each_of(team, static_cast<std::uint32_t>(smaller(ends[region], end) - from),
                  [&](std::uint32_t i) { put(from + i, region); });
    }
  }
};

template <class Place, class Key, class Item, class Put>
void for_each_frequent_item(const Place& place, const partitioned<Item, Place>& parts,
                            const regions_and_frequent_keys<Key>& region_of, std::uint64_t n,
                            const Put& put) {
  using kernel = each_frequent_item<Place, Key, Put>;
  if (region_of.count != 0)
    place.launch(ceil_div<std::size_t>(n, kernel::tile), 0,
                 kernel{parts.begins(), parts.ends(), region_of, n, put});
}

template <class Key, class Value>
struct copy_value {
  const pair<Key, Value>* from;
  Value* to;
  ROOST_FN void operator()(std::uint64_t i, std::uint32_t) const { to[i] = from[i].value; }
};

/// Brings the groups of all regions together.
template <class Place, class Key, class Value, bool Ordered>
struct pack_groups {
  static constexpr int threads = 256;
  group_output<Key, Value> from;  // sizes: of the groups in regions before, one more than regions
  const std::uint64_t* begins;
  Key* keys;
  Value* firsts;
  std::uint64_t* counts;               // ordered: offsets
  pair<Key, std::uint32_t>* numbered;  // or null

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte*) const {
    constexpr int per_worker = tuning<Place>::build_held;
    constexpr std::uint32_t at_once = per_worker * Team::size;
    const std::uint64_t offset = Ordered ? begins[region] : 0;
    const auto size = static_cast<std::uint32_t>(from.sizes[region + 1] - from.sizes[region]);
    for (std::uint32_t done = 0; done < size; done += at_once) {
      const std::uint32_t n = smaller(at_once, size - done);
      const std::uint64_t first = begins[region] + done, at = from.sizes[region] + done;
      const held_items<per_worker, Team, const Key*> key(
          team, from.keys, first, n);  // all on their way before the first is waited for
      const held_items<per_worker, Team, const std::uint32_t*> count(team, from.counts, first, n);
      for_each_held<per_worker>(team, n, [&](int held, int i) {
        const std::uint64_t g = at + static_cast<std::uint32_t>(i);
        keys[g] = key(held, i);
        counts[g] = offset + count(held, i);
        if (numbered != nullptr) numbered[g] = {key(held, i), static_cast<std::uint32_t>(g)};
        if constexpr (!Ordered) firsts[g] = from.firsts[first + static_cast<std::uint32_t>(i)];
      });
    }
  }
};

/// The number of regions for items: a few more than are needed, so that it can be halved often. Then a table
/// of few different keys takes the groups of several regions as they lie.
inline std::uint32_t group_regions_of(double needed) {
  const auto least = static_cast<std::uint32_t>(larger(2.0, std::ceil(needed)));
  const std::uint32_t unit = std::bit_floor(larger(least / 64, 1u));
  return ceil_div(least, unit) * unit;
}

/// What groups tell besides.
enum class and_also { nothing, way_back, numbered_keys };

/// Different keys, in the order of their hashes' leading bits and then of their first items.
template <class Key, class Value, class Place>
struct groups {
  array<Key, Place> keys;
  array<Value, Place> firsts;          // the value of the first item of each; not if ordered
  array<std::uint64_t, Place> counts;  // items of each; if ordered, where its values begin, and the end
  array<Value, Place> values;          // ordered: of all items
  leading_bits region_of{};
  array<std::uint64_t, Place> begins;                    // of each region's groups, and the end
  array<pair<Key, std::uint32_t>, Place> numbered_keys;  // each with its number, if asked for
  std::size_t scratch_bytes = 0;

  // The way back, if asked for: the items' regions, those of frequent keys among them; the groups in regions
  // before; and the number of each item's group in its region.
  std::optional<partitioned<pair<Key, Value>, Place>> parts;
  array<std::uint64_t, Place> groups_before;
  array<std::uint16_t, Place> numbers;
  regions_and_frequent_keys<Key> all_regions{{0, 2}};
  array<Key, Place> frequent;
  array<std::uint16_t, Place> slot;

  explicit groups(const Place& place)
      : keys(place, 0),
        firsts(place, 0),
        counts(place, 0),
        values(place, 0),
        begins(place, 0),
        numbered_keys(place, 0),
        groups_before(place, 0),
        numbers(place, 0),
        frequent(place, 0),
        slot(place, 0) {}

  std::size_t size() const { return keys.size(); }
};

template <class Key>
struct begin_of_region {
  regions_and_frequent_keys<Key> region_of;
  const std::uint64_t* groups_before;
  ROOST_FN std::uint64_t operator()(std::size_t region) const {
    return groups_before[region_of.number_of(static_cast<std::uint32_t>(region))];
  }
};

/// Groups items by key. Synchronises. Throws out_of_memory, build_error.
template <bool Ordered, and_also Also = and_also::nothing, class Place, class Source>
auto group(const Place& place, const Source& source, std::uint64_t seed, const char* where) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  using Key = decltype(item::key);
  using Value = decltype(item::value);
  using kernel = group_regions<Place, Key, Value, Ordered>;
  using sampler = find_frequent_keys<Place, Key, Source>;
  const std::size_t n = source.size();
  constexpr bool way_back = Also == and_also::way_back;
  constexpr partition_kind partitioning{.stable = true, .way_back = way_back};
  groups<Key, Value, Place> result(place);
  if (n == 0) {
    result.counts = array<std::uint64_t, Place>(place, 1);
    result.region_of = {seed, 2};
    result.begins = array<std::uint64_t, Place>(place, 3);
    place.fill(result.counts.data(), 0, result.counts.bytes());
    place.fill(result.begins.data(), 0, result.begins.bytes());
    return result;
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    // A region of different keys fills its tile nearly: seven standard deviations of a random split are left.
    const double mean =
        (kernel::tile - 7 * std::sqrt(static_cast<double>(kernel::tile))) / (1 + attempt / 4.0);
    const std::uint32_t regions = group_regions_of(static_cast<double>(n) / mean);
    regions_and_frequent_keys<Key> region_of({seed_of_attempt(seed, attempt), regions});

    array<Key, Place> frequent(place, 0);
    array<std::uint16_t, Place> slot(place, 0);
    const double expected = static_cast<double>(tuning<Place>::group_tiles_most) * kernel::tile *
                            sampler::sample / static_cast<double>(n);
    if (expected < sampler::sample / 2) {
      frequent = array<Key, Place>(place, sampler::most);
      slot = array<std::uint16_t, Place>(place, sampler::slots + 1);
      array<std::uint32_t, Place> count(place, 1);
      const sampler sample{
          source,      n / sampler::sample, larger(sampler::least, static_cast<std::uint32_t>(expected)),
          region_of,   frequent.data(),     slot.data(),
          count.data()};
      place.launch(1, scratch_bytes_of(sample), sample);
      place.copy_to_host(&region_of.count, count.data(), sizeof(region_of.count));
      region_of.frequent = frequent.data();
      region_of.slot = slot.data();
    }

    const std::uint32_t all_regions = regions + region_of.count;
    partitioner<Place, item, partitioning> partitioner(place, all_regions, room::exact, nullptr);
    auto parts = partitioner.run(source, region_of);
    array<Key, Place> keys(place, n);
    array<Value, Place> firsts(place, Ordered ? 0 : n), values(place, Ordered ? n : 0);
    array<std::uint32_t, Place> counts(place, n), failed(place, 1);
    array<std::uint64_t, Place> sizes(place, std::size_t{all_regions} + 1);
    array<std::uint16_t, Place> numbers(place, way_back ? n : 0);
    place.fill(failed.data(), 0, failed.bytes());
    place.fill(sizes.data(), 0, sizes.bytes());
    const group_output<Key, Value> to{keys.data(),   firsts.data(),  counts.data(), sizes.data(),
                                      values.data(), numbers.data(), failed.data()};
    const kernel run{parts.items(), parts.begins(), parts.ends(), region_of, to};
    place.launch(all_regions, scratch_bytes_of(run), run);
    if constexpr (Ordered) {
      for_each_frequent_item(place, parts, region_of, n,
                             copy_value<Key, Value>{parts.items(), values.data()});
    }
    place.exclusive_scan(sizes.data(), sizes.data(), sizes.size());
    std::uint64_t size = 0;
    std::uint32_t bad = 0;
    place.copy_to_host(&bad, failed.data(), sizeof(bad));
    if (bad != 0) continue;
    place.copy_to_host(&size, sizes.data() + all_regions, sizeof(size));
    result.keys = array<Key, Place>(place, size);
    result.firsts = array<Value, Place>(place, Ordered ? 0 : size);
    result.counts = array<std::uint64_t, Place>(place, size + (Ordered ? 1 : 0));
    result.numbered_keys =
        array<pair<Key, std::uint32_t>, Place>(place, Also == and_also::numbered_keys ? size : 0);
    const pack_groups<Place, Key, Value, Ordered> pack{to,
                                                       parts.begins(),
                                                       result.keys.data(),
                                                       result.firsts.data(),
                                                       result.counts.data(),
                                                       result.numbered_keys.data()};
    place.launch(all_regions, 0, pack);
    if constexpr (Ordered) {
      const std::uint64_t end = n;
      place.copy_from_host(result.counts.data() + size, &end, sizeof(end));
    }
    result.region_of = region_of.spread;
    result.begins = array<std::uint64_t, Place>(place, std::size_t{regions} + 1);
    write_numbers(place, result.begins.size(), begin_of_region<Key>{region_of, sizes.data()},
                  result.begins.data());
    place.synchronize();
    result.scratch_bytes = parts.scratch_bytes() + keys.bytes() + firsts.bytes() + counts.bytes() +
                           sizes.bytes() + numbers.bytes() + result.numbered_keys.bytes();
    result.values = std::move(values);
    if constexpr (way_back) {
      result.parts = std::move(parts);
      result.groups_before = std::move(sizes);
      result.numbers = std::move(numbers);
      result.all_regions = region_of;
      result.frequent = std::move(frequent);
      result.slot = std::move(slot);
    }
    return result;
  }
  detail::raise<build_error>(
      {where,
       ": the keys of some region are more than a team can number, with 4 seeds; keys that were "
       "chosen to collide?"});
}

/// A map of pairs of the groups' keys, in the order of the groups: built as they lie.
template <class Map, class Place, class Key, class Value>
Map map_of_groups(const Place& place, const groups<Key, Value, Place>& from,
                  const array<pair<Key, std::uint32_t>, Place>& pairs, double load_factor) {
  const items_in_order<pair<Key, std::uint32_t>> source{pairs.data(), pairs.size(), from.region_of,
                                                        from.begins.data()};
  return frozen_source::build<Map>(place, source, {.load_factor = load_factor, .seed = from.region_of.seed});
}

/// What of_group has of the groups of a region's items; not of a frequent key's.
template <class Place, class Key, class Value, class T>
struct answer_regions {
  static constexpr int threads = 256;
  const pair<Key, Value>* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  regions_and_frequent_keys<Key> region_of;
  const std::uint64_t* groups_before;
  const std::uint16_t* numbers;
  const T* of_group;
  T* to;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte*) const {
    constexpr std::uint32_t tile = group_tile<Place, Key, Value>;
    constexpr int per_worker = static_cast<int>(tile) / Team::size;
    const std::uint64_t end = ends[region];
    if (end - begins[region] > tile && region_of.is_frequent(items[begins[region]].key)) return;
    const T* const of_mine = of_group + groups_before[region];
    for (std::uint64_t first = begins[region]; first < end; first += tile) {
      const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, end - first));
      const held_items<per_worker, Team, const std::uint16_t*> number(
          team, numbers, first, n);  // all on their way before the first is waited for
      T mine[Team::size == 1 ? 1 : per_worker];
      if constexpr (Team::size > 1)
        for_each_held<per_worker>(team, n, [&](int held, int i) { mine[held] = of_mine[number(held, i)]; });
      for_each_held<per_worker>(team, n, [&](int held, int i) {
        to[first + static_cast<std::uint32_t>(i)] = Team::size > 1 ? mine[held] : of_mine[number(held, i)];
      });
    }
  }
};

template <class T>
struct answer_of_only_group {
  const std::uint64_t* groups_before;
  const T* of_group;
  T* to;
  ROOST_FN void operator()(std::uint64_t i, std::uint32_t region) const {
    to[i] = of_group[groups_before[region]];
  }
};

/// to[i] = what of_group has of the group of item i, for groups with the way back.
template <class T, class Key, class Value, class Place>
void write_of_each_item(const Place& place, const groups<Key, Value, Place>& from, const T* of_group,
                        array<T, Place>& to) {
  if (!from.parts) return;  // no items
  const std::size_t n = from.numbers.size();
  array<T, Place> in_regions(place, n);
  const auto& parts = *from.parts;
  using kernel = answer_regions<Place, Key, Value, T>;
  const kernel run{
      parts.items(),       parts.begins(), parts.ends(),     from.all_regions, from.groups_before.data(),
      from.numbers.data(), of_group,       in_regions.data()};
  place.launch(parts.regions(), 0, run);
  for_each_frequent_item(place, parts, from.all_regions, n,
                         answer_of_only_group<T>{from.groups_before.data(), of_group, in_regions.data()});
  parts.restore(place, in_regions, to);
}

}  // namespace roost::detail
