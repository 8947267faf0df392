#pragma once

#include "roost/detail/place/config.hpp"

/// \file
/// Functions of two values, for insert_or_apply of concurrent maps and for group_by. Any other function that
/// can be copied to the place works, too.

namespace roost {

/// The sum. Sums of integers wrap around, even of signed ones. On integers, insert_or_apply performs it as
/// one atomic instruction.
struct plus {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using bits = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<bits>(a) + static_cast<bits>(b));
    } else {
      return static_cast<T>(a + b);
    }
  }
};
/// The product. Products of integers wrap around, even of signed ones.
struct multiplies {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using bits = std::common_type_t<unsigned, std::make_unsigned_t<T>>;  // int would overflow for 16 bits
      return static_cast<T>(static_cast<bits>(a) * static_cast<bits>(b));
    } else {
      return static_cast<T>(a * b);
    }
  }
};
/// The smaller value; of equal values, the first.
struct minimum {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
/// The larger value; of equal values, the first.
struct maximum {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};

/// For integers: the bits that both have.
struct bit_and {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    return static_cast<T>(a & b);
  }
};
/// For integers: the bits that one or both have.
struct bit_or {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    return static_cast<T>(a | b);
  }
};
/// For integers: the bits that exactly one has.
struct bit_xor {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    return static_cast<T>(a ^ b);
  }
};

}  // namespace roost
