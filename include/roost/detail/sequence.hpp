#pragma once

#include <memory>
#include <ranges>

#include "roost/detail/config.hpp"

namespace roost {

/// A sized random-access sequence whose element i is f(i): keys and values that are computed where they are used and never stored.
/// `f` is copied to the place; on cuda it must be callable there (a functor or an extended lambda). It may be called several
/// times for one i, and must then return the same.
template <class F>
struct computed {
  std::size_t count;
  F f;

  computed(std::size_t n, F function) : count(n), f(function) {}
  std::size_t size() const { return count; }
  ROOST_FN auto operator[](std::size_t i) const { return f(i); }
};

}  // namespace roost

namespace roost::detail {

/// What a kernel holds of a user's range: a pointer or iterator, and the size.
template <class Iterator>
struct sequence {
  Iterator first;
  std::size_t count;

  std::size_t size() const { return count; }
  ROOST_FN decltype(auto) operator[](std::size_t i) const { return first[i]; }
};

template <class Range>
auto as_sequence(const Range& range) {
  if constexpr (std::ranges::contiguous_range<const Range>) {
    const auto* const data = std::ranges::data(range);
    return sequence<decltype(data)>{data, static_cast<std::size_t>(std::ranges::size(range))};
  } else if constexpr (std::ranges::random_access_range<const Range>) {
    const auto first = std::ranges::begin(range);
    return sequence<std::remove_const_t<decltype(first)>>{first, static_cast<std::size_t>(std::ranges::size(range))};
  } else {
    return range;  // computed, or anything else with size() and operator[] that can be copied to the place
  }
}

template <class Range>
using sequence_of = decltype(as_sequence(std::declval<const Range&>()));

/// The type of the elements of a user's range, or void if it is none.
template <class Range>
using element_of = std::remove_cvref_t<decltype(std::declval<const sequence_of<Range>&>()[0])>;

}  // namespace roost::detail
