#pragma once

#include "roost/stadium/stadium_map.hpp"

// Inserts by collaborating lanes (Khorasani et al. 2015, section III.C), for `roost reproduce`: on today's
// GPUs, inserts are limited by memory, and single lanes are as fast at every load.

namespace roost::bench {

namespace collaborating {

using namespace detail;

/// Runs jobs 0, 1, ... n - 1, each of which takes any number of attempts, and keeps all threads of a warp
/// busy: start(i) makes job i, attempt(job) returns whether it can be finished, finish(job) finishes it. A
/// thread whose job can be finished queues it, to be finished as soon as there is one for each thread of the
/// warp, and takes a job that other threads have put aside. As long as there are enough of these, all threads
/// continue; otherwise threads with jobs put them aside, and all start new ones (Figure 12; there, the thread
/// that attempts also finishes). `memory`: room for 3 * Team::size jobs.
template <class Job, class Team, class Start, class Attempt, class Finish>
ROOST_FN void for_each_collaborating(const Team& team, std::uint32_t n, Job* memory, const Start& start,
                                     const Attempt& attempt, const Finish& finish) {
  constexpr std::uint32_t neighbours = Team::near_size;
  const auto rank = static_cast<std::uint32_t>(team.rank()), lane = rank % neighbours;
  const std::uint32_t before_me = (1u << lane) - 1;
  const std::uint32_t each = ceil_div(n, static_cast<std::uint32_t>(Team::size)) *
                             neighbours;  // jobs of neighbours: they follow each other
  const std::uint32_t first = smaller(n, rank / neighbours * each), last = smaller(n, first + each);
  Job* const aside = memory + 3 * (rank - lane);
  Job* const ready = aside + neighbours;
  std::uint32_t waiting = 0, to_finish = 0;  // jobs in these
  Job mine{};
  const auto go_on = [&](bool has_job) {  // returns which threads could not finish
    const bool is_ready = has_job && attempt(mine);
    const std::uint32_t all_ready = team.ballot_near(is_ready),
                        others = team.ballot_near(has_job && !is_ready);
    if (is_ready) ready[to_finish + count_bits(all_ready & before_me)] = mine;
    to_finish += count_bits(all_ready);
    team.sync_near();
    if (to_finish >= neighbours) {
      to_finish -= neighbours;
      finish(ready[to_finish + lane]);
      team.sync_near();
    }
    return others;
  };
  ROOST_ROLLED
  for (std::uint32_t i = first; i < last; i += neighbours) {
    if (i + lane < last) mine = start(i + lane);
    std::uint32_t going = go_on(i + lane < last);
    ROOST_ROLLED
    while (waiting + count_bits(going) >= neighbours) {
      if ((going >> lane & 1) == 0) mine = aside[waiting - 1 - count_bits(~going & before_me)];
      waiting -= neighbours - count_bits(going);
      team.sync_near();
      going = go_on(true);
    }
    if ((going >> lane & 1) != 0) aside[waiting + count_bits(going & before_me)] = mine;
    waiting += count_bits(going);
    team.sync_near();
  }
  if (lane < waiting) mine = aside[lane];
  ROOST_ROLLED
  for (std::uint32_t going = (1u << waiting) - 1; going != 0;) going = go_on((going >> lane & 1) != 0);
  if (lane < to_finish) finish(ready[lane]);
}

/// Inserts new pairs. Tiles are large, since the last pairs of a tile keep only a few lanes busy.
template <class Place, class Table>
struct insert_tiles {
  static constexpr int threads = 256;
  static constexpr std::size_t workers = std::is_same_v<Place, host> ? 1 : threads;
  static constexpr std::size_t teams_most = std::is_same_v<Place, host> ? 64 : 2048;
  using key = typename Table::key_type;
  using value = typename Table::value_type;

  /// A pair that is being inserted. Aligned, so that few instructions copy it.
  struct alignas(16) job {
    std::uint32_t item;
    typename Table::cursor_type at;
  };

  Table table;
  const key* keys;
  const value* values;
  std::size_t count;
  std::uint64_t* inserted;

  ROOST_FN std::uint32_t tile() const {
    return larger(512u, static_cast<std::uint32_t>(ceil_div<std::size_t>(count, teams_most)));
  }
  ROOST_FN job* scratch(scratch_memory& memory) const { return memory.take<job>(3 * workers); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    scratch_memory all(memory);
    job* const jobs = scratch(all);
    const std::size_t first = index * tile();
    std::uint64_t done = 0;
    for_each_collaborating(
        team, static_cast<std::uint32_t>(smaller<std::size_t>(tile(), count - first)), jobs,
        [&](std::uint32_t i) { return job{i, table.first_step(keys[first + i])}; },
        [&](job& mine) { return table.template reserve<ticket_board::among_inserts>(mine.at); },
        [&](const job& mine) {
          const std::size_t i = first + mine.item;
          done += table.fill(mine.at, keys[i], values[i]) == insertion::inserted;
        });
    if (done != 0) fetch_add(*inserted, done);
  }
};

}  // namespace collaborating

/// Inserts pairs whose keys are not in the map, which has room for them; returns how many were inserted.
template <class Place, class Key, class Value>
std::size_t insert_collaborating(const Place& place, stadium_map<Key, Value, Place>& map,
                                 std::span<const Key> keys, std::span<const Value> values) {
  using kernel = collaborating::insert_tiles<Place, typename stadium_map<Key, Value, Place>::ref_type>;
  array<std::uint64_t, Place> inserted(place, 1);
  place.fill(inserted.data(), 0, inserted.bytes());
  const kernel run{map.ref(), keys.data(), values.data(), keys.size(), inserted.data()};
  place.launch(detail::ceil_div<std::size_t>(keys.size(), run.tile()), detail::scratch_bytes_of(run), run);
  return copy_to_host(place, inserted)[0];
}

}  // namespace roost::bench
