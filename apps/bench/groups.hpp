#pragma once

#include <unordered_map>

#include "apps/measure/run.hpp"
#include "apps/measure/sorted_groups.hpp"
#include "roost/kernels.hpp"

// Keys that come several times: frozen_multimap, two_way_index and joins, beside sorting.

namespace roost::bench {

/// Which key pair i has.
template <class Key>
struct copied_key {
  key_copies copies;
  std::size_t n;  // a power of two
  make_key<Key> key;
  query_order zipf;

  copied_key(const settings& options, key_copies copies, std::size_t n)
      : copies(copies), n(n), key(options.keys, n), zipf(n, 64, query_pattern::zipf) {}

  ROOST_FN std::size_t shuffled(std::size_t i) const { return (i * 2654435761u + 12345) & (n - 1); }
  /// Below n.
  ROOST_FN std::size_t number(std::size_t i) const {
    switch (copies.kind) {
      case key_copies::zipf:
        return zipf(i);
      case key_copies::half:
        return i % 2 == 0 ? 0 : 1 + shuffled(i);
      default:
        return shuffled(i) / copies.each;
    }
  }
  ROOST_FN Key operator()(std::size_t i) const { return key(number(i)); }
  /// The key of query i, of which there are as many as different keys if copies are `each`.
  ROOST_FN Key distinct(std::size_t i) const { return key(i * 7919 % (n / copies.each)); }
  std::size_t distinct_keys() const { return n / copies.each; }
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

/// 1 for a pair that is the first to be seen of its key: how many keys there are.
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

/// 1 for an empty list, or one that does not follow the one before.
template <class Key, class Value>
struct wrong_list {
  grouped<Key, Value> lists;
  ROOST_FN std::uint64_t operator()(std::size_t l) const { return lists.offsets[l] >= lists.offsets[l + 1]; }
};

/// 1 for a value of lists that is no pair's number or has come before, whose pair has another key than the
/// list, or which is not more than the value ahead of it.
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

/// All pairs' keys, or keys that no pair has, as hits_of_64() says of the operation.
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

/// Of n rows on both sides whose keys are all different, and the same.
template <class Row, class Key>
struct wrong_join {
  const Row* left;
  const Row* right;
  const Key* left_keys;
  const Key* right_keys;
  std::size_t n;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return left[i] != i || right[i] >= n || !same_key(left_keys[i], right_keys[right[i]]);
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
/// After wrong_index: 1 for an index that no key has, that is not in the order of first occurrence if it
/// should be, or whose count is wrong if there are counts.
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
/// 1 for a key that is not in an index, or has come before; in order: that has another index than its place.
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

#if !defined(__CUDACC__)
/// The pairs that are not in the map once, under their key, and the keys that a lookup does not find.
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

/// two_way_index, and what it consists of, in both orders.
template <class Place, class Key, class Built, class Report>
void measure_index(const Place& place, std::span<const Key> keys, std::uint64_t different,
                   array<std::uint32_t, Place>& seen, const Built& built, const Report& report) {
  const std::size_t n = keys.size();
  using index_type = two_way_index<Key, Place>;
  using ref = typename index_type::ref_type;
  std::optional<index_type> index;
  for (const index_order order : {index_order::any, index_order::first_occurrence}) {
    const bool in_order = order == index_order::first_occurrence;
    const std::string suffix = in_order ? "" : "_any";
    const auto named = [&](row line) {
      line.value_bits = 32;
      return line;
    };
    // Numbers of all items, against the keys that they number.
    const auto wrong_numbers = [&](const Key* of_number, std::size_t size, const std::uint32_t* numbers,
                                   const std::uint64_t* counts) {
      if (size != different) return std::uint64_t{n};
      array<std::uint64_t, Place> first(place, size), counted(place, size);
      place.fill(first.data(), 0xff, first.bytes());
      place.fill(counted.data(), 0, counted.bytes());
      return place.sum(
                 n, wrong_index<Key>{keys.data(), numbers, of_number, size, first.data(), counted.data()}) +
             place.sum(size, wrong_order{first.data(), counted.data(), counts, in_order});
    };
    row line = named(built("two_way_index" + suffix, "group", n, index, [&] {
      index.emplace(place, keys, typename index_type::options{.order = order});
    }));
    line.bytes = index->bytes();
    const bool all = index->indices().size() == n && index->counts().size() == index->size();
    report(line, !all ? n
                      : wrong_numbers(index->keys().data(), index->size(), index->indices().data(),
                                      index->counts().data()) +
                            place.sum(index->size(), wrong_found_index<ref>{index->ref()}));

    std::optional<unique_keys_inverse<Key, Place>> inverse;
    line = named(built("unique_inverse" + suffix, "group", n, inverse,
                       [&] { inverse.emplace(unique_inverse(place, keys, order)); }));
    report(line, inverse->inverse.size() != n ? n
                                              : wrong_numbers(inverse->keys.data(), inverse->keys.size(),
                                                              inverse->inverse.data(), nullptr));
    inverse.reset();

    std::optional<array<Key, Place>> unique_keys;
    line = named(built("unique" + suffix, "group", n, unique_keys,
                       [&] { unique_keys.emplace(unique(place, keys, order)); }));
    place.fill(seen.data(), 0, seen.bytes());
    report(line, unique_keys->size() != different
                     ? n
                     : place.sum(different, wrong_unique_key<ref, Key>{index->ref(), unique_keys->data(),
                                                                       seen.data(), in_order}));
  }
}

template <class Place, class Key, class Value>
void measure_groups(const Place& place, const settings& options, std::size_t n) {
  using multimap = frozen_multimap<Key, Value, Place>;
  using sorted = sorted_groups<Place, Key, Value>;
  constexpr const char* multimap_name = "frozen_multimap";
  constexpr const char* index_name = "two_way_index";
  constexpr const char* std_name = "std_unordered_multimap";
  for (const char* name : {multimap_name, index_name, "sorted_groups", std_name}) {
    if (options.has_table && (std::is_same_v<Place, host> || name != std_name)) options.has_table(name);
  }
  const auto asked = [&](const char* name, const char* op) {
    return options.wants(name) && std::find(options.ops.begin(), options.ops.end(), op) != options.ops.end();
  };
  const bool any = asked(multimap_name, "group") || asked(multimap_name, "count_hit") ||
                   asked(multimap_name, "count_half") || asked(multimap_name, "count_miss") ||
                   asked(multimap_name, "retrieve") || asked(multimap_name, "join") ||
                   asked(index_name, "group") || asked("sorted_groups", "group") || asked(std_name, "group");
  if (!options.report || !any) return;

  for (const key_copies& copies : options.copies) {
    if (n < copies.each) continue;
    const copied_key<Key> key(options, copies, n);
    array<Key, Place> keys(place, n);
    array<Value, Place> values(place, n);
    place.for_each(n, fill_copied_pairs<Key, Value>{keys.data(), values.data(), key});
    const auto all_keys = std::as_const(keys).span();
    const auto all_values = std::as_const(values).span();
    // `time()` measures.
    const auto measured = [&](const std::string& table, const char* op, std::size_t done, const auto& time) {
      if (options.progress) options.progress(table + " " + op + " n=" + std::to_string(n));
      row line;
      line.table = table;
      line.key_bits = static_cast<int>(sizeof(Key)) * 8;
      line.value_bits = static_cast<int>(sizeof(Value)) * 8;
      line.op = op;
      line.n = done;
      line.copies = copies.name();
      line.place = place_name(place);
      line.median_ms = time();
      line.gops = static_cast<double>(done) / line.median_ms / 1e6;
      return line;
    };
    const auto built = [&](const std::string& table, const char* op, std::size_t done, auto& made,
                           const auto& f) {
      return measured(table, op, done, [&] {
        return median_of_builds(place, options.warm_ups, options.repetitions, made, f);
      });
    };
    const auto report = [&](row line, std::uint64_t bad) {
      line.check = bad == 0 ? "ok" : std::to_string(bad) + " wrong";
      options.report(line);
    };
    array<std::uint32_t, Place> seen(place, n);
    const auto none_seen = [&] { place.fill(seen.data(), 0, seen.bytes()); };
    none_seen();
    const std::uint64_t different = place.sum(n, first_of_key<Key>{key, seen.data()});
    // There are as many lists as keys, none is empty or holds pairs of two keys, and each pair is in one.
    const auto wrong_groups = [&](const grouped<Key, Value>& lists) {
      if (lists.size != different) return std::uint64_t{n};
      std::uint64_t begin = 0, end = 0;
      place.copy_to_host(&begin, lists.offsets, sizeof(begin));
      place.copy_to_host(&end, lists.offsets + lists.size, sizeof(end));
      if (begin != 0 || end != n) return std::uint64_t{n};
      none_seen();
      return place.sum(lists.size, wrong_list<Key, Value>{lists}) +
             place.sum(n, wrong_list_value<Key, Value>{lists, key, seen.data()});
    };

    std::optional<multimap> map;
    if (asked(multimap_name, "group")) {
      row line = built(multimap_name, "group", n, map, [&] { map.emplace(place, all_keys, all_values); });
      line.bytes = map->bytes();
      line.scratch_bytes = map->statistics().scratch_bytes;
      line.load_factor = map->statistics().load_factor;
      const grouped<Key, Value> lists{map->keys().data(), map->offsets().data(), map->values().data(),
                                      map->key_count()};
      using ref = typename multimap::ref_type;
      report(line, wrong_groups(lists) +
                       place.sum(lists.size, wrong_found_list<ref, Key, Value>{map->ref(), lists}));
    }
    const bool even = copies.kind == key_copies::equal &&
                      n % copies.each == 0;  // so that it is known how often each key comes
    const bool counts_some = asked(multimap_name, "count_hit") || asked(multimap_name, "count_half") ||
                             asked(multimap_name, "count_miss");
    if (even && (counts_some || asked(multimap_name, "retrieve"))) {
      if (!map) map.emplace(place, all_keys, all_values);
      const bulk_options how{.path = options.path};
      for (const char* op : {"count_hit", "count_half", "count_miss"}) {
        if (!asked(multimap_name, op)) continue;
        const std::uint32_t hits = hits_of_64(op);
        array<Key, Place> queries(place, n);
        array<std::uint32_t, Place> counts(place, n);
        place.for_each(n, fill_asked<Key>{queries.data(), key, hits});
        std::uint64_t bad = 0;
        row line = measured(multimap_name, op, n, [&] {
          return median_milliseconds(
              place, options.warm_ups, options.repetitions,
              [&] { place.fill(counts.data(), poison, counts.bytes()); },
              [&] { map->count(place, std::as_const(queries).span(), counts, how); },
              [&] { bad += place.sum(n, wrong_count<std::uint32_t>{counts.data(), copies.each, hits}); });
        });
        line.hit_rate = hits / 64.0;
        report(line, bad);
      }
      if (asked(multimap_name, "retrieve")) {
        const std::size_t queries_n = key.distinct_keys();
        array<Key, Place> queries(place, queries_n);
        place.for_each(queries_n, fill_distinct<Key>{queries.data(), key});
        array<Value, Place> results(place, n);
        std::optional<typename multimap::matches> found;
        const row line = measured(multimap_name, "retrieve", n, [&] {
          return median_of_builds(
              place, options.warm_ups, options.repetitions, found,
              [&] {
                found.emplace(map->match(place, std::as_const(queries).span(), how));
                found->retrieve(place, results);
              },
              [&] { place.fill(results.data(), poison, results.bytes()); });
        });
        report(line, wrong_groups({queries.data(), found->offsets().data(), results.data(), queries_n}));
      }
    }
    map.reset();
    if (copies.kind == key_copies::equal && copies.each == 1 && asked(multimap_name, "join")) {
      array<Key, Place> right(place, n);
      place.for_each(n, fill_distinct<Key>{right.data(), key});
      std::optional<joined_rows<std::uint32_t, Place>> rows;
      const row line = built("inner_join", "join", 2 * n, rows,
                             [&] { rows.emplace(inner_join(place, all_keys, std::as_const(right).span())); });
      const bool all = rows->left.size() == n && rows->right.size() == n;
      report(line, !all ? n
                        : place.sum(n, wrong_join<std::uint32_t, Key>{rows->left.data(), rows->right.data(),
                                                                      keys.data(), right.data(), n}));
    }
    if (asked(index_name, "group")) measure_index(place, all_keys, different, seen, built, report);
    if (asked("sorted_groups", "group")) {
      std::optional<sorted> groups;
      const row line =
          built("sorted_groups", "group", n, groups, [&] { groups.emplace(place, all_keys, all_values); });
      report(line, wrong_groups({groups->keys(), groups->offsets(), groups->values(), groups->size()}));
    }
#if !defined(__CUDACC__)
    if (asked(std_name, "group")) {
      std::optional<std::unordered_multimap<Key, Value>> filled;
      const row line = built(std_name, "group", n, filled, [&] {
        filled.emplace();
        filled->reserve(n);
        for (std::size_t i = 0; i < n; ++i) filled->emplace(all_keys[i], all_values[i]);
      });
      report(line, wrong_std_groups(*filled, key, different));
    }
#endif
  }
}

}  // namespace roost::bench
