#pragma once

#include "roost/detail/groups/grouping.hpp"
#include "roost/detail/place/numbers.hpp"
#include "roost/frozen_map.hpp"

/// \file
/// two_way_index: distinct keys <-> 0, 1, ... m - 1.

namespace roost {

/// The order in which a two_way_index numbers its keys. It is the same for the same input every time, with
/// any number of threads.
enum class index_order {
  first_occurrence,  ///< by first occurrence in the input
  by_key,            ///< ascending: keys must be integers
  any                ///< the fastest; the order may differ between places and batches
};

/// Numbers the distinct keys of a batch. A lookup maps a key to its index, and an array maps an index to its
/// key (Alcantara et al. 2009, section 4.3). For arbitrary ids that must become rows of a matrix: graphs,
/// dictionaries, categories, voxels.
///
///     roost::two_way_index index(gpu, ids);
///     index.size();                 // number of distinct ids
///     index.keys();                 // of each index, its id
///     index.indices();              // of each id of the input, its index
///     index.counts();               // how often each id appeared
///     index.find(gpu, queries, results);
///
/// Key: any trivially copyable type that is compared by its bytes; up to 8 bytes are fastest. Limits: 2^32 -
/// 2 distinct keys, and 2^32 - 2 keys in one batch. More keys can be added; existing indices do not change.
///
/// Cost: a build moves the batch twice, builds a frozen_map of all distinct keys, and brings the indices back
/// into input order. It takes scratch memory of about four times the batch, counting four more bytes per key.
/// unique_inverse() gives keys and indices without a table.
///
/// Threads, streams, failure: as in frozen_map. add() must not overlap with any other call.
template <class Key, class Place /* = host */>
class two_way_index : public single_keys<two_way_index<Key, Place>, Key, std::uint32_t, Place> {
  using one = single_keys<two_way_index, Key, std::uint32_t, Place>;
  using map = frozen_map<Key, std::uint32_t, Place>;

 public:
  using key_type = Key;

  /// What find() writes for an absent key, unless you pass another value.
  static constexpr std::uint32_t no_index = ~std::uint32_t{0};

  /// How an index is made.
  struct options {
    index_order order = index_order::first_occurrence;
    double load_factor = 0.8;  ///< of the table: see its layout
    std::uint64_t seed = 0;    ///< chooses the hash functions
    bool counts = true;        ///< counts() is wanted; without, orders other than `any` are faster
  };

  /// The handle for kernels and host loops. Trivially copyable, and valid until keys are added. Any number of
  /// threads may read.
  class ref_type {
   public:
    using key_type = Key;
    using value_type = std::uint32_t;

    ref_type(const typename map::ref_type& indices, const Key* keys, std::uint32_t size)
        : indices_(indices), keys_(keys), size_(size) {}

    /// The index of a key, or nothing.
    ROOST_FN found<std::uint32_t> find(const Key& key) const { return indices_.find(key); }
    /// True if the key is present.
    ROOST_FN bool contains(const Key& key) const { return indices_.contains(key); }
    ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(find, contains);
    /// The key of an index below size().
    ROOST_FN const Key& key_at(std::uint32_t index) const { return keys_[index]; }
    ROOST_FN std::uint32_t size() const { return size_; }

   private:
    typename map::ref_type indices_;
    const Key* keys_;
    std::uint32_t size_;
  };

  /// Numbers the keys of a range in the memory of the place. Synchronises. Throws invalid_argument,
  /// out_of_memory, device_error, build_error.
  template <class Keys>
    requires(!std::is_same_v<Keys, two_way_index>)
  two_way_index(const Place& place, const Keys& keys, options chosen = {}) : options_(chosen) {
    input_ = add(place, keys);
  }

  /// An empty index without memory, for add(). ref() throws invalid_argument until then.
  two_way_index() = default;
  explicit two_way_index(options chosen) : options_(chosen) {}
  ROOST_DELETE_WITHOUT_PLACE(Place, two_way_index, explicit two_way_index);

  two_way_index(two_way_index&&) noexcept = default;
  two_way_index& operator=(two_way_index&&) noexcept = default;

  /// Adds another batch. Keys that are already present keep their indices. New keys get the next indices, in
  /// the chosen order among themselves. Returns the index of each key of the batch. Costs moving the batch,
  /// and a build of the table of all distinct keys. If it throws, the index is unchanged. Synchronises.
  template <class Keys>
  array<std::uint32_t, Place> add(const Place& place, const Keys& keys);

  // One key at a time, on the host: see single_keys.
  using one::find, one::contains, one::count;

  /// results[i] = the index of queries[i], or `missing`. `results` is contiguous memory of the place.
  /// Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results,
                   std::uint32_t missing = no_index, bulk_options how = {}) const {
    detail::output<std::uint32_t>(results, detail::sequence_as<Key>(queries).size(),
                                  "roost::two_way_index::find");  // throws with the name of this call
    return indices_.find(place, queries, results, missing, how);
  }

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return indices_.count_found(place, queries);
  }

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    detail::output<bool>(results, detail::sequence_as<Key>(queries).size(), "roost::two_way_index::contains");
    return indices_.contains(place, queries, results, how);
  }

  /// The key of each index, and how often it appeared in all batches. Memory of the place.
  std::span<const Key> keys() const { return keys_.span(); }
  /// (Empty without options::counts.)
  std::span<const std::uint64_t> counts() const { return counts_.span(); }
  /// The index of each key in the constructor's batch (add() returns the indices of its batch).
  std::span<const std::uint32_t> indices() const { return input_.span(); }
  /// Moves the same array out; indices() is empty from then on.
  array<std::uint32_t, Place> take_indices() { return std::move(input_); }

  ref_type ref() const { return {indices_.ref(), keys_.data(), static_cast<std::uint32_t>(size())}; }

  /// The number of distinct keys.
  std::size_t size() const { return keys_.size(); }
  std::size_t size(const Place&) const { return size(); }
  bool empty() const { return size() == 0; }
  /// Of the table: see its layout.
  double load_factor() const { return indices_.load_factor(); }
  double load_factor(const Place&) const { return load_factor(); }
  /// Statistics of the table.
  const frozen_statistics& statistics() const { return indices_.statistics(); }
  const frozen_statistics& statistics(const Place&) const { return statistics(); }
  std::size_t bytes() const { return keys_.bytes() + counts_.bytes() + indices_.bytes() + input_.bytes(); }

  /// Checks the invariants: each key has its index, and the counts are right. Looks up every key.
  /// Synchronises.
  bool valid(const Place& place) const;

 private:
  options options_{};
  array<Key, Place> keys_;
  array<std::uint64_t, Place> counts_;
  map indices_;
  array<std::uint32_t, Place> input_;
};

template <detail::place_comes_first Place, class Keys>
two_way_index(const Place&, const Keys&) -> two_way_index<detail::element_of<Keys>, Place>;
template <detail::place_comes_first Place, class Keys>
two_way_index(const Place&, const Keys&, typename two_way_index<detail::element_of<Keys>, Place>::options)
    -> two_way_index<detail::element_of<Keys>, Place>;
ROOST_GUIDE_WITHOUT_PLACE(two_way_index, int);

/// What unique_all returns besides the distinct keys.
struct unique_options {
  index_order order = index_order::first_occurrence;
  bool first = false;    ///< where each key occurs first
  bool inverse = false;  ///< the position of each key of the range among the distinct keys
  bool counts = false;   ///< how often each key appears
};

/// What unique_all returns. Arrays that were not requested are empty.
template <class Key, class Place>
struct unique_keys {
  array<Key, Place> keys;
  array<std::uint32_t, Place> first;    ///< keys[i] is key first[i] of the range
  array<std::uint32_t, Place> inverse;  ///< keys[inverse[i]] is key i of the range
  array<std::uint64_t, Place> counts;   ///< keys[i] appears counts[i] times
};

namespace detail {
template <class Place, class Keys>
unique_keys<element_of<Keys>, Place> unique_all(const Place& place, const Keys& keys,
                                                const unique_options& wanted, const char* where);
}

/// Returns the distinct keys of a range and the other requested arrays, all in one pass. Synchronises. Throws
/// as two_way_index does.
///
///     auto all = roost::unique_all(gpu, ids, {.inverse = true, .counts = true});
template <detail::place_comes_first Place, class Keys>
unique_keys<detail::element_of<Keys>, Place> unique_all(const Place& place, const Keys& keys,
                                                        const unique_options& wanted) {
  return detail::unique_all(place, keys, wanted, "roost::unique_all");
}

/// Returns the distinct keys of a range, each once. Synchronises. Throws as two_way_index does.
template <detail::place_comes_first Place, class Keys>
auto unique(const Place& place, const Keys& keys, index_order order = index_order::first_occurrence) {
  return std::move(detail::unique_all(place, keys, {order}, "roost::unique").keys);
}

/// What unique_inverse returns: keys[inverse[i]] is key i of the range.
template <class Key, class Place>
struct unique_keys_inverse {
  array<Key, Place> keys;
  array<std::uint32_t, Place> inverse;
};

/// Returns the distinct keys of a range, and for each key of the range its position among them: the keys and
/// indices of a two_way_index, without the table. Synchronises. Throws as two_way_index does.
template <detail::place_comes_first Place, class Keys>
auto unique_inverse(const Place& place, const Keys& keys, index_order order = index_order::first_occurrence) {
  auto all = detail::unique_all(place, keys, {.order = order, .inverse = true}, "roost::unique_inverse");
  return unique_keys_inverse<detail::element_of<Keys>, Place>{std::move(all.keys), std::move(all.inverse)};
}

/// What unique_counts returns: keys[i] appears counts[i] times.
template <class Key, class Place>
struct unique_keys_counts {
  array<Key, Place> keys;
  array<std::uint64_t, Place> counts;
};

/// Returns the distinct keys of a range, and how often each appears. Synchronises. Throws as two_way_index
/// does.
template <detail::place_comes_first Place, class Keys>
auto unique_counts(const Place& place, const Keys& keys, index_order order = index_order::first_occurrence) {
  auto all = detail::unique_all(place, keys, {.order = order, .counts = true}, "roost::unique_counts");
  return unique_keys_counts<detail::element_of<Keys>, Place>{std::move(all.keys), std::move(all.counts)};
}

/// Returns the number of distinct keys of a range. Synchronises.
template <detail::place_comes_first Place, class Keys>
std::size_t unique_count(const Place& place, const Keys& keys);

ROOST_DELETE_WITHOUT_PLACE(host, cuda, void unique_all);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void unique);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void unique_inverse);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void unique_counts);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void unique_count);

}  // namespace roost

#include "roost/detail/groups/two_way_index.hpp"
