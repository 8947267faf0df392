#pragma once

#include "roost/detail/place/numbers.hpp"
#include "roost/place.hpp"

// Arrays that start with a value, offsets, and single values that the host reads.

namespace roost::detail {

/// An array of n elements, all of whose bytes are `byte`. Asynchronous on cuda.
template <class T, class Place>
array<T, Place> filled(const Place& place, std::size_t n, int byte) {
  array<T, Place> result(place, n);
  place.fill(result.data(), byte, result.bytes());
  return result;
}
template <class T = std::uint64_t, class Place>
array<T, Place> zeros(const Place& place, std::size_t n) {
  return filled<T>(place, n, 0);
}

/// An array whose element i is f(i). Asynchronous on cuda.
template <class Place, class F>
auto array_of(const Place& place, std::size_t n, const F& f) {
  array<std::remove_cvref_t<decltype(f(n))>, Place> result(place, n);
  write_numbers(place, n, f, result.data());
  return result;
}

/// A value in memory of the place. Synchronises.
template <class Place, class T>
T read_one(const Place& place, const T* source) {
  T result;
  place.copy_to_host(&result, source, sizeof(T));
  return result;
}

/// offsets[i] = the sum of count(j) for all j < i, for i from 0 to n. Asynchronous on cuda.
template <class Place, class Count>
void write_offsets(const Place& place, std::size_t n, const Count& count, std::uint64_t* offsets) {
  place.fill(offsets + n, 0, sizeof(*offsets));
  write_numbers(place, n, count, offsets);
  place.exclusive_scan(offsets, offsets, n + 1);
}

}  // namespace roost::detail
