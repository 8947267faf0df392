#pragma once

#include <map>
#include <roost/concurrent_map.hpp>

#include "support/at_once.hpp"
#include "support/keys.hpp"
#include "support/refusals.hpp"

// What the tests of concurrent maps share.

namespace test {

using roost::path;

template <class Key, class Value>
struct types {
  using key = Key;
  using value = Value;
  using map = roost::concurrent_map<Key, Value, place_type>;
  using ref = typename map::ref_type;
};

/// A value whose words must agree, in sums as well, so that it shows if one was written or read in part.
template <class Word, int N>
struct linked {
  using word = Word;
  Word words[N];

  linked() = default;
  ROOST_FN explicit linked(u64 x) {
    for (int i = 0; i < N; ++i) words[i] = static_cast<Word>(x * (2 * static_cast<u64>(i) + 1));
  }
  ROOST_FN bool unbroken() const { return *this == linked(words[0]); }
  ROOST_FN friend linked operator+(const linked& a, const linked& b) {
    linked sum;
    for (int i = 0; i < N; ++i) sum.words[i] = a.words[i] + b.words[i];
    return sum;
  }
  ROOST_FN friend bool operator<(const linked& a, const linked& b) { return a.words[0] < b.words[0]; }
  ROOST_FN friend bool operator==(const linked& a, const linked& b) {
    bool same = true;
    for (int i = 0; i < N; ++i) same &= a.words[i] == b.words[i];
    return same;
  }
};

/// How many answers of a map's lookups in bulk are not what an oracle holds. `missing` and `untouched`:
/// results of keys that are not there.
template <class Map, class Oracle, class Key, class Value>
std::size_t wrong_answers(const Map& map, const Oracle& oracle, const std::vector<Key>& queries,
                          const Value& missing, const Value& untouched, const roost::bulk_options& how) {
  const auto asked = upload(queries);
  auto results = filled<Value>(queries.size(), untouched), masked = filled<Value>(queries.size(), untouched);
  auto found = filled<bool>(queries.size(), true), contained = filled<bool>(queries.size(), true);
  map.find(test_place(), asked, results, missing, how);
  map.find(test_place(), asked, masked, found, how);
  map.contains(test_place(), asked, contained, how);
  const auto values = download(results), masked_values = download(masked);
  const auto there = download(found), also_there = download(contained);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const auto known = oracle.find(queries[i]);
    const bool here = known != oracle.end();
    wrong += !(values[i] == (here ? known->second : missing)) ||
             !(masked_values[i] == (here ? known->second : untouched)) || (there[i] != 0) != here ||
             (also_there[i] != 0) != here;
  }
  return wrong;
}

/// A map on the place beside a std::map, and all that it says compared with it.
template <class T>
class pair_of_maps {
 public:
  using key = typename T::key;
  using value = typename T::value;

  explicit pair_of_maps(std::size_t n = 0, typename T::map::options options = {})
      : map(test_place(), n, options) {}

  roost::insert_report insert(const std::vector<key>& keys, const std::vector<value>& values, path way) {
    std::size_t before = oracle.size();
    for (std::size_t i = 0; i < keys.size(); ++i) oracle.emplace(keys[i], values[i]);
    return expect(map.insert(test_place(), upload(keys), upload(values), {.path = way}), keys.size(), before);
  }
  roost::insert_report insert_or_assign(const std::vector<key>& keys, const std::vector<value>& values,
                                        path way) {
    std::size_t before = oracle.size();
    for (std::size_t i = 0; i < keys.size(); ++i) oracle[keys[i]] = values[i];
    return expect(map.insert_or_assign(test_place(), upload(keys), upload(values), {.path = way}),
                  keys.size(), before);
  }
  template <class F>
  roost::insert_report insert_or_apply(const std::vector<key>& keys, const std::vector<value>& values,
                                       const F& f, path way) {
    std::size_t before = oracle.size();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto [at, fresh] = oracle.emplace(keys[i], values[i]);
      if (!fresh) at->second = f(at->second, values[i]);
    }
    return expect(map.insert_or_apply(test_place(), upload(keys), upload(values), f, {.path = way}),
                  keys.size(), before);
  }
  void erase(const std::vector<key>& keys, path way) {
    const std::size_t before = oracle.size();
    for (const key& k : keys) oracle.erase(k);
    EXPECT_EQ(map.erase(test_place(), upload(keys), {.path = way}), before - oracle.size());
  }

  /// Asks for the keys and for others, both ways, and takes all pairs out.
  void check(const std::vector<key>& others) const {
    std::vector<key> queries = others;
    for (const auto& [k, v] : oracle) queries.push_back(k);
    std::vector<path> ways{path::direct, path::regional};
    if constexpr (requires { map.costs(test_place(), queries); }) ways.push_back(path::streamed);
    for (const path way : ways) {
      EXPECT_EQ(
          wrong_answers(map, oracle, queries, from_number<value>(77), from_number<value>(1), {.path = way}),
          0u);
    }
    EXPECT_EQ(map.size(test_place()), oracle.size());
    EXPECT_EQ(map.count_found(test_place(), upload(std::vector<key>(
                                                queries.begin() + static_cast<std::ptrdiff_t>(others.size()),
                                                queries.end()))),
              oracle.size());
    auto keys_out = filled<key>(oracle.size(), key{});
    auto values_out = filled<value>(oracle.size(), value{});
    EXPECT_EQ(map.retrieve_all(test_place(), keys_out, values_out), oracle.size());
    const auto keys = download(keys_out);
    const auto values = download(values_out);
    std::map<key, value> back;
    for (std::size_t i = 0; i < keys.size(); ++i) back.emplace(keys[i], values[i]);
    EXPECT_TRUE(back == oracle);
    const auto statistics = map.statistics(test_place());
    EXPECT_EQ(statistics.size, oracle.size());
    EXPECT_LE(statistics.size + statistics.erased, statistics.capacity);
    EXPECT_EQ(statistics.capacity, map.capacity());
    EXPECT_TRUE(map.valid(test_place()));
  }

  typename T::map map;
  std::map<key, value> oracle;

 private:
  roost::insert_report expect(const roost::insert_report& report, std::size_t n, std::size_t before) {
    EXPECT_EQ(report.inserted, oracle.size() - before);
    EXPECT_EQ(report.present, n - report.inserted);
    EXPECT_EQ(report.full, 0u);
    return report;
  }
};

struct is_old {
  template <class Key, class Value>
  ROOST_FN bool operator()(const Key&, const Value& value) const {
    return value < Value(9999);
  }
};

/// Every call that changes a map in bulk, refused memory; `grows`: the map has room for few of n pairs.
template <class T>
void expect_refusals_of_map(const typename T::map::options& options, bool grows, std::size_t n) {
  using key = typename T::key;
  using value = typename T::value;
  using map = typename T::map;
  const std::size_t few = n / 12;
  const auto keys = upload(from_numbers<key>(multiples(n, 2654435761, 1)));
  const auto values = upload(from_numbers<value>(multiples(n, 1, 10000))),
             old_values = upload(from_numbers<value>(multiples(n, 1, 1)));
  const auto old = keys.span().first(few);
  const auto make = [&](const place_type& place) {
    map m(place, grows ? few : n, options);
    m.insert(place, old, old_values.span().first(few));
    m.erase(place, old.first(few / 5));
    return m;
  };
  const auto state = [&](const place_type& place, const map& m) {
    memory_of<value> found(test_place(), n);
    m.find(test_place(), keys, found, value(0));
    const auto all = download(found);
    EXPECT_EQ(m.size(place), n - static_cast<std::size_t>(std::count(all.begin(), all.end(), value(0))));
    EXPECT_TRUE(m.valid(place));
    return all;
  };
  const auto expect = [&](const char* name, refused may, const auto& call) {
    SCOPED_TRACE(name);
    expect_refusals(may, make, call, state);
  };
  for (const path way : {path::automatic, path::direct, path::regional, path::streamed}) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(way)));
    const roost::bulk_options how{.path = way};
    expect("insert", refused::part, [&](auto& place, map& m) { m.insert(place, keys, values, how); });
    expect("insert_or_assign", refused::part,
           [&](auto& place, map& m) { m.insert_or_assign(place, keys, values, how); });
    expect("insert_or_apply", refused::once,
           [&](auto& place, map& m) { m.insert_or_apply(place, keys, values, roost::plus(), how); });
    expect("erase", refused::part, [&](auto& place, map& m) { m.erase(place, old, how); });
  }
  const auto nothing = refused::changes_nothing;
  expect("erase_if", nothing, [](auto& place, map& m) { m.erase_if(place, is_old()); });
  expect("reserve", nothing, [&](auto& place, map& m) { m.reserve(place, 3 * n); });
  expect("rehash", nothing, [&](auto& place, map& m) { m.rehash(place, 3 * n); });
  expect("shrink_to_fit", nothing, [](auto& place, map& m) { m.shrink_to_fit(place); });
  if constexpr (requires(map& m) { m.sweep(test_place()); })
    expect("sweep", nothing, [](auto& place, map& m) { m.sweep(place); });
  expect("clear", nothing, [](auto& place, map& m) { m.clear(place); });
}

/// A map of 4-byte keys and values at load factor 0.8.
template <class T>
void check_that_room_is_made_and_given_back() {
  const std::size_t n = sanitized ? 30000 : 200000;
  const auto keys = from_numbers<std::uint32_t>(multiples(n, 2654435761));
  const auto values = numbered_values<std::uint32_t>(n);
  pair_of_maps<T> maps;
  const std::size_t least = maps.map.capacity();
  EXPECT_GT(maps.insert(keys, values, path::automatic).rehashes, 0);
  EXPECT_GE(static_cast<double>(maps.map.capacity()), static_cast<double>(n) / 0.8);
  EXPECT_LE(maps.map.capacity(), 5 * n);
  maps.check({});
  maps.erase(keys, path::automatic);
  maps.map.shrink_to_fit(test_place());
  EXPECT_EQ(maps.map.capacity(), least);
  maps.map.reserve(test_place(), n);
  const std::size_t reserved = maps.map.capacity();
  EXPECT_EQ(maps.insert(keys, values, path::automatic).rehashes, 0);
  EXPECT_EQ(maps.map.capacity(), reserved);
  maps.map.reserve(test_place(), 10);
  EXPECT_EQ(maps.map.capacity(), reserved);
  maps.map.rehash(test_place(), 3 * n);
  EXPECT_GE(maps.map.capacity(), 3 * n);
  maps.check({});
  EXPECT_EQ(maps.insert_or_assign(keys, values, path::automatic).rehashes, 0);
  maps.map.rehash(test_place(), 10);
  EXPECT_LE(maps.map.capacity(), reserved + reserved / 100 + 64);
  maps.check(from_numbers<std::uint32_t>(multiples(1000, 2654435761, 1)));
}

}  // namespace test
