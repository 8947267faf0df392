#pragma once

#include <filesystem>
#include <string>

#include "changing.hpp"
#include "roost/stadium/stadium_map.hpp"

// Maps of large values, which may be larger than memory of a GPU.

namespace roost::python {

template <class Place>
class store : public changing<Place> {
 public:
  using typename changing<Place>::at_place;
  virtual void shrink_to_fit(at_place at) = 0;
  /// `types`: the types of Python's keys and values.
  virtual void save(at_place at, const std::filesystem::path& file, const std::string& types) const = 0;
  /// Bytes in memory of the place, and in host memory besides.
  virtual nb::tuple where(at_place at) const = 0;
};

/// Makes stores of values of these sizes.
template <class Place, std::size_t... Bytes>
struct stores {
  using at_place = const call_place<Place>&;
  static std::unique_ptr<store<Place>> make(at_place at, std::size_t value_bytes, std::size_t n,
                                            const stadium_options& options);
  static std::unique_ptr<store<Place>> load(at_place at, std::size_t value_bytes,
                                            const std::filesystem::path& file, std::size_t budget,
                                            std::string& types);
};

// Each of these is compiled in its own file, since nvcc takes a minute for it.
template <class Place>
using stores_8 = stores<Place, 8, 16, 32, 64>;
template <class Place>
using stores_128 = stores<Place, 128, 256>;
template <class Place>
using stores_512 = stores<Place, 512, 1024>;
template <class Place>
using stores_2048 = stores<Place, 2048>;
template <class Place>
using stores_4096 = stores<Place, 4096>;

}  // namespace roost::python
