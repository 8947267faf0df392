#include "roost/concurrent_map.hpp"

#include <bit>

#include "bind.hpp"
#include "changing.hpp"
#include "roost/functional.hpp"

// Maps that change.

namespace roost::python {
namespace {

/// Sums of floats that are passed as bits.
template <class Bits>
struct add_fractions {
  using fraction = std::conditional_t<sizeof(Bits) == 4, float, double>;
  ROOST_FN Bits operator()(Bits a, Bits b) const {
    return std::bit_cast<Bits>(std::bit_cast<fraction>(a) + std::bit_cast<fraction>(b));
  }
};

template <class Key, class Value, class Place>
class concurrent_of final : public changing_of<concurrent_map<Key, Value, Place>, Place> {
  using base = changing_of<concurrent_map<Key, Value, Place>, Place>;
  using base::map_;

 public:
  using base::base;
  using typename base::at_place;

  nb::tuple insert(at_place at, const column& keys, const column& values, const char* kind,
                   bool floating) override {
    const auto k = span_of<Key>(keys);
    const auto v = span_of<Value>(values);
    const insert_report report = this->changing_it(at, [&](const Place& place) {
      switch (value_of<insertion_kind>(kind)) {
        case insertion_kind::keep:
          return map_.insert(place, k, v);
        case insertion_kind::assign:
          return map_.insert_or_assign(place, k, v);
        case insertion_kind::add:
          break;
      }
      if (floating) return map_.insert_or_apply(place, k, v, add_fractions<Value>());
      return map_.insert_or_apply(place, k, v, plus());
    });
    return nb::make_tuple(report.inserted, report.full);
  }
  void find(at_place at, const column& queries, const column& missing, const column& results) const override {
    const auto keys = span_of<Key>(queries);
    const auto values = span_of<Value>(results, keys.size());
    const Value other = *span_of<Value>(missing).data();
    this->looking(at, [&](const Place& place) { map_.find(place, keys, values, other); });
  }
};

template <class Place>
std::unique_ptr<changing<Place>> make_concurrent_map(const call_place<Place>& at, std::size_t key_bytes,
                                                     std::size_t value_bytes, std::size_t n,
                                                     double load_factor, bool grows) {
  const concurrent_options options{.load_factor = load_factor, .grows = grows};
  return with_bytes<4, 8>(key_bytes, "keys of a ConcurrentMap", [&]<class Key>(Key) {
    return with_bytes<4, 8>(value_bytes, "values of a ConcurrentMap", [&]<class Value>(Value) {
      return without_gil(at, [&](const Place& place) -> std::unique_ptr<changing<Place>> {
        return std::make_unique<concurrent_of<Key, Value, Place>>(
            place, concurrent_map<Key, Value, Place>(place, n, options));
      });
    });
  });
}

}  // namespace

template <class Place>
void bind_concurrent_map(nb::module_& m) {
  using map = changing<Place>;
  nb::class_<map>(m, "Changing")
      .def("insert", &map::insert)
      .def("erase", &map::erase)
      .def("find", &map::find)
      .def("contains", &map::contains)
      .def("items", &map::items)
      .def("reserve", &map::reserve)
      .def("clear", &map::clear)
      .def("size", &map::size)
      .def("capacity", &map::capacity)
      .def("bytes", &map::bytes)
      .def("valid", &map::valid);
  m.def("make_concurrent_map", &make_concurrent_map<Place>);
}

template void bind_concurrent_map<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
