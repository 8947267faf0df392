#pragma once

#include "roost/detail/groups/choose.hpp"
#include "roost/detail/partition/geometry.hpp"
#include "roost/detail/partition/sample.hpp"
#include "roost/detail/place/arrays.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/detail/table/team_table.hpp"
#include "roost/partition.hpp"

// Frequent keys, which very many items have: a sample finds them, and each gets its own region.

namespace roost::detail {

/// Chooses a key's region by the leading bits of its hash; known frequent keys have their own regions, after
/// the regions that they would be in. So all regions are in hash order.
template <class Key>
struct regions_and_frequent_keys {
  static constexpr std::uint32_t slots = group_tuning<cuda>::sample;

  leading_bits spread;
  int shift = 0;  // 2^shift neighbouring regions share a slot, so that `slots` are enough
  std::uint32_t count = 0;
  const Key* frequent = nullptr;          // in the order of their regions
  const std::uint16_t* begins = nullptr;  // where those of each slot begin, and the end

  explicit regions_and_frequent_keys(const leading_bits& regions) : spread(regions) {
    while ((spread.regions - 1) >> shift >= slots) ++shift;
  }

  ROOST_FN std::uint32_t operator()(const Key& key) const {
    const std::uint32_t region = spread(key);
    if (count == 0) return region;
    std::uint32_t before = begins[region >> shift];
    for (std::uint32_t f = before; f < begins[(region >> shift) + 1]; ++f) {
      if (same_key(frequent[f], key)) return region + f + 1;
      before += spread(frequent[f]) < region ? 1 : 0;
    }
    return region + before;
  }

  ROOST_FN bool is_frequent(const Key& key) const {
    if (count == 0) return false;
    const std::uint32_t s = spread(key) >> shift;
    for (std::uint32_t f = begins[s]; f < begins[s + 1]; ++f) {
      if (same_key(frequent[f], key)) return true;
    }
    return false;
  }

  ROOST_FN std::uint32_t of_frequent(std::uint32_t f) const { return spread(frequent[f]) + f + 1; }

  /// The index, counting regions of frequent keys, of the first region at or after a given region by hash.
  ROOST_FN std::uint32_t index_of(std::uint32_t region) const {
    return region + lower_bound(0u, count, [&](std::uint32_t f) { return spread(frequent[f]) < region; });
  }
};

struct sample_outcome {
  std::uint32_t frequent;
  std::uint32_t different;  // keys of the sample
  std::uint32_t pairs;      // of items of the sample with the same key, which is not frequent
};

using table_of_items = team_table<std::uint32_t, look::read, true>;

/// Returns an item with the key of item i: for all items with this key the same one. The table has more slots
/// than there are items; `home`: of the key.
template <class Team, class Key>
ROOST_FN std::uint32_t item_of_key(const Team& team, const table_of_items& table, std::uint32_t home,
                                   const Key* keys, std::uint32_t i) {
  const Key mine = keys[i];
  const auto at =
      table.put(team, home, i, table.slots, [&](std::uint32_t other) { return same_key(keys[other], mine); });
  return at.is_new() ? i : at.before;
}

/// Finds frequent keys in a sample; run by one team.
template <class Place, class Key, class Source>
struct find_frequent_keys {
  static constexpr int threads = 1024;
  static constexpr bool large_scratch = true;
  static constexpr std::uint32_t sample = group_tuning<cuda>::sample;
  static constexpr std::uint32_t least = 4;  // in the sample: fewer are not significant
  static constexpr std::uint32_t most = sample / least;
  using frequent_regions = regions_and_frequent_keys<Key>;
  static constexpr std::uint32_t slots = frequent_regions::slots;
  static constexpr std::uint32_t table_slots = 2 * sample;
  static_assert(slots <= sample);

  Source source;
  std::uint64_t step;       // see item_of_sample
  std::uint32_t at_least;   // in the sample
  frequent_regions target;  // initially without frequent keys
  Key* frequent;
  std::uint16_t* begins;
  sample_outcome* outcome;

  struct pieces {
    Key* key;  // of each item
    table_of_items table;
    std::uint32_t* count;  // items of each item_of_key; then frequent keys of each slot of `target`
    sample_outcome* seen;
    std::uint32_t* chosen;  // items of frequent keys
    std::uint64_t* hash;    // of their keys
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<Key>(sample),           {memory.take<std::uint32_t>(table_slots), table_slots},
            memory.take<std::uint32_t>(sample), memory.take<sample_outcome>(1),
            memory.take<std::uint32_t>(most),   memory.take<std::uint64_t>(most)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    const pieces parts = scratch_of(*this, memory);
    const item_of_sample<Source> items{source, step};
    for_each_of(team, sample, [&](std::uint32_t i) { parts.key[i] = items[i].key; });
    parts.table.clear(team);
    fill_words(team, parts.count, sample, 0);
    if (team.rank() == 0) *parts.seen = {0, 0, 0};
    team.sync();
    for_each_of(team, sample, [&](std::uint32_t i) {
      const auto home = static_cast<std::uint32_t>(
          split_hash(hash_of(parts.key[i], target.spread.seed), table_slots).digit);
      team.fetch_add(parts.count[item_of_key(team, parts.table, home, parts.key, i)], 1u);
    });
    team.sync();
    std::uint32_t different = 0, pairs = 0;
    for_each_of(team, sample, [&](std::uint32_t i) {
      const std::uint32_t count = parts.count[i];
      different += count != 0 ? 1 : 0;
      if (count >= at_least) {
        parts.chosen[team.fetch_add(parts.seen->frequent, 1u)] = i;
      } else {
        pairs += count * (count - 1) / 2;
      }
    });
    team.fetch_add(parts.seen->different, different);
    team.fetch_add(parts.seen->pairs, pairs);
    team.sync();
    if (team.rank() == 0) *outcome = *parts.seen;
    if (parts.seen->frequent != 0) write_frequent(team, parts, parts.seen->frequent);
  }

 private:
  /// Writes the chosen keys in hash order, whatever order they were found in.
  template <class Team>
  ROOST_FN void write_frequent(const Team& team, const pieces& parts, std::uint32_t found) const {
    for_each_of(team, found, [&](std::uint32_t c) {
      parts.hash[c] = hash_of(parts.key[parts.chosen[c]], target.spread.seed);
    });
    fill_words(team, parts.count, slots, 0);
    team.sync();
    for_each_of(team, found, [&](std::uint32_t c) {  // they are few
      const Key mine = parts.key[parts.chosen[c]];
      std::uint32_t before = 0;
      for (std::uint32_t other = 0; other < found; ++other) {
        before += parts.hash[other] < parts.hash[c] ? 1 : 0;
        if constexpr (sizeof(Key) > 8) {  // the hashes of shorter keys differ
          before += parts.hash[other] == parts.hash[c] && key_less(parts.key[parts.chosen[other]], mine);
        }
      }
      frequent[before] = mine;
      team.fetch_add(parts.count[target.spread(mine) >> target.shift], 1u);
    });
    team.sync();
    team.exclusive_scan(parts.count, parts.count, slots);
    team.sync();
    for_each_of(team, slots,
                [&](std::uint32_t s) { begins[s] = static_cast<std::uint16_t>(parts.count[s]); });
    if (team.rank() == 0) begins[slots] = static_cast<std::uint16_t>(found);
  }
};

/// The frequent keys of a batch, and the regions that they make.
template <class Key, class Place>
struct frequent_keys {
  array<Key, Place> keys;
  array<std::uint16_t, Place> begins;
  regions_and_frequent_keys<Key> region_of;
  sample_facts seen;

  explicit frequent_keys(const leading_bits& regions) : region_of(regions) {}

  std::uint32_t regions() const { return region_of.spread.regions + region_of.count; }

  /// Finds the keys that have more than `items_most` items of a batch. `least`: see looks_closer.
  template <class Source>
  void sample(const Place& place, const Source& source, double items_most, std::uint32_t least = 0) {
    array<sample_outcome, Place> outcome(place, 1);
    seen = {};
    if (!look(place, source, items_most, outcome.data())) return;
    take(read_one(place, outcome.data()));
    if (!looks_closer(seen, source.size(), least)) return;
    seen.compared = compared_rows(source.size());
    seen.copies = static_cast<std::uint32_t>(count_copies(place, source, seen.compared));
  }

  /// The same for a host that continues with other work until take(outcome). False if no key can be frequent;
  /// then there is no outcome. Asynchronous.
  template <class Source>
  bool look(const Place& place, const Source& source, double items_most, sample_outcome* outcome) {
    using kernel = find_frequent_keys<Place, Key, Source>;
    const std::size_t n = source.size();
    const double expected = items_most * kernel::sample / static_cast<double>(n);  // in the sample
    if (expected >= kernel::sample / 2) return false;
    keys = array<Key, Place>(place, kernel::most);
    begins = array<std::uint16_t, Place>(place, kernel::slots + 1);
    const kernel run{.source = source,
                     .step = n / kernel::sample,
                     .at_least = larger(kernel::least, static_cast<std::uint32_t>(expected)),
                     .target = region_of,
                     .frequent = keys.data(),
                     .begins = begins.data(),
                     .outcome = outcome};
    place.launch(1, scratch_bytes_of(run), run);
    return true;
  }
  void take(const sample_outcome& outcome) {
    seen = {group_tuning<cuda>::sample - outcome.different, outcome.pairs, outcome.frequent};
    region_of.count = outcome.frequent;
    region_of.frequent = keys.data();
    region_of.begins = begins.data();
  }
};

/// put(i, region, f) for each item i of a frequent key f, with its region. Teams divide all items evenly,
/// whatever their keys, so that every key is work for all teams.
template <class Place, class Key, class Put>
struct each_frequent_item {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = group_tuning<Place>::expand_tile;
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
      const std::uint64_t source = larger(begins[region], first);
      for_each_of(team, static_cast<std::uint32_t>(smaller(ends[region], end) - source),
                  [&](std::uint32_t i) { put(source + i, region, f); });
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

}  // namespace roost::detail
