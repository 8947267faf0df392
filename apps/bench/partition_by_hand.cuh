#pragma once

#include "roost/kernels.hpp"
#include "roost/roost.hpp"

// roost's partition pass written by hand: plain CUDA for pairs of 4 + 4 bytes into 256 regions, without teams
// and without generality.

namespace roost::bench::by_hand {

constexpr int threads = 512, items_of_thread = 12, tile = threads * items_of_thread, regions_most = 256;

__device__ inline unsigned region_of(unsigned key, unsigned seed, unsigned regions) {
  key ^= seed;
  key ^= key >> 16;
  key *= 0x85ebca6bu;
  key ^= key >> 13;
  key *= 0xc2b2ae35u;
  key ^= key >> 16;
  return __umulhi(key, regions);
}

static __global__ void start(unsigned long long* begin, unsigned long long* cursor,
                             unsigned long long capacity) {
  begin[threadIdx.x] = cursor[threadIdx.x] = threadIdx.x * capacity;
}

static __global__ void __launch_bounds__(threads, 2)
    scatter(const unsigned* keys, const unsigned* values, unsigned long long n, unsigned long long* cursor,
            unsigned long long capacity, uint2* out, unsigned* overflowed, unsigned seed, unsigned regions) {
  extern __shared__ uint2 staged[];
  __shared__ unsigned count[regions_most], first[regions_most];
  __shared__ unsigned long long shift_by[regions_most];
  using scan = cub::BlockScan<unsigned, threads>;
  __shared__ typename scan::TempStorage storage;
  const unsigned long long base = static_cast<unsigned long long>(blockIdx.x) * tile;
  const unsigned here = min(static_cast<unsigned long long>(tile), n - base);

  if (threadIdx.x < regions) count[threadIdx.x] = 0;
  __syncthreads();
  uint2 item[items_of_thread];
  unsigned rank[items_of_thread];
#pragma unroll
  for (int k = 0; k < items_of_thread; ++k) {
    const unsigned i = k * threads + threadIdx.x;
    if (i < here) item[k] = make_uint2(keys[base + i], values[base + i]);
  }
#pragma unroll
  for (int k = 0; k < items_of_thread; ++k) {
    if (k * threads + threadIdx.x < here)
      rank[k] = atomicAdd(&count[region_of(item[k].x, seed, regions)], 1u);
  }
  __syncthreads();
  const unsigned mine = threadIdx.x < regions ? count[threadIdx.x] : 0;
  unsigned sum;
  scan(storage).ExclusiveSum(mine, sum);
  if (threadIdx.x < regions) {
    first[threadIdx.x] = sum;
    shift_by[threadIdx.x] =
        (mine ? atomicAdd(&cursor[threadIdx.x], static_cast<unsigned long long>(mine)) : 0) - sum;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < items_of_thread; ++k) {
    if (k * threads + threadIdx.x < here)
      staged[first[region_of(item[k].x, seed, regions)] + rank[k]] = item[k];
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < here; i += threads) {
    const uint2 pair = staged[i];
    const unsigned region = region_of(pair.x, seed, regions);
    const unsigned long long to = shift_by[region] + i;
    if (to < (region + 1) * capacity) {
      out[to] = pair;
    } else {
      *overflowed = 1;
    }
  }
}

static __global__ void clip(unsigned long long* end, unsigned long long capacity) {
  end[threadIdx.x] = min(end[threadIdx.x], (threadIdx.x + 1) * capacity);
}

struct parts {
  using item_type = pair<std::uint32_t, std::uint32_t>;
  array<item_type, cuda> items_;
  array<std::uint64_t, cuda> begins_, ends_;
  array<std::uint32_t, cuda> overflowed_;
  const item_type* items() const { return items_.data(); }
  std::size_t extent() const { return items_.size(); }
  const std::uint64_t* begins() const { return begins_.data(); }
  const std::uint64_t* ends() const { return ends_.data(); }
};

}  // namespace roost::bench::by_hand

namespace roost::bench {

inline by_hand::parts partition_by_hand(const cuda& place, const std::uint32_t* keys,
                                        const std::uint32_t* values, std::size_t n) {
  using namespace by_hand;
  constexpr unsigned regions = 256;
  const std::uint64_t capacity = detail::with_slack(static_cast<double>(n) / regions, n);
  parts result{array<parts::item_type, cuda>(place, capacity * regions),
               array<std::uint64_t, cuda>(place, regions), array<std::uint64_t, cuda>(place, regions),
               array<std::uint32_t, cuda>(place, 1)};
  place.fill(result.overflowed_.data(), 0, sizeof(std::uint32_t));
  auto* const begin = reinterpret_cast<unsigned long long*>(result.begins_.data());
  auto* const cursor = reinterpret_cast<unsigned long long*>(result.ends_.data());
  start<<<1, regions, 0, place.stream()>>>(begin, cursor, capacity);
  kernels::check(
      cudaFuncSetAttribute(scatter, cudaFuncAttributeMaxDynamicSharedMemorySize, tile * sizeof(uint2)),
      "cudaFuncSetAttribute");
  scatter<<<static_cast<unsigned>(kernels::ceil_div<std::size_t>(n, tile)), threads, tile * sizeof(uint2),
            place.stream()>>>(keys, values, n, cursor, capacity,
                              reinterpret_cast<uint2*>(result.items_.data()), result.overflowed_.data(), 0,
                              regions);
  clip<<<1, regions, 0, place.stream()>>>(cursor, capacity);
  kernels::check(cudaGetLastError(), "launch of the partition by hand");
  return result;
}

}  // namespace roost::bench
