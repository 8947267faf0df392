#pragma once

#include <cstring>

#include "roost/detail/place/sequence.hpp"
#include "roost/error.hpp"
#include "roost/fwd.hpp"

namespace roost {

namespace detail {

template <class Key, class Value>
struct plain_pair {
  Key key;
  Value value;
};

/// 16 or 8 if that divides the size, so that a GPU moves a pair with one instruction.
template <class Plain>
constexpr std::size_t pair_alignment = larger<std::size_t>(alignof(Plain), sizeof(Plain) % 16 == 0  ? 16
                                                                           : sizeof(Plain) % 8 == 0 ? 8
                                                                                                    : 1);

}  // namespace detail

/// A key and its value.
template <class Key, class Value>
struct alignas(detail::pair_alignment<detail::plain_pair<Key, Value>>) pair {
  Key key;
  Value value;
};

template <class Key>
struct pair<Key, none> {
  Key key;
};

/// The result of a lookup: a value, or nothing. It is used like a std::optional, and works on both places.
///
///     if (auto v = ref.find(key)) use(*v);
template <class Value>
class found {
 public:
  ROOST_FN found() : value_{}, here_(false) {}
  ROOST_FN explicit found(const Value& value) : value_(value), here_(true) {}

  ROOST_FN explicit operator bool() const { return here_; }
  ROOST_FN bool has_value() const { return here_; }
  ROOST_FN const Value& operator*() const { return value_; }
  ROOST_FN const Value* operator->() const { return &value_; }
  ROOST_FN Value value_or(const Value& other) const { return here_ ? value_ : other; }
  /// The value. Throws invalid_argument if there is none; a kernel ends.
  ROOST_FN const Value& value() const {
    if (!here_) refuse();
    return value_;
  }
  /// f(value), or nothing.
  template <class F>
  ROOST_FN auto transform(const F& f) const {
    using result = found<std::remove_cvref_t<decltype(f(value_))>>;
    return here_ ? result(f(value_)) : result();
  }
  /// Two are equal if neither has a value, or if both have equal ones.
  ROOST_FN friend bool operator==(const found& a, const found& b)
    requires std::equality_comparable<Value>
  {
    return a.here_ == b.here_ && (!a.here_ || a.value_ == b.value_);
  }
  ROOST_FN friend bool operator==(const found& a, const Value& b)
    requires std::equality_comparable<Value>
  {
    return a.here_ && a.value_ == b;
  }

 private:
  ROOST_RARE_FN static void refuse() {
#if ROOST_ON_DEVICE
    __trap();
#else
    detail::raise<invalid_argument>(
        {"roost::found::value: the key is absent; test has_value(), or call value_or()"});
#endif
  }
  Value value_;
  bool here_;
};

/// The row number that means "no row": left_join pairs it with left rows without a match, and
/// coordinate_index returns it for absent voxels.
template <class Row>
inline constexpr Row no_row = static_cast<Row>(~Row{0});

namespace detail {

/// Values of more bytes are too large to be moved repeatedly: builds and lookups move their positions
/// instead, and copy each value once.
inline constexpr std::size_t large_value_bytes = 32;

template <class Value>
inline constexpr bool is_large_value = sizeof(Value) > large_value_bytes;

/// Tables whose values are too large for lookups to return: lookups return slots, and the values are copied
/// from there.
template <class Ref>
concept has_large_values =
    is_large_value<typename Ref::value_type> && requires(const Ref& ref) { ref.value_address(0); };

/// The pieces in which many workers copy large values side by side.
template <class Value>
struct value_pieces {
  using word = std::conditional_t<alignof(Value) % 8 == 0, std::uint64_t,
                                  std::conditional_t<alignof(Value) % 4 == 0, std::uint32_t, std::uint8_t>>;
  static constexpr std::size_t count = sizeof(Value) / sizeof(word);

  /// Copies piece i. (A GPU would copy it byte by byte if the compiler did not know its alignment.)
  ROOST_FN static void copy(const Value* source, Value* target, std::size_t i) {
    const char* const from = reinterpret_cast<const char*>(source) + i * sizeof(word);
    char* const to = reinterpret_cast<char*>(target) + i * sizeof(word);
    word piece;
    memcpy(&piece, __builtin_assume_aligned(from, sizeof(word)), sizeof(word));
    memcpy(__builtin_assume_aligned(to, sizeof(word)), &piece, sizeof(word));
  }
};

template <class Key, class Value>
ROOST_FN pair<Key, Value> pair_of(const Key& key, const Value& value) {
  if constexpr (std::is_same_v<Value, none>) {
    static_cast<void>(value);
    return {key};
  } else {
    return {key, value};
  }
}

template <class Key, class Value>
ROOST_FN Value value_of(const pair<Key, Value>& item) {
  if constexpr (std::is_same_v<Value, none>) {
    return {};
  } else {
    return item.value;
  }
}

/// The key, and the value, of pair i.
template <class Item>
struct key_of_item {
  const Item* items;
  ROOST_FN auto operator()(std::size_t i) const { return items[i].key; }
};
template <class Item>
struct value_of_item {
  const Item* items;
  ROOST_FN auto operator()(std::size_t i) const { return items[i].value; }
};

/// The i-th pair of two sequences.
template <class Keys, class Values>
struct zipped {
  Keys keys;
  Values values;

  std::size_t size() const { return keys.size(); }
  ROOST_FN auto operator[](std::size_t i) const {
    return pair<std::remove_cvref_t<decltype(keys[i])>, std::remove_cvref_t<decltype(values[i])>>{keys[i],
                                                                                                  values[i]};
  }
};
template <class Keys, class Values>  // which clang 16 does not find; nor the next one
zipped(Keys, Values) -> zipped<Keys, Values>;

template <class Keys, class Values>
auto slice(const zipped<Keys, Values>& all, std::size_t first, std::size_t count) {
  return zipped{slice(all.keys, first, count), slice(all.values, first, count)};
}

/// The i-th key of a sequence, as a pair without a value.
template <class Keys>
struct alone {
  Keys keys;

  std::size_t size() const { return keys.size(); }
  ROOST_FN auto operator[](std::size_t i) const {
    return pair<std::remove_cvref_t<decltype(keys[i])>, none>{keys[i]};
  }
};
template <class Keys>
alone(Keys) -> alone<Keys>;

/// The keys of a range for a table of Key, as pairs without values.
template <class Key, class Keys>
auto alone_as(const Keys& keys) {
  return alone<sequence_as_of<Key, Keys>>{sequence_as<Key>(keys)};
}

/// The pairs of two ranges of equal length, for a table of Key and Value.
template <class Key, class Value, class Keys, class Values>
auto zip_as(const Keys& keys, const Values& values, const char* where) {
  const zipped<sequence_as_of<Key, Keys>, sequence_as_of<Value, Values>> source{sequence_as<Key>(keys),
                                                                                sequence_as<Value>(values)};
  if (source.keys.size() != source.values.size()) {
    raise<invalid_argument>({where, ": ", source.keys.size(), " keys but ", source.values.size(),
                             " values; give one value a key"});
  }
  return source;
}

/// The same with the types of the ranges.
template <class Keys, class Values>
auto zip_checked(const Keys& keys, const Values& values, const char* where) {
  return zip_as<element_of<Keys>, element_of<Values>>(keys, values, where);
}

}  // namespace detail
}  // namespace roost
