#pragma once

#include <tuple>
#include <vector>

#include "roost/host.hpp"
#include "roost/pair.hpp"

// Ranges of pairs, for the calls that take keys and values.

namespace roost::detail {

struct anything {
  template <class T>
  operator T() const;
};

/// Whether T has two parts that a structured binding names: a std::pair, a struct of two members.
template <class T>
constexpr bool has_two_parts() {
  if constexpr (requires { std::tuple_size<T>::value; }) {
    return std::tuple_size<T>::value == 2;
  } else if constexpr (std::is_aggregate_v<T> && !std::is_array_v<T>) {
    constexpr bool takes_two = requires { T{anything(), anything()}; };
    constexpr bool takes_three = requires { T{anything(), anything(), anything()}; };
    // A member that is an array takes as many values as it has elements.
    constexpr bool array_takes_two = requires { T{{anything(), anything()}}; };
    constexpr bool more_than_an_array = requires { T{{anything(), anything()}, anything()}; };
    return takes_two && !takes_three && (!array_takes_two || more_than_an_array);
  } else {
    return false;
  }
}

template <class Range>
using item_of = std::remove_cvref_t<decltype(*std::ranges::begin(std::declval<const Range&>()))>;

/// Ranges of pairs: containers, views and arrays of places, and computed sequences.
template <class Range>
constexpr bool has_pairs() {
  if constexpr (requires { typename item_of<Range>; }) {
    return has_two_parts<item_of<Range>>();
  } else if constexpr (requires(const Range& range) { range.size(), range[0]; }) {
    return has_two_parts<std::remove_cvref_t<decltype(std::declval<const Range&>()[0])>>();
  } else {
    return false;
  }
}
template <class Range>
concept range_of_pairs = has_pairs<Range>();

/// The first or second parts of a sequence of pairs.
template <int Part, class Pairs>
struct parts_of {
  Pairs pairs;

  std::size_t size() const { return pairs.size(); }
  ROOST_FN auto operator[](std::size_t i) const {
    const auto& [first, second] = pairs[i];
    if constexpr (Part == 0) {
      return first;
    } else {
      return second;
    }
  }
};
template <class Pairs, int Part>
using part_in = element_of<parts_of<Part, sequence_of<Pairs>>>;

/// A range of pairs whose elements have numbers: itself, or on the host a copy, of a std::map.
template <class Place, range_of_pairs Range>
decltype(auto) numbered_pairs(const Range& range) {
  if constexpr (requires { range[0]; } || std::ranges::random_access_range<const Range>) {
    return (range);
  } else {
    static_assert(std::is_same_v<Place, host>,
                  "on cuda pairs lie in an array in the memory of the place: copy them there with "
                  "roost::copy_to");
    return std::vector<item_of<Range>>(std::ranges::begin(range), std::ranges::end(range));
  }
}

template <class Place, class Pairs>
using numbered_pairs_of = std::remove_cvref_t<decltype(numbered_pairs<Place>(std::declval<const Pairs&>()))>;
template <class Place, class Pairs>
using key_in = part_in<numbered_pairs_of<Place, Pairs>, 0>;
template <class Place, class Pairs>
using value_in = part_in<numbered_pairs_of<Place, Pairs>, 1>;

/// zip_as, of both parts of a range that numbered_pairs has returned.
template <class Key, class Value, class Pairs>
auto zip_pairs(const Pairs& pairs, const char* where) {
  const auto all = as_sequence(pairs);
  using sequence = std::remove_const_t<decltype(all)>;
  return zip_as<Key, Value>(parts_of<0, sequence>{all}, parts_of<1, sequence>{all}, where);
}

}  // namespace roost::detail
