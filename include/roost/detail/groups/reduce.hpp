#pragma once

// Bodies of roost/group_by.hpp.

#include "roost/detail/groups/aggregate_chunks.hpp"
#include "roost/detail/groups/few_groups.hpp"
#include "roost/group_by.hpp"

namespace roost {
namespace detail {

struct divide_by_count {
  double* values;
  const std::uint64_t* counts;
  ROOST_FN void operator()(std::size_t i) const { values[i] /= static_cast<double>(counts[i]); }
};

/// Each function of the values of few groups.
template <class Key, class Source, class... F>
auto aggregate_few(const host& cpu, few_groups<Key>&& few, const Source& source, const group_options& options,
                   const F&... f) {
  using value = std::remove_cvref_t<decltype(source[0].value)>;
  aggregated<Key, value, host, sizeof...(F)> result;
  std::size_t k = 0;
  const auto reduce = [&](const auto& function) {
    auto& results = results_of(result, k++);
    results = array<value, host>(cpu, few.keys.size());
    const auto value_at = values_at{[&](std::size_t i) { return source[i].value; }};
    reduce_few(cpu, few.rows, value_at, function, results.data());
  };
  (reduce(f), ...);
  if (options.counts) result.counts = copy_to(cpu, std::span(few.rows.counts(), few.rows.size()));
  result.keys = std::move(few.keys);
  return result;
}

/// The same of groups whose values lie together.
template <class Place, class Key, class Value, class... F>
auto aggregate_groups(const Place& place, groups<Key, Value, Place>&& grouped, const group_options& options,
                      const F&... f) {
  aggregated<Key, Value, Place, sizeof...(F)> result;
  const std::size_t size = grouped.size();
  result.keys = std::move(grouped.keys);
  if (options.counts) result.counts = array<std::uint64_t, Place>(place, size);
  std::size_t k = 0;
  const auto reduce = [&](const auto& function) {
    std::uint64_t* const counts = k == 0 ? result.counts.data() : nullptr;
    auto& results = results_of(result, k++);
    results = array<Value, Place>(place, size);
    reduce_lists(place, grouped.values.data(), {grouped.offsets.data(), size + 1}, function, results.data(),
                 counts);
  };
  (reduce(f), ...);
  return result;
}

/// The groups, with the values of each of N functions.
template <class Place, class Keys, class Values, class... F>
auto group_by_all(const Place& place, const Keys& keys, const Values& values, const group_options& options,
                  const char* where, const F&... f) {
  using key = element_of<Keys>;
  using value = element_of<Values>;
  const auto source = zip_checked(keys, values, where);
  constexpr bool any_order = has_words<key, value, F...>;
  batch_facts batch = facts_of<key>(place, source.size());
  const bool combines = any_order && (options.order == value_order::any || !sums_floats<value, F...>);
  if constexpr (std::is_same_v<Place, host>) {
    if (choose_group_by(batch, combines) == group_by_step::few) {
      const auto key_at = values_at{[&](std::size_t i) { return source[i].key; }};
      if (auto few = index_few<key>(place, source.size(), key_at))
        return aggregate_few(place, std::move(*few), source, options, f...);
      batch.tried.few = true;
    }
  }
  if constexpr (any_order) {
    if (choose_group_by(batch, combines) == group_by_step::aggregate) {
      if (auto all = aggregate<Place, key, value, F...>(place, source, options.counts, aggregated_most))
        return std::move(*all);
    }
  }
  return aggregate_groups(place, group(place, source, 0, where), options, f...);
}

template <class Place, class Keys, class Values, class F>
auto group_by(const Place& place, const Keys& keys, const Values& values, const F& f,
              const group_options& options, const char* where) {
  return group_by_all(place, keys, values, options, where, f);
}
template <class Place, class Keys, class Values, class... F>
auto group_by(const Place& place, const Keys& keys, const Values& values, const std::tuple<F...>& functions,
              const group_options& options, const char* where) {
  static_assert(sizeof...(F) != 0, "give at least one function");
  return std::apply([&](const auto&... f) { return group_by_all(place, keys, values, options, where, f...); },
                    functions);
}

}  // namespace detail

template <detail::place_comes_first Place, class Keys, class Values, class F>
auto group_by(const Place& place, const Keys& keys, const Values& values, const F& f,
              const group_options& options) {
  return detail::group_by(place, keys, values, f, options, "roost::group_by");
}

template <detail::place_comes_first Place, class Keys, class Values>
auto group_means(const Place& place, const Keys& keys, const Values& values, const group_options& options) {
  const detail::converted<double, detail::sequence_of<Values>> doubles{detail::as_sequence(values)};
  auto result =
      detail::group_by(place, keys, doubles, plus(), {.order = options.order}, "roost::group_means");
  place.for_each(result.size(), detail::divide_by_count{result.values.data(), result.counts.data()});
  place.synchronize();
  if (!options.counts) result.counts = {};
  return result;
}

}  // namespace roost
