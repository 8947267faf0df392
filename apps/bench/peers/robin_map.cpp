// Robin Hood hashing, by Thibaut Goetghebuer-Planchon.
#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include "peers.hpp"

namespace roost::bench {
namespace {

// With its defaults: the hash is the identity.
template <class Key, class Value>
using robin_map =
    tsl::robin_map<Key, Value, std::hash<Key>, std::equal_to<Key>, host_allocator<std::pair<Key, Value>>>;
template <class Key>
using robin_set = tsl::robin_set<Key, std::hash<Key>, std::equal_to<Key>, host_allocator<Key>>;

template <class Key, class Value>
struct robin_map_table : filled_map<robin_map<Key, Value>, Key, Value> {
  using filled_map<robin_map<Key, Value>, Key, Value>::filled_map;
  static std::string name() { return "tsl_robin_map"; }
};

template <class Key>
struct robin_set_table : filled_set<robin_set<Key>, Key> {
  using filled_set<robin_set<Key>, Key>::filled_set;
  static std::string name() { return "tsl_robin_set"; }
};

const peer::registration robin_tables("host", measure_host_peer<robin_map_table, robin_set_table>);

}  // namespace
}  // namespace roost::bench
