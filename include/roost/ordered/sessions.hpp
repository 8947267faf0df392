#pragma once

#include "roost/ordered/grouped_rows.hpp"

/// \file
/// Groups split by time or by value: sessions, fixed spans of time, runs of equal values. What they return
/// are grouped_rows again, whose groups are in the order of time for each key.

namespace roost {

/// Splits the rows of each group into sessions: a new one begins where more than `gap` has passed since the
/// row before. `all` must have been ordered by `times`, ascending (invalid_argument otherwise, and for NaN).
///
///     const auto clicks = roost::group_rows(gpu, users, times);
///     const auto visits = roost::sessions(gpu, clicks, times, 30 * 60);
///     const auto visit_of_click = roost::group_numbers(gpu, visits);
///     const auto spent = roost::combine_groups(gpu, visits, amounts, roost::plus());
///
/// The distance of integers is a std::uint64_t, that of floats a float. Costs two reads of the times in the
/// order of the groups. Synchronises.
template <class Place, class Times>
grouped_rows<Place> sessions(const Place& place, const grouped_rows<Place>& all, const Times& times,
                             typename detail::order_word<detail::element_of<Times>>::distance gap);

/// Spans of time of one width, one of which begins at `origin`: for integers.
template <class Time>
struct time_buckets {
  static_assert(std::is_integral_v<Time>, "buckets are of integer times");
  std::uint64_t width;
  Time origin = 0;

  /// Where the bucket of a time begins; if that is before the least number of the type, this number.
  ROOST_FN Time start(Time t) const {
    using kind = detail::order_word<Time>;
    using word = typename kind::word;
    const word at = kind::of(t), zero = kind::of(origin);
    std::uint64_t past;  // since the begin of the bucket
    if (at >= zero) {
      past = static_cast<word>(at - zero) % width;
    } else {
      const std::uint64_t missing = static_cast<word>(zero - at) % width;
      past = missing == 0 ? 0 : width - missing;
    }
    return detail::in_order<Time>::key(past > at ? word{0} : static_cast<word>(at - past));
  }
};

/// Splits the rows of each group into buckets of time, of which only those with rows are returned: a fixed
/// window of each key, as of time_bucket in databases. As sessions; the width must not be 0
/// (invalid_argument).
///
///     const roost::time_buckets<std::int64_t> hours{3600};
///     const auto groups = roost::resample(gpu, rows, times, hours);
///     // The first row of bucket g is groups.rows()[groups.offsets()[g]].
///     // The bucket begins at hours.start(the time of this row).
template <class Place, class Times>
grouped_rows<Place> resample(const Place& place, const grouped_rows<Place>& all, const Times& times,
                             const time_buckets<detail::element_of<Times>>& buckets);

/// Splits the rows of each group into runs of equal values, in the order of the group. Values are compared by
/// ==, so that each NaN is a run. The lengths of the runs are the sizes of the groups. Synchronises. Throws
/// invalid_argument for another number of values.
template <class Place, class Values>
grouped_rows<Place> runs_of_values(const Place& place, const grouped_rows<Place>& all, const Values& values);

}  // namespace roost

#include "roost/ordered/detail/sessions.hpp"
