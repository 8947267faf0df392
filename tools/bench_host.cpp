#include "all.hpp"

namespace roost::bench {

void measure_host(const settings& options) {
  poisoned_memory<host> memory{host()};
  const host place(options.threads, &memory);
  const auto run = [&]<class Key>(Key) {
    switch (options.value_bits) {
      case 0:
        return measure_all<host, Key, none>(place, options);
      case 32:
        return measure_all<host, Key, std::uint32_t>(place, options);
      default:
        return measure_all<host, Key, std::uint64_t>(place, options);
    }
  };
  options.key_bits == 32 ? run(std::uint32_t{}) : run(std::uint64_t{});
}

}  // namespace roost::bench
