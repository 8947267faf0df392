#include <roost/rank.hpp>
#include <roost/sharded_index.hpp>
#include <roost/sharded_map.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// roost::rank over NCCL: ranks are threads, each with a GPU of its own. Where the tables come from, and all
// else that ranks do, sharded_rank_test.cpp checks.

namespace test {
namespace {

/// Communicators of all devices of this process, by the NCCL that roost finds; none where there is no NCCL.
class nccl_group {
 public:
  explicit nccl_group(int devices) {
    void* const library = dlopen("libnccl.so.2", RTLD_NOW);
    if (library == nullptr) return;
    const auto make =
        reinterpret_cast<int (*)(ncclComm**, int, const int*)>(dlsym(library, "ncclCommInitAll"));
    destroy_ = reinterpret_cast<int (*)(ncclComm*)>(dlsym(library, "ncclCommDestroy"));
    all.resize(static_cast<std::size_t>(devices));
    if (make(all.data(), devices, nullptr) != 0) all.clear();
  }
  ~nccl_group() {
    for (ncclComm* const each : all) {
      if (each != nullptr) destroy_(each);
    }
  }
  std::vector<ncclComm*> all;

 private:
  int (*destroy_)(ncclComm*) = nullptr;
};

/// f(rank) for each device, by a thread of its own.
template <class F>
void on_devices(nccl_group& group, std::chrono::seconds deadline, const F& f) {
  std::vector<std::thread> threads;
  for (std::size_t device = 0; device < group.all.size(); ++device) {
    threads.emplace_back([&, device] {
      const roost::detail::device_guard guard(static_cast<int>(device));
      cudaStream_t stream = nullptr;
      roost::detail::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      {
        const roost::cuda place{stream};
        EXPECT_NO_THROW(f(roost::rank(group.all[device], place, deadline)));
      }
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
  nccl_group group(roost::cuda_devices());
  if (group.all.empty()) GTEST_SKIP() << "no libnccl.so.2";
  on_devices(group, std::chrono::seconds(60), [&](const roost::rank<roost::cuda>& all) {
    const auto& place = all.place();
    EXPECT_EQ(all.size(), group.all.size());
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
  });
}

/// The last rank makes no call: the others end at their deadline, and say so.
TEST(rank_nccl, a_rank_that_is_gone) {
  nccl_group group(roost::cuda_devices());
  if (group.all.size() < 2) GTEST_SKIP() << "fewer than two devices, or no libnccl.so.2";
  on_devices(group, std::chrono::seconds(2), [&](const roost::rank<roost::cuda>& all) {
    if (all.number() + 1 == all.size()) return;
    const auto mine = keys_of(all.place(), all.number());
    const auto build = [&] { roost::sharded_map(all, mine, mine); };
    expect_error<roost::device_error>(build, {"roost::rank", "has waited 2 s"});
    expect_error<roost::error>(build, {"cannot go on"});
    group.all[all.number()] = nullptr;  // which was aborted
  });
}

TEST(rank_nccl, refuses_a_place_on_another_device) {
  nccl_group group(roost::cuda_devices());
  if (group.all.size() < 2) GTEST_SKIP() << "fewer than two devices, or no libnccl.so.2";
  expect_error<roost::invalid_argument>([&] { roost::rank(group.all[1], test_place()); },
                                        {"communicator of CUDA device 1", "on device 0"});
}

}  // namespace
}  // namespace test
