#pragma once

#include "roost/bulk.hpp"
#include "roost/detail/concurrent/values.hpp"
#include "roost/detail/table/single_keys.hpp"

/// \file
/// concurrent_map: insert, find and erase at the same time, and grow.

namespace roost {

/// What ref() of a const concurrent_map returns: the lookups of single keys, from any number of threads while
/// others change the map. (Of a concurrent_set: with Value = none.) Trivially copyable; valid until its map
/// is rehashed or, with values above 8 bytes, inserts in bulk. See probing::reader and indexed::reader.
template <class Key, class Value, class Place = host>
using concurrent_reader = typename detail::values_of_map<Key, Value, Place>::reader_type;

/// What ref() of another concurrent_map returns: lookups and changes of single keys, from any number of
/// threads of kernels and of the host at once. Each is linearizable and lock-free. Valid as long as a
/// concurrent_reader. See probing::table and indexed::table.
template <class Key, class Value, class Place = host>
using concurrent_ref = typename detail::values_of_map<Key, Value, Place>::ref_type;

/// A hash map that any number of threads can change and query at the same time, from kernels and from the
/// host, one key at a time or in bulk. If all pairs are known before the first lookup, a frozen_map is
/// smaller and faster.
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
/// Values of more than 8 bytes are stored in an array of entries, and slots hold entry numbers. (Keys of up
/// to 4 bytes then have slots of 8 bytes.) Each stored value takes a new entry, so assignments do, too;
/// changes through ref() that find no free entry return `full`. Lookups, erase, and inserts of present keys
/// need no entry. Bulk inserts take one entry per pair, whether or not the map `grows`. Before entries run
/// out, they move the current values to a new array; like rehash(), this drops values that no key has any
/// more, and it leaves at least an eighth of the entries for changes through refs taken after that. No thread
/// ever sees a partly written value.
///
/// Room: a key can be stored in one of two regions of some thousand slots; if both have no free slot for it,
/// the insert returns `full`. Up to load factors of 0.9 this does not happen by chance. An erased key keeps
/// its slot, and the same key can come back to it. Bulk inserts free such slots when there are many of them,
/// and let the map grow (concurrent_options::grows). Changes of single keys (through ref()) never do either.
///
/// Cost: a change of a single key is one random access to memory for most keys. A batch of at least an eighth
/// of the slots is partitioned, and processed region by region in the cache.
///
/// Threads and streams: docs/concurrent.md has the table of what may overlap. In short: all operations of
/// refs may overlap with each other and with const members; members that change the map must not overlap with
/// anything else. Moving is cheap (a map that was moved from can be assigned to or destroyed); copying is
/// forbidden. If a member throws, the map keeps its pairs and may hold part of the batch.
template <class Key, class Value, class Place /* = host */>
class concurrent_map : public single_keys<concurrent_map<Key, Value, Place>, Key, Value, Place> {
  static_assert(detail::check_types<Key, Value>());
  static_assert(
      sizeof(Key) <= 8,
      "keys of a concurrent_map or concurrent_set have up to 8 bytes: a roost::stadium_map takes any");
  using one = single_keys<concurrent_map, Key, Value, Place>;
  using value_store = detail::values_of_map<Key, Value, Place>;
  using slots = typename value_store::slots;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = concurrent_options;
  using ref_type = concurrent_ref<Key, Value, Place>;
  using reader_type = concurrent_reader<Key, Value, Place>;

  /// An empty map with room for n keys at the load factor. Asynchronous on cuda. Throws invalid_argument,
  /// out_of_memory.
  explicit concurrent_map(const Place& place, std::size_t n = 0, options chosen = {})
      : slots_(place, n, chosen), values_(place, n) {}

  /// An empty map in memory of the place that you provide, with all the slots that fit. The memory must
  /// outlive the map, and nothing else may use it. The map never grows, whatever the options say.
  /// Asynchronous on cuda. Throws invalid_argument if the memory is not aligned to 16 bytes, or is too small
  /// for four buckets.
  concurrent_map(const Place& place, std::span<std::byte> storage, options chosen = {})
    requires(sizeof(Value) <= 8)
      : slots_(place, storage, chosen), values_(place, 0) {}
  /// The bytes of storage that n keys need at the load factor.
  static std::size_t storage_bytes(std::size_t n, const options& options = {})
    requires(sizeof(Value) <= 8)
  {
    return slots::storage_bytes(n, options);
  }

  ROOST_DELETE_WITHOUT_PLACE(Place, concurrent_map, explicit concurrent_map);
  concurrent_map(concurrent_map&&) noexcept = default;
  concurrent_map& operator=(concurrent_map&&) noexcept = default;

  // Bulk inserts. Keys and values: sized random-access ranges of equal length in the memory of the place. All
  // synchronise, and throw invalid_argument, out_of_memory. If a key appears more than once in a batch, the
  // order in which its pairs take effect is not defined.

  /// Stores each pair whose key is absent.
  template <class Keys, class Values>
  insert_report insert(const Place& place, const Keys& keys, const Values& values, bulk_options how = {}) {
    return put(place, detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert"),
               detail::all_wanted(), typename slots::keep(), how);
  }

  /// The same, but only for pairs whose element of the range `stencil` is true.
  template <class Keys, class Values, class Stencil>
  insert_report insert_if(const Place& place, const Keys& keys, const Values& values, const Stencil& stencil,
                          bulk_options how = {}) {
    constexpr const char* where = "roost::concurrent_map::insert_if";
    const auto source = detail::zip_as<Key, Value>(keys, values, where);
    return put(place, source, detail::wanted_of(stencil, source.size(), where), typename slots::keep(), how);
  }

  /// Stores each pair; present keys get the new value.
  template <class Keys, class Values>
  insert_report insert_or_assign(const Place& place, const Keys& keys, const Values& values,
                                 bulk_options how = {}) {
    return put(place, detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert_or_assign"),
               detail::all_wanted(), typename slots::table_type::assign(), how);
  }

  /// Stores each pair; if the key is present with value v0, the value becomes f(v0, v). f: roost::plus,
  /// minimum, maximum, or any associative and commutative function of two values, since the values of a key
  /// within a batch may be combined with each other first.
  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Place& place, const Keys& keys, const Values& values, const F& f,
                                bulk_options how = {}) {
    const auto source = detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert_or_apply");
    const auto& stored = values_.store(place, slots_, source, detail::all_wanted());
    return slots_.put_all(place, stored, detail::all_wanted(), values_.apply(f), how);
  }

  /// Removes keys; returns how many were present. Synchronises.
  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {}) {
    return slots_.erase(place, keys, how);
  }

  /// Removes the pairs for which f(key, value) is true; returns how many. Synchronises.
  template <class F>
  std::size_t erase_if(const Place& place, const F& f) {
    return slots_.erase_if(place, values_.ref(slots_), f);
  }

  /// Runs a mixed batch of operations concurrently. results[i] is the result of operations[i], as if the
  /// operations had been executed sequentially in some order. Makes no room. Operations and results:
  /// contiguous memory of the place, with elements operation<Key, Value> and operation_result<Value>.
  /// Asynchronous on cuda.
  template <class Operations, class Results>
  bulk_report run(const Place& place, const Operations& operations, Results&& results) {
    const auto sequence = detail::sequence_as<operation<Key, Value>>(operations);
    detail::run_all(
        place, ref(), sequence,
        detail::output<operation_result<Value>>(results, sequence.size(), "roost::concurrent_map::run"));
    return {path::direct, 1, 0};
  }

  /// Removes all keys. Asynchronous on cuda.
  void clear(const Place& place) {
    slots_.clear(place);
    values_.clear(place);
  }

  // One key at a time, on the host: see single_keys.
  using one::find, one::contains, one::count;

  /// results[i] = the value of queries[i], or `missing`. See frozen_map::find. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const {
    return detail::bulk_lookups(place, ref(), slots_.bytes(), how)
        .find_values(queries, results, missing, "roost::concurrent_map::find");
  }

  /// found[i] = whether queries[i] is present, as bool; if so, results[i] = its value. Other results are
  /// unchanged. Asynchronous on cuda.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const {
    return detail::bulk_lookups(place, ref(), slots_.bytes(), how)
        .find_values_there(queries, results, found, "roost::concurrent_map::find");
  }

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return detail::bulk_lookups(place, slots_.reader(), slots_.bytes(), how)
        .find_contained(queries, results, "roost::concurrent_map::contains");
  }

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return detail::bulk_lookups(place, slots_.reader(), slots_.bytes()).count(queries);
  }
  /// The former name of count_found.
  template <class Queries>
  [[deprecated("call count_found")]] std::size_t count(const Place& place, const Queries& queries) const {
    return count_found(place, queries);
  }

  /// Writes all pairs, in no defined order, to memory of the place with room for all of them
  /// (invalid_argument otherwise); returns how many. Must not overlap with changes: some pairs would be
  /// missing. Synchronises.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const {
    constexpr const char* where = "roost::concurrent_map::retrieve_all";
    const std::size_t n = size(place);
    detail::retrieve_pairs(place, ref(), detail::output<Key>(keys, n, where),
                           detail::output<Value>(values, n, where), n);
    return n;
  }

  /// Calls f(key, value) for every pair, in parallel on the place, in no defined order. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    place.for_each(capacity(), detail::visit_slot<reader_type, F>{ref(), f});
  }

  /// Iterates over the pairs of a map on the host, which must not change meanwhile:
  /// `for (auto [key, value] : map)`.
  using iterator = detail::slot_iterator<reader_type>;
  iterator begin() const
    requires std::is_same_v<Place, host>
  {
    return {ref(), 0};
  }
  iterator end() const
    requires std::is_same_v<Place, host>
  {
    return {std::nullopt, capacity()};
  }

  /// Makes room for n keys at the load factor, including those already present. Synchronises. Throws
  /// out_of_memory, build_error, and invalid_argument if the map is in storage that you provided and n keys
  /// do not fit there; the map is then unchanged.
  void reserve(const Place& place, std::size_t n) { values_.reserve(place, slots_, n); }

  /// Moves all keys to a table with room for n keys, or for the present keys if there are more of them.
  /// Erased keys are left behind. In storage that you provided, the size of the table does not change.
  /// Synchronises; throws as reserve does.
  void rehash(const Place& place, std::size_t n = 0) { values_.rehash(place, slots_, n); }

  /// Makes the table as small as its keys allow.
  void shrink_to_fit(const Place& place) { rehash(place, 0); }

  /// The handle for kernels and host loops, with all operations, or with lookups only if the map is const.
  /// The non-const call records that the map may change, so only one thread at a time may make it. Take a new
  /// ref after a bulk call: erases through older refs are not counted, so the map would make room later than
  /// it could.
  ref_type ref() {
    slots_.forget();
    return values_.ref(slots_);
  }
  /// (A concurrent_reader.)
  decltype(auto) ref() const { return values_.reader(slots_); }

  /// Returns the number of keys. Reads all slots. Synchronises.
  std::size_t size(const Place& place) const { return slots_.size(place); }
  std::size_t capacity() const { return slots_.capacity(); }
  /// Keys and erased keys over slots. Reads all slots. Synchronises.
  double load_factor(const Place& place) const { return slots_.load_factor(place); }
  std::size_t bytes() const { return slots_.bytes() + values_.bytes(); }

  /// Reads all slots and looks up every key. Synchronises.
  concurrent_statistics statistics(const Place& place) const {
    concurrent_statistics result = slots_.statistics(place);
    result.bytes = bytes();
    return result;
  }

  /// Checks the invariants: each key is found where it is stored, each slot is free or occupied, and no two
  /// keys share an entry. Reads all slots and looks up every key. Must not overlap with changes.
  /// Synchronises.
  bool valid(const Place& place) const { return slots_.valid(place) && values_.valid(place, slots_); }

 private:
  template <class K, class P>
  friend class concurrent_set;

  /// Inserts the pairs of a source; `change`: of the value of a present key.
  template <class Source, class Wanted, class Change>
  insert_report put(const Place& place, const Source& source, const Wanted& wanted, const Change& change,
                    const bulk_options& how) {
    const auto& stored = values_.store(place, slots_, source, wanted);
    return slots_.put_all(place, stored, wanted, change, how);
  }

  slots slots_;
  value_store values_;
};

}  // namespace roost
