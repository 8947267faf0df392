// BGHT's bucketed cuckoo hashing. Its constructor clears on the default stream. The check notices an insert
// that fails.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <bght/bcht.hpp>

#include "peers.hpp"

namespace roost::bench {
namespace {

template <class Key, class Value, int Bucket>
class bght_map {
  using pair = bght::pair<Key, Value>;
  using map = bght::bcht<Key, Value, bght::MurmurHash3_32<Key>, bght::equal_to<Key>,
                         ::cuda::thread_scope_device, device_allocator<char>, Bucket>;

 public:
  static std::string name() { return "bght_bcht_" + std::to_string(Bucket); }

  bght_map(const cuda& place, std::span<const Key> keys, std::span<const Value> values, double load_factor)
      : capacity_(static_cast<std::size_t>(static_cast<double>(keys.size()) / load_factor) + 1),
        size_(keys.size()),
        map_((place.synchronize(), capacity_), reserved_key<Key>, missing<Value>,
             device_allocator<char>(place)) {
    const auto pairs = thrust::make_transform_iterator(thrust::counting_iterator<std::size_t>(0),
                                                       pair_of<pair, Key, Value>{keys.data(), values.data()});
    map_.insert(pairs, pairs + keys.size(), place.stream());
  }
  void find(const cuda& place, std::span<const Key> queries, std::span<Value> results, Value) {
    map_.find(queries.data(), queries.data() + queries.size(), results.data(), place.stream());
  }
  double load_factor() const { return static_cast<double>(size_) / static_cast<double>(capacity_); }
  std::size_t bytes() const { return capacity_ * sizeof(pair); }
  std::size_t scratch_bytes() const { return 0; }

 private:
  std::size_t capacity_, size_;
  map map_;
};

const peer::registration bght_tables("cuda", [](const settings& options) {
  using key = std::uint32_t;  // it does not support pairs of 16 bytes
  measure_cuda_peer<bght_map<key, key, 16>, key, key>(options);
  measure_cuda_peer<bght_map<key, key, 8>, key, key>(options);
});

}  // namespace
}  // namespace roost::bench
