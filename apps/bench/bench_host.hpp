#pragma once

#if ROOST_SMALL_TOOL
#include "few.hpp"
#else
#include "all.hpp"
#endif

namespace roost::bench {

template <class Key>
void measure_host_keys(const settings& options) {
  poisoned_memory<host> memory{host()};
  const host place(options.threads, &memory);
#if ROOST_SMALL_TOOL
  measure_all<host, Key, std::uint32_t>(place, options);
#else
  switch (options.value_bits) {
    case 0:
      return measure_all<host, Key, none>(place, options);
    case 32:
      return measure_all<host, Key, std::uint32_t>(place, options);
    default:
      return measure_all<host, Key, std::uint64_t>(place, options);
  }
#endif
}

}  // namespace roost::bench
