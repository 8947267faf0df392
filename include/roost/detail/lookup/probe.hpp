#pragma once

#include "roost/detail/base/team.hpp"
#include "roost/detail/base/tuning.hpp"
#include "roost/pair.hpp"

// Lookups in steps. A layout says where a lookup begins and what one step of it does; a step reads one piece
// of memory (a sector, a bucket, a slot). What goes through the steps is here, once for all layouts:
//
// - table.with_format(f): calls f(format); `format` is what the table chose at run time, as a constant.
// - table.start(key): the lookup of a key where it begins.
// - table.read(format, lookup): reads what is there.
// - table.match(format, lookup): the slot of the key in what was read, or a negative number.
// - table.take(format, lookup, slot, hit): what the slot holds.
// - table.goes_on(format, lookup, hit): without a match, takes the lookup on; false if it ends here.
// - table.fetch(lookup): prefetches what the next read will read.
//
// Reads stand at the end of loops: so nvcc asks for all of a piece at once, not for its second half where it
// is needed.

namespace roost::detail {

/// What a lookup found: the value, and where.
template <class Value>
struct hit : found<Value> {
  static constexpr std::uint64_t no_slot = ~std::uint64_t{0};

  hit() = default;
  ROOST_FN hit(const Value& value, std::uint64_t where, std::uint32_t reads)
      : found<Value>(value), slot(where), probes(reads) {}

  std::uint64_t slot = no_slot;
  std::uint32_t probes = 0;  // pieces of memory that were read
};

/// What hits of frozen tables hold: large values stay where they are.
template <class Value>
using small_value = std::conditional_t<is_large_value<Value>, none, Value>;

template <class Table>
using hit_in = typename Table::hit;

template <class Table>
concept has_steps = requires(const Table& table, const typename Table::key_type& key) { table.start(key); };

/// Looks up one key.
template <class Table>
ROOST_FN hit_in<Table> probe(const Table& table, const typename Table::key_type& key) {
  return table.with_format([&](auto format) {
    hit_in<Table> hit;
    auto position = table.start(key);
    table.read(format, position);
    for (;;) {  // with two ways out: a warp whose threads leave by one comes together in each round
      if (const int slot = table.match(format, position); slot >= 0) {
        table.take(format, position, slot, hit);
        return hit;
      }
      if (!table.goes_on(format, position, hit)) return hit;
      table.read(format, position);
    }
  });
}

/// Looks at what was read: true if that ends the lookup.
template <class Table, class Format, class Lookup>
ROOST_FN bool probe_step(const Table& table, Format format, Lookup& position, hit_in<Table>& hit) {
  const int slot = table.match(format, position);
  if (slot < 0) return !table.goes_on(format, position, hit);
  table.take(format, position, slot, hit);
  return true;
}

/// put(i, hit) for the keys of numbers first, first + apart, ... below end. One loop over all steps, not one
/// for each key: a thread of a warp goes on to its next key while another takes a second step.
template <class Table, class Format, class Keys, class Put>
ROOST_FN void probe_interleaved(const Table& table, Format format, const Keys& keys, std::uint64_t first,
                                std::uint64_t end, std::uint64_t apart, const Put& put) {
  if (first >= end) return;
  auto position = table.start(keys[first]);
  table.read(format, position);
  for (std::uint64_t i = first;;) {
    hit_in<Table> hit;
    if (probe_step(table, format, position, hit)) {
      put(i, hit);
      i += apart;
      if (i >= end) return;
      position = table.start(keys[i]);
    }
    table.read(format, position);
  }
}

/// Takes the first step of a lookup only: put(hit) if that ends it; if not, what the next step reads is on
/// its way, and the answer is false.
template <class Table, class Put>
ROOST_FN bool probe_first(const Table& table, const typename Table::key_type& key, const Put& put) {
  return table.with_format([&](auto format) {
    auto position = table.start(key);
    hit_in<Table> hit;
    table.read(format, position);
    const bool ends = probe_step(table, format, position, hit);
    if (ends) {
      put(hit);
    } else {
      table.fetch(position);
    }
    return ends;
  });
}

/// How a team goes through the lookups of a tile: queries by region, or direct ones of a table that the cache
/// does not hold.
template <class Place, class Table, bool ByRegion>
constexpr driver driver_of = [] {
  if constexpr (!has_steps<Table>) {
    return driver::one_by_one;
  } else if constexpr (find_tuning<Place>::defers) {
    return Table::defers ? driver::deferred : driver::one_by_one;
  } else {
    return (ByRegion ? Table::interleaves_by_region : Table::interleaves_directly) ? driver::interleaved
                                                                                   : driver::one_by_one;
  }
}();

/// The lookups of a tile that their first step did not end.
struct deferred_queries {
  std::uint32_t* count;
  std::uint16_t* number;  // of each, in the tile

  template <driver Driver>
  ROOST_FN static deferred_queries take(scratch_memory& memory, std::uint32_t tile) {
    if constexpr (Driver != driver::deferred) return {};
    return {memory.take<std::uint32_t>(1), memory.take<std::uint16_t>(tile)};
  }
};

/// put(i, hit) for keys[first ... first + n), by a team of a host, whose tiles go through the cache: what
/// later lookups read is fetched ahead.
template <class Team, class Table, class Keys, class Put>
ROOST_FN void probe_deferred(const Team& team, const Table& table, const Keys& keys, std::uint64_t first,
                             std::uint32_t n, std::uint32_t ahead, const deferred_queries& deferred,
                             const Put& put) {
  if (team.rank() == 0) *deferred.count = 0;
  team.sync();
  for_each_of(team, n, [&](std::uint32_t i) {
    if (i + ahead < n) table.prefetch(keys[first + i + ahead]);
    if (!probe_first(table, keys[first + i], [&](const auto& hit) { put(first + i, hit); }))
      deferred.number[team.fetch_add(*deferred.count, 1u)] = static_cast<std::uint16_t>(i);
  });
  team.sync();
  for_each_of(team, *deferred.count, [&](std::uint32_t d) {
    const std::uint64_t i = first + deferred.number[d];
    put(i, probe(table, keys[i]));
  });
  team.sync();
}

}  // namespace roost::detail
