#include <roost/block_map.hpp>
#include <roost/concurrent_map.hpp>
#include <roost/concurrent_set.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Maps in memory that their users bring.

namespace test {
namespace {

using roost::insertion;

template <class Key, class Value>
void in_storage(std::size_t n) {
  using map_type = roost::concurrent_map<Key, Value, place_type>;
  const roost::concurrent_options options{.load_factor = 0.7};
  const std::size_t bytes = map_type::storage_bytes(n, options);
  EXPECT_LE(bytes, 2 * (static_cast<double>(n) / 0.7 * sizeof(typename map_type::ref_type::word)) + 4096);
  constexpr std::size_t margin = 64;
  auto memory = filled<std::byte>(bytes + 2 * margin, std::byte{0xa5});
  {
    map_type map(test_place(), memory.span().subspan(margin, bytes), options);
    ASSERT_LE(map.bytes(), bytes);
    ASSERT_GE(static_cast<double>(map.capacity()) * 0.7, static_cast<double>(n));
    EXPECT_EQ(map.size(test_place()), 0u) << "it clears the memory";
    const auto keys = from_numbers<Key>(different_numbers(n, 3));
    const auto values = numbered_values<Value>(n);
    for (int round = 0; round < 3; ++round) {
      const auto report = map.insert(test_place(), upload(keys), upload(values));
      EXPECT_EQ(report.inserted, n);
      auto results = filled<Value>(n, Value{});
      map.find(test_place(), upload(keys), results, Value{});
      EXPECT_EQ(download(results), values);
      if (round == 1) map.rehash(test_place());
      EXPECT_TRUE(map.valid(test_place()));
      EXPECT_EQ(map.erase(test_place(), upload(keys)), n);
    }
    map.reserve(test_place(), n);
    map.shrink_to_fit(test_place());
    EXPECT_THROW(map.reserve(test_place(), 2 * n + 100), roost::invalid_argument);
    map_type other = std::move(map);
    EXPECT_EQ(other.insert(test_place(), upload(keys), upload(values)).inserted, n);
    const auto more = from_numbers<Key>(multiples(other.capacity() - n + 500, 2654435761u, 7));
    const auto report = other.insert(test_place(), upload(more), upload(numbered_values<Value>(more.size())));
    EXPECT_GT(report.full, 0u) << "it does not grow";
    EXPECT_TRUE(other.valid(test_place()));
  }
  const auto after = download(memory);
  for (std::size_t i = 0; i < margin; ++i) {
    ASSERT_EQ(after[i], std::byte{0xa5});
    ASSERT_EQ(after[margin + bytes + i], std::byte{0xa5});
  }
}

TEST(storage, of_their_users_is_enough_for_maps) {
  in_storage<u32, u32>(1);
  in_storage<u32, u32>(1000);
  in_storage<u64, u64>(20000);
  in_storage<u32, u32>(sanitized ? 20000 : 300000);
}

template <class Key, class Value>
void has_room_for_any_number_of_keys(double load_factor) {
  using map_type = roost::concurrent_map<Key, Value, place_type>;
  const roost::concurrent_options options{.load_factor = load_factor};
  for (std::size_t n = 1; n < 200'000; n += n < 2000 ? 1 : 97) {
    const std::size_t bytes = map_type::storage_bytes(n, options);
    const auto plan = roost::probing::make_plan_within<place_type, Key, Value>(bytes, 0);
    const std::size_t slots = plan.buckets() * map_type::ref_type::bucket_slots;
    ASSERT_GE(static_cast<double>(slots) * load_factor, static_cast<double>(n)) << bytes << " bytes";
  }
}

TEST(storage, has_room_for_any_number_of_keys) {
  for (const double load_factor : {0.7, 0.8, 1.0}) {
    has_room_for_any_number_of_keys<u32, u32>(load_factor);
    has_room_for_any_number_of_keys<u64, u64>(load_factor);
  }
}

TEST(storage, of_sets) {
  using set_type = roost::concurrent_set<u32, place_type>;
  auto memory = filled<std::byte>(set_type::storage_bytes(3000), std::byte{1});
  set_type set(test_place(), memory.span());
  const auto keys = from_numbers<u32>(different_numbers(3000, 4));
  EXPECT_EQ(set.insert(test_place(), upload(keys)).inserted, 3000u);
  EXPECT_EQ(set.count_found(test_place(), upload(keys)), 3000u);
  EXPECT_TRUE(set.valid(test_place()));
}

TEST(storage, that_cannot_be_is_refused) {
  using map_type = roost::concurrent_map<u32, u32, place_type>;
  auto memory = filled<std::byte>(1024, std::byte{});
  EXPECT_THROW(map_type(test_place(), memory.span().subspan(0, 16)), roost::invalid_argument);
  EXPECT_THROW(map_type(test_place(), memory.span().subspan(0, 0)), roost::invalid_argument);
  EXPECT_THROW(map_type(test_place(), memory.span().subspan(8, 512)), roost::invalid_argument);
  EXPECT_NO_THROW(map_type(test_place(), memory.span().subspan(16, 512)));
}

/// One worker as a group.
struct alone_group {
  ROOST_FN unsigned thread_rank() const { return 0; }
  ROOST_FN unsigned size() const { return 1; }
  ROOST_FN void sync() const {}
};

struct sum_of {
  u64* keys;
  u64* values;
  template <class Key, class Value>
  ROOST_FN void operator()(const Key& key, const Value& value) const {
    *keys += key;
    *values += value;
  }
};

/// One worker fills a block_map, asks it, and erases half. wrong: how many answers were.
template <class Key, class Value>
struct use_block_map {
  using map_type = roost::block_map<Key, Value, 1000, place_type>;
  typename map_type::storage* memory;
  u64* wrong;

  ROOST_FN void operator()(std::size_t) const {
    const map_type map(*memory, 5);
    map.clear(alone_group());
    constexpr u32 n = 500;
    u64 bad = 0;
    for (u32 i = 0; i < n; ++i)
      bad += map.insert(static_cast<Key>(i * 77u), static_cast<Value>(i)) != insertion::inserted;
    for (u32 i = 0; i < n; ++i)
      bad += map.insert(static_cast<Key>(i * 77u), static_cast<Value>(1)) != insertion::present;
    for (u32 i = 0; i < n; ++i)
      bad += map.find(static_cast<Key>(i * 77u)).value_or(0) != static_cast<Value>(i) ||
             map.contains(static_cast<Key>(i * 77u + 1));
    for (u32 i = 0; i < n; ++i)
      bad += map.insert_or_apply(static_cast<Key>(i * 77u), static_cast<Value>(2), roost::plus()) !=
             insertion::present;
    for (u32 i = 0; i < n; i += 2) bad += !map.erase(static_cast<Key>(i * 77u));
    u64 keys = 0, values = 0;
    map.for_each(alone_group(), sum_of{&keys, &values});
    for (u32 i = 1; i < n; i += 2) {
      keys -= i * 77u;
      values -= i + 2;
    }
    bad += keys != 0 || values != 0;
    bad += map.capacity() < 1000;
    u32 full = 0;
    for (u32 i = 0; i < 5000; ++i)
      full += map.insert(static_cast<Key>(1000000 + i), Value{}) == insertion::full;
    bad += full < 3000;
    *wrong = bad;
  }
};

/// Memory that nobody has cleared.
template <class Storage>
memory_of<Storage> uncleared() {
  Storage storage;
  std::memset(static_cast<void*>(&storage), 0xa5, sizeof(storage));
  return filled<Storage>(1, storage);
}

TEST(block_map, does_what_maps_do) {
  auto wrong = filled<u64>(1, 99);
  {
    auto memory = uncleared<roost::block_map<u32, u32, 1000, place_type>::storage>();
    test_place().for_each(1, use_block_map<u32, u32>{memory.data(), wrong.data()});
    EXPECT_EQ(download(wrong)[0], 0u);
  }
  auto memory = uncleared<roost::block_map<u64, u64, 1000, place_type>::storage>();
  test_place().for_each(1, use_block_map<u64, u64>{memory.data(), wrong.data()});
  EXPECT_EQ(download(wrong)[0], 0u);
}

}  // namespace
}  // namespace test
