#include <cooperative_groups.h>

#include <roost/concurrent_map.hpp>

#include "support/concurrent.hpp"

// Several threads for one key do what one thread does, beside threads that work alone.

namespace test {
namespace {

namespace cg = cooperative_groups;
using roost::insertion;

template <unsigned Lanes, class Ref>
__global__ void insert_by_lanes(Ref ref, const typename Ref::key_type* keys, std::size_t n, u32* inserted) {
  const auto tile = cg::tiled_partition<Lanes>(cg::this_thread_block());
  const roost::tile_lanes lanes(tile);
  const std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / Lanes;
  if (i >= n) return;
  const auto key = keys[i];
  const insertion what = ref.insert(lanes, key, static_cast<typename Ref::value_type>(key + 1));
  if (tile.thread_rank() == Lanes - 1 && what == insertion::inserted) atomicAdd(inserted, 1u);
}

template <unsigned Lanes, class Ref>
__global__ void ask_by_lanes(Ref ref, const typename Ref::key_type* keys, std::size_t n, u32* wrong) {
  const auto tile = cg::tiled_partition<Lanes>(cg::this_thread_block());
  const roost::tile_lanes lanes(tile);
  const std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / Lanes;
  if (i >= n) return;
  using value = typename Ref::value_type;
  const auto key = keys[i];
  const auto missing = static_cast<typename Ref::key_type>(~key);
  bool good = true;
  const auto found = ref.find(lanes, key);
  good &= found.has_value() && *found == static_cast<value>(key + 1) && ref.contains(lanes, key);
  good &= !ref.find(lanes, missing) && !ref.contains(lanes, missing) && !ref.erase(lanes, missing);
  good &= ref.insert_or_apply(lanes, key, static_cast<value>(5), roost::plus()) == insertion::present;
  good &= ref.insert_and_find(lanes, key, static_cast<value>(1)).value == static_cast<value>(key + 6);
  if constexpr (sizeof(value) <= 8) {
    good &= ref.replace(lanes, key, static_cast<value>(key + 6), static_cast<value>(8)) &&
            !ref.replace(lanes, key, static_cast<value>(key + 6), static_cast<value>(7));
    good &= !ref.replace(lanes, missing, static_cast<value>(8), static_cast<value>(7)) &&
            *ref.find(lanes, key) == static_cast<value>(8);
  }
  good &= ref.insert_or_assign(lanes, key, static_cast<value>(9)) == insertion::present &&
          *ref.find(key) == static_cast<value>(9);
  if (key % 2 == 0) good &= ref.erase(lanes, key) && !ref.erase(key) && !ref.find(lanes, key);
  if (!good) atomicAdd(wrong, 1u);
}

/// Every other thread of the last warp is elsewhere.
template <class Ref>
__global__ void ask_as_neighbours(Ref ref, const typename Ref::key_type* keys, std::size_t n, u32* wrong) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n || (i + 32 > n && i % 2 == 0)) return;
  const auto key = keys[i];
  const roost::warp_neighbours lanes;
  const auto alone = ref.find(key), found = ref.find(lanes, key);
  const auto missing = static_cast<typename Ref::key_type>(~key);
  const bool good = found.has_value() == alone.has_value() && (!found || *found == *alone) &&
                    ref.contains(lanes, key) == alone.has_value() && !ref.find(lanes, missing);
  if (!good) atomicAdd(wrong, 1u);
}

template <unsigned Lanes, class Key, class Value>
void check(double load_factor) {
  const std::size_t n = 100000;
  std::vector<Key> keys(n), even;
  for (std::size_t i = 0; i < n; ++i) {
    keys[i] =
        static_cast<Key>(roost::mix32(static_cast<u32>(i)) & 0x7fffffff);  // no key is another's complement
    if (keys[i] % 2 == 0) even.push_back(keys[i]);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::sort(even.begin(), even.end());
  even.erase(std::unique(even.begin(), even.end()), even.end());
  keys = shuffled(std::move(keys), 1);
  const std::size_t changes = sizeof(Value) > 8 ? 3 : 1;  // of a key, that take an entry for a large value
  roost::concurrent_map<Key, Value, place_type> map(test_place(), changes * keys.size(),
                                                    {.load_factor = load_factor});
  const auto on_place = upload(keys);
  auto count = filled<u32>(2, 0);
  const auto blocks = static_cast<unsigned>((keys.size() * Lanes + 255) / 256);
  for (int twice = 0; twice < 2; ++twice) {
    insert_by_lanes<Lanes>
        <<<blocks, 256, 0, test_stream()>>>(map.ref(), on_place.data(), keys.size(), count.data());
    roost::detail::check(cudaGetLastError(), "insert_by_lanes");
  }
  EXPECT_EQ(download(count)[0], keys.size());
  EXPECT_EQ(map.size(test_place()), keys.size());
  ask_by_lanes<Lanes>
      <<<blocks, 256, 0, test_stream()>>>(map.ref(), on_place.data(), keys.size(), count.data() + 1);
  roost::detail::check(cudaGetLastError(), "ask_by_lanes");
  EXPECT_EQ(download(count)[1], 0u);
  EXPECT_EQ(map.size(test_place()), keys.size() - even.size());
  ask_as_neighbours<<<blocks, 256, 0, test_stream()>>>(map.ref(), on_place.data(), keys.size(),
                                                       count.data() + 1);
  roost::detail::check(cudaGetLastError(), "ask_as_neighbours");
  EXPECT_EQ(download(count)[1], 0u);
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(concurrent_lanes, do_what_one_thread_does) {
  check<2, u32, u32>(0.8);
  check<4, u32, u32>(0.97);
  check<32, u32, u32>(0.8);
  check<4, u64, u64>(0.9);
  check<4, u32, linked<u64, 2>>(0.97);
  check<2, u64, linked<u32, 3>>(0.97);
}

}  // namespace
}  // namespace test
