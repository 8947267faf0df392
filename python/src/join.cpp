#include "roost/join.hpp"

#include "bind.hpp"
#include "columns.hpp"

// Joins.

namespace roost::python {

enum class join_kind { inner, left, semi, anti };
template <>
inline constexpr named<join_kind> names_of<join_kind>[] = {{"inner", join_kind::inner},
                                                           {"left", join_kind::left},
                                                           {"semi", join_kind::semi},
                                                           {"anti", join_kind::anti}};

namespace {

/// Numbers of left rows, and of the matching right rows, or None.
template <class Place>
nb::tuple join(const call_place<Place>& at, const column& left, const column& right, const char* how,
               bool wide) {
  return with_keys(left, [&]<class Key>(Key) {
    const auto a = span_of<Key>(left), b = span_of<Key>(right);
    const auto kind = value_of<join_kind>(how);
    if (kind == join_kind::semi || kind == join_kind::anti) {
      auto rows = without_gil(at, [&](const Place& place) {
        return kind == join_kind::semi ? semi_join<std::uint32_t>(place, a, b)
                                       : anti_join<std::uint32_t>(place, a, b);
      });
      return nb::make_tuple(rows_to_python(at, std::move(rows), wide), nb::none());
    }
    auto rows = without_gil(at, [&](const Place& place) {
      using joined = detail::join<std::uint32_t, Place, decltype(a), decltype(b)>;
      // The left rows are widened first, and the right ones when their copy is gone.
      constexpr std::size_t widened = 2 * sizeof(std::int64_t) - sizeof(std::uint32_t);
      return joined::pairs(place, a, b, kind == join_kind::left, "roost::join", wide ? widened : 0);
    });
    const nb::object left_rows = rows_to_python(at, std::move(rows.left), wide);
    return nb::make_tuple(left_rows, rows_to_python(at, std::move(rows.right), wide));
  });
}

/// found[i] = whether left[i] is one of right.
template <class Place>
void isin(const call_place<Place>& at, const column& left, const column& right, const column& results) {
  with_keys(left, [&]<class Key>(Key) {
    const auto a = span_of<Key>(left), b = span_of<Key>(right);
    const auto found = span_of<bool>(results, a.size());
    without_gil(at, [&](const Place& place) {
      const detail::column_set there(place, b);
      in_parts(place, a.size(), [&](std::size_t first, std::size_t n) {
        there.contains(place, a.subspan(first, n), found.subspan(first, n));
      });
    });
    return true;
  });
}

}  // namespace

template <class Place>
void bind_join(nb::module_& m) {
  m.def("join", &join<Place>);
  m.def("isin", &isin<Place>);
}

template void bind_join<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
