#pragma once

// As-of joins: see roost/ordered/asof_join.hpp.

#include "roost/ordered/asof_join.hpp"
#include "roost/ordered/detail/asof_walk.hpp"
#include "roost/ordered/detail/two_sides.hpp"

namespace roost::detail {

/// Finds the right row of a left one.
template <class Time, class Row>
struct find_asof {
  using kind = order_word<Time>;
  using word = typename kind::word;

  two_sides_view<word> all;
  asof_options<Time> options;
  std::uint32_t* left_rows;  // of all j
  put_result<Row> put;
  std::uint64_t last = 0;  // where the last search ended

  /// The right row at a position, if its time is near enough to t.
  ROOST_FN Row near_row(std::uint64_t at, word t) const {
    const word other = all.items.word(at);
    return kind::between(larger(other, t), smaller(other, t)) <= options.tolerance
               ? static_cast<Row>(all.items.row(at))
               : no_row<Row>;
  }

  ROOST_FN void operator()(std::uint64_t j, std::uint64_t i, std::uint64_t group) {
    const std::uint64_t first = all.offsets[group], end = all.begins_of_left[group];
    const word t = all.items.word(i);
    last = all.near(group, i, last);
    constexpr std::uint64_t none = ~std::uint64_t{0};
    std::uint64_t before = none, after = none;
    if (options.direction != asof_direction::forward) {
      last = all.search(group, t, options.allow_exact, last);
      if (last != first) before = last - 1;
    }
    if (options.direction != asof_direction::backward) {
      last = all.search(group, t, !options.allow_exact, last);
      if (last != end) after = last;
    }
    std::uint64_t found = before;
    if (before == none ||
        (after != none && kind::between(all.items.word(after), t) < kind::between(t, all.items.word(before))))
      found = after;
    left_rows[j] = all.left_row(i);
    put(j, found == none ? no_row<Row> : near_row(found, t));
  }
};

/// The join of sides in the order of time that have few keys, or none; nothing for others.
template <class Row, class Left, class Right, class Time>
std::optional<array<Row, host>> asof_in_order(const host& cpu, const Left& left, const Right& right,
                                              const asof_options<Time>& options, const char* where) {
  using kind = order_word<Time>;
  using key = element_of<decltype(left.keys)>;
  const std::size_t lefts = left.size(), rights = right.size(), n = rights + lefts;
  check_row_count(n, where);
  if (lefts == 0 || rights == 0) return std::nullopt;
  const order_word_at<decltype(left.values)> left_word{left.values};
  const order_word_at<decltype(right.values)> right_word{right.values};
  if (order_facts_of(cpu, lefts, lefts, left_word).descends != 0 ||
      order_facts_of(cpu, rights, rights, right_word).descends != 0)
    return std::nullopt;
  few_rows numbered;
  if constexpr (!std::is_same_v<key, none>) {
    const of_both<element<decltype(left.keys)>, element<decltype(right.keys)>> both{
        {left.keys}, {right.keys}, rights};
    auto few = index_few<key>(cpu, n, values_at{both});
    if (!few) return std::nullopt;
    numbered = std::move(few->rows);
  }
  array<Row, host> results(cpu, lefts);
  constexpr auto absent = asof_walk<int, int>::none;
  const auto walk = [&](bool back, const auto& found) {
    asof_walk(cpu, asof_side{left_word, lefts}, asof_side{right_word, rights}, numbered, options.allow_exact,
              back)
        .run(found);
  };
  const auto distance = [&](std::uint32_t row, auto t) {
    const auto other = right_word(row);
    return kind::between(larger(other, t), smaller(other, t));
  };
  const auto put = [&](std::size_t l, std::uint32_t row) {
    const bool is_near = row != absent && distance(row, left_word(l)) <= options.tolerance;
    results[l] = is_near ? static_cast<Row>(row) : no_row<Row>;
  };
  if (options.direction != asof_direction::nearest) {
    walk(options.direction == asof_direction::forward, put);
  } else {
    array<std::uint32_t, host> before(cpu, lefts);
    walk(false, [&](std::size_t l, std::uint32_t row) { before[l] = row; });
    walk(true, [&](std::size_t l, std::uint32_t after) {
      const std::uint32_t row = before[l];
      const auto t = left_word(l);
      const bool later = row == absent || (after != absent && distance(after, t) < distance(row, t));
      put(l, later ? after : row);
    });
  }
  return results;
}

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
  if (right.size() > no_row<Row>) {
    detail::raise<invalid_argument>({where, ": ", right.size(), " rows cannot be numbered by ", sizeof(Row),
                                     " bytes; give a larger type"});
  }
  if constexpr (std::is_floating_point_v<time>) {
    if (!(options.tolerance >= 0))
      detail::raise<invalid_argument>({where, ": a tolerance below 0, or NaN; give 0 or more"});
  }
  detail::refuse_nan(place, left.values, where);
  detail::refuse_nan(place, right.values, where);
  if constexpr (std::is_same_v<Place, host>) {
    if (auto results = detail::asof_in_order<Row>(place, left, right, options, where))
      return std::move(*results);
  }
  const auto all = detail::group_two_sides(place, left, right, where);
  array<std::uint32_t, Place> left_rows(place, n);  // in the order of the groups
  const auto find = [&](const auto& put) {
    all.for_each_left(place, detail::find_asof<time, Row>{all.view(), options, left_rows.data(), put});
  };
  constexpr bool in_order = std::is_same_v<detail::element_of<LeftKeys>, none>;
  auto results = detail::results_by_row<Row>(place, left_rows.span(), n, find, 0xff, in_order);
  place.synchronize();
  return results;
}

template <class Row, detail::place_comes_first Place, class LeftTimes, class RightTimes>
array<Row, Place> asof_join(const Place& place, const LeftTimes& left_times, const RightTimes& right_times,
                            const asof_options<detail::element_of<LeftTimes>>& options) {
  const auto no_keys = [](const auto& times) {
    return computed(detail::as_sequence(times).size(), detail::constant<none>{});
  };
  return asof_join<Row>(place, no_keys(left_times), left_times, no_keys(right_times), right_times, options);
}

}  // namespace roost
