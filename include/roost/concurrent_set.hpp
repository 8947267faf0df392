#pragma once

#include "roost/concurrent_map.hpp"

/// \file
/// concurrent_set: a set of keys that is changed and asked at the same time.

namespace roost {

/// concurrent_map without values: slots of 4 bytes for keys of up to 4, of 8 for longer ones. For visited marks, deduplication of streams, membership.
///
///     roost::concurrent_set<int, roost::cuda> seen(gpu, 1000000);
///     if (ref.insert(key) == roost::insertion::inserted) ...         // auto ref = seen.ref(), in a kernel: the first one to come
///
/// See concurrent_map for what the calls share: room, cost, errors, what may overlap.
template <class Key, class Place = host>
class concurrent_set {
  using map = concurrent_map<Key, none, Place>;

 public:
  using key_type = Key;
  using options = concurrent_options;
  using ref_type = typename map::ref_type;
  using reader_type = typename map::reader_type;

  /// An empty set with room for n keys at the load factor. Asynchronous on cuda.
  explicit concurrent_set(const Place& place, std::size_t n = 0, options options = {}) : map_(place, n, options) {}

  /// An empty set in storage_bytes(n) of memory that its user brings. See concurrent_map.
  concurrent_set(const Place& place, std::span<std::byte> storage, options options = {}) : map_(place, storage, options) {}
  static std::size_t storage_bytes(std::size_t n, const options& options = {}) { return map::storage_bytes(n, options); }

  /// Stores each key that is not there. Synchronises.
  template <class Keys>
  insert_report insert(const Place& place, const Keys& keys, bulk_options how = {}) {
    return map_.put_all(place, detail::alone_of(keys), detail::all_wanted(), keep(), how);
  }

  /// The same for those keys only whose element of the range `stencil` is true. Synchronises.
  template <class Keys, class Stencil>
  insert_report insert_if(const Place& place, const Keys& keys, const Stencil& stencil, bulk_options how = {}) {
    return map_.put_all(place, detail::alone_of(keys), detail::wanted_of(stencil, detail::alone_of(keys).size(), "roost::concurrent_set::insert_if"), keep(), how);
  }

  /// Takes keys out; returns how many were there. Synchronises.
  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {}) {
    return map_.erase(place, keys, how);
  }

  /// Takes out the keys for which f(key) is true, and returns how many. Synchronises.
  template <class F>
  std::size_t erase_if(const Place& place, const F& f) {
    return map_.erase_if(place, f);
  }

  /// Takes all keys out. Asynchronous on cuda.
  void clear(const Place& place) { map_.clear(place); }

  /// results[i] = whether queries[i] is there, as bool, to contiguous memory of the place. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results, bulk_options how = {}) const {
    return map_.contains(place, queries, results, how);
  }

  /// How many of the queries are there. Synchronises.
  template <class Queries>
  std::size_t count(const Place& place, const Queries& queries) const {
    return map_.count(place, queries);
  }

  /// Writes all keys, in no defined order, to memory of the place with room for all; returns how many. Synchronises.
  template <class Keys>
  std::size_t retrieve_all(const Place& place, Keys&& keys) const {
    const std::size_t n = size(place);
    detail::retrieve_pairs(place, ref(), detail::output<Key>(keys, n, "roost::concurrent_set::retrieve_all"), nullptr, n);
    return n;
  }

  /// Calls f(key) for every key, on the place, many at once. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    map_.for_each(place, f);
  }

  /// See concurrent_map.
  void reserve(const Place& place, std::size_t n) { map_.reserve(place, n); }
  void rehash(const Place& place, std::size_t n = 0) { map_.rehash(place, n); }
  void shrink_to_fit(const Place& place) { map_.shrink_to_fit(place); }

  /// The handle for kernels and host loops: all operations, or lookups only.
  ref_type ref() { return map_.ref(); }
  reader_type ref() const { return map_.ref(); }

  /// How many keys there are. Reads all slots. Synchronises.
  std::size_t size(const Place& place) const { return map_.size(place); }
  std::size_t capacity() const { return map_.capacity(); }
  std::size_t bytes() const { return map_.bytes(); }
  /// See concurrent_map.
  concurrent_statistics statistics(const Place& place) const { return map_.statistics(place); }
  bool valid(const Place& place) const { return map_.valid(place); }

 private:
  using keep = typename ref_type::keep;

  map map_;
};

}  // namespace roost
