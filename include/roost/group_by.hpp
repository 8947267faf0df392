#pragma once

#include "roost/frozen_multimap.hpp"
#include "roost/functional.hpp"

/// \file
/// group_by: combines all values of a key into one.

namespace roost {

/// The result of group_by. Group g has key keys[g] and value values[g], combined from counts[g] values. The
/// arrays are in memory of the place, in the same order of keys as in a frozen_multimap. The order depends on
/// the size of the values: two calls with the same keys and values of other types may number groups
/// differently. To combine several columns, see group_by.
template <class Key, class Value, class Place>
struct aggregated {
  array<Key, Place> keys;
  array<Value, Place> values;
  array<std::uint64_t, Place> counts;

  /// The number of distinct keys.
  std::size_t size() const { return keys.size(); }
};

/// Combines the values of each key in input order: values[g] is f(f(first, second), third) and so on. How the
/// calls of `f` are nested depends only on the number of values, so floating-point sums are reproducible,
/// with any number of threads and on every place.
///
///     const auto sums = roost::group_by(gpu, customers, amounts, roost::plus());
///     // sums.keys, sums.values, sums.counts
///
/// `f`: plus, minimum, maximum, or any associative function of two values; it is copied to the place. For
/// means, divide values by counts, or call group_means. The results have the type of the values: to sum
/// 4-byte integers in 8 bytes, pass the values as a roost::computed range. To combine several columns, make
/// each value a struct, and `f` a function of two such structs; or number the keys once, with a
/// two_way_index, and group by its indices.
///
/// Costs the build of a frozen_multimap without its table, and one read of the values. Synchronises. Throws
/// invalid_argument, out_of_memory, build_error, device_error.
template <class Place, class Keys, class Values, class F>
auto group_by(const Place& place, const Keys& keys, const Values& values, const F& f);

/// The mean of each key's values, in double precision. Otherwise as group_by.
template <class Place, class Keys, class Values>
auto group_means(const Place& place, const Keys& keys, const Values& values);

}  // namespace roost

#include "roost/detail/groups/reduce.hpp"
