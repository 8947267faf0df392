#pragma once

#include "roost/detail/config.hpp"

namespace roost {

/// The value of a set's keys: nothing, and it takes no room.
struct none {};

namespace detail {

template <class Key, class Value>
struct plain_pair {
  Key key;
  Value value;
};

/// 16 or 8 where that divides the size, so that a GPU moves a pair whole.
template <class Plain>
constexpr std::size_t pair_alignment = larger<std::size_t>(alignof(Plain), sizeof(Plain) % 16 == 0 ? 16 : sizeof(Plain) % 8 == 0 ? 8 : 1);

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

/// What a lookup found: nothing, or a value. Reads as std::optional does, and works on both places.
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

 private:
  Value value_;
  bool here_;
};

namespace detail {

template <class Key, class Value>
ROOST_FN pair<Key, Value> make_pair(const Key& key, const Value& value) {
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

/// The i-th pair of two sequences.
template <class Keys, class Values>
struct zipped {
  Keys keys;
  Values values;

  std::size_t size() const { return keys.size(); }
  ROOST_FN auto operator[](std::size_t i) const {
    return pair<std::remove_cvref_t<decltype(keys[i])>, std::remove_cvref_t<decltype(values[i])>>{keys[i], values[i]};
  }
};

/// The i-th key of a sequence, as a pair without a value.
template <class Keys>
struct alone {
  Keys keys;

  std::size_t size() const { return keys.size(); }
  ROOST_FN auto operator[](std::size_t i) const { return pair<std::remove_cvref_t<decltype(keys[i])>, none>{keys[i]}; }
};

}  // namespace detail
}  // namespace roost
