#pragma once

#include "roost/detail/place/sequence.hpp"

namespace roost::detail {

// Function objects of a number, for write_numbers, for_each and sum.

/// first + i
template <class T>
struct number {
  T first = 0;
  ROOST_FN T operator()(std::size_t i) const { return static_cast<T>(first + i); }
};

/// value
template <class T>
struct constant {
  T value;
  ROOST_FN T operator()(std::size_t) const { return value; }
};

/// elements[i]
template <class Elements>
struct element {
  Elements elements;
  ROOST_FN auto operator()(std::size_t i) const { return elements[i]; }
};

/// Whether values[i] is this one, or is not.
template <class T, bool Is = true>
struct is_value {
  const T* values;
  T value;
  ROOST_FN bool operator()(std::size_t i) const { return (values[i] == value) == Is; }
};

/// ends[i] - begins[i]
struct length_of {
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return ends[i] - begins[i]; }
};

/// source[order[i]]
template <class T, class Number = std::uint32_t>
struct gather {
  const T* source;
  const Number* order;
  ROOST_FN T operator()(std::size_t i) const { return source[order[i]]; }
};

/// target[order[i]] = f(i)
template <class F, class T>
struct scatter {
  const std::uint32_t* order;
  F f;
  T* target;
  ROOST_FN void operator()(std::size_t i) const { target[order[i]] = f(i); }
};
template <class F, class T>  // which clang 16 does not find
scatter(const std::uint32_t*, F, T*) -> scatter<F, T>;

/// 0, 1, ... n - 1.
template <class T>
auto numbers_to(std::size_t n) {
  return computed(n, number<T>());
}

/// target[i] = f(i)
template <class F, class T>
struct write_number {
  F f;
  T* target;
  ROOST_FN void operator()(std::size_t i) const { target[i] = f(i); }
};
template <class Place, class F, class T>
void write_numbers(const Place& place, std::size_t n, const F& f, T* target) {
  place.for_each(n, write_number<F, T>{f, target});
}
/// *target = value
template <class Place, class T>
void write_one(const Place& place, T* target, const T& value) {
  write_numbers(place, 1, constant<T>{value}, target);
}

// Binary search.

/// The first i in [first, last) for which before(i) is false, or `last`; before(i) is true for all smaller i
/// and false for all larger ones.
template <class I, class Before>
ROOST_FN I lower_bound(I first, I last, const Before& before) {
  for (I count = last - first; count > 0;) {
    const I half = count / 2;
    const bool right = before(first + half);
    first = right ? first + half + 1 : first;
    count = right ? count - half - 1 : half;
  }
  return first;
}

/// The last of [first, last) that starts at or before x; that is `first` at least. Starts ascend.
template <class I, class Starts, class X>
ROOST_FN I last_at_or_before(I first, I last, const Starts& starts, const X& x) {
  return lower_bound(first + 1, last, [&](I i) { return starts[i] <= x; }) - 1;
}

}  // namespace roost::detail
