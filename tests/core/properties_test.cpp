#include <rapidcheck.h>

#include "support/tables.hpp"

// Properties over inputs that RapidCheck makes up, and makes small when one fails.

namespace test {
namespace {

/// check() speaks to GoogleTest; RapidCheck wants to know whether this input failed.
template <class F>
void no_new_failure(const F& f) {
  f();
  RC_ASSERT(!testing::Test::HasFailure());
}

/// Key numbers with copies: out of few, out of all, or out of a grid.
rc::Gen<numbers> key_numbers() {
  using std::uint64_t;
  return rc::gen::oneOf(
      rc::gen::container<numbers>(rc::gen::inRange<uint64_t>(0, 50)),
      rc::gen::container<numbers>(rc::gen::arbitrary<uint64_t>()),
      rc::gen::container<numbers>(
          rc::gen::map(rc::gen::inRange<uint64_t>(0, 300), [](uint64_t i) { return i << 16; })),
      rc::gen::scale(30.0, rc::gen::container<numbers>(rc::gen::inRange<uint64_t>(0, 4000))));
}

template <class Table>
class properties : public testing::Test {};
using tables = table_axis<bucketed_map<u32, u32>, bucketed_map<u64, u64>, bucketed_set<u32>,
                          bucketed_map<u8, u8>, bucketed_map<twelve, twentyfour>, cuckoo_map<u32, u32>,
                          cuckoo_set<u32>, compact_map<u32, u32>, compact_map<u64, u64>, compact_set<u32>>;
TYPED_TEST_SUITE(properties, tables);

TYPED_TEST(properties, a_table_agrees_with_the_oracle) {
  constexpr bool cuckoo = std::is_same_v<typename TypeParam::layout, roost::cuckoo>;
  EXPECT_TRUE(rc::check([] {
    typename TypeParam::options options;
    options.load_factor = *rc::gen::inRange(1, 1001) / 1000.0 * (cuckoo ? 512.0 / 576.0 : 1.0);
    options.seed = *rc::gen::arbitrary<std::uint64_t>();
    const numbers keys = *key_numbers();
    no_new_failure([&] { check<TypeParam>(keys, options); });
  }));
}

TEST(partition_properties, results_come_back_in_the_order_of_the_input) {
  EXPECT_TRUE(rc::check([] {
    const auto keys = from_numbers<u32>(*key_numbers());
    const roost::partition_options options{
        .regions = *rc::gen::oneOf(rc::gen::inRange(2u, 40u), rc::gen::inRange(2u, 65537u)),
        .room = *rc::gen::element(roost::room::exact, roost::room::slack),
        .seed = *rc::gen::arbitrary<std::uint64_t>(),
        .way_back = true,
        .stable = *rc::gen::arbitrary<bool>()};
    const auto result = roost::partition(test_place(), upload(keys), options);
    const auto [items, begins, ends] = download(result);
    std::size_t count = 0;
    for (u32 region = 0; region < options.regions; ++region) {
      count += ends[region] - begins[region];
      for (u64 i = begins[region]; i < ends[region]; ++i) {
        RC_ASSERT(roost::split_hash(roost::hash_of(items[i].key, options.seed), options.regions).digit ==
                  region);
      }
    }
    RC_ASSERT(count == keys.size());
    std::vector<u32> answers;
    for (const auto& item : items) answers.push_back(item.key);
    if (options.stable) {
      auto sorted = keys;
      std::stable_sort(sorted.begin(), sorted.end(), [&](u32 a, u32 b) {
        return roost::split_hash(roost::hash_of(a, options.seed), options.regions).digit <
               roost::split_hash(roost::hash_of(b, options.seed), options.regions).digit;
      });
      RC_ASSERT(answers == sorted);
    }
    auto back = filled<u32>(keys.size(), 0);
    result.restore(test_place(), std::span<const u32>(upload(answers).span()), back.span());
    RC_ASSERT(download(back) == keys);
  }));
}

TEST(hash_properties, unmix_inverts_mix) {
  EXPECT_TRUE(rc::check([](std::uint64_t x, std::uint64_t seed) {
    RC_ASSERT(roost::unmix64(roost::mix64(x, seed), seed) == x);
    const auto x32 = static_cast<u32>(x), seed32 = static_cast<u32>(seed);
    RC_ASSERT(roost::unmix32(roost::mix32(x32, seed32), seed32) == x32);
  }));
}

}  // namespace
}  // namespace test
