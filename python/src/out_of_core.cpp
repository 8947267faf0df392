#include "roost/out_of_core/out_of_core.hpp"

#include <cstring>
#include <string_view>

#include "bind.hpp"
#include "distinct.hpp"
#include "grouping.hpp"

// Columns in host memory that go through a device. The functions have the names and the arguments of those
// that work at a place. nvcc takes a minute or two for each type that is grouped or joined: keys have 8 or 32
// bytes on the device, rows have numbers of 4 bytes, groups are those of numbers, and values are words of 8
// bytes.

namespace roost::python {

/// The function of Python that the calls of this thread tell how far they are; null: none. Borrowed.
inline thread_local PyObject* watching = nullptr;

inline void tell(std::size_t done, std::size_t all) {
  if (watching == nullptr) return;
  const nb::gil_scoped_acquire gil;
  const nb::handle progress = watching;
  progress(done, all);
}

/// Several threads may use one.
template <class Device>
class call_place<out_of_core<Device>> {
 public:
  /// `spill`: a folder, or empty.
  call_place(const call_place<Device>& device, int threads, std::size_t device_bytes, const char* spill,
             std::size_t host_bytes)
      : place_(host(threads), device.get(),
               {.device_bytes = device_bytes,
                .pinned_bytes = pinned(device_bytes),
                .progress = &tell,
                .spill_folder = spill,
                .host_bytes = host_bytes}) {
    call_place<host>::set_threads(threads);  // those of the module for GPUs
  }
  const out_of_core<Device>& get() const { return place_; }

 private:
  static std::size_t pinned(std::size_t device_bytes) {
    return std::clamp(device_bytes / 16, std::size_t{64} << 10, std::size_t{512} << 20);
  }

  out_of_core<Device> place_;
};

template <class Device, class F>
auto without_gil(const call_place<out_of_core<Device>>& at, const F& f) {
  try {
    const nb::gil_scoped_release released;
    const detail::calls_between_pieces interrupts(&check_signals);
    [[maybe_unused]] const auto device = detail::current_device_guard(at.get().device());
    return f(at.get());
  } catch (const interrupted&) {
    throw nb::python_error();
  }
}

/// A key with zeros behind it.
template <class Wide, class Key>
struct widened_key {
  const Key* keys;
  ROOST_FN Wide operator()(std::size_t i) const {
    if constexpr (std::is_integral_v<Key>) {
      return keys[i];
    } else {
      Wide wide{};
      std::memcpy(&wide, keys + i, sizeof(Key));
      return wide;
    }
  }
};

/// Keys as the device has them.
template <class Key>
auto as_wide(std::span<const Key> keys) {
  using wide = typename type_of_bytes<sizeof(Key) <= 8 ? 8 : 32>::type;
  if constexpr (std::is_same_v<Key, wide>) {
    return keys;
  } else {
    return computed(keys.size(), widened_key<wide, Key>{keys.data()});
  }
}

template <class Device, class Key>
unique_keys<Key, host> distinct_keys(const out_of_core<Device>& place, std::span<const Key> keys,
                                     const unique_options& wanted) {
  auto all = unique_all(place, as_wide(keys), wanted);
  if constexpr (std::is_same_v<decltype(all), unique_keys<Key, host>>) {
    return all;
  } else {
    unique_keys<Key, host> result;
    const auto& wide = all.keys;
    result.keys = detail::array_of(place.cpu(), wide.size(), [&](std::size_t i) {
      Key key;
      std::memcpy(&key, &wide[i], sizeof(Key));  // the first bytes of a word are its least ones
      return key;
    });
    result.first = std::move(all.first);
    result.inverse = std::move(all.inverse);
    result.counts = std::move(all.counts);
    return result;
  }
}

namespace {

struct mark_row {
  const std::uint32_t* rows;
  bool* results;
  void operator()(std::size_t i) const { results[rows[i]] = true; }
};

template <class Device>
nb::tuple join_there(const call_place<out_of_core<Device>>& at, const column& left, const column& right,
                     const char* how, bool wide) {
  return with_keys(left, [&]<class Key>(Key) {
    const auto a = as_wide(span_of<Key>(left)), b = as_wide(span_of<Key>(right));
    const std::string_view kind = how;
    const call_place<host> home;
    if (kind == "semi" || kind == "anti") {
      auto rows = without_gil(at, [&](const auto& place) {
        return kind == "semi" ? semi_join(place, a, b) : anti_join(place, a, b);
      });
      return nb::make_tuple(rows_to_python(home, std::move(rows), wide), nb::none());
    }
    auto rows = without_gil(at, [&](const auto& place) {
      return kind == "left" ? left_join(place, a, b) : inner_join(place, a, b);
    });
    const nb::object left_rows = rows_to_python(home, std::move(rows.left), wide);
    return nb::make_tuple(left_rows, rows_to_python(home, std::move(rows.right), wide));
  });
}

template <class Device>
void isin_there(const call_place<out_of_core<Device>>& at, const column& left, const column& right,
                const column& results) {
  with_keys(left, [&]<class Key>(Key) {
    const auto a = as_wide(span_of<Key>(left)), b = as_wide(span_of<Key>(right));
    const auto found = span_of<bool>(results, a.size());
    without_gil(at, [&](const auto& place) {
      const auto rows = semi_join(place, a, b);
      place.cpu().fill(found.data(), 0, found.size_bytes());
      place.cpu().for_each(rows.size(), mark_row{rows.data(), found.data()});
    });
    return true;
  });
}

/// Sums of floats, of 4 bytes if `narrow`, and products, as words of 8 bytes.
struct combine_in_order {
  bool product, floats, narrow;
  ROOST_FN std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    if (narrow)
      return combine_words<plus, std::uint32_t>{false, true}(static_cast<std::uint32_t>(a),
                                                             static_cast<std::uint32_t>(b));
    return product ? combine_words<multiplies, std::uint64_t>{false, floats}(a, b)
                   : combine_words<plus, std::uint64_t>{false, floats}(a, b);
  }
};

template <class Load>
struct wide_word {
  Load load;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return load(i); }
};

/// Groups whose values are combined on a device.
template <class Device>
class grouping_there final : public grouping_of_numbers {
 public:
  grouping_there(const out_of_core<Device>& place, const column& numbers, const column& counts)
      : grouping_of_numbers(place.cpu(), numbers, counts), place_(place) {}

 private:
  bool aggregate(const host&, const load_word<std::uint64_t>& load,
                 array<std::uint64_t, host>& results) override {
    results = load.words.extreme() ? combined(load, minimum()) : combined(load, plus());
    return true;
  }
  std::optional<array<std::uint64_t, host>> elsewhere(const load_word<std::uint64_t>& load) override {
    return combined(load, combine_in_order{load.words.how == reduction::product, load.words.floats(), false});
  }
  std::optional<array<std::uint32_t, host>> elsewhere(const load_word<std::uint32_t>& load) override {
    const auto words = combined(load, combine_in_order{false, true, true});
    array<std::uint32_t, host> results(place_.cpu(), words.size());
    std::ranges::copy(words.span(), results.data());
    return results;
  }

  template <class Load, class F>
  array<std::uint64_t, host> combined(const Load& load, const F& f) const {
    const computed words(n_, wide_word<Load>{load});
    [[maybe_unused]] const auto device = detail::current_device_guard(place_.device());
    return std::move(group_by(place_, group_of_row_, words, f).values);
  }

  const out_of_core<Device>& place_;
};

/// What Grouping::reduce returns for the rows of these numbers; `counts`: how many each number has.
template <class Device>
nb::tuple reduce_there(const call_place<out_of_core<Device>>& at, const column& numbers, const column& counts,
                       const column& values, const char* type, const char* how,
                       const std::optional<column>& valid) {
  return grouping_there<Device>(at.get(), numbers, counts)
      .reduce(call_place<host>(), values, type, how, valid);
}

}  // namespace

template <class Device>
void bind_out_of_core(nb::module_& m) {
  using place = out_of_core<Device>;
  m.def("device_bytes_least",
        [](const call_place<Device>& at) { return place::device_bytes_least(at.get()); });
  nb::class_<call_place<place>>(m, "OutOfCore")
      .def(nb::init<const call_place<Device>&, int, std::size_t, const char*, std::size_t>());
  m.def("unique", &unique<place>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none(), nb::arg().none());
  m.def("duplicated", &duplicated<place>);
  m.def("join", &join_there<Device>);
  m.def("isin", &isin_there<Device>);
  m.def("reduce", &reduce_there<Device>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none());
  // Sets which function calls of this thread tell how far they are, and returns the one before.
  m.def(
      "watch",
      [](nb::handle progress) {
        PyObject* const before = std::exchange(watching, progress.is_none() ? nullptr : progress.ptr());
        return before == nullptr ? nb::none() : nb::borrow(before);
      },
      nb::arg().none());
}

template void bind_out_of_core<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
