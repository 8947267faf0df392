#pragma once

#include "roost/ordered/grouped_rows.hpp"

// Right and left rows of two batches by key, for joins by time.

namespace roost::detail {

/// Right rows first: row r of the right side is r, and row l of the left side is rights + l.
template <class Left, class Right>
struct both_keys {
  Left left;
  Right right;
  std::size_t rights;
  ROOST_FN auto operator()(std::size_t row) const { return row < rights ? right[row] : left[row - rights]; }
};

/// Where the left rows of a group begin.
struct begin_of_left {
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  std::uint64_t rights;
  ROOST_FN std::uint64_t operator()(std::size_t group) const {
    return lower_bound(offsets[group], offsets[group + 1], [&](std::uint64_t i) { return rows[i] < rights; });
  }
};

/// Groups of the rows of both sides. In each, the right rows come first, by time, those with equal times in
/// their order.
template <class Word, class Place>
struct two_sides {
  grouped_rows<Place> rows;
  std::size_t rights = 0;
  array<std::uint64_t, Place> begins_of_left;  // of each group
  array<Word, Place> times;                    // of the right rows, at their positions in `rows`
};

template <class Times>
struct write_right_time {
  const std::uint32_t* rows;
  const std::uint64_t* begins_of_left;
  order_word_at<Times> word;
  typename order_word_at<Times>::kind::word* target;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t) const {
    if (i < begins_of_left[group]) target[i] = word(rows[i]);
  }
};

/// Keys and times as sequences, one of each for every row. Synchronises.
template <class Place, class LeftKeys, class RightKeys, class RightTimes>
auto group_two_sides(const Place& place, const LeftKeys& left_keys, const RightKeys& right_keys,
                     const RightTimes& right_times, const char* where) {
  static_assert(std::is_same_v<element_of<LeftKeys>, element_of<RightKeys>>,
                "both sides of a join need keys of the same type");
  refuse_nan(place, right_times, where);
  const std::size_t rights = right_keys.size();
  const order_word_at<RightTimes> word{right_times};
  two_sides<typename order_word_at<RightTimes>::kind::word, Place> all;
  all.rights = rights;
  all.rows =
      group_in_order(place, rights + left_keys.size(),
                     both_keys<LeftKeys, RightKeys>{left_keys, right_keys, rights}, rights, word, where);
  const std::uint32_t* const rows = all.rows.rows().data();
  all.begins_of_left =
      array_of(place, all.rows.group_count(), begin_of_left{rows, all.rows.offsets().data(), rights});
  all.times = decltype(all.times)(place, all.rows.size());
  for_each_grouped(place, all.rows,
                   write_right_time<RightTimes>{rows, all.begins_of_left.data(), word, all.times.data()});
  return all;
}

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

}  // namespace roost::detail
