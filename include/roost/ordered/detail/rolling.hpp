#pragma once

// Rolling windows: see roost/ordered/rolling.hpp.

#include <bit>

#include "roost/ordered/detail/running.hpp"
#include "roost/ordered/detail/two_sides.hpp"
#include "roost/ordered/rolling.hpp"

namespace roost::detail {

/// Writes the windows that find(i, group, k) returns for the rows of groups.
template <class Find>
struct write_windows {
  Find find;  // of each worker, which may keep what it found last
  row_window* windows;
  std::uint32_t* longest;

  ROOST_FN write_windows worker() const { return *this; }
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) {
    const row_window window = find(i, group, k);
    windows[i] = window;
    fetch_max(*longest, window.end - window.first);
  }
};

template <class Place, class Find>
row_windows<Place> windows_of(const Place& place, const grouped_rows<Place>& all, const Find& find) {
  row_windows<Place> result{array<row_window, Place>(place, all.size())};
  auto longest = zeros<std::uint32_t>(place, 1);
  for_each_grouped(place, all, write_windows<Find>{find, result.windows.data(), longest.data()});
  result.longest = read_one(place, longest.data());
  return result;
}

struct find_by_rows {
  const std::uint64_t* offsets;
  rows_around rows;
  ROOST_FN row_window operator()(std::uint64_t, std::uint64_t group, std::uint64_t k) const {
    const std::uint64_t begin = offsets[group];
    const auto size = static_cast<std::int64_t>(offsets[group + 1] - begin);
    const auto within = [&](std::int64_t from) {  // position k + from of the group
      const auto at = static_cast<std::int64_t>(k);
      return static_cast<std::uint64_t>(from < -at ? 0 : from > size - at ? size : at + from);
    };
    const std::uint64_t first = within(rows.first);
    const std::uint64_t end = larger(first, within(rows.last == INT64_MAX ? rows.last : rows.last + 1));
    return {static_cast<std::uint32_t>(begin + first), static_cast<std::uint32_t>(begin + end)};
  }
};

template <class Time>
struct find_by_time {
  using kind = order_word<Time>;
  using word = typename kind::word;
  const std::uint64_t* offsets;
  const word* times;  // by position
  time_around<Time> span;
  bool left, right;                     // whether these ends are included
  std::uint64_t before = 0, after = 0;  // rows in the last window before its row, and from it on

  ROOST_FN row_window operator()(std::uint64_t i, std::uint64_t group, std::uint64_t) {
    const std::uint64_t begin = offsets[group], stop = offsets[group + 1];
    const word t = times[i];
    const std::uint64_t first =
        search_from(begin, stop, i - smaller(before, i - begin), [&](std::uint64_t p) {
          if (times[p] > t) return false;
          const auto apart = kind::between(t, times[p]);
          return !(left ? apart <= span.before : apart < span.before);
        });
    const std::uint64_t end = search_from(begin, stop, smaller(i + after, stop), [&](std::uint64_t p) {
      if (times[p] < t) return true;
      const auto apart = kind::between(times[p], t);
      return right ? apart <= span.after : apart < span.after;
    });
    before = first < i ? i - first : 0;
    after = end > i ? end - i : 0;
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(larger(first, end))};
  }
};

struct write_window_size {
  const row_window* windows;
  put_result<std::uint32_t> put;
  ROOST_FN void operator()(std::size_t i) const { put(i, windows[i].end - windows[i].first); }
};

struct write_window_end {
  const row_window* windows;
  bool last;
  put_result<std::uint32_t> put;
  ROOST_FN void operator()(std::size_t i) const {
    const row_window window = windows[i];
    put(i,
        window.first == window.end ? no_row<std::uint32_t> : put.rows[last ? window.end - 1 : window.first]);
  }
};

/// Combines the values of the window of a row.
template <class T, class F>
struct combine_window {
  level_views<T> levels;
  const row_window* windows;
  F f;
  T missing;
  put_result<T> put;

  /// Elements [first, end) of a level, one after the other.
  ROOST_FN T in_turn(const T* elements, std::uint64_t first, std::uint64_t end) const {
    T result = elements[first];
    for (std::uint64_t e = first + 1; e < end; ++e) result = f(result, elements[e]);
    return result;
  }

  ROOST_FN T combined(std::uint64_t group, std::uint64_t first, std::uint64_t end) const {
    T before = levels.suffixes[0][first], after = levels.prefixes[0][end - 1];
    std::uint64_t begin = levels.offsets[0][group];
    first -= begin;
    end -= begin;
    for (int level = 1;; ++level) {  // blocks [first, end) of the level below lie between
      first = first / block_size + 1;
      end = (end - 1) / block_size;
      if (first >= end) break;
      begin = levels.offsets[level][group];
      if (end - first <= block_size) {
        before = f(before, in_turn(levels.elements[level], begin + first, begin + end));
        break;
      }
      before = f(before, levels.suffixes[level][begin + first]);
      after = f(levels.prefixes[level][begin + end - 1], after);
    }
    return f(before, after);
  }

  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t) const {
    const row_window window = windows[i];
    const std::uint32_t size = window.end - window.first;
    put(i, size == 0            ? missing
           : size <= block_size ? in_turn(levels.elements[0], window.first, window.end)
                                : combined(group, window.first, window.end));
  }
};

// Selection by the bits of ranks, the greatest bit first. In each step, positions whose rank has a 0 come
// before those with a 1, stably, so that the ranks of a window stay in a range: a wavelet matrix, of which
// only one level exists at a time.

struct note_group {
  std::uint32_t* groups;  // of positions
  std::uint32_t* largest;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    groups[i] = static_cast<std::uint32_t>(group);
    fetch_max(*largest, static_cast<std::uint32_t>(k));
  }
};

/// Notes that position sorted[i] has rank k in its group.
struct note_rank {
  const std::uint32_t* sorted;
  const std::uint32_t* groups;
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  std::uint32_t* ranks;    // of positions
  std::uint32_t* by_rank;  // rows of groups
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t, std::uint64_t k) const {
    const std::uint32_t at = sorted[i];
    ranks[at] = static_cast<std::uint32_t>(k);
    by_rank[offsets[groups[at]] + k] = rows[at];
  }
};

/// Number `number` among the ranks at [first, end); `rank`: its bits so far. none: there is none.
struct range_search {
  std::uint32_t first, end, number, rank;
};

/// Searches by position, as windows are, with `each` numbers for each row.
template <class Numbers>
struct begin_search {
  const row_window* windows;
  const std::uint32_t* rows;
  Numbers numbers;
  std::size_t each;
  range_search* searches;
  ROOST_FN void operator()(std::size_t i) const {
    const row_window window = windows[i / each];
    const auto number = numbers[rows[i / each] * each + i % each];
    const bool is_there = number < window.end - window.first;
    searches[i] = {window.first, is_there ? window.end : window.first,
                   is_there ? static_cast<std::uint32_t>(number) : 0, 0};
  }
};

struct has_no_bit {
  const std::uint32_t* ranks;
  std::uint32_t bit;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return (ranks[i] >> bit & 1) ^ 1; }
};

/// A step: `zeros[i]` of the positions before i have no bit.
struct step_by_bit {
  const std::uint64_t* zeros;
  std::size_t n;
  std::uint32_t bit;
  ROOST_FN std::uint32_t zeros_before(std::size_t i) const { return static_cast<std::uint32_t>(zeros[i]); }

  ROOST_FN std::uint32_t next_place(std::size_t i, bool has) const {
    return has ? zeros_before(n) + static_cast<std::uint32_t>(i) - zeros_before(i) : zeros_before(i);
  }
  ROOST_FN void narrow(range_search& search) const {
    const std::uint32_t without = zeros_before(search.end) - zeros_before(search.first);
    const bool has = search.number >= without;
    search = {next_place(search.first, has), next_place(search.end, has),
              has ? search.number - without : search.number, search.rank | (has ? 1u << bit : 0)};
  }
};

struct narrow_search {
  step_by_bit step;
  range_search* searches;
  ROOST_FN void operator()(std::size_t i) const {
    if (searches[i].first != searches[i].end) step.narrow(searches[i]);
  }
};
struct move_rank {
  step_by_bit step;
  const std::uint32_t* ranks;
  std::uint32_t* moved;
  ROOST_FN void operator()(std::size_t i) const {
    moved[step.next_place(i, (ranks[i] >> step.bit & 1) != 0)] = ranks[i];
  }
};

struct write_found {
  const range_search* searches;
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  const std::uint32_t* by_rank;
  std::size_t each;
  std::uint32_t* results;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t) const {
    for (std::size_t k = 0; k < each; ++k) {
      const range_search& search = searches[i * each + k];
      results[rows[i] * each + k] =
          search.first == search.end ? no_row<std::uint32_t> : by_rank[offsets[group] + search.rank];
    }
  }
};

}  // namespace roost::detail

namespace roost {

template <class Place>
row_windows<Place> windows_by_rows(const Place& place, const grouped_rows<Place>& all,
                                   const rows_around& rows) {
  return detail::windows_of(place, all, detail::find_by_rows{all.offsets().data(), rows});
}

template <class Place, class Times>
row_windows<Place> windows_by_time(const Place& place, const grouped_rows<Place>& all, const Times& times,
                                   const time_around<detail::element_of<Times>>& span) {
  using time = detail::element_of<Times>;
  constexpr const char* where = "roost::windows_by_time";
  if constexpr (std::is_floating_point_v<time>) {
    if (!(span.before >= 0 && span.after >= 0))
      detail::raise<invalid_argument>({where, ": a distance below 0, or NaN; give 0 or more"});
  }
  const auto words = detail::times_in_order(place, all, detail::as_sequence(times), where);
  const bool both = span.closed == window_closed::both;
  return detail::windows_of(place, all,
                            detail::find_by_time<time>{all.offsets().data(), words.data(), span,
                                                       both || span.closed == window_closed::left,
                                                       both || span.closed == window_closed::right});
}

template <class Place>
array<std::uint32_t, Place> window_sizes(const Place& place, const grouped_rows<Place>& all,
                                         const row_windows<Place>& windows) {
  return detail::results_by_row<std::uint32_t>(
      place, all.rows(), all.batch_size(),
      [&](const auto& put) {
        place.for_each(all.size(), detail::write_window_size{windows.windows.data(), put});
      },
      0);
}

template <class Place>
array<std::uint32_t, Place> window_ends(const Place& place, const grouped_rows<Place>& all,
                                        const row_windows<Place>& windows, bool last) {
  return detail::results_by_row<std::uint32_t>(place, all.rows(), all.batch_size(), [&](const auto& put) {
    place.for_each(all.size(), detail::write_window_end{windows.windows.data(), last, put});
  });
}

template <class Place, class Values, class F>
auto combine_windows(const Place& place, const grouped_rows<Place>& all, const row_windows<Place>& windows,
                     const Values& values, const F& f, const detail::element_of<Values>& missing) {
  using T = detail::element_of<Values>;
  const auto sequence = detail::as_sequence(values);
  detail::check_value_count(sequence.size(), all.batch_size(), "roost::combine_windows");
  if (all.size() == 0) return array<T, Place>(place, all.batch_size());
  const detail::values_of_rows<detail::sequence_of<Values>> source{
      sequence, all.rows().data(), all.offsets().data(), {false}};
  detail::scanned_levels<T, Place> scanned;
  if (windows.longest > detail::block_size) {
    scanned = detail::scan_levels<T>(place, all, source, f, true);
  } else {
    auto& elements = scanned.memory.emplace_back(place, all.size());
    const detail::value_at_row<detail::sequence_of<Values>> each{sequence, all.rows().data()};
    detail::write_numbers(place, all.size(), detail::element<decltype(each)>{each}, elements.data());
    scanned.view.elements[0] = elements.data();
  }
  auto results = detail::results_by_row<T>(place, all.rows(), all.batch_size(), [&](const auto& put) {
    detail::for_each_grouped(
        place, all, detail::combine_window<T, F>{scanned.view, windows.windows.data(), f, missing, put});
  });
  place.synchronize();
  return results;
}

template <class Place, class Values, class Numbers>
array<std::uint32_t, Place> nth_of_windows(const Place& place, const grouped_rows<Place>& all,
                                           const row_windows<Place>& windows, const Values& values,
                                           const Numbers& numbers) {
  constexpr const char* where = "roost::nth_of_windows";
  const auto sequence = detail::as_sequence(values);
  const auto wanted = detail::as_sequence(numbers);
  const std::size_t n = all.size(), batch = all.batch_size();
  detail::check_value_count(sequence.size(), batch, where);
  if (batch == 0 ? wanted.size() != 0 : wanted.size() % batch != 0) {
    detail::raise<invalid_argument>(
        {where, ": ", wanted.size(), " numbers for ", batch, " rows; give as many for each"});
  }
  array<std::uint32_t, Place> results(place, wanted.size());
  if (n == 0 || wanted.size() == 0) return results;
  const std::size_t each = wanted.size() / batch;
  const std::uint32_t* const rows = all.rows().data();
  const std::uint64_t* const offsets = all.offsets().data();
  array<std::uint32_t, Place> groups(place, n), ranks(place, n), by_rank(place, n);
  auto largest = detail::zeros<std::uint32_t>(place, 1);
  detail::for_each_grouped(place, all, detail::note_group{groups.data(), largest.data()});
  {
    const detail::value_at_row<detail::sequence_of<Values>> value{sequence, rows};
    const auto sorted =
        group_rows(place, groups, computed(n, detail::element<std::remove_cv_t<decltype(value)>>{value}));
    detail::for_each_grouped(
        place, sorted,
        detail::note_rank{sorted.rows().data(), groups.data(), rows, offsets, ranks.data(), by_rank.data()});
    place.synchronize();
  }
  array<detail::range_search, Place> searches(place, n * each);
  place.for_each(n * each, detail::begin_search<detail::sequence_of<Numbers>>{windows.windows.data(), rows,
                                                                              wanted, each, searches.data()});
  array<std::uint64_t, Place> zeros(place, n + 1);
  array<std::uint32_t, Place>& moved = groups;  // which nobody needs any more
  for (auto bit = static_cast<std::uint32_t>(std::bit_width(detail::read_one(place, largest.data())));
       bit-- > 0;) {
    detail::write_offsets(place, n, detail::has_no_bit{ranks.data(), bit}, zeros.data());
    const detail::step_by_bit step{zeros.data(), n, bit};
    place.for_each(n * each, detail::narrow_search{step, searches.data()});
    if (bit == 0) break;
    place.for_each(n, detail::move_rank{step, ranks.data(), moved.data()});
    std::swap(ranks, moved);
  }
  detail::for_each_grouped(
      place, all, detail::write_found{searches.data(), rows, offsets, by_rank.data(), each, results.data()});
  place.synchronize();
  return results;
}

}  // namespace roost
