#pragma once

#include <vector>

#include "run.hpp"
#include "timing.hpp"

// Tables of others, which `roost bench --with-peers` measures beside ours. README.md says how to add one.

namespace roost::bench {

/// The peers that were built in; each file of this folder adds its own before main() begins.
struct peer {
  std::string place;  // host or cuda
  void (*measure)(const settings&);

  static std::vector<peer>& all() {
    static std::vector<peer> peers;
    return peers;
  }
  struct registration {
    registration(const std::string& place, void (*measure)(const settings&)) {
      all().push_back({place, measure});
    }
  };
};

/// Measures a map of the host, and a set, with the keys and values that are asked for: Map<Key, Value> and
/// Set<Key> have the calls that tables.hpp names.
template <template <class, class> class Map, template <class> class Set, class Key>
void measure_host_peer_of(const host& place, const settings& options) {
  const double load_factor = options.load_factors.front();  // containers choose their own
  for (const int log2n : options.log2n) {
    const std::size_t n = std::size_t{1} << log2n;
    if (options.value_bits == 0)
      measure<Set<Key>, host, Key, none>(place, options, n, load_factor);
    else if (options.value_bits == 32)
      measure<Map<Key, std::uint32_t>, host, Key, std::uint32_t>(place, options, n, load_factor);
    else
      measure<Map<Key, std::uint64_t>, host, Key, std::uint64_t>(place, options, n, load_factor);
  }
}

template <template <class, class> class Map, template <class> class Set>
void measure_host_peer(const settings& options) {
  poisoned_memory<host> memory{host()};
  const host place(options.threads, &memory);
  options.key_bits == 32 ? measure_host_peer_of<Map, Set, std::uint32_t>(place, options)
                         : measure_host_peer_of<Map, Set, std::uint64_t>(place, options);
}

}  // namespace roost::bench
