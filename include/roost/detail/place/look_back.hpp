#pragma once

#include <sched.h>

#include <cstdint>

#include "roost/detail/place/team.hpp"

// Prefix sums over the teams that began earlier, without a separate kernel (Merrill and Garland, Single-pass
// parallel prefix scan with decoupled look-back, 2016).

namespace roost::detail {

/// Teams are numbered in the order in which they begin, so that none waits for a team that has not begun.
/// Each publishes a number below 2^62, and gets the sum of the numbers of all earlier teams. All threads of a
/// team call together; `shared`: a word of the team in memory that its threads share.
class earlier_teams {
 public:
  /// Words that `teams` teams need, all 0 at first.
  static constexpr std::size_t words(std::size_t teams) { return teams + 1; }

  ROOST_FN explicit earlier_teams(std::uint64_t* zeros) : begun_(zeros) {}

  /// The number of this team: 0 for the team that begins first, and so on. meanwhile(): work to do until the
  /// number is known. Ends with a barrier; another barrier is needed before `shared` is used again.
  template <class Team, class Meanwhile>
  ROOST_FN std::uint64_t turn(const Team& team, std::uint64_t* shared, const Meanwhile& meanwhile) const {
    if (team.rank() == 0) *shared = fetch_add(*begun_, std::uint64_t{1});
    meanwhile();
    team.sync();
    return *shared;
  }
  template <class Team>
  ROOST_FN std::uint64_t turn(const Team& team, std::uint64_t* shared) const {
    return turn(team, shared, [] {});
  }

  /// Publishes the team's number before it needs those of others, so that these wait less. Optional.
  template <class Team>
  ROOST_FN void announce([[maybe_unused]] const Team& team, [[maybe_unused]] std::uint64_t turn,
                         [[maybe_unused]] std::uint64_t mine) const {
#if ROOST_ON_DEVICE
    if (team.rank() == 0 && turn != 0) publish_word(begun_ + 1 + turn, own | mine);
#endif
  }

  /// Ends with a barrier.
  template <class Team>
  ROOST_FN std::uint64_t sum_before(const Team& team, std::uint64_t turn, std::uint64_t mine,
                                    std::uint64_t* shared) const {
    if (team.rank() < Team::near_size) {
      const std::uint64_t before = look_back(team, turn, mine);
      if (team.rank() == 0) *shared = before;
    }
    team.sync();
    return *shared;
  }

 private:
  static constexpr std::uint64_t own = std::uint64_t{1} << 62, up_to_own = std::uint64_t{2} << 62;
  static constexpr std::uint64_t number = own - 1;

  /// Each neighbour reads one earlier team, until one of these teams has the sum of all teams before it.
  template <class Team>
  ROOST_FN std::uint64_t look_back(const Team& team, std::uint64_t turn, std::uint64_t mine) const {
    std::uint64_t* const published = begun_ + 1;
    std::uint64_t before = 0;
#if ROOST_ON_DEVICE
    const int lane = team.rank();
    if (turn != 0) {
      if (lane == 0) publish_word(published + turn, own | mine);
      for (std::int64_t last = static_cast<std::int64_t>(turn) - 1;; last -= 32) {
        std::uint64_t word = up_to_own;
        if (last >= lane) {
          do word = published_word(published + last - lane);
          while (word < own);
        }
        const unsigned ends = __ballot_sync(~0u, word >= up_to_own);
        const bool counts = ends == 0 || lane < __ffs(static_cast<int>(ends));
        before += __shfl_sync(~0u, scan_warp(counts ? word & number : 0), 31);
        if (ends != 0) break;
      }
    }
    if (lane == 0) publish_word(published + turn, up_to_own | (before + mine));
#else
    static_cast<void>(team);
    if (turn != 0) {
      while ((before = __atomic_load_n(published + turn - 1, __ATOMIC_ACQUIRE)) < up_to_own) sched_yield();
      before &= number;
    }
    __atomic_store_n(published + turn, up_to_own | (before + mine), __ATOMIC_RELEASE);
#endif
    return before;
  }

  std::uint64_t* begun_;  // the number of teams that have begun; then what each has published
};

}  // namespace roost::detail
