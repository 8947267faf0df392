#pragma once

#include "roost/bulk.hpp"
#include "roost/detail/concurrent/values.hpp"

/// \file
/// concurrent_map: insert, find and erase at the same time, and grow.

namespace roost {

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
  using value_store = detail::values_of_map<Key, Value, Place>;
  using slots = typename value_store::slots;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = concurrent_options;
  using ref_type = typename value_store::ref_type;
  using reader_type = typename value_store::reader_type;

  /// An empty map with room for n keys at the load factor. Asynchronous on cuda. Throws invalid_argument,
  /// out_of_memory.
  explicit concurrent_map(const Place& place, std::size_t n = 0, options chosen = {})
      : slots_(place, n, chosen), values_(place, n) {}

  /// An empty map in memory of the place that outlives it, and that nobody else touches: as many slots as
  /// fit. It keeps to it: it never grows, whatever the options say. Asynchronous on cuda. Throws
  /// invalid_argument if the memory is not aligned to 16 bytes, or does not hold four buckets.
  concurrent_map(const Place& place, std::span<std::byte> storage, options chosen = {})
    requires(sizeof(Value) <= 8)
      : slots_(place, storage, chosen), values_(place, 0) {}
  /// Bytes of storage in which n keys have room at the load factor.
  static std::size_t storage_bytes(std::size_t n, const options& options = {})
    requires(sizeof(Value) <= 8)
  {
    return slots::storage_bytes(n, options);
  }

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
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {}) {
    return slots_.erase(place, keys, how);
  }

  /// Takes out the pairs for which f(key, value) is true, and returns how many. Synchronises.
  template <class F>
  std::size_t erase_if(const Place& place, const F& f) {
    return slots_.erase_if(place, values_.ref(slots_), f);
  }

  /// Runs a mixed batch of operations at the same time: results[i] is what became of operations[i], as if
  /// they had been done one after the other in some order. Makes no room. Contiguous memory of the place, of
  /// elements operation<Key, Value> and operation_result<Value>. Asynchronous on cuda.
  template <class Operations, class Results>
  bulk_report run(const Place& place, const Operations& operations, Results&& results);

  /// Takes all keys out. Asynchronous on cuda.
  void clear(const Place& place) {
    slots_.clear(place);
    values_.clear(place);
  }

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
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return detail::count_all(place, slots_.reader(), slots_.bytes(), queries);
  }
  /// The former name of count_found.
  template <class Queries>
  [[deprecated("call count_found")]] std::size_t count(const Place& place, const Queries& queries) const {
    return count_found(place, queries);
  }

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
  void reserve(const Place& place, std::size_t n) { values_.reserve(place, slots_, n); }

  /// Moves all keys to a table with room for n, or for those that are there if they are more, and takes
  /// erased keys out. In storage that it was given, the table stays as large as it is. Synchronises; throws
  /// as reserve does.
  void rehash(const Place& place, std::size_t n = 0) { values_.rehash(place, slots_, n); }

  /// Makes the table as small as its keys allow.
  void shrink_to_fit(const Place& place) { rehash(place, 0); }

  /// The handle for kernels and host loops: all operations, or lookups only. The first one notes that the map
  /// may change: one thread at a time may call it. Take it anew after a bulk call: what older refs erase is
  /// not counted, and room is made later.
  ref_type ref() {
    slots_.forget();
    return values_.ref(slots_);
  }
  reader_type ref() const { return values_.ref(slots_); }

  /// How many keys there are. Reads all slots. Synchronises.
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

  /// Checks what must hold: each key is found where it lies, each slot is free or taken, and no two keys
  /// share a value's entry. Reads all slots and looks up every key. Not beside changes. Synchronises.
  bool valid(const Place& place) const { return slots_.valid(place) && values_.valid(place, slots_); }

 private:
  template <class K, class P>
  friend class concurrent_set;

  /// Inserts the pairs of a source; `change()`: what to do about a key that is there.
  template <class Source, class Wanted, class Change>
  insert_report put(const Place& place, const Source& source, const Wanted& wanted, const Change& change,
                    const bulk_options& how) {
    const auto& stored = values_.store(place, slots_, source, wanted);
    return slots_.put_all(place, stored, wanted, change(), how);
  }

  slots slots_;
  value_store values_;
};

}  // namespace roost

#include "roost/detail/concurrent/map.hpp"
