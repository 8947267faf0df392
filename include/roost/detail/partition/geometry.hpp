#pragma once

#include "roost/detail/place/numbers.hpp"
#include "roost/error.hpp"
#include "roost/hash.hpp"

// Shared by the layouts to choose the geometry of a table.

namespace roost::detail {

/// Chooses a key's region by the leading bits of its hash.
struct leading_bits {
  std::uint64_t seed;
  std::uint32_t regions;

  template <class Key>
  ROOST_FN std::uint32_t operator()(const Key& key) const {
    return static_cast<std::uint32_t>(split_hash(hash_of(key, seed), regions).digit);
  }
};

constexpr bool is_prime_or_1(std::uint32_t n) {
  for (std::uint32_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

/// 1, or a prime that is n or slightly more: with this number of slots or buckets every stride visits all of
/// them.
constexpr std::uint32_t prime_from(std::uint32_t n) {
  while (!is_prime_or_1(n)) ++n;
  return n;
}

/// The seed of a build attempt: another hash function for each.
inline std::uint64_t seed_of_attempt(std::uint64_t seed, int attempt) {
  return attempt == 0 ? seed : mix64(static_cast<std::uint64_t>(attempt), mix64(seed, 0x9e3779b97f4a7c15ull));
}

/// Throws for a table that is too large for any memory, before its size is converted to integers.
inline void check_table_bytes(double bytes, double regions, const char* where) {
  if (bytes < 0x1p56 && regions < 0x1p31) return;
  detail::raise<out_of_memory>({where, ": a table of ", bytes, " bytes; use fewer keys"});
}

/// The number of regions for a table that should have `wished`, if its pairs are already split into `parts`
/// parts (0: they are not). A region must consist of whole parts, and two neighbouring parts may form one.
inline double regions_from_parts(double wished, std::uint32_t parts) {
  constexpr double least = 0.9;  // of `wished`
  if (parts < least * wished) return wished;
  while (parts % 2 == 0 && parts / 2 >= larger(2.0, least * wished)) parts /= 2;
  return parts;
}

}  // namespace roost::detail
