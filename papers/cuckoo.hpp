#pragma once

#include <cmath>

#include "roost/detail/frozen/layout.hpp"

/// \file
/// Layout `cuckoo`: the table of Alcantara et al. 2009, "Real-Time Parallel Hashing on the GPU", section 4.1.

namespace roost {

/// Regions (the paper's buckets) of at most 512 pairs, 409 on average, each a cuckoo hash with three
/// sub-tables of 192 slots: 71 % full, 1.42 times the input's bytes. A lookup reads at most three slots. All
/// first sub-tables are contiguous, then all second, then all third ones.
///
/// Phase 1 splits the pairs into regions by `k mod regions`; if a region overflows, by `((c0 + c1 k) mod
/// 1900813) mod regions`. Phase 2 builds each region with one team: all pairs without a slot are written into
/// the next sub-table at once, and those that are overwritten continue; after 25 rounds, the region starts
/// again with another seed.
///
/// Use it to compare with the paper; `bucketed` is faster. It differs from the paper so that no set of keys
/// makes it fail: after 5 splits (after one if there are so many regions, from about 2 * 10^7 pairs on, that
/// the paper's 1900813 values cannot fill them evenly) and after 8 seeds of a region it uses seeded
/// MurmurHash3 finalizers instead of the paper's functions, which do not distinguish keys that are equal
/// modulo 1900813; copies of a key are found, and the first wins; no key is reserved for empty slots.
struct cuckoo {
  static constexpr std::uint32_t region_most = 512;  ///< pairs of a region
  static constexpr std::uint32_t subtable_slots = 192;
  static constexpr std::uint32_t region_slots = 3 * subtable_slots;
  static constexpr int rounds_most = 25;  ///< a round tries all three sub-tables

  /// Options of frozen_map and frozen_set with this layout.
  struct options {
    /// Pairs over slots, at most 512 / 576. The default is the paper's 409 / 576.
    double load_factor = 409.0 / 576.0;
    /// Chooses the hash functions.
    std::uint64_t seed = 0;
    /// Attempts after the first before a build gives up with build_error.
    int max_restarts = 20;
    /// The variant of Wang and Hu, "Real-Time Hashing on GPU Architecture with CUDA" (for sets): each region
    /// of the first phase has room for 512 keys in place, so that no counting and no scan is needed, and 256
    /// of them are expected. load_factor is not used. From the fourth attempt on, input that does not fit
    /// (copies of few keys) is counted.
    bool two_kernel = false;
  };

  static constexpr const char* name = "cuckoo";
  static constexpr detail::layout_abilities can{};

  template <class Place, class Key, class Value>
  class table;
  template <class Place, class Key, class Value, bool Small = false, class Items = const pair<Key, Value>*>
  struct builder;

  /// The paper's first-level functions, and those used after them.
  struct first_level {
    enum class kind : std::uint32_t { modulo, alcantara, leading_bits };
    kind which;
    std::uint32_t regions;
    alcantara_hash constants;
    std::uint64_t seed;

    template <class Key>
    ROOST_FN std::uint32_t operator()(const Key& key) const {
      if (which == kind::leading_bits) return detail::leading_bits{seed, regions}(key);
      if (which == kind::alcantara) return constants(key, regions);
      if constexpr (sizeof(Key) <= 8) {
        return static_cast<std::uint32_t>(key_bits(key) % regions);
      } else {
        return static_cast<std::uint32_t>(hash_of(key) % regions);
      }
    }
  };

  /// A region's hash function g_i, made from the region's seed by XOR with fixed numbers.
  template <class Key>
  ROOST_FN static std::uint32_t slot_in_subtable(const Key& key, std::uint32_t i, std::uint32_t seed) {
    const std::uint32_t fixed0 = i == 0 ? 0x2c1b3c6du : i == 1 ? 0x05491333u : 0x3c6ef372u;
    const std::uint32_t fixed1 = i == 0 ? 0x297a2d39u : i == 1 ? 0x6a09e667u : 0x510e527fu;
    if ((seed & ours) != 0) {
      return static_cast<std::uint32_t>(split_hash(hash_of(key, mix64(seed, fixed0)), subtable_slots).digit);
    }
    const alcantara_hash g{(seed ^ fixed0) & 0x7fffffffu, (seed ^ fixed1) & 0x7fffffffu};
    return g(key, subtable_slots);
  }
  static constexpr std::uint32_t ours = 0x80000000u;  ///< bit of a region's seed: not the paper's functions

  /// The geometry of one build attempt.
  using plan = detail::layout_plan<first_level>;

  template <class Place, class Key, class Value>
  static plan make_plan(std::size_t n, const options& options, int attempt, std::uint32_t parts = 0);
};

/// The slots of a map: see roost::lookups for its operations.
template <class Place, class Key, class Value>
class cuckoo::table : public lookups<cuckoo::table<Place, Key, Value>, Key, Value> {
 public:
  using item = pair<Key, Value>;
  using typename lookups<table, Key, Value>::hit;

  table(std::byte* memory, const plan& p)
      : slots_(reinterpret_cast<item*>(memory)),
        seeds_(reinterpret_cast<std::uint32_t*>(slots_ + std::uint64_t{p.regions} * region_slots)),
        region_of_(p.region_of),
        empty_(detail::find_empty_keys<Key>(p.region_of)) {}
  static std::size_t bytes_of(const plan& p) {
    return p.regions * (region_slots * sizeof(item) + sizeof(std::uint32_t));
  }

  /// The number of slots.
  ROOST_FN std::uint64_t capacity() const { return std::uint64_t{region_of_.regions} * region_slots; }
  double load_factor(std::size_t size) const {
    return static_cast<double>(size) / static_cast<double>(capacity());
  }

  // Slots by number, for iteration and checks.

  ROOST_FN bool occupied(std::uint64_t slot) const {
    const auto region = static_cast<std::uint32_t>(slot / subtable_slots % region_of_.regions);
    return !same_key(slots_[slot].key, empty_.of(region));
  }
  ROOST_FN const Key& key_at(std::uint64_t slot) const { return slots_[slot].key; }
  ROOST_FN Value value_at(std::uint64_t slot) const { return detail::value_of(slots_[slot]); }
  ROOST_FN void set(std::uint64_t slot, const item& pair) const { slots_[slot] = pair; }
  /// Empties a slot.
  ROOST_FN void clear(std::uint64_t slot) const {
    set(slot,
        detail::pair_of(empty_.of(static_cast<std::uint32_t>(slot / subtable_slots % region_of_.regions)),
                        Value{}));
  }

  // Lookups in steps: see detail/table/probe.hpp. A step reads a slot, each in the next sub-table.

  static constexpr detail::bulk_drivers drivers{};

  struct cursor_type {
    Key key;
    std::uint32_t region, seed, subtable;
    item here;  // the slot that was read
  };

  template <class F>
  ROOST_FN auto with_format(const F& f) const {
    return f(none());
  }

  ROOST_FN cursor_type start(const Key& key) const {
    const std::uint32_t region = region_of_(key);
    return {key, region, seeds_[region], 0, {}};
  }

  ROOST_FN void read(none, cursor_type& cursor) const { cursor.here = slots_[slot_of_try(cursor)]; }

  ROOST_FN int match(none, const cursor_type& cursor) const {
    return same_key(cursor.here.key, cursor.key) ? 0 : -1;
  }

  ROOST_FN void take(none, const cursor_type& cursor, int, hit& result) const {
    if constexpr (detail::is_large_value<Value>) {
      result = {none(), slot_of_try(cursor), cursor.subtable + 1};
    } else {
      result = {detail::value_of(cursor.here), slot_of_try(cursor), cursor.subtable + 1};
    }
  }

  ROOST_FN bool passed(none, const cursor_type&) const { return true; }

  ROOST_FN bool goes_on(none, cursor_type& cursor, hit&) const { return ++cursor.subtable < 3; }

  ROOST_PREFETCH_FN void fetch([[maybe_unused]] const cursor_type& cursor) const {
#if !ROOST_ON_DEVICE
    __builtin_prefetch(slots_ + slot_of_try(cursor));
#endif
  }

 private:
  template <class P, class K, class V, bool Small, class Items>
  friend struct cuckoo::builder;

  ROOST_FN std::uint64_t slot(std::uint32_t region, std::uint32_t subtable, std::uint32_t s) const {
    return (std::uint64_t{subtable} * region_of_.regions + region) * subtable_slots + s;
  }

  ROOST_FN std::uint64_t slot_of_try(const cursor_type& cursor) const {
    return slot(cursor.region, cursor.subtable, slot_in_subtable(cursor.key, cursor.subtable, cursor.seed));
  }

  item* slots_;
  std::uint32_t* seeds_;
  first_level region_of_;
  detail::empty_keys<Key> empty_;
};

template <class Place, class Key, class Value>
cuckoo::plan cuckoo::make_plan(std::size_t n, const options& options, int attempt, std::uint32_t) {
  constexpr double most = static_cast<double>(region_most) / region_slots;
  if (!(options.load_factor > 0 && options.load_factor <= most)) {
    detail::raise<invalid_argument>(
        {"roost::cuckoo: load factor ", options.load_factor, "; give more than 0 and at most ", most});
  }
  double mean = options.two_kernel ? region_most / 2.0 : options.load_factor * region_slots;
  if (attempt > 8) mean *= std::pow(0.8, attempt - 8);
  const double regions = std::max(2.0, std::ceil(static_cast<double>(n) / mean));
  detail::check_table_bytes(regions * region_slots * sizeof(pair<Key, Value>), regions, "roost::cuckoo");
  plan p{};
  p.regions = static_cast<std::uint32_t>(regions);
  const std::uint64_t seed = detail::seed_of_attempt(options.seed, attempt);
  const std::uint64_t random = mix64(seed, 0x5851f42d4c957f2dull);
  using kind = first_level::kind;
  const bool enough_values = regions * 32 <= alcantara_hash::prime;
  p.region_of = {attempt == 0                    ? kind::modulo
                 : attempt <= 4 && enough_values ? kind::alcantara
                                                 : kind::leading_bits,
                 p.regions,
                 {static_cast<std::uint32_t>(random) & 0x7fffffffu,
                  (static_cast<std::uint32_t>(random >> 32) & 0x7fffffffu) | 1u},
                 seed};
  p.tries_exact = !options.two_kernel || attempt > 2;  // copies of one key never fit in a fixed place
  p.tries_slack = !p.tries_exact;
  p.room_for_region = region_most;
  return p;
}

/// Builds one region.
template <class Place, class Key, class Value, bool, class>
struct cuckoo::builder {
  static constexpr int threads = region_most;
  static constexpr bool large_scratch = true;
  using item = pair<Key, Value>;
  static constexpr std::uint32_t claims = 2048;  // slots to find the distinct keys of a region with copies

  table<Place, Key, Value> target;
  detail::region_items<item> source;

  struct pieces {
    std::uint32_t* slot;    // of the three sub-tables: number of an item
    std::uint32_t* number;  // of the distinct items, if some are copies
    std::uint32_t* owner;
    std::uint32_t* different;  // how many
    std::uint32_t* placed;     // of the region
  };

  builder(const table<Place, Key, Value>& table, const detail::region_items<item>& items)
      : target(table), source(items) {}

  ROOST_FN pieces scratch(detail::scratch_memory& memory) const {
    return {memory.take<std::uint32_t>(region_slots), memory.take<std::uint32_t>(region_most),
            memory.take<std::uint32_t>(claims), memory.take<std::uint32_t>(1), memory.take<std::uint32_t>(1)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region_index, std::byte* memory) const {
    if (source.stopped(team)) return;
    detail::scratch_memory all(memory);
    const pieces parts = scratch(all);
    const auto region = static_cast<std::uint32_t>(region_index);
    const item* const items = source.first(region);
    const std::uint64_t count = source.count(region);
    std::uint32_t n = static_cast<std::uint32_t>(detail::smaller<std::uint64_t>(count, region_most));
    const bool copies = count > region_most;
    if (copies && !find_different(team, items, count, parts, n)) {
      if (team.rank() == 0) detail::fetch_add(source.counts->overfull, std::uint64_t{1});
      return;
    }

    constexpr int per_worker = static_cast<int>(region_most) / Team::size;
    keys_of_worker<per_worker> mine;
    detail::for_each_held<per_worker>(team, n, [&](int held, int i) {
      mine.number[held] = copies ? parts.number[i] : static_cast<std::uint32_t>(i);
      mine.key[held] = items[mine.number[held]].key;
    });

    constexpr std::uint32_t seeds_most = 64;
    for (std::uint32_t attempt = 0; attempt < seeds_most; ++attempt) {
      std::uint32_t seed = mix32(region, mix32(attempt)) & ~ours;
      if (attempt >= 8) seed |= ours;
      const int rounds = try_seed(team, items, n, mine, seed, parts);
      if (rounds == 0) continue;
      write(team, region, items, seed, parts);
      if (team.rank() == 0) {
        detail::fetch_add(source.counts->rounds, static_cast<std::uint64_t>(rounds));
        if (attempt != 0) detail::fetch_add(source.counts->region_restarts, std::uint64_t{attempt});
      }
      return;
    }
    if (team.rank() == 0) detail::fetch_add(source.counts->overfull, std::uint64_t{1});
  }

 private:
  static constexpr std::uint32_t nowhere = ~0u;

  /// Lists the distinct items of a region with more than 512; false if there are still more than 512.
  template <class Team>
  ROOST_FN static bool find_different(const Team& team, const item* items, std::uint64_t count,
                                      const pieces& parts, std::uint32_t& n) {
    detail::for_each_of(team, claims, [&](std::uint32_t s) { parts.owner[s] = detail::no_owner; });
    if (team.rank() == 0) *parts.different = 0;
    const bool fit =
        detail::claim_each(team, items, count, parts.different, [&](std::uint32_t i, const Key& key) {
          const auto start = static_cast<std::uint32_t>(split_hash(hash_of(key, 0x243f6a88), claims).digit);
          return detail::claim_slot(team, {parts.owner, claims, start, claims}, items, i,
                                    [](std::uint32_t) {});
        });
    n = *parts.different;
    if (!fit || n > region_most) return false;
    if (team.rank() == 0) *parts.placed = 0;
    team.sync();
    detail::for_each_of(team, claims, [&](std::uint32_t s) {
      if (parts.owner[s] != detail::no_owner)
        parts.number[team.fetch_add(*parts.placed, 1u)] = parts.owner[s];
    });
    team.sync();
    return true;
  }

  /// Some of a region's keys, and the numbers of their items.
  template <int PerWorker>
  struct keys_of_worker {
    Key key[PerWorker];
    std::uint32_t number[PerWorker];
  };

  /// The paper's rounds: returns their number, or 0 for too many.
  template <int PerWorker, class Team>
  ROOST_FN static int try_seed(const Team& team, const item* items, std::uint32_t n,
                               const keys_of_worker<PerWorker>& mine, std::uint32_t seed,
                               const pieces& parts) {
    detail::for_each_of(team, region_slots, [&](std::uint32_t s) { parts.slot[s] = detail::no_owner; });
    if (team.rank() == 0) *parts.placed = 0;
    std::uint32_t position[PerWorker];  // the slot of an item, or nowhere
    detail::for_each_held<PerWorker>(team, n, [&](int held, int) { position[held] = nowhere; });
    team.sync();
    for (int step = 0; step < 3 * rounds_most; ++step) {
      const auto subtable = static_cast<std::uint32_t>(step % 3);
      detail::for_each_held<PerWorker>(team, n, [&](int held, int) {
        if (position[held] != nowhere) return;
        position[held] = subtable * subtable_slots + slot_in_subtable(mine.key[held], subtable, seed);
        team.exchange(parts.slot[position[held]], mine.number[held]);  // the last item written stays
      });
      team.sync();
      bool homeless = false;
      detail::for_each_held<PerWorker>(team, n, [&](int held, int) {
        const std::uint32_t there = parts.slot[position[held]];
        if (there == mine.number[held] || same_key(items[there].key, mine.key[held]))
          return;  // one stands for all
        position[held] = nowhere;
        homeless = true;
      });
      if (team.any(homeless)) continue;
      detail::for_each_held<PerWorker>(
          team, n, [&](int held, int) { team.fetch_min(parts.slot[position[held]], mine.number[held]); });
      team.sync();
      return step / 3 + 1;
    }
    return 0;
  }

  template <class Team>
  ROOST_FN void write(const Team& team, std::uint32_t region, const item* items, std::uint32_t seed,
                      const pieces& parts) const {
    std::uint32_t placed = 0;
    const item empty = detail::pair_of(target.empty_.of(region), Value{});
    detail::for_each_of(team, region_slots, [&](std::uint32_t s) {
      const std::uint32_t number = parts.slot[s];
      placed += number != detail::no_owner;
      target.slots_[target.slot(region, s / subtable_slots, s % subtable_slots)] =
          number == detail::no_owner ? empty : items[number];
    });
    if (placed != 0) team.fetch_add(*parts.placed, placed);
    team.sync();
    if (team.rank() == 0) {
      detail::fetch_add(source.counts->placed, std::uint64_t{*parts.placed});
      target.seeds_[region] = seed;
    }
  }
};

}  // namespace roost
