#pragma once

#include "roost/frozen_map.hpp"

/// \file
/// frozen_set: built once from a batch of keys, then only read.

namespace roost {

/// A frozen_map without values: the same builds, the same guarantees, half the memory. For membership tests
/// and for removing duplicates.
///
///     roost::frozen_set set(cpu, keys);
///     set.contains(cpu, queries, answers);
///
/// See frozen_map for what the calls have in common: places, costs, errors, thread safety.
template <class Key, class Place = host, class Layout = default_layout<Key, none>>
class frozen_set {
  using map = frozen_map<Key, none, Place, Layout>;

 public:
  using key_type = Key;
  using options = typename Layout::options;
  using ref_type = typename map::ref_type;

  /// Builds a set of the keys. Synchronises.
  template <class Keys>
    requires(!std::is_same_v<Keys, frozen_set>)
  frozen_set(const Place& place, const Keys& keys, options chosen = {})
      : map_(place, detail::alone_as<Key>(keys), chosen, nullptr) {}

  /// An empty set without memory: see frozen_map.
  frozen_set() = default;
  explicit frozen_set(options chosen) : map_(chosen) {}

  /// Builds the set again with the same options. If it throws, the set is unchanged. Synchronises.
  template <class Keys>
  void rebuild(const Place& place, const Keys& keys) {
    *this = frozen_set(place, keys, map_.options_);
  }

  /// Builds the set again in its existing memory, without waiting; see frozen_map::rebuild_async.
  template <class Keys>
  void rebuild_async(const Place& place, const Keys& keys) {
    map_.refill(place, detail::alone_as<Key>(keys));
  }

  /// Waits for the last rebuild_async; see frozen_map::finish. Synchronises.
  void finish(const Place& place) { map_.finish(place); }

  /// results[i] = whether queries[i] is present, as bool. `results` is contiguous memory of the place. See
  /// frozen_map::find. Asynchronous on cuda.
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

  /// Writes all keys, each once, in no defined order, to memory of the place with room for size(). Returns
  /// size(). Asynchronous on cuda.
  template <class Keys>
  std::size_t retrieve_all(const Place& place, Keys&& keys) const {
    Key* const keys_to = detail::output<Key>(keys, size(), "roost::frozen_set::retrieve_all");
    if (!empty()) detail::retrieve_pairs(place, ref(), keys_to, nullptr, size());
    return size();
  }

  /// Calls f(key) for every key, in parallel on the place. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    map_.for_each(place, f);
  }

  /// The handle for kernels and host loops, used as ref().contains(key).
  const ref_type& ref() const { return map_.ref(); }

  /// See frozen_map.
  std::size_t size() const { return map_.size(); }
  std::size_t size(const Place&) const { return size(); }
  bool empty() const { return map_.empty(); }
  std::size_t capacity() const { return map_.capacity(); }
  double load_factor() const { return map_.load_factor(); }
  double load_factor(const Place&) const { return load_factor(); }
  std::size_t bytes() const { return map_.bytes(); }
  const frozen_statistics& statistics() const { return map_.statistics(); }
  const frozen_statistics& statistics(const Place&) const { return statistics(); }
  /// How many sectors (compact) or buckets (bucketed) a lookup of a present key reads on
  /// average. Synchronises.
  double mean_probes(const Place& place) const { return map_.mean_probes(place); }
  /// Checks the invariants; see frozen_map::valid. Synchronises.
  bool valid(const Place& place) const { return map_.valid(place); }

 private:
  map map_;
};

template <class Place, class Keys>
frozen_set(const Place&, const Keys&, typename default_layout<detail::element_of<Keys>, none>::options = {})
    -> frozen_set<detail::element_of<Keys>, Place>;

}  // namespace roost
