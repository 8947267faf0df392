#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <roost/ids/group_ids.hpp>
#include <roost/ids/reduce_rows.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// unique_ids, group_keys, find_ids and group_ids against maps and std::stable_sort.

namespace test {
namespace {

using ids_type = std::vector<std::int64_t>;

template <class T>
roost::array<T, place_type> garbage(std::size_t n) {
  return roost::detail::filled<T>(test_place(), n, 0x5a);
}

/// Distinct ids, each with where it occurs: by first occurrence, or ascending.
std::vector<std::pair<std::int64_t, ids_type>> distinct(const ids_type& ids, bool ascending) {
  std::map<std::int64_t, ids_type> where;
  for (std::size_t i = 0; i < ids.size(); ++i) where[ids[i]].push_back(static_cast<std::int64_t>(i));
  std::vector<std::pair<std::int64_t, ids_type>> all(where.begin(), where.end());
  if (!ascending)
    std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.second[0] < b.second[0]; });
  return all;
}

void check_distinct(const ids_type& ids, std::size_t limit, bool ascending, std::uint32_t bits = 64) {
  const std::size_t n = ids.size();
  const auto there = roost::copy_to(test_place(), ids);
  // One more than the limit: that stays as it is.
  auto keys = garbage<std::int64_t>(limit + 1), inverse = garbage<std::int64_t>(n),
       first = garbage<std::int64_t>(limit + 1), counts = garbage<std::int64_t>(limit + 1);
  auto size = garbage<std::uint64_t>(1), too_many = roost::detail::zeros(test_place(), 1);
  auto sorted = garbage<roost::grouped_position>(n);
  const roost::distinct_ids result{.keys = keys.data(),
                                   .limit = limit,
                                   .fill = -77,
                                   .size = size.data(),
                                   .too_many = too_many.data(),
                                   .inverse = inverse.data(),
                                   .first = first.data(),
                                   .counts = counts.data()};
  if (ascending) {
    roost::group_keys(test_place(), there.span(), result, sorted.data(), bits);
  } else {
    roost::unique_ids(test_place(), there.span(), result);
  }
  const auto expected = distinct(ids, ascending);
  ASSERT_EQ(roost::copy_to_host(test_place(), size)[0], expected.size());
  ASSERT_EQ(roost::copy_to_host(test_place(), too_many)[0], expected.size() > limit ? 1 : 0);
  const auto got_keys = roost::copy_to_host(test_place(), keys),
             got_inverse = roost::copy_to_host(test_place(), inverse),
             got_first = roost::copy_to_host(test_place(), first),
             got_counts = roost::copy_to_host(test_place(), counts);
  const auto got_sorted = roost::copy_to_host(test_place(), sorted);
  for (const auto* const all : {&got_keys, &got_first, &got_counts})
    ASSERT_EQ((*all)[limit], 0x5a5a5a5a5a5a5a5a);
  std::size_t before = 0;
  for (std::size_t k = 0; k < std::max(limit, expected.size()); ++k) {
    if (k < limit) {
      const bool real = k < expected.size();
      ASSERT_EQ(got_keys[k], real ? expected[k].first : -77);
      ASSERT_EQ(got_first[k], real ? expected[k].second[0] : static_cast<std::int64_t>(n));
      ASSERT_EQ(got_counts[k], real ? static_cast<std::int64_t>(expected[k].second.size()) : 0);
    }
    if (k >= expected.size()) continue;
    for (const auto i : expected[k].second) {
      ASSERT_EQ(got_inverse[static_cast<std::size_t>(i)], static_cast<std::int64_t>(k));
      if (!ascending) continue;
      ASSERT_EQ(got_sorted[before].key, k);
      ASSERT_EQ(got_sorted[before++].value, i);
    }
  }
}

ids_type random_ids(std::size_t n, std::uint64_t different, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ids_type pool(std::min<std::size_t>(n + 1, different)), ids(n);
  for (auto& id : pool) id = static_cast<std::int64_t>(random());
  if (pool.size() > 3) {
    pool[0] = std::numeric_limits<std::int64_t>::min();
    pool[1] = -1;
    pool[2] = std::numeric_limits<std::int64_t>::max();
  }
  for (auto& id : ids) id = pool[random() % pool.size()];
  return ids;
}

TEST(group_ids, distinct_ids_are_those_of_a_map) {
  const std::size_t large = sanitized ? 3000 : 50'000;
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{100}, large}) {
    for (const std::size_t different : {1, 5, 1000, 1'000'000}) {
      const auto ids = random_ids(n, different, n + different);
      for (const bool ascending : {false, true}) {
        const std::size_t size = distinct(ids, ascending).size();
        for (const std::size_t limit : {n, n / 3, n + 10, size, size - (size == 0 ? 0 : 1)})
          check_distinct(ids, limit, ascending);
      }
    }
  }
}

TEST(group_ids, few_bits_are_sorted) {
  std::mt19937_64 random(5);
  for (const std::uint32_t bits : {1u, 8u, 9u, 10u, 11u, 20u, 33u}) {
    ids_type ids(3000);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() >> (64 - bits));
    check_distinct(ids, ids.size(), true, bits);
  }
}

TEST(group_ids, consecutive_and_spread_ids) {
  for (const std::int64_t step : {std::int64_t{1}, std::int64_t{1} << 16, std::int64_t{1} << 44}) {
    ids_type ids(sanitized ? 2000 : 20'000);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i / 2) * step;
    check_distinct(ids, ids.size(), false);
  }
}

TEST(group_ids, results_that_are_not_wanted) {
  const auto ids = random_ids(500, 40, 3);
  const auto there = roost::copy_to(test_place(), ids);
  auto size = garbage<std::uint64_t>(1);
  for (const bool ascending : {false, true}) {
    if (ascending) {
      roost::group_keys(test_place(), there.span(), {.size = size.data()});
    } else {
      roost::unique_ids(test_place(), there.span(), {.size = size.data()});
    }
    EXPECT_EQ(roost::copy_to_host(test_place(), size)[0], distinct(ids, false).size());
  }
}

TEST(group_ids, positions_are_the_first_ones) {
  for (const std::size_t n : {0, 1, 300, 20'000}) {
    const auto ids = random_ids(n, n / 2 + 1, n);
    auto queries = random_ids(1000, 50, 7);
    queries.insert(queries.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n / 2));
    auto positions = garbage<std::int64_t>(queries.size());
    roost::find_ids(test_place(), roost::copy_to(test_place(), ids).span(),
                    roost::copy_to(test_place(), queries).span(), positions.span(), -5);
    std::map<std::int64_t, std::int64_t> first;
    for (std::size_t i = 0; i < n; ++i) first.emplace(ids[i], static_cast<std::int64_t>(i));
    const auto got = roost::copy_to_host(test_place(), positions);
    for (std::size_t j = 0; j < queries.size(); ++j) {
      const auto at = first.find(queries[j]);
      ASSERT_EQ(got[j], at == first.end() ? -5 : at->second);
    }
  }
  const auto one = roost::copy_to(test_place(), ids_type{1});
  auto two = garbage<std::int64_t>(2);
  EXPECT_THROW(roost::find_ids(test_place(), one.span(), one.span(), two.span(), 0), roost::invalid_argument);
}

TEST(group_ids, ids_are_grouped_in_order) {
  std::mt19937_64 random(11);
  for (const std::size_t n : {0, 1, 1000, 30'000}) {
    for (const std::size_t groups : {1, 100, 3000}) {
      for (const bool wrong_ones : {false, true}) {
        std::vector<std::int32_t> ids(n);
        for (auto& id : ids) id = static_cast<std::int32_t>(random() % groups) - (wrong_ones ? 1 : 0);
        auto order = garbage<std::int64_t>(n), offsets = garbage<std::int64_t>(groups + 1),
             inverse = garbage<std::int64_t>(n);
        auto wrong = roost::detail::zeros(test_place(), 1);
        roost::group_ids(
            test_place(), roost::copy_to(test_place(), ids).span(), groups,
            {order.data(), offsets.data(), groups == 100 ? nullptr : inverse.data(), wrong.data()});
        ids_type expected(n);
        std::iota(expected.begin(), expected.end(), 0);
        const auto group_of = [&](std::int64_t i) {
          const auto id = ids[static_cast<std::size_t>(i)];
          return id < 0 ? groups : static_cast<std::size_t>(id);
        };
        std::stable_sort(expected.begin(), expected.end(),
                         [&](auto a, auto b) { return group_of(a) < group_of(b); });
        EXPECT_EQ(roost::copy_to_host(test_place(), order), expected);
        if (groups != 100) {
          const auto places = roost::copy_to_host(test_place(), inverse);
          for (std::size_t i = 0; i < n; ++i)
            ASSERT_EQ(places[static_cast<std::size_t>(expected[i])], static_cast<std::int64_t>(i));
        }
        const auto got = roost::copy_to_host(test_place(), offsets);
        ids_type begins(groups + 2);
        for (const auto i : expected) ++begins[group_of(i) + 1];
        std::partial_sum(begins.begin(), begins.end(), begins.begin());
        begins.pop_back();
        EXPECT_EQ(got, begins);
        const bool has_wrong = std::any_of(ids.begin(), ids.end(), [](auto id) { return id < 0; });
        EXPECT_EQ(roost::copy_to_host(test_place(), wrong)[0] != 0, has_wrong);
      }
    }
  }
}

TEST(group_ids, rows_of_groups_are_reduced) {
  const auto ids = random_ids(5000, 60, 9);
  std::vector<float> rows(2 * ids.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 977) * 0.37f;
  const auto all = distinct(ids, true);
  auto size = garbage<std::uint64_t>(1);
  auto sorted = garbage<roost::grouped_position>(ids.size());
  const auto ids_there = roost::copy_to(test_place(), ids);
  const auto rows_there = roost::copy_to(test_place(), rows);
  roost::group_keys(test_place(), ids_there.span(), {.size = size.data()}, sorted.data());
  auto out = roost::detail::zeros<float>(test_place(), 2 * all.size());
  roost::reduce_grouped_rows(test_place(), std::as_const(sorted).span(), rows_there.span(), 2, out.span(),
                             {});
  // The same by numbers.
  ids_type numbers(ids.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    for (const auto i : all[k].second) numbers[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(k);
  }
  auto other = roost::detail::zeros<float>(test_place(), 2 * all.size());
  auto wrong = roost::detail::zeros(test_place(), 1);
  roost::reduce_rows(test_place(), roost::copy_to(test_place(), numbers).span(), rows_there.span(), 2,
                     other.span(), {.wrong = wrong.data()});
  EXPECT_EQ(roost::copy_to_host(test_place(), out), roost::copy_to_host(test_place(), other));
  auto third = roost::detail::zeros<float>(test_place(), 2 * all.size());
  roost::reduce_grouped_rows(test_place(), std::as_const(sorted).span(), rows_there.span(), 2, third.span(),
                             {.ascending = true});
  EXPECT_EQ(roost::copy_to_host(test_place(), third), roost::copy_to_host(test_place(), other));
  EXPECT_THROW(roost::reduce_grouped_rows(test_place(), std::as_const(sorted).span(), rows_there.span(), 3,
                                          out.span(), {}),
               roost::invalid_argument);
}

TEST(group_ids, groups_need_not_ascend_and_some_have_no_row) {
  const std::vector<roost::grouped_position> sorted{{7, 0}, {7, 2},    {9, 1}, {~0u, 5},
                                                    {2, 4}, {5000, 3}, {0, 3}};
  const std::vector<double> rows{1, 2, 4, 8, 16, 32};
  auto out = roost::detail::zeros<double>(test_place(), 10);
  roost::reduce_grouped_rows(test_place(), roost::copy_to(test_place(), sorted).span(),
                             roost::copy_to(test_place(), rows).span(), 1, out.span(), {});
  EXPECT_EQ(roost::copy_to_host(test_place(), out), (std::vector<double>{8, 0, 16, 0, 0, 0, 0, 5, 0, 2}));
}

}  // namespace
}  // namespace test
