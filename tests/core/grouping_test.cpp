#include <roost/detail/groups/grouping.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Groups of items: where frequent keys go, in what order groups come out, and the way back.

namespace test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Keys whose hashes follow each other: they share a region, or are neighbours.
std::vector<u32> close_keys(u32 n, u32 first_hash, u64 seed) {
  std::vector<u32> keys;
  for (u32 i = 0; i < n; ++i) keys.push_back(roost::key_of_hash<u32>(first_hash + i, seed));
  return keys;
}

TEST(grouping, frequent_keys_have_regions_behind_those_that_they_would_be_in) {
  for (const u32 regions : {2u, 5u, 64u, 8192u, 8193u, 38912u, 1000000u}) {
    roost::detail::regions_and_frequent_keys<u32> to({3, regions});
    std::vector<u32> frequent = close_keys(40, 1u << 31, 3);
    for (u32 i = 0; i < 200; ++i) frequent.push_back(roost::key_of_hash<u32>((1u << 31) + i * 65536 + 99, 3));
    for (u32 i = 0; i < 500; ++i) frequent.push_back(i * 7919);
    std::stable_sort(frequent.begin(), frequent.end(),
                     [&](u32 a, u32 b) { return to.spread(a) < to.spread(b); });
    std::vector<std::uint16_t> slot(to.slots + 1, 0);
    for (const u32 key : frequent) ++slot[(to.spread(key) >> to.shift) + 1];
    for (u32 s = 0; s < to.slots; ++s) slot[s + 1] = static_cast<std::uint16_t>(slot[s + 1] + slot[s]);
    std::vector<u32> before(regions + 1, 0);  // frequent keys of regions before
    for (const u32 key : frequent) ++before[to.spread(key) + 1];
    for (u32 r = 0; r < regions; ++r) before[r + 1] += before[r];

    to.count = static_cast<u32>(frequent.size());
    to.frequent = frequent.data();
    to.begins = slot.data();
    std::size_t wrong = 0;
    for (u32 f = 0; f < to.count; ++f) {
      wrong += !to.is_frequent(frequent[f]) || to(frequent[f]) != to.spread(frequent[f]) + f + 1 ||
               to.of_frequent(f) != to(frequent[f]);
    }
    const oracle_set<u32> known(frequent.begin(), frequent.end());
    std::vector<u32> others = close_keys(1000, (1u << 31) - 500, 3);
    for (u32 i = 0; i < 100000; ++i) others.push_back(i * 2654435761u);
    for (const u32 key : others) {
      if (known.count(key) == 0)
        wrong += to.is_frequent(key) || to(key) != to.spread(key) + before[to.spread(key)];
    }
    for (u32 r = 0; r <= regions; ++r) wrong += to.index_of(r) != r + before[r];
    EXPECT_EQ(wrong, 0u) << regions;
  }
}

/// The keys of each region are where its begins say.
template <class Key, class Result>
void check_regions(const std::vector<Key>& different, const Result& result) {
  const roost::detail::leading_bits& region_of = result.frequent.region_of.spread;
  const std::vector<u64> begins = roost::copy_to_host(
      test_place(), roost::detail::begins_of_regions(test_place(), result.frequent, result.keys_before));
  ASSERT_EQ(begins.size(), region_of.regions + std::size_t{1});
  EXPECT_EQ(begins.front(), 0u);
  EXPECT_EQ(begins.back(), different.size());
  std::size_t wrong = 0;
  for (std::size_t r = 0; r + 1 < begins.size(); ++r) {
    for (u64 g = begins[r]; g < begins[r + 1]; ++g) wrong += region_of(different[g]) != r;
  }
  EXPECT_EQ(wrong, 0u);
}

template <class Key>
auto with_places(const roost::array<Key, place_type>& input) {
  const auto places = roost::detail::numbers_to<u32>(input.size());
  return roost::detail::zipped{roost::detail::as_sequence(input), places};
}

/// Groups of keys, each with its place in the input, against what they promise.
template <class Key>
void check_groups(const std::vector<Key>& keys, const oracle_map<Key, std::vector<u32>>& oracle) {
  const auto& place = test_place();
  const auto input = upload(keys);
  const auto groups = roost::detail::group(place, with_places(input), 3, "test");
  const std::vector<Key> different = roost::copy_to_host(place, groups.keys);
  const std::vector<u64> offsets = roost::copy_to_host(place, groups.offsets);
  const std::vector<u32> values = roost::copy_to_host(place, groups.values);
  ASSERT_EQ(different.size(), oracle.size());
  ASSERT_EQ(values.size(), keys.size());
  check_regions(different, groups);
  std::size_t wrong = 0;
  for (u32 g = 0; g < different.size(); ++g) {
    const std::vector<u32> mine(values.begin() + static_cast<std::ptrdiff_t>(offsets[g]),
                                values.begin() + static_cast<std::ptrdiff_t>(offsets[g + 1]));
    const auto wanted = oracle.find(different[g]);
    wrong += wanted == oracle.end() || mine != wanted->second;
  }
  EXPECT_EQ(wrong, 0u);
}

/// The same of numbers of keys. `in_order`: no two keys' words are the same, so that the keys come in the
/// order of their hashes.
template <class Key>
void check_numbers(const std::vector<Key>& keys, const oracle_map<Key, std::vector<u32>>& oracle,
                   bool in_order) {
  const auto& place = test_place();
  const auto input = upload(keys);
  const auto all =
      roost::detail::index_keys<u32>(place, roost::detail::as_sequence(input), 3,
                                     {.keys = true, .counts = true, .first = true, .indices = true}, "test");
  const std::vector<Key> different = roost::copy_to_host(place, all.keys);
  const std::vector<u64> counts = roost::copy_to_host(place, all.counts);
  const std::vector<u32> first = roost::copy_to_host(place, all.first);
  auto numbers = filled<u32>(keys.size(), 77);
  all.of_each_item(place, nullptr, numbers.data());
  const std::vector<u32> number = roost::copy_to_host(place, numbers);
  ASSERT_EQ(all.size, oracle.size());
  ASSERT_EQ(different.size(), oracle.size());
  ASSERT_EQ(counts.size(), oracle.size());
  ASSERT_EQ(first.size(), oracle.size());
  check_regions(different, all);
  std::size_t wrong = 0;
  for (u32 g = 0; g < different.size(); ++g) {
    const auto wanted = oracle.find(different[g]);
    wrong +=
        wanted == oracle.end() || counts[g] != wanted->second.size() || first[g] != wanted->second.front();
    wrong += in_order && g != 0 && roost::hash_of(different[g - 1], 3) >= roost::hash_of(different[g], 3);
  }
  for (std::size_t i = 0; i < keys.size(); ++i)
    wrong += number[i] >= different.size() || !(different[number[i]] == keys[i]);
  EXPECT_EQ(wrong, 0u);
}

template <class Key>
void check(const std::vector<u64>& numbers, bool in_order = sizeof(Key) <= 4) {
  const std::vector<Key> keys = from_numbers<Key>(numbers);
  oracle_map<Key, std::vector<u32>> oracle;
  for (u32 i = 0; i < keys.size(); ++i) oracle[keys[i]].push_back(i);
  check_groups(keys, oracle);
  check_numbers(keys, oracle, in_order);
}

TEST(grouping, comes_in_the_order_of_hashes) {
  for (const std::size_t n : {0, 1, 2, 2048, 2049, 100000}) {
    check<u32>(random_numbers(n, n));
    check<u32>(random_numbers(n, n, 1 + n / 8));
    check<sixteen>(random_numbers(n, n, 1 + n / 3));
  }
  check<u32>(random_numbers(200000, 1, 40));
}

/// All in one region, which a team can number or not.
TEST(grouping, of_as_many_keys_as_a_team_has_numbers_for) {
  constexpr u32 most = roost::detail::group_tile<place_type, u32, u32>;
  if (only_threads) GTEST_SKIP() << "one thread does it";
  for (const u32 n : {most - 1, most, most + 1, most + 2}) {
    if (sanitized && n != most && n != most + 1) continue;
    const std::vector<u32> close = close_keys(n, 1u << 30, 3);
    check<u32>({close.begin(), close.end()}, false);
  }
}

TEST(grouping, numbers_as_many_keys_as_a_region_may_have) {
  constexpr u32 most = roost::detail::indexing_tile<place_type, u32, u32>;
  if (only_threads) GTEST_SKIP() << "one thread does it";
  for (const u32 n : {most - 1, most, most + 1}) {
    if (sanitized && n != most && n != most + 1) continue;
    const std::vector<u32> close = close_keys(n, 1u << 30, 3);
    check<u32>({close.begin(), close.end()}, false);
  }
}

/// Words of 31 bits of a region are not enough to tell these keys apart: others are tried.
TEST(grouping, numbers_keys_whose_hashes_differ_in_low_bits_only) {
  std::vector<u64> numbers;
  for (const u64 first : {u64{0}, u64{1} << 63, ~u64{0} - 3000}) {
    for (u64 i = 0; i < 3000; ++i) numbers.push_back(roost::key_of_hash<u64>(first + i, 3));
  }
  check<u64>(numbers, false);
  for (u64 i = 0; i < 4000; ++i) numbers.push_back(numbers[roost::mix64(i) % numbers.size()]);
  check<u64>(numbers, false);
}

template <class Key>
void check_words(std::uint32_t regions) {
  const roost::detail::leading_bits region_of{5, regions};
  std::vector<typename std::conditional_t<sizeof(Key) <= 4, u32, u64>> hashes{0, 1};
  using hash = typename decltype(hashes)::value_type;
  for (u64 i = 1; i < 3000; ++i) {
    hashes.push_back(static_cast<hash>(roost::mix64(i)));
    const auto edge = static_cast<hash>((roost::detail::uint128{i % regions} << 8 * sizeof(hash)) / regions);
    for (const hash near : {edge, static_cast<hash>(edge + 1), static_cast<hash>(edge - 1)})
      hashes.push_back(near);
  }
  hashes.push_back(static_cast<hash>(~hash{0}));
  std::size_t wrong = 0;
  for (const hash h : hashes) {
    const Key key = roost::key_of_hash<Key>(h, 5);
    roost::detail::region_words<Key, place_type> words(region_of);
    for (int attempt = 0; attempt < 4; ++attempt, words.try_others()) {
      const auto parts = words.of(key);
      wrong += parts.word >> (8 * sizeof(parts.word) - 1) != 0 || !(words.key(region_of(key), parts) == key);
    }
  }
  EXPECT_EQ(wrong, 0u) << regions;
}

TEST(grouping, words_tell_keys) {
  for (const u32 regions : {2u, 4u, 6u, 10u, 14u, 64u, 1000u, 21930u, 65536u, 1u << 20, (1u << 20) + 6}) {
    check_words<u32>(regions);
    check_words<u64>(regions);
  }
}

#if ROOST_WITH_CUDA
/// Items of `regions` regions, in order, by tiles that add up what earlier tiles have published.
void check_partition(const std::vector<u64>& numbers, u32 regions) {
  using item = roost::pair<u32, u32>;
  const auto& place = test_place();
  const std::vector<u32> keys = from_numbers<u32>(numbers);
  const auto input = upload(keys);
  const roost::detail::leading_bits region_of{3, regions};
  auto overflowed = filled<u32>(1, 0);
  constexpr roost::detail::partition_kind kind{.stable = true, .may_count = false};
  const auto parts =
      roost::detail::partitioner<place_type, item, kind>(
          place, regions, {.room = roost::room::slack, .overflowed = overflowed.data(), .copies = 200})
          .run(with_places(input), region_of);
  ASSERT_EQ(roost::copy_to_host(place, overflowed)[0], 0u);
  std::vector<std::vector<u32>> wanted(regions);
  for (u32 i = 0; i < keys.size(); ++i) wanted[region_of(keys[i])].push_back(i);
  std::vector<item> items(parts.extent());
  std::vector<u64> begins(regions), ends(regions);
  place.copy_to_host(items.data(), parts.items(), items.size() * sizeof(item));
  place.copy_to_host(begins.data(), parts.begins(), regions * sizeof(u64));
  place.copy_to_host(ends.data(), parts.ends(), regions * sizeof(u64));
  std::size_t wrong = 0;
  for (u32 r = 0; r < regions; ++r) {
    if (ends[r] - begins[r] != wanted[r].size()) {
      ++wrong;
      continue;
    }
    for (u64 k = 0; k < wanted[r].size(); ++k) {
      const item& mine = items[begins[r] + k];
      wrong += mine.value != wanted[r][k] || mine.key != keys[wanted[r][k]];
    }
  }
  EXPECT_EQ(wrong, 0u) << numbers.size() << " items, " << regions << " regions";
}

TEST(grouping, partitions_in_order_without_counting_first) {
  for (const std::size_t n : {1, 6144, 6145, 100'000, 3'000'000}) {
    if (sanitized && n > 100'000) continue;
    for (const u32 regions : {2u, 3u, 512u, 513u, 700u, 20'000u, 300'000u}) {
      check_partition(random_numbers(n, n), regions);
      check_partition(random_numbers(n, n, 1 + n / 8), regions);
    }
  }
}

TEST(grouping, says_if_a_region_has_no_room_for_its_items) {
  const auto& place = test_place();
  const auto input = upload(std::vector<u32>(100'000, 5));
  auto overflowed = filled<u32>(1, 0);
  constexpr roost::detail::partition_kind kind{.stable = true, .may_count = false};
  for (const u32 regions : {40u, 4000u}) {
    static_cast<void>(
        roost::detail::partitioner<place_type, roost::pair<u32, u32>, kind>(
            place, regions, {.room = roost::room::slack, .overflowed = overflowed.data(), .copies = 8})
            .run(with_places(input), roost::detail::leading_bits{3, regions}));
    EXPECT_NE(roost::copy_to_host(place, overflowed)[0], 0u) << regions;
  }
}

/// Batches that are sampled first: regions have slack unless the sample shows that keys have many copies. It
/// may be wrong: then some region overflows.
TEST(grouping, of_batches_that_are_sampled) {
  if (sanitized) GTEST_SKIP() << "of many items";
  const std::size_t n = roost::detail::unsampled_most(std::is_same_v<place_type, roost::host>) + 1;
  for (const std::size_t copies : {2, 8, 64, 400}) check<u32>(random_numbers(n, n, n / copies));
  std::vector<u64> numbers = random_numbers(n, n, n / 4);  // and a few keys with more copies than a tile
  for (std::size_t i = 0; i < 30'000; ++i) numbers[i * 257 % n] = roost::mix64(i % 10);
  check<u32>(numbers);
}
#endif

TEST(grouping, of_frequent_keys) {
  const std::vector<u32> close = close_keys(8, 1u << 30, 3);  // each has 1 / 16 of all
  std::vector<u64> numbers = random_numbers(sanitized ? 600'000 : 1'200'000, 6);
  for (std::size_t i = 0; i < numbers.size(); i += 2) numbers[i] = close[roost::mix64(i) % close.size()];
  check<u32>(numbers, false);  // the region of a frequent key is behind that of its neighbours
  if (!only_threads) check<sixteen>(numbers);
  check<u32>(std::vector<u64>(numbers.size(), 3), false);
}

}  // namespace
}  // namespace test
