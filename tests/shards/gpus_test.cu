#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_map.hpp>

#include "support/shards.hpp"

// roost::gpus. What several GPUs answer, the tests of sharded tables check; with one GPU its shards share it.

namespace test {
namespace {

TEST(gpus, are_all_devices_or_those_of_a_list) {
  const roost::gpus all;
  EXPECT_EQ(all.size(), static_cast<std::size_t>(roost::cuda_devices()));
  for (std::size_t s = 0; s < all.size(); ++s) EXPECT_EQ(all[s].device(), static_cast<int>(s));
  const roost::gpus twice({0, 0});
  EXPECT_EQ(twice.size(), 2u);
  EXPECT_NE(twice[0].stream(), twice[1].stream());
  EXPECT_TRUE(twice.all_readable());
  EXPECT_TRUE(twice.can_access(0, 1));
}

TEST(gpus, refuse_devices_that_there_are_not) {
  const std::string last = std::to_string(roost::cuda_devices() - 1);
  expect_error<roost::invalid_argument>([] { roost::gpus({0, 1000}); },
                                        {"no CUDA device 1000", "0 to " + last});
  expect_error<roost::invalid_argument>([] { roost::gpus({-1}); }, {"no CUDA device -1"});
  expect_error<roost::invalid_argument>([] { roost::gpus(std::vector<int>()); }, {"0 shards", "1 to 64"});
}

TEST(gpus, leave_the_current_device_as_it_is) {
  const roost::gpus all;
  const int last = roost::cuda_devices() - 1;
  const roost::detail::device_guard guard(last);
  std::vector<int> devices(all.size(), -1);
  all.run([&](auto& me) { roost::detail::check(cudaGetDevice(&devices[me.number()]), "cudaGetDevice"); });
  for (std::size_t s = 0; s < all.size(); ++s) EXPECT_EQ(devices[s], static_cast<int>(s));
  int now = -1;
  roost::detail::check(cudaGetDevice(&now), "cudaGetDevice");
  EXPECT_EQ(now, last);
}

struct write_late {
  u32* values;
  ROOST_FN void operator()(std::size_t i) const {
#if ROOST_ON_DEVICE
    for (int wait = 0; wait < 100; ++wait) __nanosleep(10000);
#endif
    values[i] = static_cast<u32>(i);
  }
};

/// Keys are written by the streams of the places when calls for several GPUs begin.
TEST(gpus, come_after_what_streams_have_to_do) {
  const auto& shards = test_shards(3);
  const std::size_t n = 5000;
  column_of_shards<u32> keys, results;
  for (std::size_t s = 0; s < 3; ++s) {
    keys.emplace_back(shards[s], n);
    results.emplace_back(shards[s], n);
    shards[s].fill(keys[s].data(), 0xff, keys[s].bytes());
    shards[s].for_each(n, write_late{keys[s].data()});
  }
  const roost::sharded_map map(shards, keys, keys);
  EXPECT_EQ(map.size(), n);
  for (std::size_t s = 0; s < 3; ++s) {
    shards[s].fill(keys[s].data(), 0xff, keys[s].bytes());
    shards[s].for_each(n, write_late{keys[s].data()});
  }
  map.find(shards, keys, results, ~0u, {.path = roost::path::regional});
  for (std::size_t s = 0; s < 3; ++s) {
    const auto answers = roost::copy_to_host(shards[s], results[s]);
    std::size_t wrong = 0;
    for (u32 i = 0; i < n; ++i) wrong += answers[i] != i;
    EXPECT_EQ(wrong, 0u);
  }
}

TEST(gpus, tell_the_steps_of_a_lookup) {
  const auto& shards = test_shards(3);
  const auto keys = upload(shards, split(from_numbers<u32>(multiples(9000, 1)), 3));
  auto results = filled_like<u32>(shards, keys, 0);
  const roost::sharded_map map(shards, keys, keys);
  const auto find = [&] { map.find(shards, keys, results, ~0u, {.path = roost::path::regional}); };
  find();
  shards.trace(true);
  find();
  const auto steps = shards.steps();
  shards.trace(false);
  find();
  ASSERT_EQ(steps.size(), 3u);
  for (const auto& mine : steps) {
    ASSERT_FALSE(mine.empty());
    EXPECT_EQ(mine.front().what, "begun 0");
    EXPECT_EQ(mine.back().what, "ended 0");
    double before = 0;
    for (const auto& step : mine) {
      EXPECT_GE(step.given, before);
      before = step.given;
      EXPECT_GE(step.done, 0);
      EXPECT_LE(step.done, mine.back().done);
    }
  }
  for (const auto& mine : shards.steps()) EXPECT_TRUE(mine.empty());
}

struct numbers_from {
  u32 first;
  ROOST_FN u32 operator()(std::size_t i) const { return first + static_cast<u32>(i); }
};

/// Pieces that are as large as those of large batches, from each shard to each, on both lanes.
TEST(gpus, exchange_large) {
  const auto& shards = test_shards(3);
  const std::size_t n = std::size_t{1} << 20;
  shards.run([&](auto& me) {
    std::vector<roost::detail::piece> out(3), in(3);
    memory_of<u32> sent(me.place(), 3 * n), come(me.place(), 3 * n);
    for (int turn = 0; turn < 20; ++turn) {
      const u32 mark = static_cast<u32>(turn) * 16 + me.number() * 4;
      for (u32 s = 0; s < 3; ++s) {
        roost::detail::write_numbers(me.place(), n, numbers_from{mark + s}, sent.data() + s * n);
        out[s] = {sent.data() + s * n, n * sizeof(u32)};
        in[s] = {come.data() + s * n, n * sizeof(u32)};
      }
      const roost::detail::in_use_by_others scope(me);
      me.wait(me.exchange(out, in, turn % 2));
      const auto got = roost::copy_to_host(me.place(), come);
      std::size_t wrong = 0;
      for (u32 s = 0; s < 3; ++s) {
        for (u32 i = 0; i < n; ++i)
          wrong += got[s * n + i] != static_cast<u32>(turn) * 16 + s * 4 + me.number() + i;
      }
      EXPECT_EQ(wrong, 0u);
    }
  });
}

}  // namespace
}  // namespace test
