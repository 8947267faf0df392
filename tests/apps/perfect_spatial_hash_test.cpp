#include "papers/perfect_spatial_hash.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "support/keys.hpp"
#include "support/place.hpp"

// The perfect spatial hash of the benchmarks: every key has a slot of its own, and absent keys are told.

namespace test {
namespace {

using table = roost::bench::perfect_spatial_hash<place_type>;

void expect_exactly(const std::set<u32>& keys, const std::set<u32>& absent) {
  std::vector<u32> in(keys.begin(), keys.end()), values;
  std::shuffle(in.begin(), in.end(), std::mt19937(5));
  for (const u32 key : in) values.push_back(~key);
  const auto keys_in = upload(in), values_in = upload(values);
  const table map(test_place(), keys_in.span(), values_in.span());
  EXPECT_EQ(map.size(), in.size());
  std::vector<u32> queries = in;
  for (const u32 key : absent) {
    if (!keys.contains(key)) queries.push_back(key);
  }
  const auto queries_in = upload(queries);
  memory_of<u32> results(test_place(), queries.size());
  map.find(test_place(), queries_in.span(), results.span(), 12345u);
  const auto found = download(std::as_const(results).span());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], i < in.size() ? values[i] : 12345u) << i;
}

u32 voxel(u32 x, u32 y, u32 z) { return x << 20 | y << 10 | z; }

TEST(perfect_spatial_hash, finds_random_keys_and_no_others) {
  std::mt19937 random(1);
  for (const std::size_t n : {0, 1, 2, 3, 9, 27, 100, 1000, sanitized ? 2000 : 20000}) {
    for (const u32 most : {(1u << 30) - 1, 0xffffffffu}) {
      std::set<u32> keys, absent{0u, most, 0xffffffffu};
      while (keys.size() < n) keys.insert(static_cast<u32>(random()) & most);
      while (absent.size() < n + 10) absent.insert(static_cast<u32>(random()));
      expect_exactly(keys, absent);
    }
  }
}

TEST(perfect_spatial_hash, takes_the_surface_and_the_inside_of_a_ball) {
  std::set<u32> shell, ball;
  for (u32 x = 0; x < 26; ++x) {
    for (u32 y = 0; y < 26; ++y) {
      for (u32 z = 0; z < 26; ++z) {
        const auto square = [](u32 at) { return (at - 12.5) * (at - 12.5); };
        const double far = square(x) + square(y) + square(z);
        if (far < 12 * 12) ball.insert(voxel(x + 500, y, z + 997));
        if (far < 12 * 12 && far > 10.5 * 10.5) shell.insert(voxel(x, y, z));
      }
    }
  }
  expect_exactly(shell, ball);
  expect_exactly(ball, shell);
}

TEST(perfect_spatial_hash, is_as_small_as_the_document_says) {
  std::mt19937 random(2);
  std::set<u32> different;
  while (different.size() < (sanitized ? 5000 : 100000)) different.insert(static_cast<u32>(random()) >> 2);
  const std::vector<u32> keys(different.begin(), different.end());
  const auto in = upload(keys);
  const table map(test_place(), in.span(), in.span());
  EXPECT_LT(map.entries(), sanitized ? 2.5 : 1.3);
  EXPECT_GT(map.load_factor(), sanitized ? 0.8 : 0.9);  // 5000 voxels lie in a cube of 18
  EXPECT_EQ(map.bytes(), map.shape().slot_count() * 8 + map.shape().offset_count() * 4);
}

TEST(perfect_spatial_hash, refuses_a_key_that_is_there_twice) {
  const auto keys = upload(std::vector<u32>{1, 2, 3, 2});
  EXPECT_THROW(table(test_place(), keys.span(), keys.span()), roost::build_error);
}

}  // namespace
}  // namespace test
