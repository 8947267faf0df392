#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "apps/solids/scene_on.hpp"
#include "apps/solids/shapes.hpp"
#include "support/keys.hpp"
#include "support/place.hpp"

// Solids as columns: what is inside, what is made of two, what can be seen, on the place under test; against
// dense grids that are filled voxel by voxel.

namespace test {
namespace {

namespace tools = roost::tools;
using tools::inside_rule;
using tools::solid_op;
using tools::voxel_set;
using word = tools::voxel_word<u32>;

/// A mesh whose corners are snapped as they are: in 1/256 of a voxel.
tools::mesh in_steps(const std::vector<std::array<int, 3>>& corners, std::vector<tools::triangle> triangles) {
  tools::mesh result{{}, std::move(triangles)};
  for (const auto& [x, y, z] : corners)
    result.vertices.push_back({static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)});
  return result;
}

tools::mesh box_in_steps(std::array<int, 3> low, std::array<int, 3> high) {
  tools::mesh result = *tools::make_shape("box");
  for (auto& v : result.vertices) {
    v.x = static_cast<float>(v.x < 0 ? low[0] : high[0]);
    v.y = static_cast<float>(v.y < 0 ? low[1] : high[1]);
    v.z = static_cast<float>(v.z < 0 ? low[2] : high[2]);
  }
  return result;
}

tools::mesh turned_over(tools::mesh of) {
  for (auto& t : of.triangles) std::swap(t[1], t[2]);
  return of;
}

tools::mesh together(tools::mesh a, const tools::mesh& b) {
  const auto first = static_cast<u32>(a.vertices.size());
  a.vertices.insert(a.vertices.end(), b.vertices.begin(), b.vertices.end());
  for (const auto& t : b.triangles) a.triangles.push_back({first + t[0], first + t[1], first + t[2]});
  return a;
}

/// A scene of meshes that lie in steps.
class steps_scene : public tools::scene_on<place_type> {
 public:
  steps_scene(u32 side, const std::vector<tools::mesh>& all, inside_rule rule = inside_rule::nonzero)
      : tools::scene_on<place_type>(test_place()) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      set_mesh(i, all[i]);
      place_mesh(i, side, {});
      make_solid(i, rule);
      make_surface(i, false);
    }
  }
};

/// The same of meshes that fill a grid together.
tools::frame frame_of(u32 side, const std::vector<tools::mesh>& all,
                      const std::vector<tools::affine>& where) {
  tools::bounds box;
  for (std::size_t i = 0; i < all.size(); ++i) box.add(tools::bounds_of(all[i], where[i]));
  return tools::frame_around(box, side);
}

class framed_scene : public tools::scene_on<place_type> {
 public:
  framed_scene(u32 side, const std::vector<tools::mesh>& all, std::vector<tools::affine> where = {},
               inside_rule rule = inside_rule::nonzero)
      : tools::scene_on<place_type>(test_place()) {
    where.resize(all.size());
    grid = frame_of(side, all, where);
    for (std::size_t i = 0; i < all.size(); ++i) {
      set_mesh(i, all[i]);
      place_mesh(i, side, to_snapped(grid, where[i]));
      make_solid(i, rule);
      make_surface(i, false);
    }
  }
  tools::frame grid;
};

/// The positions of the voxels of a combined scene.
std::set<u32> solid_of(tools::scene& all, solid_op op) {
  all.combine(op);
  const auto words = all.voxels32(voxel_set::solid);
  EXPECT_TRUE(std::ranges::is_sorted(words));
  std::set<u32> result(words.begin(), words.end());
  EXPECT_EQ(result.size(), words.size());
  EXPECT_EQ(all.facts_of_result().volume_voxels, words.size());
  return result;
}

std::set<u32> combined(solid_op op, const std::set<u32>& a, const std::set<u32>& b) {
  std::set<u32> all = a, result;
  all.insert(b.begin(), b.end());
  for (const u32 v : all) {
    if (tools::is_in(op, (a.contains(v) ? 1u : 0u) | (b.contains(v) ? 2u : 0u))) result.insert(v);
  }
  return result;
}

/// The six neighbours of a voxel, those outside of the grid as nothing.
std::vector<std::optional<u32>> neighbours(u32 voxel, u32 grid) {
  std::vector<std::optional<u32>> result;
  for (int axis = 0; axis < 3; ++axis) {
    const u32 at = word::coordinate(voxel, axis), step = 1u << (2 - axis) * 10;
    result.push_back(at == 0 ? std::nullopt : std::optional(voxel - step));
    result.push_back(at + 1 == grid ? std::nullopt : std::optional(voxel + step));
  }
  return result;
}

/// How often a ray along z from a voxel's centre upwards goes through a mesh in steps, in floating-point
/// numbers from a point that is a hair beside the centre. Positive: out of it.
int crossings_above(const tools::mesh& of, u32 voxel) {
  const double x = 256.0 * word::coordinate(voxel, 0) + 128 + 1e-3,
               y = 256.0 * word::coordinate(voxel, 1) + 128 - 1e-5,
               z = 256.0 * word::coordinate(voxel, 2) + 128 + 1e-7;
  int sum = 0;
  for (const auto& t : of.triangles) {
    const auto &a = of.vertices[t[0]], &b = of.vertices[t[1]], &c = of.vertices[t[2]];
    const auto edge = [&](const tools::point& p, const tools::point& q) {
      return (double{q.x} - p.x) * (y - p.y) - (double{q.y} - p.y) * (x - p.x);
    };
    const double ab = edge(a, b), bc = edge(b, c), ca = edge(c, a), area = ab + bc + ca;
    const bool up = ab > 0 && bc > 0 && ca > 0, down = ab < 0 && bc < 0 && ca < 0;
    if ((up || down) && (bc * a.z + ca * b.z + ab * c.z) / area > z) sum += up ? 1 : -1;
  }
  return sum;
}

std::set<u32> solid_by_rays(const tools::mesh& of, u32 grid, bool odd = false) {
  std::set<u32> result;
  for (u32 x = 0; x < grid; ++x) {
    for (u32 y = 0; y < grid; ++y) {
      for (u32 z = 0; z < grid; ++z) {
        const int around = crossings_above(of, word::make(x, y, z, 0));
        if (odd ? around % 2 != 0 : around != 0) result.insert(word::make(x, y, z, 0));
      }
    }
  }
  return result;
}

/// The same for tetrahedra of any size, in whole numbers: a centre is inside if it is on the same side of all
/// four faces as the corner opposite, and a face through a centre does not occur.
std::set<u32> solid_by_wide_rays(const tools::mesh& of, u32 grid) {
  __extension__ using wide = __int128;
  using whole = std::array<wide, 3>;
  const auto side_of = [](const whole& a, const whole& b, const whole& c, const whole& p) {
    whole u, v, w;
    for (std::size_t k = 0; k < 3; ++k) u[k] = b[k] - a[k], v[k] = c[k] - a[k], w[k] = p[k] - a[k];
    const wide volume = w[0] * (u[1] * v[2] - u[2] * v[1]) + w[1] * (u[2] * v[0] - u[0] * v[2]) +
                        w[2] * (u[0] * v[1] - u[1] * v[0]);
    return volume > 0 ? 1 : volume < 0 ? -1 : 0;
  };
  whole corners[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& v = of.vertices[i];
    corners[i] = {static_cast<wide>(v.x), static_cast<wide>(v.y), static_cast<wide>(v.z)};
  }
  std::set<u32> result;
  for (u32 n = 0; n < grid * grid * grid; ++n) {
    const u32 at[3] = {n / grid / grid, n / grid % grid, n % grid};
    whole p;
    for (std::size_t k = 0; k < 3; ++k) p[k] = wide{256} * at[k] + 128;
    bool inside = true;
    for (std::size_t i = 0; i < 4 && inside; ++i) {
      const whole &a = corners[(i + 1) % 4], &b = corners[(i + 2) % 4], &c = corners[(i + 3) % 4];
      const int here = side_of(a, b, c, p);
      EXPECT_NE(here, 0);
      inside = here == side_of(a, b, c, corners[i]);
    }
    if (inside) result.insert(word::make(at[0], at[1], at[2], 0));
  }
  return result;
}

/// A frame of two meshes has these voxels.
void frame_of_part(tools::scene& part, u32 side, const tools::affine& where, inside_rule rule,
                   const std::vector<u32>& expected) {
  part.make_frame({side, {where, where}, solid_op::exclusive, rule, false});
  EXPECT_EQ(part.voxels32(voxel_set::solid), expected);
}

/// A closed surface: a tetrahedron, or two that share a side, with corners of the kind that is asked for.
tools::mesh some_solid(std::mt19937& random, u32 grid, int multiple) {
  std::uniform_int_distribution<int> at(0, static_cast<int>(grid) * 256 / multiple);
  std::vector<std::array<int, 3>> corners(5);
  for (auto& c : corners) c = {at(random) * multiple, at(random) * multiple, at(random) * multiple};
  auto result = in_steps(corners, {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {2, 0, 3}});
  if (random() % 2 == 0) return result;
  // On the side 1 2 3 another one stands.
  result.triangles = {{0, 2, 1}, {0, 1, 3}, {2, 0, 3}, {1, 2, 4}, {2, 3, 4}, {3, 1, 4}};
  return result;
}

TEST(solids, of_a_box_are_its_voxels) {
  for (const u32 grid : {1u, 2u, 31u, 32u, 33u, 64u}) {
    framed_scene all(grid, {*tools::make_shape("box")});
    const auto facts = all.facts_of_mesh(0);
    EXPECT_EQ(facts.volume_voxels, u64{grid} * grid * grid);
    EXPECT_EQ(facts.sides, 6u * grid * grid);
    EXPECT_EQ(facts.exposed, grid < 3 ? u64{grid} * grid * grid : 6u * grid * grid - 12 * grid + 8);
    EXPECT_EQ(facts.voxels, facts.exposed);
    EXPECT_EQ(facts.area, 6.0 * grid * grid);
  }
}

TEST(solids, of_a_box_between_voxels_take_the_centres_inside) {
  // 130 is past the centre of voxel 0, 384 the centre of voxel 1, 640 that of voxel 2, which is inside: a
  // point counts as a hair below on all three axes, or above, and the same for all triangles.
  for (const int low : {0, 127, 128, 129, 130, 383, 384, 385}) {
    for (const int high : {639, 640, 641, 896, 1024}) {
      const auto mesh = box_in_steps({low, low, low}, {high, high, high});
      steps_scene all(4, {mesh});
      const u64 side = static_cast<u64>((high + 127) / 256 - (low + 127) / 256);
      EXPECT_EQ(all.facts_of_mesh(0).volume_voxels, side * side * side) << low << ' ' << high;
    }
  }
}

TEST(solids, are_those_of_rays) {
  std::mt19937 random(1);
  for (int i = 0; i < (sanitized ? 10 : 60); ++i) {
    const u32 grid = 1 + random() % 12;
    const int multiple = std::array{1, 64, 128, 256}[random() % 4];
    auto mesh = some_solid(random, grid, multiple);
    if (random() % 2 == 0) mesh = together(mesh, some_solid(random, grid, multiple));  // shells that overlap
    steps_scene all(grid, {mesh});
    // In steps of 64 and more the centre may lie on the surface itself; then rays that begin a hair beside it
    // are no oracle.
    if (multiple == 1) {
      EXPECT_EQ(solid_of(all, solid_op::first), solid_by_rays(mesh, grid)) << i;
    }
  }
}

/// Crossings along each axis: columns of closed surfaces are left as often as they are entered, whatever lies
/// on edges, corners and centres.
TEST(solids, cross_every_column_of_a_closed_surface_in_both_ways) {
  std::mt19937 random(2);
  const auto& place = test_place();
  for (int i = 0; i < (sanitized ? 20 : 200); ++i) {
    const u32 grid = 1 + random() % 20;
    const auto mesh = some_solid(random, grid, std::array{1, 64, 128, 256}[random() % 4]);
    const auto vertices = upload(mesh.vertices);
    const auto triangles = upload(mesh.triangles);
    memory_of<tools::snapped> snapped(place, mesh.vertices.size());
    place.for_each(mesh.vertices.size(), tools::snap_vertices{vertices.data(), {}, snapped.data()});
    for (int axis = 0; axis < 3; ++axis) {
      const auto crossings = tools::raster<u32, std::uint16_t>(
          place, tools::crossings_along{{snapped.data(), triangles.data(), grid}, axis},
          mesh.triangles.size(), 1);
      const auto columns = download(crossings.keys());
      const auto values = download(crossings.values());
      std::map<u32, int> sums;
      for (std::size_t k = 0; k < columns.size(); ++k) sums[columns[k]] += (values[k] & 1) == 0 ? 1 : -1;
      for (const auto& [column, sum] : sums) ASSERT_EQ(sum, 0) << i << ' ' << axis << ' ' << column;
    }
  }
}

/// No way through the sides of voxels leads from outside of a solid to its inside past its surface.
TEST(solids, are_closed_by_their_surface_voxels) {
  std::mt19937 random(3);
  for (int i = 0; i < (sanitized ? 5 : 30); ++i) {
    const u32 grid = 2 + random() % 14;
    const auto mesh = some_solid(random, grid, std::array{1, 64, 128, 256}[random() % 4]);
    steps_scene all(grid, {mesh});
    const auto solid = solid_of(all, solid_op::first);
    const auto words = all.voxels32(voxel_set::surface);
    const std::set<u32> surface(words.begin(), words.end());
    for (const u32 v : solid) {
      for (const auto& n : neighbours(v, grid)) {
        if (n && !solid.contains(*n)) {
          EXPECT_TRUE(surface.contains(v) || surface.contains(*n)) << i << ' ' << v;
        }
      }
    }
  }
}

TEST(solids, combine_as_sets_do) {
  std::mt19937 random(4);
  for (int i = 0; i < (sanitized ? 5 : 30); ++i) {
    const u32 grid = 2 + random() % 14;
    const int multiple = std::array{1, 128}[random() % 2];
    const std::vector<tools::mesh> meshes{some_solid(random, grid, multiple),
                                          some_solid(random, grid, multiple),
                                          some_solid(random, grid, multiple)};
    std::vector<std::set<u32>> solids;
    for (const auto& mesh : meshes) {
      steps_scene alone(grid, {mesh});
      solids.push_back(solid_of(alone, solid_op::combined));
    }
    for (const auto op :
         {solid_op::combined, solid_op::intersection, solid_op::difference, solid_op::exclusive}) {
      steps_scene two(grid, {meshes[0], meshes[1]}), three(grid, meshes);
      const auto of_two = combined(op, solids[0], solids[1]);
      EXPECT_EQ(solid_of(two, op), of_two) << i;
      EXPECT_EQ(solid_of(three, op), combined(op, of_two, solids[2])) << i;
      const auto bits = two.bit_grid(op);
      EXPECT_EQ(bits.volume_voxels, of_two.size());
      EXPECT_EQ(bits.exposed, (two.combine(op), two.facts_of_result().exposed));
    }
  }
}

/// What can be seen, and why: voxels with a side to one outside, where the solids differ.
TEST(solids, show_the_voxels_at_their_surface) {
  std::mt19937 random(5);
  for (int i = 0; i < (sanitized ? 5 : 30); ++i) {
    const u32 grid = 1 + random() % 14;
    const int multiple = std::array{1, 128, 256}[random() % 3];
    const std::vector<tools::mesh> meshes{some_solid(random, grid, multiple),
                                          some_solid(random, grid, multiple)};
    std::set<u32> solids[2];
    for (int k = 0; k < 2; ++k) {
      steps_scene alone(grid, {meshes[static_cast<std::size_t>(k)]});
      solids[k] = solid_of(alone, solid_op::first);
    }
    const auto state = [&](const std::optional<u32>& v) {
      return !v ? 0u : (solids[0].contains(*v) ? 1u : 0u) | (solids[1].contains(*v) ? 2u : 0u);
    };
    for (const auto op :
         {solid_op::combined, solid_op::intersection, solid_op::difference, solid_op::exclusive}) {
      steps_scene two(grid, meshes);
      const auto solid = solid_of(two, op);
      std::set<u32> expected;
      u64 sides = 0;
      for (const u32 v : solid) {
        u32 why = 0;
        for (const auto& n : neighbours(v, grid)) {
          if (n && solid.contains(*n)) continue;
          why |= state(v) ^ state(n);
          ++sides;
        }
        if (why != 0) expected.insert(v | (why - 1) << 30);
      }
      const auto words = two.voxels32(voxel_set::exposed);
      EXPECT_EQ(std::set<u32>(words.begin(), words.end()), expected) << i;
      EXPECT_EQ(words.size(), expected.size());
      EXPECT_TRUE(std::ranges::is_sorted(words, {}, [](u32 w) { return word::position(w); }));
      EXPECT_EQ(two.facts_of_result().sides, sides);
      const auto wide = two.voxels64(voxel_set::exposed);
      using wide_word = tools::voxel_word<u64>;
      for (std::size_t k = 0; k < words.size(); ++k) {
        for (int axis = 0; axis < 3; ++axis)
          ASSERT_EQ(wide_word::coordinate(wide[k], axis), word::coordinate(words[k], axis));
        ASSERT_EQ(wide_word::class_of(wide[k]), word::class_of(words[k]));
      }
    }
  }
}

TEST(solids, know_what_is_around_their_voxels) {
  const auto how = tools::parse_placement("rotate 1 2 3 40 move 0.3 0.2 0.1");
  const std::vector<tools::mesh> meshes{*tools::make_shape("box"), *tools::make_shape("sphere:20")};
  for (const u32 grid : {1u, 31u, 33u, 64u, 70u}) {
    framed_scene two(grid, meshes, {{}, tools::place_mesh(tools::bounds_of(meshes[1]), how, 1)});
    const auto solid = solid_of(two, solid_op::difference);
    EXPECT_EQ(two.volume(), solid.size());
    for (const auto which : {voxel_set::exposed, voxel_set::surfaces}) {
      const auto lit = two.lit(which);
      ASSERT_EQ(lit.words, two.voxels32(which));
      ASSERT_EQ(lit.around.size(), lit.words.size());
      std::set<u32> surface;
      for (const u32 w : lit.words) surface.insert(word::position(w));
      const auto& all = which == voxel_set::exposed ? solid : surface;
      for (std::size_t i = 0; i < lit.words.size(); ++i) {
        u32 expected = 0;
        for (u32 k = 0; k < 27; ++k) {
          const u32 at[3] = {word::coordinate(lit.words[i], 0) + k / 9 - 1,
                             word::coordinate(lit.words[i], 1) + k / 3 % 3 - 1,
                             word::coordinate(lit.words[i], 2) + k % 3 - 1};
          const bool there = at[0] < grid && at[1] < grid && at[2] < grid;
          if (there && all.contains(word::make(at[0], at[1], at[2], 0))) expected |= 1u << k;
        }
        ASSERT_EQ(lit.around[i], expected) << grid << ' ' << i;
      }
    }
  }
}

TEST(solids, tell_the_classes_of_two_surfaces) {
  std::mt19937 random(6);
  for (int i = 0; i < (sanitized ? 5 : 30); ++i) {
    const u32 grid = 2 + random() % 14;
    const std::vector<tools::mesh> meshes{some_solid(random, grid, 1), some_solid(random, grid, 1)};
    std::set<u32> solids[2], surfaces[2];
    for (int k = 0; k < 2; ++k) {
      steps_scene alone(grid, {meshes[static_cast<std::size_t>(k)]});
      solids[k] = solid_of(alone, solid_op::first);
      const auto words = alone.voxels32(voxel_set::surface);
      surfaces[k] = {words.begin(), words.end()};
      EXPECT_EQ(alone.facts_of_mesh(0).voxels, surfaces[k].size());
    }
    tools::class_counts all, each[2];
    std::set<u32> expected;
    for (int k = 0; k < 2; ++k) {
      for (const u32 v : surfaces[k]) {
        if (surfaces[1 - k].contains(v)) {
          ++each[k].both;
          all.both += k == 0 ? 1u : 0u;
          expected.insert(v | 2u << 30);
        } else if (solids[1 - k].contains(v)) {
          ++each[k].inside, ++all.inside;
          expected.insert(v | 1u << 30);
        } else {
          ++each[k].outside, ++all.outside;
          expected.insert(v);
        }
      }
    }
    steps_scene two(grid, meshes);
    const auto same = [](const tools::class_counts& a, const tools::class_counts& b) {
      return a.outside == b.outside && a.inside == b.inside && a.both == b.both;
    };
    EXPECT_TRUE(same(two.classes(), all)) << i;
    for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(same(two.classes_of_mesh(k), each[k])) << i;
    const auto words = two.voxels32(voxel_set::surfaces);
    EXPECT_EQ(std::set<u32>(words.begin(), words.end()), expected);
    EXPECT_EQ(words.size(), all.all());
  }
}

TEST(solids, have_the_volume_and_the_area_of_spheres_and_tori) {
  const u32 grid = sanitized ? 48 : 100;
  const double g = grid;
  const auto facts = [&](const char* name) {
    return framed_scene(grid, {*tools::make_shape(name)}).facts_of_mesh(0);
  };
  const auto ball = facts("sphere:300");
  EXPECT_NEAR(static_cast<double>(ball.volume_voxels), std::numbers::pi / 6 * g * g * g, 0.25 * g * g);
  EXPECT_NEAR(ball.area, std::numbers::pi * g * g, 0.01 * g * g);
  const auto ring = facts("torus:300");
  EXPECT_NEAR(static_cast<double>(ring.volume_voxels),
              2 * std::pow(std::numbers::pi * 0.15 * g, 2) * 0.35 * g, 0.25 * g * g);
  EXPECT_NEAR(ring.area, 4 * std::pow(std::numbers::pi * g, 2) * 0.35 * 0.15, 0.02 * g * g);
}

/// |A| + |B| = |A or B| + |A and B|, De Morgan within the grid, and what is the same twice.
RC_GTEST_PROP(solids, keep_the_laws_of_sets_wherever_they_lie, ()) {
  const auto name = rc::gen::elementOf(std::vector<std::string>{"box", "sphere:20", "torus:24", "sphere:7"});
  const std::vector<tools::mesh> meshes{*tools::make_shape(*name), *tools::make_shape(*name)};
  const auto part = rc::gen::map(rc::gen::inRange(-100, 101), [](int i) { return i / 100.0; });
  const auto number = [&](double scale, double first) { return std::to_string(first + scale * *part) + ' '; };
  const auto how =
      tools::parse_placement("rotate " + number(1, 0) + number(1, 0) + "0.3 " + number(180, 0) + "move " +
                             number(0.5, 0) + number(0.5, 0) + number(0.5, 0) + "scale " + number(0.5, 0.6));
  const auto where = tools::place_mesh(tools::bounds_of(meshes[1]), how, 1);
  const auto grid = *rc::gen::elementOf(std::vector<u32>{1, 5, 16, sanitized ? 17u : 33u});
  framed_scene all(grid, meshes, {{}, where});
  const auto volume = [&](solid_op op) {
    all.combine(op);
    return all.facts_of_result().volume_voxels;
  };
  const u64 a = all.facts_of_mesh(0).volume_voxels, b = all.facts_of_mesh(1).volume_voxels;
  const u64 both = volume(solid_op::intersection), any = volume(solid_op::combined);
  RC_ASSERT(a + b == any + both);
  RC_ASSERT(volume(solid_op::difference) == a - both);
  RC_ASSERT(volume(solid_op::exclusive) == any - both);
  // De Morgan, in a box around both: without A or B is without A and without B.
  tools::mesh around = *tools::make_shape("box");
  for (auto& v : around.vertices) v.x *= 4, v.y *= 4, v.z *= 4;
  const auto without = [&](std::vector<tools::mesh> of, std::vector<tools::affine> at) {
    of.insert(of.begin(), around);
    at.insert(at.begin(), tools::affine());
    framed_scene some(grid, of, at);
    return solid_of(some, solid_op::difference);
  };
  const auto a_out = without({meshes[0]}, {{}}), b_out = without({meshes[1]}, {where});
  RC_ASSERT(without({meshes[0], meshes[1]}, {{}, where}) == combined(solid_op::intersection, a_out, b_out));

  framed_scene one(grid, {meshes[0]});
  one.set_mesh(1, meshes[0]);
  one.place_mesh(1, grid, to_snapped(one.grid, {}));
  one.make_solid(1, inside_rule::nonzero);
  one.combine(solid_op::difference);
  RC_ASSERT(one.facts_of_result().volume_voxels == 0u);
  RC_ASSERT(one.voxels32(voxel_set::exposed).empty());
  one.combine(solid_op::intersection);
  RC_ASSERT(one.facts_of_result().volume_voxels == one.facts_of_mesh(0).volume_voxels);
}

TEST(solids, of_frames_are_those_of_single_steps) {
  const std::vector<tools::mesh> meshes = {*tools::make_shape("torus:30"), *tools::make_shape("sphere:20"),
                                           *tools::make_shape("box")};
  for (const std::size_t count : {1, 2, 3}) {
    const std::vector<tools::mesh> some(meshes.begin(), meshes.begin() + static_cast<std::ptrdiff_t>(count));
    framed_scene steps(20, some), frames(20, some);
    // Finer and coarser, so that what one frame leaves is too little and too much for the next.
    for (const u32 grid : {20u, 31u, 70u, 9u}) {
      for (const auto rule : {inside_rule::nonzero, inside_rule::odd, inside_rule::vote}) {
        if (rule == inside_rule::vote && grid > 20) continue;
        const auto op = grid % 2 == 0 ? solid_op::difference : solid_op::exclusive;
        std::vector<tools::affine> where;
        for (std::size_t i = 0; i < count; ++i) {
          const double turn = grid + 20.0 * static_cast<double>(i);
          where.push_back(tools::place_mesh(
              tools::bounds_of(some[i]),
              tools::parse_placement("rotate 1 2 3 " + std::to_string(turn) + " move 0.1 0.05 0"), 1));
        }
        const auto cube = frame_of(grid, some, where);
        tools::frame_plan plan{grid, {}, op, rule, grid == 31};
        for (std::size_t i = 0; i < count; ++i) {
          plan.to_snapped.push_back(to_snapped(cube, where[i]));
          steps.place_mesh(i, grid, plan.to_snapped[i]);
          steps.make_solid(i, rule);
          if (count == 2) steps.make_surface(i, plan.all_touched);
        }
        steps.combine(op);
        const auto counted = frames.make_frame(plan);
        EXPECT_EQ(counted.exposed, steps.count_exposed());
        EXPECT_EQ(frames.volume(), steps.volume());
        EXPECT_EQ(frames.voxels32(voxel_set::exposed), steps.voxels32(voxel_set::exposed));
        EXPECT_EQ(frames.voxels32(voxel_set::solid), steps.voxels32(voxel_set::solid));
        // Another operation on the same meshes: not what the frame has kept.
        frames.combine(solid_op::combined);
        steps.combine(solid_op::combined);
        EXPECT_EQ(frames.voxels32(voxel_set::exposed), steps.voxels32(voxel_set::exposed));
        if (count != 2) continue;
        EXPECT_EQ(frames.voxels32(voxel_set::surfaces), steps.voxels32(voxel_set::surfaces));
        const auto known = steps.classes();
        EXPECT_EQ(counted.classes.outside, known.outside);
        EXPECT_EQ(counted.classes.inside, known.inside);
        EXPECT_EQ(counted.classes.both, known.both);
        EXPECT_EQ(frames.facts_of_mesh(1).voxels, steps.facts_of_mesh(1).voxels);
        EXPECT_EQ(frames.facts_of_mesh(1).volume_voxels, steps.facts_of_mesh(1).volume_voxels);
      }
    }
    EXPECT_FALSE(frames.frame_times().empty());
    expect_error<roost::invalid_argument>([&] { frames.make_frame({8, {}}); }, {"frame of 0 meshes"});
  }
}

/// All that a scene says about its meshes and about the result of its last operation.
std::map<std::string, std::vector<u64>> all_of(tools::scene& of) {
  std::map<std::string, std::vector<u64>> result;
  const auto put = [&](const std::string& name, const auto& words) {
    result[name].assign(words.begin(), words.end());
  };
  const auto put_facts = [&](const std::string& name, const tools::solid_facts& facts) {
    result[name] = {facts.voxels, facts.volume_voxels, facts.exposed, facts.sides,
                    static_cast<u64>(facts.area * 1024)};
  };
  const auto columns = of.columns();
  put("offsets", columns.offsets);
  put("heights", columns.heights);
  put_facts("result", of.facts_of_result());
  result["counts"] = {of.count_exposed(), of.volume()};
  for (const auto which : {voxel_set::exposed, voxel_set::solid, voxel_set::surfaces, voxel_set::surface}) {
    const auto name = std::to_string(static_cast<int>(which));
    const bool surface = which == voxel_set::surface || which == voxel_set::surfaces;
    if (surface && of.meshes() != 2) continue;
    put("voxels " + name, of.voxels32(which));
    put("long voxels " + name, of.voxels64(which));
    put("around " + name, of.lit(which).around);
  }
  for (std::size_t i = 0; i < of.meshes(); ++i) {
    put_facts("mesh " + std::to_string(i), of.facts_of_mesh(i));
    if (of.meshes() != 2) continue;
    const auto classes = of.classes_of_mesh(i);
    result["classes"].insert(result["classes"].end(), {classes.outside, classes.inside, classes.both});
  }
  if (of.meshes() == 2) {
    const auto filled = of.fill();
    result["fill"] = {filled.classes.outside, filled.classes.inside, filled.classes.both, filled.different};
  }
  return result;
}

/// Makes a frame, and the same in single steps, in a scene of the same meshes.
void expect_frame(tools::scene& frames, const tools::frame_plan& plan, const std::vector<tools::mesh>& all) {
  const auto counted = frames.make_frame(plan);
  tools::scene_on<place_type> steps(test_place());
  for (std::size_t i = 0; i < all.size(); ++i) {
    steps.set_mesh(i, all[i]);
    steps.place_mesh(i, plan.grid, plan.to_snapped[i]);
    steps.make_solid(i, plan.rule);
    if (all.size() == 2) steps.make_surface(i, plan.all_touched);
  }
  steps.combine(plan.op);
  EXPECT_EQ(counted.exposed, steps.count_exposed());
  if (all.size() == 2) {
    EXPECT_EQ(counted.classes.outside, steps.classes().outside);
    EXPECT_EQ(counted.classes.inside, steps.classes().inside);
    EXPECT_EQ(counted.classes.both, steps.classes().both);
  }
  EXPECT_EQ(all_of(frames), all_of(steps));
}

TEST(solids, of_frames_at_random_are_those_of_single_steps) {
  // On both sides of a team's columns.
  const std::vector<u32> grids =
      sanitized ? std::vector<u32>{1, 16, 17} : std::vector<u32>{1, 2, 11, 12, 16, 17, 23, 63, 64, 65};
  std::mt19937 random(12);
  for (const std::size_t count : {1, 2, 3}) {
    tools::scene_on<place_type> frames(test_place());
    std::vector<tools::mesh> all(count);
    for (std::size_t f = 0; f < (sanitized ? 4 : 3 * grids.size()); ++f) {
      tools::frame_plan plan;
      plan.grid = grids[random() % grids.size()];
      plan.all_touched = random() % 2 == 0;
      plan.rule = random() % 8 == 0   ? inside_rule::vote
                  : random() % 2 == 0 ? inside_rule::odd
                                      : inside_rule::nonzero;
      plan.op = std::vector{solid_op::first, solid_op::combined, solid_op::intersection, solid_op::difference,
                            solid_op::exclusive}[random() % 5];
      for (std::size_t i = 0; i < count; ++i) {
        if (f == 0 || random() % 3 == 0) {
          all[i] = some_solid(random, 32, 1 << random() % 9);
          frames.set_mesh(i, all[i]);
        }
        tools::affine where;  // the grid is a part of them, or they are a part of the grid
        const double scale = static_cast<double>(plan.grid) / 32 * (1 + static_cast<double>(random() % 3));
        for (int k = 0; k < 3; ++k) {
          where.rows[k][k] = scale;
          where.shift[k] = static_cast<double>(random() % 512) - 256;
        }
        plan.to_snapped.push_back(where);
      }
      expect_frame(frames, plan, all);
    }
  }
}

/// Shells in each other: many marks in a column, many pieces, and with rule `odd` more visible voxels than
/// columns.
tools::mesh nested_shells(int grid, int count) {
  tools::mesh all{{}, {}};
  for (int i = 0; i < count; ++i) {
    const int low = 256 * i, high = 256 * (grid - i);
    all = together(all, box_in_steps({low, low, low}, {high, high, high}));
  }
  return all;
}

TEST(solids, of_frames_that_lack_room_are_made_again) {
  const int grid = sanitized ? 24 : 40;
  const auto small = box_in_steps({0, 0, 0}, {300, 300, 300}), large = nested_shells(grid, grid / 2);
  const tools::affine here;
  for (const std::size_t count : {1, 2, 3}) {
    if (sanitized && count == 2) continue;
    for (const bool all_touched : {false, true}) {
      tools::scene_on<place_type> frames(test_place());
      for (const auto& mesh : {small, large, small, large}) {
        const std::vector<tools::mesh> all(count, mesh);
        for (std::size_t i = 0; i < count; ++i) frames.set_mesh(i, mesh);
        const u32 side = mesh.triangles.size() == small.triangles.size() ? 2 : grid;
        expect_frame(
            frames, {side, std::vector(count, here), solid_op::combined, inside_rule::odd, all_touched}, all);
      }
    }
  }
}

TEST(solids, of_frames_without_memory_are_no_others) {
  const std::vector<tools::mesh> all = {nested_shells(20, 10), box_in_steps({0, 0, 0}, {2000, 3000, 4000})};
  const tools::affine here;
  const tools::frame_plan plan{20, {here, here}, solid_op::exclusive, inside_rule::odd, true};
  for (std::size_t good = 0;; good += sanitized ? 5 : 1) {
    tools::scene_on<place_type> frames(test_place());
    for (std::size_t i = 0; i < all.size(); ++i) frames.set_mesh(i, all[i]);
    frames.make_frame({4, {here, here}, solid_op::combined, inside_rule::odd, false});
    test_memory().refuse_after(good);
    bool made = false;
    try {
      frames.make_frame(plan);
      made = true;
    } catch (const roost::out_of_memory&) {
    }
    test_memory().refuse_nothing();
    if (made) break;
    EXPECT_TRUE(frames.voxels32(voxel_set::exposed).empty());
    EXPECT_TRUE(frames.voxels32(voxel_set::surfaces).empty());
    expect_frame(frames, plan, all);
  }
}

/// A scene whose frames are launched by hand: on cuda by a graph that is launched twice.
class launched_scene : public tools::scene_on<place_type> {
 public:
  launched_scene() : tools::scene_on<place_type>(test_place()) {}
  void make_again(const tools::frame_plan& plan) {
    const auto launch = [&] { launch_frame(plan, [](const char*, const auto& f) { f(); }); };
#if defined(__CUDACC__)
    const cudaStream_t stream = test_place().stream();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    launch();
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
    for (int times = 0; times < 2; ++times) ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
#else
    launch();
#endif
    frame_room room{};
    EXPECT_TRUE(read_frame(plan, room));
#if defined(__CUDACC__)
    EXPECT_EQ(cudaGraphExecDestroy(ready), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
#endif
  }
};

TEST(solids, of_frames_that_are_captured_are_the_same) {
  const std::vector<tools::mesh> all = {nested_shells(30, 12), *tools::make_shape("sphere:40")};
  const auto plan_of = [&](int f) {
    tools::affine moved, scaled;
    for (std::size_t k = 0; k < 3; ++k) {
      moved.shift[k] = 300 * f;
      scaled.rows[k][k] = 3000;
      scaled.shift[k] = 3500;
    }
    return tools::frame_plan{30, {moved, scaled}, solid_op::difference, inside_rule::odd, f % 2 == 0};
  };
  launched_scene frames;
  for (std::size_t i = 0; i < 2; ++i) frames.set_mesh(i, all[i]);
  for (int f = 0; f < 4; ++f) {
    frames.make_frame(plan_of(f));  // has room from now on
    const auto expected = all_of(frames);
    frames.make_frame(plan_of(f + 1));
    frames.make_again(plan_of(f));
    EXPECT_EQ(all_of(frames), expected);
  }
}

TEST(solids, keep_de_morgans_laws) {
  std::mt19937 random(7);
  for (int i = 0; i < (sanitized ? 5 : 20); ++i) {
    const u32 grid = 3 + random() % 10;
    const int end = static_cast<int>(256 * grid);
    const auto everything = box_in_steps({0, 0, 0}, {end, end, end});
    const auto a = some_solid(random, grid, 1), b = some_solid(random, grid, 128);
    // (All - A) and (All - B): All - A - B; (All - A) or (All - B): All - (A and B).
    steps_scene without_both(grid, {everything, a, b}), pair(grid, {a, b});
    const auto minus = solid_of(without_both, solid_op::difference);
    const auto any = solid_of(pair, solid_op::combined);
    EXPECT_EQ(minus.size() + any.size(), std::size_t{grid} * grid * grid);
    EXPECT_TRUE(std::ranges::none_of(any, [&](u32 v) { return minus.contains(v); }));
  }
}

TEST(solids, do_not_depend_on_the_order_of_triangles_nor_of_columns) {
  auto mesh = *tools::make_shape("torus:40");
  framed_scene first(40, {mesh, *tools::make_shape("sphere:30")});
  first.combine(solid_op::exclusive);
  const auto words = first.voxels32(voxel_set::exposed);
  std::mt19937 random(8);
  std::ranges::shuffle(mesh.triangles, random);
  framed_scene second(40, {mesh, *tools::make_shape("sphere:30")});
  second.combine(solid_op::exclusive);
  EXPECT_EQ(second.voxels32(voxel_set::exposed), words);
  // The same on every place, today and tomorrow.
  u64 hash = 0;
  for (const u32 w : words) hash = roost::mix64(w, hash);
  EXPECT_EQ(words.size(), 5352u);
  EXPECT_EQ(hash, 14992441402278823038u);
}

TEST(solids, inside_of_each_other_and_apart) {
  const auto large = box_in_steps({0, 0, 0}, {2560, 2560, 2560}),
             small = box_in_steps({512, 512, 512}, {1024, 1024, 1024}),
             beside = box_in_steps({2560, 0, 0}, {3072, 512, 512});
  steps_scene nested(12, {large, small}), apart(12, {small, beside}), touching(12, {large, beside});
  EXPECT_EQ(solid_of(nested, solid_op::intersection).size(), 8u);
  EXPECT_EQ(solid_of(nested, solid_op::difference).size(), 1000u - 8);
  EXPECT_EQ(nested.classes().both, 0u);
  EXPECT_EQ(nested.classes().inside,
            19u);  // a side of the small one that lies in a plane is in the voxels above it
  EXPECT_EQ(solid_of(apart, solid_op::intersection).size(), 0u);
  EXPECT_EQ(solid_of(apart, solid_op::combined).size(), 16u);
  EXPECT_EQ(solid_of(touching, solid_op::intersection).size(), 0u);
  EXPECT_EQ(solid_of(touching, solid_op::combined).size(), 1008u);
}

TEST(solids, of_shells_that_overlap_are_what_any_goes_around) {
  const auto a = box_in_steps({0, 0, 0}, {1024, 1024, 1024}),
             b = box_in_steps({512, 512, 512}, {1536, 1536, 1536});
  const u64 each = 64, common = 8;
  EXPECT_EQ(steps_scene(8, {together(a, b)}).facts_of_mesh(0).volume_voxels, 2 * each - common);
  EXPECT_EQ(steps_scene(8, {together(a, b)}, inside_rule::odd).facts_of_mesh(0).volume_voxels,
            2 * each - 2 * common);
  EXPECT_EQ(steps_scene(8, {turned_over(a)}).facts_of_mesh(0).volume_voxels, each);
  EXPECT_EQ(steps_scene(8, {together(a, a)}).facts_of_mesh(0).volume_voxels, each);
  EXPECT_EQ(steps_scene(8, {together(a, turned_over(a))}).facts_of_mesh(0).volume_voxels, 0u);
}

TEST(solids, of_very_many_shells_at_one_place) {
  std::mt19937 random(9);
  tools::mesh all{{}, {}};
  std::set<u32> expected;
  for (int i = 0; i < 300; ++i) {
    std::array<int, 3> low, high;
    for (int k = 0; k < 3; ++k) {
      low[k] = static_cast<int>(random() % 8);
      high[k] = low[k] + 1 + static_cast<int>(random() % 3);
    }
    for (int x = low[0]; x < high[0]; ++x) {
      for (int y = low[1]; y < high[1]; ++y) {
        for (int z = low[2]; z < high[2]; ++z)
          expected.insert(word::make(static_cast<u32>(x), static_cast<u32>(y), static_cast<u32>(z), 0));
      }
    }
    for (int k = 0; k < 3; ++k) low[k] *= 256, high[k] *= 256;
    all = together(all, box_in_steps(low, high));
  }
  steps_scene scene(10, {all});
  EXPECT_EQ(solid_of(scene, solid_op::first), expected);
  const auto surface = scene.voxels32(voxel_set::surface);
  EXPECT_TRUE(std::ranges::is_sorted(surface, std::less_equal()));
}

TEST(solids, of_degenerate_triangles_are_nothing) {
  auto mesh = box_in_steps({0, 0, 0}, {1024, 1024, 1024});
  const u64 volume = steps_scene(4, {mesh}).facts_of_mesh(0).volume_voxels;
  mesh.triangles.push_back({0, 0, 0});
  mesh.triangles.push_back({0, 7, 7});
  mesh.vertices.push_back({512, 512, 512});
  mesh.triangles.push_back({0, 8, 7});  // on the diagonal
  steps_scene all(4, {mesh});
  EXPECT_EQ(all.facts_of_mesh(0).volume_voxels, volume);
  steps_scene nothing(4, {in_steps({{5, 5, 5}}, {{0, 0, 0}})});
  EXPECT_EQ(nothing.facts_of_mesh(0).volume_voxels, 0u);
  EXPECT_TRUE(solid_of(nothing, solid_op::combined).empty());
}

TEST(solids, reach_out_of_the_grid) {
  // The grid has 4^3 voxels of a box of 10 x 10 x 10 that sticks out on all sides.
  steps_scene all(4, {box_in_steps({-1000, -1000, -1000}, {3000, 3000, 3000}),
                      box_in_steps({-5000, 300, 300}, {-2000, 600, 600})});
  EXPECT_EQ(all.facts_of_mesh(0).volume_voxels, 64u);
  EXPECT_EQ(all.facts_of_mesh(0).voxels, 0u);
  EXPECT_EQ(all.facts_of_mesh(1).volume_voxels, 0u);
  // Up to 2^21 voxels away, but no further.
  const int most = 1 << 29;
  steps_scene far(4, {box_in_steps({-most, 0, 0}, {most - 64, 1024, 1024})});
  EXPECT_EQ(far.facts_of_mesh(0).volume_voxels, 64u);
  EXPECT_THROW(steps_scene(4, {box_in_steps({-most - 64, 0, 0}, {0, 1024, 1024})}), roost::invalid_argument);
  EXPECT_THROW(steps_scene(4, {box_in_steps({0, 0, 0}, {1024, 1024, most + 64})}), roost::invalid_argument);
  // A corner that no triangle has may lie anywhere.
  auto box = box_in_steps({0, 0, 0}, {1024, 1024, 1024});
  box.vertices.push_back({1e30f, 0, 0});
  EXPECT_EQ(steps_scene(4, {box}).facts_of_mesh(0).volume_voxels, 64u);
}

/// The voxels of a large grid that lie in a cube of it, as voxels of that cube.
std::vector<u32> restricted(const std::vector<u32>& words, std::array<u32, 3> low, u32 side) {
  std::vector<u32> result;
  for (const u32 w : words) {
    u32 at[3];
    bool in = true;
    for (int axis = 0; axis < 3; ++axis) {
      at[axis] = word::coordinate(w, axis) - low[static_cast<std::size_t>(axis)];
      in = in && at[axis] < side;
    }
    if (in) result.push_back(word::make(at[0], at[1], at[2], word::class_of(w)));
  }
  return result;
}

/// What is in a grid does not depend on what reaches out of it: a cube of a grid is as a grid of its own.
TEST(solids, of_clipped_meshes_are_those_of_larger_grids) {
  std::mt19937 random(11);
  const u32 large = 24;
  for (int i = 0; i < (sanitized ? 6 : 40); ++i) {
    const int multiple = std::array{1, 64, 128, 256}[random() % 4];
    std::vector<tools::mesh> meshes{some_solid(random, large, multiple), some_solid(random, large, multiple)};
    if (i % 4 == 3) meshes[0].triangles.pop_back();  // open
    const u32 side = 1 + random() % 12;
    // On every side of the large grid, and beyond it.
    std::array<u32, 3> low{};
    for (auto& at : low) at = random() % (large - side + 1);
    if (i % 5 == 0) low[random() % 3] = random() % 2 == 0 ? 0 : large - side;
    tools::affine moved;
    for (std::size_t k = 0; k < 3; ++k) moved.shift[k] = -256.0 * low[k];
    for (const auto rule : {inside_rule::nonzero, inside_rule::odd}) {
      steps_scene whole(large, meshes, rule), part(side, meshes, rule);
      for (std::size_t m = 0; m < 2; ++m) {
        part.place_mesh(m, side, moved);
        part.make_solid(m, rule);
        part.make_surface(m, i % 2 == 0);
        whole.make_surface(m, i % 2 == 0);
      }
      for (const auto op :
           {solid_op::combined, solid_op::intersection, solid_op::difference, solid_op::exclusive}) {
        whole.combine(op);
        part.combine(op);
        ASSERT_EQ(part.voxels32(voxel_set::solid), restricted(whole.voxels32(voxel_set::solid), low, side))
            << i;
      }
      ASSERT_EQ(part.voxels32(voxel_set::surfaces).size() > 0,
                restricted(whole.voxels32(voxel_set::surfaces), low, side).size() > 0);
      if (i % 2 != 0 || multiple == 1) {
        ASSERT_EQ(part.voxels32(voxel_set::surfaces),
                  restricted(whole.voxels32(voxel_set::surfaces), low, side))
            << i;
      }
      // As frames.
      frame_of_part(part, side, moved, rule, restricted(whole.voxels32(voxel_set::solid), low, side));
    }
    if (i % 4 == 3) continue;  // what three axes say of an open mesh depends on how many columns there are
    steps_scene whole(large, meshes, inside_rule::vote), part(side, meshes);
    for (std::size_t m = 0; m < 2; ++m) {
      part.place_mesh(m, side, moved);
      part.make_solid(m, inside_rule::vote);
    }
    whole.combine(solid_op::exclusive);
    part.combine(solid_op::exclusive);
    ASSERT_EQ(part.voxels32(voxel_set::solid), restricted(whole.voxels32(voxel_set::solid), low, side));
  }
}

/// Corners from near to as far as may be: a grid around a part of a far larger solid, against rays.
TEST(solids, of_far_corners_are_those_of_rays) {
  std::mt19937 random(12);
  const u32 grid = 8;
  std::size_t inside = 0;
  for (int i = 0; i < (sanitized ? 20 : 200); ++i) {
    const int far = 1 << (12 + random() % 18);
    std::uniform_int_distribution<int> at(-far, far);
    std::vector<std::array<int, 3>> corners(4);
    for (auto& c : corners) {
      for (auto& x : c) x = static_cast<int>(static_cast<float>(at(random)));
    }
    const auto mesh = in_steps(corners, {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {2, 0, 3}});
    steps_scene all(grid, {mesh});
    const auto words = all.voxels32(voxel_set::solid);
    inside += words.size();
    ASSERT_EQ(std::set<u32>(words.begin(), words.end()), solid_by_wide_rays(mesh, grid)) << i;
  }
  EXPECT_GT(inside, 0u);
}

TEST(solids, of_open_meshes_are_voted_for) {
  for (const char* name : {"sphere:60", "torus:60", "box"}) {
    auto mesh = *tools::make_shape(name);
    framed_scene whole(40, {mesh});
    const u64 volume = whole.facts_of_mesh(0).volume_voxels;
    whole.make_solid(0, inside_rule::vote);
    EXPECT_EQ(whole.facts_of_mesh(0).volume_voxels, volume) << name;
    EXPECT_EQ(whole.faults(0).open_edges, 0u);
    EXPECT_EQ(whole.faults(0).turned_edges, 0u);
    if (name[0] == 'b') continue;
    mesh.triangles.erase(mesh.triangles.begin() + 700, mesh.triangles.begin() + 712);
    framed_scene torn(40, {mesh});
    EXPECT_GT(torn.faults(0).open_edges, 3u);
    EXPECT_NE(torn.facts_of_mesh(0).volume_voxels, volume);
    torn.make_solid(0, inside_rule::vote);
    EXPECT_NEAR(static_cast<double>(torn.facts_of_mesh(0).volume_voxels), static_cast<double>(volume), 12);
  }
}

TEST(solids, of_faces_that_look_any_way_are_those_of_odd_crossings) {
  auto mesh = *tools::make_shape("sphere:40");
  framed_scene good(30, {mesh});
  const u64 volume = good.facts_of_mesh(0).volume_voxels;
  for (std::size_t i = 100; i < 140; ++i) std::swap(mesh.triangles[i][0], mesh.triangles[i][1]);
  framed_scene bad(30, {mesh});
  EXPECT_EQ(bad.faults(0).open_edges, 0u);
  EXPECT_GT(bad.faults(0).turned_edges, 40u);
  EXPECT_NE(bad.facts_of_mesh(0).volume_voxels, volume);
  bad.make_solid(0, inside_rule::odd);
  EXPECT_EQ(bad.facts_of_mesh(0).volume_voxels, volume);
}

TEST(solids, faults_are_counted_for_vertices_at_one_point) {
  // As STL files have them: three vertices for each triangle.
  tools::mesh loose;
  const auto torus = *tools::make_shape("torus:12");
  for (const auto& t : torus.triangles) {
    for (const u32 corner : t) {
      loose.vertices.push_back(torus.vertices[corner]);
      if (loose.vertices.back().x == 0) loose.vertices.back().x = -0.0f;
    }
    const auto n = static_cast<u32>(loose.vertices.size());
    loose.triangles.push_back({n - 3, n - 2, n - 1});
  }
  EXPECT_EQ(framed_scene(8, {loose}).faults(0).open_edges, 0u);
  loose.triangles.pop_back();
  EXPECT_EQ(framed_scene(8, {loose}).faults(0).open_edges, 3u);
}

/// The paper's method says what columns say, where the surfaces meet.
TEST(solids, are_what_the_fill_says) {
  const u32 grid = sanitized ? 24 : 48;
  const auto ball = *tools::make_shape("sphere:60"), ring = *tools::make_shape("torus:60");
  const auto moved = [](const tools::mesh& of, const char* how) {
    return tools::place_mesh(tools::bounds_of(of), tools::parse_placement(how), 1);
  };
  for (const char* how : {"move 0.3 0.1 0.05", "scale 0.8 move 0.1 0.2 0.1 rotate 1 2 3 40", "scale 0.9"}) {
    for (const auto& other : {ball, ring}) {
      framed_scene all(grid, {ball, other}, {{}, moved(other, how)});
      const auto facts = all.fill();
      EXPECT_EQ(facts.different, 0u) << how;
      EXPECT_EQ(facts.unknown == 0, facts.seeds != 0) << how;
      if (facts.seeds != 0) {
        EXPECT_GT(facts.classes.inside, 0u);
      }
    }
  }
  // It cannot tell what is inside where surfaces do not meet; columns can.
  framed_scene nested(grid, {ball, ball}, {{}, moved(ball, "scale 0.3")});
  const auto facts = nested.fill();
  EXPECT_EQ(facts.classes.all(), 0u);
  EXPECT_GT(facts.unknown, 0u);
  EXPECT_GT(nested.classes().inside, 0u);
  framed_scene twice(grid, {ball, ball});
  EXPECT_EQ(twice.fill().unknown, 0u);
  EXPECT_EQ(twice.fill().classes.inside, 0u);
}

TEST(solids, in_the_finest_grid_large) {
  if (sanitized) GTEST_SKIP() << "16 million columns, one like the other";
  const int end = 4096 * 256;
  steps_scene all(4096, {box_in_steps({end - 1000, end - 1500, end - 2000}, {end, end, end}),
                         box_in_steps({end - 3000, end - 700, end - 700}, {end, end - 100, end})});
  all.combine(solid_op::intersection);
  const auto words = all.voxels64(voxel_set::solid);
  EXPECT_EQ(words.size(), 4u * 3 * 3);
  for (int axis = 0; axis < 3; ++axis)
    EXPECT_EQ(tools::voxel_word<u64>::coordinate(words.back(), axis), 4095u);
  EXPECT_THROW(all.voxels32(voxel_set::solid), roost::invalid_argument);
  EXPECT_THROW(all.fill(), roost::invalid_argument);
}

#if defined(__CUDACC__)
TEST(solids, are_the_same_on_both_places) {
  const std::vector<tools::mesh> meshes = {*tools::make_shape("torus:50"), *tools::make_shape("sphere:40")};
  const auto made_on = [&](tools::scene&& all) {
    std::vector<std::vector<u64>> result;
    for (std::size_t i = 0; i < 2; ++i) all.set_mesh(i, meshes[i]);
    for (const auto rule : {inside_rule::nonzero, inside_rule::odd, inside_rule::vote}) {
      const auto turned = tools::place_mesh(tools::bounds_of(meshes[1]),
                                            tools::parse_placement("rotate 1 2 3 40 move 0.2 0.1 0"), 1);
      const auto cube = frame_of(60, meshes, {{}, turned});
      const auto counted =
          all.make_frame({60, {to_snapped(cube, {}), to_snapped(cube, turned)}, solid_op::difference, rule});
      const auto filled = all.fill();
      result.push_back({counted.exposed, counted.classes.outside, counted.classes.inside,
                        counted.classes.both, filled.classes.outside, filled.classes.inside,
                        filled.classes.both, filled.seeds, all.volume()});
      for (const auto which : {voxel_set::exposed, voxel_set::surfaces, voxel_set::solid})
        result.push_back(all.voxels64(which));
    }
    return result;
  };
  EXPECT_EQ(made_on(tools::scene_on<place_type>(test_place())),
            made_on(tools::scene_on<roost::host>(roost::host(2))));
}
#endif

TEST(solids, refuse_grids_that_cannot_be) {
  steps_scene all(4, {box_in_steps({0, 0, 0}, {300, 300, 300})});
  EXPECT_THROW(all.place_mesh(0, 0, {}), roost::invalid_argument);
  EXPECT_THROW(all.place_mesh(0, 4097, {}), roost::invalid_argument);
  EXPECT_THROW(all.place_mesh(1, 4, {}), roost::invalid_argument);
  EXPECT_THROW(all.make_frame({0, {{}}}), roost::invalid_argument);
  EXPECT_THROW(all.make_frame({4097, {{}}}), roost::invalid_argument);
  EXPECT_THROW(all.classes(), roost::invalid_argument);
  EXPECT_GT(all.expect_room(16), 0u);
}

}  // namespace
}  // namespace test
