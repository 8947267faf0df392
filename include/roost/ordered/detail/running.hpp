#pragma once

// Running results: see roost/ordered/running.hpp.

#include "roost/ordered/detail/blocks.hpp"
#include "roost/ordered/running.hpp"

namespace roost::detail {

/// Puts the running result of each row: f of what its blocks' earlier neighbours hold, on all levels.
template <class T, class F, class Finish, class Put>
struct put_running {
  level_views<T> levels;
  element_order order;
  F f;
  Finish finish;
  Put put;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t k) const {
    T result = levels.prefixes[0][i];
    const std::uint64_t at = order(levels.offsets[0], group, k);
    for (int level = 1; level < levels.count; ++level) {
      k /= block_size;
      if (k == 0) break;
      if (k % block_size != 0)
        result = f(levels.prefixes[level][levels.offsets[level][group] + k - 1], result);
    }
    put(at, finish(result));
  }
};

struct as_it_is {
  template <class T>
  ROOST_FN T operator()(const T& result) const {
    return result;
  }
};

/// finish(running result) of each row. `source`: (group, element) -> value.
template <class Place, class Source, class F, class Finish = as_it_is>
auto run_over_groups(const Place& place, const grouped_rows<Place>& all, const Source& source, const F& f,
                     element_order order, const Finish& finish = {}) {
  using T = std::remove_cvref_t<decltype(source(0, 0))>;
  using result = std::remove_cvref_t<decltype(finish(source(0, 0)))>;
  const auto scanned =
      all.size() == 0 ? scanned_levels<T, Place>{} : scan_levels<T>(place, all, source, f, false);
  auto results = results_by_row<result>(place, all.rows(), all.batch_size(), [&](const auto& put) {
    using putter = put_running<T, F, Finish, std::remove_cvref_t<decltype(put)>>;
    for_each_grouped(place, all, putter{scanned.view, order, f, finish, put});
  });
  place.synchronize();
  return results;
}

/// The same for values of rows.
template <class Place, class Sequence, class F>
auto run_over_values(const Place& place, const grouped_rows<Place>& all, const Sequence& values, const F& f,
                     running_direction direction) {
  const element_order order{direction == running_direction::backward};
  return run_over_groups(
      place, all, values_of_rows<Sequence>{values, all.rows().data(), all.offsets().data(), order}, f, order);
}

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

/// For each row its position, and whether it begins a run of equal values, or from the end on, ends one.
template <class Values>
struct runs_of_rows {
  Values values;
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  element_order order;
  ROOST_FN runs_so_far operator()(std::uint64_t group, std::uint64_t e) const {
    const std::uint64_t i = order(offsets, group, e);
    const bool differs = e == 0 || !(values[rows[order.backwards ? i + 1 : i - 1]] == values[rows[i]]);
    return {static_cast<std::uint32_t>(i - offsets[group]), differs ? 1u : 0u};
  }
};

struct rank_of_runs {
  bool dense;
  ROOST_FN std::uint32_t operator()(const runs_so_far& runs) const {
    return dense ? runs.runs : runs.begin + 1;
  }
};
}  // namespace roost::detail

namespace roost {

template <class Place, class Values, class F>
auto running(const Place& place, const grouped_rows<Place>& all, const Values& values, const F& f,
             running_direction direction) {
  const auto sequence = detail::as_sequence(values);
  detail::check_value_count(sequence.size(), all.batch_size(), "roost::running");
  return detail::run_over_values(place, all, sequence, f, direction);
}

template <class Place, class Present>
array<std::uint32_t, Place> filled_rows(const Place& place, const grouped_rows<Place>& all,
                                        const Present& present, running_direction direction) {
  const auto sequence = detail::as_sequence(present);
  detail::check_value_count(sequence.size(), all.batch_size(), "roost::filled_rows");
  const computed rows(all.batch_size(), detail::present_row<detail::sequence_of<Present>>{sequence});
  return detail::run_over_values(place, all, rows, detail::last_present(), direction);
}

template <class Place, class Values>
array<std::uint32_t, Place> ranks_in_groups(const Place& place, const grouped_rows<Place>& all,
                                            const Values& values, rank_method method) {
  using sequence = detail::sequence_of<Values>;
  const sequence numbers = detail::as_sequence(values);
  detail::check_value_count(numbers.size(), all.batch_size(), "roost::ranks_in_groups");
  if (method == rank_method::first) {
    auto results = detail::numbers_of_rows(place, all, false, 1);
    place.synchronize();
    return results;
  }
  const detail::element_order order{method == rank_method::greatest};
  return detail::run_over_groups(
      place, all, detail::runs_of_rows<sequence>{numbers, all.rows().data(), all.offsets().data(), order},
      detail::add_runs(), order, detail::rank_of_runs{method == rank_method::dense});
}

}  // namespace roost
