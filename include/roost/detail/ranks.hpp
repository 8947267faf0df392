#pragma once

#include "roost/detail/team.hpp"

// Ranks of a block's items among those of the same digit, in the order of the items. One worker needs none of this: he meets them in order.

namespace roost::detail {

/// How many counters rank_in_order() needs: one for each warp and digit.
template <class Team>
ROOST_FN constexpr std::uint32_t rank_counters(std::uint32_t digits) {
  return Team::size / 32 * digits;
}

#if ROOST_ON_DEVICE
/// The lanes of those in `among` whose digit is the same as the caller's. All lanes of the warp must call.
ROOST_FN std::uint32_t lanes_like_mine(std::uint32_t among, std::uint32_t digit, int digit_bits) {
  for (int bit = 0; bit < digit_bits; ++bit) {
    const bool set = digit >> bit & 1;
    const std::uint32_t others = __ballot_sync(~0u, set);
    among &= set ? others : ~others;
  }
  return among;
}
#endif

/// rank[held] = how many of the n items before the item have its digit; count[d] = how many of all have digit d. digit_of(held, i) is below `digits`;
/// n <= PerWorker * Team::size, below 2^16. `warp_counts`: scratch, rank_counters<Team>(digits) of them. Ends with sync().
template <int PerWorker, class Team, class DigitOf>
ROOST_FN void rank_in_order(const Team& team, std::uint32_t n, std::uint32_t digits, const DigitOf& digit_of, std::uint16_t* warp_counts,
                            std::uint32_t* count, std::uint32_t (&rank)[PerWorker]) {
  static_assert(Team::size > 1);
#if ROOST_ON_DEVICE
  constexpr int warps = Team::size / 32;
  constexpr int at_once = warps % 4 == 0 ? 4 : 1;  // of warps whose counts are read before the first is waited for: more would be registers
  const std::uint32_t lane = static_cast<std::uint32_t>(team.rank()) % 32;
  std::uint16_t* const counts = warp_counts + static_cast<std::uint32_t>(team.rank()) / 32 * digits;  // of this warp: no atomics
  for (std::uint32_t d = lane; d < digits; d += 32) counts[d] = 0;
  __syncwarp();

  // Rows follow each other: an item's rank in its warp is what its digit's counter says and how many lanes before it have the digit. The digit
  // comes along in the upper half.
  const int digit_bits = 32 - __clz(static_cast<int>(digits - 1));
  const auto rank_row = [&](int held, int i, bool there, std::uint32_t lanes) {
    const std::uint32_t d = there ? digit_of(held, i) : 0;
    const std::uint32_t like_mine = lanes_like_mine(lanes, d, digit_bits);
    const std::uint32_t before = __popc(like_mine & ((1u << lane) - 1));
    const std::uint32_t counted = counts[d];
    __syncwarp();
    if (there && before == 0) counts[d] = static_cast<std::uint16_t>(counted + __popc(like_mine));
    __syncwarp();
    rank[held] = d << 16 | (counted + before);
  };
  if (n == PerWorker * Team::size) {
    const held_rows<Team::size> mine(team.rank(), PerWorker, PerWorker * Team::size);
    ROOST_UNROLL
    for (int held = 0; held < PerWorker; ++held) rank_row(held, mine.item(held), true, ~0u);
  } else {
    const int rows = held_rows<Team::size>::needed(static_cast<int>(n));
    const held_rows<Team::size> mine(team.rank(), rows, static_cast<int>(n));
    ROOST_UNROLL
    for (int held = 0; held < PerWorker; ++held) {
      const bool there = mine.item(held) < mine.end;
      const std::uint32_t lanes = __ballot_sync(~0u, there);
      if (lanes != 0) rank_row(held, mine.item(held), there, lanes);
    }
  }
  team.sync();

  for_each_of(team, digits, [&](std::uint32_t d) {
    std::uint32_t sum = 0;
    ROOST_ROLLED
    for (int first = 0; first < warps; first += at_once) {
      std::uint32_t of_warp[at_once];
      ROOST_UNROLL
      for (int w = 0; w < at_once; ++w) of_warp[w] = warp_counts[(first + w) * digits + d];
      ROOST_UNROLL
      for (int w = 0; w < at_once; ++w) {
        warp_counts[(first + w) * digits + d] = static_cast<std::uint16_t>(sum);
        sum += of_warp[w];
      }
    }
    count[d] = sum;
  });
  team.sync();
  for_each_held<PerWorker>(team, n, [&](int held, int) { rank[held] = (rank[held] & 0xffff) + counts[rank[held] >> 16]; });
  team.sync();
#endif
}

}  // namespace roost::detail
