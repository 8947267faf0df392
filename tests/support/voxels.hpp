#pragma once

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <roost/sparse/coordinate_index.hpp>

#include "support/keys.hpp"
#include "support/refusals.hpp"

// Voxels to test with, and an oracle of rows that knows nothing of blocks.

namespace test {

using i32 = std::int32_t;
using i64 = std::int64_t;

template <int D>
using voxels = std::vector<roost::coordinate<D>>;

template <int D>
using index_of = roost::coordinate_index<D, place_type>;

/// Numbers of each axis, the batch first.
template <int D>
std::array<i64, D + 1> numbers_of(const roost::coordinate<D>& c) {
  std::array<i64, D + 1> result{c.batch};
  for (int a = 0; a < D; ++a) result[static_cast<std::size_t>(a) + 1] = c.at[a];
  return result;
}

/// n voxels in a box with one corner at `corner` and so many voxels on each axis, in some batches.
template <int D>
voxels<D> random_voxels(std::size_t n, u64 seed, i64 side, i64 corner = 0, i32 batches = 1) {
  std::mt19937_64 random(seed);
  voxels<D> result(n);
  const auto draw = [&](i64 most) { return static_cast<i64>(random() % static_cast<u64>(most)); };
  for (auto& c : result) {
    c.batch = static_cast<i32>(draw(batches));
    for (int a = 0; a < D; ++a) c.at[a] = static_cast<i32>(corner + draw(side));
  }
  return result;
}

/// The voxels of a sphere's surface around a centre.
template <int D>
voxels<D> shell(double radius, i32 centre = 0, i32 batch = 0) {
  voxels<D> result;
  const i32 most = static_cast<i32>(radius) + 2;
  roost::coordinate<D> c{batch, {}};
  const auto over = [&](const auto& self, int axis, double squares) -> void {
    if (axis == D) {
      if (std::abs(std::sqrt(squares) - radius) < 0.87) result.push_back(c);
      return;
    }
    for (i32 x = -most; x <= most; ++x) {
      c.at[axis] = centre + x;
      self(self, axis + 1, squares + static_cast<double>(x) * x);
    }
  };
  over(over, 0, 0);
  return result;
}

/// Thin stripes, as a scanner leaves them on the ground far away.
template <int D>
voxels<D> stripes(std::size_t n, u64 seed) {
  voxels<D> result = random_voxels<D>(n, seed, 200, -100, 2);
  for (auto& c : result) c.at[0] = c.at[0] / 7 * 7, c.at[D - 1] = c.at[0] / 50;
  return result;
}

/// Superblocks whose keys all want one of a few slots, of a table for n coordinates with seed 0.
inline voxels<3> crowd(std::size_t n) {
  const voxels<3> ends{{0, {0, 0, 0}}, {0, {16 * 511, 16 * 511, 16 * 511}}};
  voxels<3> result = ends;
  for (i32 x = 0; x < 512 && result.size() < n; ++x) {
    for (i32 y = 0; y < 512; ++y) {
      for (i32 z = 0; z < 512 && result.size() < n; ++z) {
        const u64 key = static_cast<u64>(x) << 18 | static_cast<u64>(y) << 9 | static_cast<u64>(z);
        if (roost::mix64(key) >> 54 == 0) result.push_back({0, {16 * x, 16 * y, 16 * z}});
      }
    }
  }
  return result;
}

/// The rows of coordinates: the order::input that the library promises.
template <int D>
class row_oracle {
 public:
  explicit row_oracle(const voxels<D>& input) {
    for (const auto& c : input) {
      const auto [at, fresh] = rows_.emplace(numbers_of(c), static_cast<u32>(rows_.size()));
      rows_of_input.push_back(at->second);
      if (fresh) coordinates.push_back(c);
    }
  }
  u32 find(const std::array<i64, D + 1>& voxel) const {
    const auto at = rows_.find(voxel);
    return at == rows_.end() ? roost::no_row<u32> : at->second;
  }
  u32 find(const roost::coordinate<D>& c) const { return find(numbers_of(c)); }

  voxels<D> coordinates;
  std::vector<u32> rows_of_input;

 private:
  std::map<std::array<i64, D + 1>, u32> rows_;
};

/// Different voxels in the order along Morton's curve that order::block promises: by batch, then by the axis
/// whose distances from the box's corner differ in the highest bit. The corner is that of a cube of
/// 2^(12 / D) voxels.
template <int D>
voxels<D> along_curve(const voxels<D>& input) {
  const row_oracle<D> oracle(input);
  voxels<D> result = oracle.coordinates;
  if (result.empty()) return result;
  constexpr i64 side = 1 << 12 / D;
  std::array<i64, D + 1> corner = numbers_of(result[0]);
  for (const auto& c : result) {
    const auto n = numbers_of(c);
    for (std::size_t a = 0; a <= D; ++a) corner[a] = std::min(corner[a], n[a]);
  }
  for (std::size_t a = 1; a <= D; ++a) corner[a] = corner[a] - ((corner[a] % side) + side) % side;
  std::sort(result.begin(), result.end(), [&](const auto& left, const auto& right) {
    const auto l = numbers_of(left), r = numbers_of(right);
    if (l[0] != r[0]) return l[0] < r[0];
    std::size_t decides = 1;
    u64 highest = 0;
    for (std::size_t a = 1; a <= D; ++a) {
      const u64 difference = static_cast<u64>(l[a] - corner[a]) ^ static_cast<u64>(r[a] - corner[a]);
      if (highest < difference && highest < (highest ^ difference)) highest = difference, decides = a;
    }
    return l[decides] < r[decides];
  });
  return result;
}

}  // namespace test
