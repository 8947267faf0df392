#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "roost/detail/place/config.hpp"

// The contents of a sector of layout compact.

namespace roost::detail {

/// How a sector holds its pairs: a head of tags and marks, then the values. For keys and values of 4 bytes,
/// in a table of 98,400 to 12.6 million sectors:
///
///     bit 0     17      34      51      68      85  88      96                          256
///         | tag 0 | tag 1 | tag 2 | tag 3 | tag 4 |   | marks | value 0 | ... | value 4 |
///
/// A tag is t * r plus the remainder of the hash, where t is the number of sectors tried before this one and
/// r the number of possible remainders; the number of the sector determines the rest of the hash. So the more
/// sectors there are, the shorter are the tags: from 12.6 million on, six of 10 bits and four marks. All ones
/// are an empty slot. A mark means that pairs whose remainder ends in its number continued past this sector:
/// a lookup whose mark is not set ends here.
///
/// A host has sectors of 64 bytes, a cache line, and tags that vector instructions compare: eight of 32 bits
/// with a mark in each, or, from 200,000 sectors on, ten of 16 bits and eight marks; denser ones only for
/// load factors that these cannot reach. Small tables of a GPU have four slots, whose tags are whole words
/// without their highest bit, a mark. Sets of 4-byte keys have 9 to 25 slots (by_bits).
struct sector_format {
  int bytes = 0;  // of a sector
  int slots = 0;
  int tag_bits = 0;
  int stride = 0;  // bits from a tag to the next
  int log2_marks = 0;
  int value_bytes = 0;

  static constexpr std::uint32_t tries_least = 3;
  static constexpr std::uint32_t tries_most = 8;

  constexpr int head_words() const { return (bytes - slots * value_bytes) / 4; }
  constexpr int marks() const { return 1 << log2_marks; }
  /// Tags are whole words without their highest bits, which are marks.
  constexpr bool aligned() const { return stride > tag_bits; }
  /// Tags are numbers of whole bytes.
  constexpr bool by_numbers() const { return stride == 16 || stride == 32 || stride == 64; }
  /// Tags that a processor can compare with vector instructions.
  constexpr bool by_lanes() const { return slots <= 16 && (stride == 16 || stride == 32); }
  /// Tags that need AVX2 for that.
  constexpr bool by_wide_lanes() const { return stride == 64; }
  /// Many short tags: the first bits of all tags, then the second bits and so on, so that each bit of the
  /// wanted tag is compared with a whole word.
  constexpr bool by_bits() const { return slots > tag_bits; }
  constexpr int mark_at(int mark) const {
    const int each = stride - tag_bits;  // marks per word
    return aligned() ? (mark / each + 1) * stride - 1 - mark % each : head_words() * 32 - marks() + mark;
  }
  friend constexpr bool operator==(const sector_format&, const sector_format&) = default;
  constexpr std::uint64_t empty_tag() const { return ~std::uint64_t{0} >> (64 - tag_bits); }
};

/// The largest number of hashes with the same home.
constexpr std::uint64_t remainders_of(std::uint64_t sectors, int hash_bits) {
  const std::uint64_t last = hash_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << hash_bits) - 1;
  return last / sectors + 1;
}

/// The format with the most slots for tables of at least `sectors` sectors: the more sectors there are, the
/// fewer bits of a key they store. No slots if there is no such format.
constexpr sector_format densest_format(int bytes, std::uint64_t sectors, int hash_bits, int value_bytes,
                                       int value_alignment) {
  const std::uint64_t tags_least = sector_format::tries_least * remainders_of(sectors, hash_bits);
  for (int slots = 31; slots > 1; --slots) {
    if (slots * value_bytes >= bytes || (bytes - slots * value_bytes) % value_alignment != 0) continue;
    const int head_bits = (bytes - slots * value_bytes) / 4 * 32;
    if (hash_bits * slots <= head_bits)
      return {bytes,
              slots,
              hash_bits - 1,
              hash_bits,
              smaller(3, static_cast<int>(std::bit_width(static_cast<unsigned>(slots))) - 1),
              value_bytes};
    for (int log2_marks = 3; log2_marks > 0; --log2_marks) {
      const int tag_bits = smaller(hash_bits - 1, (head_bits - (1 << log2_marks)) / slots);
      const sector_format f{bytes, slots, tag_bits, tag_bits, log2_marks, value_bytes};
      if (tag_bits > 0 && tags_least <= f.empty_tag()) return f;
    }
  }
  return {};
}

/// The format with the most slots whose tags are numbers of `lane_bits` bits: 16, or the number of bits of a
/// hash. A host compares all of them at once, even if fewer bits per tag would suffice.
constexpr sector_format lanes_format(int bytes, int lane_bits, int hash_bits, int value_bytes,
                                     int value_alignment) {
  for (int slots = 16; slots > 1; --slots) {
    if (slots * value_bytes >= bytes || (bytes - slots * value_bytes) % value_alignment != 0) continue;
    const int head_bits = (bytes - slots * value_bytes) / 4 * 32, mark_bits = lane_bits < hash_bits ? 8 : 0;
    if (slots * lane_bits + mark_bits > head_bits) continue;
    const int marks_each = lane_bits < hash_bits ? 0 : lane_bits == 64 ? 2 : 1;  // marks per tag's word
    const auto marks = static_cast<unsigned>(marks_each == 2 ? 2 * slots : slots);
    return {bytes,
            slots,
            lane_bits - marks_each,
            lane_bits,
            smaller(3, static_cast<int>(std::bit_width(marks)) - 1),
            value_bytes};
  }
  return {};
}

/// The number of sectors that a pair tries before it goes to the stash: as many as a tag can record.
constexpr std::uint32_t tries_of(const sector_format& format, std::uint64_t sectors, int hash_bits) {
  return static_cast<std::uint32_t>(smaller<std::uint64_t>(
      format.empty_tag() / remainders_of(sectors, hash_bits), sector_format::tries_most));
}

struct sized_format {
  std::uint64_t sectors_least;  // of a table
  sector_format format;
};

/// The formats, each with the number of sectors from which it is used: at most five, since code is compiled
/// for each. (With 98400 sectors tags of a 4-byte key have 17 bits, with 12600000 they have 10.) Most types
/// have two or three. A host prefers formats whose tags it can compare with vector instructions, and uses
/// others only for loads that need them.
constexpr std::array<sized_format, 5> formats_for(bool on_host, int sector_bytes, int hash_bits,
                                                  int value_bytes, int value_alignment) {
  std::array<sized_format, 8> all{};
  std::size_t count = 0;
  const auto add_lanes = [&](std::uint64_t sectors, int bits) {
    all[count++] = {sectors, lanes_format(sector_bytes, bits, hash_bits, value_bytes, value_alignment)};
  };
  if (on_host) add_lanes(64, hash_bits);
  if (on_host && hash_bits == 32) add_lanes(200000, 16);
  for (const std::uint64_t sectors : {64u, 98400u, 1u << 20, 3150000u, 6300000u, 12600000u}) {
    const auto format = densest_format(sector_bytes, sectors, hash_bits, value_bytes, value_alignment);
    const auto& last = all[count == 0 ? 0 : count - 1];
    if (on_host ? sectors > last.sectors_least && format.slots > last.format.slots : format != last.format)
      all[count++] = {sectors, format};
  }
  // Where there are six (sets of 4-byte keys and, on a host, maps of these to 1 byte), the third is left out:
  // the second one serves its tables, of 2^20 to 3150000 sectors, too.
  for (; count > 6; --count) std::copy(all.begin() + 3, all.end(), all.begin() + 2);
  if (count == 6) all[2] = all[3], all[3] = all[4], all[4] = all[5];
  for (; count < 5; ++count) all[count] = all[count - 1];
  return {all[0], all[1], all[2], all[3], all[4]};
}

/// Bits [position, position + width) of a string of words; both are known to the compiler, so that this is a
/// shift or two.
ROOST_FN std::uint64_t bits_of(const std::uint32_t* words, int position, int width) {
  const int word = position / 32, shift = position % 32;
  std::uint64_t bits = words[word] >> shift;
  if (shift + width > 32) bits |= std::uint64_t{words[word + 1]} << (32 - shift);
  if (shift + width > 64) bits |= std::uint64_t{words[word + 2]} << (64 - shift);
  return width == 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

/// Puts bits where bits_of() finds them; they were 0.
ROOST_FN void put_bits(std::uint32_t* words, int position, int width, std::uint64_t bits) {
  const int word = position / 32, shift = position % 32;
  words[word] |= static_cast<std::uint32_t>(bits << shift);
  if (shift + width > 32) words[word + 1] |= static_cast<std::uint32_t>(bits >> (32 - shift));
  if (shift + width > 64) words[word + 2] |= static_cast<std::uint32_t>(bits >> (64 - shift));
}

/// The same where other bits may be.
inline void set_bits(std::uint32_t* words, int position, int width, std::uint64_t bits) {
  for (int done = 0; done < width;) {
    const int shift = (position + done) % 32, n = smaller(32 - shift, width - done);
    std::uint32_t& word = words[(position + done) / 32];
    const std::uint32_t mask = static_cast<std::uint32_t>((std::uint64_t{1} << n) - 1) << shift;
    word = (word & ~mask) | (static_cast<std::uint32_t>(bits >> done) << shift & mask);
    done += n;
  }
}

}  // namespace roost::detail
