#pragma once

#include "roost/join.hpp"
#include "roost/ordered/rolling.hpp"

/// \file
/// interval_join: pairs of a left row with an interval of time and the right rows of its key in it.

namespace roost {

/// Where intervals begin, and where they end: two ranges in memory of the place.
template <class From, class To>
struct intervals {
  const From& from;
  const To& to;
};
template <class From, class To>
intervals(const From&, const To&) -> intervals<From, To>;

/// All pairs of a left row and a right row with the same key whose time is in the interval of the left row.
///
///     const roost::intervals stays{from, to};
///     const auto rows = roost::interval_join(gpu, rooms, stays, alarm_rooms, alarm_times);
///
/// `closed`: the ends that an interval includes; by default [from, to). An interval that ends before it
/// begins has no times. Pairs are ordered by left row; for each left row by the time of the right row, and
/// for equal times by right row. Keys, times, limits and cost: as for asof_join, and 16 bytes for each left
/// row. Pairs are counted first. Synchronises. Throws out_of_memory, whose message says how many pairs there
/// are, before any memory is taken for them; invalid_argument, build_error, device_error.
template <class Row = std::uint32_t, detail::place_comes_first Place, class LeftKeys, class From, class To,
          class RightKeys, class RightTimes>
joined_rows<Row, Place> interval_join(const Place& place, const LeftKeys& left_keys,
                                      const intervals<From, To>& left_times, const RightKeys& right_keys,
                                      const RightTimes& right_times,
                                      window_closed closed = window_closed::left);

ROOST_DELETE_WITHOUT_PLACE(host, cuda, void interval_join);

}  // namespace roost

#include "roost/ordered/detail/interval_join.hpp"
