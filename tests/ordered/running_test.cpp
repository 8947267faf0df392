#include <map>
#include <numeric>
#include <roost/group_by.hpp>
#include <roost/ordered/running.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Grouped rows, and running results in them, against loops over the rows of each key.

namespace test {
namespace {

constexpr u32 none = roost::no_row<u32>;

/// Associative, but the order matters: the first and the last value, and how many.
struct ends {
  u32 first, last, count;
  friend bool operator==(const ends&, const ends&) = default;
};
struct join_ends {
  ROOST_FN ends operator()(const ends& a, const ends& b) const {
    return {a.first, b.last, a.count + b.count};
  }
};

/// What group_by makes of values: f over pieces of 32, and so on over the results.
template <class Value, class F>
Value nested(std::vector<Value> values, const F& f) {
  while (values.size() > 1) {
    std::vector<Value> results;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 32 == 0) {
        results.push_back(values[i]);
      } else {
        results.back() = f(results.back(), values[i]);
      }
    }
    values = std::move(results);
  }
  return values[0];
}

/// The rows of each key, in the order of a column.
template <class Key, class By>
std::vector<std::vector<u32>> lists_of(const std::vector<Key>& keys, const std::vector<By>& by,
                                       bool descending) {
  oracle_map<Key, std::vector<u32>> rows;
  for (std::size_t i = 0; i < keys.size(); ++i) rows[keys[i]].push_back(static_cast<u32>(i));
  std::vector<std::vector<u32>> lists;
  for (auto& [key, list] : rows) {
    std::stable_sort(list.begin(), list.end(),
                     [&](u32 a, u32 b) { return descending ? by[b] < by[a] : by[a] < by[b]; });
    lists.push_back(list);
  }
  std::sort(lists.begin(), lists.end());
  return lists;
}

std::vector<std::vector<u32>> lists_of(const roost::grouped_rows<place_type>& all) {
  const auto rows = download(all.rows());
  const auto offsets = download(all.offsets());
  EXPECT_EQ(offsets.size(), all.group_count() + 1);
  std::vector<std::vector<u32>> lists;
  for (std::size_t g = 0; g < all.group_count(); ++g)
    lists.emplace_back(rows.begin() + static_cast<std::ptrdiff_t>(offsets[g]),
                       rows.begin() + static_cast<std::ptrdiff_t>(offsets[g + 1]));
  std::sort(lists.begin(), lists.end());
  return lists;
}

/// Everything about the rows of some keys in the order of a column.
template <class By>
void check_lists(const roost::grouped_rows<place_type>& all, const std::vector<std::vector<u32>>& lists,
                 const std::vector<By>& by) {
  const auto& place = test_place();
  const std::size_t n = by.size();
  std::vector<u32> positions(n), filled[2], shifted[3], least(n), greatest(n), dense(n), first(n), nth, last;
  std::vector<ends> running[2];
  std::vector<u32> numbers(n);
  std::vector<u8> present(n);
  std::vector<ends> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    present[i] = roost::mix64(i) % 5 < 2;
    values[i] = {static_cast<u32>(i), static_cast<u32>(i), 1};
  }
  const std::int64_t by_rows[] = {1, -2, 40};
  for (auto& list : filled) list.resize(n);
  for (auto& list : shifted) list.resize(n);
  for (auto& list : running) list.resize(n);
  for (const auto& list : lists) {
    const auto size = static_cast<std::int64_t>(list.size());
    u32 so_far = none, runs = 0;
    for (std::int64_t k = 0; k < size; ++k) {
      const u32 row = list[static_cast<std::size_t>(k)];
      positions[row] = static_cast<u32>(k);
      running[0][row] = {list.front(), row, static_cast<u32>(k + 1)};
      running[1][row] = {list.back(), row, static_cast<u32>(size - k)};
      for (int s = 0; s < 3; ++s) {
        const std::int64_t from = k - by_rows[s];
        shifted[s][row] = from < 0 || from >= size ? none : list[static_cast<std::size_t>(from)];
      }
      filled[0][row] = so_far = present[row] ? row : so_far;
      const auto same = [&](u32 other) { return by[other] == by[row]; };
      const auto begin = std::find_if(list.begin(), list.end(), same);
      const auto end = std::find_if(list.rbegin(), list.rend(), same).base();
      least[row] = static_cast<u32>(begin - list.begin()) + 1;
      greatest[row] = static_cast<u32>(end - list.begin());
      dense[row] = runs += least[row] == static_cast<u32>(k + 1);
      first[row] = static_cast<u32>(k + 1);
    }
    so_far = none;
    for (std::size_t k = list.size(); k-- > 0;)
      filled[1][list[k]] = so_far = present[list[k]] ? list[k] : so_far;
  }
  EXPECT_TRUE(download(roost::positions_in_groups(place, all)) == positions);
  const auto there = upload(present);
  const auto each = upload(values);
  using roost::running_direction, roost::rank_method;
  for (int back = 0; back < 2; ++back) {
    const auto direction = back ? running_direction::backward : running_direction::forward;
    EXPECT_TRUE(download(roost::filled_rows(place, all, there, direction)) == filled[back]);
    EXPECT_TRUE(download(roost::running(place, all, each, join_ends(), direction)) == running[back]);
  }
  for (int s = 0; s < 3; ++s)
    EXPECT_TRUE(download(roost::shifted_rows(place, all, by_rows[s])) == shifted[s]) << by_rows[s];
  const auto numbers_by = upload(by);
  EXPECT_TRUE(download(roost::ranks_in_groups(place, all, numbers_by, rank_method::least)) == least);
  EXPECT_TRUE(download(roost::ranks_in_groups(place, all, numbers_by, rank_method::greatest)) == greatest);
  EXPECT_TRUE(download(roost::ranks_in_groups(place, all, numbers_by, rank_method::dense)) == dense);
  EXPECT_TRUE(download(roost::ranks_in_groups(place, all, numbers_by, rank_method::first)) == first);
}

/// first_rows, last_rows, nth_rows and group_numbers.
void check_ends(const roost::grouped_rows<place_type>& all, const std::vector<std::vector<u32>>& lists) {
  const auto& place = test_place();
  for (const std::size_t n : {0, 1, 3, 40}) {
    std::vector<std::vector<u32>> heads, tails;
    for (const auto& list : lists) {
      const auto most = static_cast<std::ptrdiff_t>(std::min(n, list.size()));
      if (most != 0) heads.emplace_back(list.begin(), list.begin() + most);
      if (most != 0) tails.emplace_back(list.end() - most, list.end());
    }
    std::sort(heads.begin(), heads.end());
    std::sort(tails.begin(), tails.end());
    const auto first = roost::first_rows(place, all, n), last = roost::last_rows(place, all, n);
    EXPECT_TRUE(lists_of(first) == heads) << n;
    EXPECT_TRUE(lists_of(last) == tails) << n;
    EXPECT_EQ(first.batch_size(), all.batch_size());
    if (n != 3) continue;
    auto positions = std::vector<u32>(all.batch_size(), none);  // of rows in no group: none
    for (const auto& list : heads)
      for (std::size_t k = 0; k < list.size(); ++k) positions[list[k]] = static_cast<u32>(k);
    EXPECT_TRUE(download(roost::positions_in_groups(place, first)) == positions);
  }
  const auto rows = download(all.rows());
  const auto offsets = download(all.offsets());
  const auto numbers = download(roost::group_numbers(place, all));
  for (const std::int64_t n : {0, 2, -1, -40}) {
    const auto nth = download(roost::nth_rows(place, all, n));
    ASSERT_EQ(nth.size(), all.group_count());
    std::size_t wrong = 0;
    for (std::size_t g = 0; g < nth.size(); ++g) {
      const auto size = static_cast<std::int64_t>(offsets[g + 1] - offsets[g]);
      const std::int64_t k = n < 0 ? n + size : n;
      wrong += nth[g] != (k < 0 || k >= size ? none : rows[offsets[g] + static_cast<u64>(k)]);
      for (u64 i = offsets[g]; n == 0 && i < offsets[g + 1]; ++i) wrong += numbers[rows[i]] != g;
    }
    EXPECT_EQ(wrong, 0u) << n;
  }
}

template <class Key>
class ordered_rows : public testing::Test {};
using keys = axis<u32, u64, sixteen>;
TYPED_TEST_SUITE(ordered_rows, keys);

TYPED_TEST(ordered_rows, of_groups_of_any_size) {
  for (const auto& [n, groups] : std::vector<std::pair<std::size_t, u64>>{{0, 1},
                                                                          {1, 1},
                                                                          {2, 1},
                                                                          {31, 1},
                                                                          {32, 1},
                                                                          {33, 1},
                                                                          {1024, 0},
                                                                          {1025, 0},
                                                                          {2000, 60},
                                                                          {3000, 3000}}) {
    const auto numbers = random_numbers(n, n, groups);
    const auto keys = from_numbers<TypeParam>(numbers);
    const auto random = random_numbers(n, 7, 30);
    std::vector<std::int64_t> by(random.begin(), random.end());
    for (auto& x : by) x -= 15;
    std::vector<std::int64_t> of_each(by);  // in order in each group, not together
    std::sort(of_each.begin(), of_each.end());
    for (std::size_t i = 0; i < n; ++i) of_each[i] -= static_cast<std::int64_t>(numbers[i] % 9);
    const auto places = upload(keys);
    const std::vector<std::int64_t> rows(n);
    for (const auto& column : {rows, by, of_each}) {
      const auto numbers_by = upload(column);
      for (const bool descending : {false, true}) {
        const auto order = descending ? roost::row_order::descending : roost::row_order::ascending;
        const auto lists = lists_of(keys, column, descending);
        const auto all = roost::group_rows(test_place(), places, numbers_by, order);
        ASSERT_TRUE(lists_of(all) == lists) << n << " rows, " << groups << " keys";
        check_lists(all, lists, column);
        check_ends(all, lists);
      }
    }
    ASSERT_TRUE(lists_of(roost::group_rows(test_place(), places)) == lists_of(keys, rows, false));
  }
}

TEST(ordered_rows_by, floats) {
  const std::vector<float> by{1.5f, -0.0f, 0.0f, -2.5f, 0.0f, 1e38f, -1e-44f, 1e-44f, -0.0f, -1e38f};
  const std::vector<u32> keys(by.size(), 5);
  const auto there = upload(by);
  const auto all = roost::group_rows(test_place(), upload(keys), there);
  const auto lists = lists_of(keys, by, false);
  EXPECT_TRUE(lists_of(all) == lists);
  check_lists(all, lists, by);
  const auto bad = upload(std::vector<float>(keys.size(), std::numeric_limits<float>::quiet_NaN()));
  expect_error<roost::invalid_argument>([&] { roost::group_rows(test_place(), upload(keys), bad); },
                                        {"roost::group_rows", "10 of 10", "NaN", "leave"});
}

// A host sorts the rows of short groups one group after the other, and those of others all together.
TEST(ordered_rows_by, columns_in_no_order) {
  for (const std::size_t n : {65'535, 65'536, 65'537, 70'000}) {
    const std::size_t rows = sanitized ? 2000 : n;
    std::vector<u32> keys(rows + 100, 1);
    for (u32 i = 0; i < 100; ++i) keys[i * 11] = i + 2;
    for (const u64 most : {u64{1000}, ~u64{0}}) {
      const auto by = random_numbers(keys.size(), n, most);
      const auto all = roost::group_rows(test_place(), upload(keys), upload(by));
      EXPECT_TRUE(lists_of(all) == lists_of(keys, by, false)) << n << ", " << most;
    }
  }
}

TEST(ordered_rows_by, the_ends_of_all_types) {
  const auto with = []<class T>(T) {
    using limits = std::numeric_limits<T>;
    const std::vector<T> by{limits::max(), limits::min(),     0, 1, limits::max(),
                            limits::min(), static_cast<T>(-1)};
    const std::vector<u32> keys{1, 1, 1, 2, 2, 2, 1};
    for (const bool descending : {false, true}) {
      EXPECT_TRUE(lists_of(roost::group_rows(
                      test_place(), upload(keys), upload(by),
                      descending ? roost::row_order::descending : roost::row_order::ascending)) ==
                  lists_of(keys, by, descending));
    }
  };
  with(std::int8_t());
  with(u16());
  with(std::int32_t());
  with(u64());
  with(std::int64_t());
}

// More results than the cache of a GPU holds go back by parts of rows; of some rows, and of all.
TEST(ordered_rows_by, more_rows_than_a_cache_holds_large) {
  const std::size_t n = on_host ? 100'000 : 9'000'000;
  const u32 groups = 70'000;
  const auto of_row = [](std::size_t row) { return static_cast<u32>(roost::mix64(row) % groups); };
  std::vector<u32> keys(n), rows(n, none), kept(n, none), counts(groups), last(groups, none);
  std::vector<double> values(n), sums(n), so_far(groups);
  for (std::size_t i = 0; i < n; ++i) keys[i] = of_row(i), values[i] = static_cast<double>(i % 1001);
  for (std::size_t i = 0; i < n; ++i) {
    const u32 key = keys[i];
    rows[i] = last[key];
    if (counts[key] < 50) kept[i] = counts[key];
    ++counts[key];
    last[key] = static_cast<u32>(i);
    sums[i] = so_far[key] += values[i];
  }
  const auto& place = test_place();
  const auto all = roost::group_rows(place, upload(keys));
  EXPECT_TRUE(download(roost::shifted_rows(place, all, 1)) == rows);
  EXPECT_TRUE(download(roost::running(place, all, upload(values), roost::plus())) == sums);
  const auto first = roost::first_rows(place, all, 50);
  EXPECT_TRUE(download(roost::positions_in_groups(place, first)) == kept);
}

// Floats: bit by bit what group_by makes of the rows so far.
TEST(running_results, are_nested_like_group_by) {
  const std::size_t n = sanitized ? 5000 : 70'000;  // three levels of blocks
  std::vector<u32> keys(n);
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    keys[i] = i % 3 == 0 ? static_cast<u32>(i % 700) : 1;
    values[i] = static_cast<double>(roost::mix64(i)) / 1e10 * (i % 7 == 0 ? -1e6 : 1);
  }
  const auto there = upload(keys);
  const auto numbers = upload(values);
  const auto all = roost::group_rows(test_place(), there);
  const auto sums = download(roost::running(test_place(), all, numbers, roost::plus()));
  std::map<u32, std::vector<double>> so_far;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    auto& list = so_far[keys[i]];
    list.push_back(values[i]);
    if (list.size() > 2100 && list.size() % 997 > 1) continue;  // nested() takes long
    const double sum = nested(list, roost::plus());
    wrong += std::memcmp(&sum, &sums[i], sizeof(sum)) != 0;
  }
  EXPECT_EQ(wrong, 0u);
  const auto groups = roost::group_by(test_place(), there, numbers, roost::plus());
  const auto found = download(groups.keys);
  const auto totals = download(groups.values);
  std::map<u32, double> last;
  for (std::size_t i = 0; i < n; ++i) last[keys[i]] = sums[i];
  for (std::size_t g = 0; g < found.size(); ++g)
    EXPECT_EQ(std::memcmp(&last[found[g]], &totals[g], sizeof(double)), 0) << found[g];
}

TEST(running_results, refuse_another_number_of_values) {
  const auto all = roost::group_rows(test_place(), upload(std::vector<u32>{1, 2, 1}));
  const auto two = upload(std::vector<u32>{1, 2});
  using roost::invalid_argument;
  expect_error<invalid_argument>([&] { roost::running(test_place(), all, two, roost::plus()); },
                                 {"roost::running", "2 values for 3 rows"});
  expect_error<invalid_argument>([&] { roost::filled_rows(test_place(), all, two); },
                                 {"roost::filled_rows", "2 values for 3 rows"});
  expect_error<invalid_argument>(
      [&] { roost::ranks_in_groups(test_place(), all, two, roost::rank_method::least); },
      {"roost::ranks_in_groups", "2 values for 3 rows"});
  expect_error<invalid_argument>([&] { roost::group_rows(test_place(), two, upload(std::vector<u32>{1})); },
                                 {"roost::group_rows", "2 keys but 1 numbers"});
}

}  // namespace
}  // namespace test
