#include <string>

#include "bind.hpp"
#include "columns.hpp"
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

/// A word that an index error is written to: of pinned memory of the host, for a GPU.
std::uint64_t* word_at(std::uintptr_t address) { return reinterpret_cast<std::uint64_t*>(address); }

/// `rows` and `out`: rows of the same width, of a type.
template <class Place>
void reduce_rows_of(const call_place<Place>& at, const column& ids, const column& rows, const column& out,
                    const char* type, const char* how, bool with_output, double scale, std::uintptr_t wrong) {
  const reduction_options options{
      .how = value_of<row_reduction>(how), .with_output = with_output, .scale = scale};
  with_values(type, [&]<class Value>(Value) {
    with_ids(ids, [&](const auto& numbers) {
      without_gil(at, [&](const Place& place) {
        reduce_rows(place, numbers, numbers_of<const Value>(rows), rows.row_bytes / sizeof(Value),
                    numbers_of<Value>(out), options, word_at(wrong));
      });
    });
  });
}

}  // namespace

template <class Place>
void bind_irregular(nb::module_& m) {
  bind_names<row_reduction>(m, "row_reductions");
  m.def("reduce_rows", &reduce_rows_of<Place>);
}

template void bind_irregular<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
