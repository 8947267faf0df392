#pragma once

#include "columns.hpp"

/// \file
/// Solids in a dense grid, one bit a voxel: the baseline of columns. The rule is inside_rule::odd.

namespace roost::tools {

/// Changes bits of a word of memory that all teams see.
ROOST_FN void flip_bits(std::uint32_t& word, std::uint32_t bits) {
#if ROOST_ON_DEVICE
  atomicXor(&word, bits);
#else
  __atomic_fetch_xor(&word, bits, __ATOMIC_RELAXED);
#endif
}

/// Grids have rows along z of whole words.
struct bit_rows {
  std::uint32_t grid, words;  // of a row
  explicit bit_rows(std::uint32_t side) : grid(side), words(detail::ceil_div(side, 32u)) {}
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

/// From flips to what is between them, for row i.
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

/// Two grids become one.
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
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return detail::count_bits(bits[i]); }
};

/// The exposed voxels of row i: how many, or which.
struct count_exposed_row {
  exposed_bits exposed;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    std::uint64_t n = 0;
    const std::uint32_t words = exposed.rows.words;
    for (std::uint32_t w = 0; w < words; ++w) n += detail::count_bits(exposed(i * words + w));
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
