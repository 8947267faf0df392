#include <limits>
#include <map>
#include <roost/ordered/interval_join.hpp>
#include <roost/ordered/sessions.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Groups that are split, and interval joins, against loops.

namespace test {
namespace {

using lists = std::vector<std::vector<u32>>;

lists lists_of(const roost::grouped_rows<place_type>& all) {
  const auto rows = download(all.rows());
  const auto offsets = download(all.offsets());
  lists result;
  for (std::size_t g = 0; g < all.group_count(); ++g)
    result.emplace_back(rows.begin() + static_cast<std::ptrdiff_t>(offsets[g]),
                        rows.begin() + static_cast<std::ptrdiff_t>(offsets[g + 1]));
  std::sort(result.begin(), result.end());
  return result;
}

/// The rows of each key in the order of `by`, split before each row that differs from the one before it.
template <class By, class Differs>
lists split(const std::vector<u32>& keys, const std::vector<By>& by, const Differs& differs) {
  std::map<u32, std::vector<u32>> rows;
  for (std::size_t i = 0; i < keys.size(); ++i) rows[keys[i]].push_back(static_cast<u32>(i));
  lists result;
  for (auto& [key, list] : rows) {
    std::stable_sort(list.begin(), list.end(), [&](u32 a, u32 b) { return by[a] < by[b]; });
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (k == 0 || differs(list[k - 1], list[k])) result.emplace_back();
      result.back().push_back(list[k]);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<u32> random_keys(std::size_t n, u64 most) {
  std::vector<u32> keys;
  for (const u64 number : random_numbers(n, n + most, most)) keys.push_back(static_cast<u32>(number));
  return keys;
}

TEST(split_groups, into_sessions_and_buckets_and_runs) {
  const auto& place = test_place();
  for (const auto& [n, most] : std::vector<std::pair<std::size_t, u64>>{
           {0, 0}, {1, 0}, {2, 0}, {2047, 0}, {2048, 3}, {2049, 3}, {9000, 40}, {5000, 9000}}) {
    SCOPED_TRACE(testing::Message() << n << " rows, " << most << " keys");
    const auto keys = random_keys(n, most);
    std::vector<std::int64_t> times;
    for (const u64 t : random_numbers(n, 3, 2 * n + 5)) times.push_back(static_cast<std::int64_t>(t) - 900);
    const auto there = upload(times);
    const auto all = roost::group_rows(place, upload(keys), there);
    for (const std::int64_t gap : {0, 1, 7, 100000}) {
      EXPECT_TRUE(lists_of(roost::sessions(place, all, there, static_cast<u64>(gap))) ==
                  split(keys, times, [&](u32 a, u32 b) { return times[b] - times[a] > gap; }))
          << gap;
    }
    for (const std::int64_t width : {1, 7, 1000}) {
      for (const std::int64_t origin : {0, 3, -5000}) {
        const auto begin = [&](u32 row) {
          const std::int64_t past = ((times[row] - origin) % width + width) % width;
          return times[row] - past;
        };
        const roost::time_buckets<std::int64_t> buckets{static_cast<u64>(width), origin};
        EXPECT_TRUE(lists_of(roost::resample(place, all, there, buckets)) ==
                    split(keys, times, [&](u32 a, u32 b) { return begin(a) != begin(b); }));
        std::size_t wrong = 0;
        for (u32 row = 0; row < n; ++row) wrong += buckets.start(times[row]) != begin(row);
        EXPECT_EQ(wrong, 0u) << width << ", " << origin;
      }
    }
    std::vector<float> values;
    for (const u64 number : random_numbers(n, 4, 2)) values.push_back(static_cast<float>(number));
    const auto runs = roost::runs_of_values(place, all, upload(values));
    const auto wanted = split(keys, times, [&](u32 a, u32 b) { return values[a] != values[b]; });
    EXPECT_TRUE(lists_of(runs) == wanted);

    // The splits are groups like others.
    std::vector<u64> numbers(n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = roost::mix64(i);
    const auto sums = download(roost::combine_groups(place, runs, upload(numbers), roost::plus()));
    const auto rows = download(runs.rows());
    const auto offsets = download(runs.offsets());
    ASSERT_EQ(sums.size(), runs.group_count());
    for (std::size_t g = 0; g < sums.size(); ++g) {
      u64 sum = 0;
      for (u64 i = offsets[g]; i < offsets[g + 1]; ++i) sum += numbers[rows[i]];
      ASSERT_EQ(sums[g], sum) << g;
    }
  }
}

TEST(split_groups, at_the_ends_of_time) {
  using limits = std::numeric_limits<std::int32_t>;
  const std::vector<std::int32_t> times{limits::min(),     limits::min() + 1, -1, 0,
                                        limits::max() - 1, limits::max()};
  const std::vector<u32> keys(times.size(), 3);
  const auto there = upload(times);
  const auto all = roost::group_rows(test_place(), upload(keys), there);
  for (const u64 gap : {u64{0}, u64{1}, u64{1} << 31, (u64{1} << 31) - 1, ~u64{0}}) {
    EXPECT_TRUE(
        lists_of(roost::sessions(test_place(), all, there, gap)) ==
        split(keys, times,
              [&](u32 a, u32 b) { return static_cast<u64>(std::int64_t{times[b]} - times[a]) > gap; }))
        << gap;
  }
  for (const u64 width : {u64{1}, u64{10}, u64{1} << 31, u64{1} << 40}) {
    const roost::time_buckets<std::int32_t> buckets{width, 5};
    std::vector<std::int64_t> begins;
    for (const auto t : times) {
      const auto w = static_cast<std::int64_t>(width), past = ((std::int64_t{t} - 5) % w + w) % w;
      begins.push_back(std::max<std::int64_t>(t - past, limits::min()));
      EXPECT_EQ(buckets.start(t), begins.back()) << t << ", " << width;
    }
    EXPECT_TRUE(lists_of(roost::resample(test_place(), all, there, buckets)) ==
                split(keys, times, [&](u32 a, u32 b) { return begins[a] != begins[b]; }));
  }
}

TEST(split_groups, refuse_what_has_no_answer) {
  const auto keys = upload(std::vector<u32>{1, 1, 2});
  const auto times = upload(std::vector<std::int64_t>{2, 1, 0});
  const auto floats = upload(std::vector<double>{1, 2, 3});
  const auto all = roost::group_rows(test_place(), keys);
  using roost::invalid_argument;
  expect_error<invalid_argument>([&] { roost::sessions(test_place(), all, times, 5); },
                                 {"roost::sessions", "order", "group_rows(place, keys, times)"});
  expect_error<invalid_argument>([&] { roost::sessions(test_place(), all, floats, -1); },
                                 {"roost::sessions", "below 0", "give"});
  expect_error<invalid_argument>([&] { roost::resample(test_place(), all, times, {1, 0}); },
                                 {"roost::resample", "order"});
  expect_error<invalid_argument>([&] { roost::resample(test_place(), all, times, {0, 0}); },
                                 {"roost::resample", "width 0", "give"});
  expect_error<invalid_argument>(
      [&] { roost::runs_of_values(test_place(), all, upload(std::vector<u32>{1})); },
      {"roost::runs_of_values", "1 values for 3 rows"});
}

template <class Key, class Time>
void check_intervals(std::size_t n, std::size_t m, u64 most) {
  using roost::window_closed;
  const auto left = from_numbers<Key>(random_numbers(n, 1, most)),
             right = from_numbers<Key>(random_numbers(m, 2, most));
  std::vector<Time> from, to, times;
  for (const u64 t : random_numbers(n, 3, m)) from.push_back(static_cast<Time>(t));
  for (const u64 t : random_numbers(n, 4, 40)) to.push_back(from[to.size()] + static_cast<Time>(t) - 10);
  for (const u64 t : random_numbers(m, 5, m)) times.push_back(static_cast<Time>(t));
  oracle_map<Key, std::vector<u32>> rows;
  for (std::size_t r = 0; r < m; ++r) rows[right[r]].push_back(static_cast<u32>(r));
  for (auto& [key, list] : rows)
    std::stable_sort(list.begin(), list.end(), [&](u32 a, u32 b) { return times[a] < times[b]; });
  const auto left_keys = upload(left);
  const auto from_times = upload(from), to_times = upload(to);
  for (const auto closed :
       {window_closed::right, window_closed::left, window_closed::both, window_closed::neither}) {
    std::vector<u32> left_rows, right_rows;
    for (std::size_t l = 0; l < n; ++l) {
      for (const u32 r : rows[left[l]]) {
        const bool after = closed == window_closed::left || closed == window_closed::both
                               ? times[r] >= from[l]
                               : times[r] > from[l];
        const bool before = closed == window_closed::right || closed == window_closed::both
                                ? times[r] <= to[l]
                                : times[r] < to[l];
        if (!after || !before) continue;
        left_rows.push_back(static_cast<u32>(l));
        right_rows.push_back(r);
      }
    }
    const auto found = roost::interval_join(test_place(), left_keys, roost::intervals{from_times, to_times},
                                            upload(right), upload(times), closed);
    EXPECT_TRUE(download(found.left) == left_rows) << n << " and " << m << " rows";
    EXPECT_TRUE(download(found.right) == right_rows) << n << " and " << m << " rows";
  }
}

TEST(interval_join, of_any_rows) {
  for (const auto& [n, m, most] : std::vector<std::tuple<std::size_t, std::size_t, u64>>{
           {0, 0, 0}, {0, 9, 1}, {9, 0, 1}, {1, 1, 0}, {300, 200, 0}, {3000, 2000, 30}, {4000, 4100, 4000}}) {
    check_intervals<u32, std::int64_t>(n, m, most);
    check_intervals<u64, double>(n, m, most);
  }
}

TEST(interval_join, says_how_many_pairs_find_no_memory) {
  const std::size_t n = 300'000;
  const auto keys = upload(std::vector<u32>(n, 1));
  const auto zeros = upload(std::vector<std::int64_t>(n, 0)), ones = upload(std::vector<std::int64_t>(n, 1));
  expect_error<roost::out_of_memory>(
      [&] {
        static_cast<void>(
            roost::interval_join(test_place(), keys, roost::intervals{zeros, ones}, keys, zeros));
      },
      {"roost::interval_join", "90000000000 matches", "fewer"});
  expect_error<roost::invalid_argument>(
      [&] {
        static_cast<void>(
            roost::interval_join<u16>(test_place(), keys, roost::intervals{zeros, ones}, keys, zeros));
      },
      {"roost::interval_join", "300000 rows", "larger type"});
}

}  // namespace
}  // namespace test
