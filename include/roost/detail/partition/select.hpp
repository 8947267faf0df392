#pragma once

#include "roost/detail/place/arrays.hpp"
#include "roost/detail/place/look_back.hpp"

// Selects the numbers for which a predicate holds, in order.

namespace roost::detail {

/// Calls for all i, not only for those that hold: put(position, i, holds).
template <class Put>
concept sees_all = requires { Put::sees_all; };

/// put(position, i) for each i below n for which holds(i): `position` is the number of lower ones. One pass:
/// a team gets the count of all lower tiles by look-back.
template <class Holds, class Put>
struct select_tiles {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = 2048;

  std::uint64_t n;
  Holds holds;
  Put put;
  earlier_teams turns;
  std::uint64_t* size;  // how many hold; or null

  struct pieces {
    std::uint64_t* shared;  // two words, one for each call of `turns`
    std::uint32_t* before;  // how many hold in the tile before each number, and in all of it
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint64_t>(2), memory.take<std::uint32_t>(tile + 1)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    const pieces parts = scratch_of(*this, memory);
    std::uint32_t* const before = parts.before;
    const std::uint64_t index = turns.turn(team, parts.shared), first = index * tile;
    const auto count = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, n - first));
    for_each_of(team, count, [&](std::uint32_t i) { before[i] = holds(first + i) ? 1 : 0; });
    if (team.rank() == 0) before[count] = 0;
    team.sync();
    team.exclusive_scan(before, before, count + 1);
    team.sync();
    const std::uint64_t base = turns.sum_before(team, index, before[count], parts.shared + 1);
    if (size != nullptr && first + count == n && team.rank() == 0) *size = base + before[count];
    for_each_of(team, count, [&](std::uint32_t i) {
      const bool wanted = before[i] != before[i + 1];
      if constexpr (sees_all<Put>) {
        put(base + before[i], first + i, wanted);
      } else if (wanted) {
        put(base + before[i], first + i);
      }
    });
  }
};

/// Asynchronous on cuda.
template <class Place, class Holds, class Put>
void select(const Place& place, std::size_t n, const Holds& holds, const Put& put,
            std::uint64_t* size = nullptr) {
  using kernel = select_tiles<Holds, Put>;
  const std::size_t tiles = ceil_div<std::size_t>(n, kernel::tile);
  auto turns = zeros(place, earlier_teams::words(tiles));
  const kernel run{n, holds, put, earlier_teams(turns.data()), size};
  place.launch(tiles, scratch_bytes_of(run), run);
}

/// target[position] = f(i)
template <class F, class T>
struct put_at_position {
  F f;
  T* target;
  ROOST_FN void operator()(std::uint64_t position, std::uint64_t i) const { target[position] = f(i); }
};

/// f(i) of all i below n for which holds(i), in order. Counts them first. Synchronises.
template <class Place, class Holds, class F>
auto select_values(const Place& place, std::size_t n, const Holds& holds, const F& f) {
  using T = std::remove_cvref_t<decltype(f(n))>;
  array<T, Place> result(place, place.sum(n, holds));
  if (result.size() != 0) select(place, n, holds, put_at_position<F, T>{f, result.data()});
  place.synchronize();
  return result;
}

/// All i below n for which holds(i), ascending. As select_values.
template <class T, class Place, class Holds>
array<T, Place> select_numbers(const Place& place, std::size_t n, const Holds& holds) {
  return select_values(place, n, holds, number<T>());
}

}  // namespace roost::detail
