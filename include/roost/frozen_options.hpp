#pragma once

#include <cstddef>

/// \file
/// frozen_statistics: facts about a frozen table and its last build.

namespace roost {

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
