#pragma once

#include <optional>
#include <string>
#include <string_view>

/// \file
/// Exact sums of decimal numbers.

namespace roost::tools {

/// A number in units of 10^-18, between about -1.7 * 10^20 and 1.7 * 10^20.
__extension__ using decimal = __int128;
/// The most digits after the point.
inline constexpr int decimal_places = 18;

/// Reads a number such as -12, +3.50 or .5, and raises `places` to its number of digits after the point.
/// Nothing for any other text, or for a number that a decimal cannot hold.
std::optional<decimal> read_decimal(std::string_view text, int& places);

/// Adds `to` and `value`; false if the sum overflows.
inline bool add_decimal(decimal& to, decimal value) { return !__builtin_add_overflow(to, value, &to); }

/// A number with `places` digits after the point.
std::string print_decimal(decimal value, int places);

}  // namespace roost::tools
