#include "bind.hpp"
#include "columns.hpp"
#include "roost/group_by.hpp"
#include "roost/two_way_index.hpp"

// Distinct keys, and sums by key.

namespace roost::python {
namespace {

template <class Place>
nb::tuple unique(std::uintptr_t stream, const input& keys, int order, bool first, bool inverse, bool counts,
                 bool wide) {
  const Place place = current<Place>::get(stream);
  return with_keys(keys, [&]<class Key>(Key) {
    const auto column = span_of<Key>(keys);
    const unique_options wanted{static_cast<index_order>(order), first, inverse, counts};
    auto all = without_gil([&] { return unique_all(place, column, wanted); });
    const auto rows = [&](array<std::uint32_t, Place>& numbers, bool is_wanted) {
      return is_wanted ? rows_to_python(place, std::move(numbers), wide) : nb::none();
    };
    const nb::object first_rows = rows(all.first, first), inverse_rows = rows(all.inverse, inverse);
    return nb::make_tuple(
        to_python(place, std::move(all.keys)), first_rows, inverse_rows,
        counts ? to_python_as<std::int64_t>(place, std::move(all.counts)) : nb::object(nb::none()));
  });
}

/// NaN if one is, as numpy's minimum and maximum.
template <class F>
struct or_nan {
  template <class T>
  ROOST_FN T operator()(T a, T b) const {
    if (a != a) return a;
    return b != b ? b : F()(a, b);
  }
};
struct keep_first {
  template <class T>
  ROOST_FN T operator()(T a, T) const {
    return a;
  }
};

/// Values of type T as ones of type As, by their bits.
template <class T, class As>
struct converted_bits {
  const T* values;
  ROOST_FN auto operator()(std::size_t i) const {
    const As value = static_cast<As>(values[i]);
    typename type_of_bytes<sizeof(As)>::type bits;
    memcpy(&bits, &value, sizeof(As));
    return bits;
  }
};

enum class reduction { sum, min, max, first };

/// The keys, what came of their values, and how many they were.
template <class As, class Key, class Place, class Values, class F>
nb::tuple reduce_with(const Place& place, std::span<const Key> keys, const Values& values, const F& f) {
  auto all = without_gil([&] { return group_by(place, keys, values, f); });
  return nb::make_tuple(to_python(place, std::move(all.keys)), to_python_as<As>(place, std::move(all.values)),
                        to_python_as<std::int64_t>(place, std::move(all.counts)));
}

/// Sums are of type As. Those of integers wrap around, as bits without a sign do.
template <class T, class As, class Key, class Place>
nb::tuple reduce_as(const Place& place, std::span<const Key> keys, const input& column, reduction how) {
  using sum = std::conditional_t<std::is_integral_v<As>, plus, on_bits<As, plus>>;
  const auto values = span_of<typename type_of_bytes<sizeof(T)>::type>(column);
  switch (how) {
    case reduction::min:
      return reduce_with<T>(place, keys, values, on_bits<T, or_nan<minimum>>());
    case reduction::max:
      return reduce_with<T>(place, keys, values, on_bits<T, or_nan<maximum>>());
    case reduction::first:
      return reduce_with<T>(place, keys, values, keep_first());
    case reduction::sum:
      break;
  }
  if constexpr (std::is_same_v<T, As>) {
    return reduce_with<As>(place, keys, values, sum());
  } else {
    const converted_bits<T, As> converted{static_cast<const T*>(column.data())};
    return reduce_with<As>(place, keys, computed(values.size(), converted), sum());
  }
}

template <class Place>
nb::tuple reduce(std::uintptr_t stream, const input& keys, const input& values, int how) {
  const Place place = current<Place>::get(stream);
  if (rows_of(keys) != rows_of(values)) {
    detail::raise<invalid_argument>(
        {"roost.group_by: ", rows_of(keys), " keys but ", rows_of(values), " values; give as many"});
  }
  return with_keys(keys, [&]<class Key>(Key) {
    const auto column = span_of<Key>(keys);
    const auto to = [&]<class T, class As>(T, As) {
      return reduce_as<T, As>(place, column, values, static_cast<reduction>(how));
    };
    const auto type = values.dtype();
    using code = nb::dlpack::dtype_code;
    const auto is = [&](code kind, int bits) { return type.code == std::uint8_t(kind) && type.bits == bits; };
    if (is(code::Float, 32)) return to(float(), float());
    if (is(code::Float, 64)) return to(double(), double());
    if (is(code::Int, 32)) return to(std::int32_t(), std::int64_t());
    if (is(code::Int, 64)) return to(std::int64_t(), std::int64_t());
    if (is(code::UInt, 32)) return to(std::uint32_t(), std::uint64_t());
    if (is(code::UInt, 64)) return to(std::uint64_t(), std::uint64_t());
    detail::raise<invalid_argument>({"roost.group_by: values of a type that has no sums"});
  });
}

}  // namespace

template <class Place>
void bind_unique(nb::module_& module) {
  module.def("unique", &unique<Place>);
  module.def("reduce", &reduce<Place>);
}

template void bind_unique<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
