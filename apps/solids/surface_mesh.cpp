#include "surface_mesh.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <roost/error.hpp>
#include <roost/host.hpp>
#include <roost/two_way_index.hpp>

namespace roost::tools {
namespace {

using word = voxel_word<std::uint64_t>;

// A cell is the cube between the centres of eight voxels, about a corner of the voxels' grid. Bit 0 of the
// number of its corner is the side along x, bit 1 along y, bit 2 along z. Edge 4 * axis + u + 2 * v is
// parallel to an axis, on the sides u and v of the next two axes.

constexpr int bit(int number, int axis) { return number >> axis & 1; }

/// Which of the surface's sheets in a cell crosses an edge. On each face of the cell, the surface separates
/// corners inside and outside; if two inside corners are diagonally opposite, it goes around each.
struct sheets {
  std::array<std::uint8_t, 12> of_edge{};
  int count = 0;
};

sheets sheets_of(int inside) {
  std::array<int, 12> parent;
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int edge) {
    while (parent[static_cast<std::size_t>(edge)] != edge) edge = parent[static_cast<std::size_t>(edge)];
    return edge;
  };
  const auto end_of = [](int edge, int side) {  // the corner at that end
    const int axis = edge / 4, u = (axis + 1) % 3, v = (axis + 2) % 3;
    return side << axis | (edge & 1) << u | (edge >> 1 & 1) << v;
  };
  const auto crosses = [&](int edge) { return bit(inside, end_of(edge, 0)) != bit(inside, end_of(edge, 1)); };
  for (int face = 0; face < 6; ++face) {
    const int across = face / 2, side = face % 2;
    std::array<int, 4> edges{};
    int n = 0;
    for (int edge = 0; edge < 12; ++edge) {
      if (edge / 4 != across && bit(end_of(edge, 0), across) == side && crosses(edge))
        edges[static_cast<std::size_t>(n++)] = edge;
    }
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < i; ++k) {
        const int a = edges[static_cast<std::size_t>(i)], b = edges[static_cast<std::size_t>(k)];
        const auto inner = [&](int edge) { return end_of(edge, bit(inside, end_of(edge, 1))); };
        if (n == 2 || inner(a) == inner(b)) parent[static_cast<std::size_t>(root(a))] = root(b);
      }
    }
  }
  sheets result;
  std::array<int, 12> number;
  number.fill(-1);
  for (int edge = 0; edge < 12; ++edge) {
    if (!crosses(edge)) continue;
    auto& known = number[static_cast<std::size_t>(root(edge))];
    if (known < 0) known = result.count++;
    result.of_edge[static_cast<std::size_t>(edge)] = static_cast<std::uint8_t>(known);
  }
  return result;
}

const std::array<sheets, 256>& all_sheets() {
  static const auto table = [] {
    std::array<sheets, 256> made;
    for (int inside = 0; inside < 256; ++inside) made[static_cast<std::size_t>(inside)] = sheets_of(inside);
    return made;
  }();
  return table;
}

vec3 middle_of(std::uint64_t cell) {
  return {static_cast<double>(cell >> 32), static_cast<double>(cell >> 16 & 0xffff),
          static_cast<double>(cell & 0xffff)};
}

/// Called for each i of a long loop: now and then the caller hears of signals.
void pause_at(std::size_t i) {
  if (i % (1 << 16) == 0) detail::come_between();
}

int corners_inside(const solid_columns& solid, std::uint64_t cell) {
  int result = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const auto at = [&](int axis) {
      return static_cast<std::int64_t>(cell >> (32 - 16 * axis) & 0xffff) - 1 + bit(corner, axis);
    };
    if (is_inside(solid, at(0), at(1), at(2))) result |= 1 << corner;
  }
  return result;
}

/// Moves vertices towards the mean of their neighbours and then, slightly more, away from it (Taubin), so
/// that the surface becomes smooth but not smaller. No vertex leaves its cell.
void relax(std::vector<vec3>& vertices, const std::vector<vec3>& middles,
           const std::vector<std::uint32_t>& corners) {
  constexpr int rounds = 10;
  std::vector<vec3> sums(vertices.size());
  std::vector<double> counts(vertices.size());
  for (int step = 0; step < 2 * rounds; ++step) {
    std::ranges::fill(sums, vec3{});
    std::ranges::fill(counts, 0.0);
    for (std::size_t i = 0; i < corners.size(); ++i) {
      pause_at(i);
      const auto a = corners[i], b = corners[i % 4 == 3 ? i - 3 : i + 1];
      for (std::size_t k = 0; k < 3; ++k) {
        sums[a][k] += vertices[b][k];
        sums[b][k] += vertices[a][k];
      }
      counts[a] += 1;
      counts[b] += 1;
    }
    const double share = step % 2 == 0 ? 0.5 : -0.53;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        const double moved = vertices[i][k] + share * (sums[i][k] / counts[i] - vertices[i][k]);
        vertices[i][k] = std::clamp(moved, middles[i][k] - 0.5, middles[i][k] + 0.5);
      }
    }
  }
}

double squared(const vec3& a, const vec3& b) {
  double sum = 0;
  for (std::size_t k = 0; k < 3; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

}  // namespace

bool is_inside(const solid_columns& solid, std::int64_t x, std::int64_t y, std::int64_t z) {
  const std::int64_t side = solid.grid;
  if (x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side) return false;
  const auto column = static_cast<std::size_t>(x * side + y);
  const auto first = solid.heights.begin() + static_cast<std::ptrdiff_t>(solid.offsets[column]),
             last = solid.heights.begin() + static_cast<std::ptrdiff_t>(solid.offsets[column + 1]);
  return (std::upper_bound(first, last, z) - first) % 2 != 0;
}

seen_sides sides_of(const solid_columns& solid, std::span<const std::uint64_t> exposed) {
  seen_sides result;
  for (std::size_t i = 0; i < exposed.size(); ++i) {
    pause_at(i);
    const auto voxel = exposed[i];
    const std::int64_t at[3] = {word::coordinate(voxel, 0), word::coordinate(voxel, 1),
                                word::coordinate(voxel, 2)};
    for (int side = 0; side < 6; ++side) {
      const int axis = side / 2, u = (axis + 1) % 3, v = (axis + 2) % 3;
      const bool far = side % 2 != 0;
      std::int64_t beside[3] = {at[0], at[1], at[2]};
      beside[axis] += far ? 1 : -1;
      if (is_inside(solid, beside[0], beside[1], beside[2])) continue;
      for (int k = 0; k < 4; ++k) {
        const int corner = far ? k : 3 - k, along_u = corner == 1 || corner == 2 ? 1 : 0,
                  along_v = corner >= 2 ? 1 : 0;
        std::uint64_t p[3];
        p[axis] = static_cast<std::uint64_t>(at[axis] + (far ? 1 : 0));
        p[u] = static_cast<std::uint64_t>(at[u] + along_u);
        p[v] = static_cast<std::uint64_t>(at[v] + along_v);
        result.corners.push_back(p[0] << 32 | p[1] << 16 | p[2]);
        result.edges.push_back(static_cast<std::uint8_t>(4 * axis + (1 - along_u) + 2 * (1 - along_v)));
      }
    }
  }
  return result;
}

surface_mesh mesh_of_voxels(const solid_columns& solid, std::span<const std::uint64_t> exposed, bool smooth) {
  const auto sides = sides_of(solid, exposed);
  if (sides.edges.size() > 4 * (std::size_t{1} << 31))
    throw invalid_argument("a surface of more than 2^31 sides of voxels; take a coarser grid");
  const auto cells = unique_inverse(host(), sides.corners);
  surface_mesh result;
  std::vector<vec3> middles;
  std::vector<std::uint8_t> inside(cells.keys.size());
  std::vector<std::uint32_t> first(cells.keys.size());
  for (std::size_t i = 0; i < cells.keys.size(); ++i) {
    pause_at(i);
    inside[i] = static_cast<std::uint8_t>(corners_inside(solid, cells.keys[i]));
    first[i] = static_cast<std::uint32_t>(middles.size());
    middles.insert(middles.end(), static_cast<std::size_t>(all_sheets()[inside[i]].count),
                   middle_of(cells.keys[i]));
  }
  std::vector<std::uint32_t> corners(sides.edges.size());
  std::vector<vec3> sums(middles.size());
  std::vector<double> counts(middles.size());
  for (std::size_t i = 0; i < corners.size(); ++i) {
    pause_at(i);
    const auto cell = cells.inverse[i];
    const std::size_t edge = sides.edges[i], axis = edge / 4;
    const auto vertex = corners[i] = first[cell] + all_sheets()[inside[cell]].of_edge[edge];
    sums[vertex][(axis + 1) % 3] += edge % 2 == 0 ? -0.5 : 0.5;
    sums[vertex][(axis + 2) % 3] += edge % 4 < 2 ? -0.5 : 0.5;
    counts[vertex] += 1;
  }
  result.vertices = middles;
  if (smooth) {
    for (std::size_t i = 0; i < middles.size(); ++i) {
      for (std::size_t k = 0; k < 3; ++k) result.vertices[i][k] += sums[i][k] / counts[i];
    }
    relax(result.vertices, middles, corners);
  }
  for (std::size_t i = 0; i < corners.size(); i += 4) {
    pause_at(i);
    const auto a = corners[i], b = corners[i + 1], c = corners[i + 2], d = corners[i + 3];
    const auto& at = result.vertices;
    if (squared(at[a], at[c]) <= squared(at[b], at[d])) {
      result.triangles.insert(result.triangles.end(), {{a, b, c}, {a, c, d}});
    } else {
      result.triangles.insert(result.triangles.end(), {{a, b, d}, {b, c, d}});
    }
  }
  return result;
}

}  // namespace roost::tools
