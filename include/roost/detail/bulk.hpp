#pragma once

#include <span>

#include "roost/place.hpp"
#include "roost/detail/tuning.hpp"

// Bulk operations that are the same for every table with a ref.

namespace roost::detail {

/// Runs answer(ref, i, query, opened lookup) over all queries, a few at a time for each worker, so that their memory accesses overlap.
template <class Place, class Ref, class Queries, class Answer>
struct probe_tiles {
  static constexpr int threads = tuning<cuda>::find_threads;
  static constexpr std::uint32_t in_flight = tuning<Place>::finds_in_flight;

  Ref ref;
  Queries queries;
  std::size_t n;
  Answer answer;

  template <class Team>
  static constexpr std::size_t tile = std::size_t{in_flight} * Team::size;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    using key = std::remove_cvref_t<decltype(queries[0])>;
    const std::size_t first = index * tile<Team>;
    const auto count = static_cast<std::uint32_t>(smaller(tile<Team>, n - first));
    key held_key[in_flight];
    if constexpr (Team::size == 1) {
      for_each_held<in_flight>(team, count, [&](int held, int i) {
        held_key[held] = queries[first + i];
        ref.prefetch(held_key[held]);
      });
      for_each_held<in_flight>(team, count,
                               [&](int held, int i) { answer(ref, first + i, held_key[held], ref.open(held_key[held])); });
    } else {
      typename Ref::opened begun[in_flight];
      for_each_held<in_flight>(team, count, [&](int held, int i) { held_key[held] = queries[first + i]; });
      for_each_held<in_flight>(team, count, [&](int held, int) { begun[held] = ref.open(held_key[held]); });
      for_each_held<in_flight>(team, count, [&](int held, int i) { answer(ref, first + i, held_key[held], begun[held]); });
    }
  }
};

/// Several host tiles make one piece of work; a cuda tile is one block.
template <class Place, class Ref, class Queries, class Answer>
void probe_all(const Place& place, const Ref& ref, const Queries& queries, const Answer& answer) {
  using kernel = probe_tiles<Place, Ref, Queries, Answer>;
  const std::size_t n = queries.size();
  const kernel run{ref, queries, n, answer};
  if constexpr (std::is_same_v<Place, host>) {
    const std::size_t tiles = ceil_div(n, kernel::template tile<serial_team>);
    place.for_each(tiles, [&](std::size_t i) { run(serial_team{}, i, nullptr); });
  } else {
    place.launch(ceil_div(n, kernel::template tile<block_team<kernel::threads>>), 0, run);
  }
}

template <class Value>
struct write_value {
  Value* results;
  Value missing;
  template <class Ref, class Key>
  ROOST_FN void operator()(const Ref& ref, std::size_t i, const Key& key, const typename Ref::opened& begun) const {
    results[i] = ref.find(key, begun).value_or(missing);
  }
};

struct write_contained {
  bool* results;
  template <class Ref, class Key>
  ROOST_FN void operator()(const Ref& ref, std::size_t i, const Key& key, const typename Ref::opened& begun) const {
    results[i] = ref.contains(key, begun);
  }
};

template <class Ref, class Queries>
struct is_contained {
  Ref ref;
  Queries queries;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return ref.contains(queries[i]) ? 1 : 0; }
};

/// Memory that a call writes to: contiguous, of elements T, room for n.
template <class T, class Range>
T* output(Range&& range, std::size_t n, const char* where) {
  static_assert(std::ranges::contiguous_range<Range>, "results go to contiguous memory of the place: a span, a vector, a roost::array");
  static_assert(std::is_same_v<T*, decltype(std::ranges::data(range))>, "results must have exactly the element type that the table returns");
  if (std::ranges::size(range) < n) {
    throw invalid_argument(std::string(where) + ": room for " + std::to_string(std::ranges::size(range)) + " results, " +
                           std::to_string(n) + " needed");
  }
  return std::ranges::data(range);
}

}  // namespace roost::detail
