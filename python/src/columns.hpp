#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "place.hpp"

// Columns: what Python passes and gets. The Python side has turned keys and values into arrays of words, side
// by side in memory of the place; here they are taken by their size alone.

namespace roost::python {

namespace nb = nanobind;

/// Keys or values: (n) numbers, or (n, k) numbers as n rows.
using input = nb::ndarray<nb::ro, nb::c_contig>;
using output = nb::ndarray<nb::c_contig>;

/// Keys and values of so many bytes.
template <std::size_t Bytes>
struct alignas(8) words {
  std::uint64_t word[Bytes / 8];
  friend bool operator==(const words&, const words&) = default;
};
template <std::size_t Bytes>
struct type_of_bytes {
  using type = words<Bytes>;
};
template <>
struct type_of_bytes<4> {
  using type = std::uint32_t;
};
template <>
struct type_of_bytes<8> {
  using type = std::uint64_t;
};

/// f of two values of type T that are passed by their bits.
template <class T, class F>
struct on_bits {
  using bits = typename type_of_bytes<sizeof(T)>::type;
  F f;
  ROOST_FN bits operator()(bits a, bits b) const {
    T x, y;
    memcpy(&x, &a, sizeof(T));
    memcpy(&y, &b, sizeof(T));
    const T combined = f(x, y);
    bits result;
    memcpy(&result, &combined, sizeof(T));
    return result;
  }
};

template <class Array>
std::size_t rows_of(const Array& array) {
  return array.ndim() == 0 ? 1 : array.shape(0);
}
template <class Array>
std::size_t row_bytes_of(const Array& array) {
  std::size_t bytes = array.itemsize();
  for (std::size_t d = 1; d < array.ndim(); ++d) bytes *= array.shape(d);
  return bytes;
}

template <class T>
std::span<const T> span_of(const input& array) {
  if (row_bytes_of(array) != sizeof(T)) {
    detail::raise<invalid_argument>(
        {"roost: elements of ", row_bytes_of(array), " bytes where ", sizeof(T), " are expected"});
  }
  return {static_cast<const T*>(array.data()), rows_of(array)};
}
template <class T>
std::span<T> span_of(const output& array, std::size_t n) {
  if (row_bytes_of(array) != sizeof(T) || rows_of(array) != n) {
    detail::raise<invalid_argument>({"roost: an output of ", rows_of(array), " elements of ",
                                     row_bytes_of(array), " bytes where ", n, " of ", sizeof(T),
                                     " are expected"});
  }
  return {static_cast<T*>(array.data()), n};
}

/// Calls f(T()) with the type for columns of so many bytes.
template <std::size_t... Bytes, class F>
auto with_bytes(std::size_t bytes, const char* what, const F& f) {
  using result = std::common_type_t<decltype(f(typename type_of_bytes<Bytes>::type()))...>;
  std::optional<result> done;
  const auto take = [&](auto size) {
    if (bytes == size()) done.emplace(f(typename type_of_bytes<size()>::type()));
  };
  (take(std::integral_constant<std::size_t, Bytes>()), ...);
  if (!done) detail::raise<invalid_argument>({"roost: ", what, " of ", bytes, " bytes"});
  return std::move(*done);
}

/// The sizes of keys.
template <class F>
auto with_keys(const input& keys, const F& f) {
  return with_bytes<4, 8, 16, 32>(row_bytes_of(keys), "keys", f);
}

/// A row number as Python has it: -1 for no_row.
struct widen {
  const std::uint32_t* rows;
  std::int64_t* target;
  ROOST_FN void operator()(std::size_t i) const {
    target[i] = static_cast<std::int32_t>(rows[i]) == -1 ? -1 : std::int64_t{rows[i]};
  }
};

/// An array of the place as one of Python, which owns it. `As`: the type that Python sees.
template <class As, class T, class Place>
nb::object to_python_as(const Place& place, array<T, Place>&& values) {
  using framework = std::conditional_t<std::is_same_v<Place, host>, nb::numpy, nb::array_api>;
  auto* const kept = new array<T, Place>(std::move(values));
  const nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<array<T, Place>*>(memory); });
  const std::size_t shape[] = {kept->size(), sizeof(T) / sizeof(As)};
  return nb::cast(nb::ndarray<framework, As>(reinterpret_cast<As*>(kept->data()), shape[1] == 1 ? 1 : 2,
                                             shape, owner, nullptr, nb::dtype<As>(),
                                             current<Place>::device_type, current<Place>::device(place)));
}
template <class T, class Place>
nb::object to_python(const Place& place, array<T, Place>&& values) {
  return to_python_as<std::conditional_t<std::is_arithmetic_v<T>, T, std::uint64_t>>(place,
                                                                                     std::move(values));
}

/// Row numbers as Python has them: of 4 or 8 bytes, -1 for no_row.
template <class Place>
nb::object rows_to_python(const Place& place, array<std::uint32_t, Place>&& rows, bool wide) {
  if (!wide) return to_python_as<std::int32_t>(place, std::move(rows));
  auto all = without_gil([&] {
    array<std::int64_t, Place> widened(place, rows.size());
    place.for_each(rows.size(), widen{rows.data(), widened.data()});
    place.synchronize();
    return widened;
  });
  return to_python(place, std::move(all));
}

}  // namespace roost::python
