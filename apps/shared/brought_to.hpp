#pragma once

#include <span>

#include "roost/host.hpp"

namespace roost::tools {

/// Host data that a place can use: the data itself, or a copy.
template <class T>
std::span<const T> brought_to(const host&, std::span<const T> data) {
  return data;
}
template <class T, class Place>
auto brought_to(const Place& place, std::span<const T> data) {
  return copy_to(place, data);
}

}  // namespace roost::tools
