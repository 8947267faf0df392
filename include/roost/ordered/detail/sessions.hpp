#pragma once

// Groups split by time or by value: see roost/ordered/sessions.hpp.

#include "roost/ordered/detail/grouped_rows.hpp"
#include "roost/ordered/sessions.hpp"

namespace roost::detail {

template <class Time>
struct is_after_gap {
  using kind = order_word<Time>;
  const typename kind::word* times;  // by position
  typename kind::distance gap;
  ROOST_FN bool operator()(std::uint64_t i) const { return kind::between(times[i], times[i - 1]) > gap; }
};

template <class Time>
struct is_other_bucket {
  const typename order_word<Time>::word* times;
  time_buckets<Time> buckets;
  ROOST_FN Time start(std::uint64_t i) const { return buckets.start(in_order<Time>::key(times[i])); }
  ROOST_FN bool operator()(std::uint64_t i) const { return start(i - 1) != start(i); }
};

template <class Values>
struct is_other_value {
  Values values;
  ROOST_FN bool operator()(std::uint32_t before, std::uint32_t row) const {
    return !(values[before] == values[row]);
  }
};

}  // namespace roost::detail

namespace roost {

template <class Place, class Times>
grouped_rows<Place> sessions(const Place& place, const grouped_rows<Place>& all, const Times& times,
                             typename detail::order_word<detail::element_of<Times>>::distance gap) {
  constexpr const char* where = "roost::sessions";
  const auto sequence = detail::as_sequence(times);
  if constexpr (std::is_floating_point_v<detail::element_of<Times>>) {
    if (!(gap >= 0)) detail::raise<invalid_argument>({where, ": a gap below 0, or NaN; give 0 or more"});
  }
  const auto words = detail::times_in_order(place, all, sequence, where);
  return detail::split_positions(place, all,
                                 detail::is_after_gap<detail::element_of<Times>>{words.data(), gap});
}

template <class Place, class Times>
grouped_rows<Place> resample(const Place& place, const grouped_rows<Place>& all, const Times& times,
                             const time_buckets<detail::element_of<Times>>& buckets) {
  constexpr const char* where = "roost::resample";
  if (buckets.width == 0) detail::raise<invalid_argument>({where, ": buckets of width 0; give 1 or more"});
  const auto words = detail::times_in_order(place, all, detail::as_sequence(times), where);
  return detail::split_positions(place, all,
                                 detail::is_other_bucket<detail::element_of<Times>>{words.data(), buckets});
}

template <class Place, class Values>
grouped_rows<Place> runs_of_values(const Place& place, const grouped_rows<Place>& all, const Values& values) {
  const auto sequence = detail::as_sequence(values);
  detail::check_value_count(sequence.size(), all.batch_size(), "roost::runs_of_values");
  return split_groups(place, all, detail::is_other_value<detail::sequence_of<Values>>{sequence});
}

}  // namespace roost
