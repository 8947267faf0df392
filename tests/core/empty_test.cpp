#include <gtest/gtest.h>

#include <roost/sorted_map.hpp>
#include <utility>

#include "support/place.hpp"

// Tables without memory: made without a place, or moved from.

namespace test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// What a user has who builds it later.
struct scene {
  roost::frozen_map<u32, u32, place_type> colors;
  roost::frozen_set<u32, place_type> seen;
  roost::frozen_multimap<u32, u64, place_type> neighbours;
  roost::two_way_index<u32, place_type> index;
  roost::sorted_map<u32, u32, place_type> ranks;
};

const std::vector<u32> keys{7, 8, 9, 7}, queries{7, 1, ~0u};

template <class T, class Map>
std::vector<T> found_in(const Map& map, T missing) {
  memory_of<T> results(test_place(), queries.size());
  map.find(test_place(), upload(queries), results, missing);
  return download(results);
}
template <class Map>
std::vector<char> contained_in(const Map& map) {
  memory_of<bool> results(test_place(), queries.size());
  map.contains(test_place(), upload(queries), results);
  return roost::copy_to_host(test_place(), results);
}

template <class Map>
void expect_empty(const Map& map) {
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.size(test_place()), 0u);
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.load_factor(), 0.0);
  EXPECT_EQ(map.count_found(test_place(), upload(queries)), 0u);
  EXPECT_EQ(contained_in(map), std::vector<char>(3, 0));
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(empty, tables_find_nothing) {
  const scene none;
  expect_empty(none.colors);
  expect_empty(none.seen);
  expect_empty(none.neighbours);
  expect_empty(none.index);
  expect_empty(none.ranks);
  EXPECT_EQ(found_in(none.colors, 5u), std::vector<u32>(3, 5));
  EXPECT_EQ(found_in(none.index, 6u), std::vector<u32>(3, 6));
  memory_of<u32> values(test_place(), 3);
  memory_of<bool> there(test_place(), 3);
  none.colors.find(test_place(), upload(queries), values, there);
  EXPECT_EQ(roost::copy_to_host(test_place(), there), std::vector<char>(3, 0));
  EXPECT_EQ(none.colors.retrieve_all(test_place(), values, values), 0u);
  EXPECT_EQ(none.colors.mean_probes(test_place()), 0.0);
  EXPECT_EQ(none.neighbours.count_matches(test_place(), upload(queries)), 0u);
  EXPECT_EQ(none.neighbours.match(test_place(), upload(queries)).size(), 0u);
  EXPECT_EQ(none.neighbours.match_outer(test_place(), upload(queries), 1).size(), 3u);
  EXPECT_THROW(none.colors.find(test_place(), upload(queries), memory_of<u32>(test_place(), 2), 0),
               roost::invalid_argument);
}

TEST(empty, refs_say_what_to_do) {
  const scene none;
  try {
    static_cast<void>(none.colors.ref());
    FAIL() << "a ref of nothing";
  } catch (const roost::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("call rebuild"), std::string::npos) << e.what();
  }
  EXPECT_THROW(static_cast<void>(none.seen.ref()), roost::invalid_argument);
  EXPECT_THROW(static_cast<void>(none.neighbours.ref()), roost::invalid_argument);
  EXPECT_THROW(static_cast<void>(none.index.ref()), roost::invalid_argument);
}

TEST(empty, tables_can_be_built) {
  scene some;
  EXPECT_THROW(some.colors.rebuild_async(test_place(), upload(keys), upload(keys)), roost::invalid_argument);
  some.colors.finish(test_place());
  some.colors.rebuild(test_place(), upload(keys), upload(std::vector<u32>{1, 2, 3, 4}));
  some.seen.rebuild(test_place(), upload(keys));
  some.neighbours.rebuild(test_place(), upload(keys), upload(std::vector<u64>{1, 2, 3, 4}));
  some.ranks.rebuild(test_place(), upload(keys), upload(keys));
  EXPECT_EQ(download(some.index.add(test_place(), upload(keys))), (std::vector<u32>{0, 1, 2, 0}));
  EXPECT_EQ(found_in(some.colors, 5u), (std::vector<u32>{1, 5, 5}));
  EXPECT_EQ(found_in(some.index, 6u), (std::vector<u32>{0, 6, 6}));
  EXPECT_EQ(contained_in(some.seen), (std::vector<char>{1, 0, 0}));
  EXPECT_EQ(some.neighbours.count_matches(test_place(), upload(queries)), 2u);
  EXPECT_GT(some.colors.load_factor(), 0.0);
  EXPECT_GT(some.neighbours.load_factor(test_place()), 0.0);

  // What was moved from is as if it had never been built, and can be built again.
  const scene taken = std::move(some);
  EXPECT_EQ(found_in(taken.colors, 5u), (std::vector<u32>{1, 5, 5}));
  expect_empty(some.colors);
  expect_empty(some.seen);
  some.colors.rebuild(test_place(), upload(queries), upload(queries));
  EXPECT_EQ(found_in(some.colors, 5u), queries);
}

TEST(empty, options_are_kept) {
  roost::frozen_map<u32, u32, place_type, roost::bucketed> map({.load_factor = 0.5});
  std::vector<u32> many(100000);
  for (u32 i = 0; i < many.size(); ++i) many[i] = i;
  map.rebuild(test_place(), upload(many), upload(many));
  EXPECT_LT(map.load_factor(), 0.51);
}

}  // namespace
}  // namespace test
