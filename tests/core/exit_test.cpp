#include <optional>

#include "support/keys.hpp"
#include "support/place.hpp"

// Tables that live as long as the program: they give their memory back after main has returned, when function
// local statics are gone and CUDA may be shutting down. Each test is a process of its own under ctest, whose
// exit code tells.

namespace test {
namespace {

struct globals {
  std::unique_ptr<roost::array<u32, place_type>> memory;
  std::optional<roost::frozen_map<u32, u32, place_type>> map;
  std::optional<roost::concurrent_map<u32, u32, place_type>> concurrent;
};
globals kept;  // made before any pool of memory is

#if defined(__CUDACC__)
cudaStream_t stream_of_the_device() { return cudaStreamPerThread; }
place_type place_with_its_own_memory() { return place_type(stream_of_the_device()); }
#else
place_type place_with_its_own_memory() { return place_type(); }
#endif

TEST(at_exit, tables_outlive_main) {
  const place_type place = place_with_its_own_memory();
  const auto keys = roost::copy_to(place, std::vector<u32>{1, 2, 3});
  kept.memory = std::make_unique<roost::array<u32, place_type>>(place, std::size_t{1} << 20);
  kept.map.emplace(place, keys, keys);
  kept.concurrent.emplace(place, 1000);
  kept.concurrent->insert(place, keys, keys);
  EXPECT_TRUE(kept.map->valid(place));
  EXPECT_TRUE(kept.concurrent->valid(place));
}

}  // namespace
}  // namespace test
