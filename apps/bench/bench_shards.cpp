#include "sharded.hpp"

namespace roost::bench {

void measure_host_shards(const settings& options) {
  poisoned_memory<host> memory{host()};
  const host_shards shards(options.shards, host(options.threads, &memory));
  using u32 = std::uint32_t;
  options.value_bits == 0 ? measure_sharded<host_shards, u32, none>(shards, options)
                          : measure_sharded<host_shards, u32, u32>(shards, options);
}

}  // namespace roost::bench
