#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <roost/group_by.hpp>
#include <roost/two_way_index.hpp>
#include <unordered_map>

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

/// A key without operators.
struct cell {
  u32 x, y;
};

TEST(group_by_calls, compare_few_keys_by_their_bytes) {
  for (const std::size_t n : {1000, 200000}) {
    std::vector<cell> keys(n);
    for (u32 i = 0; i < n; ++i) keys[i] = {i % 2, i % 5};
    const auto ones = upload(std::vector<u32>(n, 1));
    const auto counts = roost::group_by(test_place(), upload(keys), ones, roost::plus());
    EXPECT_EQ(download(counts.values), std::vector<u32>(10, static_cast<u32>(n / 10)));
  }
}

// Aggregates without grouping: bit by bit what combining the values in input order gives.

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// The host numbers few keys in batches of 2^17 rows and more, and combines values where they lie.

/// What group_by makes of values: f over pieces of 32, and so on over the results.
template <class Value, class F>
Value nested(std::vector<Value> values, const F& f) {
  while (values.size() > 1) {
    std::vector<Value> results;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 32 == 0) {
        results.push_back(values[i]);
      } else {
        results.back() = f(results.back(), values[i]);
      }
    }
    values = std::move(results);
  }
  return values[0];
}

template <class Key>
void check_nesting(const std::vector<u64>& numbers) {
  std::vector<Key> keys;
  std::vector<double> values;
  std::vector<ends> rows;
  oracle_map<Key, std::vector<double>> of_key;
  oracle_map<Key, ends> ends_of;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    keys.push_back(from_number<Key>(numbers[i]));
    values.push_back(static_cast<double>(roost::mix64(i)) / 1e10 * (i % 7 == 0 ? -1e6 : 1));
    rows.push_back({i, i, 1});
    of_key[keys[i]].push_back(values[i]);
    const auto [at, fresh] = ends_of.emplace(keys[i], rows[i]);
    if (!fresh) at->second = join_ends()(at->second, rows[i]);
  }
  const auto there = upload(keys);
  const auto sums = roost::group_by(test_place(), there, upload(values), roost::plus());
  const auto found = download(sums.keys);
  const auto results = download(sums.values);
  const auto counts = download(sums.counts);
  ASSERT_EQ(found.size(), of_key.size());
  std::size_t wrong = 0;
  for (std::size_t g = 0; g < found.size(); ++g) {
    const auto& all = of_key.at(found[g]);
    wrong += !same_bits(results[g], nested(all, roost::plus())) || counts[g] != all.size();
  }
  EXPECT_EQ(wrong, 0u) << numbers.size() << " rows, " << found.size() << " groups";
  const auto joined = roost::group_by(test_place(), there, upload(rows), join_ends(), {.counts = false});
  const auto joined_keys = download(joined.keys);
  const auto joined_ends = download(joined.values);
  EXPECT_EQ(joined.counts.size(), 0u);
  ASSERT_EQ(joined_keys.size(), of_key.size());
  for (std::size_t g = 0; g < joined_keys.size(); ++g) wrong += joined_ends[g] != ends_of.at(joined_keys[g]);
  EXPECT_EQ(wrong, 0u) << numbers.size() << " rows, " << found.size() << " groups";
}

TEST(group_by_calls, nest_few_keys_as_many) {
  constexpr std::size_t least = 1 << 17;
  for (const u64 groups : {1, 2, 33, 1000, 4000, 16384, 20000}) {
    if (sanitized && groups != 33 && groups < 16384) continue;
    check_nesting<u32>(random_numbers(least - 1, groups, groups - 1));
    check_nesting<u64>(random_numbers(least + groups, groups, groups - 1));
  }
  check_nesting<sixteen>(random_numbers(300000, 1, 99));
  auto numbers = random_numbers(400000, 2, 500);
  std::sort(numbers.begin(), numbers.end());  // most chunks have few of the groups
  check_nesting<u64>(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {  // keys that the sample misses
    if (i % 100 == 37) numbers[i] = 1000 + i;
  }
  check_nesting<u64>(numbers);
  for (std::size_t i = 0; i < 16000; ++i) numbers[200000 + i] = 1000000 + i;  // and more than few of them
  check_nesting<u32>(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % 64 == 0 ? 5 : i;  // or all
  check_nesting<u64>(numbers);
}

/// The distinct keys, numbered by first occurrence, and the number of each item's key.
template <class Key>
struct numbered {
  oracle_map<Key, std::size_t> number;
  std::vector<std::size_t> of_item;
  std::vector<u64> counts;

  explicit numbered(const std::vector<Key>& keys) {
    for (const Key& key : keys) {
      const auto [at, fresh] = number.emplace(key, counts.size());
      if (fresh) counts.push_back(0);
      of_item.push_back(at->second);
      ++counts[at->second];
    }
  }

  template <class Value, class F>
  std::vector<Value> in_input_order(const std::vector<Value>& values, const F& f) const {
    std::vector<Value> result(counts.size());
    std::vector<char> seen(counts.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      Value& mine = result[of_item[i]];
      mine = seen[of_item[i]] ? f(mine, values[i]) : values[i];
      seen[of_item[i]] = 1;
    }
    return result;
  }
};

template <class Key, class Value, class... F>
void check_functions(const std::vector<Key>& keys, const std::vector<Value>& values,
                     const roost::group_options& options, const F&... f) {
  const auto columns = upload(keys);
  const auto numbers = upload(values);
  const auto all = roost::group_by(test_place(), columns, numbers, std::tuple(f...), options);
  const auto of = download(all.keys);
  const auto counts = download(all.counts);
  const numbered<Key> oracle(keys);
  ASSERT_EQ(of.size(), oracle.counts.size());
  ASSERT_EQ(counts.size(), options.counts ? of.size() : 0);
  std::vector<std::size_t> number;
  std::vector<char> seen(of.size());
  for (const Key& key : of) {
    const auto at = oracle.number.find(key);
    ASSERT_TRUE(at != oracle.number.end() && !seen[at->second]) << "a key that is not there, or twice";
    seen[at->second] = 1;
    number.push_back(at->second);
  }
  std::size_t k = 0;
  const auto check_one = [&](const auto& function) {
    const auto expected = oracle.in_input_order(values, function);
    const auto results = [&] {
      if constexpr (sizeof...(F) == 1) {
        return download(all.values);
      } else {
        return download(all.values[k]);
      }
    }();
    std::size_t wrong = 0;
    for (std::size_t g = 0; g < of.size(); ++g) {
      wrong += same_bits(expected[number[g]], results[g]) ? 0 : 1;
      if (options.counts) wrong += counts[g] == oracle.counts[number[g]] ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0u) << keys.size() << " items, " << of.size() << " groups, function " << k;
    ++k;
  };
  (check_one(f), ...);
  const auto again = roost::group_by(test_place(), columns, numbers, std::tuple(f...), options);
  EXPECT_EQ(download(again.keys), of) << "another order";
}

template <class Key, class Value>
void check_aggregates(const std::vector<u64>& numbers) {
  std::vector<Key> keys;
  std::vector<Value> values;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    keys.push_back(from_number<Key>(numbers[i]));
    values.push_back(static_cast<Value>(roost::mix64(i + 7)));
    if (std::is_floating_point_v<Value> && i % 3 != 0) values.back() = -values.back();
    if (i % 5 == 0)
      values.back() = i % 2 ? std::numeric_limits<Value>::max() : std::numeric_limits<Value>::lowest();
  }
  const roost::group_options counted, alone{.counts = false};
  if constexpr (std::is_integral_v<Value>) {
    check_functions(keys, values, counted, roost::plus(), roost::minimum(), roost::maximum(),
                    roost::bit_and(), roost::bit_or(), roost::bit_xor());
    check_functions(keys, values, alone, roost::plus());
    check_functions(keys, values, counted, roost::minimum(), roost::plus());
    check_functions(keys, values, counted, roost::multiplies());
  } else {
    check_functions(keys, values, counted, roost::minimum(), roost::maximum());
    check_functions(keys, values, alone, roost::maximum());
  }
}

/// Numbers of which half are one of `hot`, and the others one of `groups`.
std::vector<u64> skewed_numbers(std::size_t n, u64 hot, u64 groups) {
  auto numbers = random_numbers(n, 5, groups);
  for (std::size_t i = 0; i < n; i += 2) numbers[i] = roost::mix64(i) % hot;
  return numbers;
}

// From 32768 items on frequent keys are looked for on the host; on cuda up to 2^18 items are added to tables
// in its memory, and up to 2^23 the host does not wait for the sample. Regions have 2560 or 8192 keys; more
// keys than tables of one pass can have are split twice.
template <class Value>
class aggregates : public testing::Test {};
using aggregated_values = axis<u32, std::int8_t, std::int64_t, double>;
TYPED_TEST_SUITE(aggregates, aggregated_values);

TYPED_TEST(aggregates, are_those_of_the_input_order) {
  for (const std::size_t n : {1, 2, 2559, 2561, 5121, 8191, 8193, 32767, 32768, 100000}) {
    check_aggregates<u32, TypeParam>(random_numbers(n, n));
    check_aggregates<u64, TypeParam>(random_numbers(n, 9, n / 3 + 1));
  }
  for (const u64 groups : {1, 2, 100, 3000, 20000}) {
    check_aggregates<u32, TypeParam>(random_numbers(60000, 3, groups));
    check_aggregates<u64, TypeParam>(skewed_numbers(60000, 300, groups));
  }
}

TEST(aggregates_calls, of_many_items) {
  const bool on_host = std::is_same_v<place_type, roost::host>;
  for (const std::size_t n : on_host
                                 ? std::vector<std::size_t>{1 << 18}
                                 : std::vector<std::size_t>{1 << 18, (1 << 18) + 1, 1 << 20, (1 << 23) + 1}) {
    const auto check_sums = [&]<class Value>(const std::vector<u64>& numbers, Value) {
      std::vector<Value> values;
      for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<Value>(roost::mix64(i)));
      check_functions(from_numbers<u32>(numbers), values, {}, roost::plus(), roost::maximum());
    };
    check_sums(random_numbers(n, 3), u32());
    check_sums(random_numbers(n, 4, n / 8), std::int64_t());
    check_sums(random_numbers(n, 5, 1000), u32());
    check_sums(random_numbers(n, 6, 4000), std::int64_t());  // as many frequent keys as can be, or more
    check_sums(skewed_numbers(n, 1, n), u32());
    check_sums(skewed_numbers(n, 500, n / 4), std::int64_t());
    check_sums(std::vector<u64>(n, 7), u32());
  }
}

/// The k-th number in proportion to about 1 / k, below n, a power of two.
struct zipf_number {
  u64 octaves;
  explicit zipf_number(std::size_t n) : octaves(static_cast<u64>(std::countr_zero(n))) {}
  ROOST_FN u32 operator()(std::size_t i) const {
    const u64 bits = roost::mix64(i);
    const u64 octave = (bits & 0xffffffff) * octaves >> 32;
    return static_cast<u32>((u64{1} << octave) + (bits >> 32) % (u64{1} << octave));
  }
};

/// So many rows that regions are counted before the second pass, and those of some keys are crowded.
TEST(aggregates_calls, of_skewed_keys_large) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  const std::size_t n = on_host ? 1 << 24 : 1 << 25;
  const auto check_keys = [&]<class Key>(Key) {
    std::vector<Key> keys(n);
    std::vector<u32> values(n);
    std::vector<u32> sums(n), counts(n), most(n);
    const zipf_number number(n);
    for (std::size_t i = 0; i < n; ++i) {
      const u32 k = number(i);
      keys[i] = from_number<Key>(k);
      values[i] = static_cast<u32>(roost::mix64(i + n));
      sums[k] += values[i];
      ++counts[k];
      most[k] = std::max(most[k], values[i]);
    }
    const auto all = roost::group_by(test_place(), upload(keys), upload(values),
                                     std::tuple(roost::plus(), roost::maximum()));
    const auto of = download(all.keys);
    const auto their_sums = download(all.values[0]), their_most = download(all.values[1]);
    const auto their_counts = download(all.counts);
    std::unordered_map<Key, u32> numbers;
    for (u32 k = 0; k < n; ++k) {
      if (counts[k] != 0) numbers.emplace(from_number<Key>(k), k);
    }
    ASSERT_EQ(of.size(), numbers.size());
    std::size_t wrong = 0;
    for (std::size_t g = 0; g < of.size(); ++g) {
      const auto at = numbers.find(of[g]);
      ASSERT_TRUE(at != numbers.end());
      const u32 k = at->second;
      wrong += their_sums[g] != sums[k] || their_counts[g] != counts[k] || their_most[g] != most[k];
      counts[k] = 0;  // a key that is there twice is wrong
    }
    EXPECT_EQ(wrong, 0u);
  };
  check_keys(u32());
  if (!on_host) check_keys(u64());
}

#if defined(__CUDACC__)
/// Key i / 4 of scrambled rows: the sample has one pair, and a table that counts the keys of a region is
/// full.
struct fourth_key {
  std::size_t n;
  ROOST_FN u32 operator()(std::size_t i) const {
    return roost::mix32(static_cast<u32>(((i * 2654435761u + 12345) & (n - 1)) / 4) + 1);
  }
};
struct wrong_fourth {
  const u32* sums;
  const u64* counts;
  ROOST_FN u64 operator()(std::size_t g) const { return sums[g] != 12 || counts[g] != 4; }
};
TEST(aggregates_calls, of_regions_whose_keys_cannot_be_counted_large) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  const std::size_t n = 1 << 28;
  const auto& place = test_place();
  const roost::computed keys(n, fourth_key{n});
  const roost::computed threes(n, roost::detail::constant<u32>{3});
  const auto source = roost::detail::zip_checked(keys, threes, "test");
  const auto all = roost::detail::aggregator<place_type, u32, u32, roost::plus>(place, n, true).run(source);
  ASSERT_TRUE(all) << "grouped instead, at a quarter of the rate";
  ASSERT_EQ(all->size(), n / 4);
  EXPECT_EQ(place.sum(all->size(), wrong_fourth{all->values.data(), all->counts.data()}), 0u);
  EXPECT_EQ(roost::unique_count(place, all->keys), n / 4) << "a key is there twice";
}
#endif

// More rows than 32 bits number are aggregated in chunks; here the chunks are small.
TEST(aggregates_calls, of_chunks_are_those_of_all_rows) {
  const auto check_chunks = [&]<class Key, class Value>(const std::vector<u64>& numbers, Key, Value) {
    const auto keys = upload(from_numbers<Key>(numbers));
    std::vector<Value> numbered;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbered.push_back(static_cast<Value>(roost::mix64(i) % 1000));
    const auto values = upload(numbered);
    const auto source = roost::detail::zip_checked(keys, values, "test");
    const auto run = [&](std::size_t most, bool counts) {
      return roost::detail::aggregate<place_type, Key, Value, roost::plus, roost::minimum, roost::maximum>(
          test_place(), source, counts, most);
    };
    const auto all = run(numbers.size(), true);
    ASSERT_TRUE(all);
    for (const std::size_t most : {numbers.size() - 1, numbers.size() / 2, numbers.size() / 7 + 1}) {
      for (const bool counts : {true, false}) {
        const auto parts = run(most, counts);
        ASSERT_TRUE(parts);
        EXPECT_EQ(download(parts->keys), download(all->keys));
        for (int k = 0; k < 3; ++k) EXPECT_EQ(download(parts->values[k]), download(all->values[k]));
        EXPECT_EQ(download(parts->counts), counts ? download(all->counts) : std::vector<u64>());
      }
    }
  };
  std::vector<u64> ascending;  // each chunk has its own keys, but for one
  for (u64 i = 0; i < 40000; ++i) ascending.push_back(i / 7);
  check_chunks(ascending, u64(), std::int64_t());
  check_chunks(random_numbers(40000, 1, 3000), u32(), u32());
  check_chunks(random_numbers(40000, 2, 100000), u64(), double());
  check_chunks(random_numbers(9000, 3, 200), std::uint8_t(), std::int16_t());
  check_chunks(random_numbers(9000, 4, 1), u32(), std::int8_t());
  const std::vector<double> nan(100, std::numeric_limits<double>::quiet_NaN());
  const auto keys = upload(std::vector<u32>(100, 3));
  const auto values = upload(nan);
  EXPECT_FALSE((roost::detail::aggregate<place_type, u32, double, roost::minimum>(
      test_place(), roost::detail::zip_checked(keys, values, "test"), true, 60)));
}

#if defined(__CUDACC__)
struct number_of_row {
  ROOST_FN u64 operator()(std::size_t i) const { return i; }
};
struct key_of_few {
  ROOST_FN u32 operator()(std::size_t i) const { return roost::mix32(static_cast<u32>(i % 1009)); }
};
struct wrong_of_few {
  const u32* keys;
  const u64* sums;
  const u64* counts;
  std::size_t n;
  ROOST_FN u64 operator()(std::size_t g) const {
    const u64 k = roost::unmix32(keys[g]), count = n / 1009 + (k < n % 1009 ? 1 : 0);
    return k >= 1009 || counts[g] != count || sums[g] != count * k + 1009 * (count * (count - 1) / 2);
  }
};
TEST(aggregates_calls, of_more_rows_than_32_bits_number_large) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  const std::size_t n = (std::size_t{1} << 32) + 12345;
  const auto all = roost::group_by(test_place(), roost::computed(n, key_of_few()),
                                   roost::computed(n, number_of_row()), roost::plus());
  ASSERT_EQ(all.size(), 1009u);
  EXPECT_EQ(
      test_place().sum(all.size(), wrong_of_few{all.keys.data(), all.values.data(), all.counts.data(), n}),
      0u);
}
#endif

// The Python package numbers groups by this order; those of few keys on the host are by first occurrence.
TEST(aggregates_calls, are_in_ascending_order_of_the_hashes_of_their_keys) {
  const auto check_order = [&]<class Key>(std::size_t n, u64 groups, Key) {
    if (std::is_same_v<place_type, roost::host> && n >= roost::detail::few_groups_rows && groups <= n / 64)
      return;
    const auto keys = upload(from_numbers<Key>(random_numbers(n, n, groups)));
    const auto of = download(roost::group_by(test_place(), keys, keys, roost::plus()).keys);
    EXPECT_TRUE(std::ranges::is_sorted(of, {}, [](const Key& key) { return roost::hash_of(key, 0); })) << n;
  };
  for (const std::size_t n : {1, 1000, 100'000, (1 << 18) + 1, 1 << 20}) {
    for (const u64 groups : {n / 2 + 1, n / 500 + 1}) {
      check_order(n, groups, u32());
      check_order(n, groups, u64());
    }
  }
}

TEST(aggregates_calls, of_the_first_and_the_last_keys_and_hashes) {
  std::vector<u64> numbers;
  std::vector<u32> words;
  for (u64 i = 0; i < 300; ++i) {
    for (const u64 end : {i, ~i}) {
      numbers.push_back(end);
      numbers.push_back(roost::key_of_hash<u64>(end));
      words.push_back(static_cast<u32>(end));
      words.push_back(roost::key_of_hash<u32>(static_cast<u32>(end)));
    }
  }
  numbers.insert(numbers.end(), numbers.begin(), numbers.end());
  words.insert(words.end(), words.begin(), words.end());
  const std::vector<std::int64_t> values(words.size(), -3);
  check_functions(numbers, values, {}, roost::plus(), roost::minimum());
  check_functions(words, values, {}, roost::plus(), roost::maximum());
}

TEST(aggregates_calls, of_keys_of_one_region) {
  std::vector<u64> keys;
  for (u64 i = 0; i < 100000; ++i) keys.push_back(roost::key_of_hash<u64>(roost::mix64(i) >> 12));
  keys.insert(keys.end(), keys.begin(), keys.begin() + 1000);
  check_functions(keys, std::vector<u32>(keys.size(), 5), {}, roost::plus());
}

TEST(aggregates_calls, of_a_frequent_key_that_the_sample_misses) {
  // Its region overflows after the values of another one, which the sample shows, have been added up.
  constexpr u32 step = 8, n = step * roost::detail::group_tuning<roost::cuda>::sample;
  std::vector<u32> keys(n), values(n);
  for (u32 i = 0; i < n; ++i) {
    const bool is_sampled = i % step == roost::mix64(i / step) % step;
    keys[i] = !is_sampled ? 1 : i / step % 2 == 0 ? 2 : i + 3;
    values[i] = i;
  }
  check_functions(keys, values, {}, roost::plus(), roost::maximum());
}

TEST(aggregates_calls, keep_the_sign_of_zero_and_what_a_NaN_does) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t n : {100, 40000}) {
    for (const float special : {nan, -0.0f}) {
      const auto keys = from_numbers<u32>(skewed_numbers(n, 2, 50));
      std::vector<float> values;
      for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<float>(roost::mix64(i) % 3));
      check_functions(keys, values, {}, roost::minimum(), roost::maximum());
      values[n / 2] = special;
      check_functions(keys, values, {}, roost::minimum(), roost::maximum());
      if (special == 0)
        check_functions(keys, values, {.order = roost::value_order::any}, roost::plus(), roost::minimum());
    }
  }
}

TEST(aggregates_calls, of_floating_point_numbers_in_any_order) {
  for (const u64 groups : {1, 10, 5000, 60000}) {
    const auto keys = from_numbers<u32>(skewed_numbers(60000, 2, groups));
    std::vector<float> whole;
    std::vector<double> small;
    for (u64 i = 0; i < keys.size(); ++i) {
      whole.push_back(static_cast<float>(roost::mix64(i) % 100));  // their sums are exact
      small.push_back(i % 3 ? -0.0 : static_cast<double>(roost::mix64(i) % 100) / 4);
    }
    check_functions(keys, whole, {.order = roost::value_order::any}, roost::plus(), roost::maximum());
    check_functions(keys, small, {.order = roost::value_order::any}, roost::plus());
    const auto columns = upload(keys);
    const auto numbers = upload(whole);
    const auto means = roost::group_means(test_place(), columns, numbers, {roost::value_order::any, false});
    EXPECT_EQ(means.counts.size(), 0u);
    const numbered<u32> oracle(keys);
    const auto sums = oracle.in_input_order(whole, roost::plus());
    const auto of = download(means.keys);
    const auto values = download(means.values);
    for (std::size_t g = 0; g < of.size(); ++g) {
      const std::size_t number = oracle.number.at(of[g]);
      ASSERT_EQ(values[g], static_cast<double>(sums[number]) / static_cast<double>(oracle.counts[number]));
    }
  }
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

TEST(group_by_calls, multiply) {
  const auto keys = upload(std::vector<u32>{7, 7});
  const auto product = [&]<class Value>(Value a, Value b) {
    const auto all = roost::group_by(test_place(), keys, upload(std::vector{a, b}), roost::multiplies());
    return download(all.values)[0];
  };
  EXPECT_EQ(product(std::uint16_t{65535}, std::uint16_t{65535}),
            1u);  // wraps around, also where int is wider
  EXPECT_EQ(product(std::numeric_limits<std::int64_t>::max(), std::int64_t{2}), -2);
  EXPECT_EQ(product(1.5, -4.0), -6.0);
}

TEST(group_by_calls, refuse_columns_that_are_not_equally_long) {
  const auto three = upload(std::vector<u32>(3)), two = upload(std::vector<u32>(2));
  EXPECT_THROW(roost::group_by(test_place(), three, two, roost::plus()), roost::invalid_argument);
  EXPECT_THROW(roost::group_means(test_place(), three, two), roost::invalid_argument);
}

}  // namespace
}  // namespace test
