#pragma once

#include "roost/detail/place/team.hpp"
#include "roost/ids/detail/combined.hpp"
#include "roost/ids/detail/sort_ids.hpp"

// Single numbers by id on a GPU: those of sorted ids from shared memory, and extremes without sorting.

namespace roost::detail {

/// Reduces the pieces that begin in a tile of sorted numbers. Pieces: reduce_pieces of rows of one number.
template <class Pieces>
struct reduce_numbers {
  static constexpr int threads = 256, teams_at_once = 6;
  static constexpr std::uint32_t tile = 2048, words = tile / 32, rows = tile / threads, warps = threads / 32;
  using Sum = typename Pieces::Sum;
  Pieces pieces;

  struct parts {
    Sum* number;           // of the tile, and of 32 items behind it
    std::uint32_t* heads;  // a bit for each of them: whether it is the first of its run
    std::uint32_t* begin;  // of the run that goes on where a word of `heads` begins
    std::uint32_t* count;  // of pieces
    std::uint16_t* piece;  // the first item of each
  };
  ROOST_FN parts scratch(scratch_memory& memory) const {
    return {memory.take<Sum>(tile + 32), memory.take<std::uint32_t>(words + 1),
            memory.take<std::uint32_t>(words), memory.take<std::uint32_t>(1),
            memory.take<std::uint16_t>(tile)};
  }

  template <class Team>
  ROOST_FN void operator()([[maybe_unused]] const Team& team, [[maybe_unused]] std::size_t index,
                           [[maybe_unused]] std::byte* memory) const {
#if ROOST_ON_DEVICE
    const parts here = scratch_of(*this, memory);
    const std::size_t first = index * tile, n = pieces.n;
    const std::uint32_t rank = threadIdx.x, lane = rank % 32, warp = rank / 32;
    load<rows>(here, first, rank, warp);
    if (warp == 0) load<1>(here, first, tile + lane, words);
    if (rank == 0) *here.count = 0;
    __syncthreads();
    if (warp == 0) find_begins(here, first, lane);
    __syncthreads();
    ROOST_UNROLL
    for (std::uint32_t k = 0; k < rows; ++k) {
      const std::uint32_t i = k * threads + rank;
      const bool begins = first + i < n && (first + i - begin_of(here, first, i)) % rows_of_piece == 0;
      const std::uint32_t lanes = __ballot_sync(~0u, begins);
      std::uint32_t before = 0;
      if (lane == 0 && lanes != 0) before = atomicAdd(here.count, __popc(lanes));
      before = __shfl_sync(~0u, before, 0) + __popc(lanes & ((1u << lane) - 1));
      if (begins) here.piece[before] = static_cast<std::uint16_t>(i);
    }
    __syncthreads();
    const std::uint32_t count = *here.count;
    for (std::uint32_t p = rank; p < count; p += threads) reduce(here, first, here.piece[p]);
#endif
  }

 private:
#if ROOST_ON_DEVICE
  /// Items first + i + k * threads, whose bits are words `word` + k * warps.
  template <std::uint32_t Each>
  __device__ void load(const parts& here, std::size_t first, std::uint32_t i, std::uint32_t word) const {
    std::uint32_t group[Each], before[Each];
    Sum number[Each];
    ROOST_UNROLL
    for (std::uint32_t k = 0; k < Each; ++k) {
      const std::size_t at = first + i + k * threads;
      group[k] = before[k] = ~0u;
      number[k] = 0;
      if (at >= pieces.n) continue;
      const grouped_row item = pieces.sorted.item(at);
      group[k] = item.key;
      if (at != 0) before[k] = pieces.sorted.group(at - 1);
      if (item.key < pieces.groups) number[k] = pieces.load(item, 0).x[0];
    }
    ROOST_UNROLL
    for (std::uint32_t k = 0; k < Each; ++k) {
      here.number[i + k * threads] = number[k];
      const std::uint32_t heads =
          __ballot_sync(~0u, group[k] != before[k] || first + i + k * threads >= pieces.n);
      if (threadIdx.x % 32 == 0) here.heads[word + k * warps] = heads;
    }
  }

  /// Where the run of the first item of the tile begins: groups ascend, and lanes look at 32 items at a time.
  __device__ std::uint32_t begin_before(std::size_t first, std::uint32_t lane) const {
    const std::uint32_t group = pieces.sorted.group(first);
    if (pieces.runs.known != nullptr || pieces.level != 0)
      return static_cast<std::uint32_t>(pieces.run_here(group).begin);
    std::size_t out = first - smaller<std::size_t>(first, 32), in = first;
    if (out != 0 && pieces.sorted.group(out) == group) {
      in = out;
      out = 0;
    }
    while (out < in) {  // items from `in` on are of the run; those before `out` are not
      const std::size_t step = ceil_div<std::size_t>(in - out, 32), at = out + lane * step;
      const std::uint32_t of_run = __ballot_sync(~0u, at >= in || pieces.sorted.group(at) == group);
      if (of_run == 0) {
        out += 31 * step + 1;
        continue;
      }
      const std::uint32_t least = __ffs(static_cast<int>(of_run)) - 1;
      in = smaller(in, out + least * step);
      if (least != 0) out += (least - 1) * step + 1;
    }
    return static_cast<std::uint32_t>(in);
  }

  __device__ void find_begins(const parts& here, std::size_t first, std::uint32_t lane) const {
    std::uint32_t of_tile = static_cast<std::uint32_t>(first);
    if ((here.heads[0] & 1) == 0 && pieces.sorted.group(first) < pieces.groups)
      of_tile = begin_before(first, lane);
    ROOST_UNROLL
    for (std::uint32_t w = lane; w < words; w += 32) {
      // The last head up to the end of this word, and then of the words before it; 0: none.
      const std::uint32_t mine = here.heads[w];
      std::uint32_t last = mine != 0 ? 32 * w + 32 - __clz(static_cast<int>(mine)) : 0;
      ROOST_UNROLL
      for (int apart = 1; apart < 32; apart *= 2) {
        const std::uint32_t other = __shfl_up_sync(~0u, last, apart);
        if (lane >= static_cast<std::uint32_t>(apart)) last = larger(last, other);
      }
      const std::uint32_t before = __shfl_up_sync(~0u, last, 1);
      const std::uint32_t begin =
          lane == 0 || before == 0 ? of_tile : static_cast<std::uint32_t>(first) + before - 1;
      here.begin[w] = begin;
      of_tile = last != 0 ? static_cast<std::uint32_t>(first) + last - 1 : of_tile;
      of_tile = __shfl_sync(~0u, of_tile, 31);
    }
  }

  /// Where the run of an item begins.
  __device__ static std::uint32_t begin_of(const parts& here, std::size_t first, std::uint32_t i) {
    const std::uint32_t heads = here.heads[i / 32] & (~0u >> (31 - i % 32));
    if (heads == 0) return here.begin[i / 32];
    return static_cast<std::uint32_t>(first) + i / 32 * 32 + 31 - __clz(static_cast<int>(heads));
  }

  __device__ void reduce(const parts& here, std::size_t first, std::uint32_t i) const {
    const std::uint32_t group = pieces.sorted.group(first + i);
    if (group >= pieces.groups) return;
    const std::uint64_t both = here.heads[i / 32] | std::uint64_t{here.heads[i / 32 + 1]} << 32;
    const auto behind = static_cast<std::uint32_t>(both >> i % 32 >> 1);
    const std::uint32_t count = behind == 0 ? rows_of_piece : __ffs(static_cast<int>(behind));
    const Sum* const number = here.number + i;
    Sum sum = number[0];
    const row_reduction how = pieces.options.how;
    if (how == row_reduction::sum || how == row_reduction::mean) {
      for (std::uint32_t k = 1; k < count; ++k) sum = combined(row_reduction::sum, sum, number[k]);
    } else {
      for (std::uint32_t k = 1; k < count; ++k) sum = combined(how, sum, number[k]);
    }
    const std::uint32_t begin = begin_of(here, first, i);
    const typename Pieces::numbers result{{sum}};
    if (behind != 0 && first + i != begin && pieces.long_runs != nullptr)
      pieces.long_runs[group] = {begin, static_cast<std::uint32_t>(first + i + count)};
    if (first + i == begin && behind != 0) {
      pieces.finish(group, 0, result, count);
    } else {
      pieces.pass_on(group, begin, (first + i - begin) / rows_of_piece, 0, result);
    }
  }
#endif
};

/// Replaces output numbers by those of their ids in any order: the result is the same, since -0 is less than
/// 0. A number that is read may be an old one, but never beyond the result.
template <bool Greatest, class Id, class Value>
struct replace_by_extreme {
  group_at<Id> group;
  const Value* numbers;  // or null: the least result of all is stored
  Value* out;

  ROOST_FN void operator()([[maybe_unused]] std::size_t i) const {
#if ROOST_ON_DEVICE
    using word = std::conditional_t<sizeof(Value) == 4, int, long long>;
    const std::uint32_t id = group(i).key;
    group.notice(id, i);
    if (id >= group.groups) return;
    word* const at = reinterpret_cast<word*>(out + id);
    word seen = *at, mine;
    if (numbers == nullptr) {
      mine = start();
      if (seen != mine) *at = mine;
      return;
    }
    memcpy(&mine, numbers + i, sizeof(mine));
    if constexpr (!std::is_integral_v<Value>) {
      if (is_nan(seen)) return;
      if (is_nan(mine)) mine = Greatest ? nan : nan | sign;
    }
    if (!is_beyond(mine, seen)) return;
    if (std::is_integral_v<Value> || mine >= 0) {  // floats of either sign are ordered like integers
      Greatest ? atomicMax(at, mine) : atomicMin(at, mine);
    } else {
      using bits = atomic_word<Value>;
      const auto target = reinterpret_cast<bits*>(at);
      Greatest ? atomicMin(target, static_cast<bits>(mine)) : atomicMax(target, static_cast<bits>(mine));
    }
#endif
  }

 private:
#if ROOST_ON_DEVICE
  using integer = std::conditional_t<sizeof(Value) == 4, int, long long>;
  static constexpr integer sign = static_cast<integer>(1ull << (8 * sizeof(Value) - 1)),
                           infinity = sizeof(Value) == 4 ? 0x7f800000ll : 0x7ff0000000000000ll,
                           nan = infinity | infinity >> 1;
  __device__ static bool is_nan(integer x) { return (x & ~sign) > infinity; }
  __device__ static integer start() {
    if constexpr (std::is_integral_v<Value>) return Greatest ? sign : ~sign;
    return Greatest ? infinity | sign : infinity;
  }
  __device__ static bool is_beyond(integer a, integer b) {
    if constexpr (!std::is_integral_v<Value>) {
      a = a < 0 ? a ^ ~sign : a;
      b = b < 0 ? b ^ ~sign : b;
    }
    return Greatest ? a > b : a < b;
  }
#endif
};

/// The extremes of single numbers on a GPU.
template <bool Greatest, class Place, class Id, class Value>
void reduce_extremes(const Place& place, std::span<Id> ids, const Value* numbers, std::span<Value> out,
                     const reduction_options& options) {
  using number = std::remove_const_t<Id>;
  using replace = replace_by_extreme<Greatest, number, Value>;
  const group_at<number> group{ids.data(), static_cast<std::uint32_t>(out.size()), options.wrong};
  if (!options.with_output) place.for_each(ids.size(), replace{group, nullptr, out.data()});
  place.for_each(ids.size(), replace{group, numbers, out.data()});
}

}  // namespace roost::detail
