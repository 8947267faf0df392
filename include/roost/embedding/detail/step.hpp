#pragma once

#include "roost/embedding/detail/gather.hpp"

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

/// Finds slots, and copies the rows of the keys that are found to `out`, unless that is null.
template <class Place, class Value>
void find_rows(const Place& place, const embedding_view<Value>& table, const find_embeddings& find,
               Value* out) {
  const std::size_t teams = ceil_div(find.ids.n, find_embeddings::tile<Place>);
  if (out == nullptr) return place.launch(teams, 0, find);
  const auto run = [&](auto width) {
    const auto of = rows_of<width()>(place, table, find.ids, find.found);
    place.launch(teams, 0, find_and_gather<width(), Value>{find, of, out});
  };
  by_width(table.rows.dim, run, out);
}

/// Writes the slots of ids to `found`.
template <class Place, class Value>
void run_step(const Place& place, const embedding_view<Value>& table, const embedding_ids& ids,
              std::uint32_t* found, const step_kind<Value>& how) {
  embedding_state* const state = table.state;
  place.for_each(1, begin_step{state});
  if (ids.n == 0) return;
  if (table.sketch.counters != nullptr) {
    place.for_each(ceil_div<std::size_t>(2 * table.sketch.width, forget_lookups::steps),
                   forget_lookups{table.sketch, &state->step});
  }
  find_rows(place, table, {table.slots, ids, found, &state->step, &state->any_missing}, how.out);

  // Allocates memory for missing keys while a GPU searches.
  const bool assigns = how.given != nullptr, weighs = table.slots.scores != nullptr,
             fetches = table.rows.far != nullptr && how.fetches && !assigns;
  const std::size_t size = larger<std::size_t>(2 * ids.n, 128), zeros = weighs ? 2 * size : size;
  array<embedding_key, Place> keys(place, size);
  array<std::uint32_t, Place> memory(place, zeros + 2 * size);
  waiting_rows<Place> waiting(place, table.cache, fetches ? ids.n : 0);
  std::uint32_t *const claims = memory.data(), *const next = claims + zeros;
  const claimed_keys claimed{.size = size,
                             .claims = claims,
                             .next = next,
                             .slots = next + size,
                             .keys = keys.data(),
                             .weights = weighs ? claims + size : nullptr,
                             .heads = table.heads,
                             .any = &state->any_missing};
  place.for_each(zeros / 2, begin_claims{reinterpret_cast<std::uint64_t*>(claims),
                                         assigns ? nullptr : &state->any_missing});
  place.for_each(ids.n, claim_keys{table.slots, ids, found, claimed, table.sketch, assigns});
  const place_missing<Value> fill{table, claimed, how, ids.scores != nullptr};
  place.launch(ceil_div<std::size_t>(table.slots.buckets, fill.template tile<Place>), scratch_bytes_of(fill),
               fill);
  const auto settle = [&](auto width) {
    const settle_claims<width(), Value> run{table, claimed, rows_of<width()>(place, table, ids, found), found,
                                            how};
    place.launch(ceil_div<std::size_t>(ids.n, run.tile), scratch_bytes_of(run), run);
  };
  by_width(table.rows.dim, settle, how.given, how.out, how.evicted_rows);
  if (fetches) bring_to_cache(place, table.rows, table.cache, std::span(found, ids.n), how.running, waiting);
}

}  // namespace roost::detail
