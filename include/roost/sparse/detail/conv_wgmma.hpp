#pragma once

#if defined(__CUDACC__)

#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include <cstdint>

#include "roost/detail/place/config.hpp"

// Products of tiles on Hopper, whose warp groups of 128 threads multiply operands in shared memory.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ROOST_WGMMA 1  // compiled for sm_90a
#else
#define ROOST_WGMMA 0
#endif

namespace roost::detail {

#if ROOST_WGMMA

#define ROOST_WGMMA_8(i)                                                                     \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
      "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define ROOST_WGMMA_OF(columns, numbers, left_number, right_number, type, ...)                         \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" columns \
               "k16.f32." type "." type " {" numbers "}, " left_number ", " right_number               \
               ", add, 1, 1, 0, 0;\n}\n"                                                               \
               : __VA_ARGS__                                                                           \
               : "l"(left), "l"(right))
#define ROOST_WGMMA_16_NUMBERS "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define ROOST_WGMMA_32(type) \
  ROOST_WGMMA_OF("32", ROOST_WGMMA_16_NUMBERS, "%16", "%17", type, ROOST_WGMMA_8(0), ROOST_WGMMA_8(8))
#define ROOST_WGMMA_64(type)                                                                           \
  ROOST_WGMMA_OF(                                                                                      \
      "64", ROOST_WGMMA_16_NUMBERS ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31", \
      "%32", "%33", type, ROOST_WGMMA_8(0), ROOST_WGMMA_8(8), ROOST_WGMMA_8(16), ROOST_WGMMA_8(24))

/// Begins sums += left * right, of 64 rows and Columns columns, 16 numbers deep.
template <class T, int Columns>
__device__ void begin_product(float (&sums)[Columns / 2], std::uint64_t left, std::uint64_t right) {
  constexpr bool half = std::is_same_v<T, __half>;
  if constexpr (Columns == 32 && half) ROOST_WGMMA_32("f16");
  if constexpr (Columns == 32 && !half) ROOST_WGMMA_32("bf16");
  if constexpr (Columns == 64 && half) ROOST_WGMMA_64("f16");
  if constexpr (Columns == 64 && !half) ROOST_WGMMA_64("bf16");
}

#undef ROOST_WGMMA_8
#undef ROOST_WGMMA_OF
#undef ROOST_WGMMA_16_NUMBERS
#undef ROOST_WGMMA_32
#undef ROOST_WGMMA_64

#endif  // ROOST_WGMMA

/// The product of 128 x Columns of a warp group, in slices of depth 32 of 16-bit numbers: the counterpart of
/// block_product (conv_cuda.hpp).
template <class T, int Columns, int Stages>
struct warp_group_product {
  static constexpr int rows = 128, slice = 32, piece = 8;
  static constexpr int stage_size = (rows + Columns) * slice, stages = Stages;
  static constexpr int sum_stride = Columns + 8;
  using sum = float;
  /// Of one instruction.
  static constexpr int columns_at_once = Columns > 64 ? 64 : Columns;
  struct product {
    float sums[rows / 64][Columns / columns_at_once][columns_at_once / 2] = {};
  };

  /// Rows have 64 bytes, whose 16-byte pieces are swizzled by row, so that 8 rows are in different banks; the
  /// descriptor below tells the tensor cores.
  ROOST_FN static constexpr std::uint32_t swizzled(std::uint32_t row, std::uint32_t number) {
    return row * slice + (number ^ (row / 2 % 4 * piece));
  }
  ROOST_FN static constexpr std::uint32_t left_index(std::uint32_t row, std::uint32_t number) {
    return swizzled(row, number);
  }
  /// The position of the i-th piece of packed weights, which are stored as needed: column by column.
  ROOST_FN static constexpr std::uint32_t right_index(std::uint32_t i) { return rows * slice + i * piece; }
  ROOST_FN static constexpr std::uint32_t packed_index(std::uint32_t depth, std::uint32_t column) {
    return swizzled(column, depth);
  }

#if ROOST_WGMMA
  __device__ static bool has_row(int) { return true; }

  template <class Load, class Needs>
  __device__ static void add(product& product, T* memory, int steps, const Load& load, const Needs&) {
    const auto fetch = [&](int step) {
      if (step < steps) load(memory + step % stages * stage_size);
      __pipeline_commit();
    };
    ROOST_ROLLED
    for (int step = 0; step < stages - 2; ++step) fetch(step);
    ROOST_ROLLED
    for (int step = 0; step < steps; ++step) {
      __pipeline_wait_prior(stages - 3);
      asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
      __syncthreads();
      const T* const stage = memory + step % stages * stage_size;
      const std::uint64_t left = descriptor(stage), right = descriptor(stage + rows * slice);
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
      ROOST_UNROLL
      for (int d = 0; d < slice; d += 16) {
        ROOST_UNROLL
        for (int r = 0; r < rows / 64; ++r) {
          ROOST_UNROLL
          for (int c = 0; c < Columns / columns_at_once; ++c)
            begin_product<T, columns_at_once>(product.sums[r][c], left + units(r * 64 * slice + d),
                                              right + units(c * columns_at_once * slice + d));
        }
      }
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
      fetch(step + stages -
            2);  // to the stage of the step before the previous one, whose product has finished
      asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
    __pipeline_wait_prior(0);
    __syncthreads();
  }

  /// All sums, in shared memory. They take the place of the stages.
  const __device__ static float* gather(const product& product, void* memory) {
    float* const all = static_cast<float*>(memory);
    const int first = static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
    ROOST_UNROLL
    for (int r = 0; r < rows / 64; ++r) {
      ROOST_UNROLL
      for (int c = 0; c < Columns / columns_at_once; ++c) {
        const float(&sums)[columns_at_once / 2] = product.sums[r][c];
        float* const to = all + (r * 64 + first) * sum_stride + c * columns_at_once + threadIdx.x % 4 * 2;
        ROOST_UNROLL
        for (int i = 0; i < columns_at_once / 2; i += 2)
          *reinterpret_cast<float2*>(to + i % 4 / 2 * 8 * sum_stride + i / 4 * 8) =
              make_float2(sums[i], sums[i + 1]);
      }
    }
    __syncthreads();
    return all;
  }

 private:
  static constexpr std::uint64_t units(int numbers) { return static_cast<std::uint64_t>(numbers) * 2 / 16; }
  /// Swizzled rows of 64 bytes, in consecutive groups of 8.
  __device__ static std::uint64_t descriptor(const T* memory) {
    const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(memory));
    return (address & 0x3FFFF) / 16 | std::uint64_t{1} << 16 | units(8 * slice) << 32 |
           std::uint64_t{2} << 62;
  }
#endif
};

}  // namespace roost::detail

#endif  // __CUDACC__
