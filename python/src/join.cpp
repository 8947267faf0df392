#include "roost/join.hpp"

#include "bind.hpp"
#include "columns.hpp"

// Joins, and all values of a key.

namespace roost::python {
namespace {

enum class join_kind { inner, left, semi, anti };

/// Numbers of left rows, and of the right rows that belong to them, or None.
template <class Place>
nb::tuple join(std::uintptr_t stream, const input& left, const input& right, int how, bool wide) {
  const Place place = current<Place>::get(stream);
  return with_keys(left, [&]<class Key>(Key) {
    const auto a = span_of<Key>(left), b = span_of<Key>(right);
    const auto kind = static_cast<join_kind>(how);
    if (kind == join_kind::semi || kind == join_kind::anti) {
      auto rows = without_gil([&] {
        return kind == join_kind::semi ? semi_join<std::uint32_t>(place, a, b)
                                       : anti_join<std::uint32_t>(place, a, b);
      });
      return nb::make_tuple(rows_to_python(place, std::move(rows), wide), nb::none());
    }
    auto rows = without_gil([&] {
      return kind == join_kind::inner ? inner_join<std::uint32_t>(place, a, b)
                                      : left_join<std::uint32_t>(place, a, b);
    });
    const nb::object left_rows = rows_to_python(place, std::move(rows.left), wide);
    return nb::make_tuple(left_rows, rows_to_python(place, std::move(rows.right), wide));
  });
}

/// found[i] = whether left[i] is one of right.
template <class Place>
void isin(std::uintptr_t stream, const input& left, const input& right, const output& results) {
  const Place place = current<Place>::get(stream);
  with_keys(left, [&]<class Key>(Key) {
    const auto a = span_of<Key>(left), b = span_of<Key>(right);
    const auto found = span_of<bool>(results, a.size());
    const auto there = without_gil([&] { return detail::set_of_keys(place, b); });
    in_parts<Place>(a.size(), [&](std::size_t first, std::size_t n) {
      there.contains(place, a.subspan(first, n), found.subspan(first, n));
    });
    return true;
  });
}

/// A frozen_multimap of keys and values of any size.
class multimap {
 public:
  virtual ~multimap() = default;
  virtual void count(std::uintptr_t stream, const input& queries, const output& counts) const = 0;
  virtual void contains(std::uintptr_t stream, const input& queries, const output& results) const = 0;
  /// Where the values of each query begin, and the values; or the number of each value's query, and the
  /// values.
  virtual nb::tuple find(std::uintptr_t stream, const input& queries) const = 0;
  virtual nb::tuple find_pairs(std::uintptr_t stream, const input& queries) const = 0;
  virtual nb::tuple items(std::uintptr_t stream) const = 0;
  virtual std::size_t size() const = 0;
  virtual std::size_t key_count() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool valid(std::uintptr_t stream) const = 0;
};

template <class Key, class Value, class Place>
class multimap_of final : public multimap {
 public:
  multimap_of(const Place& place, std::span<const Key> keys, std::span<const Value> values)
      : map_(place, keys, values) {}

  void count(std::uintptr_t stream, const input& queries, const output& counts) const override {
    const auto keys = span_of<Key>(queries);
    const auto results = span_of<std::int64_t>(counts, keys.size());
    without_gil([&] { map_.count(current<Place>::get(stream), keys, results); });
  }
  void contains(std::uintptr_t stream, const input& queries, const output& results) const override {
    const auto keys = span_of<Key>(queries);
    const auto found = span_of<bool>(results, keys.size());
    without_gil([&] { map_.contains(current<Place>::get(stream), keys, found); });
  }
  nb::tuple find(std::uintptr_t stream, const input& queries) const override {
    const Place place = current<Place>::get(stream);
    const auto keys = span_of<Key>(queries);
    auto all = without_gil([&] { return map_.retrieve(place, keys); });
    return two(place, std::move(all.offsets), std::move(all.values));
  }
  nb::tuple find_pairs(std::uintptr_t stream, const input& queries) const override {
    const Place place = current<Place>::get(stream);
    const auto keys = span_of<Key>(queries);
    auto all = without_gil([&] { return map_.retrieve_pairs(place, keys); });
    return two(place, std::move(all.queries), std::move(all.values));
  }
  nb::tuple items(std::uintptr_t stream) const override {
    const Place place = current<Place>::get(stream);
    array<Key, Place> keys(place, map_.size());
    array<Value, Place> values(place, map_.size());
    without_gil([&] {
      map_.retrieve_all(place, keys, values);
      place.synchronize();
    });
    return nb::make_tuple(to_python(place, std::move(keys)), to_python(place, std::move(values)));
  }
  std::size_t size() const override { return map_.size(); }
  std::size_t key_count() const override { return map_.key_count(); }
  std::size_t bytes() const override { return map_.bytes(); }
  bool valid(std::uintptr_t stream) const override {
    return without_gil([&] { return map_.valid(current<Place>::get(stream)); });
  }

 private:
  static nb::tuple two(const Place& place, array<std::uint64_t, Place>&& numbers,
                       array<Value, Place>&& values) {
    const nb::object first = to_python_as<std::int64_t>(place, std::move(numbers));
    return nb::make_tuple(first, to_python(place, std::move(values)));
  }

  frozen_multimap<Key, Value, Place> map_;
};

template <class Place>
std::unique_ptr<multimap> make_multimap(std::uintptr_t stream, const input& keys, const input& values) {
  const Place place = current<Place>::get(stream);
  return with_keys(keys, [&]<class Key>(Key) {
    return with_bytes<4, 8>(row_bytes_of(values), "values", [&]<class Value>(Value) {
      const auto key_column = span_of<Key>(keys);
      const auto value_column = span_of<Value>(values);
      return without_gil([&]() -> std::unique_ptr<multimap> {
        return std::make_unique<multimap_of<Key, Value, Place>>(place, key_column, value_column);
      });
    });
  });
}

}  // namespace

template <class Place>
void bind_join(nb::module_& module) {
  module.def("join", &join<Place>);
  module.def("isin", &isin<Place>);
  nb::class_<multimap>(module, "MultiMap")
      .def("count", &multimap::count)
      .def("contains", &multimap::contains)
      .def("find", &multimap::find)
      .def("find_pairs", &multimap::find_pairs)
      .def("items", &multimap::items)
      .def("size", &multimap::size)
      .def("key_count", &multimap::key_count)
      .def("bytes", &multimap::bytes)
      .def("valid", &multimap::valid);
  module.def("make_multimap", &make_multimap<Place>);
}

template void bind_join<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
