#include <roost/shards/sharded_concurrent_map.hpp>

#include "support/shards.hpp"

// sharded_concurrent_map against an oracle: random batches, whatever the number of shards, and keys that
// crowd one of them.

namespace test {
namespace {

template <class Key, class Value>
struct types {
  using key = Key;
  using value = Value;
  using map = roost::sharded_concurrent_map<Key, Value, shards_type>;
};

/// A map and what it must have.
template <class T>
class checked_map {
 public:
  using key = typename T::key;
  using value = typename T::value;

  checked_map(std::size_t shards, std::size_t room) : shards_(test_shards(shards)), map_(shards_, room) {}

  /// Keys whose values come from the number of their batch, so that all copies in it are alike.
  void insert(const std::vector<key>& keys, std::uint64_t batch, bool assigns) {
    const auto parts = split(keys, shards_.size());
    const value given = from_number<value>(batch);
    const auto keys_there = upload(shards_, parts);
    const auto values_there = filled_like<value>(shards_, parts, given);
    std::size_t fresh = 0;
    for (const key& k : keys) {
      const auto [there, inserted] = oracle_.emplace(k, given);
      fresh += inserted;
      if (assigns) there->second = given;
    }
    const auto report = assigns ? map_.insert_or_assign(shards_, keys_there, values_there)
                                : map_.insert(shards_, keys_there, values_there);
    EXPECT_EQ(report.inserted, fresh);
    EXPECT_EQ(report.present, keys.size() - fresh);
    EXPECT_EQ(report.full, 0u);
    check();
  }

  void add(const std::vector<key>& keys) {
    const auto parts = split(keys, shards_.size());
    const value one = from_number<value>(1);
    std::size_t fresh = 0;
    for (const key& k : keys) {
      const auto [there, inserted] = oracle_.emplace(k, one);
      fresh += inserted;
      if (!inserted) there->second = there->second + one;
    }
    const auto report = map_.insert_or_apply(shards_, upload(shards_, parts),
                                             filled_like<value>(shards_, parts, one), roost::plus());
    EXPECT_EQ(report.inserted, fresh);
    EXPECT_EQ(report.inserted + report.present, keys.size());
    check();
  }

  void erase(const std::vector<key>& keys) {
    std::size_t there = 0;
    for (const key& k : keys) there += oracle_.erase(k);
    EXPECT_EQ(map_.erase(shards_, upload(shards_, split(keys, shards_.size()))), there);
    check();
  }

  void check() {
    std::vector<key> queried;
    for (const auto& [k, v] : oracle_) queried.push_back(k);
    for (const std::uint64_t number : random_numbers(100, oracle_.size()))
      queried.push_back(from_number<key>(number));
    const auto parts = split(queried, shards_.size());
    const auto queries = upload(shards_, parts);
    const value missing = from_number<value>(12345), untouched = from_number<value>(54321);
    auto results = filled_like<value>(shards_, parts, untouched);
    auto masked = filled_like<value>(shards_, parts, untouched);
    auto found = filled_like<bool>(shards_, parts, true);
    map_.find(shards_, queries, results, missing);
    map_.find(shards_, queries, masked, found, {.path = roost::path::regional});
    const auto answers = flat(shards_, results), there = flat(shards_, masked);
    const auto order = flat(parts);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto known = oracle_.find(order[i]);
      const bool here = known != oracle_.end();
      wrong += !(answers[i] == (here ? known->second : missing)) ||
               !(there[i] == (here ? known->second : untouched));
    }
    EXPECT_EQ(wrong, 0u) << "answers of " << order.size();
    EXPECT_EQ(map_.size(shards_), oracle_.size());
    EXPECT_EQ(map_.count_found(shards_, queries), oracle_.size());
    EXPECT_TRUE(map_.valid(shards_));
  }

  void take_all_out() {
    column_of_shards<key> keys;
    column_of_shards<value> values;
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      const std::size_t n = map_.shard(s).size(shards_[s]);
      keys.emplace_back(shards_[s], n);
      values.emplace_back(shards_[s], n);
    }
    EXPECT_EQ(map_.retrieve_all(shards_, keys, values), oracle_.size());
    const auto all_keys = flat(shards_, keys);
    const auto all_values = flat(shards_, values);
    std::size_t strangers = 0;
    for (std::size_t i = 0; i < all_keys.size(); ++i) {
      const auto known = oracle_.find(all_keys[i]);
      strangers += known == oracle_.end() || !(known->second == all_values[i]);
    }
    EXPECT_EQ(strangers, 0u);
    const std::size_t before = map_.capacity(shards_);
    map_.clear(shards_);
    oracle_.clear();
    check();
    map_.shrink_to_fit(shards_);
    EXPECT_LE(map_.capacity(shards_), before);
  }

  typename T::map& map() { return map_; }

 private:
  const shards_type& shards_;
  typename T::map map_;
  oracle_map<key, value> oracle_;
};

template <class T>
class sharded_concurrent_map : public testing::Test {};
using maps = axis<types<u32, u32>, types<u64, u64>, types<u32, twentyfour>>;
TYPED_TEST_SUITE(sharded_concurrent_map, maps);

TYPED_TEST(sharded_concurrent_map, changes_as_one_map) {
  using key = typename TypeParam::key;
  const std::size_t n = sanitized ? 3000 : 20000;
  for (const std::size_t shards : {1, 2, 3, 7}) {
    SCOPED_TRACE(shards);
    checked_map<TypeParam> map(shards, shards == 2 ? 0 : n);
    map.check();
    map.insert({}, 1, false);
    map.insert(from_numbers<key>(random_numbers(n, 1)), 2, false);
    map.insert(from_numbers<key>(random_numbers(n, 1, n)), 3, true);
    map.erase(from_numbers<key>(random_numbers(n / 2, 2, n)));
    map.insert({all_ones<key>(), from_number<key>(0)}, 4, false);
    map.insert(from_numbers<key>(random_numbers(n, 3, 2 * n)), 5, false);
    map.take_all_out();
  }
}

TYPED_TEST(sharded_concurrent_map, is_changed_at_few_keys) {
  using key = typename TypeParam::key;
  const std::size_t n = sanitized ? 20000 : 60000;
  checked_map<TypeParam> map(4, 10);
  map.insert(from_numbers<key>(random_numbers(n, 1, 3)), 2, false);
  map.insert(from_numbers<key>(numbers(n, 7)), 3, true);
  map.erase(from_numbers<key>(numbers(n, 7)));
}

TEST(sharded_concurrent_map_calls, adds_up) {
  for (const std::size_t shards : {1, 3, 4}) {
    SCOPED_TRACE(shards);
    checked_map<types<u32, u32>> map(shards, 100);
    map.add(from_numbers<u32>(random_numbers(sanitized ? 3000 : 30000, 1, 1000)));
    map.add(from_numbers<u32>(numbers(30000, 7)));  // one shard would get all
    map.add({});
  }
}

struct value_is_odd {
  template <class Key, class Value>
  ROOST_FN bool operator()(const Key&, const Value& value) const {
    return value % 2 == 1;
  }
};

TEST(sharded_concurrent_map_calls, takes_out_what_a_function_says) {
  const auto& shards = test_shards(3);
  roost::sharded_concurrent_map<u32, u32, shards_type> map(shards, 100);
  const auto keys = split(from_numbers<u32>(multiples(1000, 3)), 3);
  EXPECT_EQ(map.insert(shards, upload(shards, keys), upload(shards, keys)).inserted, 1000u);
  EXPECT_EQ(map.erase_if(shards, value_is_odd()), 500u);
  EXPECT_EQ(map.size(shards), 500u);
  map.reserve(shards, 10000);
  EXPECT_GE(map.capacity(shards), 10000u);
  EXPECT_GT(map.bytes(shards), 80000u);
  EXPECT_TRUE(map.valid(shards));
}

TEST(sharded_concurrent_map_calls, refuse_what_they_cannot_take) {
  const auto& shards = test_shards(3);
  roost::sharded_concurrent_map<u32, u32, shards_type> map(shards, 100, {.grows = false});
  const auto keys = upload(shards, split(from_numbers<u32>(multiples(30, 3)), 3));
  const auto fewer = upload(shards, split(from_numbers<u32>(multiples(20, 3)), 3));
  EXPECT_THROW(map.insert(shards, keys, fewer), roost::invalid_argument);
  EXPECT_THROW(map.erase(test_shards(2), upload(test_shards(2), column<u32>(2))), roost::invalid_argument);
  EXPECT_THROW(map.insert(shards, column_of_shards<u32>(), keys), roost::invalid_argument);
  EXPECT_EQ(map.size(shards), 0u);
  const auto many = upload(shards, split(from_numbers<u32>(multiples(100000, 3)), 3));
  const auto report = map.insert(shards, many, many);
  EXPECT_GT(report.full, 0u);
  EXPECT_EQ(report.inserted + report.full, 100000u);
  EXPECT_EQ(map.size(shards), report.inserted);
}

TEST(sharded_concurrent_map_calls, a_refusal_of_memory_loses_nothing) {
  using map = types<u32, u32>::map;
  const auto& rich = test_shards(3);
  const std::size_t n = 6000;
  const auto numbers = from_numbers<u32>(multiples(n, 2654435761, 1));
  const auto parts = split(numbers, 3), some = split(std::vector(numbers.begin(), numbers.begin() + 600), 3);
  const auto keys = upload(rich, parts), few = upload(rich, some);
  const auto values = filled_like<u32>(rich, parts, 1000), old_values = filled_like<u32>(rich, some, 1);
  const auto expect = [&](const char* name, refused may, const auto& call) {
    SCOPED_TRACE(name);
    expect_refusals(
        may,
        [&](const shards_type& shards) {
          map m(shards, 600);
          m.insert(shards, few, old_values);
          return m;
        },
        call,
        [&](const shards_type& shards, const map& m) {
          auto found = filled_like<u32>(rich, keys, 0);
          m.find(rich, keys, found, 0);
          EXPECT_TRUE(m.valid(shards));
          return flat(rich, found);
        },
        rich, three_shards);
  };
  using roost::plus;
  expect("insert", refused::part, [&](auto& shards, map& m) { m.insert(shards, keys, values); });
  expect("insert_or_assign", refused::part,
         [&](auto& shards, map& m) { m.insert_or_assign(shards, keys, values); });
  expect("insert_or_apply", refused::once,
         [&](auto& shards, map& m) { m.insert_or_apply(shards, keys, values, plus()); });
  expect("erase", refused::part, [&](auto& shards, map& m) { m.erase(shards, few); });
  expect("reserve", refused::part, [&](auto& shards, map& m) { m.reserve(shards, 3 * n); });
  expect("shrink_to_fit", refused::part, [](auto& shards, map& m) { m.shrink_to_fit(shards); });
}

}  // namespace
}  // namespace test
