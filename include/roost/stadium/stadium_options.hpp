#pragma once

#include <cstddef>
#include <cstdint>

/// \file
/// Options and statistics of stadium_map.

namespace roost {

/// Where a stadium_map stores its bodies: the keys and values of its slots.
enum class residence : std::uint8_t {
  automatic,  ///< in memory of the place up to the budget, the rest in host memory
  place,      ///< in memory of the place
  /// In host memory, pinned for a GPU. A table can grow there without a second one. On the host place: memory
  /// from the system instead of the place's memory resource.
  host
};

/// Options of stadium_map.
struct stadium_options {
  /// The share of the slots, in (0, 1], that keys may occupy before bulk calls make room. A lookup of an
  /// absent key reads about 1 / (1 - load factor) tickets. Near 1 it reads all tickets of a region. In a
  /// table that is full to the last slot it reads those of many regions, because the last keys were stored
  /// far from their home slots. If you look up absent keys, leave some slots free or use a single region
  /// (region_slots).
  double load_factor = 0.8;
  /// 1, 2, 4 or 8. One bit says whether a slot is available; the others tell keys apart. A lookup reads the
  /// body of another key for one in 2^(ticket_bits - 1) of the tickets that it passes. The board takes 2,
  /// 3.05, 5.33 or 9.14 bits per slot.
  int ticket_bits = 8;
  residence bodies = residence::automatic;
  /// How many bytes of the place's memory keys and values may take if `bodies` is automatic. By default three
  /// quarters of the free memory on a GPU, and all of it on a host.
  std::size_t budget = ~std::size_t{0};
  /// Chooses the hash function.
  std::uint64_t seed = 0;
  /// Whether bulk inserts move the keys to a larger table when there is no room. If not, keys that find no
  /// room are counted as `full`.
  bool grows = true;
  /// Approximate number of slots of a region; 0: chosen for the place. A number larger than the table makes
  /// it a single region, as in the paper.
  std::uint32_t region_slots = 0;
};

/// Figures about a stadium_map.
struct stadium_statistics {
  std::size_t size = 0;      ///< keys
  std::size_t erased = 0;    ///< slots of erased keys
  std::size_t capacity = 0;  ///< slots
  std::size_t regions = 0;
  double load_factor = 0;  ///< size / capacity
  /// Tickets, and the state of regions and of keys that are being changed, in memory of the place.
  std::size_t board_bytes = 0;
  std::size_t place_bytes = 0;  ///< bodies in memory of the place
  std::size_t host_bytes = 0;   ///< bodies in host memory
};

/// The total cost of the lookups of a batch of keys.
struct lookup_costs {
  std::size_t queries = 0;
  std::size_t found = 0;
  std::size_t tickets = 0;         ///< tickets read
  std::size_t bodies = 0;          ///< bodies read
  std::size_t without_bodies = 0;  ///< queries that needed tickets only
  std::size_t most_tickets = 0;    ///< most tickets read by one query
  /// Bodies read that belonged to another key.
  std::size_t false_candidates() const { return bodies - found; }
};

}  // namespace roost
