#include "support/keys.hpp"
#include "support/place.hpp"

// Values that are too large to be moved about: tables are built of their positions, and lookups copy them
// from their slots.

namespace test {
namespace {

template <int Words, class Word = u32>
struct block {
  Word words[Words];
  friend bool operator==(const block&, const block&) = default;
};

/// Every byte depends on the number.
template <class Value>
struct value_of_number {
  ROOST_FN Value operator()(std::size_t i) const {
    Value value;
    for (std::size_t w = 0; w < sizeof(value.words) / sizeof(value.words[0]); ++w) {
      value.words[w] =
          static_cast<std::remove_reference_t<decltype(value.words[0])>>((i + 1) * 2654435761u + w);
    }
    return value;
  }
};

template <class Value>
struct large_values : testing::Test {
  static std::vector<Value> values(std::size_t n) {
    std::vector<Value> result;
    for (std::size_t i = 0; i < n; ++i) result.push_back(value_of_number<Value>()(i));
    return result;
  }

  /// The first of each key counts. Half of the queries are of keys that are absent.
  template <class Map, class Key>
  static void check(const Map& map, const std::vector<Key>& keys) {
    oracle_map<Key, Value> expected;
    for (std::size_t i = 0; i < keys.size(); ++i) expected.emplace(keys[i], value_of_number<Value>()(i));
    ASSERT_EQ(map.size(), expected.size());
    EXPECT_TRUE(map.valid(test_place()));
    std::vector<Key> queries;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      queries.push_back(keys[i]);
      queries.push_back(from_number<Key>(1000000 + i));
    }
    const Value missing = value_of_number<Value>()(~std::size_t{0} / 2);
    const auto asked = upload(queries);
    for (const roost::path path : {roost::path::direct, roost::path::regional}) {
      const auto found = filled<Value>(queries.size(), missing);
      memory_of<Value> results(test_place(), queries.size());
      memory_of<bool> here(test_place(), queries.size());
      map.find(test_place(), asked, results, missing, {.path = path});
      const auto answers = download(results);
      roost::array<Value, place_type> untouched = roost::copy_to(test_place(), download(found));
      map.find(test_place(), asked, untouched, here, {.path = path});
      const auto answers_and_mask = download(untouched);
      const auto mask = download(here);
      for (std::size_t i = 0; i < queries.size(); ++i) {
        const auto it = expected.find(queries[i]);
        ASSERT_EQ(answers[i], it == expected.end() ? missing : it->second);
        ASSERT_EQ(answers_and_mask[i], it == expected.end() ? missing : it->second) << "stays as it was";
        ASSERT_EQ(static_cast<bool>(mask[i]), it != expected.end());
      }
    }
  }
};

using value_types = axis<block<9>, block<250>, block<5, u64>, block<33, u8>>;
TYPED_TEST_SUITE(large_values, value_types);

TYPED_TEST(large_values, are_copied_to_the_slots_of_their_keys) {
  using map_type = roost::frozen_map<u32, TypeParam, place_type>;
  static_assert(roost::detail::is_large_value<TypeParam>);
  for (const std::size_t n : {0, 1, 3000}) {
    std::vector<u32> keys(n);
    for (std::size_t i = 0; i < n; ++i)
      keys[i] = static_cast<u32>(i % 7 == 3 ? keys[i - 1] : i * 2654435761u);
    const auto key_memory = upload(keys);
    map_type map(test_place(), key_memory, upload(this->values(n)));
    this->check(map, keys);
    map_type computed(test_place(), key_memory, roost::computed(n, value_of_number<TypeParam>()));
    this->check(computed, keys);
    map.rebuild_async(test_place(), key_memory, upload(this->values(n)));
    map.finish(test_place());
    this->check(map, keys);
  }
}

TYPED_TEST(large_values, of_keys_of_16_bytes) {
  const std::size_t n = 1000;
  std::vector<sixteen> keys;
  for (std::size_t i = 0; i < n; ++i) keys.push_back(from_number<sixteen>(i));
  this->check(
      roost::frozen_map<sixteen, TypeParam, place_type>(test_place(), upload(keys), upload(this->values(n))),
      keys);
}

TYPED_TEST(large_values, that_do_not_fit_leave_the_map_empty) {
  using map_type = roost::frozen_map<u32, TypeParam, place_type>;
  const std::size_t n = 20000;
  std::vector<u32> keys(n), same(n, 5);
  for (std::size_t i = 0; i < n; ++i) keys[i] = static_cast<u32>(i);
  map_type map(test_place(), upload(keys), upload(this->values(n)));
  map.rebuild_async(test_place(), upload(same), upload(this->values(n)));
  EXPECT_THROW(map.finish(test_place()), roost::build_error);
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.count_found(test_place(), upload(keys)), 0u);
}

}  // namespace
}  // namespace test
