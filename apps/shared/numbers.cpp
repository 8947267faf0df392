#include "numbers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>
#include <type_traits>

namespace roost::tools {
namespace {

/// Numbers that are not finite, as Windows writes them: 1.#QNAN, -1.#IND000, 1.#INF00.
bool not_finite_of_windows(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  if (!word.starts_with("1.#")) return false;
  word.remove_prefix(3);
  word = word.substr(0, word.find_last_not_of('0') + 1);
  return word == "QNAN" || word == "SNAN" || word == "IND" || word == "INF";
}

template <class Number>
Number stored(const std::array<char, 8>& raw) {
  Number result;
  std::memcpy(&result, raw.data(), sizeof(result));
  return result;
}

}  // namespace

std::optional<double> number_of(std::string_view word) {
  if (word.starts_with('+')) {
    word.remove_prefix(1);
    if (word.starts_with('-') || word.starts_with('+')) return {};
  }
  if (word.empty() || std::isspace(static_cast<unsigned char>(word[0])) != 0) return {};
  double result = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), result);
  if (failure == std::errc{} && end == word.data() + word.size()) return result;
  if (not_finite_of_windows(word)) return std::numeric_limits<double>::quiet_NaN();
  // Numbers that from_chars does not read: hexadecimal ones, Fortran's exponents, too small ones, names of
  // NaNs.
  std::string copy(word);
  const auto digits = copy.find_first_not_of("+-.0123456789");
  if (digits != 0 && digits != copy.npos && (copy[digits] == 'D' || copy[digits] == 'd')) copy[digits] = 'e';
  char* last = nullptr;
  result = std::strtod(copy.c_str(), &last);
  if (last != copy.c_str() + copy.size()) return {};
  const bool named = copy.find_first_of("iInN") != copy.npos;
  if (std::isinf(result) && !named) return {};
  return result;
}

double number_at(const char* at, number_type type, bool big_endian) {
  static_assert(std::endian::native == std::endian::little);
  std::array<char, 8> raw{};
  std::memcpy(raw.data(), at, type.bytes);
  if (big_endian) std::reverse(raw.begin(), raw.begin() + type.bytes);
  const auto either = [&]<class Signed>(Signed) {
    return type.kind == number_type::whole ? static_cast<double>(stored<Signed>(raw))
                                           : static_cast<double>(stored<std::make_unsigned_t<Signed>>(raw));
  };
  if (type.kind == number_type::floating)
    return type.bytes == 4 ? static_cast<double>(stored<float>(raw)) : stored<double>(raw);
  return type.bytes == 1   ? either(std::int8_t{})
         : type.bytes == 2 ? either(std::int16_t{})
         : type.bytes == 4 ? either(std::int32_t{})
                           : either(std::int64_t{});
}

}  // namespace roost::tools
