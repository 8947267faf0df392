#pragma once

#include "roost/detail/slots.hpp"
#include "roost/layout/probing.hpp"
#include "roost/place.hpp"

/// \file
/// block_map: a small map in the shared memory of a thread block.

namespace roost {

/// A map of at least `Slots` slots in memory that its user brings: shared memory of a thread block, most times. What probing::table, its base, does with single keys, all threads of the block do at
/// once: insert, insert_or_assign, insert_or_apply, insert_and_find, find, contains, erase. It does not grow: `insertion::full` is an answer, and each quarter of the keys' hashes has a quarter of
/// the slots, so that a small map may be full before its last slot is taken; with twice the slots as there are keys that does not happen by chance.
///
///     __shared__ roost::block_map<int, int, 1024>::storage memory;
///     const roost::block_map<int, int, 1024> map(memory);
///     map.clear(cooperative_groups::this_thread_block());
///     map.insert_or_apply(key, 1, roost::plus());
///     __syncthreads();
///     map.for_each(cooperative_groups::this_thread_block(), write_out);
///
/// Key and Value: as concurrent_map's of up to 8 bytes; `none` as Value makes a set. With Place = host it is the same map for threads of the host. Trivially copyable; each thread makes its own over the same memory.
template <class Key, class Value, std::uint32_t Slots, class Place = cuda>
class block_map : public probing::table<Place, Key, Value> {
  using base = probing::table<Place, Key, Value>;
  using typename base::bucket;
  static_assert(Slots > 0 && Slots <= 1 << 20, "a map of one block; for larger ones take concurrent_map");
  static constexpr std::uint32_t region_buckets = detail::prime_from(detail::ceil_div<std::uint32_t>(Slots, 4 * base::bucket_slots));

 public:
  /// Not initialised: clear() comes first.
  struct storage {
    bucket buckets[4 * region_buckets];
  };

  ROOST_FN explicit block_map(storage& memory, std::uint64_t seed = 0) : base(memory.buckets, probing::plan{4, region_buckets, seed}) {}

  /// Makes all slots free. All threads of the group call it; it ends with the group's barrier. Group: as cooperative_groups::thread_block is, with thread_rank(), size() and sync().
  template <class Group>
  ROOST_FN void clear(const Group& group) const {
    for (std::uint32_t b = group.thread_rank(); b < 4 * region_buckets; b += group.size()) this->buckets_[b] = bucket{};
    group.sync();
  }

  /// Calls f(key, value), or f(key), for every key. The threads of the group share them; no barrier.
  template <class Group, class F>
  ROOST_FN void for_each(const Group& group, const F& f) const {
    for (std::uint32_t slot = group.thread_rank(); slot < 4 * region_buckets * base::bucket_slots; slot += group.size()) detail::visit_slot<base, F>{*this, f}(slot);
  }
};

}  // namespace roost
