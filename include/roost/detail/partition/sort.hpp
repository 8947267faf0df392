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
/// Counts the digits of keys in all passes: digit(pass, key) is below `digits`.
template <class Source, class Digit>
struct count_all_digits {
  static constexpr int threads = 512, at_once = 8;
  static constexpr std::size_t teams_most = 528;
  Source source;
  Digit digit;
  std::size_t n, teams;
  std::uint32_t passes, digits;
  std::uint64_t* counts;
  const std::uint32_t* unless;  // in memory of the place: if not 0, nothing is done; or null

  ROOST_FN std::uint32_t* scratch(scratch_memory& memory) const {
    return memory.take<std::uint32_t>(passes * digits);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (unless != nullptr && *unless != 0) return;
    scratch_memory pieces(memory);
    std::uint32_t* const count = scratch(pieces);
    for_each_of(team, passes * digits, [&](std::uint32_t d) { count[d] = 0; });
    team.sync();
    constexpr std::uint32_t tile = at_once * Team::size;
    for (std::size_t first = index * tile; first < n; first += teams * tile) {
      const auto position = [&](int k) {
        return first + static_cast<std::size_t>(k * Team::size + team.rank());
      };
      std::uint32_t key[at_once];
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) key[k] = position(k) < n ? source[position(k)].key : 0;
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        if (position(k) >= n) continue;
        if constexpr (requires { source.f.notice(key[k], first); }) source.f.notice(key[k], position(k));
        for (std::uint32_t p = 0; p < passes; ++p) team.fetch_add(count[p * digits + digit(p, key[k])], 1u);
      }
    }
    team.sync();
    for_each_of(team, passes * digits, [&](std::uint32_t d) {
      if (count[d] != 0) fetch_add(counts[d], std::uint64_t{count[d]});
    });
  }
};

/// Stable passes over the same items that look at each once: all digits are counted first, and each tile adds
/// up what the tiles before it have published.
template <class Item>
class one_look_passes {
 public:
  one_look_passes(const cuda& place, std::size_t n, std::uint32_t passes, std::uint32_t digits,
                  const std::uint32_t* unless)
      : place_(place),
        n_(n),
        tiles_(ceil_div<std::size_t>(n, tile_items<cuda, Item>)),
        digits_(digits),
        words_(tiles_ * digits + 1),
        unless_(unless),
        published_(zeros<std::uint64_t>(place, passes * words_)),
        begins_(zeros<std::uint64_t>(place, passes * digits + 1)) {}

  /// Where the items of each digit begin: of pass p at p * digits, and p * n too much; then the end.
  const std::uint64_t* begins() const { return begins_.data(); }

  template <class Source, class Digit>
  void count(const Source& source, const Digit& digit) {
    const auto passes = static_cast<std::uint32_t>((begins_.size() - 1) / digits_);
    using kernel = count_all_digits<Source, Digit>;
    const kernel run{.source = source,
                     .digit = digit,
                     .n = n_,
                     .teams = smaller(kernel::teams_most, tiles_),
                     .passes = passes,
                     .digits = digits_,
                     .counts = begins_.data(),
                     .unless = unless_};
    place_.launch(run.teams, scratch_bytes_of(run), run);
    place_.exclusive_scan(begins_.data(), begins_.data(), begins_.size());
  }

  /// A pass by digit(key).
  template <class Source, class Digit>
  void pass(const Source& source, std::uint32_t number, const Digit& digit, const std::uint32_t* unless,
            Item* out) {
    const look_back_cursors cursors{.begun = published_.data() + number * words_,
                                    .end = nullptr,
                                    .tiles = tiles_,
                                    .capacity = 0,
                                    .begins = begins_.data() + number * digits_,
                                    .besides = number * n_};
    const scatter_tiles<cuda, Item, Source, Digit, look_back_cursors, no_way_back> scatter{
        .source = source,
        .region_of = digit,
        .tiles = {.n = n_},
        .pass = {0, static_cast<std::uint32_t>(std::bit_width(digits_ - 1)), digits_, digits_},
        .cursors = cursors,
        .capacity = 0,
        .out = out,
        .overflowed = nullptr,
        .back = {},
        .unless = unless};
    place_.launch(tiles_, scratch_bytes_of(scatter), scatter);
  }

 private:
  const cuda& place_;
  std::size_t n_, tiles_;
  std::uint32_t digits_;
  std::size_t words_;
  const std::uint32_t* unless_;
  array<std::uint64_t, cuda> published_, begins_;
};

struct digit_of_pass {
  std::uint32_t width;
  ROOST_FN std::uint32_t operator()(std::uint32_t pass, std::uint32_t key) const {
    return digit_at{pass * width, width}(key);
  }
};

/// The same as sort_pairs in one look at each pass. `unless`: memory of the place: if it is not 0, nothing is
/// sorted; or null. Asynchronous.
template <class Source>
auto sort_in_one_look(const cuda& place, const Source& source, std::uint32_t bits,
                      const std::uint32_t* unless = nullptr) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  constexpr auto bits_most =
      static_cast<std::uint32_t>(std::bit_width(partition_tuning<cuda>::digits_most) - 1);
  const std::uint32_t passes = larger(1u, ceil_div(bits, bits_most)),
                      width = larger(1u, ceil_div(bits, passes));
  one_look_passes<item> all(place, source.size(), passes, 1u << width, unless);
  all.count(source, digit_of_pass{width});
  const std::size_t n = source.size();
  array<item, cuda> sorted(place, n), other(place, passes > 1 ? n : 0);  // in turn
  all.pass(source, 0, digit_at{0, width}, unless, sorted.data());
  for (std::uint32_t i = 1; i < passes; ++i) {
    std::swap(sorted, other);
    all.pass(sequence<const item*>{other.data(), n}, i, digit_at{i * width, width}, unless, sorted.data());
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
