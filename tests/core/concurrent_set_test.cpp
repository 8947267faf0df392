#include <roost/concurrent_set.hpp>
#include <set>

#include "support/keys.hpp"
#include "support/refusals.hpp"

namespace test {
namespace {

using roost::path;

template <class Key>
class concurrent_set : public testing::Test {
 public:
  using set = roost::concurrent_set<Key, place_type>;
};
using key_types = axis<u16, u32, u64>;
TYPED_TEST_SUITE(concurrent_set, key_types);

template <class Key>
struct is_multiple {
  Key of;
  ROOST_FN bool operator()(const Key& key) const { return key % of == 0; }
};

TYPED_TEST(concurrent_set, agrees_with_the_oracle) {
  using key = TypeParam;
  for (const path way : {path::automatic, path::direct, path::regional}) {
    typename TestFixture::set set(test_place());
    std::set<key> oracle;
    const auto check = [&](const std::vector<key>& queries) {
      auto found = filled<bool>(queries.size(), false);
      set.contains(test_place(), upload(queries), found, {.path = way});
      const auto there = download(found);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < queries.size(); ++i)
        wrong += (there[i] != 0) != (oracle.count(queries[i]) != 0);
      EXPECT_EQ(wrong, 0u);
      EXPECT_EQ(set.size(test_place()), oracle.size());
      auto out = filled<key>(oracle.size(), key{});
      EXPECT_EQ(set.retrieve_all(test_place(), out), oracle.size());
      const auto keys = download(out);
      EXPECT_TRUE(std::set<key>(keys.begin(), keys.end()) == oracle);
      EXPECT_TRUE(set.valid(test_place()));
    };
    for (u64 round = 0; round < 5; ++round) {
      auto keys = from_numbers<key>(random_numbers(round == 2 ? (sanitized ? 10000 : 50000) : 700, round));
      keys.front() = 0;
      keys.back() = all_ones<key>();
      std::size_t before = oracle.size();
      oracle.insert(keys.begin(), keys.end());
      const auto report = set.insert(test_place(), upload(keys), {.path = way});
      EXPECT_EQ(report.inserted, oracle.size() - before);
      EXPECT_EQ(report.present, keys.size() - report.inserted);
      check(from_numbers<key>(random_numbers(2000, 77)));
      check(keys);
      keys.resize(keys.size() / 2);
      before = oracle.size();
      for (const key& k : keys) oracle.erase(k);
      EXPECT_EQ(set.count_found(test_place(), upload(keys)), [&] {
        std::size_t n = 0;
        const std::set<key> gone(keys.begin(), keys.end());
        for (const key& k : keys) n += gone.count(k);
        return n;
      }());
      EXPECT_EQ(set.erase(test_place(), upload(keys), {.path = way}), before - oracle.size());
      check(keys);
      if (round == 3) {
        before = oracle.size();
        std::erase_if(oracle, is_multiple<key>{3});
        EXPECT_EQ(set.erase_if(test_place(), is_multiple<key>{3}), before - oracle.size());
        check({});
        set.shrink_to_fit(test_place());
        check(keys);
      }
    }
    set.clear(test_place());
    oracle.clear();
    check({key{1}});
  }
}

TYPED_TEST(concurrent_set, every_16_bit_key) {
  using key = TypeParam;
  typename TestFixture::set set(test_place(), 65536);
  const auto keys = from_numbers<key>(multiples(65536, 1));
  std::vector<char> every_third(65536);
  for (std::size_t i = 0; i < every_third.size(); i += 3) every_third[i] = 1;
  EXPECT_EQ(set.insert_if(test_place(), upload(keys), upload(every_third)).inserted, 21846u);
  auto found = filled<bool>(keys.size(), false);
  set.contains(test_place(), upload(keys), found);
  EXPECT_EQ(download(found), every_third);
  EXPECT_EQ(set.erase(test_place(), upload(keys)), 21846u);
  EXPECT_EQ(set.insert(test_place(), upload(keys)).inserted, 65536u);
  EXPECT_EQ(set.count_found(test_place(), upload(keys)), 65536u);
  std::vector<char> stencil(65536, 1);
  EXPECT_EQ(set.insert_if(test_place(), upload(keys), upload(stencil)).present, 65536u);
  EXPECT_TRUE(set.valid(test_place()));
}

TEST(concurrent_set_calls, a_refusal_of_memory_loses_nothing) {
  using set_type = roost::concurrent_set<u32, place_type>;
  const std::size_t n = sanitized ? 2000 : 6000;
  const auto keys = upload(from_numbers<u32>(multiples(n, 2654435761)));
  const auto few = keys.span().first(n / 12);
  const auto expect = [&](refused may, const auto& call) {
    expect_refusals(
        may,
        [&](const place_type& place) {
          set_type set(place, few.size());
          set.insert(place, few);
          return set;
        },
        call,
        [&](const place_type& place, const set_type& set) {
          auto found = filled<bool>(n, false);
          set.contains(test_place(), keys, found);
          EXPECT_TRUE(set.valid(place));
          return download(found);
        });
  };
  for (const path way : {path::direct, path::regional}) {
    expect(refused::part, [&](auto& place, set_type& set) { set.insert(place, keys, {.path = way}); });
    expect(refused::part, [&](auto& place, set_type& set) { set.erase(place, few, {.path = way}); });
  }
  expect(refused::changes_nothing, [&](auto& place, set_type& set) { set.rehash(place, n); });
}

}  // namespace
}  // namespace test
