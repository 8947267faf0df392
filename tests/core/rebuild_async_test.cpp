#include "support/tables.hpp"

// Builds that do not wait: rebuild_async and finish, and a CUDA graph of them.

namespace test {
namespace {

template <class Table>
class rebuild_async : public testing::Test {};
using tables = table_axis<compact_map<u32, u32>, compact_map<u64, u64>, compact_set<u32>,
                          bucketed_map<u32, u32>, bucketed_set<u64>, cuckoo_map<u32, u32>, cuckoo_set<u32>>;
TYPED_TEST_SUITE(rebuild_async, tables);

TYPED_TEST(rebuild_async, takes_the_place_of_what_was_there) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  const auto first = from_numbers<key>(different_numbers(20000, 1));
  TypeParam table(first, numbered_values<value>(first.size()));
  const std::size_t capacity = table.capacity(), bytes = table.bytes();
  for (const std::size_t n : {20000, 1, 12345, 0, 19999}) {
    auto second = from_numbers<key>(different_numbers(n, n + 2));
    if (n > 100) second[n - 1] = second[50];  // the first one must win
    table.rebuild_async(second, numbered_values<value>(n));
    std::vector<key> queries = second;
    queries.insert(queries.end(), first.begin(), first.end());
    const auto there = table.contains(queries);  // queued behind the build
    table.finish();
    EXPECT_EQ(table.size(), n > 100 ? n - 1 : n);
    EXPECT_EQ(table.statistics().duplicates, n > 100 ? 1u : 0u);
    EXPECT_EQ(table.capacity(), capacity);
    EXPECT_EQ(table.bytes(), bytes);
    EXPECT_TRUE(table.valid());
    oracle_map<key, std::size_t> oracle;
    for (std::size_t i = 0; i < n; ++i) oracle.emplace(second[i], i);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < queries.size(); ++i)
      wrong += (there[i] != 0) != (oracle.count(queries[i]) != 0);
    EXPECT_EQ(wrong, 0u) << n;
    if constexpr (TypeParam::has_values) {
      const auto values = numbered_values<value>(n);
      const auto found = table.find(second, value{});
      for (std::size_t i = 0; i < n; ++i) wrong += !(found[i] == values[oracle[second[i]]]);
      EXPECT_EQ(wrong, 0u) << "values of " << n;
    }
  }
}

TYPED_TEST(rebuild_async, of_more_than_there_is_room_for_is_refused) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  const auto keys = from_numbers<key>(different_numbers(3001, 1));
  const std::vector<key> fewer(keys.begin(), keys.end() - 1);
  TypeParam table(fewer, numbered_values<value>(3000));
  expect_error<roost::invalid_argument>([&] { table.rebuild_async(keys, numbered_values<value>(3001)); },
                                        {"rebuild_async", "3001", "3000", "call rebuild"});
  EXPECT_EQ(table.count_found(keys), 3000u);
  EXPECT_TRUE(table.valid());
}

TYPED_TEST(rebuild_async, that_does_not_fit_leaves_an_empty_table) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  const auto keys = from_numbers<key>(different_numbers(60000, 1));
  TypeParam table(keys, numbered_values<value>(keys.size()));
  numbers crowd(60000);  // all in one region, for every layout
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    crowd[i] = std::is_same_v<typename TypeParam::layout, roost::cuckoo> ? i * table.statistics().regions
               : sizeof(key) == 4                                        ? roost::unmix32(static_cast<u32>(i))
                                                                         : roost::unmix64(i);
  }
  const auto bad = from_numbers<key>(crowd);
  table.rebuild_async(bad, numbered_values<value>(bad.size()));
  EXPECT_EQ(table.contains(bad), std::vector<char>(bad.size(), 0));
  expect_error<roost::build_error>([&] { table.finish(); },
                                   {"60000", "rebuild_async", "did not fit", "call rebuild"});
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.count_found(keys), 0u);
  EXPECT_TRUE(table.valid());
  table.rebuild_async(keys, numbered_values<value>(keys.size()));  // it can be filled again
  table.finish();
  EXPECT_EQ(table.count_found(keys), keys.size());
  table.rebuild(bad, numbered_values<value>(bad.size()));
  EXPECT_EQ(table.count_found(bad), bad.size());
  EXPECT_TRUE(table.valid());
}

TYPED_TEST(rebuild_async, that_gets_no_memory_leaves_an_empty_table) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  const auto first = from_numbers<key>(multiples(3000, 3)), second = from_numbers<key>(multiples(3000, 7, 1));
  watched_memory memory;
  {
    const place_type poor = make_place(memory);
    TypeParam table(first, numbered_values<value>(first.size()), {}, poor);
    const std::size_t before = memory.live_bytes(), uploads = TypeParam::has_values ? 2 : 1;
    for (std::size_t good = uploads;; ++good) {
      ASSERT_LT(good, 1000u);
      memory.refuse_after(good);
      try {
        table.rebuild_async(second, numbered_values<value>(second.size()), poor);
        break;
      } catch (const roost::out_of_memory&) {
      }
      memory.refuse_nothing();
      ASSERT_EQ(memory.live_bytes(), before);
      const std::size_t left = table.count_found(first);
      ASSERT_TRUE(left == 0 || left == first.size()) << left;  // the first refusals come before it begins
      ASSERT_EQ(table.size(), left);
      ASSERT_TRUE(table.valid());
      table.rebuild_async(first, numbered_values<value>(first.size()));
      table.finish();
      ASSERT_EQ(table.count_found(first), first.size());
    }
    memory.refuse_nothing();
    table.finish(poor);
    EXPECT_EQ(table.count_found(second), second.size());
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

#if defined(__CUDACC__)
struct number_of {
  ROOST_FN u32 operator()(std::size_t i) const { return static_cast<u32>(i); }
};

TEST(rebuild_async_cuda, is_captured_with_its_lookups_and_replayed_on_other_data) {
  constexpr std::size_t n = 100000;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    const roost::cuda gpu(stream);
    roost::array<u32, roost::cuda> keys(gpu, n), answers(gpu, n);
    std::vector<u32> host_keys(n);
    const auto fill_keys = [&](u32 r) {
      for (std::size_t i = 0; i < n; ++i) host_keys[i] = roost::mix32(static_cast<u32>(i), r);
      gpu.copy_from_host(keys.data(), host_keys.data(), keys.bytes());
    };
    fill_keys(1);
    roost::frozen_map<u32, u32, roost::cuda> map(gpu, keys, roost::computed(n, number_of()));
    for (const roost::path path : {roost::path::direct, roost::path::regional}) {
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t ready = nullptr;
      ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      map.rebuild_async(gpu, keys, roost::computed(n, number_of()));
      map.find(gpu, keys, answers, ~0u, {.path = path});
      ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
      for (u32 r = 2; r < 6; ++r) {
        fill_keys(r);
        ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
        map.finish(gpu);
        const auto found = roost::copy_to_host(gpu, answers);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < n; ++i) wrong += found[i] != i;
        EXPECT_EQ(wrong, 0u) << "round " << r;
        EXPECT_EQ(map.size(), n);
        EXPECT_TRUE(map.valid(gpu));
      }
      EXPECT_EQ(cudaGraphExecDestroy(ready), cudaSuccess);
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}
#endif

}  // namespace
}  // namespace test
