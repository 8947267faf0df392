#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <roost/ids/group_ids.hpp>
#include <roost/ids/reduce_rows.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// reduce_rows against the rule of its docstring, bit by bit.

namespace test {
namespace {

using roost::row_reduction;

constexpr row_reduction all_reductions[] = {row_reduction::sum, row_reduction::mean, row_reduction::product,
                                            row_reduction::least, row_reduction::greatest};

template <class Value>
struct oracle {
  using sum = std::conditional_t<sizeof(Value) == 2, float, Value>;

  static sum number(Value x) {
    if constexpr (sizeof(Value) == 2) {
      return roost::detail::to_float(x);
    } else {
      return x;
    }
  }
  static Value stored(sum x) {
    if constexpr (sizeof(Value) == 2) {
      return roost::detail::from_float<Value>(x);
    } else {
      return x;
    }
  }
  static sum both(row_reduction how, sum a, sum b) {
    if constexpr (std::is_integral_v<Value>) {
      using bits = std::make_unsigned_t<Value>;
      if (how == row_reduction::product) return static_cast<sum>(static_cast<bits>(a) * static_cast<bits>(b));
      if (how == row_reduction::least) return std::min(a, b);
      if (how == row_reduction::greatest) return std::max(a, b);
      return static_cast<sum>(static_cast<bits>(a) + static_cast<bits>(b));
    } else {
      const bool extreme = how == row_reduction::least || how == row_reduction::greatest;
      if (extreme && (std::isnan(a) || std::isnan(b))) return std::numeric_limits<sum>::quiet_NaN();
      if (how == row_reduction::product) return a * b;
      if (extreme && a == b) return std::signbit(a) == (how == row_reduction::least) ? a : b;  // of zeros
      if (how == row_reduction::least) return std::min(a, b);
      if (how == row_reduction::greatest) return std::max(a, b);
      return a + b;
    }
  }
  static sum divided(sum x, std::size_t n) {
    if constexpr (std::is_integral_v<Value>) {
      return static_cast<sum>(std::floor(static_cast<long double>(x) / static_cast<long double>(n)));
    } else {
      return x / static_cast<sum>(n);
    }
  }
  /// Pieces of 32, until one number is left.
  static sum reduced(row_reduction how, std::vector<sum> numbers) {
    while (numbers.size() > 1) {
      std::vector<sum> pieces;
      for (std::size_t i = 0; i < numbers.size(); i += 32) {
        sum piece = numbers[i];
        for (std::size_t j = i + 1; j < std::min(i + 32, numbers.size()); ++j)
          piece = both(how, piece, numbers[j]);
        pieces.push_back(piece);
      }
      numbers = std::move(pieces);
    }
    return numbers[0];
  }
};

template <class Value, class Id>
struct reduction_case {
  std::size_t width, groups;
  std::vector<Id> ids;
  roost::reduction_options options;
  std::size_t misaligned = 0;  // numbers

  void check() const {
    using sum = typename oracle<Value>::sum;
    std::mt19937_64 random(ids.size() * 31 + width);
    const auto number = [&] {
      const u64 bits = random();
      if constexpr (std::is_integral_v<Value>) {
        return static_cast<Value>(bits);
      } else {
        // Most of them have products that neither overflow nor vanish.
        const auto x = static_cast<sum>(0.5 + static_cast<double>(bits % 4096) / 4096);
        return oracle<Value>::stored(bits >> 60 == 0 ? static_cast<sum>(-1e4) * x : x);
      }
    };
    std::vector<Value> rows(ids.size() * width), out(groups * width + misaligned);
    for (auto& x : rows) x = number();
    for (auto& x : out) x = number();
    std::vector<Value> expected = out;
    std::map<Id, std::vector<std::size_t>> of_id;
    for (std::size_t i = 0; i < ids.size(); ++i) of_id[ids[i]].push_back(i);
    for (const auto& [id, positions] : of_id) {
      if (id < 0 || static_cast<std::size_t>(id) >= groups) continue;
      for (std::size_t c = 0; c < width; ++c) {
        std::vector<sum> numbers;
        for (const std::size_t i : positions) numbers.push_back(oracle<Value>::number(rows[i * width + c]));
        sum result = oracle<Value>::reduced(options.how, numbers);
        Value& target = expected[misaligned + static_cast<std::size_t>(id) * width + c];
        const sum before = oracle<Value>::number(target);
        const auto scale = static_cast<sum>(options.scale);
        if (!std::is_integral_v<Value> && options.how == row_reduction::sum && scale != 1) {
          result = options.with_output ? std::fma(result, scale, before) : result * scale;
        } else if (options.with_output) {
          result = oracle<Value>::both(options.how, before, result);
        }
        if (options.how == row_reduction::mean)
          result = oracle<Value>::divided(result, positions.size() + (options.with_output ? 1 : 0));
        target = oracle<Value>::stored(result);
      }
    }
    const auto there = roost::copy_to(test_place(), out), rows_there = roost::copy_to(test_place(), rows);
    auto target = roost::array<Value, place_type>(test_place(), out.size());
    test_place().copy(target.data(), there.data(), there.bytes());
    auto wrong = roost::detail::zeros(test_place(), 1);
    roost::reduction_options with_word = options;
    with_word.wrong = wrong.data();
    roost::reduce_rows(test_place(), roost::copy_to(test_place(), ids).span(), rows_there.span(), width,
                       target.span().subspan(misaligned), with_word);
    const auto got = roost::copy_to_host(test_place(), target);
    const auto flag = roost::copy_to_host(test_place(), wrong)[0];
    const auto is_wrong = [&](Id id) { return id < 0 || static_cast<std::size_t>(id) >= groups; };
    const auto first = std::find_if(ids.begin(), ids.end(), is_wrong);
    if (first == ids.end()) {
      EXPECT_EQ(flag, 0u);
    } else if (std::is_same_v<place_type, roost::host>) {
      EXPECT_EQ(~flag, static_cast<std::size_t>(first - ids.begin()));
    } else {
      ASSERT_LT(~flag, ids.size());
      EXPECT_TRUE(is_wrong(ids[~flag]));
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(Value)), 0)
          << ids.size() << " ids, " << groups << " groups of " << width << ", how "
          << static_cast<int>(options.how) << ", number " << i;
    }
  }
};

template <class Id>
std::vector<Id> ids_of(std::size_t n, std::size_t groups, bool skewed, bool wrong) {
  std::mt19937_64 random(n + groups);
  std::vector<Id> ids(n);
  for (auto& id : ids) {
    const double r = static_cast<double>(random() % 65536) / 65536;
    id = static_cast<Id>((skewed ? std::pow(r, 8) : r) * static_cast<double>(groups));
    if (wrong && random() % 16 == 0) id = static_cast<Id>(random() % 2 == 0 ? -1 : static_cast<Id>(groups));
  }
  return ids;
}

template <class Value>
class reduce_rows : public testing::Test {};
using reduced_values =
    testing::Types<float, double, roost::float16, roost::bfloat16, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(reduce_rows, reduced_values);

TYPED_TEST(reduce_rows, results_are_those_of_the_rule) {
  for (const std::size_t width : {1, 3, 4, 40}) {
    for (const std::size_t n : {0, 1, 31, 33, 1000, sanitized ? 1100 : 40'000}) {
      for (const std::size_t groups : {1, 7, 300, 5000}) {
        const std::size_t which = n + groups + width;
        const roost::reduction_options options{.how = all_reductions[which % 5],
                                               .with_output = which % 2 == 0,
                                               .scale = which % 3 == 0 ? 0.75 : 1};
        reduction_case<TypeParam, std::int64_t>{
            width, groups, ids_of<std::int64_t>(n, groups, which % 4 < 2, which % 3 == 1), options}
            .check();
      }
    }
  }
}

TYPED_TEST(reduce_rows, each_reduction_of_runs_of_each_length) {
  std::vector<std::int32_t> ids;
  std::int32_t id = 0;
  for (const std::size_t length : {1, 31, 32, 33, 2, 63, 64, 65, 1, 95, 97, 1023, 1024, 1025, 47, 48, 3000})
    ids.insert(ids.end(), length, id++);
  for (const bool shuffled : {false, true}) {
    if (shuffled) std::shuffle(ids.begin(), ids.end(), std::mt19937_64(7));
    for (const auto how : all_reductions) {
      for (const bool with_output : {false, true}) {
        if (sanitized && with_output == shuffled) continue;
        for (const std::size_t width : {1, 8}) {
          const roost::reduction_options options{.how = how, .with_output = with_output};
          reduction_case<TypeParam, std::int32_t>{width, static_cast<std::size_t>(id) + 1, ids, options}
              .check();
          reduction_case<TypeParam, std::int32_t>{width, 20'000, ids, options}.check();
        }
      }
    }
  }
}

TYPED_TEST(reduce_rows, numbers_of_runs_longer_than_tiles) {
  std::vector<std::int64_t> ids;
  std::int64_t id = 0;
  for (const std::size_t length : {70'000, 1, 2047, 2049, 1, 1, 4096, 33, 2000, 15, 32'800})
    ids.insert(ids.end(), length, id++);
  for (const auto how : all_reductions) {
    const roost::reduction_options options{.how = how, .with_output = how != row_reduction::mean};
    reduction_case<TypeParam, std::int64_t>{1, static_cast<std::size_t>(id), ids, options}.check();
  }
}

TYPED_TEST(reduce_rows, rows_that_are_not_aligned) {
  reduction_case<TypeParam, std::int64_t>{8, 50, ids_of<std::int64_t>(500, 50, true, false), {}, 1}.check();
}

TEST(reduce_rows_once, a_nan_is_the_least_and_the_greatest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows{1, nan, 3, 2, nan, -1}, out{5, 5, 5, 5};
  const std::vector<std::int64_t> ids{0, 0, 0, 1, 2, 2};
  for (const auto how : {row_reduction::least, row_reduction::greatest}) {
    auto target = roost::copy_to(test_place(), out);
    auto wrong = roost::detail::zeros(test_place(), 1);
    roost::reduce_rows(test_place(), roost::copy_to(test_place(), ids).span(),
                       roost::copy_to(test_place(), rows).span(), 1, target.span(),
                       {.how = how, .wrong = wrong.data()});
    const auto got = roost::copy_to_host(test_place(), target);
    EXPECT_TRUE(std::isnan(got[0]));
    EXPECT_EQ(got[1], how == row_reduction::least ? 2 : 5);
    EXPECT_TRUE(std::isnan(got[2]));
    EXPECT_EQ(got[3], 5);
  }
}

TEST(reduce_rows_once, minus_zero_is_less_than_zero) {
  const std::vector<std::int64_t> ids{0, 0, 1, 1, 2};
  for (const std::size_t width : {1, 4}) {
    for (const double zero : {0.0, -0.0}) {
      std::vector<double> rows, out(4 * width, zero);
      for (const double x : {0.0, -0.0, -0.0, 0.0, -zero}) rows.insert(rows.end(), width, x);
      for (const auto how : {row_reduction::least, row_reduction::greatest}) {
        auto target = roost::copy_to(test_place(), out);
        auto wrong = roost::detail::zeros(test_place(), 1);
        roost::reduce_rows(test_place(), roost::copy_to(test_place(), ids).span(),
                           roost::copy_to(test_place(), rows).span(), width, target.span(),
                           {.how = how, .wrong = wrong.data()});
        const auto got = roost::copy_to_host(test_place(), target);
        for (std::size_t i = 0; i < 3 * width; ++i)
          EXPECT_EQ(std::signbit(got[i]), how == row_reduction::least);
        EXPECT_EQ(std::signbit(got[3 * width]), std::signbit(zero));
      }
    }
  }
}

TEST(reduce_rows_once, too_many_ids_or_rows_are_refused) {
  constexpr std::size_t most = 0xffffffff;
  std::uint64_t word = 0;
  std::int64_t id = 0;
  float number = 0;
  const auto call = [&](std::size_t n, std::size_t groups) {  // of memory that is not there: it is not read
    roost::reduce_rows(test_place(), std::span<const std::int64_t>(&id, n),
                       std::span<const float>(&number, n), 1, std::span<float>(&number, groups),
                       {.wrong = &word});
  };
  EXPECT_THROW(call(most, 1), roost::invalid_argument);
  EXPECT_THROW(call(0, most), roost::invalid_argument);
  EXPECT_NO_THROW(call(0, most - 1));
  const auto group = [&](std::size_t n, std::size_t groups) {
    roost::group_ids(test_place(), std::span<const std::int64_t>(&id, n), groups, {&id, &id, nullptr, &word});
  };
  EXPECT_THROW(group(most, 1), roost::invalid_argument);
  EXPECT_THROW(group(0, most), roost::invalid_argument);
}

TEST(reduce_rows_once, sizes_that_do_not_match_are_refused) {
  const roost::array<float, place_type> rows(test_place(), 12);
  roost::array<float, place_type> out(test_place(), 9);
  const roost::array<std::int64_t, place_type> ids(test_place(), 4);
  auto wrong = roost::detail::zeros(test_place(), 1);
  const auto call = [&](std::size_t width) {
    roost::reduce_rows(test_place(), ids.span(), rows.span(), width, out.span(), {.wrong = wrong.data()});
  };
  EXPECT_THROW(call(2), roost::invalid_argument);
  EXPECT_THROW(call(4), roost::invalid_argument);
  EXPECT_THROW(roost::reduce_rows(test_place(), ids.span(), rows.span(), 3, out.span(), {}),
               roost::invalid_argument);
}

}  // namespace
}  // namespace test
