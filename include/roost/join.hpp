#pragma once

#include "roost/frozen_multimap.hpp"

/// \file
/// Joins of two columns of keys, which return the numbers of the matching rows.

namespace roost {

/// Pairs of rows with the same key: pair i is left[i] and right[i]. Pairs are ordered by left row, and for
/// each left row by right row.
template <class Row, class Place>
struct joined_rows {
  array<Row, Place> left, right;

  /// The number of pairs.
  std::size_t size() const { return left.size(); }
  /// Iterates over the pairs on the host: `for (auto [left, right] : rows)`.
  auto begin() const
    requires std::is_same_v<Place, host>
  {
    return detail::numbered_iterator(at{this}, 0);
  }
  auto end() const
    requires std::is_same_v<Place, host>
  {
    return detail::numbered_iterator(at{this}, size());
  }

 private:
  struct two_rows {
    Row left, right;
  };
  struct at {
    const joined_rows* rows;
    two_rows operator()(std::size_t i) const { return {rows->left[i], rows->right[i]}; }
  };
};

namespace detail {
template <class Row, class Place, class Left, class Right>
struct join;
}

/// All pairs of a left and a right row with the same key.
///
///     const auto rows = roost::inner_join(gpu, orders_customer, customer_id);
///     // rows.left and rows.right are arrays of the place
///
/// Keys: ranges in the memory of the place, of one type, compared by their bytes. `Row`: an unsigned integer
/// type that can number the rows (invalid_argument otherwise).
///
/// A join builds a frozen_multimap of the right side and looks up the left side in it. If you can choose,
/// pass the shorter side as the right one; it is fastest if the keys of the right side are all different. To
/// know the number of pairs first, or to write them to your own memory, build the multimap of row numbers
/// yourself and call match() or match_outer(). To join on several columns, make each key a struct, for
/// example with roost::computed. Synchronises. Throws out_of_memory, whose message says how many pairs there
/// are, before any memory is taken for them; invalid_argument, build_error, device_error.
template <class Row = std::uint32_t, detail::place_comes_first Place, class Left, class Right>
joined_rows<Row, Place> inner_join(const Place& place, const Left& left_keys, const Right& right_keys) {
  return detail::join<Row, Place, Left, Right>::pairs(place, left_keys, right_keys, false,
                                                      "roost::inner_join");
}

/// The same, plus each left row without a match, paired with no_row.
template <class Row = std::uint32_t, detail::place_comes_first Place, class Left, class Right>
joined_rows<Row, Place> left_join(const Place& place, const Left& left_keys, const Right& right_keys) {
  return detail::join<Row, Place, Left, Right>::pairs(place, left_keys, right_keys, true, "roost::left_join");
}

/// The rows of the left side whose key is present on the right side, in order. The right side may have at
/// most 2^32 - 2 rows. Synchronises; throws as inner_join does.
template <class Row = std::uint32_t, detail::place_comes_first Place, class Left, class Right>
array<Row, Place> semi_join(const Place& place, const Left& left_keys, const Right& right_keys) {
  return detail::join<Row, Place, Left, Right>::rows(place, left_keys, right_keys, true, "roost::semi_join");
}

/// The rows of the left side whose key is absent on the right side, in order. Otherwise as semi_join.
template <class Row = std::uint32_t, detail::place_comes_first Place, class Left, class Right>
array<Row, Place> anti_join(const Place& place, const Left& left_keys, const Right& right_keys) {
  return detail::join<Row, Place, Left, Right>::rows(place, left_keys, right_keys, false, "roost::anti_join");
}

ROOST_DELETE_WITHOUT_PLACE(host, cuda, void inner_join);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void left_join);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void semi_join);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void anti_join);

}  // namespace roost

#include "roost/detail/groups/join.hpp"
