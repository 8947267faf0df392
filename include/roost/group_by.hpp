#pragma once

#include "roost/frozen_multimap.hpp"
#include "roost/functional.hpp"

/// \file
/// group_by: one value for all values of a key.

namespace roost {

/// The groups of group_by: group g has key keys[g] and values[g], made of counts[g] values. Memory of the place; in the order that the keys of a
/// frozen_multimap have.
template <class Key, class Value, class Place>
struct aggregated {
  array<Key, Place> keys;
  array<Value, Place> values;
  array<std::uint64_t, Place> counts;

  /// The number of different keys.
  std::size_t size() const { return keys.size(); }
};

/// Puts the values of each key together: values[g] = f(f(first, second), third) and so on, in the order of the input but for how they are bracketed, which depends on nothing but how
/// many they are: sums of floating-point numbers are the same every time, with any number of threads and on every place.
///
///     const auto sums = roost::group_by(gpu, customers, amounts, roost::plus());          // minimum, maximum, or any associative function
///     sums.keys, sums.values, sums.counts                                                // count: how many; mean: values / counts, or group_means
///
/// `f`: an associative function of two values, copied to the place. The results have the type of the values: to add up 4-byte integers in 8 bytes give the values as
/// roost::computed. Several columns: values of a struct, and a function of two of them.
/// Costs the build of a frozen_multimap without its table, and a read of the values. Synchronises. Throws invalid_argument, out_of_memory, build_error, device_error.
template <class Place, class Keys, class Values, class F>
auto group_by(const Place& place, const Keys& keys, const Values& values, const F& f);

/// The mean of each key's values, in double precision. As group_by.
template <class Place, class Keys, class Values>
auto group_means(const Place& place, const Keys& keys, const Values& values);

}  // namespace roost

#include "roost/detail/group_by.inl"
