#pragma once

#include <cstdint>

#include "roost/bulk.hpp"

/// \file
/// Changes of tables: what became of them, and batches of them.

namespace roost {

/// What became of an insert.
enum class insertion : std::uint8_t {
  inserted,  ///< the key was not there, and is now
  present,   ///< the key was there; insert_or_assign and insert_or_apply have changed its value
  full       ///< no room where the key may be (concurrent_map, Room), or in the whole table (stadium_map), and nothing was changed
};

/// What a bulk call that inserts did.
struct insert_report {
  std::size_t inserted = 0;  ///< keys that were not there before
  std::size_t present = 0;   ///< pairs whose key was there, or came earlier in the batch
  /// Pairs that found no room; none if the map grows. insert_or_apply of a concurrent_map on cuda: copies that were
  /// added up first count as one.
  std::size_t full = 0;
  roost::path path = roost::path::direct;
  int rehashes = 0;  ///< times that room was made: by making slots of erased keys free, or by moving all keys
};

/// What run() of a map does with a key.
enum class operation_kind : std::uint8_t { find, insert, insert_or_assign, erase };

/// One operation of a mixed batch.
template <class Key, class Value>
struct operation {
  using operation_value = Value;
  operation_kind kind;
  Key key;
  Value value;  ///< find and erase do not look at it
};

/// What became of it.
template <class Value>
struct operation_result {
  bool done;    ///< find: the key is there; insert: it was not there before; insert_or_assign: it has the value; erase: it was there
  bool full;    ///< insert, insert_or_assign: no room
  Value value;  ///< find: the key's value; insert: the value that the key has now
};

}  // namespace roost
