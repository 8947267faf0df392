#pragma once

#include <span>

#include "roost/embedding/embedding_options.hpp"
#include "roost/pair.hpp"
#include "roost/place.hpp"

/// \file
/// Rows that are combined by number: the sums, means, products and extremes of the rows of each id. What
/// index_add and scatter are built from, with the same bits each time.

namespace roost {

/// The number of a group of rows, and the position of one of them in the input.
using grouped_position = pair<std::uint32_t, std::uint32_t>;

/// How the rows of an id are combined, column by column.
enum class row_reduction : std::uint8_t {
  sum,
  mean,     ///< of integers: rounded down
  product,  ///< integers wrap around, as those of `sum` do
  least,    ///< NaN if there is one
  greatest  ///< NaN if there is one
};

/// Options of reduce_rows.
struct reduction_options {
  row_reduction how = row_reduction::sum;
  /// The row of the output takes part, as the last one; otherwise it is replaced.
  bool with_output = true;
  /// What the sum of the rows is multiplied by; only for `sum` of floating-point numbers. The product and its
  /// sum with the output are rounded once.
  double scale = 1;
  /// Of reduce_rows, which needs it: a word that the place can write to, on cuda also pinned host memory. If
  /// an id is not the number of an output row, its row is left out, and the word becomes ~i for its position
  /// i: on a host for the first one, on cuda for any one. Otherwise it does not change.
  std::uint64_t* wrong = nullptr;
  /// Of reduce_grouped_rows: whether the numbers of groups ascend. That saves a step.
  bool ascending = false;
};

/// out[k] = the combined rows[i] of all i with ids[i] == k. Output rows without an id stay as they are.
///
/// The order is part of the result. Of the rows of an id, in the order of the input, 32 at a time are
/// combined one after the other; of these results again 32 at a time, until one is left; and then that with
/// the row of the output. So the result for an id depends on its own rows alone, and its bits are the same
/// with any number of threads and on each place. Floats and 16-bit numbers are computed as floats, doubles as
/// doubles, and rounded once.
///
///     roost::reduce_rows(gpu, ids, rows, 64, out, {.wrong = word});
///
/// `rows`: ids.size() * width numbers; `out`: a multiple of `width`; Value: float, double, float16, bfloat16,
/// std::int32_t, std::int64_t; ids: std::int32_t or std::int64_t. All are memory of the place, and `out` does
/// not overlap with the others.
///
/// Extremes are the same in any order: -0 is less than 0.
///
/// Cost: ids and positions are sorted by 9 (cuda) or 10 (host) bits at a time, and each row is read once.
/// Extremes of rows of one number of 4 or 8 bytes need no sorting on cuda, and no memory.
/// Scratch memory: 24 bytes an id, 8 bytes an output row unless these outnumber the ids, and a float (or the
/// double or integer) for every 16 numbers of `rows`. Asynchronous on cuda; may be captured in graphs. Throws
/// invalid_argument for sizes that do not match, without options.wrong, and for 2^32 - 1 or more ids or
/// output rows; out_of_memory.
template <class Place, class Id, class Value>
void reduce_rows(const Place& place, std::span<Id> ids, std::type_identity_t<std::span<const Value>> rows,
                 std::size_t width, std::span<Value> out, const reduction_options& options);

/// The same for rows that are grouped, as by roost::group_keys: rows[sorted[i].value] belongs to the output
/// row sorted[i].key. Rows of a group are together, and are combined in the order that they have there; those
/// of numbers that are not below that of output rows are left out. Scratch memory: 8 bytes an output row, and
/// as reduce_rows above the lowest level. Asynchronous on cuda; may be captured in graphs. Throws as
/// reduce_rows.
template <class Place, class Value>
void reduce_grouped_rows(const Place& place, std::span<const grouped_position> sorted,
                         std::type_identity_t<std::span<const Value>> rows, std::size_t width,
                         std::span<Value> out, const reduction_options& options);

}  // namespace roost

#include "roost/ids/detail/reduce_rows.hpp"
