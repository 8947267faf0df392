#pragma once

#include "roost/frozen_multimap.hpp"

/// \file
/// grouped_rows: the rows of each key, in their order or in that of a column. One grouping serves running
/// results, windows, sessions, shifts and ranks.

namespace roost {

/// The order of the rows of a group.
enum class row_order { ascending, descending };

/// The numbers of rows, group after group. Group g has the rows rows()[offsets()[g]] to rows()[offsets()[g +
/// 1] - 1]; no group is empty. Groups come in an order without meaning, which is the same every time for the
/// same keys on one place. At most 2^32 - 2 rows. Can be moved, but not copied. It is only read, by any
/// number of threads.
template <class Place>
class grouped_rows {
 public:
  /// No rows, and no memory.
  grouped_rows() = default;
  /// Rows that were grouped elsewhere: different ones below `batch`. `offsets` has one more element than
  /// there are groups, from 0 to rows.size().
  grouped_rows(array<std::uint32_t, Place> rows, array<std::uint64_t, Place> offsets, std::size_t batch)
      : rows_(std::move(rows)), offsets_(std::move(offsets)), batch_(batch) {}

  /// In memory of the place.
  std::span<const std::uint32_t> rows() const { return rows_.span(); }
  std::span<const std::uint64_t> offsets() const { return offsets_.span(); }
  /// The number of rows in groups.
  std::size_t size() const { return rows_.size(); }
  /// The number of rows of the batch: that of the keys. first_rows and last_rows leave rows out.
  std::size_t batch_size() const { return batch_; }
  std::size_t group_count() const { return offsets_.size() == 0 ? 0 : offsets_.size() - 1; }
  std::size_t bytes() const { return rows_.bytes() + offsets_.bytes(); }

 private:
  array<std::uint32_t, Place> rows_;
  array<std::uint64_t, Place> offsets_;
  std::size_t batch_ = 0;
};

/// Groups rows by key; the rows of a key keep their order.
///
///     const auto rows = roost::group_rows(gpu, symbols);
///     const auto sums = roost::combine_groups(gpu, rows, volumes, roost::plus());
///     const auto before = roost::shifted_rows(gpu, rows, 1);
///
/// Keys: any trivially copyable type that is compared by its bytes. Costs the build of a frozen_multimap
/// without its table. Synchronises. Throws invalid_argument, out_of_memory, build_error, device_error.
template <detail::place_comes_first Place, class Keys>
grouped_rows<Place> group_rows(const Place& place, const Keys& keys);

/// The same with the rows of each key in the order of a column: integers of up to 8 bytes, float or double
/// without NaN (invalid_argument otherwise). Rows with equal numbers keep their order, also if it is
/// descending. If the column is in order, which is looked at first, this costs the same. On a host, if it is
/// in order inside each group, it costs one more read of the column. Otherwise the rows are sorted by the
/// column, in a pass for every 9 (cuda) or 10 (host) bits of the range of its numbers.
template <detail::place_comes_first Place, class Keys, class By>
grouped_rows<Place> group_rows(const Place& place, const Keys& keys, const By& by,
                               row_order order = row_order::ascending);

/// The number of each row's group; no_row<std::uint32_t> for a row that is in none. Asynchronous on cuda, as
/// are the next two.
template <class Place>
array<std::uint32_t, Place> group_numbers(const Place& place, const grouped_rows<Place>& all);

/// How many rows of its group come before each row: 0, 1, 2 ...; no_row<std::uint32_t> if it is in none.
template <class Place>
array<std::uint32_t, Place> positions_in_groups(const Place& place, const grouped_rows<Place>& all);

/// For each row, the row that comes n rows earlier in its group, or later if n is negative;
/// no_row<std::uint32_t> if there is none.
template <class Place>
array<std::uint32_t, Place> shifted_rows(const Place& place, const grouped_rows<Place>& all, std::int64_t n);

/// The first n rows of each group, or all if it has less; no groups if n is 0. Their numbers are those of
/// the same rows. After group_rows(place, keys, values, row_order::descending), these are the n greatest
/// values of each key, the greatest first. Synchronises.
template <class Place>
grouped_rows<Place> first_rows(const Place& place, const grouped_rows<Place>& all, std::uint64_t n);
/// The last n rows of each group.
template <class Place>
grouped_rows<Place> last_rows(const Place& place, const grouped_rows<Place>& all, std::uint64_t n);

/// For each group its row n (from 0 on), or from the end if n is negative: -1 is the last row;
/// no_row<std::uint32_t> if the group has less rows. Asynchronous on cuda.
template <class Place>
array<std::uint32_t, Place> nth_rows(const Place& place, const grouped_rows<Place>& all, std::int64_t n);

/// Combines the values of each group, as group_by does: f over the values of its rows, in their order.
/// `values`: one for each row of the batch (invalid_argument otherwise). `f`: an associative function.
/// Synchronises.
template <class Place, class Values, class F>
auto combine_groups(const Place& place, const grouped_rows<Place>& all, const Values& values, const F& f);

/// Splits groups before each row that differs from the row before it in its group: differs(row before, row),
/// a function of two row numbers that can be copied to the place. Groups and rows keep their order; the new
/// groups are smaller ones of the same rows. Synchronises. Sessions and runs of equal values are such groups
/// (sessions.hpp).
template <class Place, class Differs>
grouped_rows<Place> split_groups(const Place& place, const grouped_rows<Place>& all, const Differs& differs);

ROOST_DELETE_WITHOUT_PLACE(host, cuda, void group_rows);

}  // namespace roost

#include "roost/ordered/detail/grouped_rows.hpp"
