#include "roost/group_by.hpp"

#include "bind.hpp"
#include "columns.hpp"

// Groups of rows, and what comes of their values. Types and reductions are chosen while it runs, so that
// there is one reduction for each size of results.

namespace roost::python {
namespace {

enum class number : int { i1, i2, i4, i8, b1, u1, u2, u4, u8, f4, f8 };
enum class reduction : int { sum, mean, min, max };

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
  ROOST_FN T at(std::size_t i) const {
    return static_cast<const T*>(values)[i];
  }
  template <class T>
  ROOST_FN Bits bits(T value) const {
    if constexpr (sizeof(Bits) == 8) {
      if (as_double) return bits_of<double, Bits>(static_cast<double>(value));
    }
    if constexpr (std::is_integral_v<T>) {
      return static_cast<Bits>(value);
    } else if constexpr (sizeof(T) == sizeof(Bits)) {
      return bits_of<T, Bits>(value);
    } else {
      return 0;
    }
  }
  ROOST_FN Bits operator()(std::size_t i) const {
    switch (type) {
      case number::i1:
        return bits(at<std::int8_t>(i));
      case number::i2:
        return bits(at<std::int16_t>(i));
      case number::i4:
        return bits(at<std::int32_t>(i));
      case number::b1:
        return bits(at<std::uint8_t>(i) != 0);  // as numpy takes a bool that is another byte
      case number::u1:
        return bits(at<std::uint8_t>(i));
      case number::u2:
        return bits(at<std::uint16_t>(i));
      case number::u4:
        return bits(at<std::uint32_t>(i));
      case number::f4:
        return bits(at<float>(i));
      case number::i8:
        if constexpr (sizeof(Bits) == 8) return bits(at<std::int64_t>(i));
        break;
      case number::u8:
        if constexpr (sizeof(Bits) == 8) return bits(at<std::uint64_t>(i));
        break;
      case number::f8:
        if constexpr (sizeof(Bits) == 8) return bits(at<double>(i));
        break;
    }
    return 0;
  }
};

struct size_of_group {
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t group) const { return offsets[group + 1] - offsets[group]; }
};

struct divide {
  std::uint64_t* sums;
  size_of_group counts;
  ROOST_FN void operator()(std::size_t i) const {
    sums[i] = bits_of<double, std::uint64_t>(from_bits<double>(sums[i]) / static_cast<double>(counts(i)));
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
    const bool is_fraction = type >= number::f4;
    if (how == reduction::sum) {
      return is_fraction ? bits_of<fraction, Bits>(from_bits<fraction>(a) + from_bits<fraction>(b)) : a + b;
    }
    if (is_fraction) return one_of<fraction>(a, b);
    return type >= number::u1 ? one_of<Bits>(a, b) : one_of<std::make_signed_t<Bits>>(a, b);
  }
};

/// Value i of the rows in the order of their groups.
template <class Bits>
struct load_row {
  load_bits<Bits> load;
  const std::uint32_t* rows;
  ROOST_FN Bits operator[](std::size_t i) const { return load(rows[i]); }
};

struct first_of_group {
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  ROOST_FN std::uint32_t operator()(std::size_t group) const { return rows[offsets[group]]; }
};

/// Rows that were numbered by key once, so that all that comes of them is in one order.
template <class Place>
class grouping {
 public:
  using at_place = const call_place<Place>&;
  /// `rows`: group after group, ascending in each.
  grouping(const Place& home, array<std::uint32_t, Place>&& rows, array<std::uint64_t, Place>&& offsets)
      : home_(home), rows_(std::move(rows)), offsets_(std::move(offsets)) {}

  std::size_t size() const { return offsets_.size() - 1; }

  nb::object counts(at_place at) const {
    return to_python_as<std::int64_t>(at, read(at, home_, [&](const Place& place) {
                                        array<std::uint64_t, Place> result(place, size());
                                        detail::write_numbers(place, size(), size_of_group{offsets_.data()},
                                                              result.data());
                                        return result;
                                      }));
  }

  /// The least row of each group.
  nb::object first_rows(at_place at, bool wide) const {
    auto first = read(at, home_, [&](const Place& place) {
      array<std::uint32_t, Place> result(place, size());
      detail::write_numbers(place, size(), first_of_group{rows_.data(), offsets_.data()}, result.data());
      return result;
    });
    return rows_to_python(at, std::move(first), wide);
  }

  /// What comes of the values of each group. Sums of integers and bools, and means, have 8 bytes; other
  /// results have those of the values, and at least 4.
  nb::object reduce(at_place at, const column& values, int type, int how) const {
    if (values.rows != rows_.size()) {
      detail::raise<invalid_argument>(
          {"roost.group_by: ", rows_.size(), " keys but ", values.rows, " values; give as many"});
    }
    const auto reduced = static_cast<reduction>(how);
    const bool mean = reduced == reduction::mean;
    const auto from = static_cast<number>(type), to = mean ? number::f8 : from;
    const bool wide = to == number::i8 || to == number::u8 || to == number::f8 ||
                      (reduced == reduction::sum && to != number::f4);
    return with_bytes<4, 8>(wide ? 8 : 4, "values", [&]<class Bits>(Bits) -> nb::object {
      return to_python(at, read(at, home_, [&](const Place& place) {
                         array<Bits, Place> results(place, size());
                         detail::reduce_lists(place, load_row<Bits>{{values.data, from, mean}, rows_.data()},
                                              offsets_.data(), size(),
                                              combine_bits<Bits>{to, mean ? reduction::sum : reduced},
                                              results.data(), nullptr);
                         if constexpr (sizeof(Bits) == 8) {
                           if (mean) place.for_each(size(), divide{results.data(), {offsets_.data()}});
                         }
                         return results;
                       }));
    });
  }

 private:
  Place home_;
  array<std::uint32_t, Place> rows_;
  array<std::uint64_t, Place> offsets_;  // where each group begins in rows_, and the end
};

/// The distinct keys, and the grouping that numbers them.
template <class Place>
nb::tuple group_rows(const call_place<Place>& at, const column& keys) {
  return with_keys(keys, [&]<class Key>(Key) {
    const auto column = span_of<Key>(keys);
    auto all = without_gil(at, [&](const Place& place) {
      constexpr const char* where = "roost.group_by";
      const auto rows = detail::numbers_to<std::uint32_t>(column.size());
      return detail::group(place, detail::zip_checked(column, rows, where), 0, false, where);
    });
    const nb::object distinct = to_python(at, std::move(all.keys));
    return nb::make_tuple(distinct,
                          new grouping<Place>(at.get(), std::move(all.values), std::move(all.offsets)));
  });
}

}  // namespace

template <class Place>
void bind_group_by(nb::module_& m) {
  using all = grouping<Place>;
  nb::class_<all>(m, "Grouping")
      .def("__len__", &all::size)
      .def("counts", &all::counts)
      .def("first_rows", &all::first_rows)
      .def("reduce", &all::reduce);
  m.def("group", &group_rows<Place>);
}

template void bind_group_by<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
