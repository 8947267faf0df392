#pragma once

// Interval joins: see roost/ordered/interval_join.hpp.

#include "roost/ordered/detail/two_sides.hpp"
#include "roost/ordered/interval_join.hpp"

namespace roost::detail {

/// For each left row, the position of its first match, and how many there are.
template <class To>
struct find_interval {
  using kind = order_word<element_of<To>>;
  using word = typename kind::word;
  To to;
  bool left, right;  // whether these ends are included
  two_sides_view<word> sides;
  std::uint64_t* firsts;
  std::uint64_t* counts;
  std::uint64_t first = 0, end = 0;  // where the last searches ended

  ROOST_FN void operator()(std::uint64_t, std::uint64_t i, std::uint64_t group) {
    const std::uint64_t row = sides.left_row(i);
    first = sides.search(group, sides.items.word(i), !left, sides.near(group, i, first));
    end = sides.search(group, kind::of(to[row]), right, sides.near(group, i, end));
    firsts[row] = first;
    counts[row] = end > first ? end - first : 0;
  }
};

template <class Row, class Items>
struct write_interval_match {
  Items items;
  const std::uint64_t* firsts;
  Row* left;
  Row* right;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t row, std::uint64_t k) const {
    left[i] = static_cast<Row>(row);
    right[i] = static_cast<Row>(items.row(firsts[row] + k));
  }
};

}  // namespace roost::detail

namespace roost {

template <class Row, detail::place_comes_first Place, class LeftKeys, class From, class To, class RightKeys,
          class RightTimes>
joined_rows<Row, Place> interval_join(const Place& place, const LeftKeys& left_keys,
                                      const intervals<From, To>& left_times, const RightKeys& right_keys,
                                      const RightTimes& right_times, window_closed closed) {
  using time = detail::element_of<From>;
  static_assert(
      std::is_same_v<time, detail::element_of<To>> && std::is_same_v<time, detail::element_of<RightTimes>>,
      "both sides of a join need times of the same type");
  static_assert(std::is_unsigned_v<Row>, "rows are numbered by unsigned integers");
  constexpr const char* where = "roost::interval_join";
  const auto left = detail::zip_checked(left_keys, left_times.from, where);
  const auto ends = detail::zip_checked(left_keys, left_times.to, where);
  const auto right = detail::zip_checked(right_keys, right_times, where);
  const std::size_t n = left.size();
  if (n > no_row<Row> || right.size() > no_row<Row>) {
    detail::raise<invalid_argument>({where, ": ", detail::larger(n, right.size()),
                                     " rows cannot be numbered by ", sizeof(Row),
                                     " bytes; give a larger type"});
  }
  detail::refuse_nan(place, ends.values, where);
  detail::refuse_nan(place, left.values, where);
  detail::refuse_nan(place, right.values, where);
  const auto all = detail::group_two_sides(place, left, right, where);
  array<std::uint64_t, Place> firsts(place, n), offsets = detail::zeros(place, n + 1);
  const bool both = closed == window_closed::both;
  using find = detail::find_interval<detail::sequence_as_of<time, To>>;
  all.for_each_left(
      place, find{ends.values, both || closed == window_closed::left, both || closed == window_closed::right,
                  all.view(), firsts.data(), offsets.data()});
  place.exclusive_scan(offsets.data(), offsets.data(), n + 1);
  const std::uint64_t total = detail::read_one(place, offsets.data() + n);
  auto [left_rows, right_rows] = detail::room_for_matches<Row, Row>(place, total, where);
  detail::expand(
      place, offsets.data(), n, total,
      detail::write_interval_match{all.groups.items(), firsts.data(), left_rows.data(), right_rows.data()});
  place.synchronize();
  return {std::move(left_rows), std::move(right_rows)};
}

}  // namespace roost
