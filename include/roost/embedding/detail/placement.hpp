#pragma once

#include "roost/embedding/detail/memory.hpp"

// Missing keys get slots: a warp takes a bucket and goes through its missing keys in ascending order; each
// gets the least slot of the bucket. There are no locks, and the result is deterministic.

namespace roost::detail {

/// What a step does besides finding slots.
template <class Value>
struct step_kind {
  std::uint32_t running = 0;              // steps before this one whose keys keep their rows, too
  std::uint32_t admit = 1;                // lookups that give a key its row
  Value* out = nullptr;                   // where the rows of the ids are copied to
  const Value* given = nullptr;           // rows that the keys get
  embedding_key* evicted_keys = nullptr;  // those that lose their rows
  Value* evicted_rows = nullptr;
  bool fetches = true;  // rows come to the cache
};

template <class Value>
struct place_missing {
  static constexpr int threads = 128;
  static constexpr std::uint32_t of_bucket = embedding_slots::of_bucket, at_once = 32;
  static constexpr std::uint32_t not_admitted = no_slot - 1;  // in claimed_keys::slots, like no_slot
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  /// Buckets of a team.
  template <class Place>
  static constexpr std::size_t tile = std::is_same_v<Place, host> ? 1024 : threads / 32 * 8;

  embedding_view<Value> table;
  claimed_keys claimed;
  step_kind<Value> how;

  struct chosen_key {
    embedding_key key;
    std::uint32_t position, slot;
    bool evicts;
  };
  struct pieces {
    std::uint64_t* order;  // of the slots of a bucket: the least is taken first
    chosen_key* chosen;
    std::uint32_t* count;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    constexpr std::uint32_t warps = threads / 32;
    return {memory.take<std::uint64_t>(warps * of_bucket), memory.take<chosen_key>(warps * at_once),
            memory.take<std::uint32_t>(warps)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (*claimed.any == 0) return;
    scratch_memory all(memory);
    pieces mine = scratch(all);
    constexpr std::uint32_t warps = Team::size / Team::near_size;
    const std::uint32_t warp = static_cast<std::uint32_t>(team.rank()) / Team::near_size;
    mine.order += warp * of_bucket;
    mine.chosen += warp * at_once;
    mine.count += warp;
    constexpr std::size_t of_team = tile<typename Team::place>, of_warp = of_team / warps;
    const std::size_t first = index * of_team + warp * of_warp;
    std::uint64_t evictions = 0;
    for (std::size_t b = first; b < smaller<std::size_t>(first + of_warp, table.slots.buckets); ++b) {
      if (claimed.heads[b] != 0) evictions += place_in(team, static_cast<std::uint32_t>(b), mine);
    }
    if (team.rank() % Team::near_size == 0 && evictions != 0) fetch_add(table.state->evicted, evictions);
  }

 private:
  template <class Team>
  ROOST_FN std::uint32_t place_in(const Team& team, std::uint32_t bucket, const pieces& mine) const {
    const std::uint32_t lane = static_cast<std::uint32_t>(team.rank()) % Team::near_size;
    for (std::uint32_t s = lane; s < of_bucket; s += Team::near_size) mine.order[s] = order_of(bucket, s);
    std::uint32_t evictions = 0, count = at_once;
    for (bool again = false; count == at_once; again = true) {
      team.sync_near();
      if (lane == 0) *mine.count = choose(bucket, mine.chosen, again);
      team.sync_near();
      count = *mine.count;
      for (std::uint32_t k = 0; k < count; ++k) evictions += take_slot(team, lane, bucket, mine, k);
      for (std::uint32_t k = lane; k < count; k += Team::near_size) write_slot(mine.chosen[k]);
      for (std::uint32_t k = 0; k < count; ++k) write_row(team, lane, mine.chosen[k]);
    }
    if (lane == 0) claimed.heads[bucket] = 0;
    return evictions;
  }

  ROOST_FN std::uint64_t order_of(std::uint32_t bucket, std::uint32_t s) const {
    const std::size_t slot = std::size_t{bucket} * of_bucket + s;
    const std::uint32_t step = table.slots.steps[slot];  // read together with the tag
    const eviction policy = table.options.eviction;
    if (!table.slots.has(slot)) return s;
    if (policy == eviction::none || std::uint64_t{step} + how.running >= table.state->step) return never;
    std::uint64_t score = step;
    if (policy == eviction::least_frequent) score = table.slots.scores[slot];
    if (policy == eviction::least_score) score = table.slots.scores[slot] & 0xffffffffu;
    return std::uint64_t{1} << 63 | score << 7 | s;
  }

  /// The least admitted missing keys of a bucket, in order; `again`: those after the previous ones.
  ROOST_FN std::uint32_t choose(std::uint32_t bucket, chosen_key* chosen, bool again) const {
    const embedding_key last = again ? chosen[at_once - 1].key : embedding_key{};
    std::uint32_t count = 0;
    for (std::uint32_t p = claimed.heads[bucket]; p != 0; p = claimed.next[p - 1]) {
      const embedding_key key = claimed.keys[p - 1];
      if (again && (claimed.slots[p - 1] != no_slot || !(last < key))) continue;  // it had its turn
      if (table.sketch.counters != nullptr && table.sketch.count(key) < how.admit) {
        claimed.slots[p - 1] = not_admitted;
        continue;
      }
      if (count == at_once && !(key < chosen[count - 1].key)) continue;
      std::uint32_t k = count == at_once ? count - 1 : count++;
      for (; k != 0 && key < chosen[k - 1].key; --k) chosen[k] = chosen[k - 1];
      chosen[k] = {key, p - 1, no_slot, false};
    }
    return count;
  }

  /// Gives the k-th chosen key the least slot; returns whether another key had it.
  template <class Team>
  ROOST_FN bool take_slot(const Team& team, std::uint32_t lane, std::uint32_t bucket, const pieces& mine,
                          std::uint32_t k) const {
    std::uint64_t least = never;
    for (std::uint32_t s = lane; s < of_bucket; s += Team::near_size) least = smaller(least, mine.order[s]);
    least = least_near(team, least);
    const std::uint32_t s = static_cast<std::uint32_t>(least) % of_bucket;
    const bool evicts = least != never && least >> 63 != 0;
    if (lane == 0) {
      mine.chosen[k].slot = least == never ? no_slot : bucket * of_bucket + s;
      mine.chosen[k].evicts = evicts;
      if (least != never) mine.order[s] = never;
    }
    team.sync_near();
    return evicts;
  }

  ROOST_FN void write_slot(const chosen_key& one) const {
    if (one.slot == no_slot) {
      claimed.slots[one.position] = no_slot;
      return;
    }
    const embedding_slots& slots = table.slots;
    claimed.slots[one.position] = one.slot | (one.evicts ? is_missing : 0);
    if (one.evicts) claimed.keys[one.position] = slots.key(one.slot);
    const std::uint32_t now = table.state->step;
    slots.put(one.slot, one.key);
    slots.steps[one.slot] = now;
    if (slots.scores == nullptr) return;
    const bool given = table.options.eviction == eviction::least_score;
    slots.scores[one.slot] = (given ? std::uint64_t{now} << 32 : 0) | claimed.weights[one.position];
  }

  template <class Team>
  ROOST_FN void write_row(const Team&, std::uint32_t lane, const chosen_key& one) const {
    if (one.slot == no_slot) return;
    const embedding_rows<Value>& rows = table.rows;
    const std::uint64_t beginning = one.key.beginning(table.options.seed);
    std::byte* const row = rows.at(one.slot);
    Value* const weights = rows.weights(row);
    if (lane == 0) rows.mark(one.slot);
    if (how.given == nullptr) {
      for (std::uint32_t c = lane; c < rows.dim; c += Team::near_size)
        weights[c] = from_float<Value>(first_number(table.options.initializer, beginning, c));
    }
    for (std::uint32_t c = rows.dim + lane; c < rows.kept_at / sizeof(Value); c += Team::near_size)
      weights[c] = from_float<Value>(0);  // files contain no arbitrary bytes
    float* const kept = rows.part(row, 0);
    for (std::uint32_t c = lane; c < rows.kept; c += Team::near_size) kept[c] = 0;
  }
};

}  // namespace roost::detail
