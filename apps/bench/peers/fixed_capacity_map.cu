// The map of CCCL's experimental part. A build ends when all pairs are inserted: no count is copied to the
// host.
#include <cuda/experimental/__cuco/fixed_capacity_map.cuh>
#include <cuda/iterator>

#include "peers.hpp"

namespace roost::bench {
namespace {

/// Memory of a place with the interface that CCCL requires.
struct place_resource {
  const cuda* place;
  void* allocate(::cuda::stream_ref, std::size_t bytes, std::size_t) const { return place->allocate(bytes); }
  void deallocate(::cuda::stream_ref, void* memory, std::size_t bytes, std::size_t) const noexcept {
    place->deallocate(memory, bytes);
  }
  void* allocate_sync(std::size_t bytes, std::size_t) const { return place->allocate(bytes); }
  void deallocate_sync(void* memory, std::size_t bytes, std::size_t) const noexcept {
    place->deallocate(memory, bytes);
  }
  bool operator==(const place_resource&) const = default;
  [[maybe_unused]] friend void get_property(const place_resource&, ::cuda::mr::device_accessible) noexcept {}
};

namespace cuco = ::cuda::experimental::cuco;
template <class Key>
using as_it_comes = cuco::linear_probing<4, ::cuda::hash<Key>>;
template <class Key>
using double_hashing = cuco::double_hashing<2, ::cuda::hash<Key>>;

template <class Key, class Value, class Probing, int Bucket>
class cccl_map {
  using pair = ::cuda::std::pair<Key, Value>;
  using map = cuco::fixed_capacity_map<Key, Value, ::cuda::std::dynamic_extent, ::cuda::thread_scope_device,
                                       ::cuda::std::equal_to<Key>, Probing, Bucket, place_resource>;

 public:
  static std::string name() { return Bucket == 1 ? "fixed_capacity_map" : "fixed_capacity_map_tuned"; }

  cccl_map(const cuda& place, std::span<const Key> keys, std::span<const Value> values, double load_factor)
      : map_(::cuda::stream_ref(place.stream()), place_resource{&place}, keys.size(), load_factor,
             cuco::empty_key{reserved_key<Key>}, cuco::empty_value{missing<Value>}),
        size_(keys.size()) {
    const auto pairs = ::cuda::transform_iterator(::cuda::counting_iterator<std::size_t>(0),
                                                  pair_of<pair, Key, Value>{keys.data(), values.data()});
    map_.insert_async(place.stream(), pairs, pairs + static_cast<std::ptrdiff_t>(keys.size()));
  }
  void find(const cuda& place, std::span<const Key> queries, std::span<Value> results, Value) const {
    map_.find_async(place.stream(), queries.data(), queries.data() + queries.size(), results.data());
  }
  double load_factor() const { return static_cast<double>(size_) / static_cast<double>(map_.capacity()); }
  std::size_t bytes() const { return map_.capacity() * sizeof(pair); }
  std::size_t scratch_bytes() const { return 0; }

 private:
  map map_;
  std::size_t size_;
};

template <class Key>
void measure_key(const settings& options) {
  measure_cuda_peer<cccl_map<Key, Key, as_it_comes<Key>, 1>, Key, Key>(options);
  measure_cuda_peer<cccl_map<Key, Key, double_hashing<Key>, 2>, Key, Key>(options);
}

const peer::registration cccl_tables("cuda", [](const settings& options) {
  measure_key<std::uint32_t>(options);
  measure_key<std::uint64_t>(options);
});

}  // namespace
}  // namespace roost::bench
