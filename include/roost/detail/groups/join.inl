// Bodies of roost/join.hpp.

#include "roost/detail/partition/select.hpp"
#include "roost/frozen_set.hpp"
#include "roost/two_way_index.hpp"

namespace roost {
namespace detail {

template <class Row, class Place, class Left, class Right>
struct join {
  using key = element_of<Right>;
  static_assert(std::is_same_v<element_of<Left>, key>, "both sides of a join need keys of the same type");
  static_assert(std::is_unsigned_v<Row>, "rows are numbered by unsigned integers");

  static void check(std::size_t rows, const char* where) {
    if (rows <= no_row<Row>) return;
    detail::raise<invalid_argument>(
        {where, ": ", rows, " rows cannot be numbered by ", sizeof(Row), " bytes; give a larger type"});
  }

  static joined_rows<Row, Place> pairs(const Place& place, const Left& left_keys, const Right& right_keys,
                                       bool outer, const char* where) {
    const auto left = as_sequence(left_keys);
    const auto right = as_sequence(right_keys);
    check(left.size(), where);
    check(right.size(), where);
    const frozen_multimap<key, Row, Place> rows(place, right_keys, numbers_to<Row>(right.size()));
    if (rows.has_unique_keys()) return pairs_of_unique(place, left_keys, left.size(), rows, outer);
    const auto found = outer ? rows.match_outer(place, left_keys, no_row<Row>) : rows.match(place, left_keys);
    auto [left_rows, right_rows] = room_for_matches<Row, Row>(place, found.size(), where);
    found.retrieve_pairs(place, left_rows, right_rows);
    place.synchronize();
    return {std::move(left_rows), std::move(right_rows)};
  }

  /// A left row has one match at most.
  static joined_rows<Row, Place> pairs_of_unique(const Place& place, const Left& left_keys, std::size_t n,
                                                 const frozen_multimap<key, Row, Place>& rows, bool outer) {
    array<Row, Place> right(place, n);
    rows.find_first(place, left_keys, right, no_row<Row>);
    const is_other_value<Row> matches{right.data(), no_row<Row>};
    if (outer || place.sum(n, matches) == n) {
      array<Row, Place> left(place, n);
      write_numbers(place, n, number<Row>(), left.data());
      place.synchronize();
      return {std::move(left), std::move(right)};
    }
    auto left = select_numbers<Row>(place, n, matches);
    array<Row, Place> matched(place, left.size());
    write_numbers(place, left.size(), in_order<Row, Row>{right.data(), left.data()}, matched.data());
    place.synchronize();
    return {std::move(left), std::move(matched)};
  }

  static array<Row, Place> rows(const Place& place, const Left& left_keys, const Right& right_keys,
                                bool wanted, const char* where) {
    const auto left = as_sequence(left_keys);
    check(left.size(), where);
    const frozen_set<key, Place> there(
        place, unique(place, right_keys, index_order::any));  // a build from copies of few keys would be slow
    array<bool, Place> answers(place, left.size());
    there.contains(place, left_keys, answers);
    return select_numbers<Row>(place, left.size(), is_value<bool>{answers.data(), wanted});
  }
};

}  // namespace detail

template <class Row, class Place, class Left, class Right>
joined_rows<Row, Place> inner_join(const Place& place, const Left& left_keys, const Right& right_keys) {
  return detail::join<Row, Place, Left, Right>::pairs(place, left_keys, right_keys, false,
                                                      "roost::inner_join");
}

template <class Row, class Place, class Left, class Right>
joined_rows<Row, Place> left_join(const Place& place, const Left& left_keys, const Right& right_keys) {
  return detail::join<Row, Place, Left, Right>::pairs(place, left_keys, right_keys, true, "roost::left_join");
}

template <class Row, class Place, class Left, class Right>
array<Row, Place> semi_join(const Place& place, const Left& left_keys, const Right& right_keys) {
  return detail::join<Row, Place, Left, Right>::rows(place, left_keys, right_keys, true, "roost::semi_join");
}

template <class Row, class Place, class Left, class Right>
array<Row, Place> anti_join(const Place& place, const Left& left_keys, const Right& right_keys) {
  return detail::join<Row, Place, Left, Right>::rows(place, left_keys, right_keys, false, "roost::anti_join");
}

}  // namespace roost
