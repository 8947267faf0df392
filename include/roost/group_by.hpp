#pragma once

#include <array>
#include <tuple>

#include "roost/frozen_multimap.hpp"
#include "roost/functional.hpp"

/// \file
/// group_by: combines all values of a key into one.

namespace roost {

/// The order in which group_by combines the values of a key.
enum class value_order {
  input,  ///< that of the input; how the calls are nested depends only on the number of values
  any     ///< any: sums of floating-point numbers are faster, but their last bits differ between calls
};

/// How group_by works, and what it returns.
struct group_options {
  value_order order = value_order::input;
  bool counts = true;  ///< whether the result has counts
};

/// The result of group_by. Group g has key keys[g] and value values[g], combined from counts[g] values. The
/// arrays are in memory of the place. `values` is an array, or, for a std::tuple of N > 1 functions, a
/// std::array of N arrays. The same call always returns the groups in the same order; with other types of
/// values, or other functions, the order may differ. To combine several columns, see group_by.
template <class Key, class Value, class Place, std::size_t N = 1>
struct aggregated {
  array<Key, Place> keys;
  std::conditional_t<N == 1, array<Value, Place>, std::array<array<Value, Place>, N>> values;
  array<std::uint64_t, Place> counts;

  /// The number of distinct keys.
  std::size_t size() const { return keys.size(); }
};

/// Combines the values of each key.
///
///     const auto sums = roost::group_by(gpu, customers, amounts, roost::plus());
///     // sums.keys, sums.values, sums.counts
///     const std::tuple both{roost::plus(), roost::maximum()};
///     const auto all = roost::group_by(gpu, customers, amounts, both);
///     // all.values[0]: sums, all.values[1]: maxima
///
/// `f`: plus, multiplies, minimum, maximum, bit_and, bit_or, bit_xor, or any associative function of two
/// values, which is copied to the place; or a std::tuple of such functions. Values are combined as in input
/// order: how the calls of `f` are nested depends only on the number of values, so floating-point sums are
/// reproducible, with any number of threads and on every place, unless value_order::any is requested. For
/// means, divide values by counts, or call group_means. The results have the type of the values: sums and
/// products of integers wrap around. To sum 4-byte integers in 8 bytes, pass the values as a roost::computed
/// range. To combine several columns, make each value a struct, and `f` a function of two such structs; or
/// number the keys once, with a two_way_index, and group by its indices.
///
/// If the order cannot matter (the functions named above except multiplies, of integers; minimum and maximum
/// of floating-point numbers without NaN; with value_order::any also plus) and keys have up to 8 bytes,
/// values are combined in tables as they are read: two or three passes over the batch, and the fewer keys,
/// the faster. Otherwise this costs the build of a frozen_multimap without its table, and one read of the
/// values. Synchronises. Throws invalid_argument, out_of_memory, build_error, device_error.
template <detail::place_comes_first Place, class Keys, class Values, class F>
auto group_by(const Place& place, const Keys& keys, const Values& values, const F& f,
              const group_options& options = {});

/// The mean of each key's values, in double precision. Otherwise as group_by.
template <detail::place_comes_first Place, class Keys, class Values>
auto group_means(const Place& place, const Keys& keys, const Values& values,
                 const group_options& options = {});

ROOST_DELETE_WITHOUT_PLACE(host, cuda, void group_by);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void group_means);

}  // namespace roost

#include "roost/detail/groups/reduce.hpp"
