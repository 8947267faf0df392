#pragma once

#include <nanobind/nanobind.h>

#include <cstring>

#include "roost/columns/arrow.hpp"

// Arrow structs in Python capsules.

namespace roost::python {

namespace nb = nanobind;

template <class Struct>
Struct& from_capsule(const nb::handle& capsule, const char* name) {
  auto* const found = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (found == nullptr) throw nb::python_error();
  return *found;
}

/// Throws for what a function of a stream has returned, unless it is 0.
template <class Stream>
void expect_read(arrow_owner<Stream>& from, int error) {
  if (error == 0) return;
  const char* const why = from->get_last_error(from.get());
  detail::raise<roost::error>({"roost: an Arrow column: ", why == nullptr ? std::strerror(error) : why});
}

/// A capsule that owns a struct, and releases it unless it is taken.
template <class Struct>
nb::capsule to_capsule(const Struct& it, const char* name) {
  return {new Struct(it), name, [](void* memory) noexcept {
            auto* const from = static_cast<Struct*>(memory);
            const auto release = [](auto& owned) {
              if (owned.release != nullptr) owned.release(&owned);
            };
            if constexpr (std::is_same_v<Struct, ArrowDeviceArray>) {
              release(from->array);
            } else {
              release(*from);
            }
            delete from;
          }};
}

}  // namespace roost::python
