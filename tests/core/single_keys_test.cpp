#include <deque>
#include <list>
#include <map>
#include <roost/sorted_map.hpp>
#include <roost/stadium/stadium_map.hpp>
#include <set>
#include <unordered_map>

#include "support/keys.hpp"
#include "support/place.hpp"

// What users of the standard library try first: ranges of pairs, one key at a time, loops over a table.

namespace test {
namespace {

struct row {
  u32 id;
  float weight;
};

std::vector<row> some_rows() {
  std::vector<row> rows;
  for (u32 i = 0; i < 1000; ++i) rows.push_back({i * 7 % 1009, static_cast<float>(i)});
  return rows;
}

TEST(pairs, of_structs_make_maps) {
  const auto rows = some_rows();
  const auto there = upload(rows);
  const roost::frozen_map map(test_place(), there, {.load_factor = 0.5});
  static_assert(std::is_same_v<decltype(map), const roost::frozen_map<u32, float, place_type>>);
  const roost::frozen_multimap groups(test_place(), there);
  static_assert(std::is_same_v<decltype(groups), const roost::frozen_multimap<u32, float, place_type>>);
  std::vector<u32> ids;
  std::vector<float> weights;
  for (const auto& r : rows) {
    ids.push_back(r.id);
    weights.push_back(r.weight);
  }
  const auto queries = upload(ids);
  memory_of<float> results(test_place(), ids.size());
  map.find(test_place(), queries, results, -1.0f);
  EXPECT_EQ(download(results), weights);
  groups.find_first(test_place(), queries, results, -1.0f);
  EXPECT_EQ(download(results), weights);
  EXPECT_TRUE(map.valid(test_place()) && groups.valid(test_place()));

  roost::frozen_map<u32, float, place_type> other;
  other.rebuild(test_place(), upload(std::vector<row>()));
  EXPECT_EQ(other.size(), 0u);
  other.rebuild(test_place(), there);
  other.find(test_place(), queries, results, -1.0f);
  EXPECT_EQ(download(results), weights);
}

struct two_words {
  u32 word[2];
};
struct text_and_number {
  std::string text;
  u32 number;
};
struct nested {
  row first;
  u32 second;
};
static_assert(roost::detail::has_two_parts<row>() && roost::detail::has_two_parts<text_and_number>());
static_assert(roost::detail::has_two_parts<nested>() && roost::detail::has_two_parts<std::pair<u32, u32>>());
static_assert(!roost::detail::has_two_parts<two_words>() && !roost::detail::has_two_parts<u32[2]>());

#if !defined(__CUDACC__)

template <class Pairs>
void expect_map_of(const Pairs& pairs, const std::map<u32, u64>& expected) {
  const roost::frozen_map map(test_place(), pairs);
  static_assert(std::is_same_v<decltype(map), const roost::frozen_map<u32, u64>>);
  std::map<u32, u64> found;
  for (const auto [key, value] : map) found[key] = value;
  EXPECT_EQ(found, expected);
  const roost::frozen_multimap groups(test_place(), pairs);
  EXPECT_EQ(groups.size(), expected.size());
}

TEST(pairs, of_all_containers_make_maps) {
  std::map<u32, u64> sorted;
  for (u32 i = 0; i < 5000; ++i) sorted[roost::mix32(i)] = i;
  expect_map_of(sorted, sorted);
  expect_map_of(std::unordered_map<u32, u64>(sorted.begin(), sorted.end()), sorted);
  expect_map_of(std::vector<std::pair<u32, u64>>(sorted.begin(), sorted.end()), sorted);
  expect_map_of(std::deque<std::tuple<u32, u64>>(sorted.begin(), sorted.end()), sorted);
  expect_map_of(std::list<std::pair<u32, u64>>(sorted.begin(), sorted.end()), sorted);
  std::vector<roost::pair<u32, u64>> plain;
  for (const auto& [key, value] : sorted) plain.push_back({key, value});
  expect_map_of(plain, sorted);
  expect_map_of(std::span(plain), sorted);
  expect_map_of(roost::computed(plain.size(), [&](std::size_t i) { return plain[i]; }), sorted);
  expect_map_of(std::unordered_map<u32, u64>(), {});
}

/// A table with the pairs i -> 10 i for i from 1 to 1000, by the calls of std::map.
template <class Table>
void expect_single_keys(const Table& table) {
  for (u32 i = 0; i <= 1001; ++i) {
    const bool there = i - 1 < 1000;
    EXPECT_EQ(table.contains(i), there);
    EXPECT_EQ(table.count(i), there ? 1u : 0u);
    EXPECT_EQ(table.find(i).has_value(), there);
    if (there) {
      EXPECT_EQ(table[i], 10 * i);
    }
  }
  EXPECT_EQ(table.find(5), 50u);
  EXPECT_EQ(table.find(5).value(), 50u);
  EXPECT_EQ(table.find(5).transform([](u32 v) { return v + 0.5; }), 50.5);
  EXPECT_FALSE(table.find(0).transform([](u32 v) { return v; }).has_value());
  EXPECT_EQ(table.find(0), table.find(2000));
  EXPECT_FALSE(table.find(5) == table.find(6));
  static_assert(
      !requires { table.contains(7.5); } && !requires { table.find(u64{7}); } &&
      !requires { table[u64{7}]; } && !requires { table.count(7.5f); } && requires { table.find(7); });
  expect_error<roost::invalid_argument>([&] { table.find(0).value(); }, {"found::value", "value_or"});
  expect_error<roost::invalid_argument>([&] { static_cast<void>(table[0]); }, {"no key 0", "find()"});
}

TEST(single_keys, of_each_table) {
  const auto& place = test_place();
  std::vector<u32> keys, values;
  for (u32 i = 1; i <= 1000; ++i) {
    keys.push_back(i);
    values.push_back(10 * i);
  }
  expect_single_keys(roost::frozen_map(place, keys, values));
  expect_single_keys(roost::sorted_map(place, keys, values));
  roost::concurrent_map<u32, u32> map(place, 10);
  map.insert(place, keys, values);
  expect_single_keys(map);
  roost::stadium_map<u32, u32> stadium(place, 1000);
  stadium.insert(place, keys, values);
  expect_single_keys(stadium);

  const roost::two_way_index index(place, values);
  EXPECT_EQ(index[70], 6u);
  EXPECT_FALSE(index.contains(71));
  const roost::frozen_set set(place, keys);
  EXPECT_TRUE(set.contains(7) && set.count(0) == 0);
  roost::concurrent_set<u32> changing(place, 10);
  changing.insert(place, keys);
  EXPECT_TRUE(changing.contains(7) && changing.count(0) == 0);
}

TEST(single_keys, of_empty_tables) {
  const roost::frozen_map<u32, u32> none;
  EXPECT_FALSE(none.contains(0) || none.find(0) || none.count(0) != 0);
  EXPECT_EQ(none.begin(), none.end());
  const roost::frozen_multimap<u32, u32> no_groups;
  EXPECT_TRUE(no_groups.find(0).empty() && no_groups.count(0) == 0 && !no_groups.contains(0));
  EXPECT_EQ(no_groups.begin(), no_groups.end());
  EXPECT_FALSE((roost::frozen_set<u32>().contains(0)));
  EXPECT_FALSE((roost::sorted_map<u32, u32>().contains(0)));
  EXPECT_FALSE((roost::concurrent_map<u32, u32>(test_place()).contains(0)));
}

TEST(loops, over_tables_and_joins) {
  const auto& place = test_place();
  const std::vector<u32> keys{5, 6, 5, 7, 5, 6}, values{0, 1, 2, 3, 4, 5};
  std::map<u32, std::vector<u32>> found;
  const roost::frozen_multimap groups(place, keys, values);
  for (const auto [key, run] : groups) found[key].assign(run.begin(), run.end());
  EXPECT_EQ(found, (std::map<u32, std::vector<u32>>{{5, {0, 2, 4}}, {6, {1, 5}}, {7, {3}}}));
  EXPECT_EQ(groups.count(5), 3u);

  const roost::frozen_set set(place, keys);
  const roost::frozen_set<u32> no_set;
  EXPECT_EQ((std::multiset<u32>(set.begin(), set.end())), (std::multiset<u32>{5, 6, 7}));
  EXPECT_EQ(no_set.begin(), no_set.end());
  roost::concurrent_set<u32> changing(place, 10);
  changing.insert(place, keys);
  std::multiset<u32> seen;
  for (const u32 key : changing) seen.insert(key);
  EXPECT_EQ(seen, (std::multiset<u32>{5, 6, 7}));

  roost::concurrent_map<u32, u32> map(place, 10);
  map.insert_or_apply(place, keys, values, roost::plus());
  map.ref().erase(7);
  std::map<u32, u32> sums;
  for (const auto [key, sum] : std::as_const(map)) sums[key] = sum;
  EXPECT_EQ(sums, (std::map<u32, u32>{{5, 6}, {6, 6}}));

  std::vector<std::pair<u32, u32>> rows;
  for (const auto [left, right] : roost::inner_join(place, std::vector<u32>{6, 9, 7}, keys))
    rows.emplace_back(left, right);
  EXPECT_EQ(rows, (std::vector<std::pair<u32, u32>>{{0, 1}, {0, 5}, {2, 3}}));
}

#endif

}  // namespace
}  // namespace test
