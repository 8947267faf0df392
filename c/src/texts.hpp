#pragma once

#include <string_view>

#include "place.hpp"
#include "roost/columns/texts.hpp"
#include "roost/frozen_map.hpp"

// Texts in memory of a place.

namespace roost::c {

/// The texts of a column of texts, as added by arrow_keys.
inline std::span<const std::string_view> texts_of(const key_column& column) {
  return {static_cast<const std::string_view*>(column.values), column.rows};
}

struct size_of_text {
  const std::string_view* texts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return texts[i].size(); }
};
struct write_size {
  const std::string_view* texts;
  std::size_t n;
  std::uint64_t* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = i == n ? 0 : texts[i].size(); }
};
template <class Offset>
struct pack_text {
  const std::string_view* texts;
  std::size_t n;
  const std::uint64_t* begins;
  Offset* offsets;
  char* bytes;
  ROOST_FN void operator()(std::size_t i) const {
    offsets[i] = static_cast<Offset>(begins[i]);
    if (i < n && !texts[i].empty()) memcpy(bytes + begins[i], texts[i].data(), texts[i].size());
  }
};

/// Contiguous copies of texts: Arrow's layout.
template <class Offset, class Place>
struct packed_copy {
  array<Offset, Place> offsets;
  array<char, Place> bytes;

  packed_copy() = default;
  /// Throws invalid_argument for more bytes than offsets reach.
  packed_copy(const Place& place, const array<std::string_view, Place>& texts) {
    const std::size_t n = texts.size();
    const std::uint64_t size = place.sum(n, size_of_text{texts.data()});
    if (size > static_cast<std::uint64_t>(std::numeric_limits<Offset>::max())) {
      detail::raise<invalid_argument>({"roost: ", size, " bytes of texts are too many for offsets of ",
                                       sizeof(Offset), " bytes; take fewer rows at once"});
    }
    array<std::uint64_t, Place> begins(place, n + 1);
    place.for_each(n + 1, write_size{texts.data(), n, begins.data()});
    place.exclusive_scan(begins.data(), begins.data(), n + 1);
    offsets = array<Offset, Place>(place, n + 1);
    bytes = array<char, Place>(place, std::max<std::uint64_t>(1, size));
    place.for_each(n + 1, pack_text<Offset>{texts.data(), n, begins.data(), offsets.data(), bytes.data()});
  }
};

struct gather_text {
  const std::string_view* from;
  const std::uint32_t* rows;
  std::string_view* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = from[rows[i]]; }
};
struct same_number {
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return static_cast<std::uint32_t>(i); }
};
/// Removes the numbers of texts that only share the key of another text.
struct check_number {
  const std::string_view* queries;
  packed_texts<std::int64_t> texts;
  std::uint32_t* numbers;
  ROOST_FN void operator()(std::size_t i) const {
    constexpr std::uint32_t none = ~std::uint32_t{0};
    if (numbers[i] != none && detail::views_differ(queries[i], texts[numbers[i]])) numbers[i] = none;
  }
};

/// Texts and their numbers, in its own memory.
template <class Place>
class text_numbers {
 public:
  text_numbers(const Place& place, std::span<const std::string_view> texts) {
    auto all = number_texts(place, texts);
    seed_ = all.seed;
    numbers_ = std::move(all.numbers);
    array<std::string_view, Place> distinct(place, all.first.size());
    place.for_each(distinct.size(), gather_text{texts.data(), all.first.data(), distinct.data()});
    map_ = map(place, detail::keys_of_views<Place>(place, distinct.span(), seed_),
               computed(distinct.size(), same_number()));
    texts_ = packed_copy<std::int64_t, Place>(place, distinct);
  }

  array<std::uint32_t, Place> take_numbers() { return std::move(numbers_); }

  array<std::uint32_t, Place> find(const Place& place, std::span<const std::string_view> queries) const {
    array<std::uint32_t, Place> numbers(place, queries.size());
    map_.find(place, detail::keys_of_views(place, queries, seed_), numbers, ~std::uint32_t{0});
    place.for_each(
        numbers.size(),
        check_number{queries.data(), {texts_.offsets.data(), texts_.bytes.data()}, numbers.data()});
    return numbers;
  }

 private:
  using map = frozen_map<packed_key<2>, std::uint32_t, Place>;
  map map_;
  std::uint64_t seed_ = 0;
  array<std::uint32_t, Place> numbers_;  // of the table's texts
  packed_copy<std::int64_t, Place> texts_;
};

}  // namespace roost::c
