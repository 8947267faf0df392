#pragma once

#include <array>
#include <unordered_map>

#include "apps/measure/run.hpp"
#include "apps/measure/sorted_groups.hpp"
#include "roost/kernels.hpp"

// Repeated keys: frozen_multimap, two_way_index and joins, compared with sorting.

namespace roost::bench {

/// The key of pair i.
template <class Key>
struct copied_key {
  key_copies copies;
  std::size_t n;
  make_key<Key> key;
  query_order zipf;

  copied_key(const settings& options, key_copies copies, std::size_t n)
      : copies(copies), n(n), key(options.keys, n), zipf(n, 64, query_pattern::zipf) {}

  ROOST_FN std::size_t shuffled(std::size_t i) const { return (i * 2654435761u + 12345) % n; }
  /// Below n.
  ROOST_FN std::size_t number(std::size_t i) const {
    switch (copies.kind) {
      case key_copies::zipf:
        return zipf(i);
      case key_copies::half:
        return i % 2 == 0 ? 0 : 1 + shuffled(i);
      case key_copies::keys:
        return shuffled(i) % copies.number;
      default:
        return shuffled(i) / copies.number;
    }
  }
  ROOST_FN Key operator()(std::size_t i) const { return key(number(i)); }
  /// The key of query i if each distinct key is queried once, for copies of kind `equal`.
  ROOST_FN Key distinct(std::size_t i) const { return key(i * 7919 % (n / copies.number)); }
  std::size_t distinct_keys() const { return n / copies.number; }
};

template <class Key, class Value>
struct fill_copied_pairs {
  Key* keys;
  Value* values;  // may be null
  copied_key<Key> key;
  ROOST_FN void operator()(std::size_t i) const {
    keys[i] = key(i);
    if (values != nullptr) values[i] = static_cast<Value>(i);
  }
};

template <class Key>
struct fill_distinct {
  Key* queries;
  copied_key<Key> key;
  ROOST_FN void operator()(std::size_t i) const { queries[i] = key.distinct(i); }
};

/// 1 for the first pair seen of each key: the sum is the number of keys.
template <class Key>
struct first_of_key {
  copied_key<Key> key;
  std::uint32_t* seen;  // of each key: zeros before
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return kernels::fetch_add(seen[key.number(i)], 1u) == 0;
  }
};

/// Lists of pairs' numbers: list l has values[offsets[l]] to values[offsets[l + 1]], and a key.
template <class Key, class Value>
struct grouped {
  const Key* keys;
  const std::uint64_t* offsets;
  const Value* values;
  std::size_t size;
};

/// 1 for a list that is empty, or that begins after its end.
template <class Key, class Value>
struct wrong_list {
  grouped<Key, Value> lists;
  ROOST_FN std::uint64_t operator()(std::size_t l) const { return lists.offsets[l] >= lists.offsets[l + 1]; }
};

/// 1 for a value of a list that is not the number of a pair or was seen before, whose pair has a different
/// key than the list, or that is not greater than the value before it.
template <class Key, class Value>
struct wrong_list_value {
  grouped<Key, Value> lists;
  copied_key<Key> key;
  std::uint32_t* seen;  // of each pair: zeros before
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::size_t l = kernels::last_at_or_before<std::size_t>(0, lists.size, lists.offsets, i);
    const auto pair = static_cast<std::size_t>(lists.values[i]);
    if (pair >= key.n || kernels::fetch_add(seen[pair], 1u) != 0) return 1;
    return !same_key(key(pair), lists.keys[l]) ||
           (i != lists.offsets[l] && lists.values[i - 1] >= lists.values[i]);
  }
};

/// 1 for a list that a lookup of its key does not find.
template <class Ref, class Key, class Value>
struct wrong_found_list {
  Ref map;
  grouped<Key, Value> lists;
  ROOST_FN std::uint64_t operator()(std::size_t l) const {
    const value_run<Value> run = map.find(lists.keys[l]);
    return run.begin() != lists.values + lists.offsets[l] ||
           run.size() != lists.offsets[l + 1] - lists.offsets[l];
  }
};

/// 1 for a pair whose key has another value in the map than that of its first pair, which is its number.
template <class Ref, class Key>
struct wrong_first {
  Ref map;
  copied_key<Key> key;
  ROOST_FN std::size_t first(const Key& of) const {
    const auto found = map.find(of);
    return found ? static_cast<std::size_t>(*found) : key.n;
  }
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::size_t j = first(key(i));
    return j > i || !same_key(key(j), key(i)) || first(key(j)) != j;
  }
};

/// Keys of pairs, or keys that no pair has, in the proportion of hits_of_64() for the operation.
template <class Key>
struct fill_asked {
  Key* queries;
  copied_key<Key> key;
  std::uint32_t hits_of_64;
  ROOST_FN void operator()(std::size_t i) const {
    queries[i] = (i & 63) < hits_of_64 ? key(key.n - 1 - i) : key.key(key.n + i);
  }
};

template <class Count>
struct wrong_count {
  const Count* counts;
  Count expected;
  std::uint32_t hits_of_64;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return counts[i] != ((i & 63) < hits_of_64 ? expected : 0);
  }
};

/// For n rows on the left, and on the right each of their keys once.
template <class Row, class Key>
struct wrong_join {
  const Row* left;
  const Row* right;
  const Key* left_keys;
  const Key* right_keys;
  std::size_t right_n;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return left[i] != i || right[i] >= right_n || !same_key(left_keys[i], right_keys[right[i]]);
  }
};

template <class Key>
struct wrong_index {
  const Key* keys;
  const std::uint32_t* indices;
  const Key* of_index;
  std::size_t size;
  std::uint64_t* first;    // of each index: all ones before
  std::uint64_t* counted;  // of each index: zeros before
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    if (indices[i] >= size) return 1;
    kernels::fetch_min(first[indices[i]], i);
    kernels::fetch_add(counted[indices[i]], std::uint64_t{1});
    return !same_key(of_index[indices[i]], keys[i]);
  }
};
/// After wrong_index: 1 for an index that no key has, that should be in the order of first occurrence and is
/// not, or whose count, if there are counts, is wrong.
struct wrong_order {
  const std::uint64_t* first;
  const std::uint64_t* counted;
  const std::uint64_t* counts;
  bool in_order;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return counted[i] == 0 || (counts != nullptr && counted[i] != counts[i]) ||
           (in_order && i != 0 && first[i - 1] >= first[i]);
  }
};
/// 1 for an index that a lookup of its key does not find.
template <class Ref>
struct wrong_found_index {
  Ref index;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return index.find(index.key_at(static_cast<std::uint32_t>(i))).value_or(~0u) != i;
  }
};
/// 1 for a key that is not in an index, or was seen before; if in_order, also for one whose index is not its
/// position.
template <class Ref, class Key>
struct wrong_unique_key {
  Ref index;
  const Key* keys;
  std::uint32_t* seen;  // of each index: zeros before
  bool in_order;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const auto number = index.find(keys[i]);
    return !number || (in_order && *number != i) || kernels::fetch_add(seen[*number], 1u) != 0;
  }
};

struct group_number {
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return static_cast<std::uint32_t>(i); }
};
/// Adds a pair's value to the sum of its key, independently of the table; 1 if the key has no group.
template <class Ref, class Key, class Value>
struct add_to_group {
  Ref group_of;
  const Key* keys;
  const Value* values;
  Value* sums;
  std::uint64_t* counts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const auto group = group_of.find(keys[i]);
    if (!group) return 1;
    kernels::fetch_add(sums[*group], values[i]);
    kernels::fetch_add(counts[*group], std::uint64_t{1});
    return 0;
  }
};
template <class Value>
struct wrong_group {
  const Value *sums, *expected;
  const std::uint64_t *counts, *expected_counts;
  ROOST_FN std::uint64_t operator()(std::size_t g) const {
    return sums[g] != expected[g] || counts[g] != expected_counts[g];
  }
};

#if !defined(__CUDACC__)
/// How many pairs are not in the map exactly once, under their key, and how many keys a lookup does not find.
template <class Key, class Value>
std::uint64_t wrong_std_groups(const std::unordered_multimap<Key, Value>& map, const copied_key<Key>& key,
                               std::uint64_t different) {
  std::vector<bool> seen(key.n);
  std::uint64_t bad = off_by(map.size(), key.n), lists = 0;
  for (auto at = map.begin(); at != map.end(); ++lists) {
    const auto [first, last] = map.equal_range(at->first);
    if (first != at) return key.n;
    for (; at != last; ++at) {
      const auto pair = static_cast<std::size_t>(at->second);
      const bool right = pair < key.n && !seen[pair] && same_key(key(pair), at->first);
      bad += !right;
      if (right) seen[pair] = true;
    }
  }
  return bad + off_by(lists, different);
}
#endif

/// The data for measuring repeated keys: n pairs, and checks of the answers.
template <class Place, class Key, class Value>
class groups_measurement {
  using multimap = frozen_multimap<Key, Value, Place>;
  using index_type = two_way_index<Key, Place>;
  using index_ref = typename index_type::ref_type;

 public:
  static constexpr const char* multimap_name = "frozen_multimap";
  static constexpr const char* index_name = "two_way_index";
  static constexpr const char* sums_name = "group_by";
  static constexpr const char* map_name = "map_of_copies";
  static constexpr const char* sorted_name = "sorted_groups";
  static constexpr const char* std_name = "std_unordered_multimap";
  static constexpr std::array<const char*, 3> counts{"count_hit", "count_half", "count_miss"};
  static constexpr std::array<const char*, 6> tables{multimap_name, index_name,  sums_name,
                                                     map_name,      sorted_name, std_name};

  static bool is_asked(const settings& options) {
    const auto asks = [&](const char* name, const char* op) {
      return options.wants(name) && options.asks(op);
    };
    return std::ranges::any_of(tables, [&](const char* name) { return asks(name, "group"); }) ||
           std::ranges::any_of(counts, [&](const char* op) { return asks(multimap_name, op); }) ||
           asks(multimap_name, "retrieve") || asks(multimap_name, "join");
  }

  groups_measurement(const Place& place, const settings& options, const key_copies& copies, std::size_t n)
      : place_(place),
        options_(options),
        copies_(copies),
        n_(n),
        key_(options, copies, n),
        keys_(place, n),
        values_(place, n),
        seen_(place, n) {
    place.for_each(n, fill_copied_pairs<Key, Value>{keys_.data(), values_.data(), key_});
    none_seen();
    different_ = place.sum(n, first_of_key<Key>{key_, seen_.data()});
  }

  void run() {
    if (options_.wants(multimap_name)) {
      measure_multimap();
      if (counts_are_known() && options_.asks("join")) measure_join();
    }
    if (!options_.asks("group")) return;
    if (options_.wants(index_name)) {
      for (const index_order order : {index_order::any, index_order::first_occurrence}) measure_index(order);
    }
    if (options_.wants(sums_name)) measure_sums();
    if (options_.wants(map_name)) measure_map();
    if (options_.wants(sorted_name)) {
      std::optional<sorted_groups<Place, Key, Value>> groups;
      const row line =
          built(sorted_name, "group", n_, groups, [&] { groups.emplace(place_, all_keys(), all_values()); });
      report(line, wrong_groups({groups->keys(), groups->offsets(), groups->values(), groups->size()}));
    }
#if !defined(__CUDACC__)
    if (options_.wants(std_name)) {
      std::optional<std::unordered_multimap<Key, Value>> filled;
      const row line = built(std_name, "group", n_, filled, [&] {
        filled.emplace();
        filled->reserve(n_);
        for (std::size_t i = 0; i < n_; ++i) filled->emplace(all_keys()[i], all_values()[i]);
      });
      report(line, wrong_std_groups(*filled, key_, different_));
    }
#endif
  }

 private:
  void measure_multimap() {
    std::optional<multimap> map;
    const auto make = [&] { map.emplace(place_, all_keys(), all_values()); };
    if (options_.asks("group")) {
      row line = built(multimap_name, "group", n_, map, make);
      line.bytes = map->bytes();
      line.scratch_bytes = map->statistics().scratch_bytes;
      line.load_factor = map->statistics().load_factor;
      const grouped<Key, Value> lists{map->keys().data(), map->offsets().data(), map->values().data(),
                                      map->key_count()};
      using ref = typename multimap::ref_type;
      report(line, wrong_groups(lists) +
                       place_.sum(lists.size, wrong_found_list<ref, Key, Value>{map->ref(), lists}));
    }
    if (!counts_are_known()) return;
    for (const char* op : counts) {
      if (!options_.asks(op)) continue;
      if (!map) make();
      measure_count(*map, op);
    }
    if (options_.asks("retrieve")) {
      if (!map) make();
      measure_retrieve(*map);
    }
  }

  bool counts_are_known() const { return copies_.kind == key_copies::equal && n_ % copies_.number == 0; }

  void measure_count(const multimap& map, const char* op) {
    const std::uint32_t hits = hits_of_64(op);
    array<Key, Place> queries(place_, n_);
    array<std::uint32_t, Place> found(place_, n_);
    place_.for_each(n_, fill_asked<Key>{queries.data(), key_, hits});
    std::uint64_t bad = 0;
    row line = measured(multimap_name, op, n_, [&] {
      return median_milliseconds(
          place_, options_.warm_ups, options_.repetitions,
          [&] { place_.fill(found.data(), poison, found.bytes()); },
          [&] { map.count(place_, std::as_const(queries).span(), found, how()); },
          [&] { bad += place_.sum(n_, wrong_count<std::uint32_t>{found.data(), copies_.number, hits}); });
    });
    line.hit_rate = hits / 64.0;
    report(line, bad);
  }

  void measure_retrieve(const multimap& map) {
    const std::size_t n = key_.distinct_keys();
    array<Key, Place> queries(place_, n);
    place_.for_each(n, fill_distinct<Key>{queries.data(), key_});
    array<Value, Place> results(place_, n_);
    std::optional<typename multimap::matches> found;
    const row line = measured(multimap_name, "retrieve", n_, [&] {
      return median_of_builds(
          place_, options_.warm_ups, options_.repetitions, found,
          [&] {
            found.emplace(map.match(place_, std::as_const(queries).span(), how()));
            found->retrieve(place_, results);
          },
          [&] { place_.fill(results.data(), poison, results.bytes()); });
    });
    report(line, wrong_groups({queries.data(), found->offsets().data(), results.data(), n}));
  }

  /// With each key once on the right.
  void measure_join() {
    const std::size_t right_n = key_.distinct_keys();
    array<Key, Place> right(place_, right_n);
    place_.for_each(right_n, fill_distinct<Key>{right.data(), key_});
    std::optional<joined_rows<std::uint32_t, Place>> rows;
    const row line = built("inner_join", "join", n_ + right_n, rows, [&] {
      rows.emplace(inner_join(place_, all_keys(), std::as_const(right).span()));
    });
    const bool all = rows->left.size() == n_ && rows->right.size() == n_;
    report(line, !all ? n_
                      : place_.sum(n_, wrong_join<std::uint32_t, Key>{rows->left.data(), rows->right.data(),
                                                                      keys_.data(), right.data(), right_n}));
  }

  /// two_way_index, and its parts.
  void measure_index(index_order order) {
    const bool in_order = order == index_order::first_occurrence;
    const std::string suffix = in_order ? "" : "_any";
    const auto named = [&](row line) {
      line.value_bits = 32;
      return line;
    };
    std::optional<index_type> index;
    row line = named(built("two_way_index" + suffix, "group", n_, index, [&] {
      index.emplace(place_, all_keys(), typename index_type::options{.order = order});
    }));
    line.bytes = index->bytes();
    const bool all = index->indices().size() == n_ && index->counts().size() == index->size();
    report(line, !all ? n_
                      : wrong_numbers(index->keys().data(), index->size(), index->indices().data(),
                                      index->counts().data(), in_order) +
                            place_.sum(index->size(), wrong_found_index<index_ref>{index->ref()}));

    std::optional<unique_keys_inverse<Key, Place>> inverse;
    line = named(built("unique_inverse" + suffix, "group", n_, inverse,
                       [&] { inverse.emplace(unique_inverse(place_, all_keys(), order)); }));
    report(line, inverse->inverse.size() != n_ ? n_
                                               : wrong_numbers(inverse->keys.data(), inverse->keys.size(),
                                                               inverse->inverse.data(), nullptr, in_order));
    inverse.reset();

    std::optional<array<Key, Place>> unique_keys;
    line = named(built("unique" + suffix, "group", n_, unique_keys,
                       [&] { unique_keys.emplace(unique(place_, all_keys(), order)); }));
    none_seen();
    report(line,
           unique_keys->size() != different_
               ? n_
               : place_.sum(different_, wrong_unique_key<index_ref, Key>{index->ref(), unique_keys->data(),
                                                                         seen_.data(), in_order}));
  }

  /// A frozen_map, which keeps the first pair of each key.
  void measure_map() {
    std::optional<frozen_map<Key, Value, Place>> map;
    row line = built(map_name, "group", n_, map, [&] { map.emplace(place_, all_keys(), all_values()); });
    line.bytes = map->bytes();
    line.scratch_bytes = map->statistics().scratch_bytes;
    line.load_factor = map->load_factor();
    const auto ref = map->ref();
    report(line, map->size() != different_
                     ? n_
                     : place_.sum(n_, wrong_first<std::remove_const_t<decltype(ref)>, Key>{ref, key_}));
  }

  /// Sums and counts; then also minimum and maximum.
  void measure_sums() {
    std::optional<aggregated<Key, Value, Place>> sums;
    row line = built(sums_name, "group", n_, sums,
                     [&] { sums.emplace(group_by(place_, all_keys(), all_values(), plus())); });
    report(line, wrong_sums(sums->keys, sums->values, sums->counts));
    sums.reset();
    std::optional<aggregated<Key, Value, Place, 3>> all;
    line = built("group_by_all", "group", n_, all, [&] {
      all.emplace(group_by(place_, all_keys(), all_values(), std::tuple(plus(), minimum(), maximum())));
    });
    report(line, wrong_sums(all->keys, all->values[0], all->counts));
  }
  std::uint64_t wrong_sums(const array<Key, Place>& keys, const array<Value, Place>& sums,
                           const array<std::uint64_t, Place>& counts) const {
    const std::size_t size = keys.size();
    if (size != different_) return n_;
    const computed numbers(size, group_number());
    const frozen_map<Key, std::uint32_t, Place> group_of(place_, keys, numbers);
    array<Value, Place> expected(place_, size);
    array<std::uint64_t, Place> counted(place_, size);
    place_.fill(expected.data(), 0, expected.bytes());
    place_.fill(counted.data(), 0, counted.bytes());
    const auto ref = group_of.ref();
    return place_.sum(n_,
                      add_to_group<std::remove_const_t<decltype(ref)>, Key, Value>{
                          ref, keys_.data(), values_.data(), expected.data(), counted.data()}) +
           place_.sum(size, wrong_group<Value>{sums.data(), expected.data(), counts.data(), counted.data()});
  }

  /// Checks the numbers of all items against the keys that they number.
  std::uint64_t wrong_numbers(const Key* of_number, std::size_t size, const std::uint32_t* numbers,
                              const std::uint64_t* counted_by_it, bool in_order) const {
    if (size != different_) return n_;
    array<std::uint64_t, Place> first(place_, size), counted(place_, size);
    place_.fill(first.data(), 0xff, first.bytes());
    place_.fill(counted.data(), 0, counted.bytes());
    return place_.sum(
               n_, wrong_index<Key>{keys_.data(), numbers, of_number, size, first.data(), counted.data()}) +
           place_.sum(size, wrong_order{first.data(), counted.data(), counted_by_it, in_order});
  }

  /// Checks that there are as many lists as keys, that none is empty or holds pairs of two keys, and that
  /// each pair is in one.
  std::uint64_t wrong_groups(const grouped<Key, Value>& lists) {
    if (lists.size != different_) return n_;
    std::uint64_t begin = 0, end = 0;
    place_.copy_to_host(&begin, lists.offsets, sizeof(begin));
    place_.copy_to_host(&end, lists.offsets + lists.size, sizeof(end));
    if (begin != 0 || end != n_) return n_;
    none_seen();
    return place_.sum(lists.size, wrong_list<Key, Value>{lists}) +
           place_.sum(n_, wrong_list_value<Key, Value>{lists, key_, seen_.data()});
  }

  void none_seen() { place_.fill(seen_.data(), 0, seen_.bytes()); }
  std::span<const Key> all_keys() const { return keys_.span(); }
  std::span<const Value> all_values() const { return values_.span(); }
  bulk_options how() const { return {.path = options_.path}; }

  /// A row whose time is that of time().
  template <class Time>
  row measured(const std::string& table, const char* op, std::size_t done, const Time& time) const {
    row line = row_of<Key, Value>(place_, options_, table, op, n_);
    line.n = done;
    line.copies = copies_.name();
    line.median_ms = time();
    line.gops = static_cast<double>(done) / line.median_ms / 1e6;
    return line;
  }
  template <class Made, class F>
  row built(const std::string& table, const char* op, std::size_t done, std::optional<Made>& made,
            const F& f) const {
    return measured(table, op, done, [&] {
      return median_of_builds(place_, options_.warm_ups, options_.repetitions, made, f);
    });
  }
  void report(row line, std::uint64_t bad) const {
    line.check = verdict(bad);
    options_.report(line);
  }

  const Place& place_;
  const settings& options_;
  key_copies copies_;
  std::size_t n_;
  copied_key<Key> key_;
  array<Key, Place> keys_;
  array<Value, Place> values_;
  array<std::uint32_t, Place> seen_;
  std::uint64_t different_ = 0;  // keys
};

template <class Place, class Key, class Value>
void measure_groups(const Place& place, const settings& options, std::size_t n) {
  using measurement_type = groups_measurement<Place, Key, Value>;
  for (const char* name : measurement_type::tables) {
    if (options.has_table && (std::is_same_v<Place, host> || name != measurement_type::std_name))
      options.has_table(name);
  }
  if (!options.report || !measurement_type::is_asked(options)) return;
  for (const key_copies& copies : options.copies) {
    if (n < copies.number) continue;
    try {
      measurement_type(place, options, copies, n).run();
    } catch (const out_of_memory& error) {
      if (!options.refused) throw;
      options.refused(error.what());
    }
  }
}

}  // namespace roost::bench
