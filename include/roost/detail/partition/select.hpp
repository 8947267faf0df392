#pragma once

#include "roost/partition.hpp"

// Selects the numbers for which a predicate holds, in order.

namespace roost::detail {

/// Counts the selected numbers of a tile, or writes them from the tile's first output position on.
template <class T, class Holds>
struct select_tiles {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = 2048;

  std::uint64_t n;
  Holds holds;
  std::uint64_t* counts;        // of each tile: where counts are stored,
  const std::uint64_t* places;  // or its first output position
  T* target;

  ROOST_FN std::uint32_t* scratch(scratch_memory& memory) const { return memory.take<std::uint32_t>(tile); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    scratch_memory all(memory);
    std::uint32_t* const rank = scratch(all);
    const std::uint64_t first = index * tile;
    const auto count = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, n - first));
    for_each_of(team, count, [&](std::uint32_t i) { rank[i] = holds(first + i) ? 1 : 0; });
    team.sync();
    const std::uint32_t last = rank[count - 1];
    team.sync();
    team.exclusive_scan(rank, rank, count);
    team.sync();
    if (counts != nullptr) {
      if (team.rank() == 0) counts[index] = rank[count - 1] + last;
      return;
    }
    for_each_of(team, count, [&](std::uint32_t i) {
      if (holds(first + i)) target[places[index] + rank[i]] = static_cast<T>(first + i);
    });
  }
};

template <class T>
struct is_value {
  const T* values;
  T wanted;
  ROOST_FN bool operator()(std::size_t i) const { return values[i] == wanted; }
};

template <class T>
struct is_other_value {
  const T* values;
  T unwanted;
  ROOST_FN bool operator()(std::size_t i) const { return values[i] != unwanted; }
};

/// All i below n for which holds(i), ascending. Synchronises.
template <class T, class Place, class Holds>
array<T, Place> select_numbers(const Place& place, std::size_t n, const Holds& holds) {
  using kernel = select_tiles<T, Holds>;
  const std::size_t tiles = ceil_div<std::size_t>(n, kernel::tile);
  array<std::uint64_t, Place> counts(place, tiles + 1);
  place.fill(counts.data(), 0, counts.bytes());
  const kernel count{n, holds, counts.data(), nullptr, nullptr};
  place.launch(tiles, scratch_bytes_of(count), count);
  place.exclusive_scan(counts.data(), counts.data(), counts.size());
  std::uint64_t size = 0;
  place.copy_to_host(&size, counts.data() + tiles, sizeof(size));
  array<T, Place> result(place, size);
  const kernel write{n, holds, nullptr, counts.data(), result.data()};
  place.launch(tiles, scratch_bytes_of(write), write);
  place.synchronize();
  return result;
}

}  // namespace roost::detail
