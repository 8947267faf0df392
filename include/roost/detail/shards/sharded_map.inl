// Bodies of roost/sharded_map.hpp.

namespace roost {
namespace detail {

/// The ordinary map of items.
template <class Map, class Place, class Item>
Map map_of_items(const Place& place, const arrived<Item, Place>& all, const typename Map::options& options) {
  if constexpr (is_large_value<typename Map::mapped_type>) {
    return Map(place, keys_of(all), values_of(all), options);
  } else {
    return frozen_source::build<Map>(place, sequence<const Item*>{all.items.data(), all.items.size()},
                                     options);
  }
}

}  // namespace detail

template <class Key, class Value, class Shards>
template <class Keys, class Values>
void sharded_map<Key, Value, Shards>::rebuild(const Shards& shards, const Keys& keys, const Values& values) {
  constexpr const char* where = "roost::sharded_map";
  detail::check_parts(shards, where, keys, values);
  build(shards, [&](auto& me) {
    return detail::zip_as<Key, Value>(detail::part_of<Shards>(keys, me), detail::part_of<Shards>(values, me),
                                      where);
  });
}

template <class Key, class Value, class Shards>
template <class SourceOf>
void sharded_map<Key, Value, Shards>::build(const Shards& shards, const SourceOf& source_of) {
  tables_.build(shards, options_.seed, [&](auto& me) {
    const auto items = detail::bring_first_items(me, source_of(me), options_.seed);
    return detail::map_of_items<table_type>(me.place(), items, options_);
  });
}

template <class Key, class Value, class Shards>
template <class Queries, class Results>
bulk_report sharded_map<Key, Value, Shards>::find(const Shards& shards, const Queries& queries,
                                                  Results&& results, Value missing, bulk_options how) const {
  constexpr const char* where = "roost::sharded_map::find";
  tables_.check(shards, where);
  detail::check_parts(shards, where, queries, results);
  return detail::report_of(shards, [&](auto& me) {
    const auto& asked = detail::part_of<Shards>(queries, me);
    auto& target = detail::part_of<Shards>(results, me);
    if (tables_.empty()) return detail::find_no_values<Key>(me.place(), asked, target, missing, where);
    const auto sequence = detail::sequence_as<Key>(asked);
    const detail::write_value<Value> answer{detail::output<Value>(target, sequence.size(), where), missing};
    return tables_.ask(shards, me, sequence, answer, how);
  });
}

template <class Key, class Value, class Shards>
template <class Queries, class Results, class Found>
  requires(!std::is_convertible_v<Found, Value>)
bulk_report sharded_map<Key, Value, Shards>::find(const Shards& shards, const Queries& queries,
                                                  Results&& results, Found&& found, bulk_options how) const {
  constexpr const char* where = "roost::sharded_map::find";
  tables_.check(shards, where);
  detail::check_parts(shards, where, queries, results, found);
  return detail::report_of(shards, [&](auto& me) {
    const auto& asked = detail::part_of<Shards>(queries, me);
    auto& there = detail::part_of<Shards>(found, me);
    if (tables_.empty()) return detail::find_nothing<Key>(me.place(), asked, there, where);
    const auto sequence = detail::sequence_as<Key>(asked);
    const std::size_t n = sequence.size();
    const detail::write_value_and_found<Value> answer{
        detail::output<Value>(detail::part_of<Shards>(results, me), n, where),
        detail::output<bool>(there, n, where)};
    return tables_.ask(shards, me, sequence, answer, how);
  });
}

template <class Key, class Value, class Shards>
template <class Queries, class Results>
bulk_report sharded_map<Key, Value, Shards>::contains(const Shards& shards, const Queries& queries,
                                                      Results&& results, bulk_options how) const {
  constexpr const char* where = "roost::sharded_map::contains";
  tables_.check(shards, where);
  detail::check_parts(shards, where, queries, results);
  return detail::report_of(shards, [&](auto& me) {
    const auto& asked = detail::part_of<Shards>(queries, me);
    auto& target = detail::part_of<Shards>(results, me);
    if (tables_.empty()) return detail::find_nothing<Key>(me.place(), asked, target, where);
    const auto sequence = detail::sequence_as<Key>(asked);
    const detail::write_contained answer{detail::output<bool>(target, sequence.size(), where)};
    return tables_.ask(shards, me, sequence, answer, how);
  });
}

template <class Key, class Value, class Shards>
template <class Queries>
std::size_t sharded_map<Key, Value, Shards>::count_found(const Shards& shards, const Queries& queries,
                                                         bulk_options how) const {
  constexpr const char* where = "roost::sharded_map::count_found";
  detail::check_parts(shards, where, queries);
  std::size_t count = 0;
  tables_.each(shards, where, [&](auto& me, const table_type&) {
    const auto sequence = detail::sequence_as<Key>(detail::part_of<Shards>(queries, me));
    array<bool, place_type> answers(me.place(), sequence.size());
    tables_.ask(shards, me, sequence, detail::write_contained{answers.data()}, how);
    const std::uint64_t mine = me.place().sum(answers.size(), detail::is_true{answers.data()});
    const std::uint64_t all = me.gather({mine}).sum();
    if (me.local() == 0) count = all;
  });
  return count;
}

template <class Key, class Value, class Shards>
template <class Keys, class Values>
std::size_t sharded_map<Key, Value, Shards>::retrieve_all(const Shards& shards, Keys&& keys,
                                                          Values&& values) const {
  constexpr const char* where = "roost::sharded_map::retrieve_all";
  detail::check_parts(shards, where, keys, values);
  tables_.each(shards, where, [&](auto& me, const table_type& mine) {
    mine.retrieve_all(me.place(), detail::part_of<Shards>(keys, me), detail::part_of<Shards>(values, me));
  });
  return size();
}

}  // namespace roost
