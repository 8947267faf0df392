#pragma once

#include "roost/detail/place/config.hpp"

// All tuning parameters: for each algorithm, one struct per place. Those for cuda are for Hopper (sm_90),
// measured as described in docs/performance.md. Numbers of teams are those that run at once on a
// multiprocessor.

namespace roost::detail {

/// The order of the reads of a tile's lookups: see detail/table/probe.hpp.
enum class driver {
  one_by_one,   // each to its end
  interleaved,  // one loop over the reads of all lookups of a thread
  deferred      // the first read of all; lookups that it does not end come afterwards
};

// Items into regions.

template <class Place>
struct partition_tuning;

template <>
struct partition_tuning<cuda> {
  static constexpr int threads = 512;
  static constexpr int teams_at_once(std::size_t item_bytes) { return item_bytes <= 4 ? 3 : 2; }
  static constexpr std::size_t tile_bytes = 48 << 10;  // of items that a team partitions at once
  static constexpr std::uint32_t tile_items_most = 6144;
  static constexpr std::uint32_t digits_most = 512;             // regions that one pass splits into
  static constexpr std::size_t scattered_bytes_most = 1 << 25;  // results that are put by row one by one
};

template <>
struct partition_tuning<host> {
  static constexpr std::size_t tile_bytes = 256 << 10;
  static constexpr std::uint32_t tile_items_most = 32768;
  static constexpr std::uint32_t digits_most = 1024;
  static constexpr std::size_t scattered_bytes_most = ~std::size_t{0};
};

// Sorting.

template <class Place>
struct sort_tuning;

template <>
struct sort_tuning<cuda> {
  /// From so many pairs on, passes of our own are faster than those of CUB.
  static constexpr std::size_t one_look_least = std::size_t{1} << 16;
};

// Regions of tables, and how they are built.

template <class Place>
struct build_tuning;

template <>
struct build_tuning<cuda> {
  static constexpr std::size_t bucket_bytes = 32;  // that a lookup reads at once: a sector
  static constexpr int sector_slots = 4;           // compact: a sector with fewer is larger
  static constexpr int threads = 512;
  static constexpr int teams_at_once = 4;
  static constexpr int compact_teams_at_once(std::size_t pair_bytes) { return pair_bytes == 8 ? 4 : 3; }
  static constexpr int held = 4;                         // items that a worker reads ahead
  static constexpr std::size_t sampled_least = 1 << 24;  // pairs that are searched for copies first
  static constexpr std::size_t region_bytes = 40 << 10;  // of slots: five teams at once
  static constexpr std::size_t region_bytes_most = 200 << 10;
  // Tables that are built in one launch, and how many pairs a team partitions at once then.
  static constexpr std::size_t in_turn_bytes = 3 << 20;
  static constexpr std::uint32_t in_turn_tile = 2048;
  static constexpr std::size_t compact_region_bytes(double table_bytes) {  // of sectors
    return table_bytes <= in_turn_bytes ? 16 << 10 : 32 << 10;
  }
};

template <>
struct build_tuning<host> {
  static constexpr std::size_t bucket_bytes = 64;  // a line
  static constexpr int sector_slots = 8;
  static constexpr int held = 16;
  static constexpr std::size_t sampled_least = 1 << 20;
  static constexpr std::size_t region_bytes = 240 << 10;
  static constexpr std::size_t region_bytes_most = 1 << 20;
  static constexpr std::size_t compact_region_bytes(double) { return 160 << 10; }
  /// The largest tables that are built without a partition: if there is one thread, or several.
  static constexpr std::size_t unparted_bytes(int threads) {
    return std::size_t{threads == 1 ? 16u : 1u} << 20;
  }
};

// Lookups, and mixed batches.

template <class Place>
struct find_tuning;

template <>
struct find_tuning<cuda> {
  static constexpr int threads = 256;
  static constexpr int run_teams_at_once(std::size_t value_bytes) { return value_bytes <= 4 ? 8 : 6; }
  static constexpr bool defers = false;
  static constexpr std::uint32_t ahead = 0;  // other threads hide the wait
  /// Queries of a team. More would spread the queries in flight over more of the table.
  static constexpr std::uint32_t tile(driver driver, bool by_region) {
    return !by_region ? (driver == driver::interleaved ? 512 : 256)
                      : (driver == driver::interleaved ? 1024 : 512);
  }
  static constexpr std::size_t cache_bytes = 64 << 20;  // smaller tables are in the cache
  /// Whether the regional path is faster, for so many queries at once. It has a fixed cost, and gains little
  /// where much of a table lies in the cache. A sector of 32 bytes is soon read directly: then it gains
  /// nothing, either, where the queries are so few that each reads a sector of its own. (Figures:
  /// docs/performance.md; `sector_bytes` of layout compact, 0: others.)
  static constexpr bool by_region(std::size_t table_bytes, std::size_t queries, int sector_bytes) {
    if (table_bytes < 64 << 20 || queries < (sector_bytes == 32 ? 1 << 23 : 1 << 22)) return false;
    const auto bytes = static_cast<double>(table_bytes), n = static_cast<double>(queries);
    const double uncached = bytes * bytes * n;
    return sector_bytes == 32 ? uncached >= 0x1p77 && bytes <= 72 * n
                              : sector_bytes == 0 || uncached >= 0x1.8p80;
  }
  static constexpr std::size_t window_bytes = 16 << 20;  // of the table, that the queries of a region read
  static constexpr std::size_t chunk_least = 1 << 20;
  static constexpr std::size_t scratch_bytes = std::size_t{4} << 30;
};

template <>
struct find_tuning<host> {
  static constexpr bool defers = true;
  static constexpr std::uint32_t ahead = 24;  // queries whose memory is being prefetched
  static constexpr std::uint32_t tile(driver driver, bool) {
    return driver == driver::one_by_one ? 4096 : 1024;  // what is deferred fits into a scratch on the stack
  }
  static constexpr std::size_t cache_bytes = 2 << 20;
  static constexpr bool by_region(std::size_t table_bytes, std::size_t queries, int) {
    return table_bytes >= 512 << 20 && queries >= 1 << 18;
  }
  static constexpr std::size_t window_bytes = 256 << 10;
  static constexpr std::size_t chunk_least = 1 << 16;
  static constexpr std::size_t scratch_bytes = std::size_t{4} << 30;
};

// Changes of concurrent tables.

template <class Place>
struct change_tuning;

template <>
struct change_tuning<cuda> {
  static constexpr std::uint32_t tile = 2048;  // pairs that a team inserts one by one, at most
  static constexpr std::size_t teams = 4224;   // that share a batch, if there is a pair for each worker
  // Copies are first added up in a small table of eight times as many buckets; 0: they are not.
  static constexpr std::uint32_t small_buckets = 7;
  // By region: tables of at least this many regions, for batches of at least an eighth of the slots.
  static constexpr std::uint32_t regions = 1024;
  static constexpr std::size_t regional_share = 8;
  static constexpr int fill_threads = 384;  // 40 registers each
  static constexpr int fill_teams_at_once = 4;
};

template <>
struct change_tuning<host> {
  static constexpr std::uint32_t tile = 4096;
  static constexpr std::uint32_t small_buckets = 0;
  static constexpr std::uint32_t regions = 16;
  static constexpr std::size_t regional_share = 8;
};

// Groups of equal keys.

template <class Place>
struct group_tuning;

template <>
struct group_tuning<cuda> {
  static constexpr int threads = 512;
  static constexpr int teams_at_once = 3;
  static constexpr std::size_t bytes = 64 << 10;           // that a team groups items in
  static constexpr std::size_t held_most = 4;              // items of a worker
  static constexpr std::size_t indexing_bytes = 72 << 10;  // that a team numbers keys in
  static constexpr std::size_t indexing_held_most = 8;
  static constexpr std::uint32_t sample = 8192;       // items that are sampled for frequent keys,
  static constexpr std::uint32_t tiles_most = 16;     // keys with more tiles than this are frequent
  static constexpr std::uint32_t expand_tile = 2048;  // matches of a team
  static constexpr std::size_t table_keys = 512;      // of each, about
  static constexpr int table_threads = 512;
  static constexpr int aggregate_threads = 1024;
  static constexpr int aggregate_teams = 2;  // at once; or one, with a table of twice the size
  static constexpr std::size_t aggregate_bytes = 223 << 10;  // of a team's table of sums, at most
  static constexpr double aggregate_load = 0.62;             // of such a table, at most
  static constexpr std::uint32_t aggregate_keys = 4096;      // of a region, about
  static constexpr std::size_t hot_bytes = 40 << 10;         // of sums that a tile of a partition absorbs
  static constexpr std::size_t scatter_bytes = 72 << 10;     // of scratch, that such a tile needs besides
};

template <>
struct group_tuning<host> {
  static constexpr std::size_t bytes = 512 << 10;
  static constexpr std::size_t held_most = 64;
  static constexpr std::size_t indexing_bytes = 768 << 10;
  static constexpr std::size_t indexing_held_most = 64;
  static constexpr std::uint32_t tiles_most = 16;
  static constexpr std::uint32_t expand_tile = 4096;
  static constexpr std::size_t aggregate_bytes = 1 << 20;
  static constexpr double aggregate_load = 0.8;
  static constexpr std::uint32_t aggregate_keys = 8192;
  static constexpr std::size_t hot_bytes = 16 << 10;
  static constexpr std::size_t scatter_bytes = 0;
};

// coordinate_index and kernel maps.

template <class Place>
struct sparse_tuning;

template <>
struct sparse_tuning<cuda> {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = 1024;     // coordinates or blocks of a team
  static constexpr std::size_t box_teams = 1056;  // that measure the box of all coordinates, at most
  static constexpr std::uint32_t rows = 256;      // of a kernel map, of a team
  /// Up to this number, superblocks are ordered by comparing each with all.
  static constexpr std::uint32_t compared_most = 8192;
  /// From this number of coordinates on, the host reads the counts of a build before it continues.
  static constexpr std::size_t looks_from = 1 << 17;
};

template <>
struct sparse_tuning<host> {
  static constexpr std::uint32_t tile = 4096;
  static constexpr std::size_t box_teams = 1056;
  static constexpr std::uint32_t rows = 1024;
  static constexpr std::uint32_t compared_most = 64;
  static constexpr std::size_t looks_from = 0;
};

// stadium_map. Beyond `far_reach` bytes of host memory, which random accesses may be spread over, batches
// from `far_queries` on go by region.

template <class Place>
struct stadium_tuning;

template <>
struct stadium_tuning<cuda> {
  static constexpr std::uint32_t region_slots = 1 << 16;
  static constexpr std::uint32_t guards_most = 1 << 20;  // for a quarter of a million threads
  static constexpr std::size_t far_reach = std::size_t{256} << 20;
  static constexpr std::size_t far_queries = 1 << 16;
  static constexpr std::size_t far_sample = 1 << 16;   // of a batch: estimates how many bodies it reads
  static constexpr std::size_t far_access_bytes = 64;  // copied in the time of one access by region
  static constexpr std::size_t staged_bytes = std::size_t{48} << 20;  // copied at a time, about
  static constexpr std::size_t staged_bytes_most = std::size_t{512} << 20;
  static constexpr double bodies_share = 0.75;  // of free memory, if the user says nothing
};

template <>
struct stadium_tuning<host> {
  static constexpr std::uint32_t region_slots = 1 << 15;
  static constexpr std::uint32_t guards_most = 1 << 12;
  static constexpr std::size_t far_reach = ~std::size_t{0};  // nothing is far
  static constexpr std::size_t far_queries = ~std::size_t{0};
  static constexpr std::size_t far_sample = 1 << 16;
  static constexpr std::size_t far_access_bytes = 1;
  static constexpr std::size_t staged_bytes = std::size_t{48} << 20;
  static constexpr std::size_t staged_bytes_most = ~std::size_t{0};
};

// Sharded tables: exchanges between shards that are places of this kind.

template <class Place>
struct shards_tuning;

template <>
struct shards_tuning<cuda> {
  // From this number of queries of a shard on, they are sent to the shards that own their keys.
  static constexpr std::size_t queries = 1 << 21;
  static constexpr std::size_t sampled_from = 1 << 23;  // queries; fewer are sent before the sample is read
  static constexpr std::size_t scratch_bytes = std::size_t{8} << 30;
  static constexpr std::size_t range_bytes = 16 << 20;  // of queries that are sent while others are answered
  static constexpr std::uint32_t ranges_most = 6;
  static constexpr std::uint32_t batches = 4;          // of shards, that a launch answers
  static constexpr std::size_t build_pairs = 1 << 16;  // from which on it builds while pairs are being sent
};

template <>
struct shards_tuning<host> {
  static constexpr std::size_t queries = 1 << 14;
  static constexpr std::size_t sampled_from = 1 << 14;
  static constexpr std::size_t scratch_bytes = std::size_t{4} << 30;
  static constexpr std::size_t range_bytes = 4 << 10;
  static constexpr std::uint32_t ranges_most = 4;
  static constexpr std::uint32_t batches = 4;
  static constexpr std::size_t build_pairs = 1 << 13;
};

/// How many items a team of this place partitions at once. Below 2^16, so that a position in a tile fits 16
/// bits.
template <class Place, class Item>
constexpr std::uint32_t tile_items = [] {
  using tuned = partition_tuning<Place>;
  constexpr std::size_t items =
      smaller<std::size_t>(tuned::tile_bytes / sizeof(Item), tuned::tile_items_most);
  return static_cast<std::uint32_t>(larger<std::size_t>(items / 512, 1) * 512);
}();

}  // namespace roost::detail
