#include <roost/shards/rank.hpp>
#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_map.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// roost::rank over NCCL: ranks are threads, each with a GPU of its own. Where the tables come from, and all
// else that ranks do, sharded_rank_test.cpp checks.

namespace test {
namespace {

bool has_nccl() {
  try {
    return roost::detail::nccl::instance().abort != nullptr;
  } catch (const roost::device_error&) {
    return false;
  }
}

/// f(communicator, place, rank's number, how many) for each device, by a thread of its own.
template <class F>
void on_devices(const F& f) {
  using roost::detail::nccl_communicator;
  std::vector<std::thread> threads;
  const auto identity = nccl_communicator::new_identity();
  const auto size = static_cast<u32>(roost::cuda_devices());
  for (u32 device = 0; device < size; ++device) {
    threads.emplace_back([=, &f] {
      const roost::detail::device_guard guard(static_cast<int>(device));
      cudaStream_t stream = nullptr;
      roost::detail::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      EXPECT_NO_THROW({
        nccl_communicator all(identity, device, size, std::chrono::seconds(60));
        if (!f(all.get(), roost::cuda{stream}, device, size)) all.abort();
      });
      static_cast<void>(cudaStreamDestroy(stream));
    });
  }
  for (auto& thread : threads) thread.join();
}

constexpr std::size_t each = std::size_t{1} << 18;  // keys of a rank

template <class Place>
auto keys_of(const Place& place, std::uint32_t number) {
  std::vector<u32> keys(each);
  for (std::size_t i = 0; i < each; ++i) keys[i] = static_cast<u32>((number * each + i) * 2654435761u);
  return roost::copy_to(place, keys);
}

TEST(rank_nccl, answers) {
  if (!has_nccl()) GTEST_SKIP() << "no libnccl.so.2";
  on_devices([&](ncclComm* communicator, const roost::cuda& place, u32, u32 size) {
    const roost::rank all(communicator, place, std::chrono::seconds(60));
    EXPECT_EQ(all.size(), size);
    const auto mine = keys_of(place, all.number());
    const auto theirs = keys_of(place, (all.number() + 1) % static_cast<u32>(all.size()));
    const roost::sharded_map map(all, mine, mine);
    EXPECT_EQ(map.size(), each * all.size());
    EXPECT_TRUE(map.valid(all));
    roost::array<u32, roost::cuda> results(place, each);
    map.find(all, theirs, results, 0);
    EXPECT_TRUE(roost::copy_to_host(place, results) == roost::copy_to_host(place, theirs));
    EXPECT_EQ(roost::unique(all, mine).size(), each);
    EXPECT_EQ(map.count_found(all, theirs), each * all.size());
    // One rank that throws: all throw, and the next call works.
    const bool bad = all.number() + 1 == all.size();
    roost::array<u32, roost::cuda> small(place, each - (bad ? 1 : 0));
    if (bad) {
      EXPECT_THROW(map.find(all, theirs, small, 0), roost::invalid_argument);
    } else {
      EXPECT_THROW(map.find(all, theirs, small, 0), roost::rank_error);
    }
    EXPECT_EQ(map.count_found(all, theirs), each * all.size());
    return all.broken();
  });
}

/// The last rank makes no call: the others end at their deadline, and say so.
TEST(rank_nccl, a_rank_that_is_gone) {
  if (roost::cuda_devices() < 2 || !has_nccl()) GTEST_SKIP() << "fewer than two devices, or no libnccl.so.2";
  on_devices([&](ncclComm* communicator, const roost::cuda& place, u32 number, u32 size) {
    const roost::rank all(communicator, place, std::chrono::seconds(2));
    if (number + 1 == size) {
      std::this_thread::sleep_for(std::chrono::seconds(4));
      return false;
    }
    const auto mine = keys_of(place, number);
    const auto build = [&] { roost::sharded_map(all, mine, mine); };
    expect_error<roost::device_error>(build, {"roost::rank", "has waited 2 s"});
    expect_error<roost::error>(build, {"cannot go on"});
    EXPECT_TRUE(all.broken());
    return true;
  });
}

/// It is not even there: nobody waits longer than the deadline to connect.
TEST(rank_nccl, a_rank_that_never_came) {
  if (roost::cuda_devices() < 2 || !has_nccl()) GTEST_SKIP() << "fewer than two devices, or no libnccl.so.2";
  on_devices([&](ncclComm* communicator, const roost::cuda& place, u32 number, u32 size) {
    if (number + 1 == size) {
      std::this_thread::sleep_for(std::chrono::seconds(4));
      return false;
    }
    expect_error<roost::device_error>([&] { roost::rank(communicator, place, std::chrono::seconds(2)); },
                                      {"roost::rank", "has waited 2 s"});
    return true;
  });
}

TEST(rank_nccl, refuses_a_place_on_another_device) {
  if (roost::cuda_devices() < 2 || !has_nccl()) GTEST_SKIP() << "fewer than two devices, or no libnccl.so.2";
  const roost::cuda first = test_place();
  on_devices([&](ncclComm* communicator, const roost::cuda&, u32 number, u32) {
    if (number == 1) {
      expect_error<roost::invalid_argument>([&] { roost::rank(communicator, first); },
                                            {"communicator of CUDA device 1", "on device 0"});
    }
    return false;
  });
}

}  // namespace
}  // namespace test
