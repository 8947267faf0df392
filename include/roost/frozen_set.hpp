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
template <class Key, class Place /* = host */, class Layout /* = default_layout<Key, none> */>
class frozen_set : frozen_map<Key, none, Place, Layout> {
  using map = frozen_map<Key, none, Place, Layout>;

 public:
  using typename map::key_type, typename map::options, typename map::ref_type;

  /// Builds a set of the keys. Synchronises.
  template <class Keys>
    requires(!std::is_same_v<Keys, frozen_set>)
  frozen_set(const Place& place, const Keys& keys, options chosen = {})
      : map(place, detail::alone_as<Key>(keys), chosen, nullptr) {}

  /// An empty set without memory: see frozen_map.
  frozen_set() = default;
  explicit frozen_set(options chosen) : map(chosen) {}
  ROOST_DELETE_WITHOUT_PLACE(Place, frozen_set, explicit frozen_set);

  /// Builds the set again with the same options. If it throws, the set is unchanged. Synchronises.
  template <class Keys>
  void rebuild(const Place& place, const Keys& keys) {
    *this = frozen_set(place, keys, this->options_);
  }

  /// Builds the set again in its existing memory, without waiting; see frozen_map::rebuild_async.
  template <class Keys>
  void rebuild_async(const Place& place, const Keys& keys) {
    this->refill(place, detail::alone_as<Key>(keys));
  }

  /// Writes all keys, each once, in no defined order, to memory of the place with room for size(). Returns
  /// size(). Asynchronous on cuda.
  template <class Keys>
  std::size_t retrieve_all(const Place& place, Keys&& keys) const {
    Key* const keys_to = detail::output<Key>(keys, size(), "roost::frozen_set::retrieve_all");
    if (!empty()) detail::retrieve_pairs(place, ref(), keys_to, nullptr, size());
    return size();
  }

  // As in frozen_map; for_each calls f(key), and `for (auto key : set)` iterates over the keys.
  using map::begin, map::end, map::finish, map::contains, map::count, map::count_found, map::for_each,
      map::ref, map::size, map::empty, map::capacity, map::load_factor, map::bytes, map::statistics,
      map::mean_probes, map::valid;
  using typename map::iterator;
};

template <detail::place_comes_first Place, class Keys>
frozen_set(const Place&, const Keys&, typename default_layout<detail::element_of<Keys>, none>::options = {})
    -> frozen_set<detail::element_of<Keys>, Place>;
ROOST_GUIDE_WITHOUT_PLACE(frozen_set, int);

}  // namespace roost
