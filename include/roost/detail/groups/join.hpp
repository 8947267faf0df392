#pragma once

// Joins: see roost/join.hpp.

#include "roost/detail/groups/choose.hpp"
#include "roost/detail/groups/dense_keys.hpp"
#include "roost/detail/partition/select.hpp"
#include "roost/frozen_set.hpp"
#include "roost/join.hpp"
#include "roost/two_way_index.hpp"

namespace roost::detail {

/// Runs of neighbours from all over a range.
template <class Sequence>
struct sample_of {
  static constexpr std::size_t run = join_sample::run;
  Sequence source;
  std::size_t step;  // from run to run
  ROOST_FN auto operator()(std::size_t i) const { return source[i / run * step + i % run]; }
};

/// Whether a sample shows duplicate keys, or there is none. build(keys): a table that counts duplicates.
template <class Place, class Sequence, class Build>
bool seems_to_have_copies(const Place& place, const Sequence& keys, const Build& build) {
  const std::size_t n = keys.size(), runs = join_sample::runs(n);
  if (runs == 0) return true;
  const sample_of<Sequence> sample{keys, n / runs};
  return build(array_of(place, runs * sample.run, sample)).statistics().duplicates != 0;
}

/// The set of a column's keys.
template <class Key, class Place>
class column_set {
  static constexpr bool may_be_dense = std::is_same_v<Place, host> && is_integer<Key>;

 public:
  template <class Keys>
  column_set(const Place& place, const Keys& keys) {
    const auto sequence = as_sequence(keys);
    if constexpr (may_be_dense) dense_ = dense_set<Key>::of(place, sequence);
    if (is_dense()) return;
    // A direct build from many copies of few keys would be slow.
    const auto build = [&](const auto& some) { return frozen_set<Key, Place>(place, some); };
    const bool copies =
        join_sample::pays_for_set(sequence.size()) && seems_to_have_copies(place, sequence, build);
    hashed_ = copies ? build(unique(place, keys, index_order::any)) : build(keys);
  }

  /// results[i] = whether queries[i] is in the column. Asynchronous on cuda.
  template <class Queries, class Results>
  void contains(const Place& place, const Queries& queries, Results&& results) const {
    if constexpr (may_be_dense) {
      if (is_dense()) {
        const auto sequence = as_sequence(queries);
        bool* const found = std::ranges::data(results);
        return place.for_each(sequence.size(),
                              [&](std::size_t i) { found[i] = dense_->contains(sequence[i]); });
      }
    }
    hashed_.contains(place, queries, results);
  }

 private:
  bool is_dense() const {
    if constexpr (may_be_dense) return dense_.has_value();
    return false;
  }

  std::conditional_t<may_be_dense, std::optional<dense_set<Key>>, none> dense_;
  frozen_set<Key, Place> hashed_;
};

template <class Place, class Keys>
column_set(const Place&, const Keys&) -> column_set<element_of<Keys>, Place>;

template <class Row, class Place, class Left, class Right>
struct join {
  using key = element_of<Right>;
  static_assert(std::is_same_v<element_of<Left>, key>, "both sides of a join need keys of the same type");
  static_assert(std::is_unsigned_v<Row>, "rows are numbered by unsigned integers");

  static void check(std::size_t rows, const char* where) {
    if (rows <= no_row<Row>) return;
    raise<invalid_argument>(
        {where, ": ", rows, " rows cannot be numbered by ", sizeof(Row), " bytes; give a larger type"});
  }

  /// `more`: the bytes of each pair that the caller will take besides.
  static joined_rows<Row, Place> pairs(const Place& place, const Left& left_keys, const Right& right_keys,
                                       bool outer, const char* where, std::size_t more = 0) {
    const auto left = as_sequence(left_keys);
    const auto right = as_sequence(right_keys);
    check(left.size(), where);
    check(right.size(), where);
    const auto map_of = [&](const auto& keys) {
      return frozen_map<key, Row, Place>(place, keys, numbers_to<Row>(std::ranges::size(keys)));
    };
    if (!seems_to_have_copies(place, right, map_of)) {
      const auto rows = map_of(right_keys);
      if (rows.statistics().duplicates == 0) {
        return pairs_of_unique(place, left.size(), outer, [&](array<Row, Place>& results) {
          rows.find(place, left_keys, results, no_row<Row>);
        });
      }
    }
    const frozen_multimap<key, Row, Place> rows(place, right_keys, numbers_to<Row>(right.size()));
    if (rows.has_unique_keys()) {
      return pairs_of_unique(place, left.size(), outer, [&](array<Row, Place>& results) {
        rows.find_first(place, left_keys, results, no_row<Row>);
      });
    }
    const auto found = outer ? rows.match_outer(place, left_keys, no_row<Row>) : rows.match(place, left_keys);
    auto [left_rows, right_rows] = room_for_matches<Row, Row>(place, found.size(), where, more);
    found.retrieve_pairs(place, left_rows, right_rows);
    place.synchronize();
    return {std::move(left_rows), std::move(right_rows)};
  }

  /// If each left row has at most one match: find(results) looks it up for each of the n rows.
  template <class Find>
  static joined_rows<Row, Place> pairs_of_unique(const Place& place, std::size_t n, bool outer,
                                                 const Find& find) {
    array<Row, Place> right(place, n);
    find(right);
    const is_value<Row, false> matches{right.data(), no_row<Row>};
    if (outer || place.sum(n, matches) == n) {
      auto left = array_of(place, n, number<Row>());
      place.synchronize();
      return {std::move(left), std::move(right)};
    }
    auto left = select_numbers<Row>(place, n, matches);
    auto matched = array_of(place, left.size(), gather<Row, Row>{right.data(), left.data()});
    place.synchronize();
    return {std::move(left), std::move(matched)};
  }

  static array<Row, Place> rows(const Place& place, const Left& left_keys, const Right& right_keys,
                                bool wanted, const char* where) {
    const auto left = as_sequence(left_keys);
    check(left.size(), where);
    const column_set there(place, right_keys);
    array<bool, Place> answers(place, left.size());
    there.contains(place, left_keys, answers);
    return select_numbers<Row>(place, left.size(), is_value<bool>{answers.data(), wanted});
  }
};

}  // namespace roost::detail
