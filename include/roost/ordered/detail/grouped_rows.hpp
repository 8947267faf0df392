#pragma once

// Rows by key, in order: see roost/ordered/grouped_rows.hpp.

#include <algorithm>

#include "roost/detail/groups/reduce_lists.hpp"
#include "roost/ordered/detail/by_row.hpp"
#include "roost/ordered/detail/order.hpp"
#include "roost/ordered/grouped_rows.hpp"

namespace roost::detail {

/// A row, and the word that orders it.
template <class Word>
struct __attribute__((packed, aligned(4))) ordered_row {
  std::uint32_t row;
  Word word;
};
/// What a place moves into groups: a GPU moves rows alone, and gathers their words afterwards.
template <class Word, class Place>
using grouped_item = std::conditional_t<std::is_same_v<Place, host>, ordered_row<Word>, std::uint32_t>;

template <class Word>
ROOST_FN std::uint32_t row_of(const ordered_row<Word>& item) {
  return item.row;
}
ROOST_FN std::uint32_t row_of(std::uint32_t item) { return item; }

/// Rows in groups, on a host with their words.
template <class Word, class Place>
struct ordered_groups {
  array<grouped_item<Word, Place>, Place> rows;
  array<std::uint64_t, Place> offsets;
};

/// The key of row order[i], or of row i if `order` is null, with the item of this row.
template <class Key, class Word, class Item>
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
    if constexpr (std::is_same_v<Item, std::uint32_t>) {
      return pair_of(key(row), row);
    } else {
      return pair_of(key(row), Item{row, word(row)});
    }
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

/// The words of rows of groups, by position.
template <class Word>
struct word_of_row {
  Word word;
  const std::uint32_t* rows;
  ROOST_FN auto operator()(std::uint64_t i) const { return word(rows[i]); }
};
template <class Word>
struct word_at {
  const Word* words;
  ROOST_FN bool counts(std::uint64_t) const { return true; }
  ROOST_FN Word operator()(std::uint64_t i) const { return words[i]; }
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
/// they are not in order; on a host only if they are neither in their groups. Synchronises.
template <class Place, class Key, class Word>
auto group_in_order(const Place& place, std::size_t n, const Key& key, std::size_t ordered, const Word& word,
                    const char* where) {
  using word_type = decltype(word(n));
  using item = grouped_item<word_type, Place>;
  check_row_count(n, where);
  ordered_groups<word_type, Place> result;
  keys_with_ordered_rows<Key, Word, item> source{key, word, nullptr, ordered, n};
  const auto take = [&](auto&& all) {
    result.rows = std::move(all.values);
    result.offsets = std::move(all.offsets);
  };
  if (n == 0) {
    result.offsets = zeros(place, 1);
    return result;
  }
  const bool sorted = ordered < 2 || place.sum(ordered - 1, descends_at<Word>{word}) == 0;
  if constexpr (!std::is_same_v<Place, host>) {
    if (sorted) {  // a source without an order is read faster
      take(group(place, zip_checked(computed(n, key), numbers_to<std::uint32_t>(n), where), 0, where));
      return result;
    }
  } else {
    take(group(place, source, 0, where));
    if (sorted) return result;
    const auto offsets = result.offsets.span();
    if (!descends(place, offsets, n, word_of_item<word_type>{result.rows.data(), ordered})) return result;
    // A third of the time of sorting all rows. One thread sorts a group: none may be most of the work.
    std::uint64_t most = 0;
    for (std::size_t g = 0; g + 1 < offsets.size(); ++g) most = larger(most, offsets[g + 1] - offsets[g]);
    if (most <= larger<std::uint64_t>(sorted_at_once, n / 16)) {
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

template <class Item>
struct row_of_ordered {
  const Item* rows;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return row_of(rows[i]); }
};

inline void check_value_count(std::size_t values, std::size_t rows, const char* where) {
  if (values != rows)
    raise<invalid_argument>({where, ": ", values, " values for ", rows, " rows; give one for each"});
}

/// The words of times, by position. Throws invalid_argument if they are not ascending in each group.
template <class Place, class Times>
auto times_in_order(const Place& place, const grouped_rows<Place>& all, const Times& times,
                    const char* where) {
  check_value_count(times.size(), all.batch_size(), where);
  refuse_nan(place, times, where);
  using word = order_word_at<Times>;
  auto words = array_of(place, all.size(), word_of_row<word>{word{times}, all.rows().data()});
  using at = word_at<typename word::kind::word>;
  if (descends(place, all.offsets(), all.size(), at{words.data()})) {
    raise<invalid_argument>({where,
                             ": rows that are not in the order of these times in their groups; group "
                             "them by roost::group_rows(place, keys, times)"});
  }
  return words;
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

/// The number of the group of a row, or its position there, counted from `from`.
struct write_number_of_row {
  bool group_number;
  std::uint32_t from;
  put_result<std::uint32_t> put;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    put(i, from + static_cast<std::uint32_t>(group_number ? group : k));
  }
};
template <class Place>
array<std::uint32_t, Place> numbers_of_rows(const Place& place, const grouped_rows<Place>& all,
                                            bool group_number, std::uint32_t from = 0) {
  return results_by_row<std::uint32_t>(place, all.rows(), all.batch_size(), [&](const auto& put) {
    for_each_grouped(place, all, write_number_of_row{group_number, from, put});
  });
}

struct write_shifted {
  const std::uint64_t* offsets;
  std::int64_t n;
  put_result<std::uint32_t> put;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    const auto size = offsets[group + 1] - offsets[group];
    const std::uint64_t from = k - static_cast<std::uint64_t>(n);  // wraps around, beyond every size
    put(i, from < size ? put.rows[offsets[group] + from] : no_row<std::uint32_t>);
  }
};

/// Values in the order of the groups.
template <class Values>
struct value_at_row {
  Values values;
  const std::uint32_t* rows;
  ROOST_FN auto operator[](std::size_t i) const { return values[rows[i]]; }
};

/// Whether position i of all begins a group of its own.
template <class Differs>
struct begins_group {
  Differs differs;
  std::uint8_t* begins;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t, std::uint64_t k) const {
    begins[i] = k == 0 || differs(i) ? 1 : 0;
  }
};
template <class Differs>
struct rows_differ {
  const std::uint32_t* rows;
  Differs differs;
  ROOST_FN bool operator()(std::uint64_t i) const { return differs(rows[i - 1], rows[i]); }
};

/// Splits groups before each position i for which differs(i) is true.
template <class Place, class Differs>
grouped_rows<Place> split_positions(const Place& place, const grouped_rows<Place>& all,
                                    const Differs& differs) {
  const std::size_t n = all.size();
  array<std::uint8_t, Place> begins(place, n);
  for_each_grouped(place, all, begins_group<Differs>{differs, begins.data()});
  const element<const std::uint8_t*> begins_at{begins.data()};
  const std::uint64_t groups = place.sum(n, begins_at);
  array<std::uint64_t, Place> offsets(place, groups + 1);
  using put = put_at_position<number<std::uint64_t>, std::uint64_t>;
  if (n != 0) select(place, n, begins_at, put{{}, offsets.data()});
  write_one(place, offsets.data() + groups, std::uint64_t{n});
  array<std::uint32_t, Place> rows(place, n);
  place.copy(rows.data(), all.rows().data(), rows.bytes());
  place.synchronize();
  return {std::move(rows), std::move(offsets), all.batch_size()};
}

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
  if constexpr (std::is_same_v<Place, host>) {
    auto rows = detail::array_of(place, all.size(), detail::row_of_ordered{groups.rows.data()});
    return {std::move(rows), std::move(groups.offsets), all.size()};
  } else {
    return {std::move(groups.rows), std::move(groups.offsets), all.size()};
  }
}

template <class Place>
array<std::uint32_t, Place> group_numbers(const Place& place, const grouped_rows<Place>& all) {
  return detail::numbers_of_rows(place, all, true);
}

template <class Place>
array<std::uint32_t, Place> positions_in_groups(const Place& place, const grouped_rows<Place>& all) {
  return detail::numbers_of_rows(place, all, false);
}

template <class Place>
array<std::uint32_t, Place> shifted_rows(const Place& place, const grouped_rows<Place>& all, std::int64_t n) {
  return detail::results_by_row<std::uint32_t>(place, all.rows(), all.batch_size(), [&](const auto& put) {
    detail::for_each_grouped(place, all, detail::write_shifted{all.offsets().data(), n, put});
  });
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
  return detail::split_positions(place, all, detail::rows_differ<Differs>{all.rows().data(), differs});
}

}  // namespace roost
