#pragma once

#include <memory>

#include "roost/bulk.hpp"
#include "roost/detail/frozen/build.hpp"
#include "roost/detail/place/pairs.hpp"
#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/detail/table/single_keys.hpp"
#include "roost/detail/table/slots.hpp"

/// \file
/// frozen_map: built once from a batch of pairs, then only read.

namespace roost {

namespace detail {
/// Builds a frozen_map from internal sources: pairs that lie in order, or arrive in ranges.
struct frozen_source {
  template <class Map, class Place, class Source>
  static Map build(const Place& place, const Source& source, const typename Map::options& options) {
    return Map(place, source, options, nullptr);
  }
  /// The geometry of a table of n pairs.
  template <class Map>
  static auto plan(std::size_t n, const typename Map::options& options) {
    return Map::table::plan_of(n, options);
  }
};
}  // namespace detail

/// What frozen_map::ref() returns, for parameters of kernels and members of structs; see lookups for its
/// calls. (Of a frozen_set: with Value = none.)
template <class Key, class Value, class Place = host, class Layout = default_layout<Key, Value>>
using frozen_ref = typename Layout::template table<Place, Key, Value>;

/// A hash map that is built from a batch of pairs and then only read: for joins, voxel lookups and
/// dictionaries. When the data changes, build it again, which is as fast as inserting into other tables
/// (Alcantara et al. 2009). To insert into a live table, use a concurrent_map.
///
///     roost::host cpu;                                    // or roost::cuda gpu{stream};
///     roost::frozen_map map(cpu, keys, values);           // vectors, spans, arrays
///     map.find(cpu, queries, results, missing_value);     // in bulk
///     if (auto value = map.ref().find(key)) use(*value);  // one by one, in kernels too
///
/// Key and Value: any trivially copyable types with a default constructor; keys are compared by their bytes
/// (roost::is_bitwise_comparable). 4- and 8-byte types are the fast path. Every key and every value can be
/// stored. If a key appears more than once, its first pair in input order wins, on every place and with any
/// number of threads. Ranges of keys, values and queries hold exactly these types, or numbers of types whose
/// every value these types can hold; others do not compile, nor do wider integers and floating-point numbers
/// in a ref's calls.
///
/// Cost: a build reads the pairs once and writes them two or three times; it takes scratch memory of one to
/// two times the pairs. If the input has duplicate keys, a build also takes eight bytes of scratch memory per
/// slot, and several times as long. A find reads one sector of memory for most keys.
///
/// Threads and streams: const members may be called from several threads and streams at once, after the
/// build. Moving is cheap, and leaves an empty map; copying is forbidden, as it would hide a big transfer.
/// Failure: a constructor that throws frees everything; a rebuild that throws leaves the map unchanged.
///
/// `Layout`: how a region resolves collisions: compact, the default for keys of up to 8 bytes and values of
/// up to 24; or bucketed, the default for others.
template <class Key, class Value, class Place /* = host */, class Layout /* = default_layout<Key, Value> */>
class frozen_map : public single_keys<frozen_map<Key, Value, Place, Layout>, Key, Value, Place> {
  static_assert(detail::check_types<Key, Value>());
  using one = single_keys<frozen_map, Key, Value, Place>;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = typename Layout::options;  // frozen_options
  using ref_type = frozen_ref<Key, Value, Place, Layout>;

  /// Builds a map of keys[i] -> values[i]. Ranges in the memory of the place, sized, random-access, equally
  /// long. Synchronises. Throws invalid_argument, out_of_memory, device_error, build_error.
  template <class Keys, class Values>
  frozen_map(const Place& place, const Keys& keys, const Values& values, options chosen = {})
      : frozen_map(place, detail::zip_as<Key, Value>(keys, values, "roost::frozen_map"), chosen, nullptr) {}

  /// The same from one range of pairs: std::pair, roost::pair, or any struct of two members. On the host also
  /// from a std::unordered_map or another container, whose pairs are copied first.
  template <detail::range_of_pairs Pairs>
  explicit frozen_map(const Place& place, const Pairs& pairs, options chosen = {})
      : frozen_map(place,
                   detail::zip_pairs<Key, Value>(detail::numbered_pairs<Place>(pairs), "roost::frozen_map"),
                   chosen, nullptr) {}

  /// An empty map without memory; rebuild() fills it. Bulk calls find nothing in it, and ref() throws
  /// invalid_argument. A map that was moved from is empty in the same way.
  frozen_map() = default;
  explicit frozen_map(options chosen) : options_(chosen) {}
  ROOST_DELETE_WITHOUT_PLACE(Place, frozen_map, explicit frozen_map);
  ROOST_DELETE_WITHOUT_VALUES(frozen_map);

  frozen_map(frozen_map&&) noexcept = default;
  frozen_map& operator=(frozen_map&&) noexcept = default;

  /// Builds the map again with the same options. Both tables exist until the build succeeds. Synchronises;
  /// throws as the constructor does.
  template <class Keys, class Values>
  void rebuild(const Place& place, const Keys& keys, const Values& values) {
    table_ = table::build(place, detail::zip_as<Key, Value>(keys, values, "roost::frozen_map"), options_);
  }

  /// The same from one range of pairs.
  template <detail::range_of_pairs Pairs>
  void rebuild(const Place& place, const Pairs& pairs) {
    const auto& numbered = detail::numbered_pairs<Place>(pairs);
    table_ = table::build(place, detail::zip_pairs<Key, Value>(numbered, "roost::frozen_map"), options_);
  }

  /// Builds the map again in its existing memory and with its existing hash function, without waiting. On
  /// cuda all work is queued on the place's stream and can be captured in a graph; a replay uses the data
  /// that the ranges hold at that time. At most the number of pairs of the last build by a constructor or
  /// rebuild() (invalid_argument otherwise). Calls that are queued after it see the new map; size() and
  /// statistics() describe it after finish(). Takes eight bytes of scratch memory per slot more than
  /// rebuild(), and for values above 32 bytes a table of their positions. Throws out_of_memory; the map is
  /// then unchanged or empty.
  ///
  /// If the pairs do not fit, because one region has too many of them (many copies of few keys can cause
  /// that), the map is empty and finish() throws.
  template <class Keys, class Values>
  void rebuild_async(const Place& place, const Keys& keys, const Values& values) {
    refill(place, detail::zip_as<Key, Value>(keys, values, "roost::frozen_map"));
  }

  /// Waits for the last rebuild_async, or the last replay of its graph, and updates size() and statistics().
  /// Throws build_error if the pairs did not fit; rebuild() with the same pairs can succeed, since it may
  /// choose another hash function and more memory. Synchronises.
  void finish(const Place& place) {
    if (table_) table_->finish(place);
  }

  // One key at a time, on the host: see single_keys.
  using one::find, one::contains, one::count;

  /// results[i] = the value of queries[i], or `missing`. `results` is contiguous memory of the place, at
  /// least as long as the queries (invalid_argument otherwise). The answers do not depend on the path taken,
  /// which the report states. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const {
    constexpr const char* where = "roost::frozen_map::find";
    if (!table_) return detail::find_no_values<Key>(place, queries, results, missing, where);
    return detail::bulk_lookups(place, ref(), bytes(), how).find_values(queries, results, missing, where);
  }

  /// found[i] = whether queries[i] is present, as bool; if so, results[i] = its value. Other results are
  /// unchanged.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const {
    constexpr const char* where = "roost::frozen_map::find";
    if (!table_) return detail::find_nothing<Key>(place, queries, found, where);
    return detail::bulk_lookups(place, ref(), bytes(), how).find_values_there(queries, results, found, where);
  }

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    constexpr const char* where =
        std::is_same_v<Value, none> ? "roost::frozen_set::contains" : "roost::frozen_map::contains";
    if (!table_) return detail::find_nothing<Key>(place, queries, results, where);
    return detail::bulk_lookups(place, ref(), bytes(), how).find_contained(queries, results, where);
  }

  /// Returns how many of the queries are present. On the regional path it takes one byte of scratch memory
  /// per query more than contains(). Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return table_ ? detail::bulk_lookups(place, ref(), bytes()).count(queries) : 0;
  }

  /// Writes all pairs, in no defined order, to memory of the place with room for size() of each
  /// (invalid_argument otherwise); returns size(). Asynchronous on cuda.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const {
    constexpr const char* where = "roost::frozen_map::retrieve_all";
    Key* const keys_to = detail::output<Key>(keys, size(), where);
    Value* const values_to = detail::output<Value>(values, size(), where);
    if (table_) detail::retrieve_pairs(place, ref(), keys_to, values_to, size());
    return size();
  }

  /// Calls f(key, value) for every pair, in parallel on the place, in no defined order. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    if (table_) place.for_each(capacity(), detail::visit_slot<ref_type, F>{ref(), f});
  }

  /// The handle for kernels and host loops: see roost::lookups.
  const ref_type& ref() const {
    if (!table_) {
      detail::raise<invalid_argument>(
          {"roost::frozen_map::ref: the map is empty and has no memory; call rebuild first"});
    }
    return table_->ref();
  }

  /// These are known without reading the table. (The overloads with a place match those of tables that
  /// change.)
  std::size_t size() const { return statistics().size; }
  std::size_t size(const Place&) const { return size(); }
  bool empty() const { return size() == 0; }
  std::size_t capacity() const { return statistics().capacity; }
  double load_factor() const { return statistics().load_factor; }
  double load_factor(const Place&) const { return load_factor(); }
  std::size_t bytes() const { return statistics().bytes; }
  const frozen_statistics& statistics() const {
    static const frozen_statistics none;
    return table_ ? table_->facts() : none;
  }
  const frozen_statistics& statistics(const Place&) const { return statistics(); }

  /// Sectors (compact) or buckets (bucketed) that a find of a stored key reads, on average.
  /// Looks up every pair. Synchronises.
  double mean_probes(const Place& place) const {
    if (empty()) return 0;
    return static_cast<double>(place.sum(capacity(), detail::probes_of_slot<ref_type>{ref()})) /
           static_cast<double>(size());
  }

  /// Checks the invariants: each pair is found where it is stored, and there are size() of them. Reads all
  /// slots and looks up every pair. Synchronises.
  bool valid(const Place& place) const {
    return !table_ || (capacity() == ref().capacity() &&
                       place.sum(capacity(), detail::good_slot<ref_type>{ref()}) == size());
  }

  /// Iterates over the pairs of a map on the host: `for (auto [key, value] : map)`.
  using iterator = detail::slot_iterator<ref_type>;
  iterator begin() const
    requires std::is_same_v<Place, host>
  {
    return {table_ ? std::optional(ref()) : std::nullopt, 0};
  }
  iterator end() const
    requires std::is_same_v<Place, host>
  {
    return {std::nullopt, capacity()};
  }

 private:
  template <class K, class P, class L>
  friend class frozen_set;
  friend struct detail::frozen_source;
  using table = detail::frozen_table<Key, Value, Place, Layout>;

  template <class Source>
  frozen_map(const Place& place, const Source& source, const options& chosen, std::nullptr_t)
      : options_(chosen), table_(table::build(place, source, chosen)) {}

  /// rebuild_async, for pairs and for keys alone.
  template <class Source>
  void refill(const Place& place, const Source& source) {
    if (!table_) table::refuse(source.size(), 0);
    table_->rebuild_async(place, source);
  }

  options options_{};
  std::unique_ptr<table> table_;  // null: an empty map
};

template <detail::place_comes_first Place, detail::range_of_pairs Pairs>
frozen_map(
    const Place&, const Pairs&,
    typename default_layout<detail::key_in<Place, Pairs>, detail::value_in<Place, Pairs>>::options = {})
    -> frozen_map<detail::key_in<Place, Pairs>, detail::value_in<Place, Pairs>, Place>;
template <detail::place_comes_first Place, class Keys, class Values>
frozen_map(const Place&, const Keys&, const Values&,
           typename default_layout<detail::element_of<Keys>, detail::element_of<Values>>::options = {})
    -> frozen_map<detail::element_of<Keys>, detail::element_of<Values>, Place>;
ROOST_GUIDE_WITHOUT_PLACE(frozen_map, int, int);
ROOST_GUIDE_WITHOUT_VALUES(frozen_map);

}  // namespace roost
