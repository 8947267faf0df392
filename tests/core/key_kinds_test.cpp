#include "support/kinds.hpp"

// Keys of every kind, and values that must lie at multiples of 32 bytes, in every function that groups or
// joins.

namespace test {
namespace {

template <class Key>
class key_kinds : public testing::Test {};
TYPED_TEST_SUITE(key_kinds, every_kind<day_axis>);

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
      EXPECT_EQ(download_numbers(roost::unique(place, there, roost::index_order::by_key)),
                download_numbers(roost::copy_to(place, ascending)));
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
    for (std::size_t g = 0; g < groups.size(); ++g)
      wrong += values[g] != keys.counts[keys.index.at(groups[g])];
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

}  // namespace
}  // namespace test
