#pragma once

#include <cstdint>

#include "roost/bulk.hpp"

/// \file
/// Results of changes to tables, and batches of operations.

namespace roost {

/// The result of an insert.
enum class [[nodiscard(
    "a ref never grows its table: full means that the pair is lost")]] insertion : std::uint8_t {
  inserted,  ///< the key was absent and is now present
  present,   ///< the key was present; insert_or_assign and insert_or_apply changed its value
  /// No free slot where the key may be stored (concurrent_map, Room), or in the whole table (stadium_map).
  /// Nothing was changed.
  full
};

/// The result of insert_and_find.
template <class Value>
struct inserted_or_found {
  insertion what;
  Value value;  ///< of the key after the call; the argument if there is no room
};

/// What a bulk insert did.
struct insert_report {
  std::size_t inserted = 0;  ///< keys that were absent before
  std::size_t present = 0;   ///< pairs whose key was present, or appeared earlier in the batch
  /// Pairs that found no room; none if the map grows. insert_or_apply of a concurrent_map on cuda counts
  /// copies that it combined beforehand as one.
  std::size_t full = 0;
  roost::path path = roost::path::direct;
  int rehashes = 0;  ///< how often the call made room, by freeing slots of erased keys or by moving all keys
};

/// The operations that run() of a map can perform on a key.
enum class operation_kind : std::uint8_t { find, insert, insert_or_assign, erase };

/// One operation of a mixed batch.
template <class Key, class Value>
struct operation {
  using operation_value = Value;
  operation_kind kind;
  Key key;
  Value value;  ///< ignored by find and erase
};

/// The result of one operation.
template <class Value>
struct operation_result {
  bool done;    ///< find: the key is present; insert: it was absent before; insert_or_assign: it now has the
                ///< value; erase: it was present
  bool full;    ///< insert, insert_or_assign: no room
  Value value;  ///< find: the key's value; insert: the value that the key now has
};

}  // namespace roost
