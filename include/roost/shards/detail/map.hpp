#pragma once

// Bodies of roost/shards/sharded_map.hpp.

#include "roost/shards/sharded_map.hpp"

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
    return detail::zip_as<Key, Value>(detail::of_shard<Shards>(keys, me),
                                      detail::of_shard<Shards>(values, me), where);
  });
}

template <class Key, class Value, class Shards>
template <class SourceOf>
void sharded_map<Key, Value, Shards>::build(const Shards& shards, const SourceOf& source_of) {
  tables_.build(shards, options_, "roost::sharded_map", [&](auto& me) {
    const auto source = source_of(me);
    if constexpr (!detail::is_large_value<Value>) {
      auto map = detail::build_as_they_come<table_type>(me, source, options_);
      if (map) return std::move(*map);
    }
    const auto items = detail::bring_first_items(me, source, options_.seed);
    return detail::map_of_items<table_type>(me.place(), items, options_);
  });
}

template <class Key, class Value, class Shards>
template <class Queries, class Results>
bulk_report sharded_map<Key, Value, Shards>::find(const Shards& shards, const Queries& queries,
                                                  Results&& results, Value missing, bulk_options how) const {
  return tables_.template find<Key>(shards, "roost::sharded_map::find", queries, results, missing, how);
}

template <class Key, class Value, class Shards>
template <class Queries, class Results, class Found>
  requires(!std::is_convertible_v<Found, Value>)
bulk_report sharded_map<Key, Value, Shards>::find(const Shards& shards, const Queries& queries,
                                                  Results&& results, Found&& found, bulk_options how) const {
  return tables_.template find_there<Key, Value>(shards, "roost::sharded_map::find", queries, results, found,
                                                 how);
}

template <class Key, class Value, class Shards>
template <class Queries, class Results>
bulk_report sharded_map<Key, Value, Shards>::contains(const Shards& shards, const Queries& queries,
                                                      Results&& results, bulk_options how) const {
  return tables_.template contains<Key>(shards, "roost::sharded_map::contains", queries, results, how);
}

template <class Key, class Value, class Shards>
template <class Queries>
std::size_t sharded_map<Key, Value, Shards>::count_found(const Shards& shards, const Queries& queries,
                                                         bulk_options how) const {
  return tables_.template count_found<Key>(shards, "roost::sharded_map::count_found", queries, how);
}

template <class Key, class Value, class Shards>
template <class Keys, class Values>
std::size_t sharded_map<Key, Value, Shards>::retrieve_all(const Shards& shards, Keys&& keys,
                                                          Values&& values) const {
  constexpr const char* where = "roost::sharded_map::retrieve_all";
  detail::check_parts(shards, where, keys, values);
  tables_.each(shards, where, [&](auto& me, const table_type& mine) {
    mine.retrieve_all(me.place(), detail::of_shard<Shards>(keys, me), detail::of_shard<Shards>(values, me));
  });
  return size();
}

}  // namespace roost
