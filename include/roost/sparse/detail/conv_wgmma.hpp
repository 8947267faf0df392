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
#define ROOST_WGMMA_32(i) \
  ROOST_WGMMA_8(i), ROOST_WGMMA_8((i) + 8), ROOST_WGMMA_8((i) + 16), ROOST_WGMMA_8((i) + 24)
#define ROOST_WGMMA_TEN(tens)                                                                      \
  "%" tens "0,%" tens "1,%" tens "2,%" tens "3,%" tens "4,%" tens "5,%" tens "6,%" tens "7,%" tens \
  "8,"                                                                                             \
  "%" tens "9"
#define ROOST_WGMMA_30 ROOST_WGMMA_TEN("") "," ROOST_WGMMA_TEN("1") "," ROOST_WGMMA_TEN("2")
#define ROOST_WGMMA_60 \
  ROOST_WGMMA_30 "," ROOST_WGMMA_TEN("3") "," ROOST_WGMMA_TEN("4") "," ROOST_WGMMA_TEN("5")
#define ROOST_WGMMA_120                                                                 \
  ROOST_WGMMA_60 "," ROOST_WGMMA_TEN("6") "," ROOST_WGMMA_TEN("7") "," ROOST_WGMMA_TEN( \
      "8") "," ROOST_WGMMA_TEN("9") "," ROOST_WGMMA_TEN("10") "," ROOST_WGMMA_TEN("11")
// columns; the numbers of the sums, of both descriptors and of `turned` among the operands; the sums
#define ROOST_WGMMA_OF(columns, numbers, left_flag, right_flag, turned_flag, type, ...)                \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" columns \
               "k16.f32." type "." type " {" numbers "}, " left_flag ", " right_flag                   \
               ", add, 1, 1, " turned_flag ", " turned_flag ";\n}\n"                                   \
               : __VA_ARGS__                                                                           \
               : "l"(left), "l"(right), "n"(Turned ? 1 : 0))
#define ROOST_WGMMA_BEGIN(type)                                                                             \
  if constexpr (Columns == 32)                                                                              \
    ROOST_WGMMA_OF("32", ROOST_WGMMA_TEN("") ",%10,%11,%12,%13,%14,%15", "%16", "%17", "%18", type,         \
                   ROOST_WGMMA_8(0), ROOST_WGMMA_8(8));                                                     \
  if constexpr (Columns == 64)                                                                              \
    ROOST_WGMMA_OF("64", ROOST_WGMMA_30 ",%30,%31", "%32", "%33", "%34", type, ROOST_WGMMA_32(0));          \
  if constexpr (Columns == 128)                                                                             \
    ROOST_WGMMA_OF("128", ROOST_WGMMA_60 ",%60,%61,%62,%63", "%64", "%65", "%66", type, ROOST_WGMMA_32(0),  \
                   ROOST_WGMMA_32(32));                                                                     \
  if constexpr (Columns == 256)                                                                             \
  ROOST_WGMMA_OF("256", ROOST_WGMMA_120 ",%120,%121,%122,%123,%124,%125,%126,%127", "%128", "%129", "%130", \
                 type, ROOST_WGMMA_32(0), ROOST_WGMMA_32(32), ROOST_WGMMA_32(64), ROOST_WGMMA_32(96))

/// Begins sums += left * right, of 64 rows and Columns columns, 16 numbers deep. Turned: both operands are
/// stored by depth, [depth][row] and [depth][column]; else [row][depth] and [column][depth].
template <class T, int Columns, bool Turned>
__device__ void begin_product(float (&sums)[Columns / 2], std::uint64_t left, std::uint64_t right) {
  if constexpr (std::is_same_v<T, __half>) {
    ROOST_WGMMA_BEGIN("f16");
  } else {
    ROOST_WGMMA_BEGIN("bf16");
  }
}

#undef ROOST_WGMMA_8
#undef ROOST_WGMMA_32
#undef ROOST_WGMMA_TEN
#undef ROOST_WGMMA_30
#undef ROOST_WGMMA_60
#undef ROOST_WGMMA_120
#undef ROOST_WGMMA_OF
#undef ROOST_WGMMA_BEGIN

#endif  // ROOST_WGMMA

/// The product of Rows x Columns of one warp group, or of two if there are more than 128 columns, in slices
/// of depth 32 of 16-bit numbers: the counterpart of block_product (conv_cuda.hpp).
template <class T, int Rows, int Columns, bool Turned, int Stages>
struct warp_group_product {
  static constexpr int slice = 32, piece = 8, groups = Columns > 128 ? 2 : 1, rows_of_group = Rows / groups;
  static constexpr int stage_size = (Rows + Columns) * slice, stages = Stages;
  static constexpr int sum_stride = Columns + 8;
  static constexpr std::size_t bytes = stages * stage_size * sizeof(T);
  static constexpr int parts = rows_of_group / 64;  // which one instruction multiplies
  using sum = float;
  struct product {
    float sums[parts][Columns / 2] = {};
  };

  /// The position in a stage of a number of an operand's row, whose pieces of 16 bytes are swizzled by row,
  /// so that 8 rows are in different banks; the descriptor below tells the tensor cores. Rows have 64 bytes;
  /// turned, 128 bytes, and 64 numbers of all rows come first.
  ROOST_FN static constexpr std::uint32_t swizzled(std::uint32_t row, std::uint32_t number) {
    if constexpr (Turned) {
      return number / 64 * (slice * 64) + row * 64 + ((number % 64) ^ (row % 8 * piece));
    } else {
      return row * slice + (number ^ (row / 2 % 4 * piece));
    }
  }
  ROOST_FN static constexpr std::uint32_t left_index(std::uint32_t row, std::uint32_t number) {
    return swizzled(row, number);
  }
  ROOST_FN static constexpr std::uint32_t turned_right_index(std::uint32_t row, std::uint32_t number) {
    return Rows * slice + swizzled(row, number);
  }
  /// The position of the i-th piece of packed weights, which are stored as needed: column by column.
  ROOST_FN static constexpr std::uint32_t right_index(std::uint32_t i) { return Rows * slice + i * piece; }
  static constexpr bool packs_columns = true;
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
      const int group = static_cast<int>(threadIdx.x) / 128;
      const std::uint64_t left = descriptor(stage + group * rows_of_group * slice),
                          right = descriptor(stage + Rows * slice);
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
      ROOST_UNROLL
      for (int r = 0; r < parts; ++r) {
        ROOST_UNROLL
        for (int d = 0; d < slice; d += 16) {
          const std::uint64_t deep = units(Turned ? d * 64 : d);
          begin_product<T, Columns, Turned>(product.sums[r], left + units(r * 64 * slice) + deep,
                                            right + deep);
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
    const int thread = static_cast<int>(threadIdx.x),
              first = thread / 128 * rows_of_group + thread % 128 / 32 * 16 + thread % 32 / 4;
    ROOST_UNROLL
    for (int r = 0; r < parts; ++r) {
      float* const to = all + (r * 64 + first) * sum_stride + thread % 4 * 2;
      ROOST_UNROLL
      for (int i = 0; i < Columns / 2; i += 2)
        *reinterpret_cast<float2*>(to + i % 4 / 2 * 8 * sum_stride + i / 4 * 8) =
            make_float2(product.sums[r][i], product.sums[r][i + 1]);
    }
    __syncthreads();
    return all;
  }

 private:
  static constexpr std::uint64_t units(int numbers) { return static_cast<std::uint64_t>(numbers) * 2 / 16; }
  /// For swizzled rows in consecutive groups of 8: the distances between groups, and, turned, between 64
  /// numbers of all rows and the next.
  __device__ static std::uint64_t descriptor(const T* memory) {
    const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(memory));
    constexpr std::uint64_t next = Turned ? units(64 * slice) : 1, swizzle = Turned ? 1 : 2;
    return (address & 0x3FFFF) / 16 | next << 16 | units(8 * (Turned ? 64 : slice)) << 32 | swizzle << 62;
  }
#endif
};

}  // namespace roost::detail

#endif  // __CUDACC__
