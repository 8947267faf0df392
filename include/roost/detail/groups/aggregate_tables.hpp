#pragma once

#include "roost/detail/groups/aggregate_regions.hpp"

// Small batches on a device: one launch adds to tables in its memory.

namespace roost::detail {

/// The tables of all regions of a small batch, in memory of a device, to which all teams add at the same
/// time.
template <class Kernel>
struct tables_of_all {
  Kernel run;
  std::byte* memory;
  std::size_t bytes;  // of each

  ROOST_FN void find(std::uint64_t region, typename Kernel::pieces& parts) const {
    scratch_memory all(memory + region * bytes);
    run.take_table(all, parts);
  }
};

template <class Kernel>
struct clear_tables {
  static constexpr int threads = group_tuning<cuda>::table_threads;
  tables_of_all<Kernel> tables;
  std::uint64_t* turns;  // of the run

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte*) const {
    typename Kernel::pieces parts{};
    tables.find(region, parts);
    tables.run.clear(team, parts);
    const std::size_t words = region == 0 ? earlier_teams::words(tables.run.regions) : 0;
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

  tables_of_all<Kernel> tables;
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
    const Kernel& run = tables.run;
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
      typename Kernel::pieces table{};
      tables.find(run.hot(parts.key[i]), table);
      run.add_sums(team, table, {parts.key[i], parts.value, i, count}, full);
    });
    if (full) run.outcome->failed = 1;
    if (in_order) run.outcome->in_order = 1;
  }
};

/// Writes what the tables hold.
template <class Kernel>
struct write_tables {
  static constexpr int threads = group_tuning<cuda>::table_threads;
  tables_of_all<Kernel> tables;

  /// With a copy of the slots, which are read many times.
  ROOST_FN auto scratch(scratch_memory& memory) const {
    auto parts = tables.run.scratch_of_finish(memory);
    parts.slot = memory.take<typename Kernel::word>(tables.run.slots + 32);
    return parts;
  }
  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    auto parts = scratch_of(*this, memory);
    const std::uint64_t region = tables.run.turns.turn(team, parts.shared);
    auto* const slot = parts.slot;
    tables.find(region, parts);
    for_each_of(team, tables.run.slots + 32, [&](std::uint32_t s) { slot[s] = parts.slot[s]; });
    parts.slot = slot;
    team.sync();
    tables.run.finish(team, parts, region, false);
  }
};

}  // namespace roost::detail
