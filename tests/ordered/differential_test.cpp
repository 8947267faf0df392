#include <roost/ordered/asof_join.hpp>
#include <roost/ordered/interval_join.hpp>
#include <roost/ordered/rolling.hpp>
#include <roost/ordered/running.hpp>
#include <roost/ordered/sessions.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// All results from one grouping, of random rows, against one loop over the rows in the order of time.

namespace test {
namespace {

constexpr u32 none = roost::no_row<u32>;
using time = std::int64_t;

/// Random rows of some keys.
struct table {
  std::vector<u64> keys;
  std::vector<time> times;
  std::vector<time> values;  // whose sums are exact
  std::vector<u32> order;    // rows in the order of time

  table(std::size_t n, u64 most, time apart, std::mt19937_64& random)
      : keys(n), times(n), values(n), order(n) {
    for (std::size_t i = 0; i < n; ++i) {
      keys[i] = random() % (most + 1) * 0x9e3779b97f4a7c15ull;
      times[i] = static_cast<time>(random() % (n * static_cast<u64>(apart) + 1)) - apart * 20;
      values[i] = static_cast<time>(random() % 64) - 20;
      order[i] = static_cast<u32>(i);
    }
    if (random() % 3 == 0) std::sort(times.begin(), times.end());
    std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return times[a] < times[b]; });
  }
};

/// What a loop knows of a key.
struct state {
  std::vector<u32> rows;  // so far
  time sum = 0;
  u32 session = none;  // its first row
};

void check(const table& of, time width, time gap) {
  const auto& place = test_place();
  const std::size_t n = of.keys.size();
  std::vector<time> sums(n), window_sums(n), medians(n);
  std::vector<u32> before(n), positions(n), ranks(n), session(n), sizes(n);
  oracle_map<u64, state> states;
  for (std::size_t i = 0; i < n; ++i) {
    const u32 row = of.order[i];
    auto& [rows, sum, begin] = states[of.keys[row]];
    before[row] = rows.empty() ? none : rows.back();
    if (rows.empty() || of.times[row] - of.times[rows.back()] > gap) begin = row;
    session[row] = begin;
    positions[row] = static_cast<u32>(rows.size());
    ranks[row] = !rows.empty() && of.times[rows.back()] == of.times[row] ? ranks[rows.back()]
                                                                         : static_cast<u32>(rows.size() + 1);
    rows.push_back(row);
    sums[row] = sum += of.values[row];
  }
  for (const auto& [key, known] : states) {
    for (const u32 row : known.rows) {
      std::vector<time> window;
      for (const u32 other : known.rows)
        if (of.times[other] <= of.times[row] && of.times[other] > of.times[row] - width)
          window.push_back(of.values[other]);
      sizes[row] = static_cast<u32>(window.size());
      for (const time value : window) window_sums[row] += value;
      std::sort(window.begin(), window.end());
      medians[row] = window[(window.size() - 1) / 2];
    }
  }
  const auto times = upload(of.times), values = upload(of.values);
  const auto all = roost::group_rows(place, upload(of.keys), times);
  ASSERT_EQ(all.group_count(), states.size());
  EXPECT_TRUE(download(roost::running(place, all, values, roost::plus())) == sums);
  EXPECT_TRUE(download(roost::shifted_rows(place, all, 1)) == before);
  EXPECT_TRUE(download(roost::positions_in_groups(place, all)) == positions);
  EXPECT_TRUE(download(roost::ranks_in_groups(place, all, times, roost::rank_method::least)) == ranks);
  const auto windows = roost::windows_by_time(place, all, times, {.before = static_cast<u64>(width)});
  EXPECT_TRUE(download(roost::window_sizes(place, all, windows)) == sizes);
  EXPECT_TRUE(download(roost::combine_windows(place, all, windows, values, roost::plus(), 0)) == window_sums);
  std::vector<u32> middle(n);
  for (std::size_t i = 0; i < n; ++i) middle[i] = (sizes[i] - 1) / 2;
  auto found = download(roost::nth_of_windows(place, all, windows, values, upload(middle)));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += of.values[found[i]] != medians[i];
  EXPECT_EQ(wrong, 0u);
  const auto parts = roost::sessions(place, all, times, static_cast<u64>(gap));
  const auto rows = download(parts.rows());
  const auto offsets = download(parts.offsets());
  found = download(roost::group_numbers(place, parts));
  for (std::size_t i = 0; i < n; ++i) wrong += rows[offsets[found[i]]] != session[i];
  EXPECT_EQ(wrong, 0u);
}

void check_joins(const table& left, const table& right, time tolerance) {
  oracle_map<u64, std::vector<u32>> rows;
  for (const u32 row : right.order) rows[right.keys[row]].push_back(row);
  std::vector<u32> nearest, pairs_left, pairs_right;
  std::vector<time> ends;
  for (std::size_t l = 0; l < left.keys.size(); ++l) {
    const time t = left.times[l];
    ends.push_back(t + tolerance);
    nearest.push_back(none);
    for (const u32 r : rows[left.keys[l]]) {
      if (right.times[r] <= t && t - right.times[r] <= tolerance) nearest.back() = r;
      if (right.times[r] < t || right.times[r] >= ends.back()) continue;
      pairs_left.push_back(static_cast<u32>(l));
      pairs_right.push_back(r);
    }
  }
  const auto& place = test_place();
  const auto keys = upload(left.keys), other_keys = upload(right.keys);
  const auto times = upload(left.times), other_times = upload(right.times), to = upload(ends);
  EXPECT_TRUE(download(roost::asof_join(place, keys, times, other_keys, other_times,
                                        {.tolerance = static_cast<u64>(tolerance)})) == nearest);
  const auto pairs = roost::interval_join(place, keys, roost::intervals{times, to}, other_keys, other_times);
  EXPECT_TRUE(download(pairs.left) == pairs_left);
  EXPECT_TRUE(download(pairs.right) == pairs_right);
}

TEST(ordered_differential, of_random_rows) {
  std::mt19937_64 random(7);
  for (int turn = 0; turn < (sanitized ? 12 : 60); ++turn) {
    const std::size_t n = 1 + random() % (turn % 10 == 9 ? 4000 : 300), m = random() % 300;
    const u64 most = random() % 3 == 0 ? n : random() % 9;
    const time apart = random() % 2 == 0 ? 1 : 1'000'000'007;
    SCOPED_TRACE(testing::Message() << "turn " << turn << ": " << n << " rows, " << most + 1 << " keys");
    const table one(n, most, apart, random), other(m, most, apart, random);
    const time width = static_cast<time>(random() % (n / 2 + 1) + 1) * apart;
    check(one, width, static_cast<time>(random() % 9) * apart);
    check_joins(one, other, static_cast<time>(random() % 20) * apart);
  }
}

}  // namespace
}  // namespace test
