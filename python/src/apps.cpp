#include "apps.hpp"

#include "place.hpp"

// The module of the applications, called by roost/match.py, roost/solids.py and roost/stars.py. It runs on
// the CPU.

namespace roost::python {

NB_MODULE(_apps, m) {
  nb::set_leak_warnings(false);  // see module.cpp
  nb::register_exception_translator(translate);
  m.def("set_threads", &call_place<host>::set_threads);
  m.def("threads", [] { return call_place<host>::get().threads(); });
  m.def("trim", [] { host_memory_pool::instance().trim(); });
  bind_match(m);
  bind_solids(m);
  bind_stars(m);
}

}  // namespace roost::python
