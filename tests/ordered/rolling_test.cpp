#include <cmath>
#include <limits>
#include <map>
#include <roost/ordered/rolling.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Windows, and what is combined of them, against loops over all rows of the group.

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

/// Window sums as the page of combine_windows says that they are nested, on one level.
template <class T>
T in_turn(const std::vector<T>& values) {
  T sum = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) sum = sum + values[i];
  return sum;
}

/// `elements`: all those of a group on one level; `before` and `after` come around those of the window.
template <class T>
T sum_of_window(const std::vector<T>& elements, std::size_t first, std::size_t end) {
  if (end - first <= 32) return in_turn(std::vector<T>(elements.begin() + first, elements.begin() + end));
  std::vector<std::vector<T>> levels{elements};
  T before{}, after{};
  for (std::size_t level = 0;; ++level) {
    const auto& all = levels[level];
    if (level != 0) {
      if (first >= end) break;
      if (end - first <= 32) {
        before = before + in_turn(std::vector<T>(all.begin() + first, all.begin() + end));
        break;
      }
    }
    const std::size_t border = (first / 32 + 1) * 32, last_border = (end - 1) / 32 * 32;
    T head = all[border - 1], tail = all[last_border];
    for (std::size_t i = border - 1; i-- > first;) head = all[i] + head;
    for (std::size_t i = last_border + 1; i < end; ++i) tail = tail + all[i];
    before = level == 0 ? head : before + head;
    after = level == 0 ? tail : tail + after;
    std::vector<T> blocks;
    for (std::size_t i = 0; i < all.size(); i += 32)
      blocks.push_back(in_turn(std::vector<T>(all.begin() + i, all.begin() + std::min(i + 32, all.size()))));
    levels.push_back(blocks);
    first = border / 32;
    end = last_border / 32;
  }
  return before + after;
}

/// The rows of each group, and the window of each row as positions in its group.
struct expected {
  std::vector<std::vector<u32>> lists;
  std::vector<std::pair<std::size_t, std::size_t>> window;  // of each row: first, end
  std::vector<const std::vector<u32>*> list;                // of each row
};

/// The rows of some numbers in windows, of values with ties.
void check_numbers(const roost::grouped_rows<place_type>& all, const roost::row_windows<place_type>& windows,
                   const expected& wanted) {
  constexpr std::size_t each = 3;
  const std::size_t n = wanted.window.size();
  std::vector<std::int64_t> values(n);
  std::vector<u64> numbers(each * n);
  std::vector<u32> rows(each * n, none), found;
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::int64_t>(roost::mix64(i) % (n + 1)) - 9;
  const std::size_t apart = n > 5000 ? 997 : 1;  // sorting windows takes long
  std::vector<u32> sorted;
  for (std::size_t i = 0; i < n; i += apart) {
    const auto [first, end] = wanted.window[i];
    sorted.assign(wanted.list[i]->begin() + first, wanted.list[i]->begin() + end);
    std::stable_sort(sorted.begin(), sorted.end(), [&](u32 a, u32 b) { return values[a] < values[b]; });
    for (std::size_t k = 0; k < each; ++k) {
      u64& number = numbers[each * i + k];
      number = k == 0 ? 0 : k == 1 ? sorted.size() / 2 : roost::mix64(i) % (sorted.size() + 2);
      if (i % 101 == 0 && k == 2) number = ~u64{0} - i;
      if (number < sorted.size()) rows[each * i + k] = sorted[number];
    }
  }
  found = download(roost::nth_of_windows(test_place(), all, windows, upload(values), upload(numbers)));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; i += apart)
    for (std::size_t k = 0; k < each; ++k) wrong += rows[each * i + k] != found[each * i + k];
  EXPECT_EQ(wrong, 0u);
}

void check(const roost::grouped_rows<place_type>& all, const roost::row_windows<place_type>& windows,
           const expected& wanted, bool nesting) {
  const auto& place = test_place();
  const std::size_t n = wanted.window.size();
  std::vector<ends> values(n), results(n);
  std::vector<double> numbers(n);
  std::vector<u32> sizes(n), firsts(n), lasts(n);
  std::size_t longest = 0, wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = {static_cast<u32>(i), static_cast<u32>(i), 1};
    numbers[i] = static_cast<double>(roost::mix64(i)) / 1e10 * (i % 7 == 0 ? -1e6 : 1);
    const auto [first, end] = wanted.window[i];
    sizes[i] = static_cast<u32>(end - first);
    firsts[i] = first == end ? none : (*wanted.list[i])[first];
    lasts[i] = first == end ? none : (*wanted.list[i])[end - 1];
    results[i] = first == end ? ends{none, none, 0} : ends{firsts[i], lasts[i], sizes[i]};
    longest = std::max(longest, end - first);
  }
  EXPECT_EQ(windows.longest, longest);
  EXPECT_TRUE(download(roost::window_sizes(place, all, windows)) == sizes);
  EXPECT_TRUE(download(roost::window_ends(place, all, windows, false)) == firsts);
  EXPECT_TRUE(download(roost::window_ends(place, all, windows, true)) == lasts);
  EXPECT_TRUE(download(roost::combine_windows(place, all, windows, upload(values), join_ends(),
                                              ends{none, none, 0})) == results);
  check_numbers(all, windows, wanted);
  if (!nesting) return;
  const auto sums =
      download(roost::combine_windows(place, all, windows, upload(numbers), roost::plus(), -1.0));
  std::map<const std::vector<u32>*, std::vector<double>> of_list;
  for (std::size_t i = 0; i < n; ++i) {
    auto& elements = of_list[wanted.list[i]];
    if (elements.empty())
      for (const u32 row : *wanted.list[i]) elements.push_back(numbers[row]);
    if (n > 5000 && i % 97 != 0) continue;
    const auto [first, end] = wanted.window[i];
    const double sum = first == end ? -1.0 : sum_of_window(elements, first, end);
    wrong += std::memcmp(&sum, &sums[i], sizeof(sum)) != 0;
  }
  EXPECT_EQ(wrong, 0u);
}

template <class By>
expected lists_of(const std::vector<u32>& keys, const std::vector<By>& by) {
  std::map<u32, std::vector<u32>> rows;
  for (std::size_t i = 0; i < keys.size(); ++i) rows[keys[i]].push_back(static_cast<u32>(i));
  expected result;
  result.lists.reserve(rows.size());
  result.window.resize(keys.size());
  result.list.resize(keys.size());
  for (auto& [key, list] : rows) {
    std::stable_sort(list.begin(), list.end(), [&](u32 a, u32 b) { return by[a] < by[b]; });
    result.lists.push_back(list);
    for (const u32 row : list) result.list[row] = &result.lists.back();
  }
  return result;
}

template <class F>
void set_windows(expected& wanted, const F& window_of) {
  for (const auto& list : wanted.lists)
    for (std::size_t k = 0; k < list.size(); ++k) wanted.window[list[k]] = window_of(list, k);
}

void check_rows(std::size_t n, u64 groups, const std::vector<roost::rows_around>& windows) {
  std::vector<u32> keys;
  for (const u64 number : random_numbers(n, n, groups)) keys.push_back(static_cast<u32>(number));
  expected wanted = lists_of(keys, std::vector<int>(n));
  const auto all = roost::group_rows(test_place(), upload(keys));
  for (const auto& rows : windows) {
    SCOPED_TRACE(testing::Message() << n << " rows, " << rows.first << " to " << rows.last);
    set_windows(wanted, [&](const auto& list, std::size_t k) {
      std::size_t first = list.size(), end = list.size();
      bool any = false;
      for (std::size_t j = 0; j < list.size(); ++j) {
        const auto apart = static_cast<std::int64_t>(j) - static_cast<std::int64_t>(k);
        if (apart < rows.first || apart > rows.last) continue;
        first = any ? first : j;
        end = j + 1;
        any = true;
      }
      return std::pair(first, end);
    });
    check(all, roost::windows_by_rows(test_place(), all, rows), wanted, true);
  }
}

TEST(windows, of_any_number_of_rows) {
  using limits = std::numeric_limits<std::int64_t>;
  const std::vector<roost::rows_around> windows{{0, 0},
                                                {-1, 0},
                                                {-31, 0},
                                                {-32, 0},
                                                {-33, 5},
                                                {-100, -70},
                                                {3, 8},
                                                {1, -1},
                                                {-1040, 30},
                                                {limits::min(), 0},
                                                {0, limits::max()},
                                                {limits::min(), limits::max()},
                                                {limits::max(), limits::max()},
                                                {limits::min(), limits::min()}};
  for (const std::size_t n : {0, 1, 31, 32, 33, 64, 65}) check_rows(n, 0, windows);
  check_rows(2000, 3, windows);
  check_rows(1500, 400, windows);
}

// Windows of several levels of blocks.
TEST(windows, of_many_rows) {
  if (sanitized) return;
  const std::size_t n = 80'000;
  const std::vector<u32> keys(n, 4);
  expected wanted = lists_of(keys, std::vector<int>(n));
  const auto all = roost::group_rows(test_place(), upload(keys));
  for (const std::int64_t before : {1100, 33'000, 70'000}) {
    set_windows(wanted, [&](const auto&, std::size_t k) {
      return std::pair(k - std::min(k, static_cast<std::size_t>(before)), k + 1);
    });
    check(all, roost::windows_by_rows(test_place(), all, {-before, 0}), wanted, true);
  }
}

template <class Time>
void check_times(std::size_t n, u64 groups, const std::vector<Time>& times) {
  using distance = typename roost::detail::order_word<Time>::distance;
  using roost::window_closed;
  std::vector<u32> keys;
  for (const u64 number : random_numbers(n, n, groups)) keys.push_back(static_cast<u32>(number));
  const auto there = upload(times);
  const auto all = roost::group_rows(test_place(), upload(keys), there);
  expected wanted = lists_of(keys, times);
  for (const auto closed :
       {window_closed::right, window_closed::left, window_closed::both, window_closed::neither}) {
    for (const auto& [before, after] : std::vector<std::pair<distance, distance>>{
             {0, 0}, {3, 0}, {0, 4}, {2, 2}, {60, 1}, {roost::detail::order_word<Time>::farthest, 0}}) {
      SCOPED_TRACE(testing::Message()
                   << n << " rows, " << before << ", " << after << ", closed " << static_cast<int>(closed));
      const bool left = closed == window_closed::left || closed == window_closed::both;
      const bool right = closed == window_closed::right || closed == window_closed::both;
      const auto is_in = [&](Time t, Time of) {
        if (t <= of) {
          const auto apart = t == of ? distance{0} : static_cast<distance>(of) - static_cast<distance>(t);
          if (!(left ? apart <= before : apart < before)) return false;
        }
        if (t >= of) {
          const auto apart = t == of ? distance{0} : static_cast<distance>(t) - static_cast<distance>(of);
          if (!(right ? apart <= after : apart < after)) return false;
        }
        return true;
      };
      set_windows(wanted, [&](const auto& list, std::size_t k) {
        std::pair<std::size_t, std::size_t> window{0, 0};
        for (std::size_t j = 0; j < list.size(); ++j) {
          if (!is_in(times[list[j]], times[list[k]])) continue;
          if (window.second == 0) window.first = j;
          window.second = j + 1;
        }
        return window;
      });
      const auto windows = roost::windows_by_time(test_place(), all, there, {before, after, closed});
      check(all, windows, wanted, false);
    }
  }
}

TEST(windows, by_time) {
  const auto with = []<class Time>(Time, double scale) {
    for (const auto& [n, groups] :
         std::vector<std::pair<std::size_t, u64>>{{0, 0}, {1, 0}, {300, 0}, {600, 9}}) {
      std::vector<Time> times;
      for (const u64 t : random_numbers(n, n + 1, n / 2))
        times.push_back(
            static_cast<Time>((static_cast<double>(t) - (std::is_signed_v<Time> ? 90 : 0)) * scale));
      check_times(n, groups, times);
    }
  };
  with(std::int64_t(), 1);
  with(u32(), 1);
  with(float(), 0.5);
  with(double(), 0.5);
  using limits = std::numeric_limits<std::int64_t>;
  check_times<std::int64_t>(6, 0,
                            {limits::min(), limits::min() + 2, -1, 0, limits::max() - 1, limits::max()});
}

TEST(windows, of_variances) {
  const std::size_t n = 3000;
  const std::vector<u32> keys(n, 1);
  std::vector<roost::moments> values;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < n; ++i) {
    numbers.push_back(1e9 + static_cast<double>(roost::mix64(i) % 1000) / 7);
    values.push_back(roost::moments::of(numbers[i]));
  }
  const auto all = roost::group_rows(test_place(), upload(keys));
  for (const std::int64_t rows : {1, 2, 20, 300}) {
    const auto windows = roost::windows_by_rows(test_place(), all, {1 - rows, 0});
    const auto found = download(
        roost::combine_windows(test_place(), all, windows, upload(values), roost::merge_moments(), {}));
    for (std::size_t i = 0; i < n; i += 37) {
      const std::size_t first = i + 1 - std::min<std::size_t>(i + 1, static_cast<std::size_t>(rows));
      long double mean = 0, squares = 0;
      for (std::size_t j = first; j <= i; ++j) mean += numbers[j];
      mean /= static_cast<long double>(i + 1 - first);
      for (std::size_t j = first; j <= i; ++j) squares += (numbers[j] - mean) * (numbers[j] - mean);
      EXPECT_EQ(found[i].count, static_cast<double>(i + 1 - first));
      EXPECT_NEAR(found[i].mean, static_cast<double>(mean), 1e-6);
      EXPECT_NEAR(found[i].squares, static_cast<double>(squares), 1e-8 * static_cast<double>(squares) + 1e-9);
      if (i == first) {
        EXPECT_TRUE(std::isnan(found[i].variance()));
      } else {
        EXPECT_NEAR(found[i].variance(), static_cast<double>(squares) / static_cast<double>(i - first),
                    1e-8 * static_cast<double>(squares));
      }
    }
  }
}

TEST(windows, refuse_times_out_of_order) {
  const auto keys = upload(std::vector<u32>{1, 1, 2});
  const auto times = upload(std::vector<double>{2, 1, 0});
  const auto all = roost::group_rows(test_place(), keys);
  using roost::invalid_argument;
  expect_error<invalid_argument>([&] { roost::windows_by_time(test_place(), all, times, {.before = 1}); },
                                 {"roost::windows_by_time", "order", "group_rows(place, keys, times)"});
  const auto ordered = roost::group_rows(test_place(), keys, times);
  expect_error<invalid_argument>(
      [&] { roost::windows_by_time(test_place(), ordered, times, {.before = -1}); },
      {"roost::windows_by_time", "below 0", "give"});
  const auto windows = roost::windows_by_time(test_place(), ordered, times, {.before = 1});
  const auto two = upload(std::vector<double>{1, 2});
  expect_error<invalid_argument>(
      [&] { roost::combine_windows(test_place(), ordered, windows, two, roost::plus(), 0.0); },
      {"roost::combine_windows", "2 values for 3 rows"});
}

}  // namespace
}  // namespace test
