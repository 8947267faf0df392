#include "decimal.hpp"

#include <algorithm>

namespace roost::tools {

std::optional<decimal> read_decimal(std::string_view text, int& places) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const auto point = std::min(text.find('.'), text.size());
  const auto behind = text.size() - std::min(point + 1, text.size());
  if (text.size() == behind + (point < text.size()) && behind == 0) return {};  // no digit
  if (behind > decimal_places) return {};
  decimal value = 0;
  const auto add = [&](char digit) {
    return digit >= '0' && digit <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
           !__builtin_add_overflow(value, digit - '0', &value);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != point && !add(text[i])) return {};
  }
  for (auto i = behind; i < decimal_places; ++i) {
    if (!add('0')) return {};
  }
  places = std::max(places, static_cast<int>(behind));
  return is_negative ? -value : value;
}

std::string print_decimal(decimal value, int places) {
  __extension__ using word = unsigned __int128;
  auto rest = value < 0 ? -static_cast<word>(value) : static_cast<word>(value);
  std::string digits;
  for (int i = 0; i <= decimal_places || rest != 0; ++i) {
    if (i == decimal_places && places > 0) digits += '.';
    if (i >= decimal_places - places) digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  }
  if (value < 0) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace roost::tools
