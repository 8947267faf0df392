#pragma once

#include "roost/detail/place/atomic.hpp"
#include "roost/detail/place/team.hpp"
#include "roost/functional.hpp"

// Values as unsigned words that functions combine in any order.

namespace roost::detail {

/// How a function combines values as unsigned words, in any order.
enum class word_operation { none, add, add_floats, least, bits_or, bits_xor };

template <class F, class Value>
constexpr word_operation word_operation_of = [] {
  constexpr bool integer = is_integer<Value> && !std::is_same_v<Value, bool>;
  constexpr bool fraction = std::is_same_v<Value, float> || std::is_same_v<Value, double>;
  if (std::is_same_v<F, plus>) {
    return integer ? word_operation::add : fraction ? word_operation::add_floats : word_operation::none;
  } else if (std::is_same_v<F, minimum> || std::is_same_v<F, maximum>) {
    return integer || fraction ? word_operation::least : word_operation::none;
  } else if (std::is_same_v<F, bit_and> || std::is_same_v<F, bit_or>) {
    return integer ? word_operation::bits_or : word_operation::none;
  }
  return std::is_same_v<F, bit_xor> && integer ? word_operation::bits_xor : word_operation::none;
}();

/// A value as the word that is combined. For minimum and maximum, words are in the order of the values;
/// maximum and bit_and take the complement: the greatest value has the least one, and a bit that all values
/// have is one that no complement has.
template <class F, class Value>
struct value_word {
  using word = std::conditional_t<sizeof(Value) <= 4, std::uint32_t, std::uint64_t>;
  static constexpr word_operation operation = word_operation_of<F, Value>;
  static constexpr bool ordered = operation == word_operation::least;
  static constexpr bool complement = std::is_same_v<F, maximum> || std::is_same_v<F, bit_and>;
  static constexpr word sign = word{1} << (8 * sizeof(word) - 1);
  /// Combined with it, a word stays the same.
  static constexpr word identity = ordered                                   ? static_cast<word>(~word{0})
                                   : operation == word_operation::add_floats ? sign  // -0.0
                                                                             : word{0};

  ROOST_FN static word of(const Value& value) {
    word bits;
    if constexpr (std::is_integral_v<Value>) {
      bits = static_cast<word>(value);
      if (ordered && std::is_signed_v<Value>) bits ^= sign;
    } else {
      memcpy(&bits, &value, sizeof(Value));
      if (ordered) bits ^= (bits & sign) != 0 ? static_cast<word>(~word{0}) : sign;
    }
    return complement ? static_cast<word>(~bits) : bits;
  }
  ROOST_FN static Value value(word bits) {
    if (complement) bits = static_cast<word>(~bits);
    if constexpr (std::is_integral_v<Value>) {
      return static_cast<Value>(ordered && std::is_signed_v<Value> ? bits ^ sign : bits);
    } else {
      if (ordered) bits ^= (bits & sign) != 0 ? sign : static_cast<word>(~word{0});
      Value result;
      memcpy(&result, &bits, sizeof(Value));
      return result;
    }
  }
  /// Values whose extremes depend on their order: NaNs and -0.0, which is equal to 0.0.
  ROOST_FN static bool depends_on_order(const Value& value) {
    if constexpr (std::is_integral_v<Value> || !ordered) {
      return false;
    } else {
      return value != value || (value == 0 && of(value) != of(Value{0}));
    }
  }

  ROOST_FN static word combine(word a, word b) {
    if constexpr (operation == word_operation::add) {
      return a + b;
    } else if constexpr (operation == word_operation::add_floats) {
      return of(value(a) + value(b));
    } else if constexpr (operation == word_operation::least) {
      return smaller(a, b);
    } else if constexpr (operation == word_operation::bits_or) {
      return a | b;
    } else {
      return a ^ b;
    }
  }
  /// Combines into a word of scratch.
  template <class Team>
  ROOST_FN static void combine(const Team& team, word& target, word mine) {
    if constexpr (operation == word_operation::add && sizeof(word) == 8 && Team::size > 1) {
      // In shared memory, 8 bytes are added by compare-and-swap; and most numbers are small.
      auto* const half = reinterpret_cast<std::uint32_t*>(&target);
      const auto low = static_cast<std::uint32_t>(mine);
      const std::uint32_t before = team.fetch_add(half[0], low);
      const std::uint32_t high = static_cast<std::uint32_t>(mine >> 32) + (before + low < before ? 1 : 0);
      if (high != 0) team.fetch_add(half[1], high);
    } else if constexpr (operation == word_operation::add) {
      team.fetch_add(target, mine);
    } else if constexpr (ordered) {
      if (team.read(target) > mine) team.fetch_min(target, mine);
    } else {
      word seen = team.read(target), next;
      while ((next = combine(seen, mine)) != seen) {
        const word now = team.compare_exchange(target, seen, next);
        if (now == seen) break;
        seen = now;
      }
    }
  }
  /// Combines into a word that all teams see.
  ROOST_FN static void combine_for_all(word& target, word mine) {
    if constexpr (operation == word_operation::add) {
      fetch_add(target, mine);
    } else {
      word seen = peek(target), next;
      while ((next = combine(seen, mine)) != seen) {
        const word now = shared_access::compare_exchange(&target, seen, next);
        if (now == seen) break;
        seen = now;
      }
    }
  }
};

/// The results of several functions for the values of a key.
template <class Value, class... F>
struct reducers {
  static constexpr int count = sizeof...(F);
  using word = typename value_word<plus, Value>::word;
  struct words {
    word* of[count == 0 ? 1 : count];
  };

  /// body(value_word of function k, k).
  template <class Body>
  ROOST_FN static void each(const Body& body) {
    int k = 0;
    (body(value_word<F, Value>(), k++), ...);
  }
  ROOST_FN static words take(scratch_memory& memory, std::size_t n) {
    words result{};
    for (int k = 0; k < count; ++k) result.of[k] = memory.take<word>(n);
    return result;
  }
  ROOST_FN static void clear(const words& target, std::size_t i) {
    each([&](auto f, int k) { target.of[k][i] = decltype(f)::identity; });
  }
  template <class Team>
  ROOST_FN static void clear_all(const Team& team, const words& target, std::uint32_t n) {
    each([&](auto f, int k) { fill_words(team, target.of[k], n, decltype(f)::identity); });
  }
  template <class Team>
  ROOST_FN static void add(const Team& team, const words& target, std::size_t i, const Value& value) {
    each([&](auto f, int k) { f.combine(team, target.of[k][i], f.of(value)); });
  }
  ROOST_FN static bool depends_on_order(const Value& value) {
    bool does = false;
    each([&](auto f, int) { does |= f.depends_on_order(value); });
    return does;
  }
};

}  // namespace roost::detail
