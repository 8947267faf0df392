#include <cmath>
#include <cstring>
#include <map>

#include "apps.hpp"
#include "apps/solids/grid_choice.hpp"
#include "apps/solids/surface_mesh.hpp"
#include "columns.hpp"

// Meshes as solids of voxels, and operations on them.

namespace roost::python {

using namespace roost::tools;

template <>
inline constexpr named<solid_op> names_of<solid_op>[] = {{"union", solid_op::combined},
                                                         {"intersection", solid_op::intersection},
                                                         {"difference", solid_op::difference},
                                                         {"xor", solid_op::exclusive}};
template <>
inline constexpr named<inside_rule> names_of<inside_rule>[] = {
    {"winding", inside_rule::nonzero}, {"parity", inside_rule::odd}, {"vote", inside_rule::vote}};

namespace {

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

/// Triangles of vertices of doubles.
struct fine_mesh {
  std::vector<vec3> at;
  std::vector<std::uint32_t> corners;
  bounds box{};     // of the corners
  double blur = 0;  // how far a corner may lie from where it was given
};

/// Cuts the triangles that cross a plane, along it. Where an edge is cut depends on its ends alone, so the
/// triangles on both sides of it still meet.
void cut(fine_mesh& mesh, std::size_t axis, double plane) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> cuts;
  auto& at = mesh.at;
  const auto cut_edge = [&](std::uint32_t a, std::uint32_t b) {
    if (at[b] < at[a]) std::swap(a, b);
    const auto [known, is_new] = cuts.try_emplace({a, b}, static_cast<std::uint32_t>(at.size()));
    if (is_new) {
      vec3 p{};
      const double part = (plane - at[a][axis]) / (at[b][axis] - at[a][axis]);
      for (std::size_t k = 0; k < 3; ++k) p[k] = at[a][k] + part * (at[b][k] - at[a][k]);
      p[axis] = plane;
      at.push_back(p);
    }
    return known->second;
  };
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < mesh.corners.size(); i += 3) {
    std::array<std::uint32_t, 3> t{mesh.corners[i], mesh.corners[i + 1], mesh.corners[i + 2]};
    const auto above = [&](std::size_t k) { return at[t[k]][axis] > plane; };
    if (above(0) == above(1) && above(1) == above(2)) {
      result.insert(result.end(), t.begin(), t.end());
      continue;
    }
    // The first corner is alone on its side.
    std::ranges::rotate(t, t.begin() + (above(1) == above(2) ? 0 : above(0) == above(2) ? 1 : 2));
    const auto b = cut_edge(t[0], t[1]), c = cut_edge(t[0], t[2]);
    for (const auto corner : {t[0], b, c, b, t[1], t[2], b, t[2], c}) result.push_back(corner);
  }
  mesh.corners = std::move(result);
}

/// What lies outside of a box is laid flat onto its sides: that moves no point of the surface through the
/// inside of the box, so there everything is as it was, in floats, too.
void lay_within(fine_mesh& mesh, const bounds& limits) {
  const auto laid = [&](vec3 p) {
    for (std::size_t k = 0; k < 3; ++k) p[k] = std::clamp(p[k], limits.low[k], limits.high[k]);
    return p;
  };
  auto& [low, high] = mesh.box;
  if (low == laid(low) && high == laid(high)) return;
  for (std::size_t k = 0; k < 3; ++k) {
    if (low[k] < limits.low[k]) cut(mesh, k, limits.low[k]);
    if (high[k] > limits.high[k]) cut(mesh, k, limits.high[k]);
    const double farthest = std::max(std::abs(low[k]), std::abs(high[k]));
    mesh.blur = std::max(mesh.blur, std::ldexp(farthest, -50));  // of the edges that were cut
  }
  for (auto& p : mesh.at) p = laid(p);
  low = laid(low);
  high = laid(high);
}

/// The meshes that Python passes; of those that reach far out of what the result can need, what matters
/// there.
std::vector<fine_mesh> meshes_of(const nb::list& meshes, solid_op op) {
  std::vector<fine_mesh> all;
  for (const auto one : meshes) {
    const auto pair = nb::cast<nb::tuple>(one);
    const auto numbers = span_of<double>(nb::cast<column>(pair[0]));
    const auto corners = span_of<std::uint32_t>(nb::cast<column>(pair[1]));
    fine_mesh mesh{std::vector<vec3>(numbers.size() / 3), {corners.begin(), corners.end()}};
    std::memcpy(mesh.at.data(), numbers.data(), numbers.size_bytes());
    for (const auto corner : corners) mesh.box.add(mesh.at[corner]);
    if (const double side = mesh.box.longest_side(); side > 0 && side < 1e-30) {
      kernels::raise<invalid_argument>(
          {"roost.solids: mesh ", all.size(), " is less than 1e-30 wide; give a larger one"});
    }
    all.push_back(std::move(mesh));
  }
  if (!stays_in_first(op)) return all;
  bounds needed = all.front().box;
  bool share = true;
  for (std::size_t i = 1; op == solid_op::intersection && i < all.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      needed.low[k] = std::max(needed.low[k], all[i].box.low[k]);
      needed.high[k] = std::min(needed.high[k], all[i].box.high[k]);
      share = share && needed.low[k] <= needed.high[k];
    }
  }
  if (!share || needed.longest_side() == 0) needed = all.front().box;
  constexpr double reach = 64;  // in grids
  bounds limits = needed;
  for (std::size_t k = 0; k < 3; ++k) {
    limits.low[k] -= reach * needed.longest_side();
    limits.high[k] += reach * needed.longest_side();
  }
  for (auto& one : all) lay_within(one, limits);
  return all;
}

/// The same mesh moved near 0, as floats; `blur` is how far that moves its corners.
mesh mesh_of(const fine_mesh& fine) {
  mesh result;
  const bounds& box = fine.box;
  const double side = box.longest_side(), step = std::exp2(std::ceil(std::log2(4 * side)));
  for (std::size_t k = 0; k < 3; ++k) {
    const double middle = box.centre()[k];
    result.origin[k] = side > 0 ? step * std::round(middle / step) : middle;
  }
  const auto near = [&](const vec3& p, std::size_t k) { return static_cast<float>(p[k] - result.origin[k]); };
  for (const auto& p : fine.at) result.vertices.push_back({near(p, 0), near(p, 1), near(p, 2)});
  for (const auto corner : fine.corners) {
    const auto& p = fine.at[corner];
    for (std::size_t k = 0; k < 3; ++k)
      result.blur = std::max(result.blur, std::abs(double{near(p, k)} - (p[k] - result.origin[k])));
  }
  result.blur += fine.blur;
  const auto& corners = fine.corners;
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
std::unique_ptr<voxel_solid> combine(const nb::list& meshes, const char* op, const char* inside,
                                     std::uint32_t side) {
  const auto what = meshes.size() == 1 ? solid_op::first : value_of<solid_op>(op);
  std::vector<mesh> all;
  for (const auto& one : meshes_of(meshes, what)) all.push_back(mesh_of(one));
  return without_gil(call_place<host>(), [&](const host& place) {
    const auto rule = value_of<inside_rule>(inside);
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
    for (std::size_t x = 0; x < side; ++x) {  // so little at once that Ctrl-C is heard
      check_signals();
      place.fill(result.data() + x * side * side, 0, side * side);
      place.for_each(side, [&](std::size_t y) {
        const std::size_t column = x * side + y;
        const auto& offsets = solid.columns.offsets;
        for (auto i = offsets[column]; i < offsets[column + 1]; i += 2) {
          const std::size_t from = solid.columns.heights[i],
                            end = i + 1 < offsets[column + 1] ? solid.columns.heights[i + 1] : side;
          std::fill_n(result.data() + column * side + from, end - from, std::uint8_t{1});
        }
      });
    }
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
  bind_names<solid_op>(m, "operations");
  bind_names<inside_rule>(m, "inside_rules");
}

}  // namespace roost::python
