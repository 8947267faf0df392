#pragma once

#include <algorithm>

#include "roost/detail/frozen/region_build.hpp"
#include "roost/detail/place/copies.hpp"
#include "roost/detail/place/lanes.hpp"

// One thread of a host fills units (sectors) in place, in its cache. `Table`: see has_inserts (layout.hpp).

namespace roost::detail {

/// Fills the units of regions [first, first + regions) of a table with items.
template <class Table, class Items>
struct unit_fill {
  Table table;
  Items items;
  std::uint32_t count;  // of items
  std::uint32_t first, regions;
  std::uint8_t* come;  // of each unit: pairs whose home it is
  std::uint32_t strays_most;
  std::uint32_t* stray;  // pairs whose home is full

  unit_fill(const Table& target, const Items& source, std::uint32_t n, std::uint32_t first_region,
            std::uint32_t region_count, scratch_memory& memory)
      : table(target),
        items(source),
        count(n),
        first(first_region),
        regions(region_count),
        come(memory.take<std::uint8_t>(units())),
        strays_most(static_cast<std::uint32_t>(units() * 2)),
        stray(memory.take<std::uint32_t>(strays_most)) {}

  std::uint64_t units() const { return std::uint64_t{regions} * table.region_units(); }

  /// Adds what was built to the counts of `to`. First tries as if all keys were distinct; if they are not,
  /// inserts item by item, so that the first item of a key wins.
  template <class To>
  void run(const To& to) const {
    std::uint64_t placed = failed;
    run_on_host(table, [self = *this, &placed, expected = to.copies == on_copies::keep_first](auto format) {
      placed = !expected && self.count_in(format) ? self.count : self.insert_each(format);
    });
    to.add(placed != failed, placed, count);
  }

 private:
  static constexpr std::uint64_t failed = ~std::uint64_t{0};

  /// False if there is a duplicate key, or if too many pairs share a home.
  template <class Format>
  bool count_in(Format format) const {
    table.clear_regions(format, first, regions);
    std::fill_n(come, units(), std::uint8_t{0});
    std::uint8_t* const come_at = come - std::uint64_t{first} * table.region_units();
    std::uint32_t strays = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto item = items[i];
      const auto cursor = table.start(item.key);
      std::uint8_t& here = come_at[cursor.number];
      if (here < table.slots(format)) {
        table.put(format, cursor, here++, item);
      } else if (strays < strays_most) {
        stray[strays++] = i;
      } else {
        return false;
      }
    }
    for (std::uint32_t s = 0; s < strays; ++s) {
      if (table.insert(format, items[stray[s]]) != claim::made) return false;
    }
    bool twice = false;
    for (std::uint64_t unit = 0; unit < units(); ++unit)
      twice |= come[unit] > 1 && table.has_twice(format, std::uint64_t{first} * table.region_units() + unit);
    return !twice;
  }

  template <class Format>
  std::uint64_t insert_each(Format format) const {
    table.clear_regions(format, first, regions);
    std::uint64_t placed = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const claim outcome = table.insert(format, items[i]);
      if (outcome == claim::full) return failed;
      placed += outcome == claim::made;
    }
    return placed;
  }
};

/// Builds a whole table directly from the input: moving the pairs into regions first would take longer.
template <class Table, class Source>
struct build_unparted {
  Table table;
  Source source;
  build_counts* counts;

  unit_fill<Table, Source> scratch(scratch_memory& memory) const {
    return {table, source, static_cast<std::uint32_t>(source.size()), 0, table.regions(), memory};
  }
  template <class Team>
  void operator()(const Team&, std::size_t, std::byte* memory) const {
    scratch_memory all(memory);  // scratch_of would be for GPUs, too
    region_items<typename Table::item> to;
    to.counts = counts;
    scratch(all).run(to);
  }
};

/// Builds regions in scratch memory, a team for a region.
template <class Table, class Item, class Items>
struct fill_units {
  Table table;
  region_items<Item, Items> source;

  auto scratch(scratch_memory& memory) const {
    auto* const units = memory.take<typename Table::sector>(table.region_units());
    return std::pair(units, unit_fill<Table, Items>(table, {}, 0, 0, 1, memory));
  }
  template <class Team>
  void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (source.stopped(team)) return;
    const auto region = static_cast<std::uint32_t>(source.from + index);
    const std::uint64_t count = source.count(region);
    if (count > no_owner) return source.add(false, 0, count);
    scratch_memory all(memory);
    auto [units, fill] = scratch(all);
    fill.table = table.with_region_at(region, units);
    fill.items = source.first(region);
    fill.count = static_cast<std::uint32_t>(count);
    fill.first = region;
    fill.run(source);
    write_out(team, units, table.region_units(), table.region_begin(region));
  }
};

}  // namespace roost::detail
