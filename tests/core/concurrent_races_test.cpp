#include <numeric>
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
const std::size_t many = sanitized ? 20000
                         : on_host ? 300000
                         : locks   ? 100000
                                   : 4000000;  // a crowd at a lock is slow

/// For so many keys to make a map: one of large values needs an entry for each change, too.
template <class T>
std::size_t room_for(std::size_t keys, std::size_t changes) {
  return sizeof(typename T::value) > 8 ? keys + changes : keys;
}

TYPED_TEST(concurrent_races, one_of_many_inserts_of_a_key_succeeds) {
  for (const u64 keys : {std::size_t{1}, std::size_t{100}, many / 10}) {
    typename TypeParam::map map(test_place(), room_for<TypeParam>(keys, many), {.load_factor = 0.95});
    check_inserts_of_few<TypeParam>(map, keys, many);
  }
}

TYPED_TEST(concurrent_races, inserts_less_erases_are_there_and_no_reader_sees_another_keys_value) {
  for (const u64 keys : {1, 3, 50, 20000}) {
    typename TypeParam::map map(test_place(), room_for<TypeParam>(keys, many), {.load_factor = 0.9});
    check_inserts_and_erases<TypeParam>(map, keys, many);
  }
}

template <class T>
struct add_up {
  typename T::ref ref;
  u64 keys;
  ROOST_FN void operator()(std::size_t i) const {
    const auto key = static_cast<typename T::key>(dice{4}(i, keys));
    (void)ref.insert_or_apply(key, static_cast<typename T::value>(i % 5), roost::plus());
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
    (void)ref.insert_or_apply(key, static_cast<typename T::value>(i % 5), add_by_hand());
  }
};

TYPED_TEST(concurrent_races, no_addition_is_lost) {
  for (const u64 keys : {1, 16, 5000}) {
    for (const bool by_hand : {false, true}) {
      // All that are under way at once try again when one has succeeded: by hand, a GPU would take minutes
      // for more.
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
      EXPECT_TRUE(map.valid(test_place()));
    }
  }
}

#if !defined(__CUDACC__)
TYPED_TEST(concurrent_races, threads_that_insert_a_key_together_meet) {
  const std::size_t keys = many / 10;
  typename TypeParam::map map(test_place(), room_for<TypeParam>(keys, 4 * keys), {.load_factor = 0.9});
  std::vector<std::atomic<u32>> here(keys);
  std::atomic<std::size_t> inserted{0};
  at_once(4 * keys, [&, ref = map.ref()](std::size_t i) {
    ++here[i / 4];
    for (int spins = 0; here[i / 4] % 2 != 0 && spins < 1000; ++spins) {
    }
    const auto key = static_cast<typename TypeParam::key>(i / 4);
    if (ref.insert(key, typename TypeParam::value{}) == insertion::inserted) ++inserted;
  });
  EXPECT_EQ(inserted, keys);
  EXPECT_EQ(map.size(test_place()), keys);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(retrieve_pairs, keeps_to_its_room) {
  types<u32, u32>::map map(test_place(), 10000);
  const auto insert = [&](u32 begin, u32 end) {
    for (u32 key = begin; key < end; ++key) (void)map.ref().insert(key, key);
  };
  insert(0, 5000);
  std::vector<u32> keys(6000, 0xabcdefu), values(6000, 0xabcdefu);
  insert(5000, 10000);  // after the size was taken
  roost::detail::retrieve_pairs(test_place(), std::as_const(map).ref(), keys.data(), values.data(), 5000);
  EXPECT_EQ(std::count(keys.begin(), keys.begin() + 5000, 0xabcdefu), 0);
  EXPECT_EQ(std::count(keys.begin() + 5000, keys.end(), 0xabcdefu), 1000);
  EXPECT_TRUE(keys == values);
}

TEST(concurrent_const_members, run_beside_changes) {
  const u32 most = 40000;
  types<u32, u32>::map map(test_place(), most);
  check_const_members_beside_changes(map, most, [&](const auto& reading) {
    if (sanitized) return;
    // Not a call to make beside changes, but one that keeps to its memory then: some pairs may be missing,
    // none is wrong.
    std::vector<u32> keys_out(most), values_out(most);
    const std::size_t n = reading.retrieve_all(test_place(), keys_out, values_out);
    EXPECT_LE(n, most);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += keys_out[i] != values_out[i];
    EXPECT_EQ(wrong, 0u);
  });
}
#endif

TEST(order_of, knows_good_from_bad) {
  const event insert_1{0, 3, 0, kind::insert, 1, true, 0, 0}, insert_2{1, 2, 0, kind::insert, 2, true, 0, 0},
      erase{4, 5, 0, kind::erase, 0, true, 0, 0};
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
  check_histories<TypeParam>(sanitized ? 5 : 40, [](u64 round, std::size_t keys, std::size_t changes) {
    return typename TypeParam::map(test_place(), room_for<TypeParam>(keys, changes),
                                   {.load_factor = 0.9, .seed = round});
  });
}

}  // namespace
}  // namespace test
