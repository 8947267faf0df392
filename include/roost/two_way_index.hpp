#pragma once

#include "roost/detail/grouping.hpp"
#include "roost/detail/numbers.hpp"
#include "roost/frozen_map.hpp"

/// \file
/// two_way_index: different keys <-> 0, 1, ... m - 1.

namespace roost {

/// In what order a two_way_index numbers its keys: the same for the same input every time, with any number of threads.
enum class index_order {
  first_occurrence,  ///< as they come first in the input
  by_key,            ///< ascending: keys must be integers
  any                ///< as it is fastest; another order on another place
};

/// Numbers the different keys of a batch: from a key to its index by one lookup, from an index to its key by an array (Alcantara et al. 2009, section 4.3). For
/// arbitrary ids that must become rows of a matrix: graphs, dictionaries, categories, voxels.
///
///     roost::two_way_index index(gpu, ids);
///     index.size();                 // different ids
///     index.keys();                 // of each index, its id
///     index.indices();              // of each id of the input, its index
///     index.counts();               // how often each came
///     index.find(gpu, queries, results);
///
/// Key: up to 8 bytes for the fast path; any trivially copyable type that is compared by its bytes. Up to 2^32 - 2 different keys, and as many in one batch; more can be
/// added, and then old indices stay as they are.
///
/// Cost: a batch is moved twice or three times; then a frozen_map of all different keys is built, and the indices go back where the keys came from. Scratch memory of about four times a
/// batch of keys and four bytes each.
///
/// Threads, streams, failure: as frozen_map; add() must be alone.
template <class Key, class Place = host>
class two_way_index {
  using map = frozen_map<Key, std::uint32_t, Place>;

 public:
  using key_type = Key;

  /// What find() answers for a key that is not there, if nothing else is given.
  static constexpr std::uint32_t no_index = ~std::uint32_t{0};

  struct options {
    index_order order = index_order::first_occurrence;
    double load_factor = 0.8;  ///< of the table: see its layout
    std::uint64_t seed = 0;    ///< chooses the hash functions
  };

  /// The handle for kernels and host loops. Trivially copyable; valid until keys are added. Any number of threads may read.
  class ref_type {
   public:
    using key_type = Key;
    using value_type = std::uint32_t;

    ref_type(const typename map::ref_type& indices, const Key* keys, std::uint32_t size) : indices_(indices), keys_(keys), size_(size) {}

    /// The index of a key, or nothing.
    ROOST_FN found<std::uint32_t> find(const Key& key) const { return indices_.find(key); }
    /// True if the key is there.
    ROOST_FN bool contains(const Key& key) const { return indices_.contains(key); }
    /// The key of an index below size().
    ROOST_FN const Key& key_at(std::uint32_t index) const { return keys_[index]; }
    ROOST_FN std::uint32_t size() const { return size_; }

   private:
    typename map::ref_type indices_;
    const Key* keys_;
    std::uint32_t size_;
  };

  /// Numbers the keys of a range in the memory of the place. Synchronises. Throws invalid_argument, out_of_memory, device_error, build_error.
  template <class Keys>
    requires(!std::is_same_v<Keys, two_way_index>)
  two_way_index(const Place& place, const Keys& keys, options options = {});

  two_way_index(two_way_index&&) noexcept = default;
  two_way_index& operator=(two_way_index&&) noexcept = default;

  /// Adds another batch. Keys that are there keep their indices; new ones get the next, in the order that was chosen, among themselves. Returns the index of each key of the batch.
  /// Costs the batch, and a build of the table of all different keys. If it throws the index is as it was. Synchronises.
  template <class Keys>
  array<std::uint32_t, Place> add(const Place& place, const Keys& keys);

  /// results[i] = the index of queries[i], or `missing`: contiguous memory of the place. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, std::uint32_t missing = no_index, bulk_options options = {}) const {
    return indices_.find(place, queries, results, missing, options);
  }

  /// results[i] = whether queries[i] is there, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results, bulk_options options = {}) const {
    return indices_.contains(place, queries, results, options);
  }

  /// The key of each index, and how often it came in all batches. Memory of the place.
  std::span<const Key> keys() const { return keys_.span(); }
  std::span<const std::uint64_t> counts() const { return counts_.span(); }
  /// The index of each key that the constructor was given (add() returns those of its batch).
  std::span<const std::uint32_t> indices() const { return input_.span(); }
  /// The same for you to keep; indices() is empty from then on.
  array<std::uint32_t, Place> take_indices() { return std::move(input_); }

  ref_type ref() const { return {indices_.ref(), keys_.data(), static_cast<std::uint32_t>(size())}; }

  /// The number of different keys.
  std::size_t size() const { return keys_.size(); }
  bool empty() const { return size() == 0; }
  std::size_t bytes() const { return keys_.bytes() + counts_.bytes() + indices_.bytes() + input_.bytes(); }

  /// Checks what must hold: each key has its index, and they came as often as they are counted to have come. Looks up every key. Synchronises.
  bool valid(const Place& place) const;

 private:
  options options_;
  array<Key, Place> keys_;
  array<std::uint64_t, Place> counts_;
  map indices_;
  array<std::uint32_t, Place> input_;
};

template <class Place, class Keys>
two_way_index(const Place&, const Keys&) -> two_way_index<detail::element_of<Keys>, Place>;
template <class Place, class Keys>
two_way_index(const Place&, const Keys&, typename two_way_index<detail::element_of<Keys>, Place>::options) -> two_way_index<detail::element_of<Keys>, Place>;

/// The different keys of a range, each once. Synchronises. Throws as two_way_index does.
template <class Place, class Keys>
auto unique(const Place& place, const Keys& keys, index_order order = index_order::first_occurrence);

/// How many different keys a range has. Synchronises.
template <class Place, class Keys>
std::size_t unique_count(const Place& place, const Keys& keys);

}  // namespace roost

#include "roost/detail/two_way_index.inl"
