// Bodies of roost/join.hpp.

#include "roost/detail/select.hpp"
#include "roost/frozen_set.hpp"

namespace roost::detail {

struct is_answer {
  const bool* answers;
  bool wanted;
  ROOST_FN bool operator()(std::size_t i) const { return answers[i] == wanted; }
};

template <class Row, class Place, class Left, class Right>
struct join {
  using key = element_of<Right>;
  static_assert(std::is_same_v<element_of<Left>, key>, "both sides of a join need keys of the same type");
  static_assert(std::is_unsigned_v<Row>, "rows are numbered by unsigned integers");

  static void check(std::size_t rows, const char* where) {
    if (rows <= no_row<Row>) return;
    throw invalid_argument(std::string(where) + ": " + std::to_string(rows) + " rows cannot be numbered by " + std::to_string(sizeof(Row)) + " bytes; give a larger type");
  }

  static joined_rows<Row, Place> pairs(const Place& place, const Left& left_keys, const Right& right_keys, std::uint64_t least, const char* where) {
    const auto left = as_sequence(left_keys);
    const auto right = as_sequence(right_keys);
    check(left.size(), where);
    check(right.size(), where);
    const frozen_multimap<key, Row, Place> rows(place, right_keys, numbers_to<Row>(right.size()));
    const auto found = rows.match_at_least(place, left_keys, least, no_row<Row>, {});
    joined_rows<Row, Place> result{room_for_matches<Row>(place, found.size(), where), room_for_matches<Row>(place, found.size(), where)};
    found.retrieve_pairs(place, result.left, result.right);
    place.synchronize();
    return result;
  }

  static array<Row, Place> rows(const Place& place, const Left& left_keys, const Right& right_keys, bool wanted, const char* where) {
    const auto left = as_sequence(left_keys);
    check(left.size(), where);
    const frozen_set<key, Place> there(place, right_keys);
    array<bool, Place> answers(place, left.size());
    there.contains(place, left_keys, answers);
    return select_numbers<Row>(place, left.size(), is_answer{answers.data(), wanted});
  }
};

}  // namespace roost::detail
