#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "roost/bulk.hpp"
#include "roost/detail/concurrent/region_fill.hpp"
#include "roost/layout/indexed.hpp"
#include "roost/layout/probing.hpp"

/// \file
/// concurrent_map: insert, find and erase at the same time, and grow.

namespace roost {

namespace detail {
struct put_counts;  // of a bulk insert
}  // namespace detail

/// Options of concurrent_map and concurrent_set.
struct concurrent_options {
  /// How many of the slots keys may take, in (0, 1], before bulk calls make room. Erased keys' slots may take
  /// half of the others.
  double load_factor = 0.8;
  /// Chooses the hash function.
  std::uint64_t seed = 0;
  /// Whether bulk calls that insert move the keys to a larger table when there is no room. If not, keys that
  /// find none are counted as `full`.
  bool grows = true;
};

/// What a table is like. Lengths are in buckets that a find of the key reads.
struct concurrent_statistics {
  std::size_t size = 0;      ///< keys
  std::size_t erased = 0;    ///< slots of erased keys
  std::size_t capacity = 0;  ///< slots
  double load_factor = 0;    ///< (size + erased) / capacity
  std::size_t bytes = 0;
  double mean_probes = 0;
  std::uint32_t most_probes = 0;
  std::vector<std::size_t> keys_by_probes;  ///< [i]: keys that are found in the (i + 1)th bucket
};

/// A hash map that any number of threads change and ask at the same time, from kernels and from the host, one
/// key at a time or in bulk. If all pairs are known before the first question, a frozen_map is smaller and
/// faster.
///
///     roost::concurrent_map<int, int, roost::cuda> map(gpu, 1000000);
///     map.insert(gpu, keys, values);                              // in bulk
///     map.find(gpu, queries, results, missing_value);
///     auto ref = map.ref();                                       // in kernels, all at once:
///     ref.insert(k, v);  ref.erase(k);  if (auto value = ref.find(k)) use(*value);
///
/// Key: trivially copyable, up to 8 bytes, compared by its bytes; Value: trivially copyable; 4 + 4 bytes take
/// slots of 8 bytes, larger ones slots of 16 (before compute capability 9.0 with a lock in each:
/// docs/concurrent.md, Room). Every key and every value can be stored.
///
/// Values of more than 8 bytes: slots hold numbers, and the values lie in entries of an array, an entry for
/// each time that one was stored. (Keys of up to 4 bytes have slots of 8 then.) Changes through ref() that
/// find no entry answer `full`, assignments, too; lookups, erase, and inserts of keys that are there need
/// none. Bulk calls that insert take an entry for each pair, whether the map `grows` or not; before there are
/// too few, they move the values to a new array, which like rehash() takes out what is no key's value any
/// more, and leaves at least an eighth for changes through refs taken after that. Nobody ever sees a value in
/// part.
///
/// Room: a key lies in one of two regions of some thousand slots, or `full` is the answer; up to load factors
/// of 0.9 that does not happen by chance. Erased keys keep their slots, in which the same key can come back.
/// Bulk calls that insert make them free when there are many, and let the map grow
/// (concurrent_options::grows). Changes of single keys (through ref()) never do.
///
/// Cost: a change of a single key is one random access to memory for most keys. A batch of an eighth of the
/// slots and more is partitioned and goes region by region through the cache.
///
/// Threads and streams: docs/concurrent.md has the table of what may overlap. In short: all operations of
/// refs may overlap with each other and with const members; members that change the map need it for
/// themselves. Moving is cheap (what was moved from can be assigned to or destroyed); copying is forbidden. A
/// member that throws leaves the map with the pairs that it had, and some of the batch's.
template <class Key, class Value, class Place = host>
class concurrent_map {
  static_assert(detail::check_types<Key, Value>());

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = concurrent_options;
  using ref_type = probing::table<Place, Key, Value>;
  using reader_type = probing::reader<Place, Key, Value>;

  /// An empty map with room for n keys at the load factor. Asynchronous on cuda. Throws invalid_argument,
  /// out_of_memory.
  explicit concurrent_map(const Place& place, std::size_t n = 0, options chosen = {});

  /// An empty map in memory of the place that outlives it, and that nobody else touches: as many slots as
  /// fit. It keeps to it: it never grows, whatever the options say. Asynchronous on cuda. Throws
  /// invalid_argument if the memory is not aligned to 16 bytes, or does not hold four buckets.
  concurrent_map(const Place& place, std::span<std::byte> storage, options chosen = {});
  /// Bytes of storage in which n keys have room at the load factor.
  static std::size_t storage_bytes(std::size_t n, const options& options = {});

  concurrent_map(concurrent_map&&) noexcept = default;
  concurrent_map& operator=(concurrent_map&&) noexcept = default;

  // Bulk calls that insert. Keys and values: ranges in the memory of the place, sized, random-access, equally
  // long. All synchronise; throw invalid_argument, out_of_memory. If a key comes several times in a batch, it
  // is not defined which pair comes first.

  /// Stores each pair whose key is not there.
  template <class Keys, class Values>
  insert_report insert(const Place& place, const Keys& keys, const Values& values, bulk_options how = {});

  /// The same for those pairs only whose element of the range `stencil` is true.
  template <class Keys, class Values, class Stencil>
  insert_report insert_if(const Place& place, const Keys& keys, const Values& values, const Stencil& stencil,
                          bulk_options how = {});

  /// Stores each pair; keys that are there get the new value.
  template <class Keys, class Values>
  insert_report insert_or_assign(const Place& place, const Keys& keys, const Values& values,
                                 bulk_options how = {});

  /// Stores each pair; a value v0 that is there becomes f(v0, v). f: roost::plus, minimum, maximum, or any
  /// associative and commutative function of two values: copies in a batch may be added up with each other
  /// first.
  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Place& place, const Keys& keys, const Values& values, const F& f,
                                bulk_options how = {});

  /// Takes keys out; returns how many were there. Synchronises.
  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {});

  /// Takes out the pairs for which f(key, value) is true, and returns how many. Synchronises.
  template <class F>
  std::size_t erase_if(const Place& place, const F& f);

  /// Runs a mixed batch of operations at the same time: results[i] is what became of operations[i], as if
  /// they had been done one after the other in some order. Makes no room. Contiguous memory of the place, of
  /// elements operation<Key, Value> and operation_result<Value>. Asynchronous on cuda.
  template <class Operations, class Results>
  void run(const Place& place, const Operations& operations, Results&& results);

  /// Takes all keys out. Asynchronous on cuda.
  void clear(const Place& place);

  /// results[i] = the value of queries[i], or `missing`. See frozen_map::find. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const;

  /// found[i] = whether queries[i] is there, as bool, and if so, results[i] = its value; other results stay
  /// as they are. Asynchronous on cuda.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const;

  /// results[i] = whether queries[i] is there, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const;

  /// How many of the queries are there. Synchronises.
  template <class Queries>
  std::size_t count(const Place& place, const Queries& queries) const;

  /// Writes all pairs, in no defined order, to memory of the place with room for all (invalid_argument
  /// otherwise); returns how many. Not beside changes: some pairs would be missing. Synchronises.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const;

  /// Calls f(key, value) for every pair, on the place, in no defined order, many at once. Asynchronous on
  /// cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const;

  /// Makes room for n keys at the load factor, those included that are there. Synchronises. Throws
  /// out_of_memory, build_error, invalid_argument if the storage that it was given has no room for n, and
  /// then the map is as it was.
  void reserve(const Place& place, std::size_t n);

  /// Moves all keys to a table with room for n, or for those that are there if they are more, and takes
  /// erased keys out. In storage that it was given, the table stays as large as it is. Synchronises; throws
  /// as reserve does.
  void rehash(const Place& place, std::size_t n = 0);

  /// Makes the table as small as its keys allow.
  void shrink_to_fit(const Place& place) { rehash(place, 0); }

  /// The handle for kernels and host loops: all operations, or lookups only. The first one notes that the map
  /// may change: one thread at a time may call it. Take it anew after a bulk call: what older refs erase is
  /// not counted, and room is made later.
  ref_type ref() {
    most_ = std::nullopt;
    return table();
  }
  reader_type ref() const { return table(); }

  /// How many keys there are. Reads all slots. Synchronises.
  std::size_t size(const Place& place) const;
  std::size_t capacity() const { return table().capacity(); }
  std::size_t bytes() const { return plan_.buckets() * sizeof(bucket); }

  /// Reads all slots and looks up every key. Synchronises.
  concurrent_statistics statistics(const Place& place) const;

  /// Checks what must hold: each key is found where it lies, and each slot is free or taken. Reads all slots
  /// and looks up every key. Not beside changes. Synchronises.
  bool valid(const Place& place) const;

 private:
  template <class K, class P>
  friend class concurrent_set;
  friend struct detail::tile_inserter;
  template <class K, class V, class P>
  friend class concurrent_map;  // for large values
  using item = pair<Key, Value>;
  using bucket = typename ref_type::bucket;
  using keep = typename ref_type::keep;
  using counts = detail::put_counts;

  struct leave_it {
    void operator()(bucket*) const {}
  };
  struct slots_in_use {
    std::size_t live = 0, erased = 0;
  };

  bucket* buckets() const {
    return borrowed_ != nullptr ? borrowed_.get() : const_cast<bucket*>(owned_.data());
  }
  ref_type table() const { return {buckets(), plan_}; }
  double limit() const { return options_.load_factor * static_cast<double>(capacity()); }
  static const options& checked(const options& options);
  static probing::plan plan_for(double n, const options& options);

  template <class Source, class Wanted, class Change>
  insert_report put_all(const Place& place, const Source& source, const Wanted& wanted, const Change& change,
                        const bulk_options& how);
  template <class Source, class Change>
  void put(const Place& place, const Source& source, const Change& change, const bulk_options& how,
           std::size_t expected, insert_report& report);
  ref_type inserter() const { return table(); }
  template <class Launch>
  void launch_put(const Place& place, array<counts, Place>& counted, counts& sum, insert_report& report,
                  const Launch& launch);
  template <class Source, class Change>
  std::optional<counts> put_by_region(const Place& place, const Source& source, const Change& change,
                                      array<item, Place>& left, path way);
  template <class From, class Change>
  static counts fill(const Place& place, const ref_type& table, const From& from, const Change& change,
                     bool empty, bool sweeps, array<item, Place>& left, array<counts, Place>& counted);
  void note_inserted(const counts& sum);
  void note_erased(const std::optional<slots_in_use>& before, std::size_t erased);
  void count_slots(const Place& place);
  std::size_t room(bool by_region = false) const;
  bool goes_by_region(std::size_t n, const bulk_options& how) const;
  double buckets_read(std::size_t n) const;
  void sweep(const Place& place);
  void make_room(const Place& place, std::size_t more, insert_report& report);
  bool move(const Place& place, std::optional<double> n, bool other_hash);
  void move_to(const Place& place, double n, bool other_hash = false);

  options options_;
  probing::plan plan_;
  array<bucket, Place> owned_;
  std::unique_ptr<bucket, leave_it> borrowed_;         // of storage that users bring
  std::optional<slots_in_use> most_ = slots_in_use();  // there are no more, if known
  int hashes_ = 0;                                     // that were given up
};

}  // namespace roost

#include "roost/detail/concurrent/concurrent_map.inl"
#include "roost/detail/concurrent/large_values.inl"
