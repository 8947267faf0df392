#pragma once

#include <nanobind/nanobind.h>

// The parts of the module `_apps`, each in its own file.

namespace roost::python {

void bind_match(nanobind::module_& module);
void bind_solids(nanobind::module_& module);
void bind_stars(nanobind::module_& module);

}  // namespace roost::python
