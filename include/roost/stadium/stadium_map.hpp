#pragma once

#include "roost/detail/table/single_keys.hpp"
#include "roost/stadium/detail/map.hpp"

/// \file
/// stadium_map: keys and values of any size, in GPU memory, in host memory behind it, or in both.

namespace roost {

/// What ref() of a const stadium_map returns: the lookups of single keys, from any number of threads while
/// others change the map. Trivially copyable; valid until its map is rehashed. See ticket_board::reader.
template <class Key, class Value, class Place = host>
using stadium_reader = ticket_board::reader<Place, Key, Value>;

/// What ref() of another stadium_map returns: lookups and changes of single keys, from any number of threads
/// of kernels and of the host at once. Each is linearizable. Lookups of absent keys, erase and insert_new are
/// lock-free; the others wait for threads that are changing a key of the same guard. Valid as long as a
/// stadium_reader. See ticket_board::table.
template <class Key, class Value, class Place = host>
using stadium_ref = ticket_board::table<Place, Key, Value>;

/// A hash map for keys and values of any size, and for tables that are larger than GPU memory, after Stadium
/// hashing (F. Khorasani et al., 2015). A board of small tickets in memory of the place usually shows where a
/// key is, or that it is absent. The pairs (bodies) are stored separately, in memory of the place or of the
/// host. Any number of threads can change and query the map at the same time, from kernels and from the host,
/// one key at a time or in bulk. For keys and values of up to 8 bytes in GPU memory, a concurrent_map is
/// faster.
///
///     roost::stadium_map<std::uint64_t, record, roost::cuda> map(
///         gpu, 1000000000, {.budget = std::size_t{20} << 30});
///     map.insert(gpu, keys, records);  // in bulk
///     map.find(gpu, queries, results, missing);
///     auto ref = map.ref();            // in kernels, all at once:
///     ref.insert(k, v);  ref.erase(k);  if (auto value = ref.find(k)) use(*value);
///
/// Key: trivially copyable, of any size, without padding, compared by its bytes. Value: trivially copyable,
/// of any size. Pairs whose size is a multiple of 8 or 16 bytes are read and written fastest. Every key and
/// every value can be stored.
///
/// Room: every slot can be used, and inserts return `full` when all slots are. An erased key keeps its slot,
/// and the same key can come back to it. Bulk inserts give such slots to other keys, and mark them as never
/// used when there are many of them (sweep). Bulk inserts also let the map grow (stadium_options::grows).
/// Changes of single keys (through ref()) never do.
///
/// Cost: a lookup of an absent key reads 1 / (1 - load) tickets, and of a present key fewer; each ticket is a
/// random access to memory of the place. A lookup of a present key also reads one body, and a lookup of an
/// absent key almost none (ticket_bits). An insert writes one body and reads almost none. Large batches are
/// partitioned and go region by region, which pays most if bodies are in host memory. If a batch touches so
/// many bodies in host memory that it is cheaper to copy them all than to access them one by one, the bodies
/// of the regions are copied through memory of the place (path::streamed). This is chosen only if no ref for
/// changes was taken since the last bulk insert. For lookups it is chosen after sampling them, which
/// synchronises.
///
/// Threads and streams: all operations of refs may overlap with each other and with const members, and each
/// takes effect in one step for all observers. Members that change the map must not overlap with anything
/// else. All threads that access a map at the same time must be on one GPU, or all on the host: the host must
/// not access a map of a GPU while a kernel uses it.
///
/// Moving is cheap (a map that was moved from can be assigned to or destroyed); copying is forbidden. If a
/// member throws, the map keeps its pairs and may hold part of the batch.
template <class Key, class Value, class Place /* = host */>
class stadium_map : public single_keys<stadium_map<Key, Value, Place>, Key, Value, Place> {
  static_assert(detail::check_types<Key, Value>());
  using one = single_keys<stadium_map, Key, Value, Place>;
  using table = detail::stadium_table<Key, Value, Place>;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = stadium_options;
  using ref_type = stadium_ref<Key, Value, Place>;
  using reader_type = stadium_reader<Key, Value, Place>;

  /// Creates an empty map with room for n keys at the load factor. Asynchronous on cuda, except for
  /// allocating pinned host memory, which takes 0.05 s per GiB with 16 processors and 0.2 s with one. Throws
  /// invalid_argument, out_of_memory.
  explicit stadium_map(const Place& place, std::size_t n = 0, options chosen = {})
      : table_(place, n, chosen) {}

  ROOST_DELETE_WITHOUT_PLACE(Place, stadium_map, explicit stadium_map);
  stadium_map(stadium_map&&) noexcept = default;
  stadium_map& operator=(stadium_map&&) noexcept = default;

  // Bulk inserts. Keys and values: sized random-access ranges of equal length in the memory of the place. All
  // synchronise, and throw invalid_argument, out_of_memory.

  /// Stores pairs whose keys must all be distinct and absent, which is not checked: the insert of the paper,
  /// which reads no body. (valid() detects a broken promise.)
  template <class Keys, class Values>
  insert_report insert_new(const Place& place, const Keys& keys, const Values& values,
                           bulk_options how = {}) {
    return table_.put_all(place, zip(keys, values, "roost::stadium_map::insert_new"),
                          typename ref_type::fresh(), how);
  }

  /// Stores each pair whose key is absent. If a key appears more than once in a batch, it is not defined
  /// which of its pairs is stored.
  template <class Keys, class Values>
  insert_report insert(const Place& place, const Keys& keys, const Values& values, bulk_options how = {}) {
    return table_.put_all(place, zip(keys, values, "roost::stadium_map::insert"), typename ref_type::keep(),
                          how);
  }

  /// Stores each pair; present keys get the new value. If a key appears more than once in a batch, it is not
  /// defined which of its values it keeps.
  template <class Keys, class Values>
  insert_report insert_or_assign(const Place& place, const Keys& keys, const Values& values,
                                 bulk_options how = {}) {
    return table_.put_all(place, zip(keys, values, "roost::stadium_map::insert_or_assign"),
                          typename ref_type::assign(), how);
  }

  /// Stores each pair; if the key is present with value v0, the value becomes f(v0, v). f: roost::plus,
  /// minimum, maximum, or any function of two values that does not throw and gives the same result in
  /// whatever order the copies of a key come. Copies of a key are processed one by one. If there are many
  /// copies, use a concurrent_map or group_by.
  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Place& place, const Keys& keys, const Values& values, const F& f,
                                bulk_options how = {}) {
    return table_.put_all(place, zip(keys, values, "roost::stadium_map::insert_or_apply"),
                          typename ref_type::template apply<F>{f}, how);
  }

  /// Removes keys; returns how many were present. Synchronises.
  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {}) {
    return table_.erase(place, detail::sequence_as<Key>(keys), how);
  }

  /// Removes the pairs for which f(key, value) is true; returns how many. Reads all bodies. Synchronises.
  template <class F>
  std::size_t erase_if(const Place& place, const F& f) {
    return table_.erase_if(place, f);
  }

  /// Runs a mixed batch of operations at the same time. results[i] is the result of operations[i], as if they
  /// had been executed sequentially in some order. Makes no room. Operations and results: contiguous memory
  /// of the place, with elements operation<Key, Value> and operation_result<Value>. Never streamed.
  /// Asynchronous on cuda.
  template <class Operations, class Results>
  bulk_report run(const Place& place, const Operations& operations, Results&& results,
                  bulk_options how = {}) {
    const auto sequence = detail::sequence_as<operation<Key, Value>>(operations);
    auto* const target =
        detail::output<operation_result<Value>>(results, sequence.size(), "roost::stadium_map::run");
    return table_.run(place, sequence, target, how);
  }

  /// Removes all keys. Asynchronous on cuda.
  void clear(const Place& place) { table_.clear(place); }

  /// Moves keys back along their probe sequences to slots of erased keys, and marks slots of erased keys that
  /// no key passes as never used. Lookups of absent keys cost less after it. Reads the keys of all regions
  /// with erased keys. Bulk inserts call it when erased keys occupy half of the slots that hold no key.
  /// Synchronises.
  void sweep(const Place& place) { table_.sweep(place); }

  // One key at a time, on the host: see single_keys.
  using one::find, one::contains, one::count;

  /// results[i] = the value of queries[i], or `missing`. See frozen_map::find. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const {
    return table_.lookups(place, queries, how)
        .find_values(queries, results, missing, "roost::stadium_map::find");
  }

  /// found[i] = whether queries[i] is present, as bool; if so, results[i] = its value. Other results are
  /// unchanged. Asynchronous on cuda.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const {
    return table_.lookups(place, queries, how)
        .find_values_there(queries, results, found, "roost::stadium_map::find");
  }

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return table_.lookups(place, queries, how)
        .find_contained(queries, results, "roost::stadium_map::contains");
  }

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return table_.lookups(place, queries, {}).count(queries);
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
    const std::size_t n = size(place);
    Key* const keys_to = detail::output<Key>(keys, n, "roost::stadium_map::retrieve_all");
    Value* const values_to = detail::output<Value>(values, n, "roost::stadium_map::retrieve_all");
    detail::retrieve_pairs(place, ref(), keys_to, values_to, n);
    return n;
  }

  /// Calls f(key, value) for every pair, in parallel on the place, in no defined order. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    place.for_each(capacity(), detail::visit_slot<reader_type, F>{table_.reader(), f});
  }

  /// Makes room for n keys at the load factor, including those already present. Synchronises. Throws
  /// out_of_memory; the map is then unchanged.
  void reserve(const Place& place, std::size_t n) {
    if (n > table_.limit()) rehash(place, n);
  }

  /// Moves all keys region by region to a table with room for n keys, or for the present keys if there are
  /// more of them. Erased keys are left behind.
  ///
  /// A table that becomes larger grows in place if it has 64 regions or more and bodies in host memory. This
  /// takes as much host memory as the larger table needs, and memory of the place for both boards and some
  /// hundredths of the bodies. If the table has hundreds of regions, the number of slots is at least the
  /// requested one and at most an eighth more. The part of the bodies in memory of the place does not grow.
  /// Otherwise both tables take memory until the move is complete. Synchronises; throws as reserve does.
  void rehash(const Place& place, std::size_t n = 0) { table_.rehash(place, n); }

  /// Makes the table as small as its keys allow.
  void shrink_to_fit(const Place& place) { rehash(place, 0); }

  /// The handle for kernels and host loops, with all operations. This call records that the map may change,
  /// so it counts as a member that changes the map, and must not overlap with other members. A bulk lookup is
  /// in progress until it has finished on its stream: synchronise first. Take a new ref after any other
  /// member that changes the map, even one that threw: the keys may have moved, and bulk lookups assume that
  /// older refs make no changes.
  ref_type ref() {
    table_.forget();
    return table_.ref();
  }
  /// A handle with lookups only. The call records nothing, so any number of threads may call it. It costs
  /// nothing and never throws. Take a new one whenever you would take a new ref for changes.
  reader_type ref() const { return table_.ref(); }

  /// Returns the number of keys. Reads the board. Synchronises.
  std::size_t size(const Place& place) const { return table_.count(place); }
  /// The number of slots, all of which keys can use. Needs no access to the place and never throws. Changes
  /// through refs do not affect it.
  std::size_t capacity() const { return table_.capacity(); }
  /// Bytes of the board and of all bodies, in memory of the place and of the host together (statistics()
  /// lists them separately). Otherwise as capacity().
  std::size_t bytes() const { return table_.bytes(); }

  /// Reads the board. Synchronises.
  stadium_statistics statistics(const Place& place) const { return table_.statistics(place); }

  /// Returns what lookups of these keys cost. Synchronises.
  template <class Queries>
  lookup_costs costs(const Place& place, const Queries& queries) const {
    return table_.costs(place, detail::sequence_as<Key>(queries));
  }

  /// Checks the invariants: each key is found where it is stored, no ticket is between two states, and no
  /// ticket lies outside the slots. Looks up every key. Must not overlap with changes. Synchronises.
  bool valid(const Place& place) const { return table_.valid(place); }

 private:
  friend struct detail::stadium_file<Key, Value, Place>;

  explicit stadium_map(table&& loaded) : table_(std::move(loaded)) {}

  template <class Keys, class Values>
  static auto zip(const Keys& keys, const Values& values, const char* where) {
    return detail::zip_as<Key, Value>(keys, values, where);
  }

  table table_;
};

}  // namespace roost
