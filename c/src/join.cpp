#include "roost/join.hpp"

#include "keys.hpp"
#include "operations.hpp"

// Rows of two tables.

namespace roost::c {
namespace {

template <class Place>
array<std::uint32_t, Place> joined_to_none(const Place& place, const array<std::uint32_t, Place>& rows,
                                           std::size_t more) {
  array<std::uint32_t, Place> result(place, rows.size() + more);
  place.copy(result.data(), rows.data(), rows.bytes());
  place.fill(result.data() + rows.size(), 0xFF, more * sizeof(std::uint32_t));
  return result;
}

/// Pairs of rows of two arrays of keys.
template <class Place, class Key>
joined_rows<std::uint32_t, Place> pairs_of(const Place& place, const array<Key, Place>& left,
                                           const array<Key, Place>& right, int how) {
  if (how == ROOST_JOIN_INNER) return inner_join(place, left, right);
  if (how == ROOST_JOIN_SEMI) return {semi_join(place, left, right), {}};
  if (how == ROOST_JOIN_ANTI) return {anti_join(place, left, right), {}};
  if (how == ROOST_JOIN_RIGHT) {
    auto rows = left_join(place, right, left);
    return {std::move(rows.right), std::move(rows.left)};
  }
  auto rows = left_join(place, left, right);
  if (how == ROOST_JOIN_LEFT) return rows;
  const auto rest = anti_join(place, right, left);
  auto all_left = joined_to_none(place, rows.left, rest.size());
  auto all_right = joined_to_none(place, rows.right, rest.size());
  place.copy(all_right.data() + rows.right.size(), rest.data(), rest.bytes());
  return {std::move(all_left), std::move(all_right)};
}

}  // namespace

template <class Place>
void on<Place>::join(const roost_table& left, const roost_table& right, int how, null_equality nulls,
                     ArrowDeviceArray* left_rows, ArrowDeviceArray* right_rows) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  const table_keys<Place> keys(place, {&left, &right}, nulls);
  const auto rows = keys.with_both(
      place, [&](const auto& mine, const auto& others) { return pairs_of(place, mine, others, how); });
  auto of_left = rows_of(place, rows.left, device_), of_right = rows_of(place, rows.right, device_);
  const bool has_right = how != ROOST_JOIN_SEMI && how != ROOST_JOIN_ANTI;
  finish_at(place, device_, {{&of_left, left_rows}, {&of_right, has_right ? right_rows : nullptr}});
}

template <class Place>
void on<Place>::isin(const roost_table& table, const roost_table& values, null_equality nulls,
                     ArrowDeviceArray* result) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  const table_keys<Place> keys(place, {&table, &values}, nulls);
  array<bool, Place> found(place, table.columns.rows());
  keys.with_both(place, [&](const auto& mine, const auto& others) {
    detail::column_set(place, others).contains(place, mine, found);
    return true;
  });
  auto bits = make_array(found.size(), 0, {{}, buffer_of(bits_of(place, found), device_)});
  finish_at(place, device_, {{&bits, result}});
}

template void on<ROOST_C_PLACE>::join(const roost_table&, const roost_table&, int, null_equality,
                                      ArrowDeviceArray*, ArrowDeviceArray*) const;
template void on<ROOST_C_PLACE>::isin(const roost_table&, const roost_table&, null_equality,
                                      ArrowDeviceArray*) const;

}  // namespace roost::c
