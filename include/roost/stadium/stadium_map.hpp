#pragma once

#include <numeric>
#include <optional>
#include <vector>

#include "roost/detail/table/bulk_change.hpp"
#include "roost/stadium/detail/kernels.hpp"
#include "roost/stadium/detail/streaming.hpp"

/// \file
/// stadium_map: keys and values of any size, in GPU memory, in host memory behind it, or in both.

namespace roost {

namespace detail {
template <class Key, class Value, class Place>
struct stadium_file;
}

/// Where a stadium_map stores its bodies: the keys and values of its slots.
enum class residence : std::uint8_t {
  automatic,  ///< in memory of the place up to the budget, the rest in host memory
  place,      ///< in memory of the place
  /// In host memory, pinned for a GPU. A table can grow there without a second one. On the host place: memory
  /// from the system instead of the place's memory resource.
  host
};

/// Options of stadium_map.
struct stadium_options {
  /// The share of the slots, in (0, 1], that keys may occupy before bulk calls make room. A lookup of an
  /// absent key reads about 1 / (1 - load factor) tickets. Near 1 it reads all tickets of a region. In a
  /// table that is full to the last slot it reads those of many regions, because the last keys were stored
  /// far from their home slots. If you look up absent keys, leave some slots free or use a single region
  /// (region_slots).
  double load_factor = 0.8;
  /// 1, 2, 4 or 8. One bit says whether a slot is available; the others tell keys apart. A lookup reads the
  /// body of another key for one in 2^(ticket_bits - 1) of the tickets that it passes. The board takes 2,
  /// 3.05, 5.33 or 9.14 bits per slot.
  int ticket_bits = 8;
  residence bodies = residence::automatic;
  /// How many bytes of the place's memory keys and values may take if `bodies` is automatic. By default three
  /// quarters of the free memory on a GPU, and all of it on a host.
  std::size_t budget = ~std::size_t{0};
  /// Chooses the hash function.
  std::uint64_t seed = 0;
  /// Whether bulk inserts move the keys to a larger table when there is no room. If not, keys that find no
  /// room are counted as `full`.
  bool grows = true;
  /// Approximate number of slots of a region; 0: chosen for the place. A number larger than the table makes
  /// it a single region, as in the paper.
  std::uint32_t region_slots = 0;
};

/// Figures about a stadium_map.
struct stadium_statistics {
  std::size_t size = 0;      ///< keys
  std::size_t erased = 0;    ///< slots of erased keys
  std::size_t capacity = 0;  ///< slots
  std::size_t regions = 0;
  double load_factor = 0;  ///< size / capacity
  /// Tickets, and the state of regions and of keys that are being changed, in memory of the place.
  std::size_t board_bytes = 0;
  std::size_t place_bytes = 0;  ///< bodies in memory of the place
  std::size_t host_bytes = 0;   ///< bodies in host memory
};

/// The total cost of the lookups of a batch of keys.
struct lookup_costs {
  std::size_t queries = 0;
  std::size_t found = 0;
  std::size_t tickets = 0;         ///< tickets read
  std::size_t bodies = 0;          ///< bodies read
  std::size_t without_bodies = 0;  ///< queries that needed tickets only
  std::size_t most_tickets = 0;    ///< most tickets read by one query
  /// Bodies read that belonged to another key.
  std::size_t false_candidates() const { return bodies - found; }
};

/// A hash map for keys and values of any size, and for tables that are larger than GPU memory, after Stadium
/// hashing (F. Khorasani et al., 2015). A board of small tickets in memory of the place usually shows where a
/// key is, or that it is absent. The pairs (bodies) are stored separately, in memory of the place or of the
/// host. Any number of threads can change and query the map at the same time, from kernels and from the host,
/// one key at a time or in bulk. For keys and values of up to 8 bytes in GPU memory, a concurrent_map is
/// faster.
///
///     roost::stadium_map<std::uint64_t, record, roost::cuda> map(gpu, 1000000000,
///                                                                {.budget = std::size_t{20} << 30});
///     map.insert(gpu, keys, records);                             // in bulk
///     map.find(gpu, queries, results, missing);
///     auto ref = map.ref();                                       // in kernels, all at once:
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
template <class Key, class Value, class Place = host>
class stadium_map {
  static_assert(detail::check_types<Key, Value>());

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = stadium_options;
  using ref_type = ticket_board::table<Place, Key, Value>;
  using reader_type = ticket_board::reader<Place, Key, Value>;

  /// Creates an empty map with room for n keys at the load factor. Asynchronous on cuda, except for
  /// allocating pinned host memory, which takes 0.05 s per GiB with 16 processors and 0.2 s with one. Throws
  /// invalid_argument, out_of_memory.
  explicit stadium_map(const Place& place, std::size_t n = 0, options chosen = {});

  stadium_map(stadium_map&&) noexcept = default;
  stadium_map& operator=(stadium_map&&) noexcept = default;

  // Bulk inserts. Keys and values: sized random-access ranges of equal length in the memory of the place. All
  // synchronise, and throw invalid_argument, out_of_memory.

  /// Stores pairs whose keys must all be distinct and absent, which is not checked: the insert of the paper,
  /// which reads no body. (valid() detects a broken promise.)
  template <class Keys, class Values>
  insert_report insert_new(const Place& place, const Keys& keys, const Values& values, bulk_options how = {});

  /// Stores each pair whose key is absent. If a key appears several times in a batch, it is not defined which
  /// of its pairs is stored.
  template <class Keys, class Values>
  insert_report insert(const Place& place, const Keys& keys, const Values& values, bulk_options how = {});

  /// Stores each pair; present keys get the new value. If a key appears several times in a batch, it is not
  /// defined which of its values it keeps.
  template <class Keys, class Values>
  insert_report insert_or_assign(const Place& place, const Keys& keys, const Values& values,
                                 bulk_options how = {});

  /// Stores each pair; if the key is present with value v0, the value becomes f(v0, v). f: roost::plus,
  /// minimum, maximum, or any function of two values that does not throw and gives the same result in
  /// whatever order the copies of a key come. Copies of a key are processed one by one. If there are many
  /// copies, use a concurrent_map or group_by.
  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Place& place, const Keys& keys, const Values& values, const F& f,
                                bulk_options how = {});

  /// Removes keys; returns how many were present. Synchronises.
  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {});

  /// Removes the pairs for which f(key, value) is true; returns how many. Reads all bodies. Synchronises.
  template <class F>
  std::size_t erase_if(const Place& place, const F& f);

  /// Runs a mixed batch of operations at the same time. results[i] is the result of operations[i], as if they
  /// had been executed sequentially in some order. Makes no room. Operations and results: contiguous memory
  /// of the place, with elements operation<Key, Value> and operation_result<Value>. Never streamed.
  /// Asynchronous on cuda.
  template <class Operations, class Results>
  bulk_report run(const Place& place, const Operations& operations, Results&& results, bulk_options how = {});

  /// Removes all keys. Asynchronous on cuda.
  void clear(const Place& place);

  /// Moves keys back along their probe sequences to slots of erased keys, and marks slots of erased keys that
  /// no key passes as never used. Lookups of absent keys cost less after it. Reads the keys of all regions
  /// with erased keys. Bulk inserts call it when erased keys occupy half of the slots that hold no key.
  /// Synchronises.
  void sweep(const Place& place);

  /// results[i] = the value of queries[i], or `missing`. See frozen_map::find. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const;

  /// found[i] = whether queries[i] is present, as bool; if so, results[i] = its value. Other results are
  /// unchanged. Asynchronous on cuda.
  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const;

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const;

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const;
  /// The former name of count_found.
  template <class Queries>
  [[deprecated("call count_found")]] std::size_t count(const Place& place, const Queries& queries) const {
    return count_found(place, queries);
  }

  /// Writes all pairs, in no defined order, to memory of the place with room for all of them
  /// (invalid_argument otherwise); returns how many. Must not overlap with changes: some pairs would be
  /// missing. Synchronises.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const;

  /// Calls f(key, value) for every pair, in parallel on the place, in no defined order. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const;

  /// Makes room for n keys at the load factor, including those already present. Synchronises. Throws
  /// out_of_memory; the map is then unchanged.
  void reserve(const Place& place, std::size_t n);

  /// Moves all keys region by region to a table with room for n keys, or for the present keys if there are
  /// more of them. Erased keys are left behind.
  ///
  /// A table that becomes larger grows in place if it has 64 regions or more and bodies in host memory. This
  /// takes as much host memory as the larger table needs, and memory of the place for both boards and some
  /// hundredths of the bodies. If the table has hundreds of regions, the number of slots is at least the
  /// requested one and at most an eighth more. The part of the bodies in memory of the place does not grow.
  /// In all other cases both tables take memory until the move is complete. Synchronises; throws as reserve
  /// does.
  void rehash(const Place& place, std::size_t n = 0);

  /// Makes the table as small as its keys allow.
  void shrink_to_fit(const Place& place) { rehash(place, 0); }

  /// The handle for kernels and host loops, with all operations. This call records that the map may change,
  /// so it counts as a member that changes the map, and must not overlap with other members. A bulk lookup is
  /// in progress until it has finished on its stream: synchronise first. Take a new ref after any other
  /// member that changes the map, even one that threw: the keys may have moved, and bulk lookups assume that
  /// older refs make no changes.
  ref_type ref() {
    known_ = std::nullopt;
    return table();
  }
  /// A handle with lookups only. The call records nothing, so any number of threads may call it. It costs
  /// nothing and never throws. Take a new one whenever you would take a new ref for changes.
  reader_type ref() const { return table(); }

  /// Returns the number of keys. Reads the board. Synchronises.
  std::size_t size(const Place& place) const;
  /// The number of slots, all of which keys can use. Needs no access to the place and never throws. Changes
  /// through refs do not affect it.
  std::size_t capacity() const { return plan_.slots(); }
  /// Bytes of the board and of all bodies, in memory of the place and of the host together (statistics()
  /// lists them separately). Otherwise as capacity().
  std::size_t bytes() const { return board_bytes() + bodies_.bytes(); }

  /// Reads the board. Synchronises.
  stadium_statistics statistics(const Place& place) const;

  /// Returns what lookups of these keys cost. Synchronises.
  template <class Queries>
  lookup_costs costs(const Place& place, const Queries& queries) const;

  /// Checks the invariants: each key is found where it is stored, no ticket is between two states, and no
  /// ticket lies outside the slots. Looks up every key. Must not overlap with changes. Synchronises.
  bool valid(const Place& place) const;

 private:
  friend struct detail::stadium_file<Key, Value, Place>;
  friend struct detail::tile_inserter;
  using item = typename reader_type::item;
  using head = ticket_board::region_head;
  struct slots_in_use {
    std::size_t live = 0, erased = 0;  // erased: at most
  };

  static const options& checked(const options& options);
  static ticket_board::plan plan_for(double n, const options& options);
  static double slots_for(double n, const options& options);
  static std::size_t near_slots(const Place& place, const ticket_board::plan& plan, const options& options);
  stadium_map(const Place& place, const ticket_board::plan& plan, const options& chosen);
  stadium_map(const Place& place, const ticket_board::plan& plan, const options& chosen,
              detail::body_memory<item, Place>&& bodies);

  ref_type table() const {
    return {{const_cast<std::uint64_t*>(words_.data()), const_cast<head*>(heads_.data()),
             const_cast<std::uint32_t*>(guards_.data()), bodies_.near(), bodies_.far(), bodies_.near_size()},
            plan_};
  }
  /// For bulk lookups.
  reader_type lookups() const {
    auto where = table().where();
    where.at_rest = known_.has_value();  // no ref for changes exists
    return {where, plan_};
  }
  std::size_t board_bytes() const { return words_.bytes() + heads_.bytes() + guards_.bytes(); }
  std::size_t limit() const {
    return static_cast<std::size_t>(options_.load_factor * static_cast<double>(capacity()));
  }
  std::size_t room() const { return limit() - detail::smaller(limit(), known_->live); }
  bool sweep_pays() const {
    return known_->erased - detail::smaller(known_->erased, unswept_) > (capacity() - known_->live) / 2;
  }
  template <class Bodies>
  detail::stadium_regions<Place> regions_for(const Place& place, std::size_t n, const bulk_options& how,
                                             bool unchanged, detail::staged_copies copies,
                                             const Bodies& bodies) const;
  template <class Queries>
  detail::stadium_regions<Place> regions_for(const Place& place, const Queries& queries,
                                             const bulk_options& how) const;

  template <class Change, class Source>
  insert_report put_all(const Place& place, const Source& source, const Change& change,
                        const bulk_options& how);
  template <class Change, class Source>
  void put(const Place& place, const Source& source, const Change& change, bool grows, insert_report& report);
  detail::board_filler<ref_type> inserter() const { return {table()}; }
  template <class Launch>
  void launch_put(const Place& place, array<detail::put_counts, Place>& counted, detail::put_counts& sum,
                  insert_report& report, const Launch& launch);
  template <class Change, class Parts>
  void put_streamed(const Place& place, const Parts& parts, const detail::stadium_regions<Place>& regions,
                    const Change& change, insert_report& report, bool& begun);
  void count_slots(const Place& place);
  void make_room(const Place& place, std::size_t more, insert_report& report);
  void grow(const Place& place, const ticket_board::plan& target, std::uint32_t parts);

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

#include "roost/stadium/detail/map.hpp"
