#include "support/tables.inl"

// Layout compact: sectors of remainders. The rules that hold for every layout are checked where those are; here are the formats, loads
// that plain slots cannot have, and full stashes.

namespace test {

TEST_TABLES_COMPACT(TEST_DEFINE)

namespace {

TEST(compact, bits_are_found_where_they_were_put) {
  for (const int width : {1, 3, 10, 18, 31, 32, 33, 50, 63, 64}) {
    for (int at = 0; at + width <= 256; at += 7) {
      u32 words[9] = {};
      const u64 bits = roost::mix64(static_cast<u64>(at) * 64 + static_cast<u64>(width)) >> (64 - width);
      roost::detail::put_bits(words, at, width, bits);
      ASSERT_EQ(roost::detail::bits_of(words, at, width), bits) << width << " bits at " << at;
      u64 others = 0;
      for (int i = 0; i < 256; ++i) {
        if (i < at || i >= at + width) others |= roost::detail::bits_of(words, i, 1);
      }
      ASSERT_EQ(others, 0u) << width << " bits at " << at << " went farther";
    }
  }
}

template <class Key, class Value>
void expect_formats(std::initializer_list<std::pair<int, int>> slots_and_bits, int bytes) {
  using table_type = roost::compact::table<place_type, Key, Value>;
  EXPECT_EQ(table_type::sector_bytes, bytes);
  EXPECT_EQ(sizeof(typename table_type::sector), static_cast<std::size_t>(bytes));
  std::size_t i = 0;
  for (const auto& [slots, bits] : slots_and_bits) {
    const roost::detail::sector_format f = table_type::formats[i];
    EXPECT_EQ(f.slots, slots);
    EXPECT_EQ(f.remainder_bits, bits);
    EXPECT_LE(f.slots * f.tag_bits(), f.overflowed_at()) << "tags reach into the count";
    EXPECT_LE(f.head_words() * 4 + f.slots * f.value_bytes, f.bytes) << "values reach out of the sector";
    EXPECT_GE(f.remainder_bits, table_type::hash_bits - table_type::log2_sectors[i]) << "a remainder and a sector do not tell the hash";
    ++i;
  }
}

TEST(compact, the_more_sectors_the_more_pairs_in_each) {
  expect_formats<u32, u32>({{4, 29}, {5, 16}, {5, 16}, {6, 8}}, 32);
  expect_formats<u32, roost::none>({{8, 29}, {13, 17}, {20, 10}, {25, 8}}, 32);
  expect_formats<u64, u64>({{4, 61}, {4, 61}, {4, 61}, {4, 61}}, 64);
  expect_formats<u64, roost::none>({{4, 61}, {5, 48}, {5, 48}, {6, 40}}, 32);
}

TEST(compact, holds_more_than_plain_slots_would) {
  constexpr std::size_t n = 2000000;
  for (const double load : {0.5, 0.8, 0.95}) {
    SCOPED_TRACE(load);
    compact_map<u32, u32>::options options;
    options.load_factor = load;
    const compact_map<u32, u32> map(from_numbers<u32>(different_numbers(n, 5)), numbered_values<u32>(n), options);
    EXPECT_EQ(map.size(), n);
    EXPECT_NEAR(map.load_factor(), load, 0.04 * load);
    EXPECT_NEAR(static_cast<double>(map.bytes()), n * 8 / map.load_factor(), 1.0);
    EXPECT_EQ(map.statistics().restarts, 0);
    EXPECT_LT(map.mean_probes(), load < 0.9 ? 1.1 : 1.3);
    EXPECT_TRUE(map.valid());
  }
}

TEST(compact, loads_that_do_not_fit_get_a_larger_table) {
  constexpr std::size_t n = 30000;
  const auto keys = from_numbers<u32>(different_numbers(n, 6));
  compact_map<u32, u32>::options options;
  options.load_factor = 4;
  const compact_map<u32, u32> map(keys, numbered_values<u32>(n), options);
  EXPECT_EQ(map.size(), n);
  EXPECT_GT(map.load_factor(), 0.65);
  EXPECT_LT(map.load_factor(), 0.9);
  EXPECT_EQ(map.find(keys, 0), numbered_values<u32>(n));
  EXPECT_TRUE(map.valid());
}

TEST(compact, keys_that_crowd_in_sectors_go_to_the_stash_or_get_other_hashes) {
  for (const std::size_t crowd : {5, 8, 16, 20, 25, 30, 60, 300}) {  // with one home
    numbers keys = different_numbers(20000, 7);
    for (u32 i = 0; i < crowd; ++i) keys.push_back(roost::unmix32(0x40000000u + i));
    const auto facts = check<compact_map<u32, u32>>(shuffled(keys, 8));
    EXPECT_LE(facts.restarts, 1) << crowd;
    numbers copied = keys;
    for (u32 i = 0; i < crowd; ++i) copied.insert(copied.end(), 20, roost::unmix32(0x40000000u + i));
    check<compact_map<u32, u32>>(shuffled(copied, 9));
    check<compact_set<u32>>(shuffled(copied, 9));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
struct hashed_key {
  ROOST_FN u32 operator()(std::size_t i) const { return roost::mix32(static_cast<u32>(i), 99); }
};
struct value_of_number {
  ROOST_FN u32 operator()(std::size_t i) const { return static_cast<u32>(3 * i + 1); }
};
struct sum_pairs {
  u64* sum;
  ROOST_FN void operator()(u32 key, u32 value) const { roost::detail::fetch_add(*sum, u64{key} * 5 + value); }
};
struct sum_keys {
  u64* sum;
  ROOST_FN void operator()(u32 key) const { roost::detail::fetch_add(*sum, u64{key} * 5); }
};
struct pair_number {
  u64 factor;
  ROOST_FN u64 operator()(std::size_t i) const { return u64{hashed_key()(i)} * 5 + factor * value_of_number()(i); }
};

TEST(compact, large_tables_have_the_densest_sectors) {
  constexpr std::size_t n = 84000000;
  const roost::computed keys(n, hashed_key());
  const roost::computed values(n, value_of_number());
  const roost::frozen_map<u32, u32, place_type, roost::compact> map(test_place(), keys, values, {.load_factor = 1.2});
  EXPECT_EQ(map.size(), n);
  EXPECT_GT(map.load_factor(), 1.1);
  EXPECT_LT(map.bytes(), n * 8) << "a table smaller than its input";
  EXPECT_EQ(map.statistics().restarts, 0);
  EXPECT_EQ(map.count_found(test_place(), roost::computed(2 * n, hashed_key())), n);
  const auto sum = filled<u64>(1, 0);
  map.for_each(test_place(), sum_pairs{const_cast<u64*>(sum.data())});
  EXPECT_EQ(download(sum)[0], test_place().sum(n, pair_number{1}));
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(compact, large_sets_take_two_bytes_a_key) {
  constexpr std::size_t n = 84000000;
  const roost::frozen_set<u32, place_type, roost::compact> set(test_place(), roost::computed(n, hashed_key()), {.load_factor = 2.2});
  EXPECT_EQ(set.size(), n);
  EXPECT_LT(static_cast<double>(set.bytes()) / n, 2.0);
  EXPECT_EQ(set.count_found(test_place(), roost::computed(2 * n, hashed_key())), n);
  const auto sum = filled<u64>(1, 0);
  set.for_each(test_place(), sum_keys{const_cast<u64*>(sum.data())});
  EXPECT_EQ(download(sum)[0], test_place().sum(n, pair_number{0}));
  EXPECT_TRUE(set.valid(test_place()));
}
#endif

}  // namespace
}  // namespace test
