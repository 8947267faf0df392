#include <roost/sorted_map.hpp>

#include "support/kinds.hpp"

// Keys of every kind, and values that must lie at multiples of 32 or 64 bytes, in every table.

namespace test {
namespace {

template <class Key>
class table_kinds : public testing::Test {};
TYPED_TEST_SUITE(table_kinds, every_kind<day_axis>);

template <class Layout, class Key, class Value>
void check_frozen(const some_keys<Key>& keys, const memory_of<Key>& there) {
  const roost::frozen_map<Key, Value, place_type, Layout> map(
      test_place(), there, upload_kinds<Value>(multiples(keys.all.size(), 1)));
  const numbers first(keys.first.begin(), keys.first.end());
  check_map<decltype(map), Key, Value>(map, keys, first);
  check_pairs<Key, Value>(map, keys, first);
}

TYPED_TEST(table_kinds, of_frozen_tables) {
  using key = TypeParam;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    const auto there = upload_kinds<key>(keys.all);
    check_frozen<roost::default_layout<key, u32>, key, u32>(keys, there);
    check_frozen<roost::bucketed, key, aligned_64>(keys, there);
    const roost::frozen_set set(place, there);
    EXPECT_EQ(set.count_found(place, there), n);
    EXPECT_EQ(set.size(), keys.distinct.size());
    EXPECT_TRUE(set.valid(place));
    if constexpr (std::is_integral_v<key> && sizeof(key) <= 8) {
      const roost::sorted_map sorted(place, there, upload_kinds<aligned_32>(multiples(n, 1)));
      check_map<decltype(sorted), key, aligned_32>(sorted, keys,
                                                   numbers(keys.first.begin(), keys.first.end()));
    }
  }
}

TYPED_TEST(table_kinds, of_a_multimap) {
  using key = TypeParam;
  using value = aligned_32;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    const auto there = upload_kinds<key>(keys.all);
    const roost::frozen_multimap map(place, there, upload_kinds<value>(multiples(n, 1)));
    memory_of<value> values(place, keys.distinct.size());
    memory_of<u64> counts(place, keys.distinct.size());
    const auto queries = upload_kinds<key>(keys.distinct);
    map.find_first(place, queries, values, value{});
    map.count(place, queries, counts);
    EXPECT_EQ(download_numbers(values), numbers(keys.first.begin(), keys.first.end()));
    EXPECT_EQ(download(counts), keys.counts);
    const auto all = download_numbers(map.retrieve(place, queries).values);
    EXPECT_EQ(all.size(), n);
    EXPECT_EQ(std::set<u64>(all.begin(), all.end()).size(), n);
    EXPECT_TRUE(map.valid(place));
  }
}

TYPED_TEST(table_kinds, of_concurrent_tables) {
  using key = TypeParam;
  if constexpr (sizeof(key) <= 8) {
    for (const std::size_t n : sizes_of_kinds()) {
      const some_keys<key> keys(n);
      const auto there = upload_kinds<key>(keys.all);
      check_concurrent<roost::concurrent_map<key, key, place_type>, key, key>(keys, there);
      check_concurrent<roost::concurrent_map<key, aligned_64, place_type>, key, aligned_64>(keys, there);
      roost::concurrent_set<key, place_type> set(test_place());
      EXPECT_EQ(set.insert(test_place(), there).inserted, keys.distinct.size());
      EXPECT_EQ(set.count_found(test_place(), there), n);
      EXPECT_TRUE(set.valid(test_place()));
    }
  }
}

TYPED_TEST(table_kinds, of_a_partition) {
  using key = TypeParam;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    const auto there = upload_kinds<key>(keys.all);
    const auto parts = roost::partition(place, there, upload_kinds<aligned_32>(multiples(n, 1)),
                                        {.regions = 37, .way_back = true});
    const auto regions = download(parts);
    std::size_t wrong = 0;
    for (const auto& item : regions.items)
      wrong += number_from(item.key) != keys.all[number_from(item.value)];
    EXPECT_EQ(wrong, 0u) << n << " items";
    memory_of<roost::pair<key, aligned_32>> back(place, n);
    parts.restore(place, std::span(parts.items(), parts.extent()), back);
    wrong = 0;
    for (u64 i = 0; const auto& item : download(back)) wrong += number_from(item.value) != i++;
    EXPECT_EQ(wrong, 0u) << n << " items";
  }
}

}  // namespace
}  // namespace test
