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
    to.slot = slot.data();
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
    for (u32 r = 0; r <= regions; ++r) wrong += to.number_of(r) != r + before[r];
    EXPECT_EQ(wrong, 0u) << regions;
  }
}

/// Groups of keys, each with its place in the input, against what they promise.
template <bool Ordered, class Key>
void check(const std::vector<u64>& numbers) {
  const auto& place = test_place();
  const std::vector<Key> keys = from_numbers<Key>(numbers);
  const auto input = upload(keys);
  const auto places = roost::detail::numbers_to<u32>(keys.size());
  const roost::detail::zipped<roost::detail::sequence<const Key*>, std::remove_const_t<decltype(places)>>
      source{{input.data(), input.size()}, places};
  const auto groups = roost::detail::group<roost::detail::group_kind{
      .values_in_order = Ordered, .numbered_keys = Ordered, .way_back = !Ordered}>(place, source, 3, "test");
  const std::vector<Key> different = roost::copy_to_host(place, groups.keys);
  const std::vector<u64> begins = roost::copy_to_host(place, groups.begins),
                         counts = roost::copy_to_host(place, groups.counts);
  oracle_map<Key, std::vector<u32>> oracle;
  for (u32 i = 0; i < keys.size(); ++i) oracle[keys[i]].push_back(i);
  ASSERT_EQ(different.size(), oracle.size());
  ASSERT_EQ(begins.size(), groups.region_of.regions + std::size_t{1});
  EXPECT_EQ(begins.front(), 0u);
  EXPECT_EQ(begins.back(), different.size());
  std::size_t wrong = 0;
  for (std::size_t r = 0; r + 1 < begins.size(); ++r) {
    for (u64 g = begins[r]; g < begins[r + 1]; ++g) wrong += groups.region_of(different[g]) != r;
  }
  EXPECT_EQ(wrong, 0u);
  if constexpr (Ordered) {
    const std::vector<u32> values = roost::copy_to_host(place, groups.values);
    const auto numbered = roost::copy_to_host(place, groups.numbered_keys);
    ASSERT_EQ(values.size(), keys.size());
    for (u32 g = 0; g < different.size(); ++g) {
      const std::vector<u32> mine(values.begin() + static_cast<std::ptrdiff_t>(counts[g]),
                                  values.begin() + static_cast<std::ptrdiff_t>(counts[g + 1]));
      wrong += mine != oracle[different[g]] || !(numbered[g].key == different[g]) || numbered[g].value != g;
    }
  } else {
    const std::vector<u32> firsts = roost::copy_to_host(place, groups.values);
    for (u32 g = 0; g < different.size(); ++g)
      wrong += firsts[g] != oracle[different[g]].front() || counts[g] != oracle[different[g]].size();
    auto back = filled<Key>(keys.size(), Key{});
    roost::detail::write_of_each_item(place, groups, groups.keys.data(), back);
    EXPECT_TRUE(roost::copy_to_host(place, back) == keys);
  }
  EXPECT_EQ(wrong, 0u);
}

template <class Key>
void check(const std::vector<u64>& numbers) {
  check<true, Key>(numbers);
  check<false, Key>(numbers);
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
  for (const u32 n : {most - 1, most, most + 1, most + 2}) {
    const std::vector<u32> close = close_keys(n, 1u << 30, 3);
    check<u32>({close.begin(), close.end()});
  }
}

TEST(grouping, of_frequent_keys) {
  const std::vector<u32> close = close_keys(8, 1u << 30, 3);  // each has 1 / 16 of all
  std::vector<u64> numbers = random_numbers(sanitized ? 600'000 : 2'000'000, 6);
  for (std::size_t i = 0; i < numbers.size(); i += 2) numbers[i] = close[roost::mix64(i) % close.size()];
  check<u32>(numbers);
  check<sixteen>(numbers);
  check<u32>(std::vector<u64>(numbers.size(), 3));
}

}  // namespace
}  // namespace test
