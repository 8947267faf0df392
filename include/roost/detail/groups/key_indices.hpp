#pragma once

#include "roost/detail/partition/geometry.hpp"
#include "roost/detail/partition/ranks.hpp"
#include "roost/detail/place/tuning.hpp"
#include "roost/detail/table/team_table.hpp"

// Indices for the distinct keys of a team's items.

namespace roost::detail {

/// How many items of `bytes_each` bytes fit in scratch of `bytes`: as many for each worker of a team, from 1
/// to `held_most`.
constexpr std::uint32_t tile_that_fits(std::size_t bytes, std::size_t bytes_each, std::size_t held_most) {
  constexpr std::size_t threads = group_tuning<cuda>::threads;
  const std::size_t held = smaller(bytes / bytes_each / threads, held_most);
  return static_cast<std::uint32_t>(larger<std::size_t>(held, 1) * threads);
}

/// The items that a team groups at once, and the number of distinct keys that a region can have.
template <class Place, class Key, class Value>
constexpr std::uint32_t group_tile =
    tile_that_fits(group_tuning<Place>::bytes, sizeof(Key) + larger(sizeof(Key), sizeof(Value)) + 22,
                   group_tuning<Place>::held_most);

/// An index for each of a team's items; each thread of a block keeps those of its own items in registers.
template <int PerWorker, class Team>
class item_indices {
 public:
  ROOST_FN explicit item_indices(std::uint32_t*) {}
  ROOST_FN std::uint32_t& operator()(int held, int) { return index_[held]; }

 private:
  std::uint32_t index_[PerWorker];
};
template <int PerWorker>
class item_indices<PerWorker, serial_team> {
 public:
  ROOST_FN explicit item_indices(std::uint32_t* memory) : index_(memory) {}
  ROOST_FN std::uint32_t& operator()(int, int i) { return index_[i]; }

 private:
  std::uint32_t* index_;
};

/// Indexes the distinct keys of a team's items, tile after tile, by first occurrence.
template <class Key, std::uint32_t Tile>
struct key_indices {
  static constexpr std::uint32_t slots_least = 2 * Tile;
  /// Flag in a slot: the rest is the index of a key; without it, the first item of this tile with the key.
  /// While add() runs, flag of an item's index: the item is the first one with its key.
  static constexpr std::uint32_t has_index = 1u << 31;

  leading_bits region_of;  // the leading bits of the hash, which are the same for all keys of a region
  team_table<std::uint32_t, look::read, true> table;
  std::uint32_t* size;  // distinct keys
  std::uint32_t* warp_counts;
  Key* key;       // by index
  Key* tile_key;  // of the items of a tile

  ROOST_FN static key_indices take(scratch_memory& memory, const leading_bits& region_of,
                                   std::uint32_t slots = slots_least) {
    key_indices parts;
    parts.region_of = region_of;
    parts.table = {memory.take<std::uint32_t>(slots), slots};
    parts.size = memory.take<std::uint32_t>(1);
    parts.warp_counts = memory.take<std::uint32_t>(32);
    parts.key = memory.take<Key>(Tile);
    return parts;
  }

  /// A barrier is needed before the next step that reads slots: add() has one.
  template <class Team>
  ROOST_FN void clear(const Team& team) const {
    table.clear(team);
    if (team.rank() == 0) *size = 0;
  }

  ROOST_FN std::uint32_t home_of(const Key& mine) const {
    const auto rest = split_hash(hash_of(mine, region_of.seed), region_of.regions).rest;
    return static_cast<std::uint32_t>(split_hash(rest, table.slots).digit);
  }

  /// The index of a key that already has one.
  ROOST_FN std::uint32_t index_of(const Key& mine) const {
    const std::uint32_t s =
        table.find(home_of(mine), [&](std::uint32_t word) { return same_key(key[word & ~has_index], mine); });
    return table.slot[s] & ~has_index;
  }

  /// index(held, i) = the index of the key of each of n items; on_new(index, held, i) is called for the
  /// first item of each new key. False if there are more than Tile keys: then the team must stop.
  template <int PerWorker, class Team, class Items, class OnNew>
  ROOST_FN bool add(const Team& team, const Items& item, std::uint32_t n,
                    item_indices<PerWorker, Team>& index, const OnNew& on_new) const {
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) { tile_key[i] = item(held, i).key; });
    team.sync();
    const std::uint32_t before = *size;
    bool full = false;
    for_each_held_in_step<PerWorker, true>(team, n, [&](int held, int i) {
      const Key mine = item(held, i).key;
      const auto me = static_cast<std::uint32_t>(i);
      const auto at = table.put(team, home_of(mine), me, table.slots, [&](std::uint32_t word) {
        return same_key((word & has_index) != 0 ? key[word & ~has_index] : tile_key[word], mine);
      });
      if (!at.full && me < at.before && (at.before & has_index) == 0) team.fetch_min(table.slot[at.slot], me);
      full |= at.full;
      index(held, i) = at.slot;
    });
    if (team.any(full)) return false;
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
      if (table.slot[index(held, i)] == static_cast<std::uint32_t>(i)) index(held, i) |= has_index;
    });
    const auto is_first = [&](int held, int i) { return (index(held, i) & has_index) != 0; };
    const auto name = [&](std::uint32_t fresh, int held, int i) {
      table.slot[index(held, i) & ~has_index] = fresh | has_index;
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
    for_each_held<PerWorker, true>(team, n, [&](int held, int i) {
      index(held, i) = table.slot[index(held, i) & ~has_index] & ~has_index;
    });
    return true;
  }
};

}  // namespace roost::detail
