#pragma once

#include <bit>

#include "roost/partition.hpp"

// Sorting by stable partitions.

namespace roost::detail {

/// Bits [shift, shift + width) of a number.
struct digit_at {
  std::uint32_t shift, width;

  template <class Word>
  ROOST_FN std::uint32_t operator()(const Word& number) const {
    return static_cast<std::uint32_t>(number >> shift) & ((1u << width) - 1);
  }
};

/// Sorts pairs of a number below 2^bits and a value by their numbers, stably: a stable partition for each
/// digit, the least significant first. One pass for every 9 (cuda) or 10 (host) bits. Asynchronous on cuda.
template <class Place, class Source>
auto sort_pairs(const Place& place, const Source& source, std::uint32_t bits) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  using one_digit = partitioner<Place, item, partition_kind{.stable = true, .one_pass = true}>;
  constexpr auto bits_most =
      static_cast<std::uint32_t>(std::bit_width(partition_tuning<Place>::digits_most) - 1);
  const std::uint32_t passes = larger(1u, ceil_div(bits, bits_most)),
                      width = larger(1u, ceil_div(bits, passes));
  const auto pass = [&](const auto& items, std::uint32_t number) {
    return one_digit(place, 1u << width).run(items, digit_at{number * width, width});
  };
  auto sorted = pass(source, 0);
  for (std::uint32_t i = 1; i < passes; ++i)
    sorted = pass(sequence<const item*>{sorted.items(), source.size()}, i);
  return sorted;
}

#if defined(__CUDACC__)
/// Counts the digits of keys in all passes of a sort.
template <class Source>
struct count_all_digits {
  static constexpr int threads = 512, at_once = 8;
  static constexpr std::size_t teams_most = 528;
  Source source;
  std::size_t n, teams;
  std::uint32_t passes, width;  // of a digit, in bits
  std::uint64_t* counts;

  ROOST_FN std::uint32_t* scratch(scratch_memory& memory) const {
    return memory.take<std::uint32_t>(passes << width);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    scratch_memory pieces(memory);
    std::uint32_t* const count = scratch(pieces);
    for_each_of(team, passes << width, [&](std::uint32_t d) { count[d] = 0; });
    team.sync();
    constexpr std::uint32_t tile = at_once * Team::size;
    for (std::size_t first = index * tile; first < n; first += teams * tile) {
      const auto position = [&](int k) {
        return first + static_cast<std::size_t>(k * Team::size + team.rank());
      };
      std::uint32_t key[at_once];  // all are read before the first is used
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) key[k] = position(k) < n ? source[position(k)].key : 0;
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        if (position(k) >= n) continue;
        if constexpr (requires { source.f.notice(key[k], first); }) source.f.notice(key[k], position(k));
        for (std::uint32_t p = 0; p < passes; ++p)
          team.fetch_add(count[(p << width) + digit_at{p * width, width}(key[k])], 1u);
      }
    }
    team.sync();
    for_each_of(team, passes << width, [&](std::uint32_t d) {
      if (count[d] != 0) fetch_add(counts[d], std::uint64_t{count[d]});
    });
  }
};

/// The same as sort_pairs in one look at each pass: all digits are counted first, and each tile adds up what
/// the tiles before it have published. Asynchronous.
template <class Source>
auto sort_in_one_look(const cuda& place, const Source& source, std::uint32_t bits) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  constexpr auto bits_most =
      static_cast<std::uint32_t>(std::bit_width(partition_tuning<cuda>::digits_most) - 1);
  const std::uint32_t passes = larger(1u, ceil_div(bits, bits_most)),
                      width = larger(1u, ceil_div(bits, passes)), digits = 1u << width;
  const std::size_t n = source.size(), tiles = ceil_div<std::size_t>(n, tile_items<cuda, item>),
                    words = tiles * digits + 1;
  auto published = zeros<std::uint64_t>(place, passes * (words + digits));
  std::uint64_t* const begins = published.data() + passes * words;
  using counting = count_all_digits<Source>;
  const counting count{source, n, smaller(counting::teams_most, tiles), passes, width, begins};
  place.launch(count.teams, scratch_bytes_of(count), count);
  place.exclusive_scan(begins, begins, passes * digits);
  array<item, cuda> sorted(place, n), other(place, passes > 1 ? n : 0);  // in turn
  const auto pass = [&](const auto& items, std::uint32_t number) {
    using scatter = scatter_tiles<cuda, item, std::remove_cvref_t<decltype(items)>, digit_at,
                                  look_back_cursors, no_way_back>;
    const scatter run{.source = items,
                      .region_of = {number * width, width},
                      .tiles = {.n = n},
                      .pass = {0, width, digits, digits},
                      .cursors = {.begun = published.data() + number * words,
                                  .end = nullptr,
                                  .tiles = tiles,
                                  .capacity = 0,
                                  .begins = begins + number * digits,
                                  .besides = number * n},
                      .capacity = 0,
                      .out = sorted.data(),
                      .overflowed = nullptr,
                      .back = {}};
    place.launch(tiles, scratch_bytes_of(run), run);
  };
  pass(source, 0);
  for (std::uint32_t i = 1; i < passes; ++i) {
    std::swap(sorted, other);
    pass(sequence<const item*>{other.data(), n}, i);
  }
  return sorted;
}
#endif

/// An integer as an unsigned one in the same order: negative ones first.
template <std::integral Key>
struct in_order {
  using word = decltype(key_bits(Key{}));
  static constexpr word sign = static_cast<word>(std::is_signed_v<Key> ? 1 : 0) << (8 * sizeof(Key) - 1);

  ROOST_FN static word number(const Key& key) { return key_bits(key) ^ sign; }
  ROOST_FN static Key key(word number) { return static_cast<Key>(number ^ sign); }
};

}  // namespace roost::detail
