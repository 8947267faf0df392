#pragma once

// Bodies of roost/shards/sharded_multimap.hpp.

#include "roost/shards/sharded_multimap.hpp"

namespace roost {
namespace detail {

/// The begins and ends of the values of items, for the items from each shard.
struct value_edge {
  const std::uint64_t* offsets;  // of each item's values
  const std::uint64_t* begins;   // of each shard's items
  ROOST_FN std::uint64_t operator()(std::size_t s) const { return offsets[begins[s]]; }
};

struct length_of_run {
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return offsets[i + 1] - offsets[i]; }
};

/// The values of queries as they have arrived from the owners: for each query their begin and their number.
template <class Value, class Place>
struct runs_of_queries {
  array<std::uint64_t, Place> begins, counts;
  array<Value, Place> values;
};

/// Fetches the values of queries that are split by owner.
template <class Me, class Table, class Item, class Place>
auto fetch_runs(Me& me, const Table& table, const outgoing<Item, Place>& mine, const gathered& all,
                const char* where) {
  using value = typename Table::mapped_type;
  const Place& place = me.place();
  const std::uint32_t shards = me.count();
  const auto queries = deliver(me, mine, all);
  const std::size_t n = queries.items.size();
  const auto found = table.match(place, computed(n, key_of_item<Item>{queries.items.data()}));
  auto [values] = room_for_matches<value>(place, found.size(), where);
  found.retrieve(place, values);
  array<std::uint64_t, Place> lengths(place, n);
  write_numbers(place, n, length_of_run{found.offsets().data()}, lengths.data());
  const auto begins = copy_to(place, queries.begins);
  array<std::uint64_t, Place> edges(place, shards + 1);
  write_numbers(place, shards + 1, value_edge{found.offsets().data(), begins.data()}, edges.data());
  const auto from = copy_to_host(place, edges);

  std::vector<std::uint64_t> values_for(shards), to(shards + 1, 0);
  for (std::uint32_t s = 0; s < shards; ++s) values_for[s] = from[s + 1] - from[s];
  const gathered all_values = me.gather(values_for);
  for (std::uint32_t s = 0; s < shards; ++s) to[s + 1] = to[s] + all_values(s, me.number());
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

/// The number of values of a query, whose key may or may not have a number.
struct count_of_query {
  const std::uint64_t* counts;
  const std::uint32_t* number;  // or null
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return counts[number == nullptr ? i : number[i]]; }
};

template <class Value>
struct copy_run {
  const std::uint64_t* begins;
  const std::uint32_t* number;
  const Value* source;
  Value* target;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t query, std::uint64_t k) const {
    target[i] = source[begins[number == nullptr ? query : number[query]] + k];
  }
};

struct write_query_of_match {
  std::uint64_t* queries;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t query, std::uint64_t) const { queries[i] = query; }
};

/// The values of a shard's queries, in their order.
template <class Me, class Table, class Sequence>
typename Table::retrieved fetch_values(Me& me, const Table& table, std::uint64_t seed,
                                       const Sequence& queries, const char* where) {
  using value = typename Table::mapped_type;
  using place_type = typename Me::place_type;
  const place_type& place = me.place();
  array<std::uint32_t, place_type> numbers;
  const auto runs = [&] {
    {
      const auto mine = split_by_owner<true>(me, alone<Sequence>{queries}, seed);
      const gathered all = me.gather(mine.counts);
      if (!is_crowded(all, me.count())) return fetch_runs(me, table, mine, all, where);
    }
    // Many queries of few keys: each key is requested once.
    auto each = unique_inverse(place, queries, index_order::any);
    numbers = std::move(each.inverse);
    const auto keys = as_sequence(each.keys);
    const auto mine = split_by_owner<true>(me, alone<std::remove_const_t<decltype(keys)>>{keys}, seed);
    return fetch_runs(me, table, mine, me.gather(mine.counts), where);
  }();
  const std::size_t n = queries.size();
  array<std::uint64_t, place_type> offsets(place, n + 1);
  place.fill(offsets.data() + n, 0, sizeof(std::uint64_t));
  write_numbers(place, n, count_of_query{runs.counts.data(), numbers.data()}, offsets.data());
  place.exclusive_scan(offsets.data(), offsets.data(), n + 1);
  std::uint64_t total = 0;
  place.copy_to_host(&total, offsets.data() + n, sizeof(total));
  auto [values] = room_for_matches<value>(place, total, where);
  expand(place, offsets.data(), n, total,
         copy_run<value>{runs.begins.data(), numbers.data(), runs.values.data(), values.data()});
  place.synchronize();
  return {std::move(offsets), std::move(values)};
}

/// 1 for a key on a shard that does not own it.
template <class Key>
struct is_strange_key {
  const Key* keys;
  owners order;
  std::uint32_t shard;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return order.owner(keys[i]) != shard ? 1 : 0; }
};

}  // namespace detail

template <class Key, class Value, class Shards>
template <class Keys, class Values>
void sharded_multimap<Key, Value, Shards>::rebuild(const Shards& shards, const Keys& keys,
                                                   const Values& values) {
  constexpr const char* where = "roost::sharded_multimap";
  detail::check_parts(shards, where, keys, values);
  tables_.build(shards, options_, where, [&](auto& me) {
    const auto source = detail::zip_as<Key, Value>(detail::of_shard<Shards>(keys, me),
                                                   detail::of_shard<Shards>(values, me), where);
    const auto items = detail::bring_items(me, source, options_.seed);
    return table_type(me.place(), detail::keys_of(items), detail::values_of(items), options_);
  });
}

template <class Key, class Value, class Shards>
template <class Queries, class Results>
bulk_report sharded_multimap<Key, Value, Shards>::find_first(const Shards& shards, const Queries& queries,
                                                             Results&& results, const Value& missing,
                                                             bulk_options how) const {
  constexpr const char* where = "roost::sharded_multimap::find_first";
  return tables_.template look_up<Key>(
      shards, where, queries, results, how,
      [&](auto& me, auto& target, std::size_t n) {
        return detail::write_first_value<Value>{offsets_to_read(me), tables_.of(me).values().data(), missing,
                                                detail::output<Value>(target, n, where)};
      },
      [&](const auto& place, const auto& asked, auto& target) {
        return detail::find_no_values<Key>(place, asked, target, missing, where);
      });
}

template <class Key, class Value, class Shards>
template <class Queries, class Counts>
bulk_report sharded_multimap<Key, Value, Shards>::count(const Shards& shards, const Queries& queries,
                                                        Counts&& counts, bulk_options how) const {
  constexpr const char* where = "roost::sharded_multimap::count";
  using range = detail::range_of_shard<Shards, std::remove_reference_t<Counts>>;
  using count_type = std::remove_cvref_t<decltype(*detail::data_of(std::declval<range&>()))>;
  static_assert(std::is_integral_v<count_type> && !std::is_same_v<count_type, bool>, "counts are integers");
  return tables_.template look_up<Key>(
      shards, where, queries, counts, how,
      [&](auto& me, auto& target, std::size_t n) {
        return detail::write_count<count_type>(offsets_to_read(me),
                                               detail::output<count_type>(target, n, where));
      },
      [&](const auto& place, const auto& asked, auto& target) {
        return detail::find_no_values<Key>(place, asked, target, count_type{}, where);
      });
}

template <class Key, class Value, class Shards>
template <class Queries>
std::uint64_t sharded_multimap<Key, Value, Shards>::count_matches(const Shards& shards,
                                                                  const Queries& queries,
                                                                  bulk_options how) const {
  return tables_.template sum_of_answers<Key, std::uint64_t>(
      shards, "roost::sharded_multimap::count_matches", queries, how, [&](auto& me, std::uint64_t* target) {
        return detail::write_count<std::uint64_t>(offsets_to_read(me), target);
      });
}

template <class Key, class Value, class Shards>
template <class Queries, class Results>
bulk_report sharded_multimap<Key, Value, Shards>::contains(const Shards& shards, const Queries& queries,
                                                           Results&& results, bulk_options how) const {
  return tables_.template contains<Key>(shards, "roost::sharded_multimap::contains", queries, results, how);
}

template <class Key, class Value, class Shards>
template <class Queries>
std::size_t sharded_multimap<Key, Value, Shards>::count_found(const Shards& shards, const Queries& queries,
                                                              bulk_options how) const {
  return tables_.template count_found<Key>(shards, "roost::sharded_multimap::count_found", queries, how);
}

template <class Key, class Value, class Shards>
template <class Queries>
auto sharded_multimap<Key, Value, Shards>::retrieve(const Shards& shards, const Queries& queries) const
    -> detail::each_shard<Shards, retrieved> {
  constexpr const char* where = "roost::sharded_multimap::retrieve";
  tables_.check(shards, where);
  detail::check_parts(shards, where, queries);
  auto result = detail::make_each<Shards, retrieved>(shards);
  shards.run([&](auto& me) {
    const auto sequence = detail::sequence_as<Key>(detail::of_shard<Shards>(queries, me));
    auto& mine = detail::of_shard<Shards>(result, me);
    if (tables_.empty()) {
      mine.offsets = detail::zeros(me.place(), sequence.size() + 1);
    } else {
      mine = detail::fetch_values(me, tables_.of(me), options_.seed, sequence, where);
    }
  });
  return result;
}

template <class Key, class Value, class Shards>
template <class Queries>
auto sharded_multimap<Key, Value, Shards>::retrieve_pairs(const Shards& shards, const Queries& queries) const
    -> detail::each_shard<Shards, retrieved_pairs> {
  auto found = retrieve(shards, queries);
  auto result = detail::make_each<Shards, retrieved_pairs>(shards);
  shards.run([&](auto& me) {
    const place_type& place = me.place();
    auto& mine = detail::of_shard<Shards>(found, me);
    array<std::uint64_t, place_type> numbers(place, mine.values.size());
    detail::expand(place, mine.offsets.data(), mine.offsets.size() - 1, numbers.size(),
                   detail::write_query_of_match{numbers.data()});
    place.synchronize();
    detail::of_shard<Shards>(result, me) = {std::move(numbers), std::move(mine.values)};
  });
  return result;
}

template <class Key, class Value, class Shards>
template <class Keys, class Values>
std::size_t sharded_multimap<Key, Value, Shards>::retrieve_all(const Shards& shards, Keys&& keys,
                                                               Values&& values) const {
  constexpr const char* where = "roost::sharded_multimap::retrieve_all";
  detail::check_parts(shards, where, keys, values);
  tables_.each(shards, where, [&](auto& me, const table_type& mine) {
    mine.retrieve_all(me.place(), detail::of_shard<Shards>(keys, me), detail::of_shard<Shards>(values, me));
  });
  return size();
}

template <class Key, class Value, class Shards>
bool sharded_multimap<Key, Value, Shards>::valid(const Shards& shards) const {
  return tables_.sum(shards, "roost::sharded_multimap::valid",
                     [&](auto& me, const table_type& mine) -> std::uint64_t {
                       const detail::is_strange_key<Key> strange{
                           mine.keys().data(), {options_.seed, me.count()}, me.number()};
                       return mine.valid(me.place()) ? me.place().sum(mine.key_count(), strange) : 1;
                     }) == 0;
}

}  // namespace roost
