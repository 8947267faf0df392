#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include "support/keys.hpp"
#include "support/refusals.hpp"

// Items into regions by leading hash bits, and results back.

namespace test {
namespace {

template <class Key>
u32 region_of(const Key& key, u64 seed, u32 regions) {
  return static_cast<u32>(roost::split_hash(roost::hash_of(key, seed), regions).digit);
}

/// The bytes of a pair without its padding.
template <class Item>
auto bytes_of(const Item& item) {
  constexpr std::size_t of_key = sizeof(item.key);
  if constexpr (requires { item.value; }) {
    std::array<unsigned char, of_key + sizeof(item.value)> bytes;
    std::memcpy(bytes.data(), &item.key, of_key);
    std::memcpy(bytes.data() + of_key, &item.value, sizeof(item.value));
    return bytes;
  } else {
    std::array<unsigned char, of_key> bytes;
    std::memcpy(bytes.data(), &item.key, of_key);
    return bytes;
  }
}

/// Every input item is in the region of its key, once; regions follow each other and do not overlap.
template <class Item, class Keys>
void check_regions(const roost::partitioned<Item, place_type>& result, const std::vector<Item>& input,
                   const Keys& key_of, const roost::partition_options& options) {
  SCOPED_TRACE("n = " + std::to_string(input.size()) + ", " + std::to_string(options.regions) + " regions");
  ASSERT_EQ(result.regions(), options.regions);
  const auto [items, begins, ends] = download(result);
  std::vector<decltype(bytes_of(Item{}))> before, after;
  for (const Item& item : input) before.push_back(bytes_of(item));
  u64 last_end = 0;
  std::size_t astray = 0;
  for (u32 region = 0; region < options.regions; ++region) {
    ASSERT_LE(last_end, begins[region]) << "region " << region << " overlaps";
    ASSERT_LE(begins[region], ends[region]);
    ASSERT_LE(ends[region], result.extent());
    if (options.room == roost::room::exact) {
      ASSERT_EQ(last_end, begins[region]) << "gap before region " << region;
    }
    for (u64 i = begins[region]; i < ends[region]; ++i) {
      astray += region_of(key_of(items[i]), options.seed, options.regions) != region;
      after.push_back(bytes_of(items[i]));
    }
    last_end = ends[region];
  }
  if (options.room == roost::room::exact) {
    EXPECT_EQ(result.extent(), input.size());
  }
  EXPECT_EQ(astray, 0u) << "items in a region that is not theirs";
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  EXPECT_TRUE(before == after) << before.size() << " items went in, " << after.size()
                               << " came out, or others";
}

/// Results in the order of the items come back in the order of the input: the items themselves as results.
template <class Item>
void check_way_back(const roost::partitioned<Item, place_type>& result, const std::vector<Item>& input) {
  const auto back = filled<Item>(input.size(), Item{});
  result.restore(test_place(), std::span<const Item>(result.items(), result.extent()),
                 std::span<Item>(const_cast<Item*>(back.data()), back.size()));
  const auto restored = download(back);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < input.size(); ++i) wrong += bytes_of(restored[i]) != bytes_of(input[i]);
  EXPECT_EQ(wrong, 0u) << "results that came back to another item's place, of " << input.size();
}

/// Items of a region are in the order of the input, regions without gaps.
template <class Item, class RegionOf>
void check_order(const roost::partitioned<Item, place_type>& result, const std::vector<Item>& input,
                 const RegionOf& region_of_item) {
  std::vector<u32> order(input.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return region_of_item(input[a]) < region_of_item(input[b]); });
  const auto items = download(result).items;
  ASSERT_EQ(items.size(), input.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < input.size(); ++i) wrong += bytes_of(items[i]) != bytes_of(input[order[i]]);
  EXPECT_EQ(wrong, 0u) << "items that are not where a stable sort by region puts them, of " << input.size();
}

template <class Key>
void check_keys(const numbers& key_numbers, const roost::partition_options& options) {
  const auto keys = from_numbers<Key>(key_numbers);
  const auto result = roost::partition(test_place(), upload(keys), options);
  using item = typename std::remove_cvref_t<decltype(result)>::item_type;
  static_assert(sizeof(item) == sizeof(Key));
  std::vector<item> input;
  for (const Key& key : keys) input.push_back({key});
  check_regions(result, input, [](const item& i) { return i.key; }, options);
  if (options.stable)
    check_order(result, input,
                [&](const item& i) { return region_of(i.key, options.seed, options.regions); });
  if (options.way_back) check_way_back(result, input);
}

template <class Key, class Value>
void check_pairs(const numbers& key_numbers, const roost::partition_options& options) {
  const auto keys = from_numbers<Key>(key_numbers);
  const auto values = from_numbers<Value>(multiples(keys.size(), 0x9e3779b97f4a7c15ull));
  const auto result = roost::partition(test_place(), upload(keys), upload(values), options);
  using item = roost::pair<Key, Value>;
  std::vector<item> input(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    input[i] = {keys[i], values[i]};
  }
  check_regions(result, input, [](const item& i) { return i.key; }, options);
  if (options.stable)
    check_order(result, input,
                [&](const item& i) { return region_of(i.key, options.seed, options.regions); });
  if (options.way_back) check_way_back(result, input);
}

constexpr roost::room rooms[] = {roost::room::exact, roost::room::slack};

TEST(partition, into_any_number_of_regions) {
  const numbers keys = random_numbers(only_threads ? 35000 : sanitized ? 20000 : 100000, 1);
  for (const u32 regions : {2, 3, 7, 100, 255, 256, 257, 1000, 1023, 1024, 1025, 4099, 40000, 65535, 65536}) {
    if (only_threads && regions != 2 && regions != 257 && regions != 65536) continue;
    for (const roost::room room : rooms)
      check_keys<u32>(keys, {.regions = regions, .room = room, .way_back = true});
  }
}

/// Where everything is slow, many items go into one number of regions only. Threads differ where there are
/// more tiles, of 32768 items.
bool takes_too_long(std::size_t n, u32 regions) {
  if (only_threads && (n == 32767 || n == 32768)) return true;
  return sanitized && n > 10000 && regions != (n > 60000 ? 3000 : 300);
}

TEST(partition, of_any_number_of_items) {
  for (const std::size_t n : {0, 1, 2, 3, 511, 512, 513, 32767, 32768, 32769, 65537}) {
    for (const u32 regions : {2, 300, 3000}) {
      if (takes_too_long(n, regions)) continue;
      for (const roost::room room : rooms)
        check_keys<u32>(random_numbers(n, n), {.regions = regions, .room = room, .way_back = true});
    }
  }
}

TEST(partition, of_keys_and_pairs_of_all_sizes) {
  const numbers keys = random_numbers(sanitized ? 35000 : 70000, 2);
  for (const roost::room room : rooms) {
    for (const u32 regions : {37, 2000}) {
      if (only_threads && (room == roost::room::exact) != (regions == 37)) continue;
      const roost::partition_options options{.regions = regions, .room = room, .seed = 99, .way_back = true};
      check_keys<u64>(keys, options);
      check_pairs<u32, u32>(keys, options);
      check_pairs<u64, u32>(keys, options);
      check_pairs<u64, u64>(keys, options);
    }
  }
}

TEST(partition, of_long_keys) {
  check_keys<sixteen>(random_numbers(20000, 3), {.regions = 50, .way_back = true});
}

TEST(partition, of_skewed_keys) {
  numbers skewed(sanitized ? 40000 : 60000, 12345);  // copies of one key
  check_keys<u32>(skewed, {.regions = 3000, .room = roost::room::slack, .way_back = true});
  check_keys<u32>(skewed, {.regions = 3000, .room = roost::room::exact, .way_back = true});
  for (std::size_t i = 0; i < skewed.size(); i += 2) skewed[i] = i;  // every other key, and copies
  check_keys<u32>(skewed, {.regions = 3000, .room = roost::room::slack, .way_back = true});
  check_keys<u32>(skewed, {.regions = 20, .room = roost::room::slack, .way_back = true});
  numbers one_region(skewed.size());  // different keys, all with the highest hashes
  for (u32 i = 0; i < one_region.size(); ++i) one_region[i] = roost::unmix32(~i, 7);
  for (const roost::room room : rooms) {
    check_keys<u32>(one_region, {.regions = 2, .room = room, .seed = 7, .way_back = true});
    check_keys<u32>(one_region, {.regions = 65536, .room = room, .seed = 7, .way_back = true});
  }
}

TEST(partition, stable_into_any_number_of_regions) {
  const numbers keys = random_numbers(only_threads ? 35000 : sanitized ? 20000 : 100000, 4);
  for (const u32 regions : {2, 3, 31, 33, 256, 257, 511, 512, 513, 1024, 1025, 40000, 65535, 65536}) {
    if (only_threads && regions != 2 && regions != 257 && regions != 65536) continue;
    check_pairs<u32, u32>(keys, {.regions = regions, .way_back = true, .stable = true});
  }
}

TEST(partition, stable_of_any_number_of_items) {
  for (const std::size_t n :
       {0, 1, 2, 31, 32, 33, 511, 512, 513, 6143, 6144, 6145, 32767, 32768, 32769, 65537}) {
    for (const u32 regions : {2, 300, 3000}) {
      if (takes_too_long(n, regions)) continue;
      for (const bool way_back : {false, true})
        check_pairs<u32, u32>(random_numbers(n, n),
                              {.regions = regions, .way_back = way_back, .stable = true});
    }
  }
}

TEST(partition, stable_of_keys_and_pairs_of_all_sizes) {
  const numbers keys = random_numbers(sanitized ? 35000 : 70000, 5);
  for (const u32 regions : {37, 2000}) {
    if (only_threads && regions == 37) continue;
    const roost::partition_options options{.regions = regions, .seed = 99, .way_back = true, .stable = true};
    check_keys<u32>(keys, options);
    check_keys<u64>(keys, options);
    check_keys<sixteen>(keys, options);
    check_pairs<u64, u32>(keys, options);
    check_pairs<u64, u64>(keys, options);
  }
  check_pairs<u64, u64>(keys, {.regions = 300, .room = roost::room::slack, .stable = true});
}

TEST(partition, stable_of_skewed_keys) {
  numbers skewed(sanitized ? 40000 : 60000, 12345);  // copies of one key: only their values tell them apart
  for (const u32 regions : {20, 3000})
    check_pairs<u32, u32>(skewed, {.regions = regions, .way_back = true, .stable = true});
  for (std::size_t i = 0; i < skewed.size(); i += 2) skewed[i] = i;  // every other key, and copies
  for (const u32 regions : {20, 3000})
    check_pairs<u32, u32>(skewed, {.regions = regions, .way_back = true, .stable = true});
  for (std::size_t i = 0; i < skewed.size(); ++i) skewed[i] = i % 3 == 0 ? 5 : i / 1000;  // runs of copies
  for (const u32 regions : {20, 3000})
    check_pairs<u32, u32>(skewed, {.regions = regions, .way_back = true, .stable = true});
  for (const u32 highest : {0, 1}) {  // the first region has all, or the last
    numbers one_region(skewed.size());
    for (u32 i = 0; i < one_region.size(); ++i) one_region[i] = roost::unmix32(highest ? ~i : i, 7);
    for (const u32 regions : {2, 65536})
      check_pairs<u32, u32>(one_region, {.regions = regions, .seed = 7, .way_back = true, .stable = true});
  }
}

struct key_is_region {
  ROOST_FN u32 operator()(u32 key) const { return key; }
};

TEST(partition, stable_in_three_passes) {
  if (only_threads) GTEST_SKIP() << "threads of the third pass do what those of the second do";
  using item = roost::pair<u32, u32>;
  const numbers random = random_numbers(50000, 6);
  constexpr roost::detail::partition_kind kind{.stable = true, .way_back = true};
  const u32 two_passes = on_host ? 1u << 20 : 1u << 18;  // of so many regions at most
  for (const u32 regions : {two_passes + 1, 2 * two_passes - 12345}) {
    if (sanitized && regions > two_passes + 1) continue;
    std::vector<u32> keys(random.size()), values(random.size());
    std::vector<item> input;
    for (u32 i = 0; i < keys.size(); ++i) {
      keys[i] = static_cast<u32>(random[i] % (i % 2 ? regions : 3));  // half of them in three regions
      values[i] = i;
      input.push_back({keys[i], values[i]});
    }
    const auto key_memory = upload(keys);
    const auto value_memory = upload(values);
    const auto result =
        roost::detail::partitioner<place_type, item, kind>(test_place(), regions)
            .run(roost::detail::zip_checked(key_memory, value_memory, "test"), key_is_region{});
    ASSERT_EQ(result.regions(), regions);
    check_order(result, input, [](const item& i) { return i.key; });
    check_way_back(result, input);
  }
}

struct cube {
  ROOST_FN u64 operator()(std::size_t i) const { return u64{i} * i * i; }
};

TEST(partition, of_computed_keys) {
  for (const roost::room room : rooms) {
    const roost::partition_options options{.regions = 77, .room = room};
    const auto result = roost::partition(test_place(), roost::computed(50000, cube{}), options);
    std::vector<roost::pair<u64, roost::none>> input;
    for (std::size_t i = 0; i < 50000; ++i) input.push_back({cube{}(i)});
    check_regions(result, input, [](const auto& i) { return i.key; }, options);
  }
}

TEST(partition, seeds_make_other_partitions) {
  const auto keys = upload(from_numbers<u32>(multiples(10000, 1)));
  const auto sizes = [&](u64 seed) {
    const auto result = roost::partition(test_place(), keys, {.regions = 100, .seed = seed});
    return download(result).ends;
  };
  EXPECT_EQ(sizes(1), sizes(1));
  EXPECT_NE(sizes(1), sizes(0x12345678));
  EXPECT_NE(sizes(1), sizes(u64{0x12345678} << 32)) << "all bits of a seed count, for short keys too";
}

TEST(partition, restores_results_of_another_type) {
  const numbers keys = random_numbers(50000, 8);
  for (const roost::room room : rooms) {
    for (const u32 regions : {10, 5000}) {
      const auto result = roost::partition(test_place(), upload(from_numbers<u32>(keys)),
                                           {.regions = regions, .room = room, .way_back = true});
      std::vector<sixteen> answers;
      for (const auto& item : download(result).items) answers.push_back({item.key, ~u64{item.key}});
      const auto from = upload(answers);
      auto to = filled<sixteen>(keys.size() + 5, sixteen{1, 1});
      for (int again = 0; again < 2; ++again) {
        result.restore(test_place(), from.span(), to.span());
        const auto restored = download(to);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < keys.size(); ++i) {
          const auto key = static_cast<u32>(keys[i]);
          wrong += !(restored[i] == sixteen{key, ~u64{key}});
        }
        EXPECT_EQ(wrong, 0u);
        EXPECT_EQ(restored[keys.size()], (sixteen{1, 1})) << "past the end";
      }
    }
  }
}

TEST(partition, tells_its_scratch_memory_and_gives_it_back) {
  watched_memory memory;
  const place_type place = make_place(memory);
  {
    const auto keys = roost::copy_to(place, from_numbers<u32>(random_numbers(30000, 1)));
    for (const roost::room room : rooms) {
      const auto result = roost::partition(place, keys, {.regions = 5000, .room = room, .way_back = true});
      EXPECT_GE(result.scratch_bytes(), 2u * 30000 * 4);
      EXPECT_LT(result.scratch_bytes(), 100u * 30000 * 4);
    }
    const std::size_t stable_bytes =
        roost::partition(place, keys, {.regions = 256, .stable = true}).scratch_bytes();
    EXPECT_GE(stable_bytes, 30000u * 4);
    EXPECT_LT(stable_bytes, 2u * 30000 * 4);
    EXPECT_EQ(memory.live_blocks(), 1u) << "only the keys are left";
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
  EXPECT_EQ(memory.wrong_returns(), 0u);
}

TEST(partition, errors) {
  const auto keys = upload(from_numbers<u32>(multiples(100, 1)));
  const auto values = upload(from_numbers<u32>(multiples(99, 1)));
  for (const u32 regions : {0u, 1u, 65537u, ~0u}) {
    expect_error<roost::invalid_argument>([&] { roost::partition(test_place(), keys, {.regions = regions}); },
                                          {"roost::partition", std::to_string(regions), "2 to 65536"});
  }
  expect_error<roost::invalid_argument>([&] { roost::partition(test_place(), keys, values); },
                                        {"100 keys", "99 values"});

  auto to = filled<u32>(100, 0);
  const auto one_way = roost::partition(test_place(), keys, {.regions = 4});
  expect_error<roost::invalid_argument>(
      [&] { one_way.restore(test_place(), std::span<const u32>(keys.span()), to.span()); },
      {"restore", "way_back = true"});
  const auto both_ways = roost::partition(test_place(), keys, {.regions = 4, .way_back = true});
  expect_error<roost::invalid_argument>(
      [&] { both_ways.restore(test_place(), std::span<const u32>(keys.span().first(99)), to.span()); },
      {"restore", "99", "100"});
  expect_error<roost::invalid_argument>(
      [&] { both_ways.restore(test_place(), std::span<const u32>(keys.span()), to.span().first(99)); },
      {"restore", "99", "100"});

  if (only_threads) return;  // of 100 keys, no two threads are at work
  const roost::partition_options ways[] = {{.regions = 3000, .way_back = true},
                                           {.regions = 3000, .room = roost::room::slack, .way_back = true},
                                           {.regions = 3000, .way_back = true, .stable = true}};
  for (const roost::partition_options& way : ways)
    expect_refusals([&](const place_type& place) { roost::partition(place, keys, way); });
}

TEST(past_cache, copies_are_whole_and_nothing_else_is_written) {
  std::vector<unsigned char> from(400), to(600);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 37 + 1);
  for (std::size_t at = 0; at <= 65; ++at) {
    for (std::size_t bytes = 0; bytes <= 330; ++bytes) {
      std::fill(to.begin(), to.end(), 0);
      roost::detail::copy_past_cache(to.data() + at, from.data() + at % 5, bytes);
      roost::detail::past_cache_done();
      ASSERT_EQ(std::memcmp(to.data() + at, from.data() + at % 5, bytes), 0) << bytes << " bytes to " << at;
      ASSERT_EQ(std::count(to.begin(), to.end(), 0),
                static_cast<std::ptrdiff_t>(to.size() - bytes +
                                            static_cast<std::size_t>(std::count(
                                                from.begin() + at % 5, from.begin() + at % 5 + bytes, 0))));
    }
  }
}

}  // namespace
}  // namespace test
