#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <roost/hash.hpp>
#include <vector>

#include "support/keys.hpp"

// The hashes: bijections with inverses, that spread, and ranges without modulo. The same code runs on both
// places.

namespace test {
namespace {

static_assert(roost::unmix32(roost::mix32(12345, 6), 6) == 12345);
static_assert(roost::unmix64(roost::mix64(12345, 6), 6) == 12345);

TEST(hash, mix_is_murmurhash3s_finalizer) {
  EXPECT_EQ(roost::mix32(0), 0u);
  EXPECT_EQ(roost::mix32(1), 0x514e28b7u);
  EXPECT_EQ(roost::mix64(0), 0u);
  EXPECT_EQ(roost::mix64(1), 0xb456bcfc34c2cb2cull);
}

TEST(hash, unmix_inverts_mix_both_ways) {
  for (const u64 seed : random_numbers(20, 1)) {
    const auto seed32 = static_cast<u32>(seed);
    for (u64 x : random_numbers(2000, seed)) {
      const auto x32 = static_cast<u32>(x);
      ASSERT_EQ(roost::unmix32(roost::mix32(x32, seed32), seed32), x32);
      ASSERT_EQ(roost::mix32(roost::unmix32(x32, seed32), seed32), x32);
      ASSERT_EQ(roost::unmix64(roost::mix64(x, seed), seed), x);
      ASSERT_EQ(roost::mix64(roost::unmix64(x, seed), seed), x);
    }
  }
  for (int bit = 0; bit < 64; ++bit) {
    const u64 x = u64{1} << bit;
    EXPECT_EQ(roost::unmix64(roost::mix64(x)), x);
    EXPECT_EQ(roost::unmix64(roost::mix64(~x)), ~x);
    const u32 y = u32{1} << (bit % 32);
    EXPECT_EQ(roost::unmix32(roost::mix32(y)), y);
    EXPECT_EQ(roost::unmix32(roost::mix32(~y)), ~y);
  }
}

TEST(hash, of_all_short_keys_is_a_bijection) {
  for (const u64 seed : {u64{0}, u64{77}, u64{1} << 40}) {
    std::vector<u32> hashes;
    for (u32 k = 0; k < 65536; ++k) hashes.push_back(roost::hash_of(static_cast<std::uint16_t>(k), seed));
    std::sort(hashes.begin(), hashes.end());
    EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
  }
}

/// How far the share of flipped bits of h is from a half, at worst over all pairs of an input and an output
/// bit.
template <class Key, class Flip>
double worst_avalanche(const Flip& flip) {
  constexpr int samples = 4000;
  constexpr int bits_in = sizeof(Key) * 8;
  using hash = decltype(roost::hash_of(Key{}));
  constexpr int bits_out = sizeof(hash) * 8;
  std::vector<int> flipped(bits_in * bits_out);
  std::mt19937_64 random(5);
  for (int sample = 0; sample < samples; ++sample) {
    Key key;
    u64 words[(sizeof(Key) + 7) / 8];
    for (u64& word : words) word = random();
    std::memcpy(static_cast<void*>(&key), words, sizeof(Key));
    const hash before = roost::hash_of(key, 9);
    for (int in = 0; in < bits_in; ++in) {
      const hash changed = before ^ roost::hash_of(flip(key, in), 9);
      for (int out = 0; out < bits_out; ++out) flipped[in * bits_out + out] += changed >> out & 1;
    }
  }
  double worst = 0;
  for (const int count : flipped) worst = std::max(worst, std::abs(count / double{samples} - 0.5));
  return worst;
}

template <class Key>
Key flip_bit(Key key, int bit) {
  unsigned char bytes[sizeof(Key)];
  std::memcpy(bytes, &key, sizeof(Key));
  bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
  std::memcpy(static_cast<void*>(&key), bytes, sizeof(Key));
  return key;
}

TEST(hash, changes_half_of_its_bits_for_every_bit_of_the_key) {
  EXPECT_LT(worst_avalanche<u32>(flip_bit<u32>), 0.06);
  EXPECT_LT(worst_avalanche<u64>(flip_bit<u64>), 0.06);
  EXPECT_LT(worst_avalanche<twelve>(flip_bit<twelve>), 0.06);
  EXPECT_LT(worst_avalanche<sixteen>(flip_bit<sixteen>), 0.06);
  EXPECT_LT(worst_avalanche<twentyfour>(flip_bit<twentyfour>), 0.06);
}

/// Chi square over its mean, of keys counted by the digit that split_hash gives: about 1 for a uniform hash.
template <class Key>
double unevenness(const numbers& keys, u64 digits, u64 seed) {
  std::vector<double> count(digits);
  for (const u64 k : keys)
    count[roost::split_hash(roost::hash_of(from_number<Key>(k), seed), digits).digit] += 1;
  const double mean = static_cast<double>(keys.size()) / static_cast<double>(digits);
  double sum = 0;
  for (const double c : count) sum += (c - mean) * (c - mean) / mean;
  return sum / static_cast<double>(digits - 1);
}

TEST(hash, spreads_structured_keys_evenly) {
  const numbers sets[] = {multiples(50000, 1), multiples(50000, 1 << 16), multiples(50000, 1000),
                          voxels_of_sphere(60)};
  for (const numbers& keys : sets) {
    for (const u64 digits : {64, 100, 1021}) {
      for (const u64 seed : {0, 1}) {
        EXPECT_LT(unevenness<u32>(keys, digits, seed), 1.6);
        EXPECT_LT(unevenness<u64>(keys, digits, seed), 1.6);
        EXPECT_LT(unevenness<twelve>(keys, digits, seed), 1.6);
        EXPECT_LT(unevenness<sixteen>(keys, digits, seed), 1.6);
      }
    }
  }
}

TEST(hash, seeds_give_different_functions) {
  int same = 0;
  for (u32 k = 0; k < 10000; ++k) {
    same += roost::split_hash(roost::hash_of(k, 1), 100).digit ==
            roost::split_hash(roost::hash_of(k, 2), 100).digit;
    same += roost::split_hash(roost::hash_of(k, u64{1} << 32), 100).digit ==
            roost::split_hash(roost::hash_of(k, u64{2} << 32), 100).digit;
  }
  EXPECT_NEAR(same, 200, 80);
}

TEST(hash, longer_keys_that_differ_in_one_word_never_collide) {
  std::vector<u64> hashes;
  for (const u64 k : multiples(20000, 1)) hashes.push_back(roost::hash_of(sixteen{42, k}));
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
  EXPECT_NE(roost::hash_of(sixteen{1, 2}), roost::hash_of(sixteen{2, 1}));
  EXPECT_NE(roost::hash_of(twentyfour{0, 0, 1}), roost::hash_of(twentyfour{0, 1, 0}));
}

TEST(hash, split_gives_the_leading_digit_and_keeps_the_rest) {
  for (const u64 digits : {2, 3, 100, 256, 65535, 65536}) {
    EXPECT_EQ(roost::split_hash(u32{0}, digits).digit, 0u);
    EXPECT_EQ(roost::split_hash(~u32{0}, digits).digit, digits - 1);
    EXPECT_EQ(roost::split_hash(u64{0}, digits).digit, 0u);
    EXPECT_EQ(roost::split_hash(~u64{0}, digits).digit, digits - 1);
    for (const u64 h : random_numbers(1000, digits)) {
      const auto h32 = static_cast<u32>(h);
      const auto by_32 = roost::split_hash(h32, digits);
      EXPECT_EQ(by_32.digit, u64{h32} * digits >> 32);
      EXPECT_EQ((by_32.digit << 32) + by_32.rest, u64{h32} * digits) << "digit and rest tell the hash";
      const auto by_64 = roost::split_hash(h, digits);
      const auto expected = static_cast<unsigned __int128>(h) * digits;
      EXPECT_EQ(by_64.digit, static_cast<u64>(expected >> 64));
      EXPECT_EQ(by_64.rest, static_cast<u64>(expected));
    }
  }
}

TEST(hash, digits_ascend_with_the_hash) {
  u64 before = 0;
  for (u64 h = 0; h < u64{1} << 32; h += 99991) {
    const u64 digit = roost::split_hash(static_cast<u32>(h), 1000).digit;
    ASSERT_GE(digit, before);
    before = digit;
  }
}

TEST(hash, keys_are_compared_and_ordered_by_their_bytes) {
  EXPECT_TRUE(roost::same_key(sixteen{1, 2}, sixteen{1, 2}));
  EXPECT_FALSE(roost::same_key(sixteen{1, 2}, sixteen{1, 3}));
  EXPECT_FALSE(roost::same_key(twelve{1, 2, 3}, twelve{0, 2, 3}));
  EXPECT_TRUE(roost::key_less(-1, -2) == false && roost::key_less(1, -1)) << "by unsigned value";
  const auto keys = from_numbers<twentyfour>(random_numbers(50, 1));
  for (const auto& a : keys) {
    EXPECT_FALSE(roost::key_less(a, a));
    for (const auto& b : keys) {
      EXPECT_EQ(roost::key_less(a, b) || roost::key_less(b, a), !(a == b));
      EXPECT_FALSE(roost::key_less(a, b) && roost::key_less(b, a));
    }
  }
}

TEST(hash, alcantaras_function_is_the_papers) {
  const roost::alcantara_hash h{123456789, 987654321};
  for (const u64 k : random_numbers(1000, 3)) {
    const auto k32 = static_cast<u32>(k);
    EXPECT_EQ(h(k32, 192), (123456789ull + 987654321ull * k32) % 1900813 % 192);
    EXPECT_EQ(h(k, 192),
              static_cast<u32>((123456789 + static_cast<unsigned __int128>(987654321) * k) % 1900813) % 192);
    EXPECT_EQ(h(k32 / 2, 1000), h(k32 / 2 + 1900813, 1000)) << "cannot tell these apart";
  }
}

}  // namespace
}  // namespace test
