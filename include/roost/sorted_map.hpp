#pragma once

#include <span>

#include "roost/detail/place/numbers.hpp"
#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/detail/table/ref_life.hpp"
#include "roost/detail/table/single_keys.hpp"
#include "roost/hash.hpp"
#include "roost/pair.hpp"

/// \file
/// sorted_map: a sorted array and binary search.

namespace roost {

/// Pairs in the order of their keys, found by binary search. It takes no memory beyond the pairs, gives
/// ordered access, and builds at the speed of a radix sort. But a lookup reads log2(size) positions, so a
/// frozen_map answers several times faster. Use it for ranges, for neighbours, and as the baseline that every
/// hash table must beat.
///
///     roost::sorted_map map(gpu, keys, values);
///     map.find(gpu, queries, results, missing_value);
///     map.keys();  // ascending, in the memory of the place
///
/// Key: an integer type of up to 8 bytes. Value: any trivially copyable type. If a key appears more than
/// once, the first pair in input order wins. Builds use CUB's stable radix sort on cuda, with scratch memory
/// of about twice the input, and oneTBB's parallel sort on the host. Threads, streams, failure: as in
/// frozen_map.
template <class Key, class Value, class Place /* = host */>
class sorted_map : public single_keys<sorted_map<Key, Value, Place>, Key, Value, Place> {
  static_assert(detail::is_integer<Key>, "roost::sorted_map: keys are integers of up to 8 bytes");
  static_assert(detail::check_types<Key, Value>());
  using one = single_keys<sorted_map, Key, Value, Place>;

 public:
  using key_type = Key;
  using mapped_type = Value;

  /// The handle for kernels and host loops. It is trivially copyable, and valid while its map exists and is
  /// not rebuilt.
  class ref_type : public detail::ref_base {
   public:
    using key_type = Key;

    ref_type(const Key* keys, const Value* values, std::size_t size)
        : keys_(keys), values_(values), size_(size) {}

    /// The position of the first key that is not less than `key`, or size() if there is none.
    ROOST_FN std::size_t lower_bound(const Key& key) const {
      this->expect_alive();
      return detail::lower_bound(std::size_t{0}, size_, [&](std::size_t i) { return keys_[i] < key; });
    }

    /// The value of a key, or nothing.
    ROOST_FN found<Value> find(const Key& key) const {
      const std::size_t i = lower_bound(key);
      return i < size_ && keys_[i] == key ? found<Value>(values_[i]) : found<Value>();
    }

    /// True if the key is present.
    ROOST_FN bool contains(const Key& key) const {
      const std::size_t i = lower_bound(key);
      return i < size_ && keys_[i] == key;
    }
    ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(lower_bound, find);
    ROOST_DELETE_IF_IT_CHANGES_THE_KEY(contains);

    /// The pair at a position below size().
    ROOST_FN const Key& key_at(std::size_t i) const { return keys_[i]; }
    ROOST_FN const Value& value_at(std::size_t i) const { return values_[i]; }
    ROOST_FN std::size_t size() const { return size_; }

    /// Does nothing: a binary search has no single address to prefetch.
    ROOST_PREFETCH_FN void prefetch(const Key&) const {}

   private:
    const Key* keys_;
    const Value* values_;
    std::size_t size_;
  };

  /// Sorts the pairs keys[i] -> values[i]. Keys and values: ranges of equal length in the memory of the
  /// place. Synchronises.
  template <class Keys, class Values>
  sorted_map(const Place& place, const Keys& keys, const Values& values);

  /// An empty map without memory: rebuild() gives it pairs.
  sorted_map() = default;
  ROOST_DELETE_WITHOUT_PLACE(Place, sorted_map, explicit sorted_map);

  /// Builds the map again; if it throws, the map is unchanged. Synchronises.
  template <class Keys, class Values>
  void rebuild(const Place& place, const Keys& keys, const Values& values) {
    *this = sorted_map(place, keys, values);
  }

  // One key at a time, on the host: see single_keys.
  using one::find, one::contains, one::count;

  /// results[i] = the value of queries[i], or `missing`. `results` is contiguous memory of the place.
  /// Asynchronous on cuda.
  template <class Queries, class Results>
  void find(const Place& place, const Queries& queries, Results&& results, Value missing) const {
    detail::bulk_lookups(place, ref(), bytes())
        .find_values(queries, results, missing, "roost::sorted_map::find");
  }

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  void contains(const Place& place, const Queries& queries, Results&& results) const {
    detail::bulk_lookups(place, ref(), bytes())
        .find_contained(queries, results, "roost::sorted_map::contains");
  }

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return detail::bulk_lookups(place, ref(), bytes()).count(queries);
  }

  /// All keys in ascending order, and their values in the same order, in memory of the place.
  std::span<const Key> keys() const { return {keys_.data(), size()}; }
  std::span<const Value> values() const { return {values_.data(), size()}; }

  ref_type ref() const {
    ref_type result(keys_.data(), values_.data(), size());
    result.refer_to(life_);
    return result;
  }
  std::size_t size() const { return detail::smaller(size_, keys_.size()); }  // 0 if it was moved from
  std::size_t size(const Place&) const { return size(); }
  bool empty() const { return size() == 0; }
  std::size_t capacity() const { return keys_.size(); }
  double load_factor() const {
    return capacity() == 0 ? 0 : static_cast<double>(size()) / static_cast<double>(capacity());
  }
  std::size_t bytes() const { return keys_.bytes() + values_.bytes(); }

  /// Checks that the keys are strictly ascending. Reads all keys. Synchronises.
  bool valid(const Place& place) const;

 private:
  array<Key, Place> keys_;
  array<Value, Place> values_;
  std::size_t size_ = 0;
  [[no_unique_address]] detail::ref_life<Place> life_;
};

template <detail::place_comes_first Place, class Keys, class Values>
sorted_map(const Place&, const Keys&, const Values&)
    -> sorted_map<detail::element_of<Keys>, detail::element_of<Values>, Place>;
ROOST_GUIDE_WITHOUT_PLACE(sorted_map, int, int);

}  // namespace roost

#include "roost/detail/frozen/sorted.hpp"
