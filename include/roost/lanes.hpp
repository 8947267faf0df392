#pragma once

#include "roost/detail/place/config.hpp"

/// \file
/// Lanes: the threads that carry out one operation of a table's ref together. `ref.find(lanes, key)` is
/// called by all of them with the same key and returns the same answer to each. Every ref accepts every kind
/// of lanes, so a kernel written for one table also runs with the others; which kind is fastest depends on
/// the table.

namespace roost {

/// One thread per key.
struct one_lane {
  ROOST_FN static unsigned size() { return 1; }
  ROOST_FN static unsigned rank() { return 0; }
  ROOST_FN static void sync() {}
  ROOST_FN static unsigned ballot(bool mine) { return mine ? 1 : 0; }
  template <class T>
  ROOST_FN static T from_lane(unsigned, const T& mine) {
    return mine;
  }
};

/// A thread of a warp whose neighbours look up keys of their own at the same time. On cuda two of them read
/// the bucket of the first together, then that of the second, which halves the requests to the second-level
/// cache: lookups in a large table are a fifth faster. A thread whose neighbour is elsewhere reads alone. A
/// lookup may miss what the same thread has just written, since its neighbour may do the reading. All other
/// operations, and the host, treat it as one_lane.
struct warp_neighbours : one_lane {};

#if defined(__CUDACC__)
/// The threads of a tile of cooperative groups (thread_block_tile), for one key: each reads a bucket.
template <class Tile>
class tile_lanes {
 public:
  __device__ explicit tile_lanes(Tile tile) : tile_(tile) {}
  __device__ unsigned size() const { return tile_.size(); }
  __device__ unsigned rank() const { return tile_.thread_rank(); }
  __device__ void sync() const { tile_.sync(); }
  __device__ unsigned ballot(bool mine) const { return tile_.ballot(mine); }
  template <class T>
  __device__ T from_lane(unsigned lane, const T& mine) const {
    return tile_.shfl(mine, lane);
  }

 private:
  Tile tile_;
};
#endif

}  // namespace roost
