#pragma once

#include "roost/ordered/grouped_rows.hpp"

/// \file
/// asof_join: for each left row the nearest right row in time that has the same key.

namespace roost {

/// Which right row an asof_join takes.
enum class asof_direction {
  backward,  ///< the last one at or before the time of the left row
  forward,   ///< the first one at or after it
  nearest    ///< the nearer of these two; if both are equally far, the one before
};

/// Options of an asof_join for times of a type.
template <class Time>
struct asof_options {
  asof_direction direction = asof_direction::backward;
  bool allow_exact = true;  ///< whether a right row may have the time of the left row
  /// The greatest distance of the two times. Distances of integers are std::uint64_t, those of floats floats.
  typename detail::order_word<Time>::distance tolerance = detail::order_word<Time>::farthest;
};

/// For each left row the right row with the same key whose time is nearest in one direction, or no_row.
///
///     // For each trade the last quote of its symbol, and the nearest one within 50 ms.
///     const auto rows = roost::asof_join(gpu, traded, times, quoted, quote_times);
///     const auto near = roost::asof_join(
///         gpu, traded, times, quoted, quote_times,
///         {.direction = roost::asof_direction::nearest, .tolerance = 50});
///
/// Several right rows may have the chosen time. Then `backward` takes the last of them in the order of the
/// input, and `forward` the first; so does `nearest`, according to whether the time is at or before that of
/// the left row, or after it. Pandas and polars do the same; but of two times that are equally near, polars
/// takes the later one.
///
/// Keys: of one type, compared by their bytes; those of type none are all equal. Times: of one type, integers
/// of up to 8 bytes, float or double without NaN (invalid_argument otherwise); in any order. If the right
/// times are in order, or on a host those of each key, they are not sorted; left times never are. `Row`: an
/// unsigned integer type that can number the right rows (invalid_argument otherwise). Both sides together
/// have at most 2^32 - 2 rows.
///
/// Costs grouping all rows of both sides by key, and a search for each left row that begins where the last
/// one ended; on a host, if both sides are in the order of time and their keys few (thousands, not a
/// million), numbering the keys and one walk over both sides, for `nearest` two. Synchronises. Throws
/// invalid_argument, out_of_memory, build_error, device_error.
template <class Row = std::uint32_t, detail::place_comes_first Place, class LeftKeys, class LeftTimes,
          class RightKeys, class RightTimes>
array<Row, Place> asof_join(const Place& place, const LeftKeys& left_keys, const LeftTimes& left_times,
                            const RightKeys& right_keys, const RightTimes& right_times,
                            const asof_options<detail::element_of<LeftTimes>>& options = {});

/// The same without keys: of all right rows. Nothing is grouped; right rows are sorted if they are not in the
/// order of time.
template <class Row = std::uint32_t, detail::place_comes_first Place, class LeftTimes, class RightTimes>
array<Row, Place> asof_join(const Place& place, const LeftTimes& left_times, const RightTimes& right_times,
                            const asof_options<detail::element_of<LeftTimes>>& options = {});

ROOST_DELETE_WITHOUT_PLACE(host, cuda, void asof_join);

}  // namespace roost

#include "roost/ordered/detail/asof_join.hpp"
