#pragma once

#include <cstring>

#include "roost/detail/groups/frequent_keys.hpp"
#include "roost/detail/partition/select.hpp"
#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/shards/detail/exchange.hpp"
#include "roost/two_way_index.hpp"

// Lookups in a sharded table. Queries are sent to the shards that own their keys, by ranges of regions;
// meanwhile a shard answers its own, and then those that have arrived; answers are sent back while the next
// range is in transit.

namespace roost::detail {

// Readbacks by the host, while the place continues to work.

/// A value in memory of a place, as it is after all work queued so far. The memory may be freed before the
/// host has the value.
template <class T, class Place>
class reading {
 public:
  reading(const Place& place, const T* source) { place.copy_to_host(&value_, source, sizeof(T)); }
  /// Waits for it.
  T get() { return value_; }

 private:
  T value_{};
};

#if defined(__CUDACC__)
template <class T>
class reading<T, cuda> {
 public:
  reading(const cuda& place, const T* source) : word_(sizeof(T)) {
    if (word_.get() == nullptr) {
      place.copy_to_host(&value_, source, sizeof(T));
      return;
    }
    check(cudaEventCreateWithFlags(&there_.event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    place.copy_to_word(word_.get(), source, sizeof(T));
    check(cudaEventRecord(there_.event, place.stream()), "cudaEventRecord");
  }

  T get() {
    if (there_.event == nullptr) return value_;
    check(cudaEventSynchronize(there_.event), "cudaEventSynchronize");
    std::memcpy(&value_, word_.get(), sizeof(T));
    return value_;
  }

 private:
  struct owned_event {
    cudaEvent_t event = nullptr;
    owned_event() = default;
    owned_event(const owned_event&) = delete;
    ~owned_event() {
      if (event == nullptr) return;
      static_cast<void>(cudaEventSynchronize(event));  // the word must not be reused before
      static_cast<void>(cudaEventDestroy(event));
    }
  };

  T value_{};
  pinned_word word_;
  owned_event there_;
};
#endif

// Keys of many queries of a shard. These queries would overload the shard that owns the keys, so each shard
// requests the answers of such keys once, and answers their queries itself.

/// Estimates how many of n items have the same key as an item, that one included, on average. A sample of
/// `of` items has `pairs` pairs of items with the same key (each counted twice).
inline std::uint64_t copies_of_items(std::size_t n, double sample, double of, double pairs) {
  const double cautious =
      (std::sqrt(pairs) + 1) * (std::sqrt(pairs) + 1);  // the sample may be too low by chance
  return 1 + static_cast<std::uint64_t>(static_cast<double>(n) * cautious / (sample * std::max(of, 1.0)));
}

/// How evenly a shard's queries are spread over the regions of all shards.
struct spread_of_queries {
  std::uint64_t copies = 1;     // see copies_of_items
  std::uint64_t is_skewed = 0;  // a key is so frequent that its region will overflow
};

/// Estimated from a sample, which the host reads after the place has begun with the queries.
template <class Key, class Place>
class sample_of_queries {
  static constexpr std::uint32_t sample = group_tuning<cuda>::sample;

 public:
  /// The estimate of a sample of n queries in which all keys but two are distinct.
  static std::uint64_t copies_expected(std::size_t n) {
    return n < shards_tuning<Place>::sampled_from ? 1 : copies_of_items(n, sample, sample, 2);
  }

  /// `n`: the number of queries that are sent at once, to `regions` regions.
  template <class Queries>
  sample_of_queries(const Place& place, const Queries& queries, std::size_t n, std::uint64_t regions,
                    std::uint64_t seed)
      : n_(n), frequent_({seed, 2}), outcome_(place, 1) {
    place.fill(outcome_.data(), 0, outcome_.bytes());
    if (queries.size() < larger<std::size_t>(shards_tuning<Place>::sampled_from, sample)) return;
    const double mean = static_cast<double>(n) / static_cast<double>(regions);
    const double spare = static_cast<double>(with_slack(mean, n)) - mean;
    if (frequent_.look(place, alone<Queries>{queries},
                       spare * static_cast<double>(queries.size()) / static_cast<double>(n), outcome_.data()))
      seen_.emplace(place, outcome_.data());
  }

  /// A word on the place, which is not 0 if some key's region will overflow.
  const std::uint32_t* is_skewed() const { return &outcome_.data()->frequent; }
  /// Waits for the sample.
  spread_of_queries spread() {
    if (!seen_) return {};
    frequent_.take(seen_->get());
    return {copies_of_items(n_, sample, sample, 2.0 * frequent_.copies), frequent_.region_of.count};
  }

 private:
  std::size_t n_;
  frequent_keys<Key, Place> frequent_;
  array<sample_outcome, Place> outcome_;
  std::optional<reading<sample_outcome, Place>> seen_;
};

/// Counts of keys that are not frequent: in the upper half of a word the sum of their squares.
struct rare_counts {
  const std::uint64_t* counts;
  std::uint64_t least;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t c = counts[i];
    return c < least ? c * c << 32 | c : 0;
  }
};

struct is_frequent {
  const std::uint64_t* counts;
  std::uint64_t least;
  ROOST_FN bool operator()(std::size_t i) const { return counts[i] >= least; }
};

/// The keys of many queries of a shard, and a table of their numbers.
template <class Key, class Place>
class frequent_queries {
  static constexpr std::size_t least = 8;  // in the sample
  static constexpr std::size_t sample_most = 1 << 18;

 public:
  template <class Queries>
  frequent_queries(const Place& place, const Queries& queries) {
    const std::size_t n = queries.size();
    if (n < least) return;
    const std::size_t size = smaller(n, std::clamp<std::size_t>(n / 16, 1 << 13, sample_most));
    array<Key, Place> sample(place, size);
    write_numbers(place, size, item_of_sample<Queries>{queries, n / size}, sample.data());
    const auto each =
        unique_all(place, as_sequence(sample), {.order = index_order::any, .counts = true}, "roost::find");
    const std::uint64_t rare = place.sum(each.keys.size(), rare_counts{each.counts.data(), least});
    const auto rare_items = static_cast<double>(rare & 0xffffffff);
    copies_ = copies_of_items(n, static_cast<double>(size), rare_items,
                              static_cast<double>(rare >> 32) - rare_items);
    const auto chosen =
        select_numbers<std::uint32_t>(place, each.keys.size(), is_frequent{each.counts.data(), least});
    if (chosen.size() == 0) return;
    keys_ = {place, chosen.size()};
    write_numbers(place, chosen.size(), in_order<Key>{each.keys.data(), chosen.data()}, keys_.data());
    numbers_.emplace(place, keys_, numbers_to<std::uint32_t>(keys_.size()));
  }

  const array<Key, Place>& keys() const { return keys_; }
  /// Of keys that are not frequent: see copies_of_items.
  std::uint64_t copies() const { return copies_; }
  /// The table of the keys' numbers, if there are such keys.
  auto numbers() const { return numbers_->ref(); }
  std::size_t bytes() const { return keys_.bytes() + (numbers_ ? numbers_->bytes() : 0); }

 private:
  array<Key, Place> keys_;
  std::optional<frozen_map<Key, std::uint32_t, Place>> numbers_;
  std::uint64_t copies_ = 1;
};

/// Answers queries of frequent keys, and lists the others.
template <class Place, class Ref, class Queries, class Result, class Target>
struct answer_frequent {
  using number_answer = write_value<std::uint32_t>;
  static constexpr driver chosen = driver_in_cache<Place, Ref, number_answer>;
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile =
      find_tuning<Place>::defers ? find_tuning<Place>::tile(chosen, false) : 2048;
  static constexpr std::uint32_t none = ~0u;

  Ref frequent;  // gives numbers of answers
  const Result* answers;
  Queries queries;
  std::uint64_t count;
  Target target;
  element_of<Queries>* rest;
  std::uint32_t* rest_numbers;
  std::uint64_t* rest_size;

  struct pieces {
    std::uint32_t* rank;  // among the tile's others; then their number
    std::uint64_t* first;
    deferred_query<typename Ref::key_type>* deferred;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint32_t>(tile + 1), memory.take<std::uint64_t>(1),
            take_deferred<chosen, typename Ref::key_type>(memory, tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    scratch_memory all(memory);
    const pieces parts = scratch(all);
    const std::uint64_t first = index * tile;
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - first));
    const auto put = [this, rank = parts.rank, first](std::uint64_t i, std::uint32_t number) {
      rank[i - first] = number == none ? 1 : 0;
      if (number != none) target.put(i, answers[number]);
    };
    answer_tile<Place, chosen, false>(team, frequent, queries, first, n, number_answer{nullptr, none},
                                      parts.deferred, put);
    if (team.rank() == 0) parts.rank[n] = 0;
    team.sync();
    team.exclusive_scan(parts.rank, parts.rank, n + 1);
    team.sync();
    if (team.rank() == 0) *parts.first = fetch_add(*rest_size, std::uint64_t{parts.rank[n]});
    team.sync();
    for_each_of(team, n, [&](std::uint32_t i) {
      if (parts.rank[i] == parts.rank[i + 1]) return;
      rest[*parts.first + parts.rank[i]] = queries[first + i];
      rest_numbers[*parts.first + parts.rank[i]] = static_cast<std::uint32_t>(first + i);
    });
  }
};

/// The queries of a batch whose keys are not frequent; the others have been answered.
template <class Key, class Place>
class rare_queries {
 public:
  template <class Queries, class Result, class Target>
  rare_queries(const Place& place, const frequent_queries<Key, Place>& frequent,
               const array<Result, Place>& answers, const Queries& queries, const Target& target)
      : keys_(place, queries.size()), numbers_(place, queries.size()) {
    auto size = zeros(place, 1);
    using kernel = answer_frequent<Place, decltype(frequent.numbers()), Queries, Result, Target>;
    const kernel run{frequent.numbers(), answers.data(),  queries,    queries.size(), target,
                     keys_.data(),       numbers_.data(), size.data()};
    place.launch(ceil_div<std::size_t>(queries.size(), kernel::tile), scratch_bytes_of(run), run);
    std::uint64_t left = 0;
    place.copy_to_host(&left, size.data(), sizeof(left));
    size_ = left;
  }

  auto queries() const { return slice(as_sequence(keys_), 0, size_); }
  /// Their numbers in the batch.
  const std::uint32_t* numbers() const { return numbers_.data(); }
  std::size_t bytes() const { return keys_.bytes() + numbers_.bytes(); }

 private:
  array<Key, Place> keys_;
  array<std::uint32_t, Place> numbers_;
  std::size_t size_ = 0;
};

// The exchange of queries and answers.

/// Queries that have arrived from another shard, and their answers.
template <class Query, class Result, class Place>
struct visiting {
  std::uint64_t room = 0;  // of a region
  array<pair<Query, none>, Place> queries;
  array<std::uint64_t, Place> bounds;
  array<Result, Place> answers;
};

/// A table of this shard that all shards query.
template <class Ref>
struct asked_table {
  Ref ref;
  std::size_t bytes;
  std::uint64_t seed;  // of the owners
};

/// The plan of a batch of all shards.
struct sharded_batch {
  static constexpr std::uint64_t room_for_all = ~std::uint64_t{0};
  owners order;
  std::uint32_t ranges = 1;
  std::uint64_t copies = 1;            // of most queries, for which regions have room; or room_for_all
  std::vector<std::uint64_t> sizes{};  // how many queries each shard has

  /// The sizes that all shards have told.
  void set_sizes(const gathered& all) {
    sizes.clear();
    for (std::uint32_t s = 0; s < order.shards; ++s) sizes.push_back(all(s));
  }
};

/// How many of n queries are in a given part.
inline std::size_t count_in_part(std::size_t n, std::size_t first, std::size_t count) {
  return smaller(n - smaller(n, first), count);
}

/// Where the answers to a part of a batch are written: to queries from `first` on, or to those with given
/// numbers.
template <class Answer>
struct answers_to {
  Answer answer;
  std::size_t first;
  const std::uint32_t* numbers = nullptr;
  ROOST_FN void put(std::size_t i, const typename Answer::result& result) const {
    answer.put(first + (numbers == nullptr ? i : numbers[i]), result);
  }
};

/// Always goes on.
struct go_on {
  bool operator()() const { return true; }
};

/// Sends a shard's queries to the owners of their keys, and writes the answers to `target`; all shards do so
/// at once. Returns false on a shard that has too many queries of one region: then that shard has no answers.
/// `looks_good()` is called when the partition has begun; if it returns false, on all shards, nothing is
/// sent. Queries are not partitioned if `unless`, on the place, is not 0.
template <class Me, class Ref, class Queries, class Answer, class Target, class LooksGood = go_on>
bool ask_once(Me& me, const Ref& ref, sharded_batch batch, const Queries& queries, const Answer& answer_of,
              const Target& target, std::size_t& scratch_bytes, const LooksGood& looks_good = {},
              const std::uint32_t* unless = nullptr) {
  using place_type = typename Me::place_type;
  using query = element_of<Queries>;
  using item = pair<query, none>;
  using result = typename Answer::result;
  using kernel = probe_region_tiles<place_type, Ref, query, Answer, shards_tuning<place_type>::batches>;
  const place_type& place = me.place();
  const std::uint32_t shards = me.count(), my = me.number(), regions = batch.order.regions;
  const auto room_of = [&](std::uint32_t shard) {
    const std::uint64_t n = larger<std::uint64_t>(batch.sizes[shard], 16);
    if (batch.copies == batch.room_for_all) return n;
    return with_slack(static_cast<double>(n) / (shards * regions), n, static_cast<double>(batch.copies));
  };

  std::optional<reading<std::uint32_t, place_type>> overflowed;
  {                                                    // freed in stream order before the wait
    array<std::uint32_t, place_type> flags(place, 2);  // a region has overflowed; nothing
    place.fill(flags.data(), 0, flags.bytes());
    constexpr partition_kind kind{.way_back = true, .one_pass = true, .may_count = false};
    const std::uint64_t my_room = room_of(my), my_slot = regions * my_room;
    partitioner<place_type, item, kind> partitioner(place, shards * regions, room::slack, flags.data(),
                                                    my_room, 1, unless);
    const auto parts = partitioner.run(alone<Queries>{queries}, batch.order);
    array<std::uint64_t, place_type> bounds(place, std::size_t{2} * shards * regions);
    place.for_each(std::size_t{shards} * regions,
                   write_bounds{parts.ends(), my_room, regions, bounds.data()});
    me.mark("partitioned");
    array<result, place_type> answers(place, parts.extent());
    scratch_bytes = parts.scratch_bytes() + answers.bytes() + bounds.bytes();
    std::vector<visiting<query, result, place_type>> from(shards);
    for (std::uint32_t s = 0; s < shards; ++s) {
      if (s == my) continue;
      from[s].room = room_of(s);
      from[s].queries = {place, regions * from[s].room};
      from[s].bounds = {place, std::size_t{2} * regions};
      from[s].answers = {place, regions * from[s].room};
      scratch_bytes += from[s].queries.bytes() + from[s].answers.bytes() + from[s].bounds.bytes();
    }
    if (!looks_good()) return false;
    std::vector<piece> out(shards), in(shards);
    std::vector<std::uint64_t> arrival(batch.ranges);
    me.agree();
    in_use_by_others scope(me);

    const auto to_others = [&](const auto& piece_out, const auto& piece_in, int lane) {
      for (std::uint32_t s = 0; s < shards; ++s) {
        if (s == my) continue;
        out[s] = piece_out(s);
        in[s] = piece_in(s);
      }
      return me.exchange(out, in, lane);
    };
    struct region_range {
      std::uint32_t first, count;
    };
    const auto range = [&](std::uint32_t k) {
      const std::uint32_t first = regions * k / batch.ranges;
      return region_range{first, regions * (k + 1) / batch.ranges - first};
    };
    // The regions of a range, in order.
    const auto piece_of = [](const auto* slot, std::uint64_t room, const region_range& r) {
      return piece{slot + r.first * room, r.count * room * sizeof(*slot)};
    };
    to_others([&](std::uint32_t s) { return piece{bounds.data() + s * 2 * regions, 2 * regions * 8}; },
              [&](std::uint32_t s) { return piece{from[s].bounds.data(), from[s].bounds.bytes()}; }, 0);
    for (std::uint32_t k = 0; k < batch.ranges; ++k) {
      arrival[k] = to_others(
          [&](std::uint32_t s) { return piece_of(parts.items() + s * my_slot, my_room, range(k)); },
          [&](std::uint32_t s) { return piece_of(from[s].queries.data(), from[s].room, range(k)); }, 0);
      me.mark("queries have come", k, 0);
    }

    const auto batch_of = [&](std::uint32_t s, std::uint32_t first) -> typename kernel::batch {
      const std::uint64_t* const begins =
          (s == my ? bounds.data() + my * 2 * regions : from[s].bounds.data()) + first;
      if (s == my)
        return {parts.items() + my * my_slot, begins, begins + regions, answers.data() + my * my_slot};
      return {from[s].queries.data(), begins, begins + regions, from[s].answers.data()};
    };
    const auto answer = [&](const region_range& r, bool mine, bool others) {
      kernel run{ref, answer_of, flags.data() + 1, 0, 0, {}};
      const auto launch = [&] {
        me.place().launch(run.tiles_of_region * run.count * r.count, scratch_bytes_of(run), run);
        run.count = 0;
        run.tiles_of_region = 0;
      };
      for (std::uint32_t i = 0; i < shards; ++i) {
        const std::uint32_t s = (my + i) % shards;
        if (!(s == my ? mine : others)) continue;
        run.batches[run.count++] = batch_of(s, r.first);
        run.tiles_of_region = larger(run.tiles_of_region, ceil_div<std::uint64_t>(room_of(s), kernel::tile));
        if (run.count == kernel::batches_most) launch();
      }
      if (run.count != 0) launch();
    };
    // This shard's own queries are answered with those of others in the same regions, which read the same
    // part of the table; but its first range is answered while queries are sent, and its last range while the
    // last answers are sent.
    me.fork();
    answer(range(0), true, false);
    me.mark("own queries answered");
    std::uint64_t back = 0;
    for (std::uint32_t k = 0; k < batch.ranges; ++k) {
      me.turn(k + 1);
      me.wait(arrival[k]);
      answer(range(k), k != 0 && k + 1 != batch.ranges, true);
      me.mark("range answered", k);
      back = to_others(
          [&](std::uint32_t s) { return piece_of(from[s].answers.data(), from[s].room, range(k)); },
          [&](std::uint32_t s) { return piece_of(answers.data() + s * my_slot, my_room, range(k)); }, 1);
      me.mark("answers are back", k, 1);
    }
    scope.all_sent();
    me.turn(batch.ranges + 1);
    if (batch.ranges > 1) answer(range(batch.ranges - 1), true, false);
    me.mark("own queries answered", 1);
    me.join();
    me.wait(back);
    parts.template restore_each<true>(place, answers.data(), target, flags.data());
    me.mark("answers in order");
    overflowed.emplace(place, flags.data());
  }
  return overflowed->get() == 0;
}

/// Gives each query the answer of its key.
template <class Answer>
struct put_kept {
  answers_to<Answer> target;
  const typename Answer::result* kept;
  const std::uint32_t* number;
  ROOST_FN void operator()(std::size_t i) const { target.put(i, kept[number[i]]); }
};

/// The same for queries that overload a region, with keys that were chosen to collide: each shard requests
/// each of its distinct keys once, in parts so small that all fit in one region.
template <class Me, class Ref, class Queries, class Answer>
void ask_each_key_once(Me& me, const Ref& ref, const owners& order, const Queries& queries,
                       const answers_to<Answer>& target, std::size_t& scratch_bytes) {
  using place_type = typename Me::place_type;
  using result = typename Answer::result;
  const auto each = unique_inverse(me.place(), queries, index_order::any);
  array<result, place_type> kept(me.place(), each.keys.size());
  const auto keys = as_sequence(each.keys);
  sharded_batch batch{{order.seed, order.shards}, 1, sharded_batch::room_for_all};
  const gathered all = me.gather({keys.size()});
  const std::size_t part = ceil_div<std::size_t>(all.most(), me.count());
  for (std::size_t first = 0; first < all.most(); first += part) {
    batch.set_sizes(all);
    for (std::uint64_t& size : batch.sizes) size = count_in_part(size, first, part);
    const std::size_t mine = smaller(first, keys.size());
    ask_once(me, ref, batch, slice(keys, mine, batch.sizes[me.number()]), target.answer,
             put_to<result>{kept.data() + mine}, scratch_bytes);
  }
  me.place().for_each(queries.size(), put_kept<Answer>{target, kept.data(), each.inverse.data()});
  me.place().synchronize();
  scratch_bytes += each.keys.bytes() + each.inverse.bytes() + kept.bytes();
}

/// The same for queries with some frequent keys.
template <class Me, class Ref, class Queries, class Answer>
void ask_skewed(Me& me, const Ref& ref, sharded_batch batch, const Queries& queries,
                const answers_to<Answer>& target, std::size_t& scratch_bytes) {
  using place_type = typename Me::place_type;
  using query = element_of<Queries>;
  using result = typename Answer::result;
  const frequent_queries<query, place_type> frequent(me.place(), queries);
  const auto ask_rest = [&](const auto& rest, const answers_to<Answer>& to) {
    const gathered all = me.gather({rest.size(), frequent.copies()});
    if (all.sum(0) == 0) return;
    batch.set_sizes(all);
    batch.copies = all.most(1);
    std::size_t bytes = 0;
    const bool good = ask_once(me, ref, batch, rest, target.answer, to, bytes);
    if (me.gather({good ? 0u : 1u}).sum() != 0)
      ask_each_key_once(me, ref, batch.order, slice(rest, 0, good ? 0 : rest.size()), to, bytes);
    scratch_bytes += bytes;
  };
  const gathered all = me.gather({frequent.keys().size()});
  if (all.sum() == 0) return ask_rest(queries, target);

  array<result, place_type> kept(me.place(), frequent.keys().size());
  sharded_batch few{{batch.order.seed, batch.order.shards}, 1, sharded_batch::room_for_all};
  few.set_sizes(all);
  ask_once(me, ref, few, as_sequence(frequent.keys()), target.answer, put_to<result>{kept.data()},
           scratch_bytes);
  if (kept.size() == 0) return ask_rest(queries, target);
  const rare_queries<query, place_type> rest(me.place(), frequent, kept, queries, target);
  scratch_bytes = frequent.bytes() + kept.bytes() + rest.bytes();
  ask_rest(rest.queries(), answers_to<Answer>{target.answer, target.first, rest.numbers()});
}

/// Every bulk lookup in a sharded table that exchanges queries. `all`: of each shard the number of queries,
/// and the bytes of its table.
template <class Me, class Ref, class Queries, class Answer>
bulk_report ask_owners(Me& me, const asked_table<Ref>& table, const gathered& all, const Queries& queries,
                       const Answer& answer, const bulk_options& how) {
  using place_type = typename Me::place_type;
  using tuned = shards_tuning<place_type>;
  using query = element_of<Queries>;
  constexpr std::size_t bytes_of_query = 2 * (sizeof(query) + sizeof(typename Answer::result)) + 4;
  const std::size_t n = queries.size();
  const std::size_t n_most = all.most(0),
                    fit = larger(how.scratch_bytes_or(tuned::scratch_bytes) / bytes_of_query,
                                 find_tuning<place_type>::chunk_least);
  const std::size_t chunks = larger<std::size_t>(ceil_div(n_most, fit), 1), chunk = ceil_div(n_most, chunks);
  sharded_batch batch{{table.seed, me.count()}};
  if (asks_for_regions(how.path) || by_region_pays<place_type, Ref>(all.most(1), chunk)) {
    const std::size_t windows = ceil_div(all.most(1), find_tuning<place_type>::window_bytes);
    const std::size_t most = partition_tuning<place_type>::digits_most / me.count();
    batch.order.regions = static_cast<std::uint32_t>(std::clamp<std::size_t>(windows, 2, most));
    const std::size_t ranges = chunk * sizeof(query) / me.count() / tuned::range_bytes;
    batch.ranges = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(ranges, 1, smaller(tuned::ranges_most, batch.order.regions)));
  }
  sample_of_queries<query, place_type> sample(me.place(), queries, smaller(chunk, n),
                                              std::uint64_t{me.count()} * batch.order.regions, table.seed);
  me.mark("sampled");
  const std::uint64_t copies_tried = sample.copies_expected(chunk);
  bool is_skewed = false;
  // While the place partitions the first queries, with room for the number of copies that a sample is likely
  // to show.
  const auto looks_good = [&] {
    const spread_of_queries spread = sample.spread();
    const gathered all_spreads = me.gather({spread.copies, spread.is_skewed});
    is_skewed = all_spreads.sum(1) != 0;
    batch.copies = all_spreads.most(0);
    return !is_skewed && batch.copies <= copies_tried;
  };
  bulk_report report{path::regional};
  for (std::size_t c = 0; c < chunks; ++c, ++report.chunks) {
    batch.set_sizes(all);
    for (std::uint64_t& size : batch.sizes) size = count_in_part(size, c * chunk, chunk);
    const std::size_t first = smaller(c * chunk, n), count = batch.sizes[me.number()];
    std::size_t bytes = 0;
    const answers_to<Answer> target{answer, first};
    const auto part = slice(queries, first, count);
    const auto try_once = [&](const auto&... tried) {
      return ask_once(me, table.ref, batch, part, answer, target, bytes, tried...);
    };
    bool good = false;
    if (c == 0) {
      batch.copies = copies_tried;
      good = try_once(looks_good, sample.is_skewed());
      if (!is_skewed && batch.copies > copies_tried) good = try_once();
    } else if (!is_skewed) {
      good = try_once();
    }
    if (is_skewed || me.gather({good ? 0u : 1u}).sum() != 0)
      ask_skewed(me, table.ref, batch, slice(part, 0, good ? 0 : count), target, bytes);
    report.scratch_bytes = larger(report.scratch_bytes, bytes);
  }
  return report;
}

}  // namespace roost::detail
