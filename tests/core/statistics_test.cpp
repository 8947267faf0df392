#include "support/tables.hpp"

// What a table says about itself.

namespace test {
namespace {

template <class Table>
class statistics : public testing::Test {};
using tables =
    table_axis<bucketed_map<u32, u32>, bucketed_map<u64, u64>, bucketed_set<u32>, cuckoo_map<u32, u32>,
               cuckoo_set<u32>, compact_map<u32, u32>, compact_map<u64, u64>, compact_set<u32>>;
TYPED_TEST_SUITE(statistics, tables);

TYPED_TEST(statistics, agree_with_the_table) {
  const std::size_t n = 50000;
  auto key_numbers = different_numbers(n, 1);
  key_numbers.insert(key_numbers.end(), key_numbers.begin(), key_numbers.begin() + 1234);
  const auto keys = from_numbers<typename TypeParam::key_type>(key_numbers);
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    const TypeParam table(keys, numbered_values<typename TypeParam::mapped_type>(keys.size()), {}, place);
    const auto& facts = table.statistics();
    EXPECT_EQ(facts.size, n);
    EXPECT_EQ(facts.duplicates, 1234u);
    EXPECT_EQ(table.size(), facts.size);
    EXPECT_EQ(table.capacity(), facts.capacity);
    EXPECT_EQ(table.bytes(), facts.bytes);
    EXPECT_EQ(table.load_factor(), facts.load_factor);
    if constexpr (std::is_same_v<typename TypeParam::layout, roost::compact>) {
      constexpr std::size_t pair_bytes =
          sizeof(keys[0]) + (TypeParam::has_values ? sizeof(typename TypeParam::mapped_type) : 0);
      EXPECT_NEAR(facts.load_factor, static_cast<double>(n * pair_bytes) / static_cast<double>(facts.bytes),
                  1e-3);
    } else {
      EXPECT_EQ(facts.load_factor, static_cast<double>(n) / static_cast<double>(facts.capacity));
    }
    EXPECT_GE(facts.regions, 2u);
    EXPECT_EQ(facts.capacity % facts.regions, 0u);
    EXPECT_EQ(memory.live_bytes(), facts.bytes) << "what the table says that it holds";
    // A host builds small tables of layout compact without a partition.
    const bool unparted = on_host && std::is_same_v<typename TypeParam::layout, roost::compact>;
    EXPECT_GE(facts.scratch_bytes, unparted ? 1 : keys.size() * sizeof(keys[0]));
    EXPECT_LE(facts.scratch_bytes, memory.most_bytes());
    EXPECT_GE(table.mean_probes(), 1.0);
    EXPECT_LE(table.mean_probes(), table.most_probes(keys));
    EXPECT_TRUE(table.valid());
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TYPED_TEST(statistics, of_nothing) {
  const TypeParam table({}, {});
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.load_factor(), 0.0);
  EXPECT_EQ(table.mean_probes(), 0.0);
  EXPECT_EQ(table.statistics().duplicates, 0u);
  EXPECT_TRUE(table.valid());
}

TYPED_TEST(statistics, load_factor_is_near_what_was_asked_for) {
  const std::size_t n = 200000;
  const auto keys = from_numbers<typename TypeParam::key_type>(different_numbers(n, 2));
  for (const double load_factor : {0.2, 0.5, 0.7}) {
    typename TypeParam::options options;
    options.load_factor = load_factor;
    const TypeParam table(keys, numbered_values<typename TypeParam::mapped_type>(n), options);
    EXPECT_LE(table.load_factor(), load_factor + 1e-9);
    EXPECT_GT(table.load_factor(), load_factor * 0.95);
    EXPECT_TRUE(table.valid());
  }
}

TEST(statistics_bucketed, most_finds_read_one_bucket_large) {
  const std::size_t n = 400000;
  const auto keys = from_numbers<u32>(different_numbers(n, 3));
  double before = 1;
  for (const double load_factor : {0.3, 0.5, 0.8, 0.95}) {
    const bucketed_map<u32, u32> map(keys, numbered_values<u32>(n), {.load_factor = load_factor});
    const double probes = map.mean_probes();
    EXPECT_GT(probes, before) << "fuller tables read more";
    before = probes;
    if (load_factor == 0.5) {
      EXPECT_LT(probes, 1.15);
    } else if (load_factor == 0.8) {
      EXPECT_LT(probes, 1.6);
    }
    EXPECT_TRUE(map.valid());
  }
}

}  // namespace
}  // namespace test
