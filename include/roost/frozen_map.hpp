#pragma once

#include <memory>
#include <optional>
#include <span>

#include "roost/bulk.hpp"
#include "roost/detail/frozen/bucketed.hpp"
#include "roost/detail/frozen/compact.hpp"

/// \file
/// frozen_map: built once from a batch of pairs, then only read.

namespace roost {

namespace detail {
enum class outcome { copies, failed };  // of a build: some keys came several times; it did not fit

/// Pairs that may need no partition.
template <class Source>
concept lies_in_order = requires(const Source& source) { source.region_of; };

/// Pairs that come to this place while the table is built, range by range of its regions: all different, or
/// the build fails.
template <class Source>
concept comes_in_ranges = requires { Source::comes_in_ranges; };

/// Builds a frozen_map of a source that users do not have: pairs that lie in order, or come in ranges.
struct frozen_source {
  template <class Map, class Place, class Source>
  static Map build(const Place& place, const Source& source, const typename Map::options& options) {
    return Map(place, source, options, nullptr);
  }
  /// The geometry of a table of n pairs.
  template <class Map, class Place>
  static auto plan(std::size_t n, const typename Map::options& options) {
    return Map::template plan_of<Place>(n, options);
  }
};
}  // namespace detail

/// What a table is and how its last build went.
struct frozen_statistics {
  std::size_t size = 0;      ///< different keys
  std::size_t capacity = 0;  ///< slots
  double load_factor = 0;    ///< size / capacity; layout compact: bytes of the pairs / bytes of the table
  std::size_t bytes = 0;     ///< of the table
  std::size_t scratch_bytes = 0;  ///< that the last build took besides and gave back
  std::size_t regions = 0;
  std::size_t duplicates = 0;       ///< input pairs whose key an earlier pair had
  int restarts = 0;                 ///< times that the whole build began again with another seed
  std::size_t region_restarts = 0;  ///< times that one region did, of layouts that know
  double mean_rounds = 0;  ///< of a region until all its pairs had a slot, of layouts that have rounds
};

/// A hash map that is built from a batch and then only read: what you want for joins, lookups of voxels,
/// dictionaries. When data changes, build it again; that is as fast as other tables insert (Alcantara et al.
/// 2009). To insert into a live table use a concurrent_map.
///
///     roost::host cpu;                                            // or roost::cuda gpu{stream};
///     roost::frozen_map map(cpu, keys, values);                   // vectors, spans, arrays of the place
///     map.find(cpu, queries, results, missing_value);             // in bulk
///     if (auto value = map.ref().find(key)) use(*value);          // one by one, in kernels too
///
/// Key and Value: any trivially copyable types with a default constructor; keys are compared by their bytes
/// (roost::is_bitwise_comparable). 4- and 8-byte types are the fast path. Every key and every value can be
/// stored. If a key comes several times the pair that comes first in the input wins, whatever the place and
/// the number of threads.
/// Ranges of keys, values and queries hold exactly these types, or numbers of types whose every value these
/// types can hold; others do not compile, nor do wider integers and floating-point numbers in a ref's calls.
///
/// Cost: a build reads the pairs once and writes them two or three times; it takes scratch memory of one to
/// two times the pairs, and eight bytes a slot if there are copies of keys, with which it also takes several
/// times as long. A find reads one sector of memory for most keys.
///
/// Threads and streams: const members may be called from several threads and streams at once, after the
/// build. Moving is cheap, and leaves an empty map; copying is forbidden, as it would hide a big transfer.
/// Failure: a constructor that throws leaves nothing behind, a rebuild that throws leaves the map as it was.
///
/// `Layout`: how a region resolves collisions: compact, the default for keys of up to 8 bytes and values of
/// up to 24; or bucketed, the default for others.
template <class Key, class Value, class Place = host, class Layout = default_layout<Key, Value>>
class frozen_map {
  static_assert(detail::check_types<Key, Value>());

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = typename Layout::options;
  using ref_type = typename Layout::template table<Place, Key, Value>;

  /// Builds a map of keys[i] -> values[i]. Ranges in the memory of the place, sized, random-access, equally
  /// long. Synchronises. Throws invalid_argument, out_of_memory, device_error, build_error.
  template <class Keys, class Values>
  frozen_map(const Place& place, const Keys& keys, const Values& values, options chosen = {});

  /// An empty map without memory: rebuild() gives it pairs. Bulk calls find nothing in it, and ref() throws
  /// invalid_argument. A map that was moved from is such a map, too.
  frozen_map() = default;
  explicit frozen_map(options chosen) : options_(chosen) {}

  frozen_map(frozen_map&&) noexcept = default;
  frozen_map& operator=(frozen_map&&) noexcept = default;

  /// Builds the map anew with the options that it has. Both tables exist until it succeeds. Synchronises;
  /// throws as the constructor does.
  template <class Keys, class Values>
  void rebuild(const Place& place, const Keys& keys, const Values& values);

  /// Builds the map anew in the memory and with the hash function that it has, without a wait: on cuda all of
  /// it is queued on the place's stream and can be captured in a graph, to be replayed on the data that the
  /// ranges then hold. At most as many pairs as the map was last built for (invalid_argument otherwise).
  /// Calls that are queued behind it see the new map; size() and statistics() tell of it after finish().
  /// Takes eight bytes a slot of scratch more than rebuild(), and for values above 32 bytes a table of their
  /// positions. Throws out_of_memory, and then the map is as it
  /// was or empty.
  ///
  /// The map is empty afterwards if the pairs do not fit: too many of one region, which copies of few keys
  /// can cause. finish() then throws.
  template <class Keys, class Values>
  void rebuild_async(const Place& place, const Keys& keys, const Values& values);

  /// Waits for the last rebuild_async, or the last replay of its graph, and takes over what it counted.
  /// Throws build_error if its pairs did not fit; rebuild() with the same pairs can succeed, as it may choose
  /// other hashes and more room. Synchronises.
  void finish(const Place& place);

  /// results[i] = the value of queries[i], or `missing`. `results` is contiguous memory of the place, at
  /// least as long as the queries (invalid_argument otherwise). The answers do not depend on the path that is
  /// taken, which the report tells. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const;

  /// found[i] = whether queries[i] is there, as bool, and if so, results[i] = its value; other results stay
  /// as they are.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const;

  /// results[i] = whether queries[i] is there, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const;

  /// How many of the queries are there. Where it goes by region it takes a byte of scratch memory for each
  /// query, besides what contains() takes. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const;

  /// Writes all pairs, in no defined order, to memory of the place with room for size() of each
  /// (invalid_argument otherwise); returns size(). Asynchronous on cuda.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const;

  /// Calls f(key, value) for every pair, on the place, in no defined order, many at once. Asynchronous on
  /// cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const;

  /// The handle for kernels and host loops: see roost::lookups.
  const ref_type& ref() const;

  /// What is known without a look at the table. (Tables that change take the place in these calls.)
  std::size_t size() const { return statistics().size; }
  std::size_t size(const Place&) const { return size(); }
  bool empty() const { return size() == 0; }
  std::size_t capacity() const { return statistics().capacity; }
  double load_factor() const { return statistics().load_factor; }
  double load_factor(const Place&) const { return load_factor(); }
  std::size_t bytes() const { return statistics().bytes; }
  const frozen_statistics& statistics() const;
  const frozen_statistics& statistics(const Place&) const { return statistics(); }

  /// Sectors (compact) or buckets (bucketed) that a find of a stored key reads, on average.
  /// Looks up every pair. Synchronises.
  double mean_probes(const Place& place) const;

  /// Checks what must hold: each pair is found where it lies, and there are size() of them. Reads all slots
  /// and looks up every pair. Synchronises.
  bool valid(const Place& place) const;

  /// Goes over the pairs of a map on the host: `for (auto [key, value] : map)`.
  class iterator;
  iterator begin() const
    requires std::is_same_v<Place, host>;
  iterator end() const
    requires std::is_same_v<Place, host>;

 private:
  template <class K, class P, class L>
  friend class frozen_set;
  friend struct detail::frozen_source;
  using item = pair<Key, Value>;
  using storage = typename Layout::template storage<Place, Key, Value>;
  using counts = detail::build_counts;

  // Large values travel as positions in the input: a table of these is built, and the values are copied to
  // its slots.
  static constexpr bool by_position = detail::has_large_values<ref_type>;
  using placed = std::conditional_t<by_position, std::uint64_t, Value>;  // what is built in place of a value
  using placed_storage = typename Layout::template storage<Place, Key, placed>;
  using placed_table = typename Layout::template table<Place, Key, placed>;
  using placed_item = pair<Key, placed>;
  template <class Source>
  static constexpr bool runs_in_turn =  // a small table is built in one launch
      !detail::lies_in_order<Source> && !detail::comes_in_ranges<Source> && requires {
        detail::build_tuning<Place>::in_turn_tile;
        typename Layout::template small_builder<Place, Key, placed>;
      };
  static constexpr bool takes_inserts =
      std::is_same_v<Place, host> && requires(const placed_table& table) { table.takes_inserts(); };

  /// A table, and what is known of its last build.
  struct built {
    storage memory;
    array<detail::build_state, Place> state;
    typename Layout::plan plan;
    std::size_t most;   // pairs that it has room for
    std::size_t asked;  // pairs that the build was given
    frozen_statistics facts;

    counts* counted() const { return const_cast<counts*>(&state.data()->counts); }
    std::uint32_t* barrier() const { return const_cast<std::uint32_t*>(&state.data()->barrier); }
  };

  template <class P>
  static auto plan_of(std::size_t n, const options& options) {
    return Layout::template make_plan<P, Key, placed>(n, options, 0);
  }
  template <class Source>
  frozen_map(const Place& place, const Source& source, const options& chosen, std::nullptr_t)
      : options_(chosen), built_(build(place, source, chosen)) {}

  template <class Source>
  static std::unique_ptr<built> build(const Place& place, const Source& source, const options& options);
  template <class Source>
  static std::size_t fill(const Place& place, const Source& source, built& b, const placed_table& table,
                          room room);
  template <class Source>
  static std::optional<std::size_t> fill_in_turn(const Place& place, const Source& source, const built& b,
                                                 const placed_table& table, room room);
  static bool unparted(const Place& place, const placed_table& table);
  template <class Source>
  static void settle(const Place& place, const Source& source, const built& b, const placed_table& table,
                     array<std::uint64_t, Place>& first);
  template <class Source>
  static void copy_values(const Place& place, const Source& source, const placed_table& positions,
                          const ref_type& target);
  static void take_over(built& b, const counts& sum);
  template <class Source>
  void refill(const Place& place, const Source& source);

  options options_{};
  std::unique_ptr<built> built_;  // null: an empty map
};

template <class Place, class Keys, class Values>
frozen_map(const Place&, const Keys&, const Values&,
           typename default_layout<detail::element_of<Keys>, detail::element_of<Values>>::options = {})
    -> frozen_map<detail::element_of<Keys>, detail::element_of<Values>, Place>;

}  // namespace roost

#include "roost/detail/frozen/map.hpp"
