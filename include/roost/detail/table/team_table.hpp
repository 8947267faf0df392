#pragma once

#include "roost/detail/place/copies.hpp"

// The hash table that a team builds in its scratch memory. A slot is a word that stands for a key: a part of
// its hash, or the number of an item or key that has it. Linear probing; no slot is freed.
//
// What differs is a choice of the caller, since each was measured faster where it is made: whether a worker
// reads a slot before it tries to take it (which pays where most find their key), whether the last slot is
// followed by the first one, and whether the lesser word stays.

namespace roost::detail {

/// What a worker does first at a slot.
enum class look { read, exchange };

/// Where the probing for a key has ended.
template <class Word>
struct probed {
  std::uint32_t slot;
  Word before;        // what the slot held: if it was empty, it is the key's now
  bool full = false;  // there was no slot within the allowed steps

  ROOST_FN bool is_new() const { return before == static_cast<Word>(~Word{0}); }
};

/// `look`: at slots. `Wraps`: the first slot follows the last one; if not, callers keep `steps_most` slots
/// after the last home, and one more for look::read.
template <class Word, look Look, bool Wraps>
struct team_table {
  static constexpr Word empty = static_cast<Word>(~Word{0});

  Word* slot = nullptr;
  std::uint32_t slots = 0;

  /// For a number of slots that is a multiple of 4. A barrier is needed before the first probe.
  template <class Team>
  ROOST_FN void clear(const Team& team) const {
    fill_words(team, slot, slots, empty);
  }

  ROOST_FN std::uint32_t after(std::uint32_t s) const {
    if constexpr (Wraps) {
      return s + 1 == slots ? 0 : s + 1;
    } else {
      return s + 1;
    }
  }

  /// The slot of a key from `home` on: the first one whose word is_same, or else the first empty one, which
  /// takes `mine`. on_pass(slot) is called for each slot of another key.
  template <class Team, class Same, class OnPass>
  ROOST_FN probed<Word> put(const Team& team, std::uint32_t home, Word mine, std::uint32_t steps_most,
                            const Same& is_same, const OnPass& on_pass) const {
    probed<Word> at{home, look_at(team, home)};
    for (std::uint32_t step = 0; step < steps_most; ++step) {
      if (at.before == empty) at.before = team.compare_exchange(slot[at.slot], empty, mine);
      if (at.before == empty || is_same(at.before)) return at;
      on_pass(at.slot);
      at.slot = after(at.slot);
      at.before = look_at(team, at.slot);
    }
    at.full = true;
    return at;
  }
  template <class Team, class Same>
  ROOST_FN probed<Word> put(const Team& team, std::uint32_t home, Word mine, std::uint32_t steps_most,
                            const Same& is_same) const {
    return put(team, home, mine, steps_most, is_same, [](std::uint32_t) {});
  }

  /// Puts a word in order: a lesser one takes the slot of a greater one, which moves on (Amble and Knuth,
  /// Ordered hash tables, 1974). So the layout does not depend on the order of insertion. False if there was
  /// no slot within the allowed steps.
  template <class Team>
  ROOST_FN bool put_in_order(const Team& team, std::uint32_t home, Word mine,
                             std::uint32_t steps_most) const {
    for (std::uint32_t step = 0; step < steps_most; ++step) {
      Word& here = slot[home + step];
      Word seen = team.read(here);
      if (seen > mine) seen = team.fetch_min(here, mine);
      if (seen == mine || seen == empty) return true;
      mine = larger(mine, seen);
    }
    return false;
  }

  /// The first slot from `home` on at whose word a search ends, which must exist.
  template <class Ends>
  ROOST_FN std::uint32_t find(std::uint32_t home, const Ends& ends) const {
    ROOST_ROLLED
    while (!ends(slot[home])) home = after(home);
    return home;
  }

 private:
  template <class Team>
  ROOST_FN Word look_at(const Team& team, std::uint32_t s) const {
    if constexpr (Look == look::read) {
      return team.read(slot[s]);
    } else {
      return empty;
    }
  }
};

}  // namespace roost::detail
