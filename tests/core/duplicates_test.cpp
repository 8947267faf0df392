#include "support/tables.hpp"

// Copies of keys in a build: the first pair in the input wins, on every run, and copies are counted.

namespace test {
namespace {

template <class Table>
class duplicates : public testing::Test {};
using tables = table_axis<bucketed_map<u32, u32>, bucketed_map<u64, u64>, bucketed_map<sixteen, u32>,
                          bucketed_set<u32>, cuckoo_map<u32, u32>, cuckoo_map<u64, u64>, cuckoo_set<u32>,
                          compact_map<u32, u32>, compact_map<u64, u64>, compact_set<u32>>;
TYPED_TEST_SUITE(duplicates, tables);

TYPED_TEST(duplicates, of_one_key) {
  for (const std::size_t n : {2, 3, 4, 5, 9, 511, 512, 513, 600, 5000}) {
    const auto facts = check<TypeParam>(numbers(n, 42));
    EXPECT_EQ(facts.size, 1u);
    EXPECT_EQ(facts.duplicates, n - 1);
  }
}

TYPED_TEST(duplicates, of_one_key_large) {
  const std::size_t n = sanitized ? 20000 : 300000;
  const auto facts = check<TypeParam>(numbers(n, 0xffffffff));
  EXPECT_EQ(facts.size, 1u);
  EXPECT_EQ(facts.duplicates, n - 1);
}

TYPED_TEST(duplicates, of_all_keys) {
  numbers keys = random_numbers(5000, 1);
  const std::size_t different = keys.size();
  keys.insert(keys.end(), keys.begin(), keys.begin() + different);
  keys.insert(keys.end(), keys.begin(), keys.begin() + different);
  check<TypeParam>(keys);
  check<TypeParam>(shuffled(keys, 1));
}

TYPED_TEST(duplicates, of_few_keys_among_many) {
  const std::size_t n = sanitized ? 6000 : 30000;
  numbers keys = different_numbers(n, 2);
  keys.push_back(keys[0]);  // the last is the first
  check<TypeParam>(keys);
  for (std::size_t i = 100; i < 110; ++i) keys[i] = keys[n - 1000 + i];
  check<TypeParam>(keys);
}

TYPED_TEST(duplicates, of_any_multiplicity) {
  numbers keys;
  for (std::uint64_t k = 0; k < (sanitized ? 60 : 300); ++k)
    keys.insert(keys.end(), k * k % 200 + (k % 7 == 0 ? 2000 : 0), k * 1000003);
  check<TypeParam>(keys);
  check<TypeParam>(shuffled(keys, 3));
}

TYPED_TEST(duplicates, next_to_full_regions) {
  typename TypeParam::options options;
  options.load_factor = std::is_same_v<typename TypeParam::layout, roost::cuckoo> ? 512.0 / 576.0 : 1.0;
  numbers keys = different_numbers(10000, 4);
  for (std::size_t i = 0; i < 2000; ++i) keys.push_back(keys[i * 3]);
  check<TypeParam>(shuffled(keys, 5), options);
}

TYPED_TEST(duplicates, win_the_same_on_every_run) {
  const auto keys =
      from_numbers<typename TypeParam::key_type>(random_numbers(sanitized ? 10000 : 40000, 6, 5000));
  const auto values = numbered_values<typename TypeParam::mapped_type>(keys.size());
  const TypeParam first(keys, values);
  const auto results = first.find(keys, values[0]);
  for (int run = 0; run < 3; ++run) {
    const TypeParam again(keys, values);
    EXPECT_EQ(again.find(keys, values[0]), results);
    EXPECT_EQ(again.statistics().duplicates, first.statistics().duplicates);
    EXPECT_TRUE(again.valid());
  }
}

}  // namespace
}  // namespace test
