#include <roost/concurrent_map.hpp>

#include "support/concurrent.hpp"

// concurrent_map with values of more than 8 bytes: in bulk against an oracle, and the entries, which run out
// and come back. Histories of its refs stand in concurrent_races_test.cpp.

namespace test {
namespace {

using roost::insertion;

template <class T>
class concurrent_large_values : public testing::Test {};
using all_types = axis<types<u32, linked<u64, 2>>, types<u64, linked<u32, 3>>, types<u64, linked<u64, 5>>>;
TYPED_TEST_SUITE(concurrent_large_values, all_types);

TYPED_TEST(concurrent_large_values, agree_with_the_oracle) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  for (const path way : {path::automatic, path::direct, path::regional}) {
    pair_of_maps<TypeParam> maps;
    const auto others = from_numbers<key>(random_numbers(500, 99));
    maps.check(others);
    for (u64 round = 0; round < 3; ++round) {
      const std::size_t n = round == 1 ? (sanitized ? 8000 : 30000) : 900;
      auto keys = from_numbers<key>(different_numbers(n, round));
      keys.front() = all_ones<key>();
      auto values = numbered_values<value>(n);
      values.back() = all_ones<value>();
      maps.insert(keys, values, way);
      maps.check(others);
      maps.insert(keys, numbered_values<value>(n), way);  // all there: nothing changes
      maps.check({});
      const std::vector<key> some(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n / 2));
      maps.insert_or_assign(some, from_numbers<value>(random_numbers(some.size(), round)), way);
      maps.insert_or_apply(keys, numbered_values<value>(n), roost::plus(), way);
      maps.insert_or_apply(some, from_numbers<value>(random_numbers(some.size(), round + 50)),
                           roost::maximum(), way);
      maps.check(others);
      maps.erase(some, way);
      maps.erase(others, way);
      maps.check(some);
      maps.insert_or_apply(keys, numbered_values<value>(n), roost::minimum(), way);
      maps.check(others);
      if (round == 1) maps.map.rehash(test_place());
      maps.erase(keys, way);
      maps.check(keys);
    }
    maps.map.shrink_to_fit(test_place());
    EXPECT_EQ(maps.map.bytes(), typename TypeParam::map(test_place()).bytes());
  }
}

TYPED_TEST(concurrent_large_values, copies_in_a_batch) {
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
      auto results = filled<value>(n, {});
      map.find(test_place(), upload(keys), results, value{});
      const auto first = download(results);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i)
        wrong +=
            !first[i].unbroken() || first[i].words[0] >= n || first[i].words[0] % different != i % different;
      EXPECT_EQ(wrong, 0u) << "the value that a key has was given with another";
      report = map.insert_or_apply(test_place(), upload(keys), upload(std::vector<value>(n, value(1))),
                                   roost::plus(), {.path = way});
      EXPECT_EQ(report.present, n);
      map.find(test_place(), upload(keys), results, value{});
      const auto sums = download(results);
      for (std::size_t i = 0; i < different; ++i)
        ASSERT_EQ(sums[i], value(first[i].words[0] + n / different));
      report = map.insert_or_assign(test_place(), upload(keys), upload(values), {.path = way});
      EXPECT_EQ(report.present, n);
      EXPECT_TRUE(map.valid(test_place()));
    }
  }
}

using sums = linked<u64, 2>;
using sums_types = types<u32, sums>;
using sums_map = sums_types::map;

struct odd_one {
  ROOST_FN bool operator()(u32 key, const sums& value) const { return key % 2 == 1 && value.unbroken(); }
};
struct add_to {
  unsigned long long* sum;
  ROOST_FN void operator()(u32 key, const sums& value) const {
    roost::detail::fetch_add(*sum, static_cast<unsigned long long>(key) * 7 + value.words[0]);
  }
};

TEST(concurrent_large_values_calls, insert_if_and_erase_if_and_for_each_and_clear) {
  const std::size_t n = 5000;
  const auto keys = from_numbers<u32>(multiples(n, 1));
  const std::vector<sums> values(n, sums(5));
  std::vector<u32> stencil(n);
  for (std::size_t i = 0; i < n; ++i) stencil[i] = i % 3 == 0;
  sums_map map(test_place());
  auto report = map.insert_if(test_place(), upload(keys), upload(values), upload(stencil));
  EXPECT_EQ(report.inserted, (n + 2) / 3);
  EXPECT_EQ(report.present, 0u);
  report = map.insert_if(test_place(), upload(keys), upload(values), upload(stencil));
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
  sums_map moved = std::move(map);
  EXPECT_EQ(moved.size(test_place()), n);
  EXPECT_TRUE(moved.valid(test_place()));
}

TEST(concurrent_large_values_calls, empty_batches) {
  sums_map map(test_place());
  const std::vector<u32> none;
  const std::vector<sums> no_values;
  for (const path way : {path::automatic, path::direct, path::regional}) {
    EXPECT_EQ(map.insert(test_place(), none, no_values, {.path = way}).inserted, 0u);
    EXPECT_EQ(map.erase(test_place(), none, {.path = way}), 0u);
    map.find(test_place(), none, upload(no_values), sums{}, {.path = way});
  }
  map.shrink_to_fit(test_place());
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_large_values_calls, a_map_that_does_not_grow_has_entries_for_its_slots) {
  const std::size_t n = 20000;
  const auto keys = from_numbers<u32>(different_numbers(n, 5));
  for (const path way : {path::direct, path::regional}) {
    sums_map map(test_place(), 1000, {.load_factor = 1, .grows = false});
    const std::size_t capacity = map.capacity();
    const auto report =
        map.insert(test_place(), upload(keys), upload(numbered_values<sums>(n)), {.path = way});
    EXPECT_EQ(report.inserted, capacity);
    EXPECT_EQ(report.full, n - capacity);
    EXPECT_EQ(map.capacity(), capacity);
    EXPECT_EQ(map.size(test_place()), capacity);
    EXPECT_TRUE(map.valid(test_place()));
  }
}

template <class Change>
struct change_by_ref {
  sums_map::ref_type ref;
  u64 keys;
  u32* answers;  // of each kind
  ROOST_FN void operator()(std::size_t i) const {
    const insertion what = Change()(ref, static_cast<u32>(i % keys), sums(i));
    roost::detail::fetch_add(answers[static_cast<int>(what)], 1u);
  }
};
struct by_insert {
  template <class Ref>
  ROOST_FN insertion operator()(const Ref& ref, u32 key, const sums& value) const {
    return ref.insert(key, value);
  }
};
struct by_insert_and_find {
  template <class Ref>
  ROOST_FN insertion operator()(const Ref& ref, u32 key, const sums& value) const {
    return ref.insert_and_find(key, value).what;
  }
};
struct by_assign {
  template <class Ref>
  ROOST_FN insertion operator()(const Ref& ref, u32 key, const sums& value) const {
    return ref.insert_or_assign(key, value);
  }
};
struct by_apply {
  template <class Ref>
  ROOST_FN insertion operator()(const Ref& ref, u32 key, const sums& value) const {
    return ref.insert_or_apply(key, value, roost::plus());
  }
};

/// n changes of so many keys: how many were inserted, present, full.
template <class Change>
std::vector<u32> change(sums_map& map, std::size_t n, u64 keys) {
  auto answers = filled<u32>(3, 0);
  test_place().for_each(n, change_by_ref<Change>{map.ref(), keys, answers.data()});
  return download(answers);
}

TEST(concurrent_large_values_calls, entries_run_out_and_come_back) {
  const std::size_t n = 10000, entries = n + n / 4 + 16;
  sums_map map(test_place(), n);
  EXPECT_EQ(change<by_insert>(map, n, n), (std::vector<u32>{n, 0, 0}));
  EXPECT_EQ(change<by_insert>(map, 10 * n, n), (std::vector<u32>{0, 10 * n, 0}))
      << "inserts of keys that are there take no entries";
  EXPECT_EQ(change<by_insert_and_find>(map, 10 * n, n), (std::vector<u32>{0, 10 * n, 0}));
  const u32 left = entries - n;
  EXPECT_EQ(change<by_assign>(map, n, n), (std::vector<u32>{0, left, n - left}));
  EXPECT_EQ(change<by_assign>(map, n, n), (std::vector<u32>{0, 0, n}));
  EXPECT_EQ(change<by_apply>(map, n, n), (std::vector<u32>{0, 0, n}));
  EXPECT_EQ(change<by_insert>(map, n + 5, n + 5), (std::vector<u32>{0, n, 5}));
  EXPECT_EQ(change<by_insert_and_find>(map, n + 5, n + 5), (std::vector<u32>{0, n, 5}));
  EXPECT_TRUE(map.valid(test_place()));
  const std::size_t bytes = map.bytes();
  map.rehash(test_place());
  EXPECT_LE(map.bytes(), bytes);
  EXPECT_EQ(change<by_apply>(map, left, left), (std::vector<u32>{0, left, 0}));
  EXPECT_EQ(change<by_apply>(map, 1, 1), (std::vector<u32>{0, 0, 1}));
  auto results = filled<sums>(n, {});
  map.find(test_place(), upload(from_numbers<u32>(multiples(n, 1))), results, sums{});
  std::size_t wrong = 0;
  const auto answers = download(results);
  for (std::size_t i = 0; i < n; ++i) wrong += answers[i] != sums(i < left ? 2 * i : i);
  EXPECT_EQ(wrong, 0u);
  // A batch makes room by itself, and leaves some for refs.
  EXPECT_EQ(
      map.insert_or_assign(test_place(), upload(std::vector<u32>{3}), upload(std::vector<sums>{sums(33)}))
          .present,
      1u);
  EXPECT_EQ(change<by_assign>(map, n / 8, n), (std::vector<u32>{0, n / 8, 0}));
  EXPECT_TRUE(map.valid(test_place()));
  map.reserve(test_place(), 3 * n);
  EXPECT_EQ(change<by_assign>(map, 2 * n, n), (std::vector<u32>{0, 2 * n, 0}));
  map.clear(test_place());
  EXPECT_EQ(change<by_apply>(map, 3 * n, 3 * n), (std::vector<u32>{3 * n, 0, 0}));
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_large_values_calls, batches_again_and_again_keep_their_size) {
  const std::size_t n = 8000;
  const auto keys = upload(from_numbers<u32>(multiples(n, 2654435761)));
  sums_map map(test_place(), n);
  map.insert(test_place(), keys, upload(numbered_values<sums>(n)));
  const std::size_t bytes = map.bytes();
  for (u64 round = 0; round < 50; ++round) {
    const std::span part(keys.data() + round % 10 * (n / 10), n / 10);
    const auto values = upload(from_numbers<sums>(random_numbers(n / 10, round)));
    ASSERT_EQ(map.insert_or_assign(test_place(), part, values).present, n / 10);
    ASSERT_EQ(map.insert_or_apply(test_place(), part, values, roost::plus()).present, n / 10);
    ASSERT_EQ(map.erase(test_place(), part), n / 10);
    ASSERT_EQ(map.insert(test_place(), part, values).inserted, n / 10);
  }
  EXPECT_LE(map.bytes(), 3 * bytes);
  EXPECT_EQ(map.size(test_place()), n);
  EXPECT_TRUE(map.valid(test_place()));
}

template <class T>
struct assign_and_read {
  typename T::ref ref;
  u64 keys;
  u32* wrong;  // what was broken, or another key's
  ROOST_FN void operator()(std::size_t i) const {
    using value = typename T::value;
    const u64 k = dice{2}(i, keys);
    const auto key = static_cast<typename T::key>(k * 0x9e3779b9);
    const value mine(k << 16 | (i & 0xffff));  // says whose it is
    roost::found<value> answer;
    switch (dice{3}(i, 6)) {
      case 0:
        (void)ref.insert_or_assign(key, mine);
        break;
      case 1:
        ref.erase(key);
        break;
      case 2:
        answer = roost::found<value>(ref.insert_and_find(key, mine).value);
        break;
      case 3:
        (void)ref.insert_or_apply(key, mine, roost::minimum());
        break;
      default:
        answer = ref.find(key);
    }
    if (answer && (!answer->unbroken() || static_cast<u32>(answer->words[0]) >> 16 != k))
      roost::detail::fetch_add(*wrong, 1u);
  }
};

TYPED_TEST(concurrent_large_values, are_never_seen_in_part) {
  const std::size_t n = sanitized ? 20000 : on_host ? 300000 : 1000000;
  for (const u64 keys :
       {on_host ? 1 : 100, 3000}) {  // all that apply at once to one key try again when one has succeeded
    typename TypeParam::map map(test_place(), n);
    auto wrong = filled<u32>(1, 0);
    for (int twice = 0; twice < 2; ++twice) {
      at_once(n, assign_and_read<TypeParam>{map.ref(), keys, wrong.data()});
      EXPECT_EQ(download(wrong)[0], 0u);
      EXPECT_TRUE(map.valid(test_place()));
      map.rehash(test_place(), n);
      EXPECT_TRUE(map.valid(test_place()));
    }
  }
}

#if !defined(__CUDACC__)
TEST(concurrent_large_values_calls, are_read_in_bulk_beside_changes) {
  constexpr u32 keys = 5000;
  sums_map map(test_place(), sanitized ? 200000 : 2000000);
  const auto all = from_numbers<u32>(multiples(keys, 1));
  map.insert(test_place(), all, from_numbers<sums>(multiples(keys, 1)));
  const auto ref = map.ref();
  {
    // Until there is no entry left, which is `full`.
    const changes_meanwhile changes(
        [=](u64 i) { (void)ref.insert_or_assign(static_cast<u32>(i % keys), sums(i)); });
    const sums_map& reading = map;
    for (int round = 0; round < (sanitized ? 5 : 30); ++round) {
      changes.wait_for_one();
      std::vector<sums> results(keys);
      reading.find(test_place(), all, results, sums(1));
      std::size_t wrong = 0;
      for (u32 k = 0; k < keys; ++k) wrong += !results[k].unbroken() || results[k].words[0] % keys != k;
      EXPECT_EQ(wrong, 0u);
      EXPECT_EQ(reading.count_found(test_place(), all), keys);
    }
  }
  EXPECT_TRUE(map.valid(test_place()));
}
#endif

TEST(concurrent_large_values_calls, mixed_batches) {
  using operation = roost::operation<u32, sums>;
  using result = roost::operation_result<sums>;
  using kind = roost::operation_kind;
  sums_map map(test_place(), 3000);
  const auto keys = from_numbers<u32>(multiples(1000, 1));
  map.insert(test_place(), upload(keys), upload(from_numbers<sums>(multiples(1000, 1, 1))));
  std::vector<operation> operations;
  for (u32 i = 0; i < 1000; ++i) {  // each key in one operation, so that the order does not matter
    operations.push_back({i % 2 == 0 ? kind::find : kind::insert, i, sums(9)});
    operations.push_back({kind::insert_or_assign, i + 10000, sums(i)});
    operations.push_back({kind::erase, i + 20000, sums(0)});
  }
  auto results = filled<result>(3000, {});
  map.run(test_place(), upload(operations), results);
  const auto answers = download(results);
  for (u32 i = 0; i < 1000; ++i) {
    ASSERT_EQ(answers[3 * i].done, i % 2 == 0);
    ASSERT_EQ(answers[3 * i].value, sums(i + 1));
    ASSERT_TRUE(answers[3 * i + 1].done);
    ASSERT_FALSE(answers[3 * i + 2].done);
  }
  EXPECT_EQ(map.size(test_place()), 2000u);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_large_values_calls, misuse) {
  const std::vector<u32> keys(10, 3);
  const std::vector<sums> values(9);
  expect_error<roost::invalid_argument>([&] { sums_map(test_place(), 10, {.load_factor = 0}); },
                                        {"concurrent_map", "load factor"});
  expect_error<roost::out_of_memory>([&] { sums_map(test_place(), std::size_t{1} << 60); }, {"bytes"});
  sums_map map(test_place(), 1000);
  const std::size_t capacity = map.capacity(), bytes = map.bytes();
  expect_error<roost::out_of_memory>([&] { map.reserve(test_place(), ~std::size_t{0}); }, {"bytes"});
  expect_error<roost::out_of_memory>([&] { map.rehash(test_place(), ~std::size_t{0}); }, {"bytes"});
  EXPECT_EQ(map.capacity(), capacity);
  EXPECT_EQ(map.bytes(), bytes);
  expect_error<roost::invalid_argument>([&] { map.insert(test_place(), upload(keys), upload(values)); },
                                        {"concurrent_map::insert", "10 keys", "9 values"});
  expect_error<roost::invalid_argument>(
      [&] { map.insert_or_assign(test_place(), upload(keys), upload(values)); },
      {"insert_or_assign", "10", "9"});
  expect_error<roost::invalid_argument>(
      [&] { map.insert_or_apply(test_place(), upload(keys), upload(values), roost::plus()); },
      {"insert_or_apply", "10", "9"});
  expect_error<roost::invalid_argument>(
      [&] {
        map.insert_if(test_place(), upload(keys), upload(std::vector<sums>(10)),
                      upload(std::vector<char>(3)));
      },
      {"insert_if", "10", "3"});
  map.insert(test_place(), upload(std::vector<u32>{1}), upload(std::vector<sums>(1)));
  expect_error<roost::invalid_argument>(
      [&] { map.find(test_place(), upload(keys), filled<sums>(9, {}), sums{}); },
      {"concurrent_map::find", "9", "10"});
  expect_error<roost::invalid_argument>(
      [&] { map.retrieve_all(test_place(), filled<u32>(0, 0), filled<sums>(1, {})); },
      {"retrieve_all", "0", "1"});
}

TEST(concurrent_large_values_calls, a_refusal_of_memory_loses_nothing) {
  for (const bool grows : {true, false})
    expect_refusals_of_map<types<u32, linked<u64, 2>>>({.grows = grows}, grows, sanitized ? 1000 : 3000);
}

template <class Ref>
struct replace_by_ref {
  Ref ref;
  u32* done;
  ROOST_FN void operator()(std::size_t i) const {
    const auto key = static_cast<typename Ref::key_type>(i % 100);
    if (ref.replace(key, 7, static_cast<typename Ref::value_type>(i + 1000)))
      roost::detail::fetch_add(*done, 1u);
  }
};

template <class Key, class Value>
void replaces_one_value_by_another() {
  roost::concurrent_map<Key, Value, place_type> map(test_place(), 200);
  auto done = filled<u32>(1, 0);
  const auto replace = [&] {
    test_place().for_each(
        3000, replace_by_ref<typename roost::concurrent_map<Key, Value, place_type>::ref_type>{map.ref(),
                                                                                               done.data()});
    return download(done)[0];
  };
  EXPECT_EQ(replace(), 0u) << "no key is there";
  const auto keys = upload(from_numbers<Key>(multiples(100, 1)));
  map.insert(test_place(), keys, upload(std::vector<Value>(100, 7)));
  map.erase(test_place(), std::span(keys.data(), 10));
  EXPECT_EQ(replace(), 90u) << "one of the threads that expect a value replaces it";
  EXPECT_EQ(replace(), 90u);
  EXPECT_EQ(map.size(test_place()), 90u);
}

TEST(replace, of_one_value_by_another) {
  replaces_one_value_by_another<u32, u32>();
  replaces_one_value_by_another<u64, std::uint16_t>();
}

}  // namespace
}  // namespace test
