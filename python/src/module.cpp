#include "bind.hpp"
#include "columns.hpp"

// The module of a place: what roost/*.py calls. Its functions take arrays of words; nobody else calls them.

namespace roost::python {
namespace {

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const out_of_memory& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const file_error& error) {
    PyErr_SetString(PyExc_OSError, error.what());
  } catch (const error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

/// Floats as keys: -0 as 0, all NaNs as one.
template <class T, class Bits>
struct canonical {
  const T* source;
  Bits* target;
  void operator()(std::size_t i) const {
    T value = source[i];
    if (value != value) value = std::numeric_limits<T>::quiet_NaN();
    value += 0;
    memcpy(target + i, &value, sizeof(T));
  }
};

template <class T, class Bits>
void canonical_floats(const input& source, const output& target) {
  const auto values = span_of<T>(source);
  const canonical<T, Bits> make{values.data(), span_of<Bits>(target, values.size()).data()};
  without_gil([&] { current<host>::get().for_each(values.size(), make); });
}

}  // namespace

NB_MODULE(ROOST_PYTHON_MODULE, module) {
  nb::register_exception_translator(translate);
  bind_unique<host>(module);
  bind_join<host>(module);
  bind_map<host>(module);
  bind_partition<host>(module);
  bind_concurrent_map<host>(module);
  bind_strings(module);
  module.def("canonical_floats", [](const input& source, const output& target) {
    if (source.itemsize() == 4) return canonical_floats<float, std::uint32_t>(source, target);
    return canonical_floats<double, std::uint64_t>(source, target);
  });
  module.def("set_threads", [](int threads) { current<host>::set_threads(threads); });
  module.def("threads", [] { return current<host>::get().threads(); });
  module.def("trim", [] { host_memory_pool::instance().trim(); });
}

}  // namespace roost::python
