#pragma once

#include <cstddef>

/// \file
/// How bulk calls go through a table.

namespace roost {

/// The way that a bulk call takes.
enum class path {
  automatic,  ///< chosen from the sizes of table and batch; direct where there is no memory for regional
  direct,     ///< one query after the other: a random access to memory for each
  regional,   ///< queries are partitioned by region first, so that a region's queries find it in the cache; then the answers are put in order
  streamed    ///< regional, and what a stadium_map keeps in memory of the host comes through memory of the place part by part: for batches
              ///< about as large as the table. Nobody may change the map meanwhile. Regional where nothing lies there, for mixed batches, and
              ///< for inserts that may make the map larger. Tables that regional means nothing to go direct
};

/// Options of a bulk call.
struct bulk_options {
  /// `automatic` is right unless you measure. A table that is not in the order of its hash (layout cuckoo, sorted_map) always goes direct.
  roost::path path = roost::path::automatic;
  /// What the regional way may take of the place's memory at once; longer batches go in chunks of equal size. It takes, for each query, its
  /// key, its answer and 2 bytes; for each pair that is inserted twice its size. By default 4 GiB, and for a streamed batch, for each
  /// chunk of which all bodies are copied, three eighths of what is free if that is more.
  std::size_t scratch_bytes_most = ~std::size_t{0};

  /// scratch_bytes_most, or `chosen` if nobody says how much.
  std::size_t scratch_bytes_or(std::size_t chosen) const { return scratch_bytes_most != ~std::size_t{0} ? scratch_bytes_most : chosen; }
};

/// What a bulk lookup or a mixed batch did.
struct bulk_report {
  roost::path path = roost::path::direct;  ///< not automatic
  std::size_t chunks = 0;                  ///< that the batch went in
  std::size_t scratch_bytes = 0;           ///< that a chunk took and gave back
};

}  // namespace roost
