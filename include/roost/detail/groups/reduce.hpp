#pragma once

// Bodies of roost/group_by.hpp.

#include "roost/detail/groups/aggregate.hpp"
#include "roost/group_by.hpp"

namespace roost {
namespace detail {

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

/// results[l] = f over values[offsets[l]] to values[offsets[l + 1] - 1], for lists that are not empty. Long
/// lists are repeatedly replaced by lists of the results of their pieces, so that every list is work for all
/// teams. `values`: a pointer, or a functor that computes them. `sizes`: output for the sizes of the lists;
/// or null. Synchronises.
template <class Place, class Source, class Value, class F>
void reduce_lists(const Place& place, const Source& values, const std::uint64_t* offsets, std::size_t lists,
                  const F& f, Value* results, std::uint64_t* sizes) {
  const reduce_values<Source, F> reduce{values, f};
  array<std::uint32_t, Place> long_ones(place, 1);
  place.fill(long_ones.data(), 0, long_ones.bytes());
  place.for_each(lists, reduce_list<Source, Value, F>{reduce, offsets, results, sizes, long_ones.data()});
  std::uint32_t some_are_long = 0;
  place.copy_to_host(&some_are_long, long_ones.data(), sizeof(some_are_long));
  if (some_are_long == 0) return;
  array<std::uint64_t, Place> piece_offsets(place, lists + 1);
  place.fill(piece_offsets.data() + lists, 0, sizeof(std::uint64_t));
  write_numbers(place, lists, pieces_of_list{offsets}, piece_offsets.data());
  place.exclusive_scan(piece_offsets.data(), piece_offsets.data(), lists + 1);
  std::uint64_t total = 0;
  place.copy_to_host(&total, piece_offsets.data() + lists, sizeof(total));
  array<Value, Place> piece_results(place, total);
  expand(place, piece_offsets.data(), lists, total,
         reduce_piece<Source, Value, F>{reduce, offsets, piece_results.data()});
  reduce_lists(place, piece_results.data(), piece_offsets.data(), lists, f, results, nullptr);
}

template <class Values>
struct as_double {
  Values values;
  ROOST_FN double operator()(std::size_t i) const { return static_cast<double>(values[i]); }
};

struct divide_by_count {
  double* values;
  const std::uint64_t* counts;
  ROOST_FN void operator()(std::size_t i) const { values[i] /= static_cast<double>(counts[i]); }
};

/// The groups, with the values of each of N functions.
template <class Place, class Keys, class Values, class... F>
auto group_by_all(const Place& place, const Keys& keys, const Values& values, const group_options& options,
                  const char* where, const F&... f) {
  using key = element_of<Keys>;
  using value = element_of<Values>;
  const auto source = zip_checked(keys, values, where);
  if constexpr (has_words<key, value, F...>) {
    constexpr std::size_t most = ~std::uint32_t{0} - std::size_t{1};
    if (source.size() != 0 && source.size() <= most &&
        (options.order == value_order::any || !sums_floats<value, F...>)) {
      auto all = aggregator<Place, key, value, F...>(place, source.size(), options.counts).run(source);
      if (all) return std::move(*all);
    }
  }
  auto grouped = group(place, source, 0, false, where);
  aggregates<key, value, Place, sizeof...(F)> result;
  const std::size_t size = grouped.size();
  result.keys = std::move(grouped.keys);
  if (options.counts) result.counts = array<std::uint64_t, Place>(place, size);
  std::size_t k = 0;
  const auto reduce = [&](const auto& function) {
    result.values[k] = array<value, Place>(place, size);
    reduce_lists(place, grouped.values.data(), grouped.offsets.data(), size, function,
                 result.values[k].data(), k == 0 ? result.counts.data() : nullptr);
    ++k;
  };
  (reduce(f), ...);
  return result;
}

template <class F>
auto as_tuple(const F& f) {
  return std::tuple<F>(f);
}
template <class... F>
auto as_tuple(const std::tuple<F...>& functions) {
  static_assert(sizeof...(F) != 0, "give at least one function");
  return functions;
}

template <class Place, class Keys, class Values, class F>
auto group_by(const Place& place, const Keys& keys, const Values& values, const F& f,
              const group_options& options, const char* where) {
  const auto functions = as_tuple(f);
  auto all = std::apply(
      [&](const auto&... g) { return group_by_all(place, keys, values, options, where, g...); }, functions);
  constexpr std::size_t count = std::tuple_size_v<decltype(all.values)>;
  aggregated<element_of<Keys>, element_of<Values>, Place, count> result;
  result.keys = std::move(all.keys);
  result.counts = std::move(all.counts);
  if constexpr (count == 1) {
    result.values = std::move(all.values[0]);
  } else {
    result.values = std::move(all.values);
  }
  return result;
}

}  // namespace detail

template <class Place, class Keys, class Values, class F>
auto group_by(const Place& place, const Keys& keys, const Values& values, const F& f,
              const group_options& options) {
  return detail::group_by(place, keys, values, f, options, "roost::group_by");
}

template <class Place, class Keys, class Values>
auto group_means(const Place& place, const Keys& keys, const Values& values, const group_options& options) {
  const auto sequence = detail::as_sequence(values);
  const computed doubles(sequence.size(),
                         detail::as_double<std::remove_const_t<decltype(sequence)>>{sequence});
  auto result =
      detail::group_by(place, keys, doubles, plus(), {.order = options.order}, "roost::group_means");
  place.for_each(result.size(), detail::divide_by_count{result.values.data(), result.counts.data()});
  place.synchronize();
  if (!options.counts) result.counts = {};
  return result;
}

}  // namespace roost
