#include <numeric>
#include <roost/stadium/stadium_map.hpp>

#include "support/races.hpp"
#include "support/stadium.hpp"

// What threads of a kernel, or of the host, may do to a stadium_map at the same time.

namespace test {
namespace {

template <class T>
class stadium_races : public testing::Test {};
using all_types = axis<stadium_types<u32, u32>, stadium_types<u64, u64>, stadium_types<u64, linked<u32, 64>>,
                       stadium_types<linked<u64, 8>, linked<u64, 2>>>;
TYPED_TEST_SUITE(stadium_races, all_types);

const std::size_t many = sanitized ? 20000 : on_host ? 200000 : 100000;  // a crowd at one guard is slow

/// Tickets of 1 and of 8 bits, bodies here and there, one region and many.
const roost::stadium_options kinds[] = {
    {.load_factor = 0.95, .ticket_bits = 8, .bodies = residence::place},
    {.load_factor = 0.95, .ticket_bits = 1, .bodies = residence::host, .region_slots = 101},
    {.load_factor = 0.95,
     .ticket_bits = 4,
     .bodies = residence::automatic,
     .budget = 100000,
     .region_slots = 1000}};

TYPED_TEST(stadium_races, one_of_many_inserts_of_a_key_succeeds) {
  for (const auto& options : kinds) {
    for (const u64 keys : {std::size_t{1}, std::size_t{100}, many / 10}) {
      typename TypeParam::map map(test_place(), keys, options);
      check_inserts_of_few<TypeParam>(map, keys, many);
    }
  }
}

TYPED_TEST(stadium_races, inserts_less_erases_are_there_and_no_reader_sees_another_keys_value) {
  for (const auto& options : kinds) {
    SCOPED_TRACE(text_of(options));
    for (const u64 keys : {1, 3, 50, 20000}) {
      typename TypeParam::map map(test_place(), keys, options);
      check_inserts_and_erases<TypeParam>(map, keys, many);
    }
  }
}

TYPED_TEST(stadium_races, histories_are_linearizable) {
  const u64 rounds = sanitized ? 5
                     : on_host
                         ? 30
                         : 9;  // threads that wait for guards overlap much: the search takes a second a round
  check_histories<TypeParam>(rounds, [](u64 round, std::size_t keys, std::size_t) {
    auto options = kinds[round % 3];
    options.seed = round;
    return typename TypeParam::map(test_place(), keys, options);
  });
}

template <class T>
struct crowd {
  typename T::ref ref;
  const typename T::key* keys;
  std::size_t count, threads;
  u32* wrong;
  ROOST_FN void operator()(std::size_t i) const {
    const auto key = keys[i % count];
    if (ref.insert_or_assign(key, static_cast<typename T::value>(i)) == insertion::full)
      roost::detail::fetch_add(*wrong, 1u);
    const auto answer = ref.find(key);
    if (!answer || number_of(*answer) >= threads || number_of(*answer) % count != i % count)
      roost::detail::fetch_add(*wrong, 1u);
  }
};

TYPED_TEST(stadium_races, a_crowd_at_a_guard_gets_through) {
  // All threads of one key; and different keys that one guard is for, of the least number of guards that a
  // table has.
  using key = typename TypeParam::key;
  std::vector<key> together;
  for (u64 number = 0; together.size() < 3000; ++number) {
    const auto candidate = static_cast<key>(number);
    const u64 second = roost::mix64(roost::hash_of(candidate, 0), 0x9e3779b97f4a7c15ull);
    if ((second >> 8) % 64 == 5) together.push_back(candidate);
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, together.size()}) {
    for (const residence bodies : {residence::place, residence::host}) {
      typename TypeParam::map map(test_place(), 400, {.load_factor = 0.1, .bodies = bodies});
      const auto keys = upload(together);
      auto wrong = filled<u32>(1, 0);
      const std::size_t threads = many / 4;
      at_once(threads, crowd<TypeParam>{map.ref(), keys.data(), count, threads, wrong.data()});
      EXPECT_EQ(download(wrong)[0], 0u);
      EXPECT_EQ(map.size(test_place()), count);
      EXPECT_TRUE(map.valid(test_place()));
    }
  }
}

template <class T>
struct insert_distinct {
  typename T::ref ref;
  u32* wrong;
  ROOST_FN void operator()(std::size_t i) const {
    const auto key = static_cast<typename T::key>(i), before = static_cast<typename T::key>(i / 2);
    if (ref.insert_new(key, static_cast<typename T::value>(i)) != insertion::inserted)
      roost::detail::fetch_add(*wrong, 1u);
    if (const auto answer = ref.find(before)) {  // may be there already, and then as a whole
      if (number_of(*answer) != i / 2) roost::detail::fetch_add(*wrong, 1u);
    }
    if (const auto mine = ref.find(key); !mine || number_of(*mine) != i) roost::detail::fetch_add(*wrong, 1u);
  }
};

TYPED_TEST(stadium_races, new_keys_come_while_others_are_asked_for) {
  for (const auto& options : kinds) {
    typename TypeParam::map map(test_place(), many / 4, options);
    auto wrong = filled<u32>(1, 0);
    at_once(many / 4, insert_distinct<TypeParam>{map.ref(), wrong.data()});
    EXPECT_EQ(download(wrong)[0], 0u);
    EXPECT_EQ(map.size(test_place()), many / 4);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

#if !defined(__CUDACC__)
/// What a reader knows a change by that began and ended while it read a value.
TEST(stadium_const_members, see_every_change_of_a_value_in_its_guard) {
  stadium_types<u32, linked<u32, 64>>::map map(test_place(), 10);
  const auto ref = map.ref();
  const auto sum_of_guards = [&] {
    const u32* const guards = ref.where().guards;
    return std::accumulate(guards, guards + ref.geometry().guards, u64{0});
  };
  for (u32 i = 0; i < 10; ++i) {
    const u64 before = sum_of_guards();
    EXPECT_NE(ref.insert_or_assign(7, linked<u32, 64>(i)), roost::insertion::full);
    EXPECT_EQ(sum_of_guards(), before + 2);
  }
}

TEST(stadium_const_members, run_beside_changes) {
  stadium_types<u32, u32>::map map(test_place(), 40000, {.region_slots = 1000});
  check_const_members_beside_changes(map, 40000, [](const auto&) {});
}

TEST(stadium_const_members, for_each_sees_whole_values_beside_changes) {
  using types = stadium_types<u32, linked<u32, 64>>;
  const u32 n = 100;
  types::map map(test_place(), n, {.ticket_bits = 2});
  const auto ref = map.ref();
  for (u32 key = 0; key < n; ++key) (void)ref.insert(key, types::value(key));
  const changes_meanwhile changes(
      [=](u64 i) { (void)ref.insert_or_assign(static_cast<u32>(i % n), types::value(i)); });
  const types::map& reading = map;
  changes.wait_for_one();
  for (int round = 0; round < (sanitized ? 50 : 3000); ++round) {
    std::atomic<u32> seen{0}, broken{0};
    reading.for_each(test_place(), [&](u32 key, const types::value& value) {
      ++seen;
      broken += !value.unbroken() || value.words[0] % n != key;
    });
    EXPECT_EQ(seen, n);
    EXPECT_EQ(broken, 0u);
  }
  changes.wait_for_one();
}
#endif

}  // namespace
}  // namespace test
