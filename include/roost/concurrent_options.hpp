#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// \file
/// Options and statistics of concurrent_map, concurrent_set and block_map.

namespace roost {

/// Options of concurrent_map and concurrent_set.
struct concurrent_options {
  /// The share of the slots, in (0, 1], that keys may occupy before bulk calls make room. Erased keys may
  /// occupy half of the other slots.
  double load_factor = 0.8;
  /// Chooses the hash function.
  std::uint64_t seed = 0;
  /// Whether bulk calls that insert move the keys to a larger table when there is no room. If not, keys that
  /// find none are counted as `full`.
  bool grows = true;
};

/// Figures about a table. Probes are counted in buckets that a find of the key reads.
struct concurrent_statistics {
  std::size_t size = 0;      ///< keys
  std::size_t erased = 0;    ///< slots of erased keys
  std::size_t capacity = 0;  ///< slots
  double load_factor = 0;    ///< (size + erased) / capacity
  std::size_t bytes = 0;
  double mean_probes = 0;
  std::uint32_t most_probes = 0;
  std::vector<std::size_t> keys_by_probes;  ///< [i]: number of keys that are found in the (i + 1)th bucket
};

}  // namespace roost
