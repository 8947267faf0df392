#pragma once

#include <optional>
#include <string_view>

/// \file
/// Numbers as files have them: words of text, and bytes.

namespace roost::tools {

/// The number that a word is, all of it: as C, Fortran (`1.5D+03`), Python (`-inf`, `0x1.8p+1`) and Windows
/// (`1.#QNAN`, `-nan(ind)`) write it, whatever the locale. One that is too small for a double becomes 0 or
/// what is nearest; one that is finite and too large is none.
std::optional<double> number_of(std::string_view word);

/// How a number lies in bytes.
struct number_type {
  enum kinds { whole, natural, floating };  ///< with a sign, without, IEEE
  kinds kind = whole;
  unsigned bytes = 0;  ///< 1, 2, 4 or 8, of floating ones 4 or 8; 0: there is none
};

/// The number whose bytes begin at `at`. Of 8 bytes it is rounded to a double.
double number_at(const char* at, number_type type, bool big_endian);

}  // namespace roost::tools
