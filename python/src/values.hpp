#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "columns.hpp"
#include "roost/columns/columns.hpp"

// Columns of values whose type is chosen at run time, and the words by which groups of them are combined.

namespace roost::python {

enum class reduction : std::uint8_t { sum, mean, min, max, product, any, all, count };
template <>
inline constexpr named<reduction> names_of<reduction>[] = {
    {"sum", reduction::sum}, {"mean", reduction::mean},       {"min", reduction::min},
    {"max", reduction::max}, {"product", reduction::product}, {"any", reduction::any},
    {"all", reduction::all}, {"count", reduction::count}};

/// A column of values in memory of the place, and which of them are present: a bit for each, or null.
struct values_of_rows {
  const void* values;
  column_type type;
  const std::uint8_t* valid;

  ROOST_FN bool has(std::size_t i) const { return detail::is_valid(valid, i); }
  template <class T>
  ROOST_FN T get(std::size_t i) const {
    if constexpr (std::is_same_v<T, bool>) {
      return static_cast<const std::uint8_t*>(values)[i] != 0;  // numpy, too, takes any other byte for true
    } else {
      return static_cast<const T*>(values)[i];
    }
  }
  /// target[k] = f(value of row first + k), on the host; the type is chosen once.
  template <class Target, class F>
  void convert(std::size_t first, std::size_t n, Target* target, const F& f) const {
    detail::with_number(type, [&]<class T>(T) {
      for (std::size_t k = 0; k < n; ++k) target[k] = f(get<T>(first + k));
      return true;
    });
  }
};

/// The n values of a column; `valid` has a bit for each.
inline values_of_rows values_of(const column& values, const char* type, const std::optional<column>& valid,
                                std::size_t n) {
  if (values.rows != n) {
    detail::raise<invalid_argument>({"roost.group_by: ", n, " keys but ", values.rows, " values"});
  }
  const values_of_rows all{values.data, value_of<column_type>(type),
                           valid ? reinterpret_cast<const std::uint8_t*>(valid->data) : nullptr};
  if (values.row_bytes != bytes_of(all.type)) {
    detail::raise<invalid_argument>({"roost.group_by: values of ", values.row_bytes, " bytes"});
  }
  if (valid && valid->rows * valid->row_bytes < detail::ceil_div<std::size_t>(n, 8)) {
    detail::raise<invalid_argument>({"roost.group_by: too few bits for ", n, " values"});
  }
  return all;
}

/// Values as words that are combined without knowing their type. Sums and products combine integers and
/// floats as they are; means of floats and of large integers combine floats of 8 bytes. Extremes are the
/// least of words that ascend as the values do, or descend; the word 0 is NaN. `any` and `all` are extremes
/// of bools.
struct words_of {
  column_type type;
  reduction how;

  ROOST_FN bool of_bools() const { return how == reduction::any || how == reduction::all; }
  ROOST_FN bool greatest() const { return how == reduction::max || how == reduction::any; }
  ROOST_FN bool extreme() const { return greatest() || how == reduction::min || how == reduction::all; }
  ROOST_FN bool as_double() const {
    return how == reduction::product ? type >= column_type::f4
                                     : how == reduction::mean && (type >= column_type::f4 || is_long());
  }
  /// Integers whose sums of 2^32 might wrap around.
  ROOST_FN bool is_long() const { return type == column_type::i8 || type == column_type::u8; }
  ROOST_FN bool floats() const { return as_double() || (how == reduction::sum && type >= column_type::f4); }

  /// Words of values as the widest type of their kind.
  template <class T>
  using widest = detail::value_word<
      minimum, std::conditional_t<!std::is_integral_v<T>, double,
                                  std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>>;
  template <class T>
  ROOST_FN T value_of(std::uint64_t word) const {
    if constexpr (!std::is_integral_v<T>) {
      if (word == 0) return std::numeric_limits<T>::quiet_NaN();
    }
    return static_cast<T>(widest<T>::value(greatest() ? ~word : word));
  }

  /// The word that changes nothing that it is combined with.
  template <class Bits>
  ROOST_FN Bits identity() const {
    if (extreme()) return ~Bits{0};
    if (how == reduction::product) return as_double() ? std::bit_cast<std::uint64_t>(1.0) : 1;
    return floats() ? Bits{1} << (8 * sizeof(Bits) - 1) : 0;  // -0.0
  }
};

/// Value i of a column, as a word; of 4 bytes for sums of floats. What is the same for all values is computed
/// in advance.
template <class Bits>
struct load_word {
  enum class form : std::uint8_t { bits, fraction, in_order, truth, one };
  values_of_rows source;
  words_of words;
  form as;
  bool same;  // words are the values as in memory
  Bits identity;
  std::uint64_t reversed;  // all bits, or none

  load_word(const values_of_rows& of, words_of combined)
      : source(of),
        words(combined),
        as(words.of_bools()                                             ? form::truth
           : words.extreme()                                            ? form::in_order
           : words.how == reduction::count                              ? form::one
           : words.as_double() || (words.floats() && sizeof(Bits) == 8) ? form::fraction
                                                                        : form::bits),
        same(bytes_of(words.type) == sizeof(Bits) &&
             (as == form::bits || (as == form::fraction && words.type == column_type::f8))),
        identity(words.template identity<Bits>()),
        reversed(words.greatest() ? ~std::uint64_t{0} : 0) {}

  template <form As, class T>
  ROOST_FN Bits word(T value) const {
    if constexpr (As == form::one) {
      return 1;
    } else if constexpr (As == form::truth) {
      return static_cast<Bits>(reversed ^ (value != T(0) ? 1 : 0));
    } else if constexpr (As == form::in_order) {
      return static_cast<Bits>(value != value ? 0 : reversed ^ words_of::widest<T>::of(value));
    } else if constexpr (As == form::fraction && sizeof(Bits) == 8) {
      return std::bit_cast<Bits>(static_cast<double>(value));
    } else if constexpr (std::is_same_v<T, float> && sizeof(Bits) == 4) {
      return std::bit_cast<Bits>(value);
    } else {
      return static_cast<Bits>(value);
    }
  }
  /// f with the form as a constant.
  template <class F>
  ROOST_FN auto with_form(const F& f) const {
    switch (as) {
      case form::bits:
        break;
      case form::fraction:
        return f(std::integral_constant<form, form::fraction>());
      case form::in_order:
        return f(std::integral_constant<form, form::in_order>());
      case form::truth:
        return f(std::integral_constant<form, form::truth>());
      case form::one:
        return f(std::integral_constant<form, form::one>());
    }
    return f(std::integral_constant<form, form::bits>());
  }

  ROOST_FN Bits operator()(std::size_t i) const {
    if (!source.has(i)) return identity;
    // The most frequent cases first: together with the others, they would be half as fast.
    if (same) return source.get<Bits>(i);
    if (as == form::bits && words.type == column_type::i4)
      return static_cast<Bits>(source.get<std::int32_t>(i));
    return with_form([&](auto chosen) {
      return detail::with_number(words.type, [&]<class T>(T) -> Bits {
        return word<decltype(chosen)::value>(source.template get<T>(i));
      });
    });
  }

  /// The words of n rows: in memory, or in the buffer.
  const Bits* block(std::size_t first, std::size_t n, Bits* buffer) const {
    if (same && source.valid == nullptr) return static_cast<const Bits*>(source.values) + first;
    with_form([&](auto chosen) {
      source.convert(first, n, buffer, [&](auto value) { return word<decltype(chosen)::value>(value); });
      return true;
    });
    for (std::size_t k = 0; source.valid != nullptr && k < n; ++k) {
      buffer[k] = source.has(first + k) ? buffer[k] : identity;
    }
    return buffer;
  }
};

/// The lesser word, or F of two numbers: floats, or integers as unsigned ones, which wrap around.
template <class F, class Bits>
struct combine_words {
  using fraction = std::conditional_t<sizeof(Bits) == 4, float, double>;
  bool least, floats;
  ROOST_FN Bits operator()(Bits a, Bits b) const {
    if (least) return detail::smaller(a, b);
    return floats ? std::bit_cast<Bits>(F()(std::bit_cast<fraction>(a), std::bit_cast<fraction>(b)))
                  : F()(a, b);
  }
};

/// Words in the order of values of one type; `descending`: in the opposite order. NaNs are one, and come last
/// either way.
struct ordered_words {
  column_type type;
  bool descending = false, equal_zeros = false;  // whether -0.0 is 0.0

  /// How many bits of words may differ.
  std::size_t bits() const { return bytes_of(type) <= 4 ? 32 : 64; }
  bool has_nan() const { return type >= column_type::f4; }
  std::uint64_t nan() const { return ~std::uint64_t{0} >> (64 - bits()); }

  template <class T>
  ROOST_FN std::uint64_t word(T value) const {
    using words = detail::value_word<minimum, T>;
    constexpr auto all = static_cast<typename words::word>(~typename words::word{0});
    if constexpr (!std::is_integral_v<T>) {
      if (value != value) return all;
      if (equal_zeros && value == 0) value = 0;
    }
    return descending ? all ^ words::of(value) : words::of(value);
  }
  template <class T>
  ROOST_FN T value(std::uint64_t word) const {
    using words = detail::value_word<minimum, T>;
    constexpr auto all = static_cast<typename words::word>(~typename words::word{0});
    auto found = static_cast<typename words::word>(word);
    if constexpr (!std::is_integral_v<T>) {
      if (found == all) return std::numeric_limits<T>::quiet_NaN();
    }
    if (descending) found ^= all;
    return words::value(found);
  }
};

}  // namespace roost::python
