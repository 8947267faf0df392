#include <roost/concurrent_map.hpp>

#include "support/concurrent.hpp"
#include "support/races.hpp"

// What threads of a kernel, or of the host, may do to a concurrent_map at the same time.

namespace test {
namespace {

template <class T>
class concurrent_races : public testing::Test {};
using all_types = axis<types<u32, u32>, types<u32, u64>, types<u64, linked<u32, 3>>, types<u64, u64>>;
TYPED_TEST_SUITE(concurrent_races, all_types);

#if defined(ROOST_NO_WIDE_ATOMICS)
constexpr bool locks = true;
#else
constexpr bool locks = false;
#endif
constexpr std::size_t many = sanitized ? 20000 : on_host ? 300000 : locks ? 100000 : 4000000;  // a crowd at a lock is slow

/// For so many keys to make a map: one of large values needs an entry for each change, too.
template <class T>
std::size_t room_for(std::size_t keys, std::size_t changes) {
  return sizeof(typename T::value) > 8 ? keys + changes : keys;
}

TYPED_TEST(concurrent_races, one_of_many_inserts_of_a_key_succeeds) {
  for (const u64 keys : {std::size_t{1}, std::size_t{100}, many / 10}) {
    typename TypeParam::map map(test_place(), room_for<TypeParam>(keys, many), {.load_factor = 0.95});
    auto inserted = filled<u32>(keys, 0);
    at_once(many, insert_few<TypeParam>{map.ref(), keys, inserted.data()});
    std::size_t wrong = 0, there = 0;
    for (const u32 times : download(inserted)) {
      wrong += times > 1;
      there += times;
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(map.size(test_place()), there);
    EXPECT_GE(there, keys - keys / 10);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

TYPED_TEST(concurrent_races, inserts_less_erases_are_there_and_no_reader_sees_another_keys_value) {
  for (const u64 keys : {1, 3, 50, 20000}) {
    typename TypeParam::map map(test_place(), room_for<TypeParam>(keys, many), {.load_factor = 0.9});
    auto inserted = filled<u32>(keys, 0), erased = filled<u32>(keys, 0), wrong = filled<u32>(1, 0);
    at_once(many, insert_and_erase<TypeParam>{map.ref(), keys, inserted.data(), erased.data(), wrong.data()});
    EXPECT_EQ(download(wrong)[0], 0u);
    std::vector<typename TypeParam::key> all(keys);
    for (u64 k = 0; k < keys; ++k) all[k] = static_cast<typename TypeParam::key>(k * 0x9e3779b9);
    auto found = filled<bool>(keys, false);
    map.contains(test_place(), upload(all), found);
    const auto there = download(found);
    const auto in = download(inserted), out = download(erased);
    std::size_t bad = 0;
    for (u64 k = 0; k < keys; ++k) bad += in[k] - out[k] != static_cast<u32>(there[k]);
    EXPECT_EQ(bad, 0u) << "of " << keys << " keys";
    EXPECT_TRUE(map.valid(test_place()));
  }
}

template <class T>
struct add_up {
  typename T::ref ref;
  u64 keys;
  ROOST_FN void operator()(std::size_t i) const {
    const auto key = static_cast<typename T::key>(dice{4}(i, keys));
    ref.insert_or_apply(key, static_cast<typename T::value>(i % 5), roost::plus());
  }
};

struct add_by_hand {  // no atomic instruction for it
  template <class V>
  ROOST_FN V operator()(const V& a, const V& b) const {
    return static_cast<V>(a + b);
  }
};
template <class T>
struct add_up_by_hand {
  typename T::ref ref;
  u64 keys;
  ROOST_FN void operator()(std::size_t i) const {
    const auto key = static_cast<typename T::key>(dice{4}(i, keys));
    ref.insert_or_apply(key, static_cast<typename T::value>(i % 5), add_by_hand());
  }
};

TYPED_TEST(concurrent_races, no_addition_is_lost) {
  for (const u64 keys : {1, 16, 5000}) {
    for (const bool by_hand : {false, true}) {
      // All that are under way at once try again when one has succeeded: by hand, a GPU would take minutes for more.
      const bool large = sizeof(typename TypeParam::value) > 8;  // always by hand, and in three accesses
      const std::size_t n = on_host || !(by_hand || large) ? many / 4 : large ? 4000 : 20000;
      std::vector<typename TypeParam::value> sums(keys);
      for (std::size_t i = 0; i < n; ++i) {
        auto& sum = sums[dice{4}(i, keys)];
        sum = static_cast<typename TypeParam::value>(sum + static_cast<typename TypeParam::value>(i % 5));
      }
      typename TypeParam::map map(test_place(), room_for<TypeParam>(keys, n));
      if (by_hand) {
        at_once(n, add_up_by_hand<TypeParam>{map.ref(), keys});
      } else {
        at_once(n, add_up<TypeParam>{map.ref(), keys});
      }
      std::vector<typename TypeParam::key> all(keys);
      for (u64 k = 0; k < keys; ++k) all[k] = static_cast<typename TypeParam::key>(k);
      auto results = filled<typename TypeParam::value>(keys, {});
      map.find(test_place(), upload(all), results, typename TypeParam::value{});
      EXPECT_TRUE(download(results) == sums);
    }
  }
}

#if !defined(__CUDACC__)
TEST(concurrent_const_members, run_beside_changes) {
  using types_here = types<u32, u32>;
  constexpr u32 stable = 20000, changing = 20000;
  types_here::map map(test_place(), stable + changing);
  std::vector<u32> keys(stable);
  for (u32 i = 0; i < stable; ++i) keys[i] = i;
  map.insert(test_place(), keys, keys);
  const auto ref = map.ref();
  std::atomic<bool> stop{false};
  std::thread changes([&] {
    for (u32 i = 0; !stop; ++i) {
      const u32 key = stable + i % changing;
      i / changing % 2 == 0 ? void(ref.insert(key, key)) : void(ref.erase(key));
    }
  });
  const types_here::map& reading = map;
  for (int round = 0; round < (sanitized ? 5 : 30); ++round) {
    std::vector<u32> results(stable);
    reading.find(test_place(), keys, results, 7u);
    EXPECT_TRUE(results == keys);
    EXPECT_EQ(reading.count(test_place(), keys), stable);
    EXPECT_GE(reading.size(test_place()), stable);
    const auto statistics = reading.statistics(test_place());
    EXPECT_GE(statistics.size, stable);
    EXPECT_LE(statistics.size, stable + changing);
    if (sanitized) continue;
    // Not a call to make beside changes, but one that keeps to its memory then: some pairs may be missing, none is wrong.
    std::vector<u32> keys_out(stable + changing), values_out(stable + changing);
    const std::size_t n = reading.retrieve_all(test_place(), keys_out, values_out);
    EXPECT_LE(n, stable + changing);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += keys_out[i] != values_out[i];
    EXPECT_EQ(wrong, 0u);
  }
  stop = true;
  changes.join();
  EXPECT_TRUE(map.valid(test_place()));
}
#endif

TEST(order_of, knows_good_from_bad) {
  const event insert_1{0, 3, 0, kind::insert, 1, true, 0, 0}, insert_2{1, 2, 0, kind::insert, 2, true, 0, 0}, erase{4, 5, 0, kind::erase, 0, true, 0, 0};
  event find{6, 7, 0, kind::find, 0, true, 1, 0};
  EXPECT_TRUE(order_of({insert_1}).exists());
  EXPECT_FALSE(order_of({insert_1, insert_2}).exists()) << "two inserts of one key have succeeded";
  EXPECT_TRUE(order_of({insert_1, erase}).exists());
  EXPECT_FALSE(order_of({insert_1, erase, find}).exists()) << "it was erased before";
  find.begin = 4;
  EXPECT_TRUE(order_of({insert_1, erase, find}).exists());
  find.answer = 2;
  EXPECT_FALSE(order_of({insert_1, erase, find}).exists()) << "nobody has stored that value";
}

TYPED_TEST(concurrent_races, histories_are_linearizable) {
  // So many threads and keys that a few operations on a key overlap; with many, there would be more orders than can be looked through.
  const std::size_t threads = on_host ? 4 : 1024;
  const u32 keys = on_host ? 40 : 400, operations = on_host ? 1000 : 16;
  const u64 rounds = sanitized ? 5 : 40;
  u64 unknown = 0;
  for (u64 round = 0; round < rounds; ++round) {
    typename TypeParam::map map(test_place(), room_for<TypeParam>(keys, threads * operations), {.load_factor = 0.9, .seed = round});
    auto clock = filled<unsigned long long>(1, 0);
    roost::array<event, place_type> recorded(test_place(), threads * operations);
    at_once(threads, record_history<TypeParam>{map.ref(), operations, keys, 10 * round, clock.data(), recorded.data()});
    std::vector<std::vector<event>> of_key(keys);
    for (const event& e : download(recorded)) of_key[e.key].push_back(e);
    for (u32 key = 0; key < keys; ++key) {
      const auto answer = order_of(of_key[key]).search();
      unknown += answer == order_of::answer::too_many_overlap;
      ASSERT_NE(answer, order_of::answer::there_is_none) << "key " << key << " in round " << round << text_of(of_key[key]);
    }
    EXPECT_TRUE(map.valid(test_place()));
  }
  EXPECT_LE(unknown, rounds * keys / 100) << "histories that say nothing";
}

}  // namespace
}  // namespace test
