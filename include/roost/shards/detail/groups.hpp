#pragma once

#include "roost/join.hpp"
#include "roost/shards/detail/tables.hpp"

// Repeated keys over several shards: numbers of distinct keys, all values of a key, joins.

namespace roost {

template <class Key, class Value, class Shards>
class sharded_map;
template <class Key, class Value, class Shards>
class sharded_multimap;

}  // namespace roost

namespace roost::detail {

/// How often a key appears in a shard's range; without counts, once.
struct count_or_one {
  const std::uint64_t* counts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return counts == nullptr ? 1 : counts[i]; }
};

template <class Item>
struct add_count_of_item {
  const Item* items;
  const std::uint32_t* number;
  std::uint64_t* totals;
  ROOST_FN void operator()(std::size_t i) const { fetch_add(totals[number[i]], items[i].value); }
};

/// Distinct keys, and how often each appears in all ranges, if requested.
template <class Key, class Total, class Place>
struct counted_keys {
  array<Key, Place> keys;
  array<Total, Place> counts;
};

/// The keys that this shard owns among the distinct keys of all shards. `Total` is bool, or std::uint64_t to
/// add up the counts of each shard's keys.
template <class Total, class Me, class Key>
auto share_of_keys(Me& me, const array<Key, typename Me::place_type>& keys,
                   const array<std::uint64_t, typename Me::place_type>& counts, index_order order,
                   std::uint64_t seed) {
  using place_type = typename Me::place_type;
  constexpr bool counted = !std::is_same_v<Total, bool>;
  const place_type& place = me.place();
  const auto mine = [&] {
    if constexpr (counted) {
      const computed each(keys.size(), count_or_one{counts.data()});
      return split_by_owner<true>(me, zip_as<Key, std::uint64_t>(keys, each, "roost::sharded_index"), seed);
    } else {
      return split_by_owner<true>(me, alone_as<Key>(keys), seed);
    }
  }();
  const auto all = deliver(me, mine);
  const std::size_t n = all.items.size();
  auto each = unique_all(place, keys_of(all), {.order = index_order::any, .first = true, .inverse = counted});
  auto totals = filled<Total>(place, each.keys.size(), counted ? 0 : 1);
  if constexpr (counted) {
    using item = std::remove_cvref_t<decltype(*all.items.data())>;
    place.for_each(n, add_count_of_item<item>{all.items.data(), each.inverse.data(), totals.data()});
  }
  if (order == index_order::any) {
    place.synchronize();
    return counted_keys<Key, Total, place_type>{std::move(each.keys), std::move(totals)};
  }
  auto of_first = zeros<Total>(place, n);
  array<Total, place_type> sent(place, keys.size()), total(place, keys.size());
  place.for_each(each.keys.size(),
                 scatter{each.first.data(), element<const Total*>{totals.data()}, of_first.data()});
  send_back(me, all, of_first.data(), mine, sent.data());
  mine.parts.restore_each(place, sent.data(), put_to<Total>{total.data()}, nullptr);
  const auto first =
      select_numbers<std::uint32_t>(place, total.size(), is_value<Total, false>{total.data(), Total{}});
  counted_keys<Key, Total, place_type> result;
  result.keys = array_of(place, first.size(), gather<Key>{keys.data(), first.data()});
  if constexpr (counted)
    result.counts = array_of(place, first.size(), gather<std::uint64_t>{total.data(), first.data()});
  place.synchronize();
  return result;
}

inline void check_order(index_order order, const char* where) {
  if (order != index_order::by_key) return;
  raise<invalid_argument>(
      {where, ": keys of several shards have no order by key; take first_occurrence or any"});
}

/// first, first + 1, ...
template <class T>
struct numbers_from {
  std::size_t count = 0;
  T first = 0;
  std::size_t size() const { return count; }
  ROOST_FN T operator[](std::size_t i) const { return first + static_cast<T>(i); }
};

/// 1 for a key that has its index.
struct is_index_of_key {
  const std::uint32_t* indices;
  std::uint32_t first;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return indices[i] == first + i ? 1 : 0; }
};

// The values of queries, from the owners of their keys.

/// The values of queries as they have arrived from the owners: for each query their begin and their number.
template <class Value, class Place>
struct runs_of_queries {
  array<std::uint64_t, Place> begins, counts;
  array<Value, Place> values;
};

/// Fetches the values of queries that are split by owner.
template <class Me, class Table, class Item, class Place>
auto fetch_runs(Me& me, const Table& table, const outgoing<Item, Place>& mine, const char* where) {
  using value = typename Table::mapped_type;
  const Place& place = me.place();
  const std::uint32_t shards = me.count();
  const auto queries = deliver(me, mine);
  const std::size_t n = queries.items.size();
  const auto found = table.match(place, keys_of(queries));
  auto [values] = room_for_matches<value>(place, found.size(), where);
  found.retrieve(place, values);
  const auto lengths = array_of(place, n, length_of{found.offsets().data(), found.offsets().data() + 1});
  const auto begins = copy_to(place, queries.begins);
  const auto from = copy_to_host(
      place, array_of(place, shards + 1,
                      gather<std::uint64_t, std::uint64_t>{found.offsets().data(), begins.data()}));

  std::vector<std::uint64_t> values_for(shards);
  for (std::uint32_t s = 0; s < shards; ++s) values_for[s] = from[s + 1] - from[s];
  const auto to = begins_of_arrivals(me, me.gather(values_for));
  const std::size_t sent = mine.begins.back();
  runs_of_queries<value, Place> result{{place, sent}, {place, sent}, {place, to.back()}};
  array<std::uint64_t, Place> counts(place, sent + 1);
  place.fill(counts.data() + sent, 0, sizeof(std::uint64_t));
  send_back(me, queries, lengths.data(), mine, counts.data());
  swap_pieces(me, pieces_of(values.data(), from), pieces_of(result.values.data(), to));
  mine.parts.restore_each(place, counts.data(), put_to<std::uint64_t>{result.counts.data()}, nullptr);
  place.exclusive_scan(counts.data(), counts.data(), sent);
  mine.parts.restore_each(place, counts.data(), put_to<std::uint64_t>{result.begins.data()}, nullptr);
  place.synchronize();
  return result;
}

template <class Value>
struct copy_run {
  const std::uint64_t* begins;
  const Value* source;
  Value* target;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t query, std::uint64_t k) const {
    target[i] = source[begins[query] + k];
  }
};

/// The number of each match's query, from `first` on.
template <class T>
struct write_query_of_match {
  T* queries;
  T first;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t query, std::uint64_t) const {
    queries[i] = first + static_cast<T>(query);
  }
};

/// For each match, the number of its query; matches are in the order of the queries.
template <class T, class Place>
array<T, Place> queries_of_matches(const Place& place, const array<std::uint64_t, Place>& offsets,
                                   std::size_t matches, T first = 0) {
  array<T, Place> result(place, matches);
  expand(place, offsets.data(), offsets.size() - 1, matches, write_query_of_match<T>{result.data(), first});
  place.synchronize();
  return result;
}

/// The values of a shard's queries, in their order.
template <class Me, class Table, class Sequence>
typename Table::retrieved fetch_values(Me& me, const Table& table, std::uint64_t seed,
                                       const Sequence& queries, const char* where) {
  using value = typename Table::mapped_type;
  using place_type = typename Me::place_type;
  const place_type& place = me.place();
  const std::size_t n = queries.size();
  const auto runs = [&] {
    {
      const auto mine = split_by_owner<true>(me, alone<Sequence>{queries}, seed);
      if (!is_crowded(mine.counts, me.count())) return fetch_runs(me, table, mine, where);
    }
    // Many queries of few keys: each key is requested once.
    const auto each = unique_inverse(place, queries, index_order::any);
    const auto keys = alone_as<typename Table::key_type>(each.keys);
    auto of_keys = fetch_runs(me, table, split_by_owner<true>(me, keys, seed), where);
    const auto of_queries = [&](const array<std::uint64_t, place_type>& source) {
      return array_of(place, n, gather<std::uint64_t>{source.data(), each.inverse.data()});
    };
    of_keys.begins = of_queries(of_keys.begins);
    of_keys.counts = of_queries(of_keys.counts);
    return of_keys;
  }();
  array<std::uint64_t, place_type> offsets(place, n + 1);
  write_offsets(place, n, element<const std::uint64_t*>{runs.counts.data()}, offsets.data());
  const std::uint64_t total = read_one(place, offsets.data() + n);
  auto [values] = room_for_matches<value>(place, total, where);
  expand(place, offsets.data(), n, total,
         copy_run<value>{runs.begins.data(), runs.values.data(), values.data()});
  place.synchronize();
  return {std::move(offsets), std::move(values)};
}

// Joins.

template <class Row>
struct add_to_row {
  Row* rows;
  Row first;
  ROOST_FN void operator()(std::size_t i) const { rows[i] += first; }
};

/// inner_join on several shards.
template <class Row, class Shards, class Left, class Right>
class sharded_join {
  static constexpr const char* where = "roost::inner_join";
  using place_type = typename Shards::place_type;
  using shard_type = typename Shards::shard_type;
  using key = element_of_shard<Shards, Right>;
  using on_one_place =
      join<Row, place_type, range_of_shard<Shards, const Left>, range_of_shard<Shards, const Right>>;
  using result = joined_rows<Row, place_type>;

 public:
  sharded_join(const Shards& shards, const Left& left, const Right& right)
      : shards_(shards),
        left_(left),
        right_(right),
        left_rows_(make_each<Shards, numbers_from<Row>>(shards)),
        right_rows_(left_rows_) {
    check_parts(shards, where, left, right);
  }

  auto run() {
    if (!index_rows()) {
      const sharded_map<key, Row, Shards> map(shards_, right_, right_rows_);
      if (map.size() == right_size_) return join_different_keys(map);
    }
    const sharded_multimap<key, Row, Shards> map(shards_, right_, right_rows_);
    auto found = map.retrieve(shards_, left_);
    return collect(shards_, [&](shard_type& me) {
      auto& mine = of_shard<Shards>(found, me);
      const Row first = of_shard<Shards>(left_rows_, me).first;
      return result{queries_of_matches(me.place(), mine.offsets, mine.values.size(), first),
                    std::move(mine.values)};
    });
  }

 private:
  /// Returns whether samples show duplicate keys on the right side.
  bool index_rows() {
    bool copies = false;
    shards_.run([&](shard_type& me) {
      const auto left = as_sequence(of_shard<Shards>(left_, me));
      const auto right = as_sequence(of_shard<Shards>(right_, me));
      const bool has_copies = seems_to_have_copies(me.place(), right, [&](const auto& some) {
        return frozen_map<key, Row, place_type>(me.place(), some, numbers_to<Row>(some.size()));
      });
      // A shard with few rows takes no sample: its keys count as duplicates.
      const gathered all =
          me.gather({left.size(), right.size(), has_copies && right.size() > 4096 ? 1u : 0u});
      for (const std::size_t side : {0, 1}) {
        if (all.sum(side) > no_row<Row>) {
          raise<invalid_argument>({where, ": ", all.sum(side), " rows of all shards cannot be numbered by ",
                                   sizeof(Row), " bytes; give a larger type"});
        }
        auto& rows = of_shard<Shards>(side == 0 ? left_rows_ : right_rows_, me);
        rows.count = all(me.number(), side);
        for (std::uint32_t s = 0; s < me.number(); ++s) rows.first += static_cast<Row>(all(s, side));
      }
      if (me.local() == 0) copies = all.sum(2) != 0, right_size_ = all.sum(1);
    });
    return copies;
  }

  /// If the right side has no duplicate keys. `map`: of its rows.
  auto join_different_keys(const sharded_map<key, Row, Shards>& map) {
    auto found = collect(shards_, [&](shard_type& me) {
      return array<Row, place_type>(me.place(), of_shard<Shards>(left_rows_, me).count);
    });
    map.find(shards_, left_, found, no_row<Row>);
    return collect(shards_, [&](shard_type& me) {
      const auto [n, first] = of_shard<Shards>(left_rows_, me);
      result mine = on_one_place::pairs_of_unique(me.place(), n, false, [&](array<Row, place_type>& rows) {
        rows = std::move(of_shard<Shards>(found, me));
      });
      me.place().for_each(mine.left.size(), add_to_row<Row>{mine.left.data(), first});
      me.place().synchronize();
      return mine;
    });
  }

  const Shards& shards_;
  const Left& left_;
  const Right& right_;
  each_shard<Shards, numbers_from<Row>> left_rows_, right_rows_;
  std::uint64_t right_size_ = 0;
};

}  // namespace roost::detail
