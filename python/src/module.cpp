#include "bind.hpp"
#include "columns.hpp"

// The module of a place, called only by roost/*.py. Its functions take arrays of words.

namespace roost::python {
template <>
void bind_place<host>(nb::module_& m) {
  using place = call_place<host>;
  nb::class_<place>(m, "Place").def(nb::init<>());
  m.def("set_threads", &place::set_threads);
  m.def("threads", [] { return place::get().threads(); });
  m.def("trim", [] { host_memory_pool::instance().trim(); });
  bind_strings(m);
}

#if defined(__CUDACC__)

template <>
void bind_place<cuda>(nb::module_& m) {
  using place = call_place<cuda>;
  nb::class_<library_memory>(m, "Memory").def("close", &library_memory::close);
  m.def(
      "make_memory",
      [](int device, nb::callable make) {
        const detail::device_guard guard(device);
        return new library_memory(device, std::move(make));
      },
      nb::rv_policy::reference);
  nb::class_<place>(m, "Place", nb::dynamic_attr())  // dynamic attributes keep a library's stream alive
      .def(nb::init<int, std::uintptr_t, library_memory*, bool>(), nb::arg("device"), nb::arg("stream"),
           nb::arg("memory").none(), nb::arg("waits"));
  m.def("place_with_own_stream", &place::with_own_stream);
  nb::class_<device_bytes>(m, "Bytes")
      .def("view", &device_bytes::view)
      .def_ro("size", &device_bytes::bytes)
      .def_prop_ro("address",
                   [](const device_bytes& it) { return reinterpret_cast<std::uintptr_t>(it.data); });
  m.def("empty", [](const place& at, std::size_t bytes) {
    const detail::device_guard guard(at.get().device());
    return to_python(at, array<std::uint8_t, cuda>(at.get(), bytes));
  });
  m.def("devices", &cuda_devices);
  m.def("trim", [] {
    host_memory_pool::instance().trim();  // this module's own
    for (int device = 0; device < cuda_devices(); ++device) device_memory_pool::of(device).trim();
  });
}

#endif

NB_MODULE(ROOST_PYTHON_MODULE, m) {
  // Objects that others (a test runner, a library's cache) still refer to when Python ends are not leaks.
  // Tests count references and memory.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  bind_names<column_type>(m, "number_types");
  bind_place<ROOST_PYTHON_PLACE>(m);
  bind_rows<ROOST_PYTHON_PLACE>(m);
  bind_unique<ROOST_PYTHON_PLACE>(m);
  bind_packing<ROOST_PYTHON_PLACE>(m);
  bind_arrow<ROOST_PYTHON_PLACE>(m);
  bind_group_by<ROOST_PYTHON_PLACE>(m);
  bind_join<ROOST_PYTHON_PLACE>(m);
  bind_ordered<ROOST_PYTHON_PLACE>(m);
  bind_multimap<ROOST_PYTHON_PLACE>(m);
  bind_map<ROOST_PYTHON_PLACE>(m);
  bind_partition<ROOST_PYTHON_PLACE>(m);
  bind_concurrent_map<ROOST_PYTHON_PLACE>(m);
  bind_store<ROOST_PYTHON_PLACE>(m);
  bind_sparse<ROOST_PYTHON_PLACE>(m);
  bind_embedding<ROOST_PYTHON_PLACE>(m);
  bind_irregular<ROOST_PYTHON_PLACE>(m);
#if defined(ROOST_JAX)
  bind_xla_calls<ROOST_PYTHON_PLACE>(m);
#endif
  bind_distributed<ROOST_PYTHON_PLACE>(m);
  bind_out_of_core<ROOST_PYTHON_PLACE>(m);
}

}  // namespace roost::python
