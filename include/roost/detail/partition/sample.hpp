#pragma once

#include "roost/detail/place/arrays.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/hash.hpp"

// Samples of items, and the copies of keys in them.

namespace roost::detail {

/// Item i of a sample: 2^log2_run neighbours from each piece of the items, at varying positions in the
/// pieces.
template <class Source>
struct item_of_sample {
  Source source;
  std::uint64_t step;  // items of a piece
  std::uint32_t log2_run = 0;
  ROOST_FN auto operator[](std::size_t i) const {
    const std::uint64_t run = i >> log2_run, length = std::uint64_t{1} << log2_run;
    return source[run * step + mix64(run) % (step - length + 1) + (i & (length - 1))];
  }
  ROOST_FN auto operator()(std::size_t i) const { return (*this)[i]; }
};

/// Whether an earlier item of a sample has the key of item i.
template <class Source>
struct is_repeated {
  item_of_sample<Source> items;
  std::uint64_t* hashes;  // a table of the hashes seen; 0: an empty slot
  std::uint32_t slots;    // twice the sample

  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t mine = std::uint64_t{hash_of(items[i].key)} << 1 | 1;
    for (auto s = static_cast<std::uint32_t>(mine >> 1) % slots;; s = (s + 1) % slots) {
      const std::uint64_t seen = shared_access::compare_exchange(hashes + s, std::uint64_t{0}, mine);
      if (seen == 0 || seen == mine) return seen == 0 ? 0 : 1;
    }
  }
};

/// How many items of a sample of so many, a power of two, have the key of an earlier one.
template <class Place, class Source>
std::uint64_t count_copies(const Place& place, const Source& source, std::uint32_t sample) {
  auto hashes = zeros(place, std::size_t{2} * sample);
  return place.sum(sample, is_repeated<Source>{{source, source.size() / sample}, hashes.data(), 2 * sample});
}

}  // namespace roost::detail
