#pragma once

#include "roost/detail/place/lanes.hpp"
#include "roost/sparse/kernel_map.hpp"

// Convolution on the host. All three products use one small product, whose sums stay in registers.

#if ROOST_LANES
#define ROOST_CONV_FN [[gnu::target("avx2,fma")]]
#else
#define ROOST_CONV_FN
#endif

namespace roost::detail {

/// Products of a few rows with a panel of columns. Bytes: the size of the processor's vectors.
template <class T, int Bytes>
struct conv_block {
  static constexpr std::size_t lanes = Bytes / sizeof(T), rows = 6, width = 2 * lanes;

  /// sums[r][c] += the sum over d of left[r][d] * right[d * width + c], for all rows and all columns.
  [[gnu::always_inline]] static inline void add_products(const T* const* left, const T* right,
                                                         std::size_t depth, T* const* sums) {
    using lane [[gnu::vector_size(Bytes)]] = T;
    lane first[rows]{}, second[rows]{};
    for (std::size_t d = 0; d < depth; ++d, right += width) {
      lane low, high;
      __builtin_memcpy(&low, right, Bytes);
      __builtin_memcpy(&high, right + lanes, Bytes);
      for (std::size_t r = 0; r < rows; ++r) {
        first[r] += left[r][d] * low;
        second[r] += left[r][d] * high;
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      lane low, high;
      __builtin_memcpy(&low, sums[r], Bytes);
      __builtin_memcpy(&high, sums[r] + lanes, Bytes);
      low += first[r], high += second[r];
      __builtin_memcpy(sums[r], &low, Bytes);
      __builtin_memcpy(sums[r] + lanes, &high, Bytes);
    }
  }
};

template <class T>
ROOST_CONV_FN void add_wide_products(const T* const* left, const T* right, std::size_t depth,
                                     T* const* sums) {
  conv_block<T, 32>::add_products(left, right, depth, sums);
}

/// The same, compiled for processors with vectors of this size.
template <class T, int Bytes>
struct conv_product : conv_block<T, Bytes> {
  static void add(const T* const* left, const T* right, std::size_t depth, T* const* sums) {
    if constexpr (Bytes == 32) {
      add_wide_products(left, right, depth, sums);
    } else {
      conv_block<T, Bytes>::add_products(left, right, depth, sums);
    }
  }
  static constexpr std::size_t panels(std::size_t columns) {
    return ceil_div<std::size_t>(columns, conv_product::width);
  }
};

/// Packs weights [offset][depth][columns], or, turned, [offset][columns][depth], as
/// [offset][panel][depth][width]. Columns beyond the last are 0.
template <class T, class Product>
struct pack_weights {
  const T* weights;
  std::size_t depth, columns;
  bool turned;
  T* packed;

  void operator()(serial_team, std::size_t k, std::byte*) const {
    const std::size_t across = turned ? depth : 1, along = turned ? 1 : columns;
    const T* const from = weights + k * depth * columns;
    T* to = packed + k * Product::panels(columns) * depth * Product::width;
    for (std::size_t panel = 0; panel < columns; panel += Product::width) {
      for (std::size_t d = 0; d < depth; ++d) {
        for (std::size_t c = panel; c < panel + Product::width; ++c)
          *to++ = c < columns ? from[d * along + c * across] : T{};
      }
    }
  }
};

/// Computes a tile of output rows: for each offset, the rows that have a neighbour are multiplied by its
/// weights.
template <class T, class Product>
struct convolve_tile {
  static constexpr std::size_t tile = 128;
  kernel_map_view map;
  std::uint64_t outputs;
  std::size_t depth, columns;
  const T *input, *weights, *bias;  // weights are packed; no bias: null
  T* output;

  std::size_t row_size() const { return Product::panels(columns) * Product::width; }
  std::size_t scratch_bytes() const { return (tile + 1) * row_size() * sizeof(T); }

  void operator()(serial_team, std::size_t index, std::byte* scratch) const {
    T* const sums = reinterpret_cast<T*>(scratch);  // the last row is unused padding
    const std::size_t row = row_size(), first = index * tile, count = smaller(tile, outputs - first);
    for (std::size_t r = 0; r <= tile; ++r) {
      for (std::size_t c = 0; c < row; ++c)
        sums[r * row + c] = bias != nullptr && c < columns ? bias[c] : T{};
    }
    std::uint32_t sources[tile + Product::rows], targets[tile + Product::rows];
    for (std::uint32_t k = 0; k < map.volume; ++k) {
      const std::uint32_t* const rows =
          map.neighbours + (map.turned ? map.volume - 1 - k : k) * map.stride + first;
      std::size_t found = 0;
      for (std::size_t r = 0; r < count; ++r) {
        sources[found] = rows[r], targets[found] = static_cast<std::uint32_t>(r);
        found += rows[r] != row_of_none ? 1 : 0;
      }
      if (found == 0) continue;
      for (std::size_t extra = found; extra % Product::rows != 0; ++extra)
        sources[extra] = sources[0], targets[extra] = tile;
      const T* panel = weights + k * Product::panels(columns) * depth * Product::width;
      for (std::size_t c = 0; c < row; c += Product::width, panel += depth * Product::width) {
        for (std::size_t i = 0; i < found; i += Product::rows) {
          const T* left[Product::rows];
          T* to[Product::rows];
          for (std::size_t r = 0; r < Product::rows; ++r)
            left[r] = input + sources[i + r] * depth, to[r] = sums + targets[i + r] * row + c;
          Product::add(left, panel, depth, to);
        }
      }
    }
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t c = 0; c < columns; ++c) output[(first + r) * columns + c] = sums[r * row + c];
    }
  }
};

/// The gradient of one offset's weights over a part of the output rows: products of pairs, some at a time.
template <class T, class Product>
struct add_weight_gradient {
  static constexpr std::size_t chunk = 128, chunk_stride = chunk + 64 / sizeof(T);  // apart in the cache
  kernel_map_view map;
  std::uint64_t outputs;
  std::size_t in, out, parts;
  const T *input, *gradient;
  T* sums;  // [offset][part][in][row_size()]

  /// A fixed number, so that sums do not depend on the number of threads.
  static std::size_t parts_of(std::size_t volume) { return ceil_div<std::size_t>(64, volume); }
  std::size_t row_size() const { return Product::panels(out) * Product::width; }
  std::size_t scratch_bytes() const {
    return (in * chunk_stride + chunk * row_size() + Product::width) * sizeof(T);
  }

  void operator()(serial_team, std::size_t index, std::byte* scratch) const {
    const std::size_t k = index / parts, part = index % parts, row = row_size();
    T* const left = reinterpret_cast<T*>(scratch);  // [in][chunk_stride]
    T* const right = left + in * chunk_stride;      // [panel][chunk][width]
    T* const unused = right + chunk * row;
    T* const mine = sums + index * in * row;
    for (std::size_t i = 0; i < in * row; ++i) mine[i] = T{};
    for (std::size_t i = 0; i < Product::width; ++i) unused[i] = T{};
    const std::uint32_t* const rows = map.neighbours + (map.turned ? map.volume - 1 - k : k) * map.stride;
    const std::uint64_t end = outputs * (part + 1) / parts;
    for (std::uint64_t o = outputs * part / parts; o < end;) {
      std::size_t pairs = 0;
      for (; o < end && pairs < chunk; ++o) {
        if (rows[o] == row_of_none) continue;
        const T *const source = input + rows[o] * in, *const target = gradient + o * out;
        for (std::size_t i = 0; i < in; ++i) left[i * chunk_stride + pairs] = source[i];
        for (std::size_t c = 0; c < row; ++c) {
          right[(c / Product::width * chunk + pairs) * Product::width + c % Product::width] =
              c < out ? target[c] : T{};
        }
        ++pairs;
      }
      for (std::size_t c = 0; c < row; c += Product::width) {
        for (std::size_t i = 0; i < in; i += Product::rows) {
          const T* from[Product::rows];
          T* to[Product::rows];
          for (std::size_t r = 0; r < Product::rows; ++r) {
            const bool there = i + r < in;
            from[r] = left + (there ? i + r : i) * chunk_stride;
            to[r] = there ? mine + (i + r) * row + c : unused;
          }
          Product::add(from, right + c * chunk, pairs, to);
        }
      }
    }
  }
};

template <>
struct conv_backend<host> {
  template <class T>
  static constexpr bool takes = std::is_same_v<T, float> || std::is_same_v<T, double>;

  /// The number of rows of a map, which for a fixed capacity is known only after the map is built.
  static std::uint64_t rows_of(const std::uint64_t* counted, std::uint64_t most) {
    return counted != nullptr ? *counted : most;
  }

  /// f(conv_product) for this processor.
  template <class T, class F>
  static void with_product(const host&, const conv_channels&, std::size_t, const F& f) {
#if ROOST_LANES
    static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (wide) return f(conv_product<T, 32>());
#endif
    f(conv_product<T, 16>());
  }

  template <class Product, class T>
  static void convolve(Product, const host& place, const conv_operands<T>& rows) {
    const std::size_t volume = rows.map.volume, depth = rows.depth, columns = rows.columns;
    array<T, host> packed(place, volume * depth * Product::panels(columns) * Product::width);
    place.launch(volume, 0,
                 pack_weights<T, Product>{rows.weights, depth, columns, rows.turned, packed.data()});
    const convolve_tile<T, Product> kernel{.map = rows.map,
                                           .outputs = rows.outputs,
                                           .depth = depth,
                                           .columns = columns,
                                           .input = rows.input,
                                           .weights = packed.data(),
                                           .bias = rows.bias,
                                           .output = rows.output};
    place.launch(ceil_div<std::size_t>(rows.outputs, kernel.tile), kernel.scratch_bytes(), kernel);
  }

  template <class Product, class T, class Result>
  static void weight_gradient(Product, const host& place, const weight_gradient_operands<T, Result>& rows) {
    using kernel_type = add_weight_gradient<T, Product>;
    const kernel_map_view& map = rows.map;
    const conv_channels& channels = rows.channels;
    Result* const result = rows.result;
    const std::size_t parts = kernel_type::parts_of(map.volume), teams = map.volume * parts,
                      out = channels.out;
    kernel_type kernel{.map = map,
                       .outputs = rows.outputs,
                       .in = channels.in,
                       .out = out,
                       .parts = parts,
                       .input = rows.input,
                       .gradient = rows.gradient,
                       .sums = nullptr};
    const std::size_t row = kernel.row_size(), part_size = channels.in * row;
    array<T, host> sums(place, teams * part_size);
    kernel.sums = sums.data();
    place.launch(teams, kernel.scratch_bytes(), kernel);
    place.for_each(map.volume * channels.in, [&, all = sums.data()](std::size_t i) {
      const T* const first = all + i / channels.in * parts * part_size + i % channels.in * row;
      for (std::size_t c = 0; c < out; ++c) {
        result[i * out + c] = first[c];
        for (std::size_t part = 1; part < parts; ++part) result[i * out + c] += first[part * part_size + c];
      }
    });
  }

  template <class T>
  static void bias_gradient(const host& place, const std::uint64_t*, std::uint64_t outputs, std::size_t out,
                            const T* gradient, T* result) {
    constexpr std::size_t tile = 1024;
    const std::size_t teams = ceil_div<std::size_t>(outputs, tile);
    array<T, host> sums(place, teams * out);
    place.launch(teams, 0, [&, all = sums.data()](serial_team, std::size_t team, std::byte*) {
      T* const mine = all + team * out;
      for (std::size_t c = 0; c < out; ++c) mine[c] = T{};
      for (std::size_t o = team * tile; o < smaller<std::size_t>(outputs, (team + 1) * tile); ++o) {
        for (std::size_t c = 0; c < out; ++c) mine[c] += gradient[o * out + c];
      }
    });
    for (std::size_t c = 0; c < out; ++c) {
      result[c] = T{};
      for (std::size_t team = 0; team < teams; ++team) result[c] += sums[team * out + c];
    }
  }
};

}  // namespace roost::detail
