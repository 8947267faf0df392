#pragma once

#include <numeric>
#include <optional>
#include <vector>

#include "roost/detail/changes.hpp"
#include "roost/detail/stadium_regions.hpp"

/// \file
/// stadium_map: keys and values of any size, in GPU memory, in host memory behind it, or both.

namespace roost {

namespace detail {
template <class Key, class Value, class Place>
struct stadium_file;
}

/// Where a stadium_map keeps keys and values.
enum class residence : std::uint8_t {
  automatic,  ///< in memory of the place as far as the budget goes, the rest in memory of the host
  place,      ///< in memory of the place
  host        ///< in memory of the host, pinned for a GPU, where a table can grow without a second one. On the host place: memory from the
              ///< system instead of the place's memory resource
};

/// How threads of a GPU share the work of a bulk insert_new.
enum class insert_lanes : std::uint8_t {
  automatic,  ///< alone up to the load from which together is faster, together from then on (the paper's hybrid); no load has been such on
              ///< an H200
  alone,      ///< a thread has one pair after the other, and waits for those of its warp that look at more slots
  together    ///< who is done takes over a pair that others have put aside: collaborating lanes (section III.C)
};

/// Options of stadium_map.
struct stadium_options {
  /// How many of the slots keys may take, in (0, 1], before bulk calls make room. Keys that are not there cost about 1 / (1 - load factor)
  /// tickets. Near 1 it is all those of a region, and of a table that is full to the last slot those of many regions, as its last keys went
  /// far for a slot: who asks for keys that are not there leaves some slots, or makes one region of the table (region_slots).
  double load_factor = 0.8;
  /// 1, 2, 4 or 8: one bit says whether a slot is available, the others tell keys apart. A body that is another key's is read for one in
  /// 2^(ticket_bits - 1) of the tickets that a lookup passes. The board takes 2, 3.05, 5.33 or 9.14 bits a slot.
  int ticket_bits = 8;
  residence bodies = residence::automatic;
  /// Bytes of the place's memory that keys and values may take if `bodies` is automatic. By default three quarters of what is free on a
  /// GPU, all on a host.
  std::size_t budget = ~std::size_t{0};
  /// Chooses the hash function.
  std::uint64_t seed = 0;
  /// Whether bulk calls that insert move the keys to a larger table when there is no room. If not, keys that find none are counted as
  /// `full`.
  bool grows = true;
  /// How the threads of a GPU share a bulk insert_new: what it costs, not what it does. A host thread has one pair after the other anyway,
  /// and so has each thread where a batch is streamed.
  insert_lanes lanes = insert_lanes::automatic;
  /// Slots of a region, about; 0: chosen for the place. A number above the table's makes one region of it, as the paper has it.
  std::uint32_t region_slots = 0;
};

/// What a stadium_map is like.
struct stadium_statistics {
  std::size_t size = 0;      ///< keys
  std::size_t erased = 0;    ///< slots of erased keys
  std::size_t capacity = 0;  ///< slots
  std::size_t regions = 0;
  double load_factor = 0;       ///< size / capacity
  std::size_t board_bytes = 0;  ///< tickets, and what is known of regions and keys that are being changed: memory of the place
  std::size_t place_bytes = 0;  ///< bodies in memory of the place
  std::size_t host_bytes = 0;   ///< bodies in memory of the host
};

/// What lookups of a batch of keys cost, added up.
struct lookup_costs {
  std::size_t queries = 0;
  std::size_t found = 0;
  std::size_t tickets = 0;         ///< that were looked at
  std::size_t bodies = 0;          ///< that were read
  std::size_t without_bodies = 0;  ///< queries that tickets answered alone
  std::size_t most_tickets = 0;    ///< of one query
  /// Bodies that were another key's.
  std::size_t false_candidates() const { return bodies - found; }
};

/// A hash map for keys and values of any size, and for tables that are larger than a GPU's memory, after Stadium hashing (F. Khorasani et
/// al., 2015): a board of small tickets in memory of the place tells most times where a key is or that it is not there, and the pairs lie
/// apart from it, in memory of the place or of the host. Any number of threads change and ask it at the same time, from kernels and from
/// the host, one key at a time or in bulk. For keys and values of up to 8 bytes in GPU memory a concurrent_map is faster.
///
///     roost::stadium_map<std::uint64_t, record, roost::cuda> map(gpu, 1000000000, {.budget = std::size_t{20} << 30});
///     map.insert(gpu, keys, records);                              // in bulk
///     map.find(gpu, queries, results, missing);
///     auto ref = map.ref();                                        // in kernels, all at once:
///     ref.insert(k, v);  ref.erase(k);  if (auto value = ref.find(k)) use(*value);
///
/// Key: trivially copyable, of any size, without padding, compared by its bytes; Value: trivially copyable, of any size. Pairs of which 8
/// or 16 bytes is a divisor of the size are read and written fastest. Every key and every value can be stored.
///
/// Room: every slot can be used, and `full` is the answer when all of them are. Erased keys keep their slots, in which the same key can
/// come back; bulk calls that insert use them for others, and make them as good as new when there are many (sweep). Bulk calls that insert
/// let the map grow (stadium_options::grows); changes of single keys (through ref()) never do.
///
/// Cost: a lookup looks at 1 / (1 - load) tickets for a key that is not there, fewer for others, each a random access to memory of the
/// place; it reads one body for a key that is there, and next to none for one that is not (ticket_bits). An insert writes one body and
/// reads next to none. Large batches are partitioned and go region by region, which pays where bodies lie in host memory most. Of batches
/// that touch so many bodies in host memory that copying all of them is cheaper than one access each, the regions' bodies come through
/// memory of the place (path::streamed): chosen if no ref for changes was taken since the last insert in bulk, and of lookups after a
/// sample of them, which then synchronise.
///
/// Threads and streams: all operations of refs may overlap with each other and with const members, and each is one step for all who watch;
/// members that change the map need it for themselves. All threads that touch a map at the same time are of one GPU, or all of the host:
/// the host must not look at a map of a GPU while a kernel uses it. Moving is cheap (what was moved from can be assigned to or destroyed);
/// copying is forbidden. A member that throws leaves the map with the pairs that it had, and some of the batch's.
template <class Key, class Value, class Place = host>
class stadium_map {
  static_assert(
      is_bitwise_comparable<Key>,
      "keys are compared by their bytes: use a type without padding or floating point, or specialise roost::is_bitwise_comparable");
  static_assert(std::is_trivially_copyable_v<Value>, "values are copied byte by byte");
  static_assert(std::is_default_constructible_v<Key> && std::is_copy_assignable_v<Key> && std::is_default_constructible_v<Value> &&
                    std::is_copy_assignable_v<Value>,
                "keys and values are made before it is known what they are: give the type a default constructor and no const members");

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = stadium_options;
  using ref_type = ticket_board::table<Place, Key, Value>;
  using reader_type = ticket_board::reader<Place, Key, Value>;

  /// An empty map with room for n keys at the load factor. Asynchronous on cuda, but for pinned host memory, of which a GiB takes 0.05 s
  /// with 16 processors, 0.2 s with one. Throws invalid_argument, out_of_memory.
  explicit stadium_map(const Place& place, std::size_t n = 0, options options = {});

  stadium_map(stadium_map&&) noexcept = default;
  stadium_map& operator=(stadium_map&&) noexcept = default;

  // Bulk calls that insert. Keys and values: ranges in the memory of the place, sized, random-access, equally long. All synchronise; throw
  // invalid_argument, out_of_memory.

  /// Stores pairs whose keys are all different and not there yet, which is not checked: the paper's insert, which reads no body. (valid()
  /// tells if the promise was broken.)
  template <class Keys, class Values>
  insert_report insert_new(const Place& place, const Keys& keys, const Values& values, bulk_options how = {});

  /// Stores each pair whose key is not there. If a key comes several times in a batch, it is not defined which pair comes first.
  template <class Keys, class Values>
  insert_report insert(const Place& place, const Keys& keys, const Values& values, bulk_options how = {});

  /// Stores each pair; keys that are there get the new value. If a key comes several times in a batch, it is not defined which pair comes
  /// last.
  template <class Keys, class Values>
  insert_report insert_or_assign(const Place& place, const Keys& keys, const Values& values, bulk_options how = {});

  /// Stores each pair; a value v0 that is there becomes f(v0, v). f: roost::plus, minimum, maximum, or any function of two values that does
  /// not mind the order in which the copies of a key come, and does not throw. Copies of a key go one by one: where they are many, take a
  /// concurrent_map or group_by.
  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Place& place, const Keys& keys, const Values& values, const F& f, bulk_options how = {});

  /// Takes keys out; returns how many were there. Synchronises.
  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {});

  /// Takes out the pairs for which f(key, value) is true, and returns how many. Reads all bodies. Synchronises.
  template <class F>
  std::size_t erase_if(const Place& place, const F& f);

  /// Runs a mixed batch of operations at the same time: results[i] is what became of operations[i], as if they had been done one after the
  /// other in some order. Makes no room. Contiguous memory of the place, of elements operation<Key, Value> and operation_result<Value>.
  /// Never streamed. Asynchronous on cuda.
  template <class Operations, class Results>
  bulk_report run(const Place& place, const Operations& operations, Results&& results, bulk_options how = {});

  /// Takes all keys out. Asynchronous on cuda.
  void clear(const Place& place);

  /// Moves keys back on their ways to slots of erased keys, and makes slots of erased keys that no key passes unused again: keys that are
  /// not there cost less after it. Reads the keys of all regions with erased keys. Bulk calls that insert do it when erased keys have taken
  /// half of what keys leave. Synchronises.
  void sweep(const Place& place);

  /// results[i] = the value of queries[i], or `missing`. See frozen_map::find. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Value missing, bulk_options how = {}) const;

  /// found[i] = whether queries[i] is there, as bool, and if so, results[i] = its value; other results stay as they are. Asynchronous on
  /// cuda.
  template <class Queries, class Results, class Found>
  requires(!std::is_convertible_v<Found, Value>) bulk_report
      find(const Place& place, const Queries& queries, Results&& results, Found&& found, bulk_options how = {})
  const;

  /// results[i] = whether queries[i] is there, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results, bulk_options how = {}) const;

  /// How many of the queries are there. Synchronises.
  template <class Queries>
  std::size_t count(const Place& place, const Queries& queries) const;

  /// Writes all pairs, in no defined order, to memory of the place with room for all (invalid_argument otherwise); returns how many. Not
  /// beside changes: some pairs would be missing. Synchronises.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const;

  /// Calls f(key, value) for every pair, on the place, in no defined order, many at once. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const;

  /// Makes room for n keys at the load factor, those included that are there. Synchronises. Throws out_of_memory, and then the map is as it
  /// was.
  void reserve(const Place& place, std::size_t n);

  /// Moves all keys to a table with room for n, or for those that are there if they are more, region by region, and leaves erased keys
  /// behind. A table that becomes larger, of 64 regions or more with bodies in memory of the host, grows where it lies: in as much memory
  /// there as the larger table takes, and memory of the place for both boards and some hundredths of the bodies; its slots become as many
  /// as asked for and up to an eighth more, if its regions are hundreds, and bodies in memory of the place do not become more. Else the
  /// memory of both tables is taken meanwhile. Synchronises; throws as reserve does.
  void rehash(const Place& place, std::size_t n = 0);

  /// Makes the table as small as its keys allow.
  void shrink_to_fit(const Place& place) { rehash(place, 0); }

  /// The handle for kernels and host loops: all operations. It notes that the map may change, so it is itself a member that changes the
  /// map, not to be called beside others. Take it anew after any other member that changes the map, also one that threw: the keys may have
  /// moved, and lookups in bulk trust that refs from before change nothing. Lookups in bulk that have not finished on their stream count as
  /// running: synchronise first.
  ref_type ref() {
    known_ = std::nullopt;
    return table();
  }
  /// Lookups only: the map notes nothing, so that any number of threads may call it. Costs nothing and never throws. To be taken anew when
  /// the other is.
  reader_type ref() const { return table(); }

  /// How many keys there are. Reads the board. Synchronises.
  std::size_t size(const Place& place) const;
  /// Slots, all of which keys can use. Asks nothing of the place, and never throws; beside changes through refs it stays the same.
  std::size_t capacity() const { return plan_.slots(); }
  /// Bytes of the board and of all bodies, in memory of the place and of the host together (statistics() tells them apart). As capacity().
  std::size_t bytes() const { return board_bytes() + bodies_.bytes(); }

  /// Reads the board. Synchronises.
  stadium_statistics statistics(const Place& place) const;

  /// What lookups of these keys cost. Synchronises.
  template <class Queries>
  lookup_costs costs(const Place& place, const Queries& queries) const;

  /// Checks what must hold: each key is found where it lies, no ticket is between two states, none lies where no slot is. Looks up every
  /// key. Not beside changes. Synchronises.
  bool valid(const Place& place) const;

 private:
  friend struct detail::stadium_file<Key, Value, Place>;
  using item = typename reader_type::item;
  using head = ticket_board::region_head;
  struct slots_in_use {
    std::size_t live = 0, erased = 0;  // erased: at most
  };

  static const options& checked(const options& options);
  static ticket_board::plan plan_for(double n, const options& options);
  static double slots_for(double n, const options& options);
  static std::size_t near_slots(const Place& place, const ticket_board::plan& plan, const options& options);
  stadium_map(const Place& place, const ticket_board::plan& plan, const options& options);
  stadium_map(const Place& place, const ticket_board::plan& plan, const options& options, detail::body_memory<item, Place>&& bodies);

  ref_type table() const {
    return {{const_cast<std::uint64_t*>(words_.data()), const_cast<head*>(heads_.data()), const_cast<std::uint32_t*>(guards_.data()),
             bodies_.near(), bodies_.far(), bodies_.near_size()},
            plan_};
  }
  /// For lookups in bulk.
  reader_type lookups() const {
    auto where = table().where();
    where.at_rest = known_.has_value();  // no ref is out that changes the map
    return {where, plan_};
  }
  std::size_t board_bytes() const { return words_.bytes() + heads_.bytes() + guards_.bytes(); }
  std::size_t limit() const { return static_cast<std::size_t>(options_.load_factor * static_cast<double>(capacity())); }
  std::size_t room() const { return limit() - detail::smaller(limit(), known_->live); }
  bool sweep_pays() const { return known_->erased - detail::smaller(known_->erased, unswept_) > (capacity() - known_->live) / 2; }
  template <class Bodies>
  detail::stadium_regions<Place> regions_for(const Place& place, std::size_t n, const bulk_options& how, bool unchanged,
                                             detail::staged_copies copies, const Bodies& bodies) const;
  template <class Queries>
  detail::stadium_regions<Place> regions_for(const Place& place, const Queries& queries, const bulk_options& how) const;

  template <class Change, class Source>
  insert_report put_all(const Place& place, const Source& source, const Change& change, const bulk_options& how);
  template <class Part>
  void put_new(const Place& place, const Part& part, path way, insert_report& report);
  template <class Change, class Source>
  void put(const Place& place, const Source& source, const Change& change, bool grows, insert_report& report);
  template <class Launch>
  void launch_put(const Place& place, array<detail::put_counts, Place>& counted, detail::put_counts& sum, insert_report& report,
                  const Launch& launch);
  template <class Change, class Parts>
  void put_streamed(const Place& place, const Parts& parts, const detail::stadium_regions<Place>& regions, const Change& change,
                    insert_report& report, bool& begun);
  void count_slots(const Place& place);
  void make_room(const Place& place, std::size_t more, insert_report& report);
  void grow(const Place& place, const ticket_board::plan& to, std::uint32_t parts);

  options options_;
  ticket_board::plan plan_;
  array<std::uint64_t, Place> words_;
  array<head, Place> heads_;
  array<std::uint32_t, Place> guards_;
  detail::body_memory<item, Place> bodies_;
  std::optional<slots_in_use> known_ = slots_in_use();
  std::size_t unswept_ = 0;  // slots of erased keys that the last sweep could not free
};

}  // namespace roost

#include "roost/detail/stadium_map.inl"
