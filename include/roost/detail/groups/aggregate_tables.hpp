#pragma once

#include "roost/detail/groups/aggregate_regions.hpp"

// Small batches on a device: one launch adds to tables in its memory.

namespace roost::detail {

template <class Kernel>
struct clear_tables {
  static constexpr int threads = group_tuning<cuda>::table_threads;
  Kernel run;
  std::uint64_t* turns;  // of the run

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte*) const {
    run.clear(team, run.table_at(region));
    const std::size_t words = region == 0 ? earlier_teams::words(run.regions) : 0;
    for_each_of(team, static_cast<std::uint32_t>(words), [&](std::uint32_t i) { turns[i] = 0; });
  }
};

/// Combines the values of each key of a tile, and adds the results to the tables: keys may be few.
template <class Kernel, class Source>
struct add_to_tables {
  static constexpr int threads = group_tuning<cuda>::table_threads;
  static constexpr std::uint32_t tile = threads, slots = 2 * tile;
  using reduce = typename Kernel::reduce;
  using key_type = std::remove_cvref_t<decltype(std::declval<const Source&>()[0].key)>;

  Kernel run;
  Source source;
  std::size_t n;

  struct pieces {
    table_of_items table;
    key_type* key;
    typename reduce::words value;
    std::uint32_t* count;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {{memory.take<std::uint32_t>(slots), slots},
            memory.take<key_type>(tile),
            reduce::take(memory, tile),
            memory.take<std::uint32_t>(tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    const pieces parts = scratch_of(*this, memory);
    const std::size_t first = index * tile;
    const auto m = static_cast<std::uint32_t>(smaller<std::size_t>(tile, n - first));
    parts.table.clear(team);
    for_each_of(team, m, [&](std::uint32_t i) {
      parts.key[i] = source[first + i].key;
      parts.count[i] = 0;
      reduce::clear(parts.value, i);
    });
    team.sync();
    bool full = false, in_order = false;
    for_each_of(team, m, [&](std::uint32_t i) {
      const auto value = value_of(source[first + i]);
      in_order |= reduce::depends_on_order(value);
      const auto home = static_cast<std::uint32_t>(hash_of(parts.key[i], run.hot.spread.seed)) % slots;
      const std::uint32_t same = item_of_key(team, parts.table, home, parts.key, i);
      team.fetch_add(parts.count[same], 1u);
      reduce::add(team, parts.value, same, value);
    });
    team.sync();
    for_each_of(team, m, [&](std::uint32_t i) {
      const std::uint32_t count = parts.count[i];
      if (count == 0) return;
      run.add_sums(team, run.table_at(run.hot(parts.key[i])), {parts.key[i], parts.value, i, count}, full);
    });
    if (full) run.outcome->failed = 1;
    if (in_order) run.outcome->in_order = 1;
  }
};

/// Writes what the tables hold.
template <class Kernel>
struct write_tables {
  static constexpr int threads = group_tuning<cuda>::table_threads;
  Kernel run;

  /// With a copy of the slots, which are read many times.
  ROOST_FN auto scratch(scratch_memory& memory) const {
    auto parts = run.scratch_of_finish(memory);
    parts.slot = memory.take<typename Kernel::word>(run.slots + 32);
    return parts;
  }
  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    auto parts = scratch_of(*this, memory);
    const std::uint64_t region = run.turns.turn(team, parts.shared);
    const auto table = run.table_at(region);
    for_each_of(team, run.slots + 32, [&](std::uint32_t s) { parts.slot[s] = table.slot[s]; });
    parts.value = table.value;
    parts.count = table.count;
    team.sync();
    run.finish(team, parts, region, false);
  }
};

}  // namespace roost::detail
