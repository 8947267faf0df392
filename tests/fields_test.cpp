#ifndef __CUDACC__  // the command's own test runs it on both places

#include "../tools/fields.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
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

tools::text_table table_of(const texts& fields) {
  tools::text_table table;
  for (const auto& field : fields) {
    table.text += field;
    table.ends.push_back(table.text.size());
  }
  return table;
}

// Hashes that are bad for the first seeds: all fields have one key, or those of one length have.
tools::text_key one_key(std::string_view text, u64 seed) {
  return seed < 3 ? tools::text_key{} : tools::hash_text(text, seed);
}
tools::text_key key_of_length(std::string_view text, u64 seed) {
  return seed < 2 ? tools::text_key{text.size(), 0} : tools::hash_text(text, seed);
}
tools::text_key always_one_key(std::string_view, u64) { return {}; }

constexpr tools::text_hash hashes[] = {tools::hash_text, one_key, key_of_length};

/// What a join gives, `most` pairs at a time.
pairs join(tools::join_kind kind, const texts& left, const texts& right, tools::text_hash hash,
           std::size_t most = tools::matches_at_once) {
  const auto a = table_of(left), b = table_of(right);
  pairs result;
  const bool both = kind == tools::join_kind::inner || kind == tools::join_kind::left;
  const auto use = [&](const tools::matches& found) {
    EXPECT_EQ(found.right.size(), both ? found.left.size() : 0u);
    EXPECT_TRUE(!both || found.left.size() <= most || found.left.front() == found.left.back());
    for (std::size_t i = 0; i < found.left.size(); ++i)
      result.emplace_back(found.left[i], both ? found.right[i] : none);
  };
  tools::use_tables_on_host(2, [&](const tools::key_tables& tables) {
    join_columns(roost::host(2), tables, kind, a.column_from(0, 0), b.column_from(0, 0), use, hash, most);
  });
  return result;
}

/// The same, each field with each.
pairs expected(tools::join_kind kind, const texts& left, const texts& right) {
  pairs result;
  for (u32 l = 0; l < left.size(); ++l) {
    pairs here;
    for (u32 r = 0; r < right.size(); ++r) {
      if (left[l] == right[r]) here.emplace_back(l, r);
    }
    if (kind == tools::join_kind::semi && !here.empty()) here = {{l, none}};
    if (kind == tools::join_kind::anti) here = here.empty() ? pairs{{l, none}} : pairs{};
    if (kind == tools::join_kind::left && here.empty()) here = {{l, none}};
    result.insert(result.end(), here.begin(), here.end());
  }
  return result;
}

using counts = std::vector<std::pair<std::string, u64>>;

counts count(const texts& fields, tools::text_hash hash) {
  const auto table = table_of(fields);
  counts result;
  tools::use_tables_on_host(2, [&](const tools::key_tables& tables) {
    const auto found = count_fields(roost::host(2), tables, table.column_from(0, 0), hash);
    for (std::size_t i = 0; i < found.rows.size(); ++i)
      result.emplace_back(fields[found.rows[i]], found.counts[i]);
  });
  return result;
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

constexpr tools::join_kind kinds[] = {tools::join_kind::inner, tools::join_kind::left, tools::join_kind::semi,
                                      tools::join_kind::anti};

void expect_joined(const texts& left, const texts& right) {
  for (const auto hash : hashes) {
    for (const auto kind : kinds) {
      for (const std::size_t most : {std::size_t{1}, std::size_t{7}, tools::matches_at_once}) {
        EXPECT_EQ(join(kind, left, right, hash, most), expected(kind, left, right))
            << static_cast<int>(kind) << ", " << most << " at a time";
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

TEST(fields, a_hash_that_tells_nothing_apart_is_given_up) {
  const texts left{"a", "b"}, right{"b"};
  EXPECT_THROW(count(left, always_one_key), roost::error);
  EXPECT_THROW(join(tools::join_kind::semi, left, right, always_one_key), roost::error);
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
