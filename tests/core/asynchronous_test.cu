#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <roost/sorted_map.hpp>
#include <roost/sparse/coordinate_index.hpp>
#include <roost/sparse/kernel_map.hpp>
#include <roost/stadium/stadium_map.hpp>

#include "support/place.hpp"

// Calls that are documented as asynchronous on cuda return while their stream is still busy.

namespace test {
namespace {

/// A stream that is busy until release(), or for ten seconds.
class busy_stream {
 public:
  explicit busy_stream(cudaStream_t stream) {
    roost::detail::check(cudaLaunchHostFunc(
                             stream, [](void* self) { static_cast<busy_stream*>(self)->run(); }, this),
                         "cudaLaunchHostFunc");
  }
  bool is_busy() {
    const std::lock_guard lock(mutex_);
    return !ended_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return released_; });
    ended_ = true;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false, ended_ = false;
};

const place_type& place() {
  static const place_type result(test_stream());
  return result;
}

/// The first call loads kernels and makes the pool large enough, which may wait.
template <class Call>
void expect_no_wait(const char* what, const Call& call) {
  call();
  place().synchronize();
  busy_stream stream(test_stream());
  call();
  EXPECT_TRUE(stream.is_busy()) << what << " has waited for its stream";
  stream.release();
  place().synchronize();
}

struct nothing {
  template <class... T>
  ROOST_FN void operator()(const T&...) const {}
};

using number = std::uint32_t;
constexpr std::size_t n = 100'000;

struct batch {
  roost::array<number, place_type> keys = numbers(), results{place(), n};
  roost::array<bool, place_type> found{place(), n};

  static roost::array<number, place_type> numbers() {
    std::vector<number> result(n);
    std::iota(result.begin(), result.end(), 1u);
    return roost::copy_to(place(), result);
  }
};

template <class Map>
void expect_no_wait_in_lookups(const Map& map, batch& all) {
  expect_no_wait("find", [&] { map.find(place(), all.keys, all.results, 0u); });
  expect_no_wait("find with found", [&] { map.find(place(), all.keys, all.results, all.found); });
  expect_no_wait("contains", [&] { map.contains(place(), all.keys, all.found); });
  expect_no_wait("find by region",
                 [&] { map.find(place(), all.keys, all.results, 0u, {.path = roost::path::regional}); });
  expect_no_wait("for_each", [&] { map.for_each(place(), nothing()); });
}

TEST(asynchronous, calls_of_frozen_tables) {
  batch all;
  roost::frozen_map<number, number, place_type> map(place(), all.keys, all.keys);
  expect_no_wait_in_lookups(map, all);
  expect_no_wait("retrieve_all", [&] { map.retrieve_all(place(), all.keys, all.results); });
  expect_no_wait("rebuild_async", [&] { map.rebuild_async(place(), all.keys, all.keys); });
  map.finish(place());

  const roost::frozen_set<number, place_type> set(place(), all.keys);
  expect_no_wait("contains of a set", [&] { set.contains(place(), all.keys, all.found); });
  expect_no_wait("retrieve_all of a set", [&] { set.retrieve_all(place(), all.results); });

  const roost::sorted_map<number, number, place_type> sorted(place(), all.keys, all.keys);
  expect_no_wait("find of a sorted_map", [&] { sorted.find(place(), all.keys, all.results, 0u); });
  expect_no_wait("contains of a sorted_map", [&] { sorted.contains(place(), all.keys, all.found); });
}

TEST(asynchronous, calls_of_concurrent_tables) {
  batch all;
  expect_no_wait("concurrent_map", [&] { roost::concurrent_map<number, number, place_type>(place(), n); });
  roost::concurrent_map<number, number, place_type> map(place(), n);
  map.insert(place(), all.keys, all.keys);
  expect_no_wait_in_lookups(map, all);
  const roost::array<roost::operation<number, number>, place_type> operations =
      roost::copy_to(place(), std::vector<roost::operation<number, number>>(n));
  roost::array<roost::operation_result<number>, place_type> results(place(), n);
  expect_no_wait("run", [&] { map.run(place(), operations, results); });
  expect_no_wait("clear", [&] { map.clear(place()); });

  roost::stadium_map<number, number, place_type> stadium(place(), n, {.bodies = roost::residence::place});
  stadium.insert(place(), all.keys, all.keys);
  expect_no_wait_in_lookups(stadium, all);
  expect_no_wait("run of a stadium_map", [&] { stadium.run(place(), operations, results); });
  expect_no_wait("clear of a stadium_map", [&] { stadium.clear(place()); });
}

TEST(asynchronous, calls_of_groups) {
  batch all;
  roost::frozen_multimap<number, number, place_type> map(place(), all.keys, all.keys);
  expect_no_wait("find_first", [&] { map.find_first(place(), all.keys, all.results, 0u); });
  expect_no_wait("count", [&] { map.count(place(), all.keys, all.results); });
  expect_no_wait("contains", [&] { map.contains(place(), all.keys, all.found); });
  expect_no_wait("for_each", [&] { map.for_each(place(), nothing()); });
  expect_no_wait("for_each_key", [&] { map.for_each_key(place(), nothing()); });
  expect_no_wait("retrieve_all", [&] { map.retrieve_all(place(), all.keys, all.results); });
  const auto matches = map.match(place(), all.keys);
  expect_no_wait("retrieve", [&] { matches.retrieve(place(), all.results); });
  expect_no_wait("for_each of matches", [&] { matches.for_each(place(), nothing()); });

  const roost::two_way_index<number, place_type> index(place(), all.keys);
  expect_no_wait("find of an index", [&] { index.find(place(), all.keys, all.results); });
  expect_no_wait("contains of an index", [&] { index.contains(place(), all.keys, all.found); });
}

TEST(asynchronous, calls_of_voxels) {
  std::vector<roost::coordinate<3>> coordinates;
  for (int i = 0; i < 10'000; ++i) coordinates.push_back({i % 50, i / 50 % 50, i / 2500});
  const auto voxels = roost::copy_to(place(), coordinates);
  roost::array<number, place_type> rows(place(), coordinates.size());
  roost::array<bool, place_type> found(place(), coordinates.size());
  roost::coordinate_index<3, place_type> index(place(), voxels);
  expect_no_wait("find", [&] { index.find(place(), voxels, rows); });
  expect_no_wait("contains", [&] { index.contains(place(), voxels, found); });
  expect_no_wait("for_each", [&] { index.for_each(place(), nothing()); });
  expect_no_wait("submanifold", [&] { roost::submanifold(place(), index); });
}

}  // namespace
}  // namespace test
