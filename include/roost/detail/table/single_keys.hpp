#pragma once

#include "roost/host.hpp"
#include "roost/pair.hpp"

namespace roost {

/// Lookups of one key at a time in a table of the host, with the names of std::unordered_map. (On cuda, call
/// ref() and look keys up in a kernel, or look up a batch.) A batch is faster: it reads the memory for many
/// keys at once (docs/guide.md, "One key at a time"). Any number of threads may call them.
template <class Table, class Key, class Value, class Place>
class single_keys {
  const Table& table() const { return static_cast<const Table&>(*this); }
  decltype(auto) handle() const {
    static_assert(std::is_same_v<Place, host>,
                  "one key at a time is for tables of the host: on cuda call ref() and look keys up in a "
                  "kernel, or look up a batch: find(place, queries, results, missing)");
    return table().ref();
  }
  bool is_empty() const {
    if constexpr (requires { table().empty(); }) {
      return table().empty();
    } else {
      return false;
    }
  }

 public:
  /// The value of a key, or nothing. Of a frozen_multimap: its values.
  auto find(const Key& key) const {
    using result = decltype(handle().find(key));
    return is_empty() ? result() : handle().find(key);
  }
  /// True if the key is present.
  bool contains(const Key& key) const { return !is_empty() && handle().contains(key); }
  /// How many pairs have the key.
  std::size_t count(const Key& key) const {
    if constexpr (requires { handle().count(key); }) {
      return is_empty() ? 0 : handle().count(key);
    } else {
      return contains(key) ? 1 : 0;
    }
  }
  /// The value of a key. Throws invalid_argument if it is absent. Never inserts.
  const Value operator[](const Key& key) const
    requires requires(const Table& table) { *table.ref().find(key); }
  {
    const auto there = find(key);
    if (there) return *there;
    if constexpr (std::is_integral_v<Key>) {
      detail::raise<invalid_argument>({"roost: there is no key ", key, "; call find() if it may be absent"});
    } else {
      detail::raise<invalid_argument>({"roost: the key is absent; call find() if it may be"});
    }
  }

  // A number of another type could silently become another key.
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(find, contains);
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(count, operator[]);
};

}  // namespace roost
