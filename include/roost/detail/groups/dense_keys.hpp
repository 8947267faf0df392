#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "roost/detail/groups/choose.hpp"
#include "roost/detail/place/arrays.hpp"
#include "roost/host.hpp"

// Integers of a small range, on the host: arrays that they address take the place of hash tables.

namespace roost::detail {

/// The integers from `least` on, `count` of them.
template <class Key>
struct key_range {
  using word = unsigned_of<Key>;
  word least = 0;
  std::uint64_t count = 0;

  /// At least `count` for a key outside.
  std::uint64_t operator()(const Key& key) const { return static_cast<word>(static_cast<word>(key) - least); }
};

/// The range of n keys, keys(i); nothing if it has more than `most` integers. A few keys are looked at first.
template <class Key, class Keys>
std::optional<key_range<Key>> range_of(const host& cpu, std::size_t n, const Keys& keys, std::uint64_t most) {
  if (n == 0) return std::nullopt;
  struct ends {
    Key least, greatest;
    std::uint64_t more() const {  // integers after the least
      using word = typename key_range<Key>::word;
      return static_cast<word>(static_cast<word>(greatest) - static_cast<word>(least));
    }
  };
  const auto ends_of = [&](std::size_t first, std::size_t end, std::size_t step) {
    Key least = keys(first), greatest = least;
    for (std::size_t i = first; i < end; i += step) {
      const Key key = keys(i);
      least = std::min(least, key);
      greatest = std::max(greatest, key);
    }
    return ends{least, greatest};
  };
  if (ends_of(0, n, n / 256 + 1).more() >= most) return std::nullopt;
  constexpr std::size_t chunk = 1 << 16;
  std::vector<ends> all(ceil_div(n, chunk));
  cpu.launch(all.size(), 0, [&](const auto&, std::size_t c, std::byte*) {
    all[c] = ends_of(c * chunk, smaller(n, (c + 1) * chunk), 1);
  });
  for (const ends& each : all) {
    all[0].least = std::min(all[0].least, each.least);
    all[0].greatest = std::max(all[0].greatest, each.greatest);
  }
  if (all[0].more() >= most) return std::nullopt;
  return key_range<Key>{static_cast<typename key_range<Key>::word>(all[0].least), all[0].more() + 1};
}

/// A set of such keys: a bit for each integer of their range.
template <class Key>
class dense_set {
 public:
  /// Nothing if the range of the keys is too large for it.
  template <class Sequence>
  static std::optional<dense_set> of(const host& cpu, const Sequence& keys) {
    const std::size_t n = keys.size();
    const auto range = range_of<Key>(cpu, n, [&](std::size_t i) { return keys[i]; }, dense_range_most(n));
    if (!range) return std::nullopt;
    dense_set result{*range, zeros(cpu, range->count / 64 + 1)};
    cpu.for_each(n, [&](std::size_t i) {
      const std::uint64_t at = (*range)(keys[i]), bit = std::uint64_t{1} << at % 64;
      std::uint64_t& word = result.bits_[at / 64];
      if ((peek(word) & bit) == 0) fetch_or(word, bit);
    });
    return result;
  }

  bool contains(const Key& key) const {
    const std::uint64_t at = smaller(range_(key), range_.count);  // whose bit is 0: no branch
    return (bits_[at / 64] >> at % 64 & 1) != 0;
  }

 private:
  dense_set(const key_range<Key>& range, array<std::uint64_t, host>&& bits)
      : range_(range), bits_(std::move(bits)) {}

  key_range<Key> range_;
  array<std::uint64_t, host> bits_;
};

}  // namespace roost::detail
