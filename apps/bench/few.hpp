#pragma once

#include "apps/measure/run.hpp"

namespace roost::bench {

/// What the small command of ./scripts/demo measures: the default table, and tables that it may replace.
template <class Place, class Key, class Value>
void measure_all(const Place& place, const settings& options) {
  for (const int log2n : options.log2n) {
    const std::size_t n = std::size_t{1} << log2n;
    for (const double load_factor : options.load_factors) {
      measure<frozen_table<Place, Key, Value, default_layout<Key, Value>>, Place, Key, Value>(place, options,
                                                                                              n, load_factor);
    }
    const double load_factor = options.load_factors.front();  // the other tables take none
    measure<sorted_table<Place, Key, Value>, Place, Key, Value>(place, options, n, load_factor);
#if !defined(__CUDACC__)
    measure<boost_table<Key, Value>, Place, Key, Value>(place, options, n, load_factor);
    measure<std_table<Key, Value>, Place, Key, Value>(place, options, n, load_factor);
#endif
  }
}

}  // namespace roost::bench
