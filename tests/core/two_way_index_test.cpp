#include <roost/two_way_index.hpp>

#include "support/keys.hpp"
#include "support/refusals.hpp"

// two_way_index, unique and unique_count against maps of the standard library.

namespace test {
namespace {

using roost::index_order;

template <class Key>
using two_way = roost::two_way_index<Key, place_type>;

template <class Ref, class Key>
struct there_and_back {
  Ref ref;
  const Key* queries;
  u32* wrong;
  ROOST_FN void operator()(std::size_t i) const {
    const auto index = ref.find(queries[i]);
    const bool good = ref.contains(queries[i]) == index.has_value() &&
                      (!index || (*index < ref.size() && roost::same_key(ref.key_at(*index), queries[i])));
    if (!good) roost::detail::fetch_add(*wrong, 1u);
  }
};

template <class Key>
class two_way_index : public testing::Test {
 public:
  /// Batches, one after the other, against an oracle that numbers keys by first occurrence; other orders are
  /// checked for what they promise.
  static void check(const std::vector<std::vector<u64>>& batches, index_order order) {
    const auto& place = test_place();
    oracle_map<Key, u32> oracle;  // by first occurrence
    oracle_map<Key, u64> counts;
    std::vector<Key> in_order, all;
    std::vector<std::vector<u32>> indices;
    std::vector<Key> first;
    for (const u64 number : batches.front()) first.push_back(from_number<Key>(number));
    two_way<Key> index(place, upload(first), {.order = order});
    for (std::size_t b = 0; b < batches.size(); ++b) {
      std::vector<Key> batch;
      for (const u64 number : batches[b]) batch.push_back(from_number<Key>(number));
      const std::size_t before = in_order.size();
      const std::vector<Key> keys_before = download(index.keys());
      for (const Key& key : batch) {
        if (oracle.emplace(key, static_cast<u32>(in_order.size())).second) in_order.push_back(key);
        ++counts[key];
      }
      all.insert(all.end(), batch.begin(), batch.end());
      const std::vector<u32> got =
          b == 0 ? download(index.indices()) : download(index.add(place, upload(batch)));
      const std::vector<Key> keys = download(index.keys());
      ASSERT_EQ(index.size(), oracle.size());
      ASSERT_EQ(keys.size(), oracle.size());
      EXPECT_EQ(index.empty(), oracle.empty());
      EXPECT_TRUE(index.valid(place));
      EXPECT_TRUE(order != index_order::first_occurrence || keys == in_order);
      if constexpr (std::is_integral_v<Key>) {
        EXPECT_TRUE(order != index_order::by_key ||
                    std::is_sorted(keys.begin() + static_cast<std::ptrdiff_t>(before), keys.end()));
      }
      EXPECT_TRUE(b == 0 ||
                  std::equal(keys_before.begin(), keys_before.end(), keys.begin()));  // old indices stay
      ASSERT_EQ(got.size(), batch.size());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < batch.size(); ++i)
        wrong += got[i] >= keys.size() || !(keys[got[i]] == batch[i]);
      EXPECT_EQ(wrong, 0u);
      const std::vector<u64> counted = download(index.counts());
      for (std::size_t i = 0; i < keys.size(); ++i) wrong += counted[i] != counts[keys[i]];
      EXPECT_EQ(wrong, 0u);
    }
    std::vector<Key> queries = all;
    for (u64 i = 0; i < 500; ++i) queries.push_back(from_number<Key>(i * 977 + 13));
    const auto asked = upload(queries);
    auto results = filled<u32>(queries.size(), 5);
    index.find(place, asked, results);
    auto contained = filled<bool>(queries.size(), false);
    index.contains(place, asked, contained);
    const auto found = download(results);
    const auto there = download(contained);
    const std::vector<Key> keys = download(index.keys());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const bool here = oracle.count(queries[i]) != 0;
      wrong += (there[i] != 0) != here || (here ? found[i] >= keys.size() || !(keys[found[i]] == queries[i])
                                                : found[i] != two_way<Key>::no_index);
    }
    EXPECT_EQ(wrong, 0u);
    auto bad = filled<u32>(1, 0);
    place.for_each(queries.size(), there_and_back<typename two_way<Key>::ref_type, Key>{
                                       index.ref(), asked.data(), bad.data()});
    EXPECT_EQ(download(bad)[0], 0u);

    EXPECT_EQ(roost::unique_count(place, upload(all)), oracle.size());
    std::vector<Key> different = download(roost::unique(place, upload(all), order));
    EXPECT_TRUE(order != index_order::first_occurrence || different == in_order);
    EXPECT_EQ((oracle_set<Key>(different.begin(), different.end()).size()), oracle.size());
    EXPECT_EQ(different.size(), oracle.size());
    for (const Key& key : different) wrong += oracle.count(key) == 0;
    const auto with_inverse = roost::unique_inverse(place, upload(all), order);
    EXPECT_TRUE(download(with_inverse.keys) == different);
    const std::vector<u32> inverse = download(with_inverse.inverse);
    ASSERT_EQ(inverse.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      wrong += inverse[i] >= different.size() || !(different[inverse[i]] == all[i]);
    const auto with_counts = roost::unique_counts(place, upload(all), order);
    EXPECT_TRUE(download(with_counts.keys) == different);
    const std::vector<u64> counted = download(with_counts.counts);
    ASSERT_EQ(counted.size(), different.size());
    for (std::size_t i = 0; i < counted.size(); ++i) wrong += counted[i] != counts[different[i]];
    const auto with_all = roost::unique_all(place, upload(all),
                                            {.order = order, .first = true, .inverse = true, .counts = true});
    EXPECT_TRUE(download(with_all.keys) == different);
    EXPECT_TRUE(download(with_all.inverse) == inverse);
    EXPECT_TRUE(download(with_all.counts) == counted);
    const std::vector<u32> firsts = download(with_all.first);
    ASSERT_EQ(firsts.size(), different.size());
    std::vector<u32> wanted(different.size(), ~0u);
    for (std::size_t i = all.size(); i-- != 0;) wanted[inverse[i]] = static_cast<u32>(i);
    EXPECT_TRUE(firsts == wanted);
    EXPECT_EQ(wrong, 0u);
  }

  static void check(const std::vector<std::vector<u64>>& batches) {
    for (const auto order : {index_order::first_occurrence, index_order::any}) check(batches, order);
    if constexpr (std::is_integral_v<Key>) check(batches, index_order::by_key);
  }
};

using keys = axis<u32, u64, sixteen>;
TYPED_TEST_SUITE(two_way_index, keys);

TYPED_TEST(two_way_index, of_any_number_of_keys) {
  for (const std::size_t n : {0, 1, 2, 100, 2047, 2048, 2049, 30000}) this->check({random_numbers(n, n)});
}

TYPED_TEST(two_way_index, of_keys_that_come_often) {
  this->check({random_numbers(30000, 3, 100)});
  this->check({random_numbers(30000, 3, 3)});
  this->check({std::vector<u64>(10000, 0)});
  this->check({multiples(10000, 1)});
}

TYPED_TEST(two_way_index, grows_and_keeps_indices) {
  this->check({random_numbers(5000, 1, 8000),
               random_numbers(5000, 2, 16000),
               {},
               random_numbers(5000, 1, 8000),
               {~u64{0}, 0, ~u64{0}}});
  this->check({{}, random_numbers(100, 1), random_numbers(20000, 7)});
}

TYPED_TEST(two_way_index, with_frequent_keys) {
  if (sanitized && !std::is_same_v<TypeParam, u32>) GTEST_SKIP() << "of one type where everything is slow";
  std::vector<u64> half = random_numbers(700'000, 6), other = random_numbers(300'000, 7, 200'000);
  for (std::size_t i = 0; i < half.size(); i += 2) half[i] = 42;
  for (std::size_t i = 0; i < other.size(); i += 3) other[i] = i % 2 == 0 ? 42 : 43;
  this->check({half, other}, index_order::first_occurrence);
}

TEST(two_way_index_calls, two_builds_are_the_same_in_any_order) {
  const auto keys = upload(from_numbers<u32>(random_numbers(50000, 4, 20000)));
  for (const auto order : {index_order::first_occurrence, index_order::by_key, index_order::any}) {
    const two_way<u32> a(test_place(), keys, {.order = order}), b(test_place(), keys, {.order = order});
    EXPECT_EQ(download(a.keys()), download(b.keys()));
    EXPECT_EQ(download(a.indices()), download(b.indices()));
  }
}

TEST(two_way_index_calls, give_their_indices_away) {
  roost::two_way_index index(test_place(), upload(std::vector<u32>{9, 3, 9}), {.order = index_order::by_key});
  EXPECT_EQ(download(index.take_indices()), (std::vector<u32>{1, 0, 1}));
  EXPECT_TRUE(index.indices().empty());
  EXPECT_EQ(download(index.add(test_place(), upload(std::vector<u32>{3, 1}))), (std::vector<u32>{0, 2}));
}

TEST(two_way_index_calls, say_what_memory_they_hold) {
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    two_way<u32> index(place, upload(from_numbers<u32>(random_numbers(5000, 1, 2000))));
    EXPECT_EQ(index.bytes(), memory.live_bytes());
    const auto more = index.add(place, upload(from_numbers<u32>(random_numbers(5000, 2))));
    EXPECT_EQ(index.bytes(), memory.live_bytes() - more.bytes());
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TEST(two_way_index_calls, that_are_refused_memory_change_nothing) {
  const auto first = upload(from_numbers<u32>(random_numbers(3000, 1, 2000))),
             second = upload(from_numbers<u32>(random_numbers(5000, 2, 4000)));
  for (const auto order : {index_order::first_occurrence, index_order::by_key, index_order::any}) {
    for (const bool empty : {false, true}) {
      expect_refusals(
          refused::changes_nothing,
          [&](const place_type& place) {
            return empty ? two_way<u32>({.order = order}) : two_way<u32>(place, first, {.order = order});
          },
          [&](const place_type& place, two_way<u32>& index) { index.add(place, second); },
          [&](const place_type& place, const two_way<u32>& index) {
            auto found = filled<u32>(second.size(), 0);
            index.find(place, second, found);
            EXPECT_TRUE(index.valid(place));
            return bytes_of(index.keys(), index.counts(), index.indices(), found);
          });
    }
  }
}

TEST(two_way_index_calls, refuse_an_order_by_key_of_what_has_none) {
  EXPECT_THROW(
      two_way<sixteen>(test_place(), upload(std::vector<sixteen>{{1, 2}}), {.order = index_order::by_key}),
      roost::invalid_argument);
}

}  // namespace
}  // namespace test
