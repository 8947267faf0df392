#pragma once

#include "roost/detail/concurrent/indexed.hpp"
#include "roost/detail/concurrent/slot_table.hpp"

// Where the values of a concurrent_map are stored: in its slots, or, above 8 bytes, in entries of an array,
// whose numbers the slots hold. (With 2^24 values of 16 to 64 bytes on an H200, entries take three to four
// times the memory of a stadium_map; finds are 1.1 to 1.2 times as fast, batches of inserts 3 to 6 times.)
// Both have this interface:
//
//     stored                              what a slot holds
//     ref(slots), reader(slots)           the handles for users
//     store(place, slots, pairs, wanted)  the pairs of a batch with what their slots will hold
//     apply(f)                            the change that replaces a value v0 by f(v0, v) for a new value v

namespace roost::detail {

/// Values in slots.
template <class Key, class Value, class Place>
class values_in_slots {
 public:
  using stored = Value;
  using slots = slot_table<Key, stored, Place>;
  using ref_type = typename slots::table_type;
  using reader_type = typename slots::reader_type;

  values_in_slots(const Place&, std::size_t) {}

  const ref_type& ref(const slots& table) const { return table.table(); }
  const reader_type& reader(const slots& table) const { return table.reader(); }
  std::size_t bytes() const { return 0; }
  bool valid(const Place&, const slots&) const { return true; }
  void clear(const Place&) {}
  void reserve(const Place& place, slots& table, std::size_t n) { table.reserve(place, n); }
  void rehash(const Place& place, slots& table, std::size_t n) {
    table.move_to(place, static_cast<double>(n));
  }
  template <class Source, class Wanted>
  const Source& store(const Place&, const slots&, const Source& source, const Wanted&) const {
    return source;
  }
  template <class F>
  auto apply(const F& f) const {
    return typename ref_type::template apply<F>{f};
  }
};

/// Writes the values of a batch to its entries.
template <class Value, class Values, class Wanted>
struct write_entries {
  Values values;
  Wanted wanted;
  Value* target;
  ROOST_FN void operator()(std::size_t i) const {
    if (wanted(i)) target[i] = values[i];
  }
};

/// insert_or_apply of a batch: the new pair's entry becomes f(current value, new value), and replaces the
/// current entry.
template <class Slot, class Value, class F>
struct apply_to_entries {
  static constexpr bool repeatable = false;
  ROOST_FN static constexpr bool inserts() { return true; }
  Value* values;
  F f;

  template <class Access, class Index>
  ROOST_FN bool change(typename Slot::word* position, typename Slot::word& seen, const Index& mine) const {
    const Value given = values[mine];
    const Value* const there = values + Slot::value(seen);
    observe(there);
    values[mine] = f(*there, given);
    publish(values + mine);
    const auto before =
        Access::compare_exchange(position, seen, Slot::make(Slot::key_part(seen), Slot::value_part(mine)));
    const bool done = before == seen;
    if (!done) values[mine] = given;
    seen = before;
    return done;
  }
};

/// Moves the value of a slot to the entry `number`.
template <class Table, class Value>
struct move_to_entry {
  Table table;
  const Value* source;
  Value* target;

  ROOST_FN void operator()(std::uint64_t number, std::uint64_t slot) const {
    target[number] = source[table.value_at(slot)];
    auto* const word = &table.region_of(0)[slot / Table::bucket_slots].slots[slot % Table::bucket_slots];
    shared_access::set_value(word, Table::slot::value_part(static_cast<typename Table::value_type>(number)));
  }
};

/// Counts slots whose entry was never taken, or is also another key's.
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

/// Values in entries.
template <class Key, class Value, class Place>
class values_in_entries {
 public:
  using stored = indexed::index<Key>;
  using slots = slot_table<Key, stored, Place>;
  using ref_type = indexed::table<Place, Key, Value>;
  using reader_type = indexed::reader<Place, Key, Value>;

  /// Creates entries for n keys and a quarter more.
  values_in_entries(const Place& place, std::size_t n)
      : values_(place, entries_for(static_cast<double>(n))), taken_(place, 1) {
    clear(place);
  }

  ref_type ref(const slots& table) const {
    return {table.table(),
            {const_cast<Value*>(values_.data()), values_.size(), const_cast<std::uint64_t*>(taken_.data())}};
  }
  reader_type reader(const slots& table) const { return ref(table); }
  std::size_t bytes() const { return values_.bytes() + taken_.bytes(); }
  void clear(const Place& place) { place.fill(taken_.data(), 0, taken_.bytes()); }

  /// Checks that no two keys share an entry.
  bool valid(const Place& place, const slots& table) const {
    auto keys = zeros<std::uint32_t>(place, values_.size());
    using bad = bad_entry<typename slots::table_type>;
    return place.sum(table.capacity(), bad{table.table(), taken(place), keys.data()}) == 0;
  }

  void reserve(const Place& place, slots& table, std::size_t n) {
    const std::size_t live = table.size(place);
    const bool enough = n <= live || has_entries(n - live, taken(place));
    array<Value, Place> more(place, enough ? 0 : entries_for(static_cast<double>(n)));
    table.reserve(place, n, [&](const auto& target) {
      if (!enough) move(place, target, std::move(more), live);
    });
    if (!enough) table.end_refs(place);
  }
  void rehash(const Place& place, slots& table, std::size_t n) {
    const std::size_t live = table.size(place);
    array<Value, Place> others(place, entries_for(static_cast<double>(std::max(n, live))));
    table.move_to(place, static_cast<double>(n), false,
                  [&](const auto& target) { move(place, target, std::move(others), live); });
  }

  /// Each pair takes an entry. If there are too few for the batch, the values are first moved to a new array.
  template <class Source, class Wanted>
  auto store(const Place& place, slots& table, const Source& source, const Wanted& wanted) {
    using numbers = computed<number<stored>>;
    const std::size_t n = source.size(), first = take(place, table, n);
    place.for_each(n, write_entries<Value, decltype(source.values), Wanted>{source.values, wanted,
                                                                            values_.data() + first});
    return zipped<decltype(source.keys), numbers>{source.keys, numbers(n, {static_cast<stored>(first)})};
  }
  template <class F>
  auto apply(const F& f) {
    return apply_to_entries<typename slots::table_type::slot, Value, F>{values_.data(), f};
  }

 private:
  static constexpr double most_entries = sizeof(stored) == 4 ? 0x1p32 : 0x1p56;

  /// A quarter more than n: for changes through refs, and so that several smaller batches find room.
  static std::size_t entries_for(double n) {
    const double entries = std::ceil(1.25 * n) + 16;
    check_table_bytes(entries * sizeof(Value), 0, "roost::concurrent_map");
    return static_cast<std::size_t>(std::min(entries, most_entries));
  }

  std::uint64_t taken(const Place& place) const {
    return std::min<std::uint64_t>(read_one(place, taken_.data()), values_.size());
  }

  /// Whether there are entries for a batch of n, and an eighth for refs, if `taken` entries are in use.
  bool has_entries(std::size_t n, std::uint64_t taken) const {
    return n <= values_.size() && taken + n + values_.size() / 8 <= values_.size();
  }

  /// Moves the values of the `live` present keys to other entries, without gaps.
  void move(const Place& place, const typename slots::table_type& table, array<Value, Place> others,
            std::size_t live) {
    using table_type = typename slots::table_type;
    select(place, table.capacity(), is_occupied<table_type>{table},
           move_to_entry<table_type, Value>{table, values_.data(), others.data()});
    write_one(place, taken_.data(), std::uint64_t{live});
    values_ = std::move(others);
  }

  /// Takes n entries, making room for them first if necessary; returns the first.
  std::uint64_t take(const Place& place, slots& table, std::size_t n) {
    std::uint64_t first = taken(place);
    const std::size_t room = values_.size();
    if (!has_entries(n, first)) {
      first = table.size(place);
      const double wanted = static_cast<double>(first) + static_cast<double>(n);
      const std::size_t more =
          std::max(entries_for(wanted),
                   static_cast<std::size_t>(std::min(2.0 * static_cast<double>(room), most_entries)));
      if (wanted > most_entries) {
        raise<out_of_memory>({"roost::concurrent_map: entries for ", wanted,
                              " values; with keys of 4 bytes there are at most 2^32; insert fewer at once"});
      }
      // Moving the values to the same number of entries is worthwhile only if it frees an eighth of them.
      move(place, table.table(), array<Value, Place>(place, first + n <= room - room / 4 ? room : more),
           first);
      table.end_refs(place);
    }
    write_one(place, taken_.data(), first + n);
    return first;
  }

  array<Value, Place> values_;
  array<std::uint64_t, Place> taken_;  // entries; exceeds their number after requests that found none
};

template <class Key, class Value, class Place>
using values_of_map = std::conditional_t<(sizeof(Value) > 8), values_in_entries<Key, Value, Place>,
                                         values_in_slots<Key, Value, Place>>;

}  // namespace roost::detail
