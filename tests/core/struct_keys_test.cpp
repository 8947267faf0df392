#include "support/tables_bodies.hpp"

// Keys and values that are no numbers: structs of 12, 16 and 24 bytes, and types of the user's own.

namespace test {

TEST_TABLES_OF_STRUCTS(TEST_DEFINE)

namespace {

template <class Table>
class struct_keys : public testing::Test {};
using tables =
    table_axis<bucketed_map<sixteen, u32>, bucketed_map<twelve, twentyfour>, bucketed_map<twentyfour, twelve>,
               bucketed_set<twelve>, cuckoo_map<sixteen, twelve>>;
TYPED_TEST_SUITE(struct_keys, tables);

TYPED_TEST(struct_keys, against_the_oracle) {
  for (const std::size_t n : {0, 1, 2, 3, 100, 4096}) check<TypeParam>(random_numbers(n, n));
  check<TypeParam>(multiples(30000, 1));
  check<TypeParam>(multiples(20000, std::uint64_t{1} << 32));
  check<TypeParam>(random_numbers(20000, 2, 8000));
}

TYPED_TEST(struct_keys, full) {
  typename TypeParam::options options;
  options.load_factor = std::is_same_v<typename TypeParam::layout, roost::cuckoo> ? 512.0 / 576.0 : 1.0;
  check<TypeParam>(different_numbers(20000, 3), options);
}

TYPED_TEST(struct_keys, that_differ_in_any_one_byte) {
  using key = typename TypeParam::key_type;
  std::vector<key> keys;
  for (const key start : {from_number<key>(0), all_ones<key>()}) {
    keys.push_back(start);
    for (std::size_t byte = 0; byte < sizeof(key); ++byte) {
      for (int change = 1; change < 256; ++change) {
        keys.push_back(start);
        reinterpret_cast<unsigned char*>(&keys.back())[byte] ^= static_cast<unsigned char>(change);
      }
    }
  }
  const auto facts = check<TypeParam>(keys, numbered_values<typename TypeParam::mapped_type>(keys.size()));
  EXPECT_EQ(facts.duplicates, 0u);
}

}  // namespace

/// Bytes decide: the user promises that equal keys have equal bytes.
struct point {
  float x, y;
};

}  // namespace test

template <>
inline constexpr bool roost::is_bitwise_comparable<test::point> = true;

namespace test {
namespace {

static_assert(!roost::is_bitwise_comparable<float>);
static_assert(roost::is_bitwise_comparable<twelve>);

struct point_of {
  ROOST_FN point operator()(std::size_t i) const {
    return {static_cast<float>(i) * 0.5f, -static_cast<float>(i)};
  }
};
enum class colour : short {};
struct colour_of {
  ROOST_FN colour operator()(std::size_t i) const { return static_cast<colour>(i % 1000); }
};

TEST(struct_keys_class, are_compared_as_their_owner_promised) {
  const roost::frozen_map map(test_place(), roost::computed(5000, point_of{}),
                              roost::computed(5000, colour_of{}));
  memory_of<colour> results(test_place(), 6000);
  map.find(test_place(), roost::computed(6000, point_of{}), results, colour{-1});
  const auto found = download(results);
  for (int i = 0; i < 6000; ++i) EXPECT_EQ(static_cast<int>(found[i]), i < 5000 ? i % 1000 : -1);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(struct_keys_class, may_be_enumerators) {
  const roost::frozen_set set(test_place(), roost::computed(5000, colour_of{}));
  EXPECT_EQ(set.size(), 1000u);
  EXPECT_EQ(set.statistics().duplicates, 4000u);
  EXPECT_EQ(set.count_found(test_place(), roost::computed(2000, colour_of{})), 2000u);
  EXPECT_TRUE(set.valid(test_place()));
}

}  // namespace
}  // namespace test
