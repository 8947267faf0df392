// Abseil's Swiss tables.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "peers.hpp"

namespace roost::bench {
namespace {

template <class Key, class Value>
using absl_map = absl::flat_hash_map<Key, Value, typename absl::flat_hash_map<Key, Value>::hasher,
                                     std::equal_to<Key>, host_allocator<std::pair<const Key, Value>>>;
template <class Key>
using absl_set = absl::flat_hash_set<Key, typename absl::flat_hash_set<Key>::hasher, std::equal_to<Key>,
                                     host_allocator<Key>>;

template <class Key, class Value>
struct absl_map_table : filled_map<absl_map<Key, Value>, Key, Value> {
  using filled_map<absl_map<Key, Value>, Key, Value>::filled_map;
  static std::string name() { return "absl_flat_hash_map"; }
};

template <class Key>
struct absl_set_table : filled_set<absl_set<Key>, Key> {
  using filled_set<absl_set<Key>, Key>::filled_set;
  static std::string name() { return "absl_flat_hash_set"; }
};

const peer::registration absl_tables("host", measure_host_peer<absl_map_table, absl_set_table>);

}  // namespace
}  // namespace roost::bench
