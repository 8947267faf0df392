#include <roost/two_way_index.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Distinct keys alone, and with their first rows: on both sides of each size, number of copies and frequency
// from which on they are found in another way.

namespace test {
namespace {

using roost::index_order;
using first_kernel = roost::detail::mark_first_items<place_type, u32>;

/// All that unique_all returns, in any order.
template <class Key>
void check_all(const std::vector<Key>& keys, const memory_of<Key>& there, index_order order,
               const std::vector<Key>* expected) {
  const auto all = roost::unique_all(test_place(), there,
                                     {.order = order, .first = true, .inverse = true, .counts = true});
  const auto distinct = download(all.keys);
  const auto first = download(all.first), inverse = download(all.inverse);
  const auto counts = download(all.counts);
  ASSERT_EQ(inverse.size(), keys.size());
  EXPECT_TRUE(expected == nullptr || distinct == *expected);
  std::vector<u64> seen(distinct.size());
  std::size_t wrong = 0;
  for (u32 i = 0; i < keys.size(); ++i) {
    const u32 k = inverse[i];
    if (k >= distinct.size() || distinct[k] != keys[i] || (seen[k]++ == 0 && first[k] != i)) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << keys.size() << " keys";
  EXPECT_TRUE(seen == counts);
}

template <class Key>
void check(const std::vector<Key>& keys) {
  std::vector<std::pair<Key, u32>> order;
  for (const Key& key : keys) order.emplace_back(key, static_cast<u32>(order.size()));
  std::sort(order.begin(), order.end());
  std::vector<Key> ascending, by_first;
  std::vector<u32> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i != 0 && order[i].first == order[i - 1].first) continue;
    ascending.push_back(order[i].first);
    rows.push_back(order[i].second);
  }
  std::sort(rows.begin(), rows.end());
  for (const u32 row : rows) by_first.push_back(keys[row]);

  const auto& place = test_place();
  const auto there = upload(keys);
  EXPECT_TRUE(download(roost::unique(place, there)) == by_first);
  EXPECT_TRUE(download(roost::unique(place, there, index_order::by_key)) == ascending);
  auto any = download(roost::unique(place, there, index_order::any));
  EXPECT_TRUE(download(roost::unique(place, there, index_order::any)) == any) << "another order";
  std::sort(any.begin(), any.end());
  EXPECT_TRUE(any == ascending);
  const auto with_rows = roost::unique_all(place, there, {.first = true});
  EXPECT_TRUE(download(with_rows.keys) == by_first && download(with_rows.first) == rows);
  if (keys.size() <= 1 << 20) {
    check_all(keys, there, index_order::first_occurrence, &by_first);
    check_all(keys, there, index_order::by_key, &ascending);
    check_all<Key>(keys, there, index_order::any, nullptr);
  }
  const roost::computed computed(keys.size(), roost::detail::element<const Key*>{there.data()});
  EXPECT_TRUE(download(roost::unique(place, computed)) == by_first);
  EXPECT_TRUE(download(roost::unique(place, computed, index_order::by_key)) == ascending);
}

/// n keys of about n / copies numbers.
template <class Key>
std::vector<Key> with_copies(std::size_t n, double copies, u64 seed = 1) {
  return from_numbers<Key>(random_numbers(n, seed, static_cast<u64>(static_cast<double>(n) / copies)));
}

template <class Key>
class unique : public testing::Test {};
using integers = axis<u32, std::int64_t, std::int32_t, u8, std::int16_t, u64>;
TYPED_TEST_SUITE(unique, integers);

TYPED_TEST(unique, of_any_number_of_integers) {
  for (const std::size_t n : {0, 1, 2, 63, 64, 65, 4095, 4096, 4097, 30000})
    check(from_numbers<TypeParam>(random_numbers(n, n)));
  check(std::vector<TypeParam>(5000, all_ones<TypeParam>()));
  check(from_numbers<TypeParam>(multiples(5000, 1)));
  check(with_copies<TypeParam>(30000, 100));
  check(std::vector<TypeParam>{0, all_ones<TypeParam>(), std::numeric_limits<TypeParam>::max(),
                               std::numeric_limits<TypeParam>::min(), 0});
}

TYPED_TEST(unique, of_batches_whose_copies_are_left_out_first) {
  const std::size_t least = 1 << 17;  // on the host, fewer keys are sorted as they are
  for (const std::size_t n : {least, least + 1}) {
    for (const double copies : {0.001, 2.0, 7.5, 8.5, 1000.0}) check(with_copies<TypeParam>(n, copies));
  }
}

/// On both sides of the size from which on small batches are found in tables of the device.
TYPED_TEST(unique, of_small_batches) {
  const std::size_t most = roost::detail::device_tables_most;
  for (const std::size_t n : {most, most + 1}) {
    for (const double copies : {0.001, 100.0}) check(with_copies<TypeParam>(n, copies));
  }
}

TYPED_TEST(unique, with_frequent_keys) {
  std::vector<TypeParam> half = from_numbers<TypeParam>(random_numbers(700'000, 6));
  for (std::size_t i = 1; i < half.size(); i += 2) half[i] = 42;
  check(half);
}

/// From a number of regions on, some are counted first: they tell whether copies or first items are marked.
TEST(unique_calls, mark_copies_or_first_items) {
  if (sanitized && on_host) GTEST_SKIP() << "takes too long";
  const std::size_t many = std::size_t{roost::detail::counted_regions_least(on_host)} * first_kernel::tile;
  for (const double copies : {0.001, 2.3, 2.8}) check(with_copies<u32>(many, copies));
  if (!on_host) check(with_copies<u32>(many, 8));
  if (!on_host) check(std::vector<u32>(many, 7));
  check(with_copies<u32>(many / 2, 1.8));
}

#if defined(__CUDACC__)
/// Keys of 32 bits are sorted as bits, from a number of keys on; several teams read a crowded region.
TEST(unique_calls, sort_bits) {
  std::size_t least = 1;
  while (!roost::detail::sorts_bits({.rows = least, .key_bytes = sizeof(u32)})) least *= 2;
  check(from_numbers<std::int32_t>(random_numbers(least, 3)));
  check(with_copies<u32>(least, 4));  // few regions, of all integers
  if (sanitized) return;
  check(from_numbers<std::int32_t>(random_numbers(least - 1, 3)));
  check(with_copies<u32>(least, 4000));
  check(from_numbers<u32>(multiples(least, 1)));
  check(with_copies<u32>(least + least / 2, 1.5, 2));
  std::vector<u32> many = from_numbers<u32>(random_numbers(least + least / 2, 4));
  for (std::size_t i = 0; i < many.size(); i += 3) many[i] = 12345;
  check(many);
}

/// On both sides of the size up to which batches are sorted, whatever their copies.
TEST(unique_calls, by_key_of_many_copies_or_none_large) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  const auto check_sizes = [&]<class Key>(Key) {
    const std::size_t most = roost::detail::sorted_most({.key_bytes = sizeof(Key)});
    for (const std::size_t n : {most, most + 1}) {
      for (const double copies : {0.001, 1.3, 6.0}) {
        const auto keys = with_copies<Key>(n, copies);
        auto ascending = keys;
        std::sort(ascending.begin(), ascending.end());
        ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
        const auto there = upload(keys);
        check_all(keys, there, index_order::by_key, &ascending);
        EXPECT_TRUE(download(roost::unique(test_place(), there, index_order::by_key)) == ascending);
      }
    }
  };
  check_sizes(u32());
  check_sizes(std::int64_t());
}

/// Beyond the size from which on batches are sampled first.
TEST(unique_calls, of_many_keys_large) {
  const std::size_t n = roost::detail::unsampled_most(false);
  check(with_copies<u32>(n, 2));
  for (const double copies : {0.001, 2.0, 8.0, 100.0}) check(with_copies<u32>(n + 1, copies));
  for (const double copies : {100.0, 10000.0}) check(with_copies<u64>(n + 1, copies));
  std::vector<u64> half = from_numbers<u64>(random_numbers(n + 1, 6));
  for (std::size_t i = 1; i < half.size(); i += 2) half[i] = 42;
  check(half);
  check(with_copies<u64>(n + 1, 1.5));
}
#endif

TEST(unique_calls, refuse_an_order_by_key_of_what_has_none) {
  const auto keys = upload(std::vector<sixteen>{{1, 2}});
  EXPECT_THROW(roost::unique(test_place(), keys, index_order::by_key), roost::invalid_argument);
}

TEST(unique_calls, give_back_memory_that_few_keys_do_not_need) {
  constexpr std::size_t n = 131000;  // on a host fewer than those whose keys are numbered where they lie
  const auto keys = upload(from_numbers<sixteen>(random_numbers(n, 1, 99)));
  watched_memory memory;
  const auto place = make_place(memory);
  const auto all = roost::unique_all(place, keys, {.order = roost::index_order::any});
  EXPECT_EQ(all.keys.size(), 100u);
  EXPECT_LE(memory.live_bytes(), n * sizeof(sixteen) / 2);
}

}  // namespace
}  // namespace test
