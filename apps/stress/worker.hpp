#pragma once

#include <chrono>

#include "history.hpp"
#include "tested_table.hpp"

/// \file
/// The children of `roost stress`. They report on standard output, a line at a time.

namespace roost::stress {

/// What the children need to know.
struct work {
  std::string place = "host";
  int threads = 0;
  std::string folder;
  std::uint64_t seed = 0, first_round = 0;
  double seconds = 0;
  std::vector<std::string> kinds;
  std::string with;   ///< a call that ends each history, if it is not empty
  std::string calls;  ///< a history to replay, if it is not empty
  int parent = 0;     ///< its process
};

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A round as the workers play it.
history round_of(const work& all, std::uint64_t round);

/// Plays rounds until the time is over, or one history. Lines: "round R", "call I" before it, "failed WHAT",
/// "ok KIND CALLS KEYS REFUSALS KILLS". Ends after a failure.
void play(const work& all);

/// Loads the table of a file and makes the only call of the history again and again, with other seeds. After
/// each it saves the table and writes the number of calls. Runs until it is killed.
void save_until_killed(const work& all);

}  // namespace roost::stress
