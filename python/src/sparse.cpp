#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bind.hpp"
#include "columns.hpp"
#include "roost/sparse/sparse_conv.hpp"

// Voxels, their neighbours, and convolution over them.

namespace roost::python {
namespace {

/// All the numbers of a column.
template <class T>
std::span<T> numbers_of(const column& all) {
  return {reinterpret_cast<T*>(all.data), all.rows * all.row_bytes / sizeof(T)};
}

/// An index, and the place where it was built. The index of a map's outputs belongs to the map, which Python
/// keeps alive.
template <int D, class Place>
class voxels {
 public:
  using index_type = coordinate_index<D, Place>;
  using at_place = const call_place<Place>&;

  voxels(const Place& home, index_type&& index) : home_(home), own_(std::move(index)) {}
  voxels(const Place& home, const index_type& of_map) : home_(home), of_map_(&of_map) {}

  static std::unique_ptr<voxels> make(at_place at, const column& coordinates, bool by_input) {
    typename index_type::options chosen;
    if (by_input) chosen.order = order::input;
    return without_gil(at, [&](const Place& place) {
      return with_coordinates(place, coordinates, [&](const auto& all) {
        return std::make_unique<voxels>(place, index_type(place, all, chosen));
      });
    });
  }

  const index_type& get() const { return of_map_ != nullptr ? *of_map_ : own_; }
  const Place& home() const { return home_; }

  void find(at_place at, const column& queries, const column& rows) const {
    ask(at, home_, [&](const Place& place) {
      with_coordinates(place, queries, [&](const auto& coordinates) {
        if (rows.row_bytes == 4) {
          get().find(place, coordinates, span_of<std::uint32_t>(rows, coordinates.size()));
        } else {
          const auto wide = span_of<std::int64_t>(rows, coordinates.size());
          array<std::uint32_t, Place> narrow(place, coordinates.size());
          get().find(place, coordinates, narrow);
          place.for_each(narrow.size(), widen{narrow.data(), wide.data()});
        }
      });
    });
  }

  void contains(at_place at, const column& queries, const column& found) const {
    ask(at, home_, [&](const Place& place) {
      with_coordinates(place, queries, [&](const auto& coordinates) {
        get().contains(place, coordinates, span_of<bool>(found, coordinates.size()));
      });
    });
  }

  void coordinates(at_place at, const column& target) const {
    const auto all = get().coordinates();
    const auto to = span_of<words_of_coordinate>(target, all.size());
    ask(at, home_, [&](const Place& place) { place.copy(to.data(), all.data(), all.size_bytes()); });
  }

  void rows_of_input(at_place at, const column& target) const {
    const auto rows = get().rows_of_input();
    ask(at, home_, [&](const Place& place) {
      if (target.row_bytes == 4) {
        place.copy(span_of<std::uint32_t>(target, rows.size()).data(), rows.data(), rows.size_bytes());
      } else {
        place.for_each(rows.size(), widen{rows.data(), span_of<std::int64_t>(target, rows.size()).data()});
      }
    });
  }

  /// The least and the greatest coordinate, of D + 1 numbers each.
  std::array<std::array<std::int32_t, D + 1>, 2> bounds() const {
    const auto numbers = [](const coordinate<D>& one) {
      std::array<std::int32_t, D + 1> all{one.batch};
      for (std::size_t a = 0; a < D; ++a) all[a + 1] = one.at[a];
      return all;
    };
    return {numbers(get().bounds().least), numbers(get().bounds().greatest)};
  }

  std::size_t size() const { return get().size(); }
  std::size_t inputs() const { return get().rows_of_input().size(); }
  std::size_t bytes() const { return get().bytes(); }
  bool valid(at_place at) const {
    return ask(at, home_, [&](const Place& place) { return get().valid(place); });
  }

 private:
  struct words_of_coordinate {
    std::int32_t numbers[D + 1];
  };

  /// f(coordinates), which are copied if they are not suitably aligned.
  template <class F>
  static auto with_coordinates(const Place& place, const column& all, const F& f) {
    const auto given = span_of<words_of_coordinate>(all);
    const auto* const data = reinterpret_cast<const coordinate<D>*>(all.data);
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(coordinate<D>) == 0) {
      return f(std::span(data, given.size()));
    }
    array<coordinate<D>, Place> aligned(place, given.size());
    place.copy(aligned.data(), all.data, aligned.bytes());
    return f(std::span<const coordinate<D>>(aligned.span()));
  }

  Place home_;
  index_type own_;
  const index_type* of_map_ = nullptr;
};

/// The bits of a view, in either direction.
struct write_masks {
  kernel_map_view map;
  std::uint32_t* target;
  ROOST_FN void operator()(std::size_t o) const {
    for (std::uint32_t w = 0; w < map.words; ++w) {
      std::uint32_t bits = 0;
      for (std::uint32_t k = 32 * w; k < 32 * w + 32 && k < map.volume; ++k) {
        bits |= static_cast<std::uint32_t>(map.has_neighbour(k, o)) << k % 32;
      }
      target[o * map.words + w] = bits;
    }
  }
};

/// A kernel map for any number of axes, and the place where it was made.
template <class Place>
class neighbourhoods {
 public:
  using at_place = const call_place<Place>&;
  explicit neighbourhoods(const Place& home) : home_(home) {}
  virtual ~neighbourhoods() = default;

  virtual std::size_t bytes() const = 0;
  virtual bool valid(at_place at) const = 0;
  const Place& home() const { return home_; }
  const kernel_map_view& view(bool transposed) const { return transposed ? transposed_ : forward_; }

  std::size_t volume() const { return forward_.volume; }
  std::size_t rows(bool transposed) const { return view(transposed).outputs; }

  /// [offset][row]: input rows, -1 for none.
  void neighbours(at_place at, bool transposed, const column& target) const {
    const kernel_map_view& map = view(transposed);
    const auto to = numbers_of<std::uint32_t>(target);
    read(at, home_, [&](const Place& place) {
      for (std::uint32_t k = 0; k < map.volume && map.outputs != 0; ++k) {
        const std::uint32_t row = map.turned ? map.volume - 1 - k : k;
        place.copy(to.data() + k * map.outputs, map.neighbours + row * map.stride,
                   map.outputs * sizeof(std::uint32_t));
      }
    });
  }

  /// [row][word]: a bit for each offset that has a neighbour.
  void masks(at_place at, bool transposed, const column& target) const {
    const kernel_map_view& map = view(transposed);
    const auto to = numbers_of<std::uint32_t>(target);
    read(at, home_, [&](const Place& place) { place.for_each(map.outputs, write_masks{map, to.data()}); });
  }

  /// The number of pairs, for a map made with them.
  std::size_t pairs() const { return forward_.pairs; }
  void copy_pairs(at_place at, bool transposed, const column& input_rows, const column& output_rows,
                  const column& begins) const {
    const kernel_map_view& map = view(transposed);
    const auto inputs = span_of<std::uint32_t>(input_rows, map.pairs),
               outputs = span_of<std::uint32_t>(output_rows, map.pairs);
    const auto to = span_of<std::uint64_t>(begins, map.volume + std::size_t{1});
    read(at, home_, [&](const Place& place) {
      place.copy(inputs.data(), map.input_rows, inputs.size_bytes());
      place.copy(outputs.data(), map.output_rows, outputs.size_bytes());
      place.copy(to.data(), map.pair_begins, to.size_bytes());
    });
  }

 protected:
  void set_views(const kernel_map_view& forward, const kernel_map_view& transposed) {
    forward_ = forward, transposed_ = transposed;
  }

 private:
  Place home_;
  kernel_map_view forward_, transposed_;
};

template <int D, class Place>
class neighbourhoods_of final : public neighbourhoods<Place> {
 public:
  using typename neighbourhoods<Place>::at_place;
  using index_type = voxels<D, Place>;
  using numbers = std::array<int, D>;
  /// A number for the batch and for each axis.
  using corner = std::array<std::int32_t, D + 1>;

  /// `outputs`: null, or the index of a convolution's outputs. `bounds`: nothing, or the least and the
  /// greatest coordinate that outputs may have.
  static std::unique_ptr<neighbourhoods_of> make(at_place at, const index_type& index,
                                                 const std::string& kind, const numbers& size,
                                                 const numbers& stride, const numbers& dilation,
                                                 const numbers& padding, bool pairs,
                                                 const index_type* outputs,
                                                 const std::optional<std::array<corner, 2>>& bounds) {
    const kernel_shape<D> shape{size, stride, dilation, padding};
    kernel_map_options<D> options;
    if (bounds) options.bounds = {coordinate_of((*bounds)[0]), coordinate_of((*bounds)[1])};
    options.by_masks = true;
    options.pairs = pairs;
    for (std::size_t a = 0; a < D; ++a) {
      const int reach = dilation[a] * (size[a] - 1);
      const int before = padding[a] == shape.unset ? reach / 2 : padding[a];
      options.inverse |= kind != "submanifold" || 2 * before != reach;
    }
    return ask(at, index.home(), [&](const Place& place) {
      const auto& in = index.get();
      if (outputs != nullptr) return own(place, convolution(place, in, outputs->get(), shape, options));
      if (kind == "submanifold") return own(place, submanifold(place, in, shape, options));
      if (kind == "pooling") return own(place, pooling(place, in, shape, options));
      if (kind == "generative") return own(place, generative(place, in, shape, options));
      return own(place, convolution(place, in, shape, options));
    });
  }

  neighbourhoods_of(const Place& home, kernel_map<D, Place>&& map)
      : neighbourhoods<Place>(home), map_(std::move(map)) {
    this->set_views(map_.view(), map_.transposed());
  }

  std::unique_ptr<index_type> outputs() const {
    return std::make_unique<index_type>(this->home(), map_.made_outputs());
  }
  std::size_t bytes() const override { return map_.bytes(); }
  bool valid(at_place at) const override {
    return read(at, this->home(), [&](const Place& place) { return map_.valid(place); });
  }

 private:
  static coordinate<D> coordinate_of(const corner& numbers) {
    coordinate<D> result{numbers[0], {}};
    for (std::size_t a = 0; a < D; ++a) result.at[a] = numbers[a + 1];
    return result;
  }
  static std::unique_ptr<neighbourhoods_of> own(const Place& place, kernel_map<D, Place>&& map) {
    return std::make_unique<neighbourhoods_of>(place, std::move(map));
  }

  kernel_map<D, Place> map_;
};

/// Calls f(T()) with a type of features, by its name.
template <class Place, class F>
void with_features(const std::string& type, const F& f) {
  if (type == "float32") return f(float());
  if (type == "float64") return f(double());
#if defined(__CUDACC__)
  if constexpr (!std::is_same_v<Place, host>) {
    if (type == "float16") return f(__half());
    if (type == "bfloat16") return f(__nv_bfloat16());
  }
#endif
  detail::raise<invalid_argument>({"roost: features of type ", type.c_str()});
}

template <class Place>
void convolve(const call_place<Place>& at, const neighbourhoods<Place>& map, bool transposed,
              const std::string& type, std::size_t in, std::size_t out, bool tf32, const column& features,
              const column& weights, const std::optional<column>& bias, const column& results) {
  with_features<Place>(type, [&]<class T>(T) {
    read(at, map.home(), [&](const Place& place) {
      roost::sparse_conv(place, map.view(transposed), {in, out, tf32}, numbers_of<const T>(features),
                         numbers_of<const T>(weights), numbers_of<T>(results),
                         bias ? numbers_of<const T>(*bias) : std::span<const T>());
    });
  });
}

/// `transposed`: for the transposed convolution.
template <class Place>
void convolve_input_gradient(const call_place<Place>& at, const neighbourhoods<Place>& map, bool transposed,
                             const std::string& type, std::size_t in, std::size_t out, bool tf32,
                             const column& gradient, const column& weights, const column& results) {
  with_features<Place>(type, [&]<class T>(T) {
    read(at, map.home(), [&](const Place& place) {
      sparse_conv_input_gradient(place, map.view(!transposed), {in, out, tf32}, numbers_of<const T>(gradient),
                                 numbers_of<const T>(weights), numbers_of<T>(results));
    });
  });
}

template <class Place>
void convolve_weight_gradient(const call_place<Place>& at, const neighbourhoods<Place>& map, bool transposed,
                              const std::string& type, std::size_t in, std::size_t out, bool tf32,
                              const column& features, const column& gradient, const column& results) {
  with_features<Place>(type, [&]<class T>(T) {
    read(at, map.home(), [&](const Place& place) {
      sparse_conv_weight_gradient(place, map.view(transposed), {in, out, tf32}, numbers_of<const T>(features),
                                  numbers_of<const T>(gradient), numbers_of<T>(results));
    });
  });
}

template <int D, class Place>
void bind_axes(nb::module_& m, const char* index, const char* map) {
  using all = voxels<D, Place>;
  using maps = neighbourhoods_of<D, Place>;
  nb::class_<all>(m, index)
      .def_static("make", &all::make)
      .def("find", &all::find)
      .def("contains", &all::contains)
      .def("coordinates", &all::coordinates)
      .def("rows_of_input", &all::rows_of_input)
      .def("bounds", &all::bounds)
      .def("size", &all::size)
      .def("inputs", &all::inputs)
      .def("bytes", &all::bytes)
      .def("valid", &all::valid);
  nb::class_<maps, neighbourhoods<Place>>(m, map)
      .def_static("make", &maps::make, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
                  nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none())
      .def("outputs", &maps::outputs, nb::keep_alive<0, 1>());
}

}  // namespace

template <class Place>
void bind_sparse(nb::module_& m) {
  using map = neighbourhoods<Place>;
  nb::class_<map>(m, "KernelMap")
      .def("volume", &map::volume)
      .def("rows", &map::rows)
      .def("neighbours", &map::neighbours)
      .def("masks", &map::masks)
      .def("pairs", &map::pairs)
      .def("copy_pairs", &map::copy_pairs)
      .def("bytes", &map::bytes)
      .def("valid", &map::valid);
  bind_axes<2, Place>(m, "Voxels2", "KernelMap2");
  bind_axes<3, Place>(m, "Voxels3", "KernelMap3");
  bind_axes<4, Place>(m, "Voxels4", "KernelMap4");
  m.def("convolve", &convolve<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def("convolve_input_gradient", &convolve_input_gradient<Place>);
  m.def("convolve_weight_gradient", &convolve_weight_gradient<Place>);
}

template void bind_sparse<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
