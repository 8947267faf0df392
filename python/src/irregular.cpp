#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bind.hpp"
#include "columns.hpp"
#include "roost/ids/group_ids.hpp"
#include "roost/ids/reduce_rows.hpp"

// What the operators of roost.torch on rows by number and on ids call.

namespace roost::python {

template <>
inline constexpr named<row_reduction> names_of<row_reduction>[] = {{"sum", row_reduction::sum},
                                                                   {"mean", row_reduction::mean},
                                                                   {"prod", row_reduction::product},
                                                                   {"amin", row_reduction::least},
                                                                   {"amax", row_reduction::greatest}};

namespace {

template <class F>
void with_ids(const column& ids, const F& f) {
  if (ids.row_bytes == 4) return f(span_of<std::int32_t>(ids));
  f(span_of<std::int64_t>(ids));
}

/// Numbers that can be reduced, by their type's name in torch.
template <class F>
void with_values(const std::string& type, const F& f) {
  if (type == "float32") return f(float());
  if (type == "float64") return f(double());
  if (type == "float16") return f(float16());
  if (type == "bfloat16") return f(bfloat16());
  if (type == "int32") return f(std::int32_t());
  if (type == "int64") return f(std::int64_t());
  detail::raise<invalid_argument>({"roost: rows of type ", type});
}

template <class T>
std::span<T> numbers_of(const column& all) {
  return {reinterpret_cast<T*>(all.data), all.rows * all.row_bytes / sizeof(T)};
}

/// A word that errors are written to, or null: of pinned memory of the host, for a GPU.
std::uint64_t* word_at(std::uintptr_t address) { return reinterpret_cast<std::uint64_t*>(address); }

void expect_same_width(const column& rows, const column& out) {
  if (rows.row_bytes != out.row_bytes)
    detail::raise<invalid_argument>(
        {"roost: rows of ", rows.row_bytes, " bytes into rows of ", out.row_bytes, "; give equal ones"});
}

/// `rows` and `out`: rows of the same width, of a type.
template <class Place>
void reduce_rows_of(const call_place<Place>& at, const column& ids, const column& rows, const column& out,
                    const char* type, const char* how, bool with_output, double scale, std::uintptr_t wrong) {
  const reduction_options options{.how = value_of<row_reduction>(how),
                                  .with_output = with_output,
                                  .scale = scale,
                                  .wrong = word_at(wrong)};
  expect_same_width(rows, out);
  with_values(type, [&]<class Value>(Value) {
    with_ids(ids, [&](const auto& numbers) {
      without_gil(at, [&](const Place& place) {
        reduce_rows(place, numbers, numbers_of<const Value>(rows), rows.row_bytes / sizeof(Value),
                    numbers_of<Value>(out), options);
      });
    });
  });
}

/// The same for rows that group_keys has grouped.
template <class Place>
void reduce_grouped_rows_of(const call_place<Place>& at, const column& sorted, const column& rows,
                            const column& out, const char* type, const char* how, bool ascending) {
  const reduction_options options{
      .how = value_of<row_reduction>(how), .with_output = false, .ascending = ascending};
  expect_same_width(rows, out);
  with_values(type, [&]<class Value>(Value) {
    without_gil(at, [&](const Place& place) {
      reduce_grouped_rows(place, numbers_of<const grouped_position>(sorted), numbers_of<const Value>(rows),
                          rows.row_bytes / sizeof(Value), numbers_of<Value>(out), options);
    });
  });
}

/// Where results are written; columns without rows are not wanted. `size`: one number.
distinct_ids distinct_of(const column& keys, std::int64_t fill, const column& size, std::uintptr_t too_many,
                         const column& inverse, const column& first, const column& counts) {
  const auto wanted = [](const column& all) {
    return all.data == nullptr ? nullptr : reinterpret_cast<std::int64_t*>(all.data);
  };
  return {.keys = wanted(keys),
          .limit = std::max({keys.rows, first.rows, counts.rows}),
          .fill = fill,
          .size = span_of<std::uint64_t>(size, 1).data(),
          .too_many = word_at(too_many),
          .inverse = wanted(inverse),
          .first = wanted(first),
          .counts = wanted(counts)};
}

template <class Place>
void unique_ids_of(const call_place<Place>& at, const column& ids, const column& keys, std::int64_t fill,
                   const column& size, std::uintptr_t too_many, const column& inverse, const column& first,
                   const column& counts) {
  const distinct_ids result = distinct_of(keys, fill, size, too_many, inverse, first, counts);
  const auto numbers = span_of<std::int64_t>(ids);
  without_gil(at, [&](const Place& place) { unique_ids(place, numbers, result); });
}

/// `sorted`: a column of pairs of numbers of 4 bytes, or empty.
template <class Place>
void group_keys_of(const call_place<Place>& at, const column& ids, const column& keys, std::int64_t fill,
                   const column& size, std::uintptr_t too_many, const column& inverse, const column& first,
                   const column& counts, const column& sorted, std::uint32_t bits) {
  const distinct_ids result = distinct_of(keys, fill, size, too_many, inverse, first, counts);
  const auto numbers = span_of<std::int64_t>(ids);
  auto* const groups =
      sorted.data == nullptr ? nullptr : span_of<grouped_position>(sorted, numbers.size()).data();
  without_gil(at, [&](const Place& place) { group_keys(place, numbers, result, groups, bits); });
}

template <class Place>
void find_ids_of(const call_place<Place>& at, const column& ids, const column& queries,
                 const column& positions, std::int64_t missing) {
  without_gil(at, [&](const Place& place) {
    find_ids(place, span_of<std::int64_t>(ids), span_of<std::int64_t>(queries),
             span_of<std::int64_t>(positions, queries.rows), missing);
  });
}

/// `inverse`: where each id comes in `order`, or an empty column.
template <class Place>
void group_ids_of(const call_place<Place>& at, const column& ids, const column& order, const column& offsets,
                  std::uintptr_t wrong, const column& inverse) {
  auto* const places = inverse.data == nullptr ? nullptr : span_of<std::int64_t>(inverse, ids.rows).data();
  with_ids(ids, [&](const auto& numbers) {
    without_gil(at, [&](const Place& place) {
      group_ids(place, numbers, offsets.rows - 1,
                {span_of<std::int64_t>(order, ids.rows).data(),
                 span_of<std::int64_t>(offsets, offsets.rows).data(), places, word_at(wrong)});
    });
  });
}

/// Cells of a tensor by their indices, some dimensions at a time.
struct some_dimensions {
  static constexpr std::size_t most = 6;
  std::size_t count = 0;
  std::int64_t size[most] = {};

  some_dimensions(const std::vector<std::int64_t>& sizes, std::size_t first)
      : count(std::min(most, sizes.size() - first)) {
    std::copy_n(sizes.begin() + static_cast<std::ptrdiff_t>(first), count, size);
  }
};

/// cells[i] = the number of the cell with indices[0][i], indices[1][i] ..., in the order of rows; of wrong
/// ones 0, and they are noted.
struct number_cell {
  some_dimensions sizes;
  const std::int64_t* indices;  // of the first of these dimensions
  std::size_t n;
  bool goes_on;  // cells have the numbers of the dimensions before
  std::int64_t* cells;
  std::uint64_t* wrong;

  ROOST_FN void operator()(std::size_t i) const {
    std::int64_t cell = goes_on ? cells[i] : 0;
    for (std::size_t d = 0; d < sizes.count; ++d) {
      const std::int64_t index = indices[d * n + i];
      const bool right = static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(sizes.size[d]);
      if (!right) detail::note_wrong_id(wrong, i);
      cell = right ? cell * sizes.size[d] + index : 0;
    }
    cells[i] = cell;
  }
};

/// The way back; the last dimensions come first.
struct split_cell {
  some_dimensions sizes;
  std::int64_t* indices;
  std::size_t n;
  std::int64_t* cells;  // become the numbers in the dimensions before

  ROOST_FN void operator()(std::size_t i) const {
    std::int64_t rest = cells[i];
    for (std::size_t d = sizes.count; d-- > 0;) {
      const std::int64_t more = rest / sizes.size[d];
      indices[d * n + i] = rest - more * sizes.size[d];
      rest = more;
    }
    cells[i] = rest;
  }
};

/// `indices`: a row for each dimension. `wrong`: a word, 0 before; ~i for a column i that is wrong.
template <class Place>
void number_cells(const call_place<Place>& at, const column& indices, const std::vector<std::int64_t>& sizes,
                  const column& cells, const column& wrong) {
  const auto numbers = span_of<std::int64_t>(cells, cells.rows);
  auto* const all = span_of<std::int64_t>(indices, sizes.size() * numbers.size()).data();
  auto* const word = span_of<std::uint64_t>(wrong, 1).data();
  without_gil(at, [&](const Place& place) {
    for (std::size_t d = 0; d < sizes.size(); d += some_dimensions::most) {
      place.for_each(
          numbers.size(),
          number_cell{{sizes, d}, all + d * numbers.size(), numbers.size(), d != 0, numbers.data(), word});
    }
  });
}

template <class Place>
void split_cells(const call_place<Place>& at, const column& cells, const std::vector<std::int64_t>& sizes,
                 const column& indices) {
  const auto numbers = span_of<std::int64_t>(cells, cells.rows);
  auto* const all = span_of<std::int64_t>(indices, sizes.size() * numbers.size()).data();
  without_gil(at, [&](const Place& place) {
    for (std::size_t end = sizes.size(); end > 0;) {
      const std::size_t d = (end - 1) / some_dimensions::most * some_dimensions::most;
      place.for_each(numbers.size(),
                     split_cell{{sizes, d}, all + d * numbers.size(), numbers.size(), numbers.data()});
      end = d;
    }
  });
}

}  // namespace

template <class Place>
void bind_irregular(nb::module_& m) {
  bind_names<row_reduction>(m, "row_reductions");
  m.def("reduce_rows", &reduce_rows_of<Place>);
  m.def("reduce_grouped_rows", &reduce_grouped_rows_of<Place>);
  m.def("unique_ids", &unique_ids_of<Place>);
  m.def("group_keys", &group_keys_of<Place>);
  m.def("find_ids", &find_ids_of<Place>);
  m.def("group_ids", &group_ids_of<Place>);
  m.def("number_cells", &number_cells<Place>);
  m.def("split_cells", &split_cells<Place>);
}

template void bind_irregular<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
