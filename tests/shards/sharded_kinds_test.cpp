#include <unistd.h>

#include <filesystem>
#include <roost/shards/sharded_concurrent_map.hpp>
#include <roost/shards/sharded_file.hpp>
#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_join.hpp>
#include <roost/shards/sharded_multimap.hpp>

#include "support/kinds.hpp"
#include "support/shards.hpp"

// Keys of every kind, and values that must lie at multiples of 32 bytes, in tables over several memories.

namespace test {
namespace {

template <class Key>
class sharded_kinds : public testing::Test {};
TYPED_TEST_SUITE(sharded_kinds, every_kind<day_axis>);

constexpr std::size_t count = 3;

/// A column of the shards.
template <class T>
column_of_shards<T> spread(const numbers& all) {
  column_of_shards<T> result;
  for (const numbers& part : split(all, count)) result.push_back(upload_kinds<T>(part));
  return result;
}
template <class T>
numbers flat_numbers(const column_of_shards<T>& source) {
  numbers result;
  for (const auto& part : source) {
    for (const u64 number : download_numbers(part)) result.push_back(number);
  }
  return result;
}

/// find() of a table that has the first row of each key as its value, or number `rows` of it.
template <class Value, class Map, class Key>
void check_sharded(const Map& map, const some_keys<Key>& keys, const numbers& rows) {
  const auto& shards = test_shards(count);
  const auto queries = keys.queries();
  const auto there = spread<Key>(queries);
  auto results = spread<Value>(numbers(queries.size(), 0));
  map.find(shards, there, results, kind_from<Value>(77));
  const auto got = flat_numbers(results);
  const auto found = keys.find(queries);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < queries.size(); ++i)
    wrong += got[i] != (found[i] == ~u32{0} ? 77 : rows[found[i]]);
  EXPECT_EQ(wrong, 0u) << keys.all.size() << " pairs";
  EXPECT_TRUE(map.valid(shards));
}

TYPED_TEST(sharded_kinds, of_tables_and_files) {
  using key = TypeParam;
  using value = aligned_32;
  const auto& shards = test_shards(count);
  for (const std::size_t n : {600, 7000}) {
    const some_keys<key> keys(n);
    const auto there = spread<key>(keys.all);
    const numbers first(keys.first.begin(), keys.first.end());
    const roost::sharded_map<key, value, shards_type> map(shards, there, spread<value>(multiples(n, 1)));
    check_sharded<value>(map, keys, first);
    const auto folder = std::filesystem::temp_directory_path() / ("roost_kinds_" + std::to_string(getpid()));
    roost::save(shards, map, folder);
    check_sharded<value>(roost::load_sharded_map<key, value>(shards, folder), keys, first);
    std::filesystem::remove_all(folder);

    const roost::sharded_index<key, shards_type> index(shards, there);
    EXPECT_EQ(index.size(), keys.distinct.size());
    EXPECT_TRUE(index.valid(shards));
    const roost::sharded_multimap<key, value, shards_type> multimap(shards, there,
                                                                    spread<value>(multiples(n, 1)));
    EXPECT_EQ(multimap.size(), n);
    EXPECT_TRUE(multimap.valid(shards));
    if constexpr (sizeof(key) <= 8) {
      roost::sharded_concurrent_map<key, value, shards_type> changing(shards, n);
      changing.insert_or_assign(shards, there, spread<value>(numbers(n, 9)));
      check_sharded<value>(changing, keys, numbers(n, 9));
    }
  }
}

TYPED_TEST(sharded_kinds, of_joins_and_groups) {
  using key = TypeParam;
  const auto& shards = test_shards(count);
  const some_keys<key> keys(6000);
  const auto there = spread<key>(keys.all), distinct = spread<key>(keys.distinct);
  std::size_t rows = 0;
  for (const auto& part : roost::inner_join(shards, there, distinct)) rows += part.left.size();
  EXPECT_EQ(rows, keys.all.size());
  const auto sums =
      roost::group_by(shards, there, upload(shards, split(std::vector<u32>(6000, 1), count)), roost::plus());
  std::size_t groups = 0;
  for (const auto& part : sums) {
    const auto of_groups = download_numbers(part.keys);
    const auto values = download(part.values);
    groups += of_groups.size();
    for (std::size_t g = 0; g < of_groups.size(); ++g)
      EXPECT_EQ(values[g], keys.counts[keys.index.at(of_groups[g])]);
  }
  EXPECT_EQ(groups, keys.distinct.size());
}

}  // namespace
}  // namespace test
