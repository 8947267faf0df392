#include "cloud_output.hpp"

#include <fmt/format.h>

#include <bit>

#include "apps/shared/output_file.hpp"

namespace roost::tools {
namespace {

template <class T>
void put(output_file& to, const T& value) {
  static_assert(std::endian::native == std::endian::little);
  to.write({reinterpret_cast<const char*>(&value), sizeof(value)});
}

/// The header of an array of NumPy, which ends at a multiple of 64 bytes.
std::string numpy_header(std::string_view type, std::size_t rows) {
  auto text = fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': ({},), }}", type, rows);
  constexpr std::size_t before = 10;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() % 256);
  header += static_cast<char>(text.size() / 256);
  return header + text;
}

}  // namespace

std::string cloud_ending(const std::string& file) {
  for (const std::string ending : {".ply", ".csv", ".npy"}) {
    if (file.ends_with(ending)) return ending;
  }
  return {};
}

void write_voxels(const std::string& file, std::span<const voxel_of_points> voxels) {
  output_file out(file);
  const auto ending = cloud_ending(file);
  if (ending == ".csv") out.write("x,y,z,points,neighbours\n");
  if (ending == ".npy") {
    out.write(
        numpy_header("[('x', '<f8'), ('y', '<f8'), ('z', '<f8'), ('points', '<u4'), ('neighbours', '|u1')]",
                     voxels.size()));
  }
  if (ending == ".ply") {
    out.write(fmt::format(
        "ply\nformat binary_little_endian 1.0\nelement vertex {}\nproperty double x\nproperty double "
        "y\nproperty double z\nproperty uint points\nproperty uchar neighbours\nend_header\n",
        voxels.size()));
  }
  for (const auto& voxel : voxels) {
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
  out.write(as_text ? std::string("voxel\n") : numpy_header("'<i8'", labels.size()));
  for (const auto label : labels) as_text ? out.write(fmt::format("{}\n", label)) : put(out, label);
  out.finish();
}

}  // namespace roost::tools
