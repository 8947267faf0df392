#include <deque>
#include <ranges>

#include "support/tables_bodies.hpp"

// Every call of a table against the oracle, over random and structured keys.

namespace test {

TEST_TABLES_OF_WORDS(TEST_DEFINE)

namespace {

/// One generic kernel for both kinds of table.
template <class Ref>
struct count_wrong_by_lanes {
  Ref ref;
  const u32* keys;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const roost::one_lane lanes;
    const bool good = ref.find(lanes, keys[i]).value_or(keys[i] + 1) == keys[i] &&
                      ref.contains(lanes, keys[i]) && !ref.find(lanes, keys[i] + 1) &&
                      !ref.contains(lanes, keys[i] + 1);
    return good ? 0 : 1;
  }
};

template <class Table>
class frozen_map : public testing::Test {};

using tables =
    table_axis<bucketed_map<u32, u32>, bucketed_map<u32, u64>, bucketed_map<u64, u32>, bucketed_map<u64, u64>,
               cuckoo_map<u32, u32>, cuckoo_map<u64, u64>, cuckoo_set<u32>, bucketed_set<u32>,
               bucketed_set<u64>, compact_map<u32, u32>, compact_map<u32, u64>, compact_map<u64, u32>,
               compact_map<u64, u64>, compact_map<u32, twelve>, compact_set<u32>, compact_set<u64>>;
TYPED_TEST_SUITE(frozen_map, tables);

TYPED_TEST(frozen_map, of_any_number_of_random_keys) {
  for (const std::size_t n : {0, 1, 2, 3, 4, 5, 31, 100, 1000, 4096, sanitized ? 6000 : 20000}) {
    check<TypeParam>(random_numbers(n, n));
  }
}

TYPED_TEST(frozen_map, large) { check<TypeParam>(different_numbers(sanitized ? 40000 : 200000, 1)); }

TYPED_TEST(frozen_map, of_structured_keys) {
  const std::size_t n = sanitized ? 3000 : 10000;
  check<TypeParam>(multiples(n, 1));
  check<TypeParam>(multiples(n, 1, 0xffffffffu - (n - 1)));
  check<TypeParam>(multiples(n, 2, 1));
  check<TypeParam>(multiples(n, 1 << 16));
  check<TypeParam>(multiples(n, 3 << 16, 5));
  check<TypeParam>(multiples(n, std::uint64_t{1} << 32));  // for 4-byte keys: copies of one
  check<TypeParam>(voxels_of_sphere(sanitized ? 20 : 40));
}

TYPED_TEST(frozen_map, of_keys_in_a_small_range) {
  const std::size_t n = sanitized ? 5000 : 20000;
  check<TypeParam>(random_numbers(n, 2, n));  // most keys come more than once
  check<TypeParam>(shuffled(multiples(n, 1), 3));
}

TYPED_TEST(frozen_map, with_copies_of_few_or_many_keys) {
  for (const std::size_t n : {60, 3000, sanitized ? 6000 : 70000}) {
    auto one_twice = different_numbers(n, 5), one_in_half = one_twice,
         four_each = random_numbers(n, 6, n / 4);
    one_twice.back() = one_twice.front();
    for (std::size_t i = 0; i < n; i += 2) one_in_half[i] = 7;
    check<TypeParam>(one_twice);
    check<TypeParam>(one_in_half);
    check<TypeParam>(four_each);
    check<TypeParam>(std::vector<std::uint64_t>(n, 9));
  }
}

TYPED_TEST(frozen_map, with_any_seed) {
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    typename TypeParam::options options;
    options.seed = seed;
    check<TypeParam>(multiples(3000, 7), options);
  }
}

TYPED_TEST(frozen_map, with_any_load_factor) {
  constexpr bool cuckoo = std::is_same_v<typename TypeParam::layout, roost::cuckoo>;
  const std::vector<double> load_factors = cuckoo
                                               ? std::vector{0.01, 0.1, 0.5, 0.7, 0.8, 512.0 / 576.0}
                                               : std::vector{0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0};
  for (const double load_factor : load_factors) {
    for (const std::size_t n : {1, 100, sanitized ? 6000 : 30000}) {
      typename TypeParam::options options;
      options.load_factor = load_factor;
      const auto facts = check<TypeParam>(different_numbers(n, 4), options);
      EXPECT_LE(facts.load_factor, load_factor * 1.001) << "asked for less";
    }
  }
}

TYPED_TEST(frozen_map, rebuilds_moves_and_is_built_again) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  const auto first = from_numbers<key>(multiples(3000, 3)), second = from_numbers<key>(multiples(9000, 5));
  TypeParam table(first, numbered_values<value>(first.size()));
  EXPECT_EQ(table.count_found(first), first.size());
  table.rebuild(second, numbered_values<value>(second.size()));
  EXPECT_EQ(table.size(), second.size());
  EXPECT_EQ(table.count_found(second), second.size());
  EXPECT_EQ(table.count_found(first), 3000u - 3000u * 4 / 5);
  TypeParam moved = std::move(table);
  EXPECT_EQ(moved.count_found(second), second.size());
  EXPECT_TRUE(moved.valid());
  moved.rebuild({}, {});
  EXPECT_EQ(moved.size(), 0u);
  EXPECT_EQ(moved.count_found(second), 0u);
  EXPECT_TRUE(moved.valid());
}

// The class itself, as users write it.

struct cube {
  ROOST_FN u64 operator()(std::size_t i) const { return u64{i} * i * i; }
};
struct number_of {
  ROOST_FN u32 operator()(std::size_t i) const { return static_cast<u32>(i); }
};
struct twice {
  ROOST_FN u32 operator()(std::size_t i) const { return static_cast<u32>(2 * i); }
};

/// Key i of n: one of `different`, or, if that is 0, another for each but for the last one.
struct repeated_key {
  std::size_t different;
  std::size_t n;
  ROOST_FN u32 operator()(std::size_t i) const {
    return static_cast<u32>(different != 0 ? roost::mix64(i) % different : i == n - 1 ? 1 : i) * 0x9e3779b1u;
  }
};
/// Whether query i found a pair that is not the first one of its key.
struct is_not_first {
  const u32* found;
  repeated_key key;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const u32 j = found[i];
    return j <= i && found[j] == j && key(j) == key(i) ? 0 : 1;
  }
};

TEST(frozen_map_class, keeps_the_first_of_copies_whether_a_sample_shows_them_or_not) {
  const std::size_t least = roost::detail::build_tuning<place_type>::sampled_least;
  for (const std::size_t n : {least - 1, least, least + 4321}) {
    for (const std::size_t different : {n / 8, n / 2, std::size_t{0}, std::size_t{3}}) {
      const repeated_key key{different, n};
      const auto keys = roost::computed(n, key);
      const roost::frozen_map map(test_place(), keys, roost::computed(n, number_of()));
      memory_of<u32> found(test_place(), n);
      map.find(test_place(), keys, found, ~0u);
      EXPECT_EQ(test_place().sum(n, is_not_first{found.data(), key}), 0u) << n << ' ' << different;
      EXPECT_EQ(map.size() + map.statistics().duplicates, n);
      if (different == 0) {
        EXPECT_EQ(map.size(), n - 1);
      }
    }
  }
}

TEST(frozen_map_class, refs_take_lanes_as_those_of_concurrent_maps_do) {
  const auto keys = from_numbers<u32>(multiples(1000, 7));
  const auto device = upload(keys);
  const roost::frozen_map frozen(test_place(), device, device);
  roost::concurrent_map<u32, u32, place_type> concurrent(test_place(), keys.size());
  concurrent.insert(test_place(), device, device);
  const auto wrong = [&](const auto& ref) {
    using kernel = count_wrong_by_lanes<std::remove_cvref_t<decltype(ref)>>;
    return test_place().sum(keys.size(), kernel{ref, device.data()});
  };
  EXPECT_EQ(wrong(frozen.ref()), 0u);
  EXPECT_EQ(wrong(std::as_const(concurrent).ref()), 0u);
}

TEST(frozen_map_class, deduces_its_types_and_takes_computed_ranges) {
  const roost::frozen_map map(test_place(), roost::computed(5000, cube{}), roost::computed(5000, twice{}),
                              {.load_factor = 0.5, .seed = 3});
  static_assert(std::is_same_v<std::remove_const_t<decltype(map)>,
                               roost::frozen_map<u64, u32, place_type, roost::compact>>);
  memory_of<u32> results(test_place(), 6000);
  map.find(test_place(), roost::computed(6000, cube{}), results, 1);
  const auto found = download(results);
  for (std::size_t i = 0; i < 6000; ++i) EXPECT_EQ(found[i], i < 5000 ? 2 * i : 1);
  EXPECT_EQ(map.count_found(test_place(), roost::computed(6000, cube{})), 5000u);
  EXPECT_LE(map.load_factor(), 0.5);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(frozen_map_class, takes_spans_and_more_room_than_needed) {
  const auto keys = upload(from_numbers<u64>(multiples(100, 3)));
  const auto values = upload(from_numbers<u32>(multiples(100, 1)));
  const roost::frozen_map map(test_place(), keys.span().subspan(10, 50),
                              std::span<const u32>(values.data() + 10, 50));
  auto results = filled<u32>(60, 77);
  map.find(test_place(), keys.span().first(30), results.span(), 1000);
  const auto found = download(results);
  for (u32 i = 0; i < 60; ++i) EXPECT_EQ(found[i], i < 10 ? 1000 : i < 30 ? i : 77) << i;
  EXPECT_TRUE(map.valid(test_place()));
}

/// Puts another pair into a slot behind the map's back.
template <class Ref>
struct spoil {
  Ref ref;
  u64 slot;
  u64 key;
  ROOST_FN void operator()(std::size_t) const { ref.set(slot, {key, 0}); }
};
template <class Ref>
struct slot_of_key {
  Ref ref;
  u64 key;
  ROOST_FN u64 operator()(std::size_t) const { return ref.slot_of(key); }
};

TEST(frozen_map_class, that_was_spoilt_is_not_valid) {
  using map_type = roost::frozen_map<u64, u32, place_type, roost::bucketed>;  // whose slots hold any key
  using ref_type = map_type::ref_type;
  const auto keys = roost::computed(5000, cube{});
  const auto values = roost::computed(5000, twice{});
  const u64 absent = 3;
  for (const u64 key : {absent, u64{8}, u64{1000}}) {  // a stranger, or another key a second time
    const map_type map(test_place(), keys, values);
    ASSERT_TRUE(map.valid(test_place()));
    const u64 slot = test_place().sum(1, slot_of_key<ref_type>{map.ref(), 27});
    ASSERT_LT(slot, map.capacity());
    test_place().for_each(1, spoil<ref_type>{map.ref(), slot, key});
    EXPECT_FALSE(map.valid(test_place())) << key << " in the place of 27";
  }
}

#if !defined(__CUDACC__)
TEST(frozen_map_class, takes_any_random_access_range_on_the_host) {
  const auto numbers_of_keys = multiples(5000, 11);
  const std::deque<u64> keys(numbers_of_keys.begin(), numbers_of_keys.end());
  const roost::frozen_map map(test_place(), keys, std::views::iota(u32{0}, u32{5000}));
  for (u32 i = 0; i < 5000; ++i) EXPECT_EQ(map.ref().find(keys[i]).value_or(~0u), i);
  EXPECT_FALSE(map.ref().find(1));
  u64 sum = 0;
  for (const auto [key, value] : map) sum += key - 11 * value;
  EXPECT_EQ(sum, 0u);
  EXPECT_TRUE(map.valid(test_place()));
}
#endif

}  // namespace
}  // namespace test
