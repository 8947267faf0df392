#include "apps.hpp"
#include "apps/match/geometric_hashing.hpp"
#include "columns.hpp"

// Finding one image in another: a reference image with its table.

namespace roost::python {

using namespace roost::tools;

template <>
inline constexpr named<map_kind> names_of<map_kind>[] = {{"similarity", map_kind::similarity},
                                                         {"affine", map_kind::affine},
                                                         {"perspective", map_kind::perspective}};

namespace {

/// Shades of rows of `width` pixels, 0 to 255.
grey_image image_of(const column& pixels, std::size_t width) {
  const auto all = span_of<float>(pixels);
  return {static_cast<int>(width), static_cast<int>(all.size() / width), {all.begin(), all.end()}};
}

using image_reference = matcher_on<host>;

/// `map`: "auto" for the simplest that fits.
std::unique_ptr<image_reference> make_reference(const column& pixels, std::size_t width, int points,
                                                const char* map, std::uint32_t seed) {
  match_options options;
  options.points = points;
  options.seed = seed;
  if (map != std::string_view("auto")) options.map = value_of<map_kind>(map);
  return without_gil(call_place<host>(), [&](const host& place) {
    return std::make_unique<image_reference>(place, image_of(pixels, width), options);
  });
}

/// Whether it matched, the kind of the map, the fields of Python's Match, and the map's matrix.
nb::tuple match(const image_reference& reference, const column& pixels, std::size_t width) {
  match_result found;
  array<double, host> matrix;
  without_gil(call_place<host>(), [&](const host& place) {
    found = reference.match(image_of(pixels, width));
    matrix = array<double, host>(place, 9);
    std::copy(found.to_reference.m, found.to_reference.m + 9, matrix.data());
  });
  return nb::make_tuple(found.matched, name_of(found.map), found.points, found.covered, found.inliers,
                        found.compared, found.alike, found.placements, found.rms, found.log10_chance,
                        to_python(call_place<host>(), std::move(matrix)));
}

}  // namespace

void bind_match(nb::module_& m) {
  nb::class_<image_reference>(m, "ImageReference")
      .def("match", &match)
      .def_prop_ro("points", [](const image_reference& it) { return it.facts().points; });
  m.def("make_image_reference", &make_reference);
  bind_names<map_kind>(m, "map_kinds");
}

}  // namespace roost::python
