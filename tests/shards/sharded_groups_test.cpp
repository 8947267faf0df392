#include <map>
#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_join.hpp>
#include <roost/shards/sharded_multimap.hpp>

#include "support/shards.hpp"

// sharded_multimap, sharded_index, unique, inner_join and group_by against the same on one place.

namespace test {
namespace {

using key = u32;
using multimap = roost::sharded_multimap<key, u32, shards_type>;
using roost::index_order;

/// Columns of shards, and the same on one place.
struct columns {
  const shards_type& shards;
  column_of_shards<u32> parts;
  memory_of<u32> whole;

  columns(std::size_t count, const std::vector<u32>& all)
      : shards(test_shards(count)),
        parts(upload(shards, split(all, count))),
        whole(upload(flat(split(all, count)))) {}
};

template <class Parts, class Member>
auto flat_of(const shards_type& shards, const Parts& parts, const Member& member) {
  auto result = roost::copy_to_host(shards[0], parts[0].*member);
  for (std::size_t s = 1; s < parts.size(); ++s) {
    const auto more = roost::copy_to_host(shards[s], parts[s].*member);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

/// Inputs of some kind: n keys below a number, and queries of which some are there.
struct input {
  std::size_t shards, n;
  u64 below;
  std::vector<u32> keys() const { return from_numbers<u32>(random_numbers(n, n + 1, below - 1)); }
  std::vector<u32> queries() const {
    return from_numbers<u32>(random_numbers(n / 4 + 3, n + 2, below + below / 2));
  }
};

const std::vector<input> inputs = [] {
  const std::size_t n = sanitized ? 3000 : 30000;
  return std::vector<input>{{1, n, 1000}, {2, 0, 10},    {2, 1, 10},     {2, n, u64{1} << 30},
                            {3, n, n},    {3, n, n / 8}, {5, n / 3, 40}, {7, n, u64{1} << 31},
                            {2, 20000, 2}};
}();

class sharded_groups : public testing::TestWithParam<input> {};
INSTANTIATE_TEST_SUITE_P(inputs, sharded_groups, testing::ValuesIn(inputs));

TEST_P(sharded_groups, multimap) {
  const columns keys(GetParam().shards, GetParam().keys());
  const columns values(GetParam().shards, numbered_values<u32>(GetParam().n));
  const columns queries(GetParam().shards, GetParam().queries());
  const auto& shards = keys.shards;
  const multimap map(shards, keys.parts, values.parts);
  const roost::frozen_multimap one(test_place(), keys.whole, values.whole);
  EXPECT_TRUE(map.valid(shards));
  EXPECT_EQ(map.size(), one.size());
  EXPECT_EQ(map.key_count(), one.key_count());
  for (const auto way : {roost::path::automatic, roost::path::regional}) {
    const roost::bulk_options how{.path = way};
    auto results = filled_like<u32>(shards, queries.parts, 0),
         counts = filled_like<u32>(shards, queries.parts, 9);
    auto there = filled_like<bool>(shards, queries.parts, true);
    auto first = filled<u32>(queries.whole.size(), 0), lengths = filled<u32>(queries.whole.size(), 7);
    auto contained = filled<bool>(queries.whole.size(), false);
    map.find_first(shards, queries.parts, results, 5, how);
    one.find_first(test_place(), queries.whole, first, 5);
    EXPECT_TRUE(flat(shards, results) == download(first));
    map.count(shards, queries.parts, counts, how);
    one.count(test_place(), queries.whole, lengths);
    EXPECT_TRUE(flat(shards, counts) == download(lengths));
    map.contains(shards, queries.parts, there, how);
    one.contains(test_place(), queries.whole, contained);
    EXPECT_TRUE(flat(shards, there) == download(contained));
    EXPECT_EQ(map.count_found(shards, queries.parts, how), one.count_found(test_place(), queries.whole));
    EXPECT_EQ(map.count_matches(shards, queries.parts, how), one.count_matches(test_place(), queries.whole));
  }
  if (one.count_matches(test_place(), queries.whole) > 5'000'000) return;
  const auto some = map.retrieve(shards, queries.parts);
  const auto all = one.retrieve(test_place(), queries.whole);
  EXPECT_TRUE(flat_of(shards, some, &multimap::retrieved::values) == download(all.values));
  const auto pairs = map.retrieve_pairs(shards, queries.parts);
  EXPECT_TRUE(flat_of(shards, pairs, &multimap::retrieved_pairs::values) == download(all.values));
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const auto offsets = roost::copy_to_host(shards[s], some[s].offsets);
    std::vector<u64> numbers;
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q)
      numbers.insert(numbers.end(), offsets[q + 1] - offsets[q], q);
    EXPECT_TRUE(roost::copy_to_host(shards[s], pairs[s].queries) == numbers);
  }
}

TEST_P(sharded_groups, unique_and_index) {
  const columns keys(GetParam().shards, GetParam().keys()), queries(GetParam().shards, GetParam().queries());
  const auto& shards = keys.shards;
  const auto distinct = download(roost::unique(test_place(), keys.whole));
  EXPECT_TRUE(flat(shards, roost::unique(shards, keys.parts)) == distinct);
  const auto any = flat(shards, roost::unique(shards, keys.parts, index_order::any));
  EXPECT_EQ(any.size(), distinct.size());
  EXPECT_TRUE((oracle_set<u32>(any.begin(), any.end()) == oracle_set<u32>(distinct.begin(), distinct.end())));

  const roost::two_way_index one(test_place(), keys.whole);
  for (const auto order : {index_order::first_occurrence, index_order::any}) {
    const roost::sharded_index index(shards, keys.parts, {.order = order});
    EXPECT_EQ(index.size(), one.size());
    EXPECT_TRUE(index.valid(shards));
    std::vector<u32> all_keys, all_indices;
    std::vector<u64> all_counts;
    for (std::size_t s = 0; s < shards.size(); ++s) {
      EXPECT_EQ(index.first(s), all_keys.size());
      for (const u32 k : roost::copy_to_host(shards[s], index.keys(s))) all_keys.push_back(k);
      for (const u64 c : roost::copy_to_host(shards[s], index.counts(s))) all_counts.push_back(c);
      for (const u32 i : roost::copy_to_host(shards[s], index.indices(s))) all_indices.push_back(i);
    }
    if (order == index_order::first_occurrence) {
      EXPECT_TRUE(all_keys == download(one.keys()));
      EXPECT_TRUE(all_counts == download(one.counts()));
      EXPECT_TRUE(all_indices == download(one.indices()));
    }
    const auto ids = download(keys.whole);
    std::vector<u64> counts(all_keys.size(), 0);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      wrong += all_keys.at(all_indices[i]) != ids[i];
      ++counts[all_indices[i]];
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(counts == all_counts);
    auto found = filled_like<u32>(shards, queries.parts, 0);
    index.find(shards, queries.parts, found, 12345);
    const auto answers = flat(shards, found);
    const auto asked = download(queries.whole);
    const oracle_set<u32> there(distinct.begin(), distinct.end());
    for (std::size_t i = 0; i < asked.size(); ++i)
      wrong += there.count(asked[i]) == 0 ? answers[i] != 12345 : all_keys.at(answers[i]) != asked[i];
    EXPECT_EQ(wrong, 0u);
  }
}

TEST_P(sharded_groups, join) {
  if (GetParam().below < 100 && GetParam().n > 5000) return;  // very many pairs
  const columns right(GetParam().shards, GetParam().keys()), left(GetParam().shards, GetParam().queries());
  const columns different(GetParam().shards, from_numbers<u32>(multiples(GetParam().n, 3)));
  for (const columns* const side : {&right, &different}) {
    const auto rows = roost::inner_join(left.shards, left.parts, side->parts);
    const auto one = roost::inner_join(test_place(), left.whole, side->whole);
    using rows_type = roost::joined_rows<u32, place_type>;
    EXPECT_TRUE(flat_of(left.shards, rows, &rows_type::left) == download(one.left));
    EXPECT_TRUE(flat_of(left.shards, rows, &rows_type::right) == download(one.right));
  }
}

struct number_as_float {
  const u32* numbers;
  ROOST_FN float operator()(std::size_t i) const { return static_cast<float>(numbers[i]) * 0.37f; }
};

/// Sums of floating-point numbers depend on the order: they are the same to the last bit.
TEST_P(sharded_groups, group_by) {
  const columns keys(GetParam().shards, GetParam().keys());
  const columns values(GetParam().shards, numbered_values<u32>(GetParam().n));
  std::vector<roost::computed<number_as_float>> floats;
  for (const auto& part : values.parts) floats.emplace_back(part.size(), number_as_float{part.data()});
  const auto sums = roost::group_by(keys.shards, keys.parts, floats, roost::plus());
  const auto one = roost::group_by(test_place(), keys.whole,
                                   roost::computed(values.whole.size(), number_as_float{values.whole.data()}),
                                   roost::plus());
  using sums_type = roost::aggregated<u32, float, place_type>;
  std::map<u32, std::pair<float, u64>> got, expected;
  const auto add = [](auto& to, const auto& k, const auto& v, const auto& c) {
    for (std::size_t i = 0; i < k.size(); ++i) to[k[i]] = {v[i], c[i]};
  };
  add(got, flat_of(keys.shards, sums, &sums_type::keys), flat_of(keys.shards, sums, &sums_type::values),
      flat_of(keys.shards, sums, &sums_type::counts));
  add(expected, download(one.keys), download(one.values), download(one.counts));
  EXPECT_TRUE(got == expected);
}

/// One shard has room for the pairs of a shard, not for those of all.
TEST(sharded_groups_calls, with_all_keys_equal) {
  watched_memory memory;
  const shards_type shards = three_shards(memory);
  u32 crowded = 0;
  while (roost::detail::owners{0, 3}.owner(crowded) != 1) ++crowded;
  const std::size_t n = 100000;
  const auto keys = upload(shards, column<u32>(3, std::vector<u32>(n, crowded)));
  const auto values = upload(shards, column<u32>(3, numbered_values<u32>(n)));
  const auto few = upload(shards, column<u32>{{1}, {2, 3}, {1}});
  multimap map(shards, few, few);
  memory.refuse_over(3 * n * 8 - 1);  // the pairs of all shards; room with slack for its own is less
  const roost::sharded_map firsts(shards, keys, values);  // needs the first of each shard only
  EXPECT_EQ(firsts.size(), 1u);
  const std::string_view says = on_host ? "roost::host: no memory for 2400000 bytes" : "refused";
  expect_error<roost::out_of_memory>([&] { map.rebuild(shards, keys, values); }, {says});
  expect_error<roost::out_of_memory>(
      [&] { static_cast<void>(roost::group_by(shards, keys, values, roost::plus())); }, {says});
  EXPECT_EQ(map.size(), 4u);
  EXPECT_EQ(map.count_found(shards, few), 4u);
  memory.refuse_nothing();
  map.rebuild(shards, keys, values);
  EXPECT_EQ(map.size(), 3 * n);
  EXPECT_EQ(map.key_count(), 1u);
}

TEST(sharded_groups_calls, refuse_what_cannot_be_meant) {
  const auto& shards = test_shards(2);
  const auto keys = upload(shards, column<u32>{{1, 2}, {3}}), one = upload(test_shards(1), column<u32>{{1}});
  expect_error<roost::invalid_argument>([&] { multimap(shards, keys, one); },
                                        {"sharded_multimap", "1 ranges for 2"});
  expect_error<roost::invalid_argument>([&] { roost::unique(shards, one); }, {"unique", "1 ranges for 2"});
  expect_error<roost::invalid_argument>([&] { roost::unique(shards, keys, index_order::by_key); },
                                        {"unique", "no order by key"});
  expect_error<roost::invalid_argument>(
      [&] { roost::sharded_index(shards, keys, {.order = index_order::by_key}); },
      {"sharded_index", "no order"});
  const auto many = upload(shards, column<u32>(2, std::vector<u32>(40000, 1)));
  expect_error<roost::invalid_argument>(
      [&] { static_cast<void>(roost::inner_join<std::uint16_t>(shards, keys, many)); },
      {"inner_join", "80000 rows of all shards cannot be numbered by 2 bytes"});
  const multimap map;
  const auto found = map.retrieve(shards, keys);
  EXPECT_EQ(roost::copy_to_host(shards[0], found[0].offsets), (std::vector<u64>{0, 0, 0}));
  EXPECT_EQ(map.count_matches(shards, keys), 0u);
}

}  // namespace
}  // namespace test
