#include "bind.hpp"
#include "grouping.hpp"

// Rows by their keys, of any size.

namespace roost::python {
namespace {

/// The number of each group among keys in ascending order of their hashes.
template <class Key>
struct number_by_hash {
  const Key* keys;
  std::size_t size;
  const Key* groups;
  std::uint32_t* numbers;
  ROOST_FN void operator()(std::size_t group) const {
    const auto mine = hash_of(groups[group], 0);
    numbers[group] = static_cast<std::uint32_t>(
        detail::lower_bound(std::size_t{0}, size, [&](std::size_t i) { return hash_of(keys[i], 0) < mine; }));
  }
};

template <class Key, class Place>
class grouping_of final : public grouping<Place> {
  static constexpr const char* where = "roost.group_by";

 public:
  using typename grouping<Place>::at_place;

  grouping_of(const Place& place, std::span<const Key> keys)
      : grouping<Place>(place, keys.size()), keys_(place, keys.size()) {
    place.for_each(keys.size(), copy_of(keys.data(), keys_.data()));
  }

  nb::object keys(at_place at) override {
    auto all = this->alone(at, [&](const Place& place) {
      if (!this->numbered_) group(place);
      if (distinct_.size() != this->size_) detail::raise<error>({where, ": the keys were taken before"});
      if (this->grouped_) return output<Key, Place>(at, std::move(distinct_));
      output<Key, Place> result(at, place, this->size_);
      place.for_each(this->size_, copy_of(distinct_.data(), result.data()));
      return result;
    });
    return all.to_python();
  }

 private:
  bool aggregate(const Place& place, const load_word<std::uint64_t>& load,
                 array<std::uint64_t, Place>& results) override {
    if constexpr (sizeof(Key) > 8) {
      return false;
    } else {
      const auto with = [&](auto f) {
        const auto source = detail::zip_checked(keys_.span(), computed(this->n_, load), where);
        auto all =
            detail::aggregator<Place, Key, std::uint64_t, decltype(f)>(place, this->n_, !this->numbered_)
                .run(source);
        if (!all) return false;
        results = std::move(all->values);
        if (this->numbered_) return true;
        distinct_ = std::move(all->keys);
        this->counts_ = std::move(all->counts);
        this->size_ = distinct_.size();
        return this->numbered_ = true;
      };
      if (this->n_ == 0) return false;
      return load.words.extreme() ? with(minimum()) : with(plus());
    }
  }

  void group(const Place& place) override {
    const auto rows = detail::numbers_to<std::uint32_t>(this->n_);
    auto all = detail::group(place, detail::zip_checked(keys_.span(), rows, where), 0, where);
    if (this->numbered_) {
      if constexpr (sizeof(Key) <= 8) {
        this->numbers_ = array<std::uint32_t, Place>(place, this->size_);
        place.for_each(this->size_, number_by_hash<Key>{distinct_.data(), this->size_, all.keys.data(),
                                                        this->numbers_.data()});
      }
    } else {
      distinct_ = std::move(all.keys);
      this->size_ = distinct_.size();
    }
    this->rows_ = std::move(all.values);
    this->offsets_ = std::move(all.offsets);
    this->numbered_ = this->grouped_ = true;
    keys_ = {};
  }

  static auto copy_of(const Key* source, Key* target) {
    return put_by_number<Key, element_of<Key>>{{source}, nullptr, target};
  }

  array<Key, Place> keys_;      // of the rows, until these are grouped; empty if keys are few
  array<Key, Place> distinct_;  // once they are numbered, until Python has them and rows are grouped
};

template <class Place>
std::unique_ptr<grouping<Place>> group_rows(const call_place<Place>& at, const column& keys) {
  return with_keys(keys, [&]<class Key>(Key) -> std::unique_ptr<grouping<Place>> {
    const auto column = span_of<Key>(keys);
    return without_gil(at, [&](const Place& place) -> std::unique_ptr<grouping<Place>> {
      if constexpr (std::is_same_v<Place, host>) {
        const detail::values_at key_at{[&](std::size_t i) { return column[i]; }};
        if (auto few = group_few<Key>(place, column.size(), key_at)) return few;
      }
      return std::make_unique<grouping_of<Key, Place>>(place, column);
    });
  });
}

}  // namespace

template <class Place>
void bind_group_by(nb::module_& m) {
  using all = grouping<Place>;
  auto bound =
      nb::class_<all>(m, "Grouping")
          .def("size", &all::size)
          .def("keys", &all::keys)
          .def("counts", &all::counts)
          .def("first_rows", &all::first_rows)
          .def("last_rows", &all::last_rows)
          .def("reduce", &all::reduce, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg("valid").none());
  bind_aggregates(bound);
  m.def("group", &group_rows<Place>);
  if constexpr (std::is_same_v<Place, host>) {
    m.def("group_numbers", [](const call_place<host>& at, const column& numbers, const column& counts) {
      return std::unique_ptr<all>(std::make_unique<grouping_of_numbers>(at.get(), numbers, counts));
    });
  }
  bind_names<reduction>(m, "reductions");
}

template void bind_group_by<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
