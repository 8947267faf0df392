#pragma once

// Rows by key, in order: see roost/ordered/grouped_rows.hpp.

#include <algorithm>

#include "roost/detail/groups/reduce_lists.hpp"
#include "roost/ordered/detail/order.hpp"
#include "roost/ordered/grouped_rows.hpp"

namespace roost::detail {

/// A row, and the word that orders it.
template <class Word>
struct __attribute__((packed, aligned(4))) ordered_row {
  std::uint32_t row;
  Word word;
};

/// Rows in groups, with their words.
template <class Word, class Place>
struct ordered_groups {
  array<ordered_row<Word>, Place> rows;
  array<std::uint64_t, Place> offsets;
};

/// The key of row order[i], or of row i if `order` is null, with this row and its word.
template <class Key, class Word>
struct keys_with_ordered_rows {
  Key key;
  Word word;
  const std::uint32_t* order;
  std::size_t ordered;  // rows in `order`; the others follow
  std::size_t count;
  std::size_t size() const { return count; }
  ROOST_FN auto operator[](std::size_t i) const { return (*this)(i); }
  ROOST_FN auto operator()(std::size_t i) const {
    const auto row = order != nullptr && i < ordered ? order[i] : static_cast<std::uint32_t>(i);
    return pair_of(key(row), ordered_row<decltype(word(row))>{row, word(row)});
  }
};

inline void check_row_count(std::size_t n, const char* where) {
  if (n >= ~std::uint32_t{0}) raise<invalid_argument>({where, ": ", n, " rows; the most are 2^32 - 2"});
}

/// The words of ordered rows, by position. Rows from `ordered` on do not count.
template <class Word>
struct word_of_item {
  const ordered_row<Word>* rows;
  std::size_t ordered;
  ROOST_FN bool counts(std::uint64_t i) const { return rows[i].row < ordered; }
  ROOST_FN Word operator()(std::uint64_t i) const { return rows[i].word; }
};

/// The words of the rows of groups, by position.
template <class Times>
struct word_of_row {
  order_word_at<Times> word;
  const std::uint32_t* rows;
  ROOST_FN bool counts(std::uint64_t) const { return true; }
  ROOST_FN auto operator()(std::uint64_t i) const { return word(rows[i]); }
};

/// Marks that a row that counts comes after one with a greater word in its group.
template <class Word>
struct note_descent {
  Word word;
  std::uint32_t* seen;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t, std::uint64_t k) const {
    if (k == 0 || !word.counts(i)) return;
    if (word(i) < word(i - 1) && peek(*seen) == 0) fetch_or(*seen, 1u);
  }
};

/// Whether some do, among n rows. Synchronises.
template <class Place, class Word>
bool descends(const Place& place, std::span<const std::uint64_t> offsets, std::size_t n, const Word& word) {
  if (n == 0) return false;
  auto seen = zeros<std::uint32_t>(place, 1);
  expand(place, offsets.data(), offsets.size() - 1, n, note_descent<Word>{word, seen.data()});
  return read_one(place, seen.data()) != 0;
}

/// Sorts the rows of a group below `ordered` by their words, on the host.
template <class Word>
struct sort_group {
  ordered_row<Word>* rows;
  const std::uint64_t* offsets;
  std::size_t ordered;
  void operator()(const serial_team&, std::size_t group, std::byte*) const {
    using item = ordered_row<Word>;
    item* const first = rows + offsets[group];
    item* const end = std::partition_point(first, rows + offsets[group + 1],
                                           [&](const item& i) { return i.row < ordered; });
    std::sort(first, end, [](const item& a, const item& b) {
      const Word x = a.word, y = b.word;
      return x < y || (x == y && a.row < b.row);
    });
  }
};

/// The rows 0 to n - 1 by key(row). In each group the rows below `ordered` come first, in ascending order of
/// word(row), equal ones in the order of the rows; then the others in their order. Rows are sorted only if
/// they are in order neither all together nor in their groups. Synchronises.
template <class Place, class Key, class Word>
auto group_in_order(const Place& place, std::size_t n, const Key& key, std::size_t ordered, const Word& word,
                    const char* where) {
  using word_type = decltype(word(n));
  check_row_count(n, where);
  ordered_groups<word_type, Place> result;
  keys_with_ordered_rows<Key, Word> source{key, word, nullptr, ordered, n};
  const auto take = [&](auto&& all) {
    result.rows = std::move(all.values);
    result.offsets = std::move(all.offsets);
  };
  if (n == 0) {
    result.offsets = zeros(place, 1);
    return result;
  }
  const bool sorted = ordered < 2 || place.sum(ordered - 1, descends_at<Word>{word}) == 0;
  take(group(place, source, 0, where));
  const auto offsets = result.offsets.span();
  if (sorted || !descends(place, offsets, n, word_of_item<word_type>{result.rows.data(), ordered}))
    return result;
  if constexpr (std::is_same_v<Place, host>) {
    // Groups that fit a cache: a third of the time of sorting all rows. One thread sorts a group.
    std::uint64_t most = 0;
    for (std::size_t g = 0; g + 1 < offsets.size(); ++g) most = larger(most, offsets[g + 1] - offsets[g]);
    if (most <= sorted_at_once) {
      place.launch(offsets.size() - 1, 0, sort_group<word_type>{result.rows.data(), offsets.data(), ordered});
      return result;
    }
  }
  result = {};
  const auto order = rows_in_order(place, ordered, word);
  source.order = order.data();
  const auto items = array_of(place, n, source);  // since a grouping reads keys several times
  take(group(place, as_sequence(items), 0, where));
  return result;
}

/// put(i, g, k) for each row rows()[i], which is row k of group g.
template <class Place, class Put>
void for_each_grouped(const Place& place, const grouped_rows<Place>& all, const Put& put) {
  if (all.size() != 0) expand(place, all.offsets().data(), all.group_count(), all.size(), put);
}

template <class Word>
struct row_of_ordered {
  const ordered_row<Word>* rows;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return rows[i].row; }
};

inline void check_value_count(std::size_t values, std::size_t rows, const char* where) {
  if (values != rows)
    raise<invalid_argument>({where, ": ", values, " values for ", rows, " rows; give one for each"});
}

/// Throws invalid_argument if the rows of a group are not in ascending order of `times`.
template <class Place, class Times>
void expect_in_order(const Place& place, const grouped_rows<Place>& all, const Times& times,
                     const char* where) {
  check_value_count(times.size(), all.batch_size(), where);
  refuse_nan(place, times, where);
  if (descends(place, all.offsets(), all.size(), word_of_row<Times>{{times}, all.rows().data()})) {
    raise<invalid_argument>({where,
                             ": rows that are not in the order of these times in their groups; group "
                             "them by roost::group_rows(place, keys, times)"});
  }
}

/// An array for a result of each row of the batch: all bits set where a row is in no group.
template <class T, class Place>
array<T, Place> results_of_rows(const Place& place, const grouped_rows<Place>& all) {
  array<T, Place> results(place, all.batch_size());
  if (all.size() != all.batch_size()) place.fill(results.data(), 0xff, results.bytes());
  return results;
}

// Sizes of the groups that first_rows and last_rows make, and their rows.

struct smaller_length {
  const std::uint64_t* offsets;
  std::uint64_t most;
  ROOST_FN std::uint64_t operator()(std::size_t group) const {
    return smaller(offsets[group + 1] - offsets[group], most);
  }
};

struct copy_end_row {
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  const std::uint64_t* new_offsets;
  bool first;
  std::uint32_t* target;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    const std::uint64_t size = new_offsets[group + 1] - new_offsets[group];
    target[i] = rows[first ? offsets[group] + k : offsets[group + 1] - size + k];
  }
};

template <class Place>
grouped_rows<Place> end_rows(const Place& place, const grouped_rows<Place>& all, std::uint64_t n,
                             bool first) {
  const std::size_t groups = all.group_count();
  if (n == 0 || groups == 0)
    return {array<std::uint32_t, Place>(place, 0), zeros(place, 1), all.batch_size()};
  array<std::uint64_t, Place> offsets(place, groups + 1);
  write_offsets(place, groups, smaller_length{all.offsets().data(), n}, offsets.data());
  array<std::uint32_t, Place> rows(place, read_one(place, offsets.data() + groups));
  expand(place, offsets.data(), groups, rows.size(),
         copy_end_row{all.rows().data(), all.offsets().data(), offsets.data(), first, rows.data()});
  place.synchronize();
  return {std::move(rows), std::move(offsets), all.batch_size()};
}

struct nth_of_group {
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  std::int64_t n;
  ROOST_FN std::uint32_t operator()(std::size_t group) const {
    const auto size = static_cast<std::int64_t>(offsets[group + 1] - offsets[group]);
    const std::int64_t k = n < 0 ? n + size : n;
    return k < 0 || k >= size ? no_row<std::uint32_t> : rows[offsets[group] + static_cast<std::uint64_t>(k)];
  }
};

struct write_group_number {
  const std::uint32_t* rows;
  std::uint32_t* groups;
  std::uint32_t* positions;
  std::uint32_t from = 0;  // the first position
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    if (groups != nullptr) groups[rows[i]] = static_cast<std::uint32_t>(group);
    if (positions != nullptr) positions[rows[i]] = from + static_cast<std::uint32_t>(k);
  }
};

struct write_shifted {
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  std::int64_t n;
  std::uint32_t* results;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    const auto size = offsets[group + 1] - offsets[group];
    const std::uint64_t from = k - static_cast<std::uint64_t>(n);  // wraps around, beyond every size
    results[rows[i]] = from < size ? rows[offsets[group] + from] : no_row<std::uint32_t>;
  }
};

/// Values in the order of the groups.
template <class Values>
struct value_at_row {
  Values values;
  const std::uint32_t* rows;
  ROOST_FN auto operator[](std::size_t i) const { return values[rows[i]]; }
};

/// Whether row i of all begins a group of its own.
template <class Differs>
struct begins_group {
  const std::uint32_t* rows;
  Differs differs;
  std::uint8_t* begins;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t, std::uint64_t k) const {
    begins[i] = k == 0 || differs(rows[i - 1], rows[i]) ? 1 : 0;
  }
};

}  // namespace roost::detail

namespace roost {

template <detail::place_comes_first Place, class Keys>
grouped_rows<Place> group_rows(const Place& place, const Keys& keys) {
  const auto all = detail::as_sequence(keys);
  constexpr const char* where = "roost::group_rows";
  detail::check_row_count(all.size(), where);
  const std::size_t n = all.size();
  if (n == 0) return {array<std::uint32_t, Place>(place, 0), detail::zeros(place, 1), 0};
  const auto rows = detail::numbers_to<std::uint32_t>(n);
  auto groups = detail::group(place, detail::zip_checked(keys, rows, where), 0, where);
  return {std::move(groups.values), std::move(groups.offsets), n};
}

template <detail::place_comes_first Place, class Keys, class By>
grouped_rows<Place> group_rows(const Place& place, const Keys& keys, const By& by, row_order order) {
  constexpr const char* where = "roost::group_rows";
  const auto all = detail::as_sequence(keys);
  const auto numbers = detail::as_sequence(by);
  if (all.size() != numbers.size()) {
    detail::raise<invalid_argument>(
        {where, ": ", all.size(), " keys but ", numbers.size(), " numbers to order them by; give one a key"});
  }
  detail::refuse_nan(place, numbers, where);
  const detail::order_word_at<detail::sequence_of<By>> word{numbers, order == row_order::descending};
  auto groups = detail::group_in_order(place, all.size(), detail::element<detail::sequence_of<Keys>>{all},
                                       all.size(), word, where);
  auto rows = detail::array_of(place, all.size(), detail::row_of_ordered{groups.rows.data()});
  place.synchronize();
  return {std::move(rows), std::move(groups.offsets), all.size()};
}

template <class Place>
array<std::uint32_t, Place> group_numbers(const Place& place, const grouped_rows<Place>& all) {
  auto numbers = detail::results_of_rows<std::uint32_t>(place, all);
  detail::for_each_grouped(place, all,
                           detail::write_group_number{all.rows().data(), numbers.data(), nullptr});
  return numbers;
}

template <class Place>
array<std::uint32_t, Place> positions_in_groups(const Place& place, const grouped_rows<Place>& all) {
  auto positions = detail::results_of_rows<std::uint32_t>(place, all);
  detail::for_each_grouped(place, all,
                           detail::write_group_number{all.rows().data(), nullptr, positions.data()});
  return positions;
}

template <class Place>
array<std::uint32_t, Place> shifted_rows(const Place& place, const grouped_rows<Place>& all, std::int64_t n) {
  auto rows = detail::results_of_rows<std::uint32_t>(place, all);
  detail::for_each_grouped(place, all,
                           detail::write_shifted{all.rows().data(), all.offsets().data(), n, rows.data()});
  return rows;
}

template <class Place>
grouped_rows<Place> first_rows(const Place& place, const grouped_rows<Place>& all, std::uint64_t n) {
  return detail::end_rows(place, all, n, true);
}
template <class Place>
grouped_rows<Place> last_rows(const Place& place, const grouped_rows<Place>& all, std::uint64_t n) {
  return detail::end_rows(place, all, n, false);
}

template <class Place>
array<std::uint32_t, Place> nth_rows(const Place& place, const grouped_rows<Place>& all, std::int64_t n) {
  return detail::array_of(place, all.group_count(),
                          detail::nth_of_group{all.rows().data(), all.offsets().data(), n});
}

template <class Place, class Values, class F>
auto combine_groups(const Place& place, const grouped_rows<Place>& all, const Values& values, const F& f) {
  using T = detail::element_of<Values>;
  using sequence = detail::sequence_of<Values>;
  const sequence source = detail::as_sequence(values);
  detail::check_value_count(source.size(), all.batch_size(), "roost::combine_groups");
  array<T, Place> results(place, all.group_count());
  if (all.size() != 0) {
    detail::reduce_lists(place, detail::value_at_row<sequence>{source, all.rows().data()}, all.offsets(), f,
                         results.data(), nullptr);
  }
  place.synchronize();
  return results;
}

template <class Place, class Differs>
grouped_rows<Place> split_groups(const Place& place, const grouped_rows<Place>& all, const Differs& differs) {
  const std::size_t n = all.size();
  array<std::uint8_t, Place> begins(place, n);
  detail::for_each_grouped(place, all,
                           detail::begins_group<Differs>{all.rows().data(), differs, begins.data()});
  const detail::element<const std::uint8_t*> begins_at{begins.data()};
  const std::uint64_t groups = place.sum(n, begins_at);
  array<std::uint64_t, Place> offsets(place, groups + 1);
  using put = detail::put_at_position<detail::number<std::uint64_t>, std::uint64_t>;
  if (n != 0) detail::select(place, n, begins_at, put{{}, offsets.data()});
  detail::write_one(place, offsets.data() + groups, std::uint64_t{n});
  array<std::uint32_t, Place> rows(place, n);
  place.copy(rows.data(), all.rows().data(), rows.bytes());
  place.synchronize();
  return {std::move(rows), std::move(offsets), all.batch_size()};
}

}  // namespace roost
