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

/// What decides how rows are ordered: the least and the greatest word, and whether one of the first rows is
/// less than the row before it.
struct order_facts {
  std::uint64_t least = ~std::uint64_t{0}, greatest = 0, descends = 0;
};

/// A team notes those of consecutive rows, many of them, since words in order note each more than all before.
template <class Word>
struct note_order {
  static constexpr int threads = 256;
  Word word;
  std::size_t n, ordered, rows;  // rows: of a team
  order_facts* seen;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::size_t first = index * rows;
    order_facts mine;
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::size_t>(rows, n - first)),
                [&](std::uint32_t k) {
                  const std::uint64_t here = word(first + k);
                  mine.least = smaller(mine.least, here);
                  mine.greatest = larger(mine.greatest, here);
                  if (first + k + 1 < ordered && word(first + k + 1) < here) mine.descends = 1;
                });
    if (mine.least < peek(seen->least)) fetch_min(seen->least, mine.least);
    if (mine.greatest > peek(seen->greatest)) fetch_max(seen->greatest, mine.greatest);
    if (mine.descends != 0 && peek(seen->descends) == 0) fetch_max(seen->descends, std::uint64_t{1});
  }
};

/// Of the words of n rows; only the first `ordered` may descend. Synchronises.
template <class Place, class Word>
order_facts order_facts_of(const Place& place, std::size_t n, std::size_t ordered, const Word& word) {
  order_facts facts;
  array<order_facts, Place> seen(place, 1);
  place.copy_from_host(seen.data(), &facts, sizeof(facts));
  const std::size_t rows = larger<std::size_t>(1 << 13, ceil_div<std::size_t>(n, 1 << 10));
  place.launch(ceil_div(n, rows), 0, note_order<Word>{word, n, ordered, rows, seen.data()});
  place.copy_to_host(&facts, seen.data(), sizeof(facts));
  return facts;
}

// Forms of an item: a row, and the word that orders it less the least word.

/// Both in one number, if they have room there.
struct packed_form {
  using item = std::uint64_t;
  std::uint32_t row_bits = 0;
  ROOST_FN item operator()(std::uint32_t row, std::uint64_t word) const { return word << row_bits | row; }
  ROOST_FN std::uint32_t row(item i) const {
    return static_cast<std::uint32_t>(i & ((std::uint64_t{1} << row_bits) - 1));
  }
  ROOST_FN std::uint64_t word(item i) const { return i >> row_bits; }
  bool operator()(item a, item b) const { return a < b; }
};

struct __attribute__((packed, aligned(4))) ordered_row {
  std::uint32_t row;
  std::uint64_t word;
};
struct separate_form {
  using item = ordered_row;
  ROOST_FN item operator()(std::uint32_t row, std::uint64_t word) const { return {row, word}; }
  ROOST_FN std::uint32_t row(const item& i) const { return i.row; }
  ROOST_FN std::uint64_t word(const item& i) const { return i.word; }
  bool operator()(const item& a, const item& b) const {
    const std::uint64_t x = a.word, y = b.word;
    return x < y || (x == y && a.row < b.row);
  }
};

/// For a GPU, where nobody needs the words.
struct row_form {
  using item = std::uint32_t;
  ROOST_FN item operator()(std::uint32_t row, std::uint64_t) const { return row; }
  ROOST_FN std::uint32_t row(item i) const { return i; }
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

template <class Sorted, class Form>
struct item_of_sorted {
  const Sorted* sorted;
  Form form;
  ROOST_FN auto operator()(std::size_t i) const { return form(sorted[i].value, sorted[i].key); }
};

/// The items of rows 0 to n - 1 in ascending order of their words, stably. Synchronises.
template <class Place, class Word, class Form>
auto items_in_order(const Place& place, std::size_t n, const Word& word, const order_facts& facts,
                    const Form& form) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(facts.greatest - facts.least));
  const auto sorted = [&]<class Key>(Key) {
    const auto all = sort_pairs(place, words_and_rows<Key, Word>{word, facts.least, n}, bits);
    auto items = array_of(
        place, n, item_of_sorted<std::remove_cvref_t<decltype(*all.items())>, Form>{all.items(), form});
    place.synchronize();
    return items;
  };
  return bits <= 32 ? sorted(std::uint32_t()) : sorted(std::uint64_t());
}

}  // namespace roost::detail
