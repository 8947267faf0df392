#include <roost/stadium/stadium_map.hpp>

#include "support/tables.hpp"

// The two ways of a bulk lookup. That both give the same answers is checked wherever a test asks a table;
// here is when which is taken, in how much memory, and what queries of few keys do.

namespace test {
namespace {

using map_type = bucketed_map<u32, u32>;
constexpr std::size_t n = 300000;

/// A map of 0 ... n - 1, shuffled, to 3 i + 1.
map_type numbered_map() {
  std::vector<u32> keys(n), values(n);
  for (u32 i = 0; i < n; ++i) {
    keys[i] = i * 2654435761u;
    values[i] = 3 * i + 1;
  }
  return {keys, values};
}

std::size_t wrong_answers(const std::vector<u32>& queries, const std::vector<u32>& answers) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const u32 number = queries[i] * 244002641u;  // the inverse of 2654435761
    wrong += answers[i] != (number < n ? 3 * number + 1 : 7u);
  }
  return wrong + (queries.size() != answers.size());
}

std::vector<u32> mixed_queries(std::size_t count) {
  std::vector<u32> queries(count);
  for (u32 i = 0; i < count; ++i) queries[i] = roost::mix32(i) % (2 * n) * 2654435761u;
  return queries;
}

TEST(bulk, goes_the_way_that_was_asked_for_and_says_so) {
  static_assert(2654435761u * 244002641u == 1u);
  const auto map = numbered_map();
  const auto queries = mixed_queries(100000);
  roost::bulk_report report;
  EXPECT_EQ(wrong_answers(queries, map.find(queries, 7, {.path = roost::path::direct}, &report)), 0u);
  EXPECT_EQ(report.path, roost::path::direct);
  EXPECT_EQ(report.chunks, 1u);
  EXPECT_EQ(report.scratch_bytes, 0u);
  EXPECT_EQ(wrong_answers(queries, map.find(queries, 7, {.path = roost::path::regional}, &report)), 0u);
  EXPECT_EQ(report.path, roost::path::regional);
  EXPECT_EQ(report.chunks, 1u);
  EXPECT_GT(report.scratch_bytes, queries.size() * 10);
  map.find({queries[0]}, 7, {}, &report);
  EXPECT_EQ(report.path, roost::path::direct) << "for one query";
  map.find({}, 7, {.path = roost::path::regional}, &report);
  EXPECT_EQ(report.path, roost::path::direct) << "for no query";
}

TEST(bulk, keeps_to_its_scratch_memory) {
  if (only_threads) GTEST_SKIP() << "threads of a later chunk do what those of the first do";
  const auto map = numbered_map();
  const std::size_t millions = sanitized && on_host ? 1 : 3;  // a chunk of cuda is one at least
  const auto queries = mixed_queries(millions * 1000000);
  roost::bulk_report whole, report;
  EXPECT_EQ(wrong_answers(queries, map.find(queries, 7, {.path = roost::path::regional}, &whole)), 0u);
  EXPECT_EQ(whole.chunks, 1u);
  EXPECT_LE(whole.scratch_bytes, queries.size() * 12)
      << "for each query: its key, its answer, 2 bytes, and room to spare";
  const std::size_t most = millions * 5 << 20;
  EXPECT_EQ(
      wrong_answers(queries, map.find(queries, 7, {.path = roost::path::regional, .scratch_bytes_most = most},
                                      &report)),
      0u);
  EXPECT_GE(report.chunks, 2u);
  EXPECT_LE(report.scratch_bytes, most);
  EXPECT_EQ(
      wrong_answers(queries,
                    map.find(queries, 7, {.path = roost::path::regional, .scratch_bytes_most = 0}, &report)),
      0u);
  EXPECT_EQ(report.chunks,
            roost::detail::ceil_div(queries.size(), roost::detail::find_tuning<place_type>::chunk_least))
      << "no memory at all is read as the least that works";
}

struct number_itself {
  ROOST_FN u32 operator()(std::size_t i) const { return static_cast<u32>(i); }
};

TEST(bulk, goes_direct_where_there_is_no_memory_large) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  watched_memory memory;
  {
    const place_type poor = make_place(memory);
    const std::size_t many = on_host ? 70000000 : 24000000;  // enough to go by region
    const roost::frozen_set<u32, place_type> set(poor, roost::computed(many, number_itself()),
                                                 {.load_factor = 0.5});
    memory_of<bool> answers(test_place(), std::size_t{1} << (on_host ? 22 : 23));
    const roost::computed queries(answers.size(), number_itself());
    EXPECT_EQ(set.contains(poor, queries, answers).path, roost::path::regional);
    const std::size_t before = memory.allocations();
    EXPECT_EQ(set.count_found(poor, queries), answers.size());
    EXPECT_GE(memory.allocations() - before, 5u) << "it did not go by region";
    for (const std::size_t good : {0, 1, 3}) {
      memory.refuse_after(good);
      EXPECT_EQ(set.contains(poor, queries, answers).path, roost::path::direct);
      const auto found = download(answers);
      EXPECT_EQ(std::count(found.begin(), found.end(), 1), static_cast<std::ptrdiff_t>(answers.size()));
      if (on_host) {  // a sum on cuda takes memory, too
        memory.refuse_after(good);
        EXPECT_EQ(set.count_found(poor, queries), answers.size());
      }
    }
    memory.refuse_after(1);
    expect_error<roost::out_of_memory>(
        [&] { set.contains(poor, queries, answers, {.path = roost::path::regional}); }, {});
    memory.refuse_nothing();
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

struct pays_always : roost::detail::all_regions<place_type> {
  template <class Ref>
  bool pays(std::size_t, std::size_t) const {
    return true;
  }
};

/// Refuses the k-th allocation of an erasing batch for every k.
TEST(bulk, what_was_erased_is_not_erased_again) {
  const std::size_t many = 30000;
  watched_memory memory;
  {
    const place_type poor = make_place(memory);
    std::vector<u32> numbers(many);
    std::iota(numbers.begin(), numbers.end(), 0u);
    const auto keys = copy_to(poor, numbers);
    memory_of<bool> erased(poor, many);
    std::size_t direct = 0, regional = 0;
    for (std::size_t good = 0; regional == 0; ++good) {
      ASSERT_LT(good, 100u);
      roost::stadium_map<u32, u32, place_type> map(poor, many);
      map.insert(poor, keys, keys);
      auto ref = map.ref();
      memory.refuse_after(good);
      try {
        const auto report =
            roost::detail::bulk_lookups(poor, ref, map.bytes(), {}, pays_always())
                .answer(roost::detail::as_sequence(keys), roost::detail::write_erased{erased.data()});
        ++(report.path == roost::path::direct ? direct : regional);
        const auto answers = download(erased);
        EXPECT_EQ(std::count(answers.begin(), answers.end(), 1), static_cast<std::ptrdiff_t>(many)) << good;
      } catch (const roost::out_of_memory&) {
      }
      memory.refuse_nothing();
    }
    EXPECT_GE(direct, 2u) << "what has not begun goes the way that takes no memory";
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

struct alignas(32) wide {
  u32 words[8];
};

/// Scratch memory is as aligned as what lies in it.
TEST(bulk, values_may_be_aligned_to_more_than_pieces_of_memory) {
  const std::size_t many = 3000;
  std::vector<u32> numbers(many);
  std::vector<wide> values(many);
  for (std::size_t i = 0; i < many; ++i) {
    numbers[i] = static_cast<u32>(3 * i);
    values[i].words[7] = static_cast<u32>(i);
  }
  for (const u32 slots : {500u, 60u, 3u}) {
    roost::stadium_map<u32, wide, place_type> parts(test_place(), many, {.region_slots = slots});
    parts.insert(test_place(), upload(numbers), upload(values), {.path = roost::path::regional});
    roost::array<wide, place_type> found(test_place(), many);
    parts.find(test_place(), upload(numbers), found, wide{}, {.path = roost::path::regional});
    const auto answers = roost::copy_to_host(test_place(), found);
    for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(answers[i].words[7], i);
  }
}

TEST(bulk, queries_of_few_keys_overflow_no_region) {
  const auto map = numbered_map();
  auto queries = mixed_queries(400000);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (i % 4 != 0) queries[i] = 5 * 2654435761u;
  }
  EXPECT_EQ(wrong_answers(queries, map.find(queries, 7)), 0u);
  const std::vector<u32> equal(400000, 77 * 2654435761u), absent(400000, u32{n + 77} * 2654435761u);
  EXPECT_EQ(wrong_answers(equal, map.find(equal, 7)), 0u);
  EXPECT_EQ(wrong_answers(absent, map.find(absent, 7)), 0u);
  EXPECT_EQ(map.contains(equal), std::vector<char>(equal.size(), 1));
}

TEST(bulk, tables_that_are_not_in_the_order_of_their_hash_go_direct) {
  std::vector<u32> keys(5000);
  for (u32 i = 0; i < keys.size(); ++i) keys[i] = i;
  const cuckoo_map<u32, u32> map(keys, keys);
  roost::bulk_report report;
  EXPECT_EQ(map.find(keys, 7, {.path = roost::path::regional}, &report), keys);
  EXPECT_EQ(report.path, roost::path::direct);
}

TEST(bulk, a_mask_leaves_other_results_as_they_are) {
  const auto map = numbered_map();
  const auto queries = mixed_queries(200000);
  for (const roost::path path : {roost::path::direct, roost::path::regional}) {
    const auto [values, mask] = map.find_and_mask(queries, 7, {.path = path});
    EXPECT_EQ(wrong_answers(queries, values), 0u);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) wrong += (queries[i] * 244002641u < n) != (mask[i] != 0);
    EXPECT_EQ(wrong, 0u);
  }
}

}  // namespace
}  // namespace test
