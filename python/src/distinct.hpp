#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "columns.hpp"
#include "roost/two_way_index.hpp"

// Distinct keys, of a place or through a device.

namespace roost {
template <class Device>
class out_of_core;
}

namespace roost::python {

/// Where the results of a call are: at its place, or, if it goes through a device, on the host.
template <class Place>
const Place& home_of(const Place& place) {
  return place;
}
template <class Device>
const host& home_of(const out_of_core<Device>& place) {
  return place.cpu();
}
template <class Device>
call_place<host> home_of(const call_place<out_of_core<Device>>&) {
  return {};
}

template <class Key>
struct position_of {
  const Key* keys;
  Key wanted;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return keys[i] == wanted ? i + 1 : 0; }
};

struct skip_number {
  std::uint32_t* numbers;
  std::uint32_t skipped;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t n = numbers[i];
    numbers[i] = n == skipped ? ~0u : n - (n > skipped);
  }
};

/// What unique_all returns.
template <class Place, class Key>
auto distinct_keys(const Place& place, std::span<const Key> keys, const unique_options& wanted) {
  return unique_all(place, keys, wanted);
}
template <class Device, class Key>
unique_keys<Key, host> distinct_keys(const out_of_core<Device>& place, std::span<const Key> keys,
                                     const unique_options& wanted);

/// Removes a key, which then has no number.
template <class Key, class Place>
void take_out(const Place& place, unique_keys<Key, Place>& all, const Key& missing) {
  auto& keys = all.keys;
  const std::size_t past = place.sum(keys.size(), position_of<Key>{keys.data(), missing});
  if (past == 0) return;
  array<Key, Place> others(place, keys.size() - 1);
  place.copy(others.data(), keys.data(), (past - 1) * sizeof(Key));
  place.copy(others.data() + past - 1, keys.data() + past, (keys.size() - past) * sizeof(Key));
  keys = std::move(others);
  place.for_each(all.inverse.size(), skip_number{all.inverse.data(), static_cast<std::uint32_t>(past - 1)});
}

/// What the words of keys mean, when they are sorted: the word of the least negative number, or 0; and
/// whether greater words are lesser negative numbers, as those of floats.
using signs = std::pair<std::uint64_t, bool>;

template <class Key>
struct is_below {
  const Key* keys;
  Key end;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return keys[i] < end ? 1 : 0; }
};

/// Where ascending words are in ascending order of what they mean: the last `negative` of n come first.
struct negative_first {
  std::size_t n, negative;
  bool reversed;
  ROOST_FN std::size_t word_at(std::size_t i) const {
    return i >= negative ? i - negative : reversed ? n - 1 - i : n - negative + i;
  }
  ROOST_FN std::size_t position(std::size_t word) const {
    return word < n - negative ? word + negative : reversed ? n - 1 - word : word - (n - negative);
  }
};
template <class T>
struct element_in_order {
  const T* words;
  negative_first order;
  ROOST_FN T operator()(std::size_t i) const { return words[order.word_at(i)]; }
};
struct renumber {
  std::uint32_t* numbers;
  negative_first order;
  ROOST_FN void operator()(std::size_t i) const {
    numbers[i] = static_cast<std::uint32_t>(order.position(numbers[i]));
  }
};

template <class Key, class Place>
void put_in_order(const Place& place, unique_keys<Key, Place>& all, const signs& of) {
  const std::size_t n = all.keys.size();
  if (of.first == 0 || n == 0) return;
  const auto least = static_cast<Key>(of.first);
  const negative_first order{n, n - place.sum(n, is_below<Key>{all.keys.data(), least}), of.second};
  if (order.negative == 0) return;
  const auto reorder = [&]<class T>(array<T, Place>& words) {
    if (words.size() == 0) return;
    array<T, Place> ordered(place, n);
    detail::write_numbers(place, n, element_in_order<T>{words.data(), order}, ordered.data());
    words = std::move(ordered);
  };
  reorder(all.keys);
  reorder(all.first);
  reorder(all.counts);
  place.for_each(all.inverse.size(), renumber{all.inverse.data(), order});
}

/// Keys, the positions of their first occurrences, their numbers, their counts; None for unwanted results.
/// `in_order`: by first occurrence. `sorted`: the keys are in ascending order, of numbers of at most 8 bytes.
/// `missing`: a key that does not count, if it occurs.
template <class Place>
nb::tuple unique(const call_place<Place>& at, const column& keys, bool in_order, bool first, bool inverse,
                 bool counts, bool wide, std::optional<std::uint64_t> missing, std::optional<signs> sorted) {
  return with_keys(keys, [&]<class Key>(Key) {
    const auto all_keys = span_of<Key>(keys);
    const auto order = sorted     ? index_order::by_key
                       : in_order ? index_order::first_occurrence
                                  : index_order::any;
    const unique_options wanted{order, first, inverse, counts};
    auto all = without_gil(at, [&](const Place& place) {
      auto result = distinct_keys(place, all_keys, wanted);
      if constexpr (sizeof(Key) <= 8) {
        if (sorted) put_in_order(home_of(place), result, *sorted);
      }
      if constexpr (sizeof(Key) <= 8) {
        if (missing) take_out(home_of(place), result, static_cast<Key>(*missing));
      }
      return result;
    });
    const auto& home = home_of(at);
    const auto rows = [&](auto& numbers, bool is_wanted) {
      return is_wanted ? rows_to_python(home, std::move(numbers), wide) : nb::none();
    };
    const nb::object first_rows = rows(all.first, first), inverse_rows = rows(all.inverse, inverse);
    return nb::make_tuple(
        to_python(home, std::move(all.keys)), first_rows, inverse_rows,
        counts ? to_python_as<std::int64_t>(home, std::move(all.counts)) : nb::object(nb::none()));
  });
}

struct mark_first {
  const std::uint32_t* first;
  bool* results;
  ROOST_FN void operator()(std::size_t i) const { results[first[i]] = false; }
};
struct comes_again {
  const std::uint32_t* inverse;
  const std::uint64_t* counts;
  bool* results;
  ROOST_FN void operator()(std::size_t i) const { results[i] = counts[inverse[i]] > 1; }
};

/// results[i] = whether key i occurred before or, without `keep_first`, occurs elsewhere.
template <class Place>
void duplicated(const call_place<Place>& at, const column& keys, bool keep_first, const column& results) {
  with_keys(keys, [&]<class Key>(Key) {
    const auto all_keys = span_of<Key>(keys);
    const auto again = span_of<bool>(results, keys.rows);
    without_gil(at, [&](const Place& place) {
      using enum index_order;
      const auto all = distinct_keys(
          place, all_keys, {keep_first ? first_occurrence : any, keep_first, !keep_first, !keep_first});
      const auto& home = home_of(place);
      if (keep_first) {
        home.fill(again.data(), 1, again.size_bytes());
        home.for_each(all.first.size(), mark_first{all.first.data(), again.data()});
      } else {
        home.for_each(again.size(), comes_again{all.inverse.data(), all.counts.data(), again.data()});
      }
    });
    return true;
  });
}

}  // namespace roost::python
