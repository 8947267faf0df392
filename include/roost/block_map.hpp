#pragma once

#include "roost/detail/concurrent/probing.hpp"
#include "roost/detail/table/slots.hpp"
#include "roost/place.hpp"

/// \file
/// block_map: a small map in the shared memory of a thread block.

namespace roost {

/// A map of at least `Slots` slots in memory that the user provides, usually the shared memory of a thread
/// block. All threads of the block can use the single-key operations of its base, probing::table, at the same
/// time: insert, insert_or_assign, insert_or_apply, insert_and_find, find, contains, erase.
///
/// The map does not grow; inserts can return `insertion::full`. Each eighth of the hash values has an eighth
/// of the slots, so a small map may be full before its last slot is taken. With twice as many slots as keys
/// this does not happen by chance.
///
///     __shared__ roost::block_map<int, int, 1024>::storage memory;
///     const roost::block_map<int, int, 1024> map(memory);
///     map.clear(cooperative_groups::this_thread_block());
///     map.insert_or_apply(key, 1, roost::plus());
///     __syncthreads();
///     map.for_each(cooperative_groups::this_thread_block(), write_out);
///
/// Key and Value: as in concurrent_map, of up to 8 bytes each; `none` as Value makes a set. With `host` as
/// Place it is the same map for host threads. Trivially copyable; each thread creates its own object over the
/// same memory.
template <class Key, class Value, std::uint32_t Slots, class Place = cuda>
class block_map : public probing::table<Place, Key, Value> {
  using base = probing::table<Place, Key, Value>;
  using typename base::bucket;
  static_assert(detail::check_types<Key, Value>());
  static_assert(Slots > 0 && Slots <= 1 << 20, "a map of one block; for larger ones take concurrent_map");
  static constexpr std::uint32_t region_buckets =
      detail::prime_from(detail::ceil_div<std::uint32_t>(Slots, probing::sections* base::bucket_slots) + 2);

 public:
  /// Uninitialised: call clear() first.
  struct storage {
    bucket buckets[probing::sections * region_buckets];
  };

  ROOST_FN explicit block_map(storage& memory, std::uint64_t seed = 0)
      : base(memory.buckets, probing::plan{probing::sections, region_buckets, seed}) {}

  /// Frees all slots. All threads of the group must call it; it ends with a barrier of the group. Group: a
  /// type like cooperative_groups::thread_block, with thread_rank(), size() and sync().
  template <class Group>
  ROOST_FN void clear(const Group& group) const {
    for (std::uint32_t b = group.thread_rank(); b < probing::sections * region_buckets; b += group.size())
      this->buckets_[b] = bucket{};
    group.sync();
  }

  /// Calls f(key, value), or f(key) for a set, for every key. The threads of the group share the keys. Has no
  /// barrier.
  template <class Group, class F>
  ROOST_FN void for_each(const Group& group, const F& f) const {
    for (std::uint32_t i = group.thread_rank(); i < probing::sections * region_buckets * base::bucket_slots;
         i += group.size())
      detail::visit_slot<base, F>{*this, f}(i);
  }
};

}  // namespace roost
