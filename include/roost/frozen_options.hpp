#pragma once

#include <cstddef>
#include <cstdint>

/// \file
/// Options and statistics of frozen_map and frozen_set.

namespace roost {

/// Options of frozen_map and frozen_set.
struct frozen_options {
  /// How full the table is. In layout compact, bytes of the pairs over bytes of the table, above 0: 1.2 is a
  /// table smaller than its input. If the pairs do not fit at this load (for 4 + 4 bytes: above 0.9 in small
  /// tables, 1.1 from 4 * 10^5 pairs on or, on a host, from 2 * 10^6 on, and 1.3 from 10^8 on), the table is
  /// made larger. In layout bucketed, pairs over slots, in (0, 1]: slots are added if regions could not hold
  /// the variation of a random split. load_factor() returns the actual value.
  double load_factor = 0.8;
  /// Chooses the hash functions. The same seed and data give the same answers on every place.
  std::uint64_t seed = 0;
  /// Attempts after the first before a build gives up with build_error. With each, regions get an eighth more
  /// room; in layout bucketed a quarter, from the third attempt on.
  int max_restarts = 10;
};

/// Facts about a table and its last build.
struct frozen_statistics {
  std::size_t size = 0;      ///< different keys
  std::size_t capacity = 0;  ///< slots
  double load_factor = 0;    ///< size / capacity; layout compact: bytes of the pairs / bytes of the table
  std::size_t bytes = 0;     ///< of the table
  std::size_t scratch_bytes = 0;  ///< scratch memory of the last build, freed after it
  std::size_t regions = 0;
  std::size_t duplicates = 0;       ///< input pairs whose key had appeared in an earlier pair
  int restarts = 0;                 ///< how often the whole build restarted with another seed
  std::size_t region_restarts = 0;  ///< restarts of single regions, in layouts that count them
  double mean_rounds = 0;  ///< mean rounds until all pairs of a region had a slot, in layouts with rounds
};

}  // namespace roost
