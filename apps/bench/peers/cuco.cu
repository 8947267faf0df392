// cuCollections. A build ends when all pairs are inserted: no count is copied to the host.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cuda/std/functional>

// CCCL 3 has no such class, but older versions of cuCollections name it.
#if CCCL_VERSION >= 3000000
namespace thrust {
template <class T = void>
struct identity : ::cuda::std::identity {};
}  // namespace thrust
#endif

#include <cuco/static_map.cuh>
#include <cuco/static_set.cuh>

#include "peers.hpp"

namespace roost::bench {
namespace {

template <class Key>
using as_it_comes = cuco::linear_probing<4, cuco::default_hash_function<Key>>;
template <class Key>
using double_hashing = cuco::double_hashing<1, cuco::default_hash_function<Key>>;

template <class Key, class Value, class Probing, int Bucket>
class cuco_map {
  using pair = cuco::pair<Key, Value>;
  using map =
      cuco::static_map<Key, Value, cuco::extent<std::size_t>, ::cuda::thread_scope_device,
                       ::cuda::std::equal_to<Key>, Probing, device_allocator<pair>, cuco::storage<Bucket>>;

 public:
  static std::string name() { return Bucket == 1 ? "cuco_static_map" : "cuco_static_map_tuned"; }

  cuco_map(const cuda& place, std::span<const Key> keys, std::span<const Value> values, double load_factor)
      : map_(keys.size(), load_factor, cuco::empty_key{reserved_key<Key>}, cuco::empty_value{missing<Value>},
             {}, {}, {}, {}, device_allocator<pair>(place), place.stream()),
        size_(keys.size()) {
    const auto pairs = thrust::make_transform_iterator(thrust::counting_iterator<std::size_t>(0),
                                                       pair_of<pair, Key, Value>{keys.data(), values.data()});
    map_.insert_async(pairs, pairs + keys.size(), place.stream());
  }
  void find(const cuda& place, std::span<const Key> queries, std::span<Value> results, Value) const {
    map_.find_async(queries.begin(), queries.end(), results.begin(), place.stream());
  }
  double load_factor() const { return static_cast<double>(size_) / static_cast<double>(map_.capacity()); }
  std::size_t bytes() const { return map_.capacity() * sizeof(pair); }
  std::size_t scratch_bytes() const { return 0; }

 private:
  map map_;
  std::size_t size_;
};

template <class Key, class Probing, int Bucket>
class cuco_set {
  using set =
      cuco::static_set<Key, cuco::extent<std::size_t>, ::cuda::thread_scope_device,
                       ::cuda::std::equal_to<Key>, Probing, device_allocator<Key>, cuco::storage<Bucket>>;

 public:
  static std::string name() { return Bucket == 1 ? "cuco_static_set" : "cuco_static_set_tuned"; }

  cuco_set(const cuda& place, std::span<const Key> keys, double load_factor)
      : set_(keys.size(), load_factor, cuco::empty_key{reserved_key<Key>}, {}, {}, {}, {},
             device_allocator<Key>(place), place.stream()),
        size_(keys.size()) {
    set_.insert_async(keys.begin(), keys.end(), place.stream());
  }
  void contains(const cuda& place, std::span<const Key> queries, std::span<bool> results) const {
    set_.contains_async(queries.begin(), queries.end(), results.begin(), place.stream());
  }
  double load_factor() const { return static_cast<double>(size_) / static_cast<double>(set_.capacity()); }
  std::size_t bytes() const { return set_.capacity() * sizeof(Key); }
  std::size_t scratch_bytes() const { return 0; }

 private:
  set set_;
  std::size_t size_;
};

template <class Key>
void measure_key(const settings& options) {
  measure_cuda_peer<cuco_map<Key, Key, as_it_comes<Key>, 1>, Key, Key>(options);
  measure_cuda_peer<cuco_map<Key, Key, double_hashing<Key>, 4>, Key, Key>(options);
  measure_cuda_peer<cuco_set<Key, as_it_comes<Key>, 1>, Key, none>(options);
  measure_cuda_peer<cuco_set<Key, double_hashing<Key>, 4>, Key, none>(options);
}

const peer::registration cuco_tables("cuda", [](const settings& options) {
  measure_key<std::uint32_t>(options);
  measure_key<std::uint64_t>(options);
});

}  // namespace
}  // namespace roost::bench
