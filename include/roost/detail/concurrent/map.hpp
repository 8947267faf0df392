#pragma once

// Bodies of roost/concurrent_map.hpp.

#include "roost/concurrent_map.hpp"

namespace roost {

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report concurrent_map<Key, Value, Place>::insert(const Place& place, const Keys& keys,
                                                        const Values& values, bulk_options how) {
  return put(
      place, detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert"), detail::all_wanted(),
      [] { return typename slots::keep(); }, how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values, class Stencil>
insert_report concurrent_map<Key, Value, Place>::insert_if(const Place& place, const Keys& keys,
                                                           const Values& values, const Stencil& stencil,
                                                           bulk_options how) {
  const auto source = detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert_if");
  return put(
      place, source, detail::wanted_of(stencil, source.size(), "roost::concurrent_map::insert_if"),
      [] { return typename slots::keep(); }, how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report concurrent_map<Key, Value, Place>::insert_or_assign(const Place& place, const Keys& keys,
                                                                  const Values& values, bulk_options how) {
  return put(
      place, detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert_or_assign"),
      detail::all_wanted(), [] { return typename slots::table_type::assign(); }, how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values, class F>
insert_report concurrent_map<Key, Value, Place>::insert_or_apply(const Place& place, const Keys& keys,
                                                                 const Values& values, const F& f,
                                                                 bulk_options how) {
  return put(
      place, detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert_or_apply"),
      detail::all_wanted(), [&] { return values_.apply(f); }, how);
}

template <class Key, class Value, class Place>
template <class Operations, class Results>
bulk_report concurrent_map<Key, Value, Place>::run(const Place& place, const Operations& operations,
                                                   Results&& results) {
  const auto sequence = detail::sequence_as<operation<Key, Value>>(operations);
  auto* const target =
      detail::output<operation_result<Value>>(results, sequence.size(), "roost::concurrent_map::run");
  detail::run_all(place, ref(), sequence, target);
  return {path::direct, 1, 0};
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report concurrent_map<Key, Value, Place>::find(const Place& place, const Queries& queries,
                                                    Results&& results, Value missing,
                                                    bulk_options how) const {
  return detail::find_values(place, ref(), slots_.bytes(), queries, results, missing, how,
                             "roost::concurrent_map::find");
}

template <class Key, class Value, class Place>
template <class Queries, class Results, class Found>
  requires(!std::is_convertible_v<Found, Value>)
bulk_report concurrent_map<Key, Value, Place>::find(const Place& place, const Queries& queries,
                                                    Results&& results, Found&& found,
                                                    bulk_options how) const {
  return detail::find_values_there(place, ref(), slots_.bytes(), queries, results, found, how,
                                   "roost::concurrent_map::find");
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report concurrent_map<Key, Value, Place>::contains(const Place& place, const Queries& queries,
                                                        Results&& results, bulk_options how) const {
  return detail::find_contained(place, slots_.reader(), slots_.bytes(), queries, results, how,
                                "roost::concurrent_map::contains");
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
std::size_t concurrent_map<Key, Value, Place>::retrieve_all(const Place& place, Keys&& keys,
                                                            Values&& values) const {
  const std::size_t n = size(place);
  Key* const keys_to = detail::output<Key>(keys, n, "roost::concurrent_map::retrieve_all");
  Value* const values_to = detail::output<Value>(values, n, "roost::concurrent_map::retrieve_all");
  detail::retrieve_pairs(place, ref(), keys_to, values_to, n);
  return n;
}

template <class Key, class Value, class Place>
template <class F>
void concurrent_map<Key, Value, Place>::for_each(const Place& place, const F& f) const {
  place.for_each(capacity(), detail::visit_slot<reader_type, F>{ref(), f});
}

}  // namespace roost
