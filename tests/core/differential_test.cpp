#include <map>
#include <optional>
#include <roost/columns/string_index.hpp>
#include <roost/shards/sharded_concurrent_map.hpp>
#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_join.hpp>
#include <roost/shards/sharded_multimap.hpp>
#include <roost/shards/sharded_set.hpp>
#include <roost/sorted_map.hpp>
#include <roost/sparse/kernel_map.hpp>
#include <roost/sparse/sparse_conv.hpp>

#include "support/shards.hpp"
#include "support/stadium.hpp"

// Every table and every function on columns beyond its largest threshold (tuning.hpp), against containers of
// the standard library: keys and values of many sizes, and one object used in many ways.

namespace test {
namespace {

using roost::path;

enum class spread { different, copies, crowded };

/// A column of keys, and what there is to know of it.
template <class Key>
struct input {
  std::vector<Key> keys, queries;
  oracle_map<Key, std::vector<u32>> rows;  // of each key
  std::vector<Key> distinct;               // in the order of their first rows

  const std::vector<u32>& rows_of(const Key& key) const {
    static const std::vector<u32> none;
    const auto known = rows.find(key);
    return known == rows.end() ? none : known->second;
  }
};

template <class Key>
input<Key> make_input(std::size_t n, spread how, u64 seed) {
  std::mt19937_64 random(seed);
  const auto key_of = [&](u64 number) { return from_number<Key>(number * 0x9e3779b97f4a7c15ull + seed); };
  const u64 below = how == spread::different ? n : n / (how == spread::copies ? 4 : 8) + 1;
  input<Key> result;
  for (std::size_t i = 0; i < n; ++i) {
    const bool frequent = how == spread::crowded && random() % 2 == 0;
    result.keys.push_back(key_of(how == spread::different ? i : frequent ? 0 : random() % below));
  }
  for (std::size_t i = 0; i < n / 2 + 3; ++i) result.queries.push_back(key_of(random() % (2 * below + 1)));
  for (std::size_t i = 0; i < n; ++i) {
    auto& rows = result.rows[result.keys[i]];
    if (rows.empty()) result.distinct.push_back(result.keys[i]);
    rows.push_back(static_cast<u32>(i));
  }
  return result;
}

/// A value that its row, or its key, decides.
template <class Value>
Value value_of(u64 number) {
  return from_number<Value>((number + 1) * 0xd1b54a32d192ed03ull);
}
template <class Value, class Key>
Value value_of_key(const Key& key, u64 turn) {
  return value_of<Value>(hash_bytes<Key>()(key) + turn);
}
template <class Value>
std::vector<Value> values_of_rows(std::size_t n) {
  std::vector<Value> result;
  for (std::size_t i = 0; i < n; ++i) result.push_back(value_of<Value>(i));
  return result;
}
template <class Value, class Key>
std::vector<Value> values_of_keys(const std::vector<Key>& keys, u64 turn) {
  std::vector<Value> result;
  for (const Key& key : keys) result.push_back(value_of_key<Value>(key, turn));
  return result;
}

/// All that a map tells of some keys; wanted(key): its value, or nothing.
template <class Map, class Key, class Wanted>
void expect_answers(const Map& map, const std::vector<Key>& queries, const Wanted& wanted,
                    std::initializer_list<path> ways = {path::direct, path::regional}) {
  using value = typename Map::mapped_type;
  const value missing = value_of<value>(~u64{0} - 7);
  std::vector<value> values;
  std::vector<char> found;
  for (const Key& key : queries) {
    const std::optional<value> here = wanted(key);
    found.push_back(here.has_value());
    values.push_back(here.value_or(missing));
  }
  const auto asked = upload(queries);
  for (const path way : ways) {
    memory_of<value> results(test_place(), queries.size());
    memory_of<bool> mask(test_place(), queries.size());
    map.find(test_place(), asked, results, missing, {.path = way});
    EXPECT_TRUE(download(results) == values);
    map.contains(test_place(), asked, mask, {.path = way});
    EXPECT_TRUE(download(mask) == found);
  }
  EXPECT_EQ(map.count_found(test_place(), asked),
            static_cast<std::size_t>(std::count(found.begin(), found.end(), 1)));
  EXPECT_TRUE(map.valid(test_place()));
}

template <class Key, class Value>
struct types {
  using key = Key;
  using value = Value;
};

template <class T>
class differential : public testing::Test {};
using all_types = day_axis<types<u32, u64>, types<u64, u8>, types<twelve, u16>, types<u16, sixteen>,
                           types<u8, u32>, types<packed<40>, twelve>, types<u64, packed<40>>>;
TYPED_TEST_SUITE(differential, all_types);

constexpr std::size_t few = 1000;
const std::size_t many = sanitized ? 30'000 : 120'000;  // of them all tables have regions

// Frozen tables.

template <class Map, class Key>
void expect_frozen(const Map& map, const input<Key>& in) {
  using value = typename Map::mapped_type;
  EXPECT_EQ(map.size(), in.distinct.size());
  expect_answers(map, in.queries, [&](const Key& key) -> std::optional<value> {
    const auto& rows = in.rows_of(key);
    if (rows.empty()) return {};
    return value_of<value>(rows[0]);  // the first one wins
  });
}

TYPED_TEST(differential, frozen_map_and_set) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  using map_type = roost::frozen_map<key, value, place_type>;
  map_type map;
  roost::frozen_set<key, place_type> set;
  for (const std::size_t n : {many, few, std::size_t{1}, many + 1}) {
    const auto in = make_input<key>(n, n == few ? spread::different : spread::crowded, n);
    const auto keys = upload(in.keys);
    map.rebuild(test_place(), keys, upload(values_of_rows<value>(n)));
    map_type moved = std::move(map);
    map = map_type();
    std::swap(map, moved);
    expect_frozen(map, in);
    set.rebuild(test_place(), keys);
    EXPECT_EQ(set.size(), in.distinct.size());
    memory_of<key> all(test_place(), set.size());
    set.retrieve_all(test_place(), all);
    oracle_set<key> seen;
    for (const key& k : download(all)) {
      EXPECT_TRUE(in.rows.contains(k));
      seen.insert(k);
    }
    EXPECT_EQ(seen.size(), in.distinct.size());
  }
  if (sanitized) return;
  // So thin that there are more regions than one pass of a partition makes.
  const auto in = make_input<key>(many, spread::copies, 5);
  const double bytes = (on_host ? 200e6 : 100e6), pairs = static_cast<double>(in.distinct.size());
  const map_type thin(test_place(), upload(in.keys), upload(values_of_rows<value>(many)),
                      {.load_factor = std::min(0.8, pairs * (sizeof(key) + sizeof(value)) / bytes)});
  expect_frozen(thin, in);
}

// Tables that change.

template <class Map>
void check_changing(std::size_t n) {
  using key = typename Map::key_type;
  using value = typename Map::mapped_type;
  Map map(test_place(), 10, {.grows = true});
  oracle_map<key, value> held;
  u64 turn = 0;
  const auto way = [&] { return turn % 2 == 0 ? path::regional : path::automatic; };
  const auto expect_held = [&](const std::vector<key>& queries) {
    EXPECT_EQ(map.size(test_place()), held.size());
    expect_answers(map, queries, [&](const key& k) -> std::optional<value> {
      const auto known = held.find(k);
      if (known == held.end()) return {};
      return known->second;
    });
    memory_of<key> keys(test_place(), held.size());
    memory_of<value> values(test_place(), held.size());
    ASSERT_EQ(map.retrieve_all(test_place(), keys, values), held.size());
    const auto all = download(keys);
    const auto their_values = download(values);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto known = held.find(all[i]);
      wrong += known == held.end() || !(known->second == their_values[i]);
    }
    EXPECT_EQ(wrong, 0u);
  };
  for (const std::size_t size : {n, few, n + 1}) {
    const auto in = make_input<key>(size, spread::copies, ++turn);
    const auto keys = upload(in.keys);
    const auto before = held.size();
    for (const key& k : in.distinct) held.emplace(k, value_of_key<value>(k, turn));
    const auto report =
        map.insert(test_place(), keys, upload(values_of_keys<value>(in.keys, turn)), {.path = way()});
    EXPECT_EQ(report.inserted, held.size() - before);
    EXPECT_EQ(report.present, size - report.inserted);
    expect_held(in.queries);
    const auto other = make_input<key>(size, spread::different, ++turn);
    for (const key& k : other.keys) held[k] = value_of_key<value>(k, turn);
    map.insert_or_assign(test_place(), upload(other.keys), upload(values_of_keys<value>(other.keys, turn)),
                         {.path = way()});
    Map moved = std::move(map);
    map = std::move(moved);
    std::size_t gone = 0;
    for (const key& k : in.queries) gone += held.erase(k);
    ++turn;
    EXPECT_EQ(map.erase(test_place(), upload(in.queries), {.path = way()}), gone);
    expect_held(in.keys);
    if constexpr (std::is_integral_v<value>) {
      for (const key& k : in.keys) {
        const auto [known, fresh] = held.emplace(k, value_of_key<value>(k, turn));
        if (!fresh) known->second = static_cast<value>(known->second + value_of_key<value>(k, turn));
      }
      map.insert_or_apply(test_place(), keys, upload(values_of_keys<value>(in.keys, turn)), roost::plus(),
                          {.path = way()});
      expect_held(in.queries);
    }
    if (size == few) {
      map.shrink_to_fit(test_place());
      expect_held(in.keys);
      map.clear(test_place());
      held.clear();
      expect_held(in.queries);
    }
  }
}

TYPED_TEST(differential, concurrent_map) {
  using key = typename TypeParam::key;
  if constexpr (sizeof(key) <= 8)  // larger ones go to a stadium_map
    check_changing<roost::concurrent_map<key, typename TypeParam::value, place_type>>(many);
}
TYPED_TEST(differential, stadium_map) {
  check_changing<roost::stadium_map<typename TypeParam::key, typename TypeParam::value, place_type>>(many);
}

// Groups.

/// Values of which f keeps one: the first or the last of a key, in the order of the input.
template <bool First>
struct keep {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    return First ? a : b;
  }
};

template <class Key, class Value>
void check_groups(std::size_t n, spread how) {
  const auto in = make_input<Key>(n, how, n);
  const auto values = values_of_rows<Value>(n);
  const auto keys = upload(in.keys), queries = upload(in.queries);
  const auto values_there = upload(values);

  // The order of groups means nothing, and may be another one for values of another size.
  const auto expect_groups = [&](const auto& result, const auto& wanted) {
    ASSERT_EQ(result.size(), in.distinct.size());
    const auto found_keys = download(result.keys);
    const auto found = download(result.values);
    const auto counts = download(result.counts);
    std::size_t wrong = 0;
    for (std::size_t g = 0; g < found_keys.size(); ++g) {
      const auto& rows = in.rows_of(found_keys[g]);
      wrong += counts[g] != rows.size() || rows.empty() || !(found[g] == wanted(rows));
    }
    EXPECT_EQ(wrong, 0u);
  };
  expect_groups(roost::group_by(test_place(), keys, values_there, keep<true>()),
                [&](const auto& rows) { return values[rows.front()]; });
  expect_groups(roost::group_by(test_place(), keys, values_there, keep<false>()),
                [&](const auto& rows) { return values[rows.back()]; });
  if constexpr (std::is_integral_v<Value>) {
    expect_groups(roost::group_by(test_place(), keys, values_there, roost::plus()), [&](const auto& rows) {
      Value sum = 0;
      for (const u32 row : rows) sum = static_cast<Value>(sum + values[row]);
      return sum;
    });
    expect_groups(roost::group_by(test_place(), keys, values_there, roost::multiplies()),
                  [&](const auto& rows) {
                    u64 product = 1;
                    for (const u32 row : rows) product *= static_cast<u64>(values[row]);
                    return static_cast<Value>(product);
                  });
    std::vector<u8> small;
    for (std::size_t i = 0; i < n; ++i) small.push_back(static_cast<u8>(value_of<u64>(i) >> 40));
    expect_groups(roost::group_means(test_place(), keys, upload(small)), [&](const auto& rows) {
      u64 sum = 0;
      for (const u32 row : rows) sum += small[row];
      return static_cast<double>(sum) / static_cast<double>(rows.size());
    });
  }

  roost::frozen_multimap<Key, Value, place_type> map;
  map.rebuild(test_place(), upload(std::vector<Key>{in.keys[0]}), upload(std::vector<Value>{values[0]}));
  map.rebuild(test_place(), keys, values_there);
  auto moved = std::move(map);
  map = std::move(moved);
  EXPECT_TRUE(map.valid(test_place()));
  EXPECT_EQ(map.key_count(), in.distinct.size());
  std::vector<u64> counts;
  std::vector<u32> query_of_match, row_of_match, unmatched, matched;
  std::vector<Value> firsts, matches;
  const Value missing = value_of<Value>(~u64{0} - 9);
  const std::size_t some = std::min(in.queries.size(), how == spread::crowded ? few : in.queries.size());
  for (std::size_t q = 0; q < some; ++q) {
    const auto& rows = in.rows_of(in.queries[q]);
    counts.push_back(rows.size());
    firsts.push_back(rows.empty() ? missing : values[rows[0]]);
    (rows.empty() ? unmatched : matched).push_back(static_cast<u32>(q));
    if (query_of_match.size() > 4'000'000) continue;
    for (const u32 row : rows) {
      query_of_match.push_back(static_cast<u32>(q));
      row_of_match.push_back(row);
      matches.push_back(values[row]);
    }
  }
  const auto asked = queries.span().first(some);
  for (const path way : {path::direct, path::regional}) {
    memory_of<u64> count(test_place(), some);
    memory_of<Value> first(test_place(), some);
    map.count(test_place(), asked, count, {.path = way});
    map.find_first(test_place(), asked, first, missing, {.path = way});
    EXPECT_TRUE(download(count) == counts);
    EXPECT_TRUE(download(first) == firsts);
  }
  if (query_of_match.size() <= 4'000'000) {
    EXPECT_TRUE(download(map.retrieve(test_place(), asked).values) == matches);
    const auto pairs = roost::inner_join(test_place(), asked, keys);
    EXPECT_TRUE(download(pairs.left) == query_of_match);
    EXPECT_TRUE(download(pairs.right) == row_of_match);
    const auto outer = roost::left_join(test_place(), asked, keys);
    EXPECT_EQ(outer.left.size(), query_of_match.size() + unmatched.size());
  }
  EXPECT_TRUE(download(roost::semi_join(test_place(), asked, keys)) == matched);
  EXPECT_TRUE(download(roost::anti_join(test_place(), asked, keys)) == unmatched);
}

TYPED_TEST(differential, groups_and_joins) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  for (const std::size_t n : {28'984, 28'985, 28'986}) check_groups<key, value>(n, spread::different);
  check_groups<key, value>(many, spread::copies);
  // A key with more rows than its region's team takes.
  const std::size_t crowd = 2 * roost::detail::group_tuning<place_type>::tiles_most *
                            roost::detail::group_tile<place_type, key, value>;
  check_groups<key, value>(sanitized ? many : crowd + crowd / 8, spread::crowded);
}

template <class Key>
void check_index(std::size_t n, spread how) {
  using roost::index_order;
  const auto in = make_input<Key>(n, how, n);
  const auto keys = upload(in.keys);
  const std::vector<Key> half(in.keys.begin(), in.keys.begin() + static_cast<std::ptrdiff_t>(n / 2)),
      rest(in.keys.begin() + static_cast<std::ptrdiff_t>(n / 2), in.keys.end());
  oracle_map<Key, u32> number;
  std::vector<u64> counts;
  std::vector<u32> firsts, inverse;
  for (const Key& key : in.distinct) {
    number.emplace(key, static_cast<u32>(number.size()));
    counts.push_back(in.rows_of(key).size());
    firsts.push_back(in.rows_of(key)[0]);
  }
  for (const Key& key : in.keys) inverse.push_back(number.at(key));

  using index_type = roost::two_way_index<Key, place_type>;
  index_type index;
  auto indices = download(index.add(test_place(), upload(half)));
  index_type moved = std::move(index);
  index = std::move(moved);
  const auto more = download(index.add(test_place(), upload(rest)));
  indices.insert(indices.end(), more.begin(), more.end());
  EXPECT_TRUE(indices == inverse);
  EXPECT_TRUE(download(index.keys()) == in.distinct);
  EXPECT_TRUE(download(index.counts()) == counts);
  EXPECT_TRUE(index.valid(test_place()));
  for (const path way : {path::direct, path::regional}) {
    memory_of<u32> found(test_place(), in.queries.size());
    index.find(test_place(), upload(in.queries), found, 77, {.path = way});
    std::vector<u32> wanted;
    for (const Key& key : in.queries) wanted.push_back(number.contains(key) ? number.at(key) : 77);
    EXPECT_TRUE(download(found) == wanted);
  }
  EXPECT_EQ(roost::unique_count(test_place(), keys), in.distinct.size());
  EXPECT_TRUE(download(roost::unique(test_place(), keys)) == in.distinct);
  for (const auto order : {index_order::first_occurrence, index_order::any}) {
    const auto all = roost::unique_all(test_place(), keys,
                                       {.order = order, .first = true, .inverse = true, .counts = true});
    const auto found_keys = download(all.keys);
    const auto found_inverse = download(all.inverse), found_first = download(all.first);
    const auto found_counts = download(all.counts);
    ASSERT_EQ(found_keys.size(), in.distinct.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += !(found_keys[found_inverse[i]] == in.keys[i]);
    for (std::size_t g = 0; g < found_keys.size(); ++g) {
      const auto& rows = in.rows_of(found_keys[g]);
      wrong += rows.empty() || found_first[g] != rows[0] || found_counts[g] != rows.size();
    }
    EXPECT_EQ(wrong, 0u);
    if (order == index_order::first_occurrence) {
      EXPECT_TRUE(found_keys == in.distinct && found_first == firsts);
    }
    const auto both = roost::unique_inverse(test_place(), keys, order);
    const auto again = download(both.keys);
    const auto places = download(both.inverse);
    for (std::size_t i = 0; i < n; ++i) wrong += !(again[places[i]] == in.keys[i]);
    const auto counted = roost::unique_counts(test_place(), keys, order);
    const auto counted_keys = download(counted.keys);
    const auto its_counts = download(counted.counts);
    for (std::size_t g = 0; g < counted_keys.size(); ++g)
      wrong += its_counts[g] != in.rows_of(counted_keys[g]).size();
    EXPECT_EQ(wrong, 0u);
  }
}

TYPED_TEST(differential, indices) {
  using key = typename TypeParam::key;
  for (const auto how : {spread::different, spread::copies, spread::crowded}) check_index<key>(many, how);
  check_index<key>(28'985, spread::different);
}

/// What is beyond the numbers of items from which on batches go by region, are sampled, or take two passes.
TEST(differential_calls, beyond_all_thresholds) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  const std::size_t n = on_host ? 1'000'000 : 9'000'000;
  {
    const auto in = make_input<u32>(n, spread::different, 1);
    const roost::frozen_map<u32, u32, place_type> map(
        test_place(), upload(in.keys), upload(values_of_rows<u32>(n)),
        {.load_factor = std::min(0.8, static_cast<double>(n * 8) / (on_host ? 600e6 : 100e6))});
    expect_answers(map, in.keys,
                   [&](u32 key) -> std::optional<u32> { return value_of<u32>(in.rows_of(key)[0]); },
                   {path::automatic});
  }
  check_changing<roost::concurrent_map<u32, u32, place_type>>(n / 3);
  check_groups<u32, u32>(n, spread::copies);
  check_index<u32>(n, spread::copies);
}

TEST(differential_calls, sorted_map) {
  const auto in = make_input<u32>(many, spread::copies, 3);
  roost::sorted_map<u32, u64, place_type> map(test_place(), upload(std::vector<u32>{1}),
                                              upload(std::vector<u64>{2}));
  map.rebuild(test_place(), upload(in.keys), upload(values_of_rows<u64>(many)));
  std::map<u32, u64> wanted;
  for (std::size_t i = 0; i < many; ++i) wanted.emplace(in.keys[i], value_of<u64>(i));
  std::vector<u32> keys;
  std::vector<u64> values, found;
  for (const auto& [key, value] : wanted) keys.push_back(key), values.push_back(value);
  for (const u32 key : in.queries) found.push_back(wanted.contains(key) ? wanted.at(key) : 7);
  EXPECT_TRUE(download(map.keys()) == keys);
  EXPECT_TRUE(download(map.values()) == values);
  memory_of<u64> results(test_place(), in.queries.size());
  map.find(test_place(), upload(in.queries), results, 7);
  EXPECT_TRUE(download(results) == found);
  EXPECT_TRUE(map.valid(test_place()));
}

#if !defined(__CUDACC__)
TEST(differential_calls, string_index) {
  std::mt19937_64 random(1);
  std::vector<std::string> texts;
  std::unordered_map<std::string, u32> number;
  std::vector<u32> indices;
  for (std::size_t i = 0; i < many; ++i) {
    const u64 k = random() % (many / 2);
    texts.push_back(std::to_string(k) + std::string(k % 40, k % 3 == 0 ? '\0' : 'x'));
    indices.push_back(number.emplace(texts.back(), static_cast<u32>(number.size())).first->second);
  }
  const roost::string_index index(test_place(), texts);
  EXPECT_EQ(index.size(), number.size());
  EXPECT_TRUE(std::equal(indices.begin(), indices.end(), index.indices().begin(), index.indices().end()));
  EXPECT_TRUE(index.valid(test_place()));
  for (std::size_t k = 0; k < many / 2 + 100; ++k) {
    const std::string text = std::to_string(k) + std::string(k % 40, k % 3 == 0 ? '\0' : 'x');
    const auto found = index.find(text);
    ASSERT_EQ(found.has_value(), number.contains(text));
    if (found) {
      ASSERT_EQ(*found, number.at(text));
    }
  }
}
#endif

// Shards.

template <class Key, class Value>
void check_shards(std::size_t n, spread how) {
  const auto& shards = test_shards(3);
  auto in = make_input<Key>(n, how, 9);
  if (how == spread::crowded) in.queries.resize(few);  // a join has very many pairs
  const auto keys = upload(shards, split(in.keys, 3)), queries = upload(shards, split(in.queries, 3));
  const auto values = upload(shards, split(values_of_rows<Value>(n), 3));
  const Value missing = value_of<Value>(~u64{0} - 3);
  std::vector<Value> firsts;
  std::vector<char> found;
  std::vector<u64> counts;
  std::size_t hits = 0, matches = 0;
  for (const Key& key : in.queries) {
    const auto& rows = in.rows_of(key);
    firsts.push_back(rows.empty() ? missing : value_of<Value>(rows[0]));
    found.push_back(!rows.empty());
    counts.push_back(rows.size());
    hits += !rows.empty();
    matches += rows.size();
  }
  roost::sharded_map<Key, Value, shards_type> map(shards, queries,
                                                  filled_like<Value>(shards, queries, missing));
  map.rebuild(shards, keys, values);
  const roost::sharded_multimap<Key, Value, shards_type> multimap(shards, keys, values);
  roost::sharded_concurrent_map<Key, Value, shards_type> changing(shards, 10, {.grows = true});
  const auto of_keys = upload(shards, split(values_of_keys<Value>(in.keys, 1), 3));
  EXPECT_EQ(changing.insert(shards, keys, of_keys).inserted, in.distinct.size());
  for (const path way : {path::automatic, path::regional}) {
    const roost::bulk_options how{
        .path = way,
        .scratch_bytes_most = way == path::regional ? std::size_t{1} : ~std::size_t{0}};  // in parts
    auto results = filled_like<Value>(shards, queries, missing);
    auto mask = filled_like<bool>(shards, queries, false);
    auto count = filled_like<u64>(shards, queries, 0);
    map.find(shards, queries, results, missing, how);
    EXPECT_TRUE(flat(shards, results) == firsts);
    map.contains(shards, queries, mask, how);
    EXPECT_TRUE(flat(shards, mask) == found);
    multimap.count(shards, queries, count, how);
    EXPECT_TRUE(flat(shards, count) == counts);
    changing.find(shards, queries, results, missing, how);
    auto wanted = firsts;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = found[i] != 0 ? value_of_key<Value>(in.queries[i], 1) : missing;
    EXPECT_TRUE(flat(shards, results) == wanted);
  }
  EXPECT_EQ(map.count_found(shards, queries), hits);
  EXPECT_EQ(multimap.count_matches(shards, queries), matches);
  EXPECT_TRUE(map.valid(shards) && multimap.valid(shards) && changing.valid(shards));
  std::size_t pairs = 0;
  for (const auto& part : roost::inner_join(shards, queries, keys)) pairs += part.left.size();
  EXPECT_EQ(pairs, matches);
  EXPECT_TRUE(flat(shards, roost::unique(shards, keys)) == in.distinct);
  const roost::sharded_index index(shards, keys);
  EXPECT_EQ(index.size(), in.distinct.size());
  EXPECT_TRUE(index.valid(shards));
  oracle_set<Key> gone(in.queries.begin(), in.queries.end());
  EXPECT_EQ(changing.erase(shards, queries),
            static_cast<std::size_t>(std::count_if(gone.begin(), gone.end(),
                                                   [&](const Key& key) { return in.rows.contains(key); })));
  EXPECT_EQ(changing.count_found(shards, queries), 0u);
}

TEST(differential_calls, shards) {
  const std::size_t n = sanitized ? many : on_host ? 400'000 : 3'000'000;  // of several parts
  check_shards<u32, u64>(n, spread::copies);
  check_shards<u32, u64>(n, spread::crowded);
  check_shards<u64, u8>(n, spread::different);
}

// Voxels.

TEST(differential_calls, voxels) {
  using voxel = roost::coordinate<3>;
  const std::size_t n = sanitized ? 5000 : 60'000;
  std::mt19937_64 random(2);
  std::vector<voxel> input;
  for (std::size_t i = 0; i < n; ++i) {
    voxel v{};
    v.batch = static_cast<int>(random() % 2);
    const int wide = i % 3 == 0 ? 4000 : 40;  // many superblocks, and full ones
    for (int d = 0; d < 3; ++d) v.at[d] = static_cast<int>(random() % static_cast<u64>(wide)) - wide / 2;
    input.push_back(v);
  }
  const auto pack = [](const voxel& v) {
    u64 key = static_cast<u64>(v.batch);
    for (int d = 0; d < 3; ++d) key = key << 20 | static_cast<u64>(v.at[d] + (1 << 19));
    return key;
  };
  const roost::coordinate_index index(test_place(), upload(input));
  EXPECT_TRUE(index.valid(test_place()));
  const auto voxels = download(index.coordinates());
  std::unordered_map<u64, u32> row_of;
  for (std::size_t r = 0; r < voxels.size(); ++r) row_of.emplace(pack(voxels[r]), static_cast<u32>(r));
  ASSERT_EQ(row_of.size(), voxels.size());
  std::unordered_set<u64> different;
  const auto rows = download(index.rows_of_input());
  for (std::size_t i = 0; i < n; ++i) {
    different.insert(pack(input[i]));
    ASSERT_EQ(rows[i], row_of.at(pack(input[i])));
  }
  EXPECT_EQ(different.size(), voxels.size());

  const auto map = roost::submanifold(test_place(), index);
  const auto neighbours = download(map.neighbours());
  constexpr std::size_t in = 4, out = 8;
  std::vector<double> features(voxels.size() * in), weights(27 * in * out), wanted(voxels.size() * out, 0);
  for (double& x : features) x = static_cast<double>(random() % 17) - 8;  // sums are exact
  for (double& x : weights) x = static_cast<double>(random() % 9) - 4;
  std::size_t wrong = 0;
  for (u32 k = 0; k < map.volume(); ++k) {
    const auto offset = map.offset(k);
    for (std::size_t o = 0; o < voxels.size(); ++o) {
      voxel v = voxels[o];
      for (int d = 0; d < 3; ++d) v.at[d] += offset[static_cast<std::size_t>(d)];
      const auto there = row_of.find(pack(v));
      const u32 row = there == row_of.end() ? map.no_row : there->second;
      wrong += neighbours[k * map.neighbour_stride() + o] != row;
      if (row == map.no_row) continue;
      for (std::size_t i = 0; i < in; ++i) {
        for (std::size_t c = 0; c < out; ++c)
          wanted[o * out + c] += features[row * in + i] * weights[(k * in + i) * out + c];
      }
    }
  }
  EXPECT_EQ(wrong, 0u);
  auto outputs = filled<double>(wanted.size(), 1);
  roost::sparse_conv(test_place(), map.view(), {.in = in, .out = out}, upload(features), upload(weights),
                     outputs);
  EXPECT_TRUE(download(outputs) == wanted);

  // A convolution with a stride: each pair, and no other.
  const auto down = roost::convolution(test_place(), index, roost::kernel_shape<3>::cube(2, 2));
  const auto made = download(down.made_outputs().coordinates());
  const auto inputs_of = download(down.neighbours());
  std::size_t pairs = 0;
  for (u32 k = 0; k < down.volume(); ++k) {
    const auto offset = down.offset(k);
    for (std::size_t o = 0; o < made.size(); ++o) {
      voxel v = made[o];
      for (int d = 0; d < 3; ++d) v.at[d] = 2 * v.at[d] + offset[static_cast<std::size_t>(d)];
      const auto there = row_of.find(pack(v));
      const u32 row = inputs_of[k * down.neighbour_stride() + o];
      wrong += row != (there == row_of.end() ? map.no_row : there->second);
      pairs += row != map.no_row;
    }
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(pairs, voxels.size()) << "windows do not overlap, so each voxel is in one";
}

}  // namespace
}  // namespace test
