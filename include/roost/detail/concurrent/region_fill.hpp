#pragma once

#include "roost/detail/concurrent/probing.hpp"
#include "roost/detail/table/bulk_change.hpp"
#include "roost/detail/table/slots.hpp"

// The kernels of concurrent_map's bulk calls.

namespace roost::detail {

/// The pairs of a partition by region.
template <class Item>
struct pairs_of_partition {
  const Item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  const put_counts* counts;

  ROOST_FN bool lack_some() const { return counts->overflowed != 0; }

  template <class Team, class F>
  ROOST_FN void for_each(const Team& team, std::size_t region, const F& f) const {
    const Item* const first = items + begins[region];
    for_each_in_step(team, static_cast<std::uint32_t>(ends[region] - begins[region]),
                     [&](std::uint32_t i) { f(first[i]); });
  }
};

/// The pairs of another table with the same hash, by region of the table `target`. Since the regions of both
/// tables are in hash order, the pairs of a target region come from few regions.
template <class Table>
struct pairs_of_table {
  Table source, target;

  ROOST_FN bool lack_some() const { return false; }

  template <class Team, class F>
  ROOST_FN void for_each(const Team& team, std::size_t region, const F& f) const {
    const probing::plan& old = source.geometry();
    const std::uint64_t regions = target.geometry().regions, section = old.regions / probing::sections,
                        section_first = region / (regions / probing::sections) * section;
    const std::uint64_t first = region * old.regions / regions,
                        last = ceil_div((region + 1) * old.regions, regions);
    bool some_free = false;
    // Keys of a full region may have continued to the next one, and so on.
    for (std::uint64_t r = first;
         r < first + section && (r < last || (r < last + probing::regions_in_reach - 1 && !some_free)); ++r) {
      const std::uint64_t b0 = (r < section_first + section ? r : r - section) * old.region_buckets;
      bool mine_free = false;
      for_each_of(team, old.region_buckets * Table::bucket_slots, [&](std::uint32_t i) {
        const auto word = source.word_at(b0 * Table::bucket_slots + i);
        mine_free |= Table::slot::is_free(word);
        if (!Table::slot::is_there(word)) return;
        const auto item =
            pair_of(source.key_of(word, b0 + i / Table::bucket_slots), Table::slot::value(word));
        if (target.region_index(item.key) == region) f(item);
      });
      some_free = team.any(mine_free);
    }
  }
};

/// No pairs: only erased keys are removed.
struct no_pairs {
  ROOST_FN bool lack_some() const { return false; }
  template <class Team, class F>
  ROOST_FN void for_each(const Team&, std::size_t, const F&) const {}
};

/// Fills one region in a team's scratch, and writes the buckets that have changed. In regions that were never
/// full, so that none of their keys is in the next region, slots of erased keys are freed first.
template <class Place, class Table, class From, class Change>
struct fill_regions {
  static constexpr int threads = change_tuning<cuda>::fill_threads;
  static constexpr bool large_scratch = true;
  static constexpr int teams_at_once = change_tuning<cuda>::fill_teams_at_once;
  static constexpr bool keeps = std::is_same_v<Change, typename Table::keep>;
  using bucket = typename Table::bucket;
  using item = pair<typename Table::key_type, typename Table::value_type>;

  Table table;
  From source;
  Change change;
  bool empty;   // the table is new; else pairs are added to the present ones
  bool sweeps;  // there may be erased keys
  left_over<item> left;

  struct pieces {
    bucket* buckets;
    std::uint32_t* inserted;
    std::uint32_t* freed;
    std::uint32_t* strays;
    item* stray;            // belongs outside its home bucket
    std::uint8_t* changed;  // of each bucket
    std::uint8_t* erased;   // of each bucket: it held an erased key at the start
    std::uint32_t* passed;  // a bit for each bucket: a key passes it
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    const std::uint32_t buckets = table.geometry().region_buckets;
    return {.buckets = memory.take<bucket>(buckets),
            .inserted = memory.take<std::uint32_t>(1),
            .freed = memory.take<std::uint32_t>(1),
            .strays = memory.take<std::uint32_t>(1),
            .stray = memory.take<item>(most_strays()),
            .changed = memory.take<std::uint8_t>(buckets),
            .erased = memory.take<std::uint8_t>(buckets),
            .passed = memory.take<std::uint32_t>(ceil_div(buckets, 32u))};
  }
  ROOST_FN std::uint32_t most_strays() const {
    return larger(table.geometry().region_buckets * Table::bucket_slots / 4, 4u);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    using access = std::conditional_t<Team::size == 1, sole_access, team_access>;
    if (source.lack_some()) return;
    const pieces parts = scratch_of(*this, memory);
    const auto region = static_cast<std::uint32_t>(index);
    const std::uint32_t buckets = table.geometry().region_buckets;
    bucket* const there = table.region_of(region);
    if (team.rank() == 0) *parts.inserted = *parts.freed = *parts.strays = 0;
    if (!empty) copy_in(team, there, buckets, parts.buckets);
    for_each_of(team, buckets, [&](std::uint32_t b) {
      if (empty) parts.buckets[b] = bucket{};
      parts.changed[b] = empty;
    });
    team.sync();
    if (sweeps) take_out_erased<access>(team, parts, region);
    if (std::is_same_v<From, no_pairs> && *parts.freed == 0) return;
    std::uint32_t inserted = 0;
    const auto put = [&](const item& mine, std::uint32_t first, std::uint32_t last) {
      const auto done =
          table.template put_in_region<access>(parts.buckets, mine.key, value_of(mine), change, {first, last},
                                               [&](std::uint64_t b) { parts.changed[b] = 1; });
      inserted += done.what == insertion::inserted;
      if (done.what == insertion::inserted || (!keeps && done.what == insertion::present))
        parts.changed[done.bucket] = 1;
      return done.what != insertion::full;
    };
    // On cuda, pairs whose home is full are collected first: a loop that only a few threads of a warp
    // continue is slow. Their home cannot have room for them later.
    source.for_each(team, region, [&](const item& mine) {
      if constexpr (Team::size != 1) {
        if (put(mine, 0, 1)) return;
        const std::uint32_t i = team.fetch_add(*parts.strays, 1u);
        if (i < most_strays()) {
          parts.stray[i] = mine;
          return;
        }
      }
      if (!put(mine, 0, buckets)) left.add(mine);
    });
    team.sync();
    for_each_of(team, smaller(*parts.strays, most_strays()), [&](std::uint32_t i) {
      if (!put(parts.stray[i], 1, buckets)) left.add(parts.stray[i]);
    });
    team.add_near(*parts.inserted, inserted);
    team.sync();
    write_changed(team, parts.buckets, buckets, there,
                  [&](std::uint32_t b) { return parts.changed[b] != 0; });
    if (team.rank() == 0) {
      fetch_add(left.counts->inserted, std::uint64_t{*parts.inserted});
      if (*parts.freed != 0) fetch_add(left.counts->freed, std::uint64_t{*parts.freed});
    }
  }

  /// Frees slots of erased keys. First each key outside its home bucket moves back to the first bucket of its
  /// probe sequence that has such a slot. Then the slots of erased keys in buckets that no key passes are
  /// freed; the rest wait for a later call. If too many keys are away from home, nothing is changed.
  template <class Access, class Team>
  ROOST_FN void take_out_erased(const Team& team, const pieces& parts, std::uint32_t region) const {
    const std::uint32_t section = region / (table.geometry().regions / probing::sections);
    auto* const strays = reinterpret_cast<std::uint32_t*>(parts.stray);  // slots
    const auto most = static_cast<std::uint32_t>(most_strays() * sizeof(item) / sizeof(std::uint32_t));
    const bool sensible = list_strays(team, parts, section, strays, most);
    const std::uint32_t count = *parts.strays;
    team.sync();
    if (team.rank() == 0) *parts.strays = 0;
    team.sync();
    if (!sensible || count > most) return;
    for_each_of(team, count, [&](std::uint32_t i) { move_back<Access>(team, parts, section, strays[i]); });
    team.sync();
    free_erased(team, parts);
  }

  /// Lists the slots of keys outside their home buckets. True if there are both erased keys and free slots.
  template <class Team>
  ROOST_FN bool list_strays(const Team& team, const pieces& parts, std::uint32_t section,
                            std::uint32_t* strays, std::uint32_t most) const {
    using slot = typename Table::slot;
    bool some_erased = false, some_free = false;
    for_each_of(team, table.geometry().region_buckets, [&](std::uint32_t b) {
      const bucket here = load(parts.buckets + b);
      bool erased = false;
      ROOST_UNROLL
      for (std::uint32_t s = 0; s < Table::bucket_slots; ++s) {
        const auto word = here.slots[s];
        erased |= slot::is_erased(word);
        some_free |= slot::is_free(word);
        if (!slot::is_there(word) || table.home_in_region(word, section) == b) continue;
        const std::uint32_t i = team.fetch_add(*parts.strays, 1u);
        if (i < most) strays[i] = b * Table::bucket_slots + s;
      }
      parts.erased[b] = erased;
      if (b % 32 == 0) parts.passed[b / 32] = 0;
      some_erased |= erased;
    });
    return team.any(some_erased) && team.any(some_free);
  }

  /// Moves the key of a slot to that of an erased key nearer to its home, or notes the buckets it passes.
  template <class Access, class Team>
  ROOST_FN void move_back(const Team& team, const pieces& parts, std::uint32_t section,
                          std::uint32_t number) const {
    using slot = typename Table::slot;
    const std::uint32_t own = number / Table::bucket_slots;
    auto& mine = parts.buckets[own].slots[number % Table::bucket_slots];  // no other thread changes it
    const auto moved = mine;
    table.probe_in_region(moved, section, own, [&](std::uint32_t b) {
      std::uint32_t& word = parts.passed[b / 32];
      const std::uint32_t bit = 1u << b % 32;
      const bool passed = (team.read(word) & bit) != 0;
      if (parts.erased[b] && !passed) {
        for (auto& there : parts.buckets[b].slots) {
          const auto seen = Access::load(&there);
          if (!slot::is_erased(seen) ||
              !(Access::compare_exchange(&there, seen, slot::in_place_of(moved, seen)) == seen))
            continue;
          Access::set_key_bits(&mine, slot::erased);
          parts.changed[b] = parts.changed[own] = 1;
          return false;
        }
      }
      if (!passed) team.fetch_or(word, bit);
      return true;
    });
  }

  /// Frees the slots of erased keys in buckets that no key passes.
  template <class Team>
  ROOST_FN void free_erased(const Team& team, const pieces& parts) const {
    using slot = typename Table::slot;
    std::uint32_t freed = 0;
    for_each_of(team, table.geometry().region_buckets, [&](std::uint32_t b) {
      if ((parts.passed[b / 32] >> b % 32 & 1) != 0) return;
      bool frees = false;
      for (auto& word : parts.buckets[b].slots) {
        if (!slot::is_erased(word)) continue;
        word = {};
        frees = true;
        ++freed;
      }
      if (!frees) return;
      for (auto& word : parts.buckets[b].slots) word = slot::in_place_of(word, {});  // without its mark
      parts.changed[b] = 1;
    });
    team.add_near(*parts.freed, freed);
    team.sync();
  }
};

template <class Stencil>
struct wanted_by {
  Stencil stencil;
  ROOST_FN bool operator()(std::size_t i) const { return static_cast<bool>(stencil[i]); }
};

/// A stencil for n pairs.
template <class Stencil>
auto wanted_of(const Stencil& stencil, std::size_t n, const char* where) {
  const auto sequence = as_sequence(stencil);
  if (sequence.size() != n) {
    detail::raise<invalid_argument>(
        {where, ": ", n, " keys but a stencil of ", sequence.size(), "; give one element a key"});
  }
  return wanted_by<std::remove_const_t<decltype(sequence)>>{sequence};
}

template <class Table>
struct is_taken {
  Table table;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const { return table.taken(slot) ? 1 : 0; }
};

/// 1 for a slot that is neither free (all zeros) nor occupied: lookups pass it, and inserts try it in vain.
/// Also for a free slot in a bucket that keys may have passed: an insert of one of these keys would take it,
/// and the key would be there twice.
template <class Table>
struct is_neither_free_nor_taken {
  Table table;
  ROOST_FN std::uint64_t operator()(std::size_t number) const {
    using slot = typename Table::slot;
    const auto word = table.word_at(number);
    if ((slot::key_part(word) & slot::taken) != 0) return 0;
    bool bad = !(word == decltype(word){});
    const std::uint64_t first = number / Table::bucket_slots * Table::bucket_slots;
    for (int s = 0; s < Table::bucket_slots; ++s)
      bad |= slot::is_marked(table.word_at(first + static_cast<unsigned>(s)));
    return bad ? 1 : 0;
  }
};

/// Inserts a pair; 1 if there is no room.
template <class Table>
struct insert_item {
  Table target;
  const pair<typename Table::key_type, typename Table::value_type>* items;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return target.insert(items[i].key, value_of(items[i])) == insertion::full ? 1 : 0;
  }
};

/// Inserts the pair of a slot into another table.
template <class Table>
struct copy_slot {
  Table source, target;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    return source.occupied(slot) &&
                   target.insert(source.key_at(slot), source.value_at(slot)) == insertion::full
               ? 1
               : 0;
  }
};

template <class Table>
struct count_probes {
  Table table;
  std::uint64_t* keys;  // by probes - 1
  std::uint32_t most;
  ROOST_FN void operator()(std::size_t slot) const {
    const std::uint32_t probes = table.occupied(slot) ? table.probes_of(table.key_at(slot)) : 0;
    if (probes != 0) fetch_add(keys[smaller(probes, most) - 1], std::uint64_t{1});  // 0: since erased
  }
};

}  // namespace roost::detail
