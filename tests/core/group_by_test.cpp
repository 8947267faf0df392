#include <roost/group_by.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// group_by and group_means against a map of the standard library.

namespace test {
namespace {

/// Associative, but the order matters: the first and the last value, and how many.
struct ends {
  u64 first, last, count;
  friend bool operator==(const ends&, const ends&) = default;
};
struct join_ends {
  ROOST_FN ends operator()(const ends& a, const ends& b) const {
    return {a.first, b.last, a.count + b.count};
  }
};

template <class Key>
void check(const std::vector<u64>& numbers) {
  const auto& place = test_place();
  std::vector<Key> keys;
  std::vector<ends> values;
  std::vector<u32> small;
  oracle_map<Key, ends> oracle;
  oracle_map<Key, u32> sums, least, most;
  oracle_map<Key, double> means;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    keys.push_back(from_number<Key>(numbers[i]));
    values.push_back({i, i, 1});
    small.push_back(static_cast<u32>(roost::mix64(i)));
    const auto [at, fresh] = oracle.emplace(keys[i], values[i]);
    if (!fresh) at->second = join_ends()(at->second, values[i]);
    sums[keys[i]] += small[i];
    least[keys[i]] = fresh ? small[i] : std::min(least[keys[i]], small[i]);
    most[keys[i]] = std::max(most[keys[i]], small[i]);
    means[keys[i]] += small[i];
  }
  const auto columns = upload(keys);
  const auto to_map = [&](const auto& groups) {
    const auto of = download(groups.keys);
    const auto counts = download(groups.counts);
    const auto results = download(groups.values);
    EXPECT_EQ(groups.size(), oracle.size());
    oracle_map<Key, std::remove_cvref_t<decltype(results[0])>> map;
    for (std::size_t g = 0; g < of.size(); ++g) {
      map.emplace(of[g], results[g]);
      EXPECT_EQ(counts[g], oracle.at(of[g]).count);
    }
    return map;
  };
  const auto numbers_of = upload(small);
  EXPECT_TRUE(to_map(roost::group_by(place, columns, upload(values), join_ends())) == oracle);
  EXPECT_TRUE(to_map(roost::group_by(place, columns, numbers_of, roost::plus())) == sums);
  EXPECT_TRUE(to_map(roost::group_by(place, columns, numbers_of, roost::minimum())) == least);
  EXPECT_TRUE(to_map(roost::group_by(place, columns, numbers_of, roost::maximum())) == most);
  for (auto& [key, sum] : means) sum /= static_cast<double>(oracle.at(key).count);
  EXPECT_TRUE(to_map(roost::group_means(place, columns, numbers_of)) == means);  // sums of integers are exact
}

template <class Key>
class group_by : public testing::Test {};
using keys = axis<u32, u64, sixteen>;
TYPED_TEST_SUITE(group_by, keys);

TYPED_TEST(group_by, of_groups_of_any_size) {
  for (const std::size_t n : {0, 1, 2, 31, 32, 33, 1000, 30000}) check<TypeParam>(random_numbers(n, n));
  for (const u64 groups : {1, 2, 30, 1000}) check<TypeParam>(random_numbers(30000, 3, groups));
  for (const std::size_t n : {32, 33, 1024, 1025, 40000}) check<TypeParam>(std::vector<u64>(n, 7));
}

TEST(group_by_calls, add_up_floating_point_numbers_the_same_every_time) {
  std::vector<double> values;
  for (u64 i = 0; i < 100000; ++i) values.push_back(static_cast<double>(roost::mix64(i)) * 1e-3);
  const auto keys = upload(from_numbers<u32>(random_numbers(100000, 3, 5)));
  const auto column = upload(values);
  const auto once = download(roost::group_by(test_place(), keys, column, roost::plus()).values);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(download(roost::group_by(test_place(), keys, column, roost::plus()).values), once);
}

TEST(group_by_calls, refuse_columns_that_are_not_equally_long) {
  const auto three = upload(std::vector<u32>(3)), two = upload(std::vector<u32>(2));
  EXPECT_THROW(roost::group_by(test_place(), three, two, roost::plus()), roost::invalid_argument);
  EXPECT_THROW(roost::group_means(test_place(), three, two), roost::invalid_argument);
}

}  // namespace
}  // namespace test
