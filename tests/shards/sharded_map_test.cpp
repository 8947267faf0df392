#include <roost/shards/sharded_map.hpp>
#include <roost/shards/sharded_set.hpp>
#include <thread>

#include "support/shards.hpp"

// sharded_map and sharded_set against one table: all answers, whatever the number of shards.

namespace test {
namespace {

using roost::path;

template <class Key, class Value>
struct types {
  using key = Key;
  using value = Value;
  using map = roost::sharded_map<Key, Value, shards_type>;
};

/// Keys that are there, and others.
template <class Key>
std::vector<Key> present_and_others(const std::vector<Key>& keys) {
  std::vector<Key> queries = keys;
  for (const std::uint64_t number : random_numbers(keys.size() + 10, keys.size()))
    queries.push_back(from_number<Key>(number));
  queries.push_back(all_ones<Key>());
  queries.push_back(from_number<Key>(0));
  return shuffled(queries, 1);
}

struct count_pair {
  u64* count;
  template <class Key, class Value>
  ROOST_FN void operator()(const Key&, const Value&) const {
    roost::detail::fetch_add(*count, u64{1});
  }
};

/// Builds a map and compares all that it says with an oracle.
template <class T>
void check(const shards_type& shards, const column<typename T::key>& keys,
           const column<typename T::value>& values, const std::vector<typename T::key>& all_queries) {
  using key = typename T::key;
  using value = typename T::value;
  SCOPED_TRACE(std::to_string(shards.size()) + " shards, " + std::to_string(flat(keys).size()) + " pairs");
  oracle_map<key, value> oracle;
  for (std::size_t s = 0; s < keys.size(); ++s) {
    for (std::size_t i = 0; i < keys[s].size(); ++i) oracle.emplace(keys[s][i], values[s][i]);
  }
  const typename T::map map(shards, upload(shards, keys), upload(shards, values));
  EXPECT_EQ(map.size(), oracle.size());
  EXPECT_TRUE(map.valid(shards));

  const auto queries = split(all_queries, shards.size());
  const auto order = flat(queries);
  const auto there = upload(shards, queries);
  const value missing = from_number<value>(77), untouched = from_number<value>(1);
  std::size_t found_keys = 0;
  for (const path way : {path::automatic, path::direct, path::regional}) {
    auto results = filled_like<value>(shards, queries, untouched);
    auto masked = filled_like<value>(shards, queries, untouched);
    auto found = filled_like<bool>(shards, queries, true),
         contained = filled_like<bool>(shards, queries, true);
    const auto report = map.find(shards, there, results, missing, {.path = way});
    if (way == path::regional || (way == path::direct && shards.size() <= 16)) {
      EXPECT_EQ(report.path, way);
    }
    map.find(shards, there, masked, found, {.path = way});
    map.contains(shards, there, contained, {.path = way});
    const auto all = flat(shards, results), all_masked = flat(shards, masked);
    const auto all_found = flat(shards, found), all_contained = flat(shards, contained);
    std::size_t wrong = 0;
    found_keys = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto known = oracle.find(order[i]);
      const bool here = known != oracle.end();
      found_keys += here;
      wrong += !(all[i] == (here ? known->second : missing)) ||
               !(all_masked[i] == (here ? known->second : untouched)) || (all_found[i] != 0) != here ||
               (all_contained[i] != 0) != here;
    }
    EXPECT_EQ(wrong, 0u) << "answers of path " << static_cast<int>(way) << ", of " << order.size();
    EXPECT_EQ(map.count_found(shards, there, {.path = way}), found_keys);
  }

  column_of_shards<key> all_keys;
  column_of_shards<value> all_values;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    all_keys.emplace_back(shards[s], map.shard(s).size());
    all_values.emplace_back(shards[s], map.shard(s).size());
  }
  EXPECT_EQ(map.retrieve_all(shards, all_keys, all_values), oracle.size());
  const auto keys_out = flat(shards, all_keys);
  const auto values_out = flat(shards, all_values);
  std::size_t strangers = 0;
  for (std::size_t i = 0; i < keys_out.size(); ++i) {
    const auto known = oracle.find(keys_out[i]);
    strangers += known == oracle.end() || !(known->second == values_out[i]);
    if (known != oracle.end()) oracle.erase(known);
  }
  EXPECT_EQ(strangers, 0u);
  EXPECT_TRUE(oracle.empty()) << "pairs that retrieve_all lacks";
}

template <class T>
void check(std::size_t shards, const numbers& key_numbers) {
  const auto keys = split(from_numbers<typename T::key>(key_numbers), shards);
  const auto values = split(numbered_values<typename T::value>(key_numbers.size()), shards);
  check<T>(test_shards(shards), keys, values, present_and_others(flat(keys)));
}

template <class T>
class sharded_map : public testing::Test {};
using maps =
    axis<types<u32, u32>, types<u64, u64>, types<u32, u64>, types<twelve, u32>, types<u32, twentyfour>>;
TYPED_TEST_SUITE(sharded_map, maps);

TYPED_TEST(sharded_map, answers_as_one_map) {
  for (const std::size_t shards : {1, 2, 3, 5, 7}) {
    for (const std::size_t n : {0, 1, 5, 300, sanitized ? 4000 : 30000})
      check<TypeParam>(shards, random_numbers(n, n));
  }
  check<TypeParam>(2, multiples(sanitized ? 4000 : 30000, 1));
  check<TypeParam>(4, multiples(3000, 1 << 16));
}

TYPED_TEST(sharded_map, takes_the_first_of_several_pairs_of_a_key) {
  const std::size_t n = sanitized ? 3000 : 20000;
  check<TypeParam>(3, random_numbers(n, 1, n / 2));
  check<TypeParam>(6, random_numbers(n, 2, 40));
  check<TypeParam>(2, numbers(20000, 7));  // one shard would get all
}

TYPED_TEST(sharded_map, with_more_shards_than_keys) {
  check<TypeParam>(sanitized ? 24 : 64, multiples(20, 3));
}

/// A batch in which a few keys are frequent, or one is alone.
TYPED_TEST(sharded_map, answers_queries_of_few_keys) {
  using key = typename TypeParam::key;
  const auto keys = split(from_numbers<key>(multiples(3000, 5)), 3);
  const auto values = split(numbered_values<typename TypeParam::value>(3000), 3);
  std::vector<key> queries(sanitized ? 3000 : 40000, from_number<key>(10));
  check<TypeParam>(test_shards(3), keys, values, queries);
  for (std::size_t i = 0; i < queries.size(); i += 3) queries[i] = from_number<key>(i);
  check<TypeParam>(test_shards(3), keys, values, queries);
}

// The class itself.

using map_type = roost::sharded_map<u32, u32, shards_type>;
using set_type = roost::sharded_set<u32, shards_type>;

/// Many queries of few keys, and few of many: one of some keys that are not there is queried most.
TEST(sharded_map_class, answers_skewed_queries) {
  const std::size_t n = sanitized ? 30000 : 100000;
  auto queries = from_numbers<u32>(skewed_numbers(n, 1, 20000));
  for (std::size_t i = 0; i < n; i += 5) queries[i] = 12345678;
  for (const std::size_t shards : {2, 3, 4, 5, 6, 7}) {
    const auto keys = split(from_numbers<u32>(multiples(10000, 1)), shards);
    check<types<u32, u32>>(test_shards(shards), keys, keys, queries);
    if (sanitized && shards == 3) break;
  }
  // Too few in the sample to be seen there, too many for their region.
  for (std::size_t i = 0; i < n; ++i) queries[i] = static_cast<u32>(i % 1024 == 0 ? 7 : i % 64 * 97 + i);
  const auto keys = split(from_numbers<u32>(multiples(10000, 7)), 2);
  check<types<u32, u32>>(test_shards(2), keys, keys, queries);
}

/// Different keys whose hashes begin with the same bits: their queries crowd a region of each shard.
TEST(sharded_map_class, answers_queries_of_keys_that_collide) {
  const u32 n = sanitized ? 4000 : 40000;
  std::vector<u32> colliding(n);
  for (u32 i = 0; i < n; ++i) colliding[i] = roost::key_of_hash<u32>(i);
  const auto keys = split(from_numbers<u32>(multiples(3000, 5)), 3);
  check<types<u32, u32>>(test_shards(3), keys, keys, colliding);
  check<types<u32, u32>>(test_shards(3), split(colliding, 3), split(colliding, 3), colliding);
}

TEST(sharded_map_class, answers_in_chunks) {
  // A chunk of cuda has 2^20 queries at least.
  const auto keys = random_numbers(!on_host ? 3'000'000 : sanitized ? 200'000 : 400'000, 1);
  const auto column = split(from_numbers<u32>(keys), 2);
  const auto& shards = test_shards(2);
  const auto there = upload(shards, column);
  const map_type map(shards, there, there);
  auto results = filled_like<u32>(shards, column, 0);
  const auto report = map.find(shards, there, results, 1, {.path = path::regional, .scratch_bytes_most = 1});
  EXPECT_GT(report.chunks, 1u);
  EXPECT_TRUE(flat(shards, results) == flat(column));
}

TEST(sharded_map_class, deduces_its_types_rebuilds_and_moves) {
  const auto& shards = test_shards(2);
  const column<u64> keys{{1, 2, 3}, {3, 4}};
  const column<u32> values{{10, 20, 30}, {31, 40}};
  roost::sharded_map map(shards, upload(shards, keys), upload(shards, values), {.load_factor = 0.5});
  static_assert(std::is_same_v<decltype(map), roost::sharded_map<u64, u32, shards_type>>);
  EXPECT_EQ(map.size(), 4u);
  EXPECT_EQ(map.shard(0).size() + map.shard(1).size(), 4u);
  EXPECT_EQ(map.bytes(), map.shard(0).bytes() + map.shard(1).bytes());
  auto results = filled_like<u32>(shards, keys, 0);
  map.find(shards, upload(shards, keys), results, 1);
  EXPECT_EQ(flat(shards, results), (std::vector<u32>{10, 20, 30, 30, 40}));
  const column<u64> others{{}, {9}};
  map.rebuild(shards, upload(shards, others), upload(shards, column<u32>{{}, {90}}));
  roost::sharded_map<u64, u32, shards_type> moved = std::move(map);
  EXPECT_EQ(moved.count_found(shards, upload(shards, others)), 1u);
  EXPECT_EQ(moved.count_found(shards, upload(shards, keys)), 0u);
  const roost::sharded_set set(shards, upload(shards, keys));
  static_assert(std::is_same_v<std::remove_const_t<decltype(set)>, roost::sharded_set<u64, shards_type>>);
  EXPECT_EQ(set.size(), 4u);
}

TEST(sharded_map_class, without_pairs_has_none) {
  const auto& shards = test_shards(2);
  const map_type map;
  const auto queries = upload(shards, column<u32>{{1, 2}, {3}});
  auto results = filled_like<u32>(shards, queries, 0);
  auto found = filled_like<bool>(shards, queries, true);
  map.find(shards, queries, results, 9);
  EXPECT_EQ(flat(shards, results), (std::vector<u32>{9, 9, 9}));
  map.find(shards, queries, results, found);
  EXPECT_EQ(flat(shards, found), (std::vector<char>{0, 0, 0}));
  EXPECT_EQ(map.count_found(shards, queries), 0u);
  EXPECT_TRUE(map.empty());
  EXPECT_TRUE(map.valid(shards));
  expect_error<roost::invalid_argument>([&] { static_cast<void>(map.ref()); }, {"sharded_map::ref", "empty"});
}

template <class Ref>
struct find_by_ref {
  Ref ref;
  const u32* queries;
  u32* results;
  ROOST_FN void operator()(std::size_t i) const { results[i] = ref.find(queries[i]).value_or(9); }
};

TEST(sharded_map_class, can_be_queried_in_kernels) {
  const auto& shards = test_shards(3);
  const auto keys = split(from_numbers<u32>(multiples(3000, 7)), 3);
  const auto there = upload(shards, keys);
  const map_type map(shards, there, there);
  auto results = filled_like<u32>(shards, keys, 0);
  for (std::size_t s = 0; s < 3; ++s) {
    shards[s].for_each(there[s].size(),
                       find_by_ref<map_type::ref_type>{map.ref(), there[s].data(), results[s].data()});
    shards[s].synchronize();
  }
  EXPECT_TRUE(flat(shards, results) == flat(keys));
}

TEST(sharded_map_class, visits_each_pair) {
  const auto& shards = test_shards(1);
  const auto keys = upload(shards, column<u32>{from_numbers<u32>(multiples(3000, 7))});
  const map_type map(shards, keys, keys);
  const auto count = filled<u64>(1, 0);
  map.for_each(shards, count_pair{const_cast<u64*>(count.data())});
  EXPECT_EQ(download(count)[0], 3000u);
}

TEST(sharded_map_class, can_be_queried_by_several_threads) {
  const auto& shards = test_shards(3);
  const auto keys = split(from_numbers<u32>(multiples(3000, 7)), 3);
  const auto there = upload(shards, keys);
  const map_type map(shards, there, there);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const path way = t == 0 ? path::direct : path::regional;
      auto results = filled_like<u32>(shards, keys, 0);
      map.find(shards, there, results, 1, {.path = way});
      good += flat(shards, results) == flat(keys);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 3);
}

TEST(sharded_map_class, refuses_what_cannot_be_meant) {
  const auto& shards = test_shards(2);
  const auto keys = upload(shards, column<u32>{{1, 2}, {3}}), one = upload(test_shards(1), column<u32>{{1}});
  expect_error<roost::invalid_argument>([&] { map_type(shards, one, keys); },
                                        {"sharded_map", "1 ranges for 2"});
  expect_error<roost::invalid_argument>(
      [&] { map_type(shards, keys, upload(shards, column<u32>{{1, 2}, {}})); },
      {"sharded_map", "1 keys but 0 values"});
  expect_error<roost::invalid_argument>([&] { map_type(shards, keys, keys, {.load_factor = -1}); },
                                        {"load factor -1"});
  const map_type map(shards, keys, keys);
  auto small = filled_like<u32>(shards, column<u32>{{1, 2}, {}}, 5);
  expect_error<roost::invalid_argument>([&] { map.find(shards, keys, small, 0); },
                                        {"sharded_map::find", "room for 0 results, 1 needed"});
  expect_error<roost::invalid_argument>([&] { map.count_found(test_shards(3), keys); },
                                        {"sharded_map::count_found", "2 shards on a place of 3"});
  EXPECT_EQ(map.count_found(shards, keys), 3u) << "and goes on to work";
  expect_error<roost::invalid_argument>([] { roost::host_shards(0); }, {"0 shards", "1 to 64"});
  expect_error<roost::invalid_argument>([] { roost::host_shards(65); }, {"65 shards"});
}

TEST(sharded_map_class, memory_that_is_refused) {
  const auto& rich = test_shards(3);
  const auto keys = upload(rich, split(from_numbers<u32>(multiples(3000, 3)), 3)),
             others = upload(rich, split(from_numbers<u32>(multiples(90, 7)), 3));
  const auto found_in = [&](const shards_type& shards, const map_type& map) {
    auto results = filled_like<u32>(rich, keys, 0);
    map.find(shards, keys, results, 1, {.path = path::regional});
    return flat(rich, results);
  };
  const auto expect = [&](const auto& call) {
    expect_refusals(
        refused::changes_nothing, [&](const shards_type& shards) { return map_type(shards, others, others); },
        call,
        [&](const shards_type& shards, const map_type& map) {
          EXPECT_TRUE(map.valid(shards));
          auto state = found_in(shards, map);
          state.push_back(static_cast<u32>(map.size()));
          state.push_back(static_cast<u32>(map.count_found(shards, others)));
          return state;
        },
        rich, three_shards);
  };
  expect([&](const shards_type& shards, map_type& map) { map.rebuild(shards, keys, keys); });
  expect([&](const shards_type& shards, map_type& map) { found_in(shards, map); });
}

/// A shard that fails while others wait for it, or use what it has.
TEST(shards, end_together) {
  const auto& shards = test_shards(5);
  for (std::uint32_t bad = 0; bad < 5; ++bad) {
    std::atomic<int> reached{0};
    const auto run = [&] {
      shards.run([&](auto& me) {
        const memory_of<u32> mine(me.place(), 100);
        const roost::detail::in_use_by_others scope(me);
        EXPECT_EQ(me.gather({me.number()}).sum(), 10u);
        if (me.number() == bad) throw roost::error("shard " + std::to_string(bad));
        me.gather({1});
        ++reached;
      });
    };
    expect_error<roost::error>(run, {"shard " + std::to_string(bad)});
    EXPECT_EQ(reached, 0);
  }
  std::atomic<u64> sum{0};
  shards.run([&](auto& me) { sum += me.gather({me.number() + 1}).most(); });
  EXPECT_EQ(sum, 25u);
}

TEST(sharded_set_class, answers_as_one_set) {
  for (const std::size_t count : {1, 2, 5}) {
    const auto& shards = test_shards(count);
    const auto keys = from_numbers<u32>(random_numbers(sanitized ? 2000 : 20000, 3, 15000));
    const auto queries = present_and_others(keys);
    const auto there = upload(shards, split(keys, count)), queried = upload(shards, split(queries, count));
    const oracle_set<u32> oracle(keys.begin(), keys.end());
    set_type set(shards, there, {.load_factor = 0.7});
    EXPECT_EQ(set.size(), oracle.size());
    EXPECT_TRUE(set.valid(shards));
    auto results = filled_like<bool>(shards, queried, true);
    set.contains(shards, queried, results, {.path = path::regional});
    const auto answers = flat(shards, results);
    const auto order = flat(split(queries, count));
    std::size_t wrong = 0, found = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool here = oracle.count(order[i]) != 0;
      wrong += (answers[i] != 0) != here;
      found += here;
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(set.count_found(shards, queried), found);
    column_of_shards<u32> out;
    for (std::size_t s = 0; s < count; ++s) out.emplace_back(shards[s], set.shard(s).size());
    EXPECT_EQ(set.retrieve_all(shards, out), oracle.size());
    const auto all = flat(shards, out);
    EXPECT_TRUE((oracle_set<u32>(all.begin(), all.end()) == oracle));
    set.rebuild(shards, out);
    EXPECT_EQ(set.count_found(shards, queried), found);
  }
}

}  // namespace
}  // namespace test
