#include <random>
#include <roost/columns/columns.hpp>
#include <roost/group_by.hpp>
#include <roost/two_way_index.hpp>
#include <string_view>
#include <unordered_map>

#include "support/keys.hpp"
#include "support/place.hpp"

// Groups that are numbered and reduced where their rows lie, against maps of the standard library and against
// reductions of lists, with any number of threads. Host only.

namespace test {
namespace {

namespace detail = roost::detail;

template <class Key>
struct grouped_rows {
  std::vector<Key> keys;
  std::vector<std::vector<u32>> rows;  // of each key
};

/// By first occurrence.
template <class Key>
grouped_rows<Key> oracle(const std::vector<Key>& keys) {
  grouped_rows<Key> result;
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (u32 i = 0; i < keys.size(); ++i) {
    const std::string_view bytes(reinterpret_cast<const char*>(&keys[i]), sizeof(Key));
    const auto [at, is_new] = numbers.emplace(bytes, result.keys.size());
    if (is_new) {
      result.keys.push_back(keys[i]);
      result.rows.emplace_back();
    }
    result.rows[at->second].push_back(i);
  }
  return result;
}

template <class Key>
Key key_of(u64 number) {
  if constexpr (sizeof(Key) == 8) {
    return static_cast<Key>(number * 0xD1B54A32D192ED03);  // hashed; others are of a small range
  } else if constexpr (std::is_integral_v<Key>) {
    return static_cast<Key>(number);
  } else {
    return {{number / 3, number}};
  }
}

/// The order of its calls, and of their arguments, shows in the result.
struct ordered {
  double operator()(double a, double b) const { return a - b / 3; }
};

template <class Value, class Key, class F>
void expect_reduced(const roost::host& cpu, const detail::few_rows& few, const grouped_rows<Key>& right,
                    const F& f) {
  const std::size_t n = few.numbers.size();
  std::vector<Value> values(n), in_lists, results(few.size()), wanted(few.size()), listed(n);
  std::vector<u64> offsets{0}, own_offsets(few.size() + 1);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<Value>(i * 7919 % 100003) / Value{7};
  for (const auto& rows : right.rows) {
    for (const u32 i : rows) in_lists.push_back(values[i]);
    offsets.push_back(in_lists.size());
  }
  const detail::values_at source{[&](std::size_t i) { return values[i]; }};
  detail::reduce_few(cpu, few, source, f, results.data());
  detail::reduce_lists(cpu, in_lists.data(), offsets, f, wanted.data(), nullptr);
  EXPECT_EQ(std::memcmp(results.data(), wanted.data(), results.size() * sizeof(Value)), 0);
  detail::list_few(cpu, few, source, own_offsets.data(), listed.data());
  EXPECT_EQ(own_offsets, offsets);
  EXPECT_EQ(listed, in_lists);
}

/// `bits`: keys are below 2^bits; `different`: how many of them there are about.
template <class Key>
void check(std::size_t n, std::size_t different, bool skewed, std::size_t bits = 64) {
  SCOPED_TRACE(testing::Message() << n << " rows, " << different << " keys, " << bits << " bits");
  std::mt19937_64 random(n + different);
  std::vector<Key> keys(n);
  for (auto& key : keys) {
    const u64 drawn = random() % different;
    key = key_of<Key>(skewed ? drawn % (random() % different + 1) : drawn);
  }
  const auto right = oracle(keys);
  std::uint64_t range = ~u64{0};  // of integers
  if constexpr (std::is_integral_v<Key>)
    range = bits < 64 ? u64{1} << bits
                      : *std::max_element(keys.begin(), keys.end()) -
                            *std::min_element(keys.begin(), keys.end()) + u64{1};
  const bool direct = range <= detail::direct_range_most({.rows = n});
  for (const int threads : {1, 2, 5}) {
    if (sanitized && (n > 1'000'000 ? threads != 2 : (threads == 1) != (different == 1))) continue;
    const roost::host cpu(threads);
    const auto few =
        detail::index_few<Key>(cpu, n, detail::values_at{[&](std::size_t i) { return keys[i]; }}, bits);
    const std::size_t most = detail::few_groups_most(n);
    if (n < detail::few_groups_rows || (!direct && right.keys.size() > 2 * most)) {
      EXPECT_FALSE(few);
      continue;
    }
    if (!direct && right.keys.size() > most / 2 && !few) continue;  // a sample decides
    if ((right.keys.size() > detail::few_groups_always || direct) && threads == 5 && !few) continue;
    ASSERT_TRUE(few);
    ASSERT_EQ(few->rows.size(), right.keys.size());
    std::size_t wrong = 0;
    for (std::size_t g = 0; g < right.keys.size(); ++g) {
      ASSERT_EQ(few->keys[g], right.keys[g]);
      ASSERT_EQ(few->rows.first[g], right.rows[g][0]);
      ASSERT_EQ(few->rows.counts()[g], right.rows[g].size());
      for (const u32 i : right.rows[g]) wrong += few->rows.numbers[i] != g;
    }
    EXPECT_EQ(wrong, 0u);
    expect_reduced<double>(cpu, few->rows, right, roost::plus());
    expect_reduced<double>(cpu, few->rows, right, ordered());
    expect_reduced<float>(cpu, few->rows, right, roost::maximum());
    expect_reduced<u64>(cpu, few->rows, right, roost::plus());
    expect_reduced<std::int64_t>(cpu, few->rows, right, roost::minimum());
  }
}

TEST(few_groups, are_numbered_by_first_occurrence_and_reduced_as_lists_are) {
  constexpr std::size_t least = detail::few_groups_rows;
  for (const std::size_t n :
       {std::max<std::size_t>(least, 2) - 1, least, std::size_t{20000}, std::size_t{200001}}) {
    if (sanitized && n > 100'000) continue;
    for (const bool skewed : {false, true}) {
      for (const std::size_t different : {1, 1000, 16000}) {
        if (sanitized && skewed != (different == 1000)) continue;
        check<u32>(n, different, skewed);
        check<u64>(n, different, skewed);
        check<roost::packed_key<2>>(n, different, skewed);
        check<u32>(n, different, skewed, 14);
      }
    }
  }
}

TEST(few_groups, are_more_of_more_rows) {
  if (!sanitized) check<u32>(1'300'000, 18'000, false);
  check<u32>(1'300'000, 18'000, false, 15);
  check<u32>(1'300'000, 22'000, false);
  check<u64>(1'300'000, 50'000, false);  // too many
}

TEST(few_groups, are_not_those_of_many_keys) {
  for (const std::size_t different : {17000, 60000, 1 << 30}) {
    check<u32>(sanitized ? 150001 : 300001, different, false);
    check<u64>(sanitized ? 150001 : 300001, different, true);
  }
  check<u32>(1 << 18, 1 << 15, false, 15);  // which numbers without hashing
}

TEST(few_groups, of_keys_that_somebody_chose_are_left_to_others) {
  // All begin at one slot: they differ by multiples of the inverse of what they are multiplied by.
  std::vector<u64> keys(1 << 17);
  u64 inverse = 1;
  for (int k = 0; k < 6; ++k) inverse *= 2 - 0x9E3779B97F4A7C15 * inverse;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const u64 folded = (i % 1000) * inverse;
    keys[i] = folded ^ (folded >> 32);
  }
  EXPECT_FALSE(detail::index_few<u64>(roost::host(2), keys.size(),
                                      detail::values_at{[&](std::size_t i) { return keys[i]; }}));
  const auto right = oracle(keys);
  const auto all =
      roost::unique_all(roost::host(2), keys, {roost::index_order::first_occurrence, true, true});
  EXPECT_TRUE(std::ranges::equal(all.keys, right.keys));
}

}  // namespace
}  // namespace test
