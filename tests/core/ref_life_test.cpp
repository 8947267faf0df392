#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <roost/sorted_map.hpp>
#include <roost/sparse/coordinate_index.hpp>
#include <roost/stadium/stadium_map.hpp>

#include "support/place.hpp"

// Refs that have outlived what they refer to (ROOST_CHECK_REFS): each use of one ends the program.

namespace test {
namespace {

using roost::detail::ref_base;

#if ROOST_CHECK_REFS

template <class Ref, class Key>
struct look_up {
  Ref ref;
  Key key;
  bool* found;
  ROOST_FN void operator()(std::size_t) const { *found = ref.contains(key); }
};

/// Looks a key up on the place; ends with a line on stderr if that fails.
template <class Ref, class Key>
bool contains(const Ref& ref, const Key& key) {
  const auto& place = test_place();
  memory_of<bool> found(place, 1);
  try {
    place.for_each(1, look_up<Ref, Key>{ref, key, found.data()});
    return download(found)[0] != 0;
  } catch (const roost::device_error&) {  // a kernel has ended
    std::fputs("take another\n", stderr);
    std::_Exit(1);
  }
}

template <class Ref, class Key>
void expect_stale(const Ref& ref, const Key& key) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(contains(ref, key), "take another");
}

const std::vector<std::uint32_t>& some_keys() {
  static const auto keys = [] {
    std::vector<std::uint32_t> result(3000);
    std::iota(result.begin(), result.end(), 7u);
    return result;
  }();
  return keys;
}

TEST(ref_life, of_a_concurrent_map_ends_when_it_grows) {
  const auto keys = upload(some_keys());
  roost::concurrent_map<std::uint32_t, std::uint32_t, place_type> map(test_place(), 10);
  const auto before = map.ref();
  EXPECT_FALSE(contains(before, 7u));
  map.insert(test_place(), keys, keys);
  EXPECT_TRUE(contains(map.ref(), 7u));
  expect_stale(before, 7u);

  const auto now = map.ref();
  map.clear(test_place());
  map.insert(test_place(), keys, keys);  // into the same slots
  EXPECT_TRUE(contains(now, 7u));
  auto moved = std::move(map);
  EXPECT_TRUE(contains(now, 7u));
  moved.rehash(test_place());
  expect_stale(now, 7u);
}

TEST(ref_life, of_large_values_ends_when_their_entries_move) {
  const auto keys = upload(some_keys());
  const auto values = upload(std::vector<std::array<std::uint64_t, 3>>(some_keys().size()));
  roost::concurrent_map<std::uint32_t, std::array<std::uint64_t, 3>, place_type> map(test_place(), 4000);
  map.insert(test_place(), keys, values);
  const auto before = std::as_const(map).ref();
  EXPECT_TRUE(contains(before, 7u));
  for (int i = 0; i < 3; ++i) map.insert_or_assign(test_place(), keys, values);  // each takes an entry
  expect_stale(before, 7u);
}

TEST(ref_life, of_frozen_tables_ends_with_them) {
  const auto keys = upload(some_keys());
  roost::frozen_map<std::uint32_t, std::uint32_t, place_type> map(test_place(), keys, keys);
  const auto of_map = map.ref();
  map.rebuild_async(test_place(), keys, keys);
  map.finish(test_place());
  EXPECT_TRUE(contains(of_map, 7u));
  map.rebuild(test_place(), keys, keys);
  expect_stale(of_map, 7u);

  std::optional<roost::frozen_set<std::uint32_t, place_type>> set(std::in_place, test_place(), keys);
  const auto of_set = set->ref();
  EXPECT_TRUE(contains(of_set, 8u));
  set.reset();
  const roost::frozen_set<std::uint32_t, place_type> another(test_place(), keys);  // in the same memory
  expect_stale(of_set, 8u);
  EXPECT_TRUE(contains(another.ref(), 8u));
}

TEST(ref_life, of_other_tables_ends_too) {
  const auto keys = upload(some_keys());
  roost::stadium_map<std::uint32_t, std::uint32_t, place_type> stadium(test_place(), 100);
  const auto of_stadium = stadium.ref();
  EXPECT_FALSE(contains(of_stadium, 7u));
  stadium.insert(test_place(), keys, keys);
  expect_stale(of_stadium, 7u);

  roost::sorted_map<std::uint32_t, std::uint32_t, place_type> sorted(test_place(), keys, keys);
  const auto of_sorted = sorted.ref();
  EXPECT_TRUE(contains(of_sorted, 7u));
  sorted.rebuild(test_place(), keys, keys);
  expect_stale(of_sorted, 7u);

  const roost::coordinate<3> c{1, 2, 3};
  const auto voxels = upload(std::vector{c});
  roost::coordinate_index<3, place_type> index(test_place(), voxels);
  const auto of_index = index.ref();
  EXPECT_TRUE(contains(of_index, c));
  index = roost::coordinate_index<3, place_type>(test_place(), voxels);
  expect_stale(of_index, c);
}

#else

TEST(ref_life, costs_nothing_where_it_is_not_checked) {
  EXPECT_TRUE(std::is_empty_v<ref_base>);
  using ref = roost::concurrent_map<std::uint32_t, std::uint32_t, place_type>::ref_type;
  EXPECT_EQ(sizeof(ref), sizeof(void*) + sizeof(roost::probing::plan));
}

#endif

}  // namespace
}  // namespace test
