#pragma once

#include "roost/functional.hpp"
#include "roost/ordered/grouped_rows.hpp"

/// \file
/// Results for each row from the rows before it in its group: running sums, the last value that is there,
/// ranks.

namespace roost {

/// Whether a running result takes the rows up to each row, or from it on.
enum class running_direction { forward, backward };

/// Combines the values of each group up to each row: result[row] = f over the values of the rows of its group
/// up to and including it; for `backward`, from the last row of the group back to it.
///
///     const auto rows = roost::group_rows(gpu, accounts, times);
///     const auto balance = roost::running(gpu, rows, amounts, roost::plus());
///
/// `values`: one for each row of the batch. `f`: an associative function of two values; the results have
/// their type. How the calls of `f` are nested depends only on the number of values that are combined, and is
/// that of group_by: pieces of 32 values, one after the other, and the results of the pieces in the same way.
/// So the last result of a group is bit for bit that of group_by, and the same on every place, with any
/// number of threads. Rows that are in no group have results without meaning.
///
/// Costs a read of the values in the order of the groups and a write of the results; groups of more than 32
/// rows also a read of the results. Synchronises. Throws invalid_argument for another number of values,
/// out_of_memory, device_error.
template <class Place, class Values, class F>
auto running(const Place& place, const grouped_rows<Place>& all, const Values& values, const F& f,
             running_direction direction = running_direction::forward);

/// For each row, the last row of its group up to it for which present[row] is not 0, or, for `backward`, the
/// first from it on: what a fill of missing values copies from. no_row<std::uint32_t> if there is none.
/// `present`: one number or bool for each row of the batch. Cost and errors as for running.
template <class Place, class Present>
array<std::uint32_t, Place> filled_rows(const Place& place, const grouped_rows<Place>& all,
                                        const Present& present,
                                        running_direction direction = running_direction::forward);

/// Which ranks equal values have.
enum class rank_method {
  least,     ///< the rank of the first of them (1, 2, 2, 4)
  greatest,  ///< that of the last (1, 3, 3, 4)
  dense,     ///< one after that of the next smaller value (1, 2, 2, 3)
  first      ///< different ones, in the order of the rows (1, 2, 3, 4)
};

/// The rank of each row in its group, from 1 on. `all` must have been ordered by `values`, ascending or
/// descending; for an average, take the mean of least and greatest. Values are compared by ==. Rows that are
/// in no group have results without meaning. Cost and errors as for running, twice.
template <class Place, class Values>
array<std::uint32_t, Place> ranks_in_groups(const Place& place, const grouped_rows<Place>& all,
                                            const Values& values, rank_method method);

}  // namespace roost

#include "roost/ordered/detail/running.hpp"
