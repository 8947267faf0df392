#include <roost/join.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// The joins against two nested loops, or a map.

namespace test {
namespace {

template <class Key, class Row>
void check(const std::vector<Key>& left, const std::vector<Key>& right) {
  const auto& place = test_place();
  oracle_map<Key, std::vector<Row>> rows;
  for (std::size_t r = 0; r < right.size(); ++r) rows[right[r]].push_back(static_cast<Row>(r));
  std::vector<Row> inner_left, inner_right, outer_left, outer_right, semi, anti;
  for (std::size_t l = 0; l < left.size(); ++l) {
    const auto row = static_cast<Row>(l);
    const auto at = rows.find(left[l]);
    (at == rows.end() ? anti : semi).push_back(row);
    if (at == rows.end()) {
      outer_left.push_back(row);
      outer_right.push_back(roost::no_row<Row>);
      continue;
    }
    for (const Row r : at->second) {
      inner_left.push_back(row);
      inner_right.push_back(r);
      outer_left.push_back(row);
      outer_right.push_back(r);
    }
  }
  const auto left_keys = upload(left), right_keys = upload(right);
  const auto inner = roost::inner_join<Row>(place, left_keys, right_keys);
  EXPECT_TRUE(download(inner.left) == inner_left);
  EXPECT_TRUE(download(inner.right) == inner_right);
  const auto outer = roost::left_join<Row>(place, left_keys, right_keys);
  EXPECT_TRUE(download(outer.left) == outer_left);
  EXPECT_TRUE(download(outer.right) == outer_right);
  EXPECT_TRUE(download(roost::semi_join<Row>(place, left_keys, right_keys)) == semi);
  EXPECT_TRUE(download(roost::anti_join<Row>(place, left_keys, right_keys)) == anti);
}

template <class Key>
class join : public testing::Test {};
using keys = axis<u32, u64, sixteen>;
TYPED_TEST_SUITE(join, keys);

TYPED_TEST(join, of_columns_of_any_length) {
  for (const auto& [n, m] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 0}, {0, 5}, {5, 0}, {1, 1}, {100, 1000}, {3000, 200}, {20000, 20000}}) {
    check<TypeParam, u32>(from_numbers<TypeParam>(random_numbers(n, 1, n + m)),
                          from_numbers<TypeParam>(random_numbers(m, 2, n + m)));
  }
}

TYPED_TEST(join, of_columns_with_many_copies) {
  check<TypeParam, u64>(from_numbers<TypeParam>(random_numbers(300, 1, 20)),
                        from_numbers<TypeParam>(random_numbers(5000, 2, 25)));
  check<TypeParam, u32>(std::vector<TypeParam>(70, from_number<TypeParam>(9)),
                        std::vector<TypeParam>(3000, from_number<TypeParam>(9)));
}

TYPED_TEST(join, of_columns_that_share_all_or_nothing) {
  const auto some = from_numbers<TypeParam>(multiples(5000, 2)),
             others = from_numbers<TypeParam>(multiples(5000, 2, 1));
  check<TypeParam, u32>(some, some);
  check<TypeParam, u32>(some, others);
}

// A sample of the right side has no key twice, but the whole has.
TYPED_TEST(join, of_a_column_with_one_copy) {
  const auto left = from_numbers<TypeParam>(multiples(9000, 3));
  auto right = from_numbers<TypeParam>(multiples(9000, 2));
  for (const std::size_t copied : {std::size_t{0}, std::size_t{4500}, right.size() - 1}) {
    right.push_back(right[copied]);
    check<TypeParam, u32>(left, right);
    right.pop_back();
  }
}

// Most rows of the right side have one key.
TEST(join_calls, of_a_frequent_key) {
  std::vector<u64> right = random_numbers(700'000, 5, 2'000'000);
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (i % 3 != 0) right[i] = 1;
  }
  check<u64, u32>({1, 2, right[3], ~u64{0}, 1}, right);
}

TEST(join_calls, refuse_rows_that_cannot_be_numbered) {
  const auto many = upload(std::vector<u32>(70000, 1)), one = upload(std::vector<u32>(1, 1));
  for (const auto& call : std::vector<void (*)(const memory_of<u32>&, const memory_of<u32>&)>{
           [](const auto& a, const auto& b) {
             static_cast<void>(roost::inner_join<std::uint16_t>(test_place(), a, b));
           },
           [](const auto& a, const auto& b) {
             static_cast<void>(roost::left_join<std::uint16_t>(test_place(), b, a));
           },
           [](const auto& a, const auto& b) {
             static_cast<void>(roost::semi_join<std::uint16_t>(test_place(), a, b));
           },
           [](const auto& a, const auto& b) {
             static_cast<void>(roost::anti_join<std::uint16_t>(test_place(), a, b));
           }}) {
    EXPECT_THROW(call(many, one), roost::invalid_argument);
    EXPECT_THROW(call(upload(std::vector<u32>(65536, 1)), one), roost::invalid_argument);
    EXPECT_NO_THROW(call(upload(std::vector<u32>(65535, 1)), one)) << "the greatest number is no row's";
  }
}

TEST(join_calls, say_how_many_pairs_find_no_memory) {
  const auto many = upload(std::vector<u32>(300000, 1));
  try {
    static_cast<void>(roost::inner_join(test_place(), many, many));
    FAIL() << "9 * 10^10 pairs";
  } catch (const roost::out_of_memory& e) {
    EXPECT_NE(std::string(e.what()).find("90000000000"), std::string::npos) << e.what();
  }
}

// Rows of 2^40 bytes: two copies of the place's memory would be granted one after the other, and not be
// there.
TEST(join_calls, of_more_rows_than_memory_leave_nothing_behind) {
  const auto left = upload(std::vector<u64>(1 << 18, 1)), right = upload(std::vector<u64>(1 << 19, 1));
  const std::size_t before = test_memory().live_bytes();
  const auto refuses = [](const auto& call) {
    expect_error<roost::out_of_memory>(call, {"_join: ", "137438953472 matches of 8 bytes", "fewer queries"});
  };
  refuses([&] { static_cast<void>(roost::inner_join(test_place(), left, right)); });
  refuses([&] { static_cast<void>(roost::left_join(test_place(), left, right)); });
  EXPECT_EQ(test_memory().live_bytes(), before);
}

#if !defined(__CUDACC__)
TEST(join_calls, compare_all_of_their_rows_with_the_memory_of_the_machine) {
  const std::size_t all = roost::detail::bytes_of_host();
  const roost::host place(2);
  const std::vector<u64> left(1 << 18, 1), right(1 << 19, 1);
  expect_error<roost::out_of_memory>([&] { static_cast<void>(roost::inner_join(place, left, right)); },
                                     {"1099511627776 bytes", std::to_string(all)});
  // Either array by itself would be granted.
  const std::size_t n = all / 6;
  expect_error<roost::out_of_memory>(
      [&] { static_cast<void>(roost::detail::room_for_matches<u32, u32>(place, n, "here")); },
      {"here: ", std::to_string(n), std::to_string(8 * n), std::to_string(all)});
  const auto [some, others] = roost::detail::room_for_matches<u32, u64>(place, 10, "here");
  EXPECT_EQ(some.size() + others.size(), 20u);
}
#endif

}  // namespace
}  // namespace test
