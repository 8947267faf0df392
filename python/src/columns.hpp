#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "names.hpp"
#include "place.hpp"
#include "roost/columns/columns.hpp"

// Columns: the arguments and results of Python calls. The Python side has turned keys and values into
// contiguous rows of words in memory of the place; here only their size matters.

namespace roost::python {

/// A Python array: n rows of `row_bytes` bytes. Python passes a numpy array or, for any other library, the
/// address, the number of rows, and the bytes of a row.
struct column {
  std::byte* data = nullptr;
  std::size_t rows = 0, row_bytes = 0;
};

}  // namespace roost::python

template <>
struct nanobind::detail::type_caster<roost::python::column> {
  NB_TYPE_CASTER(roost::python::column, const_name("array"))

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    if (PyTuple_CheckExact(source.ptr())) {
      std::size_t numbers[3];
      if (PyTuple_Size(source.ptr()) < 3) return false;  // further elements keep the memory alive
      for (Py_ssize_t i = 0; i < 3; ++i) {
        make_caster<std::size_t> number;
        if (!number.from_python(PyTuple_GetItem(source.ptr(), i), flags, cleanup)) return false;
        numbers[i] = number.value;
      }
      value = {reinterpret_cast<std::byte*>(numbers[0]), numbers[1], numbers[2]};
      return true;
    }
    make_caster<ndarray<ro, c_contig>> array;
    if (!array.from_python(source, flags, cleanup)) return false;
    const auto& it = array.value;
    value = {const_cast<std::byte*>(static_cast<const std::byte*>(it.data())),
             it.ndim() == 0 ? 1 : it.shape(0), it.itemsize()};
    for (std::size_t d = 1; d < it.ndim(); ++d) value.row_bytes *= it.shape(d);
    return true;
  }
};

namespace roost::python {

template <>
inline constexpr named<column_type> names_of<column_type>[] = {  // as numpy calls them
    {"int8", column_type::i1},    {"int16", column_type::i2},  {"int32", column_type::i4},
    {"int64", column_type::i8},   {"bool", column_type::b1},   {"uint8", column_type::u1},
    {"uint16", column_type::u2},  {"uint32", column_type::u4}, {"uint64", column_type::u8},
    {"float32", column_type::f4}, {"float64", column_type::f8}};

/// Keys and values of `Bytes` bytes.
template <std::size_t Bytes>
struct type_of_bytes {
  using type = packed_key<Bytes / 8>;
};
template <>
struct type_of_bytes<4> {
  using type = std::uint32_t;
};
template <>
struct type_of_bytes<8> {
  using type = std::uint64_t;
};

template <class T>
std::span<const T> span_of(const column& array) {
  if (array.row_bytes != sizeof(T)) {
    detail::raise<invalid_argument>(
        {"roost: elements of ", array.row_bytes, " bytes where ", sizeof(T), " are expected"});
  }
  return {reinterpret_cast<const T*>(array.data), array.rows};
}
/// For results: memory of n elements.
template <class T>
std::span<T> span_of(const column& array, std::size_t n) {
  if (array.row_bytes != sizeof(T) || array.rows != n) {
    detail::raise<invalid_argument>({"roost: an output of ", array.rows, " elements of ", array.row_bytes,
                                     " bytes where ", n, " of ", sizeof(T), " are expected"});
  }
  return {reinterpret_cast<T*>(array.data), n};
}

/// Calls f(T()) with the type for columns with rows of this size.
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
auto with_keys(const column& keys, const F& f) {
  return with_bytes<4, 8, 16, 32>(keys.row_bytes, "keys", f);
}

/// A row number for Python: -1 for no_row.
struct widen {
  const std::uint32_t* rows;
  std::int64_t* target;
  ROOST_FN void operator()(std::size_t i) const {
    target[i] = static_cast<std::int32_t>(rows[i]) == -1 ? -1 : std::int64_t{rows[i]};
  }
};

/// Owns an array, for Python.
template <class T, class Place>
nb::capsule owner_of(array<T, Place>&& values) {
  return {new array<T, Place>(std::move(values)),
          [](void* memory) noexcept { delete static_cast<array<T, Place>*>(memory); }};
}

/// An array of the place as a Python array, which owns it. `As`: the type that Python sees.
template <class As, class T>
nb::object to_python_as(const call_place<host>&, array<T, host>&& values) {
  As* const data = reinterpret_cast<As*>(values.data());
  const std::size_t shape[] = {values.size(), sizeof(T) / sizeof(As)};
  return nb::cast(
      nb::ndarray<nb::numpy, As>(data, shape[1] == 1 ? 1 : 2, shape, owner_of(std::move(values))));
}

#if defined(__CUDACC__)

/// Device memory that roost owns, for a library that offers no allocator.
struct device_bytes {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  int device = 0;
  nb::object owner;

  /// An array for other libraries: numbers of a DLPack type, in rows of this shape.
  nb::ndarray<nb::array_api> view(std::uint8_t code, std::uint8_t bits, const nb::tuple& tail) const {
    std::vector<std::size_t> shape{bytes * 8 / bits};
    for (const nb::handle extent : tail) {
      shape.push_back(nb::cast<std::size_t>(extent));
      shape[0] /= shape.back();
    }
    return {data,
            shape.size(),
            shape.data(),
            owner,
            nullptr,
            nb::dlpack::dtype{code, bits, 1},
            nb::device::cuda::value,
            device};
  }
};

/// On a device: bytes that the library owns, or device_bytes; None if empty.
template <class As, class T>
nb::object to_python_as(const call_place<cuda>& at, array<T, cuda>&& values) {
  if (values.size() == 0) return nb::none();
  if (at.memory() == nullptr) {
    auto* const data = reinterpret_cast<std::byte*>(values.data());
    const std::size_t bytes = values.bytes();
    return nb::cast(device_bytes{data, bytes, at.get().device(), owner_of(std::move(values))});
  }
  if (nb::object owner = at.memory()->take(values.data()); owner.is_valid()) {
    if (!values.has_room()) return owner;
    return owner[nb::slice(static_cast<Py_ssize_t>(values.bytes()))];
  }
  auto [owner, memory] = at.memory()->make(values.bytes());
  const detail::device_guard guard(at.get().device());
  at.get().copy(memory, values.data(), values.bytes());
  const follow before_it_is_freed{values.place().stream(), at.get().stream()};
  return owner;
}

#endif

template <class T, class Place>
nb::object to_python(const call_place<Place>& at, array<T, Place>&& values) {
  return to_python_as<std::conditional_t<std::is_arithmetic_v<T>, T, std::uint64_t>>(at, std::move(values));
}

/// Memory for n elements of a result. If a library lends memory, Python owns it from the start: a small array
/// of roost is copied there.
template <class T, class Place>
class output {
  struct release {
    void operator()(PyObject* owner) const {
      const nb::gil_scoped_acquire gil;
      Py_DECREF(owner);
    }
  };

 public:
  output(const call_place<Place>& at, const Place& place, std::size_t n) : at_(at) {
#if defined(__CUDACC__)
    if constexpr (std::is_same_v<Place, cuda>) {
      if (at.memory() != nullptr && n != 0) {
        const nb::gil_scoped_acquire gil;
        auto [owner, memory] = at.memory()->make(n * sizeof(T));
        owner_.reset(owner.release().ptr());
        data_ = static_cast<T*>(memory);
        return;
      }
    }
#endif
    memory_ = array<T, Place>(place, n);
    data_ = memory_.data();
  }

  output(const call_place<Place>& at, array<T, Place>&& memory)
      : at_(at), memory_(std::move(memory)), data_(memory_.data()) {}

  T* data() const { return data_; }
  nb::object to_python() {
    if (owner_ != nullptr) return nb::steal(owner_.release());
    return python::to_python(at_, std::move(memory_));
  }

 private:
  const call_place<Place>& at_;
  std::unique_ptr<PyObject, release> owner_;
  array<T, Place> memory_;
  T* data_;
};

/// Row numbers for Python: of 4 or 8 bytes, -1 for no_row.
template <class Place>
nb::object rows_to_python(const call_place<Place>& at, array<std::uint32_t, Place>&& rows, bool wide) {
  if (!wide) return to_python_as<std::int32_t>(at, std::move(rows));
  auto all = without_gil(at, [&](const Place& place) {
    output<std::int64_t, Place> widened(at, place, rows.size());
    place.for_each(rows.size(), widen{rows.data(), widened.data()});
    return widened;
  });
  return all.to_python();
}

}  // namespace roost::python
