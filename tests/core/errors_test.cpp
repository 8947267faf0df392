#include <cmath>
#include <limits>

#include "support/refusals.hpp"
#include "support/tables.hpp"

// Misuse and resource failure: a typed exception with one clear line, nothing leaked, nothing changed.

namespace test {
namespace {

template <class Table>
class errors : public testing::Test {};
using tables = table_axis<bucketed_map<u32, u32>, cuckoo_map<u32, u32>, bucketed_set<u32>, cuckoo_set<u32>,
                          compact_map<u32, u32>, compact_set<u32>>;
TYPED_TEST_SUITE(errors, tables);

TYPED_TEST(errors, load_factors_that_cannot_be_meant) {
  constexpr bool cuckoo = std::is_same_v<typename TypeParam::layout, roost::cuckoo>;
  const auto keys = from_numbers<u32>(multiples(100, 1));
  const auto values = numbered_values<typename TypeParam::mapped_type>(100);
  for (const double bad :
       {0.0, -0.0, -1.0, 4.5, double{std::numeric_limits<double>::infinity()}, std::nan("")}) {
    typename TypeParam::options options;
    options.load_factor = bad;
    expect_error<roost::invalid_argument>(
        [&] { TypeParam(keys, values, options); },
        {TypeParam::layout::name, "load factor", bad == 4.5 ? "4.5" : "", "more than 0 and at most"});
    expect_error<roost::invalid_argument>([&] { TypeParam({}, {}, options); }, {"load factor"});
  }
  typename TypeParam::options options;
  options.load_factor = 0.9;
  if (cuckoo) {
    expect_error<roost::invalid_argument>([&] { TypeParam(keys, values, options); }, {"0.9", "0.888889"});
  }
  if (std::is_same_v<typename TypeParam::layout, roost::bucketed>) {
    options.load_factor = 1.0 + 1e-9;
    expect_error<roost::invalid_argument>([&] { TypeParam(keys, values, options); }, {"at most 1"});
  }
}

TYPED_TEST(errors, load_factors_that_need_more_memory_than_there_is) {
  const auto keys = from_numbers<u32>(multiples(100, 1));
  const auto values = numbered_values<typename TypeParam::mapped_type>(100);
  for (const double tiny : {1e-13, 1e-18, 1e-30, 1e-300, std::numeric_limits<double>::denorm_min()}) {
    typename TypeParam::options options;
    options.load_factor = tiny;
    try {
      TypeParam(keys, values, options);
      ADD_FAILURE() << "a table at load factor " << tiny << " was built";
    } catch (const roost::out_of_memory&) {
    } catch (const roost::invalid_argument&) {
    } catch (const std::exception& other) {
      ADD_FAILURE() << "at load factor " << tiny << ", this is not the reason: " << other.what();
    }
  }
}

TYPED_TEST(errors, negative_restarts) {
  const auto keys = from_numbers<u32>(multiples(100, 1));
  typename TypeParam::options options;
  options.max_restarts = -1;
  expect_error<roost::error>(
      [&] { TypeParam(keys, numbered_values<typename TypeParam::mapped_type>(100), options); },
      {"max_restarts"});
}

TYPED_TEST(errors, memory_that_is_refused) {
  const auto copies = random_numbers(3000, 1, 2500);
  const auto crowd = multiples(3000, 8);  // a cuckoo build restarts: 8 regions
  for (const numbers& key_numbers : {multiples(0, 1), multiples(3000, 1), copies, crowd}) {
    const auto keys = from_numbers<u32>(key_numbers);
    const auto values = numbered_values<typename TypeParam::mapped_type>(keys.size());
    expect_refusals([&](const place_type& place) {
      const TypeParam table(keys, values, {}, place);
      EXPECT_TRUE(table.valid());
      EXPECT_EQ(table.count_found(keys), keys.size());
    });
  }
}

TYPED_TEST(errors, a_rebuild_that_fails_changes_nothing) {
  using mapped = typename TypeParam::mapped_type;
  const auto first = from_numbers<u32>(multiples(3000, 3)),
             second = from_numbers<u32>(random_numbers(9000, 5, 8000));
  const auto first_values = numbered_values<mapped>(first.size()),
             second_values = numbered_values<mapped>(9000);
  expect_refusals(
      refused::changes_nothing,
      [&](const place_type& place) { return TypeParam(first, first_values, {}, place); },
      [&](const place_type& place, TypeParam& table) { table.rebuild(second, second_values, place); },
      [&](const place_type&, const TypeParam& table) {
        EXPECT_TRUE(table.valid());
        std::vector<u64> state{table.size(), table.statistics().capacity};
        for (const auto& keys : {first, second}) {
          for (const char there : table.contains(keys)) state.push_back(there != 0);
          if constexpr (TypeParam::has_values) {
            for (const auto& value : table.find(keys, {})) state.push_back(value);
          }
        }
        return state;
      });
}

TEST(errors_class, ranges_that_do_not_fit) {
  const auto keys = upload(from_numbers<u32>(multiples(100, 1)));
  const auto values = upload(from_numbers<u32>(multiples(99, 1)));
  using map_type = roost::frozen_map<u32, u32, place_type>;
  expect_error<roost::invalid_argument>([&] { map_type(test_place(), keys, values); },
                                        {"frozen_map", "100 keys", "99 values", "one value a key"});

  map_type map(test_place(), keys, keys);
  expect_error<roost::invalid_argument>([&] { map.rebuild(test_place(), keys, values); },
                                        {"100 keys", "99 values"});
  EXPECT_EQ(map.size(), 100u);

  memory_of<u32> few(test_place(), 99), enough(test_place(), 100);
  memory_of<bool> few_answers(test_place(), 50);
  expect_error<roost::invalid_argument>([&] { map.find(test_place(), keys, few, 0); },
                                        {"frozen_map::find", "99", "100 needed"});
  expect_error<roost::invalid_argument>([&] { map.contains(test_place(), keys, few_answers); },
                                        {"frozen_map::contains", "50", "100 needed"});
  expect_error<roost::invalid_argument>([&] { map.retrieve_all(test_place(), few, enough); },
                                        {"retrieve_all", "99", "100 needed"});
  expect_error<roost::invalid_argument>([&] { map.retrieve_all(test_place(), enough, few); },
                                        {"retrieve_all", "99", "100 needed"});
  EXPECT_TRUE(map.valid(test_place()));

  const roost::frozen_set<u32, place_type> set(test_place(), keys);
  expect_error<roost::invalid_argument>([&] { set.retrieve_all(test_place(), few); },
                                        {"frozen_set::retrieve_all", "99", "100 needed"});
  expect_error<roost::invalid_argument>([&] { set.contains(test_place(), keys, few_answers); },
                                        {"frozen_set::contains", "50", "100 needed"});
  EXPECT_TRUE(set.valid(test_place()));

  const roost::two_way_index<u32, place_type> index(test_place(), keys);
  expect_error<roost::invalid_argument>([&] { index.find(test_place(), keys, few); },
                                        {"two_way_index::find", "99", "100 needed"});
  expect_error<roost::invalid_argument>([&] { index.contains(test_place(), keys, few_answers); },
                                        {"two_way_index::contains", "50", "100 needed"});
  const roost::frozen_multimap<u32, u32, place_type> multimap(test_place(), keys, keys);
  expect_error<roost::invalid_argument>([&] { multimap.contains(test_place(), keys, few_answers); },
                                        {"frozen_multimap::contains", "50", "100 needed"});
}

TEST(errors_class, have_one_base) {
  static_assert(std::is_base_of_v<std::runtime_error, roost::error>);
  static_assert(std::is_base_of_v<roost::error, roost::invalid_argument>);
  static_assert(std::is_base_of_v<roost::error, roost::out_of_memory>);
  static_assert(std::is_base_of_v<roost::error, roost::device_error>);
  static_assert(std::is_base_of_v<roost::error, roost::build_error>);
}

}  // namespace
}  // namespace test
