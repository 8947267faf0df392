#pragma once

#include "roost/detail/groups/aggregate.hpp"

// Aggregates of more rows than 32 bits number: those of chunks, of which each is merged with the ones before.
// What they take beside a chunk's scratch memory depends on the number of keys, not of rows.

namespace roost::detail {

/// Keys in ascending hash order.
template <class Key>
struct hash_ordered {
  const Key* keys;
  std::uint64_t size;

  /// The keys with lesser hashes.
  ROOST_FN std::uint64_t before(const Key& key) const {
    const auto hash = hash_of(key);
    return lower_bound(std::uint64_t{0}, size, [&](std::uint64_t i) { return hash_of(keys[i]) < hash; });
  }
  ROOST_FN bool has(std::uint64_t i, const Key& key) const { return i < size && same_key(keys[i], key); }
};

/// Whether a key of `more` is new.
template <class Key>
struct is_new_group {
  hash_ordered<Key> old, more;
  ROOST_FN std::uint64_t operator()(std::size_t j) const {
    return old.has(old.before(more.keys[j]), more.keys[j]) ? 0 : 1;
  }
};

/// Where a merged group is in both lists.
struct merged_group {
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
  std::uint64_t old, more;
};

/// Writes the groups of both lists: number i is old, or is one of `more` after those.
template <class Key>
struct merge_groups {
  hash_ordered<Key> old, more;
  const std::uint64_t* new_before;  // each of `more`, and in all
  Key* keys;
  merged_group* groups;

  ROOST_FN void operator()(std::size_t i) const {
    const bool is_old = i < old.size;
    const Key key = is_old ? old.keys[i] : more.keys[i - old.size];
    const std::uint64_t a = is_old ? i : old.before(key), b = is_old ? more.before(key) : i - old.size;
    if (!is_old && new_before[b] == new_before[b + 1]) return;
    keys[a + new_before[b]] = key;
    groups[a + new_before[b]] = {is_old ? a : merged_group::nowhere,
                                 !is_old || more.has(b, key) ? b : merged_group::nowhere};
  }
};

template <class Value, class F>
struct merge_values {
  const merged_group* groups;
  const Value* old;
  const Value* more;
  F f;
  ROOST_FN Value operator()(std::size_t g) const {
    const merged_group at = groups[g];
    if (at.old == at.nowhere) return more[at.more];
    return at.more == at.nowhere ? old[at.old] : f(old[at.old], more[at.more]);
  }
};

/// Adds the groups of `more` to `all`.
template <class Place, class Key, class Value, class... F>
void merge_aggregated(const Place& place, aggregated<Key, Value, Place, sizeof...(F)>& all,
                      aggregated<Key, Value, Place, sizeof...(F)>&& more) {
  const hash_ordered<Key> a{all.keys.data(), all.size()}, b{more.keys.data(), more.size()};
  auto new_before = zeros(place, b.size + 1);
  write_numbers(place, b.size, is_new_group<Key>{a, b}, new_before.data());
  place.exclusive_scan(new_before.data(), new_before.data(), b.size + 1);
  const std::size_t size = a.size + read_one(place, new_before.data() + b.size);
  array<Key, Place> keys(place, size);
  array<merged_group, Place> groups(place, size);
  place.for_each(a.size + b.size, merge_groups<Key>{a, b, new_before.data(), keys.data(), groups.data()});
  const auto merge = [&]<class V, class G>(array<V, Place>& old, const array<V, Place>& of_more, const G& f) {
    old = array_of(place, size, merge_values<V, G>{groups.data(), old.data(), of_more.data(), f});
  };
  std::size_t k = 0;
  const auto merge_results = [&](const auto& f) {
    merge(results_of(all, k), results_of(more, k), f);
    ++k;
  };
  (merge_results(F()), ...);
  if (all.counts.size() != 0) merge(all.counts, more.counts, plus());
  place.synchronize();
  all.keys = std::move(keys);
}

/// What an aggregator makes of a batch, and of a larger one in chunks of `rows_most` rows. Nothing if it
/// makes nothing of a chunk.
template <class Place, class Key, class Value, class... F, class Source>
auto aggregate(const Place& place, const Source& source, bool counts, std::size_t rows_most) {
  const std::size_t n = source.size();
  const auto run = [&](const auto& part) {
    return aggregator<Place, Key, Value, F...>(place, part.size(), counts).run(part);
  };
  if (n <= rows_most) return run(source);
  auto all = run(slice(source, 0, rows_most));
  for (std::size_t first = rows_most; all && first < n; first += rows_most) {
    auto more = run(slice(source, first, smaller(rows_most, n - first)));
    if (!more) return more;
    merge_aggregated<Place, Key, Value, F...>(place, *all, std::move(*more));
  }
  return all;
}

}  // namespace roost::detail
