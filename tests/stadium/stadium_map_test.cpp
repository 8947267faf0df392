#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <roost/stadium/stadium_map.hpp>

#include "papers/collaborating_lanes.hpp"
#include "support/stadium.hpp"

// stadium_map in bulk, against an oracle. What happens between threads stands in stadium_races_test.cpp.

namespace test {
namespace {

template <class T>
class stadium_map : public testing::Test {};
using all_types = axis<stadium_types<u32, u32>, stadium_types<u64, linked<u32, 75>>,
                       stadium_types<linked<u64, 8>, u32>, stadium_types<packed<5>, packed<3>>>;
TYPED_TEST_SUITE(stadium_map, all_types);

TYPED_TEST(stadium_map, agrees_with_the_oracle) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  const auto others = from_numbers<key>(random_numbers(300, 99));
  u64 round = 0;
  for (const auto& options : kinds_of_stadium()) {
    SCOPED_TRACE(text_of(options));
    const path way = std::array{path::automatic, path::direct, path::regional, path::streamed}[++round % 4];
    pair_of_maps<TypeParam> maps(round % 2 == 0 ? 0 : 700, options);
    maps.check(others);
    const std::size_t n = sanitized ? 400 : 900;
    auto keys = from_numbers<key>(different_numbers(n, round));
    keys.front() = all_ones<key>();
    keys.back() = from_number<key>(0);
    const auto values = numbered_values<value>(n);
    maps.insert(keys, values, way);
    maps.check(others);
    maps.insert(keys, numbered_values<value>(n), way);  // all there: nothing changes
    const std::vector<key> some(keys.begin(), keys.begin() + n / 2);
    maps.insert_or_assign(some, from_numbers<value>(random_numbers(some.size(), round)), way);
    maps.check(others);
    std::vector<key> more = keys;  // some are there, some come twice
    more.insert(more.end(), others.begin(), others.begin() + 100);
    more.insert(more.end(), keys.begin(), keys.begin() + 100);
    maps.insert_or_apply(more, from_numbers<value>(random_numbers(more.size(), round + 100)),
                         roost::maximum(), way);
    maps.check(others);
    maps.erase({others.begin(), others.begin() + 100}, way);
    maps.erase(some, way);
    maps.erase(some, way);
    maps.erase(others, way);
    maps.check(some);
    maps.insert(others, numbered_values<value>(others.size()), way);  // in slots of erased keys
    maps.check(some);
    if (round % 2 == 0) maps.map.rehash(test_place());
    if (round % 3 == 0) maps.map.sweep(test_place());
    maps.check(some);
    maps.insert(some, numbered_values<value>(some.size()), way);
    maps.check({});
    maps.erase(keys, way);
    maps.check(keys);
    maps.map.shrink_to_fit(test_place());
    maps.check(keys);
  }
}

TYPED_TEST(stadium_map, takes_new_keys) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  const std::size_t n = sanitized ? 2000 : 20000;
  const auto keys = from_numbers<key>(different_numbers(2 * n, 3));
  const auto values = numbered_values<value>(n);
  const std::vector<key> first(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n)),
      second(keys.begin() + static_cast<std::ptrdiff_t>(n), keys.end());
  for (const path way : {path::direct, path::regional, path::streamed}) {
    for (const int ticket_bits : {1, 2, 4, 8}) {
      pair_of_maps<TypeParam> maps(ticket_bits == 8 ? 0 : n,
                                   {.ticket_bits = ticket_bits,
                                    .bodies = way == path::streamed ? residence::host : residence::automatic,
                                    .region_slots = 1000});
      for (const auto& these : {first, second, first}) {
        const auto report = maps.map.insert_new(test_place(), upload(these), upload(values), {.path = way});
        EXPECT_EQ(report.inserted, n);
        EXPECT_EQ(report.present + report.full, 0u);
        for (std::size_t i = 0; i < n; ++i) maps.oracle.emplace(these[i], values[i]);
        maps.check(second);
        maps.erase(these, way);
      }
      EXPECT_EQ(maps.map.size(test_place()), 0u);
    }
  }
}

TEST(stadium_map_calls, new_keys_fill_every_slot_whoever_inserts_them) {
  for (const bool together : {false, true}) {
    for (const std::uint32_t region_slots : {101u, 1u << 30}) {
      for (const std::size_t n : {1, 31, 33, 3000, 40000}) {
        roost::stadium_map<u32, u64, place_type> map(
            test_place(), n, {.load_factor = 1, .grows = false, .region_slots = region_slots});
        const std::size_t slots = map.capacity(), more = 100;
        const auto keys = from_numbers<u32>(different_numbers(slots + more, n));
        const auto values = from_numbers<u64>(random_numbers(slots + more, n));
        const auto keys_there = upload(keys);
        const auto values_there = upload(values);
        if (together) {
          EXPECT_EQ(
              roost::bench::insert_collaborating(test_place(), map, keys_there.span(), values_there.span()),
              slots);
        } else {
          const auto report = map.insert_new(test_place(), keys_there, values_there);
          EXPECT_EQ(report.inserted, slots);
          EXPECT_EQ(report.full, more);
        }
        EXPECT_TRUE(map.valid(test_place()));
        auto found = filled<u64>(keys.size(), 1);
        map.find(test_place(), upload(keys), found, 0);
        std::size_t right = 0;
        const auto answers = download(found);
        for (std::size_t i = 0; i < keys.size(); ++i) right += answers[i] == values[i];
        EXPECT_EQ(right, slots);
      }
    }
  }
}

/// A table of which every slot is taken, and who asks for more.
template <class T>
void fill_up(roost::stadium_options options, std::size_t room, path way) {
  using key = typename T::key;
  using value = typename T::value;
  SCOPED_TRACE(text_of(options) + ", room for " + std::to_string(room));
  options.load_factor = 1;
  options.grows = false;
  pair_of_maps<T> maps(room, options);
  const std::size_t capacity = maps.map.capacity();
  ASSERT_GE(capacity, room);
  const auto all = from_numbers<key>(different_numbers(3 * capacity, room));
  const auto part = [&](std::size_t i) {
    return std::vector<key>(all.begin() + static_cast<std::ptrdiff_t>(i * capacity),
                            all.begin() + static_cast<std::ptrdiff_t>((i + 1) * capacity));
  };
  const auto values = numbered_values<value>(capacity);
  EXPECT_EQ(maps.insert(part(0), values, way).inserted, capacity) << "load factor 1, exactly";
  maps.check(part(1));
  auto report = maps.map.insert(test_place(), upload(part(1)), upload(values), {.path = way});
  EXPECT_EQ(report.full, capacity);
  EXPECT_EQ(report.inserted + report.present, 0u);
  report = maps.map.insert_new(test_place(), upload(part(1)), upload(values), {.path = way});
  EXPECT_EQ(report.full, capacity);
  maps.insert_or_assign(part(0), values, way);  // takes no room
  maps.check(part(1));
  maps.erase(part(0), way);
  EXPECT_EQ(maps.insert(part(1), values, way).inserted, capacity) << "bulk inserts take erased keys' slots";
  maps.check(part(0));
  std::vector<key> half = part(1);
  half.resize(capacity / 2);
  maps.erase(half, way);
  report = maps.map.insert(test_place(), upload(part(2)), upload(values), {.path = way});
  EXPECT_EQ(report.inserted, capacity / 2);
  EXPECT_EQ(report.full, capacity - capacity / 2);
  EXPECT_EQ(maps.map.size(test_place()), capacity);
  EXPECT_TRUE(maps.map.valid(test_place()));
  maps.map.clear(test_place());
  maps.oracle.clear();
  maps.insert(part(0), values, way);
  maps.check(part(1));
}

TEST(stadium_map_calls, full_is_an_answer) {
  std::size_t turn = 0;
  for (const auto& options : kinds_of_stadium()) {
    for (const std::size_t room : {1, 7, sanitized ? 150 : 1000})
      fill_up<stadium_types<u64, u64>>(options, room, ++turn % 2 == 0 ? path::direct : path::regional);
  }
  fill_up<stadium_types<u64, linked<u32, 64>>>({.ticket_bits = 4, .region_slots = 100}, 700, path::automatic);
}

TEST(stadium_map_calls, keys_that_share_a_home) {
  // More than their region holds: hashes that follow each other. Of 5000, more go on to the next region than
  // wait while bodies are staged.
  for (const u32 n : {sanitized ? 500u : 1500u, 5000u}) {
    if (sanitized && n == 5000) continue;  // chunk_after_chunk_is_streamed has such keys, too
    std::vector<u32> keys(n);
    for (u32 i = 0; i < n; ++i) keys[i] = roost::key_of_hash<u32>(0xf8000000u + i, 0);
    const auto values = numbered_values<u32>(n);
    for (const path way : {path::direct, path::regional, path::streamed}) {
      for (const residence bodies : {residence::host, residence::automatic}) {
        if (n == 5000 && way != path::streamed) continue;
        pair_of_maps<stadium_types<u32, u32>> maps(
            40000, {.bodies = bodies, .budget = 40000, .grows = false, .region_slots = 250});
        maps.insert(keys, values, way);
        maps.check(from_numbers<u32>(random_numbers(1000, 5)));
        const std::vector<u32> half(keys.begin(), keys.begin() + n / 2);
        maps.insert_or_assign(half, from_numbers<u32>(random_numbers(half.size(), 7)), way);
        maps.check({});
        maps.erase(half, way);
        maps.map.sweep(test_place());  // which leaves regions alone that keys have passed
        maps.check(half);
        maps.insert(half, numbered_values<u32>(half.size()), way);
        maps.check({});
        maps.erase(keys, way);
        const auto report = maps.map.insert_new(test_place(), upload(keys), upload(values), {.path = way});
        EXPECT_EQ(report.inserted, n);
        EXPECT_EQ(report.present + report.full, 0u);
        for (u32 i = 0; i < n; ++i) maps.oracle[keys[i]] = values[i];
        maps.check({});
      }
    }
  }
}

TEST(stadium_map_calls, the_way_is_told) {
  using map_type = stadium_types<u64, u64>::map;
  const std::size_t n = 20000;
  const auto keys = from_numbers<u64>(random_numbers(n, 1));
  auto found = filled<bool>(n, false);
  auto results = filled<u64>(n, 0);
  for (const auto& [bodies, budget, expected] : {std::tuple{residence::host, 0, path::streamed},
                                                 std::tuple{residence::automatic, 100000, path::streamed},
                                                 std::tuple{residence::automatic, 1 << 30, path::regional},
                                                 std::tuple{residence::place, 0, path::regional}}) {
    map_type map(test_place(), n,
                 {.bodies = bodies, .budget = static_cast<std::size_t>(budget), .region_slots = 500});
    EXPECT_EQ(map.insert(test_place(), upload(keys), upload(keys), {.path = path::streamed}).path, expected);
    EXPECT_EQ(map.find(test_place(), upload(keys), results, 0, {.path = path::streamed}).path, expected);
    EXPECT_EQ(download(results), keys);
    EXPECT_EQ(map.contains(test_place(), upload(keys), found, {.path = path::streamed}).path, expected);
    EXPECT_EQ(map.contains(test_place(), upload(keys), found, {.path = path::regional}).path, path::regional);
    EXPECT_EQ(map.contains(test_place(), upload(keys), found).path, path::direct) << "a small batch";
    const auto few =
        map.find(test_place(), upload(keys), results, 0, {.path = path::streamed, .scratch_bytes_most = 1});
    EXPECT_EQ(few.path, expected);
    EXPECT_EQ(download(results), keys);
  }
  map_type grows(test_place(), 0, {.bodies = residence::host, .region_slots = 500});
  EXPECT_EQ(grows.insert(test_place(), upload(keys), upload(keys), {.path = path::streamed}).path,
            path::regional)
      << "no room yet";
  EXPECT_EQ(
      grows.insert_or_assign(test_place(), upload(keys), upload(keys), {.path = path::streamed}).inserted,
      0u);
  EXPECT_EQ(grows.count_found(test_place(), upload(keys)), n);
}

TEST(stadium_map_calls, a_streamed_batch_fills_every_slot) {
  // Keys of regions that are full go on, from memory of the place to that of the host and the other way
  // round.
  for (const std::uint32_t region_slots : {100u, 250u}) {
    for (const bool is_new : {true, false}) {
      stadium_types<u64, u64>::map map(
          test_place(), 20000,
          {.load_factor = 1, .budget = 160000, .grows = false, .region_slots = region_slots});
      ASSERT_GT(map.statistics(test_place()).place_bytes, 0u);
      ASSERT_GT(map.statistics(test_place()).host_bytes, 0u);
      const std::size_t n = map.capacity();
      const auto keys = multiples(n, 0x9e3779b97f4a7c15ull), values = multiples(n, 3);
      const roost::bulk_options how{.path = path::streamed};
      const auto report = is_new ? map.insert_new(test_place(), upload(keys), upload(values), how)
                                 : map.insert(test_place(), upload(keys), upload(values), how);
      EXPECT_EQ(report.path, path::streamed);
      EXPECT_EQ(report.inserted, n);
      auto results = filled<u64>(n, 1);
      map.find(test_place(), upload(keys), results, 1);
      EXPECT_EQ(download(results), values);
      EXPECT_TRUE(map.valid(test_place()));
    }
  }
}

TEST(stadium_map_calls, chunk_after_chunk_is_streamed) {
  // Each copies every body there and back; what a chunk leaves to be done directly must not meet the copies.
  const std::size_t n = !on_host ? 5000000 : sanitized ? 100000 : 400000;
  const roost::bulk_options chunks{.path = path::streamed, .scratch_bytes_most = 1};
  auto keys = multiples(n, 0x9e3779b97f4a7c15ull), values = multiples(n, 3);
  for (std::size_t i = 0; i < 3000; ++i)
    keys[i * 16] = roost::key_of_hash<u64>((u64{7} << 60) + i, 0);  // more than a region's slots
  for (const std::size_t budget : {std::size_t{0}, n * 4}) {
    if (only_threads && budget == 0) continue;
    stadium_types<u64, u64>::map map(test_place(), n,
                                     {.budget = budget, .grows = false, .region_slots = 2000});
    const auto keys_there = upload(keys), values_there = upload(values);
    EXPECT_EQ(map.insert_new(test_place(), keys_there, values_there, chunks).inserted, n);
    auto results = filled<u64>(n, 0);
    EXPECT_GT(map.find(test_place(), keys_there, results, 1, chunks).chunks, 1u);
    EXPECT_EQ(download(results), values);
    EXPECT_EQ(map.insert_or_assign(test_place(), keys_there, keys_there, chunks).present, n);
    map.find(test_place(), keys_there, results, 1, {.path = path::direct});
    EXPECT_EQ(download(results), keys);
    EXPECT_EQ(map.erase(test_place(), keys_there, chunks), n);
    EXPECT_EQ(map.insert(test_place(), keys_there, values_there, chunks).inserted, n);
    map.find(test_place(), keys_there, results, 1, chunks);
    EXPECT_EQ(download(results), values);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

TEST(stadium_map_calls, makes_room_and_gives_it_back) {
  check_that_room_is_made_and_given_back<stadium_types<u32, u32>>();
}

TEST(stadium_map_calls, a_map_that_grows_is_never_full) {
  for (const std::size_t n : {1000, sanitized ? 10000 : 60000, sanitized ? 20000 : 150000}) {
    for (const double load_factor : {0.3, 1.0}) {
      for (const path way : {path::automatic, path::direct, path::regional}) {
        pair_of_maps<stadium_types<u32, u32>> maps(0, {.load_factor = load_factor});
        const auto keys = from_numbers<u32>(multiples(n, 2654435761));
        maps.insert(keys, numbered_values<u32>(n), way);
        EXPECT_EQ(maps.map.size(test_place()), n);
        EXPECT_EQ(maps.map.count_found(test_place(), upload(keys)), n);
        EXPECT_TRUE(maps.map.valid(test_place()));
      }
    }
  }
}

/// Bodies stay in memory of the host, and move there to more regions.
template <class Key, class Value>
void check_that_it_grows_where_it_lies(const roost::stadium_options& options) {
  SCOPED_TRACE(text_of(options) + ", load factor " + std::to_string(options.load_factor) + ", budget " +
               std::to_string(options.budget));
  const std::size_t unit = sanitized ? 300 : 1000, most = 30 * unit;
  pair_of_maps<stadium_types<Key, Value>> maps(6 * unit, options);
  const auto keys = from_numbers<Key>(different_numbers(most + 1000, 3));
  const auto values = from_numbers<Value>(random_numbers(most, 4));
  const std::vector<Key> others(keys.begin() + static_cast<std::ptrdiff_t>(most), keys.end());
  const std::size_t near = maps.map.statistics(test_place()).place_bytes;
  std::size_t done = 0;
  for (const std::size_t n : {6 * unit, 7 * unit, 14 * unit, 23 * unit, most}) {
    const auto part = [&](const auto& all) {
      return std::vector(all.begin() + static_cast<std::ptrdiff_t>(done),
                         all.begin() + static_cast<std::ptrdiff_t>(n));
    };
    maps.insert(part(keys), part(values), n / unit % 2 == 0 ? path::direct : path::regional);
    maps.check(others);
    maps.erase(std::vector(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n / 10)),
               path::automatic);
    done = n;
  }
  const std::size_t near_now = maps.map.statistics(test_place()).place_bytes;
  EXPECT_TRUE(near == 0 ? near_now == 0 : near / 4 < near_now && near_now <= near)
      << near_now << " bytes of " << near << " in memory of the place";
  EXPECT_EQ(maps.map
                .find(test_place(), upload(keys), filled<Value>(keys.size(), values[0]), values[0],
                      {.path = path::streamed})
                .path,
            path::streamed);
  maps.map.reserve(test_place(), 3 * most);
  EXPECT_GE(static_cast<double>(maps.map.capacity()), 3 * static_cast<double>(most) / options.load_factor);
  maps.check(others);
  maps.map.shrink_to_fit(test_place());
  maps.check(others);
}

TEST(stadium_map_calls, grows_where_it_lies) {
  for (const double load_factor : {0.8, 1.0}) {
    for (const std::size_t budget : {0, sanitized ? 9000 : 30000}) {
      if (sanitized && (load_factor == 1.0) != (budget == 0)) continue;
      if (only_threads && budget == 0) continue;
      check_that_it_grows_where_it_lies<u64, u32>(
          {.load_factor = load_factor, .budget = budget, .region_slots = 13});
      check_that_it_grows_where_it_lies<packed<5>, packed<3>>(
          {.load_factor = load_factor, .ticket_bits = 2, .budget = budget, .region_slots = 100});
    }
  }
  check_that_it_grows_where_it_lies<u32, linked<u32, 64>>(
      {.ticket_bits = 4, .bodies = residence::host, .region_slots = 61});
}

TEST(stadium_map_calls, keys_of_one_home_grow_where_they_lie) {
  // More keys than a region holds lie beyond their home before, and find no room there after.
  std::vector<u32> keys(sanitized ? 700 : 3000);
  for (u32 i = 0; i < keys.size(); ++i) keys[i] = roost::key_of_hash<u32>(0x7fffff00u + i, 0);
  for (const std::size_t budget : {0, 20000}) {
    pair_of_maps<stadium_types<u32, u32>> maps(10000, {.budget = budget, .region_slots = 100});
    maps.insert(keys, numbered_values<u32>(keys.size()), path::regional);
    for (const std::size_t n : {20000, 50000}) {
      maps.map.reserve(test_place(), n);
      maps.check({});
    }
  }
}

TEST(stadium_map_calls, tables_grow_as_much_as_they_should) {
  for (const double load_factor : {0.35, 0.7, 0.8, 0.9, 1.0}) {
    for (const std::uint32_t region_slots : {13u, 50u, 101u}) {
      stadium_types<u32, u32>::map map(
          test_place(), 40000,
          {.load_factor = load_factor, .bodies = residence::host, .region_slots = region_slots});
      const std::size_t before = map.capacity();
      const auto room = static_cast<std::size_t>(load_factor * static_cast<double>(before));
      map.reserve(test_place(), room);
      EXPECT_EQ(map.capacity(), before);
      map.reserve(test_place(), 2 * room);
      EXPECT_EQ(map.capacity(), 2 * before);
      map.reserve(test_place(), 2 * room + 10);
      EXPECT_GT(map.capacity(), 2 * before);
      EXPECT_LE(map.capacity(), 2 * before + before / 4);
      EXPECT_TRUE(map.valid(test_place()));
    }
  }
}

TEST(stadium_map_calls, memory_of_the_host_grows) {
  const std::size_t n = 100000;
  roost::detail::body_memory<u32, place_type> memory(test_place(), n, 10);
  ASSERT_TRUE(memory.can_grow()) << "or tables need the memory of two";
  for (std::size_t i = 0; i < n - 10; ++i) memory.far()[i] = static_cast<u32>(i);
  memory.make_room(50 * n, 5);
  memory.resize(50 * n, 5);
  EXPECT_EQ(memory.near_size(), 5u);
  EXPECT_EQ(memory.far_bytes(), (50 * n - 5) * 4);
  for (std::size_t i = 0; i < n - 10; ++i) ASSERT_EQ(memory.far()[i], i);
  test_place().fill(memory.far(), 1, memory.far_bytes());
  test_place().synchronize();
  for (std::size_t i = 0; i < 50 * n - 5; ++i) ASSERT_EQ(memory.far()[i], 0x01010101u);
  EXPECT_FALSE((roost::detail::body_memory<u32, place_type>(test_place(), n, n).can_grow()));
}

#if defined(__CUDACC__)
TEST(stadium_map_calls, memory_that_is_not_there_to_grow_into) {
  using map_type = stadium_types<u32, linked<u32, 64>>::map;
  map_type map(test_place(), 10000, {.bodies = residence::host, .region_slots = 3});
  const std::size_t n = 1000, capacity = map.capacity();
  const auto keys = upload(from_numbers<u32>(multiples(n, 1)));
  map.insert(test_place(), keys, upload(from_numbers<map_type::mapped_type>(multiples(n, 3))));
  expect_error<roost::out_of_memory>(
      [&] { map.reserve(test_place(), roost::detail::bytes_available_on_host() / 256); },
      {"bytes", "pinned"});
  EXPECT_EQ(map.capacity(), capacity);
  EXPECT_EQ(map.count_found(test_place(), keys), n);
  EXPECT_TRUE(map.valid(test_place()));
}
#endif

#if !defined(__CUDACC__)
struct number_from {
  u64 first;
  ROOST_FN u64 operator()(std::size_t i) const { return first + i; }
};

TEST(stadium_map_calls, growth_takes_the_memory_of_one_table) {
  if (sanitized) GTEST_SKIP() << "sanitizers take as much memory as they like";
  const std::size_t n = std::size_t{6} << 20;
  stadium_types<u64, u64>::map map(test_place(), n, {.bodies = residence::host});
  const auto keys = roost::computed(n, number_from{0});
  map.insert_new(test_place(), keys, keys);
  const std::size_t bytes = map.bytes();
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const auto limited = [&](std::size_t more, const auto& grow) {
    const rlimit limit{pages * static_cast<std::size_t>(getpagesize()) + more, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    try {
      grow();
    } catch (const roost::out_of_memory&) {
    }
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  };
  const auto reserve = [&] { map.reserve(test_place(), 2 * n); };
  limited(bytes / 2, reserve);
  EXPECT_EQ(map.bytes(), bytes);
  EXPECT_EQ(map.count_found(test_place(), keys), n) << "what cannot grow is as it was";
  const auto last = roost::computed(map.capacity() * 4 / 5 + 100000 - n, number_from{n});
  limited(bytes / 2, [&] { EXPECT_EQ(map.insert(test_place(), last, last).inserted, last.size()); });
  EXPECT_GT(map.bytes(), bytes);
  EXPECT_LT(map.bytes(), bytes + bytes / 2) << "there was no memory for twice as many";
  EXPECT_EQ(map.count_found(test_place(), last), last.size());
  limited(bytes + bytes / 2, reserve);
  EXPECT_GT(map.bytes(), bytes + bytes / 2) << "a second table would take twice what there was";
  EXPECT_EQ(map.count_found(test_place(), keys), n);
  EXPECT_TRUE(map.valid(test_place()));
}
#endif

TEST(stadium_map_calls, copies_in_a_batch) {
  const std::size_t n = sanitized ? 10000 : 40000, different = 100;
  std::vector<u64> keys(n);
  for (std::size_t i = 0; i < n; ++i) keys[i] = i % different * 3;
  const auto values = from_numbers<linked<u32, 64>>(multiples(n, 1));
  for (const path way : {path::direct, path::regional, path::streamed}) {
    for (const bool grows : {false, true}) {
      const residence bodies = way == path::streamed ? residence::host : residence::place;
      stadium_types<u64, linked<u32, 64>>::map map(test_place(), grows ? 0 : different,
                                                   {.bodies = bodies, .grows = grows, .region_slots = 50});
      auto report = map.insert(test_place(), upload(keys), upload(values), {.path = way});
      EXPECT_EQ(report.inserted, different);
      EXPECT_EQ(report.present, n - different);
      report = map.insert_or_assign(test_place(), upload(keys), upload(values), {.path = way});
      EXPECT_EQ(report.present, n);
      auto results = filled(n, linked<u32, 64>());
      map.find(test_place(), upload(keys), results, linked<u32, 64>(n));
      const auto found = download(results);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i)
        wrong +=
            !found[i].unbroken() || found[i].words[0] >= n || found[i].words[0] % different != i % different;
      EXPECT_EQ(wrong, 0u) << "values that were not given with the key, or in part";
      EXPECT_TRUE(map.valid(test_place()));
    }
  }
}

struct is_odd_key {
  ROOST_FN bool operator()(u64 key, const linked<u32, 64>& value) const {
    return key % 2 == 1 && value.unbroken();
  }
};

TEST(stadium_map_calls, values_add_up_and_pairs_are_taken_out) {
  const std::size_t n = sanitized ? 4000 : 40000;
  const u64 different = 500;
  std::vector<u64> keys(n), sums(different, 0);
  const auto values = random_numbers(n, 3, 1000);
  for (std::size_t i = 0; i < n; ++i) {
    keys[i] = values[i] * 7919 % different;
    sums[keys[i]] += values[i];
  }
  for (const path way : {path::direct, path::regional, path::streamed}) {
    for (const bool grows : {false, true}) {
      roost::stadium_map<u64, u64, place_type> map(
          test_place(), grows ? 0 : different,
          {.bodies = residence::host, .grows = grows, .region_slots = 50});
      const auto report =
          map.insert_or_apply(test_place(), upload(keys), upload(values), roost::plus(), {.path = way});
      EXPECT_EQ(report.inserted + report.present, n);
      for (u64 k = 0; k < different; ++k) {
        auto sum = filled<u64>(1, 0);
        map.find(test_place(), upload(std::vector<u64>{k}), sum, 0);
        ASSERT_EQ(download(sum)[0], sums[k]);
      }
    }
  }
  stadium_types<u64, linked<u32, 64>>::map map(test_place(), n);
  const auto numbers = multiples(n, 3);
  map.insert(test_place(), upload(numbers), upload(from_numbers<linked<u32, 64>>(numbers)));
  EXPECT_EQ(map.erase_if(test_place(), is_odd_key()), n / 2);
  EXPECT_EQ(map.size(test_place()), n - n / 2);
  EXPECT_EQ(map.count_found(test_place(), upload(numbers)), n - n / 2);
  EXPECT_EQ(map.erase_if(test_place(), is_odd_key()), 0u);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(stadium_map_calls, erased_slots_are_swept) {
  using types_here = stadium_types<u64, u64>;
  for (const int ticket_bits : {1, 2, 4, 8}) {
    for (const std::uint32_t region_slots : {0u, 2000u}) {
      SCOPED_TRACE("tickets of " + std::to_string(ticket_bits));
      pair_of_maps<types_here> maps(
          8000, {.load_factor = 0.9, .ticket_bits = ticket_bits, .region_slots = region_slots});
      const auto keys = from_numbers<u64>(random_numbers(8000, 1));
      maps.insert(keys, keys, path::direct);
      const std::vector<u64> half(keys.begin(), keys.begin() + 4000);
      maps.erase(half, path::direct);
      const auto misses = upload(from_numbers<u64>(random_numbers(20000, 2)));
      const auto before = maps.map.costs(test_place(), misses);
      EXPECT_EQ(maps.map.statistics(test_place()).erased, 4000u);
      maps.map.sweep(test_place());
      EXPECT_LT(maps.map.statistics(test_place()).erased, 500u);
      const auto after = maps.map.costs(test_place(), misses);
      EXPECT_EQ(after.found, 0u);
      EXPECT_LT(after.tickets * 3, before.tickets);
      EXPECT_LT(static_cast<double>(after.tickets) / 20000, 2.5)
          << "about as in a fresh table at half the load";
      maps.check(half);
      maps.insert(half, half, path::direct);
      maps.check({});
    }
  }
}

TEST(stadium_map_calls, what_cannot_be_swept_is_not_swept_again) {
  stadium_types<u64, u64>::map map(test_place(), 20000,
                                   {.load_factor = 1, .grows = false, .region_slots = 200});
  const std::size_t n = map.capacity(), step = 100;
  const auto numbers = from_numbers<u64>(different_numbers(n + 10 * step, 1));
  const auto part = [&](std::size_t first, std::size_t count) {
    return upload(std::vector<u64>(numbers.begin() + static_cast<std::ptrdiff_t>(first),
                                   numbers.begin() + static_cast<std::ptrdiff_t>(first + count)));
  };
  EXPECT_EQ(map.insert(test_place(), part(0, n), part(0, n)).inserted, n);
  std::size_t rehashes = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(map.erase(test_place(), part(i * step, step)), step);
    const auto report = map.insert(test_place(), part(n + i * step, step), part(n + i * step, step));
    EXPECT_EQ(report.full, 0u);
    rehashes += report.rehashes;
  }
  EXPECT_EQ(rehashes, 1u) << "keys have passed all regions, so that no slot is as if never used";
  EXPECT_EQ(map.count_found(test_place(), part(10 * step, n)), n);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(stadium_map_calls, room_is_used_where_there_is_no_memory_to_sweep) {
  if (only_threads) GTEST_SKIP() << "a million keys, and one thread that is refused memory";
  watched_memory memory;
  {
    const place_type poor = make_place(memory);
    const std::size_t n = std::size_t{1} << 20;
    stadium_types<u64, u64>::map map(poor, n, {.load_factor = 0.9, .grows = false});
    const auto keys = upload(from_numbers<u64>(multiples(n, 3))), more = upload(from_numbers<u64>({1, 2}));
    map.insert(poor, keys, keys);
    map.erase(poor, keys);
    memory.refuse_over(100000);
    const auto report = map.insert(poor, more, more);
    EXPECT_EQ(report.inserted, 2u);
    EXPECT_EQ(report.rehashes, 0u);
    memory.refuse_nothing();
    EXPECT_EQ(map.insert(poor, more, more).rehashes, 1u);
    EXPECT_EQ(map.statistics(poor).erased, 0u);
    EXPECT_EQ(map.size(poor), 2u);
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TEST(stadium_map_calls, churn_keeps_its_speed_and_size) {
  const std::size_t n = 8500, step = 850;
  for (const bool grows : {true, false}) {
    stadium_types<u32, u32>::map map(test_place(), n,
                                     {.load_factor = 0.85, .grows = grows, .region_slots = 2000});
    std::vector<u32> live(n);
    u32 next = 0;
    for (auto& key : live) key = next++ * 2654435761u;
    map.insert(test_place(), upload(live), upload(live));
    const std::size_t capacity = map.capacity();
    const auto absent = upload(from_numbers<u32>(multiples(n, 2654435761u, 3000000000u * 2654435761ull)));
    const std::size_t fresh_tickets = map.costs(test_place(), absent).tickets;
    int rehashes = 0;
    for (std::size_t round = 0; round < (sanitized ? 40 : 300); ++round) {
      const auto first = live.begin() + static_cast<std::ptrdiff_t>(round % (n / step) * step),
                 last = first + static_cast<std::ptrdiff_t>(step);
      ASSERT_EQ(map.erase(test_place(), upload(std::vector<u32>(first, last))), step);
      for (auto at = first; at != last; ++at) *at = next++ * 2654435761u;
      const auto report = map.insert(test_place(), upload(std::vector<u32>(first, last)),
                                     upload(std::vector<u32>(first, last)));
      ASSERT_EQ(report.inserted, step);
      rehashes += report.rehashes;
    }
    EXPECT_GT(rehashes, 0);
    EXPECT_EQ(map.count_found(test_place(), upload(live)), n);
    EXPECT_EQ(map.capacity(), capacity) << "erased keys take no room in the end";
    // Between two sweeps erased keys take half of what keys leave, and what the last one could not free: with
    // 20 hash functions tickets were 1.3 to 3.0 times those of a new table on a host, and 9.0 to 10.4 times
    // on a GPU. Without sweeps they would be all of a region, 300 times as many.
    const auto costs = map.costs(test_place(), absent);
    EXPECT_EQ(costs.found, 0u);
    EXPECT_LE(costs.tickets, 30 * fresh_tickets);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

TEST(stadium_map_calls, tickets_answer_what_they_should) {
  const std::size_t n = sanitized ? 20000 : 200000;
  const auto keys = from_numbers<u64>(random_numbers(n, 1)), others = from_numbers<u64>(random_numbers(n, 2));
  double last_misses = 1e9;
  for (const int ticket_bits : {1, 2, 4, 8}) {
    stadium_types<u64, u64>::map map(test_place(), n,
                                     {.load_factor = 0.8, .ticket_bits = ticket_bits, .grows = false});
    map.insert_new(test_place(), upload(keys), upload(keys));
    const auto hits = map.costs(test_place(), upload(keys)), misses = map.costs(test_place(), upload(others));
    EXPECT_EQ(hits.found, n);
    EXPECT_EQ(hits.queries, n);
    EXPECT_EQ(misses.found, 0u);
    EXPECT_EQ(misses.false_candidates(), misses.bodies);
    // Double hashing at load 0.8 (Knuth): 1 / (1 - 0.8) tickets for a miss, ln(5) / 0.8 for a hit.
    EXPECT_NEAR(static_cast<double>(misses.tickets) / static_cast<double>(n), 5.0, 0.25);
    EXPECT_NEAR(static_cast<double>(hits.tickets) / static_cast<double>(n), 2.01, 0.1);
    const double bodies = static_cast<double>(misses.bodies) / static_cast<double>(n);
    EXPECT_NEAR(bodies, 4.0 / (1 << (ticket_bits - 1)), 0.3);
    EXPECT_LT(bodies, last_misses);
    last_misses = bodies;
    if (ticket_bits == 8) {
      EXPECT_GE(static_cast<double>(misses.without_bodies), 0.965 * static_cast<double>(n));
      EXPECT_LE(static_cast<double>(hits.bodies), 1.05 * static_cast<double>(n));
    }
  }
}

TEST(stadium_map_calls, bodies_lie_where_they_should) {
  using map_type = stadium_types<u64, u64>::map;
  const std::size_t n = 100000;
  const auto keys = from_numbers<u64>(random_numbers(n, 1));
  for (const std::size_t budget : {std::size_t{0}, std::size_t{500000}, std::size_t{1} << 30}) {
    map_type map(test_place(), n, {.budget = budget, .region_slots = 5000});
    map.insert(test_place(), upload(keys), upload(keys));
    const auto statistics = map.statistics(test_place());
    EXPECT_EQ(statistics.place_bytes + statistics.host_bytes, map.capacity() * 16);
    EXPECT_EQ(statistics.place_bytes + statistics.host_bytes + statistics.board_bytes, map.bytes());
    EXPECT_LE(statistics.place_bytes, budget);
    EXPECT_GE(statistics.place_bytes + 2 * 5000 * 16, std::min(budget, map.capacity() * 16));
    EXPECT_EQ(map.count_found(test_place(), upload(keys)), n);
    EXPECT_TRUE(map.valid(test_place()));
  }
  EXPECT_EQ(map_type(test_place(), n, {.bodies = residence::place, .budget = 5})
                .statistics(test_place())
                .host_bytes,
            0u);
  EXPECT_EQ(map_type(test_place(), n, {.bodies = residence::host}).statistics(test_place()).place_bytes, 0u);
  EXPECT_EQ(map_type(test_place(), n).statistics(test_place()).host_bytes, 0u) << "there is memory enough";
}

struct add_to {
  unsigned long long* sum;
  ROOST_FN void operator()(u32 key, u32 value) const {
    roost::detail::fetch_add(*sum, static_cast<unsigned long long>(key) * 7 + value);
  }
};

TEST(stadium_map_calls, for_each_and_clear_and_empty_batches) {
  const std::size_t n = 5000;
  const auto keys = from_numbers<u32>(multiples(n, 1));
  stadium_types<u32, u32>::map map(test_place());
  const std::vector<u32> none;
  for (const path way : {path::automatic, path::direct, path::regional}) {
    EXPECT_EQ(map.insert(test_place(), none, none, {.path = way}).inserted, 0u);
    EXPECT_EQ(map.erase(test_place(), none, {.path = way}), 0u);
    map.find(test_place(), none, upload(none), 0, {.path = way});
  }
  map.insert(test_place(), upload(keys), upload(std::vector<u32>(n, 5)));
  auto sum = filled<unsigned long long>(1, 0);
  map.for_each(test_place(), add_to{sum.data()});
  EXPECT_EQ(download(sum)[0], 7ull * n * (n - 1) / 2 + 5 * n);
  const std::size_t bytes = map.bytes();
  map.clear(test_place());
  EXPECT_EQ(map.size(test_place()), 0u);
  EXPECT_EQ(map.bytes(), bytes);
  EXPECT_EQ(map.insert(test_place(), upload(keys), upload(keys)).inserted, n);
  auto moved = std::move(map);
  EXPECT_EQ(moved.size(test_place()), n);
  EXPECT_TRUE(moved.valid(test_place()));
}

template <class T>
class stadium_batches : public testing::Test {};
using batch_types =
    axis<stadium_types<u32, u32>, stadium_types<u64, linked<u32, 75>>, stadium_types<linked<u64, 8>, u32>>;
TYPED_TEST_SUITE(stadium_batches, batch_types);

TYPED_TEST(stadium_batches, every_result_of_a_mixed_batch_is_right) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  using roost::operation_kind;
  const std::size_t n = sanitized ? 4000 : 40000;
  const auto numbers = different_numbers(n, 8);
  for (const int ticket_bits : {1, 2, 4, 8}) {
    for (const residence bodies : {residence::place, residence::host}) {
      typename TypeParam::map map(test_place(), n,
                                  {.ticket_bits = ticket_bits, .bodies = bodies, .region_slots = 3000});
      // Every second key is there. One operation a key, so that the order does not matter.
      std::vector<key> there;
      std::vector<value> values;
      for (std::size_t i = 0; i < n; i += 2)
        there.push_back(from_number<key>(numbers[i])), values.push_back(from_number<value>(i));
      map.insert(test_place(), upload(there), upload(values));
      for (int again = 0; again < 2; ++again) {
        const path way = (again == 0) == (bodies == residence::host) ? path::regional : path::direct;
        std::vector<roost::operation<key, value>> batch(n);
        for (std::size_t i = 0; i < n; ++i) {
          batch[i] = {static_cast<operation_kind>(i / 2 % 4), from_number<key>(numbers[i]),
                      from_number<value>(i + 1000000)};
        }
        const auto batch_there = upload(batch);
        roost::array<roost::operation_result<value>, place_type> results_there(test_place(), n);
        EXPECT_EQ(map.run(test_place(), batch_there, results_there, {.path = way}).path, way);
        const auto results = download(results_there);
        std::size_t wrong = 0, size = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const auto what = static_cast<operation_kind>(i / 2 % 4);
          const bool inserts = what == operation_kind::insert || what == operation_kind::insert_or_assign;
          const bool here = again == 0 ? i % 2 == 0 : inserts || (what == operation_kind::find && i % 2 == 0);
          const bool old = here && !(again == 1 && (what == operation_kind::insert_or_assign || i % 2 == 1));
          const value is = from_number<value>(old ? i : i + 1000000);
          size += inserts || (what == operation_kind::find && here);
          wrong += results[i].full;
          switch (what) {
            case operation_kind::find:
              wrong += results[i].done != here || (here && !(results[i].value == is));
              break;
            case operation_kind::insert:
              wrong += results[i].done == here ||
                       !(results[i].value == (here ? is : from_number<value>(i + 1000000)));
              break;
            case operation_kind::insert_or_assign:
              wrong += !results[i].done;
              break;
            case operation_kind::erase:
              wrong += results[i].done != here;
              break;
          }
        }
        EXPECT_EQ(wrong, 0u);
        EXPECT_EQ(map.size(test_place()), size);
        EXPECT_TRUE(map.valid(test_place()));
      }
    }
  }
}

template <class Ref>
struct change_one {
  Ref ref;
  int what;
  u32 key;
  int* result;
  ROOST_FN void operator()(std::size_t) const {
    *result = what == 0   ? static_cast<int>(ref.insert(key, key + 1))
              : what == 1 ? ref.erase(key)
              : what == 2 ? static_cast<int>(ref.insert_new(key, key + 1))
                          : static_cast<int>(ref.find(key).value_or(0));
  }
};

TEST(stadium_map_calls, erased_slots_wait_for_their_keys) {
  constexpr int inserted = static_cast<int>(roost::insertion::inserted),
                full = static_cast<int>(roost::insertion::full);
  for (const auto& options_here : kinds_of_stadium()) {
    auto options = options_here;
    SCOPED_TRACE(text_of(options));
    options.load_factor = 1;
    options.grows = false;
    stadium_types<u32, u32>::map map(test_place(), 100, options);
    const auto n = static_cast<u32>(map.capacity());
    const auto keys = from_numbers<u32>(multiples(n, 77));
    map.insert(test_place(), upload(keys), upload(keys));
    const auto result = filled<int>(1, -1);
    const auto change = [&](int what, u32 key) {
      test_place().for_each(
          1, change_one<stadium_types<u32, u32>::ref>{map.ref(), what, key, const_cast<int*>(result.data())});
      return download(result)[0];
    };
    EXPECT_EQ(change(0, 5), full);
    EXPECT_EQ(change(1, 77), 1);
    EXPECT_EQ(change(1, 77), 0);
    EXPECT_EQ(change(0, 5), full);
    EXPECT_EQ(change(2, 5), full);
    EXPECT_EQ(change(0, 77), inserted);
    EXPECT_EQ(change(3, 77), 78);
    EXPECT_EQ(change(0, 77), static_cast<int>(roost::insertion::present));
    EXPECT_EQ(change(1, 77), 1);
    EXPECT_EQ(map.insert(test_place(), upload(std::vector<u32>{5}), upload(std::vector<u32>{6})).inserted, 1u)
        << "a bulk insert does not wait";
    EXPECT_EQ(change(3, 5), 6);
    EXPECT_EQ(change(0, 77), full);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

TEST(stadium_map_calls, misuse_is_told) {
  using map_type = stadium_types<u32, u32>::map;
  expect_error<roost::invalid_argument>([] { map_type(test_place(), 5, {.load_factor = 0}); },
                                        {"stadium_map", "load factor 0"});
  expect_error<roost::invalid_argument>([] { map_type(test_place(), 5, {.load_factor = 1.01}); },
                                        {"load factor 1.01"});
  expect_error<roost::invalid_argument>([] { map_type(test_place(), 5, {.ticket_bits = 3}); },
                                        {"3 bits", "1, 2, 4 or 8"});
  expect_error<roost::out_of_memory>([] { map_type(test_place(), std::size_t{1} << 60); }, {"bytes"});
  // A small board, and more bodies than there is memory.
  using large_map = stadium_types<u32, packed<65536>>::map;
  expect_error<roost::out_of_memory>(
      [] { large_map(test_place(), std::size_t{1} << 26, {.bodies = residence::host}); },
      {"bytes", on_host ? "" : "pinned host memory"});
  map_type map(test_place());
  const auto three = upload(std::vector<u32>(3)), two = upload(std::vector<u32>(2));
  auto results = filled<u32>(2, 0);
  expect_error<roost::invalid_argument>([&] { map.insert(test_place(), three, two); },
                                        {"stadium_map::insert", "3 keys", "2 values"});
  expect_error<roost::invalid_argument>([&] { map.find(test_place(), three, results, 0); },
                                        {"stadium_map::find", "2 results", "3 needed"});
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(stadium_map_calls, a_refusal_of_memory_loses_nothing) {
  const std::size_t n = sanitized ? 600 : 1800;
  for (const roost::stadium_options& options :
       {roost::stadium_options{}, roost::stadium_options{.bodies = residence::host, .region_slots = 13},
        roost::stadium_options{.bodies = residence::automatic, .budget = 5000, .region_slots = 61}}) {
    SCOPED_TRACE(text_of(options));
    expect_refusals_of_map<stadium_types<u32, u32>>(options, true, n);
  }
  expect_refusals_of_map<stadium_types<u32, u32>>({.grows = false}, false, n);
}

}  // namespace
}  // namespace test
