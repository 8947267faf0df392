#include "papers/document_table.hpp"

#include <roost/sparse/kernel_map.hpp>
#include <set>

#include "support/voxels.hpp"

// What the document's table of voxels does that it should not, and that coordinate_index does not.

namespace test {
namespace {

using roost::coordinate;
using roost::bench::document_box;
using roost::bench::document_table_ref;

constexpr u32 no_row = roost::no_row<u32>;

/// The document's table in memory of the host, as its two functions find it.
struct document_memory : roost::bench::document_slots<roost::host> {
  explicit document_memory(std::size_t slots) : document_slots(roost::host(1), slots) {}
};

/// Rows of voxels, asked for one by one.
template <int D>
std::vector<u32> rows_of(const index_of<D>& index, const voxels<D>& queries) {
  memory_of<u32> rows(test_place(), queries.size());
  index.find(test_place(), upload(queries), rows);
  return download(rows);
}

TEST(document_table, ends_only_as_loops_are_counted_where_it_is_full) {
  document_memory memory(8);
  for (u64 key = 0; key < 8; ++key) EXPECT_TRUE(memory.ref().insert(key, 1));
  EXPECT_FALSE(memory.ref().insert(8, 1));  // after a round; the document goes round for ever
  EXPECT_EQ(memory.ref().find(8), no_row);  // and here, too
  // Ours is never full: what does not fit its room is said, and other calls go on.
  index_of<3> index(test_place(), {.capacity = 5000});
  voxels<3> apart;
  for (i32 i = 0; i < 5000; ++i) apart.push_back({0, {1000 * i, 0, 0}});
  index.rebuild_async(test_place(), upload(apart));
  expect_error<roost::build_error>([&] { index.finish(test_place()); }, {"capacity of 5000"});
  EXPECT_EQ(rows_of(index, {apart[5]}), std::vector{no_row});
  const index_of<3> grows(test_place(), upload(apart));
  EXPECT_EQ(grows.size(), 5000u);
  EXPECT_TRUE(grows.valid(test_place()));
}

TEST(document_table, leaves_the_row_of_a_copy_to_who_comes_last) {
  // The document stores a value after it has claimed the key, so the last of two copies wins, whichever that
  // is. Ours: the first in the input, and copies are counted.
  document_memory memory(8);
  for (const u32 row : {1, 0, 2}) memory.ref().insert(5, row, true);
  EXPECT_EQ(memory.ref().find(5), 2u);
  voxels<3> input = random_voxels<3>(3000, 1, 6);
  const row_oracle<3> oracle(input);
  const index_of<3> index(test_place(), upload(input), {.order = roost::order::input});
  EXPECT_EQ(download(index.rows_of_input()), oracle.rows_of_input);
  EXPECT_EQ(index.duplicates(), input.size() - oracle.coordinates.size());
}

TEST(document_table, has_a_key_and_a_value_that_it_cannot_hold) {
  document_memory memory(8);
  const u64 reserved = document_table_ref::empty;
  memory.ref().insert(reserved, 3);
  EXPECT_EQ(memory.ref().find(reserved), no_row);  // inserted, and not there
  memory.ref().insert(5, no_row);
  EXPECT_EQ(memory.ref().find(5), memory.ref().find(6));  // there, and not there
  // Ours: all bits of a coordinate may be set, and a row is below 2^32 - 1.
  const i32 lowest = std::numeric_limits<i32>::min(), highest = std::numeric_limits<i32>::max();
  for (const i32 end : {-1, lowest, highest}) {
    const voxels<3> all{{end, {end, end, end}}};
    const index_of<3> index(test_place(), upload(all));
    EXPECT_EQ(rows_of(index, {all[0], {0, {0, 0, 0}}}), (std::vector{0u, no_row}));
  }
}

TEST(document_table, takes_the_next_row_for_a_neighbour_beyond_the_border) {
  const voxels<2> input{{0, {0, 3}}, {0, {1, 0}}};
  const document_box<2> box({{0, {0, 0}}, {0, {1, 3}}});
  document_memory memory(4);
  for (u32 i = 0; i < 2; ++i) {
    u64 key = 0;
    ASSERT_TRUE(box.number(input[i], key));
    memory.ref().insert(key, i);
  }
  u64 beyond = 0;
  const bool inside = box.number({0, {0, 4}}, beyond);  // right of the first voxel
  EXPECT_FALSE(inside);
  EXPECT_EQ(memory.ref().find(beyond), 1u);  // which the document does not ask: the second voxel
  const index_of<2> index(test_place(), upload(input));
  EXPECT_EQ(rows_of(index, {{0, {0, 4}}}), std::vector{no_row});
  const auto map = roost::submanifold(test_place(), index);
  const auto masks = download(map.masks());
  EXPECT_EQ(masks, (std::vector<u32>{1 << 4, 1 << 4}));  // each has only itself
}

TEST(document_table, takes_two_voxels_of_a_wide_box_for_one) {
  constexpr i32 far = 1 << 20, last = (1 << 22) - 1;
  const voxels<3> input{{0, {0, 0, 0}}, {0, {far, 0, 0}}, {0, {last, last, last}}};
  const document_box<3> box({{0, {0, 0, 0}}, {0, {last, last, last}}});  // 2^66 voxels
  u64 first = 1, second = 2;
  EXPECT_TRUE(box.number(input[0], first) && box.number(input[1], second));
  EXPECT_EQ(first, second);
  const index_of<3> index(test_place(), upload(input));
  EXPECT_EQ(index.size(), 3u);
  const auto rows = rows_of(index, input);
  EXPECT_EQ(std::set<u32>(rows.begin(), rows.end()), (std::set<u32>{0, 1, 2}));
  // Beyond its own limit it says so.
  const i32 lowest = std::numeric_limits<i32>::min(), highest = std::numeric_limits<i32>::max();
  const voxels<3> everywhere{{lowest, {lowest, lowest, lowest}}, {highest, {highest, highest, highest}}};
  expect_error<roost::invalid_argument>([&] { index_of<3>(test_place(), upload(everywhere)); },
                                        {"coordinate_index"});
}

}  // namespace
}  // namespace test
