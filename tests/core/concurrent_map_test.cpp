#include <chrono>
#include <numeric>
#include <roost/concurrent_map.hpp>
#include <thread>

#include "support/concurrent.hpp"

// concurrent_map in bulk, against an oracle. What happens between threads stands in
// concurrent_races_test.cpp.

namespace test {
namespace {

template <class T>
class concurrent_map : public testing::Test {};
using all_types = axis<types<u32, u32>, types<u64, u32>, types<u8, u8>, types<u64, u64>>;
TYPED_TEST_SUITE(concurrent_map, all_types);

TYPED_TEST(concurrent_map, agrees_with_the_oracle) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  for (const path way : {path::automatic, path::direct, path::regional}) {
    pair_of_maps<TypeParam> maps;
    const auto others = from_numbers<key>(random_numbers(500, 99));
    maps.check(others);
    for (u64 round = 0; round < 6; ++round) {
      const std::size_t n = round == 3 ? (sanitized ? 8000 : 30000) : 900;
      auto keys = from_numbers<key>(different_numbers(sizeof(key) == 1 ? 100 : n, round));
      if (sizeof(key) == 1) {
        std::sort(keys.begin(), keys.end());
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      }
      keys.front() = all_ones<key>();
      if (keys.size() > 2 && std::count(keys.begin() + 1, keys.end(), all_ones<key>()) != 0)
        keys.front() = keys[1], keys.erase(keys.begin());
      auto values = numbered_values<value>(keys.size());
      values.back() = all_ones<value>();
      maps.insert(keys, values, way);
      maps.check(others);
      maps.insert(keys, numbered_values<value>(keys.size()), way);  // all there: nothing changes
      maps.check({});
      const std::vector<key> some(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2));
      maps.insert_or_assign(some, from_numbers<value>(random_numbers(some.size(), round)), way);
      maps.insert_or_apply(keys, numbered_values<value>(keys.size()), roost::plus(), way);
      maps.insert_or_apply(some, from_numbers<value>(random_numbers(some.size(), round + 50)),
                           roost::maximum(), way);
      maps.check(others);
      maps.erase(some, way);
      maps.erase(some, way);
      maps.erase(others, way);
      maps.check(others);
      maps.insert_or_apply(keys, numbered_values<value>(keys.size()), roost::minimum(), way);
      maps.check(some);
      if (round == 4) maps.map.rehash(test_place());
      maps.erase(keys, way);
      maps.check(keys);
    }
  }
}

TYPED_TEST(concurrent_map, takes_every_key_and_every_value) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  std::vector<key> keys{key{0}, all_ones<key>(), key{1}, static_cast<key>(all_ones<key>() - 1)};
  if (sizeof(key) == 1) {
    keys.clear();
    for (unsigned k = 0; k < 256; ++k) keys.push_back(static_cast<key>(k));
  }
  for (const value v : {value{0}, all_ones<value>(), value{1}}) {
    for (const path way : {path::direct, path::regional}) {
      pair_of_maps<TypeParam> maps(keys.size());
      maps.insert(keys, std::vector<value>(keys.size(), v), way);
      maps.check({});
      maps.erase(keys, way);
      maps.check(keys);
      maps.insert(keys, std::vector<value>(keys.size(), v), way);
      maps.check({});
    }
  }
}

TYPED_TEST(concurrent_map, copies_in_a_batch) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  const std::size_t n = 40000, different = 100;
  std::vector<key> keys(n);
  for (std::size_t i = 0; i < n; ++i) keys[i] = static_cast<key>(i % different * 3);
  const auto values = from_numbers<value>(multiples(n, 1));
  for (const path way : {path::direct, path::regional}) {
    for (const bool grows : {false, true}) {
      typename TypeParam::map map(test_place(), different, {.grows = grows});
      auto report = map.insert(test_place(), upload(keys), upload(values), {.path = way});
      EXPECT_EQ(report.inserted, different);
      EXPECT_EQ(report.present, n - different);
      auto results = filled<value>(n, value{});
      map.find(test_place(), upload(keys), results, value{});
      const auto first = download(results);
      for (std::size_t i = 0; i < n; ++i) {
        bool one_of_them = false;
        for (std::size_t j = i % different; j < n; j += different) one_of_them |= values[j] == first[i];
        ASSERT_TRUE(one_of_them) << "the value that key " << +keys[i] << " has was given with another";
        if (i > 2 * different) break;
      }
      report = map.insert_or_apply(test_place(), upload(keys), upload(std::vector<value>(n, value{1})),
                                   roost::plus(), {.path = way});
      EXPECT_EQ(report.present, n);
      map.find(test_place(), upload(keys), results, value{});
      const auto sums = download(results);
      for (std::size_t i = 0; i < different; ++i)
        ASSERT_EQ(sums[i], static_cast<value>(first[i] + n / different));
      EXPECT_TRUE(map.valid(test_place()));
    }
  }
}

struct all_of_them {
  ROOST_FN bool operator()(u32, u32) const { return true; }
};

struct odd_one {
  ROOST_FN bool operator()(u32 key, u32 value) const { return key % 2 == 1 && value != 0; }
};
struct add_to {
  unsigned long long* sum;
  ROOST_FN void operator()(u32 key, u32 value) const {
    roost::detail::fetch_add(*sum, static_cast<unsigned long long>(key) * 7 + value);
  }
};

using u32_types = types<u32, u32>;
using u32_map = u32_types::map;

TEST(concurrent_map_calls, insert_if_and_erase_if_and_for_each_and_clear) {
  const std::size_t n = 5000;
  const auto keys = from_numbers<u32>(multiples(n, 1));
  std::vector<u32> values(n, 5), stencil(n);
  for (std::size_t i = 0; i < n; ++i) stencil[i] = i % 3 == 0;
  u32_map map(test_place());
  auto report = map.insert_if(test_place(), upload(keys), upload(values), upload(stencil));
  EXPECT_EQ(report.inserted, (n + 2) / 3);
  EXPECT_EQ(report.present, 0u);
  report = map.insert_if(test_place(), upload(keys), upload(values), upload(stencil));
  EXPECT_EQ(report.inserted, 0u);
  EXPECT_EQ(report.present, (n + 2) / 3);
  EXPECT_EQ(map.erase_if(test_place(), odd_one()), n / 6 + (n % 6 > 3));
  auto sum = filled<unsigned long long>(1, 0);
  map.for_each(test_place(), add_to{sum.data()});
  unsigned long long expected = 0;
  for (std::size_t i = 0; i < n; i += 6) expected += 7 * i + 5;
  EXPECT_EQ(download(sum)[0], expected);
  const std::size_t bytes = map.bytes();
  map.clear(test_place());
  EXPECT_EQ(map.size(test_place()), 0u);
  EXPECT_EQ(map.bytes(), bytes);
  EXPECT_EQ(map.insert(test_place(), upload(keys), upload(values)).inserted, n);
  expect_error<roost::invalid_argument>(
      [&] { map.insert_if(test_place(), upload(keys), upload(values), upload(std::vector<char>(3))); },
      {"insert_if", "5000", "3"});
}

TEST(concurrent_map_calls, empty_batches) {
  u32_map map(test_place());
  const std::vector<u32> none;
  for (const path way : {path::automatic, path::direct, path::regional}) {
    EXPECT_EQ(map.insert(test_place(), none, none, {.path = way}).inserted, 0u);
    EXPECT_EQ(map.erase(test_place(), none, {.path = way}), 0u);
    map.find(test_place(), none, upload(none), 0, {.path = way});
  }
  EXPECT_EQ(map.size(test_place()), 0u);
  map.shrink_to_fit(test_place());
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_map_calls, makes_room_and_gives_it_back) {
  check_that_room_is_made_and_given_back<u32_types>();
}

TEST(concurrent_map_calls, full_is_an_answer) {
  const std::size_t n = 20000;
  const auto keys = from_numbers<u32>(different_numbers(n, 5));
  const auto values = numbered_values<u32>(n);
  for (const path way : {path::automatic, path::direct, path::regional}) {
    for (const std::size_t room : {1, 7, 1000}) {
      u32_map map(test_place(), room, {.load_factor = 1, .grows = false});
      const std::size_t capacity = map.capacity();
      ASSERT_LT(capacity, n / 8) << "so that each section of the table fills";
      const auto report = map.insert(test_place(), upload(keys), upload(values), {.path = way});
      EXPECT_EQ(report.inserted, capacity);
      EXPECT_EQ(report.full, n - capacity);
      EXPECT_EQ(report.present, 0u);
      EXPECT_EQ(report.rehashes, 0);
      EXPECT_EQ(map.size(test_place()), capacity);
      auto results = filled<u32>(n, 0);
      auto found = filled<bool>(n, false);
      map.find(test_place(), upload(keys), results, found);
      const auto there = download(found);
      const auto answers = download(results);
      std::size_t here = 0;
      for (std::size_t i = 0; i < n; ++i) {
        here += there[i];
        if (there[i]) {
          ASSERT_EQ(answers[i], values[i]);
        }
      }
      EXPECT_EQ(here, capacity);
      EXPECT_TRUE(map.valid(test_place()));
      EXPECT_EQ(map.erase(test_place(), upload(keys), {.path = way}), capacity);
      const auto others = from_numbers<u32>(different_numbers(n, 6));
      const auto again = map.insert(test_place(), upload(others), upload(values), {.path = way});
      EXPECT_EQ(again.inserted, capacity) << "bulk inserts take erased keys' slots";
      EXPECT_EQ(again.full, n - capacity);
      EXPECT_TRUE(map.valid(test_place()));
      EXPECT_EQ(map.erase(test_place(), upload(others), {.path = way}), capacity);
      map.rehash(test_place(), room);
      EXPECT_EQ(map.insert(test_place(), upload(keys), upload(values), {.path = way}).inserted, capacity);
    }
  }
}

TEST(concurrent_map_calls, keys_that_share_a_home) {
  // A few more than a home and what is in its reach hold: hashes that follow each other.
  const std::size_t n = on_host ? 36000 : 12000;
  std::vector<u32> keys(n);
  for (u32 i = 0; i < n; ++i) keys[i] = roost::key_of_hash<u32>(0x40000000u + i, 0);
  const auto values = numbered_values<u32>(n);
  for (const path way : {path::direct, path::regional}) {
    if (way == path::direct ? only_threads || !sanitized : !only_threads) {
      u32_map fixed(test_place(), 1000000, {.grows = false});
      const auto report = fixed.insert(test_place(), upload(keys), upload(values), {.path = way});
      EXPECT_LT(report.inserted, n);
      EXPECT_EQ(report.inserted + report.full, n);
      EXPECT_EQ(fixed.count_found(test_place(), upload(keys)), report.inserted);
    }
    if (sanitized && way == path::direct) continue;
    pair_of_maps<u32_types> maps(1000000);
    maps.insert(keys, values, way);
    maps.check({});
  }
}

/// One change after the other of each key, whose value then is i + change.
struct change_key {
  u32_map::ref_type ref;
  const u32* keys;
  u32 change;
  ROOST_FN u64 operator()(std::size_t number) const {
    const u32 key = keys[number], i = static_cast<u32>(number), before = i + change - 1, after = i + change;
    switch (change) {
      case 1:
        return ref.replace(key, before, after) ? 1 : 0;
      case 2:
        return ref.insert_or_assign(key, after) == roost::insertion::present ? 1 : 0;
      case 3:
        return ref.insert_or_apply(key, 1, roost::plus()) == roost::insertion::present ? 1 : 0;
      case 4:
        return ref.insert_or_apply(key, after, roost::maximum()) == roost::insertion::present ? 1 : 0;
      default:
        return ref.erase(key) && ref.insert(key, after) == roost::insertion::inserted ? 1 : 0;
    }
  }
};

TEST(concurrent_map_calls, changes_of_a_key_leave_the_marks_of_others) {
  const std::size_t n = 5000;
  const auto keys = upload(from_numbers<u32>(different_numbers(n, 8)));
  u32_map map(test_place(), n, {.load_factor = 0.97, .grows = false});
  std::vector<u32> expected(n);
  std::iota(expected.begin(), expected.end(), 0u);
  ASSERT_EQ(map.insert(test_place(), keys, upload(expected), {.path = path::direct}).full, 0u);
  for (u32 change = 1; change <= 5; ++change) {
    EXPECT_EQ(test_place().sum(n, change_key{map.ref(), keys.data(), change}), n) << change;
    memory_of<u32> values(test_place(), n);
    map.find(test_place(), keys, values, ~0u);
    for (u32& value : expected) ++value;
    EXPECT_EQ(download(values), expected) << change;
    EXPECT_TRUE(map.valid(test_place())) << change;
  }
}

/// Buckets that a lookup of a key reads.
struct count_reads {
  u32_map::reader_type table;
  const u32* keys;
  ROOST_FN u64 operator()(std::size_t i) const {
    const roost::detail::shared_access access;
    auto cursor = table.start(keys[i]);
    u32_map::reader_type::hit hit;
    u64 reads = 1;
    for (table.read(access, cursor); table.match(access, cursor) < 0 && table.goes_on(access, cursor, hit);
         ++reads)
      table.read(access, cursor);
    return reads;
  }
};

TEST(concurrent_map_calls, absent_keys_rarely_read_a_second_bucket) {
  const std::size_t n = 200000;
  const auto numbers = from_numbers<u32>(different_numbers(2 * n, 9));
  const auto keys = upload(std::vector<u32>(numbers.begin(), numbers.begin() + n)),
             others = upload(std::vector<u32>(numbers.begin() + n, numbers.end()));
  for (const path way : {path::direct, path::regional}) {
    u32_map map(test_place(), n);
    map.insert(test_place(), keys, keys, {.path = way});
    const auto reads = static_cast<double>(test_place().sum(n, count_reads{map.ref(), others.data()}));
    EXPECT_LT(reads / n, on_host ? 1.15 : 1.35);
    RecordProperty("reads", std::to_string(reads / n));
  }
}

TEST(concurrent_map_calls, keys_of_a_full_region_go_on_in_the_next_one_and_move_with_it) {
  const std::size_t room = 200000;  // so that buckets in reach are more than those of a region
  for (const path way : {path::direct, path::regional}) {
    u32_map map(test_place(), room, {.grows = false});
    const auto plan = map.ref().geometry();
    ASSERT_GE(plan.regions, 16u);
    ASSERT_LT(plan.region_buckets, roost::probing::buckets_in_reach);
    const std::size_t slots = std::size_t{plan.region_buckets} * u32_map::ref_type::bucket_slots,
                      n = slots + slots / 4;
    const u64 width = (u64{1} << 32) / plan.regions;  // of the hashes of a region: the first of its section
    std::vector<u32> keys(n);
    for (std::size_t i = 0; i < n; ++i)
      keys[i] = roost::key_of_hash<u32>(static_cast<u32>(0x40000000u + i * (width / n)), 0);
    ASSERT_EQ(map.ref().region_index(keys[0]), map.ref().region_index(keys[n - 1]));
    const auto inserted = map.insert(test_place(), upload(keys), upload(keys), {.path = way}).inserted;
    EXPECT_GT(inserted, slots);
    EXPECT_EQ(map.count_found(test_place(), upload(keys)), inserted);
    map.rehash(test_place(), 3 * room / 2);
    EXPECT_EQ(map.count_found(test_place(), upload(keys)), inserted);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

/// Element i, late on hosts with many threads, so that all tiles begin before any has inserted.
struct late_key {
  ROOST_FN u32 operator()(std::size_t i) const {
#if !ROOST_ON_DEVICE
    if (i % 4096 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
#endif
    return static_cast<u32>(i) * 2654435761u;
  }
};
struct numbered_value {
  ROOST_FN u32 operator()(std::size_t i) const { return static_cast<u32>(i) + 1; }
};

TEST(concurrent_map_calls, a_map_that_grows_is_never_full) {
#if defined(__CUDACC__)
  const place_type& many_threads = test_place();
#else
  const place_type many_threads(16, &test_memory());
#endif
  for (const std::size_t n : {1000, 60000, 65000, 65535, sanitized ? 70000 : 150000}) {
    if (sanitized && (n == 60000 || n == 65000)) continue;
    const roost::computed keys(n, late_key());
    const roost::computed values(n, numbered_value());
    for (const double load_factor : {0.3, 1.0}) {
      for (const path way : {path::automatic, path::direct, path::regional}) {
        if (sanitized && (way == path::automatic) != (n == 70000)) continue;
        u32_map map(many_threads, 0, {.load_factor = load_factor});
        auto report = map.insert(many_threads, keys, values, {.path = way});
        EXPECT_EQ(report.inserted, n);
        EXPECT_EQ(report.full, 0u);
        report = map.insert_or_apply(many_threads, keys, values, roost::plus(), {.path = way});
        EXPECT_EQ(report.present, n);
        u32_map sums(many_threads, 0, {.load_factor = load_factor});
        for (int twice = 0; twice < 2; ++twice)
          EXPECT_EQ(sums.insert_or_apply(many_threads, keys, values, roost::plus(), {.path = way}).full, 0u);
        for (const u32_map* const each : {&map, &sums}) {
          roost::array<u32, place_type> results(many_threads, n);
          each->find(many_threads, keys, results, 0u);
          const auto answers = roost::copy_to_host(many_threads, results);
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < n; ++i) wrong += answers[i] != 2 * (i + 1);
          EXPECT_EQ(wrong, 0u);
        }
      }
    }
  }
}

/// Rounds in which `step` of n keys are erased and as many others inserted.
void churn(bool grows, std::size_t n, std::size_t step, int rounds, path way) {
  u32_map map(test_place(), n, {.load_factor = 0.85, .grows = grows});
  std::vector<u32> live(n);
  u32 next = 0;
  for (auto& key : live) key = next++ * 2654435761u;
  map.insert(test_place(), upload(live), upload(live));
  const std::size_t capacity = map.capacity();
  const double fresh_probes = map.statistics(test_place()).mean_probes;
  int rehashes = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t first = static_cast<std::size_t>(round) % (n / step) * step;
    const std::vector<u32> old(live.begin() + static_cast<std::ptrdiff_t>(first),
                               live.begin() + static_cast<std::ptrdiff_t>(first + step));
    ASSERT_EQ(map.erase(test_place(), upload(old), {.path = way}), step);
    std::vector<u32> fresh(step);
    for (std::size_t i = 0; i < step; ++i) live[first + i] = fresh[i] = next++ * 2654435761u;
    const auto report = map.insert(test_place(), upload(fresh), upload(fresh), {.path = way});
    ASSERT_EQ(report.inserted, step);
    rehashes += report.rehashes;
  }
  if (way != path::regional) {
    EXPECT_GT(rehashes, 0) << "inserts by region need no room made";
  }
  EXPECT_EQ(map.count_found(test_place(), upload(live)), n);
  EXPECT_EQ(map.capacity(), capacity) << "erased keys take no room in the end";
  const auto statistics = map.statistics(test_place());
  EXPECT_EQ(statistics.size, n);
  // Which key lies where is the schedule's choice. With 60 hash functions, buckets of 4 slots (those of 8 did
  // better) and large batches, each of which makes room, 0.858 of the slots are taken, with a standard
  // deviation of 0.0015, and the probes are 1.05 of a new table's, of 0.012. Small batches end anywhere
  // between two sweeps: erased keys take up to half of what load factor 0.85 leaves, 0.925 of the slots and a
  // batch are taken then, and the probes are 1.24, of 0.024. The limits are eight deviations away.
  const bool large = step >= n / 10;
  EXPECT_LE(static_cast<double>(statistics.size + statistics.erased),
            (large ? 0.87 : 0.93) * static_cast<double>(capacity));
  EXPECT_LE(statistics.mean_probes, (large ? 1.15 : 1.45) * fresh_probes);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_map_calls, churn_keeps_its_speed_and_size) {
  const int rounds = sanitized ? 60 : 1000;
  for (const bool grows : {true, false}) {
    churn(grows, 8500, 850, rounds, path::automatic);
    churn(grows, 8500, 850, rounds / 4, path::regional);
    churn(grows, 8500, 10, rounds * 2, path::automatic);
  }
}

TEST(concurrent_map_calls, small_maps_do_not_grow_under_churn) {
  for (const double load_factor : {0.5, 0.8, 1.0}) {
    for (const u32 n : {1u, 10u, 1000u}) {
      u32_map map(test_place(), n, {.load_factor = load_factor});
      const std::size_t capacity = map.capacity();
      const u32 part = (n + 9) / 10;
      std::vector<u32> out(part), in(n);
      for (u32 i = 0; i < n; ++i) in[i] = i;
      map.insert(test_place(), upload(in), upload(in));
      in.resize(part);
      for (u32 round = 0; round < (sanitized ? (on_host ? 50u : 10u) : 500u); ++round) {
        for (u32 i = 0; i < part; ++i) {
          out[i] = round * part + i;
          in[i] = n + out[i];
        }
        map.erase(test_place(), upload(out));
        ASSERT_EQ(map.insert(test_place(), upload(in), upload(in)).inserted, part);
      }
      EXPECT_EQ(map.size(test_place()), n);
      EXPECT_LE(map.capacity(), 2 * capacity + 200) << "load factor " << load_factor << ", " << n << " keys";
    }
  }
}

TEST(concurrent_map_calls, slots_of_erased_keys_in_full_regions_come_back) {
  for (const path way : {path::automatic, path::direct, path::regional}) {
    u32_map map(test_place(), 1000, {.load_factor = 1, .grows = false});
    const std::size_t capacity = map.capacity();
    for (u32 round = 0; round < 4; ++round) {
      const auto keys = from_numbers<u32>(different_numbers(20000, 7 + round));
      ASSERT_EQ(map.insert(test_place(), upload(keys), upload(keys), {.path = way}).inserted, capacity)
          << round;
      ASSERT_EQ(map.capacity(), capacity);
      auto of_the_map = filled<u32>(capacity, 0), values = filled<u32>(capacity, 0);
      map.retrieve_all(test_place(), of_the_map, values);
      auto some = download(of_the_map);
      some.resize(capacity / 2);
      ASSERT_EQ(map.erase(test_place(), upload(some)), capacity / 2);
      const auto others = from_numbers<u32>(different_numbers(20000, 70 + round));
      ASSERT_EQ(map.insert(test_place(), upload(others), upload(others), {.path = way}).inserted,
                capacity / 2)
          << round;
      ASSERT_TRUE(map.valid(test_place()));
      map.erase_if(test_place(), all_of_them());
    }
  }
}

TEST(concurrent_map_calls, a_few_erased_keys_in_a_full_part_come_back) {
  u32_map map(test_place(), 8500, {.load_factor = 0.85, .grows = false});
  const auto section = [&](u32 key) {
    return map.ref().region_index(key) / (map.ref().geometry().regions / 8);
  };
  const auto numbers = from_numbers<u32>(different_numbers(60000, 5));
  std::vector<u32> keys;
  std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(keys),
               [&](u32 key) { return section(key) == 0; });
  const auto report = map.insert(test_place(), upload(keys), upload(keys), {.path = path::direct});
  ASSERT_GT(report.inserted, map.capacity() / 8 - 8);
  ASSERT_GT(report.full, 100u);
  const std::size_t size = map.size(test_place());
  ASSERT_LT(size, 8000u) << "the other sections are empty";

  auto found = filled<bool>(keys.size(), false);
  map.contains(test_place(), upload(keys), found);
  std::vector<u32> out, in;
  const auto there = download(found);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (auto& these = there[i] ? out : in; these.size() < 5) these.push_back(keys[i]);
  }
  ASSERT_EQ(map.erase(test_place(), upload(out)), 5u);
  EXPECT_EQ(map.insert(test_place(), upload(in), upload(in), {.path = path::direct}).inserted, 5u);
  EXPECT_EQ(map.size(test_place()), size);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_map_calls, mixed_batches) {
  using operation = roost::operation<u32, u32>;
  using result = roost::operation_result<u32>;
  using kind = roost::operation_kind;
  u32_map map(test_place(), 3000);
  std::vector<operation> operations;
  for (u32 i = 0; i < 1000; ++i) operations.push_back({kind::insert, i, i + 1});
  auto results = filled<result>(4000, {});
  const auto run = [&] {
    map.run(test_place(), upload(operations), results);
    return download(results);
  };
  auto answers = run();
  for (u32 i = 0; i < 1000; ++i)
    ASSERT_TRUE(answers[i].done && !answers[i].full && answers[i].value == i + 1);
  operations.clear();
  for (u32 i = 0; i < 1000; ++i) {  // each key in one operation, so that the order does not matter
    operations.push_back({kind::find, i % 2 == 0 ? i : i + 5000, 0});
    operations.push_back({kind::insert, i % 2 == 0 ? i + 2000 : i, 9});
    operations.push_back({kind::insert_or_assign, i + 10000, i});
    operations.push_back({kind::erase, i + 20000, 0});
  }
  answers = run();
  for (u32 i = 0; i < 1000; ++i) {
    ASSERT_EQ(answers[4 * i].done, i % 2 == 0);
    if (i % 2 == 0) {
      ASSERT_EQ(answers[4 * i].value, i + 1);
    }
    ASSERT_EQ(answers[4 * i + 1].done, i % 2 == 0);
    ASSERT_EQ(answers[4 * i + 1].value, i % 2 == 0 ? 9 : i + 1);
    ASSERT_TRUE(answers[4 * i + 2].done);
    ASSERT_FALSE(answers[4 * i + 3].done);
  }
  EXPECT_EQ(map.size(test_place()), 1000u + 500 + 1000);
  operations.clear();
  for (u32 i = 0; i < 1000; ++i) {
    operations.push_back({i % 2 == 0 ? kind::erase : kind::insert_or_assign, i, 3 * i});
    operations.push_back({kind::find, i + 10000, 0});
  }
  answers = run();
  for (u32 i = 0; i < 2000; ++i) ASSERT_TRUE(answers[i].done) << i;
  for (u32 i = 0; i < 1000; ++i) ASSERT_EQ(answers[2 * i + 1].value, i);
  EXPECT_EQ(map.size(test_place()), 1000u + 500 + 1000 - 500);
  EXPECT_EQ(map.count_found(test_place(), upload(from_numbers<u32>(multiples(500, 2)))), 0u);
  auto odd = filled<u32>(500, 0);
  map.find(test_place(), upload(from_numbers<u32>(multiples(500, 2, 1))), odd, 0u);
  EXPECT_EQ(download(odd)[100], 3u * 201);
  u32_map small(test_place(), 1, {.grows = false});
  std::vector<operation> too_many;
  for (u32 i = 0; i < 1000; ++i) too_many.push_back({kind::insert, i, i});
  small.run(test_place(), upload(too_many), results);
  answers = download(results);
  std::size_t full = 0;
  for (u32 i = 0; i < 1000; ++i) {
    ASSERT_NE(answers[i].done, answers[i].full) << i;
    full += answers[i].full;
  }
  EXPECT_EQ(small.size(test_place()), small.capacity());
  EXPECT_EQ(full, 1000 - small.capacity());
  expect_error<roost::invalid_argument>(
      [&] { map.run(test_place(), upload(operations), filled<result>(10, {})); }, {"run", "10", "2000"});
}

template <class Ref>
struct insert_by_ref {
  Ref ref;
  ROOST_FN void operator()(std::size_t i) const { (void)ref.insert(static_cast<u32>(i) + 1000000, 5); }
};

TEST(concurrent_map_calls, what_an_old_ref_stores_stays_when_a_batch_comes) {
  const std::size_t n = 3000;
  const auto keys = from_numbers<u32>(multiples(n, 1));
  for (const path way : {path::direct, path::regional}) {
    u32_map map(test_place(), 2 * n);
    const auto ref = map.ref();
    map.clear(test_place());
    test_place().for_each(n, insert_by_ref<u32_map::ref_type>{ref});
    EXPECT_EQ(map.insert(test_place(), upload(keys), upload(keys), {.path = way}).inserted, n);
    EXPECT_EQ(map.size(test_place()), 2 * n);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

TEST(concurrent_map_calls, misuse) {
  const std::vector<u32> keys(10, 3), values(9, 3);
  for (const double bad : {0.0, -1.0, 1.5, std::nan("")}) {
    expect_error<roost::invalid_argument>([&] { u32_map(test_place(), 10, {.load_factor = bad}); },
                                          {"concurrent_map", "load factor", "more than 0 and at most 1"});
  }
  expect_error<roost::out_of_memory>([&] { u32_map(test_place(), std::size_t{1} << 60); }, {"bytes"});
  u32_map kept(test_place(), 1000);
  const std::size_t capacity = kept.capacity();
  expect_error<roost::out_of_memory>([&] { kept.reserve(test_place(), ~std::size_t{0}); }, {"bytes"});
  expect_error<roost::out_of_memory>([&] { kept.rehash(test_place(), ~std::size_t{0}); }, {"bytes"});
  EXPECT_EQ(kept.capacity(), capacity);
  u32_map map(test_place(), 10);
  expect_error<roost::invalid_argument>([&] { map.insert(test_place(), upload(keys), upload(values)); },
                                        {"concurrent_map::insert", "10 keys", "9 values"});
  map.insert(test_place(), upload(values), upload(values));
  expect_error<roost::invalid_argument>([&] { map.find(test_place(), upload(keys), filled<u32>(9, 0), 0); },
                                        {"concurrent_map::find", "9", "10"});
  expect_error<roost::invalid_argument>(
      [&] { map.retrieve_all(test_place(), filled<u32>(0, 0), filled<u32>(1, 0)); },
      {"retrieve_all", "0", "1"});
}

TEST(concurrent_map_calls, a_refusal_of_memory_loses_nothing) {
  for (const bool grows : {true, false})
    expect_refusals_of_map<types<u32, u32>>({.grows = grows}, grows, sanitized ? 2000 : 6000);
}

template <class Ref>
struct contains_by_ref {
  Ref ref;
  const u32* keys;
  ROOST_FN u64 operator()(std::size_t i) const { return ref.contains(keys[i]) ? 1 : 0; }
};

TEST(concurrent_map_calls, refs_of_a_map_that_does_not_grow_stay_valid) {
  u32_map map(test_place(), 1000, {.load_factor = 1, .grows = false});
  const auto keys = upload(from_numbers<u32>(different_numbers(20000, 7)));
  const std::vector<u32> numbers = download(keys);
  map.insert(test_place(), keys, keys);
  const auto ref = map.ref();
  map.erase(test_place(), upload(std::vector<u32>(numbers.begin(), numbers.begin() + 10000)));
  const auto others = upload(from_numbers<u32>(different_numbers(20000, 8)));
  EXPECT_GT(map.insert(test_place(), others, others).rehashes, 0);
  for (const auto* each : {&keys, &others}) {
    const contains_by_ref<u32_map::ref_type> contained{ref, each->data()};
    EXPECT_EQ(test_place().sum(each->size(), contained), map.count_found(test_place(), *each));
  }
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_map_calls, values_are_added_once_where_a_full_map_leaves_most_pairs_over) {
  const std::size_t n = 20000;
  const auto numbers = from_numbers<u32>(different_numbers(n, 5));
  const auto keys = upload(numbers), values = upload(numbered_values<u32>(n));
  for (const path way : {path::direct, path::regional}) {
    u32_map map(test_place(), 1000, {.load_factor = 1, .grows = false});
    const std::size_t size = map.insert(test_place(), keys, values, {.path = way}).inserted;
    auto before = filled<u32>(n, 0), after = filled<u32>(n, 0);
    map.find(test_place(), keys, before, ~0u);
    const auto report = map.insert_or_apply(test_place(), keys, values, roost::plus(), {.path = way});
    EXPECT_EQ(report.present, size);
    EXPECT_EQ(report.full, n - size);
    map.find(test_place(), keys, after, ~0u);
    const auto once = download(before), twice = download(after);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(twice[i], once[i] == ~0u ? ~0u : 2 * once[i]) << i;
  }
}

TEST(concurrent_map_calls, keys_that_do_not_fit_in_a_smaller_table_get_another) {
  // All of one section of the table, which in a smaller one has too few slots for them.
  const std::size_t n = 12000;
  std::vector<u32> numbers(n);
  for (u32 i = 0; i < n; ++i) numbers[i] = roost::key_of_hash<u32>(0x40000000u + i * 40000, 0);
  const auto keys = upload(numbers);
  u32_map map(test_place(), 200000, {.grows = false});
  ASSERT_EQ(map.insert(test_place(), keys, keys).full, 0u);
  map.rehash(test_place(), n);
  EXPECT_EQ(map.size(test_place()), n);
  EXPECT_EQ(map.count_found(test_place(), keys), n);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_map_calls, reserve_keeps_a_table_that_has_room_but_for_erased_keys) {
  for (const bool grows : {false, true}) {
    u32_map map(test_place(), 1000, {.grows = grows});
    const std::size_t capacity = map.capacity(), n = capacity * 8 / 10;
    const auto numbers = from_numbers<u32>(different_numbers(n, 9));
    ASSERT_EQ(map.insert(test_place(), upload(numbers), upload(numbers)).full, 0u);
    const std::vector<u32> some(numbers.begin() + 100, numbers.end());
    ASSERT_EQ(map.erase(test_place(), upload(some)), n - 100);
    map.reserve(test_place(), n);
    EXPECT_EQ(map.capacity(), capacity);
    EXPECT_EQ(map.statistics(test_place()).erased, 0u);
    EXPECT_EQ(map.size(test_place()), 100u);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

TEST(concurrent_map_calls, by_region_only_if_there_is_memory_for_that) {
  const std::size_t n = 100000;
  const auto keys = upload(from_numbers<u32>(different_numbers(n, 9)));
  watched_memory memory;
  const place_type poor = make_place(memory);
  for (const path way : {path::automatic, path::regional}) {
    u32_map map(poor, 2 * n, {.grows = false});
    memory.refuse_over(sizeof(u32) * n);
    const auto insert = [&] { return map.insert(poor, keys, keys, {.path = way}).inserted; };
    if (way == path::regional) {
      EXPECT_THROW(insert(), roost::out_of_memory);
    } else {
      EXPECT_EQ(insert(), n);
    }
    memory.refuse_over(~std::size_t{0});
    EXPECT_TRUE(map.valid(poor));
  }
}

TEST(concurrent_map_calls, the_sample_of_a_batch_and_the_rest_are_the_batch) {
  for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 511u, 65535u, 65536u, 65537u, 66047u, 66048u, 200001u}) {
    const auto order = roost::detail::sample_first::of(n, n);
    EXPECT_LE(order.sampled, n / 16);
    EXPECT_GE(order.sampled + 32, n / 16);
    std::vector<int> seen(n);
    std::size_t first_half = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = order(i);
      ASSERT_LT(at, n);
      ++seen[at];
      first_half += i < order.sampled && at < n / 2;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(n));
    EXPECT_NEAR(static_cast<double>(first_half), static_cast<double>(order.sampled) / 2, 33);
  }
}

// Where the first half is there and the rest is new, the first keys alone told that all would be: 50 times
// as slow.
TEST(concurrent_map_calls, keys_that_are_there_come_before_new_ones) {
  const std::size_t n = sanitized || only_threads ? 100'000 : 1'000'000;
  const auto keys = from_numbers<u64>(multiples(n, 2654435761));
  const auto device = upload(keys);
  const auto seconds_of = [&](std::size_t there) {
    roost::concurrent_map<u64, u64, place_type> map(test_place(), 0);
    map.insert(test_place(), std::span(device.data(), there), std::span(device.data(), there));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(map.insert(test_place(), device, device).inserted, n - there);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(map.size(test_place()), n);
    EXPECT_EQ(map.count_found(test_place(), device), n);
    return spent.count();
  };
  const double all_new = seconds_of(0);
  EXPECT_LT(seconds_of(n / 2), 10 * all_new + 1);
}

}  // namespace
}  // namespace test
