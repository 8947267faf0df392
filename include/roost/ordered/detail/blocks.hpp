#pragma once

#include <array>

#include "roost/ordered/grouped_rows.hpp"

// Values of groups in blocks of 32, the blocks of a group in blocks of 32, and so on, as group_by nests its
// calls: each level's elements are the combined values of the blocks of the level below.

namespace roost::detail {

inline constexpr std::uint64_t block_size = 32;
static_assert(block_size == reduced_at_once, "running results are what group_by returns for the rows so far");
inline constexpr int block_levels_most = 7;  // 32^7 > 2^32 rows

/// Where the elements of each group begin, on every level. On the last one, each group has one block.
template <class Place>
struct block_levels {
  std::size_t groups = 0;
  std::vector<array<std::uint64_t, Place>> above;  // of level 1 and those above it
  std::vector<std::uint64_t> sizes;                // of all levels
  const std::uint64_t* rows = nullptr;             // of level 0

  const std::uint64_t* offsets(std::size_t level) const {
    return level == 0 ? rows : above[level - 1].data();
  }
  /// Those with elements to combine: the last one, with an element for each group, has none.
  std::size_t count() const { return larger<std::size_t>(sizes.size(), 2) - 1; }
};

struct blocks_of_group {
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t group) const {
    return ceil_div(offsets[group + 1] - offsets[group], block_size);
  }
};

/// Synchronises.
template <class Place>
block_levels<Place> levels_of(const Place& place, const grouped_rows<Place>& all) {
  block_levels<Place> levels{all.group_count(), {}, {all.size()}, all.offsets().data()};
  while (levels.sizes.back() != levels.groups) {
    array<std::uint64_t, Place> offsets(place, levels.groups + 1);
    write_offsets(place, levels.groups, blocks_of_group{levels.offsets(levels.above.size())}, offsets.data());
    levels.sizes.push_back(read_one(place, offsets.data() + levels.groups));
    levels.above.push_back(std::move(offsets));
  }
  return levels;
}

/// Element e of the elements of a group on a level, in their order or backwards.
struct element_order {
  bool backwards;
  ROOST_FN std::uint64_t operator()(const std::uint64_t* offsets, std::uint64_t group,
                                    std::uint64_t e) const {
    return backwards ? offsets[group + 1] - 1 - e : offsets[group] + e;
  }
};

/// Values of rows, in the order of the groups.
template <class Values>
struct values_of_rows {
  Values values;
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  element_order order;
  ROOST_FN auto operator()(std::uint64_t group, std::uint64_t e) const {
    return values[rows[order(offsets, group, e)]];
  }
};

/// The combined values of the blocks of a level: what is written at their last elements.
template <class T>
struct values_of_blocks {
  const T* prefixes;             // of the level below
  const std::uint64_t* offsets;  // of the level below
  ROOST_FN T operator()(std::uint64_t group, std::uint64_t e) const {
    const std::uint64_t first = offsets[group];
    return prefixes[smaller(first + (e + 1) * block_size, offsets[group + 1]) - 1];
  }
};

/// For each element of a block, the combined values of the elements up to it; or, if suffixes are wanted,
/// from it on, and the elements themselves.
template <class Source, class T, class F>
struct scan_block {
  Source source;
  const std::uint64_t* offsets;
  F f;
  T* prefixes;
  T* suffixes = nullptr;
  T* elements = nullptr;
  ROOST_FN void operator()(std::uint64_t, std::uint64_t group, std::uint64_t block) const {
    const std::uint64_t begin = offsets[group], first = block * block_size,
                        end = smaller(first + block_size, offsets[group + 1] - begin);
    T sum = source(group, first);
    prefixes[begin + first] = sum;
    if (elements != nullptr) elements[begin + first] = sum;
    for (std::uint64_t e = first + 1; e < end; ++e) {
      const T value = source(group, e);
      prefixes[begin + e] = sum = f(sum, value);
      if (elements != nullptr) elements[begin + e] = value;
    }
    if (suffixes == nullptr) return;
    suffixes[begin + end - 1] = sum = elements[begin + end - 1];
    for (std::uint64_t e = end - 1; e-- > first;) suffixes[begin + e] = sum = f(elements[begin + e], sum);
  }
};

/// The same on a GPU: a team scans consecutive blocks in scratch memory, so that elements are read and
/// written in their order.
template <class Source, class T, class F>
struct scan_tile {
  static constexpr int threads = 256;
  static constexpr std::uint32_t blocks = sizeof(T) <= 8 ? 64 : 16;
  static constexpr std::uint32_t room = blocks * (block_size + 1);

  scan_block<Source, T, F> scan;
  const std::uint64_t* block_offsets;
  std::uint64_t groups, total;  // total: of blocks

  struct tile {
    T* values;
    T* sums;
    std::uint64_t* begins;  // where the elements of each block begin, and the end
    std::uint64_t* group;
  };
  ROOST_FN tile scratch(scratch_memory& memory) const {
    return {memory.take<T>(room), memory.take<T>(room), memory.take<std::uint64_t>(blocks + 1),
            memory.take<std::uint64_t>(blocks)};
  }
  ROOST_FN static std::uint32_t padded(std::uint64_t e) {  // workers read different banks
    return static_cast<std::uint32_t>(e + e / block_size);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    const tile mine = scratch_of(*this, memory);
    const std::uint64_t first = index * blocks;
    const auto count = static_cast<std::uint32_t>(smaller<std::uint64_t>(blocks, total - first));
    for_each_of(team, count, [&](std::uint32_t b) {
      const std::uint64_t group = last_at_or_before(std::uint64_t{0}, groups, block_offsets, first + b);
      mine.group[b] = group;
      mine.begins[b] = scan.offsets[group] + (first + b - block_offsets[group]) * block_size;
      if (b + 1 == count) mine.begins[count] = smaller(mine.begins[b] + block_size, scan.offsets[group + 1]);
    });
    team.sync();
    const std::uint64_t begin = mine.begins[0];
    const auto n = static_cast<std::uint32_t>(mine.begins[count] - begin);
    for_each_of(team, n, [&](std::uint32_t e) {
      const std::uint64_t group = mine.group[last_at_or_before(0u, count, mine.begins, begin + e)];
      const T value = scan.source(group, begin + e - scan.offsets[group]);
      mine.values[padded(e)] = value;
      if (scan.elements != nullptr) scan.elements[begin + e] = value;
    });
    team.sync();
    for_each_of(team, count, [&](std::uint32_t b) {
      const auto low = static_cast<std::uint32_t>(mine.begins[b] - begin),
                 high = static_cast<std::uint32_t>(mine.begins[b + 1] - begin);
      T sum = mine.sums[padded(low)] = mine.values[padded(low)];
      for (std::uint32_t e = low + 1; e < high; ++e)
        mine.sums[padded(e)] = sum = scan.f(sum, mine.values[padded(e)]);
      if (scan.suffixes == nullptr) return;
      sum = mine.values[padded(high - 1)];
      for (std::uint32_t e = high - 1; e-- > low;)
        mine.values[padded(e)] = sum = scan.f(mine.values[padded(e)], sum);
    });
    team.sync();
    for_each_of(team, n, [&](std::uint32_t e) {
      scan.prefixes[begin + e] = mine.sums[padded(e)];
      if (scan.suffixes != nullptr) scan.suffixes[begin + e] = mine.values[padded(e)];
    });
  }
};

/// Scans the blocks of a level.
template <class Place, class Source, class T, class F>
void scan_blocks(const Place& place, const block_levels<Place>& levels, std::size_t level,
                 const scan_block<Source, T, F>& scan) {
  const std::size_t of = smaller(level + 1, levels.above.size());  // a group's only row is its block
  const std::uint64_t* const offsets = levels.offsets(of);
  if constexpr (std::is_same_v<Place, host>) {
    expand(place, offsets, levels.groups, levels.sizes[of], scan);
  } else {
    using kernel = scan_tile<Source, T, F>;
    const kernel run{scan, offsets, levels.groups, levels.sizes[of]};
    place.launch(ceil_div<std::size_t>(run.total, kernel::blocks), scratch_bytes_of(run), run);
  }
}

/// All levels of some values.
template <class T>
struct level_views {
  std::array<const std::uint64_t*, block_levels_most> offsets;
  std::array<const T*, block_levels_most> prefixes, suffixes, elements;
  int count;
};

template <class T, class Place>
struct scanned_levels {
  block_levels<Place> levels;
  std::vector<array<T, Place>> memory{};
  level_views<T> view{};
};

/// Scans the blocks of all levels. `source`: (group, element) -> value. Synchronises.
template <class T, class Place, class Source, class F>
scanned_levels<T, Place> scan_levels(const Place& place, const grouped_rows<Place>& rows,
                                     const Source& source, const F& f, bool suffixes) {
  scanned_levels<T, Place> all{levels_of(place, rows)};
  const block_levels<Place>& levels = all.levels;
  all.view.count = static_cast<int>(levels.count());
  const auto scan = [&](std::size_t level, const auto& from) {
    const auto array_for = [&](bool wanted) {
      return all.memory.emplace_back(place, wanted ? levels.sizes[level] : 0).data();
    };
    T* const prefix = array_for(true);
    T* const suffix = array_for(suffixes);
    T* const element = array_for(suffixes);
    all.view.offsets[level] = levels.offsets(level);
    all.view.prefixes[level] = prefix;
    all.view.suffixes[level] = suffix;
    all.view.elements[level] = element;
    using scanner = scan_block<std::remove_cvref_t<decltype(from)>, T, F>;
    scan_blocks(place, levels, level, scanner{from, levels.offsets(level), f, prefix, suffix, element});
  };
  scan(0, source);
  for (std::size_t level = 1; level < levels.count(); ++level)
    scan(level, values_of_blocks<T>{all.view.prefixes[level - 1], levels.offsets(level - 1)});
  return all;
}

}  // namespace roost::detail
