#pragma once

#include <cstddef>

/// \file
/// Options and reports of bulk calls.

namespace roost {

/// The path that a bulk call takes.
enum class path {
  automatic,  ///< chosen from the sizes of table and batch; direct if there is no memory for regional
  direct,     ///< each query is looked up by itself: a random access to memory
  regional,   ///< queries are partitioned by region first, so that the queries of a region hit the cache;
              ///< then the answers are put back in query order
  /// As regional, but the copy engines stream the part of a stadium_map that is in host memory through memory
  /// of the place, in chunks. For batches about as large as the table. Nothing may change the map meanwhile.
  /// The call takes the regional path instead if nothing lies in host memory, for mixed batches, and for
  /// inserts that may grow the map. Tables without regions are queried directly.
  streamed
};

/// Options of a bulk call.
struct bulk_options {
  /// `automatic` is the default; override it after measuring. A table that is not in hash order (sorted_map)
  /// always takes the direct path.
  roost::path path = roost::path::automatic;
  /// Limit on the place's memory that the regional path takes at once. Longer batches go in chunks of equal
  /// size. The path takes, for each query, its key, its answer and 2 bytes; for each pair that is inserted,
  /// twice its size. By default the limit is 4 GiB. For a streamed batch, each chunk of which copies all
  /// bodies, the default is three eighths of the free memory if that is more.
  std::size_t scratch_bytes_most = ~std::size_t{0};

  /// scratch_bytes_most, or `chosen` if the user set no limit.
  std::size_t scratch_bytes_or(std::size_t chosen) const {
    return scratch_bytes_most != ~std::size_t{0} ? scratch_bytes_most : chosen;
  }
};

/// What a bulk lookup or a mixed batch did.
struct bulk_report {
  roost::path path = roost::path::direct;  ///< not automatic
  std::size_t chunks = 0;                  ///< number of chunks of the batch
  std::size_t scratch_bytes = 0;           ///< scratch memory of one chunk, freed after the call
};

}  // namespace roost
