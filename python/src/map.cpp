#include "bind.hpp"
#include "columns.hpp"
#include "roost/frozen_map.hpp"
#include "roost/frozen_set.hpp"

// Maps that are built once, maps from keys to their rows, and sets.

namespace roost::python {
namespace {

/// A frozen_map of keys and values of any size, or a frozen_set.
class map {
 public:
  virtual ~map() = default;
  /// `missing`: one value. `found`: which queries are there, if that is asked.
  virtual void find(std::uintptr_t stream, const input& queries, const input& missing,
                    const output& results) const = 0;
  /// The rows of a map to rows, -1 for absent keys; of 4 or 8 bytes.
  virtual void find_rows(std::uintptr_t stream, const input& queries, const output& results) const = 0;
  virtual void contains(std::uintptr_t stream, const input& queries, const output& results) const = 0;
  virtual std::size_t count_found(std::uintptr_t stream, const input& queries) const = 0;
  /// All keys and their values, or None.
  virtual nb::tuple items(std::uintptr_t stream) const = 0;
  virtual std::size_t size() const = 0;
  virtual std::size_t duplicates() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool valid(std::uintptr_t stream) const = 0;
};

struct row_number {
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return static_cast<std::uint32_t>(i); }
};

template <class Table, class Key, class Value, class Place>
class map_of final : public map {
  static constexpr bool is_set = std::is_same_v<Value, none>;

 public:
  explicit map_of(Table&& table) : table_(std::move(table)) {}

  void find(std::uintptr_t stream, const input& queries, const input& missing,
            const output& results) const override {
    if constexpr (is_set) {
      detail::raise<invalid_argument>({"roost: a set has no values"});
    } else {
      const Place place = current<Place>::get(stream);
      const auto keys = span_of<Key>(queries);
      const auto values = span_of<Value>(results, keys.size());
      Value other;
      memcpy(&other, span_of<Value>(missing).data(), sizeof(Value));
      in_parts<Place>(keys.size(), [&](std::size_t first, std::size_t n) {
        table_.find(place, keys.subspan(first, n), values.subspan(first, n), other);
      });
    }
  }

  void find_rows(std::uintptr_t stream, const input& queries, const output& results) const override {
    if constexpr (std::is_same_v<Value, std::uint32_t>) {
      const Place place = current<Place>::get(stream);
      const auto keys = span_of<Key>(queries);
      if (row_bytes_of(results) == 4) {
        const auto rows = span_of<std::uint32_t>(results, keys.size());
        in_parts<Place>(keys.size(), [&](std::size_t first, std::size_t n) {
          table_.find(place, keys.subspan(first, n), rows.subspan(first, n), ~0u);
        });
      } else {
        const auto rows = span_of<std::int64_t>(results, keys.size());
        in_parts<Place>(keys.size(), [&](std::size_t first, std::size_t n) {
          array<std::uint32_t, Place> narrow(place, n);
          table_.find(place, keys.subspan(first, n), narrow, ~0u);
          place.for_each(n, widen{narrow.data(), rows.data() + first});
        });
      }
    } else {
      detail::raise<invalid_argument>({"roost: a map without rows"});
    }
  }

  void contains(std::uintptr_t stream, const input& queries, const output& results) const override {
    const Place place = current<Place>::get(stream);
    const auto keys = span_of<Key>(queries);
    const auto found = span_of<bool>(results, keys.size());
    in_parts<Place>(keys.size(), [&](std::size_t first, std::size_t n) {
      table_.contains(place, keys.subspan(first, n), found.subspan(first, n));
    });
  }

  std::size_t count_found(std::uintptr_t stream, const input& queries) const override {
    const auto keys = span_of<Key>(queries);
    return without_gil([&] { return table_.count_found(current<Place>::get(stream), keys); });
  }

  nb::tuple items(std::uintptr_t stream) const override {
    const Place place = current<Place>::get(stream);
    array<Key, Place> keys(place, table_.size());
    if constexpr (is_set) {
      without_gil([&] {
        table_.retrieve_all(place, keys);
        place.synchronize();
      });
      return nb::make_tuple(to_python(place, std::move(keys)), nb::none());
    } else {
      array<Value, Place> values(place, table_.size());
      without_gil([&] {
        table_.retrieve_all(place, keys, values);
        place.synchronize();
      });
      return nb::make_tuple(to_python(place, std::move(keys)), to_python(place, std::move(values)));
    }
  }

  std::size_t size() const override { return table_.size(); }
  std::size_t duplicates() const override { return table_.statistics().duplicates; }
  std::size_t bytes() const override { return table_.bytes(); }
  bool valid(std::uintptr_t stream) const override {
    return without_gil([&] { return table_.valid(current<Place>::get(stream)); });
  }

 private:
  Table table_;
};

template <class Key, class Value, class Place, class Table>
std::unique_ptr<map> own(Table&& table) {
  return std::make_unique<map_of<Table, Key, Value, Place>>(std::move(table));
}

template <class Place>
std::unique_ptr<map> make_map(std::uintptr_t stream, const input& keys, const input& values) {
  const Place place = current<Place>::get(stream);
  return with_keys(keys, [&]<class Key>(Key) {
    return with_bytes<4, 8, 16>(row_bytes_of(values), "values", [&]<class Value>(Value) {
      const auto key_column = span_of<Key>(keys);
      const auto value_column = span_of<Value>(values);
      return without_gil([&] {
        return own<Key, Value, Place>(frozen_map<Key, Value, Place>(place, key_column, value_column));
      });
    });
  });
}

/// A map of each key to the row where it comes first.
template <class Place>
std::unique_ptr<map> make_index(std::uintptr_t stream, const input& keys) {
  const Place place = current<Place>::get(stream);
  return with_keys(keys, [&]<class Key>(Key) {
    const auto column = span_of<Key>(keys);
    return without_gil([&] {
      return own<Key, std::uint32_t, Place>(
          frozen_map<Key, std::uint32_t, Place>(place, column, computed(column.size(), row_number())));
    });
  });
}

template <class Place>
std::unique_ptr<map> make_set(std::uintptr_t stream, const input& keys) {
  const Place place = current<Place>::get(stream);
  return with_keys(keys, [&]<class Key>(Key) {
    const auto column = span_of<Key>(keys);
    return without_gil([&] { return own<Key, none, Place>(frozen_set<Key, Place>(place, column)); });
  });
}

}  // namespace

template <class Place>
void bind_map(nb::module_& module) {
  nb::class_<map>(module, "Map")
      .def("find", &map::find)
      .def("find_rows", &map::find_rows)
      .def("contains", &map::contains)
      .def("count_found", &map::count_found)
      .def("items", &map::items)
      .def("size", &map::size)
      .def("duplicates", &map::duplicates)
      .def("bytes", &map::bytes)
      .def("valid", &map::valid);
  module.def("make_map", &make_map<Place>);
  module.def("make_index", &make_index<Place>);
  module.def("make_set", &make_set<Place>);
}

template void bind_map<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
