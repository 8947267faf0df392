#pragma once

#include "concurrent.hpp"
#include "groups.hpp"
#include "partition.hpp"
#include "stadium.hpp"

namespace roost::bench {

/// Measures all tables of a place.
template <class Place, class Key, class Value>
void measure_all(const Place& place, const settings& options) {
  for (const std::size_t n : options.sizes()) {
    for (const double load_factor : options.load_factors) {
      measure<frozen_table<Place, Key, Value, compact>, Place, Key, Value>(place, options, n, load_factor);
      if (load_factor > 1) continue;
      measure<frozen_table<Place, Key, Value, bucketed>, Place, Key, Value>(place, options, n, load_factor);
      if constexpr (std::is_same_v<Key, Value>) {
        measure_concurrent<concurrent_table<Place, Key, Value>, Place, Key, Value>(place, options, n,
                                                                                   load_factor);
        measure_stadium<Place, Key, Value>(place, options, n, load_factor);
      }
    }
    const double load_factor = options.load_factors.front();  // the other tables take none
    measure<frozen_table<Place, Key, Value, cuckoo>, Place, Key, Value>(place, options, n, load_factor);
    if constexpr (std::is_same_v<Value, none>) {
      measure<two_kernel_table<Place, Key>, Place, Key, Value>(place, options, n, load_factor);
#if !defined(__CUDACC__)
      measure<boost_set_table<Key>, Place, Key, Value>(place, options, n, load_factor);
      measure<std_set_table<Key>, Place, Key, Value>(place, options, n, load_factor);
#endif
    } else {
      measure<sorted_table<Place, Key, Value>, Place, Key, Value>(place, options, n, load_factor);
      measure_partition<Place, Key, Value>(place, options, n);
      if constexpr (std::is_same_v<Key, Value>) measure_groups<Place, Key, Value>(place, options, n);
#if !defined(__CUDACC__)
      measure<boost_table<Key, Value>, Place, Key, Value>(place, options, n, load_factor);
      measure<std_table<Key, Value>, Place, Key, Value>(place, options, n, load_factor);
      if constexpr (std::is_same_v<Key, Value>)
        measure_concurrent<tbb_table<Key, Value>, Place, Key, Value>(place, options, n, load_factor);
#endif
    }
  }
}

}  // namespace roost::bench
