#include <array>
#include <random>

#include "support/tables_bodies.hpp"

// Layout compact: sectors of remainders. The rules that hold for every layout are checked where those are;
// here are the formats, loads that plain slots cannot have, and full stashes.

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
    const roost::detail::sector_format f = table_type::formats[i].format;
    EXPECT_EQ(f.slots, slots);
    EXPECT_EQ(f.tag_bits, bits);
    std::vector<int> used(static_cast<std::size_t>(f.head_words()) *
                          32);  // each bit of the head is one tag's or one mark's
    for (int s = 0; s < f.slots; ++s) {
      for (int b = 0; b < f.tag_bits; ++b)
        ++used.at(static_cast<std::size_t>(f.by_bits() ? b * f.slots + s : s * f.stride + b));
    }
    for (int m = 0; m < f.marks(); ++m) ++used.at(static_cast<std::size_t>(f.mark_at(m)));
    EXPECT_LE(*std::max_element(used.begin(), used.end()), 1);
    EXPECT_LE(f.head_words() * 4 + f.slots * f.value_bytes, f.bytes) << "values reach out of the sector";
    EXPECT_GE(table_type::tries_of(static_cast<int>(i), table_type::formats[i].sectors_least), 3u);
    ++i;
  }
}

TEST(compact, the_more_sectors_the_more_pairs_in_each) {
  if constexpr (std::is_same_v<place_type, roost::host>) {  // tags of a 32-bit hash: 32 or 16 bits come first
    expect_formats<u32, u32>({{8, 31}, {10, 16}, {11, 14}, {12, 10}, {12, 10}}, 64);
    expect_formats<u32, roost::none>({{8, 31}, {15, 16}, {21, 12}, {23, 11}, {25, 10}}, 32);
    expect_formats<u64, u64>({{4, 62}, {4, 62}, {4, 62}, {4, 62}}, 64);
    expect_formats<u64, u32>({{5, 62}, {6, 52}}, 64);
    expect_formats<u32, u64>({{5, 31}, {6, 16}}, 64);
    expect_formats<u64, roost::none>({{8, 62}, {10, 50}}, 64);
    return;
  }
  expect_formats<u32, u32>({{4, 31}, {5, 17}, {6, 10}, {6, 10}, {6, 10}}, 32);
  expect_formats<u32, roost::none>({{9, 28}, {14, 17}, {21, 12}, {23, 11}, {25, 10}}, 32);
  expect_formats<u64, u64>({{4, 63}, {4, 63}, {4, 63}, {4, 63}}, 64);
  expect_formats<u64, u32>({{5, 63}, {6, 52}}, 64);
  expect_formats<u32, u64>({{5, 31}, {6, 20}}, 64);
  expect_formats<u64, roost::none>({{4, 63}, {5, 49}, {6, 42}, {6, 42}}, 32);
}

template <int Bits, int Count, int Apart>
void expect_equal_lanes() {
  using number = std::conditional_t<Bits == 16, std::uint16_t, u32>;
  alignas(64) number numbers[64 / sizeof(number)];
  std::mt19937_64 random(Bits + Count + Apart);
  for (int round = 0; round < 2000; ++round) {
    for (auto& n : numbers) n = static_cast<number>(random() % 3 | random() % 2 << (Bits - 1));
    const u32 wanted = static_cast<u32>(random() % 3), care = round % 2 ? ~u32{0} : (1u << (Bits - 1)) - 1;
    u32 expected = 0;
    for (int i = 0; i < Count; ++i)
      expected |= u32{(numbers[i * Apart] & (Bits == 16 ? 0xffff : care)) == wanted} << i;
    ASSERT_EQ((roost::detail::equal_lanes<Bits, Count, Apart>(numbers, wanted, care)), expected);
#if ROOST_LANES
    if constexpr (Bits == 32 && Count <= 8) {
      if (__builtin_cpu_supports("avx2")) {
        ASSERT_EQ((roost::detail::equal_wide_lanes<Count, Apart>(numbers, wanted, care)), expected);
      }
    }
#endif
  }
}

#if ROOST_LANES
template <int Count>
void expect_equal_long_lanes() {
  alignas(64) u64 numbers[8];
  std::mt19937_64 random(Count);
  for (int round = 0; round < 2000; ++round) {
    for (auto& n : numbers) n = random() % 3 << 31 | random() % 4 << 62;
    const u64 wanted = random() % 3 << 31, care = ~u64{0} >> 2;
    u32 expected = 0;
    for (int i = 0; i < Count; ++i) expected |= u32{(numbers[i] & care) == wanted} << i;
    ASSERT_EQ(roost::detail::equal_halves<Count>(numbers, wanted, care), expected);
    if (__builtin_cpu_supports("avx2")) {
      ASSERT_EQ(roost::detail::equal_long_lanes<Count>(numbers, wanted, care), expected);
    }
  }
}

template <int Count>
void expect_equal_quads() {
  std::array<unsigned char, 16> wanted{}, keys[Count];
  std::mt19937_64 random(Count);
  for (int round = 0; round < 2000; ++round) {
    for (auto& byte : wanted) byte = static_cast<unsigned char>(random());
    u32 expected = 0;
    for (int i = 0; i < Count; ++i) {
      keys[i] = wanted;
      if (random() % 3 == 0) keys[i][random() % 16] ^= static_cast<unsigned char>(1u << random() % 8);
      expected |= u32{keys[i] == wanted} << i;
    }
    ASSERT_EQ(roost::detail::equal_quads<Count>(keys, wanted.data()), expected);
  }
}
#endif

TEST(compact, numbers_are_compared_side_by_side) {
  expect_equal_lanes<32, 2, 1>();
  expect_equal_lanes<32, 5, 1>();
  expect_equal_lanes<32, 8, 1>();
  expect_equal_lanes<32, 12, 1>();
  expect_equal_lanes<32, 16, 1>();
  expect_equal_lanes<32, 8, 2>();
  expect_equal_lanes<16, 6, 1>();
  expect_equal_lanes<16, 10, 1>();
  expect_equal_lanes<16, 15, 1>();
  expect_equal_lanes<16, 16, 1>();
#if ROOST_LANES
  expect_equal_quads<4>();
  expect_equal_quads<8>();
  expect_equal_long_lanes<2>();
  expect_equal_long_lanes<4>();
  expect_equal_long_lanes<5>();
  expect_equal_long_lanes<8>();
#endif
}

TEST(compact, small_tables_of_every_size) {
  for (std::size_t n = 0; n <= 100; n += only_threads || (sanitized && !on_host) ? 9 : 1) {
    SCOPED_TRACE(n);
    numbers keys = different_numbers(n, n);
    check<compact_map<u32, u32>>(keys);
    check<compact_map<u64, u64>>(keys);
    check<compact_set<u32>>(keys);
    if (n != 0) keys.insert(keys.end(), {keys[n / 2], keys[0]});
    EXPECT_EQ((check<compact_map<u32, u32>>(keys).duplicates), n == 0 ? 0u : 2u);
  }
}

#if !defined(__CUDACC__)
TEST(compact, one_thread_builds_what_several_do) {
  const roost::host one(1), two(2);
  for (const std::size_t n : {300, 5000, 80000, 200000}) {
    if (sanitized && n > 100000) continue;
    for (const std::size_t copies : {0, 7}) {
      numbers key_numbers = different_numbers(n, 3);
      for (std::size_t i = 0; i < copies; ++i) key_numbers[n - 1 - i] = key_numbers[i * 11];
      const auto keys = from_numbers<u32>(key_numbers);
      const auto values = numbered_values<u32>(n);
      const compact_map<u32, u32> a(keys, values, {}, one), b(keys, values, {}, two);
      EXPECT_EQ(a.statistics().duplicates, copies);
      EXPECT_EQ(a.bytes(), b.bytes());
      EXPECT_EQ(a.find(keys, 0), b.find(keys, 0));
      EXPECT_TRUE(a.valid());
    }
  }
}
#endif

#if !defined(__CUDACC__)
TEST(compact, answers_may_overwrite_the_queries) {
  for (const std::size_t n : {100, 20000, 300000}) {
    const auto keys = from_numbers<u32>(different_numbers(n, 4));
    const roost::frozen_map<u32, u32> map(test_place(), keys, numbered_values<u32>(n));
    std::vector<u32> both = keys;
    map.find(test_place(), both, both, 0);
    EXPECT_EQ(both, numbered_values<u32>(n));
  }
}
#endif

TEST(compact, is_the_layout_where_it_takes_the_types) {
  static_assert(std::is_same_v<roost::default_layout<u32, u32>, roost::compact>);
  static_assert(std::is_same_v<roost::default_layout<u64, roost::none>, roost::compact>);
  static_assert(std::is_same_v<roost::default_layout<sixteen, u32>, roost::bucketed>);
  static_assert(std::is_same_v<roost::frozen_map<u32, u64, place_type>::ref_type,
                               roost::compact::table<place_type, u32, u64>>);
  static_assert(std::is_same_v<roost::frozen_set<twelve, place_type>::ref_type,
                               roost::bucketed::table<place_type, twelve, roost::none>>);
}

/// Throws pairs into sectors, and counts who finds no place.
double homeless(std::size_t sectors, double mean, int slots, u32 tries) {
  std::mt19937_64 random(7);
  std::vector<int> filled(sectors);
  std::size_t coming = static_cast<std::size_t>(mean * static_cast<double>(sectors));
  for (u32 t = 0; t < tries; ++t) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < coming; ++i) {
      int& here = filled[random() % sectors];
      here < slots ? void(++here) : void(++left);
    }
    coming = left;
  }
  return static_cast<double>(coming) / static_cast<double>(sectors);
}

TEST(compact, the_stash_has_room_for_as_many_as_find_no_place) {
  for (const auto& [mean, slots, tries] : std::initializer_list<std::tuple<double, int, unsigned>>{
           {3.2, 4, 3}, {4.5, 6, 8}, {5.2, 6, 3}, {20.0, 22, 3}, {22.0, 25, 8}}) {
    const double expected = roost::detail::expected_homeless(mean, slots, tries),
                 seen = homeless(1 << 18, mean, slots, tries);
    EXPECT_NEAR(seen, expected, 0.03 * expected + 2e-4)
        << mean << " pairs for " << slots << " slots, " << tries << " tries";
  }
  EXPECT_NEAR(roost::detail::expected_homeless(10, 4, 3), 6, 1e-6) << "who has no slot has no home";
  EXPECT_EQ(roost::detail::expected_homeless(0, 4, 3), 0);
}

TEST(compact, holds_more_than_plain_slots_would) {
  if (only_threads) GTEST_SKIP() << "threads of large tables do what those of small ones do";
  constexpr std::size_t n = on_host ? 2200000 : 500000;  // so many sectors that tags have 16 or 17 bits
  for (const double load : {0.5, 0.8, 0.95}) {
    if (sanitized && load != 0.95) continue;
    SCOPED_TRACE(load);
    compact_map<u32, u32>::options options;
    options.load_factor = load;
    const compact_map<u32, u32> map(from_numbers<u32>(different_numbers(n, 5)), numbered_values<u32>(n),
                                    options);
    EXPECT_EQ(map.size(), n);
    EXPECT_NEAR(map.load_factor(), load, 0.002 * load) << "the stashes are counted";
    EXPECT_NEAR(static_cast<double>(map.bytes()), n * 8 / map.load_factor(), 100.0);
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
  EXPECT_LT(map.load_factor(), 1.0);
  EXPECT_EQ(map.find(keys, 0), numbered_values<u32>(n));
  EXPECT_TRUE(map.valid());
}

TEST(compact, keys_that_crowd_in_sectors_go_to_the_stash_or_get_other_hashes) {
  for (const std::size_t crowd : {5, 8, 16, 20, 25, 30, 60, 300}) {  // with one home
    if (sanitized && crowd % 3 != 0 && crowd != 25) continue;
    numbers keys = different_numbers(sanitized ? 5000 : 20000, 7);
    for (u32 i = 0; i < crowd; ++i) keys.push_back(roost::unmix32(0x40000000u + i));
    const auto facts = check<compact_map<u32, u32>>(shuffled(keys, 8));
    EXPECT_LE(facts.restarts, 1) << crowd;
    numbers copied = keys;
    for (u32 i = 0; i < crowd; ++i) copied.insert(copied.end(), 20, roost::unmix32(0x40000000u + i));
    check<compact_map<u32, u32>>(shuffled(copied, 9));
    check<compact_set<u32>>(shuffled(copied, 9));
  }
}

struct hashed_key {
  ROOST_FN u32 operator()(std::size_t i) const { return roost::mix32(static_cast<u32>(i), 99); }
};
/// The last n / 8 keys of a table of n, and as many others.
struct some_keys {
  std::size_t n;
  ROOST_FN u32 operator()(std::size_t i) const { return hashed_key()(n - n / 8 + i); }
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
  ROOST_FN u64 operator()(std::size_t i) const {
    return u64{hashed_key()(i)} * 5 + factor * value_of_number()(i);
  }
};

TEST(compact, large_tables_have_the_densest_sectors) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  constexpr std::size_t n = on_host ? 70000000 : 84000000;  // 12.6 million sectors beside the stashes
  const roost::computed keys(n, hashed_key());
  const roost::computed values(n, value_of_number());
  const roost::frozen_map<u32, u32, place_type, roost::compact> map(test_place(), keys, values,
                                                                    {.load_factor = 1.2});
  EXPECT_EQ(map.size(), n);
  EXPECT_NEAR(map.load_factor(), 1.2, 0.002);
  EXPECT_LT(map.bytes(), n * 8) << "a table smaller than its input";
  EXPECT_EQ(map.statistics().restarts, 0);
  EXPECT_EQ(map.count_found(test_place(), roost::computed(n / 4, some_keys{n})), n / 8);
  const auto sum = filled<u64>(1, 0);
  map.for_each(test_place(), sum_pairs{const_cast<u64*>(sum.data())});
  EXPECT_EQ(download(sum)[0], test_place().sum(n, pair_number{1}));
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(compact, large_sets_take_less_than_two_bytes_a_key) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  constexpr std::size_t n = on_host ? 64000000 : 84000000;  // 3.15 million sectors, of 21 keys each
  const roost::frozen_set<u32, place_type, roost::compact> set(test_place(), roost::computed(n, hashed_key()),
                                                               {.load_factor = 2.5});
  EXPECT_EQ(set.size(), n);
  EXPECT_LT(static_cast<double>(set.bytes()) / n, 1.75);
  EXPECT_EQ(set.count_found(test_place(), roost::computed(n / 4, some_keys{n})), n / 8);
  const auto sum = filled<u64>(1, 0);
  set.for_each(test_place(), sum_keys{const_cast<u64*>(sum.data())});
  EXPECT_EQ(download(sum)[0], test_place().sum(n, pair_number{0}));
}

struct hashed_keys {
  ROOST_FN u32 operator[](std::size_t i) const { return hashed_key()(i); }
};
template <class Ref>
struct wrong_of_worker {
  Ref ref;
  u64 n, workers;
  ROOST_FN u64 operator()(std::size_t worker) const {
    u64 asked = 0, wrong = 0;
    ref.with_format([&](auto format) {
      roost::detail::probe_interleaved(
          ref, format, hashed_keys(), {worker, 2 * n, workers}, [&](u64 i, const auto& hit) {
            wrong += i != worker + asked++ * workers || hit.has_value() != (i < n);
          });
    });
    return wrong + (asked != (2 * n - worker + workers - 1) / workers);
  }
};

TEST(compact, one_loop_over_many_keys_answers_each) {
  constexpr std::size_t n = 300000, workers = 1000;
  for (const double load :
       {0.8, 2.0, 4.0}) {  // few and many that one sector does not answer, and full stashes
    const roost::frozen_set<u32, place_type, roost::compact> set(
        test_place(), roost::computed(n, hashed_key()), {.load_factor = load});
    using ref_type = std::remove_cvref_t<decltype(set.ref())>;
    EXPECT_EQ(test_place().sum(workers, wrong_of_worker<ref_type>{set.ref(), n, workers}), 0u) << load;
  }
}

struct long_value {
  u64 a, b;
};
struct long_value_of_number {
  ROOST_FN long_value operator()(std::size_t i) const { return {i, ~u64{i}}; }
};
template <class Ref>
struct wrong_long_value {
  Ref ref;
  ROOST_FN u64 operator()(std::size_t i) const {
    const auto found = ref.find(hashed_key()(i));
    return !found || found->a != i || found->b != ~u64{i};
  }
};

TEST(compact, values_of_sixteen_bytes_large) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  constexpr std::size_t n = on_host ? 3000000 : 10000000;
  const roost::frozen_map map(test_place(), roost::computed(n, hashed_key()),
                              roost::computed(n, long_value_of_number()));
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(map)>,
                               roost::frozen_map<u32, long_value, place_type, roost::compact>>);
  EXPECT_EQ(map.size(), n);
  EXPECT_NEAR(map.load_factor(), 0.8, 0.002);
  EXPECT_EQ(test_place().sum(n, wrong_long_value<std::remove_cvref_t<decltype(map.ref())>>{map.ref()}), 0u);
  EXPECT_EQ(map.count_found(test_place(), roost::computed(2 * n, hashed_key())), n);
  EXPECT_TRUE(map.valid(test_place()));
}

#if defined(__CUDACC__)
TEST(compact, more_slots_than_32_bits_count_large) {
  constexpr std::size_t n = 3600000000;
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  if (free < std::size_t{100} << 30) GTEST_SKIP() << "needs 100 GiB of free device memory";
  const roost::frozen_map<u32, u32, place_type> map(test_place(), roost::computed(n, hashed_key()),
                                                    roost::computed(n, value_of_number()));
  EXPECT_EQ(map.size(), n);
  EXPECT_GT(map.capacity(), std::size_t{1} << 32);
  EXPECT_GT(map.bytes(), std::size_t{1} << 32);
  EXPECT_EQ(map.count_found(test_place(), roost::computed(std::size_t{1} << 32, hashed_key())), n);
  EXPECT_TRUE(map.valid(test_place()));
}
#endif

}  // namespace
}  // namespace test
