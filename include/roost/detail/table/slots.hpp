#pragma once

#include "roost/detail/table/bulk_lookup.hpp"

// What goes over all slots of a table: any with capacity(), occupied(), key_at(), value_at(), slot_of() and
// probes_of().

namespace roost::detail {

/// f(key, value), or f(key) for sets.
template <class F, class Ref>
ROOST_FN decltype(auto) call_with_slot(const F& f, const Ref& ref, std::size_t slot) {
  if constexpr (std::is_same_v<typename Ref::value_type, none>) {
    return f(ref.key_at(slot));
  } else {
    return f(ref.key_at(slot), ref.value_at(slot));
  }
}

template <class Ref, class F>
struct visit_slot {
  Ref ref;
  F f;
  ROOST_FN void operator()(std::size_t slot) const {
    if constexpr (requires { ref.visit(slot, f); }) {
      ref.visit(slot, f);
    } else {
      if (ref.occupied(slot)) call_with_slot(f, ref, slot);
    }
  }
};

template <class Ref>
struct probes_of_slot {
  Ref ref;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    return ref.occupied(slot) ? ref.probes_of(ref.key_at(slot)) : 0;
  }
};

template <class Ref>
struct good_slot {  // counts a pair that is found where it lies as 1, one that is not as a number that no sum
                    // can hide
  Ref ref;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    if (!ref.occupied(slot)) return 0;
    return ref.slot_of(ref.key_at(slot)) == slot ? 1 : std::uint64_t{1} << 40;
  }
};

/// Counts the pairs of each tile of slots, or writes them, from the first output position of each tile on.
template <class Ref>
struct retrieve_tiles {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile_slots = 2048;
  using key = typename Ref::key_type;
  using value = typename Ref::value_type;

  Ref ref;
  std::uint64_t* counts;        // of each tile: where to count to,
  const std::uint64_t* places;  // or where its first pair goes
  key* keys;
  value* values;
  std::uint64_t room;

  /// Pairs that were inserted after the tile was counted are not written: the position after its last pair
  /// belongs to the next tile.
  ROOST_FN std::uint64_t end_of(std::size_t tile) const {
    if ((tile + 1) * tile_slots >= ref.capacity()) return room;
    return smaller(places[tile + 1], room);
  }

  ROOST_FN std::uint32_t* scratch(scratch_memory& memory) const { return memory.take<std::uint32_t>(1); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t tile, std::byte* memory) const {
    scratch_memory pieces(memory);
    std::uint32_t* const taken = scratch(pieces);
    if (team.rank() == 0) *taken = 0;
    team.sync();
    const std::uint64_t first = tile * tile_slots;
    const std::uint64_t begin = places == nullptr ? 0 : places[tile];
    const std::uint64_t end = places == nullptr ? 0 : end_of(tile);
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile_slots, ref.capacity() - first)),
                [&](std::uint32_t i) {
                  if (!ref.occupied(first + i)) return;
                  const std::uint32_t position = team.fetch_add(*taken, 1u);
                  if (begin + position >= end) return;
                  keys[begin + position] = ref.key_at(first + i);
                  if constexpr (!std::is_same_v<value, none>)
                    values[begin + position] = ref.value_at(first + i);
                });
    team.sync();
    if (counts != nullptr && team.rank() == 0) counts[tile] = *taken;
  }
};

template <class Place, class Ref>
void retrieve_pairs(const Place& place, const Ref& ref, typename Ref::key_type* keys,
                    typename Ref::value_type* values, std::size_t room) {
  using kernel = retrieve_tiles<Ref>;
  const std::size_t tiles = ceil_div<std::size_t>(ref.capacity(), kernel::tile_slots);
  array<std::uint64_t, Place> counts(place, tiles);
  const kernel count{ref, counts.data(), nullptr, nullptr, nullptr, 0};
  place.launch(tiles, scratch_bytes_of(count), count);
  place.exclusive_scan(counts.data(), counts.data(), tiles);
  const kernel write{ref, nullptr, counts.data(), keys, values, room};
  place.launch(tiles, scratch_bytes_of(write), write);
}

/// Erases the key of a slot if it is to be erased; returns 1 if so.
template <class Table, class F>
struct erase_slot_if {
  Table table;
  F f;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    if (!table.occupied(slot)) return 0;
    return call_with_slot(f, table, slot) && table.erase(table.key_at(slot)) ? 1 : 0;
  }
};

}  // namespace roost::detail
