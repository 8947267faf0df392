#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>

#if !defined(__CUDACC__)
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#endif

#include "papers/cuckoo.hpp"
#include "roost/roost.hpp"
#include "roost/sorted_map.hpp"

// The tables that `roost bench` compares, all with the calls of frozen_map: a name, a constructor from place,
// keys, values and load factor, find or contains, load_factor() and bytes().

namespace roost::bench {

template <class Place, class Key, class Value, class Layout>
struct frozen_table : frozen_map<Key, Value, Place, Layout> {
  static std::string name() { return std::string("frozen_") + Layout::name; }
  frozen_table(const Place& place, std::span<const Key> keys, std::span<const Value> values,
               double load_factor)
      : frozen_map<Key, Value, Place, Layout>(place, keys, values, options(load_factor)) {}
  std::size_t scratch_bytes() const { return this->statistics().scratch_bytes; }

  static typename Layout::options options(double load_factor) {
    typename Layout::options result;
    if constexpr (!std::is_same_v<Layout, cuckoo>)
      result.load_factor = load_factor;  // cuckoo uses the paper's
    return result;
  }
};

template <class Place, class Key, class Layout>
struct frozen_table<Place, Key, none, Layout> : frozen_set<Key, Place, Layout> {
  static std::string name() { return std::string("frozen_set_") + Layout::name; }
  frozen_table(const Place& place, std::span<const Key> keys, double load_factor)
      : frozen_set<Key, Place, Layout>(place, keys,
                                       frozen_table<Place, Key, Key, Layout>::options(load_factor)) {}
  std::size_t scratch_bytes() const { return this->statistics().scratch_bytes; }
};

/// The variant of Wang and Hu.
template <class Place, class Key>
struct two_kernel_table : frozen_set<Key, Place, cuckoo> {
  static std::string name() { return "frozen_set_two_kernel"; }
  two_kernel_table(const Place& place, std::span<const Key> keys, double)
      : frozen_set<Key, Place, cuckoo>(place, keys, {.two_kernel = true}) {}
  std::size_t scratch_bytes() const { return this->statistics().scratch_bytes; }
};

template <class Place, class Key, class Value>
struct sorted_table : sorted_map<Key, Value, Place> {
  static std::string name() { return "sorted_map"; }
  sorted_table(const Place& place, std::span<const Key> keys, std::span<const Value> values, double)
      : sorted_map<Key, Value, Place>(place, keys, values) {}
  std::size_t scratch_bytes() const { return 0; }
};

/// Memory of a host that outlives it, as roost's tables get it: from the same pool, in huge pages if large.
template <class T>
struct host_allocator {
  using value_type = T;
  const host* place;

  explicit host_allocator(const host& place) : place(&place) {}
  template <class U>
  host_allocator(const host_allocator<U>& other) : place(other.place) {}
  T* allocate(std::size_t n) { return static_cast<T*>(place->allocate(n * sizeof(T))); }
  void deallocate(T* memory, std::size_t n) { place->deallocate(memory, n * sizeof(T)); }
  friend bool operator==(const host_allocator& a, const host_allocator& b) {
    return a.place->memory() == b.place->memory();
  }
};

/// An allocator of a container: of the place, if it takes one.
template <class Allocator>
Allocator allocator_of([[maybe_unused]] const host& place) {
  if constexpr (std::is_constructible_v<Allocator, const host&>) {
    return Allocator(place);
  } else {
    return Allocator();
  }
}

/// A map of the host that is filled by one thread; all threads may look up.
template <class Map, class Key, class Value>
class filled_map {
 public:
  filled_map(const host& place, std::span<const Key> keys, std::span<const Value> values, double)
      : map_(allocator_of<typename Map::allocator_type>(place)) {
    map_.reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) map_.emplace(keys[i], values[i]);
  }
  void find(const host& place, std::span<const Key> queries, std::span<Value> results, Value missing) const {
    place.for_each(queries.size(), [&](std::size_t i) {
      const auto at = map_.find(queries[i]);
      results[i] = at == map_.end() ? missing : at->second;
    });
  }
  double load_factor() const { return map_.load_factor(); }
  std::size_t bytes() const { return 0; }  // unknown
  std::size_t scratch_bytes() const { return 0; }

 private:
  Map map_;
};

template <class Set, class Key>
class filled_set {
 public:
  filled_set(const host& place, std::span<const Key> keys, double)
      : set_(allocator_of<typename Set::allocator_type>(place)) {
    set_.reserve(keys.size());
    for (const Key key : keys) set_.insert(key);
  }
  void contains(const host& place, std::span<const Key> queries, std::span<bool> results) const {
    place.for_each(queries.size(), [&](std::size_t i) { results[i] = set_.find(queries[i]) != set_.end(); });
  }
  double load_factor() const { return set_.load_factor(); }
  std::size_t bytes() const { return 0; }
  std::size_t scratch_bytes() const { return 0; }

 private:
  Set set_;
};

template <class Key, class Value>
struct std_table : filled_map<std::unordered_map<Key, Value>, Key, Value> {
  using filled_map<std::unordered_map<Key, Value>, Key, Value>::filled_map;
  static std::string name() { return "std_unordered_map"; }
};

template <class Key>
struct std_set_table : filled_set<std::unordered_set<Key>, Key> {
  using filled_set<std::unordered_set<Key>, Key>::filled_set;
  static std::string name() { return "std_unordered_set"; }
};

#if !defined(__CUDACC__)
// Each is one array, which the pool keeps like the arrays of roost's tables. The nodes of the standard
// library's maps would each take a cache line there: they stay with malloc.
template <class Key, class Value>
using boost_map = boost::unordered_flat_map<Key, Value, boost::hash<Key>, std::equal_to<Key>,
                                            host_allocator<std::pair<const Key, Value>>>;
template <class Key>
using boost_set = boost::unordered_flat_set<Key, boost::hash<Key>, std::equal_to<Key>, host_allocator<Key>>;

template <class Key, class Value>
struct boost_table : filled_map<boost_map<Key, Value>, Key, Value> {
  using filled_map<boost_map<Key, Value>, Key, Value>::filled_map;
  static std::string name() { return "boost_flat_map"; }
};

template <class Key>
struct boost_set_table : filled_set<boost_set<Key>, Key> {
  using filled_set<boost_set<Key>, Key>::filled_set;
  static std::string name() { return "boost_flat_set"; }
};
#endif

}  // namespace roost::bench
