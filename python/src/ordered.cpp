#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include "bind.hpp"
#include "columns.hpp"
#include "grouping.hpp"
#include "roost/ordered/asof_join.hpp"
#include "roost/ordered/interval_join.hpp"
#include "roost/ordered/rolling.hpp"
#include "roost/ordered/running.hpp"
#include "roost/ordered/sessions.hpp"

// Rows by key in the order of a column: joins by time, running results, windows, sessions and runs. Times are
// std::int64_t or double.

namespace roost::python {

template <>
inline constexpr named<asof_direction> names_of<asof_direction>[] = {{"backward", asof_direction::backward},
                                                                     {"forward", asof_direction::forward},
                                                                     {"nearest", asof_direction::nearest}};
template <>
inline constexpr named<window_closed> names_of<window_closed>[] = {{"right", window_closed::right},
                                                                   {"left", window_closed::left},
                                                                   {"both", window_closed::both},
                                                                   {"neither", window_closed::neither}};

/// What is combined of the values of windows, or of the rows so far.
enum class combination { sum, product, min, max };
template <>
inline constexpr named<combination> names_of<combination>[] = {{"sum", combination::sum},
                                                               {"product", combination::product},
                                                               {"min", combination::min},
                                                               {"max", combination::max}};

/// Between which values a quantile lies; as in numpy and pandas.
enum class interpolation { linear, lower, higher, midpoint, nearest };
template <>
inline constexpr named<interpolation> names_of<interpolation>[] = {{"linear", interpolation::linear},
                                                                   {"lower", interpolation::lower},
                                                                   {"higher", interpolation::higher},
                                                                   {"midpoint", interpolation::midpoint},
                                                                   {"nearest", interpolation::nearest}};

namespace {

/// The smaller value, or NaN if one is.
struct least {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    return a != a || !(b < a || b != b) ? a : b;
  }
};
struct greatest {
  template <class T>
  ROOST_FN T operator()(const T& a, const T& b) const {
    return a != a || !(a < b || b != b) ? a : b;
  }
};

template <class F>
auto with_combination(const char* how, const F& f) {
  switch (value_of<combination>(how)) {
    case combination::sum:
      return f(plus());
    case combination::product:
      return f(multiplies());
    case combination::min:
      return f(least());
    default:
      return f(greatest());
  }
}

/// Calls f(T()) with the type of times or values: of times without `Unsigned`.
template <bool Unsigned, class F>
auto with_wide(const char* type, const F& f) {
  const auto kind = value_of<column_type>(type);
  if (kind == column_type::f8) return f(double());
  if constexpr (Unsigned) {
    if (kind == column_type::u8) return f(std::uint64_t());
  }
  if (kind == column_type::i8) return f(std::int64_t());
  detail::raise<invalid_argument>({"roost: ", type, " where int64 or float64 is expected"});
}

template <class T>
using distance_of = typename detail::order_word<T>::distance;

/// A distance of times that Python has: None is the greatest.
template <class T>
distance_of<T> distance_from(const nb::object& number) {
  return number.is_none() ? detail::order_word<T>::farthest : nb::cast<distance_of<T>>(number);
}

/// f(keys of the left side, those of the right side): the first elements of the tuples, which are followed by
/// times. None: all rows have one key.
template <class F>
auto with_keys_of_two(const nb::tuple& left, const nb::tuple& right, const F& f) {
  const auto column_of = [](const nb::tuple& of, std::size_t i) { return nb::cast<column>(of[i]); };
  if (left[0].is_none()) {
    const auto no_keys = [&](const nb::tuple& of) {
      return computed(column_of(of, 1).rows, detail::constant<none>{});
    };
    return f(no_keys(left), no_keys(right));
  }
  const column left_keys = column_of(left, 0), right_keys = column_of(right, 0);
  return with_keys(left_keys,
                   [&]<class Key>(Key) { return f(span_of<Key>(left_keys), span_of<Key>(right_keys)); });
}

/// For each left row the row of the right side, -1 for none.
template <class Place>
nb::object asof_join_rows(const call_place<Place>& at, const nb::tuple& left, const nb::tuple& right,
                          const char* type, const nb::tuple& options) {
  const auto column_of = [](const nb::tuple& of, std::size_t i) { return nb::cast<column>(of[i]); };
  const bool wide = nb::cast<bool>(options[3]);
  return with_wide<false>(type, [&]<class Time>(Time) {
    const asof_options<Time> chosen{value_of<asof_direction>(nb::cast<const char*>(options[0])),
                                    nb::cast<bool>(options[1]), distance_from<Time>(options[2])};
    const auto left_times = span_of<Time>(column_of(left, 1)),
               right_times = span_of<Time>(column_of(right, 1));
    return with_keys_of_two(left, right, [&](const auto& a, const auto& b) {
      auto rows = without_gil(
          at, [&](const Place& place) { return asof_join(place, a, left_times, b, right_times, chosen); });
      return rows_to_python(at, std::move(rows), wide);
    });
  });
}

/// The rows of the pairs; `times`: of the left side those where intervals begin, and where they end.
template <class Place>
nb::tuple interval_join_rows(const call_place<Place>& at, const nb::tuple& left, const nb::tuple& right,
                             const char* type, const char* closed) {
  const auto column_of = [](const nb::tuple& of, std::size_t i) { return nb::cast<column>(of[i]); };
  const auto ends = value_of<window_closed>(closed);
  return with_wide<false>(type, [&]<class Time>(Time) {
    const auto from = span_of<Time>(column_of(left, 1)), to = span_of<Time>(column_of(left, 2)),
               times = span_of<Time>(column_of(right, 1));
    return with_keys_of_two(left, right, [&](const auto& a, const auto& b) {
      auto rows = without_gil(at, [&](const Place& place) {
        return interval_join<std::uint64_t>(place, a, intervals{from, to}, b, times, ends);
      });
      const nb::object left_rows = to_python_as<std::int64_t>(at, std::move(rows.left));
      return nb::make_tuple(left_rows, to_python_as<std::int64_t>(at, std::move(rows.right)));
    });
  });
}

template <class Place>
struct windows {
  row_windows<Place> all;
};

/// The word of a float in its order, that of NaN after all numbers, and that of a null after it.
struct word_with_nulls {
  const double* values;
  const bool* there;  // null: all
  ROOST_FN std::uint64_t operator()(std::size_t row) const {
    if (there != nullptr && !there[row]) return ~std::uint64_t{0};
    const double value = values[row];
    return value != value ? ~std::uint64_t{1} : detail::order_word<double>::of(value);
  }
};

/// Three numbers of each row's window: that before a quantile, that after it, and the last one.
struct numbers_around {
  const std::int64_t* counts;  // of values that are no nulls
  double q;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const auto n = static_cast<std::uint64_t>(counts[i / 3]);
    if (n == 0) return ~std::uint64_t{0};
    const place_of_quantile at(q, n);
    return i % 3 == 2 ? n - 1 : i % 3 == 0 || at.part == 0 ? at.low : at.low + 1;
  }
};

struct put_window_quantile {
  numbers_around numbers;
  interpolation how;
  const double* values;
  const std::uint32_t* rows;  // three of each window
  double* results;
  ROOST_FN void operator()(std::size_t row) const {
    results[row] = 0;
    const auto n = static_cast<std::uint64_t>(numbers.counts[row]);
    if (n == 0) return;
    const place_of_quantile at(numbers.q, n);
    const double low = values[rows[3 * row]], high = values[rows[3 * row + 1]],
                 last = values[rows[3 * row + 2]];
    const double up = at.part == 0.5 ? static_cast<double>(at.low % 2) : at.part;  // halves to even numbers
    results[row] = last != last                     ? last
                   : how == interpolation::lower    ? low
                   : how == interpolation::higher   ? high
                   : how == interpolation::nearest  ? (up > 0.5 ? high : low)
                   : how == interpolation::midpoint ? between(low, high, at.part == 0 ? 0 : 0.5)
                                                    : between(low, high, at.part);
  }
};

/// For rows of groups the number of their part among the parts of their group.
struct put_part_number {
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  const std::uint32_t* parts;  // of all groups together
  std::uint32_t* results;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t) const {
    results[rows[i]] = parts[rows[i]] - parts[rows[offsets[group]]];
  }
};

/// The moments of a value that is there, or of none.
struct moments_of_row {
  const double* values;
  const bool* there;
  ROOST_FN moments operator()(std::size_t row) const {
    return there[row] ? moments::of(values[row]) : moments();
  }
};

struct spread_of {
  const moments* found;
  double ddof;
  bool root;
  ROOST_FN double operator()(std::size_t i) const {
    const double variance = found[i].variance(ddof);
    return root ? sqrt(variance) : variance;
  }
};

/// Rows of groups, on the stream where they were made.
template <class Place>
class ordered_rows {
 public:
  using at_place = const call_place<Place>&;

  ordered_rows(const Place& home, grouped_rows<Place>&& rows) : home_(home), rows_(std::move(rows)) {}

  nb::object running(at_place at, const column& values, const char* type, const char* how) const {
    return with_wide<true>(type, [&]<class T>(T) {
      const auto source = span_of<T>(values);
      return with_combination(how, [&](const auto& f) {
        return to_python(at, change(at, home_, [&](const Place& place) {
                           return roost::running(place, rows_, source, f);
                         }));
      });
    });
  }

  nb::object shifted(at_place at, std::int64_t n) const {
    return rows_to_python(
        at, change(at, home_, [&](const Place& place) { return shifted_rows(place, rows_, n); }), true);
  }

  nb::object session_numbers(at_place at, const column& times, const char* type,
                             const nb::object& gap) const {
    return with_wide<false>(type, [&]<class Time>(Time) {
      const auto source = span_of<Time>(times);
      const auto most = distance_from<Time>(gap);
      return parts(at, [&](const Place& place) { return sessions(place, rows_, source, most); });
    });
  }

  /// `values`: numbers of 8 bytes that are equal where values are.
  nb::object run_numbers(at_place at, const column& values) const {
    const auto source = span_of<std::uint64_t>(values);
    return parts(at, [&](const Place& place) { return runs_of_values(place, rows_, source); });
  }

  nb::object positions(at_place at) const {
    return rows_to_python(
        at, change(at, home_, [&](const Place& place) { return positions_in_groups(place, rows_); }), true);
  }

  std::unique_ptr<windows<Place>> windows_by_rows(at_place at, std::int64_t first, std::int64_t last) const {
    return change(at, home_, [&](const Place& place) {
      return std::make_unique<windows<Place>>(roost::windows_by_rows(place, rows_, {first, last}));
    });
  }

  std::unique_ptr<windows<Place>> windows_by_time(at_place at, const column& times, const char* type,
                                                  const nb::tuple& span) const {
    return with_wide<false>(type, [&]<class Time>(Time) {
      const auto source = span_of<Time>(times);
      const time_around<Time> around{distance_from<Time>(span[0]), distance_from<Time>(span[1]),
                                     value_of<window_closed>(nb::cast<const char*>(span[2]))};
      return change(at, home_, [&](const Place& place) {
        return std::make_unique<windows<Place>>(roost::windows_by_time(place, rows_, source, around));
      });
    });
  }

  nb::object window_sizes(at_place at, const windows<Place>& of) const {
    return rows_to_python(
        at, change(at, home_, [&](const Place& place) { return roost::window_sizes(place, rows_, of.all); }),
        true);
  }

  nb::object window_ends(at_place at, const windows<Place>& of, bool last) const {
    return rows_to_python(
        at,
        change(at, home_, [&](const Place& place) { return roost::window_ends(place, rows_, of.all, last); }),
        true);
  }

  nb::object combine(at_place at, const windows<Place>& of, const column& values, const char* type,
                     const char* how) const {
    return with_wide<true>(type, [&]<class T>(T) {
      const auto source = span_of<T>(values);
      return with_combination(how, [&](const auto& f) {
        return to_python(at, change(at, home_, [&](const Place& place) {
                           return combine_windows(place, rows_, of.all, source, f, T{});
                         }));
      });
    });
  }

  /// Quantiles of float64. `counts`: how many values each window has that are no nulls.
  nb::object quantiles(at_place at, const windows<Place>& of, const column& values,
                       const std::optional<column>& there, const column& counts, double q,
                       const char* how) const {
    const auto source = span_of<double>(values);
    const bool* const has = there ? span_of<bool>(*there).data() : nullptr;
    const numbers_around in{span_of<std::int64_t>(counts).data(), q};
    const auto between = value_of<interpolation>(how);
    return to_python(at, change(at, home_, [&](const Place& place) {
                       const std::size_t n = source.size();
                       const computed words(n, word_with_nulls{source.data(), has});
                       const auto found = nth_of_windows(place, rows_, of.all, words, computed(3 * n, in));
                       array<double, Place> results(place, n);
                       place.for_each(
                           n, put_window_quantile{in, between, source.data(), found.data(), results.data()});
                       place.synchronize();
                       return results;
                     }));
  }

  /// Variances of float64, divided by the number of values less `ddof`, or their roots.
  nb::object spreads(at_place at, const windows<Place>& of, const column& values, const column& there,
                     double ddof, bool root) const {
    const auto source = span_of<double>(values);
    const auto has = span_of<bool>(there);
    return to_python(at, change(at, home_, [&](const Place& place) {
                       const computed each(source.size(), moments_of_row{source.data(), has.data()});
                       const auto found =
                           combine_windows(place, rows_, of.all, each, merge_moments(), moments());
                       return detail::array_of(place, found.size(), spread_of{found.data(), ddof, root});
                     }));
  }

 private:
  /// For each row the number of its part among those of its group: 0, 1, 2 ...
  template <class Split>
  nb::object parts(at_place at, const Split& split) const {
    auto numbers = change(at, home_, [&](const Place& place) {
      const auto all = group_numbers(place, split(place));
      array<std::uint32_t, Place> results(place, rows_.batch_size());
      detail::for_each_grouped(
          place, rows_,
          put_part_number{rows_.rows().data(), rows_.offsets().data(), all.data(), results.data()});
      place.synchronize();
      return results;
    });
    return rows_to_python(at, std::move(numbers), true);
  }

  Place home_;
  grouped_rows<Place> rows_;
};

/// The rows of groups. `times`: None for the order of the rows.
template <class Place>
std::unique_ptr<ordered_rows<Place>> order_rows(const call_place<Place>& at, grouping<Place>& groups,
                                                const std::optional<column>& times, const char* type) {
  const auto ordered = [&](const auto& order) {
    return groups.with_lists(at, true, [&](const Place& place, const auto& lists) {
      array<std::uint32_t, Place> rows(place, lists.n);
      array<std::uint64_t, Place> offsets(place, lists.size + 1);
      if (lists.n != 0) {
        place.copy(rows.data(), lists.rows, rows.bytes());
        place.copy(offsets.data(), lists.offsets, offsets.bytes());
      } else {
        place.fill(offsets.data(), 0, offsets.bytes());
      }
      place.synchronize();
      grouped_rows<Place> all(std::move(rows), std::move(offsets), lists.n);
      return std::make_unique<ordered_rows<Place>>(place, order(place, std::move(all)));
    });
  };
  if (!times) return ordered([](const Place&, grouped_rows<Place>&& all) { return std::move(all); });
  return with_wide<false>(type, [&]<class Time>(Time) {
    const auto source = span_of<Time>(*times);
    return ordered([&](const Place& place, grouped_rows<Place>&& all) {
      return roost::group_rows(place, group_numbers(place, all), source);
    });
  });
}

}  // namespace

template <class Place>
void bind_ordered(nb::module_& m) {
  using rows = ordered_rows<Place>;
  nb::class_<windows<Place>>(m, "Windows");
  nb::class_<rows>(m, "OrderedRows")
      .def("running", &rows::running)
      .def("shifted", &rows::shifted)
      .def("session_numbers", &rows::session_numbers)
      .def("run_numbers", &rows::run_numbers)
      .def("positions", &rows::positions)
      .def("windows_by_rows", &rows::windows_by_rows)
      .def("windows_by_time", &rows::windows_by_time)
      .def("window_sizes", &rows::window_sizes)
      .def("window_ends", &rows::window_ends)
      .def("combine", &rows::combine)
      .def("quantiles", &rows::quantiles, nb::arg(), nb::arg(), nb::arg(), nb::arg("there").none(), nb::arg(),
           nb::arg(), nb::arg())
      .def("spreads", &rows::spreads);
  m.def("order_rows", &order_rows<Place>, nb::arg(), nb::arg(), nb::arg("times").none(), nb::arg());
  m.def("asof_join", &asof_join_rows<Place>);
  m.def("interval_join", &interval_join_rows<Place>);
  bind_names<interpolation>(m, "interpolations");
  bind_names<asof_direction>(m, "asof_directions");
  bind_names<window_closed>(m, "window_ends");
}

template void bind_ordered<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
