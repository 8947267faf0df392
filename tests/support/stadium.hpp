#pragma once

#include <roost/stadium/stadium_map.hpp>

#include "support/concurrent.hpp"

// What the tests of stadium_map share.

namespace test {

using roost::residence;

/// N bytes that hold a number, as far as they go, and repeat it.
template <int N>
struct packed {
  using word = std::uint8_t;
  std::uint8_t bytes[N];

  packed() = default;
  ROOST_FN explicit packed(u64 number) {
    for (int i = 0; i < N; ++i) bytes[i] = static_cast<std::uint8_t>(number >> 8 * (i % 8));
  }
  ROOST_FN friend bool operator==(const packed& a, const packed& b) {
    bool same = true;
    for (int i = 0; i < N; ++i) same &= a.bytes[i] == b.bytes[i];
    return same;
  }
  ROOST_FN friend bool operator<(const packed& a, const packed& b) {
    for (int i = 0; i < N; ++i) {
      if (a.bytes[i] != b.bytes[i]) return a.bytes[i] < b.bytes[i];
    }
    return false;
  }
};

template <class Key, class Value>
struct stadium_types {
  using key = Key;
  using value = Value;
  using map = roost::stadium_map<Key, Value, place_type>;
  using ref = typename map::ref_type;
};

/// Tables of every ticket size, of one region and of many, with bodies here, there and in both.
inline std::vector<roost::stadium_options> kinds_of_stadium() {
  std::vector<roost::stadium_options> result;
  for (const int ticket_bits : {1, 2, 4, 8}) {
    if (only_threads && (ticket_bits == 2 || ticket_bits == 4)) continue;
    for (const std::uint32_t region_slots : {0u, 61u}) {
      for (const residence bodies : {residence::place, residence::host, residence::automatic}) {
        roost::stadium_options options{
            .ticket_bits = ticket_bits, .bodies = bodies, .region_slots = region_slots};
        if (bodies == residence::automatic) options.budget = 20000;
        result.push_back(options);
      }
    }
  }
  return result;
}

inline std::string text_of(const roost::stadium_options& options) {
  return "tickets of " + std::to_string(options.ticket_bits) + " bits, regions of " +
         std::to_string(options.region_slots) + ", bodies " +
         std::to_string(static_cast<int>(options.bodies));
}

}  // namespace test
