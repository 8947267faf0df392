#pragma once

#include <algorithm>
#include <cmath>

#include "roost/detail/frozen/bucketed.hpp"
#include "roost/detail/frozen/compact_sector.hpp"
#include "roost/detail/place/lanes.hpp"

/// \file
/// Layout `compact`, the default of frozen_map and frozen_set: sectors that store only those bits of a key
/// that their position does not determine.

namespace roost {

/// Sectors of 32 bytes (64 for large pairs) that store only those bits of a key's hash that the number of the
/// sector does not determine. A hash of a key of up to 8 bytes is a bijection, so nothing is lost, and no key
/// and no value is reserved. A large table has six pairs of 4 + 4 bytes in a sector, which has room for four
/// plain slots: nearly every lookup, of stored keys and of absent ones, reads one sector, and a table can be
/// smaller than its input.
///
/// A pair whose home sector is full tries two to seven other sectors of its region; its remainder determines
/// how far apart they are. It marks the sectors that it passes, and a lookup continues only if the mark of
/// its remainder is set. Pairs that find no slot go to the stash of their region, a small table of plain
/// pairs.
///
/// How many pairs a sector holds is chosen at build time, from the sizes of key and value and the number of
/// sectors.
struct compact {
  using options = frozen_options;
  static constexpr double load_factor_most = 4;
  static constexpr const char* name = "compact";
  static constexpr detail::layout_abilities can{
      .hash_order = true, .builds_in_turn = true, .inserts_on_host = true};

  /// True for the types that this layout is for: keys of up to 8 bytes, values of up to 24.
  template <class Key, class Value>
  static constexpr bool takes = std::is_same_v<default_layout<Key, Value>, compact>;

  template <class Place, class Key, class Value>
  class table;
  template <class Place, class Key, class Value, bool Small = false, class Items = const pair<Key, Value>*>
  struct builder;
  template <class Place, class Key, class Value>
  using small_builder = builder<Place, Key, Value, true>;

  /// The geometry of one build attempt.
  struct plan : detail::layout_plan<> {
    std::uint32_t region_sectors = 0, region_stash = 0;
    int format = 0;
    bool small() const { return format == 0; }
  };

  template <class Place, class Key, class Value>
  static plan make_plan(std::size_t n, const options& options, int attempt, std::uint32_t parts = 0);
};

/// The sectors of a map: see roost::lookups for its operations.
template <class Place, class Key, class Value>
class compact::table : public lookups<compact::table<Place, Key, Value>, Key, Value> {
 public:
  using item = pair<Key, Value>;
  using base = lookups<table, Key, Value>;
  using base::no_slot;
  using typename base::hit;

  static constexpr int hash_bits = sizeof(Key) <= 4 ? 32 : 64;
  using hash_type = std::conditional_t<hash_bits == 32, std::uint32_t, std::uint64_t>;
  static constexpr int value_bytes = std::is_same_v<Value, none> ? 0 : static_cast<int>(sizeof(Value));
  static constexpr int pair_bytes = static_cast<int>(sizeof(Key)) + value_bytes;
  static constexpr bool on_host = std::is_same_v<Place, host>;
  static constexpr int sector_bytes =
      detail::densest_format(32, 64, hash_bits, value_bytes, alignof(Value)).slots >=
              detail::build_tuning<Place>::sector_slots
          ? 32
          : 64;

  static constexpr auto formats =
      detail::formats_for(on_host, sector_bytes, hash_bits, value_bytes, alignof(Value));
  static_assert(takes<Key, Value> && formats[0].format.slots >= 2,
                "layout compact is for keys of up to 8 bytes and values of up to 24; take bucketed");

  struct alignas(16) sector {
    std::uint32_t word[sector_bytes / 4];
  };

  /// What a lookup reads at once: all of a sector of 32 bytes, or the head of a larger one. (A host needs no
  /// copy of data in its cache.)
  static constexpr int read_bytes = sector_bytes == 32 ? 32 : [] {
    int most = 0;
    for (const auto& f : formats) most = detail::larger(most, f.format.head_words() * 4);
    return (most + 15) / 16 * 16;
  }();
  struct alignas(16) sector_part {
    std::uint32_t word[read_bytes / 4];
  };
  using read_type = std::conditional_t<on_host, none, sector_part>;

  table(std::byte* memory, const plan& p)
      : sectors_(reinterpret_cast<sector*>(memory)),
        stash_(reinterpret_cast<item*>(memory + bytes_of_sectors(p))),
        seed_(p.region_of.seed),
        all_sectors_(std::uint64_t{p.regions} * p.region_sectors),
        remainders_(static_cast<hash_type>(detail::remainders_of(all_sectors_, hash_bits))),
        regions_(p.regions),
        region_sectors_(p.region_sectors),
        region_stash_(p.region_stash),
        tries_(tries_of(p.format, all_sectors_)),
        format_(p.format),
        empty_(detail::find_empty_keys<Key>(p.region_of)) {}
  static std::size_t bytes_of(const plan& p) {
    return bytes_of_sectors(p) + std::size_t{p.regions} * p.region_stash * sizeof(item);
  }

  /// The number of sectors that a pair tries before it goes to the stash: as many as a tag can record.
  static std::uint32_t tries_of(int format, std::uint64_t sectors) {
    return detail::tries_of(formats[static_cast<std::size_t>(format)].format, sectors, hash_bits);
  }

  /// Splits keys by the leading bits of their hash, which is the order of the sectors.
  detail::leading_bits hash_order(std::uint32_t parts) const { return {seed_, parts}; }

  /// The number of slots, including those of the stashes.
  ROOST_FN std::uint64_t capacity() const { return stash_begin() + std::uint64_t{regions_} * region_stash_; }
  double load_factor(std::size_t size) const {
    const std::size_t stashes = std::size_t{regions_} * region_stash_;
    return static_cast<double>(size * pair_bytes) /
           static_cast<double>(all_sectors_ * sizeof(sector) + stashes * sizeof(item));
  }

  // Slots by number, for iteration and checks.

  ROOST_FN bool occupied(std::uint64_t slot) const {
    if (slot >= stash_begin()) return !same_key(stash_[slot - stash_begin()].key, empty_key_of(slot));
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

  /// Changes the value of a slot; the key of the pair is the key of the slot.
  ROOST_FN void set(std::uint64_t slot, const item& pair) const {
    if constexpr (value_bytes != 0) *value_address(slot) = pair.value;
  }

  /// Empties a slot of the stash; for the first slot of a sector, the whole sector.
  ROOST_FN void clear(std::uint64_t slot) const {
    if (slot >= stash_begin()) {
      stash_[slot - stash_begin()].key = empty_key_of(slot);
      return;
    }
    with_format([&](auto format) {
      if (slot % format().slots == 0) sectors_[slot / format().slots] = empty_sector(format);
    });
  }

  // Lookups in steps: see detail/table/probe.hpp. A step reads the sector of one try; the last step reads the
  // stash.

  static constexpr detail::bulk_drivers drivers{
      .defers = true, .interleaves_by_region = read_bytes == sector_bytes};  // which are all that it reads

  struct cursor_type {
    Key key;
    hash_type hash, remainder;
    std::uint64_t number, tag;
    std::uint32_t t;  // which try
    read_type here;   // of the sector that was read
  };

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

  ROOST_FN cursor_type start(const Key& key) const {
    const hash_type hash = hash_of(key, seed_);
    const auto home = split_hash(hash, all_sectors_);
    const auto remainder = static_cast<hash_type>(split_hash(home.rest, remainders_).digit);
    return {.key = key,
            .hash = hash,
            .remainder = remainder,
            .number = home.digit,
            .tag = remainder,
            .t = 1,
            .here = {}};
  }

  template <class Format>
  ROOST_FN void read(Format, cursor_type& cursor) const {
    if constexpr (!on_host)
      cursor.here = detail::load(reinterpret_cast<const read_type*>(sectors_ + cursor.number));
  }

  template <class Format>
  ROOST_FN int match(Format, const cursor_type& cursor) const {
    return detail::first_of(matches<Format>(seen(cursor), cursor.tag));
  }

  template <class Format>
  ROOST_FN void take(Format, const cursor_type& cursor, int slot, hit& result) const {
    result = {value_in<Format>(seen(cursor), cursor.number, slot),
              cursor.number * Format()().slots + static_cast<unsigned>(slot), cursor.t};
  }

  template <class Format>
  ROOST_FN bool passed(Format, const cursor_type& cursor) const {
    return marked<Format>(seen(cursor), mark_of(cursor.remainder, Format()().log2_marks));
  }

  template <class Format>
  ROOST_FN bool goes_on(Format format, cursor_type& cursor, hit& result) const {
    if (!passed(format, cursor)) return false;
    if (cursor.t == tries_) {
      look_in_stash(cursor, result);
      return false;
    }
    next<Format>(cursor);
    return true;
  }

  ROOST_PREFETCH_FN void fetch([[maybe_unused]] const cursor_type& cursor) const {
#if !ROOST_ON_DEVICE
    __builtin_prefetch(sectors_ + cursor.number);
#endif
  }

  // Inserts, on a host: see detail/frozen/host_build.hpp.

  std::uint32_t regions() const { return regions_; }
  std::uint32_t region_units() const { return region_sectors_; }
  sector* region_begin(std::uint32_t region) const {
    return sectors_ + std::uint64_t{region} * region_sectors_;
  }
  /// The same table, with the sectors of a region in other memory.
  table with_region_at(std::uint32_t region, sector* there) const {
    table result = *this;
    result.sectors_ = reinterpret_cast<sector*>(reinterpret_cast<std::uintptr_t>(there) -
                                                std::uintptr_t{region} * region_sectors_ * sizeof(sector));
    return result;
  }
  template <class Format>
  static constexpr int slots(Format format) {
    return format().slots;
  }

  template <class Format>
  void clear_regions(Format format, std::uint32_t first, std::uint32_t count) const {
    std::fill_n(region_begin(first), std::uint64_t{count} * region_sectors_, empty_sector(format));
    item* next = stash_ + std::uint64_t{first} * region_stash_;
    for (std::uint32_t region = first; region < first + count; ++region) {
      for (std::uint32_t i = 0; i < region_stash_; ++i) (next++)->key = empty_.of(region);
    }
  }

  /// Puts a pair into a slot of its sector, which has no marks.
  template <class Format>
  void put(Format, const cursor_type& cursor, int slot, const item& pair) const {
    set_tag<Format>(sectors_[cursor.number], slot, cursor.tag, true);
    if constexpr (value_bytes != 0) values_of<Format>(cursor.number)[slot] = pair.value;
  }

  template <class Format>
  detail::claim insert(Format format, const item& pair) const {
    constexpr detail::sector_format f = format();
    for (auto cursor = start(pair.key);; next<Format>(cursor)) {
      sector& here = sectors_[cursor.number];
      if (matches<Format>(here, cursor.tag) != 0) return detail::claim::duplicate;
      if (const std::uint32_t free = matches<Format>(here, f.empty_tag()); free != 0) {
        const int slot = detail::first_of(free);
        set_tag<Format>(here, slot, cursor.tag, false);
        if constexpr (value_bytes != 0) values_of<Format>(cursor.number)[slot] = pair.value;
        return detail::claim::made;
      }
      const int mark = f.mark_at(mark_of(cursor.remainder, f.log2_marks));
      here.word[mark / 32] |= 1u << mark % 32;
      if (cursor.t == tries_) return insert_in_stash(pair, cursor.hash);
    }
  }

  /// Whether two slots of a sector have the same tag.
  template <class Format>
  bool has_twice(Format format, std::uint64_t number) const {
    constexpr detail::sector_format f = format();
    const sector& here = sectors_[number];
    std::uint32_t twice = 0;
    for (int s = 0; s < f.slots; ++s)
      twice |= matches<Format>(here, tag_at<Format>(here.word, s)) & ~(1u << s);
    return (twice & ~matches<Format>(here, f.empty_tag())) != 0;
  }

 private:
  template <class P, class K, class V, bool Small, class Items>
  friend struct compact::builder;

  static std::size_t bytes_of_sectors(const plan& p) {
    return std::size_t{p.regions} * p.region_sectors * sizeof(sector);
  }

  /// The part of a sector that was read.
  ROOST_FN const auto& seen(const cursor_type& cursor) const {
    if constexpr (on_host) {
      return sectors_[cursor.number];
    } else {
      return cursor.here;
    }
  }

  template <int I>
  struct format_number {
    ROOST_FN constexpr detail::sector_format operator()() const { return formats[I].format; }
  };
  /// Equal formats share one number, so that code is compiled once for each.
  static constexpr int first_like(int i) {
    while (i > 0 &&
           formats[static_cast<std::size_t>(i - 1)].format == formats[static_cast<std::size_t>(i)].format)
      --i;
    return i;
  }
  template <int I>
  using format_of = format_number<first_like(I)>;

  ROOST_FN std::uint64_t stash_begin() const {
    return with_format(
        [&](auto format) { return all_sectors_ * static_cast<std::uint64_t>(format().slots); });
  }

  /// What a slot of the stash holds if it is empty.
  ROOST_FN Key empty_key_of(std::uint64_t slot) const {
    return empty_.of(static_cast<std::uint32_t>((slot - stash_begin()) / region_stash_));
  }

  // The remainder also determines the distance between a pair's tries, and its mark.

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
                      remainders_;  // the least hash with this remainder
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

  template <class Format>
  ROOST_FN void next(cursor_type& cursor) const {
    const std::uint64_t end = (split_hash(cursor.hash, regions_).digit + 1) * region_sectors_;
    cursor.number += step_of(cursor.remainder, Format()().log2_marks);
    if (cursor.number >= end) cursor.number -= region_sectors_;
    cursor.tag += remainders_;
    ++cursor.t;
  }

  /// Sets a tag. `fresh`: no mark of the sector is set; else the marks stay.
  template <class Format>
  static void set_tag(sector& here, int slot, std::uint64_t tag, bool fresh) {
    constexpr detail::sector_format f = Format()();
    if constexpr (f.by_numbers()) {
      using number_type =
          std::conditional_t<f.stride == 64, std::uint64_t,
                             std::conditional_t<f.stride == 32, std::uint32_t, std::uint16_t>>;
      auto number = static_cast<number_type>(tag);
      char* const there = reinterpret_cast<char*>(here.word) + slot * static_cast<int>(sizeof(number));
      if (f.aligned() && !fresh) {
        number_type before;
        std::memcpy(&before, there, sizeof(before));
        number |= static_cast<number_type>(before & ~f.empty_tag());
      }
      std::memcpy(there, &number, sizeof(number));
    } else if constexpr (f.by_bits()) {
      for (int bit = 0; bit < f.tag_bits; ++bit)
        detail::set_bits(here.word, bit * f.slots + slot, 1, tag >> bit & 1);
    } else {
      detail::set_bits(here.word, slot * f.stride, f.tag_bits, tag);
    }
  }

  template <class Format>
  ROOST_FN static sector empty_sector(Format format) {
    constexpr detail::sector_format f = format();
    sector empty{};
    for (int w = 0; w < f.head_words(); ++w) empty.word[w] = ~0u;
    for (int m = 0; m < f.marks(); ++m) empty.word[f.mark_at(m) / 32] &= ~(1u << f.mark_at(m) % 32);
    return empty;
  }

  ROOST_RARE_FN detail::claim insert_in_stash(const item& pair, hash_type hash) const {
    const auto region = static_cast<std::uint32_t>(split_hash(hash, regions_).digit);
    item* const stash = stash_ + std::uint64_t{region} * region_stash_;
    std::uint32_t i = stash_start(hash);
    for (std::uint32_t step = 0; step < region_stash_; ++step) {
      if (same_key(stash[i].key, pair.key)) return detail::claim::duplicate;
      if (same_key(stash[i].key, empty_.of(region))) {
        stash[i] = pair;
        return detail::claim::made;
      }
      i = i + 1 == region_stash_ ? 0 : i + 1;
    }
    return detail::claim::full;
  }

  ROOST_FN void look_in_stash(const cursor_type& cursor, hit& result) const {
    const auto region = static_cast<std::uint32_t>(split_hash(cursor.hash, regions_).digit);
    const std::uint64_t first = std::uint64_t{region} * region_stash_;
    std::uint32_t i = stash_start(cursor.hash);
    for (std::uint32_t step = 0; step < region_stash_; ++step) {
      const item here = stash_[first + i];
      if (same_key(here.key, cursor.key)) {
        result = {detail::value_of(here), stash_begin() + first + i, tries_ + 1};
        return;
      }
      if (same_key(here.key, empty_.of(region))) return;
      i = i + 1 == region_stash_ ? 0 : i + 1;
    }
  }

  /// The first slot of its region's stash where a key is looked up. (The leading bits of the hash are nearly
  /// the same for all keys of a region.)
  ROOST_FN std::uint32_t stash_start(hash_type hash) const {
    return static_cast<std::uint32_t>(
        split_hash(static_cast<std::uint32_t>(hash) * 0x9e3779b1u, region_stash_).digit);
  }

  /// A bit for each slot that has this tag: at most one.
  template <class Format, class Seen>
  ROOST_FN static std::uint32_t matches(const Seen& here, std::uint64_t tag) {
    constexpr detail::sector_format f = Format()();
    if constexpr (on_host && f.by_lanes()) {
      static_assert(f.stride == 32 || !f.aligned(), "lanes of 16 bits are compared as a whole");
      return detail::equal_lanes_for<Format, f.stride, f.slots>(here.word, static_cast<std::uint32_t>(tag),
                                                                static_cast<std::uint32_t>(f.empty_tag()));
#if ROOST_LANES
    } else if constexpr (on_host && f.by_wide_lanes() && detail::is_wide<Format>) {
      return detail::equal_long_lanes<f.slots>(here.word, tag, f.empty_tag());
    } else if constexpr (on_host && f.by_wide_lanes()) {
      return detail::equal_halves<f.slots>(here.word, tag, f.empty_tag());
#endif
    } else if constexpr (f.by_bits()) {
      std::uint32_t others = 0;
      ROOST_UNROLL
      for (int bit = 0; bit < f.tag_bits; ++bit) {
        const std::uint32_t wanted = 0u - static_cast<std::uint32_t>(tag >> bit & 1);
        const int width = detail::smaller(
            32, f.head_words() * 32 - bit * f.slots);  // excess bits are cut off at the end, all at once
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

  template <class Format, class Seen>
  ROOST_FN static bool marked(const Seen& here, int mark) {
    constexpr detail::sector_format f = Format()();
    if constexpr (on_host) {
      const int at = f.mark_at(mark);
      return (here.word[at / 32] >> at % 32 & 1) != 0;
    }
    std::uint64_t marks = 0;
    if constexpr (f.aligned()) {
      ROOST_UNROLL
      for (int m = 0; m < f.marks(); ++m) marks |= detail::bits_of(here.word, f.mark_at(m), 1) << m;
    } else {
      marks = detail::bits_of(here.word, f.mark_at(0), f.marks());
    }
    return (marks >> mark & 1) != 0;
  }

  template <class Format, class Seen>
  ROOST_FN Value value_in([[maybe_unused]] const Seen& here, std::uint64_t number, int slot) const {
    if constexpr (value_bytes == 0) {
      return {};
    } else {
#if ROOST_ON_DEVICE
      if constexpr (sector_bytes == read_bytes && !on_host) {
        constexpr detail::sector_format f = Format()();
        Value value;
        ROOST_UNROLL
        for (int s = 0; s < f.slots; ++s) {  // the data is in registers, which cannot be indexed
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

}  // namespace roost

#include "roost/detail/frozen/compact_build.hpp"
#include "roost/detail/frozen/compact_plan.hpp"
