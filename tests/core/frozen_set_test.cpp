#include "support/tables_bodies.hpp"

// What only sets have; the rest is tested with the maps.

namespace test {

TEST_SETS(TEST_DEFINE)

namespace {

struct seventh {
  ROOST_FN u32 operator()(std::size_t i) const { return static_cast<u32>(i / 7); }
};

TEST(frozen_set, takes_duplicates_out) {
  roost::frozen_set set(test_place(), roost::computed(70000, seventh{}), {.load_factor = 0.9});
  static_assert(std::is_same_v<decltype(set), roost::frozen_set<u32, place_type, roost::compact>>);
  EXPECT_EQ(set.size(), 10000u);
  EXPECT_EQ(set.statistics().duplicates, 60000u);
  memory_of<u32> keys(test_place(), set.size());
  EXPECT_EQ(set.retrieve_all(test_place(), keys), 10000u);
  auto result = download(keys);
  std::sort(result.begin(), result.end());
  for (u32 i = 0; i < 10000; ++i) ASSERT_EQ(result[i], i);
  EXPECT_TRUE(set.valid(test_place()));
}

TEST(frozen_set, has_no_room_for_values) {
  const auto keys = from_numbers<u64>(different_numbers(20000, 1));
  const bucketed_set<u64> set(keys, std::vector<roost::none>(keys.size()));
  const bucketed_map<u64, u64> map(keys, numbered_values<u64>(keys.size()));
  EXPECT_NEAR(static_cast<double>(set.bytes()) / static_cast<double>(map.bytes()), 0.5, 0.05);
  EXPECT_EQ(sizeof(roost::bucketed::bucket_of<32, u32, roost::none>), 32u) << "a sector";
  EXPECT_EQ(sizeof(roost::bucketed::bucket_of<32, u32, u32>), 32u) << "a sector";
  EXPECT_EQ(sizeof(roost::bucketed::bucket_of<64, u32, u32>), 64u) << "a line";
  EXPECT_EQ(sizeof(roost::pair<u32, roost::none>), 4u);
  EXPECT_TRUE(set.valid());
}

}  // namespace
}  // namespace test
