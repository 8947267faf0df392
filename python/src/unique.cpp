#include <nanobind/stl/optional.h>

#include "bind.hpp"
#include "columns.hpp"
#include "roost/two_way_index.hpp"

// Distinct keys.

namespace roost::python {
namespace {

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

/// Keys, the positions of their first occurrences, their numbers, their counts; None for unwanted results.
/// `in_order`: by first occurrence. `missing`: a key that does not count, if it occurs.
template <class Place>
nb::tuple unique(const call_place<Place>& at, const column& keys, bool in_order, bool first, bool inverse,
                 bool counts, bool wide, std::optional<std::uint64_t> missing) {
  return with_keys(keys, [&]<class Key>(Key) {
    const auto all_keys = span_of<Key>(keys);
    const auto order = in_order ? index_order::first_occurrence : index_order::any;
    const unique_options wanted{order, first, inverse, counts};
    auto all = without_gil(at, [&](const Place& place) {
      auto result = unique_all(place, all_keys, wanted);
      if constexpr (sizeof(Key) <= 8) {
        if (missing) take_out(place, result, static_cast<Key>(*missing));
      }
      return result;
    });
    const auto rows = [&](array<std::uint32_t, Place>& numbers, bool is_wanted) {
      return is_wanted ? rows_to_python(at, std::move(numbers), wide) : nb::none();
    };
    const nb::object first_rows = rows(all.first, first), inverse_rows = rows(all.inverse, inverse);
    return nb::make_tuple(
        to_python(at, std::move(all.keys)), first_rows, inverse_rows,
        counts ? to_python_as<std::int64_t>(at, std::move(all.counts)) : nb::object(nb::none()));
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
      const auto all = unique_all(
          place, all_keys, {keep_first ? first_occurrence : any, keep_first, !keep_first, !keep_first});
      if (keep_first) {
        place.fill(again.data(), 1, again.size_bytes());
        place.for_each(all.first.size(), mark_first{all.first.data(), again.data()});
      } else {
        place.for_each(again.size(), comes_again{all.inverse.data(), all.counts.data(), again.data()});
      }
    });
    return true;
  });
}

}  // namespace

template <class Place>
void bind_unique(nb::module_& m) {
  m.def("unique", &unique<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none());
  m.def("duplicated", &duplicated<Place>);
}

template void bind_unique<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
