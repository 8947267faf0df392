#include <roost/join.hpp>
#include <roost/stadium/stadium_map.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Tables of more slots than 32 bits count, and of more keys. They run where there is the memory, which is a
// GPU most times.

namespace test {
namespace {

constexpr u64 limit = u64{1} << 32;

/// Different keys for different numbers, computed where they are used.
template <class Key>
struct key_of_number {
  u64 first;
  ROOST_FN Key operator()(std::size_t i) const {
    if constexpr (sizeof(Key) == 4) {
      return roost::mix32(static_cast<u32>(first + i), 99);
    } else {
      return roost::mix64(first + i, 99);
    }
  }
};

template <class Key>
struct sample_of_keys {
  u64 n;
  ROOST_FN u64 number(std::size_t i) const {
    return roost::mix64(i, 7) % (2 * n);
  }  // half of them are stored
  ROOST_FN Key operator()(std::size_t i) const { return key_of_number<Key>{0}(number(i)); }
};

template <class Key>
struct wrong_answer {
  sample_of_keys<Key> sample;
  const bool* answers;
  ROOST_FN u64 operator()(std::size_t i) const { return answers[i] != (sample.number(i) < sample.n); }
};

template <class Keys>
struct key_itself {
  Keys keys;
  ROOST_FN u64 operator()(std::size_t i) const {
    return roost::mix64(keys[i], 5);
  }  // so that no two wrong keys make a right sum
};

#if defined(__CUDACC__)
place_type plain_place() { return place_type(test_stream()); }

std::size_t free_bytes() {
  test_place().synchronize();
  roost::device_memory_pool::of(test_place().device()).trim();
  std::size_t free = 0, total = 0;
  roost::detail::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}
#else
place_type plain_place() {
  return place_type(0, std::pmr::new_delete_resource());
}  // keeps nothing, and refuses nothing

/// A third of what the system has: other tests run beside this one.
std::size_t free_bytes() { return roost::detail::bytes_available_on_host() / 3; }
#endif

/// A set of n keys. `gib`: what it takes with its build.
template <class Key, class Layout>
void check_large_set(u64 n, double load_factor, double gib) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  const double free = static_cast<double>(free_bytes()) / 0x1p30;
  if (free < gib)
    GTEST_SKIP() << "needs " << gib << " GiB of memory, " << gib - free << " GiB more than are free for it";
  const place_type place = plain_place();
  const roost::computed keys(n, key_of_number<Key>{0});
  const roost::frozen_set<Key, place_type, Layout> set(place, keys, {.load_factor = load_factor});
  EXPECT_EQ(set.size(), n);
  EXPECT_GT(set.capacity(), limit);
  EXPECT_EQ(set.statistics().duplicates, 0u);
  EXPECT_EQ(set.statistics().restarts, 0);
  EXPECT_EQ(set.count_found(place, keys), n);
  EXPECT_EQ(set.count_found(place, roost::computed(n, key_of_number<Key>{n})), 0u);

  constexpr std::size_t samples = std::size_t{1} << 22;
  const sample_of_keys<Key> sample{n};
  for (const roost::path path : {roost::path::direct, roost::path::regional}) {
    roost::array<bool, place_type> answers(place, samples);
    EXPECT_EQ(set.contains(place, roost::computed(samples, sample), answers, {.path = path}).path, path);
    EXPECT_EQ(place.sum(samples, wrong_answer<Key>{sample, answers.data()}), 0u)
        << "path " << static_cast<int>(path);
  }

  roost::array<Key, place_type> all(place, n);
  EXPECT_EQ(set.retrieve_all(place, all), n);
  EXPECT_EQ(place.sum(n, key_itself<const Key*>{all.data()}),
            place.sum(n, key_itself<roost::computed<key_of_number<Key>>>{keys}));
  EXPECT_TRUE(set.valid(place));
}

// Few keys, in tables of the fewest bytes a slot: 25 slots of a sector of 32 bytes, and 8.
TEST(large_table, compact_of_more_slots_than_32_bits_count) {
  check_large_set<u32, roost::compact>(u64{1} << 28, 0.18, 9.5);
}
TEST(large_table, bucketed_of_more_slots_than_32_bits_count) {
  check_large_set<u32, roost::bucketed>(u64{1} << 28, 0.06, 21);
}

struct product_of_rows {
  const u32* left;
  const u32* right;
  ROOST_FN u64 operator()(std::size_t i) const { return (u64{left[i]} + 1) * (right[i] + 1); }
};

// Each row with each: the sum of their products is the square of the sum of all rows.
TEST(large_table, join_of_more_pairs_than_31_bits_count) {
  constexpr u64 n = 47000, sum = n * (n + 1) / 2;
  const double free = static_cast<double>(free_bytes()) / 0x1p30;
  if (sanitized || free < 19) GTEST_SKIP() << "needs 19 GiB, " << free << " are free";
  const place_type place = plain_place();
  const auto keys = roost::copy_to(place, std::vector<u64>(n, 5));
  const auto pairs = roost::inner_join(place, keys, keys);
  ASSERT_EQ(pairs.left.size(), n * n);
  EXPECT_EQ(place.sum(n * n, product_of_rows{pairs.left.data(), pairs.right.data()}), sum * sum);
}

// Keys of 8 bytes; there are no more of 4.
TEST(large_table, compact_of_more_keys_than_32_bits_count) {
  check_large_set<u64, roost::compact>(limit + (u64{1} << 20), 1.0, 104);
}

#if defined(__CUDACC__)
struct number_itself {
  ROOST_FN u64 operator()(std::size_t i) const { return i; }
};
struct wrong_number {
  const u64* found;
  u64 first;
  ROOST_FN u64 operator()(std::size_t i) const { return found[i] != first + i; }
};

/// 64 GiB of pairs in memory of the host.
TEST(large_table, stadium_of_more_slots_than_32_bits_count) {
  const double free = static_cast<double>(roost::detail::bytes_available_on_host()) / 0x1p30;
  const double free_there = static_cast<double>(free_bytes()) / 0x1p30;
  if (free < 90) GTEST_SKIP() << "needs 90 GiB of the host's memory, " << free << " are free";
  if (free_there < 60) GTEST_SKIP() << "needs 60 GiB of the device's memory, " << free_there << " are free";
  const place_type place = plain_place();
  const auto n = static_cast<u64>(0.8 * static_cast<double>(limit)) + 1000;
  roost::stadium_map<u64, u64, place_type> map(
      place, n, {.load_factor = 0.8, .bodies = roost::residence::host, .grows = false});
  EXPECT_GT(map.capacity(), limit);
  const auto report =
      map.insert_new(place, roost::computed(n, key_of_number<u64>{0}), roost::computed(n, number_itself()));
  EXPECT_EQ(report.inserted, n);
  // In less memory the chunks of the batch are too small for it.
  if (free_there > 100) EXPECT_EQ(report.path, roost::path::streamed);
  EXPECT_EQ(map.size(place), n);

  constexpr u64 chunk = u64{1} << 28;
  roost::array<u64, place_type> found(place, chunk);
  u64 wrong = 0;
  for (u64 first = 0; first < n; first += chunk) {
    const u64 count = std::min(chunk, n - first);
    map.find(place, roost::computed(count, key_of_number<u64>{first}), found.span().first(count), ~u64{0});
    wrong += place.sum(count, wrong_number{found.data(), first});
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(map.count_found(place, roost::computed(chunk, key_of_number<u64>{n})), 0u);
}
#endif

}  // namespace
}  // namespace test
