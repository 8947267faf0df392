#pragma once

#include "columns.hpp"

// What maps that change have in common.

namespace roost::python {

enum class insertion_kind { keep, assign, add };

/// A map of keys and values of any size.
template <class Place>
class changing {
 public:
  using at_place = const call_place<Place>&;
  virtual ~changing() = default;
  /// How many keys are new, and how many found no room.
  virtual nb::tuple insert(at_place at, const column& keys, const column& values, int kind,
                           bool floating) = 0;
  virtual std::size_t erase(at_place at, const column& keys) = 0;
  /// `missing`: one value, in memory of the host.
  virtual void find(at_place at, const column& queries, const column& missing,
                    const column& results) const = 0;
  virtual void contains(at_place at, const column& queries, const column& results) const = 0;
  virtual nb::tuple items(at_place at) const = 0;
  virtual void reserve(at_place at, std::size_t n) = 0;
  virtual void clear(at_place at) = 0;
  virtual std::size_t size(at_place at) const = 0;
  virtual std::size_t capacity() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool valid(at_place at) const = 0;
};

}  // namespace roost::python
