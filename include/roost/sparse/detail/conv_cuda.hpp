#pragma once

#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "roost/sparse/detail/conv_wgmma.hpp"
#include "roost/sparse/kernel_map.hpp"

// Convolution on cuda: multiplies a tile of output rows, whose neighbours are gathered into shared memory
// some steps ahead, by the weights of each offset at which any row has a neighbour.

namespace roost::detail {

/// A slice of a product's depth: 64 bytes.
template <class T>
inline constexpr int conv_slice = 64 / static_cast<int>(sizeof(T));
/// The numbers that are copied at once: 16 bytes.
template <class T>
inline constexpr int conv_piece = 16 / static_cast<int>(sizeof(T));

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/// The product of Rows x Columns of one warp, by the tensor cores: sums += left * right, slice by slice. Left
/// is [row][depth], or, Turned, [depth][row]; right is [depth][column].
template <class T, int Rows, int Columns, int Slice, bool Turned, int LeftStride, int RightStride>
class tensor_product {
  static constexpr bool rounds = std::is_same_v<T, float>;
  static constexpr int depth = rounds ? 8 : 16;
  using number = std::conditional_t<rounds, nvcuda::wmma::precision::tf32, T>;
  using left_layout = std::conditional_t<Turned, nvcuda::wmma::col_major, nvcuda::wmma::row_major>;
  using left_part = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, depth, number, left_layout>;
  using right_part =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, depth, number, nvcuda::wmma::row_major>;
  using sum_part = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, depth, float>;

 public:
  using sum = float;

  __device__ tensor_product() {
    for (auto& row : sums_)
      for (auto& each : row) nvcuda::wmma::fill_fragment(each, 0.f);
  }

  __device__ void add(const T* left, const T* right) {
    ROOST_UNROLL
    for (int d = 0; d < Slice; d += depth) {
      right_part rights[Columns / 16];
      ROOST_UNROLL
      for (int c = 0; c < Columns / 16; ++c) load(rights[c], right + d * RightStride + c * 16, RightStride);
      ROOST_UNROLL
      for (int r = 0; r < Rows / 16; ++r) {
        left_part left_piece;
        load(left_piece, left + (Turned ? d * LeftStride + r * 16 : r * 16 * LeftStride + d), LeftStride);
        ROOST_UNROLL
        for (int c = 0; c < Columns / 16; ++c)
          nvcuda::wmma::mma_sync(sums_[r][c], left_piece, rights[c], sums_[r][c]);
      }
    }
  }

  __device__ void store(float* to, int stride) const {
    ROOST_UNROLL
    for (int r = 0; r < Rows / 16; ++r) {
      ROOST_UNROLL
      for (int c = 0; c < Columns / 16; ++c)
        nvcuda::wmma::store_matrix_sync(to + r * 16 * stride + c * 16, sums_[r][c], stride,
                                        nvcuda::wmma::mem_row_major);
    }
  }

 private:
  template <class Part>
  __device__ static void load(Part& part, const T* from, unsigned stride) {
    nvcuda::wmma::load_matrix_sync(part, from, stride);
    if constexpr (rounds) {
      for (auto& each : part.x) each = nvcuda::wmma::__float_to_tf32(each);
    }
  }

  sum_part sums_[Rows / 16][Columns / 16];
};
#endif

/// The same in full precision: a lane computes every 8th row and every 4th column.
template <class T, int Rows, int Columns, int Slice, bool Turned, int LeftStride, int RightStride>
class plain_product {
 public:
  using sum = conv_sum<T>;

  __device__ void add(const T* left, const T* right) {
    const int row = static_cast<int>(threadIdx.x) % 32 / 4, column = static_cast<int>(threadIdx.x) % 4;
    for (int d = 0; d < Slice; ++d) {
      sum rights[Columns / 4];
      ROOST_UNROLL
      for (int c = 0; c < Columns / 4; ++c) rights[c] = right[d * RightStride + c * 4 + column];
      ROOST_UNROLL
      for (int r = 0; r < Rows / 8; ++r) {
        const int left_row = r * 8 + row;
        const sum factor = left[Turned ? d * LeftStride + left_row : left_row * LeftStride + d];
        ROOST_UNROLL
        for (int c = 0; c < Columns / 4; ++c) sums_[r][c] += factor * rights[c];
      }
    }
  }

  __device__ void store(sum* to, int stride) const {
    const int row = static_cast<int>(threadIdx.x) % 32 / 4, column = static_cast<int>(threadIdx.x) % 4;
    ROOST_UNROLL
    for (int r = 0; r < Rows / 8; ++r) {
      ROOST_UNROLL
      for (int c = 0; c < Columns / 4; ++c) to[(r * 8 + row) * stride + c * 4 + column] = sums_[r][c];
    }
  }

 private:
  sum sums_[Rows / 8][Columns / 4] = {};
};

/// The product of Rows x Columns of a block: the layout of its shared memory, and its division among warps.
template <class T, int Rows, int Columns, int Slice, bool Turned, bool Tensor, int Threads, int Stages>
struct block_product {
  static constexpr int across = Columns > 64 || Turned ? 2 : 1, down = Threads / 32 / across;
  static constexpr int slice = Slice, piece = conv_piece<T>;
  // A row is followed by the padding of a piece, so that rows are in different banks.
  static constexpr int left_stride = (Turned ? Rows : slice) + piece, right_stride = Columns + piece;
  static constexpr int left_size = (Turned ? slice : Rows) * left_stride,
                       stage_size = left_size + slice * right_stride;
  static constexpr int stages = Stages;
  template <template <class, int, int, int, bool, int, int> class Product>
  using of_warp = Product<T, Rows / down, Columns / across, Slice, Turned, left_stride, right_stride>;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  using product = std::conditional_t<Tensor, of_warp<tensor_product>, of_warp<plain_product>>;
#else
  using product = of_warp<plain_product>;  // the tensor cores of earlier GPUs do not take these types
#endif
  using sum = typename product::sum;
  static constexpr int sum_stride = Columns + 8;
  static constexpr std::size_t bytes =
      std::max(stages * stage_size * sizeof(T), Rows* sum_stride * sizeof(sum));

  /// The positions in a stage of a number of a row, of the i-th piece of a slice of packed weights, and of a
  /// weight in such a slice.
  ROOST_FN static constexpr std::uint32_t left_index(std::uint32_t row, std::uint32_t number) {
    return row * left_stride + number;
  }
  ROOST_FN static constexpr std::uint32_t right_index(std::uint32_t i) {
    constexpr std::uint32_t across = Columns / piece;
    return left_size + i / across * right_stride + i % across * piece;
  }
  ROOST_FN static constexpr std::uint32_t turned_right_index(std::uint32_t row, std::uint32_t number) {
    return left_size + row * right_stride + number;
  }
  static constexpr bool packs_columns = false;
  ROOST_FN static constexpr std::uint32_t packed_index(std::uint32_t depth, std::uint32_t column) {
    return depth * Columns + column;
  }

  /// Whether this warp's part has a row, and where it begins.
  __device__ static bool has_row(int row) {
    return row / (Rows / down) == block_product::row() / (Rows / down);
  }
  __device__ static int row() { return static_cast<int>(threadIdx.x) / 32 / across * (Rows / down); }
  __device__ static int column() { return static_cast<int>(threadIdx.x) / 32 % across * (Columns / across); }

  /// Adds the slices of all steps: load(stage) fetches the next, and needs() says whether this warp uses it.
  template <class Load, class Needs>
  __device__ static void add(product& sums, T* memory, int steps, const Load& load, const Needs& needs) {
    const auto fetch = [&](int step) {
      if (step < steps) load(memory + step % stages * stage_size);
      __pipeline_commit();
    };
    ROOST_ROLLED
    for (int step = 0; step < stages - 1; ++step) fetch(step);
    const bool early = threadIdx.x < Threads / 2;  // so that some warps load while others multiply
    ROOST_ROLLED
    for (int step = 0; step < steps; ++step) {
      __pipeline_wait_prior(stages - 2);
      __syncthreads();
      if (early) fetch(step + stages - 1);
      const T* const left = memory + step % stages * stage_size;
      if (needs()) sums.add(left + row() * (Turned ? 1 : left_stride), left + left_size + column());
      if (!early) fetch(step + stages - 1);
    }
    __pipeline_wait_prior(0);
    __syncthreads();
  }

  /// All sums of the block, in shared memory. They take the place of the stages.
  const __device__ static sum* gather(const product& sums, void* memory) {
    sum* const block_sums = static_cast<sum*>(memory);
    sums.store(block_sums + row() * sum_stride + column(), sum_stride);
    __syncthreads();
    return block_sums;
  }
};

/// Copies 16 bytes to shared memory, or zeros.
template <class T>
__device__ void fetch_piece(T* to, const T* from, bool there) {
  __pipeline_memcpy_async(to, from, 16, there ? 0 : 16);
}

/// Rows of numbers, padded with zeros to a multiple of 16 bytes.
template <class T>
struct pad_rows {
  const T* from;
  std::uint32_t columns, stride;
  T* to;
  ROOST_FN void operator()(std::size_t i) const {
    to[i] = i % stride < columns ? from[i / stride * columns + i % stride] : T(0.f);
  }
};

/// The product of a block with the instructions of the device that it is compiled for. The host does not know
/// which one runs, only that devices with warp groups have much shared memory.
template <class ByWarps, class ByGroups, bool Groups>
struct either_product {
  using block = std::conditional_t<Groups && ROOST_WGMMA, ByGroups, ByWarps>;
  /// The shared memory of a block that needs `more` besides its product; `most` is available.
  static std::size_t scratch_bytes(std::size_t more, std::size_t most) {
    const std::size_t bytes = more + (Groups ? std::max(ByWarps::bytes, ByGroups::bytes) : ByWarps::bytes);
    return bytes <= most ? bytes : more + ByWarps::bytes;
  }
};

/// How a tile of output rows is multiplied.
template <class T, int Columns, bool Tensor>
struct conv_tile {
  static constexpr int rows = 128, threads = Columns > 128 ? 256 : 128, slice = conv_slice<T>;
  using product =
      either_product<block_product<T, rows, Columns, slice, false, Tensor, threads, (Columns > 64 ? 4 : 3)>,
                     warp_group_product<T, rows, Columns, false,
                                        (Columns > 128  ? 8
                                         : Columns > 64 ? 5
                                                        : 4)>,
                     Tensor && sizeof(T) == 2>;
  using block = typename product::block;
};

/// Packs weights [offset][in][out] as [offset][panel][slice] with zeros at the borders, each slice in the
/// layout of the tile; some numbers of a column at once. Turned: transposed to [offset][out][in] first.
template <class T, int Columns, bool Tensor, bool Turned>
struct pack_for_cuda {
  using tile = conv_tile<T, Columns, Tensor>;
  static constexpr int at_once = 8, pieces = tile::slice / at_once;
  const T* weights;
  std::uint32_t depth, padded_depth, columns, panels;
  T* packed;

  std::size_t size(std::size_t volume) const { return volume * panels * padded_depth * Columns / at_once; }

  ROOST_FN void operator()(std::size_t i) const {
    // Consecutive threads read consecutive numbers.
    const auto in_slice = static_cast<std::uint32_t>(i % (pieces * Columns)),
               column = Turned ? in_slice / pieces : in_slice % Columns,
               first = (Turned ? in_slice % pieces : in_slice / Columns) * at_once;
    const std::size_t slices = padded_depth / tile::slice, rest = i / (pieces * Columns),
                      d = rest % slices * tile::slice + first, k = rest / slices / panels,
                      c = rest / slices % panels * Columns + column;
    T numbers[at_once];
    ROOST_UNROLL
    for (int j = 0; j < at_once; ++j) {
      const bool there = d + j < depth && c < columns;
      numbers[j] = there ? weights[k * depth * columns + (Turned ? c * depth + d + j : (d + j) * columns + c)]
                         : T(0.f);
    }
    T* const to = packed + rest * tile::slice * Columns;
    if constexpr (tile::block::packs_columns) {
      uint4 word;
      memcpy(&word, numbers, sizeof(word));
      *reinterpret_cast<uint4*>(to + tile::block::packed_index(first, column)) = word;
    } else {
      ROOST_UNROLL
      for (int j = 0; j < at_once; ++j) to[tile::block::packed_index(first + j, column)] = numbers[j];
    }
  }
};

/// A tile of output rows.
template <class T, int Columns, bool Tensor>
struct convolve_rows {
  using layout = conv_tile<T, Columns, Tensor>;
  using block = typename layout::block;
  static constexpr int tile = layout::rows, threads = layout::threads, slice = layout::slice;
  static constexpr int teams_at_once = Columns > 128 ? 1 : Columns > 64 ? 2 : Columns > 32 ? 3 : 4;
  static constexpr int offsets_at_once = 32;
  static constexpr std::size_t alignment = 512;  // of stages

  kernel_map_view map;
  std::uint32_t stride, padded_depth, columns, panels;  // of input rows in numbers; of weights
  bool aligned_output;                                  // rows are whole pieces of 16 bytes
  const T *input, *weights, *bias;                      // weights are packed; no bias: null
  T* output;
  /// If there are more than one, each processes a share of the offsets, whose sums are added later:
  /// [split][row][column].
  std::uint32_t splits;
  conv_sum<T>* sums_of_splits;

  static std::size_t scratch_bytes(std::size_t most) {
    constexpr std::size_t more = ((offsets_at_once + 1) * tile + 32) * sizeof(std::uint32_t) + alignment;
    return layout::product::scratch_bytes(more, most);
  }

  template <class Team>
  ROOST_FN void operator()(const Team&, std::size_t index, std::byte* scratch) const {
#if ROOST_ON_DEVICE
    scratch += -__cvta_generic_to_shared(scratch) % alignment;
    T* const memory = reinterpret_cast<T*>(scratch);
    auto* const offsets_of_warp = reinterpret_cast<std::uint32_t*>(scratch + block::bytes);
    std::uint32_t* const rows = offsets_of_warp + 32;
    std::uint32_t* const sources = rows + tile;  // [offset of the mask][row]

    const std::uint64_t outputs = map.device_outputs != nullptr ? *map.device_outputs : map.outputs,
                        first = index / panels / splits * tile;
    if (first >= outputs) return;
    const std::uint32_t panel = static_cast<std::uint32_t>(index % panels), thread = threadIdx.x,
                        split = static_cast<std::uint32_t>(index / panels % splits),
                        count = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, outputs - first));
    const bool has_row = thread < count;
    const std::uint64_t my_row = !has_row               ? 0
                                 : map.order != nullptr ? map.order[first + thread]
                                                        : first + thread;
    if (thread < tile) rows[thread] = static_cast<std::uint32_t>(my_row);
    const std::uint32_t* const neighbours = map.order != nullptr ? map.ordered_neighbours : map.neighbours;

    typename block::product sums;
    const int slices = static_cast<int>(padded_depth) / block::slice;
    for (std::uint32_t word = 0; word < map.words; ++word) {
      const std::uint32_t mask = has_row ? map.masks[my_row * map.words + word] & bits_of(split, word) : 0;
      const word_of_masks found = find_offsets(mask, word, offsets_of_warp);
      const std::uint32_t* from_row = neighbours + (word * 32) * map.stride + first + thread;
      std::uint32_t* to_row = sources + thread;
      for (std::uint32_t left = thread < tile ? found.offsets : 0; left != 0;
           left &= left - 1, to_row += tile)
        // Asynchronous, since otherwise each offset would wait for the previous one.
        has_row ? __pipeline_memcpy_async(to_row, from_row + first_of(left) * map.stride, sizeof(*to_row))
                : static_cast<void>(*to_row = row_of_none);
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncthreads();
      add_products(sums, memory, sources, found, panel, slices);
    }
    write(block::gather(sums, memory), rows, count, panel, split);
#endif
  }

#if ROOST_ON_DEVICE
 private:
  static constexpr int piece = block::piece;

  /// The bits of a mask's word that a split processes.
  __device__ std::uint32_t bits_of(std::uint32_t split, std::uint32_t word) const {
    const auto below = [&](std::uint32_t end) {
      const std::uint32_t bits = end > word * 32 ? end - word * 32 : 0;
      return bits < 32 ? (1u << bits) - 1 : ~0u;
    };
    return below(map.volume * (split + 1) / splits) & ~below(map.volume * split / splits);
  }

  /// The offsets of a mask's word at which some row of the tile, or of this warp's part, has a neighbour.
  struct word_of_masks {
    std::uint32_t word, offsets, of_my_rows;
  };
  __device__ static word_of_masks find_offsets(std::uint32_t mask, std::uint32_t word,
                                               std::uint32_t* offsets_of_warp) {
    const std::uint32_t of_warp = or_of_warp(mask);
    if (threadIdx.x % 32 == 0) offsets_of_warp[threadIdx.x / 32] = of_warp;
    __syncthreads();
    word_of_masks found{word, 0, 0};
    ROOST_UNROLL
    for (int w = 0; w < tile / 32; ++w) {
      found.offsets |= offsets_of_warp[w];
      if (block::has_row(w * 32)) found.of_my_rows |= offsets_of_warp[w];
    }
    return found;
  }

  /// Adds the products of the offsets of a mask's word.
  __device__ void add_products(typename block::product& sums, T* memory, const std::uint32_t* sources,
                               const word_of_masks& found, std::uint32_t panel, int slices) const {
    const std::uint32_t thread = threadIdx.x;
    // The next loads of this thread: pieces of some rows, for the first remaining offset.
    constexpr int pieces = block::slice / piece, of_thread = tile * pieces / threads;
    const int row = static_cast<int>(thread) / pieces, at = static_cast<int>(thread) % pieces * piece;
    static_assert(block::slice * Columns / piece % threads == 0);
    std::uint32_t left = found.offsets, used = found.offsets;
    const std::uint32_t* from_sources = sources + row;
    int slice = 0, slice_used = 0, there[of_thread];
    const T *from[of_thread], *from_weights = nullptr;
    block::add(
        sums, memory, __popc(found.offsets) * slices,
        [&](T* stage) {
          if (slice == 0) {
            ROOST_UNROLL
            for (int i = 0; i < of_thread; ++i) {
              const std::uint32_t source = from_sources[i * (threads / pieces)];
              const bool exists = source != row_of_none;
              from[i] = input + std::size_t{exists ? source : 0} * stride + at;
              there[i] = exists ? static_cast<int>(stride) - at : 0;
            }
            const std::uint32_t bit = found.word * 32 + first_of(left),
                                k = map.turned ? map.volume - 1 - bit : bit;
            from_weights =
                weights + (std::size_t{k} * panels + panel) * padded_depth * Columns + thread * piece;
          }
          ROOST_UNROLL
          for (int i = 0; i < of_thread; ++i) {
            fetch_piece(stage + block::left_index(row + i * (threads / pieces), at), from[i], there[i] > 0);
            from[i] += block::slice, there[i] -= block::slice;
          }
          ROOST_UNROLL
          for (int i = 0; i < block::slice * Columns / piece / threads; ++i)
            fetch_piece(stage + block::right_index(thread + i * threads), from_weights + i * threads * piece,
                        true);
          from_weights += block::slice * Columns;
          if (++slice == slices) slice = 0, left &= left - 1, from_sources += tile;
        },
        [&] {
          const bool needed = (found.of_my_rows & used & (~used + 1)) != 0;
          if (++slice_used == slices) slice_used = 0, used &= used - 1;
          return needed;
        });
  }

  /// Writes a panel of columns of the tile's rows.
  __device__ void write(const typename block::sum* sums, const std::uint32_t* rows, std::uint32_t count,
                        std::uint32_t panel, std::uint32_t split) const {
    const std::uint32_t begin = panel * Columns, width = smaller<std::uint32_t>(Columns, columns - begin);
    if (splits > 1) {
      auto* const to = sums_of_splits + split * map.outputs * columns + begin;
      for (std::uint32_t i = threadIdx.x; i < count * width; i += threads)
        to[std::size_t{rows[i / width]} * columns + i % width] =
            sums[i / width * block::sum_stride + i % width];
      return;
    }
    const auto number = [&](std::uint32_t r, std::uint32_t c) {
      const auto added = bias != nullptr ? static_cast<typename block::sum>(bias[begin + c]) : 0;
      return static_cast<T>(sums[r * block::sum_stride + c] + added);
    };
    if (aligned_output) {
      for (std::uint32_t i = threadIdx.x; i < count * (Columns / piece); i += threads) {
        const std::uint32_t r = i / (Columns / piece), c = i % (Columns / piece) * piece;
        if (c >= width) continue;
        T numbers[piece];
        ROOST_UNROLL
        for (std::uint32_t j = 0; j < piece; ++j) numbers[j] = number(r, c + j);
        uint4 word;
        memcpy(&word, numbers, sizeof(word));
        *reinterpret_cast<uint4*>(output + std::size_t{rows[r]} * columns + begin + c) = word;
      }
    } else {
      for (std::uint32_t i = threadIdx.x; i < count * width; i += threads)
        output[std::size_t{rows[i / width]} * columns + begin + i % width] = number(i / width, i % width);
    }
  }

  __device__ static std::uint32_t or_of_warp(std::uint32_t bits) {
    for (int apart = 16; apart != 0; apart /= 2) bits |= __shfl_xor_sync(~0u, bits, apart);
    return bits;
  }
  __device__ static std::uint32_t first_of(std::uint32_t bits) {
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits)) - 1);
  }
#endif
};

/// The gradient of Rows x Columns weights of one offset, over a part of the output rows: its pairs are
/// collected, some at a time, and multiplied.
template <class T, int Columns, bool Tensor>
struct add_weight_gradient_rows {
  static constexpr int rows_of_tile = smaller(Columns, 128), threads = Columns > 128 ? 256 : 128;
  static constexpr int chunk = Columns > 128 ? 4096 : 2048,
                       each = chunk / threads;  // of rows whose pairs are listed at once
  static constexpr int teams_at_once = Columns > 128 ? 1 : Columns > 64 ? 2 : 3;
  using product =
      either_product<block_product<T, rows_of_tile, Columns, conv_slice<T>, true, Tensor, threads, 4>,
                     warp_group_product<T, rows_of_tile, Columns, true,
                                        (Columns > 128  ? 7
                                         : Columns > 64 ? 5
                                                        : 6)>,
                     Tensor && sizeof(T) == 2 && Columns >= 64>;
  using block = typename product::block;
  using sum = typename block::sum;
  static constexpr int counts_size = chunk / 32 + 1, room = chunk + block::slice;
  static constexpr std::size_t alignment = 1024;  // of stages

  kernel_map_view map;
  std::uint32_t in, out, in_panels, out_panels, parts;
  std::uint32_t in_stride, out_stride;  // of rows, in numbers
  const T *input, *gradient;
  sum* sums;   // [part][offset][in][out]
  T* rounded;  // where the sums of the only part are rounded to; or null

  static std::size_t scratch_bytes(std::size_t most) {
    return product::scratch_bytes((counts_size + 2 * room) * sizeof(std::uint32_t) + alignment, most);
  }

  template <class Team>
  ROOST_FN void operator()(const Team&, std::size_t index, std::byte* scratch) const {
#if ROOST_ON_DEVICE
    scratch += -__cvta_generic_to_shared(scratch) % alignment;
    T* const memory = reinterpret_cast<T*>(scratch);
    auto* const counts = reinterpret_cast<std::uint32_t*>(scratch + block::bytes);
    std::uint32_t* const sources = counts + counts_size;
    std::uint32_t* const targets = sources + room;
    const listed_pairs listed{counts, sources, targets};

    const panel_of_weights panel{
        .out = static_cast<std::uint32_t>(index % out_panels) * Columns,
        .in = static_cast<std::uint32_t>(index / out_panels % in_panels) * rows_of_tile};
    const std::uint32_t thread = threadIdx.x;
    const std::size_t rest = index / out_panels / in_panels;
    // Teams that run at the same time read the same rows.
    const auto k = static_cast<std::uint32_t>(rest % map.volume),
               part = static_cast<std::uint32_t>(rest / map.volume);
    const std::uint64_t outputs = map.device_outputs != nullptr ? *map.device_outputs : map.outputs,
                        end = outputs * (part + 1) / parts;
    const std::uint32_t* const rows = map.neighbours + (map.turned ? map.volume - 1 - k : k) * map.stride;

    typename block::product products;
    int held = 0;
    for (std::uint64_t o = outputs * part / parts; o < end; o += chunk) {
      held = list_pairs(rows, o, end, listed, held);
      const bool last = o + chunk >= end;
      const int steps = last ? (held + block::slice - 1) / block::slice : held / block::slice;
      add_products(products, memory, steps, listed, held, panel);
      const int done = smaller(steps * block::slice, held), over = held - done;
      std::uint32_t source = 0, target = 0;
      if (static_cast<int>(thread) < over) source = sources[done + thread], target = targets[done + thread];
      __syncthreads();
      if (static_cast<int>(thread) < over) sources[thread] = source, targets[thread] = target;
      held = over;
    }

    const sum* const block_sums = block::gather(products, memory);
    const std::size_t first = (std::size_t{part} * map.volume + k) * in * out;
    for (std::uint32_t i = thread; i < rows_of_tile * Columns; i += threads) {
      const std::uint32_t row = panel.in + i / Columns, column = panel.out + i % Columns;
      if (row >= in || column >= out) continue;
      const sum value = block_sums[i / Columns * block::sum_stride + i % Columns];
      const std::size_t to = first + std::size_t{row} * out + column;
      if (rounded != nullptr) {
        rounded[to] = static_cast<T>(value);
      } else {
        sums[to] = value;
      }
    }
#endif
  }

#if ROOST_ON_DEVICE
 private:
  /// In scratch memory.
  struct listed_pairs {
    std::uint32_t *counts, *sources, *targets;
  };
  /// The first row and column of the weights that a team sums.
  struct panel_of_weights {
    std::uint32_t out, in;
  };

  /// Appends the pairs of the rows from `first` on, a chunk at most, to the `held` ones. Returns how many
  /// there are then.
  __device__ static int list_pairs(const std::uint32_t* rows, std::uint64_t first, std::uint64_t end,
                                   const listed_pairs& listed, int held) {
    std::uint32_t* const counts = listed.counts;
    constexpr int warps = threads / 32;
    const std::uint32_t thread = threadIdx.x, lane = thread % 32;
    std::uint32_t own_sources[each];
    ROOST_UNROLL
    for (int i = 0; i < each; ++i) {
      const std::uint64_t row = first + i * threads + thread;
      own_sources[i] = row < end ? rows[row] : row_of_none;
    }
    ROOST_UNROLL
    for (int i = 0; i < each; ++i) {
      const std::uint32_t there = __ballot_sync(~0u, own_sources[i] != row_of_none);
      if (lane == 0)
        counts[i * warps + static_cast<int>(thread / 32)] = static_cast<std::uint32_t>(__popc(there));
    }
    __syncthreads();
    if (thread < 32) {  // the counts become sums of those before
      constexpr int of_lane = chunk / 32 / 32;
      std::uint32_t sum = 0, before[of_lane];
      ROOST_UNROLL
      for (int i = 0; i < of_lane; ++i) before[i] = sum, sum += counts[static_cast<int>(lane) * of_lane + i];
      const std::uint32_t up_to = scan_warp(sum);
      ROOST_UNROLL
      for (int i = 0; i < of_lane; ++i)
        counts[static_cast<int>(lane) * of_lane + i] = up_to - sum + before[i];
      if (lane == 31) counts[chunk / 32] = up_to;
    }
    __syncthreads();
    ROOST_UNROLL
    for (int i = 0; i < each; ++i) {
      const std::uint32_t there = __ballot_sync(~0u, own_sources[i] != row_of_none),
                          at = static_cast<std::uint32_t>(held) +
                               counts[i * warps + static_cast<int>(thread / 32)] +
                               static_cast<std::uint32_t>(__popc(there & ((1u << lane) - 1)));
      if (own_sources[i] == row_of_none) continue;
      listed.sources[at] = own_sources[i];
      listed.targets[at] = static_cast<std::uint32_t>(first + i * threads + thread);
    }
    held += static_cast<int>(counts[chunk / 32]);
    __syncthreads();
    return held;
  }

  /// Adds the products of the first pairs, a slice of them in each step.
  __device__ void add_products(typename block::product& products, T* memory, int steps,
                               const listed_pairs& listed, int held, const panel_of_weights& panel) const {
    int begin = 0;
    block::add(
        products, memory, steps,
        [&](T* stage) {
          fetch_rows<rows_of_tile>(
              [&](std::uint32_t row, std::uint32_t at) { return stage + block::left_index(row, at); },
              listed.sources + begin, held - begin, input, in_stride, panel.in);
          fetch_rows<Columns>(
              [&](std::uint32_t row, std::uint32_t at) { return stage + block::turned_right_index(row, at); },
              listed.targets + begin, held - begin, gradient, out_stride, panel.out);
          begin += block::slice;
        },
        [] { return true; });
  }

  /// A slice of listed rows, of which `count` are left: Width numbers of each, from `first` on.
  template <int Width, class Position>
  __device__ static void fetch_rows(const Position& position, const std::uint32_t* listed, int count,
                                    const T* from, std::uint32_t stride, std::uint32_t first) {
    constexpr int piece = block::piece, across = Width / piece;
    static_assert(block::slice * across % threads == 0);
    ROOST_UNROLL
    for (int i = 0; i < block::slice * across / threads; ++i) {
      const int row = static_cast<int>(threadIdx.x) / across + i * (threads / across);
      const std::uint32_t at = threadIdx.x % across * piece;
      const bool exists = row < count;
      fetch_piece(position(static_cast<std::uint32_t>(row), at),
                  from + std::size_t{exists ? listed[row] : 0} * stride + first + at,
                  exists && first + at < stride);
    }
  }
#endif
};

/// sums[group][c]: column sums over a group of rows of a matrix, in row order.
template <class T, class Sum>
struct add_rows {
  static constexpr std::size_t group = 64;
  const T* numbers;
  const std::uint64_t* count;  // of rows; null: `rows`
  std::size_t rows, columns;
  Sum* sums;

  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t row_count = count != nullptr ? smaller<std::size_t>(*count, rows) : rows,
                      c = i % columns, end = smaller(row_count, (i / columns + 1) * group);
    Sum sum{};
    for (std::size_t row = i / columns * group; row < end; ++row)
      sum += static_cast<Sum>(numbers[row * columns + c]);
    sums[i] = sum;
  }
};

/// result[i]: the sum of parts[p][i] over all p, in their order, and the bias of its column. Unused rows of a
/// fixed capacity are not changed.
template <class Sum, class Result>
struct add_parts {
  const Sum* parts;
  std::size_t count, size;
  Result* result;
  std::size_t columns = 1;
  const std::uint64_t* rows = nullptr;  // how many are used; null: all
  const Result* bias = nullptr;

  ROOST_FN void operator()(std::size_t i) const {
    if (rows != nullptr && i / columns >= *rows) return;
    Sum sum = parts[i];
    for (std::size_t p = 1; p < count; ++p) sum += parts[p * size + i];
    if (bias != nullptr) sum += static_cast<Sum>(bias[i % columns]);
    result[i] = static_cast<Result>(sum);
  }
};

/// The width of a tile, and whether the tensor cores multiply.
template <int Columns, bool Tensor>
struct conv_width {};

template <>
struct conv_backend<cuda> {
  template <class T>
  static constexpr bool takes = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

  /// An upper bound: the host does not know the actual number.
  static std::uint64_t rows_of(const std::uint64_t*, std::uint64_t most) { return most; }

  /// f(conv_width) with the widest tile for this number of columns.
  template <class T, class F>
  static void with_product(const cuda& place, const conv_channels& channels, std::size_t columns,
                           const F& f) {
    constexpr std::size_t widest_scratch = std::size_t{220} << 10;
    const auto with = [&](auto tensor) {
      if (columns <= 32) return f(conv_width<32, tensor()>());
      if constexpr (tensor()) {
        // The widest tiles need the shared memory of a data center's GPU.
        if constexpr (sizeof(T) == 2) {
          if (ceil_div<std::size_t>(columns, 128) % 2 == 0 && place.scratch_most() >= widest_scratch)
            return f(conv_width<256, true>());
        }
        if (columns > 64) return f(conv_width<128, tensor()>());
      }
      f(conv_width<64, tensor()>());
    };
    if constexpr (sizeof(T) == 2) {
      with(std::true_type());
    } else if constexpr (std::is_same_v<T, float>) {
      channels.tf32 ? with(std::true_type()) : with(std::false_type());
    } else {
      with(std::false_type());
    }
  }

  template <int Columns, bool Tensor, class T>
  static void convolve(conv_width<Columns, Tensor>, const cuda& place, const conv_operands<T>& of) {
    using kernel_type = convolve_rows<T, Columns, Tensor>;
    constexpr std::uint32_t slice = kernel_type::slice;
    const kernel_map_view& map = of.map;
    const std::uint64_t outputs = of.outputs;
    const std::uint32_t depth = of.depth, columns = of.columns;
    const std::uint32_t padded = ceil_div(depth, slice) * slice,
                        panels = ceil_div<std::uint32_t>(columns, Columns);
    const padded_rows<T> rows(place, of.input, map.inputs, depth);
    array<T, cuda> packed;
    const T* by = of.weights;
    if (sizeof(T) == 2 || of.turned || padded != depth || columns != Columns || !aligned(of.weights, 0)) {
      packed = array<T, cuda>(place, std::size_t{map.volume} * panels * padded * Columns);
      const auto pack = [&](auto is_turned) {
        const pack_for_cuda<T, Columns, Tensor, is_turned()> kernel{of.weights, depth,  padded,
                                                                    columns,    panels, packed.data()};
        place.for_each(kernel.size(map.volume), kernel);
      };
      of.turned ? pack(std::true_type()) : pack(std::false_type());
      by = packed.data();
    }
    // Few rows do not occupy a device, but their offsets may; the same on all devices.
    constexpr std::size_t enough_teams = Columns > 128 ? 132 : 264;
    const std::size_t teams = ceil_div<std::size_t>(outputs, kernel_type::tile) * panels;
    const auto splits = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(enough_teams / teams, 1, ceil_div<std::size_t>(map.volume, 2)));
    array<conv_sum<T>, cuda> sums;
    if (splits > 1) sums = array<conv_sum<T>, cuda>(place, splits * outputs * columns);
    place.launch(teams * splits, kernel_type::scratch_bytes(place.scratch_most()),
                 kernel_type{.map = map,
                             .stride = rows.stride,
                             .padded_depth = padded,
                             .columns = columns,
                             .panels = panels,
                             .aligned_output = aligned(of.output, columns),
                             .input = rows.numbers,
                             .weights = by,
                             .bias = of.bias,
                             .output = of.output,
                             .splits = splits,
                             .sums_of_splits = sums.data()});
    if (splits == 1) return;
    const std::size_t size = outputs * columns;
    place.for_each(size, add_parts<conv_sum<T>, T>{.parts = sums.data(),
                                                   .count = splits,
                                                   .size = size,
                                                   .result = of.output,
                                                   .columns = columns,
                                                   .rows = map.device_outputs,
                                                   .bias = of.bias});
  }

  /// Result: of sums, or T.
  template <int Columns, bool Tensor, class T, class Result>
  static void weight_gradient(conv_width<Columns, Tensor>, const cuda& place,
                              const weight_gradient_operands<T, Result>& of) {
    const kernel_map_view& map = of.map;
    const conv_channels& channels = of.channels;
    if constexpr (Columns > 128) {
      if (channels.out <= 128) return weight_gradient(conv_width<128, Tensor>(), place, of);
    }
    using kernel_type = add_weight_gradient_rows<T, Columns, Tensor>;
    const auto in = static_cast<std::uint32_t>(channels.in), out = static_cast<std::uint32_t>(channels.out),
               in_panels = ceil_div<std::uint32_t>(in, kernel_type::rows_of_tile),
               out_panels = ceil_div<std::uint32_t>(out, Columns);
    const std::size_t teams = std::size_t{map.volume} * in_panels * out_panels,
                      size = std::size_t{map.volume} * in * out;
    // Enough for a large device, each with enough work to justify separate sums; the same on all devices.
    const auto parts = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(ceil_div<std::size_t>(1024, teams), 1,
                                std::max<std::size_t>(1, of.outputs / (2 * kernel_type::chunk))));
    const padded_rows<T> in_rows(place, of.input, map.inputs, in),
        out_rows(place, of.gradient, of.outputs, out);
    using sum = conv_sum<T>;
    array<sum, cuda> sums(place, parts != 1 ? parts * size : 0);
    kernel_type run{.map = map,
                    .in = in,
                    .out = out,
                    .in_panels = in_panels,
                    .out_panels = out_panels,
                    .parts = parts,
                    .in_stride = in_rows.stride,
                    .out_stride = out_rows.stride,
                    .input = in_rows.numbers,
                    .gradient = out_rows.numbers,
                    .sums = sums.data(),
                    .rounded = nullptr};
    if (parts == 1) {
      if constexpr (std::is_same_v<Result, sum>) {
        run.sums = of.result;
      } else {
        run.rounded = of.result;
      }
    }
    place.launch(teams * parts, kernel_type::scratch_bytes(place.scratch_most()), run);
    if (parts != 1) place.for_each(size, add_parts<sum, Result>{sums.data(), parts, size, of.result});
  }

  template <class T>
  static void bias_gradient(const cuda& place, const std::uint64_t* counted, std::uint64_t outputs,
                            std::size_t out, const T* gradient, conv_sum<T>* result) {
    using sum = conv_sum<T>;
    constexpr std::size_t group = add_rows<T, sum>::group;
    std::size_t rows = ceil_div<std::size_t>(outputs, group);
    if (rows <= 1) return place.for_each(out, add_rows<T, sum>{gradient, counted, outputs, out, result});
    array<sum, cuda> sums(place, rows * out);
    place.for_each(rows * out, add_rows<T, sum>{gradient, counted, outputs, out, sums.data()});
    while (rows > 1) {
      const std::size_t fewer = ceil_div<std::size_t>(rows, group);
      array<sum, cuda> next(place, fewer * out);
      place.for_each(fewer * out,
                     add_rows<sum, sum>{sums.data(), nullptr, rows, out, fewer == 1 ? result : next.data()});
      sums = std::move(next), rows = fewer;
    }
  }

 private:
  /// Rows that consist of whole 16-byte pieces: the given rows, or a padded copy of them.
  template <class T>
  struct padded_rows {
    const T* numbers;
    std::uint32_t stride;
    array<T, cuda> copy;

    padded_rows(const cuda& place, const T* rows, std::uint64_t count, std::uint32_t columns)
        : numbers(rows), stride(columns) {
      if (aligned(rows, columns)) return;
      stride = ceil_div<std::uint32_t>(columns, conv_piece<T>) * conv_piece<T>;
      copy = array<T, cuda>(place, count * stride);
      place.for_each(copy.size(), pad_rows<T>{rows, columns, stride, copy.data()});
      numbers = copy.data();
    }
  };

  /// Whether rows of this number of numbers can be read in pieces of 16 bytes.
  template <class T>
  static bool aligned(const T* rows, std::size_t numbers) {
    return (reinterpret_cast<std::uintptr_t>(rows) | numbers * sizeof(T)) % 16 == 0;
  }
};

}  // namespace roost::detail

#endif  // __CUDACC__
