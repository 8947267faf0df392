#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "roost/detail/build.hpp"

/// \file
/// Layout `compact`, the default of frozen_map and frozen_set: sectors that store what they do not tell of a key.

namespace roost {

namespace detail {

/// How a sector holds its pairs: a head of tags and marks, then the values. A tag tells at which try the pair found this sector, and the remainder of its
/// hash, of which the sector's number tells the rest. A tag of ones is an empty slot. A mark says that pairs went on from here.
struct sector_format {
  int bytes = 0;       // of a sector
  int slots = 0;
  int tag_bits = 0;
  int stride = 0;      // bits from a tag to the next
  int log2_marks = 0;
  int value_bytes = 0;

  static constexpr std::uint32_t tries_least = 3;
  static constexpr std::uint32_t tries_most = 8;

  constexpr int head_words() const { return (bytes - slots * value_bytes) / 4; }
  constexpr int marks() const { return 1 << log2_marks; }
  /// Tags are whole words without their highest bit, which is a mark.
  constexpr bool aligned() const { return stride > tag_bits; }
  /// Many short tags: the first bits of all tags, then the second bits ..., so that one word at a time is compared with a bit of what is looked for.
  constexpr bool by_bits() const { return slots > tag_bits; }
  constexpr int mark_at(int mark) const { return aligned() ? (mark + 1) * stride - 1 : head_words() * 32 - marks() + mark; }
  friend constexpr bool operator==(const sector_format&, const sector_format&) = default;
  constexpr std::uint64_t empty_tag() const { return ~std::uint64_t{0} >> (64 - tag_bits); }
};

/// How many hashes have one home, at most.
constexpr std::uint64_t remainders_of(std::uint64_t sectors, int hash_bits) {
  const std::uint64_t last = hash_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << hash_bits) - 1;
  return last / sectors + 1;
}

/// The format with most slots for tables of `sectors` sectors and more: the more sectors there are, the shorter is what they store of a key. No slots
/// if there is none.
constexpr sector_format densest_format(int bytes, std::uint64_t sectors, int hash_bits, int value_bytes, int value_alignment) {
  const std::uint64_t tags_least = sector_format::tries_least * remainders_of(sectors, hash_bits);
  for (int slots = 31; slots > 1; --slots) {
    if (slots * value_bytes >= bytes || (bytes - slots * value_bytes) % value_alignment != 0) continue;
    const int head_bits = (bytes - slots * value_bytes) / 4 * 32;
    if (hash_bits * slots <= head_bits) return {bytes, slots, hash_bits - 1, hash_bits, smaller(3, static_cast<int>(std::bit_width(static_cast<unsigned>(slots))) - 1), value_bytes};
    for (int log2_marks = 3; log2_marks > 0; --log2_marks) {
      const int tag_bits = smaller(hash_bits - 1, (head_bits - (1 << log2_marks)) / slots);
      const sector_format f{bytes, slots, tag_bits, tag_bits, log2_marks, value_bytes};
      if (tag_bits > 0 && tags_least <= f.empty_tag()) return f;
    }
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

/// How many pairs a sector sends to the stash, if sectors of `slots` slots are homes of `mean` pairs on average: a random split, try after try.
inline double expected_homeless(double mean, int slots, std::uint32_t tries) {
  std::array<double, 33> filled{1};  // probability that a sector holds so many pairs
  const auto held = [&] {
    double sum = 0;
    for (int j = 1; j <= slots; ++j) sum += j * filled[static_cast<std::size_t>(j)];
    return sum;
  };
  double coming = mean;
  for (std::uint32_t t = 0; t < tries && coming > 1e-12; ++t) {
    const double before = held();
    std::array<double, 33> next{};
    double come = std::exp(-coming), rest = 1;  // probability that i pairs come
    for (int i = 0; i < slots; come *= coming / ++i) {
      for (int j = 0; i + j < slots; ++j) next[static_cast<std::size_t>(i + j)] += come * filled[static_cast<std::size_t>(j)];
    }
    for (int j = 0; j < slots; ++j) rest -= next[static_cast<std::size_t>(j)];
    next[static_cast<std::size_t>(slots)] = std::max(0.0, rest);
    filled = next;
    coming = std::max(0.0, coming - (held() - before));
  }
  return coming;
}

}  // namespace detail

/// Sectors of 32 bytes (64 where pairs are large) that store of a key only what the sector's number does not tell of its hash. A hash of a key of up to
/// 8 bytes is a bijection, so nothing is lost, and no key and no value is reserved. A large table has six pairs of 4 + 4 bytes in a sector where plain
/// slots have four: nearly every lookup, of stored keys and of absent ones, reads one sector, and a table can be smaller than its input.
///
/// A pair that finds its home sector full tries two to seven others of its region, as far apart as its remainder says; it marks the sectors that
/// it passes, and a lookup reads on only where the mark of its remainder stands. Pairs that find no place go to the stash of their region, a
/// small table of plain pairs.
///
/// How many pairs a sector holds is chosen at build time, from the sizes of key and value and the number of sectors.
struct compact {
  /// Options of frozen_map and frozen_set with this layout.
  struct options {
    /// Bytes of the pairs over bytes of the table, above 0; 1.2 is a table smaller than its input. Where so many pairs do not fit (4 + 4 bytes: above
    /// 0.9 for small tables, 1.1 from 4 * 10^5 pairs on, 1.3 from 10^8) the table is made larger; the real figure is load_factor().
    double load_factor = 0.8;
    /// Chooses the hash functions. The same seed and data give the same answers on every place.
    std::uint64_t seed = 0;
    /// Attempts after the first before a build gives up with build_error. With each, regions get an eighth more room.
    int max_restarts = 10;
  };

  static constexpr const char* name = "compact";

  /// True for the types that this layout is for: keys of up to 8 bytes, values of up to 24.
  template <class Key, class Value>
  static constexpr bool takes = sizeof(Key) <= 8 && sizeof(Value) <= 24 && alignof(Value) <= 16;

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
  static plan make_plan(std::size_t n, const options& options, int attempt, std::uint32_t parts = 0);

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
  static constexpr int sector_bytes = detail::densest_format(32, 64, hash_bits, value_bytes, alignof(Value)).slots >= 4 ? 32 : 64;

  /// The formats, and from how many sectors on they are used.
  static constexpr std::array<std::uint64_t, 6> sectors_least{64, 98400, 1 << 20, 3150000, 6300000, 12600000};
  static constexpr std::array<detail::sector_format, 6> formats = [] {
    std::array<detail::sector_format, 6> result{};
    for (std::size_t i = 0; i < 6; ++i) result[i] = detail::densest_format(sector_bytes, sectors_least[i], hash_bits, value_bytes, alignof(Value));
    return result;
  }();
  static_assert(takes<Key, Value> && formats[0].slots >= 2, "layout compact is for keys of up to 8 bytes and values of up to 24; take bucketed");

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
      : sectors_(sectors), stash_(stash), seed_(p.region_of.seed), all_sectors_(std::uint64_t{p.regions} * p.region_sectors),
        remainders_(static_cast<hash_type>(detail::remainders_of(all_sectors_, hash_bits))), regions_(p.regions), region_sectors_(p.region_sectors),
        region_stash_(p.region_stash), tries_(tries_of(p.format, all_sectors_)), format_(p.format), empty_(empty) {}

  /// At how many sectors a pair is tried before it goes to the stash: as many as a tag can tell.
  static std::uint32_t tries_of(int format, std::uint64_t sectors) {
    const std::uint64_t tags = formats[static_cast<std::size_t>(format)].empty_tag();
    return static_cast<std::uint32_t>(detail::smaller<std::uint64_t>(tags / detail::remainders_of(sectors, hash_bits), detail::sector_format::tries_most));
  }

  /// The value of a key, or nothing.
  ROOST_FN found<Value> find(const Key& key) const {
    const hit at = probe(key);
    return at.slot != no_slot ? found<Value>(at.value) : found<Value>();
  }

  /// True if the key is there.
  ROOST_FN bool contains(const Key& key) const { return probe(key).slot != no_slot; }

  /// Finds a key if its home sector tells enough. If not, returns false, and the next sector is fetched for a find that comes later.
  ROOST_FN bool find_at_home(const Key& key, found<Value>& answer) const {
    const hit at = probe<true>(key);
    if (at.slot == elsewhere) return false;
    if (at.slot != no_slot) answer = found<Value>(at.value);
    return true;
  }

  /// Whether a lookup needs nothing but its sectors, which it reads whole: then find_each is faster than a find for each key.
  static constexpr bool reads_whole = read_bytes == sector_bytes;

  /// put(i, answer) for the keys of numbers first, first + step, ... below end. One loop over all sectors to read, not one for each key: a worker of a
  /// warp goes on to its next key while another reads a second sector.
  template <class Keys, class Put>
  ROOST_FN void find_each(const Keys& keys, std::uint64_t first, std::uint64_t end, std::uint64_t step, const Put& put) const {
    with_format([&](auto format) {
      using chosen = decltype(format);
      lookup at{};
      bool begins = true;
      for (std::uint64_t i = first; i < end;) {
        if (begins) at = start(keys[i]);
        const read_type here = read(at.number);
        const std::uint32_t mask = matches<chosen>(here, at.tag);
        const bool goes_on = mask == 0 && marked<chosen>(here, mark_of(at.remainder, chosen()().log2_marks));
        begins = !goes_on || at.t == tries_;
        if (!begins) {
          next<chosen>(at);
          continue;
        }
        found<Value> answer;
        if (mask != 0) {
          answer = found<Value>(value_in<chosen>(here, at.number, lowest(mask)));
        } else if (goes_on) {
          const hit in_stash = probe_stash(keys[i], at.hash);
          if (in_stash.slot != no_slot) answer = found<Value>(in_stash.value);
        }
        put(i, answer);
        i += step;
      }
    });
  }

  /// Fetches a key's home sector ahead of a find. Does nothing on a GPU, which hides the wait with other threads.
  ROOST_PREFETCH_FN void prefetch(const Key& key) const {
    fetch(split_hash(hash_of(key, seed_), all_sectors_).digit);
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
      return tag_at<decltype(format)>(sectors_[slot / format().slots].word, static_cast<int>(slot % format().slots)) != format().empty_tag();
    });
  }

  ROOST_FN Key key_at(std::uint64_t slot) const {
    if (slot >= stash_begin()) return stash_[slot - stash_begin()].key;
    std::uint64_t number = 0, tag = 0;
    int log2_marks = 0;
    with_format([&](auto format) {
      constexpr auto f = format();
      number = slot / f.slots;
      tag = tag_at<decltype(format)>(sectors_[number].word, static_cast<int>(slot % f.slots));
      log2_marks = f.log2_marks;
    });
    return key_of_tag(number, tag, log2_marks);
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

  /// Empties a slot of the stash, or with its first slot a whole sector.
  ROOST_FN void clear(std::uint64_t slot) const {
    if (slot >= stash_begin()) {
      stash_[slot - stash_begin()].key = empty_.of(static_cast<std::uint32_t>((slot - stash_begin()) / region_stash_));
      return;
    }
    with_format([&](auto format) {
      constexpr detail::sector_format f = format();
      if (slot % f.slots != 0) return;
      sector empty{};
      for (int w = 0; w < f.head_words(); ++w) empty.word[w] = ~0u;
      for (int m = 0; m < f.marks(); ++m) empty.word[f.mark_at(m) / 32] &= ~(1u << f.mark_at(m) % 32);
      sectors_[slot / f.slots] = empty;
    });
  }

 private:
  template <class P, class K, class V>
  friend struct compact::builder;

  static constexpr std::uint64_t elsewhere = no_slot - 1;  // if at all: the home sector does not tell

  struct hit {
    std::uint64_t slot;
    std::uint32_t probes;
    Value value;
  };

  template <int I>
  struct format_number {
    ROOST_FN constexpr detail::sector_format operator()() const { return formats[I]; }
  };
  /// Equal formats have one number, so that there is code for each once.
  template <int I, int First = static_cast<int>(std::find(formats.begin(), formats.end(), formats[I]) - formats.begin())>
  using format_of = format_number<First>;

  /// Calls f with the table's format as a constant.
  template <class F>
  ROOST_FN auto with_format(const F& f) const {
    switch (format_) {
      case 0: return f(format_of<0>());
      case 1: return f(format_of<1>());
      case 2: return f(format_of<2>());
      case 3: return f(format_of<3>());
      case 4: return f(format_of<4>());
      default: return f(format_of<5>());
    }
  }

  ROOST_FN std::uint64_t stash_begin() const {
    return with_format([&](auto format) { return all_sectors_ * static_cast<std::uint64_t>(format().slots); });
  }

  // A remainder also chooses how far apart a pair's tries are, and its mark.

  ROOST_FN static std::uint32_t step_of(hash_type remainder, int log2_marks) { return 1 + (static_cast<std::uint32_t>(remainder >> log2_marks) & 31); }
  ROOST_FN static int mark_of(hash_type remainder, int log2_marks) { return static_cast<int>(remainder & ((1 << log2_marks) - 1)); }

  /// The key that has this tag in this sector.
  ROOST_RARE_FN Key key_of_tag(std::uint64_t number, std::uint64_t tag, int log2_marks) const {
    using wide = std::conditional_t<hash_bits == 32, std::uint64_t, unsigned __int128>;
    const auto remainder = static_cast<hash_type>(tag % remainders_);
    const std::uint64_t away = tag / remainders_ * step_of(remainder, log2_marks) % region_sectors_;
    const std::uint64_t in_region = number % region_sectors_;
    const std::uint64_t home = number - in_region + (in_region + region_sectors_ - away) % region_sectors_;
    const wide rest = ((static_cast<wide>(remainder) << hash_bits) + (remainders_ - 1)) / remainders_;  // the least that has this remainder
    return key_of_hash<Key>(static_cast<hash_type>(((static_cast<wide>(home) << hash_bits) + rest + (all_sectors_ - 1)) / all_sectors_), seed_);
  }

  template <class Format>
  ROOST_FN static std::uint64_t tag_at(const std::uint32_t* words, int slot) {
    constexpr detail::sector_format f = Format()();
    if constexpr (f.by_bits()) {
      std::uint64_t tag = 0;
      for (int bit = 0; bit < f.tag_bits; ++bit) tag |= detail::bits_of(words, bit * f.slots + slot, 1) << bit;
      return tag;
    } else {
      return detail::bits_of(words, slot * f.stride, f.tag_bits);
    }
  }

  /// The one probe loop: reads the sectors of a key's tries until the key is found or a sector has no mark; then the stash.
  template <bool OnlyHome = false>
  ROOST_FN hit probe(const Key& key) const {
    return with_format([&](auto format) { return probe_format<OnlyHome>(key, format); });
  }

  template <bool OnlyHome, class Format>
  ROOST_FN hit probe_format(const Key& key, Format) const {
    constexpr detail::sector_format f = Format()();
    lookup at = start(key);
    read_type here = read(at.number);
    std::uint32_t mask = matches<Format>(here, at.tag);
    while (mask == 0) {
      if (!marked<Format>(here, mark_of(at.remainder, f.log2_marks))) return {no_slot, at.t, Value{}};
      if (at.t == tries_) return probe_stash(key, at.hash);
      next<Format>(at);
      if constexpr (OnlyHome) {
        fetch(at.number);
        return {elsewhere, at.t, Value{}};
      }
      here = read(at.number);
      mask = matches<Format>(here, at.tag);
    }
    const int slot = lowest(mask);
    return {at.number * f.slots + static_cast<unsigned>(slot), at.t, value_in<Format>(here, at.number, slot)};
  }

  /// Where a lookup is.
  struct lookup {
    hash_type hash, remainder;
    std::uint64_t number, tag;
    std::uint32_t t;  // which try
  };

  ROOST_FN lookup start(const Key& key) const {
    const hash_type hash = hash_of(key, seed_);
    const auto at = split_hash(hash, all_sectors_);
    const auto remainder = static_cast<hash_type>(split_hash(at.rest, remainders_).digit);
    return {hash, remainder, at.digit, remainder, 1};
  }

  template <class Format>
  ROOST_FN void next(lookup& at) const {
    const std::uint64_t end = (split_hash(at.hash, regions_).digit + 1) * region_sectors_;
    at.number += step_of(at.remainder, Format()().log2_marks);
    if (at.number >= end) at.number -= region_sectors_;
    at.tag += remainders_;
    ++at.t;
  }

  ROOST_FN hit probe_stash(const Key& key, hash_type hash) const {
    const auto region = static_cast<std::uint32_t>(split_hash(hash, regions_).digit);
    const std::uint64_t first = std::uint64_t{region} * region_stash_;
    std::uint32_t i = stash_start(hash);
    for (std::uint32_t step = 0; step < region_stash_; ++step) {
      const item here = stash_[first + i];
      if (same_key(here.key, key)) return {stash_begin() + first + i, tries_ + 1, detail::value_of(here)};
      if (same_key(here.key, empty_.of(region))) break;
      i = i + 1 == region_stash_ ? 0 : i + 1;
    }
    return {no_slot, tries_ + 1, Value{}};
  }

  /// Where in its region's stash a key is looked for first. The leading bits of the hash are nearly the same there.
  ROOST_FN std::uint32_t stash_start(hash_type hash) const {
    return static_cast<std::uint32_t>(split_hash(static_cast<std::uint32_t>(hash) * 0x9e3779b1u, region_stash_).digit);
  }

  ROOST_PREFETCH_FN void fetch([[maybe_unused]] std::uint64_t number) const {
#if !ROOST_ON_DEVICE
    __builtin_prefetch(sectors_ + number);
#endif
  }

  ROOST_FN read_type read(std::uint64_t number) const { return detail::load(reinterpret_cast<const read_type*>(sectors_ + number)); }

  /// A bit for each slot that has this tag: one at most.
  template <class Format>
  ROOST_FN static std::uint32_t matches(const read_type& here, std::uint64_t tag) {
    constexpr detail::sector_format f = Format()();
    if constexpr (f.by_bits()) {
      std::uint32_t others = 0;
      ROOST_UNROLL
      for (int bit = 0; bit < f.tag_bits; ++bit) {
        const std::uint32_t wanted = 0u - static_cast<std::uint32_t>(tag >> bit & 1);
        const int width = detail::smaller(32, f.head_words() * 32 - bit * f.slots);  // what is too much is cut off at the end, for all bits at once
        others |= static_cast<std::uint32_t>(detail::bits_of(here.word, bit * f.slots, width)) ^ wanted;
      }
      return ~others & ((1u << f.slots) - 1);
    } else {
      std::uint32_t mask = 0;
      ROOST_UNROLL
      for (int s = 0; s < f.slots; ++s) mask |= std::uint32_t{detail::bits_of(here.word, s * f.stride, f.tag_bits) == tag} << s;
      return mask;
    }
  }

  template <class Format>
  ROOST_FN static bool marked(const read_type& here, int mark) {
    constexpr detail::sector_format f = Format()();
    std::uint64_t marks = 0;
    if constexpr (f.aligned()) {
      ROOST_UNROLL
      for (int m = 0; m < f.marks(); ++m) marks |= detail::bits_of(here.word, f.mark_at(m), 1) << m;
    } else {
      marks = detail::bits_of(here.word, f.mark_at(0), f.marks());
    }
    return (marks >> mark & 1) != 0;
  }

  ROOST_FN static int lowest(std::uint32_t mask) {
#if ROOST_ON_DEVICE
    return __ffs(static_cast<int>(mask)) - 1;
#else
    return std::countr_zero(mask);
#endif
  }

  template <class Format>
  ROOST_FN Value value_in([[maybe_unused]] const read_type& here, std::uint64_t number, int slot) const {
    if constexpr (value_bytes == 0) {
      return {};
    } else {
#if ROOST_ON_DEVICE
      if constexpr (sector_bytes == read_bytes) {
        constexpr detail::sector_format f = Format()();
        Value value;
        ROOST_UNROLL
        for (int s = 0; s < f.slots; ++s) {  // what was read is in registers, which have no index
          Value other;
          memcpy(&other, reinterpret_cast<const char*>(here.word) + f.head_words() * 4 + s * value_bytes, sizeof(Value));
          if (s == 0 || s == slot) value = other;
        }
        return value;
      }
#endif
      return values_of<Format>(number)[slot];
    }
  }

  template <class Format>
  ROOST_FN Value* values_of(std::uint64_t number) const {
    return reinterpret_cast<Value*>(sectors_[number].word + Format()().head_words());
  }

  ROOST_FN Value* value_address(std::uint64_t slot) const {
    if (slot >= stash_begin()) return &stash_[slot - stash_begin()].value;
    return with_format([&](auto format) { return values_of<decltype(format)>(slot / format().slots) + slot % format().slots; });
  }

  sector* sectors_;
  item* stash_;
  std::uint64_t seed_;
  std::uint64_t all_sectors_;
  hash_type remainders_;
  std::uint32_t regions_;
  std::uint32_t region_sectors_;
  std::uint32_t region_stash_;
  std::uint32_t tries_;
  int format_;
  detail::empty_keys<Key> empty_;
};

template <class Place, class Key, class Value>
compact::plan compact::make_plan(std::size_t n, const options& options, int attempt, std::uint32_t parts) {
  using here = table<Place, Key, Value>;
  using tuned = detail::tuning<Place>;
  if (!(options.load_factor > 0 && options.load_factor <= 4)) {
    throw invalid_argument("roost::compact: load factor " + detail::text_of(options.load_factor) + " asked for; give more than 0 and at most 4");
  }
  constexpr double region_least = 32;  // sectors: the farthest step of a try
  const double region_bytes = static_cast<double>(tuned::compact_region_bytes * here::sector_bytes / 32);
  const double pairs = static_cast<double>(n);
  const double wished = pairs * here::pair_bytes / options.load_factor;
  detail::check_table_bytes(wished, wished / region_bytes, "roost::compact");
  const double sectors_most = here::hash_bits == 32 ? 0x1p31 : 0x1p55;  // 2^31 tell all but two bits of a 4-byte key
  const double asked = std::min(wished, sectors_most * here::sector_bytes);
  const double regions = detail::regions_from_parts(std::max(2.0, std::ceil(asked / region_bytes)), parts);
  // The fullest region must hold its pairs, and its stash those that find no place.
  const double mean = pairs / regions;
  const double crowd = std::min(pairs, mean + std::max(4.0, std::sqrt(2 * std::log(regions)) + 0.5) * std::sqrt(mean));
  const double stash_most = 8 + crowd / 16;
  constexpr double fullest = 0.95;  // of the slots: above, lookups read many sectors
  plan p{};
  for (p.format = static_cast<int>(here::formats.size()) - 1;; --p.format) {
    const auto least = static_cast<double>(here::sectors_least[static_cast<std::size_t>(p.format)]);
    const int slots = here::formats[static_cast<std::size_t>(p.format)].slots;
    const auto stash_of = [&](double sectors) {
      const double all = std::max(least, regions * sectors);
      const double homeless = sectors * detail::expected_homeless(crowd / sectors, slots, here::tries_of(p.format, static_cast<std::uint64_t>(all)));
      return 8 + std::ceil(homeless + 3 * std::sqrt(homeless));
    };
    // Sectors and stash share the bytes that were asked for, unless pairs find no place then.
    double sectors = std::max(asked / regions / here::sector_bytes, region_least);
    double stash = stash_of(sectors);
    for (int i = 0; i < 64 && stash <= stash_most && sectors > region_least; ++i) {
      const double rest = std::max(region_least, (asked / regions - stash * sizeof(pair<Key, Value>)) / here::sector_bytes);
      if (sectors - rest < 1) break;
      sectors = rest;
      stash = stash_of(sectors);
    }
    for (; stash > stash_most || mean > fullest * slots * sectors; stash = stash_of(sectors)) sectors *= 1.01;
    sectors = std::ceil(sectors * std::pow(1.125, attempt));
    if (p.format > 0 && regions * sectors < least) continue;
    p.regions = static_cast<std::uint32_t>(regions);
    p.region_sectors = static_cast<std::uint32_t>(sectors);
    p.region_stash = static_cast<std::uint32_t>(std::ceil(stash * std::pow(1.125, attempt)));
    p.region_of = {detail::seed_of_attempt(options.seed, attempt), p.regions};
    return p;
  }
}

/// Builds one region.
template <class Place, class Key, class Value>
struct compact::builder {
  using item = pair<Key, Value>;
  using table_type = table<Place, Key, Value>;
  using hash_type = typename table_type::hash_type;
  static constexpr bool on_host = std::is_same_v<Place, host>;
  static constexpr int threads = detail::tuning<cuda>::build_threads;
  static constexpr int teams_at_once = detail::tuning<cuda>::compact_build_teams_at_once(table_type::pair_bytes);

  table_type to;
  detail::region_items<item> from;

  /// The pieces of scratch for one format.
  template <class Format>
  struct pieces {
    using tag_type = std::conditional_t<(Format()().tag_bits <= 16), std::uint16_t, hash_type>;
    static constexpr std::uint32_t sector_slots = static_cast<std::uint32_t>(Format()().slots);

    std::uint64_t slots;     // of the region
    std::uint32_t sectors;
    std::uint32_t* count;    // of each sector: pairs that have come by; in the highest bits its marks
    std::uint32_t* placed;   // of the region
    std::uint32_t* strays;   // how many pairs found their home full,
    std::uint32_t* stray;    // and which
    std::uint32_t* stash;    // the stash, of numbers of pairs
    tag_type* tag;           // of each slot
    Value* value;            // of each slot

    /// Where slots have their tags and values. The threads of a block work on neighbouring sectors, which must not disturb each other.
    ROOST_FN std::uint32_t slot(std::uint32_t sector, std::uint32_t s) const { return on_host ? sector * sector_slots + s : s * sectors + sector; }
  };

  builder(const table_type& table, const detail::region_items<item>& items) : to(table), from(items) {}

  ROOST_FN void scratch(detail::scratch_memory& memory) const {
    to.with_format([&](auto format) { static_cast<void>(take<decltype(format)>(memory)); });
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte* memory) const {
    if (from.lack_some()) return;
    to.with_format([&](auto format) {
      detail::scratch_memory all(memory);
      detail::build_region(team, *this, region, take<decltype(format)>(all));
    });
  }

  static constexpr int marks_at = 24;               // of a sector's count
  static constexpr std::uint32_t count_mask = (1u << marks_at) - 1;
  static constexpr int slot_at = 24;                // of a stray's place: the sector below
  static constexpr std::uint32_t in_stash = 1u << 31;  // of a stray's number: it is in the stash

  template <class Format>
  ROOST_FN pieces<Format> take(detail::scratch_memory& memory) const {
    using my_pieces = pieces<Format>;
    const std::size_t all = std::size_t{to.region_sectors_} * my_pieces::sector_slots;
    my_pieces my;
    my.slots = all + to.region_stash_;
    my.sectors = to.region_sectors_;
    my.count = memory.take<std::uint32_t>(to.region_sectors_);
    my.placed = memory.take<std::uint32_t>(1);
    my.strays = memory.take<std::uint32_t>(1);
    my.stray = memory.take<std::uint32_t>(most_strays<Format>());
    my.stash = memory.take<std::uint32_t>(to.region_stash_);
    my.tag = memory.take<typename my_pieces::tag_type>(all);
    my.value = memory.take<Value>(table_type::value_bytes == 0 ? 0 : all);
    return my;
  }

  /// A pair and its tries.
  template <class Format>
  struct walk {
    static constexpr int log2_marks = Format()().log2_marks;
    std::uint32_t sector;  // of the region
    std::uint64_t tag;
    hash_type remainder;

    ROOST_FN void next(const builder& b) {
      sector += table_type::step_of(remainder, log2_marks);
      if (sector >= b.to.region_sectors_) sector -= b.to.region_sectors_;
      tag += b.to.remainders_;
    }
    ROOST_FN void back(const builder& b) {
      const std::uint32_t step = table_type::step_of(remainder, log2_marks);
      sector += sector < step ? b.to.region_sectors_ - step : 0 - step;
      tag -= b.to.remainders_;
    }
    ROOST_FN std::uint32_t mark() const { return 1u << (marks_at + table_type::mark_of(remainder, log2_marks)); }
  };

  template <class Format>
  ROOST_FN walk<Format> home_of(const Key& key, std::uint32_t region) const {
    const auto at = split_hash(hash_of(key, to.seed_), to.all_sectors_);
    const auto remainder = static_cast<hash_type>(split_hash(at.rest, to.remainders_).digit);
    return {static_cast<std::uint32_t>(at.digit - std::uint64_t{region} * to.region_sectors_), remainder, remainder};
  }

  template <class Format>
  ROOST_FN std::uint32_t most_strays() const {
    return to.region_sectors_ * static_cast<std::uint32_t>(Format()().slots) / 6 + 32;
  }

  template <class Format>
  ROOST_FN void put(const pieces<Format>& my, std::uint32_t slot, const walk<Format>& at, const item& mine) const {
    my.tag[slot] = static_cast<typename pieces<Format>::tag_type>(at.tag);
    if constexpr (table_type::value_bytes != 0) my.value[slot] = mine.value;
  }

  /// The fast way, for keys that are all different: returns false if they are not, or if too many find no place.
  template <class Team, class Format>
  ROOST_FN bool place_by_counting(const Team& team, std::uint32_t region, const item* items, std::uint32_t count, const pieces<Format>& my) const {
    constexpr int per_worker = detail::tuning<typename Team::place>::build_held;
    constexpr std::uint32_t at_once = per_worker * Team::size;
    constexpr std::uint32_t sector_slots = pieces<Format>::sector_slots;
    const std::uint32_t sectors = to.region_sectors_;
    const std::uint32_t strays_most = most_strays<Format>();
    detail::for_each_of(team, sectors, [&](std::uint32_t s) { my.count[s] = 0; });
    detail::for_each_of(team, to.region_stash_, [&](std::uint32_t i) { my.stash[i] = detail::no_owner; });
    if (team.rank() == 0) *my.strays = 0;
    team.sync();
    for (std::uint32_t first = 0; first < count; first += at_once) {
      const std::uint32_t n = detail::smaller(at_once, count - first);
      const detail::held_items<per_worker, Team, const item*> held_item(team, items, first, n);
      detail::for_each_held<per_worker>(team, n, [&](int held, int i) {
        const walk<Format> at = home_of<Format>(held_item(held, i).key, region);
        const std::uint32_t s = team.fetch_add(my.count[at.sector], 1u);
        if (s < sector_slots) {
          put(my, my.slot(at.sector, s), at, held_item(held, i));
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
      walk<Format> at = home_of<Format>(mine.key, region);
      for (std::uint32_t t = 1; t < to.tries_; ++t) {
        team.fetch_or(my.count[at.sector], at.mark());
        at.next(*this);
        const std::uint32_t s = team.fetch_add(my.count[at.sector], 1u) & count_mask;
        if (s >= sector_slots) continue;
        put(my, my.slot(at.sector, s), at, mine);
        my.stray[i] = s << slot_at | at.sector;  // from now on the place that it found
        return;
      }
      team.fetch_or(my.count[at.sector], at.mark());
      bad |= claim_stash(team, my.stash, items, my.stray[i]) != detail::claim::made;
      my.stray[i] |= in_stash;
    });
    if (team.any(bad)) return false;
    detail::for_each_of(team, strays, [&](std::uint32_t i) {
      const std::uint32_t place = my.stray[i];
      walk<Format> at;
      if ((place & in_stash) != 0) {
        at = home_of<Format>(items[place & ~in_stash].key, region);
        for (std::uint32_t t = 0; t < to.tries_; ++t) at.next(*this);
      } else {
        at.sector = place & ((1u << slot_at) - 1);
        at.tag = my.tag[my.slot(at.sector, place >> slot_at)];
        at.remainder = static_cast<hash_type>(at.tag);
        while (at.remainder >= to.remainders_) at.remainder -= to.remainders_;  // a few times: less than a division
      }
      while (at.tag >= to.remainders_) {  // the sectors that it passed are full
        at.back(*this);
        for (std::uint32_t s = 0; s < sector_slots; ++s) bad |= my.tag[my.slot(at.sector, s)] == at.tag;
      }
    });
    bad |= pack(team, region, my);
    if (team.any(bad)) return false;
    write_stash(team, region, items, my.stash);
    return true;
  }

  /// The way that takes any number of copies of a key: returns false if the different keys are too many.
  template <class Team, class Format>
  ROOST_FN bool place_by_claims(const Team& team, std::uint32_t region, const item* items, std::uint64_t count, const pieces<Format>& my) const {
    using tag_type = typename pieces<Format>::tag_type;
    constexpr std::uint32_t sector_slots = pieces<Format>::sector_slots;
    constexpr auto empty = static_cast<tag_type>(Format()().empty_tag());
    const std::uint32_t sectors = to.region_sectors_;
    detail::for_each_of(team, sectors * sector_slots, [&](std::uint32_t s) { my.tag[s] = empty; });
    detail::for_each_of(team, sectors, [&](std::uint32_t s) { my.count[s] = 0; });
    detail::for_each_of(team, to.region_stash_, [&](std::uint32_t i) { my.stash[i] = detail::no_owner; });
    const bool placed = detail::claim_each(team, count, my.placed, [&](std::uint32_t i) {
      walk<Format> at = home_of<Format>(items[i].key, region);
      for (std::uint32_t t = 0; t < to.tries_; ++t) {
        const auto tag = static_cast<tag_type>(at.tag);
        for (std::uint32_t s = 0; s < sector_slots; ++s) {
          const std::uint32_t slot = my.slot(at.sector, s);
          const tag_type before = team.compare_exchange(my.tag[slot], empty, tag);
          if (before == tag) return detail::claim::duplicate;
          if (before != empty) continue;
          team.fetch_add(my.count[at.sector], 1u);
          if constexpr (table_type::value_bytes != 0) my.value[slot] = items[i].value;
          return detail::claim::made;
        }
        team.fetch_or(my.count[at.sector], at.mark());
        at.next(*this);
      }
      return claim_stash(team, my.stash, items, i);
    });
    if (!placed) return false;
    static_cast<void>(pack(team, region, my));
    write_stash(team, region, items, my.stash);
    return true;
  }

  template <class Team>
  ROOST_FN detail::claim claim_stash(const Team& team, std::uint32_t* stash, const item* items, std::uint32_t i) const {
    const std::uint32_t start = to.stash_start(hash_of(items[i].key, to.seed_));
    return detail::claim_slot(team, stash, to.region_stash_, start, items, i, to.region_stash_, [](std::uint32_t) {});
  }

  /// Puts the n tags of a sector bit by bit; true if two are the same.
  template <class Format>
  ROOST_FN bool put_by_bits(const pieces<Format>& my, std::uint32_t number, std::uint32_t n, std::uint32_t* words) const {
    constexpr detail::sector_format f = Format()();
    std::uint32_t bits[f.tag_bits];  // one of each tag
    ROOST_UNROLL
    for (int bit = 0; bit < f.tag_bits; ++bit) bits[bit] = (1u << f.slots) - 1;
    typename pieces<Format>::tag_type tag[f.slots];
    bool twice = false;
    ROOST_UNROLL
    for (int s = 0; s < f.slots; ++s) {
      if (static_cast<std::uint32_t>(s) >= n) break;  // often few of many
      tag[s] = my.tag[my.slot(number, s)];
      ROOST_UNROLL
      for (int other = 0; other < s; ++other) twice |= tag[other] == tag[s];
      const std::uint32_t zeros = ~static_cast<std::uint32_t>(tag[s]);
      ROOST_UNROLL
      for (int bit = 0; bit < f.tag_bits; ++bit) bits[bit] ^= (zeros >> bit & 1) << s;
    }
    ROOST_UNROLL
    for (int bit = 0; bit < f.tag_bits; ++bit) detail::put_bits(words, bit * f.slots, f.slots, bits[bit]);
    return twice;
  }

  /// Writes the sectors of a region; true if two pairs of a sector have the same tag.
  template <class Team, class Format>
  ROOST_FN bool pack(const Team& team, std::uint32_t region, const pieces<Format>& my) const {
    using tag_type = typename pieces<Format>::tag_type;
    const std::uint32_t sectors = to.region_sectors_;
    bool twice = false;
    detail::write_each(team, sectors, to.sectors_ + std::uint64_t{region} * sectors, [&](std::uint32_t number) {
      constexpr detail::sector_format f = Format()();
      const std::uint32_t n = detail::smaller<std::uint32_t>(my.count[number] & count_mask, f.slots);
      const std::uint32_t marks = my.count[number] >> marks_at;
      typename table_type::sector out{};
      if constexpr (f.by_bits()) {
        twice |= put_by_bits(my, number, n, out.word);
      } else {
        tag_type tag[f.slots];
        ROOST_UNROLL
        for (int s = 0; s < f.slots; ++s) {
          const bool taken = static_cast<std::uint32_t>(s) < n;
          tag[s] = taken ? my.tag[my.slot(number, s)] : static_cast<tag_type>(f.empty_tag());
          ROOST_UNROLL
          for (int other = 0; other < s; ++other) twice |= taken & (tag[other] == tag[s]);
          detail::put_bits(out.word, s * f.stride, f.tag_bits, tag[s]);
        }
      }
      if constexpr (table_type::value_bytes != 0) {
        ROOST_UNROLL
        for (int s = 0; s < f.slots; ++s) {
          const Value mine = static_cast<std::uint32_t>(s) < n ? my.value[my.slot(number, s)] : Value{};
          memcpy(reinterpret_cast<char*>(out.word) + f.head_words() * 4 + s * f.value_bytes, &mine, sizeof(Value));
        }
      }
      ROOST_UNROLL
      for (int m = 0; m < f.marks(); ++m) detail::put_bits(out.word, f.mark_at(m), 1, marks >> m & 1);
      return out;
    });
    return twice;
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

/// The layout of frozen_map and frozen_set, if none is named: compact where it takes the types, bucketed otherwise.
template <class Key, class Value>
using default_layout = std::conditional_t<compact::takes<Key, Value>, compact, bucketed>;

}  // namespace roost
