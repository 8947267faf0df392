#pragma once

#include <vector>

#include "apps/measure/run.hpp"
#include "apps/measure/timing.hpp"
#if defined(__CUDACC__)
#include "apps/shared/cuda_stream.hpp"
#endif

// Tables of other projects, which `roost bench --with-peers` also measures. README.md says how to add one.

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

/// Measures a map of the host, and a set, with the requested keys and values: Map<Key, Value> and Set<Key>
/// have the calls that tables.hpp names.
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

#if defined(__CUDACC__)
/// Device memory as roost's tables get it: from the place's pool, in the order of its stream, even if the
/// caller names another stream.
template <class T>
struct device_allocator {
  using value_type = T;
  const cuda* place = nullptr;

  device_allocator() = default;  // for copies in kernels
  explicit device_allocator(const cuda& place) : place(&place) {}
  template <class U>
  device_allocator(const device_allocator<U>& other) : place(other.place) {}
  T* allocate(std::size_t n, auto...) { return static_cast<T*>(place->allocate(n * sizeof(T))); }
  void deallocate(T* memory, std::size_t n, auto...) { place->deallocate(memory, n * sizeof(T)); }
  friend bool operator==(const device_allocator& a, const device_allocator& b) { return a.place == b.place; }
};

/// A key that occurs in no workload, for tables that reserve one: mixed keys are mixes of 1 .. 2 n, and this
/// one is odd and larger than the keys of the other patterns.
template <class Key>
inline constexpr Key reserved_key =
    sizeof(Key) == 4 ? Key{mix32(~std::uint32_t{0})} : static_cast<Key>(mix64(~std::uint64_t{0}));

/// Pair i of two arrays, in the type of a peer.
template <class Pair, class Key, class Value>
struct pair_of {
  const Key* keys;
  const Value* values;
  ROOST_FN Pair operator()(std::size_t i) const { return Pair{keys[i], values[i]}; }
};

/// Measures a table of the GPU with keys of Key and values of Value; none: a set. The small command has only
/// pairs of 32 bits.
template <class Table, class Key, class Value>
void measure_cuda_peer([[maybe_unused]] const settings& options) {
#if ROOST_SMALL_TOOL
  constexpr bool built = sizeof(Key) == 4 && std::is_same_v<Key, Value>;
#else
  constexpr bool built = true;
#endif
  if constexpr (built) {
    const int value_bits = std::is_same_v<Value, none> ? 0 : static_cast<int>(sizeof(Value)) * 8;
    if (options.key_bits != sizeof(Key) * 8 || options.value_bits != value_bits) return;
    const owned_stream stream;
    poisoned_memory<cuda> memory(cuda(stream.get()));
    const cuda place(stream.get(), &memory);
    for (const int log2n : options.log2n) {
      for (const double load_factor : options.load_factors) {
        if (load_factor <= 0.95)  // in a fuller table, absent keys would probe every slot
          measure<Table, cuda, Key, Value>(place, options, std::size_t{1} << log2n, load_factor);
      }
    }
  }
}
#endif

}  // namespace roost::bench
