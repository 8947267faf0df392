#pragma once

#include "all.hpp"

namespace roost::bench {

template <class Key>
void measure_host_keys(const settings& options) {
  poisoned_memory<host> memory{host()};
  const host place(options.threads, &memory);
  switch (options.value_bits) {
    case 0:
      return measure_all<host, Key, none>(place, options);
    case 32:
      return measure_all<host, Key, std::uint32_t>(place, options);
    default:
      return measure_all<host, Key, std::uint64_t>(place, options);
  }
}

}  // namespace roost::bench
