#pragma once

#include <algorithm>
#include <bit>

#include "roost/roost.hpp"

// The workload that makes figures comparable: unique keys from a bijection, scrambled or skewed queries,
// every answer checked.

namespace roost::bench {

/// The pattern of keys. All are distinct for indices below 2 n.
enum class key_pattern {
  mixed,        ///< key(i) is the finalizer of MurmurHash3 on i + 1
  consecutive,  ///< key(i) is i + 1
  strided,  ///< multiples of 2^(half of the bits), or of the largest power of two with which 2 n of them fit
  voxels    ///< x, y, z of a full box of 2 n cells, packed with a third of the bits each; the last n are the
            ///< half with larger z
};

/// 2 n keys of a pattern are distinct up to this log2 of n.
inline int log2_most_keys(key_pattern pattern, int key_bits) {
  switch (pattern) {
    case key_pattern::strided:
      return key_bits - 2;  // a stride of 1 would be consecutive
    case key_pattern::voxels:
      return key_bits / 3 * 3 - 1;
    default:
      return key_bits - 1;
  }
}

/// key(i) of a pattern; n, a power of two, may be left out for mixed keys.
template <class Key>
struct make_key {
  static constexpr int key_bits = sizeof(Key) * 8, axis_bits = key_bits / 3;
  key_pattern pattern = key_pattern::mixed;
  int stride_bits = 0;
  int x_bits = 0, y_bits = 0;  // of the box of voxels

  make_key() = default;
  make_key(key_pattern pattern, std::size_t n) : pattern(pattern) {
    const int index_bits = static_cast<int>(std::bit_width(n));  // of 2 n indices
    stride_bits = std::min(key_bits / 2, key_bits - index_bits);
    x_bits = (index_bits + 2) / 3;
    y_bits = (index_bits + 1) / 3;
  }

  ROOST_FN Key operator()(std::size_t i) const {
    switch (pattern) {
      case key_pattern::consecutive:
        return static_cast<Key>(i + 1);
      case key_pattern::strided:
        return static_cast<Key>(i << stride_bits);
      case key_pattern::voxels: {
        const std::size_t x = i & ((std::size_t{1} << x_bits) - 1);
        const std::size_t y = (i >> x_bits) & ((std::size_t{1} << y_bits) - 1);
        const std::size_t z = i >> (x_bits + y_bits);
        return static_cast<Key>(x | y << axis_bits | z << 2 * axis_bits);
      }
      default:
        if constexpr (sizeof(Key) == 4) {
          return mix32(static_cast<std::uint32_t>(i + 1));
        } else {
          return mix64(i + 1);
        }
    }
  }
};

/// value(i): a function of i that is never `missing`.
template <class Value>
struct make_value {
  ROOST_FN Value operator()(std::size_t i) const { return static_cast<Value>(i * 2 + 1); }
};
template <class Value>
inline constexpr Value missing = 0;

/// How often keys are queried.
enum class query_pattern {
  shuffled,  ///< each once
  zipf,      ///< the one of rank k (from 1) in proportion to 1 / k
  equal      ///< always the same one
};

/// The key of query i: its rank, mapped to a scrambled order of 0 .. n - 1; for misses, of n .. 2 n - 1.
/// `first` is added to all.
struct query_order {
  std::size_t n;
  std::uint32_t hits_of_64;  // how many of 64 neighbours are present
  query_pattern pattern;
  std::uint32_t octaves;
  std::size_t first = 0;

  query_order(std::size_t n, std::uint32_t hits_of_64, query_pattern pattern = query_pattern::shuffled)
      : n(n),
        hits_of_64(hits_of_64),
        pattern(pattern),
        octaves(static_cast<std::uint32_t>(std::bit_width(n))) {}

  ROOST_FN bool hit(std::size_t i) const { return (i & 63) < hits_of_64; }
  ROOST_FN std::size_t operator()(std::size_t i) const {
    const std::size_t rank = pattern == query_pattern::shuffled ? i
                             : pattern == query_pattern::zipf   ? zipf_rank(i)
                                                                : 0;
    const std::size_t j = (rank * 2654435761u + 12345) % n;
    return first + (hit(i) ? j : n + j);
  }

  /// The inverse of the continuous distribution: x = (2 n)^u is in [1, 2 n), and x / 2 rounded is the rank
  /// from 1. In integers, so that queries and checks agree to the last bit.
  ROOST_FN std::size_t zipf_rank(std::size_t i) const {
    const auto [octave, u] = split_hash(mix64(i), octaves);  // x = 2^(octave + u)
    const std::uint64_t slope =
        11014111 + (((u >> 40) * 5763105) >> 24);  // 2^u = 1 + u (0.6565 + 0.3435 u), 0.2 % off at most
    const std::uint64_t x = (std::uint64_t{1} << octave) + (split_hash(u, slope << octave).digit >> 24);
    return (x - 1) / 2;
  }
};

/// Keys first, first + 1, ...
template <class Key>
struct fill_keys {
  Key* keys;
  make_key<Key> key = {};
  std::size_t first = 0;
  ROOST_FN void operator()(std::size_t i) const { keys[i] = key(first + i); }
};

template <class Value>
struct fill_values {
  Value* values;
  ROOST_FN void operator()(std::size_t i) const { values[i] = make_value<Value>{}(i); }
};

/// Pairs first, first + 1, ...
template <class Key, class Value>
struct fill_pairs {
  Key* keys;
  Value* values;
  std::size_t first;
  make_key<Key> key = {};
  ROOST_FN void operator()(std::size_t i) const {
    keys[i] = key(first + i);
    values[i] = make_value<Value>{}(first + i);
  }
};

template <class Key>
struct fill_queries {
  Key* queries;
  query_order order;
  make_key<Key> key = {};
  ROOST_FN void operator()(std::size_t i) const { queries[i] = key(order(i)); }
};

/// 1 for a wrong answer: for the keys in their order, and for queries.
template <class Value>
struct wrong_pair {
  const Value* results;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return results[i] != make_value<Value>{}(i); }
};

template <class Value>
struct wrong_value {
  const Value* results;
  query_order order;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return results[i] != (order.hit(i) ? make_value<Value>{}(order(i)) : missing<Value>);
  }
};

/// Whether a bool that a run should have written is `right`. A poisoned one is neither true nor false.
ROOST_FN bool same_bool(const bool& written, bool right) {
  return reinterpret_cast<const unsigned char&>(written) == (right ? 1 : 0);
}

struct wrong_contained {
  const bool* results;
  query_order order;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return !same_bool(results[i], order.hit(i)); }
};

/// Which keys a table has: those below `end`, without those in [gone, gone_end).
struct stored_keys {
  std::size_t end, gone = 0, gone_end = 0;
  ROOST_FN bool operator()(std::size_t i) const { return i < end && !(gone <= i && i < gone_end); }
  std::size_t size() const { return end - (gone_end - gone); }
};

/// 1 for a wrong answer: for keys first, first + 1, ...
template <class Value>
struct wrong_stored {
  const Value* results;
  std::size_t first;
  stored_keys stored;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return results[i] != (stored(first + i) ? make_value<Value>{}(first + i) : missing<Value>);
  }
};

/// How far a count is off.
inline std::uint64_t off_by(std::uint64_t counted, std::uint64_t right) {
  return counted > right ? counted - right : right - counted;
}

}  // namespace roost::bench
