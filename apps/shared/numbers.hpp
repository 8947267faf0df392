#pragma once

#include <optional>
#include <string_view>

/// \file
/// Numbers in files: words of text, and bytes.

namespace roost::tools {

/// The number that a whole word represents, as written by C, Fortran (`1.5D+03`), Python (`-inf`, `0x1.8p+1`)
/// or Windows (`1.#QNAN`, `-nan(ind)`), whatever the locale. A number too small for a double becomes the
/// nearest double or 0; nothing for a finite number that is too large.
std::optional<double> number_of(std::string_view word);

/// How a number is stored in bytes.
struct number_type {
  enum kinds { whole, natural, floating };  ///< with a sign, without, IEEE
  kinds kind = whole;
  unsigned bytes = 0;  ///< 1, 2, 4 or 8; floating: 4 or 8; 0: not a number
};

/// The number whose bytes begin at `at`; integers of 8 bytes are rounded to a double.
double number_at(const char* at, number_type type, bool big_endian);

}  // namespace roost::tools
