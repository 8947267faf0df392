#pragma once

#include "roost/embedding/detail/copy_rows.hpp"
#include "roost/ids/detail/reduce_numbers.hpp"

// Bodies of roost/ids/reduce_rows.hpp. Rows are sorted stably by id: then those of an id are a run. A
// run is reduced by pieces of 32 rows from its own beginning. The results of a run with several pieces are a
// run of the next level, and so on. Nothing is counted first: piece j of a run that begins at b has slot
// b / 16 + j of the next level. Runs with several pieces have 33 rows or more, so that these slots are
// different, and a level has a sixteenth of the slots of the one below.

namespace roost::detail {

/// Positions [begin, end) of the sorted rows.
struct row_run {
  std::uint32_t begin, end;
};

/// Writes where the run of each group that has rows begins and ends.
struct write_runs {
  grouped_view sorted;
  std::size_t n;
  std::uint32_t groups;
  row_run* runs;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t group = sorted.group(i);
    if (group >= groups) return;
    if (i == 0 || sorted.group(i - 1) != group) runs[group].begin = static_cast<std::uint32_t>(i);
    if (i + 1 == n || sorted.group(i + 1) != group) runs[group].end = static_cast<std::uint32_t>(i + 1);
  }
};

struct runs_of_groups {
  grouped_view sorted;
  std::size_t n;
  const row_run* known;  // or null: the run is searched for

  ROOST_FN row_run operator()(std::uint32_t group) const {
    if (known != nullptr) return known[group];
    const auto begin = lower_bound(std::size_t{0}, n, [&](std::size_t i) { return sorted.group(i) < group; });
    const auto end = lower_bound(begin, n, [&](std::size_t i) { return sorted.group(i) <= group; });
    return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
};

/// Reduces the pieces that begin in a tile of sorted rows. Source: the type of rows, which above the lowest
/// level are results of pieces.
template <int Width, class Source, class Value>
struct reduce_pieces {
  using Sum = sum_type<Value>;
  static constexpr int threads = 128, teams_at_once = 10;
  static constexpr std::uint32_t tile = rows_of_piece;
  static constexpr int at_once = 4;
  template <class Place>
  static constexpr std::size_t tiles_of_team(std::uint32_t lanes) {
    return std::is_same_v<Place, host> ? 64 : threads / lanes;
  }

  using numbers = stored_numbers<Width, Sum>;

  grouped_view sorted;  // of this level
  std::size_t n;
  std::uint32_t level, groups;
  runs_of_groups runs;  // of the lowest level
  const Source* rows;   // null: numbers are in the place of positions
  std::size_t width;
  std::uint32_t lanes;  // of a row
  grouped_row* next;    // level; or null: all runs have one piece
  Sum* results;         // of pieces of runs with several
  Value* out;
  reduction_options options;
  row_run* long_runs = nullptr;  // of groups with several pieces: written by reduce_numbers; or null

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const auto rank = static_cast<std::uint32_t>(team.rank());
    const std::size_t of_team = tiles_of_team<typename Team::place>(lanes);
    for (std::size_t t = rank / lanes; t < of_team; t += static_cast<std::size_t>(Team::size) / lanes) {
      const range mine = range_of(index * of_team + t);
      if (mine.first >= mine.last) continue;
      const bool adds = options.how == row_reduction::sum || options.how == row_reduction::mean;
      for (std::size_t piece = rank % lanes; piece < width / Width; piece += lanes)
        adds ? reduce<true>(mine, piece) : reduce<false>(mine, piece);
    }
  }

  // What follows is for the kernel itself, and for reduce_numbers.

  /// Sorted rows [first, last), which are whole pieces; and where the run of the first one begins.
  struct range {
    std::size_t first, last, begin;
  };

  ROOST_FN std::uint32_t group_at(std::size_t e) const { return e < n ? sorted.group(e) : ~0u; }

  ROOST_FN row_run run_here(std::uint32_t group) const {
    const row_run run = runs(group);
    const std::uint32_t begin = run.begin >> slot_shift * level, shift = piece_shift * level;
    const std::uint64_t size =
        (std::uint64_t{run.end - run.begin} + (std::uint64_t{1} << shift) - 1) >> shift;
    return {begin, begin + static_cast<std::uint32_t>(size)};
  }

  ROOST_FN static std::size_t next_piece(const row_run& run, std::size_t e) {
    const std::size_t piece = run.begin + (e - run.begin + tile - 1) / tile * tile;
    return smaller<std::size_t>(piece, run.end);
  }

  ROOST_FN range range_of(std::size_t number) const {
    const std::size_t first = number * tile, end = smaller(first + tile, n);
    range r{first, end, first};
    if (first >= end) return r;
    const std::uint32_t group = group_at(first), last = group_at(end - 1);
    if (group < groups && first != 0 && group_at(first - 1) == group) {
      const row_run run = run_here(group);
      r.first = next_piece(run, first);
      r.begin = r.first == run.end ? r.first : run.begin;
    }
    if (last < groups && group_at(end) == last) r.last = next_piece(run_here(last), end);
    return r;
  }

  ROOST_FN numbers load(const grouped_row& item, std::size_t piece) const {
    numbers row{};
    if (rows == nullptr) {
      if constexpr (sizeof(Source) <= 4 && Width == 1) {
        Source x;
        if constexpr (sizeof(Source) == 2) {
          x = {static_cast<std::uint16_t>(item.value)};
        } else {
          memcpy(&x, &item.value, sizeof(x));
        }
        row.x[0] = to_sum<Sum>(x);
      }
    } else {
      const auto stored = reinterpret_cast<const stored_numbers<Width, Source>*>(
          rows + std::size_t{item.value} * width)[piece];
      ROOST_UNROLL
      for (int i = 0; i < Width; ++i) row.x[i] = to_sum<Sum>(stored.x[i]);
    }
    return row;
  }

  template <bool Adds>
  ROOST_FN void reduce(const range& r, std::size_t piece) const {
    const row_reduction how = Adds ? row_reduction::sum : options.how;
    numbers sum{};
    auto begin = static_cast<std::uint32_t>(r.begin);  // of the run
    std::uint32_t count = 0;                           // of rows in the sum
    for (std::size_t e = r.first; e < r.last; e += at_once) {
      grouped_row item[at_once + 1];
      numbers row[at_once] = {};
      ROOST_UNROLL
      for (int k = 0; k <= at_once; ++k) {
        item[k].key = group_at(e + k);
        if (k < at_once && item[k].key < groups) item[k].value = sorted.row(e + k);
      }
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        if (e + k < r.last && item[k].key < groups) row[k] = load(item[k], piece);
      }
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        if (e + k >= r.last) continue;
        const bool goes_on = item[k + 1].key == item[k].key;
        if (item[k].key < groups) {
          if (count == 0) {
            sum = row[k];
          } else {
            ROOST_UNROLL
            for (int x = 0; x < Width; ++x) sum.x[x] = combined(how, sum.x[x], row[k].x[x]);
          }
          if (++count == tile || !goes_on) {
            const auto first = static_cast<std::uint32_t>(e + k + 1) - count;
            if (first == begin && !goes_on) {
              finish(item[k].key, piece, sum, count);
            } else {
              pass_on(item[k].key, begin, (first - begin) / tile, piece, sum);
            }
            count = 0;
          }
        }
        if (!goes_on) begin = static_cast<std::uint32_t>(e + k + 1);
      }
    }
  }

  /// Keeps the result of a piece for the next level.
  ROOST_FN void pass_on(std::uint32_t group, std::uint32_t begin, std::uint32_t j, std::size_t piece,
                        const numbers& sum) const {
    const std::uint32_t slot = (begin >> slot_shift) + j;
    if (piece == 0) next[slot] = {group, slot};
    reinterpret_cast<numbers*>(results + std::size_t{slot} * width)[piece] = sum;
  }

  ROOST_FN Sum with_output(Sum output, Sum result) const {
    if constexpr (!std::is_integral_v<Sum>) {  // fma: otherwise compilers choose how often this is rounded
      if (options.how == row_reduction::sum && options.scale != 1)
        return std::fma(result, static_cast<Sum>(options.scale), output);
    }
    return combined(options.how, output, result);
  }

  ROOST_FN void finish(std::uint32_t group, std::size_t piece, numbers sum, std::uint64_t count) const {
    auto& target = reinterpret_cast<stored_numbers<Width, Value>*>(out + std::size_t{group} * width)[piece];
    const bool mean = options.how == row_reduction::mean;
    if (mean && level != 0) {
      const row_run run = runs(group);
      count = run.end - run.begin;
    }
    stored_numbers<Width, Value> result;
    if (options.with_output) {
      result = target;
      ++count;
    }
    ROOST_UNROLL
    for (int x = 0; x < Width; ++x) {
      if (options.with_output) {
        sum.x[x] = with_output(to_sum<Sum>(result.x[x]), sum.x[x]);
      } else if constexpr (!std::is_integral_v<Sum>) {
        if (options.how == row_reduction::sum) sum.x[x] *= static_cast<Sum>(options.scale);
      }
    }
    ROOST_UNROLL
    for (int x = 0; x < Width; ++x) result.x[x] = from_sum<Value>(mean ? mean_of(sum.x[x], count) : sum.x[x]);
    target = result;
  }
};

/// What is reduced, and where to.
template <class Value>
struct rows_to_reduce {
  grouped_view sorted;
  std::size_t n;
  bool ascends;       // whether groups do: then few rows of many groups take no memory for each group
  const Value* rows;  // or null: see reduce_pieces
  std::size_t width;
  std::span<Value> out;
};

/// Slots of all levels above the lowest, if the rows of an id are n at most.
inline std::size_t slots_above(std::size_t n) {
  std::size_t all = 0;
  for (std::size_t most = n, slots = n; most > rows_of_piece;
       most = ceil_div<std::size_t>(most, rows_of_piece)) {
    slots = (slots >> slot_shift) + 1;
    all += slots;
  }
  return all;
}

/// Reduces rows level by level.
template <int Width, class Place, class Value>
void reduce_levels(const Place& place, const rows_to_reduce<Value>& all, const reduction_options& options) {
  using Sum = sum_type<Value>;
  const std::size_t groups = all.out.size() / all.width, n = all.n, width = all.width;
  constexpr bool may_be_single = Width == 1 && !std::is_same_v<Place, host>;
  const bool single = may_be_single && width == 1;
  array<row_run, Place> known(place, all.ascends && groups > n ? 0 : groups);
  const bool by_numbers = single && all.ascends;  // reduce_numbers writes the long runs to `known`
  if (known.size() != 0 && !by_numbers)
    place.for_each(n, write_runs{all.sorted, n, static_cast<std::uint32_t>(groups), known.data()});
  runs_of_groups runs{all.sorted, n, known.size() != 0 && !by_numbers ? known.data() : nullptr};
  const std::uint32_t lanes = lanes_of_row<Place>(width / Width);
  const std::size_t slots_of_all = slots_above(n);
  auto all_rows = filled<grouped_row>(place, slots_of_all, 0xff);
  array<Sum, Place> all_results(place, slots_of_all * width);
  grouped_row *level_rows = nullptr, *next = all_rows.data();
  Sum* results = all_results.data();
  std::uint32_t level = 0;
  const auto run = [&]<class Source>(const Source* of_level, std::size_t n_here, bool more) {
    using kernel = reduce_pieces<Width, Source, Value>;
    const kernel reduce{.sorted = level == 0 ? all.sorted : grouped_view(level_rows),
                        .n = n_here,
                        .level = level,
                        .groups = static_cast<std::uint32_t>(groups),
                        .runs = runs,
                        .rows = of_level,
                        .width = width,
                        .lanes = lanes,
                        .next = more ? next : nullptr,
                        .results = results,
                        .out = all.out.data(),
                        .options = options,
                        .long_runs = by_numbers && level == 0 ? known.data() : nullptr};
    if constexpr (may_be_single) {
      if (single) {
        const reduce_numbers<kernel> numbers{reduce};
        return place.launch(ceil_div<std::size_t>(n_here, numbers.tile), scratch_bytes_of(numbers), numbers);
      }
    }
    const std::size_t tiles = ceil_div<std::size_t>(n_here, kernel::tile);
    place.launch(ceil_div(tiles, kernel::template tiles_of_team<Place>(lanes)), 0, reduce);
  };
  std::size_t here = n, most = n;
  run(all.rows, here, most > rows_of_piece);
  if (by_numbers && known.size() != 0) runs.known = known.data();
  while (most > rows_of_piece) {
    most = ceil_div<std::size_t>(most, rows_of_piece);
    here = (here >> slot_shift) + 1;
    ++level;
    const Sum* const level_results = results;
    level_rows = next;
    next += here;
    results += here * width;
    run(level_results, here, most > rows_of_piece);
  }
}

/// The same with several numbers at a time where that is possible.
template <class Place, class Value>
void reduce_grouped(const Place& place, const rows_to_reduce<Value>& all, const reduction_options& options) {
  const auto reduce = [&](auto w) { reduce_levels<w()>(place, all, options); };
  by_width(all.width, reduce, all.rows, static_cast<const Value*>(all.out.data()));
}

}  // namespace roost::detail

namespace roost {

template <class Place, class Id, class Value>
void reduce_rows(const Place& place, std::span<Id> ids, std::type_identity_t<std::span<const Value>> rows,
                 std::size_t width, std::span<Value> out, const reduction_options& options) {
  using number = std::remove_const_t<Id>;
  static_assert(std::is_same_v<number, std::int32_t> || std::is_same_v<number, std::int64_t>);
  const std::size_t n = ids.size(), groups = width == 0 ? 0 : out.size() / width;
  if (rows.size() != n * width || out.size() != groups * width || options.wrong == nullptr) {
    detail::raise<invalid_argument>({"roost::reduce_rows: ", rows.size(), " numbers for ", n,
                                     " ids, and an output of ", out.size(), ", in rows of ", width,
                                     options.wrong == nullptr ? "; no word for wrong ids" : ""});
  }
  detail::check_ids("roost::reduce_rows", n, groups);
  if (n == 0 || width == 0) return;
  if constexpr (!std::is_same_v<Place, host> && sizeof(Value) >= 4) {
    const bool least = options.how == row_reduction::least;
    if (width == 1 && (least || options.how == row_reduction::greatest)) {
      return least ? detail::reduce_extremes<false>(place, ids, rows.data(), out, options)
                   : detail::reduce_extremes<true>(place, ids, rows.data(), out, options);
    }
  }
  // A single number of at most 4 bytes is sorted with its id.
  const bool with_numbers = width == 1 && sizeof(Value) <= 4;
  const detail::group_at<number> group{ids.data(), static_cast<std::uint32_t>(groups), options.wrong,
                                       with_numbers ? rows.data() : nullptr, sizeof(Value) == 2};
  const auto sorted = detail::sort_ids(place, n, group);
  detail::reduce_grouped(place,
                         detail::rows_to_reduce<Value>{.sorted = sorted.view(),
                                                       .n = n,
                                                       .ascends = true,
                                                       .rows = with_numbers ? nullptr : rows.data(),
                                                       .width = width,
                                                       .out = out},
                         options);
}

template <class Place, class Value>
void reduce_grouped_rows(const Place& place, std::span<const grouped_position> sorted,
                         std::type_identity_t<std::span<const Value>> rows, std::size_t width,
                         std::span<Value> out, const reduction_options& options) {
  if (width == 0 || rows.size() % width != 0 || out.size() % width != 0) {
    detail::raise<invalid_argument>({"roost::reduce_grouped_rows: ", rows.size(),
                                     " numbers, and an output of ", out.size(), ", in rows of ", width});
  }
  detail::check_ids("roost::reduce_grouped_rows", sorted.size(), out.size() / width);
  if (sorted.empty()) return;
  detail::reduce_grouped(place,
                         detail::rows_to_reduce<Value>{.sorted = detail::grouped_view(sorted.data()),
                                                       .n = sorted.size(),
                                                       .ascends = options.ascending,
                                                       .rows = rows.data(),
                                                       .width = width,
                                                       .out = out},
                         options);
}

}  // namespace roost
