#pragma once

#include "roost/detail/place/atomic.hpp"
#include "roost/detail/place/lanes.hpp"
#include "roost/detail/place/team.hpp"
#include "roost/embedding/embedding_options.hpp"
#include "roost/hash.hpp"

// The slots of an embedding_table, and the first two kernels of a lookup: one finds the slots of a batch, the
// other lists each missing key once, in the chain of its bucket. placement.hpp then gives slots to these.

namespace roost::detail {

/// What the steps of a lookup write for an id instead of a slot: no_slot, or, with bit is_missing, the number
/// of the id that claimed its key.
inline constexpr std::uint32_t no_slot = ~0u, is_missing = 1u << 31;
/// The same for a key that has not been looked up often enough (embedding_options::admit).
inline constexpr std::uint32_t not_admitted = no_slot - 1;

struct embedding_key {
  std::uint64_t hash;  // of id and feature; for a given feature, a bijection of the id
  std::uint16_t feature;

  friend bool operator==(const embedding_key&, const embedding_key&) = default;
  ROOST_FN friend bool operator<(const embedding_key& a, const embedding_key& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.feature < b.feature;
  }
  ROOST_FN static std::uint64_t salt(std::uint64_t feature) { return feature * 0x9e3779b97f4a7c15ull; }
  ROOST_FN std::int64_t id(std::uint64_t seed) const {
    return static_cast<std::int64_t>(unmix64(hash, seed) ^ salt(feature));
  }
  /// The seed of the row that the key begins with.
  ROOST_FN std::uint64_t beginning(std::uint64_t seed) const { return mix64(hash, seed + feature); }
};

/// Ids of a batch, each with its feature, and with a score if the caller gives some.
struct embedding_ids {
  const std::int64_t* ids;
  std::size_t n;
  const std::uint16_t* features;  // or null: all are of `feature`
  std::uint16_t feature;
  const std::uint32_t* scores;  // or null
  std::uint64_t seed;

  ROOST_FN embedding_key operator[](std::size_t i) const {
    const std::uint16_t f = features != nullptr ? features[i] : feature;
    return {mix64(static_cast<std::uint64_t>(ids[i]) ^ embedding_key::salt(f), seed), f};
  }
};

/// Buckets of 128 slots, and an array for each of a slot's words. Its number is that of its row.
///
///     bit       63         32       24     16      8      0
///     tags                | tag 3 | tag 2 | tag 1 | tag 0 |   0: the slot is free
///     hashes    | hash of id and feature                  |
///     features                            | feature       |
///     steps               | the last one with the key     |
///     scores    | lookups                                 |   least_frequent
///               | step    | the caller's score            |   least_score
///
/// A tag is 1 + the next of 255 parts of the hash, after those that choose the bucket: a lookup reads the 128
/// tags of one bucket, and mostly one hash and one step. Only where a key is missing, the rest of its bucket
/// is read to choose its slot.
struct embedding_slots {
  static constexpr std::uint32_t of_bucket = 128;

  std::uint64_t buckets;
  std::uint32_t* tags;
  std::uint64_t* hashes;
  std::uint16_t* features;  // or null: all are 0
  std::uint32_t* steps;
  std::uint64_t* scores;  // or null

  struct home {
    std::uint32_t bucket, tag;
  };
  ROOST_FN home home_of(std::uint64_t hash) const {
    const auto split = split_hash(hash, buckets);
    return {static_cast<std::uint32_t>(split.digit),
            1 + static_cast<std::uint32_t>((split.rest >> 32) * 255 >> 32)};
  }
  ROOST_FN embedding_key key(std::size_t slot) const {
    return {hashes[slot], features != nullptr ? features[slot] : std::uint16_t{0}};
  }
  ROOST_FN bool has(std::size_t slot) const { return (tags[slot / 4] >> slot % 4 * 8 & 255) != 0; }
  ROOST_FN void set_tag(std::size_t slot, std::uint32_t tag) const {
    reinterpret_cast<std::uint8_t*>(tags)[slot] = static_cast<std::uint8_t>(tag);
  }
  ROOST_FN void put(std::size_t slot, const embedding_key& key) const {
    hashes[slot] = key.hash;
    if (features != nullptr) features[slot] = key.feature;
    set_tag(slot, home_of(key.hash).tag);
  }
};

/// Reads adjacent numbers, 16 bytes at a time if their size is a multiple of that.
template <class Number, std::size_t N>
ROOST_FN void read_pieces(Number (&to)[N], const Number* from) {
  constexpr std::size_t bytes = N * sizeof(Number) % 16 == 0 ? 16 : sizeof(Number),
                        of_piece = bytes / sizeof(Number);
  struct alignas(bytes) piece {
    Number numbers[of_piece];
  };
  ROOST_UNROLL
  for (std::size_t p = 0; p < N / of_piece; ++p) {
    const piece one = reinterpret_cast<const piece*>(from)[p];
    ROOST_UNROLL
    for (std::size_t k = 0; k < of_piece; ++k) to[p * of_piece + k] = one.numbers[k];
  }
}

/// The tags of a bucket that one of several lanes compares.
template <int Lanes>
struct some_tags {
  static constexpr int words = static_cast<int>(embedding_slots::of_bucket) / 4 / Lanes;
  std::uint32_t word[words];

  some_tags() = default;
  ROOST_FN some_tags(const embedding_slots& slots, std::uint32_t bucket, std::uint32_t lane) {
    read_pieces(word, slots.tags + (std::size_t{bucket} * Lanes + lane) * words);
  }

  /// A slot with the tag of a key, or no_slot; `has_more`: there may be more.
  ROOST_FN std::uint32_t first(const embedding_slots::home& home, std::uint32_t lane, bool& has_more) const {
    std::uint32_t found = 0;
    int place = 0;
    has_more = false;
    ROOST_UNROLL
    for (int four = 0; four < words / 4; ++four) {
      if (Lanes == 1 && found != 0) {  // on a GPU, lanes would wait for each other anyway
        has_more = true;
        break;
      }
      const std::uint32_t equal = equal_tags(four, home.tag);
      has_more = has_more || (equal & (equal - 1)) != 0 || (found != 0 && equal != 0);
      if (found == 0) place = four;
      if (found == 0) found = equal;
    }
    return found != 0 ? slot_of(home, lane, place, found) : no_slot;
  }

  /// The slot of a key, or no_slot.
  ROOST_FN std::uint32_t find(const embedding_slots& slots, const embedding_slots::home& home,
                              const embedding_key& key, std::uint32_t lane) const {
    for (int four = 0; four < words / 4; ++four) {
      for (std::uint32_t equal = equal_tags(four, home.tag); equal != 0; equal &= equal - 1) {
        const std::uint32_t slot = slot_of(home, lane, four, equal);
        if (slots.key(slot) == key) return slot;
      }
    }
    return no_slot;
  }

 private:
  /// A bit for each byte of four words that is equal to the tag: bit 8 * byte + word.
  ROOST_FN std::uint32_t equal_tags(int four, std::uint32_t tag) const {
    std::uint32_t equal = 0;
    ROOST_UNROLL
    for (int w = 0; w < 4; ++w) {
      const std::uint32_t other = word[4 * four + w] ^ tag * 0x01010101u;
      equal |= ~(((other & 0x7f7f7f7fu) + 0x7f7f7f7fu) | other | 0x7f7f7f7fu) >> (7 - w);
    }
    return equal;
  }
  ROOST_FN static std::uint32_t slot_of(const embedding_slots::home& home, std::uint32_t lane, int four,
                                        std::uint32_t equal) {
    const auto bit = static_cast<std::uint32_t>(first_of(equal));
    return home.bucket * embedding_slots::of_bucket +
           4 * (lane * words + 4 * static_cast<std::uint32_t>(four) + bit % 8) + bit / 8;
  }
};

/// Keys of a batch that a lookup claims, those that are missing or all: for each key, one of its ids claims
/// it. The missing keys of each bucket are in a chain.
struct claimed_keys {
  std::uint64_t size = 0;           // of the next
  std::uint32_t* claims = nullptr;  // by hash: the number of the id that claimed the key, plus 1; 0: none
  // By the number of the id that claimed the key:
  std::uint32_t* next = nullptr;   // missing key of the bucket: the number of its id plus 1; 0: none
  std::uint32_t* slots = nullptr;  // the slot that the key has or gets; with is_missing: another key lost it
  embedding_key* lost = nullptr;   // the key that lost the slot
  std::uint32_t* last = nullptr;   // the number of the last id with the key, plus 1; or null
  std::uint32_t* weights = nullptr;  // the key's lookups in this batch, or its greatest score; or null
  std::uint32_t* heads = nullptr;    // of each bucket: the number of an id plus 1; 0: none
  std::uint32_t* any = nullptr;      // not 0: some key is missing
};

/// A count-min sketch: a key's lookups are the smaller one of its two counters.
struct lookup_sketch {
  std::uint32_t* counters = nullptr;  // or null: all keys are admitted
  std::uint64_t width = 0;            // of each of the two

  ROOST_FN std::uint64_t position(const embedding_key& key, std::uint64_t which) const {
    return which * width +
           split_hash(mix64(key.hash + which, embedding_key::salt(key.feature) + 1), width).digit;
  }
  ROOST_FN void add(const embedding_key& key) const {
    for (std::uint64_t which = 0; which < 2; ++which) fetch_add(counters[position(key, which)], 1u);
  }
  ROOST_FN std::uint32_t count(const embedding_key& key) const {
    return smaller(counters[position(key, 0)], counters[position(key, 1)]);
  }
};

/// The value of a lane in this group of `Lanes` neighbours.
template <int Lanes, class T>
ROOST_FN T of_lane([[maybe_unused]] int lane, T value) {
#if ROOST_ON_DEVICE
  if constexpr (Lanes > 1) return __shfl_sync(~0u, value, lane, Lanes);
#endif
  return value;
}

/// The least of the neighbours' numbers, for all of them.
template <class Team>
ROOST_FN std::uint64_t least_near(const Team&, std::uint64_t mine) {
#if ROOST_ON_DEVICE && __CUDA_ARCH__ >= 800
  const auto high = static_cast<std::uint32_t>(mine >> 32), least = __reduce_min_sync(~0u, high);
  const std::uint32_t low = __reduce_min_sync(~0u, high == least ? static_cast<std::uint32_t>(mine) : ~0u);
  mine = std::uint64_t{least} << 32 | low;
#elif ROOST_ON_DEVICE
  ROOST_UNROLL
  for (int apart = 16; apart != 0; apart /= 2) mine = smaller(mine, __shfl_xor_sync(~0u, mine, apart));
#endif
  return mine;
}

/// Finds the slot of each id of a batch, or no_slot. If there is a step, it marks the keys that are found.
struct find_embeddings {
  static constexpr int threads = 256, teams_at_once = 4;
  static constexpr int at_once = 2;  // ids whose tags are read together

  /// Ids of a team.
  template <class Place>
  static constexpr std::size_t tile = std::is_same_v<Place, host> ? 1024 : threads;

  embedding_slots table;
  embedding_ids ids;
  std::uint32_t* found;
  const std::uint32_t* step = nullptr;   // or null: nothing changes
  std::uint32_t* any_missing = nullptr;  // if `step` is not null: becomes 1 if some key is not found

  /// Two lanes take two ids: each lane hashes one, and both search for each. On a host, one does.
  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    constexpr int lanes = Team::size == 1 ? 1 : at_once;
    constexpr std::size_t mine = tile<typename Team::place>;
    const auto rank = static_cast<std::uint32_t>(team.rank());
    const std::uint32_t lane = rank % lanes;
    for (std::size_t first = index * mine + rank / lanes * lanes; first < (index + 1) * mine;
         first += at_once * Team::size / lanes) {
      const wanted_key own = key_of(first + lane);
      wanted_key wanted[at_once];
      some_tags<lanes> tags[at_once];
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        wanted[k] = lanes > 1 ? key_of_lane<lanes>(k, own) : key_of(first + static_cast<std::size_t>(k));
        tags[k] = some_tags<lanes>(table, wanted[k].home.bucket, lane);
      }
      finish(team, first, wanted, tags, lane);
    }
  }

 private:
  struct wanted_key {
    embedding_key key;
    embedding_slots::home home;
  };
  ROOST_FN wanted_key key_of(std::size_t i) const {
    const embedding_key key = ids[smaller(i, ids.n - 1)];
    return {key, table.home_of(key.hash)};
  }
  template <int Lanes>
  ROOST_FN static wanted_key key_of_lane(int lane, const wanted_key& own) {
    return {{of_lane<Lanes>(lane, own.key.hash), of_lane<Lanes>(lane, own.key.feature)},
            {of_lane<Lanes>(lane, own.home.bucket), of_lane<Lanes>(lane, own.home.tag)}};
  }

  /// In steps, so that the reads of each are in flight together.
  template <class Team, int Lanes>
  ROOST_FN void finish(const Team& team, std::size_t i, const wanted_key (&wanted)[at_once],
                       const some_tags<Lanes> (&tags)[at_once], std::uint32_t lane) const {
    const std::uint32_t shift = static_cast<std::uint32_t>(team.rank()) % 32 / Lanes * Lanes;
    const std::uint32_t now = step != nullptr ? *step : 0;
    std::uint32_t slot[at_once], before[at_once];
    bool has_more[at_once];
    embedding_key stored[at_once];
    ROOST_UNROLL
    for (int k = 0; k < at_once; ++k) {
      slot[k] = i + k < ids.n ? tags[k].first(wanted[k].home, lane, has_more[k]) : no_slot;
      stored[k] = slot[k] != no_slot ? table.key(slot[k]) : embedding_key{};
    }
    ROOST_UNROLL
    for (int k = 0; k < at_once; ++k) {
      if (slot[k] != no_slot && !(stored[k] == wanted[k].key))
        slot[k] = has_more[k] ? tags[k].find(table, wanted[k].home, wanted[k].key, lane) : no_slot;
      before[k] = step != nullptr && slot[k] != no_slot ? peek(table.steps[slot[k]]) : now;
    }
    ROOST_UNROLL
    for (int k = 0; k < at_once; ++k) {
      const bool found_by_any = (team.ballot_near(slot[k] != no_slot) >> shift & ((1u << Lanes) - 1)) != 0;
      if (i + k >= ids.n) continue;
      if (before[k] != now) exchange(table.steps[slot[k]], now);
      if (slot[k] != no_slot && step != nullptr && table.scores != nullptr) score(slot[k], i + k);
      if (slot[k] != no_slot || (lane == 0 && !found_by_any)) found[i + k] = slot[k];
      if (step != nullptr && lane == 0 && !found_by_any && peek(*any_missing) == 0)
        exchange(*any_missing, 1u);
    }
  }

  ROOST_FN void score(std::uint32_t slot, std::size_t i) const {
    if (ids.scores == nullptr) {
      fetch_add(table.scores[slot], std::uint64_t{1});
    } else {
      fetch_max(table.scores[slot], std::uint64_t{*step} << 32 | ids.scores[i]);
    }
  }
};

/// Claims the keys of ids that were not found, or all, and writes is_missing with the number of the id that
/// claimed the key: the id's slot will be there.
struct claim_keys {
  embedding_slots table;
  embedding_ids ids;
  std::uint32_t* found;
  claimed_keys claimed;
  lookup_sketch sketch;

  ROOST_FN void operator()(std::size_t i) const {
    const bool all = claimed.last != nullptr;
    if (!all && *claimed.any == 0) return;
    const std::uint32_t slot = found[i];
    if (!all && slot != no_slot) return;
    const embedding_key key = ids[i];
    if (sketch.counters != nullptr && slot == no_slot) sketch.add(key);
    const auto mine = static_cast<std::uint32_t>(i);
    std::uint32_t owner = mine;
    auto position = static_cast<std::uint32_t>(split_hash(mix64(key.hash, 1), claimed.size).digit);
    for (;; position = position + 1 == claimed.size ? 0 : position + 1) {
      std::uint32_t other = peek(claimed.claims[position]);
      if (other == 0) other = shared_access::compare_exchange(claimed.claims + position, 0u, mine + 1);
      if (other == 0) {
        begin(mine, key, slot);
        break;
      }
      owner = other - 1;
      if (ids[owner] == key) break;
      owner = mine;
    }
    found[i] = owner | is_missing;
    if (all) fetch_max(claimed.last[owner], mine + 1);
    if (claimed.weights == nullptr) return;
    if (ids.scores == nullptr) {
      fetch_add(claimed.weights[owner], 1u);
    } else {
      fetch_max(claimed.weights[owner], ids.scores[i]);
    }
  }

 private:
  ROOST_FN void begin(std::uint32_t mine, const embedding_key& key, std::uint32_t slot) const {
    claimed.slots[mine] = slot;
    if (slot == no_slot)
      claimed.next[mine] = exchange(claimed.heads[table.home_of(key.hash).bucket], mine + 1);
  }
};

}  // namespace roost::detail
