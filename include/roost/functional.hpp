#pragma once

#include "roost/detail/config.hpp"

/// \file
/// Functions of two values, for insert_or_apply of maps that change and for group_by. Any function that can be copied to the place will do as well.

namespace roost {

/// The sum. On integers it is one atomic instruction of insert_or_apply.
struct plus {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const { return static_cast<T>(a + b); }
};
/// The lesser one; of equal ones the first.
struct minimum {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
/// The greater one; of equal ones the first.
struct maximum {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};

}  // namespace roost
