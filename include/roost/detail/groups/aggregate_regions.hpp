#pragma once

#include "roost/detail/groups/hot_keys.hpp"
#include "roost/detail/groups/index_kernel.hpp"

// The kernel that adds up the values of a region in a table in scratch memory.

namespace roost::detail {

/// The results that the host reads.
struct aggregation_outcome {
  std::uint32_t overflowed;  // the partition ran out of slack
  std::uint32_t failed;      // regions with too many distinct keys
  std::uint32_t in_order;    // a value was found whose result depends on the order
  std::uint32_t most;        // distinct keys of a region, among regions that were only counted
  std::uint64_t size;        // distinct keys
};
struct outcome_of_tables : aggregation_outcome {
  std::uint32_t barrier, unused;
};

/// Combines the values of each key of a region.
template <class Place, class Key, class Value, class... F>
struct aggregate_regions {
  static constexpr int threads = group_tuning<cuda>::aggregate_threads;
  static constexpr int teams_at_once = group_tuning<cuda>::aggregate_teams;
  using item = pair<Key, Value>;
  using reduce = reducers<Value, F...>;
  using words = region_words<Key, host>;  // those of the host identify every key of at most 8 bytes
  using word = typename words::word;
  using table_type = team_table<word, look::read, false>;
  static constexpr word none_here = table_type::empty;
  static constexpr std::uint32_t part = 8;
  static constexpr std::size_t slot_bytes = sizeof(word) + reduce::count * sizeof(typename reduce::word) +
                                            sizeof(std::uint32_t) + sizeof(std::uint16_t);

  const item* items = nullptr;
  const std::uint64_t* begins = nullptr;
  const std::uint64_t* ends = nullptr;
  std::uint32_t regions;
  /// If not 0: only every count_each-th region runs, and only counts its keys, which are a `part`-th of those
  /// of a region of the partition.
  std::uint32_t count_each = 0;
  std::uint32_t steps_most = 2048;  // of a probe
  words words_of;
  hot_keys<Key, Value, F...> hot;
  std::uint32_t slots;
  /// Teams finish in the order of their regions. So that a crowded one does not make all others wait, an
  /// earlier run fills its table: `crowded` lists such regions, if it is this run. Later table_of[region] is
  /// the number of its table in `tables`, or none. Null: there are no such tables.
  const std::uint32_t* crowded = nullptr;
  const std::uint32_t* table_of = nullptr;
  std::byte* tables = nullptr;
  Key* keys;
  Value* values[reduce::count == 0 ? 1 : reduce::count] = {};
  std::uint64_t* counts;  // or null
  aggregation_outcome* outcome = nullptr;
  earlier_teams turns{nullptr};

  struct pieces {
    std::uint64_t* shared;
    std::uint32_t* found;  // keys in the slots of each warp
    std::uint16_t* taken;  // of each warp: its occupied slots
    word* slot;
    typename reduce::words value;
    std::uint32_t* count;
  };
  /// What is used most comes after an array of variable length: nvcc 13 recomputes constant addresses of
  /// shared memory in every loop.
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    pieces parts = scratch_of_finish(memory);
    take_table(memory, parts);
    return parts;
  }
  ROOST_FN pieces scratch_of_finish(scratch_memory& memory) const {
    pieces parts{};
    parts.shared = memory.take<std::uint64_t>(2);
    parts.found = memory.take<std::uint32_t>(32);
    parts.taken = memory.take<std::uint16_t>(slots);
    return parts;
  }
  ROOST_FN void take_table(scratch_memory& memory, pieces& parts) const {
    parts.slot = memory.take<word>(slots + 32);  // the last ones remain free
    parts.value = reduce::take(memory, slots);
    parts.count = memory.take<std::uint32_t>(slots);
  }
  /// What was added up before, of `count` items of a key: the words i.
  struct sums_of_key {
    const Key& key;
    const typename reduce::words& sums;
    std::size_t i;
    std::uint32_t count;
  };
  template <class Team>
  ROOST_FN void add_sums(const Team& team, const pieces& parts, const sums_of_key& more, bool& full) const {
    const word mine = words_of.of(more.key).word;
    const std::uint32_t s = slot_of(team, parts, mine, team.read(parts.slot[home_of(mine)]), full);
    if (full) return;
    team.fetch_add(parts.count[s], more.count);
    reduce::each([&](auto of, int k) { of.combine(team, parts.value.of[k][s], more.sums.of[k][more.i]); });
  }
  template <class Team>
  ROOST_FN void clear(const Team& team, const pieces& parts) const {
    fill_words(team, parts.slot, slots + 32, none_here);
    fill_words(team, parts.count, slots, 0);
    reduce::clear_all(team, parts.value, slots);
  }

  /// Numbers and writes the keys of a table.
  template <class Team>
  ROOST_FN void finish(const Team& team, const pieces& parts, std::uint64_t region, bool full) const {
    constexpr auto near = static_cast<std::uint32_t>(Team::near_size),
                   warps = static_cast<std::uint32_t>(Team::size) / near;
    const auto rank = static_cast<std::uint32_t>(team.rank());
    const std::uint32_t warp = rank / near, lane = rank % near;
    // Each warp lists its occupied slots, so that none of its threads is idle afterwards.
    const std::uint32_t of_warp = ceil_div(slots, near * warps) * near,
                        first = smaller(warp * of_warp, slots), end = smaller(first + of_warp, slots);
    std::uint32_t mine = 0;
    ROOST_ROLLED
    for (std::uint32_t s = first + lane; s < end; s += near) {
      const bool occupied = parts.slot[s] != none_here;
      const std::uint32_t taken = team.ballot_near(occupied);
      if (occupied)
        parts.taken[first + mine + count_bits(taken & ((1u << lane) - 1))] = static_cast<std::uint16_t>(s);
      mine += count_bits(taken);
    }
    if (lane == 0) parts.found[warp] = mine;
    team.sync();
    const std::uint32_t last = parts.found[warps - 1];  // the scan writes after a barrier
    team.exclusive_scan(parts.found, parts.found, warps);
    team.sync();
    const std::uint32_t found = full ? 0 : parts.found[warps - 1] + last;
    if (count_each != 0) {
      if (rank == 0) fetch_max(outcome->most, full ? slots : found);
      return;
    }
    if (full && rank == 0) fetch_add(outcome->failed, 1u);
    const std::uint64_t base = turns.sum_before(team, region, found, parts.shared + 1);
    if (region + 1 == regions && rank == 0) outcome->size = base + found;
    if (full) return;
    ROOST_ROLLED
    for (std::uint32_t i = lane; i - lane < mine; i += near) {
      const std::uint32_t s = i < mine ? parts.taken[first + i] : 0;
      const std::uint32_t number = i < mine ? parts.found[warp] + i + steps_in_run(parts, s) : 0;
      team.sync_near();
      if (i < mine) write(parts, s, region, base + number);
    }
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (outcome->overflowed != 0) return;
    const pieces parts = scratch_of(*this, memory);
    const bool fills = crowded != nullptr;
    std::uint64_t region = fills ? crowded[index] : index * count_each;
    if (fills || count_each != 0) {
      clear(team, parts);
      team.sync();
    } else {
      region = turns.turn(team, parts.shared, [&] { clear(team, parts); });
    }
    bool full = false;
    if (table_of != nullptr && table_of[region] != no_table) {
      copy_table(team, table_at(table_of[region]), parts);
    } else {
      full = gather(team, parts, static_cast<std::uint32_t>(region));
    }
    full = team.any(full);
    if (!fills) return finish(team, parts, region, full);
    if (full && team.rank() == 0) fetch_add(outcome->failed, 1u);
    copy_table(team, parts, table_at(index));
  }

  static constexpr std::uint32_t no_table = ~0u;

  /// The tables in memory of the place, and the bytes of each.
  ROOST_FN std::size_t table_bytes() const {
    scratch_memory counted(nullptr);
    pieces parts{};
    take_table(counted, parts);
    return (counted.used() + 15) / 16 * 16;
  }
  ROOST_FN pieces table_at(std::uint64_t number) const {
    scratch_memory there(tables + number * table_bytes());
    pieces parts{};
    take_table(there, parts);
    return parts;
  }
  template <class Team>
  ROOST_FN void copy_table(const Team& team, const pieces& from, const pieces& to) const {
    for_each_of(team, slots + 32, [&](std::uint32_t s) {
      to.slot[s] = from.slot[s];
      if (s >= slots) return;
      to.count[s] = from.count[s];
      for (int k = 0; k < reduce::count; ++k) to.value.of[k][s] = from.value.of[k][s];
    });
  }

  /// Adds the items of a region to a table; true if this worker has found it full.
  template <class Team>
  ROOST_FN bool gather(const Team& team, const pieces& parts, std::uint32_t region) const {
    findings found{};
    add_frequent(team, parts, region, found.full);
    const std::uint32_t here = count_each == 0 ? region : region / part;
    const std::uint64_t begin = begins[here], end = ends[here];
    ROOST_ROLLED
    for (std::uint64_t first = begin; first < end; first += tile<Team>) {
      const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile<Team>, end - first));
      add_items(team, parts, region, first, found.full ? 0 : n, found);  // probing a full table is slow
    }
    if (found.in_order && peek(outcome->in_order) == 0) fetch_or(outcome->in_order, 1u);
    return found.full;
  }

 private:
  /// What a worker has seen while it added items.
  struct findings {
    bool full;      // no slot was left for a key
    bool in_order;  // the result of a value depends on the order
  };

  template <class Team>
  static constexpr int per_worker = Team::size == 1 ? 1024 : 4;
  template <class Team>
  static constexpr std::uint32_t tile = per_worker<Team> * static_cast<std::uint32_t>(Team::size);

  /// Keys whose home is the last of these slots may take the slots after it.
  ROOST_FN std::uint32_t home_of(word w) const { return words::home(w, slots - slots / 32 - 48); }

  /// Adds n items. A thread of a block reads the first slots of all its items before it needs them.
  template <class Team>
  ROOST_FN void add_items(const Team& team, const pieces& parts, std::uint32_t region, std::uint64_t first,
                          std::uint32_t n, findings& found) const {
    const held_items<per_worker<Team>, Team, const item*> mine(team, items, first, n);
    const auto look = [&](int held, int i, word& wanted) {
      const Key key = mine(held, i).key;
      if (count_each != 0 && hot(key) != region) return none_here;
      wanted = words_of.of(key).word;
      return static_cast<word>(team.read(parts.slot[home_of(wanted)]));
    };
    const auto add = [&](int held, int i, std::uint32_t s) {
      const Value value = value_of(mine(held, i));
      found.in_order |= reduce::depends_on_order(value);
      team.fetch_add(parts.count[s], 1u);
      reduce::add(team, parts.value, s, value);
    };
    if constexpr (Team::size == 1) {
      for_each_held<per_worker<Team>>(team, n, [&](int held, int i) {
        word wanted = none_here;
        const word seen = look(held, i, wanted);
        if (wanted == none_here) return;
        const std::uint32_t s = slot_of(team, parts, wanted, seen, found.full);
        if (!found.full) add(held, i, s);
      });
    } else {
      word wanted[per_worker<Team>], seen[per_worker<Team>];
      ROOST_UNROLL
      for (int held = 0; held < per_worker<Team>; ++held) wanted[held] = none_here;
      for_each_held<per_worker<Team>>(team, n,
                                      [&](int held, int i) { seen[held] = look(held, i, wanted[held]); });
      ROOST_UNROLL
      for (int held = 0; held < per_worker<Team>; ++held) {
        const bool some = wanted[held] != none_here;
        const std::uint32_t s = some ? slot_of(team, parts, wanted[held], seen[held], found.full) : 0;
        team.sync_near();  // threads leave the loop at different times
        if (some && !found.full) add(held, held, s);
      }
    }
  }

  /// The slot of a word, whose home has been read. `full` becomes true if no slot is left, or if the probe
  /// sequence is so long that keys must have been chosen to collide. (By team_table::put, which asks first
  /// whether a slot is empty, sums of 2^26 pairs, 1024 copies, run at 61 G/s instead of 64.)
  template <class Team>
  ROOST_FN std::uint32_t slot_of(const Team& team, const pieces& parts, word mine, word seen,
                                 bool& full) const {
    std::uint32_t s = home_of(mine), left = smaller(slots - s, steps_most);
    while (seen != mine) {
      if (seen == none_here) {
        seen = team.compare_exchange(parts.slot[s], none_here, mine);
        if (seen == none_here) break;
      } else if (--left == 0) {
        full = true;
        break;
      } else {
        seen = team.read(parts.slot[++s]);
      }
    }
    return s;
  }

  /// Adds what the partition has absorbed of a region.
  template <class Team>
  ROOST_FN void add_frequent(const Team& team, const pieces& parts, std::uint32_t region, bool& full) const {
    std::uint32_t first = 0, end = hot.keys();
    if constexpr (Team::size == 1) {  // they are in hash order
      first = lower_bound(0u, end, [&](std::uint32_t f) { return hot(hot.found.frequent[f]) < region; });
      end = lower_bound(first, end, [&](std::uint32_t f) { return hot(hot.found.frequent[f]) == region; });
    }
    for_each_of(team, end - first, [&](std::uint32_t i) {
      const std::uint32_t f = first + i;
      const Key key = hot.found.frequent[f];
      if (hot.counts[f] == 0 || hot(key) != region) return;
      add_sums(team, parts, {key, hot.values, f, hot.counts[f]}, full);
    });
  }

  /// How much later the key of a slot is in key order than in slot order. All slots from its home on are
  /// occupied, and all lesser keys that are stored from there on are in the same run.
  ROOST_FN std::uint32_t steps_in_run(const pieces& parts, std::uint32_t s) const {
    const word mine = parts.slot[s];
    const std::uint32_t home = home_of(mine);
    std::uint32_t steps = home - s;  // modulo 2^32
    word other;
    ROOST_ROLLED
    for (std::uint32_t t = home; (other = parts.slot[t]) != none_here; ++t) steps += other < mine ? 1 : 0;
    return steps;
  }

  ROOST_FN void write(const pieces& parts, std::uint32_t s, std::uint64_t region,
                      std::uint64_t number) const {
    const word mine = parts.slot[s];
    keys[number] = words_of.key(static_cast<std::uint32_t>(region), {mine, 0});
    reduce::each([&](auto of, int k) { values[k][number] = of.value(parts.value.of[k][s]); });
    if (counts != nullptr) counts[number] = parts.count[s];
  }
};

/// Numbers the regions with more than `most` items, in any order.
struct number_crowded {
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  std::uint64_t most;
  std::uint32_t* table_of;  // of each region
  std::uint32_t* crowded;   // these regions
  std::uint32_t* count;
  ROOST_FN void operator()(std::size_t region) const {
    if (ends[region] - begins[region] <= most) return;
    const std::uint32_t number = fetch_add(*count, 1u);
    crowded[number] = static_cast<std::uint32_t>(region);
    table_of[region] = number;
  }
};

}  // namespace roost::detail
