#include <cmath>
#include <roost/frozen_multimap.hpp>

#include "support/keys.hpp"
#include "support/refusals.hpp"

// frozen_multimap against a map of vectors: every call, any multiplicity.

namespace test {
namespace {

using roost::path;

template <class Key, class Value>
struct types {
  using key = Key;
  using value = Value;
  using map = roost::frozen_multimap<Key, Value, place_type>;
};

template <class Key, class Value>
struct sum_matches {
  u64* sums;  // of query numbers and values, of matches
  ROOST_FN void operator()(u64 query, const Value& value) const {
    roost::detail::fetch_add(sums[0], query * 31 + roost::hash_of(value));
    roost::detail::fetch_add(sums[1], u64{1});
  }
};
template <class Key, class Value>
struct sum_pairs {
  u64* sums;
  ROOST_FN void operator()(const Key& key, const Value& value) const {
    roost::detail::fetch_add(sums[0], u64{roost::hash_of(key)} * 31 + roost::hash_of(value));
    roost::detail::fetch_add(sums[1], u64{1});
  }
};

template <class Ref, class Key>
struct ask {
  Ref ref;
  const Key* queries;
  u64* counts;
  u64* hashes;  // of the values, in order
  ROOST_FN void operator()(std::size_t i) const {
    u64 hash = 0;
    for (const auto& value : ref.find(queries[i])) hash = roost::mix64(hash, roost::hash_of(value));
    counts[i] = ref.contains(queries[i]) ? ref.count(queries[i]) : 0;
    hashes[i] = hash;
  }
};

/// All that a map of these pairs says, against the oracle. Queries: so many pairs' keys, and as many others.
template <class T>
void check(const std::vector<u64>& key_numbers, const std::vector<u64>& value_numbers,
           std::size_t queries_of_pairs = 1500) {
  using key = typename T::key;
  using value = typename T::value;
  oracle_map<key, std::vector<value>> oracle, got;
  std::vector<key> keys;
  std::vector<value> values;
  for (std::size_t i = 0; i < key_numbers.size(); ++i) {
    keys.push_back(from_number<key>(key_numbers[i]));
    values.push_back(from_number<value>(value_numbers[i]));
    oracle[keys[i]].push_back(values[i]);
  }
  const auto& place = test_place();
  const typename T::map map(place, upload(keys), upload(values));
  ASSERT_EQ(map.size(), keys.size());
  ASSERT_EQ(map.key_count(), oracle.size());
  EXPECT_EQ(map.empty(), keys.empty());
  EXPECT_TRUE(map.valid(place));

  std::vector<key> queries;
  for (u64 i = 0; i < std::min(queries_of_pairs, keys.size()); ++i) {
    queries.push_back(keys[roost::mix64(i, 5) % keys.size()]);
    queries.push_back(from_number<key>(roost::mix64(i, 99)));
  }
  u64 total = 0, pair_hash = 0;
  std::vector<u64> offsets{0};
  std::vector<value> expected;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const auto at = oracle.find(queries[i]);
    if (at != oracle.end()) {
      for (const value& v : at->second) {
        if (expected.size() < 20'000'000) expected.push_back(v);
        pair_hash += i * 31 + roost::hash_of(v);
      }
      total += at->second.size();
    }
    offsets.push_back(total);
  }
  ASSERT_EQ(total, expected.size()) << "a test that asks for too much";
  const auto asked = upload(queries);

  for (const path way : {path::direct, path::regional}) {
    auto counts = filled<u32>(queries.size(), 7);
    map.count(place, asked, counts, {.path = way});
    auto contained = filled<bool>(queries.size(), false);
    map.contains(place, asked, contained, {.path = way});
    const auto counted = download(counts);
    const auto there = download(contained);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < queries.size(); ++i)
      wrong += counted[i] != offsets[i + 1] - offsets[i] || (there[i] != 0) != (counted[i] != 0);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(map.count_matches(place, asked, {.path = way}), total);

    const value missing = from_number<value>(77);
    auto firsts = filled<value>(queries.size(), value{});
    map.find_first(place, asked, firsts, missing, {.path = way});
    const auto first = download(firsts);
    for (std::size_t i = 0; i < queries.size(); ++i)
      wrong += !(first[i] == (offsets[i] == offsets[i + 1] ? missing : expected[offsets[i]]));
    EXPECT_EQ(wrong, 0u);

    const auto all = map.retrieve(place, asked, {.path = way});
    EXPECT_EQ(roost::copy_to_host(place, all.offsets), offsets);
    EXPECT_TRUE(roost::copy_to_host(place, all.values) == expected);

    const auto pairs = map.retrieve_pairs(place, asked, {.path = way});
    const auto query_numbers = roost::copy_to_host(place, pairs.queries);
    wrong = 0;
    for (std::size_t q = 0; q < queries.size(); ++q) {
      for (u64 i = offsets[q]; i < offsets[q + 1]; ++i) wrong += query_numbers[i] != q;
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(roost::copy_to_host(place, pairs.values) == expected);

    auto sums = filled<u64>(2, 0);
    map.for_each_match(place, asked, sum_matches<key, value>{sums.data()}, {.path = way});
    EXPECT_EQ(roost::copy_to_host(place, sums), (std::vector<u64>{pair_hash, total}));
  }

  // One by one.
  auto counts = filled<u64>(queries.size(), 7), hashes = filled<u64>(queries.size(), 7);
  place.for_each(queries.size(),
                 ask<typename T::map::ref_type, key>{map.ref(), asked.data(), counts.data(), hashes.data()});
  const auto counted = download(counts), hashed = download(hashes);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    u64 hash = 0;
    for (u64 m = offsets[i]; m < offsets[i + 1]; ++m) hash = roost::mix64(hash, roost::hash_of(expected[m]));
    wrong += counted[i] != offsets[i + 1] - offsets[i] || hashed[i] != hash;
  }
  EXPECT_EQ(wrong, 0u);

  // All of it.
  auto keys_out = filled<key>(map.size(), key{});
  auto values_out = filled<value>(map.size(), value{});
  EXPECT_EQ(map.retrieve_all(place, keys_out, values_out), map.size());
  const auto all_keys = download(keys_out);
  const auto all_values = download(values_out);
  u64 hash = 0;
  for (std::size_t i = 0; i < all_keys.size(); ++i) {
    got[all_keys[i]].push_back(all_values[i]);
    hash += u64{roost::hash_of(all_keys[i])} * 31 + roost::hash_of(all_values[i]);
  }
  EXPECT_TRUE(got == oracle);
  auto sums = filled<u64>(2, 0);
  map.for_each(place, sum_pairs<key, value>{sums.data()});
  EXPECT_EQ(roost::copy_to_host(place, sums), (std::vector<u64>{hash, map.size()}));
}

std::vector<u64> values_of(std::size_t n) {
  std::vector<u64> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(roost::mix64(i));
  return values;
}

template <class T>
void check(const std::vector<u64>& keys, std::size_t queries_of_pairs = 1500) {
  check<T>(keys, values_of(keys.size()), queries_of_pairs);
}

/// n keys that come `each` times, in a random order.
std::vector<u64> repeated(std::size_t n, std::size_t each) {
  std::vector<u64> keys;
  for (std::size_t i = 0; i < n * each; ++i) keys.push_back(roost::mix64(i / each, 3));
  return shuffled(std::move(keys), 8);
}

template <class T>
class frozen_multimap : public testing::Test {};

using multimaps = axis<types<u32, u32>, types<u32, u64>, types<u64, u16>, types<twelve, u32>, types<u64, u64>,
                       types<u32, twelve>>;
TYPED_TEST_SUITE(frozen_multimap, multimaps);

TYPED_TEST(frozen_multimap, of_any_number_of_pairs) {
  for (const std::size_t n : {0, 1, 2, 5, 31, 100, 1000, 1739, 2048, 5000, 20000})
    check<TypeParam>(random_numbers(n, n));
}

TYPED_TEST(frozen_multimap, with_any_number_of_values_for_a_key) {
  for (const std::size_t each : {2, 8, 33, 100, 1000})
    check<TypeParam>(repeated((sanitized ? 4000 : 20000) / each, each), sanitized ? 300 : 1500);
  check<TypeParam>(repeated(3, 3000));
}

TYPED_TEST(frozen_multimap, of_one_key) {
  for (const std::size_t n : {1, 2, 64, 2047, 2048, 2049, 6000}) check<TypeParam>(std::vector<u64>(n, 0), 20);
}

TYPED_TEST(frozen_multimap, with_frequent_keys) {
  if (sanitized && !std::is_same_v<TypeParam, types<u32, u32>>)
    GTEST_SKIP() << "of one type where everything is slow";
  std::vector<u64> half = random_numbers(1'000'000, 6), falling = half;
  for (std::size_t i = 0; i < half.size(); i += 2) half[i] = 42;
  // Zipf's law, nearly: key k has a share of 1 / k.
  for (std::size_t i = 0; i < falling.size(); ++i)
    falling[i] = static_cast<u64>(std::exp(static_cast<double>(falling[i] % 1'000'003) / 1'000'003 * 12));
  check<TypeParam>(half, 3);
  check<TypeParam>(falling, 10);
  check<TypeParam>(std::vector<u64>(700'000, 3), 1);
}

TYPED_TEST(frozen_multimap, of_keys_in_order_and_of_every_kind) {
  check<TypeParam>(multiples(20000, 1));
  check<TypeParam>(multiples(5000, u64{1} << 32));
  std::vector<u64> edge{0, ~u64{0}, 0, 1, ~u64{0}, u64{1} << 63, 0xffffffffu};
  check<TypeParam>(edge);
}

struct twice {
  ROOST_FN u32 operator()(std::size_t i) const { return static_cast<u32>(i / 2); }
};

struct twice_at_the_end {
  std::size_t n;
  ROOST_FN u32 operator()(std::size_t i) const { return i + 2 < n ? 0 : 7; }
};

TEST(frozen_multimap_calls, say_what_memory_they_hold) {
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    const roost::frozen_multimap map(place, roost::computed(1000, twice()), roost::computed(1000, twice()));
    EXPECT_EQ(map.bytes(), memory.live_bytes());
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TEST(frozen_multimap_calls, of_computed_pairs_and_rebuilt) {
  const auto& place = test_place();
  roost::frozen_multimap map(place, roost::computed(1000, twice()), roost::computed(1000, twice()),
                             {.load_factor = 0.5, .seed = 9});
  EXPECT_EQ(map.key_count(), 500u);
  EXPECT_EQ(map.statistics().duplicates, 500u);
  EXPECT_THROW(map.rebuild(place, upload(std::vector<u32>(3)), upload(std::vector<u32>(2))),
               roost::invalid_argument);
  EXPECT_EQ(map.size(), 1000u);
  map.rebuild(place, upload(std::vector<u32>{5, 5, ~0u}), upload(std::vector<u32>{1, 2, 3}));
  const auto all = map.retrieve(place, upload(std::vector<u32>{~0u, 4, 5}));
  EXPECT_EQ(download(all.offsets), (std::vector<u64>{0, 1, 1, 3}));
  EXPECT_EQ(download(all.values), (std::vector<u32>{3, 1, 2}));
}

TEST(frozen_multimap_calls, rebuild_that_is_refused_memory_changes_nothing) {
  using map_type = roost::frozen_multimap<u32, u32, place_type>;
  const auto first = upload(from_numbers<u32>(random_numbers(3000, 1, 900))),
             second = upload(from_numbers<u32>(random_numbers(5000, 2, 2000)));
  expect_refusals(
      refused::changes_nothing, [&](const place_type& place) { return map_type(place, first, first); },
      [&](const place_type& place, map_type& map) { map.rebuild(place, second, second); },
      [&](const place_type& place, const map_type& map) {
        EXPECT_TRUE(map.valid(place));
        const auto all = map.retrieve(test_place(), second);
        return bytes_of(all.offsets, all.values) + std::to_string(map.size());
      });
}

// Tables of few keys take the groups of several regions together; those that are much larger than the pairs
// cannot.
TEST(frozen_multimap_calls, of_any_load_and_any_number_of_different_keys) {
  const auto& place = test_place();
  const std::size_t n = sanitized ? 100'000 : 500'000;
  for (const std::size_t different : {1, 2, 40, 3000, 100'000}) {
    const auto keys = upload(from_numbers<u32>(random_numbers(n, 5, different)));
    for (const double load : {0.02, 0.5, 0.8, 1.0}) {
      const roost::frozen_multimap map(place, keys, roost::computed(n, roost::detail::number<u32>()),
                                       {.load_factor = load});
      EXPECT_TRUE(map.valid(place)) << different << ' ' << load;
      EXPECT_EQ(map.count_matches(place, map.keys()), n);
    }
  }
}

TEST(frozen_multimap_calls, match_of_all_queries) {
  const auto& place = test_place();
  const roost::frozen_multimap map(place, upload(std::vector<u32>{5, 5, 7}),
                                   upload(std::vector<u32>{1, 2, 3}));
  const auto queries = upload(std::vector<u32>{1, 5, 1, 7, 9});
  const auto found = map.match_outer(place, queries, 99u);
  EXPECT_EQ(found.size(), 6u);
  EXPECT_EQ(roost::copy_to_host(place, found.offsets()), (std::vector<u64>{0, 1, 3, 4, 5, 6}));
  auto values = filled<u32>(6, 0);
  found.retrieve(place, values);
  EXPECT_EQ(download(values), (std::vector<u32>{99, 1, 2, 99, 3, 99}));
  auto numbers = filled<std::uint8_t>(6, 0);
  found.retrieve_pairs(place, numbers, values);
  EXPECT_EQ(download(numbers), (std::vector<std::uint8_t>{0, 1, 1, 2, 3, 4}));
  EXPECT_EQ(download(values), (std::vector<u32>{99, 1, 2, 99, 3, 99}));
}

/// Queries in a map of distinct keys. `numbers`: of the queries that are present.
template <class Value>
void check_matches_of_distinct_keys(const std::vector<u32>& queries, const std::vector<u64>& wanted_offsets,
                                    const std::vector<u32>& wanted, const std::vector<u32>& numbers) {
  const auto& place = test_place();
  const roost::frozen_multimap map(place, upload(std::vector<u32>{5, 6, 7}),
                                   upload(std::vector<Value>{Value{1}, Value{2}, Value{3}}));
  const auto batch = upload(queries);
  const std::vector<Value> values(wanted.begin(), wanted.end());
  const auto all = map.retrieve(place, batch);
  EXPECT_EQ(roost::copy_to_host(place, all.offsets), wanted_offsets);
  EXPECT_EQ(download(all.values), values);
  const auto pairs = map.retrieve_pairs(place, batch);
  EXPECT_EQ(download(pairs.queries), std::vector<u64>(numbers.begin(), numbers.end()));
  EXPECT_EQ(download(pairs.values), values);
  const auto outer = map.match_outer(place, batch, Value{9});
  ASSERT_EQ(outer.size(), queries.size());
  auto outer_values = filled<Value>(queries.size(), Value{0});
  outer.retrieve(place, outer_values);
  std::vector<Value> wanted_outer(queries.size(), Value{9});
  for (std::size_t i = 0; i < numbers.size(); ++i) wanted_outer[numbers[i]] = values[i];
  EXPECT_EQ(download(outer_values), wanted_outer);
  EXPECT_EQ(roost::copy_to_host(place, outer.offsets()).back(), queries.size());
}

TEST(frozen_multimap_calls, match_distinct_keys) {
  const auto check = [](const auto&... arguments) {
    check_matches_of_distinct_keys<u32>(arguments...);
    check_matches_of_distinct_keys<u64>(arguments...);
  };
  using list = std::vector<u32>;
  check(list{7, 5, 7, 6}, std::vector<u64>{0, 1, 2, 3, 4}, list{3, 1, 3, 2}, list{0, 1, 2, 3});
  check(list{7, 4, 7, 9}, std::vector<u64>{0, 1, 1, 2, 2}, list{3, 3}, list{0, 2});
  check(list{1, 2}, std::vector<u64>{0, 0, 0}, list{}, list{});
  check(list{}, std::vector<u64>{0}, list{}, list{});
}

struct turn_around {
  ROOST_FN void operator()(const u32& key, u32* values, u64 count) const {
    for (u64 i = 0; i < count / 2; ++i) std::swap(values[i], values[count - 1 - i]);
    values[0] += key;
  }
};

TEST(frozen_multimap_calls, change_the_values_of_a_key_in_place) {
  const auto& place = test_place();
  roost::frozen_multimap map(place, upload(std::vector<u32>{5, 7, 5, 5, 9, 9}),
                             upload(std::vector<u32>{1, 2, 3, 4, 5, 6}));
  map.for_each_key(place, turn_around());
  const auto all = map.retrieve(place, upload(std::vector<u32>{5, 7, 9}));
  EXPECT_EQ(download(all.values), (std::vector<u32>{4 + 5, 3, 1, 2 + 7, 6 + 9, 5}));
  EXPECT_TRUE(map.valid(place));
}

TEST(frozen_multimap_calls, refuse_room_that_is_too_small) {
  const auto& place = test_place();
  const roost::frozen_multimap map(place, upload(std::vector<u32>{5, 5, 7}),
                                   upload(std::vector<u32>{1, 2, 3}));
  const auto queries = upload(std::vector<u32>(300, 5));
  const auto found = map.match(place, queries);
  auto small = filled<u32>(599, 0), enough = filled<u32>(600, 0);
  auto bytes = filled<std::uint8_t>(600, 0);
  EXPECT_THROW(found.retrieve(place, small), roost::invalid_argument);
  EXPECT_THROW(found.retrieve_pairs(place, small, enough), roost::invalid_argument);
  EXPECT_THROW(found.retrieve_pairs(place, bytes, enough),
               roost::invalid_argument);  // 300 queries have no numbers of a byte
  EXPECT_THROW(map.count(place, queries, filled<u32>(299, 0)), roost::invalid_argument);
  EXPECT_THROW(map.retrieve_all(place, small, filled<u32>(2, 0)), roost::invalid_argument);
  auto counts = filled<std::int8_t>(300, 0);
  map.count(place, queries, counts);
  EXPECT_EQ(download(counts)[299], 2);
}

TEST(frozen_multimap_calls, counts_that_do_not_fit_are_the_greatest_there_are) {
  const auto& place = test_place();
  const roost::frozen_multimap map(place, upload(std::vector<u32>(1000, 5)),
                                   upload(std::vector<u32>(1000, 1)));
  auto bytes = filled<std::uint8_t>(1, 0);
  auto signed_bytes = filled<std::int8_t>(1, 0);
  map.count(place, upload(std::vector<u32>{5}), bytes);
  map.count(place, upload(std::vector<u32>{5}), signed_bytes);
  EXPECT_EQ(download(bytes)[0], 255);
  EXPECT_EQ(download(signed_bytes)[0], 127);
}

// A count beyond the bits that a lookup carries.
TEST(frozen_multimap_calls, of_more_than_2_to_24_values_of_a_key_large) {
  const auto& place = test_place();
  const std::size_t n = (std::size_t{1} << 24) + 1000;
  const roost::frozen_multimap map(place, roost::computed(n, twice_at_the_end{n}),
                                   roost::computed(n, roost::detail::number<u32>()));
  const auto queries = upload(std::vector<u32>{0, 7, 8, 0});
  EXPECT_EQ(map.count_matches(place, queries), 2 * (n - 2) + 2);
  const auto found = map.match(place, queries);
  EXPECT_EQ(roost::copy_to_host(place, found.offsets()), (std::vector<u64>{0, n - 2, n, n, 2 * n - 2}));
}

}  // namespace
}  // namespace test
