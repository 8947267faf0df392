#include <cmath>

#include "apps.hpp"
#include "apps/solids/grid_choice.hpp"
#include "apps/solids/surface_mesh.hpp"
#include "columns.hpp"

// Meshes as solids of voxels, and operations on them.

namespace roost::python {
namespace {

using namespace roost::tools;

/// A solid in a grid, as columns.
struct voxel_solid {
  frame grid;
  solid_columns columns;
  std::vector<std::uint64_t> exposed;
  std::uint64_t count = 0;  // voxels inside
  double sides = 0;         // of the surface, in sides of voxels

  double low(std::size_t axis) const { return grid.centre[axis] - grid.length / 2; }
  double pitch() const { return grid.length / grid.side; }
};

/// A mesh with three doubles per vertex, moved near 0, as floats; `blur` is how far that moves its corners.
mesh mesh_of(const column& vertices, const column& faces) {
  const auto at = span_of<double>(vertices);
  const auto corners = span_of<std::uint32_t>(faces);
  bounds box;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const double* const v = &at[3 * std::size_t{corners[i]}];
    box.add(vec3{v[0], v[1], v[2]});
  }
  mesh result;
  const double side = box.longest_side(), step = std::exp2(std::ceil(std::log2(4 * side)));
  for (std::size_t k = 0; k < 3; ++k) {
    const double middle = box.centre()[k];
    result.origin[k] = side > 0 ? step * std::round(middle / step) : middle;
  }
  const auto near = [&](double x, std::size_t k) { return static_cast<float>(x - result.origin[k]); };
  for (std::size_t i = 0; i < at.size(); i += 3)
    result.vertices.push_back({near(at[i], 0), near(at[i + 1], 1), near(at[i + 2], 2)});
  for (const auto corner : corners) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double x = at[3 * std::size_t{corner} + k];
      result.blur = std::max(result.blur, std::abs(double{near(x, k)} - (x - result.origin[k])));
    }
  }
  for (std::size_t i = 0; i < corners.size(); i += 3)
    result.triangles.push_back({corners[i], corners[i + 1], corners[i + 2]});
  return result;
}

/// Refuses meshes for which a rule cannot determine the inside.
void expect_solid(scene& on, std::size_t i, inside_rule rule) {
  if (rule == inside_rule::vote) return;
  const auto faults = on.faults(i);
  if (faults.open_edges != 0) {
    kernels::raise<invalid_argument>({"roost.solids: mesh ", i, " is open at ", faults.open_edges,
                                      " edges, so it does not say what is inside; close it, or give "
                                      "inside='vote'"});
  }
  if (faults.turned_edges != 0 && rule == inside_rule::nonzero) {
    kernels::raise<invalid_argument>({"roost.solids: mesh ", i, " has faces that look different ways, at ",
                                      faults.turned_edges, " edges; turn them, or give inside='parity'"});
  }
}

/// `meshes`: (vertices, faces), each in a row.
std::unique_ptr<voxel_solid> combine(const nb::list& meshes, int op, int inside, std::uint32_t side) {
  std::vector<mesh> all;
  for (const auto one : meshes) {
    const auto pair = nb::cast<nb::tuple>(one);
    all.push_back(mesh_of(nb::cast<column>(pair[0]), nb::cast<column>(pair[1])));
  }
  return without_gil(call_place<host>(), [&](const host& place) {
    const auto what = static_cast<solid_op>(op);
    const auto rule = static_cast<inside_rule>(inside);
    std::vector<bounds> boxes;
    for (const auto& one : all) boxes.push_back(bounds_of(one));
    auto result = std::make_unique<voxel_solid>();
    result->grid = frame_of_result(what, boxes, side);
    const auto on = make_host_scene(place);
    on->expect_room(side);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!(all[i].blur <= 0.1 * result->pitch())) {
        kernels::raise<invalid_argument>({"roost.solids: mesh ", i,
                                          " is so large that its corners are not known to a tenth of a voxel "
                                          "of what the others leave of it; take a coarser grid"});
      }
      on->set_mesh(i, all[i]);
      expect_solid(*on, i, rule);
      on->place_mesh(i, side, to_snapped(result->grid, {}, all[i]));
      on->make_solid(i, rule);
    }
    on->combine(what);
    const auto facts = on->facts_of_result();
    result->count = facts.volume_voxels;
    result->sides = facts.area;
    result->columns = on->columns();
    result->exposed = on->voxels64(voxel_set::exposed);
    return result;
  });
}

/// Whether the voxels of points are inside; points outside the grid are not.
nb::object contains(const voxel_solid& solid, const column& points) {
  const auto at = span_of<double>(points);
  array<std::uint8_t, host> result;
  without_gil(call_place<host>(), [&](const host& place) {
    result = array<std::uint8_t, host>(place, at.size() / 3);
    place.for_each(result.size(), [&](std::size_t i) {
      std::int64_t voxel[3];
      bool in = true;
      for (std::size_t k = 0; k < 3; ++k) {
        const double v = std::floor((at[3 * i + k] - solid.low(k)) / solid.pitch());
        in = in && v >= 0 && v < solid.grid.side;
        voxel[k] = in ? static_cast<std::int64_t>(v) : 0;
      }
      result.data()[i] = in && is_inside(solid.columns, voxel[0], voxel[1], voxel[2]) ? 1 : 0;
    });
  });
  return to_python(call_place<host>(), std::move(result));
}

/// A byte for each voxel of the grid.
nb::object matrix(const voxel_solid& solid) {
  array<std::uint8_t, host> result;
  without_gil(call_place<host>(), [&](const host& place) {
    const std::size_t side = solid.grid.side;
    result = array<std::uint8_t, host>(place, side * side * side);
    place.fill(result.data(), 0, result.bytes());
    place.for_each(side * side, [&](std::size_t column) {
      const auto& offsets = solid.columns.offsets;
      for (auto i = offsets[column]; i < offsets[column + 1]; i += 2) {
        const std::size_t from = solid.columns.heights[i],
                          end = i + 1 < offsets[column + 1] ? solid.columns.heights[i + 1] : side;
        std::fill_n(result.data() + column * side + from, end - from, std::uint8_t{1});
      }
    });
  });
  return to_python(call_place<host>(), std::move(result));
}

/// Vertices, three doubles each, and corners of triangles.
nb::tuple surface(const voxel_solid& solid, bool smooth) {
  array<double, host> vertices;
  array<std::uint32_t, host> faces;
  without_gil(call_place<host>(), [&](const host& place) {
    const auto made = mesh_of_voxels(solid.columns, solid.exposed, smooth);
    vertices = array<double, host>(place, 3 * made.vertices.size());
    faces = array<std::uint32_t, host>(place, 3 * made.triangles.size());
    for (std::size_t i = 0; i < made.vertices.size(); ++i) {
      for (std::size_t k = 0; k < 3; ++k)
        vertices.data()[3 * i + k] = solid.low(k) + made.vertices[i][k] * solid.pitch();
    }
    for (std::size_t i = 0; i < made.triangles.size(); ++i)
      std::copy(made.triangles[i].begin(), made.triangles[i].end(), faces.data() + 3 * i);
  });
  const auto& place = call_place<host>();
  return nb::make_tuple(to_python(place, std::move(vertices)), to_python(place, std::move(faces)));
}

}  // namespace

void bind_solids(nb::module_& m) {
  nb::class_<voxel_solid>(m, "VoxelSolid")
      .def("contains", &contains)
      .def("matrix", &matrix)
      .def("surface", &surface)
      .def_ro("count", &voxel_solid::count)
      .def_ro("sides", &voxel_solid::sides)
      .def_prop_ro("pitch", &voxel_solid::pitch)
      .def_prop_ro("low",
                   [](const voxel_solid& it) { return nb::make_tuple(it.low(0), it.low(1), it.low(2)); });
  m.def("combine_solids", &combine);
}

}  // namespace roost::python
