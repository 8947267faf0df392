#ifndef __CUDACC__  // surfaces are work of the host

#include "apps/solids/surface_mesh.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "apps/solids/scene_on.hpp"
#include "apps/solids/shapes.hpp"
#include "support/keys.hpp"

// The surface of voxels as a mesh: closed, looking outwards, smooth or not.

namespace test {
namespace {

namespace tools = roost::tools;

/// A solid, voxel by voxel, and those of its voxels that can be seen.
struct voxels_of {
  tools::solid_columns solid;
  std::vector<u64> exposed;
  std::size_t count = 0;

  voxels_of(u32 side, const std::function<bool(u32, u32, u32)>& inside) {
    solid.grid = side;
    solid.offsets.push_back(0);
    for (u32 x = 0; x < side; ++x) {
      for (u32 y = 0; y < side; ++y) {
        bool before = false;
        for (u32 z = 0; z < side; ++z) {
          const bool now = inside(x, y, z);
          if (now != before) solid.heights.push_back(static_cast<std::uint16_t>(z));
          before = now;
          count += now ? 1 : 0;
        }
        solid.offsets.push_back(solid.heights.size());
      }
    }
    for (u32 x = 0; x < side; ++x) {
      for (u32 y = 0; y < side; ++y) {
        for (u32 z = 0; z < side; ++z) add_if_exposed(x, y, z);
      }
    }
  }
  void add_if_exposed(u32 x, u32 y, u32 z) {
    const auto in = [&](int dx, int dy, int dz) {
      return tools::is_inside(solid, std::int64_t{x} + dx, std::int64_t{y} + dy, std::int64_t{z} + dz);
    };
    if (!in(0, 0, 0)) return;
    if (!in(1, 0, 0) || !in(-1, 0, 0) || !in(0, 1, 0) || !in(0, -1, 0) || !in(0, 0, 1) || !in(0, 0, -1))
      exposed.push_back(tools::voxel_word<u64>::make(x, y, z, 0));
  }
  tools::surface_mesh mesh(bool smooth) const { return tools::mesh_of_voxels(solid, exposed, smooth); }
};

double volume_of(const tools::surface_mesh& mesh) {
  double sum = 0;
  for (const auto& t : mesh.triangles) {
    const auto &a = mesh.vertices[t[0]], &b = mesh.vertices[t[1]], &c = mesh.vertices[t[2]];
    sum += a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
           a[2] * (b[0] * c[1] - b[1] * c[0]);
  }
  return sum / 6;
}

/// Every edge is gone along equally often both ways: once, or at most twice. Returns how many there are;
/// counts those of four triangles.
std::size_t expect_closed(const tools::surface_mesh& mesh, std::size_t& of_four) {
  std::map<std::pair<u32, u32>, int> edges;
  std::set<u32> used;
  for (const auto& t : mesh.triangles) {
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_LT(t[k], mesh.vertices.size());
      EXPECT_NE(t[k], t[(k + 1) % 3]);
      ++edges[{t[k], t[(k + 1) % 3]}];
      used.insert(t[k]);
    }
  }
  EXPECT_EQ(used.size(), mesh.vertices.size());
  for (const auto& [edge, times] : edges) {
    const auto back = edges.find({edge.second, edge.first});
    EXPECT_TRUE(back != edges.end() && back->second == times && times <= 2);
    of_four += times == 2 ? 1 : 0;
  }
  return edges.size() / 2;
}

/// All 2^8 ways in which eight voxels can be there, and cubes of voxels drawn with several densities: also
/// where voxels meet at edges and corners only, and at the border of the grid.
TEST(surface_mesh, is_closed_for_every_set_of_voxels) {
  std::mt19937 random(1);
  std::size_t of_four = 0, edges = 0;
  const auto check = [&](const voxels_of& voxels) {
    for (const bool smooth : {false, true}) {
      const auto mesh = voxels.mesh(smooth);
      edges += expect_closed(mesh, of_four);
      if (!smooth) {
        EXPECT_NEAR(volume_of(mesh), static_cast<double>(voxels.count), 1e-9);
      }
    }
  };
  for (u32 kind = 0; kind < 256; ++kind)
    check(voxels_of(2, [&](u32 x, u32 y, u32 z) { return (kind >> (4 * x + 2 * y + z) & 1) != 0; }));
  for (int i = 0; i < 40; ++i) {
    const u32 density = 1 + random() % 9;
    check(voxels_of(1 + random() % 9, [&](u32, u32, u32) { return random() % 10 < density; }));
  }
  EXPECT_LT(of_four, edges / 20);
}

/// A checkerboard: voxels that meet at edges and corners alone are cubes of their own.
TEST(surface_mesh, of_a_checkerboard_are_cubes_of_their_own) {
  const voxels_of board(6, [](u32 x, u32 y, u32 z) { return (x + y + z) % 2 == 0; });
  const auto mesh = board.mesh(false);
  std::size_t of_four = 0;
  expect_closed(mesh, of_four);
  EXPECT_EQ(of_four, 0u);
  EXPECT_EQ(mesh.vertices.size(), 8 * board.count);
  EXPECT_EQ(mesh.triangles.size(), 12 * board.count);
}

TEST(surface_mesh, of_nothing_is_nothing) {
  for (const bool smooth : {false, true}) {
    const auto mesh = voxels_of(3, [](u32, u32, u32) { return false; }).mesh(smooth);
    EXPECT_TRUE(mesh.vertices.empty() && mesh.triangles.empty());
  }
}

/// Spheres and tori: vertices less edges plus faces, volume, and how far corners lie from the true surface.
TEST(surface_mesh, of_round_shapes_are_round) {
  const u32 side = 48;
  const auto at = [](u32 x) { return x + 0.5 - side / 2.0; };
  for (const double radius : {8.0, 16.3, 24.0}) {
    const voxels_of ball(side,
                         [&](u32 x, u32 y, u32 z) { return std::hypot(at(x), at(y), at(z)) <= radius; });
    const auto mesh = ball.mesh(true);
    std::size_t of_four = 0;
    const auto edges = expect_closed(mesh, of_four);
    EXPECT_EQ(mesh.vertices.size() + mesh.triangles.size(), edges + 2);
    const double pi = std::acos(-1.0);
    EXPECT_NEAR(volume_of(mesh) / (4 * pi / 3 * std::pow(radius, 3)), 1, 0.02) << radius;
    for (const auto& v : mesh.vertices) {
      const double far = std::hypot(v[0] - side / 2.0, v[1] - side / 2.0, v[2] - side / 2.0);
      EXPECT_NEAR(far, radius, 0.45);
    }
  }
  const voxels_of ring(
      side, [&](u32 x, u32 y, u32 z) { return std::hypot(std::hypot(at(x), at(y)) - 15, at(z)) <= 6; });
  const auto mesh = ring.mesh(true);
  std::size_t of_four = 0;
  EXPECT_EQ(mesh.vertices.size() + mesh.triangles.size(), expect_closed(mesh, of_four));
  EXPECT_NEAR(volume_of(mesh), static_cast<double>(ring.count), 0.01 * static_cast<double>(ring.count));
}

/// No corner leaves its cell: smooth and stepped corners differ by half a voxel along each axis at most.
TEST(surface_mesh, stays_near_its_voxels) {
  std::mt19937 random(2);
  const voxels_of some(9, [&](u32, u32, u32) { return random() % 2 == 0; });
  const auto steps = some.mesh(false), smooth = some.mesh(true);
  ASSERT_EQ(steps.vertices.size(), smooth.vertices.size());
  bool moved = false;
  for (std::size_t i = 0; i < steps.vertices.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_LE(std::abs(steps.vertices[i][k] - smooth.vertices[i][k]), 0.5 + 1e-12);
      moved = moved || steps.vertices[i][k] != smooth.vertices[i][k];
    }
  }
  EXPECT_TRUE(moved);
}

}  // namespace
}  // namespace test

#endif
