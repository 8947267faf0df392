#pragma once

#include <cstdint>

#include "roost/kernels.hpp"

namespace roost::tools {

/// The finest grid: 1024 voxels a side, so that a coordinate takes ten bits of a key.
inline constexpr std::uint64_t finest_grid = 1024;

struct voxel {
  std::uint32_t x, y, z;
  friend bool operator==(const voxel&, const voxel&) = default;
};

/// The 30-bit key of a voxel: x, y and z from the highest bits to the lowest, ten bits each
/// (Alcantara et al., section 5).
constexpr std::uint32_t key_of(const voxel& v) { return v.x << 20 | v.y << 10 | v.z; }

/// The voxel of a key.
constexpr voxel voxel_of(std::uint32_t key) { return {key >> 20 & 1023, key >> 10 & 1023, key & 1023}; }

/// A voxel in a word of 32 bits: 30 of position and two of class; for grids finer than 1024^3, in 64 bits, 36
/// of them of position. Ascending words of one class are ascending positions.
template <class Word>
struct voxel_word {
  static constexpr int coordinate_bits = sizeof(Word) == 4 ? 10 : 12;
  static constexpr int class_shift = sizeof(Word) * 8 - 2;

  ROOST_FN static constexpr Word make(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t what) {
    return Word{what} << class_shift | Word{x} << 2 * coordinate_bits | Word{y} << coordinate_bits | Word{z};
  }
  ROOST_FN static constexpr Word position(Word word) { return word & ((Word{1} << class_shift) - 1); }
  ROOST_FN static constexpr std::uint32_t class_of(Word word) {
    return static_cast<std::uint32_t>(word >> class_shift);
  }
  ROOST_FN static constexpr std::uint32_t coordinate(Word word, int axis) {
    return static_cast<std::uint32_t>(word >> (2 - axis) * coordinate_bits) & ((1u << coordinate_bits) - 1);
  }
};

}  // namespace roost::tools
