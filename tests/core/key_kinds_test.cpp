#include "support/kinds.hpp"

#include <roost/block_map.hpp>
#include <roost/sorted_map.hpp>

// Keys of every kind, and values that must lie at multiples of 32 or 64 bytes, in every function and table.

namespace test {
namespace {

template <class Key>
class key_kinds : public testing::Test {};
TYPED_TEST_SUITE(key_kinds, every_kind<kind_axis>);

/// The last value in input order.
struct later {
  template <class T>
  ROOST_FN T operator()(const T&, const T& value) const {
    return value;
  }
};

TYPED_TEST(key_kinds, of_unique) {
  using key = TypeParam;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    const auto there = upload_kinds<key>(keys.all);
    EXPECT_EQ(download_numbers(roost::unique(place, there)), keys.distinct);
    EXPECT_EQ(roost::unique_count(place, there), keys.distinct.size());
    const auto all = roost::unique_all(place, there, {.first = true, .inverse = true, .counts = true});
    EXPECT_EQ(download_numbers(all.keys), keys.distinct);
    EXPECT_EQ(download(all.first), keys.first);
    EXPECT_EQ(download(all.inverse), keys.inverse);
    EXPECT_EQ(download(all.counts), keys.counts);
    EXPECT_EQ(download(roost::unique_inverse(place, there).inverse), keys.inverse);
    EXPECT_EQ(download(roost::unique_counts(place, there).counts), keys.counts);
    if constexpr (std::is_integral_v<key> && sizeof(key) <= 8) {
      auto ascending = kinds_from<key>(keys.distinct);
      std::sort(ascending.begin(), ascending.end());
      EXPECT_TRUE(download(roost::unique(place, there, roost::index_order::by_key)) == ascending);
    }
  }
}

TYPED_TEST(key_kinds, of_a_two_way_index) {
  using key = TypeParam;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    roost::two_way_index index(place, upload_kinds<key>(keys.all));
    EXPECT_EQ(download_numbers(index.keys()), keys.distinct);
    EXPECT_EQ(download(index.indices()), keys.inverse);
    EXPECT_EQ(download(index.counts()), keys.counts);
    const auto queries = keys.queries();
    memory_of<u32> found(place, queries.size());
    index.find(place, upload_kinds<key>(queries), found);
    EXPECT_EQ(download(found), keys.find(queries));
    EXPECT_EQ(download(index.add(place, upload_kinds<key>(keys.all))), keys.inverse);
    EXPECT_TRUE(index.valid(place));
  }
}

/// group_by with values of one kind, in each of the ways in which it works.
template <class Key, class Value>
void check_groups(const some_keys<Key>& keys, const memory_of<Key>& there) {
  const std::size_t n = keys.all.size();
  const auto last = roost::group_by(test_place(), there, upload_kinds<Value>(multiples(n, 1)), later());
  numbers expected(keys.distinct.size());
  for (std::size_t i = 0; i < n; ++i) expected[keys.inverse[i]] = i % kinds_of<Value>;
  const auto groups = download_numbers(last.keys), values = download_numbers(last.values);
  const auto counts = download(last.counts);
  ASSERT_EQ(groups.size(), expected.size());
  std::size_t wrong = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const u32 k = keys.index.at(groups[g]);
    if (values[g] != expected[k] || counts[g] != keys.counts[k]) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << n << " rows";
}

TYPED_TEST(key_kinds, of_groups) {
  using key = TypeParam;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    const auto there = upload_kinds<key>(keys.all);
    check_groups<key, u32>(keys, there);
    check_groups<key, aligned_32>(keys, there);
    const auto ones = filled<u32>(n, 1);
    const std::tuple both{roost::plus(), roost::maximum()};
    const auto sums = roost::group_by(place, there, ones, both);
    const auto means = roost::group_means(place, there, ones);
    const auto groups = download_numbers(sums.keys);
    const auto values = download(sums.values[0]);
    std::size_t wrong = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) wrong += values[g] != keys.counts[keys.index.at(groups[g])];
    EXPECT_EQ(wrong, 0u) << n << " rows";
    EXPECT_EQ(groups.size(), keys.distinct.size());
    EXPECT_EQ(download(means.values), std::vector<double>(groups.size(), 1));
  }
}

TYPED_TEST(key_kinds, of_joins) {
  using key = TypeParam;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> left(n), right(n / 4 + 1, 2);
    const bool crowded = n / left.distinct.size() > 1000;  // bool: more pairs than a test needs
    const auto left_there = upload_kinds<key>(left.all), right_there = upload_kinds<key>(right.all);
    std::vector<u32> with, without;
    for (u32 i = 0; i < n; ++i) (right.index.count(left.all[i]) != 0 ? with : without).push_back(i);
    EXPECT_EQ(download(roost::semi_join(place, left_there, right_there)), with);
    EXPECT_EQ(download(roost::anti_join(place, left_there, right_there)), without);
    if (crowded) continue;
    std::vector<std::vector<u32>> rows(right.distinct.size());
    for (u32 i = 0; i < right.all.size(); ++i) rows[right.inverse[i]].push_back(i);
    std::vector<u32> lefts, rights;
    for (const u32 i : with) {
      for (const u32 row : rows[right.index.at(left.all[i])]) lefts.push_back(i), rights.push_back(row);
    }
    const auto pairs = roost::inner_join(place, left_there, right_there);
    EXPECT_TRUE(download(pairs.left) == lefts && download(pairs.right) == rights) << n << " rows";
    EXPECT_EQ(roost::left_join(place, left_there, right_there).left.size(), lefts.size() + without.size());
  }
}

/// What frozen tables, sorted ones and multimaps have in common. Values stand for the first rows of keys.
template <class Map, class Key, class Value>
void check_map(const Map& map, const some_keys<Key>& keys, const numbers& first) {
  const auto& place = test_place();
  const auto queries = keys.queries();
  const auto there = upload_kinds<Key>(queries);
  memory_of<Value> results(place, queries.size());
  map.find(place, there, results, kind_from<Value>(77));
  const auto found = keys.find(queries);
  const auto got = download_numbers(results);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < queries.size(); ++i)
    wrong += got[i] != (found[i] == ~u32{0} ? 77 : first[found[i]]) % kinds_of<Value>;
  EXPECT_EQ(wrong, 0u) << keys.all.size() << " pairs";
  EXPECT_EQ(map.count_found(place, there), static_cast<std::size_t>(std::ranges::count_if(
                                               found, [](u32 index) { return index != ~u32{0}; })));
  EXPECT_EQ(map.size(place), keys.distinct.size());
  EXPECT_TRUE(map.valid(place));
}

/// The pairs that a table writes, each with its key's value.
template <class Key, class Value, class Map>
void check_pairs(const Map& map, const some_keys<Key>& keys, const numbers& first) {
  const std::size_t size = keys.distinct.size();
  memory_of<Key> keys_out(test_place(), size);
  memory_of<Value> values_out(test_place(), size);
  EXPECT_EQ(map.retrieve_all(test_place(), keys_out, values_out), size);
  const auto got = download_numbers(keys_out), values = download_numbers(values_out);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) wrong += values[i] != first[keys.index.at(got[i])] % kinds_of<Value>;
  EXPECT_EQ(wrong, 0u) << keys.all.size() << " pairs";
  EXPECT_EQ(std::set<u64>(got.begin(), got.end()).size(), size);
}

template <class Layout, class Key, class Value>
void check_frozen(const some_keys<Key>& keys, const memory_of<Key>& there) {
  const roost::frozen_map<Key, Value, place_type, Layout> map(
      test_place(), there, upload_kinds<Value>(multiples(keys.all.size(), 1)));
  const numbers first(keys.first.begin(), keys.first.end());
  check_map<decltype(map), Key, Value>(map, keys, first);
  check_pairs<Key, Value>(map, keys, first);
}

TYPED_TEST(key_kinds, of_frozen_tables) {
  using key = TypeParam;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    const auto there = upload_kinds<key>(keys.all);
    check_frozen<roost::bucketed, key, u32>(keys, there);
    check_frozen<roost::bucketed, key, aligned_64>(keys, there);
    if constexpr (sizeof(key) <= 8) check_frozen<roost::compact, key, bytes<3>>(keys, there);
    const roost::frozen_set set(place, there);
    EXPECT_EQ(set.count_found(place, there), n);
    EXPECT_EQ(set.size(), keys.distinct.size());
    EXPECT_TRUE(set.valid(place));
    if constexpr (std::is_integral_v<key> && sizeof(key) <= 8) {
      const roost::sorted_map sorted(place, there, upload_kinds<aligned_32>(multiples(n, 1)));
      check_map<decltype(sorted), key, aligned_32>(sorted, keys, numbers(keys.first.begin(), keys.first.end()));
    }
  }
}

TYPED_TEST(key_kinds, of_a_multimap) {
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

template <class Map, class Key, class Value>
void check_concurrent(const some_keys<Key>& keys, const memory_of<Key>& there) {
  const auto& place = test_place();
  const std::size_t n = keys.all.size();
  Map map(place, 10);
  const auto distinct = upload_kinds<Key>(keys.distinct);
  const numbers rows = multiples(keys.distinct.size(), 3);
  map.insert(place, distinct, upload_kinds<Value>(rows));
  map.insert(place, there, upload_kinds<Value>(numbers(n, 5)));  // all are there
  check_map<Map, Key, Value>(map, keys, rows);
  check_pairs<Key, Value>(map, keys, rows);
  map.insert_or_assign(place, there, upload_kinds<Value>(numbers(n, 6)));
  check_map<Map, Key, Value>(map, keys, numbers(n, 6));
  EXPECT_EQ(map.erase(place, there), keys.distinct.size());
  map.insert(place, distinct, upload_kinds<Value>(rows));
  check_map<Map, Key, Value>(map, keys, rows);
}

TYPED_TEST(key_kinds, of_concurrent_tables) {
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

TYPED_TEST(key_kinds, of_a_partition) {
  using key = TypeParam;
  const auto& place = test_place();
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    const auto there = upload_kinds<key>(keys.all);
    const auto parts = roost::partition(place, there, upload_kinds<aligned_32>(multiples(n, 1)),
                                        {.regions = 37, .way_back = true});
    const auto regions = download(parts);
    std::size_t wrong = 0;
    for (const auto& item : regions.items) wrong += number_from(item.key) != keys.all[number_from(item.value)];
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
