#pragma once

#include "roost/detail/place/team.hpp"

// Ranks of a block's items among those with the same digit, in the order of the items. A single worker does
// not need this: it processes the items in order.

namespace roost::detail {

/// How many counters rank_in_order() needs: one for each warp and digit.
template <class Team>
ROOST_FN constexpr std::uint32_t rank_counters(std::uint32_t digits) {
  return Team::size / 32 * digits;
}

#if ROOST_ON_DEVICE
/// Replaces the counts of a digit, one per warp and `apart` words apart, by their prefix sums; returns their
/// sum.
template <int Warps>
__device__ inline std::uint32_t sum_of_warps(std::uint16_t* counts, std::uint32_t apart) {
  constexpr int at_once =
      Warps % 4 == 0 ? 4 : 1;  // warps whose counts are in flight at once: more would need too many registers
  std::uint32_t sum = 0;
  ROOST_ROLLED
  for (int first = 0; first < Warps; first += at_once) {
    std::uint32_t of_warp[at_once];
    ROOST_UNROLL
    for (int w = 0; w < at_once; ++w) of_warp[w] = counts[(first + w) * apart];
    ROOST_UNROLL
    for (int w = 0; w < at_once; ++w) {
      counts[(first + w) * apart] = static_cast<std::uint16_t>(sum);
      sum += of_warp[w];
    }
  }
  return sum;
}
#endif

/// An item's digit and its rank among the items with this digit, in one word.
struct digit_and_rank {
  ROOST_FN static std::uint32_t make(std::uint32_t digit, std::uint32_t rank) { return digit << 16 | rank; }
  ROOST_FN static std::uint32_t digit(std::uint32_t word) { return word >> 16; }
  ROOST_FN static std::uint32_t rank(std::uint32_t word) { return word & 0xffff; }
};

/// The counters of rank_in_order().
struct digit_counters {
  std::uint32_t* lanes;        // scratch, rank_counters<Team>(digits)
  std::uint16_t* warp_counts;  // likewise
  std::uint32_t* count;        // becomes the number of items of each digit
};

/// rank[held] = the digit of an item, and how many of the n items before it have this digit. digit_of(held,
/// i) is below `digits`, and is called as by for_each_held<PerWorker, true>; n <= PerWorker * Team::size,
/// below 2^16. Ends with sync().
template <int PerWorker, class Team, class DigitOf>
ROOST_FN void rank_in_order([[maybe_unused]] const Team& team, [[maybe_unused]] std::uint32_t n,
                            [[maybe_unused]] std::uint32_t digits, [[maybe_unused]] const DigitOf& digit_of,
                            [[maybe_unused]] const digit_counters& counters,
                            [[maybe_unused]] std::uint32_t (&rank)[PerWorker]) {
  static_assert(Team::size > 1);
#if ROOST_ON_DEVICE
  constexpr int warps = Team::size / 32;
  const std::uint32_t lane = static_cast<std::uint32_t>(team.rank()) % 32,
                      of_warp = static_cast<std::uint32_t>(team.rank()) / 32 * digits;
  std::uint16_t* const counts = counters.warp_counts + of_warp;  // of this warp
  std::uint32_t* const with_digit =
      counters.lanes + of_warp;  // its lanes whose item in this row has the digit
  for (std::uint32_t d = lane; d < digits; d += 32) {
    counts[d] = 0;
    with_digit[d] = 0;
  }
  __syncwarp();

  // Rows are processed in order: the rank of an item in its warp is the counter of its digit plus the number
  // of earlier lanes with the same digit.
  const held_rows<Team::size, true> mine(team.rank(), static_cast<int>(n));
  ROOST_UNROLL
  for (int held = 0; held < PerWorker; ++held) {
    const int i = mine.item(held);
    const bool there = i < mine.end;
    const std::uint32_t digit = there ? digit_of(held, i) : 0;
    if (there) atomicOr(with_digit + digit, 1u << lane);
    __syncwarp();
    const std::uint32_t like_mine = with_digit[digit], counted = counts[digit],
                        before = __popc(like_mine & ((1u << lane) - 1));
    __syncwarp();
    if (there && before == 0) {
      counts[digit] = static_cast<std::uint16_t>(counted + __popc(like_mine));
      with_digit[digit] = 0;
    }
    __syncwarp();
    rank[held] = digit_and_rank::make(digit, counted + before);
  }
  team.sync();

  for_each_of(team, digits, [&](std::uint32_t d) {
    counters.count[d] = sum_of_warps<warps>(counters.warp_counts + d, digits);
  });
  team.sync();
  for_each_held<PerWorker, true>(
      team, n, [&](int held, int) { rank[held] += counts[digit_and_rank::digit(rank[held])]; });
  team.sync();
#endif
}

/// Tests 32 * Groups numbers in order: bit i % 32 of bits[i / 32] = holds(i); before[g] = the number of i
/// below 32 * g that hold. Returns how many hold in all. `warp_counts`: scratch, a word for each warp. For
/// blocks of cuda. Ends with sync().
template <std::uint32_t Groups, class Team, class Holds>
ROOST_FN std::uint32_t rank_bits([[maybe_unused]] const Team& team, [[maybe_unused]] const Holds& holds,
                                 [[maybe_unused]] std::uint32_t* bits, [[maybe_unused]] std::uint32_t* before,
                                 [[maybe_unused]] std::uint32_t* warp_counts) {
  std::uint32_t all = 0;
#if ROOST_ON_DEVICE
  constexpr std::uint32_t warps = Team::size / 32, each = Groups / warps;
  static_assert(Groups % warps == 0 && each <= 32 && warps % 4 == 0);
  const std::uint32_t lane = static_cast<std::uint32_t>(team.rank()) % 32,
                      warp = static_cast<std::uint32_t>(team.rank()) / 32, first = warp * each;
  ROOST_UNROLL
  for (std::uint32_t g = 0; g < each; ++g) {
    const std::uint32_t word = __ballot_sync(~0u, holds(32 * (first + g) + lane));
    if (lane == 0) bits[first + g] = word;
  }
  __syncwarp();
  const std::uint32_t mine = lane < each ? count_bits(bits[first + lane]) : 0, up_to_mine = scan_warp(mine);
  if (lane == 31) warp_counts[warp] = up_to_mine;
  team.sync();
  std::uint32_t of_others = 0;
  ROOST_UNROLL
  for (std::uint32_t w = 0; w < warps; w += 4) {
    const uint4 counts = *reinterpret_cast<const uint4*>(warp_counts + w);
    all += counts.x + counts.y + counts.z + counts.w;
    if (w + 4 == (warp & ~3u)) of_others = all;
  }
  for (std::uint32_t w = warp & ~3u; w < warp; ++w) of_others += warp_counts[w];
  if (lane < each) before[first + lane] = of_others + up_to_mine - mine;
  team.sync();
#endif
  return all;
}

/// rank[held] = how many of the items before this one are wanted. wanted(held, i) is called as by
/// for_each_held<PerWorker, true>. Returns how many of all n items are wanted. `warp_counts`: scratch, a word
/// for each warp. Ends with sync().
template <int PerWorker, class Team, class Wanted>
ROOST_FN std::uint32_t rank_wanted([[maybe_unused]] const Team& team, [[maybe_unused]] std::uint32_t n,
                                   [[maybe_unused]] const Wanted& wanted,
                                   [[maybe_unused]] std::uint32_t* warp_counts,
                                   [[maybe_unused]] std::uint32_t (&rank)[PerWorker]) {
  static_assert(Team::size > 1);
  std::uint32_t all = 0;
#if ROOST_ON_DEVICE
  constexpr int warps = Team::size / 32;
  const std::uint32_t lane = static_cast<std::uint32_t>(team.rank()) % 32,
                      warp = static_cast<std::uint32_t>(team.rank()) / 32;
  const held_rows<Team::size, true> mine(team.rank(), static_cast<int>(n));
  std::uint32_t before = 0;
  ROOST_UNROLL
  for (int held = 0; held < PerWorker; ++held) {
    const int i = mine.item(held);
    const std::uint32_t lanes = __ballot_sync(~0u, i < mine.end && wanted(held, i));
    rank[held] = before + __popc(lanes & ((1u << lane) - 1));
    before += __popc(lanes);
  }
  if (lane == 0) warp_counts[warp] = before;
  team.sync();
  before = 0;
  ROOST_UNROLL
  for (int w = 0; w < warps; ++w) {
    if (w == static_cast<int>(warp)) before = all;
    all += warp_counts[w];
  }
  ROOST_UNROLL
  for (int held = 0; held < PerWorker; ++held) rank[held] += before;
  team.sync();
#endif
  return all;
}

}  // namespace roost::detail
