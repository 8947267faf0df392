#pragma once

#include "roost/detail/grouping.hpp"
#include "roost/detail/numbers.hpp"
#include "roost/frozen_map.hpp"

/// \file
/// frozen_multimap: any number of values a key, built once from a batch, then only read.

namespace roost {

/// The values of a key, in memory of the place. Reads as a std::span does, and works on both places.
template <class Value>
class value_run {
 public:
  ROOST_FN value_run() : first_(nullptr), size_(0) {}
  ROOST_FN value_run(const Value* first, std::uint64_t size) : first_(first), size_(size) {}
  ROOST_FN const Value* begin() const { return first_; }
  ROOST_FN const Value* end() const { return first_ + size_; }
  ROOST_FN const Value* data() const { return first_; }
  ROOST_FN std::uint64_t size() const { return size_; }
  ROOST_FN bool empty() const { return size_ == 0; }
  ROOST_FN const Value& operator[](std::uint64_t i) const { return first_[i]; }

 private:
  const Value* first_;
  std::uint64_t size_;
};

/// What a batch of queries finds in a frozen_multimap: looked up once, so that you know how many matches there are before you make room for them.
/// Query i has matches offsets()[i] to offsets()[i + 1]; they come in the order of the queries, and for a query in the order that the map's input had.
/// Valid while the map lives and is not rebuilt. Threads and streams: as the map.
template <class Value, class Place>
class multimap_matches {
 public:
  /// How many matches all queries have.
  std::uint64_t size() const { return size_; }
  /// Where each query's matches begin, and the end: one element more than queries, in memory of the place.
  std::span<const std::uint64_t> offsets() const { return offsets_.span(); }

  /// Writes the values of all matches to contiguous memory of the place with room for size() (invalid_argument otherwise). Asynchronous on cuda.
  template <class Values>
  void retrieve(const Place& place, Values&& values) const;

  /// The same, and beside each value the number of its query: an integer type that holds all of them (invalid_argument otherwise).
  template <class Queries, class Values>
  void retrieve_pairs(const Place& place, Queries&& queries, Values&& values) const;

  /// Calls f(query number, value) for each match, on the place, many at once. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const;

 private:
  template <class K, class V, class P>
  friend class frozen_multimap;
  multimap_matches(const Place& place, std::size_t queries) : runs_(place, queries), offsets_(place, queries + 1) {}

  std::size_t queries() const { return runs_.size(); }

  array<std::uint64_t, Place> runs_;  // of each query
  array<std::uint64_t, Place> offsets_;
  std::uint64_t size_ = 0;
  const Value* values_ = nullptr;  // of the map
  Value missing_{};                // of a query that matches nothing, where it yet counts
};

/// A hash map from keys to any number of values, built from a batch of pairs and then only read: for joins, for lists of neighbours, for all records of a
/// customer. The values of a key lie side by side, so that a key with a million values costs its lookup and a million consecutive reads; open
/// addressing would walk through all of them for every question (Alcantara et al. 2009, section 4.2).
///
///     roost::frozen_multimap map(gpu, keys, values);
///     for (const auto& v : map.ref().find(key)) use(v);           // in kernels too
///     auto found = map.match(gpu, queries);                       // in bulk: found.size() is known,
///     found.retrieve(gpu, results);                               // then the values come, query after query
///
/// Key: up to 8 bytes for the fast path; any trivially copyable type that is compared by its bytes. Value: any trivially copyable type. The values of a key keep
/// the order of the input, whatever place and number of threads: two builds from the same data are the same.
///
/// Up to 2^32 - 1 different keys, and 2^40 - 1 pairs (invalid_argument otherwise). Cost: a build moves the pairs twice or three times, and builds a frozen_map of the different keys; scratch memory of
/// about three times the pairs. No cliff: a key that has half of all pairs is as good as any.
///
/// Threads, streams, failure: as frozen_map.
template <class Key, class Value, class Place = host>
class frozen_multimap {
  using map = frozen_map<Key, std::uint32_t, Place>;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using matches = multimap_matches<Value, Place>;

  /// Options of a build.
  struct options {
    double load_factor = 0.8;  ///< of the table of different keys: see its layout
    std::uint64_t seed = 0;    ///< chooses the hash functions
  };

  /// The handle for kernels and host loops. Trivially copyable; valid while its map lives and is not rebuilt. Any number of threads may read.
  class ref_type {
   public:
    using key_type = Key;
    using value_type = Value;

    ref_type(const typename map::ref_type& numbers, const std::uint64_t* offsets, const Value* values) : numbers_(numbers), offsets_(offsets), values_(values) {}

    /// The values of a key; none if it is not there.
    ROOST_FN value_run<Value> find(const Key& key) const {
      const found<std::uint32_t> number = numbers_.find(key);
      if (!number) return {};
      return {values_ + offsets_[*number], offsets_[*number + 1] - offsets_[*number]};
    }
    /// How many they are.
    ROOST_FN std::uint64_t count(const Key& key) const { return find(key).size(); }
    /// True if the key is there.
    ROOST_FN bool contains(const Key& key) const { return numbers_.contains(key); }

   private:
    typename map::ref_type numbers_;
    const std::uint64_t* offsets_;
    const Value* values_;
  };

  /// Builds a map of keys[i] -> values[i]. Ranges in the memory of the place, sized, random-access, equally long. Synchronises.
  /// Throws invalid_argument, out_of_memory, device_error, build_error.
  template <class Keys, class Values>
  frozen_multimap(const Place& place, const Keys& keys, const Values& values, options options = {});

  frozen_multimap(frozen_multimap&&) noexcept = default;
  frozen_multimap& operator=(frozen_multimap&&) noexcept = default;

  /// Builds the map anew. Both exist until it succeeds; if it throws the map is as it was. Synchronises.
  template <class Keys, class Values>
  void rebuild(const Place& place, const Keys& keys, const Values& values) {
    *this = frozen_multimap(place, keys, values, options_);
  }

  /// counts[i] = how many values queries[i] has: contiguous memory of the place, of an integer type (a count that it cannot hold is its greatest value),
  /// at least as long as the queries (invalid_argument otherwise). Asynchronous on cuda.
  template <class Queries, class Counts>
  bulk_report count(const Place& place, const Queries& queries, Counts&& counts, bulk_options options = {}) const;

  /// How many values all queries have together. Takes eight bytes of scratch memory a query. Synchronises.
  template <class Queries>
  std::uint64_t count_matches(const Place& place, const Queries& queries, bulk_options options = {}) const;

  /// results[i] = whether queries[i] is there, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results, bulk_options options = {}) const {
    return numbers_.contains(place, queries, results, options);
  }

  /// Looks all queries up, for you to retrieve what they match. Takes sixteen bytes of memory a query, which the result holds. Synchronises.
  template <class Queries>
  matches match(const Place& place, const Queries& queries, bulk_options options = {}) const;

  /// The same, but a query that matches nothing has one match of the value `missing`: a left join.
  template <class Queries>
  matches match_outer(const Place& place, const Queries& queries, const Value& missing, bulk_options options = {}) const;

  /// What retrieve and retrieve_pairs return.
  struct retrieved {
    array<std::uint64_t, Place> offsets;  ///< of each query's values, and the end
    array<Value, Place> values;
  };
  struct retrieved_pairs {
    array<std::uint64_t, Place> queries;  ///< the number of each value's query
    array<Value, Place> values;
  };
  /// The values of all queries, in their order. match() first if you want to know how many there are. Synchronises. Throws out_of_memory, which says how many they are.
  template <class Queries>
  retrieved retrieve(const Place& place, const Queries& queries, bulk_options options = {}) const;
  /// The same with each value's query.
  template <class Queries>
  retrieved_pairs retrieve_pairs(const Place& place, const Queries& queries, bulk_options options = {}) const;

  /// Calls f(query number, value) for all values of all queries, on the place, many at once. Synchronises.
  template <class Queries, class F>
  void for_each_match(const Place& place, const Queries& queries, const F& f, bulk_options options = {}) const {
    match(place, queries, options).for_each(place, f);
    place.synchronize();
  }

  /// Calls f(key, value) for every pair, on the place, many at once. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const;

  /// Writes all pairs, the values of a key together, to memory of the place with room for size() of each (invalid_argument otherwise); returns size().
  /// Asynchronous on cuda.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const;

  /// The different keys, in an order that means nothing, the same every time on one place; the values of keys()[g] are values()[offsets()[g]] to values()[offsets()[g + 1] - 1].
  /// Memory of the place.
  std::span<const Key> keys() const { return keys_.span(); }
  std::span<const std::uint64_t> offsets() const { return offsets_.span(); }
  std::span<const Value> values() const { return values_.span(); }

  ref_type ref() const { return {numbers_.ref(), offsets_.data(), values_.data()}; }

  /// The number of pairs.
  std::size_t size() const { return values_.size(); }
  bool empty() const { return size() == 0; }
  /// The number of different keys.
  std::size_t key_count() const { return keys_.size(); }
  std::size_t bytes() const { return numbers_.bytes() + keys_.bytes() + offsets_.bytes() + values_.bytes(); }
  /// Of the table of different keys; scratch_bytes and duplicates are the whole build's.
  const frozen_statistics& statistics() const { return statistics_; }

  /// Checks what must hold: every key finds its values where they lie, and they are size() together. Looks up every key. Synchronises.
  bool valid(const Place& place) const;

 private:
  using groups = detail::groups<Key, Value, Place>;

  template <class Source>
  static groups grouped(const Place& place, const Source& source, const options& options);
  frozen_multimap(const Place& place, groups&& all, options options);
  template <class Queries>
  matches match_at_least(const Place& place, const Queries& queries, std::uint64_t least, const Value& missing, bulk_options options) const;

  options options_;
  map numbers_;
  array<Key, Place> keys_;
  array<std::uint64_t, Place> offsets_;
  array<Value, Place> values_;
  frozen_statistics statistics_;
};

template <class Place, class Keys, class Values>
frozen_multimap(const Place&, const Keys&, const Values&) -> frozen_multimap<detail::element_of<Keys>, detail::element_of<Values>, Place>;
template <class Place, class Keys, class Values>
frozen_multimap(const Place&, const Keys&, const Values&, typename frozen_multimap<detail::element_of<Keys>, detail::element_of<Values>, Place>::options)
    -> frozen_multimap<detail::element_of<Keys>, detail::element_of<Values>, Place>;

}  // namespace roost

#include "roost/detail/frozen_multimap.inl"
