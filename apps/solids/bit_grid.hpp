#pragma once

#include "columns.hpp"
#include "roost/kernels.hpp"

/// \file
/// Solids in a dense grid, one bit a voxel: the baseline for columns (with rule inside_rule::odd), and the
/// source of the neighbours of drawn voxels.

namespace roost::tools {

/// Changes bits of a word of memory that all teams see.
ROOST_FN void flip_bits(std::uint32_t& word, std::uint32_t bits) {
#if ROOST_ON_DEVICE
  atomicXor(&word, bits);
#else
  __atomic_fetch_xor(&word, bits, __ATOMIC_RELAXED);
#endif
}

/// The rows of grids are along z and consist of whole words.
struct bit_rows {
  std::uint32_t grid, words;  // of a row
  explicit bit_rows(std::uint32_t side) : grid(side), words(kernels::ceil_div(side, 32u)) {}
  ROOST_FN std::uint64_t size() const { return std::uint64_t{grid} * grid * words; }
  ROOST_FN std::uint64_t row(std::uint32_t x, std::uint32_t y) const {
    return (std::uint64_t{x} * grid + y) * words;
  }
};

/// Flips the bit at which a crossing enters or leaves.
struct flip_crossings {
  const std::uint32_t* columns;
  const std::uint16_t* values;
  bit_rows rows;
  std::uint32_t* bits;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t z = values[i] >> 1;
    if (z < rows.grid) flip_bits(bits[rows.row(columns[i] >> 12, columns[i] & 4095) + z / 32], 1u << z % 32);
  }
};

/// Turns the flips of row i into the bits between them.
struct fill_row {
  bit_rows rows;
  std::uint32_t* bits;
  ROOST_FN void operator()(std::size_t i) const {
    std::uint32_t before = 0;  // all ones inside
    for (std::uint32_t w = 0; w < rows.words; ++w) {
      std::uint32_t word = bits[i * rows.words + w];
      for (int apart = 1; apart < 32; apart *= 2) word ^= word << apart;
      word ^= before;
      before = word >> 31 != 0 ? ~0u : 0;
      if (w + 1 == rows.words && rows.grid % 32 != 0) word &= (1u << rows.grid % 32) - 1;
      bits[i * rows.words + w] = word;
    }
  }
};

/// Sets the bits of column i of a solid; all are 0 before.
struct fill_column {
  column_directory solid;
  bit_rows rows;
  std::uint32_t* bits;
  ROOST_FN void operator()(std::size_t i) const {
    const auto x = static_cast<std::uint32_t>(i / rows.grid), y = static_cast<std::uint32_t>(i % rows.grid);
    std::uint32_t* const row = bits + i * rows.words;
    for_each_interval(climber(solid.find(x, y)), rows.grid, [&](std::uint32_t from, std::uint32_t to) {
      for (std::uint32_t w = from / 32; w * 32 < to; ++w) {
        const std::uint32_t first = w * 32 < from ? from % 32 : 0, end = kernels::smaller(to - w * 32, 32u);
        row[w] |= ~0u >> (32 - (end - first)) << first;
      }
    });
  }
};

/// Sets the bit of voxel i of a set without repetitions; all bits are 0 before.
struct set_voxel {
  using word = voxel_word<std::uint32_t>;
  const std::uint32_t* words;
  bit_rows rows;
  std::uint32_t* bits;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t z = word::coordinate(words[i], 2);
    flip_bits(bits[rows.row(word::coordinate(words[i], 0), word::coordinate(words[i], 1)) + z / 32],
              1u << z % 32);
  }
};

/// The neighbours of voxel i of a set (lit_voxels).
struct look_around {
  using word = voxel_word<std::uint32_t>;
  const std::uint32_t* words;
  bit_rows rows;
  const std::uint32_t* bits;
  std::uint32_t* around;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t x = word::coordinate(words[i], 0), y = word::coordinate(words[i], 1),
                        z = word::coordinate(words[i], 2), w = z / 32, at = z % 32;
    std::uint32_t result = 0;
    for (std::uint32_t k = 0; k < 9; ++k) {
      const std::uint32_t u = x + k / 3 - 1, v = y + k % 3 - 1;  // below 0: very large
      if (u >= rows.grid || v >= rows.grid) continue;
      const std::uint32_t* const row = bits + rows.row(u, v);
      std::uint32_t three = at == 0 ? row[w] << 1 : row[w] >> (at - 1);
      if (at == 0 && w != 0) three |= row[w - 1] >> 31;
      if (at == 31 && w + 1 != rows.words) three |= row[w + 1] << 2;
      result |= (three & 7) << 3 * k;
    }
    around[i] = result;
  }
};

/// Combines two grids into one.
struct combine_words {
  solid_op op;
  const std::uint32_t *a, *b;
  std::uint32_t* result;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t x = a[i], y = b == nullptr ? 0 : b[i];
    result[i] = (is_in(op, 1) ? x & ~y : 0) | (is_in(op, 2) ? ~x & y : 0) | (is_in(op, 3) ? x & y : 0);
  }
};

/// The voxels of word i that have a side to a voxel outside.
struct exposed_bits {
  bit_rows rows;
  const std::uint32_t* bits;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    const std::uint32_t here = bits[i], w = static_cast<std::uint32_t>(i % rows.words);
    if (here == 0) return 0;
    const auto x = static_cast<std::uint32_t>(i / rows.words / rows.grid),
               y = static_cast<std::uint32_t>(i / rows.words % rows.grid);
    const auto at = [&](bool there, std::int64_t words) {
      return there ? bits[static_cast<std::int64_t>(i) + words] : 0;
    };
    const std::int64_t row = rows.words, plane = row * rows.grid;
    const std::uint32_t below = here << 1 | at(w != 0, -1) >> 31,
                        above = here >> 1 | at(w + 1 != rows.words, 1) << 31;
    return here & ~(below & above & at(x != 0, -plane) & at(x + 1 != rows.grid, plane) & at(y != 0, -row) &
                    at(y + 1 != rows.grid, row));
  }
};

struct count_word {
  const std::uint32_t* bits;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return kernels::count_bits(bits[i]); }
};

/// The number of exposed voxels of row i; below, the voxels.
struct count_exposed_row {
  exposed_bits exposed;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    std::uint64_t n = 0;
    const std::uint32_t words = exposed.rows.words;
    for (std::uint32_t w = 0; w < words; ++w) n += kernels::count_bits(exposed(i * words + w));
    return n;
  }
};
template <class Word>
struct write_exposed_row {
  exposed_bits exposed;
  const std::uint64_t* offsets;
  Word* target;
  ROOST_FN void operator()(std::size_t i) const {
    std::uint64_t at = offsets[i];
    const bit_rows& rows = exposed.rows;
    const auto x = static_cast<std::uint32_t>(i / rows.grid), y = static_cast<std::uint32_t>(i % rows.grid);
    for (std::uint32_t w = 0; w < rows.words; ++w) {
      std::uint32_t z = 32 * w;
      for (std::uint32_t word = exposed(i * rows.words + w); word != 0; word >>= 1, ++z) {
        if ((word & 1) != 0) target[at++] = voxel_word<Word>::make(x, y, z, 0);
      }
    }
  }
};

}  // namespace roost::tools
