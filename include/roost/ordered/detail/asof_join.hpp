#pragma once

// As-of joins: see roost/ordered/asof_join.hpp.

#include "roost/ordered/asof_join.hpp"
#include "roost/ordered/detail/two_sides.hpp"

namespace roost::detail {

/// Finds the right row of a left one.
template <class LeftTimes, class Row>
struct find_asof {
  using kind = order_word<element_of<LeftTimes>>;
  using word = typename kind::word;

  LeftTimes left_times;
  asof_options<element_of<LeftTimes>> options;
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  const std::uint64_t* begins_of_left;
  const word* times;
  std::uint64_t rights;
  Row* results;

  /// The number of a position's row, unless there is none or it is too far from time t.
  ROOST_FN bool is_near(std::uint64_t at, word t) const {
    return kind::between(larger(times[at], t), smaller(times[at], t)) <= options.tolerance;
  }

  struct searcher {
    const find_asof* all;
    std::uint64_t last = 0;  // where the last search ended

    ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t) {
      const std::uint64_t first = all->offsets[group], end = all->begins_of_left[group];
      if (i < end) return;
      const word* const times = all->times;
      const std::uint64_t row = all->rows[i] - all->rights;
      const word t = kind::of(all->left_times[row]);
      const bool exact = all->options.allow_exact;
      const auto direction = all->options.direction;
      constexpr std::uint64_t none = ~std::uint64_t{0};
      std::uint64_t before = none, after = none;
      if (direction != asof_direction::forward) {
        last = search_from(first, end, last,
                           [&](std::uint64_t p) { return times[p] < t || (exact && times[p] == t); });
        if (last != first) before = last - 1;
      }
      if (direction != asof_direction::backward) {
        const std::uint64_t at = search_from(
            first, end, last, [&](std::uint64_t p) { return times[p] < t || (!exact && times[p] == t); });
        if (at != end) after = at;
        if (direction == asof_direction::forward) last = at;
      }
      std::uint64_t found = before;
      if (before == none ||
          (after != none && kind::between(times[after], t) < kind::between(t, times[before])))
        found = after;
      all->results[row] =
          found != none && all->is_near(found, t) ? static_cast<Row>(all->rows[found]) : no_row<Row>;
    }
  };
  ROOST_FN searcher worker() const { return {this}; }
};

}  // namespace roost::detail

namespace roost {

template <class Row, detail::place_comes_first Place, class LeftKeys, class LeftTimes, class RightKeys,
          class RightTimes>
array<Row, Place> asof_join(const Place& place, const LeftKeys& left_keys, const LeftTimes& left_times,
                            const RightKeys& right_keys, const RightTimes& right_times,
                            const asof_options<detail::element_of<LeftTimes>>& options) {
  using time = detail::element_of<LeftTimes>;
  static_assert(std::is_same_v<time, detail::element_of<RightTimes>>,
                "both sides of a join need times of the same type");
  static_assert(std::is_unsigned_v<Row>, "rows are numbered by unsigned integers");
  constexpr const char* where = "roost::asof_join";
  const auto left = detail::zip_checked(left_keys, left_times, where);
  const auto right = detail::zip_checked(right_keys, right_times, where);
  const std::size_t n = left.size();
  detail::check_row_count(n + right.size(), where);
  if (right.size() > no_row<Row>) {
    detail::raise<invalid_argument>({where, ": ", right.size(), " rows cannot be numbered by ", sizeof(Row),
                                     " bytes; give a larger type"});
  }
  if constexpr (std::is_floating_point_v<time>) {
    if (!(options.tolerance >= 0))
      detail::raise<invalid_argument>({where, ": a tolerance below 0, or NaN; give 0 or more"});
  }
  detail::refuse_nan(place, left.values, where);
  array<Row, Place> results(place, n);
  if (right.size() == 0) {
    place.fill(results.data(), 0xff, results.bytes());
    place.synchronize();
    return results;
  }
  const auto all = detail::group_two_sides(place, left.keys, right.keys, right.values, where);
  using find = detail::find_asof<detail::sequence_as_of<time, LeftTimes>, Row>;
  detail::for_each_grouped(place, all.rows,
                           find{.left_times = left.values,
                                .options = options,
                                .rows = all.rows.rows().data(),
                                .offsets = all.rows.offsets().data(),
                                .begins_of_left = all.begins_of_left.data(),
                                .times = all.times.data(),
                                .rights = all.rights,
                                .results = results.data()});
  place.synchronize();
  return results;
}

}  // namespace roost
