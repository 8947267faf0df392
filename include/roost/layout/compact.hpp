#pragma once

#include <array>
#include <bit>
#include <cmath>

#include "roost/detail/build.hpp"

/// \file
/// Layout `compact`: sectors that store what they do not tell of a key.

namespace roost {

namespace detail {

/// How a sector holds its pairs: tags, bit after bit; in the last bits of the head the mark of an overflowed sector and the number of pairs; then the
/// values. A tag is a pair's displacement from its home sector and a remainder of its hash, of which the sector's number tells the leading bits.
struct sector_format {
  int bytes = 0;  // of a sector
  int slots = 0;
  int remainder_bits = 0;
  int value_bytes = 0;

  static constexpr int displacement_bits = 2;
  static constexpr std::uint32_t displacement_most = 3;

  constexpr int tag_bits() const { return remainder_bits + displacement_bits; }
  constexpr int count_bits() const { return std::bit_width(static_cast<unsigned>(slots)); }
  constexpr int head_words() const { return (bytes - slots * value_bytes) / 4; }
  constexpr int count_at() const { return head_words() * 32 - count_bits(); }
  constexpr int overflowed_at() const { return count_at() - 1; }
};

/// The format with most slots for tables of 2^log2_sectors sectors and more: the more sectors there are, the shorter is what they store of
/// a key. No slots if there is none.
constexpr sector_format densest_format(int bytes, int log2_sectors, int hash_bits, int value_bytes, int value_alignment) {
  for (int slots = 25; slots > 0; --slots) {
    sector_format f{bytes, slots, 0, value_bytes};
    if (f.slots * value_bytes >= bytes || (bytes - slots * value_bytes) % value_alignment != 0) continue;
    f.remainder_bits = smaller(f.overflowed_at() / slots - sector_format::displacement_bits, hash_bits - 3);
    if (f.remainder_bits >= hash_bits - log2_sectors) return f;
  }
  return {};
}

/// Bits [at, at + width) of a string of words; `at` and `width` are known to the compiler, so that this is a shift or two.
ROOST_FN std::uint64_t bits_of(const std::uint32_t* words, int at, int width) {
  const int word = at / 32, shift = at % 32;
  std::uint64_t bits = words[word] >> shift;
  if (shift + width > 32) bits |= std::uint64_t{words[word + 1]} << (32 - shift);
  if (shift + width > 64) bits |= std::uint64_t{words[word + 2]} << (64 - shift);
  return width == 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

/// Puts bits where bits_of() finds them; they were 0.
ROOST_FN void put_bits(std::uint32_t* words, int at, int width, std::uint64_t bits) {
  const int word = at / 32, shift = at % 32;
  words[word] |= static_cast<std::uint32_t>(bits << shift);
  if (shift + width > 32) words[word + 1] |= static_cast<std::uint32_t>(bits >> (32 - shift));
  if (shift + width > 64) words[word + 2] |= static_cast<std::uint32_t>(bits >> (64 - shift));
}

}  // namespace detail

/// Sectors of 32 bytes (64 for pairs of 16 bytes and more) that store of a key only what region and sector do not tell of its hash. A hash of a
/// key of up to 8 bytes is a bijection, so nothing is lost, and no key and no value is reserved. A table of 2^27 pairs of 4 + 4 bytes has six pairs in a
/// sector where plain slots have four: nearly every lookup, of stored keys and of absent ones, reads one sector, and a table can be smaller
/// than its input.
///
/// A pair that finds its home sector full goes up to three sectors on; the sectors that it passes are marked, and a lookup reads on only from a marked one. Pairs that
/// find no place there go to the stash of their region, a small table of plain pairs.
///
/// How many pairs a sector holds is chosen at build time, from the sizes of key and value and the number of sectors.
struct compact {
  /// Options of frozen_map and frozen_set with this layout.
  struct options {
    /// Bytes of the pairs over bytes of the table, above 0; 1.2 is a table smaller than its input. Where so many pairs do not fit
    /// (4 + 4 bytes: above 0.8 for small tables, 1.0 from 2^18 pairs on, 1.2 from 10^8) the table is made larger; the real figure is load_factor().
    double load_factor = 0.8;
    /// Chooses the hash functions. The same seed and data give the same answers on every place.
    std::uint64_t seed = 0;
    /// Attempts after the first before a build gives up with build_error. With each, regions get an eighth more room.
    int max_restarts = 10;
  };

  static constexpr const char* name = "compact";

  template <class Place, class Key, class Value>
  class table;
  template <class Place, class Key, class Value>
  struct builder;

  /// The geometry of one build attempt.
  struct plan {
    std::uint32_t regions;
    std::uint32_t region_sectors;
    std::uint32_t region_stash;
    int format;
    detail::leading_bits region_of;
    std::uint64_t room_for_region = 0;  // of the partition with slack: the usual
  };

  template <class Place, class Key, class Value>
  static plan make_plan(std::size_t n, const options& options, int attempt);

  /// How full the slots may be in the mean, so that nearly all pairs find a place within reach of their home.
  static constexpr double fullest(int slots) { return slots == 3 ? 0.7 : slots == 4 ? 0.8 : slots == 5 ? 0.83 : slots <= 8 ? 0.86 : 0.9; }

  /// The memory of a table.
  template <class Place, class Key, class Value>
  class storage {
   public:
    using table_type = table<Place, Key, Value>;
    storage(const Place& place, const plan& p)
        : sectors_(place, std::size_t{p.regions} * p.region_sectors),
          stash_(place, std::size_t{p.regions} * p.region_stash),
          table_(sectors_.data(), stash_.data(), p, detail::find_empty_keys<Key>(p.region_of)) {}

    const table_type& ref() const { return table_; }
    std::size_t bytes() const { return sectors_.bytes() + stash_.bytes(); }
    double load_factor(std::size_t size) const { return static_cast<double>(size * table_type::pair_bytes) / static_cast<double>(bytes()); }

   private:
    array<typename table_type::sector, Place> sectors_;
    array<pair<Key, Value>, Place> stash_;
    table_type table_;
  };
};

/// The per-key operations: what frozen_map::ref() returns. Trivially copyable; valid while its map lives and is not rebuilt. Any
/// number of threads may read.
template <class Place, class Key, class Value>
class compact::table {
 public:
  using key_type = Key;
  using value_type = Value;
  using item = pair<Key, Value>;
  static constexpr std::uint64_t no_slot = ~std::uint64_t{0};

  static constexpr int hash_bits = sizeof(Key) <= 4 ? 32 : 64;
  using hash_type = std::conditional_t<hash_bits == 32, std::uint32_t, std::uint64_t>;
  static constexpr int value_bytes = std::is_same_v<Value, none> ? 0 : static_cast<int>(sizeof(Value));
  static constexpr int pair_bytes = static_cast<int>(sizeof(Key)) + value_bytes;
  static constexpr int sector_bytes = detail::densest_format(32, 3, hash_bits, value_bytes, alignof(Value)).slots >= 4 ? 32 : 64;

  /// For tables of at least 2^3, 2^16, 2^22, 2^24 sectors.
  static constexpr std::array<int, 4> log2_sectors{3, 16, 22, 24};
  static constexpr std::array<detail::sector_format, 4> formats = [] {
    std::array<detail::sector_format, 4> result{};
    for (std::size_t i = 0; i < 4; ++i) result[i] = detail::densest_format(sector_bytes, log2_sectors[i], hash_bits, value_bytes, alignof(Value));
    return result;
  }();
  static_assert(sizeof(Key) <= 8 && formats[0].slots >= 2, "layout compact is for keys of up to 8 bytes and values of up to 24; take bucketed");

  struct alignas(16) sector {
    std::uint32_t word[sector_bytes / 4];
  };

  /// What a lookup reads at once: a sector of 32 bytes whole, of a larger one the head.
  static constexpr int read_bytes = sector_bytes == 32 ? 32 : [] {
    int most = 0;
    for (const auto& f : formats) most = detail::larger(most, f.head_words() * 4);
    return (most + 15) / 16 * 16;
  }();
  struct alignas(16) read_type {
    std::uint32_t word[read_bytes / 4];
  };

  table(sector* sectors, item* stash, const plan& p, const detail::empty_keys<Key>& empty)
      : sectors_(sectors), stash_(stash), seed_(p.region_of.seed), all_sectors_(std::uint64_t{p.regions} * p.region_sectors), regions_(p.regions),
        region_sectors_(p.region_sectors), region_stash_(p.region_stash), format_(p.format), empty_(empty) {}

  /// The value of a key, or nothing.
  ROOST_FN found<Value> find(const Key& key) const {
    const hit at = probe(key);
    return at.slot != no_slot ? found<Value>(at.value) : found<Value>();
  }

  /// True if the key is there.
  ROOST_FN bool contains(const Key& key) const { return probe(key).slot != no_slot; }

  /// Fetches a key's home sector ahead of a find. Does nothing on a GPU, which hides the wait with other threads.
  ROOST_PREFETCH_FN void prefetch(const Key& key) const {
#if !ROOST_ON_DEVICE
    __builtin_prefetch(sectors_ + split_hash(hash_of(key, seed_), all_sectors_).digit);
#else
    static_cast<void>(key);
#endif
  }

  /// Splits keys by the leading bits of their hash, in whose order the sectors stand.
  detail::leading_bits hash_order(std::uint32_t parts) const { return {seed_, parts}; }

  /// The number of slots, those of the stashes included.
  ROOST_FN std::uint64_t capacity() const { return stash_begin() + std::uint64_t{regions_} * region_stash_; }

  // Slots by number, for iteration and checks.

  /// The slot of a key, or no_slot.
  ROOST_FN std::uint64_t slot_of(const Key& key) const { return probe(key).slot; }

  /// How many sectors a lookup of this key reads, a stash counted as one; 0 if it is not there.
  ROOST_FN std::uint32_t probes_of(const Key& key) const {
    const hit at = probe(key);
    return at.slot != no_slot ? at.probes : 0;
  }

  ROOST_FN bool occupied(std::uint64_t slot) const {
    if (slot >= stash_begin()) return !same_key(stash_[slot - stash_begin()].key, empty_.of(static_cast<std::uint32_t>((slot - stash_begin()) / region_stash_)));
    return with_format([&](auto format) {
      const sector& here = sectors_[slot / format().slots];
      return slot % format().slots < detail::bits_of(here.word, format().count_at(), format().count_bits());
    });
  }

  ROOST_FN Key key_at(std::uint64_t slot) const {
    if (slot >= stash_begin()) return stash_[slot - stash_begin()].key;
    return with_format([&](auto format) {
      constexpr auto f = format();
      const std::uint64_t number = slot / f.slots;
      const std::uint64_t tag = tag_at(sectors_[number].word, static_cast<int>(slot % f.slots), f.tag_bits());
      const auto displacement = static_cast<std::uint32_t>(tag >> f.remainder_bits);
      const std::uint64_t in_region = number % region_sectors_;
      const std::uint64_t home = number - in_region + (in_region + region_sectors_ - displacement % region_sectors_) % region_sectors_;
      return key_of(home, tag & ((std::uint64_t{1} << f.remainder_bits) - 1), f.remainder_bits);
    });
  }

  ROOST_FN Value value_at(std::uint64_t slot) const {
    if constexpr (value_bytes == 0) {
      return {};
    } else {
      return *value_address(slot);
    }
  }

  /// Changes the value of a slot; the key of the pair is the one that is there.
  ROOST_FN void set(std::uint64_t slot, const item& pair) const {
    if constexpr (value_bytes != 0) *value_address(slot) = pair.value;
  }

 private:
  template <class P, class K, class V>
  friend struct compact::builder;

  struct hit {
    std::uint64_t slot;
    std::uint32_t probes;
    Value value;
  };

  template <int I>
  struct format_number {
    ROOST_FN constexpr detail::sector_format operator()() const { return formats[I]; }
  };

  /// Calls f with the table's format as a constant.
  template <class F>
  ROOST_FN auto with_format(const F& f) const {
    switch (format_) {
      case 0: return f(format_number<0>());
      case 1: return f(format_number<1>());
      case 2: return f(format_number<2>());
      default: return f(format_number<3>());
    }
  }

  ROOST_FN std::uint64_t stash_begin() const {
    return with_format([&](auto format) { return all_sectors_ * static_cast<std::uint64_t>(format().slots); });
  }

  ROOST_FN static std::uint64_t tag_at(const std::uint32_t* words, int slot, int tag_bits) { return detail::bits_of(words, slot * tag_bits, tag_bits); }

  /// The one probe loop: reads sectors from the key's home on, until the key is found or a sector has not overflowed; then the stash.
  ROOST_FN hit probe(const Key& key) const {
    return with_format([&](auto format) { return probe_format(key, format); });
  }

  template <class Format>
  ROOST_FN hit probe_format(const Key& key, Format) const {
    constexpr detail::sector_format f = Format()();
    const hash_type hash = hash_of(key, seed_);
    const auto at = split_hash(hash, all_sectors_);
    const auto remainder = static_cast<std::uint64_t>(at.rest >> (hash_bits - f.remainder_bits));
    read_type here = read(at.digit);
    std::uint32_t mask = matches<f.slots, f.tag_bits()>(here, remainder) & count_mask<f.slots, f.count_at(), f.count_bits()>(here);
    std::uint64_t number = at.digit;
    std::uint32_t displacement = 0;
    while (mask == 0) {
      if (detail::bits_of(here.word, f.overflowed_at(), 1) == 0) return {no_slot, 0, Value{}};
      if (++displacement > f.displacement_most) return probe_stash(key, hash);
      const std::uint64_t end = (split_hash(hash, regions_).digit + 1) * region_sectors_;
      number = number + 1 == end ? end - region_sectors_ : number + 1;
      here = read(number);
      mask = matches<f.slots, f.tag_bits()>(here, remainder | std::uint64_t{displacement} << f.remainder_bits) &
             count_mask<f.slots, f.count_at(), f.count_bits()>(here);
    }
    const int slot = lowest(mask);
    return {number * f.slots + static_cast<unsigned>(slot), displacement + 1, value_in<f.slots, f.head_words() * 4>(here, number, slot)};
  }

  ROOST_FN hit probe_stash(const Key& key, hash_type hash) const {
    const auto region = static_cast<std::uint32_t>(split_hash(hash, regions_).digit);
    const std::uint64_t first = std::uint64_t{region} * region_stash_;
    std::uint32_t i = stash_start(hash);
    for (std::uint32_t step = 0; step < region_stash_; ++step) {
      const item here = stash_[first + i];
      if (same_key(here.key, key)) return {stash_begin() + first + i, detail::sector_format::displacement_most + 2, detail::value_of(here)};
      if (same_key(here.key, empty_.of(region))) break;
      i = i + 1 == region_stash_ ? 0 : i + 1;
    }
    return {no_slot, 0, Value{}};
  }

  /// Where in its region's stash a key is looked for first. The leading bits of the hash are nearly the same there.
  template <class Hash>
  ROOST_FN std::uint32_t stash_start(Hash hash) const {
    return static_cast<std::uint32_t>(split_hash(static_cast<std::uint32_t>(hash) * 0x9e3779b1u, region_stash_).digit);
  }

  ROOST_FN read_type read(std::uint64_t number) const { return detail::load(reinterpret_cast<const read_type*>(sectors_ + number)); }

  template <int Slots, int TagBits>
  ROOST_FN static std::uint32_t matches(const read_type& here, std::uint64_t tag) {
    std::uint32_t mask = 0;
    ROOST_UNROLL
    for (int s = 0; s < Slots; ++s) mask |= std::uint32_t{tag_at(here.word, s, TagBits) == tag} << s;
    return mask;
  }

  /// Bits of the slots that are taken.
  template <int Slots, int CountAt, int CountBits>
  ROOST_FN static std::uint32_t count_mask(const read_type& here) {
    return (1u << detail::bits_of(here.word, CountAt, CountBits)) - 1;
  }

  ROOST_FN static int lowest(std::uint32_t mask) {
#if ROOST_ON_DEVICE
    return __ffs(static_cast<int>(mask)) - 1;
#else
    return std::countr_zero(mask);
#endif
  }

  template <int Slots, int HeadBytes>
  ROOST_FN Value value_in([[maybe_unused]] const read_type& here, std::uint64_t number, int slot) const {
    if constexpr (value_bytes == 0) {
      return {};
    } else {
#if ROOST_ON_DEVICE
      if constexpr (sector_bytes == read_bytes) {
        Value value;
        ROOST_UNROLL
        for (int s = 0; s < Slots; ++s) {  // what was read is in registers, which have no index
          Value other;
          memcpy(&other, reinterpret_cast<const char*>(here.word) + HeadBytes + s * value_bytes, sizeof(Value));
          if (s == 0 || s == slot) value = other;
        }
        return value;
      }
#endif
      return reinterpret_cast<const Value*>(reinterpret_cast<const std::byte*>(sectors_ + number) + HeadBytes)[slot];
    }
  }

  ROOST_FN Value* value_address(std::uint64_t slot) const {
    if (slot >= stash_begin()) return &stash_[slot - stash_begin()].value;
    return with_format([&](auto format) {
      constexpr auto f = format();
      return reinterpret_cast<Value*>(reinterpret_cast<std::byte*>(sectors_ + slot / f.slots) + f.head_words() * 4) + slot % f.slots;
    });
  }

  /// The key whose hash has this sector for its home and this remainder.
  ROOST_FN Key key_of(std::uint64_t home, std::uint64_t remainder, int remainder_bits) const {
    Key key;
    if constexpr (hash_bits == 32) {
      const std::uint64_t product = home << 32 | remainder << (32 - remainder_bits);
      const std::uint32_t bits = unmix32(static_cast<std::uint32_t>((product + all_sectors_ - 1) / all_sectors_), static_cast<std::uint32_t>(seed_ ^ (seed_ >> 32)));
      memcpy(&key, &bits, sizeof(Key));
    } else {
      const unsigned __int128 product = static_cast<unsigned __int128>(home) << 64 | remainder << (64 - remainder_bits);
      const std::uint64_t bits = unmix64(static_cast<std::uint64_t>((product + all_sectors_ - 1) / all_sectors_), seed_);
      memcpy(&key, &bits, sizeof(Key));
    }
    return key;
  }

  sector* sectors_;
  item* stash_;
  std::uint64_t seed_;
  std::uint64_t all_sectors_;
  std::uint32_t regions_;
  std::uint32_t region_sectors_;
  std::uint32_t region_stash_;
  int format_;
  detail::empty_keys<Key> empty_;
};

template <class Place, class Key, class Value>
compact::plan compact::make_plan(std::size_t n, const options& options, int attempt) {
  using here = table<Place, Key, Value>;
  using tuned = detail::tuning<Place>;
  if (!(options.load_factor > 0 && options.load_factor <= 4)) {
    throw invalid_argument("roost::compact: load factor " + detail::text_of(options.load_factor) + " asked for; give more than 0 and at most 4");
  }
  const double pairs = static_cast<double>(n);
  const double wanted = std::max(8.0, std::ceil(pairs * here::pair_bytes / options.load_factor / here::sector_bytes));
  detail::check_table_bytes(wanted * here::sector_bytes, wanted * here::sector_bytes / static_cast<double>(tuned::region_bytes), "roost::compact");
  plan p{};
  for (int i = 0; i < 4; ++i) {
    if (wanted >= std::ldexp(1.0, here::log2_sectors[static_cast<std::size_t>(i)])) p.format = i;
  }
  const int slots = here::formats[static_cast<std::size_t>(p.format)].slots;
  const double sectors = std::max(wanted, pairs / (fullest(slots) * slots));
  p.regions = static_cast<std::uint32_t>(std::max(2.0, std::ceil(sectors * here::sector_bytes / static_cast<double>(tuned::compact_region_bytes * here::sector_bytes / 32))));
  // A region that a random split gives more pairs than others must hold them.
  const double mean = pairs / p.regions;
  double region_sectors = std::max(sectors / p.regions, std::min(pairs, mean + 5 * std::sqrt(mean)) / slots / (fullest(slots) + 0.05));
  if (attempt > 0) region_sectors *= std::pow(1.125, attempt);
  p.region_sectors = static_cast<std::uint32_t>(std::max(std::ceil(8.0 / p.regions), std::ceil(region_sectors)));
  p.region_stash = static_cast<std::uint32_t>(8 + mean / 32);
  p.region_of = {detail::seed_of_attempt(options.seed, attempt), p.regions};
  return p;
}

/// Builds one region.
template <class Place, class Key, class Value>
struct compact::builder {
  static constexpr int threads = detail::tuning<cuda>::build_threads;
  static constexpr int teams_at_once = detail::tuning<cuda>::build_teams_at_once;
  using item = pair<Key, Value>;
  using table_type = table<Place, Key, Value>;
  using tag_type = std::conditional_t<table_type::hash_bits == 32, std::uint32_t, std::uint64_t>;
  static constexpr std::uint32_t displacement_most = detail::sector_format::displacement_most;

  table_type to;
  detail::region_items<item> from;
  detail::build_counts* counts;
  std::uint32_t slots;  // of a sector
  int remainder_bits;

  struct pieces {
    std::uint32_t* count;    // of each sector: pairs that have come by
    std::uint32_t* placed;   // of the region
    std::uint32_t* strays;   // how many pairs found their home full,
    std::uint32_t* stray;    // and which
    std::uint32_t* stash;    // the stash, of numbers of pairs
    tag_type* tag;           // of each slot
    std::byte* values;
    std::uint32_t* owner;    // in place of tags and values: the number of each slot's item, and of each of the stash
  };

  builder(const table_type& table, const detail::region_items<item>& items, detail::build_counts* c)
      : to(table), from(items), counts(c), slots(static_cast<std::uint32_t>(table_type::formats[static_cast<std::size_t>(table.format_)].slots)),
        remainder_bits(table_type::formats[static_cast<std::size_t>(table.format_)].remainder_bits) {}

  ROOST_FN pieces scratch(detail::scratch_memory& memory) const {
    const std::size_t all = std::size_t{to.region_sectors_} * slots;
    pieces my;
    my.count = memory.take<std::uint32_t>(to.region_sectors_);
    my.placed = memory.take<std::uint32_t>(1);
    my.strays = memory.take<std::uint32_t>(1);
    my.stray = memory.take<std::uint32_t>(most_strays());
    my.stash = memory.take<std::uint32_t>(to.region_stash_);
    my.tag = memory.take<tag_type>(all + to.region_stash_);
    my.values = memory.take<std::byte>(all * table_type::value_bytes);
    my.owner = reinterpret_cast<std::uint32_t*>(my.tag);
    return my;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte* memory) const {
    detail::scratch_memory all(memory);
    const pieces my = scratch(all);
    const item* const items = from.items + from.begins[region];
    const std::uint64_t count = from.ends[region] - from.begins[region];
    std::uint64_t placed = count;
    bool good = count <= std::uint64_t{to.region_sectors_} * slots + to.region_stash_ &&
                place_by_counting(team, static_cast<std::uint32_t>(region), items, static_cast<std::uint32_t>(count), my);
    if (!good) {
      good = place_by_claims(team, static_cast<std::uint32_t>(region), items, count, my);
      placed = *my.placed;
    }
    if (team.rank() == 0) {
      if (good) {
        detail::fetch_add(counts->placed, placed);
      } else {
        detail::fetch_add(counts->overfull, std::uint64_t{1});
      }
    }
  }

 private:
  struct home {
    std::uint32_t sector;  // of the region
    tag_type remainder;
  };

  static constexpr std::uint32_t in_stash = 1u << 31;  // of a stray's number: it is in the stash

  ROOST_FN std::uint32_t most_strays() const { return to.region_sectors_ * slots / 2; }
  ROOST_FN std::uint32_t next(std::uint32_t s) const { return s + 1 == to.region_sectors_ ? 0 : s + 1; }
  ROOST_FN tag_type tag_of(tag_type remainder, std::uint32_t displacement) const { return remainder | static_cast<tag_type>(displacement) << remainder_bits; }
  ROOST_FN home home_of(const Key& key, std::uint32_t region) const {
    const auto at = split_hash(hash_of(key, to.seed_), to.all_sectors_);
    return {static_cast<std::uint32_t>(at.digit - std::uint64_t{region} * to.region_sectors_),
            static_cast<tag_type>(at.rest >> (table_type::hash_bits - remainder_bits))};
  }
  ROOST_FN void set_value(const pieces& my, std::uint32_t slot, const item& mine) const {
    if constexpr (table_type::value_bytes != 0) reinterpret_cast<Value*>(my.values)[slot] = mine.value;
  }

  /// The fast way, for keys that are all different: returns false if they are not, or if too many find no place.
  template <class Team>
  ROOST_FN bool place_by_counting(const Team& team, std::uint32_t region, const item* items, std::uint32_t count, const pieces& my) const {
    constexpr int per_worker = detail::tuning<typename Team::place>::build_held;
    constexpr std::uint32_t at_once = per_worker * Team::size;
    const std::uint32_t strays_most = most_strays();
    detail::for_each_of(team, to.region_sectors_, [&](std::uint32_t s) { my.count[s] = 0; });
    detail::for_each_of(team, to.region_stash_, [&](std::uint32_t i) { my.stash[i] = detail::no_owner; });
    if (team.rank() == 0) *my.strays = 0;
    team.sync();
    for (std::uint32_t first = 0; first < count; first += at_once) {
      const std::uint32_t n = detail::smaller(at_once, count - first);
      const detail::held_items<per_worker, Team, const item*> held_item(team, items, first, n);
      detail::for_each_held<per_worker>(team, n, [&](int held, int i) {
        const home at = home_of(held_item(held, i).key, region);
        const std::uint32_t s = team.fetch_add(my.count[at.sector], 1u);
        if (s < slots) {
          my.tag[at.sector * slots + s] = at.remainder;
          set_value(my, at.sector * slots + s, held_item(held, i));
        } else {
          const std::uint32_t number = team.fetch_add(*my.strays, 1u);
          if (number < strays_most) my.stray[number] = first + i;
        }
      });
    }
    team.sync();  // who is at home stays there
    const std::uint32_t strays = *my.strays;
    if (strays > strays_most) return false;
    bool bad = false;  // the stash is full, or some key is there twice: two of a sector, or a stray and one that it passed
    detail::for_each_of(team, strays, [&](std::uint32_t i) {
      const item mine = items[my.stray[i]];
      const home at = home_of(mine.key, region);
      std::uint32_t sector = at.sector;
      for (std::uint32_t displacement = 1; displacement <= displacement_most; ++displacement) {
        sector = next(sector);
        const std::uint32_t s = team.fetch_add(my.count[sector], 1u);
        if (s >= slots) continue;
        my.tag[sector * slots + s] = tag_of(at.remainder, displacement);
        set_value(my, sector * slots + s, mine);
        my.stray[i] = sector * slots + s;  // from now on the slot that it found
        return;
      }
      bad |= claim_stash(team, my.stash, items, my.stray[i]) != detail::claim::made;
      my.stray[i] |= in_stash;
    });
    if (team.any(bad)) return false;
    detail::for_each_of(team, strays, [&](std::uint32_t i) {
      const std::uint32_t slot = my.stray[i];
      home at;
      std::uint32_t passed = displacement_most + 1;  // sectors, the home one included
      if ((slot & in_stash) == 0) {
        const tag_type tag = my.tag[slot];
        passed = static_cast<std::uint32_t>(tag >> remainder_bits);
        at.sector = slot / slots >= passed ? slot / slots - passed : slot / slots + to.region_sectors_ - passed;
        at.remainder = tag & ((tag_type{1} << remainder_bits) - 1);
      } else {
        at = home_of(items[slot & ~in_stash].key, region);
      }
      for (std::uint32_t displacement = 0; displacement < passed; ++displacement) {
        for (std::uint32_t s = 0; s < slots; ++s) bad |= my.tag[at.sector * slots + s] == tag_of(at.remainder, displacement);
        at.sector = next(at.sector);
      }
    });
    if (team.any(bad)) return false;
    bad = pack(
        team, region, my, [&](std::uint32_t sector, std::uint32_t) { return detail::smaller(my.count[sector], slots); },
        [&](std::uint32_t sector) { return my.count[sector] > slots; }, [&](std::uint32_t, std::uint32_t slot) { return my.tag[slot]; },
        [&](std::uint32_t slot) {
          if constexpr (table_type::value_bytes != 0) return reinterpret_cast<const Value*>(my.values)[slot];
          else return Value{};
        });
    if (team.any(bad)) return false;
    write_stash(team, region, items, my.stash);
    return true;
  }

  /// The way that takes any number of copies of a key: returns false if the different keys are too many.
  template <class Team>
  ROOST_FN bool place_by_claims(const Team& team, std::uint32_t region, const item* items, std::uint64_t count, const pieces& my) const {
    const std::uint32_t stash_begin = to.region_sectors_ * slots;
    detail::for_each_of(team, stash_begin + to.region_stash_, [&](std::uint32_t s) { my.owner[s] = detail::no_owner; });
    detail::for_each_of(team, to.region_sectors_, [&](std::uint32_t s) { my.count[s] = 0; });
    if (team.rank() == 0) *my.placed = 0;
    team.sync();
    std::uint32_t placed = 0;
    bool full = count >= detail::no_owner;  // items have 32-bit numbers here
    for (std::uint64_t i = static_cast<std::uint64_t>(team.rank()); i < count && !full; i += Team::size) {
      const auto outcome = claim_place(team, items, static_cast<std::uint32_t>(i), region, my);
      placed += outcome == detail::claim::made;
      full = outcome == detail::claim::full;
    }
    if (placed != 0) team.fetch_add(*my.placed, placed);
    if (team.any(full)) return false;
    static_cast<void>(pack(
        team, region, my,
        [&](std::uint32_t, std::uint32_t first) {
          std::uint32_t n = 0;
          while (n < slots && my.owner[first + n] != detail::no_owner) ++n;
          return n;
        },
        [&](std::uint32_t sector) { return my.count[sector] != 0; },
        [&](std::uint32_t sector, std::uint32_t slot) {
          const home at = home_of(items[my.owner[slot]].key, region);
          return tag_of(at.remainder, sector >= at.sector ? sector - at.sector : sector + to.region_sectors_ - at.sector);
        },
        [&](std::uint32_t slot) { return detail::value_of(items[my.owner[slot]]); }));
    write_stash(team, region, items, my.owner + stash_begin);
    return true;
  }

  /// Inserts item i unless its key is there: into its home sector, the next ones, or the stash.
  template <class Team>
  ROOST_FN detail::claim claim_place(const Team& team, const item* items, std::uint32_t i, std::uint32_t region, const pieces& my) const {
    std::uint32_t sector = home_of(items[i].key, region).sector;
    for (std::uint32_t displacement = 0; displacement <= displacement_most; ++displacement) {
      const auto outcome = detail::claim_slot(team, my.owner + sector * slots, slots, 0, items, i, slots, [](std::uint32_t) {});
      if (outcome != detail::claim::full) return outcome;
      team.exchange(my.count[sector], 1u);
      sector = next(sector);
    }
    return claim_stash(team, my.owner + to.region_sectors_ * slots, items, i);
  }

  template <class Team>
  ROOST_FN detail::claim claim_stash(const Team& team, std::uint32_t* stash, const item* items, std::uint32_t i) const {
    const std::uint32_t start = to.stash_start(hash_of(items[i].key, to.seed_));
    return detail::claim_slot(team, stash, to.region_stash_, start, items, i, to.region_stash_, [](std::uint32_t) {});
  }

  /// Writes the sectors of a region; true if two pairs of a sector have the same tag.
  template <class Team, class Count, class Overflowed, class Tag, class ValueOf>
  ROOST_FN bool pack(const Team& team, std::uint32_t region, const pieces&, const Count& count, const Overflowed& overflowed, const Tag& tag,
                     const ValueOf& value) const {
    return to.with_format([&](auto format) {
      constexpr detail::sector_format f = format();
      bool twice = false;
      detail::for_each_of(team, to.region_sectors_, [&](std::uint32_t number) {
        const std::uint32_t first = number * f.slots;
        const std::uint32_t n = count(number, first);
        typename table_type::sector out{};
        tag_type tags[f.slots];
        ROOST_UNROLL
        for (int s = 0; s < f.slots; ++s) {
          if (static_cast<std::uint32_t>(s) >= n) continue;
          tags[s] = tag(number, first + s);
          ROOST_UNROLL
          for (int other = 0; other < s; ++other) twice |= tags[other] == tags[s];
          detail::put_bits(out.word, s * f.tag_bits(), f.tag_bits(), tags[s]);
          if constexpr (table_type::value_bytes != 0) {
            const Value mine = value(first + s);
            memcpy(reinterpret_cast<char*>(out.word) + f.head_words() * 4 + s * f.value_bytes, &mine, sizeof(Value));
          }
        }
        detail::put_bits(out.word, f.count_at(), f.count_bits(), n);
        detail::put_bits(out.word, f.overflowed_at(), 1, overflowed(number));
        to.sectors_[std::uint64_t{region} * to.region_sectors_ + number] = out;
      });
      return twice;
    });
  }

  template <class Team>
  ROOST_FN void write_stash(const Team& team, std::uint32_t region, const item* items, const std::uint32_t* owner) const {
    item empty{};
    empty.key = to.empty_.of(region);
    detail::for_each_of(team, to.region_stash_, [&](std::uint32_t i) {
      to.stash_[std::uint64_t{region} * to.region_stash_ + i] = owner[i] != detail::no_owner ? items[owner[i]] : empty;
    });
  }
};

}  // namespace roost
