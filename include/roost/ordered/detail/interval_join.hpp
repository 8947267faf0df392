#pragma once

// Interval joins: see roost/ordered/interval_join.hpp.

#include "roost/ordered/detail/two_sides.hpp"
#include "roost/ordered/interval_join.hpp"

namespace roost::detail {

/// For each left row, the position of its first match, and how many there are.
template <class From, class To>
struct find_interval {
  using kind = order_word<element_of<From>>;
  using word = typename kind::word;
  From from;
  To to;
  bool left, right;  // whether these ends are included
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  const std::uint64_t* begins_of_left;
  const word* times;
  std::uint64_t rights;
  std::uint64_t* firsts;
  std::uint64_t* counts;

  struct searcher {
    const find_interval* all;
    std::uint64_t first = 0, end = 0;
    ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t) {
      const std::uint64_t begin = all->offsets[group], stop = all->begins_of_left[group];
      if (i < stop) return;
      const word* const times = all->times;
      const std::uint64_t row = all->rows[i] - all->rights;
      const word from = kind::of(all->from[row]), to = kind::of(all->to[row]);
      const bool left = all->left, right = all->right;
      first = search_from(begin, stop, first,
                          [&](std::uint64_t p) { return times[p] < from || (!left && times[p] == from); });
      end = search_from(begin, stop, end,
                        [&](std::uint64_t p) { return times[p] < to || (right && times[p] == to); });
      all->firsts[row] = first;
      all->counts[row] = end > first ? end - first : 0;
    }
  };
  ROOST_FN searcher worker() const { return {this}; }
};

template <class Row>
struct write_interval_match {
  const std::uint32_t* rows;
  const std::uint64_t* firsts;
  Row* left;
  Row* right;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t row, std::uint64_t k) const {
    left[i] = static_cast<Row>(row);
    right[i] = static_cast<Row>(rows[firsts[row] + k]);
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
  detail::check_row_count(n + right.size(), where);
  if (n > no_row<Row> || right.size() > no_row<Row>) {
    detail::raise<invalid_argument>({where, ": ", detail::larger(n, right.size()),
                                     " rows cannot be numbered by ", sizeof(Row),
                                     " bytes; give a larger type"});
  }
  detail::refuse_nan(place, left.values, where);
  detail::refuse_nan(place, ends.values, where);
  const auto all = detail::group_two_sides(place, left.keys, right.keys, right.values, where);
  array<std::uint64_t, Place> firsts(place, n), offsets = detail::zeros(place, n + 1);
  using find = detail::find_interval<detail::sequence_as_of<time, From>, detail::sequence_as_of<time, To>>;
  const bool both = closed == window_closed::both;
  detail::for_each_grouped(place, all.rows,
                           find{.from = left.values,
                                .to = ends.values,
                                .left = both || closed == window_closed::left,
                                .right = both || closed == window_closed::right,
                                .rows = all.rows.rows().data(),
                                .offsets = all.rows.offsets().data(),
                                .begins_of_left = all.begins_of_left.data(),
                                .times = all.times.data(),
                                .rights = all.rights,
                                .firsts = firsts.data(),
                                .counts = offsets.data()});
  place.exclusive_scan(offsets.data(), offsets.data(), n + 1);
  const std::uint64_t total = detail::read_one(place, offsets.data() + n);
  auto [left_rows, right_rows] = detail::room_for_matches<Row, Row>(place, total, where);
  detail::expand(place, offsets.data(), n, total,
                 detail::write_interval_match<Row>{all.rows.rows().data(), firsts.data(), left_rows.data(),
                                                   right_rows.data()});
  place.synchronize();
  return {std::move(left_rows), std::move(right_rows)};
}

}  // namespace roost
