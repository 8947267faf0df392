#include <cstring>
#include <limits>
#include <optional>
#include <roost/ordered/asof_join.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// asof_join against a loop over all right rows of the key.

namespace test {
namespace {

template <class Time>
using distance_of = typename roost::detail::order_word<Time>::distance;

template <class Time>
distance_of<Time> distance(Time a, Time b) {
  if (a == b) return 0;
  if constexpr (std::is_floating_point_v<Time>) {
    return a < b ? b - a : a - b;
  } else {
    return a < b ? static_cast<u64>(b) - static_cast<u64>(a) : static_cast<u64>(a) - static_cast<u64>(b);
  }
}

template <class Key, class Time>
struct table {
  std::vector<Key> keys;
  std::vector<Time> times;
};

/// The row that one left row takes, of the right rows of its key.
template <class Time>
std::optional<std::size_t> row_of(Time t, const std::vector<Time>& times,
                                  const std::vector<std::size_t>& rows,
                                  const roost::asof_options<Time>& options) {
  std::optional<std::size_t> before, after;
  for (const std::size_t r : rows) {
    if (times[r] == t && !options.allow_exact) continue;
    if (times[r] <= t && (!before || times[r] >= times[*before])) before = r;
    if (times[r] >= t && (!after || times[r] < times[*after])) after = r;
  }
  std::optional<std::size_t> found = options.direction == roost::asof_direction::backward ? before : after;
  if (options.direction == roost::asof_direction::nearest && before &&
      (!after || distance(t, times[*before]) <= distance(t, times[*after])))
    found = before;
  if (found && !(distance(t, times[*found]) <= options.tolerance)) found.reset();
  return found;
}

template <class Key, class Time, class Row = u32>
void check(const table<Key, Time>& left, const table<Key, Time>& right,
           const std::vector<distance_of<Time>>& tolerances) {
  oracle_map<Key, std::vector<std::size_t>> rows_of;
  for (std::size_t r = 0; r < right.keys.size(); ++r) rows_of[right.keys[r]].push_back(r);
  const auto left_keys = upload(left.keys), right_keys = upload(right.keys);
  const auto left_times = upload(left.times), right_times = upload(right.times);
  const auto is_one = [&](const Key& key) { return std::memcmp(&key, left.keys.data(), sizeof(Key)) == 0; };
  const bool one_key = !left.keys.empty() && std::all_of(left.keys.begin(), left.keys.end(), is_one) &&
                       std::all_of(right.keys.begin(), right.keys.end(), is_one);
  using roost::asof_direction;
  for (const auto direction : {asof_direction::backward, asof_direction::forward, asof_direction::nearest}) {
    for (const bool exact : {true, false}) {
      for (const auto tolerance : tolerances) {
        const roost::asof_options<Time> options{direction, exact, tolerance};
        std::vector<Row> wanted;
        for (std::size_t l = 0; l < left.keys.size(); ++l) {
          const auto row = row_of(left.times[l], right.times, rows_of[left.keys[l]], options);
          wanted.push_back(row ? static_cast<Row>(*row) : roost::no_row<Row>);
        }
        EXPECT_TRUE(download(roost::asof_join<Row>(test_place(), left_keys, left_times, right_keys,
                                                   right_times, options)) == wanted)
            << left.keys.size() << " and " << right.keys.size() << " rows, direction "
            << static_cast<int>(direction) << ", exact " << exact << ", tolerance " << tolerance;
        if (one_key) {
          EXPECT_TRUE(download(roost::asof_join<Row>(test_place(), left_times, right_times, options)) ==
                      wanted)
              << left.keys.size() << " and " << right.keys.size() << " rows without keys";
        }
      }
    }
  }
}

enum class order { ascending, of_each_key, none };

/// Rows with a few rows for each time.
template <class Key, class Time>
table<Key, Time> random_table(std::size_t n, u64 seed, u64 keys, order order) {
  table<Key, Time> all;
  const auto numbers = random_numbers(n, seed, keys), times = random_numbers(n, seed + 1, n / 2 + 3);
  std::vector<u64> in_order = times;
  std::sort(in_order.begin(), in_order.end());
  for (std::size_t i = 0; i < n; ++i) {
    all.keys.push_back(from_number<Key>(numbers[i]));
    u64 t = order == order::none ? times[i] : in_order[i];
    if (order == order::of_each_key) t += numbers[i] % 7 * 1000;  // each key has its own clock
    all.times.push_back(static_cast<Time>(static_cast<Time>(t) - static_cast<Time>(n / 4)));
  }
  return all;
}

template <class Key>
class asof_join : public testing::Test {};
using keys = axis<u32, u64, sixteen>;
TYPED_TEST_SUITE(asof_join, keys);

TYPED_TEST(asof_join, of_rows_in_any_order) {
  using time = std::int64_t;
  for (const auto right_order : {order::ascending, order::of_each_key, order::none}) {
    for (const auto& [n, m, groups] :
         std::vector<std::tuple<std::size_t, std::size_t, u64>>{{0, 0, 1},
                                                                {0, 5, 2},
                                                                {5, 0, 2},
                                                                {1, 1, 1},
                                                                {100, 1000, 7},
                                                                {3000, 200, 40},
                                                                {9000, 9000, 2500}}) {
      check<TypeParam, time>(random_table<TypeParam, time>(n, 1, groups, order::none),
                             random_table<TypeParam, time>(m, 5, groups, right_order), {~u64{0}, 0, 3});
    }
  }
}

// A host walks over sides that are in the order of time and have few keys, in spans of 2^15 rows and more.
TYPED_TEST(asof_join, of_sides_in_order) {
  using time = std::int64_t;
  using sizes = std::vector<std::tuple<std::size_t, std::size_t, u64>>;
  for (const auto& [n, m, groups] :
       sanitized
           ? sizes{{70'000, 70'000, 2000}}
           : sizes{
                 {140'000, 1000, 90}, {1000, 140'000, 90}, {70'000, 80'000, 1000}, {140'000, 9000, 20'000}}) {
    check<TypeParam, time>(random_table<TypeParam, time>(n, 1, groups, order::ascending),
                           random_table<TypeParam, time>(m, 5, groups, order::ascending), {~u64{0}, 0, 40});
  }
  for (const auto& [n, m] : std::vector<std::pair<std::size_t, std::size_t>>{
           {1, 1}, {700, 900}, {sanitized ? 9000 : 90'000, 20}, {20, sanitized ? 9000 : 90'000}}) {
    check<TypeParam, double>(random_table<TypeParam, double>(n, 1, 1, order::ascending),
                             random_table<TypeParam, double>(m, 5, 1, order::ascending), {1e300, 0, 1});
  }
}

TYPED_TEST(asof_join, of_one_key_and_of_all_different_ones) {
  using time = std::int32_t;
  for (const auto right_order : {order::ascending, order::none}) {
    check<TypeParam, time>(random_table<TypeParam, time>(700, 1, 1, order::none),
                           random_table<TypeParam, time>(900, 2, 1, right_order), {~u64{0}, 1});
  }
  table<TypeParam, time> left{from_numbers<TypeParam>(multiples(5000, 2)), std::vector<time>(5000, 7)},
      right{from_numbers<TypeParam>(multiples(5000, 3)), std::vector<time>(5000, 7)};
  check<TypeParam, time>(left, right, {~u64{0}, 0});
}

TEST(asof_join_times, of_all_types) {
  const auto with = []<class Time>(Time) {
    check<u32, Time, u64>(random_table<u32, Time>(800, 1, 9, order::none),
                          random_table<u32, Time>(900, 3, 9, order::none),
                          {roost::detail::order_word<Time>::farthest, 0, 2});
  };
  with(std::int64_t());
  with(u64());
  with(u32());
  with(float());
  with(double());
}

// A row and its time are one number, if both have room in 64 bits.
TEST(asof_join_times, of_spans_that_fit_beside_the_rows_or_do_not) {
  const auto beside = [](u64 bits, std::size_t n, std::size_t m, order right_order, u64 keys) {
    for (const u64 span : {(u64{1} << bits) - 1, u64{1} << bits}) {
      auto left = random_table<u64, std::int64_t>(n, 1, keys, order::none),
           right = random_table<u64, std::int64_t>(m, 3, keys, right_order);
      const auto least = std::min(*std::min_element(left.times.begin(), left.times.end()),
                                  *std::min_element(right.times.begin(), right.times.end()));
      right.times.back() = least + static_cast<std::int64_t>(span);  // the greatest one
      check<u64, std::int64_t>(left, right, {~u64{0}, 2, span - 1});
      left.times[n / 2] = right.times.back();
      right.times.back() = least;
      check<u64, std::int64_t>(left, right, {~u64{0}, span});
    }
  };
  for (const u64 keys : {1, 9}) {
    for (const auto right_order : {order::ascending, order::of_each_key, order::none}) {
      beside(64 - 10, 500, 524, right_order, keys);  // rows 0 to 1023
      beside(64 - 11, 500, 525, right_order, keys);
    }
  }
}

TEST(asof_join_times, at_the_ends_of_their_types) {
  using limits = std::numeric_limits<std::int64_t>;
  const table<u32, std::int64_t> ends{
      {1, 1, 1, 1, 1, 2, 2},
      {limits::min(), limits::max(), 0, -1, limits::min() + 1, limits::max(), limits::min()}};
  check<u32, std::int64_t>(ends, ends, {~u64{0}, 0, 1, u64{1} << 63, ~u64{0} - 1});
  const double infinity = std::numeric_limits<double>::infinity();
  const table<u32, double> floats{{1, 1, 1, 1, 1, 1, 2},
                                  {-infinity, infinity, 0.0, -0.0, 5e-324, -5e-324, infinity}};
  check<u32, double>(floats, floats, {infinity, 0.0, 1e-323});
}

// More rows of a key than one team has, and more keys than one.
TEST(asof_join_calls, of_many_rows) {
  const std::size_t n = sanitized ? 20'000 : 300'000;
  for (const u64 groups : {u64{3}, u64{1000}, u64{n}}) {
    const auto keys = random_numbers(n, 1, groups), times = random_numbers(n, 2, 4 * n);
    std::vector<u64> in_order = times;
    std::sort(in_order.begin(), in_order.end());
    oracle_map<u64, u32> last;
    std::vector<u32> wanted(n, roost::no_row<u32>);
    for (std::size_t i = 0; i < n; ++i) {  // every second row is a right one
      if (i % 2 == 0) {
        last[keys[i]] = static_cast<u32>(i / 2);
      } else if (const auto at = last.find(keys[i]); at != last.end()) {
        wanted[i / 2] = at->second;
      }
    }
    std::vector<u64> side_keys[2], side_times[2];
    for (std::size_t i = 0; i < n; ++i) {
      side_keys[i % 2].push_back(keys[i]);
      side_times[i % 2].push_back(in_order[i] + i);  // strictly ascending
    }
    wanted.resize(side_keys[1].size());
    EXPECT_TRUE(download(roost::asof_join(test_place(), upload(side_keys[1]), upload(side_times[1]),
                                          upload(side_keys[0]), upload(side_times[0]))) == wanted)
        << groups;
  }
}

TEST(asof_join_calls, refuse_what_has_no_answer) {
  const auto keys = upload(std::vector<u32>{1, 2}), one = upload(std::vector<u32>{1});
  const auto times = upload(std::vector<double>{1, 2}),
             bad = upload(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()});
  const auto join = [&](const auto& left_times, const auto& right_times, double tolerance) {
    static_cast<void>(
        roost::asof_join(test_place(), keys, left_times, keys, right_times, {.tolerance = tolerance}));
  };
  using roost::invalid_argument;
  expect_error<invalid_argument>([&] { join(bad, times, 1); },
                                 {"roost::asof_join", "1 of 2", "NaN", "leave"});
  expect_error<invalid_argument>([&] { join(times, bad, 1); },
                                 {"roost::asof_join", "1 of 2", "NaN", "leave"});
  expect_error<invalid_argument>([&] { join(times, times, -1); }, {"roost::asof_join", "tolerance", "give"});
  expect_error<invalid_argument>(
      [&] { static_cast<void>(roost::asof_join(test_place(), one, times, keys, times)); },
      {"roost::asof_join", "1 keys but 2 values"});
  const auto many = upload(std::vector<u32>(70000, 1));
  expect_error<invalid_argument>(
      [&] { static_cast<void>(roost::asof_join<u16>(test_place(), one, one, many, many)); },
      {"roost::asof_join", "70000 rows", "larger type"});
}

}  // namespace
}  // namespace test
