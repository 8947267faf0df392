#include "roost/group_by.hpp"

#include "bind.hpp"
#include "columns.hpp"

// What comes of the values of a key. Types and reductions are chosen while it runs, so that there is one
// reduction for each size of keys and results.

namespace roost::python {
namespace {

enum class number : int { i1, i2, i4, i8, u1, u2, u4, u8, f4, f8 };
enum class reduction : int { sum, mean, min, max, first };

template <class T, class Bits>
ROOST_FN Bits bits_of(T value) {
  Bits bits;
  memcpy(&bits, &value, sizeof(Bits));
  return bits;
}
template <class T, class Bits>
ROOST_FN T from_bits(Bits bits) {
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}

/// Value i of an array, in the bits of a result: integers keep their value. For means: as a double.
template <class Bits>
struct load_bits {
  const void* values;
  number type;
  bool as_double;

  template <class T>
  ROOST_FN Bits load(std::size_t i) const {
    const T value = static_cast<const T*>(values)[i];
    if constexpr (sizeof(Bits) == 8) {
      if (as_double) return bits_of<double, Bits>(static_cast<double>(value));
    }
    if constexpr (std::is_integral_v<T>) {
      return static_cast<Bits>(value);
    } else {
      return static_cast<const Bits*>(values)[i];
    }
  }
  ROOST_FN Bits operator()(std::size_t i) const {
    switch (type) {
      case number::i1:
        return load<std::int8_t>(i);
      case number::i2:
        return load<std::int16_t>(i);
      case number::i4:
        return load<std::int32_t>(i);
      case number::u1:
        return load<std::uint8_t>(i);
      case number::u2:
        return load<std::uint16_t>(i);
      case number::u4:
        return load<std::uint32_t>(i);
      case number::f4:
        return load<float>(i);
      case number::i8:
        if constexpr (sizeof(Bits) == 8) return load<std::int64_t>(i);
        break;
      case number::u8:
        if constexpr (sizeof(Bits) == 8) return load<std::uint64_t>(i);
        break;
      case number::f8:
        if constexpr (sizeof(Bits) == 8) return load<double>(i);
        break;
    }
    return 0;
  }
};

struct divide {
  std::uint64_t* sums;
  const std::uint64_t* counts;
  ROOST_FN void operator()(std::size_t i) const {
    sums[i] = bits_of<double, std::uint64_t>(from_bits<double>(sums[i]) / static_cast<double>(counts[i]));
  }
};

/// Sums of integers wrap around, as bits without a sign do.
template <class Bits>
struct combine_bits {
  using fraction = std::conditional_t<sizeof(Bits) == 4, float, double>;
  number type;
  reduction how;

  template <class T>
  ROOST_FN Bits one_of(Bits a, Bits b) const {
    const T x = from_bits<T>(a), y = from_bits<T>(b);
    if (x != x) return a;
    const bool take_b = y != y || (how == reduction::min ? y < x : x < y);
    return take_b ? b : a;
  }
  ROOST_FN Bits operator()(Bits a, Bits b) const {
    if (how == reduction::first) return a;
    const bool is_fraction = type >= number::f4;
    if (how == reduction::sum) {
      return is_fraction ? bits_of<fraction, Bits>(from_bits<fraction>(a) + from_bits<fraction>(b)) : a + b;
    }
    if (is_fraction) return one_of<fraction>(a, b);
    return type >= number::u1 ? one_of<Bits>(a, b) : one_of<std::make_signed_t<Bits>>(a, b);
  }
};

/// The keys, what came of their values, and how many they were. Sums of integers, and means, have 8 bytes;
/// other results have those of the values, and at least 4.
template <class Place>
nb::tuple reduce(const call_place<Place>& at, const column& keys, const column& values, int type, int how) {
  if (keys.rows != values.rows) {
    detail::raise<invalid_argument>(
        {"roost.group_by: ", keys.rows, " keys but ", values.rows, " values; give as many"});
  }
  const auto reduced = static_cast<reduction>(how);
  const bool mean = reduced == reduction::mean;
  const auto from = static_cast<number>(type), to = mean ? number::f8 : from;
  const bool wide = to == number::i8 || to == number::u8 || to == number::f8 ||
                    (reduced == reduction::sum && to != number::f4);
  return with_keys(keys, [&]<class Key>(Key) {
    return with_bytes<4, 8>(wide ? 8 : 4, "values", [&]<class Bits>(Bits) {
      const auto column = span_of<Key>(keys);
      auto all = without_gil(at, [&](const Place& place) {
        auto result = group_by(place, column, computed(values.rows, load_bits<Bits>{values.data, from, mean}),
                               combine_bits<Bits>{to, mean ? reduction::sum : reduced});
        if constexpr (sizeof(Bits) == 8) {
          if (mean) place.for_each(result.size(), divide{result.values.data(), result.counts.data()});
        }
        return result;
      });
      const nb::object distinct = to_python(at, std::move(all.keys));
      const nb::object results = to_python(at, std::move(all.values));
      return nb::make_tuple(distinct, results, to_python_as<std::int64_t>(at, std::move(all.counts)));
    });
  });
}

}  // namespace

template <class Place>
void bind_group_by(nb::module_& m) {
  m.def("reduce", &reduce<Place>);
}

template void bind_group_by<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
