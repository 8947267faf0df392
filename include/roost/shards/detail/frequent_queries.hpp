#pragma once

#include "roost/detail/groups/frequent_keys.hpp"
#include "roost/detail/partition/select.hpp"
#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/frozen_map.hpp"
#include "roost/shards/detail/reading.hpp"
#include "roost/two_way_index.hpp"

// Keys of many queries of a shard. These queries would overload the shard that owns the keys, so each shard
// requests the answers of such keys once, and answers their queries itself.

namespace roost::detail {

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
    write_numbers(place, chosen.size(), gather<Key>{each.keys.data(), chosen.data()}, keys_.data());
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
                                      parts.deferred, true, put);
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

}  // namespace roost::detail
