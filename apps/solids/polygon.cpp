#include "polygon.hpp"

#include <algorithm>
#include <cmath>

namespace roost::tools {
namespace {

using std::uint32_t;

struct flat {
  double x, y;
  friend bool operator==(const flat&, const flat&) = default;
};

/// Twice the area of a triangle: above 0 if it turns left.
double turn(const flat& a, const flat& b, const flat& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/// The polygon seen along the axis that is closest to its normal, so that it turns left.
std::vector<flat> flatten(std::span<const std::array<double, 3>> corners) {
  std::array<double, 3> normal{};
  const auto& o = corners[0];
  for (std::size_t i = 1; i + 1 < corners.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t u = (k + 1) % 3, v = (k + 2) % 3;
      normal[k] += (corners[i][u] - o[u]) * (corners[i + 1][v] - o[v]) -
                   (corners[i][v] - o[v]) * (corners[i + 1][u] - o[u]);
    }
  }
  std::size_t axis = 0;
  for (std::size_t k = 1; k < 3; ++k) {
    if (std::abs(normal[k]) > std::abs(normal[axis])) axis = k;
  }
  const std::size_t u = (axis + 1) % 3, v = (axis + 2) % 3;
  const double sign = normal[axis] < 0 ? -1 : 1;
  std::vector<flat> result;
  result.reserve(corners.size());
  for (const auto& c : corners) result.push_back({c[u] - o[u], sign * (c[v] - o[v])});
  return result;
}

/// Ears are cut off until a triangle is left: a corner is an ear if it turns left and its triangle contains
/// no corner that does not. Corners that do not turn left are kept in the cells of a grid.
class cutter {
 public:
  explicit cutter(std::vector<flat> at) : at_(std::move(at)), n_(static_cast<uint32_t>(at_.size())) {
    before_.resize(n_);
    after_.resize(n_);
    for (uint32_t i = 0; i < n_; ++i) {
      before_[i] = (i + n_ - 1) % n_;
      after_[i] = (i + 1) % n_;
    }
    gone_.assign(n_, 0);
    rested_.assign(n_, 0);
    sort_into_cells();
  }

  bool run(std::vector<std::array<uint32_t, 3>>& triangles) {
    constexpr int patience = 64;  // for a polygon that crosses itself: cuts after which all corners are tried
    std::vector<uint32_t> now, next;
    uint32_t left = n_, crossings = 0;
    int strictness = strict;
    while (left > 3) {
      const bool all = now.empty();  // a corner whose neighbours are the same may have become an ear, too
      for (uint32_t i = 0, at = first_; all && i < left; ++i, at = after_[at]) now.push_back(at);
      ++round_;
      next.clear();
      for (const auto b : now) {
        if (left == 3) break;
        if (gone_[b] != 0 || rested_[b] == round_ || !is_ear(b, strictness)) continue;
        const auto a = before_[b], c = after_[b];
        triangles.push_back({a, b, c});
        gone_[b] = 1;
        after_[a] = c;
        before_[c] = a;
        first_ = c;
        --left;
        rested_[c] = round_;  // so that no corner gets all triangles
        next.push_back(a);
        next.push_back(c);
        if (strictness != strict && crossings < patience) break;
      }
      if (!next.empty()) {
        if (crossings < patience) strictness = strict;
      } else if (all) {
        ++strictness;
        ++crossings;
      }
      std::swap(now, next);
    }
    const auto a = before_[first_], c = after_[first_];
    triangles.push_back({a, first_, c});
    const bool turned = scale_.x > 0 && scale_.y > 0 &&  // by more than rounding
                        turn(at_[a], at_[first_], at_[c]) * scale_.x * scale_.y < -1e-9 * side_ * side_;
    return crossings == 0 && !turned;
  }

 private:
  // What counts as an ear: no corner inside it or on its sides; none inside; any corner that turns left; any
  // corner.
  static constexpr int strict = 0, open = 1, left_turn = 2;

  void sort_into_cells() {
    flat low = at_[0], high = at_[0];
    for (const auto& p : at_) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
    low_ = low;
    side_ = std::clamp<uint32_t>(static_cast<uint32_t>(std::sqrt(n_)), 1, 2048);
    const auto per = [&](double length) { return length > 0 ? side_ / length : 0; };
    scale_ = {per(high.x - low.x), per(high.y - low.y)};
    starts_.assign(std::size_t{side_} * side_ + 1, 0);
    std::vector<uint32_t> bent;
    for (uint32_t i = 0; i < n_; ++i) {
      if (turn(at_[before_[i]], at_[i], at_[after_[i]]) <= 0) bent.push_back(i);
    }
    for (const auto i : bent) ++starts_[cell_of(at_[i]) + 1];
    for (std::size_t k = 1; k < starts_.size(); ++k) starts_[k] += starts_[k - 1];
    ends_.assign(starts_.begin(), starts_.end() - 1);
    bent_.resize(bent.size());
    for (const auto i : bent) bent_[ends_[cell_of(at_[i])]++] = i;
  }
  uint32_t along(double x, double low, double scale) const {
    return static_cast<uint32_t>(std::clamp((x - low) * scale, 0.0, side_ - 1.0));
  }
  std::size_t cell_of(const flat& p) const {
    return std::size_t{along(p.y, low_.y, scale_.y)} * side_ + along(p.x, low_.x, scale_.x);
  }

  bool is_ear(uint32_t corner, int strictness) {
    const flat &a = at_[before_[corner]], &b = at_[corner], &c = at_[after_[corner]];
    const double area = turn(a, b, c);
    if (strictness > left_turn) return true;
    // A corner on a straight side, or at the end of a spike, cannot contain another one.
    if (area == 0) return true;
    if (area < 0) return false;
    if (strictness == left_turn) return true;
    const uint32_t x0 = along(std::min({a.x, b.x, c.x}), low_.x, scale_.x),
                   x1 = along(std::max({a.x, b.x, c.x}), low_.x, scale_.x),
                   y0 = along(std::min({a.y, b.y, c.y}), low_.y, scale_.y),
                   y1 = along(std::max({a.y, b.y, c.y}), low_.y, scale_.y);
    for (uint32_t y = y0; y <= y1; ++y) {
      for (uint32_t x = x0; x <= x1; ++x) {
        const std::size_t cell = std::size_t{y} * side_ + x;
        for (auto i = starts_[cell]; i < ends_[cell];) {
          const auto p = bent_[i];
          if (gone_[p] != 0 || turn(at_[before_[p]], at_[p], at_[after_[p]]) > 0) {
            bent_[i] = bent_[--ends_[cell]];  // it turns left now, and will as long as it exists
            continue;
          }
          ++i;
          if (in_the_way(p, corner, a, b, c, strictness)) return false;
        }
      }
    }
    return true;
  }

  bool in_the_way(uint32_t p, uint32_t corner, const flat& a, const flat& b, const flat& c,
                  int strictness) const {
    if (p == corner || p == before_[corner] || p == after_[corner]) return false;
    const flat& at = at_[p];
    if (at == a || at == c) return false;
    const double ab = turn(a, b, at), bc = turn(b, c, at), ca = turn(c, a, at);
    if (strictness == open) return ab > 0 && bc > 0 && ca > 0;
    if (ab < 0 || bc < 0 || ca < 0) return false;
    if (!(at == b)) return true;
    // The polygon touches itself at the tip: does its other part enter the triangle, or run along both sides?
    const auto goes = [&](const flat& to) {
      const double along_ab = turn(a, b, to), along_bc = turn(b, c, to);
      return along_ab < 0 || along_bc < 0 ? 0 : along_ab > 0 && along_bc > 0 ? 2 : 1;
    };
    return goes(at_[before_[p]]) + goes(at_[after_[p]]) >= 2;
  }

  std::vector<flat> at_;
  uint32_t n_, first_ = 1, round_ = 0;
  std::vector<uint32_t> before_, after_, rested_;
  std::vector<char> gone_;
  // Corners that do not turn left, by cell: a cell's are from its start to its end.
  flat low_{}, scale_{};
  uint32_t side_ = 1;
  std::vector<uint32_t> starts_, ends_, bent_;
};

}  // namespace

bool cut_polygon(std::span<const std::array<double, 3>> corners,
                 std::vector<std::array<std::uint32_t, 3>>& triangles) {
  if (corners.size() < 3) return true;
  if (corners.size() == 3) {
    triangles.push_back({0, 1, 2});
    return true;
  }
  return cutter(flatten(corners)).run(triangles);
}

}  // namespace roost::tools
