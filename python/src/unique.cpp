#include "bind.hpp"
#include "distinct.hpp"

// Distinct keys.

namespace roost::python {

template <class Place>
void bind_unique(nb::module_& m) {
  m.def("unique", &unique<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none(), nb::arg().none());
  m.def("duplicated", &duplicated<Place>);
}

template void bind_unique<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
