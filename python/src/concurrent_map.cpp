#include "roost/concurrent_map.hpp"

#include "bind.hpp"
#include "columns.hpp"
#include "roost/functional.hpp"

// Maps that change.

namespace roost::python {
namespace {

enum class insertion_kind { keep, assign, add };

/// A concurrent_map of keys and values of any size.
class concurrent {
 public:
  virtual ~concurrent() = default;
  /// How many keys are new, and how many found no room.
  virtual nb::tuple insert(std::uintptr_t stream, const input& keys, const input& values, int kind,
                           bool floating) = 0;
  virtual std::size_t erase(std::uintptr_t stream, const input& keys) = 0;
  virtual void find(std::uintptr_t stream, const input& queries, const input& missing,
                    const output& results) const = 0;
  virtual void contains(std::uintptr_t stream, const input& queries, const output& results) const = 0;
  virtual nb::tuple items(std::uintptr_t stream) const = 0;
  virtual void reserve(std::uintptr_t stream, std::size_t n) = 0;
  virtual void clear(std::uintptr_t stream) = 0;
  virtual std::size_t size(std::uintptr_t stream) const = 0;
  virtual std::size_t capacity() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool valid(std::uintptr_t stream) const = 0;
};

template <class Key, class Value, class Place>
class concurrent_of final : public concurrent {
 public:
  concurrent_of(const Place& place, std::size_t n, const concurrent_options& options)
      : map_(place, n, options) {}

  nb::tuple insert(std::uintptr_t stream, const input& keys, const input& values, int kind,
                   bool floating) override {
    const Place place = current<Place>::get(stream);
    const auto k = span_of<Key>(keys);
    const auto v = span_of<Value>(values);
    const insert_report report = without_gil([&] {
      switch (static_cast<insertion_kind>(kind)) {
        case insertion_kind::keep:
          return map_.insert(place, k, v);
        case insertion_kind::assign:
          return map_.insert_or_assign(place, k, v);
        case insertion_kind::add:
          break;
      }
      using fraction = std::conditional_t<sizeof(Value) == 4, float, double>;
      if (floating) return map_.insert_or_apply(place, k, v, on_bits<fraction, plus>());
      return map_.insert_or_apply(place, k, v, plus());
    });
    return nb::make_tuple(report.inserted, report.full);
  }
  std::size_t erase(std::uintptr_t stream, const input& keys) override {
    const auto k = span_of<Key>(keys);
    return without_gil([&] { return map_.erase(current<Place>::get(stream), k); });
  }
  void find(std::uintptr_t stream, const input& queries, const input& missing,
            const output& results) const override {
    const auto keys = span_of<Key>(queries);
    const auto values = span_of<Value>(results, keys.size());
    const Value other = *span_of<Value>(missing).data();
    without_gil([&] { map_.find(current<Place>::get(stream), keys, values, other); });
  }
  void contains(std::uintptr_t stream, const input& queries, const output& results) const override {
    const auto keys = span_of<Key>(queries);
    const auto found = span_of<bool>(results, keys.size());
    without_gil([&] { map_.contains(current<Place>::get(stream), keys, found); });
  }
  nb::tuple items(std::uintptr_t stream) const override {
    const Place place = current<Place>::get(stream);
    const std::size_t n = without_gil([&] { return map_.size(place); });
    array<Key, Place> keys(place, n);
    array<Value, Place> values(place, n);
    without_gil([&] {
      map_.retrieve_all(place, keys, values);
      place.synchronize();
    });
    return nb::make_tuple(to_python(place, std::move(keys)), to_python(place, std::move(values)));
  }
  void reserve(std::uintptr_t stream, std::size_t n) override {
    without_gil([&] { map_.reserve(current<Place>::get(stream), n); });
  }
  void clear(std::uintptr_t stream) override {
    without_gil([&] { map_.clear(current<Place>::get(stream)); });
  }
  std::size_t size(std::uintptr_t stream) const override {
    return without_gil([&] { return map_.size(current<Place>::get(stream)); });
  }
  std::size_t capacity() const override { return map_.capacity(); }
  std::size_t bytes() const override { return map_.bytes(); }
  bool valid(std::uintptr_t stream) const override {
    return without_gil([&] { return map_.valid(current<Place>::get(stream)); });
  }

 private:
  concurrent_map<Key, Value, Place> map_;
};

template <class Place>
std::unique_ptr<concurrent> make_concurrent_map(std::uintptr_t stream, std::size_t key_bytes,
                                                std::size_t value_bytes, std::size_t n, double load_factor,
                                                bool grows) {
  const Place place = current<Place>::get(stream);
  const concurrent_options options{.load_factor = load_factor, .grows = grows};
  return with_bytes<4, 8>(key_bytes, "keys of a ConcurrentMap", [&]<class Key>(Key) {
    return with_bytes<4, 8>(value_bytes, "values of a ConcurrentMap", [&]<class Value>(Value) {
      return without_gil([&]() -> std::unique_ptr<concurrent> {
        return std::make_unique<concurrent_of<Key, Value, Place>>(place, n, options);
      });
    });
  });
}

}  // namespace

template <class Place>
void bind_concurrent_map(nb::module_& module) {
  nb::class_<concurrent>(module, "ConcurrentMap")
      .def("insert", &concurrent::insert)
      .def("erase", &concurrent::erase)
      .def("find", &concurrent::find)
      .def("contains", &concurrent::contains)
      .def("items", &concurrent::items)
      .def("reserve", &concurrent::reserve)
      .def("clear", &concurrent::clear)
      .def("size", &concurrent::size)
      .def("capacity", &concurrent::capacity)
      .def("bytes", &concurrent::bytes)
      .def("valid", &concurrent::valid);
  module.def("make_concurrent_map", &make_concurrent_map<Place>);
}

template void bind_concurrent_map<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
