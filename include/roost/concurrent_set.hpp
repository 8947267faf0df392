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
template <class Key, class Place /* = host */>
class concurrent_set : concurrent_map<Key, none, Place> {
  using map = concurrent_map<Key, none, Place>;

 public:
  using typename map::key_type, typename map::options, typename map::ref_type, typename map::reader_type;

  // The constructors of concurrent_map: an empty set with room for n keys, or in memory that you provide.
  using map::map;

  /// Stores each key that is absent. Synchronises.
  template <class Keys>
  insert_report insert(const Place& place, const Keys& keys, bulk_options how = {}) {
    return this->slots_.put_all(place, detail::alone_as<Key>(keys), detail::all_wanted(), keep(), how);
  }

  /// The same, but only for keys whose element of the range `stencil` is true. Synchronises.
  template <class Keys, class Stencil>
  insert_report insert_if(const Place& place, const Keys& keys, const Stencil& stencil,
                          bulk_options how = {}) {
    const auto items = detail::alone_as<Key>(keys);
    return this->slots_.put_all(place, items,
                                detail::wanted_of(stencil, items.size(), "roost::concurrent_set::insert_if"),
                                keep(), how);
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

  // As in concurrent_map; for_each and erase_if call f(key).
  using map::begin, map::end, map::storage_bytes, map::erase, map::erase_if, map::clear, map::contains,
      map::count_found, map::count, map::for_each, map::reserve, map::rehash, map::shrink_to_fit, map::ref,
      map::size, map::capacity, map::load_factor, map::bytes, map::statistics, map::valid;
  using typename map::iterator;

 private:
  using keep = typename ref_type::keep;
};

}  // namespace roost
