#include "placement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace roost::tools {
namespace {

using rows = std::array<vec3, 3>;

rows product(const rows& a, const rows& b) {
  rows result{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) result[i][j] += a[i][k] * b[k][j];
    }
  }
  return result;
}

bounds of_corners(const mesh& surface, const affine* where) {
  bounds box;
  for (const auto& t : surface.triangles) {  // vertices that no triangle uses do not count
    for (const auto corner : t) {
      const auto& v = surface.vertices[corner];
      vec3 p{v.x, v.y, v.z};
      for (std::size_t k = 0; k < 3; ++k) p[k] = surface.origin[k] + surface.scale * p[k];
      box.add(where == nullptr ? p : (*where)(p));
    }
  }
  return box;
}

}  // namespace

vec3 affine::operator()(const vec3& p) const {
  vec3 result = shift;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) result[i] += rows[i][k] * p[k];
  }
  return result;
}

affine affine::after(const affine& other) const { return {product(rows, other.rows), (*this)(other.shift)}; }

bool mirrors(const affine& map) {
  const auto& [x, y, z] = map.rows;
  return x[0] * (y[1] * z[2] - y[2] * z[1]) - x[1] * (y[0] * z[2] - y[2] * z[0]) +
             x[2] * (y[0] * z[1] - y[1] * z[0]) <
         0;
}

bounds::bounds() {
  low.fill(std::numeric_limits<double>::infinity());
  high.fill(-std::numeric_limits<double>::infinity());
}

void bounds::add(const vec3& p) {
  for (int i = 0; i < 3; ++i) {
    low[i] = std::min(low[i], p[i]);
    high[i] = std::max(high[i], p[i]);
  }
}

void bounds::add(const bounds& other) {
  for (int i = 0; i < 3; ++i) {
    low[i] = std::min(low[i], other.low[i]);
    high[i] = std::max(high[i], other.high[i]);
  }
}

vec3 bounds::centre() const {
  vec3 result;
  for (int i = 0; i < 3; ++i) result[i] = (low[i] + high[i]) / 2;
  return result;
}

double bounds::longest_side() const {
  return std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]});
}

bounds bounds_of(const mesh& surface) { return of_corners(surface, nullptr); }
bounds bounds_of(const mesh& surface, const affine& where) { return of_corners(surface, &where); }

affine place_mesh(const bounds& of_mesh, const placement& how, double unit, const bounds* onto) {
  const auto from = of_mesh.centre();
  auto to = from;
  affine result{how.linear, {}};
  if (onto != nullptr) {
    to = onto->centre();
    const double side = of_mesh.longest_side();
    for (auto& row : result.rows) {
      for (auto& entry : row) entry *= side == 0 ? 1 : onto->longest_side() / side;
    }
  }
  // A mesh that is not rotated stays exactly where it is.
  bool turned = false;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) turned = turned || result.rows[i][k] != (i == k ? 1 : 0);
  }
  if (turned) {
    const auto moved = result(from);
    for (int i = 0; i < 3; ++i) result.shift[i] = to[i] - moved[i];
  } else {
    for (int i = 0; i < 3; ++i) result.shift[i] = to[i] - from[i];
  }
  for (int i = 0; i < 3; ++i) result.shift[i] += how.move[i] * unit;
  return result;
}

frame frame_around(const bounds& box, std::uint32_t side) {
  const double length = box.longest_side();
  return {side, box.centre(), length == 0 ? 1 : length};
}

affine to_snapped(const frame& grid, const affine& where, const mesh& of) {
  const double steps = 256.0 * grid.side / grid.length;
  affine result = where;
  const auto origin = where(of.origin);
  for (std::size_t i = 0; i < 3; ++i) {
    for (auto& entry : result.rows[i]) entry *= of.scale * steps;
    result.shift[i] = (origin[i] - grid.centre[i]) * steps + 128.0 * grid.side;
  }
  return result;
}

}  // namespace roost::tools
