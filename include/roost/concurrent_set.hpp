#pragma once

#include "roost/concurrent_map.hpp"

/// \file
/// concurrent_set: a set of keys that can be changed and queried at the same time.

namespace roost {

/// A concurrent_map without values: slots of 4 bytes for keys of up to 4 bytes, and of 8 bytes for longer
/// keys. For marking visited items, deduplicating streams, testing membership.
///
///     roost::concurrent_set<int, roost::cuda> seen(gpu, 1000000);
///     auto ref = seen.ref();
///     // in a kernel: true for the first thread that inserts the key
///     if (ref.insert(key) == roost::insertion::inserted) ...
///
/// See concurrent_map for what the calls have in common: room, cost, errors, which calls may overlap.
template <class Key, class Place = host>
class concurrent_set {
  using map = concurrent_map<Key, none, Place>;

 public:
  using key_type = Key;
  using options = concurrent_options;
  using ref_type = typename map::ref_type;
  using reader_type = typename map::reader_type;

  /// Creates an empty set with room for n keys at the load factor. Asynchronous on cuda.
  explicit concurrent_set(const Place& place, std::size_t n = 0, options chosen = {})
      : map_(place, n, chosen) {}

  /// Creates an empty set in storage_bytes(n) bytes of memory that the user provides. See concurrent_map.
  concurrent_set(const Place& place, std::span<std::byte> storage, options chosen = {})
      : map_(place, storage, chosen) {}
  static std::size_t storage_bytes(std::size_t n, const options& options = {}) {
    return map::storage_bytes(n, options);
  }

  /// Stores each key that is absent. Synchronises.
  template <class Keys>
  insert_report insert(const Place& place, const Keys& keys, bulk_options how = {}) {
    return map_.slots_.put_all(place, detail::alone_as<Key>(keys), detail::all_wanted(), keep(), how);
  }

  /// The same, but only for keys whose element of the range `stencil` is true. Synchronises.
  template <class Keys, class Stencil>
  insert_report insert_if(const Place& place, const Keys& keys, const Stencil& stencil,
                          bulk_options how = {}) {
    return map_.slots_.put_all(
        place, detail::alone_as<Key>(keys),
        detail::wanted_of(stencil, detail::alone_as<Key>(keys).size(), "roost::concurrent_set::insert_if"),
        keep(), how);
  }

  /// Removes keys; returns how many were present. Synchronises.
  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {}) {
    return map_.erase(place, keys, how);
  }

  /// Removes the keys for which f(key) is true; returns how many. Synchronises.
  template <class F>
  std::size_t erase_if(const Place& place, const F& f) {
    return map_.erase_if(place, f);
  }

  /// Removes all keys. Asynchronous on cuda.
  void clear(const Place& place) { map_.clear(place); }

  /// results[i] = whether queries[i] is present, as bool. `results` is contiguous memory of the place.
  /// Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return map_.contains(place, queries, results, how);
  }

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return map_.count_found(place, queries);
  }
  /// The former name of count_found.
  template <class Queries>
  [[deprecated("call count_found")]] std::size_t count(const Place& place, const Queries& queries) const {
    return count_found(place, queries);
  }

  /// Writes all keys, in no defined order, to memory of the place with room for all of them; returns how
  /// many. Synchronises.
  template <class Keys>
  std::size_t retrieve_all(const Place& place, Keys&& keys) const {
    const std::size_t n = size(place);
    detail::retrieve_pairs(place, ref(), detail::output<Key>(keys, n, "roost::concurrent_set::retrieve_all"),
                           nullptr, n);
    return n;
  }

  /// Calls f(key) for every key, in parallel on the place. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    map_.for_each(place, f);
  }

  /// See concurrent_map.
  void reserve(const Place& place, std::size_t n) { map_.reserve(place, n); }
  void rehash(const Place& place, std::size_t n = 0) { map_.rehash(place, n); }
  void shrink_to_fit(const Place& place) { map_.shrink_to_fit(place); }

  /// The handle for kernels and host loops, with all operations, or with lookups only if the set is const.
  ref_type ref() { return map_.ref(); }
  reader_type ref() const { return map_.ref(); }

  /// Returns the number of keys. Reads all slots. Synchronises.
  std::size_t size(const Place& place) const { return map_.size(place); }
  std::size_t capacity() const { return map_.capacity(); }
  /// Keys and erased keys over slots. Reads all slots. Synchronises.
  double load_factor(const Place& place) const { return map_.load_factor(place); }
  std::size_t bytes() const { return map_.bytes(); }
  /// See concurrent_map.
  concurrent_statistics statistics(const Place& place) const { return map_.statistics(place); }
  bool valid(const Place& place) const { return map_.valid(place); }

 private:
  using keep = typename ref_type::keep;

  map map_;
};

}  // namespace roost
