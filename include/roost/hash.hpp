#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "roost/detail/place/config.hpp"

/// \file
/// Hash functions. All of them take a seed, so that a build can restart with another function of the same
/// family.
///
/// Keys of up to 8 bytes are hashed by bijections (the finalizers of MurmurHash3, A. Appleby, public domain):
/// different keys have different hashes, and a hash can be turned back into its key. Longer keys are folded
/// into 64 bits. All functions are constexpr where possible, run on both places, allocate nothing and may be
/// called from any thread.

namespace roost {

/// True for key types whose values are equal exactly if their bytes are equal. Tables compare keys by their
/// bytes. Specialise it as true for a type for which the language cannot guarantee this (a struct that
/// contains floats). You then promise that equal keys have equal bytes. Pointers, std::string_view and
/// std::span are refused all the same: their bytes are an address; and so is padding, which copies do not
/// keep. (Pointers inside a struct cannot be detected, nor can padding by nvcc.)
template <class Key>
inline constexpr bool is_bitwise_comparable =
    std::is_trivially_copyable_v<Key> && std::has_unique_object_representations_v<Key>;

namespace detail {

/// Types whose bytes are an address: comparing the bytes does not compare what the address points to.
template <class T>
inline constexpr bool is_address = std::is_pointer_v<T>;
template <class Char, class Traits>
inline constexpr bool is_address<std::basic_string_view<Char, Traits>> = true;
template <class T, std::size_t Extent>
inline constexpr bool is_address<std::span<T, Extent>> = true;

template <bool Reads, class T>
constexpr bool in_a_constant([[maybe_unused]] const T& key) {
  if constexpr (Reads) static_cast<void>(std::bit_cast<std::array<signed char, sizeof(T)>>(key));
  return true;
}
/// Whether a T can be made in a constant expression, but its bytes cannot be read there: some are padding.
template <class T>
constexpr bool has_padding = requires { std::bool_constant<in_a_constant<false>(T{})>(); } &&
                             !requires { std::bool_constant<in_a_constant<true>(T{})>(); };

/// True, or it does not compile.
template <class Key>
constexpr bool check_key() {
  static_assert(!is_address<Key>,
                "keys are compared by their bytes, and those of a pointer, a std::string_view or a std::span "
                "are an address: hash what lies there to a key of fixed size, or copy it to one (for the "
                "address itself take std::uintptr_t)");
  static_assert(is_address<Key> || is_bitwise_comparable<Key>,
                "keys are compared by their bytes: use a type without padding or floating point (for the "
                "latter, specialise roost::is_bitwise_comparable); a std::string has its text elsewhere: "
                "number texts with roost::string_index");
  if constexpr (is_bitwise_comparable<Key> && !std::has_unique_object_representations_v<Key>)
    static_assert(!has_padding<Key>, "a key has padding, which copies do not keep: fill it with members");
  return true;
}

/// The same for the keys and values of a table.
template <class Key, class Value>
constexpr bool check_types() {
  static_assert(check_key<Key>());
  static_assert(std::is_trivially_copyable_v<Value>, "values are copied byte by byte");
  static_assert(std::is_default_constructible_v<Key> && std::is_copy_assignable_v<Key> &&
                    std::is_default_constructible_v<Value> && std::is_copy_assignable_v<Value>,
                "keys and values are made before it is known what they are: give the type a default "
                "constructor and no const members");
  return true;
}

}  // namespace detail

/// MurmurHash3's 32-bit finalizer of `x ^ seed`: a bijection for every seed.
ROOST_FN constexpr std::uint32_t mix32(std::uint32_t x, std::uint32_t seed = 0) {
  x ^= seed;
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  x ^= x >> 16;
  return x;
}

/// The inverse of mix32: `unmix32(mix32(x, seed), seed) == x`.
ROOST_FN constexpr std::uint32_t unmix32(std::uint32_t h, std::uint32_t seed = 0) {
  h ^= h >> 16;
  h *= 0x7ed1b41du;
  h ^= (h >> 13) ^ (h >> 26);
  h *= 0xa5cb9243u;
  h ^= h >> 16;
  return h ^ seed;
}

/// MurmurHash3's 64-bit finalizer of `x ^ seed`: a bijection for every seed.
ROOST_FN constexpr std::uint64_t mix64(std::uint64_t x, std::uint64_t seed = 0) {
  x ^= seed;
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  x ^= x >> 33;
  return x;
}

/// The inverse of mix64.
ROOST_FN constexpr std::uint64_t unmix64(std::uint64_t h, std::uint64_t seed = 0) {
  h ^= h >> 33;
  h *= 0x9cb4b2f8129337dbull;
  h ^= h >> 33;
  h *= 0x4f74430c22a54005ull;
  h ^= h >> 33;
  return h ^ seed;
}

/// The bytes of a key of up to 8 bytes as an unsigned integer, extended with zeros.
template <class Key>
  requires(sizeof(Key) <= 8)
ROOST_FN auto key_bits(const Key& key) {
  using word = std::conditional_t<sizeof(Key) <= 4, std::uint32_t, std::uint64_t>;
  if constexpr (std::is_integral_v<Key> && !std::is_same_v<Key, bool>) {
    return static_cast<word>(static_cast<std::make_unsigned_t<Key>>(key));
  } else {
    word bits = 0;
    std::memcpy(&bits, &key, sizeof(Key));
    return bits;
  }
}

/// True if two keys have the same bytes.
template <class Key>
ROOST_FN bool same_key(const Key& a, const Key& b) {
  if constexpr (std::is_integral_v<Key>) {
    return a == b;
  } else {
    using word = std::conditional_t<sizeof(Key) % 4 == 0, std::uint32_t, unsigned char>;
    constexpr int words = sizeof(Key) / sizeof(word);
    word a_words[words], b_words[words];
    std::memcpy(a_words, &a, sizeof(Key));
    std::memcpy(b_words, &b, sizeof(Key));
    word difference = 0;
    ROOST_UNROLL
    for (int i = 0; i < words; ++i) difference |= a_words[i] ^ b_words[i];
    return difference == 0;
  }
}

/// A strict total order of keys by their bytes. For integers it is the order of their unsigned values, and
/// longer keys are compared word by word, without branches.
template <class Key>
ROOST_FN bool key_less(const Key& a, const Key& b) {
  if constexpr (sizeof(Key) <= 8) {
    return key_bits(a) < key_bits(b);
  } else {
    using word = std::conditional_t<sizeof(Key) % 8 == 0, std::uint64_t,
                                    std::conditional_t<sizeof(Key) % 4 == 0, std::uint32_t, unsigned char>>;
    constexpr int words = sizeof(Key) / sizeof(word);
    word a_words[words], b_words[words];
    std::memcpy(a_words, &a, sizeof(Key));
    std::memcpy(b_words, &b, sizeof(Key));
    bool less = false;
    ROOST_UNROLL
    for (int i = 0; i < words; ++i)
      less = (a_words[i] < b_words[i]) | ((a_words[i] == b_words[i]) & less);  // the last word decides first
    return less;
  }
}

/// The hash of a key: 32 bits for keys of up to 4 bytes, else 64. It is a bijection for keys of up to 8
/// bytes. Longer keys are folded word by word. Each step is a bijection of its word, so keys that differ in
/// one word only never collide.
template <class Key>
ROOST_FN auto hash_of(const Key& key, std::uint64_t seed = 0) {
  static_assert(detail::check_key<Key>());
  if constexpr (sizeof(Key) <= 4) {
    return mix32(key_bits(key), static_cast<std::uint32_t>(seed ^ (seed >> 32)));
  } else if constexpr (sizeof(Key) <= 8) {
    return mix64(key_bits(key), seed);
  } else {
    constexpr int words = (sizeof(Key) + 7) / 8;
    std::uint64_t word[words] = {};
    std::memcpy(word, &key, sizeof(Key));
    std::uint64_t h = seed;
    ROOST_UNROLL
    for (int i = 0; i < words; ++i) h = mix64(word[i], h);
    return h;
  }
}

/// The inverse of hash_of for keys of up to 8 bytes: `key_of_hash<Key>(hash_of(key, seed), seed)` is `key`.
template <class Key, class Hash>
  requires(sizeof(Key) <= 8)
ROOST_FN Key key_of_hash(Hash hash, std::uint64_t seed = 0) {
  Key key;
  if constexpr (sizeof(Key) <= 4) {
    const std::uint32_t bits = unmix32(hash, static_cast<std::uint32_t>(seed ^ (seed >> 32)));
    std::memcpy(&key, &bits, sizeof(Key));
  } else {
    const std::uint64_t bits = unmix64(hash, seed);
    std::memcpy(&key, &bits, sizeof(Key));
  }
  return key;
}

/// A hash split in two: its leading digit, and the rest of the information.
template <class Hash>
struct hash_split {
  std::uint64_t digit;
  Hash rest;
};

/// Reads a hash as a fraction in [0, 1) and multiplies it by `digits`. The integer part is the leading digit
/// in [0, digits); the remaining fraction can be split again. This needs no modulo and no power of two. Digit
/// and rest together determine the hash.
template <class Hash>
ROOST_FN hash_split<Hash> split_hash(Hash hash, std::uint64_t digits) {
  if constexpr (sizeof(Hash) == 4) {
    const std::uint64_t product = std::uint64_t{hash} * digits;
    return {product >> 32, static_cast<std::uint32_t>(product)};
  } else {
#if ROOST_ON_DEVICE
    return {__umul64hi(hash, digits), hash * digits};
#else
    const detail::uint128 product = static_cast<detail::uint128>(hash) * digits;
    return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
#endif
  }
}

/// The hash function of Alcantara et al. 2009, section 4.1: `((c0 + c1 k) mod 1900813) mod m`. It is kept for
/// the tables that follow the paper. For every choice of constants, it maps keys that are equal modulo the
/// prime 1900813 to the same position.
struct alcantara_hash {
  static constexpr std::uint32_t prime = 1900813;
  std::uint32_t c0 = 0;
  std::uint32_t c1 = 1;

  template <class Key>
  ROOST_FN std::uint32_t operator()(const Key& key, std::uint32_t m) const {
    std::uint64_t k;
    if constexpr (sizeof(Key) <= 4) {
      k = key_bits(key);
    } else if constexpr (sizeof(Key) <= 8) {
      k = key_bits(key) % prime;  // keeps the product within 64 bits
    } else {
      k = hash_of(key) % prime;
    }
    return static_cast<std::uint32_t>((c0 + std::uint64_t{c1} * k) % prime) % m;
  }
};

}  // namespace roost
