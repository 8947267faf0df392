#pragma once

#include <iterator>
#include <optional>

#include "roost/detail/partition/select.hpp"
#include "roost/detail/table/bulk_lookup.hpp"

// Passes over all slots of any table with capacity(), occupied(), key_at(), value_at(), slot_of() and
// probes_of().

namespace roost::detail {

/// f(key, value), or f(key) for sets.
template <class F, class Ref>
ROOST_FN decltype(auto) call_with_slot(const F& f, const Ref& ref, std::size_t slot) {
  if constexpr (std::is_same_v<typename Ref::value_type, none>) {
    return f(ref.key_at(slot));
  } else {
    return f(ref.key_at(slot), ref.value_at(slot));
  }
}

template <class Ref, class F>
struct visit_slot {
  Ref ref;
  F f;
  ROOST_FN void operator()(std::size_t slot) const {
    if constexpr (requires { ref.visit(slot, f); }) {
      ref.visit(slot, f);
    } else {
      if (ref.occupied(slot)) call_with_slot(f, ref, slot);
    }
  }
};

/// An iterator over f(0), f(1), ... on the host.
template <class F>
class numbered_iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = decltype(std::declval<const F&>()(std::size_t{0}));
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = value_type;

  numbered_iterator(const F& f, std::size_t number) : f_(f), number_(number) {}
  value_type operator*() const { return f_(number_); }
  numbered_iterator& operator++() {
    ++number_;
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const numbered_iterator& a, const numbered_iterator& b) {
    return a.number_ == b.number_;
  }

 private:
  F f_;
  std::size_t number_;
};

/// An iterator over the pairs of a table on the host, or over the keys of a set. Without a table: the end.
template <class Ref>
class slot_iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using key_type = typename Ref::key_type;
  using value_type = std::conditional_t<std::is_same_v<typename Ref::value_type, none>, key_type,
                                        pair<key_type, typename Ref::value_type>>;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = value_type;

  slot_iterator(const std::optional<Ref>& table, std::uint64_t slot) : table_(table), slot_(slot) { skip(); }
  value_type operator*() const {
    if constexpr (std::is_same_v<value_type, key_type>) {
      return table_->key_at(slot_);
    } else {
      return pair_of(table_->key_at(slot_), table_->value_at(slot_));
    }
  }
  slot_iterator& operator++() {
    ++slot_;
    skip();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const slot_iterator& a, const slot_iterator& b) { return a.slot_ == b.slot_; }

 private:
  void skip() {
    while (table_ && slot_ < table_->capacity() && !table_->occupied(slot_)) ++slot_;
  }
  std::optional<Ref> table_;
  std::uint64_t slot_;
};

template <class Ref>
struct probes_of_slot {
  Ref ref;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    return ref.occupied(slot) ? ref.probes_of(ref.key_at(slot)) : 0;
  }
};

template <class Ref>
struct good_slot {  // 1 for a pair that a lookup finds in its slot; for any other, a number that no sum can
                    // hide
  Ref ref;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    if (!ref.occupied(slot)) return 0;
    return ref.slot_of(ref.key_at(slot)) == slot ? 1 : std::uint64_t{1} << 40;
  }
};

template <class Ref>
struct is_occupied {
  Ref ref;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const { return ref.occupied(slot) ? 1 : 0; }
};

/// Writes the pair of a slot. Pairs beyond the room were inserted after it was measured.
template <class Ref>
struct put_pair {
  using value = typename Ref::value_type;
  Ref ref;
  typename Ref::key_type* keys;
  value* values;  // null for sets
  std::uint64_t room;
  ROOST_FN void operator()(std::uint64_t position, std::uint64_t slot) const {
    if (position >= room) return;
    keys[position] = ref.key_at(slot);
    if constexpr (!std::is_same_v<value, none>) values[position] = ref.value_at(slot);
  }
};

/// Writes the pairs of a table, at most `room` of them. `values`: null for sets.
template <class Place, class Ref>
void retrieve_pairs(const Place& place, const Ref& ref, typename Ref::key_type* keys,
                    typename Ref::value_type* values, std::size_t room) {
  select(place, ref.capacity(), is_occupied<Ref>{ref}, put_pair<Ref>{ref, keys, values, room});
}

/// Erases the key of a slot if it is to be erased; returns 1 if so.
template <class Table, class F>
struct erase_slot_if {
  Table table;
  F f;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    if (!table.occupied(slot)) return 0;
    return call_with_slot(f, table, slot) && table.erase(table.key_at(slot)) ? 1 : 0;
  }
};

}  // namespace roost::detail
