#pragma once

#include "roost/detail/partition/sort.hpp"

// Results of rows that are found in the order of their groups, put in the order of the rows.

namespace roost::detail {

/// Puts the result of position i, which is that of row rows[i].
template <class T>
struct put_result {
  const std::uint32_t* rows;
  T* target;
  bool by_row;  // or by position
  ROOST_FN void operator()(std::uint64_t i, T result) const { target[by_row ? rows[i] : i] = result; }
};

template <class T>
struct row_and_result {
  const std::uint32_t* rows;
  const T* results;
  std::size_t count;
  std::size_t size() const { return count; }
  ROOST_FN auto operator[](std::size_t i) const { return pair_of(rows[i], results[i]); }
};
template <class Item, class T>
struct put_item {
  const Item* items;
  T* results;
  ROOST_FN void operator()(std::size_t i) const { results[items[i].key] = items[i].value; }
};

/// For each of n rows the result that find(put) puts at its position by a put_result; for rows at no position
/// all bytes are `fill`. More results than the cache of a GPU holds are written by position, and then brought
/// into parts of consecutive rows, unless they are so already: single writes to any rows take three times as
/// long. Asynchronous on cuda.
template <class T, class Place, class Find>
array<T, Place> results_by_row(const Place& place, std::span<const std::uint32_t> rows, std::size_t n,
                               const Find& find, int fill = 0xff, bool in_order = false) {
  using tuning = partition_tuning<Place>;
  array<T, Place> results(place, n);
  if (rows.size() != n) place.fill(results.data(), fill, results.bytes());
  if constexpr (tuning::scattered_bytes_most != ~std::size_t{0}) {
    if (!in_order && rows.size() * sizeof(T) > tuning::scattered_bytes_most) {
      array<T, Place> found(place, rows.size());
      find(put_result<T>{rows.data(), found.data(), false});
      using item = pair<std::uint32_t, T>;
      using parts = partitioner<Place, item, partition_kind{.stable = true, .one_pass = true}>;
      const auto bits = static_cast<std::uint32_t>(std::bit_width(n)),
                 width = smaller(bits, static_cast<std::uint32_t>(std::bit_width(tuning::digits_most)) - 1);
      const auto all =
          parts(place, 1u << width)
              .run(row_and_result<T>{rows.data(), found.data(), rows.size()}, digit_at{bits - width, width});
      place.for_each(rows.size(), put_item<item, T>{all.items(), results.data()});
      return results;
    }
  }
  find(put_result<T>{rows.data(), results.data(), true});
  return results;
}

}  // namespace roost::detail
