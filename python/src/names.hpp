#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <utility>

#include "roost/place.hpp"

// Enums that Python knows by names.

namespace roost::python {

template <class Enum>
using named = std::pair<const char*, Enum>;
/// The names of an enum's values in Python, specialised for each enum: there is no other list of them.
template <class Enum>
inline constexpr named<Enum>* names_of = nullptr;

template <class Enum>
Enum value_of(const char* name) {
  for (const auto& [known, value] : names_of<Enum>) {
    if (std::string_view(known) == name) return value;
  }
  detail::raise<invalid_argument>({"roost: no value is called ", name});
}
template <class Enum>
const char* name_of(Enum value) {
  for (const auto& [name, known] : names_of<Enum>) {
    if (known == value) return name;
  }
  return nullptr;
}

/// All names, as a tuple in the module.
template <class Enum>
void bind_names(nanobind::module_& m, const char* list) {
  nanobind::list names;
  for (const auto& each : names_of<Enum>) names.append(each.first);
  m.attr(list) = nanobind::tuple(names);
}

}  // namespace roost::python
