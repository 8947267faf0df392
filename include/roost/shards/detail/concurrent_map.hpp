#pragma once

// Bodies of roost/shards/sharded_concurrent_map.hpp.

#include "roost/shards/sharded_concurrent_map.hpp"

namespace roost {

template <class Key, class Value, class Shards>
template <class Keys, class Values, class Bring, class Change>
insert_report sharded_concurrent_map<Key, Value, Shards>::put(const Shards& shards, const char* where,
                                                              const Keys& keys, const Values& values,
                                                              const Bring& bring, const Change& change) {
  detail::check_parts(shards, where, keys, values);
  insert_report report;
  tables_.change(shards, where, [&](auto& me, table_type& mine) {
    const auto source = detail::zip_as<Key, Value>(detail::of_shard<Shards>(keys, me),
                                                   detail::of_shard<Shards>(values, me), where);
    const auto items = bring(me, source);
    const insert_report here = change(mine, me.place(), detail::keys_of(items), detail::values_of(items));
    const detail::gathered all =
        me.gather({source.size(), here.inserted, here.full, static_cast<std::uint64_t>(here.rehashes)});
    if (me.local() != 0) return;
    report.inserted = all.sum(1);
    report.full = all.sum(2);
    report.present = all.sum(0) - report.inserted - report.full;
    report.path = here.path;
    report.rehashes = static_cast<int>(all.sum(3));
  });
  return report;
}

template <class Key, class Value, class Shards>
template <class Keys, class Values>
insert_report sharded_concurrent_map<Key, Value, Shards>::insert(const Shards& shards, const Keys& keys,
                                                                 const Values& values, bulk_options how) {
  return put(
      shards, "roost::sharded_concurrent_map::insert", keys, values,
      [&](auto& me, const auto& source) { return detail::bring_first_items(me, source, options_.seed); },
      [&](table_type& mine, const place_type& place, const auto& some_keys, const auto& some_values) {
        return mine.insert(place, some_keys, some_values, how);
      });
}

template <class Key, class Value, class Shards>
template <class Keys, class Values>
insert_report sharded_concurrent_map<Key, Value, Shards>::insert_or_assign(const Shards& shards,
                                                                           const Keys& keys,
                                                                           const Values& values,
                                                                           bulk_options how) {
  return put(
      shards, "roost::sharded_concurrent_map::insert_or_assign", keys, values,
      [&](auto& me, const auto& source) { return detail::bring_first_items(me, source, options_.seed); },
      [&](table_type& mine, const place_type& place, const auto& some_keys, const auto& some_values) {
        return mine.insert_or_assign(place, some_keys, some_values, how);
      });
}

template <class Key, class Value, class Shards>
template <class Keys, class Values, class F>
insert_report sharded_concurrent_map<Key, Value, Shards>::insert_or_apply(const Shards& shards,
                                                                          const Keys& keys,
                                                                          const Values& values, const F& f,
                                                                          bulk_options how) {
  constexpr const char* where = "roost::sharded_concurrent_map::insert_or_apply";
  return put(
      shards, where, keys, values,
      [&](auto& me, const auto& source) {
        return detail::bring_items_or(me, source, options_.seed, [&] {
          const auto combined = detail::group_by(me.place(), source.keys, source.values, f, where);
          return detail::bring_items(me, detail::zip_as<Key, Value>(combined.keys, combined.values, where),
                                     options_.seed);
        });
      },
      [&](table_type& mine, const place_type& place, const auto& some_keys, const auto& some_values) {
        return mine.insert_or_apply(place, some_keys, some_values, f, how);
      });
}

template <class Key, class Value, class Shards>
template <class Keys>
std::size_t sharded_concurrent_map<Key, Value, Shards>::erase(const Shards& shards, const Keys& keys,
                                                              bulk_options how) {
  constexpr const char* where = "roost::sharded_concurrent_map::erase";
  detail::check_parts(shards, where, keys);
  std::size_t erased = 0;
  tables_.change(shards, where, [&](auto& me, table_type& mine) {
    const auto items = detail::bring_first_items(
        me, detail::alone_as<Key>(detail::of_shard<Shards>(keys, me)), options_.seed);
    const detail::gathered all = me.gather({mine.erase(me.place(), detail::keys_of(items), how)});
    if (me.local() == 0) erased = all.sum();
  });
  return erased;
}

template <class Key, class Value, class Shards>
template <class F>
std::size_t sharded_concurrent_map<Key, Value, Shards>::erase_if(const Shards& shards, const F& f) {
  std::size_t erased = 0;
  tables_.change(shards, "roost::sharded_concurrent_map::erase_if", [&](auto& me, table_type& mine) {
    const detail::gathered all = me.gather({mine.erase_if(me.place(), f)});
    if (me.local() == 0) erased = all.sum();
  });
  return erased;
}

template <class Key, class Value, class Shards>
void sharded_concurrent_map<Key, Value, Shards>::clear(const Shards& shards) {
  tables_.change(shards, "roost::sharded_concurrent_map::clear",
                 [](auto& me, table_type& mine) { mine.clear(me.place()); });
}

template <class Key, class Value, class Shards>
template <class Keys, class Values>
std::size_t sharded_concurrent_map<Key, Value, Shards>::retrieve_all(const Shards& shards, Keys&& keys,
                                                                     Values&& values) const {
  constexpr const char* where = "roost::sharded_concurrent_map::retrieve_all";
  detail::check_parts(shards, where, keys, values);
  return tables_.sum(shards, where, [&](auto& me, const table_type& mine) {
    return mine.retrieve_all(me.place(), detail::of_shard<Shards>(keys, me),
                             detail::of_shard<Shards>(values, me));
  });
}

template <class Key, class Value, class Shards>
template <class F>
void sharded_concurrent_map<Key, Value, Shards>::for_each(const Shards& shards, const F& f) const {
  tables_.each(shards, "roost::sharded_concurrent_map::for_each",
               [&](auto& me, const table_type& mine) { mine.for_each(me.place(), f); });
}

template <class Key, class Value, class Shards>
void sharded_concurrent_map<Key, Value, Shards>::reserve(const Shards& shards, std::size_t n) {
  tables_.change(shards, "roost::sharded_concurrent_map::reserve",
                 [&](auto& me, table_type& mine) { mine.reserve(me.place(), share_of(n, me.count())); });
}

template <class Key, class Value, class Shards>
void sharded_concurrent_map<Key, Value, Shards>::shrink_to_fit(const Shards& shards) {
  tables_.change(shards, "roost::sharded_concurrent_map::shrink_to_fit",
                 [](auto& me, table_type& mine) { mine.shrink_to_fit(me.place()); });
}

template <class Key, class Value, class Shards>
std::size_t sharded_concurrent_map<Key, Value, Shards>::size(const Shards& shards) const {
  return tables_.sum(shards, "roost::sharded_concurrent_map::size",
                     [](auto& me, const table_type& mine) { return mine.size(me.place()); });
}

template <class Key, class Value, class Shards>
std::size_t sharded_concurrent_map<Key, Value, Shards>::capacity(const Shards& shards) const {
  return tables_.sum(shards, "roost::sharded_concurrent_map::capacity",
                     [](auto&, const table_type& mine) { return mine.capacity(); });
}

template <class Key, class Value, class Shards>
std::size_t sharded_concurrent_map<Key, Value, Shards>::bytes(const Shards& shards) const {
  return tables_.sum(shards, "roost::sharded_concurrent_map::bytes",
                     [](auto&, const table_type& mine) { return mine.bytes(); });
}

}  // namespace roost
