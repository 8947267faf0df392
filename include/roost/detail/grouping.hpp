#pragma once

#include "roost/detail/bulk.hpp"
#include "roost/detail/ranks.hpp"

// Grouping: items with the same key come together. They are partitioned by region, in order; a team numbers the different keys of a region, and puts its
// items in the order of their keys' numbers. Keys that very many items have get regions of their own, which need no more than the partition.

namespace roost::detail {

/// The items that a team groups at once, and the different keys that a region can have.
template <class Place, class Key, class Value>
constexpr std::uint32_t group_tile = [] {
  constexpr std::size_t fit = tuning<Place>::group_bytes / (sizeof(Key) + larger(sizeof(Key), sizeof(Value)) + 22);
  constexpr std::size_t threads = tuning<cuda>::group_threads;
  return static_cast<std::uint32_t>(larger<std::size_t>(smaller<std::size_t>(fit / threads, tuning<Place>::group_held_most), 1) * threads);
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

/// Numbers the different keys of a team's items, tile after tile, in the order in which they come first.
template <class Key, std::uint32_t Tile>
struct key_numbers {
  static constexpr std::uint32_t slots = 2 * Tile;
  static constexpr std::uint32_t none = ~0u;
  static constexpr std::uint32_t numbered = 1u << 31;  // in a slot: below is a key's number, else the first item of this tile that has the key

  leading_bits region_of;  // what a key's region tells of its hash is the same for all of them
  std::uint32_t* slot;
  std::uint32_t* size;     // different keys
  std::uint32_t* warp_counts;
  Key* key;                // by number
  Key* tile_key;           // of the items of a tile

  ROOST_FN static key_numbers take(scratch_memory& memory, const leading_bits& region_of) {
    key_numbers my;
    my.region_of = region_of;
    my.slot = memory.take<std::uint32_t>(slots);
    my.size = memory.take<std::uint32_t>(1);
    my.warp_counts = memory.take<std::uint32_t>(32);
    my.key = memory.take<Key>(Tile);
    return my;
  }

  template <class Team>
  ROOST_FN void clear(const Team& team) const {
    for_each_of(team, slots, [&](std::uint32_t s) { slot[s] = none; });
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

  /// number(held, i) = the number of the key of each of n items; on_new(number, held, i) hears of the first item of each key that had none. False if the keys are more than
  /// Tile: then the team has to stop.
  template <int PerWorker, class Team, class Items, class OnNew>
  ROOST_FN bool add(const Team& team, const Items& item, std::uint32_t n, item_numbers<PerWorker, Team>& number, const OnNew& on_new) const {
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
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) { number(held, i) = slot[number(held, i) & ~numbered] & ~numbered; });
    return true;
  }
};

/// Chooses a key's region: by the leading bits of its hash, but keys that are known to be frequent have regions of their own, behind the others.
template <class Key>
struct regions_and_frequent_keys {
  leading_bits spread;
  const Key* frequent;
  const std::uint32_t* slot;  // a table of their numbers
  std::uint32_t slots;
  std::uint32_t count = 0;

  static constexpr std::uint32_t none = ~0u;
  ROOST_FN std::uint32_t home_of(const Key& key) const { return static_cast<std::uint32_t>(split_hash(hash_of(key, spread.seed), slots).digit); }

  ROOST_FN std::uint32_t operator()(const Key& key) const {
    if (count != 0) {
      for (std::uint32_t s = home_of(key); slot[s] != none; s = s + 1 == slots ? 0 : s + 1) {
        if (same_key(frequent[slot[s]], key)) return spread.regions + slot[s];
      }
    }
    return spread(key);
  }
};

/// Looks for keys that many items have, in a sample; one team.
template <class Place, class Key, class Source>
struct find_frequent_keys {
  static constexpr int threads = tuning<cuda>::group_threads;
  static constexpr std::uint32_t sample = tuning<cuda>::group_sample;
  static constexpr std::uint32_t least = 4;  // in the sample: fewer tell little
  static constexpr std::uint32_t most = sample / least;
  static constexpr std::uint32_t slots = 4 * most;

  Source source;
  std::uint64_t step;      // items for one of the sample
  std::uint32_t at_least;  // in the sample
  leading_bits hash;
  Key* frequent;           // in the order in which the sample has them
  std::uint32_t* slot;
  std::uint32_t* count;

  struct pieces {
    key_numbers<Key, sample> numbers;
    std::uint32_t* counts;
    std::uint32_t* rank;
    std::uint32_t* number;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    pieces my;
    my.numbers = key_numbers<Key, sample>::take(memory, {hash.seed, 1});
    my.numbers.tile_key = memory.take<Key>(sample);
    my.counts = memory.take<std::uint32_t>(sample);
    my.rank = memory.take<std::uint32_t>(sample);
    my.number = memory.take<std::uint32_t>(std::is_same_v<Place, host> ? sample : 0);
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
    using frequent_regions = regions_and_frequent_keys<Key>;
    scratch_memory all(memory);
    const pieces my = scratch(all);
    my.numbers.clear(team);
    for_each_of(team, sample, [&](std::uint32_t g) { my.counts[g] = 0; });
    for_each_of(team, slots, [&](std::uint32_t s) { slot[s] = frequent_regions::none; });
    team.sync();
    const sampled items{source, step};
    const held_items<per_worker, Team, sampled, true> mine(team, items, 0, sample);
    item_numbers<per_worker, Team> number(my.number);
    static_cast<void>(my.numbers.add(team, mine, sample, number, [](std::uint32_t, int, int) {}));  // they cannot be too many
    for_each_held<per_worker, true>(team, sample, [&](int held, int i) { team.fetch_add(my.counts[number(held, i)], 1u); });
    team.sync();
    for_each_of(team, sample, [&](std::uint32_t g) { my.rank[g] = my.counts[g] >= at_least ? 1 : 0; });
    team.sync();
    team.exclusive_scan(my.rank, my.rank, sample);
    team.sync();
    const frequent_regions to{hash, frequent, slot, slots};
    for_each_of(team, *my.numbers.size, [&](std::uint32_t g) {
      if (my.counts[g] < at_least) return;
      frequent[my.rank[g]] = my.numbers.key[g];
      std::uint32_t s = to.home_of(my.numbers.key[g]);
      while (team.compare_exchange(slot[s], frequent_regions::none, my.rank[g]) != frequent_regions::none) s = s + 1 == slots ? 0 : s + 1;
      team.fetch_add(*count, 1u);
    });
  }
};

/// What the groups of a region are written to. Group g of a region whose first item is at b stands at b + g, until it is known how many there are before.
template <class Key, class Value>
struct group_output {
  Key* keys;
  Value* firsts;          // the first value of each; not for ordered groups
  std::uint32_t* counts;  // items of each; of ordered groups where the first one is, from b on
  std::uint64_t* sizes;   // groups of each region
  Value* values;          // of ordered groups
  std::uint32_t* failed;  // regions with too many different keys
};

/// Groups the items of a region. Ordered: also puts their values in the order of the groups, and in a group in the order of the items.
template <class Place, class Key, class Value, bool Ordered>
struct group_regions {
  static constexpr bool one_worker = std::is_same_v<Place, host>;
  static constexpr int threads = tuning<cuda>::group_threads;
  static constexpr int teams_at_once = tuning<cuda>::group_teams_at_once + (Ordered ? 0 : 1);
  static constexpr std::uint32_t tile = group_tile<Place, Key, Value>;
  static constexpr std::uint32_t digits = 256;  // of groups' numbers, for the order in one step; else two steps of
  static constexpr std::uint32_t step_bits = 6;
  static_assert(one_worker || tile <= 1 << 2 * step_bits);
  using item = pair<Key, Value>;

  const item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  leading_bits region_of;
  group_output<Key, Value> to;

  struct pieces {
    key_numbers<Key, tile> numbers;
    std::uint32_t* next;         // of each group: its items, then where the next one goes
    std::uint32_t* number;       // of each item, for one worker
    std::uint32_t* tile_start;   // of each group of a tile in order
    std::uint32_t* digit_count;
    std::uint16_t* warp_count;
    std::uint32_t* tile_number;  // a tile in order: groups
    Value* tile_value;           // and values, where its keys were
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    constexpr bool sorts = Ordered && !one_worker;
    pieces my;
    my.numbers = key_numbers<Key, tile>::take(memory, region_of);
    my.next = memory.take<std::uint32_t>(tile);
    my.number = memory.take<std::uint32_t>(one_worker ? tile : 0);
    my.tile_start = memory.take<std::uint32_t>(sorts ? tile : 0);
    my.digit_count = memory.take<std::uint32_t>(sorts ? digits : 0);
    my.warp_count = memory.take<std::uint16_t>(sorts ? rank_counters<block_team<threads>>(digits) : 0);
    my.tile_number = memory.take<std::uint32_t>(sorts ? tile : 0);
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
    const pieces my = scratch(all);
    const std::uint64_t first = begins[region], count = ends[region] - first;
    const bool one_tile = count <= tile;
    for_each_of(team, tile, [&](std::uint32_t g) { my.next[g] = 0; });
    my.numbers.clear(team);
    item_numbers<per_worker, Team> number(my.number);
    const auto each_tile = [&](const auto& body) {
      for (std::uint64_t done = 0; done < count; done += tile) {
        const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - done));
        const held_items<per_worker, Team, const item*, true> mine(team, items, first + done, n);
        if (!body(mine, n)) return false;
      }
      return true;
    };
    const auto count_items = [&](std::uint32_t n) {
      for_each_held<per_worker, true>(team, n, [&](int held, int i) { team.fetch_add(my.next[number(held, i)], 1u); });
      team.sync();
    };
    const bool fits = each_tile([&](const auto& mine, std::uint32_t n) {
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
        count_items(n);
        if (one_tile) {
          write_starts(team, my, first);
          put_in_order<per_worker>(team, my, first, mine, n, true, number);
        }
      } else {
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
      each_tile([&](const auto& mine, std::uint32_t n) {
        for_each_held<per_worker, true>(team, n, [&](int held, int i) { number(held, i) = my.numbers.number_of(mine(held, i).key); });
        put_in_order<per_worker>(team, my, first, mine, n, false, number);
        return true;
      });
    } else {
      for_each_of(team, *my.numbers.size, [&](std::uint32_t g) { to.counts[first + g] = my.next[g]; });
    }
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
  ROOST_FN void put_in_order(const Team& team, const pieces& my, std::uint64_t first, const Items& mine, std::uint32_t n, bool one_tile,
                             item_numbers<PerWorker, Team>& number) const {
    if constexpr (Team::size == 1) {
      for (int i = 0; i < static_cast<int>(n); ++i) to.values[first + my.next[number(i, i)]++] = mine(i, i).value;
    } else {
      Value value[PerWorker];
      for_each_held<PerWorker, true>(team, n, [&](int held, int i) { value[held] = mine(held, i).value; });
      const std::uint32_t groups = *my.numbers.size;
      if (groups <= digits) {
        sort_by_digit<PerWorker>(team, my, n, number, value, groups, [](std::uint32_t g) { return g; });
      } else {
        sort_by_digit<PerWorker>(team, my, n, number, value, 1 << step_bits, [](std::uint32_t g) { return g & ((1u << step_bits) - 1); });
        for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
          number(held, i) = my.tile_number[i];
          value[held] = my.tile_value[i];
        });
        sort_by_digit<PerWorker>(team, my, n, number, value, ((groups - 1) >> step_bits) + 1, [](std::uint32_t g) { return g >> step_bits; });
      }
      if (one_tile) return for_each_of(team, n, [&](std::uint32_t i) { to.values[first + i] = my.tile_value[i]; });
      const auto begins_group = [&](std::uint32_t i) { return i == 0 || my.tile_number[i - 1] != my.tile_number[i]; };
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
        if (i + 1 == n || begins_group(i + 1)) my.next[my.tile_number[i]] += i + 1 - my.tile_start[my.tile_number[i]];
      });
      team.sync();
    }
  }

  /// One step of a radix sort of a tile by the numbers of its groups.
  template <int PerWorker, class Team, class DigitOf>
  ROOST_FN void sort_by_digit(const Team& team, const pieces& my, std::uint32_t n, item_numbers<PerWorker, Team>& number, const Value (&value)[PerWorker],
                              std::uint32_t digit_count, const DigitOf& digit_of) const {
    std::uint32_t rank[PerWorker];
    rank_in_order(team, n, digit_count, [&](int held, int i) { return digit_of(number(held, i)); }, my.warp_count, my.digit_count, rank);
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

/// The groups of a frequent key: all items of its region.
template <class Key, class Value, bool Ordered>
struct group_frequent {
  const pair<Key, Value>* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  std::uint32_t regions;  // before them
  group_output<Key, Value> to;

  ROOST_FN void operator()(std::size_t i) const {
    const std::uint64_t region = regions + i, first = begins[region], count = ends[region] - first;
    to.sizes[region] = count != 0 ? 1 : 0;
    if (count == 0) return;
    to.keys[first] = items[first].key;
    if constexpr (!Ordered) to.firsts[first] = items[first].value;
    to.counts[first] = Ordered ? 0 : static_cast<std::uint32_t>(count);
  }
};

template <class Key, class Value>
struct copy_values {
  const pair<Key, Value>* from;
  Value* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = from[i].value; }
};

/// Brings the groups of all regions together.
template <class Key, class Value, bool Ordered>
struct pack_groups {
  static constexpr int threads = 128;
  group_output<Key, Value> from;  // sizes: of the groups in regions before, one more than regions
  const std::uint64_t* begins;
  Key* keys;
  Value* firsts;
  std::uint64_t* counts;  // ordered: offsets

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte*) const {
    const std::uint64_t first = begins[region], at = from.sizes[region];
    for_each_of(team, static_cast<std::uint32_t>(from.sizes[region + 1] - at), [&](std::uint32_t g) {
      keys[at + g] = from.keys[first + g];
      counts[at + g] = (Ordered ? first : 0) + from.counts[first + g];
      if constexpr (!Ordered) firsts[at + g] = from.firsts[first + g];
    });
  }
};

/// Different keys, in an order that their hashes and their first items tell.
template <class Key, class Value, class Place>
struct groups {
  array<Key, Place> keys;
  array<Value, Place> firsts;          // the value of the first item of each; not if ordered
  array<std::uint64_t, Place> counts;  // items of each; if ordered, where its values begin, and the end
  array<Value, Place> values;          // ordered: of all items
  std::size_t scratch_bytes = 0;

  std::size_t size() const { return keys.size(); }
};

/// Groups items by key. Synchronises. Throws out_of_memory, build_error.
template <bool Ordered, class Place, class Source>
auto group(const Place& place, const Source& source, std::uint64_t seed, const char* where) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  using Key = decltype(item::key);
  using Value = decltype(item::value);
  using kernel = group_regions<Place, Key, Value, Ordered>;
  using sampler = find_frequent_keys<Place, Key, Source>;
  const std::size_t n = source.size();
  if (n == 0) {
    groups<Key, Value, Place> none{array<Key, Place>(place, 0), array<Value, Place>(place, 0), array<std::uint64_t, Place>(place, 1), array<Value, Place>(place, 0)};
    place.fill(none.counts.data(), 0, none.counts.bytes());
    return none;
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    // A region of different keys fills its tile nearly: seven standard deviations of a random split are left.
    const double mean = (kernel::tile - 7 * std::sqrt(static_cast<double>(kernel::tile))) / (1 + attempt / 4.0);
    const auto regions = static_cast<std::uint32_t>(std::ceil(static_cast<double>(n) / mean));
    regions_and_frequent_keys<Key> region_of{{seed_of_attempt(seed, attempt), regions}, nullptr, nullptr, 0};

    array<Key, Place> frequent(place, 0);
    array<std::uint32_t, Place> slot(place, 0);
    const double expected = static_cast<double>(tuning<Place>::group_tiles_most) * kernel::tile * sampler::sample / static_cast<double>(n);
    if (expected < sampler::sample / 2) {
      frequent = array<Key, Place>(place, sampler::most);
      slot = array<std::uint32_t, Place>(place, sampler::slots + 1);
      std::uint32_t* const count = slot.data() + sampler::slots;
      place.fill(count, 0, sizeof(*count));
      const sampler sample{source, n / sampler::sample, larger(sampler::least, static_cast<std::uint32_t>(expected)), region_of.spread, frequent.data(), slot.data(), count};
      place.launch(1, scratch_bytes_of(sample), sample);
      place.copy_to_host(&region_of.count, count, sizeof(*count));
      region_of.frequent = frequent.data();
      region_of.slot = slot.data();
      region_of.slots = sampler::slots;
    }

    const std::uint32_t all_regions = regions + region_of.count;
    partitioner<Place, item, true> partitioner(place, all_regions, room::exact, false, nullptr);
    const auto parts = partitioner.run(source, region_of);
    array<Key, Place> keys(place, n);
    array<Value, Place> firsts(place, Ordered ? 0 : n), values(place, Ordered ? n : 0);
    array<std::uint32_t, Place> counts(place, n), failed(place, 1);
    array<std::uint64_t, Place> sizes(place, std::size_t{all_regions} + 1);
    place.fill(failed.data(), 0, failed.bytes());
    place.fill(sizes.data(), 0, sizes.bytes());
    const group_output<Key, Value> to{keys.data(), firsts.data(), counts.data(), sizes.data(), values.data(), failed.data()};
    const kernel run{parts.items(), parts.begins(), parts.ends(), region_of.spread, to};
    place.launch(regions, scratch_bytes_of(run), run);
    if (region_of.count != 0) {
      place.for_each(region_of.count, group_frequent<Key, Value, Ordered>{parts.items(), parts.begins(), parts.ends(), regions, to});
      if constexpr (Ordered) {
        std::uint64_t first = 0;
        place.copy_to_host(&first, parts.begins() + regions, sizeof(first));
        place.for_each(n - first, copy_values<Key, Value>{parts.items() + first, values.data() + first});
      }
    }
    place.exclusive_scan(sizes.data(), sizes.data(), sizes.size());
    std::uint64_t size = 0;
    std::uint32_t bad = 0;
    place.copy_to_host(&bad, failed.data(), sizeof(bad));
    if (bad != 0) continue;
    place.copy_to_host(&size, sizes.data() + all_regions, sizeof(size));
    groups<Key, Value, Place> result{array<Key, Place>(place, size), array<Value, Place>(place, Ordered ? 0 : size),
                                     array<std::uint64_t, Place>(place, size + (Ordered ? 1 : 0)), std::move(values)};
    result.scratch_bytes = parts.scratch_bytes() + keys.bytes() + firsts.bytes() + counts.bytes() + sizes.bytes();
    const pack_groups<Key, Value, Ordered> pack{to, parts.begins(), result.keys.data(), result.firsts.data(), result.counts.data()};
    place.launch(all_regions, 0, pack);
    if constexpr (Ordered) {
      const std::uint64_t end = n;
      place.copy_from_host(result.counts.data() + size, &end, sizeof(end));
    }
    place.synchronize();
    return result;
  }
  throw build_error(std::string(where) + ": the keys of some region are more than a team can number, with 4 seeds; keys that were chosen to collide?");
}

}  // namespace roost::detail
