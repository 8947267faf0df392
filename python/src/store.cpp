#include "store.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bind.hpp"

namespace roost::python {
namespace {

/// f(the maker of stores for values of this size).
template <class Place, class F>
auto with_stores(std::size_t value_bytes, const F& f) {
  if (value_bytes <= 64) return f(stores_8<Place>());
  if (value_bytes <= 256) return f(stores_128<Place>());
  if (value_bytes <= 1024) return f(stores_512<Place>());
  if (value_bytes <= 2048) return f(stores_2048<Place>());
  return f(stores_4096<Place>());
}

template <class Place>
std::unique_ptr<store<Place>> make_store(const call_place<Place>& at, std::size_t value_bytes, std::size_t n,
                                         double load_factor, std::optional<std::size_t> budget) {
  stadium_options options{.load_factor = load_factor};
  if (budget) options.budget = *budget;
  return with_stores<Place>(value_bytes, [&](auto of) { return of.make(at, value_bytes, n, options); });
}

/// The store in a file, and the types that were saved with it, if any.
template <class Place>
nb::tuple load_store(const call_place<Place>& at, std::size_t value_bytes, const std::filesystem::path& file,
                     std::optional<std::size_t> budget, std::string types) {
  auto loaded = with_stores<Place>(value_bytes, [&](auto of) {
    return of.load(at, value_bytes, file, budget.value_or(stadium_options().budget), types);
  });
  return nb::make_tuple(std::move(loaded), types);
}

}  // namespace

template <class Place>
void bind_store(nb::module_& m) {
  using map = store<Place>;
  nb::class_<map, changing<Place>>(m, "Store")
      .def("shrink_to_fit", &map::shrink_to_fit)
      .def("save", &map::save)
      .def("where", &map::where);
  m.def("make_store", &make_store<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  m.def("load_store", &load_store<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
}

template void bind_store<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
