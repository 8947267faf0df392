#pragma once

#include "roost/detail/place/atomic.hpp"
#include "roost/detail/place/team.hpp"
#include "roost/embedding/detail/numbers.hpp"
#include "roost/embedding/detail/slots.hpp"
#include "roost/place.hpp"

// Where rows are stored: all in memory of the place, or all in host memory with a cache of recently used rows
// in memory of the place. What a table computes does not depend on what is in the cache.

namespace roost::detail {

/// Rows by slot: the weights and then, at a multiple of 16 bytes, the optimizer's state.
template <class Value>
struct embedding_rows {
  static constexpr std::uint32_t changed = 1u << 31;  // in owners

  std::byte* data = nullptr;        // rows in memory of the place: of each slot, or the cache
  std::size_t stride = 0;           // bytes of a row
  std::uint32_t dim = 0;            // weights
  std::uint32_t kept_at = 0;        // bytes before the optimizer's state
  std::uint32_t kept_of = 0;        // floats from one part of the state to the next
  std::uint32_t kept = 0;           // floats of the state
  std::byte* far = nullptr;         // rows of all slots, in host memory; or null: there is no cache
  std::uint32_t* where = nullptr;   // of each slot: its row in the cache plus 1, or 0
  std::uint32_t* owners = nullptr;  // of each row in the cache: its slot plus 1, or 0; and whether it changed

  ROOST_FN std::byte* at(std::size_t slot) const {
    if (far == nullptr) return data + slot * stride;
    const std::uint32_t near = where[slot];
    return near != 0 ? data + (near - 1) * stride : far + slot * stride;
  }
  ROOST_FN Value* weights(std::byte* row) const { return reinterpret_cast<Value*>(row); }
  ROOST_FN float* part(std::byte* row, std::uint32_t which) const {
    return reinterpret_cast<float*>(row + kept_at) + which * kept_of;
  }
  /// Call this for every modified row.
  ROOST_FN void mark(std::uint32_t slot) const {
    if (far == nullptr) return;
    if (const std::uint32_t near = where[slot]; near != 0) owners[near - 1] = (slot + 1) | changed;
  }
};

/// The cache of rows. Each region of slots has its part of it, so that rows that are exchanged at the same
/// time are in few pages of host memory: a GPU can translate the addresses of only a few pages at a time. A
/// new row replaces the least recently used one in a line of 32, which its slot and the step choose. A row
/// that was used again after it was fetched counts as used `again` steps later (as in 2Q, Johnson and Shasha
/// 1994).
struct row_cache {
  static constexpr std::uint32_t line = 32, lines_of_region = 128, again = 256;
  static constexpr std::uint32_t regions_most = 4095;  // the scan of their counts then takes no memory
  static constexpr std::uint32_t waits = ~0u;          // in embedding_rows::where: for fetch_rows

  std::uint64_t slots = 0;
  std::uint32_t lines = 0, regions = 0;
  std::uint32_t* used = nullptr;  // of each row: the step of its last use
  std::uint32_t* came = nullptr;  // of each row: the step when it was fetched
  const std::uint32_t* step = nullptr;

  ROOST_FN std::uint32_t now() const { return larger(*step, 1u); }
  ROOST_FN std::uint32_t region_of(std::uint32_t slot) const {
    return static_cast<std::uint32_t>(std::uint64_t{slot} * regions / slots);
  }
  ROOST_FN std::uint32_t first_line(std::uint32_t region) const {
    return static_cast<std::uint32_t>(std::uint64_t{lines} * region / regions);
  }
};

/// Marks the rows of a batch that are in the cache with the step; counts the rest by region, each once.
template <class Value>
struct use_rows {
  embedding_rows<Value> rows;
  row_cache cache;
  const std::uint32_t* slots;
  std::uint64_t* counts;       // of each region
  std::uint32_t* ranks;        // of each id, in its region; or no_slot
  const std::uint32_t* steps;  // of each slot, if an update may be running; or null
  std::uint32_t keeps_steps;   // before the running one

  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t slot = slots[i];
    ranks[i] = no_slot;
    if (slot == no_slot) return;
    std::uint32_t near = peek(rows.where[slot]);
    // A row that an update may be changing in host memory stays there.
    if (near == 0 && steps != nullptr && std::uint64_t{steps[slot]} + keeps_steps >= cache.now()) return;
    if (near == 0)
      near = shared_access::compare_exchange(rows.where + slot, 0u, std::uint32_t{row_cache::waits});
    if (near == 0) {
      ranks[i] = static_cast<std::uint32_t>(fetch_add(counts[cache.region_of(slot)], std::uint64_t{1}));
    } else if (near != row_cache::waits && peek(cache.used[near - 1]) != cache.now()) {
      exchange(cache.used[near - 1], cache.now());
    }
  }
};
/// Puts the slots that wait in the order of their regions.
struct order_rows {
  row_cache cache;
  const std::uint32_t *slots, *ranks;
  const std::uint64_t* starts;  // of regions
  std::uint32_t* ordered;
  ROOST_FN void operator()(std::size_t i) const {
    if (ranks[i] != no_slot) ordered[starts[cache.region_of(slots[i])] + ranks[i]] = slots[i];
  }
};

/// Copies waiting rows to the cache, and the rows that they replace back to host memory if they changed. If
/// all candidates belong to running steps, a row stays in host memory. Few teams, so that few pages are in
/// use at a time.
template <class Value>
struct fetch_rows {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tries = 16;
  static constexpr std::size_t teams = 32;

  embedding_rows<Value> rows;
  row_cache cache;
  const std::uint32_t* ordered;
  const std::uint64_t* count;
  std::uint32_t keeps_steps;  // before the running one

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    constexpr std::uint32_t near = Team::near_size;
    const auto rank = static_cast<std::uint32_t>(team.rank());
    for (std::size_t k = index * (Team::size / near) + rank / near; k < *count;
         k += teams * (Team::size / near))
      fetch(team, rank % near, ordered[k]);
  }

 private:
  template <class Team>
  ROOST_FN void fetch(const Team& team, std::uint32_t lane, std::uint32_t slot) const {
    const std::uint32_t row = take_row(team, lane, slot);
    if (row == no_slot) {
      if (lane == 0) rows.where[slot] = 0;
      return;
    }
    const std::uint32_t owner = rows.owners[row], former = (owner & ~embedding_rows<Value>::changed) - 1;
    exchange_rows(lane, Team::near_size, rows.data + row * rows.stride, rows.far + slot * rows.stride,
                  owner > embedding_rows<Value>::changed ? rows.far + former * rows.stride : nullptr);
    team.sync_near();
    if (lane != 0) return;
    if (owner != 0) rows.where[former] = 0;
    rows.owners[row] = slot + 1;
    rows.where[slot] = row + 1;
    exchange(cache.came[row], cache.now());
  }

  /// A row of the cache that is free or not used by a running step; no_slot if several lines have none.
  template <class Team>
  ROOST_FN std::uint32_t take_row(const Team& team, std::uint32_t lane, std::uint32_t slot) const {
    constexpr std::uint64_t never = ~std::uint64_t{0};
    const std::uint32_t region = cache.region_of(slot), begin = cache.first_line(region),
                        lines = cache.first_line(region + 1) - begin, now = cache.now();
    auto at = static_cast<std::uint32_t>(split_hash(mix64(slot, now), lines).digit);
    for (std::uint32_t failed = 0; failed < tries;) {
      const std::uint32_t first = (begin + at) * row_cache::line;
      std::uint64_t least = never;
      for (std::uint32_t s = lane; s < row_cache::line; s += Team::near_size)
        least = smaller(least, order_of(first + s, s, now));
      least = least_near(team, least);
      if (least == never) {
        ++failed;
        at = at + 1 == lines ? 0 : at + 1;
        continue;
      }
      const std::uint32_t row = first + static_cast<std::uint32_t>(least) % row_cache::line;
      const auto used = static_cast<std::uint32_t>((least >> 6) - (least >> 5 & 1) * row_cache::again);
      std::uint32_t before = used;
      if (lane == 0) before = shared_access::compare_exchange(cache.used + row, used, now);
      if (of_lane<Team::near_size>(0, before) == used) return row;
    }
    return no_slot;
  }

  /// The order in which the rows of a line are replaced: by the step of the last use, later if the row was
  /// used after the step that fetched it and the next one, for which it may have been prefetched; then by its
  /// number.
  ROOST_FN std::uint64_t order_of(std::uint32_t row, std::uint32_t number, std::uint32_t now) const {
    const std::uint64_t used = peek(cache.used[row]);
    if (used != 0 && used + keeps_steps >= now) return ~std::uint64_t{0};
    const std::uint64_t again = used > std::uint64_t{peek(cache.came[row])} + 1 ? 1 : 0;
    return (used + again * row_cache::again) << 6 | again << 5 | number;
  }

  /// near -> back, unless that is null, and far -> near; some pieces at a time, so that the reads of both are
  /// in flight together.
  ROOST_FN void exchange_rows(std::uint32_t lane, std::uint32_t lanes, std::byte* near, const std::byte* far,
                              std::byte* back) const {
    constexpr std::uint32_t at_once = 4;
    const auto pieces = static_cast<std::uint32_t>(rows.stride / sizeof(two_words));
    auto* const here = reinterpret_cast<two_words*>(near);
    const auto* const there = reinterpret_cast<const two_words*>(far);
    for (std::uint32_t first = lane; first < pieces; first += lanes * at_once) {
      two_words comes[at_once], goes[at_once];
      ROOST_UNROLL
      for (std::uint32_t k = 0; k < at_once; ++k) {
        const std::uint32_t p = first + k * lanes;
        if (p < pieces) comes[k] = there[p];
        if (p < pieces && back != nullptr) goes[k] = here[p];
      }
      ROOST_UNROLL
      for (std::uint32_t k = 0; k < at_once; ++k) {
        const std::uint32_t p = first + k * lanes;
        if (p < pieces && back != nullptr) reinterpret_cast<two_words*>(back)[p] = goes[k];
        if (p < pieces) here[p] = comes[k];
      }
    }
  }
};

/// Memory for rows that wait to come to the cache.
template <class Place>
struct waiting_rows {
  array<std::uint32_t, Place> numbers;  // two for each id
  array<std::uint64_t, Place> starts;   // of regions, and the end

  waiting_rows(const Place& place, const row_cache& cache, std::size_t ids)
      : numbers(place, 2 * ids), starts(place, ids != 0 ? std::size_t{cache.regions} + 1 : 0) {}
};

template <class Value>
struct embedding_view;

/// Brings rows of slots to the cache. `steps`: of each slot, if an update may be running; or null.
template <class Place, class Value>
void bring_to_cache(const Place& place, const embedding_view<Value>& table,
                    std::span<const std::uint32_t> slots, std::uint32_t keeps_steps,
                    waiting_rows<Place>& waiting, const std::uint32_t* steps = nullptr) {
  const calls_between_pieces none(nullptr);  // rows that wait must come
  const std::size_t n = slots.size();
  std::uint32_t *const ranks = waiting.numbers.data(), *const ordered = ranks + n;
  std::uint64_t* const starts = waiting.starts.data();
  place.fill(starts, 0, waiting.starts.bytes());
  place.for_each(n, use_rows<Value>{.rows = table.rows,
                                    .cache = table.cache,
                                    .slots = slots.data(),
                                    .counts = starts,
                                    .ranks = ranks,
                                    .steps = steps,
                                    .keeps_steps = keeps_steps});
  place.exclusive_scan(starts, starts, waiting.starts.size());
  place.for_each(n, order_rows{table.cache, slots.data(), ranks, starts, ordered});
  const fetch_rows<Value> run{table.rows, table.cache, ordered, starts + table.cache.regions, keeps_steps};
  place.launch(run.teams, 0, run);
}

}  // namespace roost::detail
