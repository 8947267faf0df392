#include <atomic>
#include <thread>

#include "support/out_of_core.hpp"

// What a call for columns in host memory does beside its result.

namespace test {
namespace {

const std::tuple several{roost::plus(), roost::maximum(), roost::bit_xor()};

std::vector<u64> some_keys(u64 seed) { return random_numbers(60000, seed, 40000); }

/// Calls f(call) for each kind of call, with a place; call() makes it.
template <class F>
void each_call(const place_out_of_core& place, const F& f) {
  const auto left = some_keys(1), right = some_keys(2);
  const std::vector<double> values(left.size(), 0.1);
  const std::vector<u32> counts(left.size(), 3);
  f([&] { return roost::left_join(place, left, right).size(); });
  f([&] { return roost::semi_join(place, left, right).size(); });
  f([&] { return roost::unique_inverse(place, left).keys.size(); });
  f([&] { return roost::group_by(place, left, values, roost::plus()).size(); });
  f([&] { return roost::group_by(place, left, counts, several).size(); });
}

place_out_of_core smallest(const place_type& device, int streams, roost::out_of_core_limits limits = {}) {
  limits.device_bytes = static_cast<std::size_t>(streams) * place_out_of_core::device_bytes_least(device);
  limits.streams = streams;
  return place_out_of_core(roost::host(2), device, limits);
}

TEST(out_of_core_calls, refuse_limits_that_are_too_small) {
  const std::size_t least = place_out_of_core::device_bytes_least(test_place());
  const auto make = [&](std::size_t device_bytes, std::size_t pinned_bytes, int streams = 0) {
    const place_out_of_core place(
        roost::host(2), test_place(),
        {.device_bytes = device_bytes, .pinned_bytes = pinned_bytes, .streams = streams});
    return place.limits().streams;
  };
  EXPECT_EQ(make(least, 64 << 10), 1);
  EXPECT_EQ(make(100 * least, 64 << 10), 3);
  EXPECT_EQ(make(4 * least, 64 << 10, 4), 4);
  const std::string bytes = std::to_string(least);
  expect_error<roost::invalid_argument>([&] { make(least - 1, 64 << 10); }, {"of the device", bytes});
  expect_error<roost::invalid_argument>([&] { make(least, (64 << 10) - 1); }, {"pinned bytes", "65536"});
  expect_error<roost::invalid_argument>([&] { make(3 * least - 1, 64 << 10, 3); }, {bytes, "3 streams"});
  expect_error<roost::invalid_argument>([&] { make(least, 64 << 10, -1); }, {"-1 streams"});
}

TEST(out_of_core_calls, refuse_wrong_arguments) {
  const auto place = smallest(test_place(), 1);
  const std::vector<u32> keys(300, 1), values(299, 1);
  expect_error<roost::invalid_argument>([&] { roost::group_by(place, keys, values, roost::plus()); },
                                        {"roost::group_by", "300 keys", "299 values"});
  expect_error<roost::invalid_argument>([&] { roost::inner_join<u8>(place, keys, values); },
                                        {"roost::inner_join", "300 rows", "1 bytes"});
  const std::vector<sixteen> pairs(5);
  expect_error<roost::invalid_argument>([&] { roost::unique(place, pairs, roost::index_order::by_key); },
                                        {"roost::unique", "by_key"});
}

TEST(out_of_core_calls, read_ranges_that_are_computed) {
  const std::size_t n = 70000;
  const auto place = smallest(test_place(), 2);
  const roost::computed keys(n, [](std::size_t i) { return static_cast<u32>(i * 2); });
  const roost::computed others(n, [](std::size_t i) { return static_cast<u32>(i * 3); });
  const auto rows = roost::inner_join(place, keys, others);
  ASSERT_EQ(rows.size(), (n + 2) / 3);
  for (u32 i = 0; i < rows.size(); ++i) ASSERT_TRUE(rows.left[i] == 3 * i && rows.right[i] == 2 * i);
  EXPECT_EQ(roost::unique_count(place, keys), n);
  const auto counts = roost::unique_counts(place, roost::computed(n, [](std::size_t i) { return i / 7; }));
  EXPECT_EQ(counts.counts[0], 7u);
}

TEST(out_of_core_calls, report_progress) {
  for (const int streams : {1, 3}) {
    std::vector<std::pair<std::size_t, std::size_t>> seen;
    const auto caller = std::this_thread::get_id();
    const auto place = smallest(test_place(), streams, {.progress = [&](std::size_t done, std::size_t all) {
                                  EXPECT_EQ(std::this_thread::get_id(), caller);
                                  seen.emplace_back(done, all);
                                }});
    each_call(place, [&](const auto& call) {
      seen.clear();
      call();
      ASSERT_GT(seen.size(), streams == 1 ? 4u : 0u);
      EXPECT_EQ(seen.back().first, seen.back().second);
      for (std::size_t i = 1; i < seen.size(); ++i) {
        const bool begins_again = seen[i - 1].first == seen[i - 1].second;  // the join that makes the inverse
        EXPECT_TRUE(begins_again ||
                    (seen[i].first >= seen[i - 1].first && seen[i].second == seen[i - 1].second));
      }
    });
  }
}

struct stopped {};

TEST(out_of_core_calls, end_where_progress_throws) {
  watched_device device;
  for (const int streams : {1, 3}) {
    if (only_threads && streams == 1) continue;
    for (std::size_t good = 0; good < 40; good += sanitized ? 13 : 3) {
      std::size_t left = good;
      const auto place = smallest(device.place, streams, {.progress = [&](std::size_t, std::size_t) {
                                    if (left-- == 0) throw stopped();
                                  }});
      each_call(place, [&](const auto& call) {
        left = good;
        if (good < (streams == 1 ? 5 : 1)) {
          EXPECT_THROW(call(), stopped);
        } else {
          try {
            call();
          } catch (const stopped&) {
          }
        }
        EXPECT_EQ(device.memory.live_blocks(), 0u);
      });
    }
  }
}

// Whichever allocation the device refuses, alone or with all that follow: the call throws, keeps nothing, and
// can be made again.
TEST(out_of_core_calls, end_where_memory_is_refused) {
  for (const int streams : {1, 3}) {
    if (only_threads && streams == 1) continue;
    watched_device device;
    const auto place = smallest(device.place, streams);
    each_call(place, [&](const auto& call) {
      const auto expected = call();
      std::size_t refusals = 1, thrown = 0;
      for (std::size_t good = 0; refusals != 0; good += 1 + good / (sanitized || streams != 1 ? 2 : 8)) {
        device.memory.refuse_after(good, good % 2 == 0 ? 1 : ~std::size_t{0});
        bool threw = false;
        try {
          call();
        } catch (const roost::out_of_memory&) {
          threw = true;
        }
        refusals = device.memory.refuse_nothing();
        ASSERT_EQ(threw, refusals != 0);
        thrown += threw;
        ASSERT_EQ(device.memory.live_blocks(), 0u);
      }
      EXPECT_GT(thrown, 6u);
      EXPECT_EQ(call(), expected);
    });
  }
}

#if !defined(__CUDACC__)
// The host's memory, with the blocks that stand for pinned ones.
TEST(out_of_core_calls, end_where_the_host_has_no_memory) {
  const std::size_t least = place_out_of_core::device_bytes_least(test_place());
  for (const int streams : {1, 3}) {
    if (only_threads && streams == 1) continue;
    watched_memory of_host;
    {
      const place_out_of_core place(roost::host(2, &of_host), test_place(),
                                    {.device_bytes = static_cast<std::size_t>(streams) * least,
                                     .pinned_bytes = 512 << 10,
                                     .streams = streams});
      each_call(place, [&](const auto& call) {
        const auto expected = call();
        std::size_t refusals = 1;
        for (std::size_t good = 0; refusals != 0; good += 1 + good / (sanitized ? 1 : 2)) {
          of_host.refuse_after(good);
          bool threw = false;
          try {
            call();
          } catch (const roost::out_of_memory&) {
            threw = true;
          }
          refusals = of_host.refuse_nothing();
          ASSERT_EQ(threw, refusals != 0);
          ASSERT_LE(of_host.live_blocks(), 8u);  // that are kept
        }
        EXPECT_EQ(call(), expected);
      });
    }
    EXPECT_EQ(of_host.live_blocks(), 0u);
  }
}

TEST(out_of_core_calls, keep_no_more_than_the_pinned_bytes) {
  watched_memory of_host;
  const std::size_t least = place_out_of_core::device_bytes_least(test_place());
  {
    const place_out_of_core place(
        roost::host(2, &of_host), test_place(),
        {.device_bytes = least, .pinned_bytes = std::size_t{1} << 20, .progress = {}});
    EXPECT_EQ(of_host.live_blocks(), 0u);  // nothing is pinned before it is needed
    const place_out_of_core copy = place;
    const auto twice = [&](const auto& call) {
      call();
      const std::size_t kept = of_host.live_blocks();
      EXPECT_GE(kept, 2u);  // those of the copies, and what waited
      EXPECT_LE(of_host.live_bytes(), std::size_t{1} << 20);
      call();
      EXPECT_EQ(of_host.live_blocks(), kept);
    };
    each_call(copy, twice);
  }
  EXPECT_EQ(of_host.live_blocks(), 0u);

  // Blocks that are too large for what waits, so that there are those of the copies alone.
  const place_out_of_core place(roost::host(2, &of_host), test_place(), {.device_bytes = least});
  for (int call = 0; call < 2; ++call) {
    static_cast<void>(roost::unique(place, some_keys(1)));
    EXPECT_EQ(of_host.live_blocks(), 2u);
  }
}

TEST(out_of_core_calls, call_what_comes_between_pieces) {
  static int calls, good;
  const roost::detail::calls_between_pieces count([] {
    if (++calls == good) throw stopped();
  });
  watched_device device;
  for (const int streams : {1, 3}) {
    good = streams == 1 ? 30 : 1;
    const auto place = smallest(device.place, streams);
    each_call(place, [&](const auto& call) {
      calls = 0;
      EXPECT_THROW(call(), stopped);
      EXPECT_EQ(device.memory.live_blocks(), 0u);
    });
  }
}

// Threads may call functions with one place at once; each has the device_bytes of a call.
TEST(out_of_core_calls, from_several_threads) {
  const auto place = smallest(test_place(), 2);
  const auto left = some_keys(1), right = some_keys(2);
  const auto expected = roost::inner_join(place, left, right);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const auto found = roost::inner_join(place, left, right);
      good += bits_of(found.left, found.right) == bits_of(expected.left, expected.right);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 3);
}
#else
// Memory that the GPU can read is not staged.
TEST(out_of_core_calls, copy_registered_memory_directly) {
  auto left = some_keys(1), right = some_keys(2);
  const auto place = smallest(test_place(), 1);
  const auto expected = roost::inner_join(place, left, right);
  for (auto* const side : {&left, &right}) {
    const std::size_t bytes = side->size() * sizeof(u64);
    EXPECT_FALSE(roost::detail::pinned<roost::cuda>::holds(side->data(), bytes));
    roost::detail::check(cudaHostRegister(side->data(), bytes, cudaHostRegisterDefault), "cudaHostRegister");
    EXPECT_TRUE(roost::detail::pinned<roost::cuda>::holds(side->data(), bytes));
  }
  const auto found = roost::inner_join(place, left, right);
  EXPECT_TRUE(bits_of(found.left, found.right) == bits_of(expected.left, expected.right));
  for (auto* const side : {&left, &right})
    roost::detail::check(cudaHostUnregister(side->data()), "cudaHostUnregister");
}
#endif

}  // namespace
}  // namespace test
