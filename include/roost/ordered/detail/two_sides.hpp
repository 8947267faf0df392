#pragma once

#include "roost/ordered/grouped_rows.hpp"

// Right and left rows of two batches by key, for joins by time.

namespace roost::detail {

/// The first position in [first, last) for which before(position) is false, or `last`, looked for from
/// `near` on in steps that double.
template <class Before>
ROOST_FN std::uint64_t search_from(std::uint64_t first, std::uint64_t last, std::uint64_t near,
                                   const Before& before) {
  std::uint64_t step = 1;
  if (near < first || near > last) near = first;
  if (near < last && before(near)) {
    for (first = near + 1; last - first >= step && before(first + step - 1); step *= 2) first += step;
    last = smaller(last, first + step - 1);
  } else {
    for (last = near; last - first >= step && !before(last - step); step *= 2) last -= step;
    if (last - first >= step) first = last - step + 1;
  }
  return lower_bound(first, last, before);
}

/// What functions of rows return for those of both sides, the right ones first: row r of the right side is r,
/// and row l of the left side is rights + l.
template <class Left, class Right>
struct of_both {
  Left left;
  Right right;
  std::size_t rights;
  ROOST_FN auto operator()(std::size_t row) const { return row < rights ? right(row) : left(row - rights); }
};

/// Where the left rows of a group begin.
template <class Word>
struct begin_of_left {
  const ordered_row<Word>* rows;
  const std::uint64_t* offsets;
  std::uint64_t rights;
  ROOST_FN std::uint64_t operator()(std::size_t group) const {
    return lower_bound(offsets[group], offsets[group + 1],
                       [&](std::uint64_t i) { return rows[i].row < rights; });
  }
};

/// What kernels see of the groups of both sides. In each, the right rows come first, by time, those with
/// equal times in their order; then the left rows, in their order, with their times.
template <class Word>
struct two_sides_view {
  const ordered_row<Word>* rows;
  const std::uint64_t* offsets;
  const std::uint64_t* begins_of_left;  // of each group
  std::uint64_t rights;
  ROOST_FN Word time(std::uint64_t i) const { return rows[i].word; }
  /// The first right row of a group with a time after t, or also at t unless `past` is true.
  ROOST_FN std::uint64_t search(std::uint64_t group, Word t, bool past, std::uint64_t near) const {
    return search_from(offsets[group], begins_of_left[group], near,
                       [&](std::uint64_t p) { return time(p) < t || (past && time(p) == t); });
  }
};

template <class Word, class Place>
struct two_sides {
  ordered_groups<Word, Place> groups;
  array<std::uint64_t, Place> begins_of_left{};
  two_sides_view<Word> view{};

  template <class Put>
  void for_each(const Place& place, const Put& put) const {
    const std::size_t n = groups.rows.size();
    if (n != 0) expand(place, view.offsets, groups.offsets.size() - 1, n, put);
  }
};

/// Keys and times as sequences of pairs, one for each row. Synchronises.
template <class Place, class Left, class Right>
auto group_two_sides(const Place& place, const Left& left, const Right& right, const char* where) {
  using left_keys = decltype(left.keys);
  using right_keys = decltype(right.keys);
  using left_times = decltype(left.values);
  using right_times = decltype(right.values);
  using word = typename order_word_at<right_times>::kind::word;
  static_assert(std::is_same_v<element_of<left_keys>, element_of<right_keys>>,
                "both sides of a join need keys of the same type");
  refuse_nan(place, left.values, where);
  refuse_nan(place, right.values, where);
  const std::size_t rights = right.size();
  const of_both<element<left_keys>, element<right_keys>> keys{{left.keys}, {right.keys}, rights};
  const of_both<order_word_at<left_times>, order_word_at<right_times>> words{
      {left.values}, {right.values}, rights};
  two_sides<word, Place> all{group_in_order(place, rights + left.size(), keys, rights, words, where)};
  const ordered_row<word>* const rows = all.groups.rows.data();
  const auto offsets = all.groups.offsets.span();
  all.begins_of_left = array_of(place, offsets.size() - 1, begin_of_left<word>{rows, offsets.data(), rights});
  all.view = {rows, offsets.data(), all.begins_of_left.data(), rights};
  return all;
}

}  // namespace roost::detail
