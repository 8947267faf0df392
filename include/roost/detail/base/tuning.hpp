#pragma once

#include "roost/detail/base/config.hpp"

// All tuning numbers, as data by place. The cuda numbers are for Hopper (sm_90), measured as
// docs/performance.md tells.

namespace roost {
class host;
class cuda;
}  // namespace roost

namespace roost::detail {

template <class Place>
struct tuning;

template <>
struct tuning<cuda> {
  static constexpr int partition_threads = 512;
  static constexpr int partition_teams_at_once(std::size_t item_bytes) {
    return item_bytes <= 4 ? 3 : 2;
  }  // on a multiprocessor
  static constexpr std::size_t tile_bytes = 48 << 10;  // of items that a team partitions at once
  static constexpr std::uint32_t tile_items_most = 6144;
  static constexpr std::uint32_t digits_most = 512;  // regions that one pass splits into
  static constexpr std::size_t bucket_bytes = 32;    // that a lookup reads at once: a sector
  static constexpr int build_threads = 512;
  static constexpr int build_teams_at_once = 4;
  static constexpr int build_held = 4;  // items that a worker reads ahead
  static constexpr std::size_t region_bytes = 40
                                              << 10;  // of a region's slots: five teams on a multiprocessor
  static constexpr std::size_t region_bytes_most = 200 << 10;
  static constexpr std::size_t compact_region_bytes = 32 << 10;  // of a region's sectors
  static constexpr int compact_build_teams_at_once(std::size_t pair_bytes) { return pair_bytes == 8 ? 4 : 3; }
  static constexpr int find_threads = 256;
  static constexpr std::uint32_t find_tile = 256;         // queries of a team
  static constexpr std::uint32_t find_pairs_tile = 512;   // the same where neighbours read together
  static constexpr std::uint32_t find_region_tile = 512;  // of queries in regions
  static constexpr std::uint32_t find_each_tile =
      1024;  // the same in one loop: more would spread the queries in flight over more of the table
  static constexpr std::uint32_t find_ahead = 0;  // other threads hide the wait
  static constexpr int run_teams_at_once(std::size_t value_bytes) { return value_bytes <= 4 ? 8 : 6; }
  static constexpr bool find_waits =
      false;  // lookups that one read does not answer wait for the others of a tile
  static constexpr std::size_t regional_window_bytes =
      16 << 20;  // of the table that the queries of a region are asked from
  static constexpr std::size_t regional_table_bytes = 64 << 20;  // from this size on,
  static constexpr std::size_t regional_queries = 1 << 22;       // for this many queries and more
  static constexpr std::size_t regional_chunk_least = 1 << 20;
  static constexpr std::size_t regional_scratch_bytes = std::size_t{4} << 30;
  static constexpr std::uint32_t put_tile = 2048;  // pairs that a team inserts one by one,
  static constexpr std::uint32_t put_small_buckets =
      13;  // adding up copies in a small table first, of four times as many buckets
  static constexpr std::uint32_t put_regions = 1024;    // tables of this many regions take batches
  static constexpr std::size_t put_regional_share = 8;  // of a slot in 8 and more by region
  static constexpr int group_threads = 512;
  static constexpr int group_teams_at_once = 3;
  static constexpr std::size_t group_bytes = 64 << 10;  // that a team groups items in
  static constexpr std::size_t group_held_most = 4;     // items of a worker
  static constexpr std::uint32_t group_sample = 8192;   // items in which frequent keys are looked for,
  static constexpr std::uint32_t group_tiles_most =
      16;  // which are those with more tiles of items than a team should group
  static constexpr std::uint32_t expand_tile = 2048;  // matches of a team
  static constexpr int fill_threads = 384;  // of a region of a table that changes: 40 registers each
  static constexpr int fill_teams_at_once = 4;
  static constexpr std::uint32_t board_region_slots = 1 << 16;  // of a ticket board
  static constexpr std::uint32_t guards_most = 1 << 20;         // for a quarter of a million threads
  static constexpr std::size_t far_reach =
      std::size_t{256} << 20;  // bytes of host memory that random accesses may be spread over; beyond,
  static constexpr std::size_t far_queries = 1 << 16;  // batches from this size on go by region
  static constexpr std::size_t far_sample =
      1 << 16;  // of a batch, in which is looked how many bodies it may read
  static constexpr std::size_t far_access_bytes =
      64;  // copying so many bytes from there takes as long as one access by region
  static constexpr std::size_t staged_bytes = std::size_t{48} << 20;  // that are copied at a time, about
  static constexpr std::size_t staged_bytes_most = std::size_t{512} << 20;
  static constexpr double bodies_share =
      0.75;  // of the memory that is free, which bodies may take if nobody says how much
};

template <>
struct tuning<host> {
  static constexpr std::size_t tile_bytes = 256 << 10;
  static constexpr std::uint32_t tile_items_most = 32768;
  static constexpr std::uint32_t digits_most = 1024;
  static constexpr std::size_t bucket_bytes = 64;  // a line
  static constexpr int build_held = 16;
  static constexpr std::size_t region_bytes = 240 << 10;
  static constexpr std::size_t region_bytes_most = 1 << 20;
  static constexpr std::size_t compact_region_bytes = 160 << 10;
  static constexpr std::uint32_t find_tile = 4096;
  static constexpr std::uint32_t find_ahead = 24;  // whose memory is on its way
  static constexpr bool find_waits = true;
  static constexpr std::uint32_t find_region_tile = 4096;
  static constexpr std::uint32_t find_each_tile = 4096;  // not used: lookups wait
  static constexpr std::uint32_t find_pairs_tile = 4096;
  static constexpr std::size_t regional_window_bytes = 256 << 10;
  static constexpr std::size_t regional_table_bytes = 512 << 20;
  static constexpr std::size_t regional_queries = 1 << 18;
  static constexpr std::size_t regional_chunk_least = 1 << 16;
  static constexpr std::size_t regional_scratch_bytes = std::size_t{4} << 30;
  static constexpr std::uint32_t put_tile = 4096;
  static constexpr std::uint32_t put_small_buckets = 0;
  static constexpr std::uint32_t put_regions = 16;
  static constexpr std::size_t put_regional_share = 8;
  static constexpr std::size_t group_bytes = 512 << 10;
  static constexpr std::size_t group_held_most = 64;
  static constexpr std::uint32_t group_tiles_most = 16;
  static constexpr std::uint32_t expand_tile = 4096;
  static constexpr std::uint32_t board_region_slots = 1 << 15;
  static constexpr std::uint32_t guards_most = 1 << 12;
  static constexpr std::size_t far_reach = ~std::size_t{0};
  static constexpr std::size_t far_queries = ~std::size_t{0};
  static constexpr std::size_t far_sample = 1 << 16;
  static constexpr std::size_t far_access_bytes = 1;  // nothing is far
  static constexpr std::size_t staged_bytes = std::size_t{48} << 20;
  static constexpr std::size_t staged_bytes_most = ~std::size_t{0};
};

/// How many items a team of this place partitions at once. Below 2^16, so that a position in a tile fits 16
/// bits.
template <class Place, class Item>
constexpr std::uint32_t tile_items = [] {
  constexpr std::size_t fit = tuning<Place>::tile_bytes / sizeof(Item);
  constexpr std::size_t items = smaller<std::size_t>(fit, tuning<Place>::tile_items_most);
  return static_cast<std::uint32_t>(larger<std::size_t>(items / 512, 1) * 512);
}();

}  // namespace roost::detail
