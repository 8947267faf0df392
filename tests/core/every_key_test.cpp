#include "support/tables_bodies.hpp"

// No key and no value is reserved.

namespace test {

TEST_TABLES_OF_BYTES(TEST_DEFINE)

namespace {

template <class Table>
class every_key : public testing::Test {};
using tables =
    table_axis<bucketed_map<u8, u8>, bucketed_map<u16, u32>, bucketed_map<u32, u32>, bucketed_map<u32, u64>,
               bucketed_map<u64, u32>, bucketed_map<u64, u64>, bucketed_map<sixteen, u32>,
               bucketed_map<twelve, twentyfour>, bucketed_map<twentyfour, twelve>, bucketed_set<u32>,
               bucketed_set<u64>, bucketed_set<twelve>, cuckoo_map<u16, u16>, cuckoo_map<u32, u32>,
               cuckoo_map<u64, u64>, cuckoo_map<sixteen, twelve>, cuckoo_set<u32>, compact_map<u8, u8>,
               compact_map<u32, u32>, compact_map<u32, u64>, compact_map<u64, u32>, compact_map<u64, u64>,
               compact_map<u32, twelve>, compact_set<u32>, compact_set<u64>>;
TYPED_TEST_SUITE(every_key, tables);

/// Zero, all ones, single bits, and what lies around them.
template <class T>
std::vector<T> remarkable() {
  std::vector<T> result;
  if constexpr (std::is_empty_v<T>) {
    result.push_back({});
  } else {
    for (const T start : {from_number<T>(0), all_ones<T>()}) {
      for (std::size_t bit = 0; bit < 8 * sizeof(T); ++bit) {
        T changed = start;
        auto* const bytes = reinterpret_cast<unsigned char*>(&changed);
        bytes[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
        result.push_back(changed);
      }
      result.push_back(start);
    }
    for (std::uint64_t i = 0; i < 20; ++i) {
      for (const std::uint64_t edge : {u64{0}, u64{0x7fffffff}, u64{0xffffffff}, u64{0x7fffffffffffffff}}) {
        result.push_back(from_number<T>(edge + i - 10));
      }
    }
  }
  return result;
}

TYPED_TEST(every_key, can_be_stored_with_every_value) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  const auto keys = remarkable<key>();
  const auto values = remarkable<value>();
  for (std::size_t shift = 0; shift < std::min<std::size_t>(values.size(), 12); ++shift) {
    std::vector<value> values_of_keys;
    for (std::size_t i = 0; i < keys.size(); ++i)
      values_of_keys.push_back(values[(i + shift) % values.size()]);
    check<TypeParam>(keys, values_of_keys);
  }
  for (const value& v : {values.front(), values.back()})
    check<TypeParam>(keys, std::vector<value>(keys.size(), v));
}

TYPED_TEST(every_key, can_be_alone_or_away) {
  using key = typename TypeParam::key_type;
  const auto keys = remarkable<key>();
  for (std::size_t i = 0; i < keys.size(); i += sanitized && !on_host ? 13 : 3) {
    check<TypeParam>({keys[i]}, numbered_values<typename TypeParam::mapped_type>(1));
    auto others = keys;
    std::erase(others, keys[i]);
    check<TypeParam>(others, numbered_values<typename TypeParam::mapped_type>(others.size()));
  }
}

/// Whatever the hash is: some of these mark the empty slots of a region.
TYPED_TEST(every_key, can_be_beside_the_first_keys_under_any_seed) {
  for (std::uint64_t seed = 0; seed < (sanitized && !on_host ? 4u : 30u); ++seed) {
    for (const std::size_t n : {1, 2, 40}) {
      typename TypeParam::options options;
      options.seed = seed * 0x9e3779b97f4a7c15ull;
      options.load_factor = 0.3;
      check<TypeParam>(multiples(n, 1), options);
    }
  }
}

template <class Table>
class all_keys : public testing::Test {};
using small_tables =
    table_axis<bucketed_map<u8, u8>, bucketed_map<u16, u32>, cuckoo_map<u16, u16>, compact_map<u8, u8>>;
TYPED_TEST_SUITE(all_keys, small_tables);

TYPED_TEST(all_keys, are_stored_at_once) {
  constexpr std::size_t n = std::size_t{1} << 8 * sizeof(typename TypeParam::key_type);
  for (const std::uint64_t seed :
       sanitized ? std::vector<std::uint64_t>{0} : std::vector<std::uint64_t>{0, 1, 2}) {
    typename TypeParam::options options;
    options.seed = seed;
    EXPECT_EQ(check<TypeParam>(multiples(n, 1), options).size, n);
    EXPECT_EQ(check<TypeParam>(shuffled(multiples(n, 1), seed), options).size, n);
    EXPECT_EQ(check<TypeParam>(multiples(n - 1, 1), options).size, n - 1);
    EXPECT_EQ(check<TypeParam>(multiples(3 * n, 1), options).duplicates, 2 * n);
  }
  if (std::is_same_v<typename TypeParam::layout, roost::bucketed>) {
    typename TypeParam::options options;
    options.load_factor = 1.0;
    EXPECT_EQ(check<TypeParam>(multiples(n, 1), options).size, n);
  }
}

}  // namespace
}  // namespace test
