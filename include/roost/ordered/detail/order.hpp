#pragma once

#include <bit>
#include <cstring>
#include <limits>

#include "roost/detail/partition/select.hpp"
#include "roost/detail/partition/sort.hpp"

// Numbers that order rows: as unsigned words in the same order, and rows sorted by these.

namespace roost::detail {

/// Rows of a group that a thread of a host sorts at once, at most, or a sixteenth of all.
inline constexpr std::uint64_t sorted_at_once = 1 << 16;

/// A number as an unsigned word in the same order, and the distance of two words, the first at least the
/// second. -0 is 0. Of floats, NaN has no word.
template <class T>
struct order_word {
  static_assert(is_integer<T> && !std::is_same_v<T, bool>,
                "rows are ordered by integers of up to 8 bytes, float or double");
  using word = typename in_order<T>::word;
  using distance = std::uint64_t;
  static constexpr distance farthest = ~std::uint64_t{0};

  ROOST_FN static word of(const T& x) { return in_order<T>::number(x); }
  ROOST_FN static distance between(word a, word b) { return static_cast<word>(a - b); }
  ROOST_FN static bool is_nan(const T&) { return false; }
};

template <std::floating_point T>
  requires(sizeof(T) <= 8)
struct order_word<T> {
  using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  using distance = T;
  static constexpr distance farthest = std::numeric_limits<T>::infinity();
  static constexpr word sign = word{1} << (8 * sizeof(T) - 1);

  ROOST_FN static word of(const T& x) {
    const T plain = x == T{0} ? T{0} : x;
    word bits;
    memcpy(&bits, &plain, sizeof(T));
    return (bits & sign) != 0 ? static_cast<word>(~bits) : static_cast<word>(bits | sign);
  }
  ROOST_FN static T number(word w) {
    const word bits = (w & sign) != 0 ? static_cast<word>(w ^ sign) : static_cast<word>(~w);
    T x;
    memcpy(&x, &bits, sizeof(T));
    return x;
  }
  ROOST_FN static distance between(word a, word b) { return a == b ? T{0} : number(a) - number(b); }
  ROOST_FN static bool is_nan(const T& x) { return x != x; }
};

/// The word of element i of a sequence.
template <class Sequence>
struct order_word_at {
  using kind = order_word<element_of<Sequence>>;
  Sequence values;
  bool descending = false;
  ROOST_FN typename kind::word operator()(std::size_t i) const {
    const auto word = kind::of(values[i]);
    return descending ? static_cast<typename kind::word>(~word) : word;
  }
};

template <class Sequence>
struct is_nan_at {
  Sequence values;
  ROOST_FN bool operator()(std::size_t i) const {
    return order_word<element_of<Sequence>>::is_nan(values[i]);
  }
};

/// Throws invalid_argument if there are NaNs. Floats alone cost a pass.
template <class Place, class Sequence>
void refuse_nan(const Place& place, const Sequence& values, const char* where) {
  if constexpr (std::is_floating_point_v<element_of<Sequence>>) {
    const std::uint64_t nans = place.sum(values.size(), is_nan_at<Sequence>{values});
    if (nans != 0)
      raise<invalid_argument>({where, ": ", nans, " of ", values.size(),
                               " numbers that order rows are NaN; leave these rows out"});
  }
}

template <class Word>
struct descends_at {
  Word word;
  ROOST_FN bool operator()(std::size_t i) const { return word(i + 1) < word(i); }
};

/// Each call notes every word in steps of `apart`.
template <class Word>
struct note_range {
  Word word;
  std::size_t n, apart;
  std::uint64_t* range;  // the least word, and the greatest
  ROOST_FN void operator()(std::size_t first) const {
    std::uint64_t least = word(first), greatest = least;
    for (std::size_t i = first + apart; i < n; i += apart) {
      least = smaller<std::uint64_t>(least, word(i));
      greatest = larger<std::uint64_t>(greatest, word(i));
    }
    fetch_min(range[0], least);
    fetch_max(range[1], greatest);
  }
};

/// Pairs of a word less `least`, and its row.
template <class Key, class Word>
struct words_and_rows {
  Word word;
  std::uint64_t least;
  std::size_t count;
  std::size_t size() const { return count; }
  ROOST_FN auto operator[](std::size_t i) const {
    return pair_of(static_cast<Key>(word(i) - least), static_cast<std::uint32_t>(i));
  }
};

template <class Item>
struct row_of_item {
  const Item* items;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return items[i].value; }
};

/// The rows 0 to n - 1 in ascending order of word(row), stably. Synchronises.
template <class Place, class Word>
array<std::uint32_t, Place> rows_in_order(const Place& place, std::size_t n, const Word& word) {
  array<std::uint64_t, Place> range(place, 2);
  const std::uint64_t none[] = {~std::uint64_t{0}, 0};
  place.copy_from_host(range.data(), none, sizeof(none));
  const std::size_t apart = ceil_div<std::size_t>(n, 16);
  place.for_each(apart, note_range<Word>{word, n, apart, range.data()});
  std::uint64_t seen[2];
  place.copy_to_host(seen, range.data(), sizeof(seen));
  const auto bits = static_cast<std::uint32_t>(std::bit_width(seen[1] - seen[0]));
  const auto sorted = [&]<class Key>(Key) {
    const auto all = sort_pairs(place, words_and_rows<Key, Word>{word, seen[0], n}, bits);
    return array_of(place, n, row_of_item<std::remove_cvref_t<decltype(*all.items())>>{all.items()});
  };
  auto rows = bits <= 32 ? sorted(std::uint32_t()) : sorted(std::uint64_t());
  place.synchronize();
  return rows;
}

}  // namespace roost::detail
