#ifndef __CUDACC__  // the command's own test runs it on both places

#include "apps/text/fields.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Fields are joined and counted by what they say, even where a hash cannot tell them apart.

namespace test {
namespace {

namespace tools = roost::tools;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using texts = std::vector<std::string>;
using pairs = std::vector<std::pair<u32, u32>>;

constexpr u32 none = roost::no_row<u32>;

using views = std::vector<std::string_view>;

// Hashes that are bad for the first seeds: all fields have one key, or those of one length have.
tools::text_key one_key(std::string_view text, u64 seed) {
  return seed < 3 ? tools::text_key{} : tools::hash_text(text, seed);
}
tools::text_key key_of_length(std::string_view text, u64 seed) {
  return seed < 2 ? tools::text_key{text.size(), 0} : tools::hash_text(text, seed);
}
tools::text_key always_one_key(std::string_view, u64) { return {}; }

/// What use(tables) returns, which is the same with each kind of tables.
template <class Use>
auto with_each_tables(const Use& made_with) {
  decltype(made_with(std::declval<const tools::key_tables&>())) result;
  tools::use_tables_on_host(2, [&](const tools::key_tables& tables) { result = made_with(tables); });
  static int calls = 0;
  constexpr int times_slower = 20;
  if (calls++ % times_slower != 0) return result;
  const auto use = [&](const tools::key_tables& tables) { EXPECT_EQ(made_with(tables), result); };
  tools::use_limited_tables_on_host(2, {.device_bytes = std::size_t{6} << 20}, [&](const auto& limited) {
    use(limited);
    tools::use_tables_on_host(2, [&](const tools::key_tables& whole) {
      constexpr std::size_t of_a_few_keys = 2000;
      use(tools::tables_by_size(whole, limited, of_a_few_keys));
    });
  });
  return result;
}

constexpr tools::text_hash hashes[] = {tools::hash_text, one_key, key_of_length};

/// What a join gives, `most` pairs at a time, with the left side in one piece or in two.
pairs join(tools::join_kind kind, const texts& left, const texts& right, tools::text_hash hash,
           std::size_t most = tools::matches_at_once, tools::empty_keys empty = tools::empty_keys::match) {
  const views a(left.begin(), left.end()), b(right.begin(), right.end());
  const bool both = kind != tools::join_kind::semi && kind != tools::join_kind::anti;
  return with_each_tables([&](const tools::key_tables& tables) {
    pairs result;
    const roost::host cpu(2);
    const tools::field_matcher matcher(cpu, tables, b, {kind, empty, 1, hash, most});
    const std::size_t pieces = most % 2 == 0 ? 1 : 2;
    for (std::size_t i = 0, end; i < pieces; ++i) {
      const auto first = i * a.size() / pieces;
      end = (i + 1) * a.size() / pieces;
      matcher.match(std::span(a).subspan(first, end - first), [&](const tools::matches& found) {
        EXPECT_EQ(found.right.size(), both ? found.left.size() : 0u);
        for (std::size_t k = 0; k < found.left.size(); ++k)
          result.emplace_back(found.left[k] + first, both ? found.right[k] : none);
      });
    }
    return result;
  });
}

/// The same, each field with each.
pairs expected(tools::join_kind kind, const texts& left, const texts& right,
               tools::empty_keys empty = tools::empty_keys::match) {
  pairs result;
  for (u32 l = 0; l < left.size(); ++l) {
    pairs here;
    for (u32 r = 0; r < right.size(); ++r) {
      const bool may = empty == tools::empty_keys::match || !left[l].empty();
      if (may && left[l] == right[r]) here.emplace_back(l, r);
    }
    if (kind == tools::join_kind::semi && !here.empty()) here = {{l, none}};
    if (kind == tools::join_kind::anti) here = here.empty() ? pairs{{l, none}} : pairs{};
    const bool outer = kind == tools::join_kind::left || kind == tools::join_kind::outer;
    if (outer && here.empty()) here = {{l, none}};
    result.insert(result.end(), here.begin(), here.end());
  }
  return result;
}

using counts = std::vector<std::pair<std::string, u64>>;

counts count(const texts& fields, tools::text_hash hash) {
  const views column(fields.begin(), fields.end());
  return with_each_tables([&](const tools::key_tables& tables) {
    counts result;
    const auto found = count_fields(roost::host(2), tables, column, {}, hash);
    for (std::size_t i = 0; i < found.rows.size(); ++i)
      result.emplace_back(fields[found.rows[i]], found.counts[i]);
    return result;
  });
}

counts expected(const texts& fields) {
  counts result;
  for (const auto& field : fields) {
    const auto found = std::ranges::find(result, field, &counts::value_type::first);
    found == result.end() ? static_cast<void>(result.emplace_back(field, 1))
                          : static_cast<void>(++found->second);
  }
  return result;
}

constexpr tools::join_kind kinds[] = {tools::join_kind::inner, tools::join_kind::left,
                                      tools::join_kind::outer, tools::join_kind::semi,
                                      tools::join_kind::anti};

void expect_joined(const texts& left, const texts& right) {
  for (const auto hash : hashes) {
    for (const auto kind : kinds) {
      for (const std::size_t most : {std::size_t{1}, std::size_t{7}, tools::matches_at_once}) {
        for (const auto empty : {tools::empty_keys::match, tools::empty_keys::never}) {
          EXPECT_EQ(join(kind, left, right, hash, most, empty), expected(kind, left, right, empty))
              << static_cast<int>(kind) << ", " << most << " at a time";
        }
      }
    }
  }
}

TEST(fields, integers_are_those_that_print_the_same) {
  const auto value = [](std::string_view text) {
    u64 key = 99;
    EXPECT_TRUE(tools::read_integer(text, key)) << text;
    return static_cast<std::int64_t>(key);
  };
  EXPECT_EQ(value("0"), 0);
  EXPECT_EQ(value("7"), 7);
  EXPECT_EQ(value("-10"), -10);
  EXPECT_EQ(value("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(value("-9223372036854775808"), INT64_MIN);
  u64 key = 0;
  for (const auto* text : {"", "-", "+1", "01", "-0", "-01", "00", " 1", "1 ", "1.0", "1e3", "0x1",
                           "9223372036854775808", "-9223372036854775809"})
    EXPECT_FALSE(tools::read_integer(text, key)) << text;
}

TEST(fields, are_joined_by_what_they_say) {
  expect_joined({}, {});
  expect_joined({"a"}, {});
  expect_joined({}, {"a"});
  expect_joined({"a", "b", "a", "", "cc"}, {"a", "", "d", "a", "c", ""});
  expect_joined({"1", "2", "-3"}, {"2", "-3", "2", "4"});
  expect_joined({"1", "01", "1.0"}, {"1", "1.0", "+1"});  // no integers: compared as text
  expect_joined({"1", "2"}, {"1", "x"});                  // one side alone
  expect_joined({"x", "2", "01", "2", "y"}, {"2", "2"});  // texts between integers
  expect_joined({"", "2", "", "", "3", ""}, {"2", "", "3", "2", ""});
  expect_joined(texts(100, "same"), texts(100, "same"));
  expect_joined(texts(100, "same"), texts(100, "other"));
}

TEST(fields, are_counted_by_what_they_say) {
  for (const auto hash : hashes) {
    for (const texts& fields :
         {texts{}, texts{""}, texts{"b", "a", "b", "", "b"}, texts{"5", "-1", "5"}, texts(1000, "x")})
      EXPECT_EQ(count(fields, hash), expected(fields));
  }
}

TEST(fields, some_may_stand_for_many) {
  const views column{"b", "a", "a", "c", "b"};
  const std::vector<u64> weights{10, 20};
  for (const auto hash : hashes) {
    tools::use_tables_on_host(1, [&](const tools::key_tables& tables) {
      const auto found = count_fields(roost::host(1), tables, column, weights, hash);
      EXPECT_EQ(found.rows, (std::vector<u32>{0, 1, 3}));
      EXPECT_EQ(found.counts, (std::vector<u64>{11, 21, 1}));
      EXPECT_EQ(found.numbers, (std::vector<u32>{0, 1, 1, 2, 0}));
    });
  }
}

TEST(fields, a_hash_that_tells_nothing_apart_is_given_up) {
  const texts left{"a", "b"}, right{"b"};
  EXPECT_THROW(count(left, always_one_key), roost::error);
  EXPECT_THROW(join(tools::join_kind::inner, right, left, always_one_key), roost::error);
  EXPECT_EQ(join(tools::join_kind::semi, left, right, always_one_key),
            expected(tools::join_kind::semi, left, right));
  EXPECT_EQ(join(tools::join_kind::left, left, right, always_one_key),
            expected(tools::join_kind::left, left, right));
}

RC_GTEST_PROP(fields, any_columns_are_joined, ()) {
  const auto field = rc::gen::container<std::string>(rc::gen::element('a', 'b', '1', '0', '-'));
  const auto left = *rc::gen::container<texts>(field), right = *rc::gen::container<texts>(field);
  for (const auto hash : hashes) {
    for (const auto kind : kinds) {
      for (const std::size_t most : {std::size_t{3}, tools::matches_at_once})
        RC_ASSERT(join(kind, left, right, hash, most) == expected(kind, left, right));
    }
    RC_ASSERT(count(left, hash) == expected(left));
  }
}

}  // namespace
}  // namespace test

#endif
