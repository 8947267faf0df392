#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include "bind.hpp"
#include "columns.hpp"
#include "roost/ordered/asof_join.hpp"
#include "roost/ordered/rolling.hpp"
#include "roost/ordered/running.hpp"
#include "roost/ordered/sessions.hpp"

// Rows by key in the order of a column: as-of joins, running results, windows and sessions. Times are
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

/// For each left row the row of the right side, -1 for none.
template <class Place>
nb::object asof_join_rows(const call_place<Place>& at, const nb::tuple& left, const nb::tuple& right,
                          const char* type, const nb::tuple& options) {
  const auto column_of = [](const nb::tuple& of, std::size_t i) { return nb::cast<column>(of[i]); };
  const column left_keys = column_of(left, 0), right_keys = column_of(right, 0);
  const bool wide = nb::cast<bool>(options[3]);
  return with_wide<false>(type, [&]<class Time>(Time) {
    const asof_options<Time> chosen{value_of<asof_direction>(nb::cast<const char*>(options[0])),
                                    nb::cast<bool>(options[1]), distance_from<Time>(options[2])};
    const auto left_times = span_of<Time>(column_of(left, 1)),
               right_times = span_of<Time>(column_of(right, 1));
    return with_keys(left_keys, [&]<class Key>(Key) {
      const auto a = span_of<Key>(left_keys), b = span_of<Key>(right_keys);
      auto rows = without_gil(
          at, [&](const Place& place) { return asof_join(place, a, left_times, b, right_times, chosen); });
      return rows_to_python(at, std::move(rows), wide);
    });
  });
}

template <class Place>
struct windows {
  row_windows<Place> all;
};

/// grouped_rows of the numbers of groups.
template <class Place>
class ordered_rows {
 public:
  using at_place = const call_place<Place>&;

  explicit ordered_rows(grouped_rows<Place>&& rows) : rows_(std::move(rows)) {}

  nb::object running(at_place at, const column& values, const char* type, const char* how) const {
    return with_wide<true>(type, [&]<class T>(T) {
      const auto source = span_of<T>(values);
      return with_combination(how, [&](const auto& f) {
        return to_python(
            at, without_gil(at, [&](const Place& place) { return roost::running(place, rows_, source, f); }));
      });
    });
  }

  nb::object shifted(at_place at, std::int64_t n) const {
    return rows_to_python(
        at, without_gil(at, [&](const Place& place) { return shifted_rows(place, rows_, n); }), true);
  }

  nb::object session_numbers(at_place at, const column& times, const char* type,
                             const nb::object& gap) const {
    return with_wide<false>(type, [&]<class Time>(Time) {
      const auto source = span_of<Time>(times);
      const auto most = distance_from<Time>(gap);
      auto numbers = without_gil(
          at, [&](const Place& place) { return group_numbers(place, sessions(place, rows_, source, most)); });
      return rows_to_python(at, std::move(numbers), true);
    });
  }

  std::unique_ptr<windows<Place>> windows_by_rows(at_place at, std::int64_t first, std::int64_t last) const {
    return without_gil(at, [&](const Place& place) {
      return std::make_unique<windows<Place>>(roost::windows_by_rows(place, rows_, {first, last}));
    });
  }

  std::unique_ptr<windows<Place>> windows_by_time(at_place at, const column& times, const char* type,
                                                  const nb::tuple& span) const {
    return with_wide<false>(type, [&]<class Time>(Time) {
      const auto source = span_of<Time>(times);
      const time_around<Time> around{distance_from<Time>(span[0]), distance_from<Time>(span[1]),
                                     value_of<window_closed>(nb::cast<const char*>(span[2]))};
      return without_gil(at, [&](const Place& place) {
        return std::make_unique<windows<Place>>(roost::windows_by_time(place, rows_, source, around));
      });
    });
  }

  nb::object window_sizes(at_place at, const windows<Place>& of) const {
    return rows_to_python(
        at, without_gil(at, [&](const Place& place) { return roost::window_sizes(place, rows_, of.all); }),
        true);
  }

  nb::object window_ends(at_place at, const windows<Place>& of, bool last) const {
    return rows_to_python(
        at,
        without_gil(at, [&](const Place& place) { return roost::window_ends(place, rows_, of.all, last); }),
        true);
  }

  nb::object combine(at_place at, const windows<Place>& of, const column& values, const char* type,
                     const char* how) const {
    return with_wide<true>(type, [&]<class T>(T) {
      const auto source = span_of<T>(values);
      return with_combination(how, [&](const auto& f) {
        return to_python(at, without_gil(at, [&](const Place& place) {
                           return combine_windows(place, rows_, of.all, source, f, T{});
                         }));
      });
    });
  }

  /// Rows of three numbers: how many values there are, their mean, and the squares of their distances from
  /// it.
  nb::object moments_of_windows(at_place at, const windows<Place>& of, const column& values,
                                const column& there) const {
    const auto source = span_of<double>(values);
    const auto has = span_of<bool>(there);
    auto found = without_gil(at, [&](const Place& place) {
      const computed each(source.size(), moments_of_row{source.data(), has.data()});
      return combine_windows(place, rows_, of.all, each, merge_moments(), moments());
    });
    return to_python_as<double>(at, std::move(found));
  }

 private:
  struct moments_of_row {
    const double* values;
    const bool* there;
    ROOST_FN moments operator()(std::size_t row) const {
      return there[row] ? moments::of(values[row]) : moments();
    }
  };

  grouped_rows<Place> rows_;
};

/// `keys`: numbers of 4 bytes; `times`: None for the order of the rows.
template <class Place>
std::unique_ptr<ordered_rows<Place>> order_rows(const call_place<Place>& at, const column& keys,
                                                const std::optional<column>& times, const char* type) {
  const auto numbers = span_of<std::uint32_t>(keys);
  if (!times) {
    return without_gil(at, [&](const Place& place) {
      return std::make_unique<ordered_rows<Place>>(roost::group_rows(place, numbers));
    });
  }
  return with_wide<false>(type, [&]<class Time>(Time) {
    const auto source = span_of<Time>(*times);
    return without_gil(at, [&](const Place& place) {
      return std::make_unique<ordered_rows<Place>>(roost::group_rows(place, numbers, source));
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
      .def("windows_by_rows", &rows::windows_by_rows)
      .def("windows_by_time", &rows::windows_by_time)
      .def("window_sizes", &rows::window_sizes)
      .def("window_ends", &rows::window_ends)
      .def("combine", &rows::combine)
      .def("moments", &rows::moments_of_windows);
  m.def("order_rows", &order_rows<Place>, nb::arg(), nb::arg(), nb::arg("times").none(), nb::arg());
  m.def("asof_join", &asof_join_rows<Place>);
  bind_names<asof_direction>(m, "asof_directions");
  bind_names<window_closed>(m, "window_ends");
}

template void bind_ordered<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
