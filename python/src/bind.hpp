#pragma once

#include <nanobind/nanobind.h>

#include "roost/place.hpp"

// The parts of the module of a place, each in its own file: the CPU's module `_host`, or `_cuda`.

#if !defined(ROOST_PYTHON_PLACE)
#define ROOST_PYTHON_PLACE roost::host
#endif

namespace roost::python {

template <class Place>
void bind_place(nanobind::module_& module);
template <class Place>
void bind_rows(nanobind::module_& module);
template <class Place>
void bind_unique(nanobind::module_& module);
template <class Place>
void bind_packing(nanobind::module_& module);
template <class Place>
void bind_arrow(nanobind::module_& module);
template <class Place>
void bind_group_by(nanobind::module_& module);
template <class Place>
void bind_join(nanobind::module_& module);
template <class Place>
void bind_ordered(nanobind::module_& module);
template <class Place>
void bind_multimap(nanobind::module_& module);
template <class Place>
void bind_map(nanobind::module_& module);
template <class Place>
void bind_partition(nanobind::module_& module);
template <class Place>
void bind_concurrent_map(nanobind::module_& module);
template <class Place>
void bind_store(nanobind::module_& module);  // after bind_concurrent_map
template <class Place>
void bind_sparse(nanobind::module_& module);
template <class Place>
void bind_embedding(nanobind::module_& module);
template <class Place>
void bind_irregular(nanobind::module_& module);
template <class Place>
void bind_xla_calls(nanobind::module_& module);
template <class Place>
void bind_distributed(nanobind::module_& module);
template <class Place>
void bind_out_of_core(nanobind::module_& module);  // after bind_unique, bind_join

void bind_strings(nanobind::module_& module);

}  // namespace roost::python
