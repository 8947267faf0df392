#include <limits>
#include <random>
#include <roost/group_by.hpp>
#include <roost/join.hpp>
#include <roost/two_way_index.hpp>
#include <set>

#include "support/keys.hpp"
#include "support/place.hpp"

// Integers of a small range, which are not hashed on the host, against sets of the standard library: ranges
// at the ends of their types, and one integer more or less than what counts as small.

#ifndef __CUDACC__
namespace test {
namespace {

namespace detail = roost::detail;

template <class Key>
struct dense_keys : testing::Test {};
using integers = day_types<char, std::int8_t, std::uint8_t, std::int16_t, std::uint32_t, std::int32_t,
                           std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(dense_keys, integers);

/// Keys in [least, least + count): the first key and the last are its ends, which no other is if there are
/// more.
template <class Key>
std::vector<Key> keys_of(Key least, u64 count, std::size_t n) {
  std::mt19937_64 random(count + n);
  std::vector<Key> keys(n);
  const u64 inner = count > 2 ? count - 2 : 1, from = count > 2 ? 1 : 0;
  for (Key& key : keys) key = static_cast<Key>(static_cast<u64>(least) + from + random() % inner);
  keys.front() = least;
  keys.back() = static_cast<Key>(static_cast<u64>(least) + count - 1);
  return keys;
}

/// The first keys of ranges of `count` integers at the ends of a type and around zero.
template <class Key>
std::vector<Key> starts_of(u64 count) {
  using limits = std::numeric_limits<Key>;
  const u64 most = static_cast<u64>(limits::max()) - static_cast<u64>(limits::min());
  if (count - 1 > most) return {};
  std::vector<Key> starts{limits::min(), static_cast<Key>(static_cast<u64>(limits::max()) - count + 1)};
  if (std::is_signed_v<Key>) starts.push_back(static_cast<Key>(-static_cast<std::int64_t>(count / 2)));
  return starts;
}

TYPED_TEST(dense_keys, have_the_range_that_they_have) {
  using limits = std::numeric_limits<TypeParam>;
  const roost::host cpu(2);
  for (const u64 count : {1, 2, 100, 256, 70'000}) {
    for (const TypeParam least : starts_of<TypeParam>(count)) {
      const auto keys = keys_of(least, count, 200'001);
      const auto key_at = [&](std::size_t i) { return keys[i]; };
      EXPECT_FALSE(detail::range_of<TypeParam>(cpu, keys.size(), key_at, count - 1));
      const auto range = detail::range_of<TypeParam>(cpu, keys.size(), key_at, count);
      ASSERT_TRUE(range);
      EXPECT_EQ(range->count, count);
      EXPECT_EQ((*range)(least), 0u);
      for (const TypeParam key : {limits::min(), limits::max()}) {
        const bool inside = key >= least && static_cast<u64>(key) - static_cast<u64>(least) < count;
        EXPECT_EQ((*range)(key) < range->count, inside);
      }
    }
  }
  EXPECT_FALSE(detail::range_of<TypeParam>(cpu, 0, [](std::size_t) { return TypeParam(); }, 100));
}

TYPED_TEST(dense_keys, are_looked_up_as_others_are) {
  using limits = std::numeric_limits<TypeParam>;
  for (const int threads : {1, 3}) {
    const roost::host cpu(threads);
    for (const std::size_t n : {1, 7, 3000}) {
      const u64 most = detail::dense_range_most(n);
      for (const u64 count : {u64{1}, u64{100}, most, most + 1}) {
        for (const TypeParam least : starts_of<TypeParam>(count)) {
          const auto keys = keys_of(least, count, n);
          auto queries = keys_of(least, count, 5000);
          for (const TypeParam more :
               {limits::min(), limits::max(), TypeParam(), static_cast<TypeParam>(~0ull)})
            queries.push_back(more);
          for (std::size_t i = 0; i < 1000; ++i) queries.push_back(static_cast<TypeParam>(roost::mix64(i)));
          const std::set<TypeParam> right(keys.begin(), keys.end());
          const auto rows = roost::semi_join(cpu, queries, keys), rest = roost::anti_join(cpu, queries, keys);
          std::vector<u32> expected, others;
          for (u32 i = 0; i < queries.size(); ++i)
            (right.count(queries[i]) != 0 ? expected : others).push_back(i);
          EXPECT_TRUE(std::ranges::equal(rows, expected));
          EXPECT_TRUE(std::ranges::equal(rest, others));
        }
      }
    }
  }
}

/// More groups than few hashed ones, and a range that is just too large.
TEST(dense_keys_calls, may_be_many) {
  const std::size_t n = sanitized ? 200'000 : 3'000'000;
  const u64 most = detail::direct_range_most({.rows = n});
  for (const int threads : {1, 2, 16}) {
    const roost::host cpu(threads);
    for (const u64 count : {most, most + 1}) {
      const auto keys = keys_of<std::int64_t>(-5, count, n);
      std::vector<u64> sums(count), counts(count);
      for (std::size_t i = 0; i < n; ++i) {
        sums[static_cast<u64>(keys[i] + 5)] += i;
        ++counts[static_cast<u64>(keys[i] + 5)];
      }
      const auto found = roost::group_by(cpu, keys, detail::numbers_to<u64>(n), roost::plus());
      EXPECT_EQ(found.size(), count - static_cast<u64>(std::ranges::count(counts, 0u)));
      std::size_t wrong = 0;
      for (std::size_t g = 0; g < found.size(); ++g) {
        const auto k = static_cast<u64>(found.keys[g] + 5);
        wrong += found.values[g] != sums[k] || found.counts[g] != counts[k];
      }
      EXPECT_EQ(wrong, 0u);
      const auto unique = roost::unique_inverse(cpu, keys, roost::index_order::by_key);
      EXPECT_TRUE(std::ranges::is_sorted(unique.keys));
      EXPECT_EQ(unique.keys.size(), found.size());
      for (std::size_t i = 0; i < n; ++i) wrong += unique.keys[unique.inverse[i]] != keys[i];
      EXPECT_EQ(wrong, 0u);
    }
  }
}

}  // namespace
}  // namespace test
#endif
