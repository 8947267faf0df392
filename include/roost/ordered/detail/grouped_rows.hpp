#pragma once

// Rows by key, in order: see roost/ordered/grouped_rows.hpp.

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "roost/detail/groups/reduce_lists.hpp"
#include "roost/ordered/detail/by_row.hpp"
#include "roost/ordered/detail/order.hpp"
#include "roost/ordered/grouped_rows.hpp"

namespace roost::detail {

/// Items by position, with the words of their rows.
template <class Word>
struct ordered_items {
  const std::uint64_t* packed;
  const ordered_row* separate;  // of words of 8 bytes, if items are not packed
  packed_form form;
  std::uint64_t least;
  ROOST_FN bool is_packed() const { return sizeof(Word) < 8 || packed != nullptr; }
  ROOST_FN std::uint32_t row(std::uint64_t i) const {
    return is_packed() ? form.row(packed[i]) : separate[i].row;
  }
  ROOST_FN Word word(std::uint64_t i) const {
    return static_cast<Word>(least + (is_packed() ? form.word(packed[i]) : separate[i].word));
  }
};

/// Rows in groups, with their words.
template <class Word, class Place>
struct ordered_groups {
  array<std::uint64_t, Place> packed{};
  array<ordered_row, Place> separate{};
  array<std::uint64_t, Place> offsets{};
  packed_form form{};
  std::uint64_t least = 0;
  ordered_items<Word> items() const { return {packed.data(), separate.data(), form, least}; }
};

/// The key and the item of each row: of those in `order`, if it is not null, and then of the rows from
/// `ordered` on.
template <class Key, class Word, class Form, bool Ordered>
struct keys_with_items {
  Key key;
  Word word;
  Form form;
  std::uint64_t least;
  const typename Form::item* order;
  std::size_t ordered;
  ROOST_FN auto operator()(std::size_t i) const {
    const auto item = [&] {
      if (Ordered && i < ordered) return order[i];
      return form(static_cast<std::uint32_t>(i), word(i) - least);
    }();
    return pair_of(key(Ordered ? form.row(item) : i), item);
  }
};

inline void check_row_count(std::size_t n, const char* where) {
  if (n >= ~std::uint32_t{0}) raise<invalid_argument>({where, ": ", n, " rows; the most are 2^32 - 2"});
}

/// The words of rows of groups, by position.
template <class Word>
struct word_of_row {
  Word word;
  const std::uint32_t* rows;
  ROOST_FN auto operator()(std::uint64_t i) const { return word(rows[i]); }
};

/// Marks that descends(i) is true for some position that does not begin a group.
template <class Descends>
struct note_descent {
  Descends descends;
  std::uint32_t* seen;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t, std::uint64_t k) const {
    if (k != 0 && descends(i) && peek(*seen) == 0) fetch_or(*seen, 1u);
  }
};

/// Whether it is, among n positions. Synchronises.
template <class Place, class Descends>
bool some_descend(const Place& place, std::span<const std::uint64_t> offsets, std::size_t n,
                  const Descends& descends) {
  if (n == 0) return false;
  auto seen = zeros<std::uint32_t>(place, 1);
  expand(place, offsets.data(), offsets.size() - 1, n, note_descent<Descends>{descends, seen.data()});
  return read_one(place, seen.data()) != 0;
}

template <class Word>
struct words_descend {
  const Word* words;
  ROOST_FN bool operator()(std::uint64_t i) const { return words[i] < words[i - 1]; }
};
template <class Form>
struct items_descend {
  const typename Form::item* items;
  Form form;
  std::size_t ordered;  // rows from here on do not count
  bool operator()(std::uint64_t i) const {
    return form(items[i], items[i - 1]) && form.row(items[i]) < ordered;
  }
};

/// Sorts n items, on the host. `bits`: of their words.
inline void sort_items(ordered_row* items, std::size_t n, const separate_form& form, std::uint32_t) {
  std::sort(items, items + n, form);
}
/// Those whose rows are in order, by the digits of their words if that takes fewer steps.
inline void sort_items(std::uint64_t* items, std::size_t n, const packed_form& form, std::uint32_t bits) {
  constexpr std::uint32_t width = 8;
  const std::uint32_t passes = ceil_div(bits, width);
  if (2 * passes >= static_cast<std::uint32_t>(std::bit_width(n))) return std::sort(items, items + n);
  std::vector<std::uint64_t> other(n);
  std::uint64_t *from = items, *to = other.data();
  for (std::uint32_t pass = 0; pass < passes; ++pass) {
    const digit_at digit{form.row_bits + pass * width, width};
    std::array<std::size_t, 1u << width> next{};
    for (std::size_t i = 0; i < n; ++i) ++next[digit(from[i])];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), std::size_t{0});
    for (std::size_t i = 0; i < n; ++i) to[next[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + n, items);
}

/// Sorts the items of the rows of a group below `ordered`.
template <class Form>
struct sort_group {
  typename Form::item* items;
  const std::uint64_t* offsets;
  Form form;
  std::size_t ordered;
  std::uint32_t bits;
  void operator()(const serial_team&, std::size_t group, std::byte*) const {
    const auto first = items + offsets[group];
    const auto end = std::partition_point(first, items + offsets[group + 1],
                                          [&](const auto& item) { return form.row(item) < ordered; });
    sort_items(first, static_cast<std::size_t>(end - first), form, bits);
  }
};

template <class Source>
struct value_at {
  Source source;
  ROOST_FN auto operator()(std::size_t i) const { return source[i].value; }
};

/// Rows 0 to n - 1 by key(row). In each group the rows below `ordered` come first, in ascending order of
/// word(row), equal ones in the order of the rows; then the others in their order.
template <class Key, class Word>
struct rows_to_group {
  std::size_t n;
  Key key;
  std::size_t ordered;
  Word word;
  order_facts facts;  // of the words
  const char* where;  // for messages
};

/// See group_in_order. Moves the items of groups, and their offsets.
template <class Place, class Key, class Word, class Form>
void group_items(const Place& place, const rows_to_group<Key, Word>& rows, const Form& form,
                 array<typename Form::item, Place>& items, array<std::uint64_t, Place>& offsets) {
  const auto& [n, key, ordered, word, facts, where] = rows;
  const auto run = [&](const auto& source) {
    if constexpr (std::is_same_v<decltype(key(n)), none>) {  // one group
      items = array_of(place, n, value_at{source});
      offsets = zeros(place, 2);
      write_one(place, offsets.data() + 1, std::uint64_t{n});
      place.synchronize();
    } else {
      auto all = group(place, source, 0, where);
      items = std::move(all.values);
      offsets = std::move(all.offsets);
    }
  };
  const bool sorted = facts.descends == 0;
  if (sorted || std::is_same_v<Place, host>)
    run(computed(n, keys_with_items<Key, Word, Form, false>{key, word, form, facts.least, nullptr, 0}));
  if (sorted) return;
  if constexpr (std::is_same_v<Place, host>) {
    if (!some_descend(place, offsets.span(), n, items_descend<Form>{items.data(), form, ordered})) return;
    // A third of the time of sorting all rows. One thread sorts a group: none may be most of the work.
    std::uint64_t most = 0;
    for (std::size_t g = 0; g + 1 < offsets.size(); ++g)
      most = larger(most, offsets.data()[g + 1] - offsets.data()[g]);
    if (most <= larger<std::uint64_t>(sorted_at_once, n / 16)) {
      const auto bits = static_cast<std::uint32_t>(std::bit_width(facts.greatest - facts.least));
      place.launch(offsets.size() - 1, 0,
                   sort_group<Form>{items.data(), offsets.data(), form, ordered, bits});
      return;
    }
    items = {};
  }
  const auto order = items_in_order(place, ordered, word, facts, form);
  const auto source = array_of(  // since a grouping reads keys several times
      place, n, keys_with_items<Key, Word, Form, true>{key, word, form, facts.least, order.data(), ordered});
  run(as_sequence(source));
}

/// The item of a row.
template <class Word>
struct ordered_item_of_row {
  Word word;
  std::uint64_t least;
  const std::uint32_t* rows;
  ROOST_FN auto operator()(std::size_t i) const { return separate_form()(rows[i], word(rows[i]) - least); }
};

/// Groups rows, which are sorted only if they are not in order; on a host only if they are neither in their
/// groups. Synchronises.
template <class Place, class Key, class Word>
auto group_in_order(const Place& place, const rows_to_group<Key, Word>& rows) {
  const std::size_t n = rows.n;
  using word_type = decltype(rows.word(n));
  ordered_groups<word_type, Place> result;
  if (n == 0) {
    result.offsets = zeros(place, 1);
    return result;
  }
  result.least = rows.facts.least;
  result.form = {static_cast<std::uint32_t>(std::bit_width(n - 1))};
  const auto run = [&](const auto& form, auto& items) {
    group_items(place, rows, form, items, result.offsets);
  };
  if (sizeof(word_type) < 8 ||
      std::bit_width(rows.facts.greatest - rows.facts.least) + result.form.row_bits <= 64) {
    run(result.form, result.packed);
  } else if constexpr (sizeof(word_type) == 8) {
    if constexpr (std::is_same_v<Place, host>) {
      run(separate_form(), result.separate);
    } else {  // a GPU reads words by row in less time than it moves them twice
      array<std::uint32_t, Place> grouped(place, 0);
      run(row_form(), grouped);
      result.separate =
          array_of(place, n, ordered_item_of_row<Word>{rows.word, rows.facts.least, grouped.data()});
      place.synchronize();
    }
  }
  return result;
}

/// put(i, g, k) for each row rows()[i], which is row k of group g.
template <class Place, class Put>
void for_each_grouped(const Place& place, const grouped_rows<Place>& all, const Put& put) {
  if (all.size() != 0) expand(place, all.offsets().data(), all.group_count(), all.size(), put);
}

template <class Items>
struct row_of_ordered {
  Items items;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return items.row(i); }
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
  if (some_descend(place, all.offsets(), all.size(), words_descend{words.data()})) {
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
  detail::check_row_count(all.size(), where);
  const detail::order_word_at<detail::sequence_of<By>> word{numbers, order == row_order::descending};
  const std::size_t n = all.size();
  const auto facts = detail::order_facts_of(place, n, n, word);
  if (facts.descends == 0) return group_rows(place, keys);
  const detail::element<detail::sequence_of<Keys>> key{all};
  if constexpr (std::is_same_v<Place, host>) {
    auto groups = detail::group_in_order(place, detail::rows_to_group{n, key, n, word, facts, where});
    auto rows = detail::array_of(place, n, detail::row_of_ordered{groups.items()});
    return {std::move(rows), std::move(groups.offsets), n};
  } else {
    array<std::uint32_t, Place> rows;
    array<std::uint64_t, Place> offsets;
    detail::group_items(place, detail::rows_to_group{n, key, n, word, facts, where}, detail::row_form(), rows,
                        offsets);
    return {std::move(rows), std::move(offsets), n};
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
