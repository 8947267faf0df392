#pragma once

#include "roost/frozen_multimap.hpp"

/// \file
/// Joins of two columns of keys: the numbers of the rows that match.

namespace roost {

/// Pairs of rows with the same key: pair i is left[i] and right[i]. In the order of the left rows, and for each in the order of the right ones.
template <class Row, class Place>
struct joined_rows {
  array<Row, Place> left, right;
};

/// The right row of a left_join's row without a match.
template <class Row>
inline constexpr Row no_row = static_cast<Row>(~Row{0});

/// All pairs of a left and a right row with the same key. Keys: ranges in the memory of the place, of one type, compared by their bytes; `Row`: an unsigned integer type that
/// can number the rows (invalid_argument otherwise).
///
///     const auto rows = roost::inner_join(gpu, orders_customer, customer_id);   // rows.left, rows.right: arrays of the place
///
/// A frozen_multimap of the right side is built, and the left side looked up: give the shorter side as the right one if you can choose. To know the number of pairs first, or to write
/// them to memory of your own, make the multimap of row numbers yourself, and ask it to match() or match_outer(). Keys of several columns: structs, made where they are used by
/// roost::computed.
/// Synchronises. Throws out_of_memory, which says how many pairs there are, invalid_argument, build_error, device_error.
template <class Row = std::uint32_t, class Place, class Left, class Right>
joined_rows<Row, Place> inner_join(const Place& place, const Left& left_keys, const Right& right_keys);

/// The same, and rows of the left side that match nothing, beside no_row.
template <class Row = std::uint32_t, class Place, class Left, class Right>
joined_rows<Row, Place> left_join(const Place& place, const Left& left_keys, const Right& right_keys);

/// The rows of the left side whose key the right side has, in order. At most 2^32 - 2 rows on the right side. Synchronises; throws as inner_join does.
template <class Row = std::uint32_t, class Place, class Left, class Right>
array<Row, Place> semi_join(const Place& place, const Left& left_keys, const Right& right_keys);

/// The rows of the left side whose key the right side does not have, in order. As semi_join.
template <class Row = std::uint32_t, class Place, class Left, class Right>
array<Row, Place> anti_join(const Place& place, const Left& left_keys, const Right& right_keys);

}  // namespace roost

#include "roost/detail/join.inl"
