#pragma once

#include "roost/detail/concurrent/probing.hpp"

/// \file
/// Layout `indexed`: slots of layout probing that hold the entry number of a value of any size.

namespace roost {

/// Values of any size. The slot of a key holds the number of an entry in an array beside the table. One
/// thread takes an entry from a counter and writes it before a slot refers to it; then the entry never
/// changes. A key gets another value by taking another entry. So no reader sees a partly written value, and a
/// slot never holds the same number twice. But entries of overwritten values, of erased keys and of inserts
/// that lost a race leak until concurrent_map moves the values to a new array.
struct indexed {
  static constexpr const char* name = "indexed";

  /// The number of an entry: 4 bytes for keys of up to 4 bytes, so that their slots have 8 bytes.
  template <class Key>
  using index = std::conditional_t<sizeof(Key) <= 4, std::uint32_t, std::uint64_t>;
  template <class Place, class Key>
  using slots = probing::table<Place, Key, index<Key>>;

  /// Where the values are stored, in memory of the place.
  template <class Value>
  struct entries {
    Value* values;
    std::uint64_t room;
    std::uint64_t* taken;  // exceeds `room` after requests that found no free entry
  };

  template <class Place, class Key, class Value>
  class reader;
  template <class Place, class Key, class Value>
  class table;
};

/// Like probing::reader.
template <class Place, class Key, class Value>
class indexed::reader : protected indexed::slots<Place, Key> {
 protected:
  using key_slots = slots<Place, Key>;

 public:
  using key_type = Key;
  using value_type = Value;
  using hit = detail::hit<Value>;
  using index_type = index<Key>;

  reader(const key_slots& keys, const entries<Value>& values) : key_slots(keys), entries_(values) {}

  /// The value of a key, or nothing.
  ROOST_FN found<Value> find(const Key& key) const { return find(one_lane(), key); }
  /// The same for lanes that share the work: all of them call it with the same key and get the same answer.
  template <class Lanes>
  ROOST_FN found<Value> find(const Lanes& lanes, const Key& key) const {
    return at(lanes, key_slots::find(lanes, key));
  }
  ROOST_DELETE_IF_IT_CHANGES_THE_KEY(find);

  // As in probing::reader.
  using key_slots::contains, key_slots::prefetch, key_slots::hash_order, key_slots::capacity,
      key_slots::slot_of, key_slots::no_slot, key_slots::probes_of, key_slots::occupied, key_slots::taken,
      key_slots::key_at, key_slots::expect_alive;
  ROOST_FN Value value_at(std::uint64_t number) const {
    return value_of(one_lane(), key_slots::value_at(number));
  }

  // Lookups in steps: those of the slots.

  static constexpr detail::bulk_drivers drivers{.defers = true};
  using key_slots::with_format, key_slots::start, key_slots::read, key_slots::match, key_slots::passed,
      key_slots::fetch;
  using typename key_slots::reading_cursor;

  template <class Access>
  ROOST_FN void take(Access access, const reading_cursor& cursor, int s, hit& result) const {
    detail::hit<index_type> number;
    key_slots::take(access, cursor, s, number);
    if (number) result = {value_of(one_lane(), *number), number.slot, number.probes};
  }
  template <class Access>
  ROOST_FN bool goes_on(Access access, reading_cursor& cursor, hit&) const {
    detail::hit<index_type> none;
    return key_slots::goes_on(access, cursor, none);
  }

 protected:
  template <class Lanes>
  ROOST_FN Value value_of(const Lanes& lanes, index_type number) const {
    const Value* const source = entries_.values + number;
    detail::observe(source);
    lanes.sync();  // one lane has read the slot
    return *source;
  }
  template <class Lanes>
  ROOST_FN found<Value> at(const Lanes& lanes, const found<index_type>& number) const {
    return number ? found<Value>(value_of(lanes, *number)) : found<Value>();
  }

  entries<Value> entries_;
};

/// Like probing::table. A change that finds no free entry also returns `full`.
template <class Place, class Key, class Value>
class indexed::table : public indexed::reader<Place, Key, Value> {
  using base = reader<Place, Key, Value>;
  using typename base::index_type;
  using typename base::key_slots;

 public:
  using base::base;

  /// Stores a pair unless the key is present. Takes an entry only if the key is absent.
  ROOST_FN insertion insert(const Key& key, const Value& value) const {
    return insert(one_lane(), key, value);
  }
  template <class Lanes>
  ROOST_FN insertion insert(const Lanes& lanes, const Key& key, const Value& value) const {
    if (key_slots::contains(lanes, key)) return insertion::present;
    const auto mine = store(lanes, value);
    return mine ? key_slots::insert(lanes, key, *mine) : insertion::full;
  }

  /// Stores a pair, or gives a present key another value. Takes an entry.
  ROOST_FN insertion insert_or_assign(const Key& key, const Value& value) const {
    return insert_or_assign(one_lane(), key, value);
  }
  template <class Lanes>
  ROOST_FN insertion insert_or_assign(const Lanes& lanes, const Key& key, const Value& value) const {
    const auto mine = store(lanes, value);
    return mine ? key_slots::insert_or_assign(lanes, key, *mine) : insertion::full;
  }

  /// Stores a pair; if the key is present with value v0, the value becomes f(v0, value). `f` may be called
  /// more than once for one change. Takes an entry.
  template <class F>
  ROOST_FN insertion insert_or_apply(const Key& key, const Value& value, const F& f) const {
    return insert_or_apply(one_lane(), key, value, f);
  }
  template <class Lanes, class F>
  ROOST_FN insertion insert_or_apply(const Lanes& lanes, const Key& key, const Value& value,
                                     const F& f) const {
    const auto mine = take(lanes);
    if (!mine) return insertion::full;
    for (;;) {
      const auto there = key_slots::find(lanes, key);
      if (!there) {
        write(lanes, *mine, [&] { return value; });
        const insertion what = key_slots::insert(lanes, key, *mine);
        if (what != insertion::present) return what;
      } else {
        const Value before = this->value_of(lanes, *there);
        write(lanes, *mine, [&] { return f(before, value); });
        if (key_slots::replace(lanes, key, *there, *mine))
          return insertion::present;  // entry numbers are never reused, so the value has not changed since
      }
    }
  }

  using inserted_or_found = roost::inserted_or_found<Value>;
  /// Stores a pair unless the key is present, and returns the value that the key has afterwards. Takes an
  /// entry only if the key is absent.
  ROOST_FN inserted_or_found insert_and_find(const Key& key, const Value& value) const {
    return insert_and_find(one_lane(), key, value);
  }
  template <class Lanes>
  ROOST_FN inserted_or_found insert_and_find(const Lanes& lanes, const Key& key, const Value& value) const {
    if (const auto there = this->find(lanes, key)) return {insertion::present, *there};
    const auto mine = store(lanes, value);
    if (!mine) return {insertion::full, value};
    const auto done = key_slots::insert_and_find(lanes, key, *mine);
    return {done.what, done.what == insertion::present ? this->value_of(lanes, done.value) : value};
  }

  /// Erases a key; false if it is absent. Its slot stays reserved for the key, and its entry unused, until a
  /// bulk call frees them.
  ROOST_FN bool erase(const Key& key) const { return key_slots::erase(key); }
  template <class Lanes>
  ROOST_FN bool erase(const Lanes& lanes, const Key& key) const {
    return key_slots::erase(lanes, key);
  }
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(insert, insert_or_assign);
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(insert_or_apply, insert_and_find);
  ROOST_DELETE_IF_IT_CHANGES_THE_KEY(erase);

 private:
  template <class Lanes>
  ROOST_FN found<index_type> take(const Lanes& lanes) const {
    std::uint64_t number = 0;
    if (lanes.rank() == 0) number = detail::fetch_add(*this->entries_.taken, std::uint64_t{1});
    number = lanes.from_lane(0, number);
    return number < this->entries_.room ? found<index_type>(static_cast<index_type>(number))
                                        : found<index_type>();
  }
  template <class Lanes, class Make>
  ROOST_FN void write(const Lanes& lanes, index_type number, const Make& make) const {
    if (lanes.rank() == 0) {
      Value* const target = this->entries_.values + number;
      *target = make();
      detail::publish(target);
    }
    lanes.sync();  // any lane may change the slot
  }
  template <class Lanes>
  ROOST_FN found<index_type> store(const Lanes& lanes, const Value& value) const {
    const auto mine = take(lanes);
    if (mine) write(lanes, *mine, [&] { return value; });
    return mine;
  }
};

}  // namespace roost
