#pragma once

#include "roost/detail/sequence.hpp"

namespace roost::detail {

template <class T>
struct number {
  ROOST_FN T operator()(std::size_t i) const { return static_cast<T>(i); }
};

/// 0, 1, ... n - 1.
template <class T>
auto numbers_to(std::size_t n) {
  return computed(n, number<T>());
}

/// to[i] = f(i)
template <class F, class T>
struct write_number {
  F f;
  T* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = f(i); }
};
template <class Place, class F, class T>
void write_numbers(const Place& place, std::size_t n, const F& f, T* to) {
  place.for_each(n, write_number<F, T>{f, to});
}

}  // namespace roost::detail
