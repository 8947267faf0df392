#pragma once

#include "roost/embedding/detail/gather.hpp"
#include "roost/embedding/detail/placement.hpp"

// A training step: finds the slots of a batch, gives slots to missing keys, and copies rows.

namespace roost::detail {

/// Begins a step: counts it.
struct begin_step {
  embedding_state* state;
  ROOST_FN void operator()(std::size_t) const {
    ++state->step;
    state->any_missing = state->evicted_now = 0;
  }
};
/// Halves the counters of the sketch whose turn it is in this step.
struct forget_lookups {
  static constexpr std::uint32_t steps = 1024;
  lookup_sketch sketch;
  const std::uint32_t* step;
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t counter = i * steps + *step % steps;
    if (counter < 2 * sketch.width) sketch.counters[counter] /= 2;
  }
};
/// Zeros the memory of claims, if there will be some.
struct begin_claims {
  std::uint64_t* zeros;
  const std::uint32_t* any_missing;  // or null: there are claims
  ROOST_FN void operator()(std::size_t i) const {
    if (any_missing == nullptr || *any_missing != 0) zeros[i] = 0;
  }
};

/// Writes the slots of ids whose keys were claimed, or no_slot, and writes which keys lost theirs. Then
/// copies rows: given rows, the last one of each key, to the table; otherwise the rows of these ids to `out`.
template <int Width, class Value>
struct settle_claims {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = 512;

  embedding_view<Value> table;
  claimed_keys claimed;
  rows_of_ids<Width, Value> of;
  std::uint32_t* found;
  step_kind<Value> how;

  struct pieces {
    std::uint32_t* counts;     // not placed, not admitted, evictions, ids with rows to copy
    std::uint64_t* kept;       // where these evictions begin: in this call's, and in those remembered
    std::uint32_t* evictions;  // their positions
    std::uint32_t* copied;     // ids whose rows are copied
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint32_t>(4), memory.take<std::uint64_t>(2), memory.take<std::uint32_t>(tile),
            memory.take<std::uint32_t>(tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (how.given == nullptr && *claimed.any == 0) return;
    const pieces parts = scratch_of(*this, memory);
    for_each_of(team, 4, [&](std::uint32_t c) { parts.counts[c] = 0; });
    team.sync();
    const std::size_t first = index * tile;
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::size_t>(tile, of.ids.n - first)),
                [&](std::uint32_t k) { settle(team, first, k, parts); });
    team.sync();
    if (team.rank() == 0) count_all(parts);
    team.sync();
    hand_out(team, parts);
    team.sync();
    const auto id = [&](std::uint32_t k) { return first + parts.copied[k]; };
    if (how.given != nullptr) {
      copy_known(
          team, parts.counts[3], [&](std::uint32_t k) { return how.given + id(k) * of.rows.dim; },
          [&](std::uint32_t k) { return of.row(id(k)); });
    } else if (how.out != nullptr) {
      of.copy(team, parts.counts[3], id, how.out);
    }
  }

 private:
  template <class Team>
  ROOST_FN void settle(const Team& team, std::size_t first, std::uint32_t k, const pieces& parts) const {
    const std::size_t i = first + k;
    if (found[i] == no_slot || (found[i] & is_missing) == 0) return;
    const std::uint32_t position = found[i] & ~is_missing, slot = claimed.slots[position];
    const bool has_row = slot < not_admitted;
    const auto claims = [&] {
      return has_row && (claimed.last != nullptr ? claimed.last[position] == i + 1 : position == i);
    };
    found[i] = has_row ? slot & ~is_missing : no_slot;
    if (!has_row) team.fetch_add(parts.counts[no_slot - slot], 1u);
    if ((slot & is_missing) != 0 && claims()) parts.evictions[team.fetch_add(parts.counts[2], 1u)] = position;
    if (how.given != nullptr ? claims() : how.out != nullptr)
      parts.copied[team.fetch_add(parts.counts[3], 1u)] = k;
    if (how.given != nullptr && claims()) of.rows.mark(found[i]);
  }

  ROOST_FN void count_all(const pieces& parts) const {
    const std::uint32_t unplaced = parts.counts[0], unadmitted = parts.counts[1], evictions = parts.counts[2];
    embedding_state& state = *table.state;
    if (unplaced != 0) fetch_add(state.unplaced, std::uint64_t{unplaced});
    if (unadmitted != 0) fetch_add(state.unadmitted, std::uint64_t{unadmitted});
    if (evictions == 0) return;
    if (how.evicted_keys != nullptr) parts.kept[0] = fetch_add(state.evicted_now, evictions);
    if (table.remembered != nullptr) parts.kept[1] = fetch_add(state.remembered, std::uint64_t{evictions});
  }

  /// Writes the keys that lost their rows, and the rows.
  template <class Team>
  ROOST_FN void hand_out(const Team& team, const pieces& parts) const {
    for_each_of(team, parts.counts[2], [&](std::uint32_t k) {
      const embedding_key key = claimed.lost[parts.evictions[k]];
      const std::uint64_t number = parts.kept[1] + k;
      if (how.evicted_keys != nullptr) how.evicted_keys[parts.kept[0] + k] = key;
      if (table.remembered != nullptr && number < table.options.keep_evicted) table.remembered[number] = key;
    });
    if (how.evicted_rows == nullptr) return;
    copy_known(
        team, parts.counts[2],
        [&](std::uint32_t k) {
          return of.rows.weights(of.rows.at(claimed.slots[parts.evictions[k]] & ~is_missing));
        },
        [&](std::uint32_t k) { return how.evicted_rows + (parts.kept[0] + k) * of.rows.dim; });
  }

  template <class Team, class From, class To>
  ROOST_FN void copy_known(const Team& team, std::uint32_t count, const From& from, const To& to) const {
    using piece = stored_numbers<Width, Value>;
    const auto nothing = [](std::uint32_t, std::uint32_t) { return piece(); };
    copy_rows<piece>(team, row_batch{count, of.rows.dim / Width, of.lanes}, from, nothing, to);
  }
};

/// Writes the slots of ids to `found`.
template <class Place, class Value>
void run_step(const Place& place, const embedding_view<Value>& table, const embedding_ids& ids,
              std::uint32_t* found, const step_kind<Value>& how) {
  const calls_between_pieces none(nullptr);  // keys with slots must get their rows
  embedding_state* const state = table.state;
  const bool assigns = how.given != nullptr, weighs = table.slots.scores != nullptr,
             fetches = table.rows.far != nullptr && how.fetches && !assigns;
  const std::size_t size = larger<std::size_t>(2 * ids.n, 128), n = ids.n + ids.n % 2,
                    zeros = size + (weighs ? n : 0) + (assigns ? n : 0);
  // All memory comes first: what is refused has not begun.
  array<embedding_key, Place> lost(place, n);
  array<std::uint32_t, Place> memory(place, ids.n != 0 ? zeros + 2 * n : 0);
  waiting_rows<Place> waiting(place, table.cache, fetches ? ids.n : 0);
  place.for_each(1, begin_step{state});
  if (ids.n == 0) return;
  if (table.sketch.counters != nullptr) {
    place.for_each(ceil_div<std::size_t>(2 * table.sketch.width, forget_lookups::steps),
                   forget_lookups{table.sketch, &state->step});
  }
  find_rows(place, table, {table.slots, ids, found, &state->step, &state->any_missing}, how.out);

  std::uint32_t *const claims = memory.data(), *const next = claims + zeros;
  const claimed_keys claimed{.size = size,
                             .claims = claims,
                             .next = next,
                             .slots = next + n,
                             .lost = lost.data(),
                             .last = assigns ? next - n : nullptr,
                             .weights = weighs ? claims + size : nullptr,
                             .heads = table.heads,
                             .any = &state->any_missing};
  place.for_each(zeros / 2, begin_claims{reinterpret_cast<std::uint64_t*>(claims),
                                         assigns ? nullptr : &state->any_missing});
  place.for_each(ids.n, claim_keys{table.slots, ids, found, claimed, table.sketch});
  const auto give_slots = [&](auto crowded) {
    const place_missing<Value, crowded()> fill{table, ids, claimed, how};
    place.launch(ceil_div<std::size_t>(table.slots.buckets, fill.template tile<Place>),
                 scratch_bytes_of(fill), fill);
  };
  ids.n / 8 > table.capacity() ? give_slots(std::true_type()) : give_slots(std::false_type());
  const auto settle = [&](auto width) {
    const settle_claims<width(), Value> run{table, claimed, rows_of<width()>(place, table, ids, found), found,
                                            how};
    place.launch(ceil_div<std::size_t>(ids.n, run.tile), scratch_bytes_of(run), run);
  };
  by_width(table.rows.dim, settle, how.given, how.out, how.evicted_rows);
  if (fetches) bring_to_cache(place, table, std::span<std::uint32_t>(found, ids.n), how.running, waiting);
}

}  // namespace roost::detail
