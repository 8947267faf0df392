#pragma once

#include "roost/detail/partition/select.hpp"
#include "roost/embedding/embedding_table.hpp"

// Bodies of roost/embedding/embedding_table.hpp.

namespace roost {

template <class Place, class Value>
void embedding_table<Place, Value>::step(const Place& place, const embedding_batch& batch,
                                         std::span<std::uint32_t> slots, detail::step_kind<Value> how) {
  const auto ids = detail::ids_of(options(), batch, slots.size(), "::insert");
  const bool scored = options().eviction == eviction::least_score;
  detail::expect(ids.n == 0 || scored == (ids.scores != nullptr), "::insert",
                 scored ? "no scores, which eviction::least_score needs"
                        : "scores, which only eviction::least_score takes");
  how.admit = options().admit;
  detail::run_step(place, view(), ids, slots.data(), how);
}

template <class Place, class Value>
void embedding_table<Place, Value>::look_up(const Place& place, const embedding_batch& batch,
                                            std::span<std::uint32_t> slots, std::span<Value> out,
                                            std::uint32_t running) {
  const bool in_bags = detail::bags_of(options(), batch, out.size(), "::look_up").offsets != nullptr;
  if (!in_bags && view().rows.far == nullptr)
    return step(place, batch, slots, {.running = running, .out = out.data()});
  insert(place, batch, slots, running);
  gather(place, batch, slots, out);
}

template <class Place, class Value>
void embedding_table<Place, Value>::find(const Place& place, const embedding_batch& batch,
                                         std::span<std::uint32_t> slots, std::span<Value> out) const {
  const auto ids = detail::ids_of(options(), batch, slots.size(), "::find");
  const bool in_bags = !batch.offsets.empty();
  if (!out.empty()) detail::bags_of(options(), batch, out.size(), "::find");
  detail::find_rows(place, view(), {view().slots, ids, slots.data()}, in_bags ? nullptr : out.data());
  if (!out.empty() && in_bags) gather(place, batch, slots, out);
}

template <class Place, class Value>
void embedding_table<Place, Value>::prefetch(const Place& place, const embedding_batch& batch,
                                             std::uint32_t running) {
  if (view().rows.far == nullptr) return;
  array<std::uint32_t, Place> slots(place, batch.ids.size());
  find(place, batch, slots.span());
  if (batch.ids.empty()) return;
  detail::waiting_rows<Place> waiting(place, view().cache, batch.ids.size());
  detail::bring_to_cache(place, view(), slots.span(), running, waiting, view().slots.steps);
}

template <class Place, class Value>
auto embedding_table<Place, Value>::assign(const Place& place, const embedding_batch& batch,
                                           std::span<const Value> rows, std::span<Value> evicted,
                                           std::uint32_t running) -> evicted_keys {
  const std::size_t n = batch.ids.size();
  detail::expect(rows.size() == n * options().dim && (evicted.empty() || evicted.size() == rows.size()),
                 "::assign", rows.size(), " numbers, and ", evicted.size(), " for evicted rows, for ", n,
                 " rows of ", options().dim);
  const std::size_t most = evicted.empty() ? 0 : n;
  array<std::uint32_t, Place> slots(place, n);
  array<detail::embedding_key, Place> keys(place, most);
  evicted_keys result(place, most);
  step(place, batch, slots.span(),
       {.running = running,
        .given = rows.data(),
        .evicted_keys = keys.data(),
        .evicted_rows = evicted.data()});
  if (evicted.empty()) return result;
  result.ids.shrink(state(place).evicted_now);
  result.features.shrink(result.ids.size());
  return detail::keys_of(place, options(), keys.data(), std::move(result));
}

template <class Place, class Value>
auto embedding_table<Place, Value>::take_evicted(const Place& place) -> evicted_keys {
  detail::embedding_state now = state(place);
  const auto n = detail::smaller<std::uint64_t>(now.remembered, options().keep_evicted);
  evicted_keys result = detail::keys_of(place, options(), view().remembered, evicted_keys(place, n));
  now.forgotten += now.remembered - n;
  now.remembered = 0;
  detail::write_one(place, view().state, now);
  return result;
}

template <class Place, class Value>
embedding_entries<Place> embedding_table<Place, Value>::entries(const Place& place,
                                                                std::uint32_t since) const {
  const detail::embedding_slots& table = view().slots;
  auto slots = detail::select_numbers<std::uint32_t>(place, capacity(), detail::has_row{table, since});
  const std::size_t n = slots.size();
  auto keys =
      detail::keys_of(place, options(), detail::keys_of_slots{table, slots.data()}, evicted_keys(place, n));
  array<std::uint32_t, Place> steps(place, n);
  array<std::uint64_t, Place> scores(place, table.scores != nullptr ? n : 0);
  detail::write_numbers(place, n, detail::gather<std::uint32_t>{table.steps, slots.data()}, steps.data());
  detail::write_numbers(place, scores.size(), detail::gather<std::uint64_t>{table.scores, slots.data()},
                        scores.data());
  return {std::move(slots), std::move(keys.ids), std::move(keys.features), std::move(steps),
          std::move(scores)};
}

template <class Place, class Value>
std::size_t embedding_table<Place, Value>::restore(const Place& place,
                                                   const embedding_entries<Place>& entries, bool same_slots,
                                                   std::span<std::uint32_t> slots) {
  using detail::expect;
  const detail::embedding_slots& table = view().slots;
  const char* const what = "::restore";
  const std::size_t n = entries.ids.size();
  expect(entries.slots.size() == n && entries.steps.size() == n && entries.features.size() == n &&
             entries.scores.size() == (table.scores != nullptr ? n : 0),
         what, "entries of another table, or not of one size");
  expect(size(place) == 0, what, "the table has keys; restore into a new one");
  embedding_batch batch{.ids = entries.ids.span()};
  if (options().features) batch.features = entries.features.span();
  array<std::uint32_t, Place> scores(place, options().eviction == eviction::least_score ? n : 0);
  place.fill(scores.data(), 0, scores.bytes());
  batch.scores = scores.span();
  const auto ids = detail::ids_of(options(), batch, slots.size(), what);
  array<std::uint32_t, Place> known(place, same_slots ? n : 0);
  if (same_slots) {
    place.copy(slots.data(), entries.slots.data(), slots.size_bytes());
    expect(place.sum(n, detail::is_wrong_slot{table, ids, slots.data()}) == 0, what,
           "slots of a table of another size or seed");
  } else {
    detail::run_step<Place, Value>(place, view(), ids, slots.data(), {.fetches = false});
  }
  place.for_each(n, detail::write_embeddings{table, ids, slots.data(), entries.steps.data(),
                                             entries.scores.data(), same_slots});
  if (same_slots) {  // a key that occurs twice has only one slot
    find(place, batch, known.span());
    const bool twice = place.sum(n, detail::is_elsewhere{slots.data(), known.data()}) != 0;
    if (twice) place.fill(table.tags, 0, capacity());
    expect(!twice, what, "a key that comes twice");
  }
  return place.sum(n, detail::is_value<std::uint32_t>{slots.data(), detail::no_slot});
}

template <class Place, class Value>
void embedding_table<Place, Value>::reserve(const Place& place, std::size_t capacity) {
  if (capacity <= this->capacity()) return;
  const embedding_entries<Place> all = entries(place);
  array<std::uint32_t, Place> slots(place, all.ids.size());
  embedding_options larger = options();
  larger.capacity = capacity;
  // A bucket of the new table can have keys of two old ones: more than it has slots, if it is hardly larger.
  for (;; larger.capacity += larger.capacity / 8 + 128) {
    embedding_table next(place, larger);
    if (next.restore(place, all, false, slots.span()) != 0) continue;
    place.for_each(slots.size() * (row_bytes() / 4),
                   detail::move_rows<Value>{view().rows, next.view().rows, all.slots.data(), slots.data()});
    place.copy(next.view().state, view().state, sizeof(detail::embedding_state));
    place.copy(next.view().remembered, view().remembered,
               options().keep_evicted * sizeof(detail::embedding_key));
    *this = std::move(next);
    return;
  }
}

template <class Place, class Value>
embedding_counts embedding_table<Place, Value>::counts(const Place& place) const {
  const detail::embedding_state now = state(place);
  const std::size_t room = options().keep_evicted;
  const std::uint64_t lost = now.remembered - detail::smaller<std::uint64_t>(now.remembered, room);
  return {now.step,     now.updates,    now.evicted,
          now.unplaced, now.unadmitted, room != 0 ? now.forgotten + lost : 0};
}

}  // namespace roost
