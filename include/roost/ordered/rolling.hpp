#pragma once

#include <limits>

#include "roost/functional.hpp"
#include "roost/ordered/grouped_rows.hpp"

/// \file
/// Rolling windows: for each row some rows around it in its group, by number or by time, and the combined
/// values of these.

namespace roost {

/// Which ends of its time a window includes. `right` is (from, to], `left` [from, to).
enum class window_closed { right, left, both, neither };

/// The rows of a window by number: those from `first` to `last` after the row of the window, both included;
/// negative numbers are before it. {-2, 0}: three rows up to this one.
struct rows_around {
  std::int64_t first = 0, last = 0;
};

/// The times of a window: from `before` earlier than that of its row to `after` later. Distances of integers
/// are std::uint64_t, those of floats floats.
template <class Time>
struct time_around {
  typename detail::order_word<Time>::distance before{}, after{};
  window_closed closed = window_closed::right;
};

/// A window: positions [first, end) in the rows of grouped_rows. If it has no rows, they are equal.
struct row_window {
  std::uint32_t first, end;
};

/// A window for each position of grouped_rows::rows(). Windows serve several results.
template <class Place>
struct row_windows {
  array<row_window, Place> windows;
  std::uint32_t longest = 0;  ///< the number of rows of the longest one
};

/// Windows by numbers of rows. Windows end with their groups. Synchronises.
///
///     const auto rows = roost::group_rows(gpu, sensors, times);
///     const auto last_3 = roost::windows_by_rows(gpu, rows, {-2, 0});
///     const auto sums = roost::combine_windows(gpu, rows, last_3, values, roost::plus(), 0.0);
template <class Place>
row_windows<Place> windows_by_rows(const Place& place, const grouped_rows<Place>& all,
                                   const rows_around& rows);

/// Windows by time. A window has all rows of its group in its span of time: also later rows with the time of
/// its own row, as in SQL and in polars. `all` must have been ordered by `times`, ascending
/// (invalid_argument otherwise, and for NaN or a distance below 0). A span that would begin before the least
/// number of the type, or end after the greatest, ends there. Synchronises.
///
///     const auto minutes = roost::windows_by_time(gpu, rows, times, {.before = 300});
template <class Place, class Times>
row_windows<Place> windows_by_time(const Place& place, const grouped_rows<Place>& all, const Times& times,
                                   const time_around<detail::element_of<Times>>& span);

/// The number of rows of each row's window, in the order of the rows of the batch; 0 for rows in no group.
/// Asynchronous on cuda.
template <class Place>
array<std::uint32_t, Place> window_sizes(const Place& place, const grouped_rows<Place>& all,
                                         const row_windows<Place>& windows);

/// The first row of each row's window, or its last; no_row<std::uint32_t> if it has none. Asynchronous on
/// cuda.
template <class Place>
array<std::uint32_t, Place> window_ends(const Place& place, const grouped_rows<Place>& all,
                                        const row_windows<Place>& windows, bool last);

/// result[row] = f over the values of the rows of its window, in the order of the group; `missing` for a
/// window without rows. `values`: one for each row of the batch. `f`: an associative function; results have
/// the type of the values. Rows that are in no group have results without meaning.
///
/// Nothing is ever subtracted, so a sum does not drift, and one value does not change the results of windows
/// without it. How the calls of `f` are nested depends only on the size of the window and on its position in
/// its group, so results are the same on every place, with any number of threads. Up to 32 values are
/// combined one after the other. A longer window is split where blocks of 32 rows begin, counted from the
/// first row of the group: f(f(a, b), c), where `a` are the rows before the first such border, combined from
/// the last to the first, f(x, rest); `b` are the combined values of the blocks between, as far as there are
/// any, which are themselves a window of up to 32 values, or a longer one; and `c` are the rows after the
/// last border, one after the other. With b, the calls for `a` of all levels come before, and those for `c`
/// after it.
///
/// Costs a few reads for each row and level of blocks (32, 1024, ... rows), up to 32 in the innermost one.
/// Takes memory for a value of each row, and for three if a window has more than 32 rows. Synchronises.
/// Throws invalid_argument for another number of values, out_of_memory, device_error.
template <class Place, class Values, class F>
auto combine_windows(const Place& place, const grouped_rows<Place>& all, const row_windows<Place>& windows,
                     const Values& values, const F& f, const detail::element_of<Values>& missing);

/// Rows of windows by the order of their values, for medians and quantiles. Of each row of the batch,
/// `numbers` has m numbers, row after row; for each of these, the result has the row that comes so many rows
/// after the least in the window of the row, if that is in ascending order of values, equal ones in the order
/// of the group: 0 is the least; no_row<std::uint32_t> if the window has no more rows. Without meaning for
/// rows in no group.
///
/// `values`: what group_rows can order by, one for each row of the batch. `numbers`: a multiple of the size
/// of the batch (invalid_argument otherwise). Costs group_rows by the values, and for each bit of the size of
/// the largest group a pass over the rows and two reads for each number, however long windows are. Takes 20
/// bytes for each row and 16 for each number. Synchronises.
template <class Place, class Values, class Numbers>
array<std::uint32_t, Place> nth_of_windows(const Place& place, const grouped_rows<Place>& all,
                                           const row_windows<Place>& windows, const Values& values,
                                           const Numbers& numbers);

/// How many values there are, their mean, and the sum of the squares of their distances from it: for
/// variances by combine_windows, running or group_by, without cancellation.
struct moments {
  double count = 0, mean = 0, squares = 0;

  /// Those of one value. An infinite one has no distance from a mean: then the variance is NaN.
  ROOST_FN static moments of(double value) { return {1, value, value - value}; }
  /// Divided by count - ddof; NaN if there are too few values.
  ROOST_FN double variance(double ddof = 1) const {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    return count > ddof ? squares / (count - ddof) : nan;
  }
};
/// The moments of the values of both (Chan, Golub and LeVeque 1979).
struct merge_moments {
  ROOST_FN moments operator()(const moments& a, const moments& b) const {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double n = a.count + b.count, apart = b.mean - a.mean;
    return {n, a.mean + detail::rounded_product(apart, b.count / n),
            a.squares + b.squares + detail::rounded_product(apart * apart, a.count * b.count / n)};
  }
};

}  // namespace roost

#include "roost/ordered/detail/rolling.hpp"
