// Bodies of roost/sharded_multimap.hpp.

namespace roost {
namespace detail {

/// Where the values of some items begin and end: of those from each shard.
struct value_edge {
  const std::uint64_t* offsets;  // of each item's values
  const std::uint64_t* begins;   // of each shard's items
  ROOST_FN std::uint64_t operator()(std::size_t s) const { return offsets[begins[s]]; }
};

struct length_of_run {
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return offsets[i + 1] - offsets[i]; }
};

/// The values of queries as they have come from the owners: of each query where they begin, and how many.
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
  {
    me.agree();
    const in_use_by_others scope(me);
    me.wait(me.exchange(pieces_of(values.data(), from), pieces_of(result.values.data(), to), 0));
    me.place().synchronize();
  }
  mine.parts.restore_each(place, counts.data(), put_to<std::uint64_t>{result.counts.data()}, nullptr);
  place.exclusive_scan(counts.data(), counts.data(), sent);
  mine.parts.restore_each(place, counts.data(), put_to<std::uint64_t>{result.begins.data()}, nullptr);
  place.synchronize();
  return result;
}

/// The number of values of a query, whose key may have a number.
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
    // Many queries of few keys: each key is asked for once.
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
  tables_.build(shards, options_.seed, [&](auto& me) {
    const auto source = detail::zip_as<Key, Value>(detail::part_of<Shards>(keys, me),
                                                   detail::part_of<Shards>(values, me), where);
    const auto items = detail::bring_items(me, source, options_.seed);
    return table_type(me.place(), detail::keys_of(items), detail::values_of(items), options_);
  });
}

template <class Key, class Value, class Shards>
template <class Queries, class Answer>
bulk_report sharded_multimap<Key, Value, Shards>::ask(typename Shards::shard_type& me, const Queries& queries,
                                                      const Answer& answer, const bulk_options& how) const {
  const auto& numbers = detail::numbers_of_keys::of(tables_.of(me));
  return detail::ask_owners(me, detail::asked_table{numbers.ref(), numbers.bytes(), options_.seed}, queries,
                            answer, how);
}

template <class Key, class Value, class Shards>
template <class Queries, class Results>
bulk_report sharded_multimap<Key, Value, Shards>::find_first(const Shards& shards, const Queries& queries,
                                                             Results&& results, const Value& missing,
                                                             bulk_options how) const {
  constexpr const char* where = "roost::sharded_multimap::find_first";
  tables_.check(shards, where);
  detail::check_parts(shards, where, queries, results);
  return detail::report_of(shards, [&](auto& me) {
    const auto& asked = detail::part_of<Shards>(queries, me);
    auto& target = detail::part_of<Shards>(results, me);
    if (tables_.empty()) return detail::find_no_values<Key>(me.place(), asked, target, missing, where);
    const auto sequence = detail::sequence_as<Key>(asked);
    const table_type& mine = tables_.of(me);
    const detail::write_first_value<Value> answer{mine.has_unique_keys() ? nullptr : mine.offsets().data(),
                                                  mine.values().data(), missing,
                                                  detail::output<Value>(target, sequence.size(), where)};
    return ask(me, sequence, answer, how);
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
  tables_.check(shards, where);
  detail::check_parts(shards, where, queries, counts);
  return detail::report_of(shards, [&](auto& me) {
    const auto& asked = detail::part_of<Shards>(queries, me);
    auto& target = detail::part_of<Shards>(counts, me);
    if (tables_.empty()) return detail::find_no_values<Key>(me.place(), asked, target, count_type{}, where);
    const auto sequence = detail::sequence_as<Key>(asked);
    const table_type& mine = tables_.of(me);
    const detail::write_count<count_type> answer(mine.has_unique_keys() ? nullptr : mine.offsets().data(),
                                                 detail::output<count_type>(target, sequence.size(), where));
    return ask(me, sequence, answer, how);
  });
}

template <class Key, class Value, class Shards>
template <class Queries>
std::uint64_t sharded_multimap<Key, Value, Shards>::count_matches(const Shards& shards,
                                                                  const Queries& queries,
                                                                  bulk_options how) const {
  constexpr const char* where = "roost::sharded_multimap::count_matches";
  detail::check_parts(shards, where, queries);
  std::uint64_t count = 0;
  tables_.each(shards, where, [&](auto& me, const table_type& mine) {
    const auto sequence = detail::sequence_as<Key>(detail::part_of<Shards>(queries, me));
    array<std::uint64_t, place_type> counts(me.place(), sequence.size());
    ask(me, sequence,
        detail::write_count<std::uint64_t>(mine.has_unique_keys() ? nullptr : mine.offsets().data(),
                                           counts.data()),
        how);
    const std::uint64_t of_me = me.place().sum(
        counts.size(),
        detail::element_at<detail::sequence_of<decltype(counts)>>{detail::as_sequence(counts)});
    const std::uint64_t all = me.gather({of_me}).sum();
    if (me.local() == 0) count = all;
  });
  return count;
}

template <class Key, class Value, class Shards>
template <class Queries, class Results>
bulk_report sharded_multimap<Key, Value, Shards>::contains(const Shards& shards, const Queries& queries,
                                                           Results&& results, bulk_options how) const {
  constexpr const char* where = "roost::sharded_multimap::contains";
  tables_.check(shards, where);
  detail::check_parts(shards, where, queries, results);
  return detail::report_of(shards, [&](auto& me) {
    const auto& asked = detail::part_of<Shards>(queries, me);
    auto& target = detail::part_of<Shards>(results, me);
    if (tables_.empty()) return detail::find_nothing<Key>(me.place(), asked, target, where);
    const auto sequence = detail::sequence_as<Key>(asked);
    return ask(me, sequence, detail::write_contained{detail::output<bool>(target, sequence.size(), where)},
               how);
  });
}

template <class Key, class Value, class Shards>
template <class Queries>
std::size_t sharded_multimap<Key, Value, Shards>::count_found(const Shards& shards, const Queries& queries,
                                                              bulk_options how) const {
  constexpr const char* where = "roost::sharded_multimap::count_found";
  detail::check_parts(shards, where, queries);
  std::size_t count = 0;
  tables_.each(shards, where, [&](auto& me, const table_type&) {
    const auto sequence = detail::sequence_as<Key>(detail::part_of<Shards>(queries, me));
    array<bool, place_type> answers(me.place(), sequence.size());
    ask(me, sequence, detail::write_contained{answers.data()}, how);
    const std::uint64_t of_me = me.place().sum(answers.size(), detail::is_true{answers.data()});
    const std::uint64_t all = me.gather({of_me}).sum();
    if (me.local() == 0) count = all;
  });
  return count;
}

template <class Key, class Value, class Shards>
template <class Queries>
auto sharded_multimap<Key, Value, Shards>::retrieve(const Shards& shards, const Queries& queries) const
    -> detail::each_shard<Shards, retrieved> {
  constexpr const char* where = "roost::sharded_multimap::retrieve";
  detail::check_parts(shards, where, queries);
  auto result = detail::make_each<Shards, retrieved>(shards);
  shards.run([&](auto& me) {
    const auto sequence = detail::sequence_as<Key>(detail::part_of<Shards>(queries, me));
    auto& mine = detail::part_of<Shards>(result, me);
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
    auto& mine = detail::part_of<Shards>(found, me);
    array<std::uint64_t, place_type> numbers(place, mine.values.size());
    detail::expand(place, mine.offsets.data(), mine.offsets.size() - 1, numbers.size(),
                   detail::write_query_of_match{numbers.data()});
    place.synchronize();
    detail::part_of<Shards>(result, me) = {std::move(numbers), std::move(mine.values)};
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
    mine.retrieve_all(me.place(), detail::part_of<Shards>(keys, me), detail::part_of<Shards>(values, me));
  });
  return size();
}

template <class Key, class Value, class Shards>
bool sharded_multimap<Key, Value, Shards>::valid(const Shards& shards) const {
  std::atomic<bool> good{true};
  tables_.each(shards, "roost::sharded_multimap::valid", [&](auto& me, const table_type& mine) {
    const detail::is_strange_key<Key> strange{mine.keys().data(), {options_.seed, me.count()}, me.number()};
    if (!mine.valid(me.place()) || me.place().sum(mine.key_count(), strange) != 0) good = false;
  });
  return good;
}

}  // namespace roost
