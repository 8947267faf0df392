#pragma once

#if defined(__CUDACC__)

#include <cub/block/block_radix_sort.cuh>

#include "roost/sparse/detail/neighbours.hpp"

// Orders a map's rows so that rows with equal neighbour masks are consecutive: then a tile of a convolution
// has few offsets. Rows stay in their group, whose neighbours are in the cache at the same time.

namespace roost::detail {

/// order[p]: the row at position p.
struct order_by_masks {
  static constexpr int threads = 512, each = 16, group = threads * each;
  using sort = cub::BlockRadixSort<std::uint32_t, threads, each, std::uint16_t>;

  const std::uint32_t* masks;
  std::uint32_t words;
  int bits;  // of a mask's first word
  const std::uint64_t* count;
  std::uint64_t most;
  std::uint32_t* order;

  static std::size_t scratch_bytes() { return sizeof(typename sort::TempStorage); }

  template <class Team>
  ROOST_FN void operator()(const Team&, std::size_t index, std::byte* scratch) const {
#if ROOST_ON_DEVICE
    const std::uint64_t first = index * group, rows = *count;
    std::uint32_t keys[each];
    std::uint16_t from[each];
    ROOST_UNROLL
    for (int i = 0; i < each; ++i) {
      const std::uint32_t at = threadIdx.x * each + static_cast<std::uint32_t>(i);
      keys[i] = first + at < rows ? masks[(first + at) * words] : ~0u;  // padding comes last
      from[i] = static_cast<std::uint16_t>(at);
    }
    sort(*reinterpret_cast<typename sort::TempStorage*>(scratch)).SortBlockedToStriped(keys, from, 0, bits);
    ROOST_UNROLL
    for (int i = 0; i < each; ++i) {
      const std::uint64_t position = first + static_cast<std::uint32_t>(i * threads) + threadIdx.x;
      if (position < most) order[position] = static_cast<std::uint32_t>(first) + from[i];
    }
#endif
  }
};

/// ordered[k][p]: the neighbour of the row at position p.
struct order_neighbours {
  static constexpr int threads = 512, group = order_by_masks::group;
  const std::uint32_t *neighbours, *order;
  std::uint64_t stride, most, groups;
  std::uint32_t* ordered;

  static std::size_t scratch_bytes() { return group * sizeof(std::uint32_t); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* scratch) const {
#if ROOST_ON_DEVICE
    auto* const here = reinterpret_cast<std::uint32_t*>(scratch);
    const std::uint64_t first = index % groups * group, begin = index / groups * stride + first;
    const std::uint32_t rows = static_cast<std::uint32_t>(smaller<std::uint64_t>(group, most - first));
    ROOST_UNROLL
    for (std::uint32_t i = threadIdx.x; i < group; i += threads)
      if (i < rows) here[i] = neighbours[begin + i];
    team.sync();
    ROOST_UNROLL
    for (std::uint32_t i = threadIdx.x; i < group; i += threads)
      if (i < rows) ordered[begin + i] = here[order[first + i] - static_cast<std::uint32_t>(first)];
#endif
  }
};

}  // namespace roost::detail

#endif  // __CUDACC__
