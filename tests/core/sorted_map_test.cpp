#include <map>
#include <roost/sorted_map.hpp>

#include "support/keys.hpp"
#include "support/refusals.hpp"

// sorted_map against a map of the standard library.

namespace test {
namespace {

struct types_of_words {
  using key = u32;
  using value = u64;
};
struct types_of_longer_keys {
  using key = u64;
  using value = u16;
};
struct types_of_characters {  // of which CUB and nvcc take some alone
  using key = char16_t;
  using value = char8_t;
};

template <class T>
class sorted_map : public testing::Test {};
using all_types = axis<types_of_words, types_of_longer_keys, types_of_characters>;
TYPED_TEST_SUITE(sorted_map, all_types);

/// The positions of queries by the ref, and what lies there.
template <class Ref, class Key>
struct wrong_position {
  Ref ref;
  const Key* queries;
  ROOST_FN u64 operator()(std::size_t i) const {
    const std::size_t at = ref.lower_bound(queries[i]);
    const bool good =
        (at == 0 || ref.key_at(at - 1) < queries[i]) && (at == ref.size() || !(ref.key_at(at) < queries[i]));
    return good ? 0 : 1;
  }
};

TYPED_TEST(sorted_map, agrees_with_the_oracle) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  const auto& place = test_place();
  for (const std::size_t n : {0, 1, 2, 3, 1000, 30000}) {
    for (const u64 most : {~u64{0}, u64{n / 2}}) {  // also with copies, of which the first wins
      const auto keys = from_numbers<key>(random_numbers(n, n + 1, most));
      const auto values = numbered_values<value>(n);
      std::map<key, value> oracle;
      for (std::size_t i = 0; i < n; ++i) oracle.emplace(keys[i], values[i]);
      const roost::sorted_map<key, value, place_type> map(place, upload(keys), upload(values));
      ASSERT_EQ(map.size(), oracle.size());
      EXPECT_EQ(map.empty(), oracle.empty());
      EXPECT_TRUE(map.valid(place));
      std::vector<key> keys_in_order;
      std::vector<value> values_in_order;
      for (const auto& [k, v] : oracle) {
        keys_in_order.push_back(k);
        values_in_order.push_back(v);
      }
      EXPECT_EQ(download(map.keys()), keys_in_order);
      EXPECT_EQ(download(map.values()), values_in_order);

      auto queries = keys;
      for (const key& k : keys) queries.push_back(static_cast<key>(k + 1));
      queries.push_back(0);
      queries.push_back(all_ones<key>());
      const auto asked = upload(queries);
      auto results = filled<value>(queries.size(), 1);
      auto contained = filled<bool>(queries.size(), true);
      map.find(place, asked, results, 77);
      map.contains(place, asked, contained);
      const auto found = download(results);
      const auto there = download(contained);
      std::size_t wrong = 0, hits = 0;
      for (std::size_t i = 0; i < queries.size(); ++i) {
        const auto known = oracle.find(queries[i]);
        const bool here = known != oracle.end();
        hits += here;
        wrong += found[i] != (here ? known->second : 77) || (there[i] != 0) != here;
      }
      EXPECT_EQ(wrong, 0u);
      EXPECT_EQ(map.count_found(place, asked), hits);
      using ref_type = std::remove_cvref_t<decltype(map.ref())>;
      EXPECT_EQ(place.sum(queries.size(), wrong_position<ref_type, key>{map.ref(), asked.data()}), 0u);
    }
  }
}

TEST(sorted_map_calls, rebuild_and_misuse) {
  roost::sorted_map map(test_place(), upload(std::vector<u32>{3, 1, 2}),
                        upload(std::vector<u32>{30, 10, 20}));
  EXPECT_THROW(map.rebuild(test_place(), upload(std::vector<u32>(3)), upload(std::vector<u32>(2))),
               roost::invalid_argument);
  EXPECT_EQ(download(map.values()), (std::vector<u32>{10, 20, 30}));
  map.rebuild(test_place(), upload(std::vector<u32>{9, 8}), upload(std::vector<u32>{90, 80}));
  EXPECT_EQ(download(map.keys()), (std::vector<u32>{8, 9}));
  EXPECT_EQ(download(map.values()), (std::vector<u32>{80, 90}));
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(sorted_map_calls, rebuild_that_is_refused_memory_changes_nothing) {
  using map_type = roost::sorted_map<u32, u32, place_type>;
  const auto first = upload(from_numbers<u32>(random_numbers(3000, 1))),
             second = upload(from_numbers<u32>(random_numbers(5000, 2)));
  expect_refusals(
      refused::changes_nothing, [&](const place_type& place) { return map_type(place, first, first); },
      [&](const place_type& place, map_type& map) { map.rebuild(place, second, second); },
      [](const place_type& place, const map_type& map) {
        EXPECT_TRUE(map.valid(place));
        return bytes_of(map.keys(), map.values());
      });
}

TEST(sorted_map_calls, a_map_that_was_moved_from_is_empty) {
  const std::vector<u32> keys{3, 1, 2};
  roost::sorted_map map(test_place(), upload(keys), upload(keys));
  const auto other = std::move(map);
  EXPECT_EQ(other.size(), 3u);
  EXPECT_TRUE(map.empty() && map.keys().empty() && map.values().empty() && map.ref().size() == 0);
  EXPECT_EQ(map.load_factor(), 0);
  EXPECT_TRUE(map.valid(test_place()));
  EXPECT_EQ(map.count_found(test_place(), upload(keys)), 0u);
  auto results = filled<u32>(3, 0);
  map.find(test_place(), upload(keys), results, 7);
  EXPECT_EQ(download(results), (std::vector<u32>{7, 7, 7}));
  map.rebuild(test_place(), upload(keys), upload(keys));
  EXPECT_EQ(map.size(), 3u);
}

}  // namespace
}  // namespace test
