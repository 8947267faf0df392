#pragma once

#include <cstdio>
#include <string>

#if defined(__CUDACC__)
#include <cuda_pipeline.h>
#endif

#include "roost/partition.hpp"

// What the layouts share: where empty slots get their key from, how items claim slots one by one, and what a build reports.

namespace roost::detail {

/// A number as people write it.
inline std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

constexpr bool is_prime_or_1(std::uint32_t n) {
  for (std::uint32_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

/// A prime or 1, n or a little more: so many slots or buckets that every stride goes round.
constexpr std::uint32_t prime_from(std::uint32_t n) {
  while (!is_prime_or_1(n)) ++n;
  return n;
}

/// What the teams of a build add up, in memory of the place: all that the host looks at afterwards.
struct build_counts {
  std::uint64_t placed = 0;           // pairs that have a slot
  std::uint64_t overfull = 0;         // regions with more distinct keys than slots
  std::uint64_t region_restarts = 0;  // regions that began again with another seed
  std::uint64_t rounds = 0;           // cuckoo: of the attempts that succeeded, over all regions
  std::uint32_t overflowed = 0;       // the partition ran out of slack

  ROOST_FN bool failed() const { return overfull != 0 || overflowed != 0; }
};

/// A key of another region marks an empty slot, so that no key is reserved: two keys of different regions serve all regions.
template <class Key>
struct empty_keys {
  Key first, second;
  std::uint32_t region_of_first;

  ROOST_FN Key of(std::uint32_t region) const { return region == region_of_first ? second : first; }
};

/// Finds such two keys. They exist for every hash that does not map all keys to one region.
template <class Key, class RegionOf>
empty_keys<Key> find_empty_keys(const RegionOf& region_of) {
  const auto key_number = [](std::uint64_t number) {
    Key key;
    std::memset(static_cast<void*>(&key), 0, sizeof(Key));
    std::memcpy(static_cast<void*>(&key), &number, smaller(sizeof(Key), sizeof(number)));
    return key;
  };
  empty_keys<Key> result{key_number(0), key_number(0), region_of(key_number(0))};
  for (std::uint64_t i = 1; i < 1 << 16; ++i) {
    result.second = key_number(i);
    if (region_of(result.second) != result.region_of_first) return result;
  }
  throw build_error("roost: no two of 65536 keys fall in different regions; is this a constant hash?");
}

enum class claim { made, duplicate, full };

inline constexpr std::uint32_t no_owner = ~0u;

/// Inserts item i unless its key is there: linear probing over `owner`, slots that hold item numbers. Slow beside counting, but it takes any
/// number of copies of a key, and keys of any size. on_pass(slot) hears of every slot that another key holds; after `steps_most` of them
/// the slots count as full.
template <class Team, class Item, class OnPass>
ROOST_FN claim claim_slot(const Team& team, std::uint32_t* owner, std::uint32_t slots, std::uint32_t start, const Item* items,
                          std::uint32_t i, std::uint64_t steps_most, const OnPass& on_pass) {
  std::uint32_t slot = start;
  for (std::uint64_t step = 0; step < steps_most; ++step) {
    const std::uint32_t before = team.compare_exchange(owner[slot], no_owner, i);
    if (before == no_owner) return claim::made;
    if (same_key(items[before].key, items[i].key)) return claim::duplicate;
    on_pass(slot);
    slot = slot + 1 == slots ? 0 : slot + 1;
  }
  return claim::full;
}

/// Pairs of different keys that lie in the order of the keys' hashes: those of region r begin at begins[r], and all end at begins[region_of.regions].
template <class Item>
struct items_in_order {
  const Item* items;
  std::size_t count;
  leading_bits region_of;
  const std::uint64_t* begins;

  std::size_t size() const { return count; }
  ROOST_FN const Item& operator[](std::size_t i) const { return items[i]; }
};

/// Where the items of a region begin that consists of `each` regions.
struct begin_of_several {
  const std::uint64_t* begins;
  std::uint32_t each;
  ROOST_FN std::uint64_t operator()(std::size_t region) const { return begins[region * each]; }
};

/// How many regions a table has that should have `wished`, if its pairs lie in `parts` already (or, if 0, do not): a part of a region would be of no use, and two parts that are
/// neighbours are one.
inline double regions_from_parts(double wished, std::uint32_t parts) {
  constexpr double least = 0.9;  // of what was wished
  if (parts < least * wished) return wished;
  while (parts % 2 == 0 && parts / 2 >= larger(2.0, least * wished)) parts /= 2;
  return parts;
}

/// What a region's builder is given.
template <class Item>
struct region_items {
  const Item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  build_counts* counts;

  ROOST_FN bool lack_some() const { return counts->overflowed != 0; }  // then ends may lie beyond the items
  ROOST_FN const Item* first(std::size_t region) const { return items + begins[region]; }
  ROOST_FN std::uint64_t count(std::size_t region) const { return ends[region] - begins[region]; }
};

/// Builds a region: by counting, for keys that are all different; if that does not work out, by claims. `my` are the builder's pieces of scratch.
template <class Team, class Builder, class Pieces>
ROOST_FN void build_region(const Team& team, const Builder& builder, std::size_t region, const Pieces& my) {
  const auto& from = builder.from;
  const std::uint64_t count = from.count(region);
  std::uint64_t placed = count;
  const auto number = static_cast<std::uint32_t>(region);
  bool good = count <= my.slots && builder.place_by_counting(team, number, from.first(region), static_cast<std::uint32_t>(count), my);
  if (!good) {
    good = builder.place_by_claims(team, number, from.first(region), count, my);
    placed = *my.placed;
  }
  if (team.rank() == 0) {
    if (good) {
      fetch_add(from.counts->placed, placed);
    } else {
      fetch_add(from.counts->overfull, std::uint64_t{1});
    }
  }
}

/// Calls claim_item(i) for every item of a region, and counts the claims that were made. False if some item found no place.
template <class Team, class ClaimItem>
ROOST_FN bool claim_each(const Team& team, std::uint64_t count, std::uint32_t* all_placed, const ClaimItem& claim_item) {
  if (team.rank() == 0) *all_placed = 0;
  team.sync();
  std::uint32_t placed = 0;
  bool full = count >= no_owner;  // items have 32-bit numbers here
  for (std::uint64_t i = static_cast<std::uint64_t>(team.rank()); i < count && !full; i += Team::size) {
    const claim outcome = claim_item(static_cast<std::uint32_t>(i));
    placed += outcome == claim::made;
    full = outcome == claim::full;
  }
  if (placed != 0) team.fetch_add(*all_placed, placed);
  return !team.any(full);
}

/// The seed of a build attempt: another hash function for each.
inline std::uint64_t seed_of_attempt(std::uint64_t seed, int attempt) {
  return attempt == 0 ? seed : mix64(static_cast<std::uint64_t>(attempt), mix64(seed, 0x9e3779b97f4a7c15ull));
}

/// Throws for a table that no memory holds, before its size is turned into integers.
inline void check_table_bytes(double bytes, double regions, const char* where) {
  if (bytes < 0x1p56 && regions < 0x1p31) return;
  throw out_of_memory(std::string(where) + ": a table of " + text_of(bytes) + " bytes asked for; give a higher load factor");
}

/// Reads 16 bytes at a time where the type allows it.
template <class T>
ROOST_FN T load(const T* from) {
#if ROOST_ON_DEVICE
  if constexpr (alignof(T) % 16 == 0) {
    uint4 pieces[sizeof(T) / 16];
    ROOST_UNROLL
    for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i) pieces[i] = reinterpret_cast<const uint4*>(from)[i];
    T result;
    memcpy(&result, pieces, sizeof(T));
    return result;
  }
#endif
  return *from;
}

#if ROOST_ON_DEVICE
/// Two neighbours of a warp have two pieces each. Afterwards the even one has the first piece of both, the odd one the second of both.
inline __device__ void share_with_neighbour(bool odd, uint4& first, uint4& second) {
  const auto share = [&](std::uint32_t& a, std::uint32_t& b) {
    const std::uint32_t other = __shfl_xor_sync(~0u, odd ? a : b, 1);
    a = odd ? other : a;
    b = odd ? b : other;
  };
  share(first.x, second.x), share(first.y, second.y), share(first.z, second.z), share(first.w, second.w);
}
#endif

/// Writes to[i] = make(i) for i in [0, n), past the host's cache. What is larger than 32 bytes, two neighbours of a block write together, 32 bytes at a
/// time: one thread would write each 32 bytes of memory in two halves.
template <class Team, class T, class Make>
ROOST_FN void write_each(const Team& team, std::uint32_t n, T* to, const Make& make) {
#if ROOST_ON_DEVICE
  if constexpr (sizeof(T) > 32) {
    constexpr int pieces = sizeof(T) / sizeof(uint4);
    const std::uint32_t odd = static_cast<std::uint32_t>(team.rank()) % 2;
    for_each_of(team, ceil_div(n, 32u) * 32, [&](std::uint32_t i) {  // whole warps
      uint4 piece[pieces] = {};
      if (i < n) {
        const T value = make(i);
        memcpy(piece, &value, sizeof(T));
      }
      const std::uint32_t even = i - odd;
      uint4* const target = reinterpret_cast<uint4*>(to + even) + odd;
      ROOST_UNROLL
      for (int p = 0; p < pieces; p += 2) {
        share_with_neighbour(odd != 0, piece[p], piece[p + 1]);
        if (even < n) target[p] = piece[p];
        if (even + 1 < n) target[pieces + p] = piece[p + 1];
      }
    });
    return;
  }
#endif
  for_each_of(team, n, [&](std::uint32_t i) { write_past_cache(to + i, make(i)); });
  past_cache_done();
}

/// Copies what a team works on to its scratch. In shared memory all of it is on its way at once.
template <class Team, class T>
ROOST_FN void copy_in(const Team& team, const T* from, std::uint32_t n, T* to) {
#if ROOST_ON_DEVICE
  if (__isShared(to)) {
    static_assert(alignof(T) % 16 == 0);
    const uint4* const source = reinterpret_cast<const uint4*>(from);
    uint4* const target = reinterpret_cast<uint4*>(to);
    for_each_of(team, static_cast<std::uint32_t>(n * sizeof(T) / sizeof(uint4)),
                [&](std::uint32_t i) { __pipeline_memcpy_async(target + i, source + i, sizeof(uint4)); });
    __pipeline_commit();
    __pipeline_wait_prior(0);
    return;
  }
#endif
  for_each_of(team, n, [&](std::uint32_t i) { to[i] = load(from + i); });
}

/// Writes what a team has built from its scratch to memory.
template <class Team, class T>
ROOST_FN void write_out([[maybe_unused]] const Team& team, const T* from, std::uint32_t n, T* to) {
#if ROOST_ON_DEVICE
  static_assert(alignof(T) % 16 == 0);
  const uint4* const source = reinterpret_cast<const uint4*>(from);
  uint4* const target = reinterpret_cast<uint4*>(to);
  for_each_of(team, static_cast<std::uint32_t>(n * sizeof(T) / sizeof(uint4)), [&](std::uint32_t i) { target[i] = source[i]; });
#else
  copy_past_cache(to, from, n * sizeof(T));
  past_cache_done();
#endif
}

/// The same where only some were changed. A host writes all: whole runs of lines go past its cache.
template <class Team, class T>
ROOST_FN void write_out(const Team& team, const T* from, std::uint32_t n, T* to, [[maybe_unused]] const std::uint8_t* changed) {
#if ROOST_ON_DEVICE
  constexpr std::uint32_t pieces = sizeof(T) / sizeof(uint4);
  const uint4* const source = reinterpret_cast<const uint4*>(from);
  uint4* const target = reinterpret_cast<uint4*>(to);
  for_each_of(team, n * pieces, [&](std::uint32_t i) {
    if (changed[i / pieces]) target[i] = source[i];
  });
#else
  write_out(team, from, n, to);
#endif
}

}  // namespace roost::detail
