#include "bind.hpp"
#include "columns.hpp"
#include "roost/frozen_map.hpp"
#include "roost/frozen_set.hpp"

// Maps that are built once, maps from keys to their rows, and sets.

namespace roost::python {
namespace {

/// A frozen_map of keys and values of any size, or a frozen_set.
template <class Place>
class map {
 public:
  using at_place = const call_place<Place>&;
  virtual ~map() = default;
  /// `missing`: one value, in memory of the host.
  virtual void find(at_place at, const column& queries, const column& missing,
                    const column& results) const = 0;
  /// For a map to rows: the rows of keys, -1 for absent ones; of 4 or 8 bytes.
  virtual void find_rows(at_place at, const column& queries, const column& results) const = 0;
  virtual void contains(at_place at, const column& queries, const column& results) const = 0;
  virtual std::size_t count_found(at_place at, const column& queries) const = 0;
  /// All keys and their values, or None.
  virtual nb::tuple items(at_place at) const = 0;
  virtual std::size_t size() const = 0;
  virtual std::size_t duplicates() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool valid(at_place at) const = 0;
};

template <class Table, class Key, class Value, class Place>
class map_of final : public map<Place> {
  static constexpr bool is_set = std::is_same_v<Value, none>;

 public:
  using typename map<Place>::at_place;
  map_of(const Place& home, Table&& table) : home_(home), table_(std::move(table)) {}

  void find(at_place at, const column& queries, const column& missing, const column& results) const override {
    if constexpr (is_set) {
      detail::raise<invalid_argument>({"roost: a set has no values"});
    } else {
      const auto keys = span_of<Key>(queries);
      const auto values = span_of<Value>(results, keys.size());
      Value other;
      memcpy(&other, span_of<Value>(missing).data(), sizeof(Value));
      ask(at, home_, [&](const Place& place) {
        in_parts(place, keys.size(), [&](std::size_t first, std::size_t n) {
          table_.find(place, keys.subspan(first, n), values.subspan(first, n), other);
        });
      });
    }
  }

  void find_rows(at_place at, const column& queries, const column& results) const override {
    if constexpr (std::is_same_v<Value, std::uint32_t>) {
      const auto keys = span_of<Key>(queries);
      ask(at, home_, [&](const Place& place) {
        if (results.row_bytes == 4) {
          const auto rows = span_of<std::uint32_t>(results, keys.size());
          return in_parts(place, keys.size(), [&](std::size_t first, std::size_t n) {
            table_.find(place, keys.subspan(first, n), rows.subspan(first, n), ~0u);
          });
        }
        const auto rows = span_of<std::int64_t>(results, keys.size());
        in_parts(place, keys.size(), [&](std::size_t first, std::size_t n) {
          array<std::uint32_t, Place> narrow(place, n);
          table_.find(place, keys.subspan(first, n), narrow, ~0u);
          place.for_each(n, widen{narrow.data(), rows.data() + first});
        });
      });
    } else {
      detail::raise<invalid_argument>({"roost: a map without rows"});
    }
  }

  void contains(at_place at, const column& queries, const column& results) const override {
    const auto keys = span_of<Key>(queries);
    const auto found = span_of<bool>(results, keys.size());
    ask(at, home_, [&](const Place& place) {
      in_parts(place, keys.size(), [&](std::size_t first, std::size_t n) {
        table_.contains(place, keys.subspan(first, n), found.subspan(first, n));
      });
    });
  }

  std::size_t count_found(at_place at, const column& queries) const override {
    const auto keys = span_of<Key>(queries);
    return ask(at, home_, [&](const Place& place) { return table_.count_found(place, keys); });
  }

  nb::tuple items(at_place at) const override {
    if constexpr (is_set) {
      auto keys = ask(at, home_, [&](const Place& place) {
        array<Key, Place> all(place, table_.size());
        table_.retrieve_all(place, all);
        return all;
      });
      return nb::make_tuple(to_python(at, std::move(keys)), nb::none());
    } else {
      auto [keys, values] = ask(at, home_, [&](const Place& place) {
        std::pair all(array<Key, Place>(place, table_.size()), array<Value, Place>(place, table_.size()));
        table_.retrieve_all(place, all.first, all.second);
        return all;
      });
      const nb::object all_keys = to_python(at, std::move(keys));
      return nb::make_tuple(all_keys, to_python(at, std::move(values)));
    }
  }

  std::size_t size() const override { return table_.size(); }
  std::size_t duplicates() const override { return table_.statistics().duplicates; }
  std::size_t bytes() const override { return table_.bytes(); }
  bool valid(at_place at) const override {
    return ask(at, home_, [&](const Place& place) { return table_.valid(place); });
  }

 private:
  Place home_;
  Table table_;
};

template <class Key, class Value, class Place, class Table>
std::unique_ptr<map<Place>> own(const Place& place, Table&& table) {
  return std::make_unique<map_of<Table, Key, Value, Place>>(place, std::move(table));
}

/// Values in memory or, without values, the numbers of rows, so that the same code builds an index and a map
/// of such values.
struct value_or_row {
  const std::uint32_t* values;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    return values == nullptr ? static_cast<std::uint32_t>(i) : values[i];
  }
};

template <class Key, class Value, class Place, class Values>
std::unique_ptr<map<Place>> map_with(const call_place<Place>& at, std::span<const Key> keys,
                                     const Values& values) {
  return without_gil(at, [&](const Place& place) {
    return own<Key, Value>(place, frozen_map<Key, Value, Place>(place, keys, values));
  });
}

template <class Place>
std::unique_ptr<map<Place>> make_map(const call_place<Place>& at, const column& keys, const column& values) {
  return with_keys(keys, [&]<class Key>(Key) {
    return with_bytes<4, 8, 16>(values.row_bytes, "values", [&]<class Value>(Value) {
      const auto all = span_of<Value>(values);
      if constexpr (std::is_same_v<Value, std::uint32_t>) {
        return map_with<Key, Value>(at, span_of<Key>(keys), computed(all.size(), value_or_row{all.data()}));
      } else {
        return map_with<Key, Value>(at, span_of<Key>(keys), all);
      }
    });
  });
}

/// A map from each key to the row where it first occurs.
template <class Place>
std::unique_ptr<map<Place>> make_index(const call_place<Place>& at, const column& keys) {
  return with_keys(keys, [&]<class Key>(Key) {
    return map_with<Key, std::uint32_t>(at, span_of<Key>(keys), computed(keys.rows, value_or_row{nullptr}));
  });
}

template <class Place>
std::unique_ptr<map<Place>> make_set(const call_place<Place>& at, const column& keys) {
  return with_keys(keys, [&]<class Key>(Key) {
    const auto column = span_of<Key>(keys);
    return without_gil(
        at, [&](const Place& place) { return own<Key, none>(place, frozen_set<Key, Place>(place, column)); });
  });
}

}  // namespace

template <class Place>
void bind_map(nb::module_& m) {
  using table = map<Place>;
  nb::class_<table>(m, "Map")
      .def("find", &table::find)
      .def("find_rows", &table::find_rows)
      .def("contains", &table::contains)
      .def("count_found", &table::count_found)
      .def("items", &table::items)
      .def("size", &table::size)
      .def("duplicates", &table::duplicates)
      .def("bytes", &table::bytes)
      .def("valid", &table::valid);
  m.def("make_map", &make_map<Place>);
  m.def("make_index", &make_index<Place>);
  m.def("make_set", &make_set<Place>);
}

template void bind_map<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
