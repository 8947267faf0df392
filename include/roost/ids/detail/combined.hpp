#pragma once

#include <cmath>

#include "roost/embedding/detail/numbers.hpp"
#include "roost/ids/reduce_rows.hpp"

// How two numbers of rows are combined.

namespace roost::detail {

/// Rows that are combined at a time, and how their number of slots shrinks from level to level.
inline constexpr std::uint32_t rows_of_piece = 32, piece_shift = 5, slot_shift = 4;

/// The type in which numbers are computed.
template <class Value>
using sum_type = std::conditional_t<sizeof(Value) == 2, float, Value>;

template <class Sum, class Value>
ROOST_FN Sum to_sum(Value x) {
  if constexpr (std::is_same_v<Sum, Value>) {
    return x;
  } else {
    return to_float(x);
  }
}
template <class Value, class Sum>
ROOST_FN Value from_sum(Sum x) {
  if constexpr (std::is_same_v<Sum, Value>) {
    return x;
  } else {
    return from_float<Value>(x);
  }
}

template <class Sum>
ROOST_FN Sum combined(row_reduction how, Sum a, Sum b) {
  using enum row_reduction;
  if constexpr (std::is_integral_v<Sum>) {
    using bits = unsigned_of<Sum>;
    if (how == product) return static_cast<Sum>(static_cast<bits>(a) * static_cast<bits>(b));
    if (how == least) return smaller(a, b);
    if (how == greatest) return larger(a, b);
    return static_cast<Sum>(static_cast<bits>(a) + static_cast<bits>(b));
  } else {
    if (how == product) return a * b;
    // -0 is less than 0, so that extremes do not depend on the order.
    if (how == least) return b < a || b != b || (a == b && std::signbit(b)) ? b : a;
    if (how == greatest) return a < b || b != b || (a == b && std::signbit(a)) ? b : a;
    return a + b;
  }
}

/// sum / n; of integers, rounded down.
template <class Sum>
ROOST_FN Sum mean_of(Sum sum, std::uint64_t n) {
  if constexpr (std::is_integral_v<Sum>) {
    const auto count = static_cast<std::int64_t>(n);
    const std::int64_t all = sum, quotient = all / count;
    return static_cast<Sum>(quotient - (all % count < 0 ? 1 : 0));
  } else {
    return sum / static_cast<Sum>(n);
  }
}

}  // namespace roost::detail
