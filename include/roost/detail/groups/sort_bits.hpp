#pragma once

#include "roost/detail/groups/index_keys.hpp"
#include "roost/detail/partition/sort.hpp"

// The distinct keys of a large batch of 32-bit integers, ascending, on cuda: they are split into regions of
// 2^18 integers, each of which is a bitmap in scratch memory.

namespace roost::detail {

/// Regions of integers, and the bitmaps of those with many items, which several teams read.
template <class Key>
struct integer_regions {
  using item = pair<Key, none>;
  static constexpr std::uint32_t shift = 18, count = 1u << (32 - shift), words = (1u << shift) / 32;
  static constexpr std::uint64_t crowded = 1 << 17;  // items of a region: more are read in such pieces
  static constexpr std::uint32_t no_region = ~0u;

  const item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  std::uint32_t* pieces;   // for each piece of the items: crowded regions that continue, and that begin there
  std::uint32_t* bitmaps;  // of the region that begins in each piece

  ROOST_FN bool is_crowded(std::uint64_t region) const { return ends[region] - begins[region] > crowded; }
  ROOST_FN std::uint32_t* bitmap(std::uint64_t region) const {
    return bitmaps + begins[region] / crowded * words;
  }

  /// Finds the pieces of a region.
  ROOST_FN void operator()(std::size_t region) const {
    if (!is_crowded(region)) return;
    const std::uint64_t first = begins[region] / crowded;
    for (std::uint64_t piece = first; piece * crowded < ends[region]; ++piece)
      pieces[2 * piece + (piece == first ? 1 : 0)] = static_cast<std::uint32_t>(region);
  }

  /// Sets the bits of items of a region.
  template <class Team>
  ROOST_FN void collect(const Team& team, std::uint64_t first, std::uint64_t n, std::uint32_t* bits) const {
    constexpr int per_worker = 8;
    constexpr std::uint32_t tile = 1 << 12;
    fill_words(team, bits, words, 0);
    team.sync();
    ROOST_ROLLED
    for (std::uint64_t done = 0; done < n; done += tile) {
      const auto of_tile = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, n - done));
      const held_items<per_worker, Team, const item*> mine(team, items, first + done, of_tile);
      for_each_held<per_worker>(team, of_tile, [&](int held, int i) {
        const std::uint32_t here = in_order<Key>::number(mine(held, i).key) & ((1u << shift) - 1);
        const std::uint32_t bit = 1u << here % 32;  // many may have the same key: a read is cheaper
        if ((team.read(bits[here / 32]) & bit) == 0) team.fetch_or(bits[here / 32], bit);
      });
    }
    team.sync();
  }
};

struct region_of_integer {
  template <class Key>
  ROOST_FN std::uint32_t operator()(const Key& key) const {
    return in_order<Key>::number(key) >> integer_regions<Key>::shift;
  }
};

/// Adds a piece of a crowded region to its bitmap.
template <class Key>
struct collect_piece {
  static constexpr int threads = 512;
  integer_regions<Key> regions;

  ROOST_FN std::uint32_t* scratch(scratch_memory& memory) const {
    return memory.take<std::uint32_t>(regions.words);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t i, std::byte* memory) const {
    const std::uint32_t region = regions.pieces[i];
    if (region == regions.no_region) return;
    std::uint32_t* const bits = scratch_of(*this, memory);
    const std::uint64_t piece = i / 2 * regions.crowded, first = larger(regions.begins[region], piece);
    regions.collect(team, first, smaller(regions.ends[region], piece + regions.crowded) - first, bits);
    std::uint32_t* const target = regions.bitmap(region);
    for_each_of(team, regions.words, [&](std::uint32_t w) {
      if (bits[w] != 0) fetch_or(target[w], bits[w]);
    });
  }
};

/// Writes the keys of a region where its items begin.
template <class Key>
struct write_ascending {
  static constexpr int threads = 512;
  static constexpr std::uint32_t words = integer_regions<Key>::words, of_group = 4, groups = words / of_group;
  static constexpr std::uint32_t staged_most = 5120;

  struct alignas(16) group {  // of words
    std::uint32_t word[of_group];
  };

  integer_regions<Key> regions;
  Key* target;
  std::uint64_t* sizes;  // of the regions

  struct pieces {
    std::uint32_t* bits;
    std::uint32_t* before;  // keys before each group, and in all
    Key* staged;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint32_t>(words), memory.take<std::uint32_t>(groups + 1),
            memory.take<Key>(staged_most)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte* memory) const {
    const std::uint64_t begin = regions.begins[region], count = regions.ends[region] - begin;
    if (count == 0) return;
    const pieces parts = scratch_of(*this, memory);
    if (regions.is_crowded(region)) {
      const std::uint32_t* const bitmap = regions.bitmap(region);
      for_each_of(team, words, [&](std::uint32_t w) { parts.bits[w] = bitmap[w]; });
      team.sync();
    } else {
      regions.collect(team, begin, count, parts.bits);
    }
    for_each_of(team, groups, [&](std::uint32_t g) {
      const group mine = reinterpret_cast<const group*>(parts.bits)[g];
      std::uint32_t keys = 0;
      ROOST_UNROLL
      for (const std::uint32_t word : mine.word) keys += word != 0 ? count_bits(word) : 0;
      parts.before[g] = keys;
    });
    if (team.rank() == 0) parts.before[groups] = 0;
    team.sync();
    team.exclusive_scan(parts.before, parts.before, groups + 1);
    team.sync();
    const std::uint32_t keys = parts.before[groups];
    if (team.rank() == 0) sizes[region] = keys;
    for (std::uint32_t first = 0; first < keys; first += staged_most) {
      const std::uint32_t end = smaller(keys, first + staged_most);
      for_each_of(team, groups, [&](std::uint32_t g) {
        if (parts.before[g] < end && parts.before[g + 1] > first) stage(parts, region, g, first, end);
      });
      team.sync();
      for_each_of(team, end - first, [&](std::uint32_t i) { target[begin + first + i] = parts.staged[i]; });
      team.sync();
    }
  }

 private:
  /// The keys of a group that are number `first` to `end` of the region.
  ROOST_FN static void stage(const pieces& parts, std::uint64_t region, std::uint32_t g, std::uint32_t first,
                             std::uint32_t end) {
    const group mine = reinterpret_cast<const group*>(parts.bits)[g];
    std::uint32_t number = parts.before[g];
    ROOST_UNROLL
    for (std::uint32_t w = 0; w < of_group; ++w) {
      const auto least =
          static_cast<std::uint32_t>(region << integer_regions<Key>::shift) + 32 * (of_group * g + w);
      for (std::uint32_t rest = mine.word[w]; rest != 0; rest &= rest - 1, ++number) {
        if (number >= first && number < end)
          parts.staged[number - first] = in_order<Key>::key(least + count_bits(~rest & (rest - 1)));
      }
    }
  }
};

/// Brings the keys of all regions together.
template <class Key>
struct pack_regions {
  static constexpr int threads = 256;
  const Key* source;
  const std::uint64_t* begins;   // of each region's keys
  const std::uint64_t* offsets;  // in the target; and the end
  Key* target;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte*) const {
    const std::uint64_t to = offsets[region], from = begins[region];
    for_each_of(team, static_cast<std::uint32_t>(offsets[region + 1] - to),
                [&](std::uint32_t i) { target[to + i] = source[from + i]; });
  }
};

template <class Place, class Sequence>
auto sort_bits(const Place& place, const Sequence& keys) {
  using Key = element_of<Sequence>;
  using all = integer_regions<Key>;
  using kernel = write_ascending<Key>;
  const std::size_t n = keys.size(), pieces = n / all::crowded + 1;
  const auto parts = partitioner<Place, pair<Key, none>, partition_kind{}>(place, all::count)
                         .run(alone{keys}, region_of_integer());
  auto crowded = filled<std::uint32_t>(place, 2 * pieces, 0xff);
  auto bitmaps = zeros<std::uint32_t>(place, pieces * all::words);
  const all regions{parts.items(), parts.begins(), parts.ends(), crowded.data(), bitmaps.data()};
  place.for_each(all::count, regions);
  const collect_piece<Key> collect{regions};
  place.launch(crowded.size(), scratch_bytes_of(collect), collect);
  auto offsets = zeros(place, all::count + 1);
  array<Key, Place> sorted(place, n);
  const kernel write{regions, sorted.data(), offsets.data()};
  place.launch(all::count, scratch_bytes_of(write), write);
  place.exclusive_scan(offsets.data(), offsets.data(), offsets.size());
  const std::uint64_t size = read_one(place, offsets.data() + all::count);
  if (size == n) return sorted;
  array<Key, Place> result(place, size);
  place.launch(all::count, 0,
               pack_regions<Key>{sorted.data(), parts.begins(), offsets.data(), result.data()});
  place.synchronize();
  return result;
}

}  // namespace roost::detail
