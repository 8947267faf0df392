#ifndef __CUDACC__  // placements are work of the host

#include "apps/solids/placement.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "apps/solids/grid_choice.hpp"
#include "apps/solids/shapes.hpp"
#include "roost/error.hpp"

// Words that say how a mesh lies, and the frame of a grid.

namespace test {
namespace {

namespace tools = roost::tools;
using tools::vec3;

void expect_near(const vec3& a, const vec3& b) {
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

tools::bounds box_of(vec3 low, vec3 high) {
  tools::bounds result;
  result.add(low);
  result.add(high);
  return result;
}

TEST(placement, turns_and_scales_about_the_centre_and_moves_in_units) {
  const auto box = box_of({0, 0, 0}, {2, 4, 6});
  const auto put = [&](const char* how, const vec3& p) {
    return tools::place_mesh(box, tools::parse_placement(how), 10)(p);
  };
  EXPECT_EQ(put("", {1, 1, 1}), (vec3{1, 1, 1}));
  EXPECT_EQ(put("move 0.5 0 -1", {1, 1, 1}), (vec3{6, 1, -9}));
  EXPECT_EQ(put("scale 2", {2, 4, 6}), (vec3{3, 6, 9}));
  EXPECT_EQ(put("rotate 0 0 1 90", {2, 2, 3}), (vec3{1, 3, 3}));
  EXPECT_EQ(put("rotate 0 0 7 -270 move 1 0 0", {2, 2, 3}), (vec3{11, 3, 3}));
  expect_near(put("rotate 1 1 1 120", {2, 2, 3}), {1, 3, 3});
  expect_near(put("rotate 1 2 3 33 rotate 1 2 3 -33", {2, 0, 1}), {2, 0, 1});
  // From left to right: a quarter about z, then one about x.
  expect_near(put("rotate 0 0 1 90 rotate 1 0 0 90", {2, 2, 3}), {1, 2, 4});
}

TEST(placement, brings_a_mesh_onto_another) {
  const auto from = box_of({0, 0, 0}, {1, 2, 1}), onto = box_of({10, 10, 10}, {18, 14, 14});
  const auto where = tools::place_mesh(from, tools::parse_placement("move 0.25 0 0"), 8, &onto);
  expect_near(where({0.5, 1, 0.5}), {16, 12, 12});
  expect_near(where({0.5, 2, 0.5}), {16, 16, 12});
  const auto point = box_of({1, 1, 1}, {1, 1, 1});
  expect_near(tools::place_mesh(point, {}, 1, &onto)({1, 1, 1}), {14, 12, 12});
}

TEST(placement, says_what_is_wrong_with_words) {
  for (const char* bad : {"turn 1", "rotate 0 0 1", "rotate 0 0 0 30", "move 1 2", "move 1 2 x", "scale",
                          "scale 0", "scale nan", "move 1 2 1e400", "scale 2 3", "scale 1e200 scale 1e200"}) {
    try {
      static_cast<void>(tools::parse_placement(bad));
      ADD_FAILURE() << bad << " was taken";
    } catch (const roost::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find(bad), std::string::npos) << e.what();
    }
  }
}

TEST(placement, a_frame_is_filled_by_the_longest_side) {
  const auto frame = tools::frame_around(box_of({0, 0, 0}, {1, 4, 2}), 32);
  const auto snap = tools::to_snapped(frame, {});
  expect_near(snap({0, 0, 0}), {256 * 12, 0, 256 * 8});
  expect_near(snap({1, 4, 2}), {256 * 20, 256 * 32, 256 * 24});
  EXPECT_EQ(tools::frame_around(box_of({3, 3, 3}, {3, 3, 3}), 8).length, 1);
}

TEST(placement, a_grid_encloses_what_the_result_can_need) {
  using tools::solid_op;
  const auto a = box_of({0, 0, 0}, {4, 4, 4}), near = box_of({2, 1, 1}, {6, 2, 2}),
             far = box_of({90, 0, 0}, {91, 1, 1}), beside = box_of({4.1, 0, 0}, {5, 1, 1});
  const auto length = [](solid_op op, std::vector<tools::bounds> boxes, std::uint32_t side = 16) {
    return tools::frame_of_result(op, boxes, side).length;
  };
  for (const auto op : {solid_op::combined, solid_op::exclusive}) {
    EXPECT_EQ(length(op, {a, near}), 6);
    EXPECT_EQ(length(op, {a, far}), 91);
  }
  EXPECT_EQ(length(solid_op::difference, {a, far}), 4);
  EXPECT_EQ(length(solid_op::difference, {far, a}), 1);
  EXPECT_EQ(length(solid_op::difference, {a, box_of({1, 1, 1}, {2, 2, 2})}), 4);
  EXPECT_EQ(length(solid_op::difference, {a, near}), 4 * 16 / 14.0);
  EXPECT_EQ(length(solid_op::difference, {a, beside}), 4 * 16 / 14.0);  // less than a voxel away
  EXPECT_EQ(length(solid_op::difference, {a, near}, 3), 6);             // no room for a layer
  EXPECT_EQ(length(solid_op::intersection, {a, near}), 2 * 16 / 14.0);
  EXPECT_EQ(length(solid_op::intersection, {a, a}), 4);
  // The grid of all is finer than one with a layer.
  EXPECT_EQ(length(solid_op::intersection, {a, box_of({1, 0, 0}, {2, 4, 2})}), 4);
  EXPECT_EQ(length(solid_op::intersection, {a, far}), 4);
  EXPECT_EQ(tools::frame_of_result(solid_op::intersection, std::vector{a, near}, 16).centre,
            (vec3{3, 1.5, 1.5}));
  // As far as corners may lie, and further: the grid grows.
  const double most = 4 * ((1 << 29) / (256.0 * 4096) - 0.5);
  EXPECT_EQ(
      length(solid_op::difference, {a, box_of({2 + 0.99 * most, 0, 0}, {2 + 0.999 * most, 1, 1})}, 4096), 4);
  const auto grown =
      length(solid_op::difference, {a, box_of({2 + 2 * most, 0, 0}, {2 + 3 * most, 1, 1})}, 4096);
  EXPECT_NEAR(grown, 12, 1e-4);
  EXPECT_GT(grown, 12);
}

TEST(placement, shapes_are_closed_and_one_wide) {
  for (const char* name : {"sphere", "sphere:3", "sphere:100", "torus", "torus:3", "box"}) {
    const auto shape = tools::make_shape(name);
    ASSERT_TRUE(shape) << name;
    const auto box = tools::bounds_of(*shape);
    EXPECT_LE(box.longest_side(), 1);
    EXPECT_GE(box.longest_side(), 0.8);
    double volume = 0;  // positive: it looks outwards
    for (const auto& [i, j, k] : shape->triangles) {
      const auto &a = shape->vertices[i], &b = shape->vertices[j], &c = shape->vertices[k];
      volume += a.x * (b.y * c.z - b.z * c.y) + a.y * (b.z * c.x - b.x * c.z) + a.z * (b.x * c.y - b.y * c.x);
    }
    EXPECT_GT(volume, 0.05) << name;
  }
  EXPECT_FALSE(tools::make_shape("bunny.obj"));
  for (const char* bad : {"sphere:2", "torus:x", "box:3", "sphere:", "sphere:5000"})
    EXPECT_THROW(static_cast<void>(tools::make_shape(bad)), roost::invalid_argument) << bad;
}

}  // namespace
}  // namespace test

#endif
