#pragma once

#include "roost/detail/groups/multimap.hpp"

// Reductions of lists.

namespace roost::detail {

/// The number of values that one worker combines in sequence.
inline constexpr std::uint64_t reduced_at_once = 32;

template <class Source, class F>
struct reduce_values {
  Source values;
  F f;
  ROOST_FN auto operator()(std::uint64_t first, std::uint64_t end) const {
    auto result = values[first];
    for (std::uint64_t i = first + 1; i < end; ++i) result = f(result, values[i]);
    return result;
  }
};

/// Combines lists that are short enough for one worker.
template <class Source, class Value, class F>
struct reduce_list {
  reduce_values<Source, F> reduce;
  const std::uint64_t* offsets;
  Value* results;
  std::uint64_t* sizes;      // or null
  std::uint32_t* long_ones;  // becomes 1 if some list is too long
  ROOST_FN void operator()(std::size_t list) const {
    const std::uint64_t first = offsets[list], end = offsets[list + 1], size = end - first;
    if (sizes != nullptr) sizes[list] = size;
    if (size > reduced_at_once) {
      if (peek(*long_ones) == 0) fetch_or(*long_ones, 1u);
    } else if (size != 0) {
      results[list] = reduce(first, end);
    }
  }
};

/// The number of pieces of a list that is too long.
struct pieces_of_list {
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t list) const {
    const std::uint64_t size = offsets[list + 1] - offsets[list];
    return size <= reduced_at_once ? 0 : ceil_div(size, reduced_at_once);
  }
};

template <class Source, class Value, class F>
struct reduce_piece {
  reduce_values<Source, F> reduce;
  const std::uint64_t* offsets;
  Value* results;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t list, std::uint64_t k) const {
    const std::uint64_t first = offsets[list] + k * reduced_at_once;
    results[i] = reduce(first, smaller(first + reduced_at_once, offsets[list + 1]));
  }
};

/// results[l] = f over values[offsets[l]] to values[offsets[l + 1] - 1], for lists that are not empty, of
/// which there is one less than offsets. Long lists are repeatedly replaced by lists of the results of their
/// pieces, so that every list is work for all teams. `values`: a pointer, or a functor that computes them.
/// `sizes`: output for the sizes of the lists; or null. Synchronises.
template <class Place, class Source, class Value, class F>
void reduce_lists(const Place& place, const Source& values, std::span<const std::uint64_t> offsets,
                  const F& f, Value* results, std::uint64_t* sizes) {
  const std::size_t lists = offsets.size() - 1;
  const reduce_values<Source, F> reduce{values, f};
  auto long_ones = zeros<std::uint32_t>(place, 1);
  place.for_each(lists,
                 reduce_list<Source, Value, F>{reduce, offsets.data(), results, sizes, long_ones.data()});
  if (read_one(place, long_ones.data()) == 0) return;
  array<std::uint64_t, Place> piece_offsets(place, lists + 1);
  write_offsets(place, lists, pieces_of_list{offsets.data()}, piece_offsets.data());
  const std::uint64_t total = read_one(place, piece_offsets.data() + lists);
  array<Value, Place> piece_results(place, total);
  expand(place, piece_offsets.data(), lists, total,
         reduce_piece<Source, Value, F>{reduce, offsets.data(), piece_results.data()});
  reduce_lists(place, piece_results.data(), piece_offsets.span(), f, results, nullptr);
}

}  // namespace roost::detail
