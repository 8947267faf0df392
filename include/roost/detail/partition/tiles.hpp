#pragma once

#include "roost/detail/partition/geometry.hpp"
#include "roost/detail/partition/ranks.hpp"
#include "roost/detail/place/look_back.hpp"
#include "roost/detail/place/numbers.hpp"
#include "roost/detail/place/past_cache.hpp"
#include "roost/detail/place/tuning.hpp"
#include "roost/hash.hpp"
#include "roost/pair.hpp"

// The kernels of a partition: they count a tile of items, move it to its regions, and restore its results to
// input order.

namespace roost::detail {

/// One pass of a partition: every parent region is split into at most `fan` children; child = region >>
/// shift.
struct partition_pass {
  std::uint32_t shift;
  std::uint32_t fan_bits;  // children of parent p are p << fan_bits ...
  std::uint32_t digits;    // the most children of one parent
  std::uint64_t children;  // of all parents
};

/// The positions of the tiles of a pass. Null pointers: one parent with all n items. `tiles_of_parent`: fixed
/// tiles per parent, or 0. If fixed, the last tiles of a parent may be empty, and only begin and end are
/// needed.
struct tile_map {
  std::uint64_t n = 0;
  const std::uint64_t* begin = nullptr;  // of each parent's items
  const std::uint64_t* end = nullptr;
  const std::uint64_t* first_tile = nullptr;  // of each parent
  const std::uint32_t* parent = nullptr;      // of each tile; past the last tile: none
  std::uint32_t tiles_of_parent = 0;
  std::uint32_t first_parent = 0;  // the first tile's
  static constexpr std::uint32_t no_parent = ~0u;
};

struct tile_range {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t parent = 0;
};

ROOST_FN tile_range locate(const tile_map& map, std::uint64_t tile, std::uint32_t tile_items) {
  if (map.tiles_of_parent != 0) {
    const auto parent = static_cast<std::uint32_t>(map.first_parent + tile / map.tiles_of_parent);
    const std::uint64_t first = map.begin[parent] + tile % map.tiles_of_parent * tile_items;
    const std::uint64_t end = larger(map.end[parent], first);
    return {first, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile_items, end - first)), parent};
  }
  if (map.parent == nullptr) {
    const std::uint64_t first = tile * tile_items;
    return {first, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile_items, map.n - first)), 0};
  }
  const std::uint32_t parent = map.parent[tile];
  if (parent == tile_map::no_parent) return {};
  const std::uint64_t first = map.begin[parent] + (tile - map.first_tile[parent]) * tile_items;
  return {first, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile_items, map.end[parent] - first)),
          parent};
}

/// Output positions if the order of items does not matter: one cursor per child, for all tiles.
struct shared_cursors {
  static constexpr bool in_order = false;
  std::uint64_t* cursor;

  struct of_tile {
    std::uint64_t* cursor;
    std::uint32_t first_child;  // of the parent
    ROOST_FN void count(std::uint32_t d, std::uint32_t n) const { take(d, n); }
    ROOST_FN std::uint64_t take(std::uint32_t d, std::uint32_t n) const {
      return n != 0 ? fetch_add(cursor[first_child + d], std::uint64_t{n}) : 0;
    }
  };
  ROOST_FN of_tile of(const tile_map&, const partition_pass& pass, std::uint64_t,
                      std::uint32_t parent) const {
    return {cursor, parent << pass.fan_bits};
  }
};

/// Output positions that keep input order: one cursor per digit and tile. The cursors of a parent are
/// contiguous, ordered by digit and then by tile, so that one exclusive scan over all counts gives them and
/// the begins of all children.
struct tile_cursors {
  static constexpr bool in_order = true;
  std::uint64_t* cursor;
  std::uint64_t tiles;  // of all parents; the cursor after the last tile's is the end of all items

  struct of_tile {
    std::uint64_t* cursor;  // of digit 0
    std::uint64_t stride;   // to the next digit
    ROOST_FN void count(std::uint32_t d, std::uint32_t n) const { cursor[d * stride] = n; }
    ROOST_FN std::uint64_t operator[](std::uint32_t d) const { return cursor[d * stride]; }
  };
  ROOST_FN of_tile of(const tile_map& map, const partition_pass& pass, std::uint64_t tile,
                      std::uint32_t parent) const {
    if (map.parent == nullptr) return {cursor + tile, tiles};
    if (map.parent[tile] == tile_map::no_parent) return {cursor + tile * pass.digits, 1};
    const std::uint64_t first = map.first_tile[parent];
    return {cursor + first * pass.digits + (tile - first), map.first_tile[parent + 1] - first};
  }
};

/// The same in one pass: each tile adds up the counts of the tiles before it as they are published (see
/// earlier_teams). Children have slack.
struct look_back_cursors {
  static constexpr bool in_order = true;
  std::uint64_t* begun;    // tiles; then what each has published, of each digit: all 0 at first
  std::uint64_t* end;      // of each child's items; at first their begin
  std::uint64_t tiles;     // of all parents
  std::uint64_t capacity;  // of each child
  /// Of one parent, where each child begins, and what that counts besides; instead of room and `end`. Or
  /// null.
  const std::uint64_t* begins = nullptr;
  std::uint64_t besides = 0;

  static constexpr std::uint64_t own = std::uint64_t{1} << 62, up_to_own = std::uint64_t{2} << 62;

  struct of_tile {
    std::uint64_t* published;  // of digit 0
    std::uint64_t* end;        // of the child of digit 0
    std::uint64_t begin;       // likewise
    std::uint64_t capacity;
    std::uint64_t before;  // tiles of the parent
    std::uint32_t digits;
    bool last;  // tile of the parent
    const std::uint64_t* begins;
    std::uint64_t besides;

    /// To be called as soon as a count is known.
    ROOST_FN void publish([[maybe_unused]] std::uint32_t d, [[maybe_unused]] std::uint32_t n) const {
#if ROOST_ON_DEVICE
      publish_word(published + d, (before == 0 ? up_to_own : own) | n);
#endif
    }
    ROOST_FN std::uint64_t take([[maybe_unused]] std::uint32_t d, [[maybe_unused]] std::uint32_t n) const {
#if ROOST_ON_DEVICE
      constexpr int at_once = 4;
      const std::uint64_t* earlier = published + d - digits;
      std::uint64_t sum = 0;
      bool all = before == 0;
      for (std::uint64_t left = before; !all; left -= at_once, earlier -= at_once * digits) {
        std::uint64_t word[at_once];
        ROOST_UNROLL
        for (int t = 0; t < at_once; ++t)
          word[t] = static_cast<std::uint64_t>(t) < left ? published_word(earlier - t * digits) : up_to_own;
        ROOST_UNROLL
        for (int t = 0; t < at_once; ++t) {
          if (all) break;
          while (word[t] < own) word[t] = published_word(earlier - t * digits);
          sum += word[t] & (own - 1);
          all = word[t] >= up_to_own;
        }
      }
      if (before != 0) publish_word(published + d, up_to_own | (sum + n));
      if (begins != nullptr) return begins[d] - besides + sum;
      const std::uint64_t position = begin + d * capacity + sum;
      if (last && sum + n != 0) end[d] = position + n;  // the last parent may have fewer children
      return position;
#else
      return 0;
#endif
    }
  };
  ROOST_FN of_tile of(const tile_map& map, const partition_pass& pass, std::uint64_t tile,
                      std::uint32_t parent) const {
    const std::uint64_t first = map.parent == nullptr ? 0 : map.first_tile[parent],
                        last = map.parent == nullptr ? tiles : map.first_tile[parent + 1];
    const std::uint64_t child = std::uint64_t{parent} << pass.fan_bits;
    return {.published = begun + 1 + tile * pass.digits,
            .end = end + child,
            .begin = child * capacity,
            .capacity = capacity,
            .before = tile - first,
            .digits = pass.digits,
            .last = tile + 1 == last,
            .begins = begins,
            .besides = besides};
  }
};

/// A choice of regions may absorb items of certain keys: a tile adds them up in scratch memory, and does not
/// move them (see groups/hot_keys.hpp). This one does not.
struct absorbs_nothing {
  struct pieces {};
};

template <class RegionOf>
constexpr bool absorbs = requires { typename RegionOf::pieces; };
template <class RegionOf>
using absorber_of = std::conditional_t<absorbs<RegionOf>, RegionOf, absorbs_nothing>;

/// Counts the items of every child region.
template <class Place, class Item, class Source, class RegionOf, class Cursors>
struct count_tiles {
  static constexpr int threads = partition_tuning<cuda>::threads;
  Source source;
  RegionOf region_of;
  tile_map tiles;
  partition_pass pass;
  Cursors counts;

  ROOST_FN std::uint32_t* scratch(scratch_memory& memory) const {
    return memory.take<std::uint32_t>(pass.digits);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t tile, std::byte* memory) const {
    scratch_memory pieces(memory);
    std::uint32_t* const count = scratch(pieces);
    const tile_range range = locate(tiles, tile, tile_items<Place, Item>);
    const std::uint32_t first_child = range.parent << pass.fan_bits;
    for_each_of(team, pass.digits, [&](std::uint32_t d) { count[d] = 0; });
    team.sync();
    constexpr int per_worker = static_cast<int>(tile_items<Place, Item>) / Team::size;
    const held_items<per_worker, Team, Source> item(
        team, source, range.first, range.count);  // all loads are in flight before the first is used
    for_each_held<per_worker>(team, range.count, [&](int held, int i) {
      if constexpr (absorbs<RegionOf>) {
        if (region_of.absorbs_key(item(held, i).key)) return;
      }
      const std::uint32_t child = region_of(item(held, i).key) >> pass.shift;
      team.fetch_add(count[child - first_child], 1u);
    });
    team.sync();
    const auto target = counts.of(tiles, pass, tile, range.parent);
    for_each_of(team, pass.digits, [&](std::uint32_t d) { target.count(d, count[d]); });
  }
};

/// What restore() needs from a pass; no_way_back keeps nothing.
struct way_back_of_pass {
  std::uint16_t* position = nullptr;  // [i]: where in its tile's output item i of the pass's input is
  std::uint16_t* start = nullptr;     // [tile][digit]: first position of the digit in the tile
  std::uint64_t* shift_by = nullptr;  // [tile][digit]: output index - position
};

struct no_way_back {};

/// Moves the items of a tile to their child regions. A tile counts its digits in scratch, and reserves room
/// in each child with one atomic per digit, unless its positions are already known. Then it orders its items
/// in scratch and writes them in runs.
template <class Place, class Item, class Source, class RegionOf, class Cursors, class Back,
          std::uint32_t Tile = tile_items<Place, Item>>
struct scatter_tiles {
  static constexpr bool keeps_way_back = std::is_same_v<Back, way_back_of_pass>;
  static constexpr bool looks_back = std::is_same_v<Cursors, look_back_cursors>;
  static constexpr int threads = partition_tuning<cuda>::threads;
  static constexpr int teams_at_once = partition_tuning<cuda>::teams_at_once(sizeof(Item));
  static constexpr bool large_scratch = sizeof(Item) > 96;  // a tile has at least 512 items
  Source source;
  RegionOf region_of;
  tile_map tiles;
  partition_pass pass;
  Cursors cursors;         // where the next items are written
  std::uint64_t capacity;  // of each child with slack, so that child c begins at c * capacity; 0: exact
  Item* out;
  std::uint32_t* overflowed;  // counts tiles that found a child full; items past its end are not written
  Back back;
  const std::uint32_t* unless = nullptr;  // if not 0, nothing is done

  struct pieces {
    std::uint32_t* count;
    std::uint32_t* start;
    std::uint64_t* shift_by;  // output index - position in the tile
    Item* staged;
    std::uint16_t* digit;  // of each item of one worker, or of each staged item
    std::uint32_t* lanes;  // see rank_in_order: in the place of `staged`, which is not used yet
    std::uint16_t* warp_counts;
    typename absorber_of<RegionOf>::pieces absorbed;
  };
  static constexpr std::uint32_t is_absorbed = ~0u;  // instead of a rank
  static constexpr std::uint16_t no_digit = 0xffff;
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    constexpr std::uint32_t digits = partition_tuning<Place>::digits_most;  // a constant, so that offsets are
    constexpr bool one_worker = std::is_same_v<Place, host>;
    constexpr std::uint32_t ranks =
        Cursors::in_order && !one_worker ? rank_counters<block_team<threads>>(digits) : 0;
    auto* const count = memory.take<std::uint32_t>(digits);
    auto* const start = memory.take<std::uint32_t>(digits);
    auto* const shift_by = memory.take<std::uint64_t>(digits);
    scratch_memory same = memory;
    auto* const lanes = same.take<std::uint32_t>(ranks);
    auto* const staged = memory.take<Item>(Tile);
    if (same.used() > memory.used()) memory = same;
    return {.count = count,
            .start = start,
            .shift_by = shift_by,
            .staged = staged,
            .digit = memory.take<std::uint16_t>(Tile),
            .lanes = lanes,
            .warp_counts = memory.take<std::uint16_t>(ranks),
            .absorbed = [&]() -> typename absorber_of<RegionOf>::pieces {
              if constexpr (absorbs<RegionOf>) return region_of.scratch(memory);
              return {};
            }()};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t tile, std::byte* memory) const {
    if (unless != nullptr && *unless != 0) return;
    const pieces parts = scratch_of(*this, memory);
    if constexpr (looks_back) {
      tile = earlier_teams(cursors.begun).turn(team, parts.shift_by);
      if (tiles.parent != nullptr && tiles.parent[tile] == tile_map::no_parent) return;
    }
    const tile_range range = locate(tiles, tile, Tile);
    const std::uint32_t first_child = range.parent << pass.fan_bits;

    constexpr int per_worker = static_cast<int>(Tile) / Team::size;
    constexpr bool counts_ranks = Cursors::in_order && Team::size > 1;
    const auto cursor = cursors.of(tiles, pass, tile, range.parent);
    static_assert(!(counts_ranks && absorbs<RegionOf>), "items that are absorbed have no order");
    if constexpr (!counts_ranks) {
      for_each_of(team, pass.digits, [&](std::uint32_t d) { parts.count[d] = 0; });
      if constexpr (absorbs<RegionOf>) region_of.begin(team, parts.absorbed);
      team.sync();
    }
    const held_items<per_worker, Team, Source, counts_ranks> item(team, source, range.first, range.count);
    std::uint32_t rank[Team::size == 1 ? 1 : per_worker];  // among the tile's items of the same digit
    if constexpr (Cursors::in_order && !looks_back) {      // in flight with the items
      for_each_of(team, pass.digits, [&](std::uint32_t d) { parts.shift_by[d] = cursor[d]; });
    }
    count_digits(team, range.count, parts, first_child, item, rank);
    if constexpr (looks_back)
      for_each_of(team, pass.digits, [&](std::uint32_t d) { cursor.publish(d, parts.count[d]); });
    team.exclusive_scan(parts.count, parts.start, pass.digits);
    team.sync();
    bool full = false;
    if constexpr (!looks_back) full = take_room(team, tile, parts, first_child, cursor);

    for_each_held<per_worker, counts_ranks>(team, range.count, [&](int held, int i) {
      std::uint32_t position;
      if constexpr (Team::size == 1) {
        if (absorbs<RegionOf> && parts.digit[i] == no_digit) return;
        position = parts.start[parts.digit[i]]++;  // where the next digit starts, in the end
      } else {
        if (absorbs<RegionOf> && rank[held] == is_absorbed) return;
        const std::uint32_t digit = digit_and_rank::digit(rank[held]);
        position = parts.start[digit] + digit_and_rank::rank(rank[held]);
        parts.digit[position] = static_cast<std::uint16_t>(digit);
      }
      parts.staged[position] = item(held, i);
      if constexpr (keeps_way_back)
        back.position[range.first + static_cast<std::uint32_t>(i)] = static_cast<std::uint16_t>(position);
    });
    if constexpr (looks_back) full = take_room(team, tile, parts, first_child, cursor);
    std::uint32_t moved = range.count;
    if constexpr (absorbs<RegionOf> && Team::size > 1)
      moved = parts.start[pass.digits - 1] + parts.count[pass.digits - 1];
    if (!team.any(full)) {
      send<false>(team, moved, parts, first_child);
    } else {
      if (team.rank() == 0) fetch_add(*overflowed, 1u);
      send<true>(team, moved, parts, first_child);
    }
    if constexpr (absorbs<RegionOf>) region_of.end(team, parts.absorbed);
  }

 private:
  ROOST_FN std::uint32_t digit_of(const Item& item, std::uint32_t first_child) const {
    return (region_of(item.key) >> pass.shift) - first_child;
  }
  /// The end of a child with slack.
  ROOST_FN std::uint64_t end_of(std::uint32_t first_child, std::uint32_t d) const {
    return (std::uint64_t{first_child} + d + 1) * capacity;
  }

  /// Counts the items of each digit, and finds the rank of each item among them, or keeps its digit.
  template <class Team, class Items, int Held>
  ROOST_FN void count_digits(const Team& team, std::uint32_t n, const pieces& parts,
                             std::uint32_t first_child, const Items& item,
                             [[maybe_unused]] std::uint32_t (&rank)[Held]) const {
    if constexpr (Cursors::in_order && Team::size > 1) {
      rank_in_order(
          team, n, pass.digits, [&](int held, int i) { return digit_of(item(held, i), first_child); },
          {parts.lanes, parts.warp_counts, parts.count}, rank);
    } else {
      for_each_held<static_cast<int>(Tile) / Team::size>(team, n, [&](int held, int i) {
        if constexpr (absorbs<RegionOf>) {
          if (region_of.take(team, parts.absorbed, item(held, i))) {
            if constexpr (Team::size == 1) {
              parts.digit[i] = no_digit;
            } else {
              rank[held] = is_absorbed;
            }
            return;
          }
        }
        const std::uint32_t d = digit_of(item(held, i), first_child);
        if constexpr (Team::size == 1) {
          parts.digit[i] = static_cast<std::uint16_t>(d);
          ++parts.count[d];
        } else {
          rank[held] = digit_and_rank::make(d, team.fetch_add(parts.count[d], 1u));
        }
      });
      team.sync();
    }
  }

  /// Reserves room for the items of each digit; true if a child of this worker's digits is full.
  template <class Team, class Cursor>
  ROOST_FN bool take_room(const Team& team, std::size_t tile, const pieces& parts, std::uint32_t first_child,
                          const Cursor& cursor) const {
    bool full = false;
    for_each_of(team, pass.digits, [&](std::uint32_t d) {
      std::uint64_t first;
      if constexpr (Cursors::in_order && !looks_back) {
        first = parts.shift_by[d];
      } else {
        first = cursor.take(d, parts.count[d]);
        full |= capacity != 0 && first + parts.count[d] > end_of(first_child, d);
      }
      parts.shift_by[d] = first - parts.start[d];
      if constexpr (keeps_way_back) {
        back.start[tile * pass.digits + d] = static_cast<std::uint16_t>(parts.start[d]);
        back.shift_by[tile * pass.digits + d] = parts.shift_by[d];
      }
    });
    return full;
  }

  /// Writes the ordered items. Clip: some child is full, so the end of each must be checked.
  template <bool Clip, class Team>
  ROOST_FN void send(const Team& team, std::uint32_t count, const pieces& parts,
                     std::uint32_t first_child) const {
    if constexpr (Team::size == 1) {
      std::uint64_t position = 0;
      for (std::uint32_t d = 0; d < pass.digits; ++d) {
        const std::uint64_t next = parts.start[d], target = parts.shift_by[d] + position;
        std::uint64_t n = next - position;
        if (Clip) n = target < end_of(first_child, d) ? smaller(n, end_of(first_child, d) - target) : 0;
        copy_past_cache(out + target, parts.staged + position, n * sizeof(Item));
        position = next;
      }
      past_cache_done();
    } else {  // neighbours write neighbours
      for_each_of(team, count, [&](std::uint32_t i) {
        const Item mine = parts.staged[i];
        const std::uint32_t d = parts.digit[i];
        const std::uint64_t target = parts.shift_by[d] + i;
        if (!Clip || target < end_of(first_child, d)) out[target] = mine;
      });
    }
  }
};

/// Restores results, source[j], from the output order of a pass to its input order: to.put(i, result).
template <class Place, class Item, class Source, class To>
struct restore_tiles {
  using Result = std::remove_cvref_t<decltype(std::declval<const Source&>()[0])>;
  static constexpr int threads = partition_tuning<cuda>::threads;
  static constexpr int teams_at_once = partition_tuning<cuda>::teams_at_once(sizeof(Result));
  static constexpr bool gathers = sizeof(Result) <= 256;  // in scratch memory; larger ones go one by one
  static constexpr bool large_scratch = gathers && sizeof(Result) > 8;  // a tile fits its items, not these
  Source source;
  To target;
  tile_map tiles;
  std::uint32_t digits;
  way_back_of_pass back;
  const std::uint32_t* unless;  // in memory of the place: if not 0, nothing is done; or null

  static constexpr std::uint32_t chunk = 32;  // of results whose first digit is looked up

  struct pieces {
    std::uint32_t* start;
    std::uint64_t* shift_by;
    std::uint16_t* digit;  // of the first result of each chunk
    Result* gathered;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    constexpr std::uint32_t items = tile_items<Place, Item>;
    return {memory.take<std::uint32_t>(digits + 1), memory.take<std::uint64_t>(digits),
            memory.take<std::uint16_t>(items / chunk), memory.take<Result>(gathers ? items : 0)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t tile, std::byte* memory) const {
    constexpr int per_worker = static_cast<int>(tile_items<Place, Item>) / Team::size;
    if (unless != nullptr && *unless != 0) return;
    const pieces parts = scratch_of(*this, memory);
    const tile_range range = locate(tiles, tile, tile_items<Place, Item>);
    [[maybe_unused]] const held_items<per_worker, Team, const std::uint16_t*> position(
        team, back.position, range.first, range.count);
    for_each_of(team, digits, [&](std::uint32_t d) {
      parts.start[d] = back.start[tile * digits + d];
      parts.shift_by[d] = back.shift_by[tile * digits + d];
    });
    if (team.rank() == 0) parts.start[digits] = range.count;
    team.sync();
    for_each_of(team, ceil_div(range.count, chunk), [&](std::uint32_t c) {
      parts.digit[c] = static_cast<std::uint16_t>(last_at_or_before(0u, digits, parts.start, c * chunk));
    });
    team.sync();
    const auto answer_at = [&](int i) {
      std::uint32_t d = parts.digit[static_cast<std::uint32_t>(i) / chunk];
      while (parts.start[d + 1] <= static_cast<std::uint32_t>(i)) ++d;
      return parts.shift_by[d] + static_cast<std::uint32_t>(i);
    };
    if constexpr (!gathers) {
      for_each_of(team, range.count, [&](std::uint32_t i) {
        target.put(range.first + i, source[answer_at(back.position[range.first + i])]);
      });
    } else {
      if constexpr (Team::size == 1) {
        for (int i = 0; i < static_cast<int>(range.count); ++i) parts.gathered[i] = source[answer_at(i)];
      } else {  // all reads of a thread are in flight before the first is used
        Result mine[per_worker];
        for_each_held<per_worker>(team, range.count,
                                  [&](int held, int i) { mine[held] = source[answer_at(i)]; });
        for_each_held<per_worker>(team, range.count,
                                  [&](int held, int i) { parts.gathered[i] = mine[held]; });
      }
      team.sync();
      for_each_held<per_worker>(team, range.count, [&](int held, int i) {
        target.put(range.first + static_cast<std::uint32_t>(i), parts.gathered[position(held, i)]);
      });
    }
  }
};

template <class Result>
struct put_to {
  Result* target;
  ROOST_FN void put(std::size_t i, const Result& result) const { target[i] = result; }
};

}  // namespace roost::detail
