
// concurrent_map for values of more than 8 bytes: a map to the numbers of entries, and the entries.

namespace roost {
namespace detail {

/// first, first + 1, ...
template <class Index>
struct count_from {
  Index first;
  ROOST_FN Index operator()(std::size_t i) const { return static_cast<Index>(first + i); }
};

/// Writes the values of a batch to its entries.
template <class Value, class Values, class Wanted>
struct write_entries {
  Values values;
  Wanted wanted;
  Value* to;
  ROOST_FN void operator()(std::size_t i) const {
    if (wanted(i)) to[i] = values[i];
  }
};

struct set_counter {
  std::uint64_t* counter;
  std::uint64_t value;
  ROOST_FN void operator()(std::size_t) const { *counter = value; }
};

/// insert_or_apply of a batch: the entry of the pair that comes becomes f(the one that is there, it), and
/// takes its place.
template <class Slot, class Value, class F>
struct apply_to_entries {
  static constexpr bool repeatable = false;
  ROOST_FN static constexpr bool inserts() { return true; }
  Value* values;
  F f;

  template <class Access, class Index>
  ROOST_FN bool change(typename Slot::word* at, typename Slot::word& seen, const Index& mine) const {
    const Value given = values[mine];
    const Value* const there = values + Slot::value(seen);
    observe(there);
    values[mine] = f(*there, given);
    publish(values + mine);
    const auto before =
        Access::compare_exchange(at, seen, Slot::make(Slot::key_part(seen), Slot::value_part(mine)));
    const bool done = before == seen;
    if (!done) values[mine] = given;
    seen = before;
    return done;
  }
};

/// Moves the values of the keys that are there to other entries, without gaps.
template <class Table, class Value>
struct compact_entries {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile_slots = 2048;

  Table table;
  const Value* from;
  Value* to;
  std::uint64_t* taken;

  struct pieces {
    std::uint64_t* first;  // entry of the tile
    std::uint32_t* count;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint64_t>(1), memory.take<std::uint32_t>(1)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t tile, std::byte* memory) const {
    using slot = typename Table::slot;
    scratch_memory all(memory);
    const pieces my = scratch(all);
    const std::uint64_t first = tile * tile_slots;
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile_slots, table.capacity() - first));
    if (team.rank() == 0) *my.count = 0;
    team.sync();
    for_each_of(team, n, [&](std::uint32_t i) {
      if (table.occupied(first + i)) team.fetch_add(*my.count, 1u);
    });
    team.sync();
    if (team.rank() == 0) {
      *my.first = fetch_add(*taken, std::uint64_t{*my.count});
      *my.count = 0;
    }
    team.sync();
    for_each_of(team, n, [&](std::uint32_t i) {
      if (!table.occupied(first + i)) return;
      const std::uint64_t number = *my.first + team.fetch_add(*my.count, 1u);
      to[number] = from[table.value_at(first + i)];
      auto* const word =
          &table.region_of(0)[(first + i) / Table::bucket_slots].slots[(first + i) % Table::bucket_slots];
      shared_access::set_value(word, slot::value_part(static_cast<typename Table::value_type>(number)));
    });
  }
};

/// Counts slots whose entry was not taken, or is another key's, too.
template <class Table>
struct bad_entry {
  Table table;
  std::uint64_t taken;
  std::uint32_t* keys;  // of each entry
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    if (!table.occupied(slot)) return 0;
    const std::uint64_t number = table.value_at(slot);
    return number >= taken || fetch_add(keys[number], 1u) != 0 ? 1 : 0;
  }
};

}  // namespace detail

/// concurrent_map for values of more than 8 bytes. The calls are the same; see there.
template <class Key, class Value, class Place>
  requires(sizeof(Value) > 8)
class concurrent_map<Key, Value, Place> {
  static_assert(detail::check_types<Key, Value>());
  using index = indexed::index<Key>;
  using map = concurrent_map<Key, index, Place>;
  using slots = typename map::ref_type;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using options = concurrent_options;
  using ref_type = indexed::table<Place, Key, Value>;
  using reader_type = indexed::reader<Place, Key, Value>;

  /// An empty map with room for n keys at the load factor, and entries for a quarter more. Asynchronous on
  /// cuda. Throws invalid_argument, out_of_memory.
  explicit concurrent_map(const Place& place, std::size_t n = 0, options chosen = {})
      : map_(place, n, chosen), values_(place, entries_for(static_cast<double>(n))), taken_(place, 1) {
    place.fill(taken_.data(), 0, taken_.bytes());
  }

  concurrent_map(concurrent_map&&) noexcept = default;
  concurrent_map& operator=(concurrent_map&&) noexcept = default;

  // Bulk calls that insert. Each pair takes an entry, and a batch that finds too few moves the values to a
  // new array first.

  template <class Keys, class Values>
  insert_report insert(const Place& place, const Keys& keys, const Values& values, bulk_options how = {}) {
    const auto source = detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert");
    return put_all(place, source, detail::all_wanted(), typename slots::keep(), take(place, source.size()),
                   how);
  }

  template <class Keys, class Values, class Stencil>
  insert_report insert_if(const Place& place, const Keys& keys, const Values& values, const Stencil& stencil,
                          bulk_options how = {}) {
    const auto source = detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert_if");
    const auto wanted = detail::wanted_of(stencil, source.size(), "roost::concurrent_map::insert_if");
    return put_all(place, source, wanted, typename slots::keep(), take(place, source.size()), how);
  }

  template <class Keys, class Values>
  insert_report insert_or_assign(const Place& place, const Keys& keys, const Values& values,
                                 bulk_options how = {}) {
    const auto source = detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert_or_assign");
    return put_all(place, source, detail::all_wanted(), typename slots::assign(), take(place, source.size()),
                   how);
  }

  template <class Keys, class Values, class F>
  insert_report insert_or_apply(const Place& place, const Keys& keys, const Values& values, const F& f,
                                bulk_options how = {}) {
    const auto source = detail::zip_as<Key, Value>(keys, values, "roost::concurrent_map::insert_or_apply");
    const std::uint64_t first = take(place, source.size());
    return put_all(place, source, detail::all_wanted(),
                   detail::apply_to_entries<typename slots::slot, Value, F>{values_.data(), f}, first, how);
  }

  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how = {}) {
    return map_.erase(place, keys, how);
  }

  template <class F>
  std::size_t erase_if(const Place& place, const F& f) {
    return place.sum(capacity(), detail::erase_slot_if<ref_type, F>{ref(), f});
  }

  /// Makes no room, and takes no more entries than there are.
  template <class Operations, class Results>
  void run(const Place& place, const Operations& operations, Results&& results) {
    const auto sequence = detail::sequence_as<operation<Key, Value>>(operations);
    auto* const to =
        detail::output<operation_result<Value>>(results, sequence.size(), "roost::concurrent_map::run");
    detail::run_all(place, ref(), sequence, to);
  }

  void clear(const Place& place) {
    map_.clear(place);
    place.fill(taken_.data(), 0, taken_.bytes());
  }

  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Value missing,
                   bulk_options how = {}) const {
    return detail::find_values(place, ref(), map_.bytes(), queries, results, missing, how,
                               "roost::concurrent_map::find");
  }

  template <class Queries, class Results, class Found>
    requires(!std::is_convertible_v<Found, Value>)
  bulk_report find(const Place& place, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const {
    return detail::find_values_there(place, ref(), map_.bytes(), queries, results, found, how,
                                     "roost::concurrent_map::find");
  }

  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return map_.contains(place, queries, results, how);
  }

  template <class Queries>
  std::size_t count(const Place& place, const Queries& queries) const {
    return map_.count(place, queries);
  }

  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const {
    const std::size_t n = size(place);
    Key* const keys_to = detail::output<Key>(keys, n, "roost::concurrent_map::retrieve_all");
    Value* const values_to = detail::output<Value>(values, n, "roost::concurrent_map::retrieve_all");
    detail::retrieve_pairs(place, ref(), keys_to, values_to, n);
    return n;
  }

  template <class F>
  void for_each(const Place& place, const F& f) const {
    place.for_each(capacity(), detail::visit_slot<reader_type, F>{ref(), f});
  }

  void reserve(const Place& place, std::size_t n) {
    const std::size_t live = size(place);
    const bool enough = n <= live || has_entries(n - live, taken(place));
    array<Value, Place> to(place, enough ? 0 : entries_for(static_cast<double>(n)));
    map_.reserve(place, n);
    if (!enough) move_to(place, std::move(to));
  }

  /// Puts the values into an array with entries for n and a quarter more, too.
  void rehash(const Place& place, std::size_t n = 0) {
    array<Value, Place> to(place, entries_for(static_cast<double>(std::max(n, size(place)))));
    map_.rehash(place, n);
    move_to(place, std::move(to));
  }

  void shrink_to_fit(const Place& place) { rehash(place, 0); }

  ref_type ref() {
    map_.ref();  // notes that it may change
    return table();
  }
  reader_type ref() const { return table(); }

  std::size_t size(const Place& place) const { return map_.size(place); }
  std::size_t capacity() const { return map_.capacity(); }
  std::size_t bytes() const { return map_.bytes() + values_.bytes() + taken_.bytes(); }

  concurrent_statistics statistics(const Place& place) const {
    concurrent_statistics result = map_.statistics(place);
    result.bytes = bytes();
    return result;
  }

  /// Checks that no two keys share an entry, too.
  bool valid(const Place& place) const {
    array<std::uint32_t, Place> keys(place, values_.size());
    place.fill(keys.data(), 0, keys.bytes());
    return map_.valid(place) &&
           place.sum(capacity(), detail::bad_entry<slots>{map_.table(), taken(place), keys.data()}) == 0;
  }

 private:
  static constexpr double most_entries = sizeof(index) == 4 ? 0x1p32 : 0x1p56;

  ref_type table() const {
    return {map_.table(),
            {const_cast<Value*>(values_.data()), values_.size(), const_cast<std::uint64_t*>(taken_.data())}};
  }

  /// A quarter more than n: for changes through refs, and so that batches of a part of that find room again
  /// and again.
  static std::size_t entries_for(double n) {
    const double entries = std::ceil(1.25 * n) + 16;
    detail::check_table_bytes(entries * sizeof(Value), 0, "roost::concurrent_map");
    return static_cast<std::size_t>(std::min(entries, most_entries));
  }

  std::uint64_t taken(const Place& place) const {
    std::uint64_t result = 0;
    place.copy_to_host(&result, taken_.data(), sizeof(result));
    return std::min<std::uint64_t>(result, values_.size());
  }

  /// Whether there are entries for a batch of n, and an eighth for refs, when so many are taken.
  bool has_entries(std::size_t n, std::uint64_t taken) const {
    return n <= values_.size() && taken + n + values_.size() / 8 <= values_.size();
  }

  /// Moves the values of the keys that are there.
  void move_to(const Place& place, array<Value, Place> to) {
    using kernel = detail::compact_entries<slots, Value>;
    place.fill(taken_.data(), 0, taken_.bytes());
    const kernel run{map_.table(), values_.data(), to.data(), taken_.data()};
    place.launch(detail::ceil_div<std::size_t>(capacity(), kernel::tile_slots), detail::scratch_bytes_of(run),
                 run);
    values_ = std::move(to);
  }

  /// Takes n entries for a batch, after it has made room for them if need be; returns the first.
  std::uint64_t take(const Place& place, std::size_t n) {
    std::uint64_t first = taken(place);
    const std::size_t room = values_.size();
    if (!has_entries(n, first)) {
      first = size(place);
      const double wanted = static_cast<double>(first) + static_cast<double>(n);
      const std::size_t more =
          std::max(entries_for(wanted),
                   static_cast<std::size_t>(std::min(2.0 * static_cast<double>(room), most_entries)));
      if (wanted > most_entries) {
        detail::raise<out_of_memory>(
            {"roost::concurrent_map: entries for ", wanted,
             " values asked for, and 2^32 are the most for keys of 4 bytes; insert fewer at once"});
      }
      // To move the values to as many entries as before should give an eighth of them.
      move_to(place, array<Value, Place>(place, first + n <= room - room / 4 ? room : more));
    }
    place.for_each(1, detail::set_counter{taken_.data(), first + n});
    return first;
  }

  /// `first`: of the entries that the batch has taken.
  template <class Source, class Wanted, class Change>
  insert_report put_all(const Place& place, const Source& source, const Wanted& wanted, const Change& change,
                        std::uint64_t first, const bulk_options& how) {
    using numbers = computed<detail::count_from<index>>;
    const std::size_t n = source.size();
    place.for_each(n, detail::write_entries<Value, decltype(source.values), Wanted>{source.values, wanted,
                                                                                    values_.data() + first});
    return map_.put_all(
        place,
        detail::zipped<decltype(source.keys), numbers>{source.keys, numbers(n, {static_cast<index>(first)})},
        wanted, change, how);
  }

  map map_;
  array<Value, Place> values_;
  array<std::uint64_t, Place> taken_;  // entries, more than there are if some were asked for in vain
};

}  // namespace roost
