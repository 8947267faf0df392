#pragma once

#include <cstring>

#include "roost/detail/groups/frequent_keys.hpp"
#include "roost/detail/partition/select.hpp"
#include "roost/detail/place/streams.hpp"
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
  reading(const cuda& place, const T* source) : word_(place.device(), sizeof(T)) {
    if (word_.get() == nullptr) {
      place.copy_to_host(&value_, source, sizeof(T));
      return;
    }
    there_ = make_event();
    place.copy_to_word(word_, source, sizeof(T));
    record_event(there_, place.stream());
  }
  reading(const reading&) = delete;
  ~reading() {  // the word must not be reused before
    if (there_) static_cast<void>(cudaEventSynchronize(there_.get()));
  }

  T get() {
    if (!there_) return value_;
    check(cudaEventSynchronize(there_.get()), "cudaEventSynchronize");
    std::memcpy(&value_, word_.get(), sizeof(T));
    return value_;
  }

 private:
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
  const double root = std::sqrt(pairs) + 1;  // one more, since the sample may have too few pairs by chance
  return 1 +
         static_cast<std::uint64_t>(static_cast<double>(n) * (root * root) / (sample * std::max(of, 1.0)));
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
      : n_(n), frequent_({seed, 2}), outcome_(zeros<sample_outcome>(place, 1)) {
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
    return {copies_of_items(n_, sample, sample, 2.0 * frequent_.seen.copies), frequent_.region_of.count};
  }

 private:
  std::size_t n_;
  frequent_keys<Key, Place> frequent_;
  array<sample_outcome, Place> outcome_;
  std::optional<reading<sample_outcome, Place>> seen_;
};

/// Counts of keys that are not frequent: the upper half of a word holds the sum of their squares.
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

/// The keys of many queries of a shard.
template <class Key, class Place>
struct frequent_queries {
  static constexpr std::size_t least_in_sample = 8;
  static constexpr std::size_t sample_most = 1 << 18;

  array<Key, Place> keys;
  std::optional<frozen_map<Key, std::uint32_t, Place>> numbers;  // of the keys, if there are any
  std::uint64_t copies = 1;  // of keys that are not frequent: see copies_of_items

  template <class Queries>
  frequent_queries(const Place& place, const Queries& queries) {
    const std::size_t n = queries.size();
    if (n < least_in_sample) return;
    const std::size_t size = smaller(n, std::clamp<std::size_t>(n / 16, 1 << 13, sample_most));
    const auto sample = array_of(place, size, item_of_sample<Queries>{queries, n / size});
    const auto each =
        unique_all(place, as_sequence(sample), {.order = index_order::any, .counts = true}, "roost::find");
    const std::uint64_t rare = place.sum(each.keys.size(), rare_counts{each.counts.data(), least_in_sample});
    const auto rare_items = static_cast<double>(rare & 0xffffffff);
    copies = copies_of_items(n, static_cast<double>(size), rare_items,
                             static_cast<double>(rare >> 32) - rare_items);
    const auto chosen = select_numbers<std::uint32_t>(place, each.keys.size(),
                                                      is_frequent{each.counts.data(), least_in_sample});
    if (chosen.size() == 0) return;
    keys = array_of(place, chosen.size(), gather<Key>{each.keys.data(), chosen.data()});
    numbers.emplace(place, keys, numbers_to<std::uint32_t>(keys.size()));
  }

  std::size_t bytes() const { return keys.bytes() + (numbers ? numbers->bytes() : 0); }
};

/// Answers queries of frequent keys, and lists the rest.
template <class Place, class Ref, class Queries, class Result, class Target>
struct answer_frequent {
  using index_answer = write_value<std::uint32_t>;
  static constexpr driver chosen = driver_in_cache<Place, Ref, index_answer>;
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
  std::uint32_t* rest_rows;
  std::uint64_t* rest_size;

  struct pieces {
    std::uint32_t* rank;  // of each query among those without a frequent key; last, their number
    std::uint64_t* first;
    deferred_query<typename Ref::key_type>* deferred;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint32_t>(tile + 1), memory.take<std::uint64_t>(1),
            take_deferred<chosen, typename Ref::key_type>(memory, tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    const pieces parts = scratch_of(*this, memory);
    const std::uint64_t first = index * tile;
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - first));
    const auto put = [this, rank = parts.rank, first](std::uint64_t i, std::uint32_t number) {
      rank[i - first] = number == none ? 1 : 0;
      if (number != none) target.put(i, answers[number]);
    };
    answer_tile<Place, chosen, false>(team, frequent, query_tile<Queries>{queries, first, n},
                                      index_answer{nullptr, none}, deferral_of<chosen>(parts.deferred, true),
                                      put);
    if (team.rank() == 0) parts.rank[n] = 0;
    team.sync();
    team.exclusive_scan(parts.rank, parts.rank, n + 1);
    team.sync();
    if (team.rank() == 0) *parts.first = fetch_add(*rest_size, std::uint64_t{parts.rank[n]});
    team.sync();
    for_each_of(team, n, [&](std::uint32_t i) {
      if (parts.rank[i] == parts.rank[i + 1]) return;
      rest[*parts.first + parts.rank[i]] = queries[first + i];
      rest_rows[*parts.first + parts.rank[i]] = static_cast<std::uint32_t>(first + i);
    });
  }
};

// The exchange of queries and answers.

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

/// Gives each query the answer of its key.
template <class Answer>
struct put_kept {
  answers_to<Answer> target;
  const typename Answer::result* kept;
  const std::uint32_t* number;
  ROOST_FN void operator()(std::size_t i) const { target.put(i, kept[number[i]]); }
};

/// A bulk lookup in a sharded table whose queries are sent to the owners of their keys; all shards do it at
/// once.
template <class Me, class Ref, class Query, class Answer>
class lookup_by_owners {
  using place_type = typename Me::place_type;
  using tuned = shards_tuning<place_type>;
  using result = typename Answer::result;
  using kernel = probe_region_tiles<place_type, Ref, Query, Answer, tuned::batches>;
  using sent_queries =
      items_by_region<Me, pair<Query, none>,
                      partition_kind{.way_back = true, .one_pass = true, .may_count = false}>;

 public:
  /// `ref`: of the table of this shard. `seed`: of the owners. `sizes`: for each shard, the number of queries
  /// and the bytes of its table.
  lookup_by_owners(Me& me, const Ref& ref, std::uint64_t seed, const gathered& sizes, const Answer& answer)
      : me_(me), place_(me.place()), ref_(ref), seed_(seed), sizes_(sizes), answer_(answer) {}

  template <class Queries>
  bulk_report run(const Queries& queries, const bulk_options& how) {
    constexpr std::size_t bytes_of_query = 2 * (sizeof(Query) + sizeof(result)) + 4;
    const std::size_t fit = larger(how.scratch_bytes_or(tuned::scratch_bytes) / bytes_of_query,
                                   find_tuning<place_type>::chunk_least);
    const std::size_t n = queries.size(), most = sizes_.most(0),
                      chunks = larger<std::size_t>(ceil_div(most, fit), 1), chunk = ceil_div(most, chunks);
    sharded_batch batch = batch_of(chunk, how);
    sample_of_queries<Query, place_type> sample(place_, queries, smaller(chunk, n),
                                                std::uint64_t{me_.count()} * batch.order.regions, seed_);
    me_.mark("sampled");
    const std::uint64_t copies_tried = sample.copies_expected(chunk);
    std::uint64_t copies = copies_tried;
    bool is_skewed = false;
    // While the place partitions the first queries, with room for the number of copies that a sample is
    // likely to show.
    const auto looks_good = [&] {
      const spread_of_queries spread = sample.spread();
      const gathered all = me_.gather({spread.copies, spread.is_skewed});
      is_skewed = all.sum(1) != 0;
      copies = all.most(0);
      return !is_skewed && copies <= copies_tried;
    };
    bulk_report report{path::regional};
    for (std::size_t c = 0; c < chunks; ++c, ++report.chunks) {
      batch.take(sizes_, c * chunk, chunk);
      const std::size_t first = smaller(c * chunk, n), count = batch.sizes[me_.number()];
      const answers_to<Answer> target{answer_, first};
      const auto part = slice(queries, first, count);
      bool good = false;
      held_bytes_ = 0;
      if (c == 0) {
        batch.copies = copies_tried;
        good = send(batch, part, target, looks_good, sample.is_skewed());
        batch.copies = copies;
      }
      if (!is_skewed && (c != 0 || copies > copies_tried)) good = send(batch, part, target);
      if (is_skewed || !all_are(good)) send_skewed(batch, slice(part, 0, good ? 0 : count), target);
    }
    report.scratch_bytes = scratch_bytes_;
    return report;
  }

 private:
  sharded_batch batch_of(std::size_t chunk, const bulk_options& how) const {
    sharded_batch batch{{seed_, me_.count()}};
    const std::size_t table_bytes = sizes_.most(1);
    if (!asks_for_regions(how.path) && !by_region_pays<place_type, Ref>(table_bytes, chunk)) return batch;
    const std::size_t windows = ceil_div(table_bytes, find_tuning<place_type>::window_bytes);
    const std::size_t most = partition_tuning<place_type>::digits_most / me_.count();
    batch.order.regions = static_cast<std::uint32_t>(std::clamp<std::size_t>(windows, 2, most));
    return batch;
  }

  bool all_are(bool good) { return me_.gather({good ? 0u : 1u}).sum() == 0; }

  /// Sends a shard's queries to the owners of their keys, and writes the answers to `target`. Returns false
  /// on a shard that has too many queries of one region: then that shard has no answers.
  /// `looks_good()` is called when the partition has begun; if it returns false, on all shards, nothing is
  /// sent. Queries are not partitioned if `unless`, on the place, is not 0.
  template <class Queries, class Target, class LooksGood = std::true_type>
  bool send(const sharded_batch& batch, const Queries& queries, const Target& target,
            const LooksGood& looks_good = {}, const std::uint32_t* unless = nullptr) {
    std::optional<reading<std::uint32_t, place_type>> overflowed;
    {  // freed in stream order before the wait
      const sent_queries items(me_, alone<Queries>{queries}, batch, unless);
      me_.mark("partitioned");
      std::vector<array<result, place_type>> answers(me_.count());  // to the queries from each shard
      std::size_t bytes = held_bytes_ + items.scratch_bytes;
      for (std::uint32_t s = 0; s < me_.count(); ++s) {
        answers[s] = {place_, s == me_.number() ? items.parts.extent() : items.from[s].slots};
        bytes += answers[s].bytes();
      }
      scratch_bytes_ = larger(scratch_bytes_, bytes);
      if (!looks_good()) return false;
      me_.agree();
      in_use_by_others scope(me_);
      items.send();
      answer_all(items, answers, scope);
      items.parts.template restore_each<true>(place_, answers[me_.number()].data(), target,
                                              items.overflowed());
      me_.mark("answers in order");
      overflowed.emplace(place_, items.overflowed());
    }
    return overflowed->get() == 0;
  }

  /// Answers arriving queries, range by range, and sends the answers back. This shard's own queries are
  /// answered with those of others in the same regions, which read the same part of the table; but its first
  /// range is answered while queries are sent, and its last range while the last answers are sent.
  void answer_all(const sent_queries& items, std::vector<array<result, place_type>>& answers,
                  in_use_by_others<Me>& scope) {
    const std::uint32_t my = me_.number(), last = items.ranges - 1;
    result* const mine = answers[my].data();
    const auto answer = [&](std::uint32_t k, bool own, bool others) {
      answer_range(items, answers, items.range(k), own, others);
    };
    me_.fork();
    answer(0, true, false);
    me_.mark("own queries answered");
    std::uint64_t back = 0;
    for (std::uint32_t k = 0; k <= last; ++k) {
      me_.turn(k + 1);
      items.wait_for(k);
      answer(k, k != 0 && k != last, true);
      me_.mark("range answered", k);
      const region_range range = items.range(k);
      back = items.exchange(
          [&](std::uint32_t s) { return items.piece_of(answers[s].data(), s, range); },
          [&](std::uint32_t s) { return items.piece_of(mine + s * items.from[my].slots, my, range); }, 1);
      me_.mark("answers are back", k, 1);
    }
    scope.all_sent();
    me_.turn(last + 2);
    if (last != 0) answer(last, true, false);
    me_.mark("own queries answered", 1);
    me_.join();
    me_.wait(back);
  }

  void answer_range(const sent_queries& items, std::vector<array<result, place_type>>& answers,
                    const region_range& range, bool own, bool others) {
    const std::uint32_t my = me_.number();
    kernel run{ref_, answer_, items.overflowed() + 1, 0, 0, {}};
    const auto launch = [&] {
      me_.place().launch(run.tiles_of_region * run.count * range.count, scratch_bytes_of(run), run);
      run.count = 0;
      run.tiles_of_region = 0;
    };
    for (std::uint32_t i = 0; i < me_.count(); ++i) {
      const std::uint32_t s = (my + i) % me_.count();
      if (!(s == my ? own : others)) continue;
      const auto& from = items.from[s];
      run.batches[run.count++] = {from.items, from.begins + range.first, from.ends + range.first,
                                  answers[s].data() + (s == my ? s * from.slots : 0)};
      run.tiles_of_region = larger(run.tiles_of_region, ceil_div<std::uint64_t>(from.room, kernel::tile));
      if (run.count == kernel::batches_most) launch();
    }
    if (run.count != 0) launch();
  }

  /// The same for queries with some frequent keys.
  template <class Queries>
  void send_skewed(const sharded_batch& batch, const Queries& queries, const answers_to<Answer>& target) {
    const frequent_queries<Query, place_type> frequent(place_, queries);
    const gathered all = me_.gather({frequent.keys.size()});
    if (all.sum() == 0) return send_rare(batch, frequent.copies, queries, target);

    array<result, place_type> kept(place_, frequent.keys.size());
    sharded_batch few{{seed_, me_.count()}, sharded_batch::room_for_all};
    few.take(all);
    send(few, as_sequence(frequent.keys), put_to<result>{kept.data()});
    if (kept.size() == 0) return send_rare(batch, frequent.copies, queries, target);
    const std::size_t n = queries.size();
    array<Query, place_type> rest(place_, n);
    array<std::uint32_t, place_type> numbers(place_, n);
    auto size = zeros(place_, 1);
    using indices_ref = typename frozen_map<Query, std::uint32_t, place_type>::ref_type;
    using answering = answer_frequent<place_type, indices_ref, Queries, result, answers_to<Answer>>;
    const answering run{.frequent = frequent.numbers->ref(),
                        .answers = kept.data(),
                        .queries = queries,
                        .count = n,
                        .target = target,
                        .rest = rest.data(),
                        .rest_rows = numbers.data(),
                        .rest_size = size.data()};
    place_.launch(ceil_div<std::size_t>(n, answering::tile), scratch_bytes_of(run), run);
    const std::uint64_t left = read_one(place_, size.data());
    held_bytes_ = frequent.bytes() + kept.bytes() + rest.bytes() + numbers.bytes();
    send_rare(batch, frequent.copies, slice(as_sequence(rest), 0, left),
              {answer_, target.first, numbers.data()});
  }

  /// The same for queries without frequent keys, most of which have at most this many copies.
  template <class Queries>
  void send_rare(sharded_batch batch, std::uint64_t copies, const Queries& queries,
                 const answers_to<Answer>& target) {
    const gathered all = me_.gather({queries.size(), copies});
    if (all.sum(0) == 0) return;
    batch.take(all);
    batch.copies = all.most(1);
    const bool good = send(batch, queries, target);
    if (!all_are(good)) send_each_key_once(slice(queries, 0, good ? 0 : queries.size()), target);
  }

  /// The same for queries that overload a region, with keys that were chosen to collide: each shard requests
  /// each of its distinct keys once, in parts so small that all fit in one region.
  template <class Queries>
  void send_each_key_once(const Queries& queries, const answers_to<Answer>& target) {
    const auto each = unique_inverse(place_, queries, index_order::any);
    array<result, place_type> kept(place_, each.keys.size());
    held_bytes_ += each.keys.bytes() + each.inverse.bytes() + kept.bytes();
    const auto keys = as_sequence(each.keys);
    sharded_batch batch{{seed_, me_.count()}, sharded_batch::room_for_all};
    const gathered all = me_.gather({keys.size()});
    const std::size_t part = ceil_div<std::size_t>(all.most(), me_.count());
    for (std::size_t first = 0; first < all.most(); first += part) {
      batch.take(all, first, part);
      const std::size_t mine = smaller(first, keys.size());
      send(batch, slice(keys, mine, batch.sizes[me_.number()]), put_to<result>{kept.data() + mine});
    }
    place_.for_each(queries.size(), put_kept<Answer>{target, kept.data(), each.inverse.data()});
    place_.synchronize();
  }

  Me& me_;
  const place_type& place_;
  const Ref& ref_;
  const std::uint64_t seed_;
  const gathered& sizes_;
  const Answer answer_;
  std::size_t held_bytes_ = 0;  // by other arrays during an exchange
  std::size_t scratch_bytes_ = 0;
};

}  // namespace roost::detail
