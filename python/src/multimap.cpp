#include "bind.hpp"
#include "columns.hpp"
#include "roost/frozen_multimap.hpp"

// All values of a key.

namespace roost::python {
namespace {

/// A frozen_multimap of keys and values of any size.
template <class Place>
class multimap {
 public:
  using at_place = const call_place<Place>&;
  virtual ~multimap() = default;
  virtual void count(at_place at, const column& queries, const column& counts) const = 0;
  virtual void contains(at_place at, const column& queries, const column& results) const = 0;
  /// Where the values of each query begin, and the values; or the number of each value's query, and the
  /// values.
  virtual nb::tuple find(at_place at, const column& queries) const = 0;
  virtual nb::tuple find_pairs(at_place at, const column& queries) const = 0;
  virtual nb::tuple items(at_place at) const = 0;
  virtual std::size_t size() const = 0;
  virtual std::size_t key_count() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool valid(at_place at) const = 0;
};

template <class Key, class Value, class Place>
class multimap_of final : public multimap<Place> {
 public:
  using typename multimap<Place>::at_place;
  multimap_of(const Place& place, std::span<const Key> keys, std::span<const Value> values)
      : home_(place), map_(place, keys, values) {}

  void count(at_place at, const column& queries, const column& counts) const override {
    const auto keys = span_of<Key>(queries);
    const auto results = span_of<std::int64_t>(counts, keys.size());
    ask(at, home_, [&](const Place& place) { map_.count(place, keys, results); });
  }
  void contains(at_place at, const column& queries, const column& results) const override {
    const auto keys = span_of<Key>(queries);
    const auto found = span_of<bool>(results, keys.size());
    ask(at, home_, [&](const Place& place) { map_.contains(place, keys, found); });
  }
  nb::tuple find(at_place at, const column& queries) const override {
    const auto keys = span_of<Key>(queries);
    auto all = ask(at, home_, [&](const Place& place) { return map_.retrieve(place, keys); });
    return two(at, std::move(all.offsets), std::move(all.values));
  }
  nb::tuple find_pairs(at_place at, const column& queries) const override {
    const auto keys = span_of<Key>(queries);
    auto all = ask(at, home_, [&](const Place& place) { return map_.retrieve_pairs(place, keys); });
    return two(at, std::move(all.queries), std::move(all.values));
  }
  nb::tuple items(at_place at) const override {
    auto [keys, values] = ask(at, home_, [&](const Place& place) {
      std::pair all(array<Key, Place>(place, map_.size()), array<Value, Place>(place, map_.size()));
      map_.retrieve_all(place, all.first, all.second);
      return all;
    });
    const nb::object all_keys = to_python(at, std::move(keys));
    return nb::make_tuple(all_keys, to_python(at, std::move(values)));
  }
  std::size_t size() const override { return map_.size(); }
  std::size_t key_count() const override { return map_.key_count(); }
  std::size_t bytes() const override { return map_.bytes(); }
  bool valid(at_place at) const override {
    return ask(at, home_, [&](const Place& place) { return map_.valid(place); });
  }

 private:
  static nb::tuple two(at_place at, array<std::uint64_t, Place>&& numbers, array<Value, Place>&& values) {
    const nb::object first = to_python_as<std::int64_t>(at, std::move(numbers));
    return nb::make_tuple(first, to_python(at, std::move(values)));
  }

  Place home_;
  frozen_multimap<Key, Value, Place> map_;
};

template <class Place>
std::unique_ptr<multimap<Place>> make_multimap(const call_place<Place>& at, const column& keys,
                                               const column& values) {
  return with_keys(keys, [&]<class Key>(Key) {
    return with_bytes<4, 8>(values.row_bytes, "values", [&]<class Value>(Value) {
      const auto key_column = span_of<Key>(keys);
      const auto value_column = span_of<Value>(values);
      return without_gil(at, [&](const Place& place) -> std::unique_ptr<multimap<Place>> {
        return std::make_unique<multimap_of<Key, Value, Place>>(place, key_column, value_column);
      });
    });
  });
}

}  // namespace

template <class Place>
void bind_multimap(nb::module_& m) {
  using map = multimap<Place>;
  nb::class_<map>(m, "MultiMap")
      .def("count", &map::count)
      .def("contains", &map::contains)
      .def("find", &map::find)
      .def("find_pairs", &map::find_pairs)
      .def("items", &map::items)
      .def("size", &map::size)
      .def("key_count", &map::key_count)
      .def("bytes", &map::bytes)
      .def("valid", &map::valid);
  m.def("make_multimap", &make_multimap<Place>);
}

template void bind_multimap<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
