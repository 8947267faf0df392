#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <roost/shards/shards.hpp>
#include <stdexcept>
#include <thread>

// The threads of the shards of one process: where they meet, and what they do when one of them fails. Host
// only.

namespace test {
namespace {

using roost::detail::crew;
using number_type = std::uint32_t;

void be_late() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

/// All shards meet, the last one late.
void expect_barrier(crew& shards) {
  std::atomic<number_type> arrived{0}, ended{0};
  shards.run([&](number_type number) {
    for (number_type meeting = 1; meeting <= 3; ++meeting) {
      if (number + 1 == shards.count()) be_late();
      ++arrived;
      shards.meet();
      EXPECT_GE(arrived, meeting * shards.count());
    }
    ++ended;
  });
  EXPECT_EQ(ended, shards.count());
}

TEST(crew, runs_a_function_for_each_shard_and_returns_when_all_have_ended) {
  for (const number_type count : {1u, 2u, 5u}) {
    crew shards(count);
    for (int call = 0; call < 3; ++call) {
      std::vector<std::atomic<int>> runs(count);
      shards.run([&](number_type number) {
        if (number != 0) be_late();
        ++runs[number];
      });
      for (const auto& each : runs) EXPECT_EQ(each, 1);
    }
    expect_barrier(shards);
  }
}

TEST(crew, throws_what_failed_by_itself_and_works_again) {
  for (const int patience : {0, 100}) {
    crew shards(3, patience);
    for (int call = 0; call < 3; ++call) {
      std::atomic<number_type> stopped{0};
      try {
        shards.run([&](number_type number) {
          if (number == 2) {
            be_late();  // the others wait for it
            throw std::runtime_error("a shard has failed");
          }
          try {
            shards.meet();
          } catch (const roost::detail::stopped_by_another&) {
            ++stopped;
            throw;
          }
        });
        FAIL() << "no exception";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "a shard has failed");
      }
      EXPECT_EQ(stopped, 2u);
      expect_barrier(shards);
    }
  }
}

TEST(crew, stops_a_shard_that_comes_late_to_a_meeting) {
  crew shards(2);
  std::atomic<bool> stopped{false};
  EXPECT_THROW(shards.run([&](number_type number) {
    if (number == 0) throw std::runtime_error("a shard has failed");
    be_late();
    try {
      shards.meet();
    } catch (const roost::detail::stopped_by_another&) {
      stopped = true;
      throw;
    }
  }),
               std::runtime_error);
  EXPECT_TRUE(stopped);
}

TEST(crew, leaves_a_scope_when_all_have_left_it) {
  crew shards(3);
  for (int call = 0; call < 2; ++call) {
    std::atomic<number_type> left{0};
    shards.run([&](number_type number) {
      for (number_type scope = 1; scope <= 3; ++scope) {
        if (number == scope - 1) be_late();
        ++left;
        shards.leave(number);
        EXPECT_GE(left, scope * shards.count());
      }
    });
  }
}

TEST(crew, leaves_a_scope_that_others_never_enter) {
  crew shards(3);
  shards.run([&](number_type number) {
    if (number == 0) shards.leave(number);
  });
  EXPECT_THROW(shards.run([&](number_type number) {
    if (number == 1) throw std::runtime_error("a shard has failed");
    shards.leave(number);
  }),
               std::runtime_error);
}

TEST(crew, gathers_what_each_shard_tells_in_every_turn) {
  constexpr number_type count = 3;
  crew shards(count);
  std::atomic<int> wrong{0};
  shards.run([&](number_type number) {
    roost::detail::crew_shard me(shards, number);
    for (std::uint64_t turn = 1; turn < 1000; ++turn) {
      const auto all = me.gather({turn * count - number, number});
      for (number_type s = 0; s < count; ++s) wrong += all(s) != turn * count - s || all(s, 1) != s;
      wrong += all.most() != turn * count || all.sum(1) != 3;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(crew, takes_one_call_at_a_time) {
  crew shards(2);
  std::atomic<int> calls{0}, overlaps{0};
  const auto run = [&] {
    for (int i = 0; i < 5; ++i) {
      int inside = 0;
      shards.run([&](number_type number) {
        if (number == 0) inside = ++calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        shards.meet();
        if (number == 0) --calls;
      });
      overlaps += inside != 1;
    }
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_EQ(overlaps, 0);
}

TEST(crew, lets_a_shard_that_fails_wait_for_others_that_use_its_memory) {
  const roost::host_shards shards(std::vector<roost::host>(2, roost::host(1)));
  std::atomic<bool> in_use{true}, freed_in_use{true};
  EXPECT_THROW(shards.run([&](auto& me) {
    struct memory {
      const std::atomic<bool>& used;
      std::atomic<bool>& freed;
      ~memory() { freed = used.load(); }
    };
    if (me.number() == 1) {
      const memory mine{in_use, freed_in_use};
      roost::detail::in_use_by_others scope(me);
      throw std::runtime_error("a shard has failed");
    }
    roost::detail::in_use_by_others scope(me);
    be_late();
    in_use = false;
  }),
               std::runtime_error);
  EXPECT_FALSE(freed_in_use);
}

TEST(crew, stops_others_that_wait_for_the_data_of_a_shard_that_fails) {
  const roost::host_shards shards(std::vector<roost::host>(2, roost::host(1)));
  EXPECT_THROW(shards.run([](auto& me) {
    roost::detail::in_use_by_others scope(me);
    if (me.number() == 1) throw std::runtime_error("a shard has failed");
    me.gather({1});
  }),
               std::runtime_error);
  EXPECT_NO_THROW(shards.run([](auto& me) { EXPECT_EQ(me.gather({1}).sum(), 2u); }));
}

}  // namespace
}  // namespace test
