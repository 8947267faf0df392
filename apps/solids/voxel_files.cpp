#include "voxel_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <roost/host.hpp>
#include <roost/two_way_index.hpp>

#include "apps/shared/output_file.hpp"
#include "mesh_files.hpp"
#include "surface_mesh.hpp"

namespace roost::tools {
namespace {

using word = voxel_word<std::uint64_t>;
static_assert(std::endian::native == std::endian::little, "all these formats are little-endian");

/// A file of numbers as they are in memory.
class whole_file : public output_file {
 public:
  explicit whole_file(const std::filesystem::path& file) : output_file(file.string()) {}
  template <class T>
  void put(const T* values, std::size_t n) {
    write({reinterpret_cast<const char*>(values), n * sizeof(T)});
  }
  template <class T>
  void put(const T& value) {
    put(&value, 1);
  }
};

/// Maps a point of the grid, in voxels, to the meshes' coordinates.
struct to_mesh {
  const frame& grid;
  double operator()(double at, int axis) const {
    const auto i = static_cast<std::size_t>(axis);
    return grid.centre[i] + (at / grid.side - 0.5) * grid.length;
  }
  /// Whether floats, which most programs read, would move a point by more than a hundredth of a voxel.
  bool needs_doubles() const {
    const auto far = std::ranges::max(grid.centre, {}, [](double x) { return std::abs(x); });
    return (std::abs(far) + grid.length / 2) * 6e-8 > grid.length / grid.side / 100;
  }
  const char* type() const { return needs_doubles() ? "double" : "float"; }
  void put(whole_file& to, double at, int axis) const {
    needs_doubles() ? to.put((*this)(at, axis)) : to.put(static_cast<float>((*this)(at, axis)));
  }
};

/// f(from, to) for the runs of inside voxels of a column.
template <class F>
void for_each_run(const solid_columns& solid, std::size_t column, const F& f) {
  for (auto i = solid.offsets[column]; i < solid.offsets[column + 1]; i += 2) {
    const bool ends = i + 1 < solid.offsets[column + 1];
    f(std::uint32_t{solid.heights[i]}, ends ? std::uint32_t{solid.heights[i + 1]} : solid.grid);
  }
}

void write_points(const voxel_model& model, whole_file& to) {
  const to_mesh at{model.grid};
  to.write(fmt::format(
      "ply\nformat binary_little_endian 1.0\ncomment voxels {} wide; class 0: on the first solid, 1: on "
      "the second, 2: on both\nelement vertex {}\nproperty {} x\nproperty {} y\nproperty {} "
      "z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nproperty uchar class\nend_header\n",
      model.grid.length / model.grid.side, model.exposed.size(), at.type(), at.type(), at.type()));
  for (const auto voxel : model.exposed) {
    for (int axis = 0; axis < 3; ++axis) at.put(to, word::coordinate(voxel, axis) + 0.5, axis);
    const auto what = word::class_of(voxel);
    to.put(class_colours[what], 3);
    to.put(static_cast<std::uint8_t>(what));
  }
}

void write_mesh(const voxel_model& model, whole_file& to) {
  const auto corners = sides_of(model.columns, model.exposed).corners;
  const auto vertices = unique_inverse(host(), corners);
  const to_mesh at{model.grid};
  to.write(
      fmt::format("ply\nformat binary_little_endian 1.0\nelement vertex {}\nproperty {} x\nproperty {} "
                  "y\nproperty {} z\nelement face {}\nproperty list uchar int vertex_indices\nend_header\n",
                  vertices.keys.size(), at.type(), at.type(), at.type(), corners.size() / 4));
  for (const auto corner : vertices.keys) {
    for (int axis = 0; axis < 3; ++axis)
      at.put(to, static_cast<double>(corner >> (32 - 16 * axis) & 0xffff), axis);
  }
  for (std::size_t i = 0; i < corners.size(); i += 4) {
    to.put(std::uint8_t{4});
    to.put(vertices.inverse.data() + i, 4);
  }
}

/// Binvox has y within z within x, in runs of up to 255.
void write_binvox(const voxel_model& model, whole_file& to) {
  const std::size_t side = model.columns.grid;
  to.write(fmt::format("#binvox 1\ndim {0} {0} {0}\ntranslate {1} {2} {3}\nscale {4}\ndata\n", side,
                       model.grid.centre[0] - model.grid.length / 2,
                       model.grid.centre[1] - model.grid.length / 2,
                       model.grid.centre[2] - model.grid.length / 2, model.grid.length));
  std::vector<std::uint8_t> plane(side * side), runs;
  std::uint8_t value = 0, length = 0;
  const auto end_run = [&] {
    if (length == 0) return;
    runs.push_back(value);
    runs.push_back(length);
    length = 0;
  };
  for (std::size_t x = 0; x < side; ++x) {
    std::ranges::fill(plane, std::uint8_t{0});
    for (std::size_t y = 0; y < side; ++y) {
      for_each_run(model.columns, x * side + y, [&](std::uint32_t from, std::uint32_t end) {
        for (auto z = from; z < end; ++z) plane[z * side + y] = 1;
      });
    }
    for (const auto voxel : plane) {
      if (voxel != value || length == 255) end_run();
      value = voxel;
      ++length;
    }
    to.put(runs.data(), runs.size());
    runs.clear();
  }
  end_run();
  to.put(runs.data(), runs.size());
}

/// A chunk of a .vox file, contained in its parent.
class chunk {
 public:
  explicit chunk(const char* name) : name_(name) {}
  template <class T>
  chunk& put(const T& value) {
    content_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  chunk& number(std::size_t value) { return put(static_cast<std::int32_t>(value)); }
  chunk& text(const std::string& value) {
    number(value.size());
    content_ += value;
    return *this;
  }
  void add(const std::string& children) { children_ += children; }
  void add(const chunk& child) { add(child.bytes()); }
  std::string bytes() const {
    std::string result = name_;
    for (const auto size : {content_.size(), children_.size()}) {
      const auto bytes_of = static_cast<std::uint32_t>(size);
      result.append(reinterpret_cast<const char*>(&bytes_of), sizeof(bytes_of));
    }
    return result + content_ + children_;
  }

 private:
  std::string name_, content_, children_;
};

chunk vox_palette() {
  chunk palette("RGBA");
  for (std::size_t i = 0; i < 256; ++i) {  // colour i + 1
    const auto* const colour = class_colours[i < 3 ? i : 0];
    palette.put(colour[0]).put(colour[1]).put(colour[2]).put(std::uint8_t{255});
  }
  return palette;
}

/// One model for each nonempty block of 256^3 voxels, and a scene that puts them beside each other.
void write_vox(const voxel_model& model, whole_file& to) {
  constexpr std::uint32_t block = 256;
  std::map<std::array<std::uint32_t, 3>, std::vector<std::uint64_t>> blocks;
  for (const auto voxel : model.exposed) {
    blocks[{word::coordinate(voxel, 0) / block, word::coordinate(voxel, 1) / block,
            word::coordinate(voxel, 2) / block}]
        .push_back(voxel);
  }
  if (blocks.empty()) blocks[{0, 0, 0}];  // a file without a model is invalid
  chunk main("MAIN");
  chunk group("nGRP");
  std::string scene;  // of the models
  group.number(1).number(0).number(blocks.size());
  std::size_t number = 0;
  for (const auto& [at, voxels] : blocks) {
    chunk size("SIZE"), content("XYZI");
    std::string middle;
    for (int axis = 0; axis < 3; ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      const auto length = std::min(block, model.grid.side - at[i] * block);
      size.number(length);
      middle += fmt::format("{}{}", axis == 0 ? "" : " ", at[i] * block + length / 2);
    }
    content.number(voxels.size());
    for (const auto voxel : voxels) {
      for (int axis = 0; axis < 3; ++axis)
        content.put(static_cast<std::uint8_t>(word::coordinate(voxel, axis) % block));
      content.put(static_cast<std::uint8_t>(word::class_of(voxel) + 1));
    }
    main.add(size);
    main.add(content);
    const std::size_t transform = 2 + 2 * number, shape = transform + 1;
    group.number(transform);
    chunk moved("nTRN"), shown("nSHP");
    // Node, its attributes, child, reserved, layer, frames, and the attributes of the only frame.
    moved.number(transform)
        .number(0)
        .number(shape)
        .put(std::int32_t{-1})
        .number(0)
        .number(1)
        .number(1)
        .text("_t")
        .text(middle);
    shown.number(shape).number(0).number(1).number(number).number(0);
    scene += moved.bytes() + shown.bytes();
    ++number;
  }
  chunk root("nTRN");
  root.number(0).number(0).number(1).put(std::int32_t{-1}).put(std::int32_t{-1}).number(1).number(0);
  main.add(root);
  main.add(group);
  main.add(scene);
  main.add(vox_palette());
  const auto bytes = main.bytes();
  if (bytes.size() > 0x7fffffff) throw error("a .vox file holds at most 2 GiB; take a coarser grid");
  to.write("VOX ");
  to.put(std::int32_t{150});
  to.write(bytes);
}

std::string name_of_slice(std::size_t z, std::size_t side) {
  return fmt::format("z{:0{}}.png", z, std::to_string(side - 1).size());
}

void write_slices(const voxel_model& model, const std::filesystem::path& folder) {
  make_folder(folder, "another");
  const std::size_t side = model.columns.grid;
  host().launch(side, 0, [&](auto, std::size_t z, auto*) {
    picture slice{static_cast<int>(side), static_cast<int>(side), 1, std::vector<std::uint8_t>(side * side)};
    for (std::size_t x = 0; x < side; ++x) {
      for (std::size_t y = 0; y < side; ++y) {
        const bool inside = is_inside(model.columns, static_cast<std::int64_t>(x),
                                      static_cast<std::int64_t>(y), static_cast<std::int64_t>(z));
        slice.pixels[y * side + x] = inside ? 255 : 0;
      }
    }
    write_png(slice, folder / name_of_slice(z, side));
  });
}

/// A mesh of triangles.
void write_surface(const voxel_model& model, bool smooth, const std::filesystem::path& file) {
  if (model.exposed.empty())
    throw invalid_argument(
        fmt::format("{}: the result has no voxels, and so no surface; nothing is written", file.string()));
  const to_mesh at{model.grid};
  auto surface = mesh_of_voxels(model.columns, model.exposed, smooth);
  for (auto& v : surface.vertices) v = {at(v[0], 0), at(v[1], 1), at(v[2], 2)};
  write_triangles(surface, at.needs_doubles(), model.metres, file);
}

}  // namespace

voxel_format format_of(const std::filesystem::path& file) {
  const auto name = file.string();
  const auto ends = [&](const char* ending) { return name.ends_with(ending); };
  if (ends("/")) return voxel_format::slices;
  if (ends(".points.ply")) return voxel_format::points;
  if (ends(".ply")) return voxel_format::mesh;
  if (ends(".obj") || ends(".stl") || ends(".glb")) return voxel_format::triangles;
  if (ends(".binvox")) return voxel_format::binvox;
  if (ends(".vox")) return voxel_format::vox;
  if (!ends(".vdb")) {
    throw invalid_argument(
        fmt::format("{}: a file of voxels ends in .ply, .obj, .stl, .glb, .points.ply, .binvox, .vox, .vdb, "
                    "or in / for a "
                    "folder of slices",
                    name));
  }
  if (!has_vdb()) {
    throw invalid_argument(
        fmt::format("{}: this roost was built without OpenVDB; build it where libopenvdb-dev is", name));
  }
  return voxel_format::vdb;
}

std::vector<std::string> files_of_voxels(const std::filesystem::path& file, std::size_t side) {
  const auto format = format_of(file);
  if (format == voxel_format::vdb) return {file.string(), file.string() + ".part"};
  if (format != voxel_format::slices) return {file.string()};
  std::vector<std::string> files;
  for (std::size_t z = 0; z < side; ++z) files.push_back((file / name_of_slice(z, side)).string());
  return files;
}

void write_voxels(const voxel_model& model, const std::filesystem::path& file) {
  const auto format = format_of(file);
  const bool smooth = model.smooth.value_or(format == voxel_format::triangles);
  if (format == voxel_format::triangles || (format == voxel_format::mesh && smooth))
    return write_surface(model, smooth, file);
  if (format == voxel_format::slices) return write_slices(model, file);
  if (format == voxel_format::vdb) return write_vdb(model, file);
  whole_file to(file);
  switch (format) {
    case voxel_format::mesh:
      write_mesh(model, to);
      break;
    case voxel_format::points:
      write_points(model, to);
      break;
    case voxel_format::binvox:
      write_binvox(model, to);
      break;
    default:
      write_vox(model, to);
      break;
  }
  to.finish();
}

}  // namespace roost::tools
