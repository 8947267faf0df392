#pragma once

#include "roost/roost.hpp"

// The workload that makes figures comparable: unique keys from a bijection, queries in a scrambled order, every answer checked.

namespace roost::bench {

/// key(i): the finalizer of MurmurHash3 on i + 1. Different for all i.
template <class Key>
struct make_key {
  ROOST_FN Key operator()(std::size_t i) const {
    if constexpr (sizeof(Key) == 4) {
      return mix32(static_cast<std::uint32_t>(i + 1));
    } else {
      return mix64(i + 1);
    }
  }
};

/// value(i): some function of i that is never `missing`.
template <class Value>
struct make_value {
  ROOST_FN Value operator()(std::size_t i) const { return static_cast<Value>(i * 2 + 1); }
};
template <class Value>
inline constexpr Value missing = 0;

/// Which key query i asks for: a scrambled order of 0 .. n - 1 (n a power of two); of misses the keys n .. 2 n - 1.
struct query_order {
  std::size_t n;
  std::uint32_t hits_of_64;  // so many of 64 neighbours are there

  ROOST_FN bool hit(std::size_t i) const { return (i & 63) < hits_of_64; }
  ROOST_FN std::size_t operator()(std::size_t i) const {
    const std::size_t j = (i * 2654435761u + 12345) & (n - 1);
    return hit(i) ? j : n + j;
  }
};

template <class Key>
struct fill_keys {
  Key* keys;
  ROOST_FN void operator()(std::size_t i) const { keys[i] = make_key<Key>{}(i); }
};

template <class Value>
struct fill_values {
  Value* values;
  ROOST_FN void operator()(std::size_t i) const { values[i] = make_value<Value>{}(i); }
};

template <class Key>
struct fill_queries {
  Key* queries;
  query_order order;
  ROOST_FN void operator()(std::size_t i) const { queries[i] = make_key<Key>{}(order(i)); }
};

/// 1 for a wrong answer.
template <class Value>
struct wrong_value {
  const Value* results;
  query_order order;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return results[i] != (order.hit(i) ? make_value<Value>{}(order(i)) : missing<Value>);
  }
};

struct wrong_contained {
  const bool* results;
  query_order order;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return results[i] != order.hit(i); }
};

}  // namespace roost::bench
