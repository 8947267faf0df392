#pragma once

#include <cstddef>

/// \file
/// How bulk calls go through a table.

namespace roost {

/// The way that a bulk lookup takes.
enum class path {
  automatic,  ///< chosen from the sizes of table and batch; direct where there is no memory for regional
  direct,     ///< one query after the other: a random access to memory for each
  regional    ///< queries are partitioned by region first, so that a region's queries find it in the cache; then the answers are put in order
};

/// Options of a bulk lookup.
struct bulk_options {
  /// `automatic` is right unless you measure. A table that is not in the order of its hash (layout cuckoo, sorted_map) always goes direct.
  roost::path path = roost::path::automatic;
  /// What the regional way may take of the place's memory at once; longer batches go in chunks of equal size. It takes, for each query, its key, its answer and 2 bytes.
  std::size_t scratch_bytes_most = std::size_t{4} << 30;
};

/// What a bulk lookup did.
struct bulk_report {
  roost::path path = roost::path::direct;  ///< direct or regional
  std::size_t chunks = 0;                  ///< that the batch went in
  std::size_t scratch_bytes = 0;           ///< that a chunk took and gave back
};

}  // namespace roost
