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

/// Where the left rows of a group begin, and how many there are.
template <class Items>
struct begin_of_left {
  Items items;
  const std::uint64_t* offsets;
  std::uint64_t rights;
  ROOST_FN std::uint64_t operator()(std::size_t group) const {
    return lower_bound(offsets[group], offsets[group + 1],
                       [&](std::uint64_t i) { return items.row(i) < rights; });
  }
};
struct left_rows_of_group {
  const std::uint64_t* begins;
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t group) const { return offsets[group + 1] - begins[group]; }
};

/// What kernels see of the groups of both sides. In each, the right rows come first, by time, those with
/// equal times in their order; then the left rows, in their order.
template <class Word>
struct two_sides_view {
  ordered_items<Word> items;
  const std::uint64_t* offsets;
  const std::uint64_t* begins_of_left;  // of each group
  std::uint64_t rights;
  /// The left row at a position, as its side numbers it.
  ROOST_FN std::uint32_t left_row(std::uint64_t i) const {
    return static_cast<std::uint32_t>(items.row(i) - rights);
  }
  /// The first right row of a group with a time after t, or also at t unless `past` is true; looked for from
  /// `near` on.
  ROOST_FN std::uint64_t search(std::uint64_t group, Word t, bool past, std::uint64_t near) const {
    return search_from(offsets[group], begins_of_left[group], near, [&](std::uint64_t p) {
      const Word other = items.word(p);
      return other < t || (past && other == t);
    });
  }
  /// Where to look for the time of left row i: a thread of a host has searched for the left row before it,
  /// and `last` is where that ended; on a GPU, at the same part of the right rows.
  ROOST_FN std::uint64_t near([[maybe_unused]] std::uint64_t group, [[maybe_unused]] std::uint64_t i,
                              [[maybe_unused]] std::uint64_t last) const {
#if ROOST_ON_DEVICE
    const std::uint64_t first = offsets[group], begin = begins_of_left[group], end = offsets[group + 1];
    return first + (i - begin) * (begin - first) / (end - begin);
#else
    return last;
#endif
  }
};

template <class Put>
struct at_left_position {
  Put put;
  const std::uint64_t* begins;
  ROOST_FN at_left_position worker() const { return *this; }
  ROOST_FN void operator()(std::uint64_t j, std::uint64_t group, std::uint64_t k) {
    put(j, begins[group] + k, group);
  }
};
template <class Word, class Place>
struct two_sides {
  ordered_groups<Word, Place> groups;
  array<std::uint64_t, Place> begins_of_left{}, left_offsets{};
  std::size_t rights = 0, lefts = 0;
  two_sides_view<Word> view() const {
    return {groups.items(), groups.offsets.data(), begins_of_left.data(), rights};
  }

  /// put(j, i, group) for each left row, which is at position i; j counts these rows.
  template <class Put>
  void for_each_left(const Place& place, const Put& put) const {
    if (lefts != 0) {
      expand(place, left_offsets.data(), groups.offsets.size() - 1, lefts,
             at_left_position<Put>{put, begins_of_left.data()});
    }
  }
};

/// Keys and times as sequences of pairs, one for each row; no time is NaN. Synchronises.
template <class Place, class Left, class Right>
auto group_two_sides(const Place& place, const Left& left, const Right& right, const char* where) {
  using left_keys = decltype(left.keys);
  using right_keys = decltype(right.keys);
  using left_times = decltype(left.values);
  using right_times = decltype(right.values);
  using word = typename order_word_at<right_times>::kind::word;
  static_assert(std::is_same_v<element_of<left_keys>, element_of<right_keys>>,
                "both sides of a join need keys of the same type");
  const std::size_t rights = right.size(), n = rights + left.size();
  check_row_count(n, where);
  const of_both<element<left_keys>, element<right_keys>> keys{{left.keys}, {right.keys}, rights};
  const of_both<order_word_at<left_times>, order_word_at<right_times>> words{
      {left.values}, {right.values}, rights};
  const order_facts facts = order_facts_of(place, n, rights, words);
  two_sides<word, Place> all{group_in_order(place, rows_to_group{n, keys, rights, words, facts, where})};
  const auto items = all.groups.items();
  const auto offsets = all.groups.offsets.span();
  const std::size_t groups = offsets.size() - 1;
  all.begins_of_left = array_of(place, groups, begin_of_left{items, offsets.data(), rights});
  all.left_offsets = array<std::uint64_t, Place>(place, groups + 1);
  write_offsets(place, groups, left_rows_of_group{all.begins_of_left.data(), offsets.data()},
                all.left_offsets.data());
  all.rights = rights;
  all.lefts = left.size();
  return all;
}

}  // namespace roost::detail
