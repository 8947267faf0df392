#pragma once

// Running results: see roost/ordered/running.hpp.

#include "roost/ordered/detail/blocks.hpp"
#include "roost/ordered/running.hpp"

namespace roost::detail {

/// Puts the running result of each row: f of what its blocks' earlier neighbours hold, on all levels.
template <class T, class F, class Put>
struct put_running {
  level_views<T> levels;
  const std::uint32_t* rows;
  element_order order;
  F f;
  Put put;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    T result = levels.prefixes[0][i];
    const std::uint32_t row = rows[order(levels.offsets[0], group, k)];
    for (int level = 1; level < levels.count; ++level) {
      k /= block_size;
      if (k == 0) break;
      if (k % block_size != 0)
        result = f(levels.prefixes[level][levels.offsets[level][group] + k - 1], result);
    }
    put(row, result);
  }
};

/// put(row, result) for each row. `source`: what values_of_rows takes.
template <class Place, class Sequence, class F, class Put>
void run_over_groups(const Place& place, const grouped_rows<Place>& all, const Sequence& values, const F& f,
                     running_direction direction, const Put& put) {
  using T = std::remove_cvref_t<decltype(values[0])>;
  if (all.size() == 0) return;
  const element_order order{direction == running_direction::backward};
  const values_of_rows<Sequence> source{values, all.rows().data(), all.offsets().data(), order};
  const auto scanned = scan_levels<T>(place, all, source, f, false);
  for_each_grouped(place, all, put_running<T, F, Put>{scanned.view, all.rows().data(), order, f, put});
  place.synchronize();
}

template <class T>
struct put_at_row {
  T* results;
  ROOST_FN void operator()(std::uint32_t row, const T& result) const { results[row] = result; }
};

/// A row that is present, or no row.
template <class Present>
struct present_row {
  Present present;
  ROOST_FN std::uint32_t operator()(std::size_t row) const {
    return present[row] ? static_cast<std::uint32_t>(row) : no_row<std::uint32_t>;
  }
};
struct last_present {
  ROOST_FN std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    return b == no_row<std::uint32_t> ? a : b;
  }
};

/// Where the run of equal values of a row begins, and how many runs there are up to it: of each row, in one
/// word, so that one scan finds both.
struct runs_so_far {
  std::uint32_t begin, runs;
};
struct add_runs {
  ROOST_FN runs_so_far operator()(const runs_so_far& a, const runs_so_far& b) const {
    return {b.runs != 0 ? b.begin : a.begin, a.runs + b.runs};
  }
};

/// For each row of the batch its position, and whether it begins a run of equal values, or ends one.
template <class Values>
struct note_runs {
  Values values;
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  bool ends;
  runs_so_far* runs;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    const bool edge = ends ? i + 1 == offsets[group + 1] : k == 0;
    const bool differs = edge || !(values[rows[ends ? i + 1 : i - 1]] == values[rows[i]]);
    runs[rows[i]] = {static_cast<std::uint32_t>(k), differs ? 1u : 0u};
  }
};

struct put_rank {
  bool dense;
  std::uint32_t* results;
  ROOST_FN void operator()(std::uint32_t row, const runs_so_far& runs) const {
    results[row] = dense ? runs.runs : runs.begin + 1;
  }
};
}  // namespace roost::detail

namespace roost {

template <class Place, class Values, class F>
auto running(const Place& place, const grouped_rows<Place>& all, const Values& values, const F& f,
             running_direction direction) {
  using T = detail::element_of<Values>;
  const auto sequence = detail::as_sequence(values);
  detail::check_value_count(sequence.size(), all.batch_size(), "roost::running");
  array<T, Place> results(place, all.batch_size());
  detail::run_over_groups(place, all, sequence, f, direction, detail::put_at_row<T>{results.data()});
  return results;
}

template <class Place, class Present>
array<std::uint32_t, Place> filled_rows(const Place& place, const grouped_rows<Place>& all,
                                        const Present& present, running_direction direction) {
  const auto sequence = detail::as_sequence(present);
  detail::check_value_count(sequence.size(), all.batch_size(), "roost::filled_rows");
  auto results = detail::results_of_rows<std::uint32_t>(place, all);
  const computed rows(all.batch_size(), detail::present_row<detail::sequence_of<Present>>{sequence});
  detail::run_over_groups(place, all, rows, detail::last_present(), direction,
                          detail::put_at_row<std::uint32_t>{results.data()});
  place.synchronize();
  return results;
}

template <class Place, class Values>
array<std::uint32_t, Place> ranks_in_groups(const Place& place, const grouped_rows<Place>& all,
                                            const Values& values, rank_method method) {
  using sequence = detail::sequence_of<Values>;
  const sequence numbers = detail::as_sequence(values);
  detail::check_value_count(numbers.size(), all.batch_size(), "roost::ranks_in_groups");
  array<std::uint32_t, Place> results(place, all.batch_size());
  const std::uint32_t* const rows = all.rows().data();
  if (method == rank_method::first) {
    detail::for_each_grouped(place, all, detail::write_group_number{rows, nullptr, results.data(), 1});
    place.synchronize();
    return results;
  }
  const bool ends = method == rank_method::greatest;
  array<detail::runs_so_far, Place> runs(place, all.batch_size());
  detail::for_each_grouped(
      place, all, detail::note_runs<sequence>{numbers, rows, all.offsets().data(), ends, runs.data()});
  const detail::sequence<const detail::runs_so_far*> source{runs.data(), runs.size()};
  detail::run_over_groups(place, all, source, detail::add_runs(),
                          ends ? running_direction::backward : running_direction::forward,
                          detail::put_rank{method == rank_method::dense, results.data()});
  return results;
}

}  // namespace roost
