#pragma once

#include "roost/detail/place/sequence.hpp"
#include "roost/detail/table/probe.hpp"
#include "roost/detail/table/ref_life.hpp"

/// \file
/// The lookups of a ref.

namespace roost {

/// The lookups of frozen_map::ref() and frozen_set::ref(), for every layout. Trivially copyable; valid while
/// the map exists and is not rebuilt. Any number of threads may call them, in kernels and on the host. (Refs
/// of concurrent_map and concurrent_set have the same calls.)
template <class Table, class Key, class Value>
class lookups : public detail::ref_base {
 public:
  using key_type = Key;
  using value_type = Value;
  using hit = detail::hit<detail::small_value<Value>>;
  static constexpr std::uint64_t no_slot = ~std::uint64_t{0};

  /// The value of a key, or nothing.
  ROOST_FN found<Value> find(const Key& key) const {
    const hit there = detail::probe(table(), key);
    if constexpr (detail::is_large_value<Value>) {
      return there ? found<Value>(table().value_at(there.slot)) : found<Value>();
    } else {
      return there;
    }
  }
  /// The same for lanes (roost/lanes.hpp): each of them looks the key up, which is one or two reads.
  template <class Lanes>
  ROOST_FN found<Value> find(const Lanes&, const Key& key) const {
    return find(key);
  }
  /// True if the key is present.
  ROOST_FN bool contains(const Key& key) const { return detail::probe(table(), key).has_value(); }
  template <class Lanes>
  ROOST_FN bool contains(const Lanes&, const Key& key) const {
    return contains(key);
  }
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(find, contains);

  /// Prefetches what the first step of a lookup of this key reads. Does nothing on a GPU, where other threads
  /// hide the latency.
  ROOST_PREFETCH_FN void prefetch(const Key& key) const { table().fetch(table().start(key)); }

  // Slots by number, for iteration and checks.

  /// The slot of a key, or no_slot.
  ROOST_FN std::uint64_t slot_of(const Key& key) const { return detail::probe(table(), key).slot; }
  /// How many pieces of memory (sectors, buckets, slots) a lookup of this key reads; 0 if it is absent.
  ROOST_FN std::uint32_t probes_of(const Key& key) const { return detail::probe(table(), key).probes; }

 private:
  ROOST_FN const Table& table() const { return static_cast<const Table&>(*this); }
};

}  // namespace roost
