#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "roost/place.hpp"

// Enums that Python knows by names.

namespace roost::python {

template <class Enum>
struct named {
  const char* name;
  Enum value;
};
/// The names of an enum's values in Python, specialised for each enum: there is no other list of them.
template <class Enum>
inline constexpr named<Enum>* names_of = nullptr;

template <class Enum>
Enum value_of(const char* name) {
  for (const auto& each : names_of<Enum>) {
    if (std::string_view(each.name) == name) return each.value;
  }
  detail::raise<invalid_argument>({"roost: no value is called ", name});
}
template <class Enum>
const char* name_of(Enum value) {
  for (const auto& each : names_of<Enum>) {
    if (each.value == value) return each.name;
  }
  return nullptr;
}

/// All names, as a tuple in the module.
template <class Enum>
void bind_names(nanobind::module_& m, const char* list) {
  nanobind::list names;
  for (const auto& each : names_of<Enum>) names.append(each.name);
  m.attr(list) = nanobind::tuple(names);
}

}  // namespace roost::python
