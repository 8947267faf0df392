#pragma once

#include <span>

#include "roost/place.hpp"
#include "roost/detail/tuning.hpp"

// Bulk operations that are the same for every table with a ref.

namespace roost::detail {

/// Runs answer(ref, i, query) over all queries; a host thread has the next ones fetched meanwhile.
template <class Place, class Ref, class Queries, class Answer>
struct probe_tiles {
  static constexpr int threads = tuning<cuda>::find_threads;
  static constexpr std::uint32_t tile = tuning<Place>::find_tile;
  static constexpr std::uint32_t ahead = tuning<Place>::find_ahead;

  Ref ref;
  Queries queries;
  std::size_t n;
  Answer answer;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::size_t first = index * tile;
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::size_t>(tile, n - first)), [&](std::uint32_t i) {
      if constexpr (ahead != 0) {
        if (first + i + ahead < n) ref.prefetch(queries[first + i + ahead]);
      }
      answer(ref, first + i, queries[first + i]);
    });
  }
};

template <class Place, class Ref, class Queries, class Answer>
void probe_all(const Place& place, const Ref& ref, const Queries& queries, const Answer& answer) {
  using kernel = probe_tiles<Place, Ref, Queries, Answer>;
  place.launch(ceil_div<std::size_t>(queries.size(), kernel::tile), 0, kernel{ref, queries, queries.size(), answer});
}

template <class Value>
struct write_value {
  Value* results;
  Value missing;
  template <class Ref, class Key>
  ROOST_FN void operator()(const Ref& ref, std::size_t i, const Key& key) const {
    results[i] = ref.find(key).value_or(missing);
  }
};

struct write_contained {
  bool* results;
  template <class Ref, class Key>
  ROOST_FN void operator()(const Ref& ref, std::size_t i, const Key& key) const {
    results[i] = ref.contains(key);
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
