#pragma once

#include "roost/detail/partition/select.hpp"
#include "roost/detail/partition/sort.hpp"
#include "roost/embedding/embedding_table.hpp"

// Bodies of roost/embedding/embedding_table.hpp.

namespace roost {
namespace detail {

/// Begins a step: counts it. forget_lookups halves some of the counters of the sketch.
struct begin_step {
  embedding_state* state;
  ROOST_FN void operator()(std::size_t) const {
    ++state->step;
    state->any_missing = state->evicted_now = 0;
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
struct forget_lookups {
  static constexpr std::uint32_t steps = 1024;
  std::uint32_t* counters;
  std::size_t n;
  const embedding_state* state;
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t counter = i * steps + state->step % steps;
    if (counter < n) counters[counter] /= 2;
  }
};

struct begin_update {
  embedding_state* state;
  ROOST_FN void operator()(std::size_t) const {
    state->long_sums = 0;
    const auto t = static_cast<double>(++state->updates);
    const optimizer_rates& rates = state->rates;
    state->adam_rate = static_cast<float>(rates.learning_rate / (1 - pow(double{rates.beta1}, t)));
    state->adam_root = static_cast<float>(1 / sqrt(1 - pow(double{rates.beta2}, t)));
  }
};

/// Writes a new state; the counts are kept if `only_rates`.
struct write_state {
  embedding_state* target;
  embedding_state value;
  bool only_rates;
  ROOST_FN void operator()(std::size_t) const {
    if (only_rates) {
      target->rates = value.rates;
    } else {
      *target = value;
    }
  }
};
struct write_steps {
  embedding_state* state;
  std::uint32_t steps, updates;
  ROOST_FN void operator()(std::size_t) const {
    state->step = steps;
    state->updates = updates;
  }
};

struct free_slot {
  embedding_slots table;
  const std::uint32_t* slots;
  ROOST_FN void operator()(std::size_t i) const {
    if (slots[i] != no_slot) table.set_tag(slots[i], 0);
  }
};

struct has_row {
  embedding_slots table;
  std::uint32_t since = 0;
  ROOST_FN bool operator()(std::size_t slot) const { return table.has(slot) && table.steps[slot] >= since; }
};

struct read_embeddings {
  embedding_slots table;
  std::uint64_t seed;
  const std::uint32_t* slots;
  std::int64_t* ids;
  std::uint16_t* features;
  std::uint32_t* steps;
  std::uint64_t* scores;
  ROOST_FN void operator()(std::size_t i) const {
    const embedding_key key = table.key(slots[i]);
    ids[i] = key.id(seed);
    features[i] = key.feature;
    steps[i] = table.steps[slots[i]];
    if (table.scores != nullptr) scores[i] = table.scores[slots[i]];
  }
};

/// Writes entries to slots; `puts_keys`: also their keys.
struct write_embeddings {
  embedding_slots table;
  embedding_ids ids;
  const std::uint32_t *slots, *steps;
  const std::uint64_t* scores;
  bool puts_keys;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t slot = slots[i];
    if (slot == no_slot) return;
    table.steps[slot] = steps[i];
    if (table.scores != nullptr) table.scores[slot] = scores[i];
    if (!puts_keys) return;
    const embedding_key key = ids[i];
    table.hashes[slot] = key.hash;
    if (table.features != nullptr) table.features[slot] = key.feature;
    table.set_tag(slot, table.home_of(key.hash).tag);
  }
};
/// Whether a slot is not in the bucket of its key, or not after the previous slot.
struct is_wrong_slot {
  embedding_slots table;
  embedding_ids ids;
  const std::uint32_t* slots;
  ROOST_FN bool operator()(std::size_t i) const {
    return slots[i] / embedding_slots::of_bucket != table.home_of(ids[i].hash).bucket ||
           (i != 0 && slots[i - 1] >= slots[i]);
  }
};

struct is_elsewhere {
  const std::uint32_t *slots, *others;
  ROOST_FN bool operator()(std::size_t i) const { return slots[i] != others[i]; }
};

struct read_keys {
  const embedding_key* keys;
  std::uint64_t seed;
  std::int64_t* ids;
  std::uint16_t* features;
  ROOST_FN void operator()(std::size_t i) const {
    ids[i] = keys[i].id(seed);
    features[i] = keys[i].feature;
  }
};

}  // namespace detail

template <class Place, class Value>
embedding_table<Place, Value>::embedding_table(const Place& place, const embedding_options& options)
    : options_(options), far_(place, 0) {
  const char* const what = "roost::embedding_table: ";
  constexpr std::size_t most = (std::size_t{1} << 31) - (1 << 12);
  if (options.dim < 1 || options.dim > 65536)
    detail::raise<invalid_argument>({what, "rows of ", options.dim, " numbers; give 1 to 65536"});
  if (options.capacity < 1 || options.capacity > most)
    detail::raise<invalid_argument>({what, "a capacity of ", options.capacity, " rows; give 1 to ", most});
  if (options.admit < 1)
    detail::raise<invalid_argument>({what, "keys are admitted at lookup 0; give admit = 1 or more"});
  allocate(place);
}

template <class Place, class Value>
void embedding_table<Place, Value>::allocate(const Place& place) {
  constexpr std::size_t of_bucket = detail::embedding_slots::of_bucket;
  const std::size_t buckets = detail::ceil_div(options_.capacity, of_bucket), n = buckets * of_bucket;
  const auto up = [](std::size_t x, std::size_t to) { return detail::ceil_div(x, to) * to; };
  const std::size_t of_part = options_.optimizer == optimizer::rowwise_adagrad ? 4 : up(options_.dim, 4);
  const std::size_t parts = options_.optimizer == optimizer::sgd    ? 0
                            : options_.optimizer == optimizer::adam ? 2
                                                                    : 1;
  rows_.dim = options_.dim;
  rows_.kept_at = static_cast<std::uint32_t>(up(options_.dim * sizeof(Value), 16));
  rows_.kept_of = static_cast<std::uint32_t>(of_part);
  rows_.kept = static_cast<std::uint32_t>(of_part * parts);
  rows_.stride = rows_.kept_at + rows_.kept * sizeof(float);

  allocate_rows(place, n);
  tags_ = array<std::uint32_t, Place>(place, n / 4);
  hashes_ = array<std::uint64_t, Place>(place, n);
  steps_ = array<std::uint32_t, Place>(place, n);
  heads_ = array<std::uint32_t, Place>(place, buckets);
  if (options_.features) features_ = array<std::uint16_t, Place>(place, n);
  if (options_.eviction == eviction::least_frequent || options_.eviction == eviction::least_score)
    scores_ = array<std::uint64_t, Place>(place, n);
  if (options_.admit > 1) counters_ = array<std::uint32_t, Place>(place, 2 * n);
  remembered_ = array<detail::embedding_key, Place>(place, options_.keep_evicted);
  state_ = array<detail::embedding_state, Place>(place, 1);
  place.fill(tags_.data(), 0, tags_.bytes());
  place.fill(steps_.data(), 0, steps_.bytes());
  place.fill(heads_.data(), 0, heads_.bytes());
  place.fill(counters_.data(), 0, counters_.bytes());
  detail::embedding_state state;
  state.rates = options_.rates;
  place.for_each(1, detail::write_state{state_.data(), state, false});

  table_ = {buckets, tags_.data(), hashes_.data(), features_.data(), steps_.data(), scores_.data()};
  sketch_ = {counters_.data(), n};
  cache_.step = &state_.data()->step;
}

template <class Place, class Value>
void embedding_table<Place, Value>::allocate_rows(const Place& place, std::size_t n) {
  using cache = detail::row_cache;
  const std::size_t lines = detail::ceil_div<std::size_t>(options_.cached_rows, cache::line);
  const bool all = lines == 0 || lines * cache::line >= n;
  bytes_of_rows_ = array<std::byte, Place>(place, (all ? n : lines * cache::line) * rows_.stride);
  rows_.data = bytes_of_rows_.data();
  if (all) return;
  const auto zeros = [&](std::size_t count) {
    array<std::uint32_t, Place> made(place, count);
    place.fill(made.data(), 0, made.bytes());
    return made;
  };
  cache_.slots = n;
  cache_.lines = static_cast<std::uint32_t>(lines);
  cache_.regions = static_cast<std::uint32_t>(detail::larger<std::size_t>(lines / cache::lines_of_region, 1));
  far_ = detail::reachable<Place>(place, n * rows_.stride);
  where_ = zeros(n);
  owners_ = zeros(lines * cache::line);
  used_ = zeros(lines * cache::line);
  came_ = zeros(lines * cache::line);
  rows_.far = static_cast<std::byte*>(far_.data());
  rows_.where = where_.data();
  rows_.owners = owners_.data();
  cache_.used = used_.data();
  cache_.came = came_.data();
}

template <class Place, class Value>
void embedding_table<Place, Value>::fetch(const Place& place, std::span<const std::uint32_t> slots,
                                          std::uint32_t running, waiting_rows& waiting,
                                          const std::uint32_t* steps) {
  const std::size_t n = slots.size();
  std::uint32_t *const ranks = waiting.numbers.data(), *const ordered = ranks + n;
  std::uint64_t* const starts = waiting.starts.data();
  place.fill(starts, 0, waiting.starts.bytes());
  place.for_each(n, detail::use_rows<Value>{rows_, cache_, slots.data(), starts, ranks, steps, running});
  place.exclusive_scan(starts, starts, waiting.starts.size());
  place.for_each(n, detail::order_rows{cache_, slots.data(), ranks, starts, ordered});
  const detail::fetch_rows<Value> run{rows_, cache_, ordered, starts + cache_.regions, running};
  place.launch(run.teams, 0, run);
}

template <class Place, class Value>
void embedding_table<Place, Value>::prefetch(const Place& place, const embedding_batch& batch,
                                             std::uint32_t running) {
  if (rows_.far == nullptr) return;
  array<std::uint32_t, Place> slots(place, batch.ids.size());
  find(place, batch, slots.span());
  if (!batch.ids.empty()) {
    waiting_rows waiting = room_for(place, batch.ids.size());
    fetch(place, slots.span(), running, waiting, table_.steps);
  }
}

template <class Place, class Value>
detail::embedding_ids embedding_table<Place, Value>::ids_of(const embedding_batch& batch, std::size_t results,
                                                            const char* what) const {
  const auto wrong = [&](std::initializer_list<detail::message_part> parts) {
    std::string message = std::string("roost::embedding_table::") + what + ": ";
    for (const detail::message_part& part : parts) part.append_to(message);
    detail::raise<invalid_argument>({message});
  };
  const std::size_t n = batch.ids.size();
  if (results != n) wrong({results, " slots for ", n, " ids"});
  if (n >= std::size_t{1} << 30) wrong({n, " ids at a time; give fewer than 2^30"});
  if (!batch.features.empty() && batch.features.size() != n)
    wrong({batch.features.size(), " features for ", n, " ids"});
  if (!options_.features && (batch.feature != 0 || !batch.features.empty()))
    wrong({"a table without features; make it with options.features"});
  if (!batch.scores.empty() && batch.scores.size() != n)
    wrong({batch.scores.size(), " scores for ", n, " ids"});
  return {batch.ids.data(), batch.features.empty() ? nullptr : batch.features.data(), batch.feature,
          options_.seed};
}

template <class Place, class Value>
const std::uint32_t* embedding_table<Place, Value>::scores_of(const embedding_batch& batch) const {
  const bool scored = options_.eviction == eviction::least_score;
  if (scored != !batch.scores.empty() && !batch.ids.empty()) {
    detail::raise<invalid_argument>(
        {"roost::embedding_table::insert: ", scored ? "no scores, which eviction::least_score needs"
                                                    : "scores, which only eviction::least_score takes"});
  }
  return scored ? batch.scores.data() : nullptr;
}

template <class Place, class Value>
detail::bags_of_ids embedding_table<Place, Value>::bags_of(const embedding_batch& batch) const {
  return {batch.offsets.empty() ? nullptr : batch.offsets.data(), batch.rows(),
          !batch.offsets.empty() && batch.pooling == pooling::mean};
}

template <class Place, class Value>
void embedding_table<Place, Value>::insert(const Place& place, const embedding_batch& batch,
                                           std::span<std::uint32_t> slots, std::uint32_t running) {
  put<1>(place, batch, slots, {.running = running});
}

template <class Place, class Value>
void embedding_table<Place, Value>::look_up(const Place& place, const embedding_batch& batch,
                                            std::span<std::uint32_t> slots, std::span<Value> out,
                                            std::uint32_t running) {
  check_rows(batch, out.size(), "look_up");
  if (!batch.offsets.empty() || rows_.far != nullptr) {
    insert(place, batch, slots, running);
    gather(place, batch, slots, out);
  } else if (in_fours(out.data())) {
    put<4>(place, batch, slots, {.running = running, .out = out.data()});
  } else {
    put<1>(place, batch, slots, {.running = running, .out = out.data()});
  }
}

template <class Place, class Value>
template <int Width>
auto embedding_table<Place, Value>::rows_of(const detail::embedding_ids& ids,
                                            const std::uint32_t* slots) const {
  return detail::rows_of_ids<Width, Value>{rows_, slots, ids, options_.initializer,
                                           detail::lanes_of_row<Place>(options_.dim / Width)};
}

template <class Place, class Value>
template <int Width>
void embedding_table<Place, Value>::put(const Place& place, const embedding_batch& batch,
                                        std::span<std::uint32_t> slots, const step_of& how) {
  const detail::embedding_ids ids = ids_of(batch, slots.size(), "insert");
  const std::size_t n = batch.ids.size(), size = detail::larger<std::size_t>(2 * n, 128);
  const bool assigns = how.given != nullptr, weighs = table_.scores != nullptr;
  const std::uint32_t* const scores = scores_of(batch);
  detail::embedding_state* const state = state_.data();
  place.for_each(1, detail::begin_step{state});
  if (n == 0) return;
  if (sketch_.counters != nullptr) {
    place.for_each(detail::ceil_div<std::size_t>(counters_.size(), detail::forget_lookups::steps),
                   detail::forget_lookups{counters_.data(), counters_.size(), state});
  }
  const auto rows = rows_of<Width>(ids, slots.data());
  find_rows<Width>(place, {table_, ids, n, slots.data(), &state->step, &state->any_missing, scores}, how.out);

  // Allocates memory for missing keys while a GPU searches.
  array<detail::embedding_key, Place> keys(place, size);
  array<std::uint32_t, Place> memory(place, size * (weighs ? 4 : 3));
  const bool fetches = rows_.far != nullptr && how.fetches && !assigns;
  waiting_rows waiting;
  if (fetches) waiting = room_for(place, n);
  std::uint32_t* next = memory.data();
  const auto take = [&] { return std::exchange(next, next + size); };
  detail::claimed_keys claimed;
  claimed.size = size;
  claimed.keys = keys.data();
  claimed.claims = take();
  if (weighs) claimed.weights = take();
  const std::size_t zeros = static_cast<std::size_t>(next - memory.data()) / 2;
  claimed.next = take();
  claimed.slots = take();
  claimed.heads = heads_.data();
  claimed.any = &state->any_missing;
  place.for_each(zeros, detail::begin_claims{reinterpret_cast<std::uint64_t*>(memory.data()),
                                             assigns ? nullptr : claimed.any});
  place.for_each(n, detail::claim_keys{table_, ids, slots.data(), claimed, sketch_, scores, assigns});
  using place_kernel = detail::place_missing<Value>;
  const place_kernel fill{table_,
                          options_.seed,
                          claimed,
                          sketch_,
                          how.admit != 0 ? how.admit : options_.admit,
                          options_.eviction,
                          scores != nullptr,
                          how.running,
                          rows_,
                          options_.initializer,
                          !assigns,
                          state};
  place.launch(detail::ceil_div<std::size_t>(table_.buckets, fill.template tile<Place>),
               detail::scratch_bytes_of(fill), fill);
  const detail::settle_claims<Width, Value> settle{
      n,           slots.data(),       claimed,           state, rows, how.given, how.out,
      how.evicted, remembered_.data(), remembered_.size()};
  place.launch(detail::ceil_div<std::size_t>(n, settle.tile), detail::scratch_bytes_of(settle), settle);
  if (fetches) fetch(place, slots, how.running, waiting);
}

template <class Place, class Value>
template <int Width>
void embedding_table<Place, Value>::find_rows(const Place& place, const detail::find_embeddings& find,
                                              Value* out) const {
  const std::size_t teams = detail::ceil_div(find.n, detail::find_embeddings::template tile<Place>);
  if (out == nullptr) return place.launch(teams, 0, find);
  const detail::find_and_gather<Width, Value> run{find, rows_of<Width>(find.ids, find.found), out};
  place.launch(teams, 0, run);
}

template <class Place, class Value>
void embedding_table<Place, Value>::find(const Place& place, const embedding_batch& batch,
                                         std::span<std::uint32_t> slots, std::span<Value> out) const {
  const std::size_t n = batch.ids.size();
  const bool gathers = !out.empty() && batch.offsets.empty();
  const detail::find_embeddings run{
      table_, ids_of(batch, slots.size(), "find"), n, slots.data(), nullptr, nullptr, nullptr};
  if (!out.empty()) check_rows(batch, out.size(), "find");
  if (gathers && in_fours(out.data())) {
    find_rows<4>(place, run, out.data());
  } else {
    find_rows<1>(place, run, gathers ? out.data() : nullptr);
  }
  if (!out.empty() && !gathers) gather(place, batch, slots, out);
}

template <class Place, class Value>
void embedding_table<Place, Value>::check_rows(const embedding_batch& batch, std::size_t numbers,
                                               const char* what) const {
  if (numbers == batch.rows() * options_.dim) return;
  detail::raise<invalid_argument>({"roost::embedding_table::", what, ": ", numbers, " numbers for ",
                                   batch.rows(), " rows of ", options_.dim});
}

template <class Place, class Value>
bool embedding_table<Place, Value>::in_fours(const void* numbers) const {
  return options_.dim % 4 == 0 && reinterpret_cast<std::uintptr_t>(numbers) % (4 * sizeof(Value)) == 0;
}

template <class Place, class Value>
void embedding_table<Place, Value>::gather(const Place& place, const embedding_batch& batch,
                                           std::span<const std::uint32_t> slots, std::span<Value> out) const {
  const detail::embedding_ids ids = ids_of(batch, slots.size(), "gather");
  check_rows(batch, out.size(), "gather");
  const auto copy = [&](const auto& of) {
    const detail::gather_rows run{of, bags_of(batch), out.data()};
    place.launch(detail::ceil_div(batch.rows(), run.tile), 0, run);
  };
  if (in_fours(out.data())) {
    copy(rows_of<4>(ids, slots.data()));
  } else {
    copy(rows_of<1>(ids, slots.data()));
  }
}

template <class Place, class Value>
void embedding_table<Place, Value>::update(const Place& place, const embedding_batch& batch,
                                           std::span<const std::uint32_t> slots,
                                           std::span<const Value> gradients) {
  static_cast<void>(ids_of(batch, slots.size(), "update"));
  check_rows(batch, gradients.size(), "update");
  place.for_each(1, detail::begin_update{state_.data()});
  if (batch.ids.empty()) return;
  if (in_fours(gradients.data())) {
    update_pieces<4>(place, batch, slots.data(), gradients.data());
  } else {
    update_pieces<1>(place, batch, slots.data(), gradients.data());
  }
}

template <class Place, class Value>
template <int Width>
void embedding_table<Place, Value>::update_pieces(const Place& place, const embedding_batch& batch,
                                                  const std::uint32_t* slots, const Value* gradients) {
  const std::size_t n = batch.ids.size();
  const auto absent = static_cast<std::uint32_t>(capacity());
  const detail::bags_of_ids bags = bags_of(batch);
  array<std::uint32_t, Place> bag_of(place, bags.offsets != nullptr ? n : 0);
  detail::write_numbers(place, bag_of.size(), detail::bag_of_id{bags}, bag_of.data());
  const auto sorted = detail::sort_pairs(place, detail::slot_and_bag{slots, bag_of.data(), absent, n},
                                         static_cast<std::uint32_t>(std::bit_width(absent)));
  if (options_.optimizer == optimizer::rowwise_adagrad) {
    sum<Width, true>(place, sorted.items(), n, bags, gradients);
  } else {
    sum<Width, false>(place, sorted.items(), n, bags, gradients);
  }
}

template <class Place, class Value>
template <int Width, bool ByRow>
void embedding_table<Place, Value>::sum(const Place& place, const detail::sorted_slot* sorted, std::size_t n,
                                        const detail::bags_of_ids& bags, const Value* gradients) {
  using kernel = detail::sum_gradients<Width, Value, false, ByRow>;
  using joining = detail::sum_gradients<Width, Value, true, ByRow>;
  const std::size_t tiles = detail::ceil_div<std::size_t>(n, kernel::tile);
  const auto absent = static_cast<std::uint32_t>(capacity());
  array<float, Place> partial(place, tiles * 2 * options_.dim);
  std::uint32_t lanes = detail::lanes_of_row<Place>(options_.dim / Width);
  if (ByRow && !std::is_same_v<Place, host>) lanes = detail::larger(lanes, 4u);  // less scratch memory
  array<std::uint32_t, Place> long_sums(place, tiles);
  const auto run = [&](auto sums, std::size_t of_tiles) {
    place.launch(detail::ceil_div(of_tiles, kernel::template tiles_of_team<Place>(lanes)),
                 detail::scratch_bytes_of(sums), sums);
  };
  run(kernel{sorted, n, absent, gradients, bags, rows_, options_.optimizer, state_.data(), lanes,
             partial.data(), long_sums.data(), 0},
      tiles);
  const std::size_t joined = detail::smaller<std::size_t>(tiles, 4096);  // at a time
  run(joining{sorted, n, absent, gradients, bags, rows_, options_.optimizer, state_.data(), lanes,
              partial.data(), long_sums.data(), joined},
      joined);
}

template <class Place, class Value>
auto embedding_table<Place, Value>::assign(const Place& place, const embedding_batch& batch,
                                           std::span<const Value> rows, std::span<Value> evicted,
                                           std::uint32_t running) -> evicted_keys {
  const std::size_t n = batch.ids.size();
  if (rows.size() != n * options_.dim || (!evicted.empty() && evicted.size() != rows.size())) {
    detail::raise<invalid_argument>({"roost::embedding_table::assign: ", rows.size(), " numbers, and ",
                                     evicted.size(), " for evicted rows, for ", n, " rows of ",
                                     options_.dim});
  }
  array<std::uint32_t, Place> slots(place, n);
  array<detail::embedding_key, Place> keys(place, evicted.empty() ? 0 : n);
  const step_of how{.running = running, .given = rows.data(), .evicted = {keys.data(), evicted.data()}};
  if (in_fours(rows.data()) && in_fours(evicted.data())) {
    put<4>(place, batch, slots.span(), how);
  } else {
    put<1>(place, batch, slots.span(), how);
  }
  if (evicted.empty()) return {};
  return keys_of(place, keys.data(), copy_to_host(place, state_)[0].evicted_now);
}

template <class Place, class Value>
auto embedding_table<Place, Value>::keys_of(const Place& place, const detail::embedding_key* keys,
                                            std::size_t n) const -> evicted_keys {
  evicted_keys result{array<std::int64_t, Place>(place, n), array<std::uint16_t, Place>(place, n)};
  place.for_each(n, detail::read_keys{keys, options_.seed, result.ids.data(), result.features.data()});
  return result;
}

template <class Place, class Value>
void embedding_table<Place, Value>::erase(const Place& place, const embedding_batch& batch) {
  array<std::uint32_t, Place> slots(place, batch.ids.size());
  find(place, batch, slots.span());
  place.for_each(slots.size(), detail::free_slot{table_, slots.data()});
}

template <class Place, class Value>
auto embedding_table<Place, Value>::take_evicted(const Place& place) -> evicted_keys {
  detail::embedding_state state = copy_to_host(place, state_)[0];
  evicted_keys result =
      keys_of(place, remembered_.data(), detail::smaller<std::size_t>(state.remembered, remembered_.size()));
  state.forgotten += state.remembered - result.ids.size();
  state.remembered = 0;
  place.for_each(1, detail::write_state{state_.data(), state, false});
  return result;
}

template <class Place, class Value>
embedding_entries<Place> embedding_table<Place, Value>::entries(const Place& place,
                                                                std::uint32_t since) const {
  embedding_entries<Place> all;
  all.slots = detail::select_numbers<std::uint32_t>(place, capacity(), detail::has_row{table_, since});
  const std::size_t n = all.slots.size();
  all.ids = array<std::int64_t, Place>(place, n);
  all.features = array<std::uint16_t, Place>(place, n);
  all.steps = array<std::uint32_t, Place>(place, n);
  if (table_.scores != nullptr) all.scores = array<std::uint64_t, Place>(place, n);
  place.for_each(n, detail::read_embeddings{table_, options_.seed, all.slots.data(), all.ids.data(),
                                            all.features.data(), all.steps.data(), all.scores.data()});
  return all;
}

template <class Place, class Value>
void embedding_table<Place, Value>::check_bytes(std::size_t n, std::size_t bytes, const char* what) const {
  if (bytes == n * rows_.stride) return;
  detail::raise<invalid_argument>(
      {"roost::embedding_table::", what, ": ", bytes, " bytes for ", n, " rows of ", rows_.stride});
}

template <class Place, class Value>
template <class From, class To>
void embedding_table<Place, Value>::move_rows(const Place& place, std::size_t n, const From& from,
                                              const To& to) const {
  const std::size_t words = rows_.stride / 4;
  place.for_each(n * words, detail::copy_whole_rows<From, To>{from, to, words});
}

template <class Place, class Value>
void embedding_table<Place, Value>::copy_rows(const Place& place, std::span<const std::uint32_t> slots,
                                              std::span<std::byte> out) const {
  check_bytes(slots.size(), out.size(), "copy_rows");
  move_rows(place, slots.size(), detail::rows_of_slots<Value>{rows_, slots.data()},
            detail::rows_in_order{out.data(), rows_.stride});
}

template <class Place, class Value>
void embedding_table<Place, Value>::write_rows(const Place& place, std::span<const std::uint32_t> slots,
                                               std::span<const std::byte> rows) {
  check_bytes(slots.size(), rows.size(), "write_rows");
  move_rows(place, slots.size(), detail::rows_in_order{const_cast<std::byte*>(rows.data()), rows_.stride},
            detail::rows_of_slots<Value>{rows_, slots.data()});
}

template <class Place, class Value>
std::size_t embedding_table<Place, Value>::restore(const Place& place,
                                                   const embedding_entries<Place>& entries, bool same_slots,
                                                   std::span<std::uint32_t> slots) {
  const std::size_t n = entries.ids.size();
  const char* const what = "roost::embedding_table::restore: ";
  if (entries.slots.size() != n || entries.steps.size() != n || entries.features.size() != n ||
      entries.scores.size() != (table_.scores != nullptr ? n : 0))
    detail::raise<invalid_argument>({what, "entries of another table, or not of one size"});
  if (size(place) != 0) detail::raise<invalid_argument>({what, "the table has keys; restore into a new one"});
  embedding_batch batch{.ids = entries.ids.span()};
  if (options_.features) batch.features = entries.features.span();
  const detail::embedding_ids ids = ids_of(batch, slots.size(), "restore");
  if (same_slots) {
    place.copy(slots.data(), entries.slots.data(), slots.size_bytes());
    if (place.sum(n, detail::is_wrong_slot{table_, ids, slots.data()}) != 0)
      detail::raise<invalid_argument>({what, "slots of a table of another size or seed"});
  } else {
    array<std::uint32_t, Place> scores(place, options_.eviction == eviction::least_score ? n : 0);
    place.fill(scores.data(), 0, scores.bytes());
    batch.scores = scores.span();
    put<1>(place, batch, slots, {.admit = 1, .fetches = false});
  }
  place.for_each(n, detail::write_embeddings{table_, ids, slots.data(), entries.steps.data(),
                                             entries.scores.data(), same_slots});
  if (same_slots) {  // a key that occurs twice has only one slot
    array<std::uint32_t, Place> known(place, n);
    find(place, batch, known.span());
    if (place.sum(n, detail::is_elsewhere{slots.data(), known.data()}) != 0) {
      place.fill(tags_.data(), 0, tags_.bytes());
      detail::raise<invalid_argument>({what, "a key that comes twice"});
    }
  }
  return place.sum(n, detail::is_value<std::uint32_t>{slots.data(), detail::no_slot});
}

template <class Place, class Value>
void embedding_table<Place, Value>::reserve(const Place& place, std::size_t capacity) {
  if (capacity <= this->capacity()) return;
  const embedding_entries<Place> all = entries(place);
  array<std::uint32_t, Place> slots(place, all.ids.size());
  embedding_options larger = options_;
  larger.capacity = capacity;
  // A bucket of the new table can have keys of two old ones: more than it has slots, if it is hardly larger.
  for (;; larger.capacity += larger.capacity / 8 + 128) {
    embedding_table next(place, larger);
    if (next.restore(place, all, false, slots.span()) != 0) continue;
    move_rows(place, slots.size(), detail::rows_of_slots<Value>{rows_, all.slots.data()},
              detail::rows_of_slots<Value>{next.rows_, slots.data()});
    place.copy(next.state_.data(), state_.data(), state_.bytes());
    place.copy(next.remembered_.data(), remembered_.data(), remembered_.bytes());
    *this = std::move(next);
    return;
  }
}

template <class Place, class Value>
void embedding_table<Place, Value>::set_rates(const Place& place, const optimizer_rates& rates) {
  options_.rates = rates;
  detail::embedding_state state;
  state.rates = rates;
  place.for_each(1, detail::write_state{state_.data(), state, true});
}

template <class Place, class Value>
void embedding_table<Place, Value>::set_steps(const Place& place, std::uint32_t steps,
                                              std::uint32_t updates) {
  place.for_each(1, detail::write_steps{state_.data(), steps, updates});
}

template <class Place, class Value>
embedding_counts embedding_table<Place, Value>::counts(const Place& place) const {
  const detail::embedding_state state = copy_to_host(place, state_)[0];
  const std::uint64_t lost =
      state.remembered - detail::smaller<std::uint64_t>(state.remembered, remembered_.size());
  return {state.step,     state.updates,    state.evicted,
          state.unplaced, state.unadmitted, options_.keep_evicted != 0 ? state.forgotten + lost : 0};
}

template <class Place, class Value>
std::size_t embedding_table<Place, Value>::size(const Place& place) const {
  return place.sum(capacity(), detail::has_row{table_});
}

template <class Place, class Value>
std::size_t embedding_table<Place, Value>::bytes() const {
  return bytes_of_rows_.bytes() + where_.bytes() + owners_.bytes() + used_.bytes() + came_.bytes() +
         tags_.bytes() + hashes_.bytes() + steps_.bytes() + heads_.bytes() + features_.bytes() +
         scores_.bytes() + counters_.bytes() + remembered_.bytes() + state_.bytes();
}

}  // namespace roost
