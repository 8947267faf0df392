#pragma once

#include "roost/detail/place/atomic.hpp"
#include "roost/detail/place/lanes.hpp"
#include "roost/detail/place/look_back.hpp"
#include "roost/detail/place/tuning.hpp"
#include "roost/pair.hpp"
#include "roost/place.hpp"
#include "roost/sparse/detail/grid.hpp"

// The blocks of a coordinate_index. A table of superblocks (open addressing, at most half full) records which
// of its 64 blocks each superblock has, and the number of the first; a block records which of its 64 voxels
// it has, and the row of the first. So a voxel costs two reads, and its row is counted, not stored:
//
//     block = superblock.first_block + bits of superblock.blocks before the block's
//     row   = block.first_row        + bits of block.voxels      before the voxel's
//
// A superblock is 4096 voxels, so even the superblocks of 10^7 voxels of a surface fit the cache.

namespace roost::detail {

/// A sector of the table.
struct alignas(32) superblock {
  std::uint64_t key_plus_1;  // 0: none
  std::uint64_t blocks;
  std::uint32_t first_block;

  static constexpr std::uint32_t none = ~std::uint32_t{0};
};

struct alignas(16) block {
  std::uint64_t voxels;
  std::uint32_t first_row;
  std::uint32_t superblock;  // its slot in the table

  /// The row of a present voxel.
  ROOST_FN std::uint32_t row(std::uint32_t voxel) const { return first_row + bits_before(voxels, voxel); }
  ROOST_FN bool has(std::uint32_t voxel) const { return (voxels >> voxel & 1) != 0; }
};

/// The failures of a build: bits of index_state::failed.
enum build_failure : std::uint32_t {
  too_wide = 1,  // keys of superblocks would be too long
  too_many = 2,  // superblocks or blocks for the memory
  crowded = 4,   // too many keys with the same slots
  no_rows = 8    // more voxels than row numbers
};

/// The facts about an index, on its place; all zeros before a build.
template <int D>
struct index_state {
  // Of all coordinates, as unsigned numbers in the same order; the minimums with all bits inverted, so that
  // both are computed by fetch_max starting at 0.
  std::uint32_t greatest[D + 1], turned_least[D + 1];
  std::uint32_t failed;
  std::uint32_t superblocks, blocks;
  std::uint64_t inputs;  // coordinates
  std::uint64_t rows;
  detail::grid<D> grid;

  static constexpr std::uint32_t sign = 1u << 31;

  ROOST_FN void fail(build_failure why) { fetch_or(failed, std::uint32_t{why}); }

  /// The superblocks with which a build continues.
  ROOST_FN std::uint32_t good_superblocks() const { return failed != 0 ? 0 : superblocks; }

  ROOST_FN std::int32_t least_at(int axis) const {
    return static_cast<std::int32_t>(~turned_least[axis] ^ sign);
  }
  ROOST_FN std::int32_t greatest_at(int axis) const {
    return static_cast<std::int32_t>(greatest[axis] ^ sign);
  }
  ROOST_FN detail::grid<D> measured() const {
    std::int32_t low[D + 1], high[D + 1];
    ROOST_UNROLL
    for (int a = 0; a <= D; ++a) low[a] = least_at(a), high[a] = greatest_at(a);
    return detail::grid<D>(low, high);
  }
};

/// The handle of the blocks: lookups and builds.
template <int D>
struct block_table {
  /// The most slots that are probed: more indicate keys that were chosen to collide.
  static constexpr std::uint32_t steps_most = 512;

  index_state<D>* state;
  superblock* superblocks;
  block* blocks;
  std::uint32_t slots;
  std::uint64_t seed;

  ROOST_FN const detail::grid<D>& grid() const { return state->grid; }

  ROOST_FN std::uint32_t home(std::uint64_t key) const {
    return static_cast<std::uint32_t>(split_hash(mix64(key, seed), slots).digit);
  }
  ROOST_FN std::uint32_t next(std::uint32_t slot) const { return slot + 1 == slots ? 0 : slot + 1; }

  /// The slot of a superblock's key, or superblock::none.
  ROOST_FN std::uint32_t slot_of(std::uint64_t key) const {
    std::uint32_t slot = home(key);
    ROOST_ROLLED
    for (std::uint32_t step = 0; step < steps_most; ++step) {
      const std::uint64_t here = superblocks[slot].key_plus_1;
      if (here == key + 1) return slot;
      if (here == 0) break;
      slot = next(slot);
    }
    return superblock::none;
  }

  /// The index of a block in a superblock; superblock::none if the block is absent.
  ROOST_FN static std::uint32_t index_of(const superblock& source, std::uint32_t block) {
    return (source.blocks >> block & 1) != 0 ? source.first_block + bits_before(source.blocks, block)
                                             : superblock::none;
  }

  /// The row of a coordinate in the order of blocks, or nothing.
  ROOST_FN found<std::uint32_t> find(const coordinate<D>& c) const {
    cell position;
    if (!grid().locate(c, position)) return {};
    const std::uint32_t slot = slot_of(position.key);
    if (slot == superblock::none) return {};
    const std::uint32_t index = index_of(superblocks[slot], position.block());
    if (index == superblock::none) return {};
    const block here = load(blocks + index);
    return here.has(position.voxel()) ? found<std::uint32_t>(here.row(position.voxel()))
                                      : found<std::uint32_t>();
  }

  /// Prefetches the block of a coordinate, on a host.
  ROOST_PREFETCH_FN void prefetch([[maybe_unused]] const coordinate<D>& c) const {
#if !ROOST_ON_DEVICE
    cell position;
    if (!grid().locate(c, position)) return;
    const superblock& there = superblocks[home(position.key)];  // most are in their first slot
    __builtin_prefetch(blocks + there.first_block + bits_before(there.blocks, position.block()));
#endif
  }
};

// A build is a sequence of kernels over the coordinates, the superblocks and the blocks.

/// Runs a kernel with the scratch that it needs.
template <class Place, class Kernel>
void launch(const Place& place, std::size_t teams, const Kernel& kernel) {
  if constexpr (std::is_same_v<Place, host>) {
    place.launch(teams, scratch_bytes_of(kernel), for_this_processor<Kernel>{kernel});
  } else {
    place.launch(teams, scratch_bytes_of(kernel), kernel);
  }
}

/// The i-th coordinate of a source; false if there is none. (Most sources omit none.)
template <class Source, int D>
ROOST_FN bool give(const Source& source, std::uint64_t i, coordinate<D>& result) {
  if constexpr (requires { source.give(i, result); }) {
    return source.give(i, result);
  } else {
    result = source[i];
    return true;
  }
}

/// Calls body(i) for the numbers i of a tile, whose first is below `count`.
template <class Team, class Body>
ROOST_FN void for_each_of_tile(const Team& team, std::size_t index, std::uint32_t tile, std::uint64_t count,
                               const Body& body) {
  const std::uint64_t first = index * tile;
  for_each_of(team, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - first)),
              [&](std::uint32_t i) { body(first + i); });
}

/// Calls body(coordinate) for the coordinates of a tile.
template <int D, class Team, class Source, class Body>
ROOST_FN void for_each_given(const Team& team, const Source& source, std::uint64_t count, std::size_t index,
                             std::uint32_t tile, const Body& body) {
  for_each_of_tile(team, index, tile, count, [&](std::uint64_t i) {
    coordinate<D> c{};
    if (give(source, i, c)) body(c);
  });
}

/// Finds the box of all coordinates, and counts them: those of the source, or of its boxes, if it has some.
/// Teams take every `teams`-th tile.
template <class Place, int D, class Source>
struct measure_box {
  static constexpr int threads = sparse_tuning<cuda>::threads;
  static constexpr std::uint32_t tile = sparse_tuning<Place>::tile;
  static constexpr int numbers = 2 * (D + 1);
  Source source;
  std::uint64_t count;
  index_state<D>* state;
  std::size_t teams;

  ROOST_FN std::uint32_t* scratch(scratch_memory& memory) const {
    return memory.take<std::uint32_t>(numbers + 1);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    std::uint32_t* const of_team = scratch_of(*this, memory);
    for_each_of(team, numbers + 1, [&](std::uint32_t k) { of_team[k] = k < numbers ? ~0u : 0; });
    team.sync();
    // The minimum of each axis, and of the inverted bits: scratch words hold minimums, and the state's words
    // the maximums of the inverted values.
    std::uint32_t least[numbers], inputs = 0;
    ROOST_UNROLL
    for (int k = 0; k < numbers; ++k) least[k] = ~0u;
    const auto take = [&](const coordinate<D>& low, const coordinate<D>& high) {
      ROOST_UNROLL
      for (int a = 0; a <= D; ++a) {
        least[2 * a] = smaller(least[2 * a], turned(low, a));
        least[2 * a + 1] = smaller(least[2 * a + 1], ~turned(high, a));
      }
    };
    for (std::size_t t = index; t * tile < count; t += teams) {
      if constexpr (requires { source.has_boxes(); }) {
        if (source.has_boxes()) {
          for_each_of_tile(team, t, tile, count, [&](std::uint64_t i) {
            coordinate<D> low{}, high{};
            const std::uint64_t voxels = source.box(i, low, high);
            if (voxels != 0) take(low, high);
            inputs += static_cast<std::uint32_t>(voxels);
          });
          continue;
        }
      }
      for_each_given<D>(team, source, count, t, tile, [&](const coordinate<D>& c) {
        take(c, c);
        ++inputs;
      });
    }
    ROOST_UNROLL
    for (int k = 0; k < numbers; ++k) team.fetch_min_near(of_team[k], least[k]);
    team.add_near(of_team[numbers], inputs);
    team.sync();
    for_each_of(team, numbers + 1, [&](std::uint32_t k) {
      if (k == numbers) {
        fetch_add(state->inputs, std::uint64_t{of_team[k]});
      } else {
        fetch_max(k % 2 == 0 ? state->turned_least[k / 2] : state->greatest[k / 2], ~of_team[k]);
      }
    });
  }

 private:
  /// A number of a coordinate (the batch is first) as an unsigned number in the same order.
  ROOST_FN static std::uint32_t turned(const coordinate<D>& c, int axis) {
    return static_cast<std::uint32_t>(axis == 0 ? c.batch : c.at[larger(axis, 1) - 1]) ^ index_state<D>::sign;
  }
};

/// Inserts the superblocks into the table, and marks their blocks.
template <class Place, int D, class Source>
struct insert_superblocks {
  static constexpr int threads = sparse_tuning<cuda>::threads;
  static constexpr std::uint32_t tile = sparse_tuning<Place>::tile;
  Source source;
  std::uint64_t count;
  block_table<D> table;
  std::uint32_t* taken;  // slots, in any order
  std::uint32_t most;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const detail::grid<D> grid = table.state->measured();
    if (index == 0 && team.rank() == 0) table.state->grid = grid;
    if (!grid.fits()) return table.state->fail(too_wide);
    if (peek(table.state->failed) != 0) return;
    for_each_given<D>(team, source, count, index, tile, [&](const coordinate<D>& c) {
      cell position;
      grid.locate(c, position);
      const std::uint32_t slot = insert(position.key);
      if (slot == superblock::none) return;
      const std::uint64_t bit = std::uint64_t{1} << position.block();
      std::uint64_t& blocks = table.superblocks[slot].blocks;
      if ((peek(blocks) & bit) == 0) fetch_or(blocks, bit);
    });
  }

 private:
  ROOST_FN std::uint32_t insert(std::uint64_t key) const {
    std::uint32_t slot = table.home(key);
    ROOST_ROLLED
    for (std::uint32_t step = 0; step < table.steps_most; ++step) {
      std::uint64_t& word = table.superblocks[slot].key_plus_1;
      std::uint64_t here = peek(word);
      if (here == 0) {
        here = shared_access::compare_exchange(&word, std::uint64_t{0}, key + 1);
        if (here == 0) {
          const std::uint32_t index = fetch_add(table.state->superblocks, 1u);
          if (index < most) {
            taken[index] = slot;
          } else {
            table.state->fail(too_many);
          }
          return slot;
        }
      }
      if (here == key + 1) return slot;
      slot = table.next(slot);
    }
    // A table that is too full has already failed.
    table.state->fail(peek(table.state->superblocks) < most ? crowded : too_many);
    return superblock::none;
  }
};

/// Finds the first block of each superblock by comparing it with all others, if there are few: tile by tile,
/// each tile with a part of the others.
template <class Place, int D>
struct compare_superblocks {
  static constexpr int threads = sparse_tuning<cuda>::threads;
  static constexpr std::uint32_t tile = 256;
  block_table<D> table;
  const std::uint32_t* taken;
  std::uint32_t parts;

  struct pieces {
    std::uint64_t* order;
    std::uint32_t* blocks;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint64_t>(tile), memory.take<std::uint32_t>(tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    const std::uint32_t count = table.state->good_superblocks(),
                        first = static_cast<std::uint32_t>(index) / parts * tile,
                        part = static_cast<std::uint32_t>(index) % parts;
    if (first >= count) return;
    const pieces others = scratch_of(*this, memory);
    const detail::grid<D>& grid = table.grid();
    constexpr int per_worker = static_cast<int>(tile) / Team::size;
    const std::uint32_t n = smaller(tile, count - first);
    std::uint64_t mine[per_worker];
    std::uint32_t before[per_worker];
    for_each_held<per_worker>(team, n, [&](int held, int i) {
      mine[held] = grid.order_of(sector(first + static_cast<std::uint32_t>(i)).key_plus_1 - 1);
      before[held] = 0;
    });
    ROOST_ROLLED
    for (std::uint32_t from = part * tile; from < count; from += parts * tile) {
      const std::uint32_t m = smaller(tile, count - from);
      team.sync();
      for_each_of(team, m, [&](std::uint32_t j) {
        const superblock& other = sector(from + j);
        others.order[j] = grid.order_of(other.key_plus_1 - 1);
        others.blocks[j] = count_bits(other.blocks);
      });
      team.sync();
      for_each_held<per_worker>(team, n, [&](int held, int) {
        for (std::uint32_t j = 0; j < m; ++j)
          before[held] += others.order[j] < mine[held] ? others.blocks[j] : 0;
      });
    }
    for_each_held<per_worker>(team, n, [&](int held, int i) {
      superblock& target = sector(first + static_cast<std::uint32_t>(i));
      if (before[held] != 0) fetch_add(target.first_block, before[held]);
      if (part == 0) fetch_add(table.state->blocks, count_bits(target.blocks));
    });
  }

 private:
  ROOST_FN superblock& sector(std::uint32_t index) const { return table.superblocks[taken[index]]; }
};

// The same by sorting.

template <int D>
struct superblock_in_order {
  block_table<D> table;
  const std::uint32_t* taken;
  ROOST_FN pair<std::uint64_t, std::uint32_t> operator()(std::size_t i) const {
    if (i >= table.state->good_superblocks()) return {~std::uint64_t{0}, superblock::none};  // comes last
    const std::uint32_t slot = taken[i];
    return {table.grid().order_of(table.superblocks[slot].key_plus_1 - 1), slot};
  }
};

template <int D>
struct blocks_of_sorted {
  block_table<D> table;
  const pair<std::uint64_t, std::uint32_t>* sorted;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return i < table.state->good_superblocks() ? count_bits(table.superblocks[sorted[i].value].blocks) : 0;
  }
};

template <int D>
struct begin_superblock {
  block_table<D> table;
  const pair<std::uint64_t, std::uint32_t>* sorted;
  const std::uint64_t* blocks_before;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t count = table.state->good_superblocks();
    if (i >= count) return;
    table.superblocks[sorted[i].value].first_block = static_cast<std::uint32_t>(blocks_before[i]);
    if (i + 1 == count) table.state->blocks = static_cast<std::uint32_t>(blocks_before[count]);
  }
};

/// word |= bits. If neighbours of a warp change the same word at the same time, one atomic serves all of
/// them: the voxels of a block. Not if voxels are scattered: then comparing the words takes longer than the
/// atomics.
ROOST_FN void fetch_or_near(std::uint64_t& word, std::uint64_t bits) {
#if ROOST_ON_DEVICE && __CUDA_ARCH__ >= 800
  const unsigned all = __activemask();
  const auto at = reinterpret_cast<unsigned long long>(&word);
  if (__popc(__ballot_sync(all, __shfl_up_sync(all, at, 1) == at)) > 8) {
    const unsigned same = __match_any_sync(all, at);
    const std::uint32_t low = __reduce_or_sync(same, static_cast<std::uint32_t>(bits)),
                        high = __reduce_or_sync(same, static_cast<std::uint32_t>(bits >> 32));
    if (lane_of_warp() != __ffs(static_cast<int>(same)) - 1) return;
    bits = std::uint64_t{high} << 32 | low;
  }
#endif
  fetch_or(word, bits);
}

/// Marks the voxels of all blocks.
template <class Place, int D, class Source>
struct mark_voxels {
  static constexpr int threads = sparse_tuning<cuda>::threads;
  static constexpr std::uint32_t tile = sparse_tuning<Place>::tile;
  Source source;
  std::uint64_t count;
  block_table<D> table;
  std::uint32_t most;  // blocks

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    if (table.state->failed != 0) return;
    if (table.state->blocks > most) {
      if (index == 0 && team.rank() == 0) table.state->fail(too_many);
      return;
    }
    const detail::grid<D> grid = table.grid();
    for_each_given<D>(team, source, count, index, tile, [&](const coordinate<D>& c) {
      cell position;
      grid.locate(c, position);
      const std::uint32_t slot = table.slot_of(position.key);
      block& target = table.blocks[table.index_of(table.superblocks[slot], position.block())];
      const std::uint64_t bit = std::uint64_t{1} << position.voxel(), here = peek(target.voxels);
      if (here == 0)
        shared_access::store(&target.superblock, slot);  // all threads that see this write the same value
      if ((here & bit) == 0) fetch_or_near(target.voxels, bit);
    });
  }
};

/// For each block, counts the rows of all earlier blocks, in one pass: teams take tiles in the order in which
/// they begin.
template <class Place, int D>
struct index_blocks {
  static constexpr int threads = sparse_tuning<cuda>::threads;
  static constexpr std::uint32_t tile = sparse_tuning<Place>::tile;
  block_table<D> table;
  std::uint32_t most;
  std::uint64_t rows_most;
  earlier_teams turns;

  struct pieces {
    std::uint64_t* shared;  // two words, one for each call of `turns`
    std::uint32_t* before;  // of each block: the rows before it in the tile
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint64_t>(2), memory.take<std::uint32_t>(tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    const index_state<D>& state = *table.state;
    if (state.failed != 0 || state.blocks > most) return;
    const pieces parts = scratch_of(*this, memory);
    std::uint32_t* const before = parts.before;
    const std::uint64_t turn = turns.turn(team, parts.shared), first = turn * tile;
    if (first >= state.blocks) return;  // and so do all later teams
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, state.blocks - first));
    for_each_of(team, n, [&](std::uint32_t b) { before[b] = count_bits(table.blocks[first + b].voxels); });
    team.sync();
    const std::uint32_t of_last = before[n - 1];
    team.sync();
    team.exclusive_scan(before, before, n);
    team.sync();
    const std::uint32_t of_tile = before[n - 1] + of_last;
    const std::uint64_t before_tile = turns.sum_before(team, turn, of_tile, parts.shared + 1);
    if (first + n == state.blocks && team.rank() == 0) {
      const bool fit = before_tile + of_tile <= rows_most;
      if (!fit) table.state->fail(no_rows);
      table.state->rows = fit ? before_tile + of_tile : 0;
    }
    for_each_of(team, n, [&](std::uint32_t b) {
      table.blocks[first + b].first_row = static_cast<std::uint32_t>(before_tile) + before[b];
    });
  }
};

/// Writes the coordinates of a block's rows.
template <class Place, int D>
struct write_coordinates {
  static constexpr std::size_t parts = std::is_same_v<Place, host> ? 1 : 8;  // of a block
  block_table<D> table;
  coordinate<D>* coordinates;

  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t index = i / parts;
    const index_state<D>& state = *table.state;
    if (state.failed != 0 || index >= state.blocks) return;
    const block mine = load(table.blocks + index);
    const superblock& whole = table.superblocks[mine.superblock];
    const std::uint32_t block =
        select_bit(whole.blocks, static_cast<std::uint32_t>(index) - whole.first_block);
    constexpr std::uint32_t size = 64 / parts;
    const std::uint32_t begin = static_cast<std::uint32_t>(i % parts) * size;
    coordinate<D>* target = coordinates + mine.first_row + bits_before(mine.voxels, begin);
    ROOST_ROLLED
    for (std::uint64_t rest = mine.voxels & (~std::uint64_t{0} >> (64 - size) << begin); rest != 0;
         rest &= rest - 1)
      *target++ = state.grid.coordinate_of({whole.key_plus_1 - 1, block << 6 | lowest_bit(rest)});
  }
};

// Rows of the input: `rank` is a row in the order of blocks.

/// The rank of a coordinate of the source.
template <int D, class Source>
struct rank_of_input {
  block_table<D> table;
  Source source;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    coordinate<D> c{};
    return give(source, i, c) ? table.find(c).value_or(~0u) : ~0u;
  }
};

/// first[rank] = the first coordinate that has it.
struct find_first_input {
  const std::uint32_t* ranks;
  std::uint32_t* first;
  ROOST_FN void operator()(std::size_t i) const {
    if (ranks[i] != ~0u) fetch_min(first[ranks[i]], static_cast<std::uint32_t>(i));
  }
};

/// Whether a coordinate is the first of its rank.
struct is_first_input {
  const std::uint32_t* ranks;
  const std::uint32_t* first;
  ROOST_FN bool operator()(std::size_t i) const { return ranks[i] != ~0u && first[ranks[i]] == i; }
};

/// Gives a row to the rank of a first coordinate.
template <int D, class Source>
struct put_row {
  Source source;
  const std::uint32_t* ranks;
  std::uint32_t* row_of;  // of each rank
  coordinate<D>* coordinates;
  ROOST_FN void operator()(std::uint64_t row, std::uint64_t i) const {
    row_of[ranks[i]] = static_cast<std::uint32_t>(row);
    give(source, i, coordinates[row]);
  }
};

struct rank_to_row {
  const std::uint32_t* row_of;
  std::uint32_t* rows;
  ROOST_FN void operator()(std::size_t i) const {
    if (rows[i] != ~0u) rows[i] = row_of[rows[i]];
  }
};

/// Clears a table whose build has failed, so that lookups find nothing.
template <int D>
struct empty_if_failed {
  block_table<D> table;
  ROOST_FN void operator()(std::size_t slot) const {
    if (table.state->failed != 0) table.superblocks[slot].key_plus_1 = 0;
  }
};

}  // namespace roost::detail
