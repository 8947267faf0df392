#pragma once

#include "roost/embedding/detail/memory.hpp"

// Missing keys get slots. A warp takes 32 buckets: each lane chooses the least missing keys of one bucket,
// the lanes together find the least slots of one bucket after the other, and then each lane writes the slots
// of its keys. There are no locks, and the result is deterministic. If there are many more ids than slots, a
// warp takes one bucket, so that one lane can choose all of its keys in one walk.

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

/// The slots of a bucket that one of several lanes orders: the least is taken first.
template <int Lanes>
struct slot_orders {
  static constexpr std::uint32_t count = embedding_slots::of_bucket / Lanes;
  static constexpr std::uint64_t never = ~std::uint64_t{0}, taken_from_key = std::uint64_t{1} << 63;

  std::uint32_t tags[count / 4], steps[count];
  std::uint64_t scores[count];

  ROOST_FN void read(const embedding_slots& slots, std::uint32_t bucket, std::uint32_t lane, bool scored) {
    const std::size_t first = std::size_t{bucket} * embedding_slots::of_bucket + lane * count;
    read_pieces(tags, slots.tags + first / 4);
    read_pieces(steps, slots.steps + first);
    if (scored) read_pieces(scores, slots.scores + first);
  }

  /// Turns what was read into orders, in place of the scores. Returns the least.
  ROOST_FN std::uint64_t order(eviction policy, std::uint64_t kept_since, std::uint32_t lane) {
    std::uint64_t least = never;
    ROOST_UNROLL
    for (std::uint32_t k = 0; k < count; ++k) {
      std::uint64_t score = policy == eviction::least_recent ? steps[k] : scores[k];
      if (policy == eviction::least_score) score &= 0xffffffffu;
      const std::uint64_t s = lane * count + k, evicts = taken_from_key | score << 7 | s;
      const bool is_free = (tags[k / 4] >> k % 4 * 8 & 255) == 0,
                 stays = policy == eviction::none || steps[k] >= kept_since;
      scores[k] = is_free ? s : stays ? never : evicts;
      least = smaller(least, scores[k]);
    }
    return least;
  }
  /// Removes an order of this lane. Returns the least of the others.
  ROOST_FN std::uint64_t without(std::uint64_t taken) {
    std::uint64_t least = never;
    if (Lanes == 1) scores[taken % embedding_slots::of_bucket] = never;
    ROOST_UNROLL
    for (std::uint32_t k = 0; k < count; ++k) {
      if (Lanes != 1 && scores[k] == taken) scores[k] = never;
      least = smaller(least, scores[k]);
    }
    return least;
  }
};

/// Crowded: chooses as many keys of a bucket at once as it has slots, otherwise a few.
template <class Value, bool Crowded>
struct place_missing {
  static constexpr int threads = 128, teams_at_once = 8;
  static constexpr std::uint32_t few = 4, at_once = Crowded ? embedding_slots::of_bucket : few;

  /// Buckets of the lanes of a warp, and of a team.
  template <class Team>
  static constexpr std::uint32_t near_buckets = Crowded ? 1 : Team::near_size;
  template <class Place>
  static constexpr std::size_t tile = std::is_same_v<Place, host> ? 1024 : threads * few / at_once;

  embedding_view<Value> table;
  embedding_ids ids;
  claimed_keys claimed;
  step_kind<Value> how;

  struct chosen_key {
    embedding_key key;
    std::uint32_t id, slot;
  };
  ROOST_FN chosen_key* scratch(scratch_memory& memory) const {
    return memory.take<chosen_key>(threads * few);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (*claimed.any == 0) return;
    constexpr std::uint32_t lanes = Team::near_size;
    constexpr std::size_t of_team = tile<typename Team::place>;
    const auto rank = static_cast<std::uint32_t>(team.rank());
    chosen_key* const chosen = scratch_of(*this, memory) + rank / lanes * lanes * few;
    const std::size_t end = smaller<std::size_t>((index + 1) * of_team, table.slots.buckets);
    std::uint64_t evictions = 0;
    for (std::size_t first = index * of_team + rank / lanes * near_buckets<Team>; first < end;
         first += Team::size / lanes * near_buckets<Team>)
      evictions += place_in(team, static_cast<std::uint32_t>(first), rank % lanes, chosen);
    if (rank % lanes == 0 && evictions != 0) fetch_add(table.state->evicted, evictions);
  }

 private:
  /// Key k of a lane's bucket; neighbours' keys are side by side.
  template <class Team>
  ROOST_FN static chosen_key& at(const Team&, chosen_key* chosen, std::uint32_t k, std::uint32_t lane) {
    return chosen[k * near_buckets<Team> + lane];
  }

  template <class Team>
  ROOST_FN std::uint32_t place_in(const Team& team, std::uint32_t first, std::uint32_t lane,
                                  chosen_key* chosen) const {
    const bool exists = lane < near_buckets<Team> && first + lane < table.slots.buckets;
    const std::uint32_t head = exists ? claimed.heads[first + lane] : 0;
    if (head != 0) claimed.heads[first + lane] = 0;
    std::uint32_t evictions = 0, count = head != 0 ? choose(team, head, lane, chosen, false) : 0;
    while (const std::uint32_t any = team.ballot_near(count != 0)) {
      team.sync_near();
      take_slots(team, first, lane, any, count, chosen);
      for (std::uint32_t k = 0; k < at_once; ++k)
        evictions += write_slot(team, k < count ? &at(team, chosen, k, lane) : nullptr);
      write_rows(team, lane, any, count, chosen);
      const bool goes_on =
          !Crowded && count == at_once && at(team, chosen, at_once - 1, lane).slot != no_slot;
      count = goes_on ? choose(team, head, lane, chosen, true) : 0;  // until the bucket has no slot to give
    }
    return evictions;
  }

  /// The least admitted missing keys of a bucket, in order; `again`: those after the previous ones.
  template <class Team>
  ROOST_FN std::uint32_t choose(const Team& team, std::uint32_t head, std::uint32_t lane, chosen_key* chosen,
                                bool again) const {
    const embedding_key last = again ? at(team, chosen, at_once - 1, lane).key : embedding_key{};
    std::uint32_t count = 0;
    for (std::uint32_t p = head; p != 0; p = claimed.next[p - 1]) {
      const embedding_key key = ids[p - 1];
      if (again && (claimed.slots[p - 1] != no_slot || !(last < key))) continue;  // it had its turn
      if (table.sketch.counters != nullptr && table.sketch.count(key) < how.admit) {
        claimed.slots[p - 1] = not_admitted;
        continue;
      }
      if (count == at_once && !(key < at(team, chosen, count - 1, lane).key)) continue;
      std::uint32_t k = count == at_once ? count - 1 : count++;
      for (; k != 0 && key < at(team, chosen, k - 1, lane).key; --k)
        at(team, chosen, k, lane) = at(team, chosen, k - 1, lane);
      at(team, chosen, k, lane) = {key, p - 1, no_slot};
    }
    return count;
  }

  /// Gives the chosen keys of each of these buckets the least slots, in the order of the keys. The next
  /// bucket is read meanwhile.
  template <class Team>
  ROOST_FN void take_slots(const Team& team, std::uint32_t first, std::uint32_t lane, std::uint32_t buckets,
                           std::uint32_t count, chosen_key* chosen) const {
    using orders = slot_orders<Team::near_size>;
    const eviction policy = table.options.eviction;
    const bool scored = policy == eviction::least_frequent || policy == eviction::least_score;
    const std::uint64_t now = table.state->step, kept_since = now - smaller<std::uint64_t>(now, how.running);
    orders next;
    next.read(table.slots, first + static_cast<std::uint32_t>(first_of(buckets)), lane, scored);
    while (buckets != 0) {
      const int from = first_of(buckets);
      buckets &= buckets - 1;
      orders here = next;
      if (buckets != 0)
        next.read(table.slots, first + static_cast<std::uint32_t>(first_of(buckets)), lane, scored);
      std::uint64_t mine = here.order(policy, kept_since, lane);
      const std::uint32_t keys = of_lane<Team::near_size>(from, count);
      for (std::uint32_t k = 0; k < keys; ++k) {
        const std::uint64_t least = least_near(team, mine);
        if (least == orders::never) break;
        const std::uint32_t slot = (first + static_cast<std::uint32_t>(from)) * embedding_slots::of_bucket +
                                   static_cast<std::uint32_t>(least) % embedding_slots::of_bucket;
        if (lane == 0)
          at(team, chosen, k, static_cast<std::uint32_t>(from)).slot =
              slot | (least >= orders::taken_from_key ? is_missing : 0);
        if (mine == least && k + 1 < keys) mine = here.without(least);
      }
    }
    team.sync_near();
  }

  /// Gives a chosen key its slot, if there is one. Returns how many of the neighbours' keys evicted others.
  template <class Team>
  ROOST_FN std::uint32_t write_slot(const Team& team, chosen_key* key) const {
    const bool placed = key != nullptr && key->slot != no_slot,
               evicts = placed && (key->slot & is_missing) != 0;
    if (placed) {
      chosen_key& one = *key;
      const embedding_slots& slots = table.slots;
      claimed.slots[one.id] = one.slot;
      one.slot &= ~is_missing;
      if (evicts) claimed.lost[one.id] = slots.key(one.slot);
      const std::uint32_t now = table.state->step;
      slots.put(one.slot, one.key);
      slots.steps[one.slot] = now;
      const bool given = table.options.eviction == eviction::least_score;
      if (slots.scores != nullptr)
        slots.scores[one.slot] = (given ? std::uint64_t{now} << 32 : 0) | claimed.weights[one.id];
      table.rows.mark(one.slot);
    }
    return static_cast<std::uint32_t>(count_bits(team.ballot_near(evicts)));
  }

  template <class Team>
  ROOST_FN void write_rows(const Team& team, std::uint32_t lane, std::uint32_t buckets, std::uint32_t count,
                           chosen_key* chosen) const {
    team.sync_near();
    const embedding_rows<Value>& rows = table.rows;
    const bool all_given = how.given != nullptr && rows.kept == 0 && rows.kept_at == rows.dim * sizeof(Value);
    for (; buckets != 0 && !all_given; buckets &= buckets - 1) {
      const auto from = static_cast<std::uint32_t>(first_of(buckets));
      for (std::uint32_t k = 0; k < of_lane<Team::near_size>(static_cast<int>(from), count); ++k)
        write_row(team, lane, at(team, chosen, k, from));
    }
    team.sync_near();
  }

  /// Writes the beginning of a row: its weights unless they are given, and the optimizer's state.
  template <class Team>
  ROOST_FN void write_row(const Team&, std::uint32_t lane, const chosen_key& one) const {
    if (one.slot == no_slot) return;
    const embedding_rows<Value>& rows = table.rows;
    const std::uint64_t beginning = one.key.beginning(table.options.seed);
    std::byte* const row = rows.at(one.slot);
    Value* const weights = rows.weights(row);
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
