#include "bind.hpp"
#include "columns.hpp"

// Rows of bytes: operations on keys and values before and after a call, without their types.

namespace roost::python {
namespace {

/// Floats as keys, by their bits: -0 becomes 0, and all NaNs become one.
template <class Bits, class Word>
struct canonical {
  const Bits* source;
  Word* target;
  Bits infinity, nan;
  ROOST_FN void operator()(std::size_t i) const {
    constexpr auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    const Bits bits = source[i];
    const auto magnitude = static_cast<Bits>(bits & ~sign);
    target[i] = magnitude > infinity ? nan : magnitude == 0 ? Bits{0} : bits;
  }
};

template <class Bits, class Word, class Place>
void canonical_of(const Place& place, const column& source, const column& target, std::uint64_t nan) {
  const auto values = span_of<Bits>(source);
  const auto one = static_cast<Bits>(nan & (~nan + 1));  // the highest bit of the fraction
  place.for_each(values.size(),
                 canonical<Bits, Word>{values.data(), span_of<Word>(target, values.size()).data(),
                                       static_cast<Bits>(nan ^ one), static_cast<Bits>(nan)});
}

/// Bools, which some programs store as numbers other than 0 and 1.
struct canonical_bool {
  const std::uint8_t* source;
  std::uint32_t* target;
  ROOST_FN void operator()(std::size_t i) const { target[i] = source[i] != 0; }
};

/// Floats and bools, by their size, as keys. `nan`: the bits of the one NaN.
template <class Place>
void canonical_keys(const call_place<Place>& at, const column& source, const column& target,
                    std::uint64_t nan) {
  without_gil(at, [&](const Place& place) {
    if (source.row_bytes == 1) {
      const auto bools = span_of<std::uint8_t>(source);
      return place.for_each(
          bools.size(), canonical_bool{bools.data(), span_of<std::uint32_t>(target, bools.size()).data()});
    }
    if (source.row_bytes == 2) return canonical_of<std::uint16_t, std::uint32_t>(place, source, target, nan);
    if (source.row_bytes == 4) return canonical_of<std::uint32_t, std::uint32_t>(place, source, target, nan);
    canonical_of<std::uint64_t, std::uint64_t>(place, source, target, nan);
  });
}

/// Rows resized: truncated, or padded with zeros.
template <class Unit>
struct resize_row {
  const Unit* source;
  Unit* target;
  std::uint32_t from, to;  // units of a row
  ROOST_FN void operator()(std::size_t i) const {
    for (std::uint32_t u = 0; u < to; ++u) target[i * to + u] = u < from ? source[i * from + u] : Unit{0};
  }
};

template <class Place>
void resize_rows(const call_place<Place>& at, const column& source, const column& target) {
  if (source.rows != target.rows) {
    detail::raise<invalid_argument>({"roost: ", source.rows, " rows for ", target.rows});
  }
  without_gil(at, [&](const Place& place) {
    const auto with = [&]<class Unit>(Unit) {
      place.for_each(
          source.rows,
          resize_row<Unit>{reinterpret_cast<const Unit*>(source.data), reinterpret_cast<Unit*>(target.data),
                           static_cast<std::uint32_t>(source.row_bytes / sizeof(Unit)),
                           static_cast<std::uint32_t>(target.row_bytes / sizeof(Unit))});
    };
    const auto bits = source.row_bytes | target.row_bytes | reinterpret_cast<std::uintptr_t>(source.data);
    if (bits % 4 == 0) return with(std::uint32_t());
    if (bits % 2 == 0) return with(std::uint16_t());
    with(std::uint8_t());
  });
}

/// Units of the rows with given numbers; of `missing` if a number is negative.
template <class Unit, class Number>
struct gather_unit {
  const Unit* source;
  const Unit* missing;  // null: zeros
  const Number* rows;
  Unit* target;
  std::uint32_t units;  // of a row
  ROOST_FN void operator()(std::size_t i) const {
    std::size_t k;
    std::uint32_t u;
    if (i >> 32 == 0) {
      k = static_cast<std::uint32_t>(i) / units;
      u = static_cast<std::uint32_t>(i) % units;
    } else {
      k = i / units;
      u = static_cast<std::uint32_t>(i % units);
    }
    const Number row = rows[k];
    if (row >= 0) {
      target[i] = source[static_cast<std::size_t>(row) * units + u];
    } else {
      target[i] = missing == nullptr ? Unit{} : missing[u];
    }
  }
};

struct alignas(16) unit16 {
  std::uint64_t words[2];
};

/// target[i] = source[rows[i]]; the row `missing` of the host, or zeros, if rows[i] is negative.
template <class Place>
void gather_rows(const call_place<Place>& at, const column& source, const column& rows, const column& target,
                 const column& missing) {
  if (rows.rows != target.rows || source.row_bytes != target.row_bytes ||
      (missing.rows != 0 && missing.row_bytes != target.row_bytes)) {
    detail::raise<invalid_argument>({"roost: rows of other numbers or sizes than their target's"});
  }
  without_gil(at, [&](const Place& place) {
    array<std::byte, Place> other;
    if (missing.rows != 0) {
      other = array<std::byte, Place>(place, target.row_bytes);
      place.copy_from_host(other.data(), missing.data, target.row_bytes);
    }
    const auto with = [&]<class Unit, class Number>(Unit, Number) {
      const auto units = static_cast<std::uint32_t>(target.row_bytes / sizeof(Unit));
      place.for_each(rows.rows * units,
                     gather_unit<Unit, Number>{
                         reinterpret_cast<const Unit*>(source.data), reinterpret_cast<Unit*>(other.data()),
                         span_of<Number>(rows).data(), reinterpret_cast<Unit*>(target.data), units});
    };
    const auto with_unit = [&]<class Unit>(Unit unit) {
      if (rows.row_bytes == 4) return with(unit, std::int32_t());
      with(unit, std::int64_t());
    };
    const auto bits = target.row_bytes | reinterpret_cast<std::uintptr_t>(source.data) |
                      reinterpret_cast<std::uintptr_t>(target.data);
    if (bits % 16 == 0) return with_unit(unit16());
    if (bits % 8 == 0) return with_unit(std::uint64_t());
    if (bits % 4 == 0) return with_unit(std::uint32_t());
    with_unit(std::uint8_t());
  });
}

template <class Number, class Target>
struct invert_row {
  const Number* rows;
  Target* target;
  ROOST_FN void operator()(std::size_t i) const { target[rows[i]] = static_cast<Target>(i); }
};

/// target[rows[i]] = i.
template <class Place>
void invert_rows(const call_place<Place>& at, const column& rows, const column& target) {
  const auto with_both = [&]<class Number, class Target>(Number, Target) {
    const invert_row<Number, Target> invert{span_of<Number>(rows).data(),
                                            span_of<Target>(target, rows.rows).data()};
    without_gil(at, [&](const Place& place) { place.for_each(rows.rows, invert); });
  };
  const auto with = [&](auto number) {
    if (target.row_bytes == 4) return with_both(number, std::int32_t());
    with_both(number, std::int64_t());
  };
  if (rows.row_bytes == 4) return with(std::int32_t());
  with(std::int64_t());
}

}  // namespace

template <class Place>
void bind_rows(nb::module_& m) {
  m.def("canonical_keys", &canonical_keys<Place>);
  m.def("resize_rows", &resize_rows<Place>);
  m.def("gather_rows", &gather_rows<Place>);
  m.def("invert_rows", &invert_rows<Place>);
}

template void bind_rows<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
