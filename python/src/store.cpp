#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>

#include "bind.hpp"
#include "changing.hpp"
#include "roost/stadium_file.hpp"

// Maps of large values, which may be larger than memory of a GPU.

namespace roost::python {
namespace {

template <class Place>
class store : public changing<Place> {
 public:
  using typename changing<Place>::at_place;
  virtual void shrink_to_fit(at_place at) = 0;
  virtual void save(at_place at, const std::filesystem::path& file) const = 0;
  /// Bytes in memory of the place, and in memory of the host behind it.
  virtual nb::tuple where(at_place at) const = 0;
};

/// The rows of absent keys, by words.
struct fill_row {
  const bool* found;
  const std::uint64_t* missing;
  std::uint64_t* target;
  std::uint32_t words;  // of a row
  ROOST_FN void operator()(std::size_t i) const {
    if (!found[i / words]) target[i] = missing[i % words];
  }
};

template <class Value, class Place>
class store_of final : public store<Place> {
  using key = std::uint64_t;
  using map = stadium_map<key, Value, Place>;

 public:
  using typename store<Place>::at_place;
  store_of(const Place& place, map&& table) : home_(place), map_(std::move(table)) {}

  nb::tuple insert(at_place at, const column& keys, const column& values, int kind, bool) override {
    const auto k = span_of<key>(keys);
    const auto v = span_of<Value>(values);
    std::size_t inserted = 0, full = 0;
    change(at, home_, [&](const Place& place) {
      in_parts(place, k.size(), [&](std::size_t first, std::size_t n) {
        const auto some = k.subspan(first, n);
        const auto theirs = v.subspan(first, n);
        const auto report = static_cast<insertion_kind>(kind) == insertion_kind::assign
                                ? map_.insert_or_assign(place, some, theirs)
                                : map_.insert(place, some, theirs);
        inserted += report.inserted;
        full += report.full;
      });
    });
    return nb::make_tuple(inserted, full);
  }
  std::size_t erase(at_place at, const column& keys) override {
    const auto k = span_of<key>(keys);
    return change(at, home_, [&](const Place& place) { return map_.erase(place, k); });
  }
  void find(at_place at, const column& queries, const column& missing, const column& results) const override {
    const auto keys = span_of<key>(queries);
    const auto values = span_of<Value>(results, keys.size());
    constexpr std::size_t words = sizeof(Value) / sizeof(std::uint64_t);
    const auto other = span_of<Value>(missing);
    change(at, home_, [&](const Place& place) {
      array<std::uint64_t, Place> row(place, words);
      place.copy_from_host(row.data(), other.data(), sizeof(Value));
      in_parts(place, keys.size(), [&](std::size_t first, std::size_t n) {
        array<bool, Place> found(place, n);
        map_.find(place, keys.subspan(first, n), values.subspan(first, n), found);
        place.for_each(n * words, fill_row{found.data(), row.data(),
                                           reinterpret_cast<std::uint64_t*>(values.data() + first), words});
      });
    });
  }
  void contains(at_place at, const column& queries, const column& results) const override {
    const auto keys = span_of<key>(queries);
    const auto found = span_of<bool>(results, keys.size());
    change(at, home_, [&](const Place& place) { map_.contains(place, keys, found); });
  }
  nb::tuple items(at_place at) const override {
    auto [keys, values] = change(at, home_, [&](const Place& place) {
      const std::size_t n = map_.size(place);
      std::pair all(array<key, Place>(place, n), array<Value, Place>(place, n));
      map_.retrieve_all(place, all.first, all.second);
      return all;
    });
    const nb::object all_keys = to_python(at, std::move(keys));
    return nb::make_tuple(all_keys, to_python(at, std::move(values)));
  }
  void reserve(at_place at, std::size_t n) override {
    change(at, home_, [&](const Place& place) { map_.reserve(place, n); });
  }
  void shrink_to_fit(at_place at) override {
    change(at, home_, [&](const Place& place) { map_.shrink_to_fit(place); });
  }
  void clear(at_place at) override {
    change(at, home_, [&](const Place& place) { map_.clear(place); });
  }
  std::size_t size(at_place at) const override {
    return change(at, home_, [&](const Place& place) { return map_.size(place); });
  }
  std::size_t capacity() const override { return map_.capacity(); }
  std::size_t bytes() const override { return map_.bytes(); }
  bool valid(at_place at) const override {
    return change(at, home_, [&](const Place& place) { return map_.valid(place); });
  }
  void save(at_place at, const std::filesystem::path& file) const override {
    change(at, home_, [&](const Place& place) { roost::save(place, map_, file); });
  }
  nb::tuple where(at_place at) const override {
    const auto facts = change(at, home_, [&](const Place& place) { return map_.statistics(place); });
    return nb::make_tuple(facts.board_bytes + facts.place_bytes, facts.host_bytes);
  }

 private:
  Place home_;
  map map_;
};

/// f(Value()) with values of so many bytes.
template <class F>
auto with_values(std::size_t bytes, const F& f) {
  return with_bytes<8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096>(bytes, "values of a Store", f);
}

template <class Place>
std::unique_ptr<store<Place>> make_store(const call_place<Place>& at, std::size_t value_bytes, std::size_t n,
                                         double load_factor, std::optional<std::size_t> budget) {
  stadium_options options{.load_factor = load_factor};
  if (budget) options.budget = *budget;
  return with_values(value_bytes, [&]<class Value>(Value) {
    return without_gil(at, [&](const Place& place) -> std::unique_ptr<store<Place>> {
      return std::make_unique<store_of<Value, Place>>(
          place, stadium_map<std::uint64_t, Value, Place>(place, n, options));
    });
  });
}

template <class Place>
std::unique_ptr<store<Place>> load_store(const call_place<Place>& at, std::size_t value_bytes,
                                         const std::filesystem::path& file,
                                         std::optional<std::size_t> budget) {
  return with_values(value_bytes, [&]<class Value>(Value) {
    return without_gil(at, [&](const Place& place) -> std::unique_ptr<store<Place>> {
      return std::make_unique<store_of<Value, Place>>(
          place, load_stadium_map<std::uint64_t, Value>(place, file, residence::automatic,
                                                        budget.value_or(~std::size_t{0})));
    });
  });
}

}  // namespace

template <class Place>
void bind_store(nb::module_& m) {
  using map = store<Place>;
  nb::class_<map, changing<Place>>(m, "Store")
      .def("shrink_to_fit", &map::shrink_to_fit)
      .def("save", &map::save)
      .def("where", &map::where);
  m.def("make_store", &make_store<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  m.def("load_store", &load_store<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
}

template void bind_store<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
