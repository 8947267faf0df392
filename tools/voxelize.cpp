#include "voxelize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace roost::tools {
namespace {

using position = std::array<double, 3>;  // in voxels

/// What is left of a triangle between two pairs of planes: at most seven corners.
class polygon {
 public:
  void clear() { size_ = 0; }
  void add(const position& corner) { corners_[size_++] = corner; }
  std::size_t size() const { return size_; }
  const position& operator[](std::size_t i) const { return corners_[i]; }
  const position& after(std::size_t i) const { return corners_[i + 1 == size_ ? 0 : i + 1]; }

  /// The first and the last voxel along an axis. The far side of the grid belongs to the last one.
  std::pair<std::uint32_t, std::uint32_t> extent(int axis, std::uint32_t grid) const {
    double low = corners_[0][axis], high = low;
    for (std::size_t i = 1; i < size_; ++i) {
      low = std::min(low, corners_[i][axis]);
      high = std::max(high, corners_[i][axis]);
    }
    const auto voxel = [&](double at) { return static_cast<std::uint32_t>(std::clamp(at, 0.0, grid - 1.0)); };
    return {voxel(low), voxel(high)};
  }

 private:
  std::array<position, 16> corners_;  // 7 in theory; rounding could bend a side and make it 13
  std::size_t size_ = 0;
};

/// The point of an edge where it crosses a plane, the same from both ends.
position crossing(position a, position b, int axis, double plane) {
  if (b[axis] < a[axis]) std::swap(a, b);
  const auto t = (plane - a[axis]) / (b[axis] - a[axis]);
  position result;
  for (int i = 0; i < 3; ++i) result[i] = i == axis ? plane : std::lerp(a[i], b[i], t);
  return result;
}

/// Cuts a polygon at a plane across an axis. Corners on the plane belong to both parts.
void cut(const polygon& whole, int axis, double plane, polygon& below, polygon& above) {
  below.clear();
  above.clear();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto& a = whole[i];
    const auto& b = whole.after(i);
    if (a[axis] <= plane) below.add(a);
    if (a[axis] >= plane) above.add(a);
    if ((a[axis] < plane && b[axis] > plane) || (a[axis] > plane && b[axis] < plane)) {
      const auto c = crossing(a, b, axis, plane);
      below.add(c);
      above.add(c);
    }
  }
}

/// Calls f(i, slice) for the slice of a polygon in every layer i of voxels across an axis.
template <class F>
void for_each_slice(polygon& whole, int axis, std::uint32_t grid, const F& f) {
  const auto [first, last] = whole.extent(axis, grid);
  polygon slice, other;
  auto *rest = &whole, *next = &other;
  for (auto i = first; i < last; ++i) {
    cut(*rest, axis, i + 1.0, slice, *next);
    if (slice.size() != 0) f(i, slice);
    std::swap(rest, next);
  }
  f(last, *rest);
}

/// One bit a voxel, rows along z.
class bit_grid {
 public:
  explicit bit_grid(std::uint32_t side)
      : side_(side), row_words_((side + 63) / 64), words_(side * side * row_words_) {}

  /// Sets the voxels from z = first to z = last of a row. Threads may do so at the same time.
  void set(std::uint32_t x, std::uint32_t y, std::uint32_t first, std::uint32_t last) {
    auto* const row = &words_[(std::size_t{x} * side_ + y) * row_words_];
    for (auto w = first / 64; w <= last / 64; ++w) {
      auto bits = ~std::uint64_t{0};
      if (w == first / 64) bits &= ~std::uint64_t{0} << first % 64;
      if (w == last / 64) bits &= ~std::uint64_t{0} >> (63 - last % 64);
      const std::atomic_ref word(row[w]);
      if ((word.load(std::memory_order_relaxed) & bits) != bits)
        word.fetch_or(bits, std::memory_order_relaxed);
    }
  }

  /// The keys of all voxels that are set, ascending.
  std::vector<std::uint32_t> keys(const host& cpu) const {
    const auto layer_words = std::size_t{side_} * row_words_;
    std::vector<std::size_t> begin(side_ + 1);  // where the keys of a layer begin
    cpu.launch(side_, 0, [&](auto, std::size_t x, auto*) {
      for (std::size_t w = 0; w < layer_words; ++w)
        begin[x + 1] += std::popcount(words_[x * layer_words + w]);
    });
    std::inclusive_scan(begin.begin(), begin.end(), begin.begin());
    std::vector<std::uint32_t> result(begin.back());
    cpu.launch(side_, 0, [&](auto, std::size_t x, auto*) {
      auto to = begin[x];
      for (std::size_t w = 0; w < layer_words; ++w) {
        const voxel start{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(w / row_words_),
                          static_cast<std::uint32_t>(w % row_words_ * 64)};
        for (auto bits = words_[x * layer_words + w]; bits != 0; bits &= bits - 1) {
          result[to++] = key_of(start) + static_cast<std::uint32_t>(std::countr_zero(bits));
        }
      }
    });
    return result;
  }

 private:
  std::size_t side_, row_words_;
  std::vector<std::uint64_t> words_;
};

/// From the coordinates of a mesh to those of the grid.
class to_grid {
 public:
  to_grid(const mesh& surface, std::uint32_t grid) : grid_(grid) {
    position low, high;
    low.fill(std::numeric_limits<double>::infinity());
    high.fill(-std::numeric_limits<double>::infinity());
    for (const auto& t : surface.triangles) {  // vertices that no triangle uses do not count
      for (const auto corner : t) {
        const auto p = as_position(surface.vertices[corner]);
        for (int i = 0; i < 3; ++i) {
          low[i] = std::min(low[i], p[i]);
          high[i] = std::max(high[i], p[i]);
        }
      }
    }
    for (int i = 0; i < 3; ++i) {
      side_ = std::max(side_, high[i] - low[i]);
      middle_[i] = (low[i] + high[i]) / 2;
    }
    if (side_ == 0) side_ = 1;  // a single point; it goes to the middle
  }

  position operator()(const point& p) const {
    auto result = as_position(p);
    for (int i = 0; i < 3; ++i)
      result[i] = std::clamp(((result[i] - middle_[i]) / side_ + 0.5) * grid_, 0.0, grid_);
    return result;
  }

 private:
  static position as_position(const point& p) { return {p.x, p.y, p.z}; }

  double grid_, side_ = 0;
  position middle_{};
};

}  // namespace

std::vector<std::uint32_t> voxelize(const host& cpu, const mesh& surface, std::uint64_t grid) {
  if (grid == 0 || grid > finest_grid) {
    throw invalid_argument(
        fmt::format("a grid of {} voxels a side cannot be made; ask for 1 to {}", grid, finest_grid));
  }
  if (surface.triangles.empty())
    throw invalid_argument("a mesh without triangles has no voxels; give one with a surface");
  const auto side = static_cast<std::uint32_t>(grid);
  const to_grid place(surface, side);
  bit_grid touched(side);
  const auto pieces = std::min<std::size_t>(surface.triangles.size(), 4096);
  cpu.launch(pieces, 0, [&](auto, std::size_t piece, auto*) {
    const auto n = surface.triangles.size();
    for (auto i = n * piece / pieces; i < n * (piece + 1) / pieces; ++i) {
      polygon whole{};
      for (const auto corner : surface.triangles[i]) whole.add(place(surface.vertices[corner]));
      for_each_slice(whole, 0, side, [&](std::uint32_t x, polygon& slab) {
        for_each_slice(slab, 1, side, [&](std::uint32_t y, polygon& column) {
          const auto [first, last] = column.extent(2, side);
          touched.set(x, y, first, last);
        });
      });
    }
  });
  return touched.keys(cpu);
}

}  // namespace roost::tools
