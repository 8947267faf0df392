#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "roost/detail/frozen/compact_sector.hpp"
#include "roost/detail/frozen/region_build.hpp"
#include "roost/layout/bucketed.hpp"

/// \file
/// Layout `compact`, the default of frozen_map and frozen_set: sectors that store what they do not tell of a
/// key.

namespace roost {

/// Sectors of 32 bytes (64 where pairs are large) that store of a key only what the sector's number does not
/// tell of its hash. A hash of a key of up to 8 bytes is a bijection, so nothing is lost, and no key and no
/// value is reserved. A large table has six pairs of 4 + 4 bytes in a sector where plain slots have four:
/// nearly every lookup, of stored keys and of absent ones, reads one sector, and a table can be smaller than
/// its input.
///
/// A pair that finds its home sector full tries two to seven others of its region, as far apart as its
/// remainder says; it marks the sectors that it passes, and a lookup reads on only where the mark of its
/// remainder stands. Pairs that find no place go to the stash of their region, a small table of plain pairs.
///
/// How many pairs a sector holds is chosen at build time, from the sizes of key and value and the number of
/// sectors.
struct compact {
  /// Options of frozen_map and frozen_set with this layout.
  struct options {
    /// Bytes of the pairs over bytes of the table, above 0; 1.2 is a table smaller than its input. Where so
    /// many pairs do not fit (4 + 4 bytes: above 0.9 for small tables, 1.1 from 4 * 10^5 pairs on, 1.3 from
    /// 10^8) the table is made larger; the real figure is load_factor().
    double load_factor = 0.8;
    /// Chooses the hash functions. The same seed and data give the same answers on every place.
    std::uint64_t seed = 0;
    /// Attempts after the first before a build gives up with build_error. With each, regions get an eighth
    /// more room.
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
    double load_factor(std::size_t size) const {
      return static_cast<double>(size * table_type::pair_bytes) / static_cast<double>(bytes());
    }

   private:
    array<typename table_type::sector, Place> sectors_;
    array<pair<Key, Value>, Place> stash_;
    table_type table_;
  };
};

/// The per-key operations: what frozen_map::ref() returns. Trivially copyable; valid while its map lives and
/// is not rebuilt. Any number of threads may read.
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
  static constexpr int sector_bytes =
      detail::densest_format(32, 64, hash_bits, value_bytes, alignof(Value)).slots >= 4 ? 32 : 64;

  struct sized_format {
    std::uint64_t sectors_least;  // of a table
    detail::sector_format format;
  };
  /// The formats, and from how many sectors on they are used: five at most, as code is compiled for each.
  /// (With 98400 sectors tags of a 4-byte key have 17 bits, with 12600000 they have 10.) Most types have two
  /// or three.
  static constexpr std::array<sized_format, 5> formats = [] {
    std::array<sized_format, 6> all{};
    std::size_t count = 0;
    for (const std::uint64_t sectors : {64u, 98400u, 1u << 20, 3150000u, 6300000u, 12600000u}) {
      const auto format =
          detail::densest_format(sector_bytes, sectors, hash_bits, value_bytes, alignof(Value));
      if (count == 0 || format != all[count - 1].format) all[count++] = {sectors, format};
    }
    if (count == 6) all[2] = all[3], all[3] = all[4], all[4] = all[5];  // the one that is missed least
    for (; count < 5; ++count) all[count] = all[count - 1];
    return std::array<sized_format, 5>{all[0], all[1], all[2], all[3], all[4]};
  }();
  static_assert(takes<Key, Value> && formats[0].format.slots >= 2,
                "layout compact is for keys of up to 8 bytes and values of up to 24; take bucketed");

  struct alignas(16) sector {
    std::uint32_t word[sector_bytes / 4];
  };

  /// What a lookup reads at once: a sector of 32 bytes whole, of a larger one the head.
  static constexpr int read_bytes = sector_bytes == 32 ? 32 : [] {
    int most = 0;
    for (const auto& f : formats) most = detail::larger(most, f.format.head_words() * 4);
    return (most + 15) / 16 * 16;
  }();
  struct alignas(16) read_type {
    std::uint32_t word[read_bytes / 4];
  };

  table(sector* sectors, item* stash, const plan& p, const detail::empty_keys<Key>& empty)
      : sectors_(sectors),
        stash_(stash),
        seed_(p.region_of.seed),
        all_sectors_(std::uint64_t{p.regions} * p.region_sectors),
        remainders_(static_cast<hash_type>(detail::remainders_of(all_sectors_, hash_bits))),
        regions_(p.regions),
        region_sectors_(p.region_sectors),
        region_stash_(p.region_stash),
        tries_(tries_of(p.format, all_sectors_)),
        format_(p.format),
        empty_(empty) {}

  /// At how many sectors a pair is tried before it goes to the stash: as many as a tag can tell.
  static std::uint32_t tries_of(int format, std::uint64_t sectors) {
    const std::uint64_t tags = formats[static_cast<std::size_t>(format)].format.empty_tag();
    return static_cast<std::uint32_t>(detail::smaller<std::uint64_t>(
        tags / detail::remainders_of(sectors, hash_bits), detail::sector_format::tries_most));
  }

  /// The value of a key, or nothing.
  ROOST_FN found<Value> find(const Key& key) const {
    const hit at = probe(key);
    return at.slot != no_slot ? found<Value>(at.value) : found<Value>();
  }

  /// True if the key is there.
  ROOST_FN bool contains(const Key& key) const { return probe(key).slot != no_slot; }
  ROOST_DELETE_IF_IT_CHANGES_THE_KEY(find);
  ROOST_DELETE_IF_IT_CHANGES_THE_KEY(contains);

  /// Finds a key if its home sector tells enough. If not, returns false, and the next sector is fetched for a
  /// find that comes later.
  ROOST_FN bool find_at_home(const Key& key, found<Value>& answer) const {
    const hit at = probe<true>(key);
    if (at.slot == elsewhere) return false;
    if (at.slot != no_slot) answer = found<Value>(at.value);
    return true;
  }

  /// Whether a lookup needs nothing but its sectors, which it reads whole: then find_each is faster than a
  /// find for each key.
  static constexpr bool reads_whole = read_bytes == sector_bytes;

  /// put(i, answer) for the keys of numbers first, first + step, ... below end. One loop over all sectors to
  /// read, not one for each key: a worker of a warp goes on to its next key while another reads a second
  /// sector.
  template <class Keys, class Put>
  ROOST_FN void find_each(const Keys& keys, std::uint64_t first, std::uint64_t end, std::uint64_t step,
                          const Put& put) const {
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

  /// Fetches a key's home sector ahead of a find. Does nothing on a GPU, which hides the wait with other
  /// threads.
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
    if (slot >= stash_begin())
      return !same_key(stash_[slot - stash_begin()].key,
                       empty_.of(static_cast<std::uint32_t>((slot - stash_begin()) / region_stash_)));
    return with_format([&](auto format) {
      return tag_at<decltype(format)>(sectors_[slot / format().slots].word,
                                      static_cast<int>(slot % format().slots)) != format().empty_tag();
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
      stash_[slot - stash_begin()].key =
          empty_.of(static_cast<std::uint32_t>((slot - stash_begin()) / region_stash_));
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
    ROOST_FN constexpr detail::sector_format operator()() const { return formats[I].format; }
  };
  /// Equal formats have one number, so that there is code for each once.
  static constexpr int first_like(int i) {
    while (i > 0 &&
           formats[static_cast<std::size_t>(i - 1)].format == formats[static_cast<std::size_t>(i)].format)
      --i;
    return i;
  }
  template <int I>
  using format_of = format_number<first_like(I)>;

  /// Calls f with the table's format as a constant.
  template <class F>
  ROOST_FN auto with_format(const F& f) const {
    switch (format_) {
      case 0:
        return f(format_of<0>());
      case 1:
        return f(format_of<1>());
      case 2:
        return f(format_of<2>());
      case 3:
        return f(format_of<3>());
      default:
        return f(format_of<4>());
    }
  }

  ROOST_FN std::uint64_t stash_begin() const {
    return with_format(
        [&](auto format) { return all_sectors_ * static_cast<std::uint64_t>(format().slots); });
  }

  // A remainder also chooses how far apart a pair's tries are, and its mark.

  ROOST_FN static std::uint32_t step_of(hash_type remainder, int log2_marks) {
    return 1 + (static_cast<std::uint32_t>(remainder >> log2_marks) & 31);
  }
  ROOST_FN static int mark_of(hash_type remainder, int log2_marks) {
    return static_cast<int>(remainder & ((1 << log2_marks) - 1));
  }

  /// The key that has this tag in this sector.
  ROOST_RARE_FN Key key_of_tag(std::uint64_t number, std::uint64_t tag, int log2_marks) const {
    using wide = std::conditional_t<hash_bits == 32, std::uint64_t, detail::uint128>;
    const auto remainder = static_cast<hash_type>(tag % remainders_);
    const std::uint64_t away = tag / remainders_ * step_of(remainder, log2_marks) % region_sectors_;
    const std::uint64_t in_region = number % region_sectors_;
    const std::uint64_t home = number - in_region + (in_region + region_sectors_ - away) % region_sectors_;
    const wide rest = ((static_cast<wide>(remainder) << hash_bits) + (remainders_ - 1)) /
                      remainders_;  // the least that has this remainder
    return key_of_hash<Key>(
        static_cast<hash_type>(((static_cast<wide>(home) << hash_bits) + rest + (all_sectors_ - 1)) /
                               all_sectors_),
        seed_);
  }

  template <class Format>
  ROOST_FN static std::uint64_t tag_at(const std::uint32_t* words, int slot) {
    constexpr detail::sector_format f = Format()();
    if constexpr (f.by_bits()) {
      std::uint64_t tag = 0;
      for (int bit = 0; bit < f.tag_bits; ++bit)
        tag |= detail::bits_of(words, bit * f.slots + slot, 1) << bit;
      return tag;
    } else {
      return detail::bits_of(words, slot * f.stride, f.tag_bits);
    }
  }

  /// The one probe loop: reads the sectors of a key's tries until the key is found or a sector has no mark;
  /// then the stash.
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

  /// Where in its region's stash a key is looked for first. The leading bits of the hash are nearly the same
  /// there.
  ROOST_FN std::uint32_t stash_start(hash_type hash) const {
    return static_cast<std::uint32_t>(
        split_hash(static_cast<std::uint32_t>(hash) * 0x9e3779b1u, region_stash_).digit);
  }

  ROOST_PREFETCH_FN void fetch([[maybe_unused]] std::uint64_t number) const {
#if !ROOST_ON_DEVICE
    __builtin_prefetch(sectors_ + number);
#endif
  }

  ROOST_FN read_type read(std::uint64_t number) const {
    return detail::load(reinterpret_cast<const read_type*>(sectors_ + number));
  }

  /// A bit for each slot that has this tag: one at most.
  template <class Format>
  ROOST_FN static std::uint32_t matches(const read_type& here, std::uint64_t tag) {
    constexpr detail::sector_format f = Format()();
    if constexpr (f.by_bits()) {
      std::uint32_t others = 0;
      ROOST_UNROLL
      for (int bit = 0; bit < f.tag_bits; ++bit) {
        const std::uint32_t wanted = 0u - static_cast<std::uint32_t>(tag >> bit & 1);
        const int width = detail::smaller(
            32, f.head_words() * 32 -
                    bit * f.slots);  // what is too much is cut off at the end, for all bits at once
        others |= static_cast<std::uint32_t>(detail::bits_of(here.word, bit * f.slots, width)) ^ wanted;
      }
      return ~others & ((1u << f.slots) - 1);
    } else {
      std::uint32_t mask = 0;
      ROOST_UNROLL
      for (int s = 0; s < f.slots; ++s)
        mask |= std::uint32_t{detail::bits_of(here.word, s * f.stride, f.tag_bits) == tag} << s;
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
          memcpy(&other, reinterpret_cast<const char*>(here.word) + f.head_words() * 4 + s * value_bytes,
                 sizeof(Value));
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
    return with_format([&](auto format) {
      return values_of<decltype(format)>(slot / format().slots) + slot % format().slots;
    });
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

/// The layout of frozen_map and frozen_set, if none is named: compact where it takes the types, bucketed
/// otherwise.
template <class Key, class Value>
using default_layout = std::conditional_t<compact::takes<Key, Value>, compact, bucketed>;

}  // namespace roost

#include "roost/detail/frozen/compact_builder.inl"
#include "roost/detail/frozen/compact_plan.inl"
