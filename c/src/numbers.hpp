#pragma once

#include "keys.hpp"

// Distinct rows and their numbers.

namespace roost::c {

/// Distinct rows, numbered by first occurrence.
template <class Place>
struct numbered_rows {
  array<std::uint32_t, Place> first;    // the row where each first occurs
  array<std::uint32_t, Place> numbers;  // of each row; the greatest number for rows without one
  array<std::uint64_t, Place> counts;
};

struct has_no_null {
  const std::uint8_t* const* bitmaps;
  std::size_t count;
  const std::uint32_t* first;
  std::uint64_t* result;
  ROOST_FN void operator()(std::size_t i) const {
    bool there = true;
    for (std::size_t b = 0; b < count; ++b) there = there && detail::is_valid(bitmaps[b], first[i]);
    result[i] = there;
  }
};
struct keep_number {
  const std::uint64_t* ranks;  // one more than numbers
  const std::uint32_t* first;
  const std::uint64_t* counts;  // or null
  std::uint32_t* new_first;
  std::uint64_t* new_counts;
  ROOST_FN void operator()(std::size_t i) const {
    if (ranks[i] == ranks[i + 1]) return;
    new_first[ranks[i]] = first[i];
    if (counts != nullptr) new_counts[ranks[i]] = counts[i];
  }
};
struct renumber {
  const std::uint64_t* ranks;
  std::uint32_t* numbers;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint64_t rank = ranks[numbers[i]];
    numbers[i] = rank == ranks[numbers[i] + 1] ? ~std::uint32_t{0} : static_cast<std::uint32_t>(rank);
  }
};

/// Leaves out the numbers of rows with a null.
template <class Place>
void drop_nulls(const Place& place, const std::vector<const std::uint8_t*>& bitmaps,
                numbered_rows<Place>& all) {
  if (bitmaps.empty() || all.first.size() == 0) return;
  const std::size_t n = all.first.size();
  const auto pointers = copy_to(place, bitmaps);
  array<std::uint64_t, Place> ranks(place, n + 1);
  place.fill(ranks.data() + n, 0, sizeof(std::uint64_t));
  place.for_each(n, has_no_null{pointers.data(), pointers.size(), all.first.data(), ranks.data()});
  place.exclusive_scan(ranks.data(), ranks.data(), n + 1);
  std::uint64_t left = 0;
  place.copy_to_host(&left, ranks.data() + n, sizeof(left));
  array<std::uint32_t, Place> first(place, left);
  array<std::uint64_t, Place> counts(place, all.counts.size() == 0 ? 0 : left);
  place.for_each(n,
                 keep_number{ranks.data(), all.first.data(), all.counts.data(), first.data(), counts.data()});
  place.for_each(all.numbers.size(), renumber{ranks.data(), all.numbers.data()});
  all.first = std::move(first);
  all.counts = std::move(counts);
}

template <class Place>
numbered_rows<Place> index_rows(const Place& place, const roost_table& table, bool drops_nulls, bool numbers,
                                bool counts) {
  const table_keys<Place> keys(place, {&table}, null_equality::equal);
  return keys.with(place, [&](const auto& words) {
    auto all = unique_all(place, words, {index_order::first_occurrence, true, numbers, counts});
    numbered_rows<Place> result{std::move(all.first), std::move(all.inverse), std::move(all.counts)};
    if (drops_nulls) drop_nulls(place, keys.bitmaps(), result);
    return result;
  });
}

}  // namespace roost::c
