#pragma once

#include "roost/detail/place/team.hpp"
#include "roost/hash.hpp"

// How voxel coordinates are mapped to keys. A superblock is a cube of 2^12 voxels, a block one of 2^6:
//
//                  superblock      block
//     D = 2        64 x 64         8 x 8
//     D = 3        16 x 16 x 16    4 x 4 x 4
//     D = 4        8 x 8 x 8 x 8   2 x 2 x 4 x 4
//
// A voxel's key identifies its superblock exactly; its code of 12 bits is its position in the superblock, in
// Morton order: the upper 6 bits are the block, the lower 6 the voxel of the block.

namespace roost {

/// The coordinate of a voxel: the number of its batch, and its position on each axis, any 32-bit integers. In
/// memory it is D + 1 numbers, like a row of the (n, D + 1) tensors of libraries for sparse convolution.
template <int D>
struct alignas(D == 3 ? 16 : 4) coordinate {
  static constexpr int dimensions = D;
  std::int32_t batch;
  std::int32_t at[D];

  friend bool operator==(const coordinate&, const coordinate&) = default;
};

}  // namespace roost

namespace roost::detail {

/// The position of the n-th set bit.
ROOST_FN std::uint32_t select_bit(std::uint64_t mask, std::uint32_t n) {
  std::uint32_t position = 0;
  ROOST_UNROLL
  for (std::uint32_t width = 32; width != 0; width /= 2) {
    const std::uint32_t before = count_bits(mask >> position & ((std::uint64_t{1} << width) - 1));
    if (n >= before) n -= before, position += width;
  }
  return position;
}

/// The position of the lowest set bit; there must be one.
ROOST_FN std::uint32_t lowest_bit(std::uint64_t mask) {
#if ROOST_ON_DEVICE
  return static_cast<std::uint32_t>(__ffsll(static_cast<long long>(mask))) - 1;
#else
  return static_cast<std::uint32_t>(__builtin_ctzll(mask));
#endif
}

/// How many bits of a word are set before a position, which is below 64.
ROOST_FN std::uint32_t bits_before(std::uint64_t mask, std::uint32_t position) {
  return count_bits(mask & ((std::uint64_t{1} << position) - 1));
}

/// The Morton code of a position in a superblock. The last axis has the lowest bits.
template <int D>
struct morton {
  static constexpr int code_bits = 12, block_code_bits = 6;
  static constexpr int superblock_bits = code_bits / D;  // of each axis
  static constexpr std::uint32_t superblock_side = 1u << superblock_bits;
  /// Bits of an axis inside a block.
  ROOST_FN static constexpr int block_bits(int axis) { return (block_code_bits + axis) / D; }
  ROOST_FN static constexpr std::uint32_t block_side(int axis) { return 1u << block_bits(axis); }

  /// The contribution of a position on an axis (its lowest bits) to the code.
  ROOST_FN static std::uint32_t code(int axis, std::uint32_t position) {
    std::uint32_t bits = 0;
    ROOST_UNROLL
    for (int b = 0; b < superblock_bits; ++b) bits |= (position & 1u << b) << b * (D - 1);
    return bits << (D - 1 - axis);
  }
  /// The inverse.
  ROOST_FN static std::uint32_t position(int axis, std::uint32_t code) {
    std::uint32_t bits = 0;
    ROOST_UNROLL
    for (int b = 0; b < superblock_bits; ++b) bits |= code >> (D - 1 - axis) >> b * (D - 1) & 1u << b;
    return bits;
  }
};

/// A voxel, a block or a superblock by numbers.
struct cell {
  std::uint64_t key;
  std::uint32_t code;  // of a block: that of its first voxel

  ROOST_FN std::uint32_t block() const { return code >> 6; }
  ROOST_FN std::uint32_t voxel() const { return code & 63; }
};

/// The bounding box of all coordinates, and the mapping from coordinates in it to keys. Axis 0 is the batch.
template <int D>
struct grid {
  using code = morton<D>;
  static constexpr int axes = D + 1;
  static constexpr std::uint32_t key_bits_most = 63;  // one more bit marks that there is a key

  std::int32_t origin[axes];  // at the corner of a superblock
  std::uint32_t last[axes];   // the greatest coordinates less the origin
  std::uint32_t shift[axes];  // of an axis's bits in the key
  std::uint32_t key_bits;
  std::uint32_t curve_bits;  // bits of each axis in the order along a curve; 0: there would be too many

  grid() = default;
  /// Creates the grid of the box from `least` to `greatest`. If its keys need more than key_bits_most bits,
  /// it contains nothing. A box with least[0] > greatest[0] is empty.
  ROOST_FN grid(const std::int32_t (&least)[axes], const std::int32_t (&greatest)[axes]) {
    const bool empty = least[0] > greatest[0];
    key_bits = curve_bits = 0;
    ROOST_UNROLL
    for (int a = axes - 1; a >= 0; --a) {
      const std::uint32_t low = empty ? 0 : static_cast<std::uint32_t>(least[a]),
                          high = empty ? 0 : static_cast<std::uint32_t>(greatest[a]);
      const std::uint32_t begin = a == 0 ? low : low & ~(code::superblock_side - 1);
      origin[a] = static_cast<std::int32_t>(begin);
      last[a] = high - begin;
      shift[a] = key_bits;
      key_bits += bits_of(cell_number(a, last[a]));
      if (a != 0) curve_bits = larger(curve_bits, bits_of(cell_number(a, last[a])));
    }
    if (D * curve_bits + width(0) > key_bits_most) curve_bits = 0;
  }

  ROOST_FN bool fits() const { return key_bits <= key_bits_most; }

  /// The distance from the origin; a large number if the position is before the origin.
  ROOST_FN std::uint32_t distance(int axis, std::int32_t coordinate) const {
    return static_cast<std::uint32_t>(coordinate) - static_cast<std::uint32_t>(origin[axis]);
  }

  /// The cell of a position that is given by its distances from the origin. False if it is outside the box.
  ROOST_FN bool locate(const std::uint32_t (&distances)[axes], cell& result) const {
    bool inside = true;
    result = {0, 0};
    ROOST_UNROLL
    for (int a = 0; a < axes; ++a) {
      inside &= distances[a] <= last[a];
      result.key |= std::uint64_t{cell_number(a, distances[a])} << (shift[a] & 63);
      if (a != 0) result.code |= code::code(a - 1, distances[a]);
    }
    return inside;
  }
  ROOST_FN bool locate(const coordinate<D>& c, cell& result) const {
    std::uint32_t distances[axes] = {distance(0, c.batch)};
    ROOST_UNROLL
    for (int a = 1; a < axes; ++a) distances[a] = distance(a, c.at[a - 1]);
    return locate(distances, result);
  }

  /// The inverse.
  ROOST_FN coordinate<D> coordinate_of(const cell& source) const {
    coordinate<D> result;
    result.batch = static_cast<std::int32_t>(static_cast<std::uint32_t>(origin[0]) + field(0, source.key));
    ROOST_UNROLL
    for (int a = 1; a < axes; ++a) {
      const std::uint32_t d =
          field(a, source.key) << code::superblock_bits | code::position(a - 1, source.code);
      result.at[a - 1] = static_cast<std::int32_t>(static_cast<std::uint32_t>(origin[a]) + d);
    }
    return result;
  }

  // The order of superblocks: by batch, then along Morton's curve; if that took too many bits, row by row.

  ROOST_FN std::uint32_t order_bits() const { return curve_bits != 0 ? D * curve_bits + width(0) : key_bits; }
  ROOST_FN std::uint64_t order_of(std::uint64_t key) const {
    if (curve_bits == 0) return key;
    std::uint64_t result = std::uint64_t{field(0, key)} << (D * curve_bits);
    for (int a = 1; a < axes; ++a) {
      const std::uint32_t x = field(a, key);
      for (std::uint32_t b = 0; b < curve_bits; ++b)
        result |= std::uint64_t{x >> b & 1} << (b * D + static_cast<std::uint32_t>(D - a));
    }
    return result;
  }
  ROOST_FN std::uint64_t key_of_order(std::uint64_t order) const {
    if (curve_bits == 0) return order;
    std::uint64_t result = (order >> (D * curve_bits)) << shift[0];
    for (int a = 1; a < axes; ++a) {
      for (std::uint32_t b = 0; b < curve_bits; ++b)
        result |= (order >> (b * D + static_cast<std::uint32_t>(D - a)) & 1) << (shift[a] + b);
    }
    return result;
  }

  // The order of voxels: that of their superblocks, then by code. Not every box has one of 64 bits.

  ROOST_FN bool has_voxel_order() const { return order_bits() + code::code_bits <= 64; }
  ROOST_FN std::uint64_t order_of(const cell& voxel) const {
    return order_of(voxel.key) << code::code_bits | voxel.code;
  }
  ROOST_FN cell voxel_of_order(std::uint64_t order) const {
    const std::uint32_t codes = 1u << code::code_bits;
    return {key_of_order(order >> code::code_bits), static_cast<std::uint32_t>(order) & (codes - 1)};
  }

 private:
  ROOST_FN static std::uint32_t cell_number(int axis, std::uint32_t distance) {
    return axis == 0 ? distance : distance >> code::superblock_bits;
  }
  ROOST_FN static std::uint32_t bits_of(std::uint32_t number) {
#if ROOST_ON_DEVICE
    return 32 - static_cast<std::uint32_t>(__clz(static_cast<int>(number)));
#else
    return number == 0 ? 0 : 32 - static_cast<std::uint32_t>(__builtin_clz(number));
#endif
  }
  ROOST_FN std::uint32_t width(int axis) const {
    return (axis == 0 ? key_bits : shift[axis - 1]) - shift[axis];
  }
  ROOST_FN std::uint32_t field(int axis, std::uint64_t key) const {
    return static_cast<std::uint32_t>(key >> (shift[axis] & 63) & ((std::uint64_t{1} << width(axis)) - 1));
  }
};

}  // namespace roost::detail
