#include "cloud_output.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "apps/shared/npz_file.hpp"
#include "apps/shared/output_file.hpp"

namespace roost::tools {
namespace {

template <class T>
void put(output_file& to, const T& value) {
  static_assert(std::endian::native == std::endian::little);
  to.write({reinterpret_cast<const char*>(&value), sizeof(value)});
}

/// The results of value() for all voxels, one after the other.
template <class Value>
std::string column(std::span<const voxel_of_points> voxels, const Value& value) {
  using type = decltype(value(voxels[0]));
  std::string bytes(voxels.size() * sizeof(type), '\0');
  for (std::size_t i = 0; i < voxels.size(); ++i) {
    const type each = value(voxels[i]);
    std::memcpy(bytes.data() + i * sizeof(type), &each, sizeof(type));
  }
  return bytes;
}

template <class T>
std::string_view bytes_of(const T* data, std::size_t count) {
  return {reinterpret_cast<const char*>(data), count * sizeof(T)};
}

void write_arrays(const std::string& file, const found_cloud& found) {
  npz_file out(file);
  const auto rows = fmt::format("{},", found.voxels.size());
  out.add("xyz", "'<f8'", rows + " 3",
          column(found.voxels, [](const voxel_of_points& v) { return std::array{v.x, v.y, v.z}; }));
  out.add("counts", "'<u4'", rows, column(found.voxels, [](const voxel_of_points& v) { return v.points; }));
  out.add("neighbours", "'|u1'", rows,
          column(found.voxels, [](const voxel_of_points& v) { return v.neighbours; }));
  out.add("labels", "'<i8'", fmt::format("{},", found.labels.size()),
          bytes_of(found.labels.data(), found.labels.size()));
  out.add("shift", "'<f8'", "3,", bytes_of(found.shift.data(), 3));
  out.add("size", "'<f8'", "", bytes_of(&found.size, 1));
  out.finish();
}

}  // namespace

std::string cloud_ending(const std::string& file) {
  for (const std::string ending : {".ply", ".csv", ".npy", ".npz"}) {
    if (file.ends_with(ending)) return ending;
  }
  return {};
}

void write_voxels(const std::string& file, const found_cloud& found) {
  const auto ending = cloud_ending(file);
  if (ending == ".npz") return write_arrays(file, found);
  output_file out(file);
  const auto& [x, y, z] = found.shift;
  if (ending == ".csv") out.write("x,y,z,points,neighbours\n");
  if (ending == ".npy") {
    out.write(
        npy_header("[('x', '<f8'), ('y', '<f8'), ('z', '<f8'), ('points', '<u4'), ('neighbours', '|u1')]",
                   fmt::format("{},", found.voxels.size())));
  }
  if (ending == ".ply") {
    out.write(fmt::format(
        "ply\nformat binary_little_endian 1.0\n{}element vertex {}\nproperty double x\nproperty double "
        "y\nproperty double z\nproperty uint points\nproperty uchar neighbours\nend_header\n",
        found.shift == std::array<double, 3>{} ? "" : fmt::format("comment shift {} {} {}\n", x, y, z),
        found.voxels.size()));
  }
  for (const auto& voxel : found.voxels) {
    if (ending == ".csv") {
      out.write(fmt::format("{},{},{},{},{}\n", voxel.x, voxel.y, voxel.z, voxel.points, voxel.neighbours));
      continue;
    }
    for (const double at : {voxel.x, voxel.y, voxel.z}) put(out, at);
    put(out, voxel.points);
    put(out, voxel.neighbours);
  }
  out.finish();
}

void write_labels(const std::string& file, std::span<const std::int64_t> labels) {
  output_file out(file);
  const bool as_text = cloud_ending(file) == ".csv";
  out.write(as_text ? std::string("voxel\n") : npy_header("'<i8'", fmt::format("{},", labels.size())));
  for (const auto label : labels) as_text ? out.write(fmt::format("{}\n", label)) : put(out, label);
  out.finish();
}

}  // namespace roost::tools
