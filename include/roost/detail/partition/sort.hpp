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

/// An integer as an unsigned one in the same order: negative ones first.
template <std::integral Key>
struct in_order {
  using word = decltype(key_bits(Key{}));
  static constexpr word sign = static_cast<word>(std::is_signed_v<Key> ? 1 : 0) << (8 * sizeof(Key) - 1);

  ROOST_FN static word number(const Key& key) { return key_bits(key) ^ sign; }
  ROOST_FN static Key key(word number) { return static_cast<Key>(number ^ sign); }
};

}  // namespace roost::detail
