#pragma once

#include <concepts>

#include "roost/detail/place/lanes.hpp"
#include "roost/detail/place/team.hpp"
#include "roost/detail/place/tuning.hpp"
#include "roost/pair.hpp"

// Lookups in steps. A layout defines where a lookup begins and what one step does; a step reads one piece of
// memory (a sector, a bucket, a slot). The drivers that execute the steps are here, once for all layouts.
//
// Reads are at the end of loops: so nvcc loads all of a piece at once, instead of its second half only where
// it is needed.

namespace roost::detail {

/// The result of a lookup: the value, and where it was found.
template <class Value>
struct hit : found<Value> {
  static constexpr std::uint64_t no_slot = ~std::uint64_t{0};

  hit() = default;
  ROOST_FN hit(const Value& value, std::uint64_t where, std::uint32_t reads)
      : found<Value>(value), slot(where), probes(reads) {}

  std::uint64_t slot = no_slot;
  std::uint32_t probes = 0;  // pieces of memory that were read
};

/// The values in hits of frozen tables: large ones are not copied.
template <class Value>
using small_value = std::conditional_t<is_large_value<Value>, none, Value>;

template <class Table>
using hit_in = typename Table::hit;

/// Which drivers pay in bulk lookups: on a host, and on a GPU in those by region and in direct ones. Others
/// are `one_by_one`.
struct bulk_drivers {
  bool defers = false, interleaves_by_region = false, interleaves_directly = false;
};

/// table.with_format(f) calls f(format); `format` is what the table chose at run time, as a constant, or
/// none().
template <class Table, class Format>
concept has_steps_in = requires(const Table& table, const typename Table::key_type& key, Format format,
                                typename Table::cursor_type& cursor, int slot, typename Table::hit& hit) {
  { table.start(key) } -> std::same_as<typename Table::cursor_type>;  // the lookup of a key where it begins
  table.read(format, cursor);                                         // reads what is there
  { table.match(format, cursor) } -> std::same_as<int>;  // the slot of the key in it, or a negative number
  table.take(format, cursor, slot, hit);                 // what the slot holds
  // Whether pairs continued past this piece, so that a lookup without a match must continue, too.
  { table.passed(format, cursor) } -> std::same_as<bool>;
  // Without a match, moves the lookup to its next piece; false if it ends here.
  { table.goes_on(format, cursor, hit) } -> std::same_as<bool>;
  table.fetch(cursor);  // prefetches what the next read will read
  { Table::drivers } -> std::convertible_to<bulk_drivers>;
};

template <class Table>
concept has_steps = requires(const Table& table, const typename Table::key_type& key) { table.start(key); };

/// Looks up one key, for loops over many keys.
template <class Table, class Format>
ROOST_FN hit_in<Table> probe_inline(const Table& table, Format format, const typename Table::key_type& key) {
  hit_in<Table> hit;
  auto cursor = table.start(key);
  table.read(format, cursor);
  for (;;) {  // with two exits: a warp whose threads leave by either one reconverges in each round
    if (const int slot = table.match(format, cursor); slot >= 0) {
      table.take(format, cursor, slot, hit);
      return hit;
    }
    if (!table.goes_on(format, cursor, hit)) return hit;
    table.read(format, cursor);
  }
}

/// The same, if a first step did not end the lookup.
template <class Table, class Format>
ROOST_RARE_FN hit_in<Table> probe_again(const Table& table, Format format,
                                        const typename Table::key_type& key) {
  return probe_inline(table, format, key);
}

/// Looks up one key. Where most lookups take one step, a host has the others in a function of their own: so
/// fewer instructions are between two reads of memory, and more reads are in flight.
template <class Table, class Format>
ROOST_FN hit_in<Table> probe(const Table& table, Format format, const typename Table::key_type& key) {
#if !ROOST_ON_DEVICE
  if constexpr (Table::drivers.defers) {
    hit_in<Table> hit;
    auto cursor = table.start(key);
    table.read(format, cursor);
    if (const int slot = table.match(format, cursor); slot >= 0) {
      table.take(format, cursor, slot, hit);
      return hit;
    }
    return table.passed(format, cursor) ? probe_again(table, format, key) : hit;
  }
#endif
  return probe_inline(table, format, key);
}
template <class Table>
ROOST_FN hit_in<Table> probe(const Table& table, const typename Table::key_type& key) {
  table.expect_alive();
  return table.with_format([&](auto format) { return probe(table, format, key); });
}

/// Examines what was read; true if that ends the lookup.
template <class Table, class Format, class Cursor>
ROOST_FN bool probe_step(const Table& table, Format format, Cursor& cursor, hit_in<Table>& hit) {
  const int slot = table.match(format, cursor);
  if (slot < 0) return !table.goes_on(format, cursor, hit);
  table.take(format, cursor, slot, hit);
  return true;
}

/// The numbers first, first + apart, ... below end.
struct every {
  std::uint64_t first, end, apart;
};

/// put(i, hit) for the keys of these numbers. One loop over all steps, not one for each key: a thread of a
/// warp goes on to its next key while another takes a second step.
template <class Table, class Format, class Keys, class Put>
ROOST_FN void probe_interleaved(const Table& table, Format format, const Keys& keys, const every& numbers,
                                const Put& put) {
  if (numbers.first >= numbers.end) return;
  auto cursor = table.start(keys[numbers.first]);
  table.read(format, cursor);
  for (std::uint64_t i = numbers.first;;) {
    hit_in<Table> hit;
    if (probe_step(table, format, cursor, hit)) {
      put(i, hit);
      i += numbers.apart;
      if (i >= numbers.end) return;
      cursor = table.start(keys[i]);
    }
    table.read(format, cursor);
  }
}

/// Queries [first, first + n) of a batch.
template <class Queries>
struct query_tile {
  const Queries& queries;
  std::uint64_t first;
  std::uint32_t n;
};

/// A lookup that its first step did not end.
template <class Key>
struct deferred_query {
  Key key;               // a copy: the answers may be written where the queries are
  std::uint16_t number;  // in the tile
};

/// Room for those of a tile.
template <driver Driver, class Key>
ROOST_FN deferred_query<Key>* take_deferred(scratch_memory& memory, std::uint32_t tile) {
  if constexpr (Driver != driver::deferred) return nullptr;
  return memory.take<deferred_query<Key>>(tile);
}

/// Prefetches what the second step of a lookup reads. Not inlined: a table whose address never escapes stays
/// in registers.
template <class Table, class Format>
ROOST_RARE_FN void fetch_second(const Table table, Format format, const typename Table::key_type& key) {
  auto cursor = table.start(key);
  table.read(format, cursor);
  hit_in<Table> hit;
  if (table.goes_on(format, cursor, hit)) table.fetch(cursor);
}

/// put(i, hit) for the keys of a tile, by a thread of a host. Lookups that need more than their first step
/// are finished afterwards: they are listed without a branch, which would often be mispredicted. `ahead`: how
/// many keys ahead memory is prefetched; 0: the table is in the cache.
template <class Table, class Format, class Keys, class Put>
ROOST_FN void probe_deferred(const Table& table, Format format, const query_tile<Keys>& tile,
                             deferred_query<typename Table::key_type>* const deferred, std::uint32_t ahead,
                             const Put& put) {
  const auto& [keys, first, n] = tile;
  const bool far = ahead != 0;
  const std::uint32_t prefetched = far ? n - smaller(n, ahead) : 0;
  auto* next = deferred;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i < prefetched) table.prefetch(keys[first + i + ahead]);
    const typename Table::key_type key = keys[first + i];
    auto cursor = table.start(key);
    table.read(format, cursor);
    hit_in<Table> hit;
    if (const int slot = table.match(format, cursor); slot >= 0) {
      table.take(format, cursor, slot, hit);
      put(first + i, hit);
    } else {
      put(first + i, hit);
      *next = {key, static_cast<std::uint16_t>(i)};
      const bool passed = table.passed(format, cursor);
      next += passed;
      if (far & passed) fetch_second(table, format, key);
    }
  }
  for (const auto* d = deferred; d != next; ++d) put(first + d->number, probe_inline(table, format, d->key));
}

}  // namespace roost::detail
