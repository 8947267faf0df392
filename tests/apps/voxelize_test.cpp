#ifndef __CUDACC__  // voxels are made on the host

#include "apps/solids/voxelize.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

// The voxels of a surface: all that it touches, no others, each once, in order.

namespace test {
namespace {

namespace tools = roost::tools;
using u32 = std::uint32_t;
using vec = std::array<double, 3>;

const roost::host cpu;

vec operator-(const vec& a, const vec& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
double dot(const vec& a, const vec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
vec cross(const vec& a, const vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// A vertex in voxels, by the rule that voxelize() states.
std::vector<vec> in_grid(const tools::mesh& mesh, double grid) {
  vec low{1e300, 1e300, 1e300}, high{-1e300, -1e300, -1e300};
  std::vector<vec> result;
  for (const auto& v : mesh.vertices) result.push_back({v.x, v.y, v.z});
  for (const auto& v : result) {
    for (int i = 0; i < 3; ++i) low[i] = std::min(low[i], v[i]), high[i] = std::max(high[i], v[i]);
  }
  double side = std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]});
  if (side == 0) side = 1;
  for (auto& v : result) {
    for (int i = 0; i < 3; ++i) v[i] = ((v[i] - (low[i] + high[i]) / 2) / side + 0.5) * grid;
  }
  return result;
}

/// Whether a triangle comes within a hair of a voxel: no axis of the thirteen parts them by more
/// (separating axis theorem).
bool touches(const std::array<vec, 3>& t, const tools::voxel& voxel) {
  constexpr double hair = 1e-6;
  const vec centre{voxel.x + 0.5, voxel.y + 0.5, voxel.z + 0.5};
  const std::array<vec, 3> p{t[0] - centre, t[1] - centre, t[2] - centre},
      edges{t[1] - t[0], t[2] - t[1], t[0] - t[2]};
  std::vector<vec> axes{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, cross(edges[0], edges[1])};
  for (int i = 0; i < 3; ++i) {
    for (const auto& edge : edges) axes.push_back(cross(axes[i], edge));
  }
  return std::ranges::all_of(axes, [&](const vec& axis) {
    const double length = std::sqrt(dot(axis, axis));
    if (length < 1e-9) return true;
    const auto [low, high] = std::minmax({dot(p[0], axis), dot(p[1], axis), dot(p[2], axis)});
    const double reach = (std::abs(axis[0]) + std::abs(axis[1]) + std::abs(axis[2])) / 2 + hair * length;
    return low <= reach && high >= -reach;
  });
}

/// No point of the surface is outside of the voxels, no voxel is away from the surface.
void check(const tools::mesh& mesh, u32 grid) {
  const auto keys = tools::voxelize(cpu, mesh, grid);
  ASSERT_FALSE(keys.empty());
  ASSERT_TRUE(std::ranges::is_sorted(keys, std::less_equal{}) || keys.size() == 1);  // strictly
  const auto corners = in_grid(mesh, grid);
  std::vector<char> touched(keys.size());
  for (const auto& [i, j, k] : mesh.triangles) {
    const std::array<vec, 3> t{corners[i], corners[j], corners[k]};
    for (std::size_t n = 0; n < keys.size(); ++n)
      touched[n] = touched[n] || touches(t, tools::voxel_of(keys[n]));
    const int samples = 4 * static_cast<int>(grid) + 1;
    for (int a = 0; a <= samples; ++a) {
      for (int b = 0; a + b <= samples; ++b) {
        tools::voxel v{};
        u32* const to[] = {&v.x, &v.y, &v.z};
        bool between = false;  // too near to a plane between voxels to say on which side
        for (int axis = 0; axis < 3; ++axis) {
          const double at = (a * t[0][axis] + b * t[1][axis] + (samples - a - b) * t[2][axis]) / samples;
          between = between || std::abs(at - std::round(at)) < 1e-9;
          *to[axis] = static_cast<u32>(std::clamp(std::floor(at), 0.0, grid - 1.0));
        }
        ASSERT_TRUE(between || std::ranges::binary_search(keys, key_of(v)))
            << v.x << " " << v.y << " " << v.z;
      }
    }
  }
  ASSERT_TRUE(std::ranges::all_of(touched, [](char t) { return t != 0; }));
}

const tools::mesh cube{
    {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}},
    {{0, 3, 2},
     {0, 2, 1},
     {4, 5, 6},
     {4, 6, 7},
     {0, 1, 5},
     {0, 5, 4},
     {1, 2, 6},
     {1, 6, 5},
     {2, 3, 7},
     {2, 7, 6},
     {3, 0, 4},
     {3, 4, 7}}};

TEST(voxelize, keys_have_z_lowest) {
  EXPECT_EQ(key_of(tools::voxel{1, 2, 3}), (1u << 20) + (2u << 10) + 3u);
  EXPECT_EQ(key_of(tools::voxel{1023, 1023, 1023}), (1u << 30) - 1);
  for (const u32 key : {0u, 1u, 1023u, 1024u, 123456789u, (1u << 30) - 1})
    EXPECT_EQ(key_of(tools::voxel_of(key)), key);
}

TEST(voxelize, cube_is_its_six_sides) {
  for (const u32 grid : {2u, 3u, 63u, 64u, 65u, 200u}) {
    EXPECT_EQ(tools::voxelize(cpu, cube, grid).size(), 6 * grid * grid - 12 * grid + 8) << grid;
  }
  EXPECT_EQ(tools::voxelize(cpu, cube, 1), std::vector<u32>{0});
  check(cube, 9);
}

TEST(voxelize, finest_grid) {
  const tools::mesh side{cube.vertices, {cube.triangles[6], cube.triangles[7]}};
  const auto keys = tools::voxelize(cpu, side, 1024);
  EXPECT_EQ(keys.size(), 1024u * 1024);
  for (u32 i = 0; i < 1024 * 1024; ++i) ASSERT_EQ(keys[i], (512u << 20) + i);
}

TEST(voxelize, side_between_voxels_makes_one_layer) {
  tools::mesh mesh = cube;  // with a square in the middle
  const auto first = static_cast<u32>(mesh.vertices.size());
  for (const auto& [x, y] : {std::pair(0.25f, 0.25f), {0.75f, 0.25f}, {0.75f, 0.75f}, {0.25f, 0.75f}})
    mesh.vertices.push_back({x, y, 0.5f});
  mesh.triangles.push_back({first, first + 1, first + 2});
  mesh.triangles.push_back({first, first + 2, first + 3});
  const auto without = tools::voxelize(cpu, cube, 16), with = tools::voxelize(cpu, mesh, 16);
  std::vector<u32> more;
  std::ranges::set_difference(with, without, std::back_inserter(more));
  for (const auto key : more) EXPECT_EQ(tools::voxel_of(key).z, 8u);
  EXPECT_EQ(more.size(), 9u * 9u);  // 4 to 12: the corner at 12 belongs to the voxel above
}

TEST(voxelize, triangles_without_area) {
  const tools::mesh point{{{3, 4, 5}}, {{0, 0, 0}}};
  EXPECT_EQ(tools::voxelize(cpu, point, 8), std::vector<u32>{key_of(tools::voxel{4, 4, 4})});
  const tools::mesh diagonal{{{0, 0, 0}, {1, 1, 1}, {0.5, 0.5, 0.5}}, {{0, 1, 2}, {0, 0, 1}}};
  const auto keys = tools::voxelize(cpu, diagonal, 100);
  for (u32 i = 0; i < 100; ++i) EXPECT_TRUE(std::ranges::binary_search(keys, key_of(tools::voxel{i, i, i})));
  check(diagonal, 16);
  const tools::mesh along{{{0, 0, 0}, {0, 0, 7}}, {{0, 1, 1}}};
  EXPECT_EQ(tools::voxelize(cpu, along, 77).size(), 77u);
}

TEST(voxelize, vertices_without_triangle_do_not_count) {
  tools::mesh mesh = cube;
  mesh.vertices.push_back({1000, 0, 0});
  EXPECT_EQ(tools::voxelize(cpu, mesh, 32), tools::voxelize(cpu, cube, 32));
}

TEST(voxelize, largest_and_smallest_coordinates) {
  for (const float size : {std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()}) {
    tools::mesh mesh = cube;
    for (auto& v : mesh.vertices) v = {v.x * size, v.y * size, v.z * size};
    EXPECT_EQ(tools::voxelize(cpu, mesh, 32), tools::voxelize(cpu, cube, 32));
  }
  tools::mesh mesh = cube;
  const float most = std::numeric_limits<float>::max();
  for (auto& v : mesh.vertices) v = {(2 * v.x - 1) * most, (2 * v.y - 1) * most, (2 * v.z - 1) * most};
  EXPECT_EQ(tools::voxelize(cpu, mesh, 32), tools::voxelize(cpu, cube, 32));
}

TEST(voxelize, any_number_of_threads_finds_the_same) {
  tools::mesh soup;
  std::mt19937 random(1);
  std::normal_distribution<float> coordinate;
  for (u32 i = 0; i < 3000; ++i)
    soup.vertices.push_back({coordinate(random), coordinate(random), coordinate(random)});
  for (u32 i = 0; i + 2 < 3000; i += 3) soup.triangles.push_back({i, i + 1, i + 2});
  EXPECT_EQ(tools::voxelize(roost::host(1), soup, 50), tools::voxelize(roost::host(4), soup, 50));
}

TEST(voxelize, refuses_grids_that_cannot_be) {
  for (const std::uint64_t grid :
       {std::uint64_t{0}, std::uint64_t{1025}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    EXPECT_THROW(tools::voxelize(cpu, cube, grid), roost::invalid_argument) << grid;
  }
  EXPECT_THROW(tools::voxelize(cpu, tools::mesh{}, 32), roost::invalid_argument);
}

/// Triangles of all shapes; coordinates on planes between voxels, equal ones and slivers among
/// them.
RC_GTEST_PROP(voxelize, finds_what_the_surface_touches, ()) {
  const auto coordinate = rc::gen::oneOf(
      rc::gen::map(rc::gen::inRange(-8, 9), [](int i) { return static_cast<float>(i); }),
      rc::gen::map(rc::gen::inRange(-8000000, 8000001), [](int i) { return static_cast<float>(i) * 1e-6f; }),
      rc::gen::map(rc::gen::inRange(-100, 101), [](int i) { return 1 + static_cast<float>(i) * 1e-7f; }));
  tools::mesh mesh;
  const auto triangles = *rc::gen::inRange<u32>(1, 5);
  for (u32 i = 0; i < 3 * triangles; ++i) mesh.vertices.push_back({*coordinate, *coordinate, *coordinate});
  for (u32 i = 0; i < triangles; ++i) mesh.triangles.push_back({3 * i, 3 * i + 1, 3 * i + 2});
  check(mesh, *rc::gen::elementOf(std::vector<u32>{1, 2, 7, 16, 33}));
  RC_ASSERT(!::testing::Test::HasFailure());
}

}  // namespace
}  // namespace test

#endif
