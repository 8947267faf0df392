#include <roost/frozen_multimap.hpp>
#include <roost/stadium/stadium_map.hpp>
#include <roost/two_way_index.hpp>

#include "support/tables.hpp"

// Keys made to break the hashes: builds restart, and lose nothing.

namespace test {
namespace {

/// Different keys whose hashes under `seed` are `step` apart from `first` on. Hashes of 16 bytes fold the
/// first word, which may be any, and then the second: so all of them may have one hash.
template <class Key>
std::vector<Key> keys_with_hashes(std::size_t n, std::uint64_t first, std::uint64_t step,
                                  std::uint64_t seed = 0) {
  std::vector<Key> keys(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t hash = first + i * step;
    if constexpr (std::is_same_v<Key, sixteen>) {
      keys[i].a = i * 0x9e3779b97f4a7c15;
      keys[i].b = roost::unmix64(hash, roost::mix64(keys[i].a, seed));
    } else if constexpr (sizeof(Key) == 4) {
      keys[i] = roost::unmix32(static_cast<u32>(hash), static_cast<u32>(seed ^ (seed >> 32)));
    } else {
      keys[i] = roost::unmix64(hash, seed);
    }
  }
  return keys;
}

template <class Table>
roost::frozen_statistics check_keys(const std::vector<typename Table::key_type>& keys,
                                    const typename Table::options& options = {}) {
  return check<Table>(keys, numbered_values<typename Table::mapped_type>(keys.size()), options);
}

TEST(adversarial_keys, have_the_hashes_that_were_chosen) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{0x123456789abcdef0}}) {
    const auto four = keys_with_hashes<u32>(100, 7, 3, seed);
    const auto eight = keys_with_hashes<u64>(100, 7, 3, seed);
    const auto sixteens = keys_with_hashes<sixteen>(100, 7, 3, seed);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(roost::hash_of(four[i], seed), 7 + 3 * i);
      EXPECT_EQ(roost::hash_of(eight[i], seed), 7 + 3 * i);
      EXPECT_EQ(roost::hash_of(sixteens[i], seed), 7 + 3 * i);
    }
  }
}

const std::size_t many = sanitized && on_host ? 20000 : 60000;  // of several regions

template <class Table>
class adversarial : public testing::Test {};
using tables = table_axis<bucketed_map<u32, u32>, bucketed_map<u64, u64>, bucketed_map<sixteen, u32>,
                          bucketed_set<u32>, bucketed_set<u64>, compact_map<u32, u32>, compact_map<u64, u64>,
                          compact_set<u32>, compact_set<u64>>;
TYPED_TEST_SUITE(adversarial, tables);

TYPED_TEST(adversarial, all_keys_in_one_region_of_the_first_seed) {
  using key = typename TypeParam::key_type;
  const std::size_t n = many;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{0x123456789abcdef0}}) {
    if (sanitized && seed == 0) continue;
    typename TypeParam::options options;
    options.seed = seed;
    for (const std::uint64_t first :
         {std::uint64_t{0}, ~std::uint64_t{0} - n}) {  // the lowest and the highest hashes
      const auto facts = check_keys<TypeParam>(keys_with_hashes<key>(n, first, 1, seed), options);
      EXPECT_EQ(facts.size, n);
      EXPECT_GE(facts.restarts, 1) << "did this test not hit one region?";
      EXPECT_LE(facts.restarts, 2);
    }
  }
}

TYPED_TEST(adversarial, all_keys_and_copies_of_them_in_one_region) {
  using key = typename TypeParam::key_type;
  auto keys = keys_with_hashes<key>(many / 2, 0, 1);
  keys.insert(keys.end(), many, key{keys[77]});
  const auto facts = check_keys<TypeParam>(shuffled(keys, 1));
  EXPECT_EQ(facts.duplicates, many);
}

TYPED_TEST(adversarial, one_region_has_just_too_many) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  const std::size_t n = many;
  const TypeParam plain(from_numbers<key>(different_numbers(n, 2)), numbered_values<value>(n));
  const std::uint64_t regions = plain.statistics().regions, slots = plain.capacity() / regions;
  constexpr double hashes = sizeof(key) == 4 ? 0x1p32 : 0x1p64;
  for (const int more : sanitized ? std::vector{1} : std::vector{0, 1, 100}) {
    // As many keys as region 0 has slots, and `more`; their hashes are evenly spread, and so are those of the
    // other keys.
    const std::uint64_t crowd = slots + static_cast<std::uint64_t>(more),
                        step = static_cast<std::uint64_t>(hashes / regions / crowd);
    const std::uint64_t others = n - crowd,
                        rest = static_cast<std::uint64_t>(hashes * ((regions - 1.0) / regions) / others);
    auto keys = keys_with_hashes<key>(crowd, 0, step);
    const auto others_keys =
        keys_with_hashes<key>(others, static_cast<std::uint64_t>(hashes / regions) + 1000, rest);
    keys.insert(keys.end(), others_keys.begin(), others_keys.end());
    const auto facts = check_keys<TypeParam>(shuffled(keys, 3));
    EXPECT_EQ(facts.size, n);
    EXPECT_EQ(facts.regions, regions);
    if (std::is_same_v<typename TypeParam::layout, roost::bucketed>) {
      EXPECT_EQ(facts.restarts, more > 0) << more << " keys more than slots";
    } else {  // evenly spread, but their tries do not reach every slot
      EXPECT_LE(facts.restarts, 1);
      EXPECT_GE(facts.restarts, more > 0);
    }
  }
}

TYPED_TEST(adversarial, a_crowd_in_one_bucket) {
  using key = typename TypeParam::key_type;
  auto keys = from_numbers<key>(different_numbers(many, 2));
  const auto crowd = keys_with_hashes<key>(4000, 5, 1);
  keys.insert(keys.end(), crowd.begin(), crowd.end());
  check_keys<TypeParam>(shuffled(keys, 3));
}

TYPED_TEST(adversarial, all_keys_of_a_region_in_one_bucket) {
  // Hashes a multiple of 2^20 or 2^40 apart: many regions, in each the same few buckets.
  using key = typename TypeParam::key_type;
  check_keys<TypeParam>(
      keys_with_hashes<key>(4096, 12345, sizeof(key) == 4 ? 1u << 20 : std::uint64_t{1} << 52));
}

TYPED_TEST(adversarial, one_bucket_of_each_region_has_all_keys) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  const std::size_t n = many;
  const TypeParam plain(from_numbers<key>(different_numbers(n, 2)), numbered_values<value>(n));
  const std::uint64_t regions = plain.statistics().regions, each = n / regions;
  constexpr double hashes = sizeof(key) == 4 ? 0x1p32 : 0x1p64;
  std::vector<key> keys;
  for (std::uint64_t r = 0; r < regions;
       ++r) {  // each region has room for its keys, but they are far from home
    const auto crowd = keys_with_hashes<key>(
        each,
        static_cast<std::uint64_t>(std::ceil(hashes * static_cast<double>(r) / static_cast<double>(regions))),
        1);
    keys.insert(keys.end(), crowd.begin(), crowd.end());
  }
  const auto facts = check_keys<TypeParam>(shuffled(keys, 4));
  EXPECT_EQ(facts.size, each * regions);
  if (std::is_same_v<place_type, roost::host>) {
    EXPECT_GE(facts.restarts, 1) << "walked instead of restarting";
  }
  EXPECT_LE(facts.restarts, 2);
}

TYPED_TEST(adversarial, restarts_are_not_endless) {
  using key = typename TypeParam::key_type;
  typename TypeParam::options options;
  options.max_restarts = 0;
  const auto keys = keys_with_hashes<key>(many, 0, 1);
  const auto values = numbered_values<typename TypeParam::mapped_type>(keys.size());
  expect_error<roost::build_error>([&] { TypeParam(keys, values, options); },
                                   {std::to_string(many), "1 attempts", "load factor", "max_restarts"});
  options.max_restarts = 1;
  EXPECT_TRUE(TypeParam(keys, values, options).valid());
}

template <class Table>
class adversarial_cuckoo : public testing::Test {};
using cuckoo_tables =
    table_axis<cuckoo_map<u32, u32>, cuckoo_map<u64, u64>, cuckoo_set<u32>, cuckoo_map<sixteen, twelve>>;
TYPED_TEST_SUITE(adversarial_cuckoo, cuckoo_tables);

/// Keys that the paper's functions see as these numbers: of longer keys they take the hash.
template <class Key>
std::vector<Key> keys_seen_as(const numbers& seen) {
  std::vector<Key> keys;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if constexpr (sizeof(Key) <= 8) {
      keys.push_back(from_number<Key>(seen[i]));
    } else {
      keys.push_back(keys_with_hashes<Key>(1, seen[i], 0)[0]);
    }
  }
  return keys;
}

TYPED_TEST(adversarial_cuckoo, keys_that_are_equal_modulo_the_number_of_regions) {
  const std::size_t n = 5000;
  const TypeParam plain(from_numbers<typename TypeParam::key_type>(different_numbers(n, 1)),
                        numbered_values<typename TypeParam::mapped_type>(n));
  const auto facts = check_keys<TypeParam>(
      keys_seen_as<typename TypeParam::key_type>(multiples(n, plain.statistics().regions, 3)));
  EXPECT_EQ(facts.regions, plain.statistics().regions);
  EXPECT_GE(facts.restarts, 1);
}

TYPED_TEST(adversarial_cuckoo, keys_that_are_equal_modulo_the_papers_prime) {
  // 4-byte keys: 2259 of them, all the same to every function of the paper.
  const auto facts = check_keys<TypeParam>(
      keys_seen_as<typename TypeParam::key_type>(multiples(2259, roost::alcantara_hash::prime)));
  EXPECT_EQ(facts.size, 2259u);
  EXPECT_GT(facts.region_restarts, 0u);
}

TYPED_TEST(adversarial_cuckoo, both_at_once) {
  const std::size_t n = 2000;
  const std::uint64_t regions = 5;  // ceil(2000 / 409)
  using key = typename TypeParam::key_type;
  const auto facts = check_keys<TypeParam>(
      keys_seen_as<key>(multiples(n, roost::alcantara_hash::prime * (sizeof(key) > 4 ? regions : 1))));
  EXPECT_EQ(facts.size, n);
}

TYPED_TEST(adversarial_cuckoo, structured_keys_and_copies) {
  numbers keys = multiples(20000, 1 << 16);
  keys.insert(keys.end(), 10000, 7 << 16);
  check_keys<TypeParam>(keys_seen_as<typename TypeParam::key_type>(shuffled(keys, 4)));
}

TYPED_TEST(adversarial_cuckoo, restarts_are_not_endless) {
  typename TypeParam::options options;
  options.max_restarts = 0;
  const auto keys = keys_seen_as<typename TypeParam::key_type>(multiples(5000, 13));  // 13 regions
  const auto values = numbered_values<typename TypeParam::mapped_type>(keys.size());
  expect_error<roost::build_error>([&] { TypeParam(keys, values, options); },
                                   {"5000", "attempts", "max_restarts"});
}

// Keys of 16 bytes that all have one hash under the first seed, which no split takes apart.

TEST(adversarial_hash, of_all_keys_of_a_frozen_map) {
  for (const std::size_t n : {100, 2000, 60000}) {
    const auto keys = keys_with_hashes<sixteen>(n, 0x1234567890abcdef, 0);
    const roost::frozen_map map(test_place(), upload(keys), upload(numbered_values<u32>(n)));
    EXPECT_EQ(map.size(), n);
    EXPECT_EQ(map.count_found(test_place(), upload(keys)), n);
    EXPECT_EQ(map.count_found(test_place(), upload(keys_with_hashes<sixteen>(n, 0x1234567890abcdee, 0))), 0u);
    EXPECT_LE(map.statistics().restarts, 2);
    if (n == 60000) {
      EXPECT_GE(map.statistics().restarts, 1);
    }
    EXPECT_TRUE(map.valid(test_place()));
  }
}

TEST(adversarial_hash, of_all_keys_of_a_stadium_map) {
  constexpr std::size_t n = 2000;  // each walks past all others
  for (const u32 region_slots : {0u, 61u}) {
    const auto keys = keys_with_hashes<sixteen>(2 * n, 0x1234567890abcdef, 0);
    const auto half = upload(std::vector<sixteen>(keys.begin(), keys.begin() + n));
    roost::stadium_map<sixteen, u32, place_type> map(test_place(), n, {.region_slots = region_slots});
    EXPECT_EQ(map.insert(test_place(), half, upload(numbered_values<u32>(n))).inserted, n);
    EXPECT_EQ(map.insert(test_place(), half, upload(numbered_values<u32>(n))).present, n);
    EXPECT_EQ(map.count_found(test_place(), upload(keys)), n);
    EXPECT_TRUE(map.valid(test_place()));
    EXPECT_EQ(map.erase(test_place(), half), n);
    EXPECT_EQ(map.size(test_place()), 0u);
  }
}

TEST(adversarial_hash, of_all_keys_that_are_grouped) {
  constexpr std::size_t n = 3000;
  const auto keys = keys_with_hashes<sixteen>(n, 0x1234567890abcdef, 0);
  auto twice = keys;
  twice.insert(twice.end(), keys.begin(), keys.end());
  const roost::two_way_index<sixteen, place_type> index(test_place(), upload(twice));
  EXPECT_EQ(index.size(), n);
  EXPECT_TRUE(index.valid(test_place()));
  const roost::frozen_multimap map(test_place(), upload(twice), upload(numbered_values<u32>(2 * n)));
  EXPECT_EQ(map.key_count(), n);
  EXPECT_EQ(map.size(), 2 * n);
  EXPECT_TRUE(map.valid(test_place()));
}

}  // namespace
}  // namespace test
