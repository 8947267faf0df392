#include "voxelize.hpp"

#include <fmt/format.h>

#include <roost/error.hpp>

namespace roost::tools {

std::vector<std::uint32_t> voxelize(scene& on, const mesh& surface, std::uint64_t grid) {
  if (grid == 0 || grid > finest_grid) {
    throw invalid_argument(
        fmt::format("a grid of {} voxels a side cannot be made; ask for 1 to {}", grid, finest_grid));
  }
  if (surface.triangles.empty())
    throw invalid_argument("a mesh without triangles has no voxels; give one with a surface");
  const auto side = static_cast<std::uint32_t>(grid);
  on.set_mesh(0, surface);
  on.place_mesh(0, side, to_snapped(frame_around(bounds_of(surface), side), {}, surface));
  on.make_surface(0, true);
  return on.voxels32(voxel_set::surface);
}

std::vector<std::uint32_t> voxelize(const host& cpu, const mesh& surface, std::uint64_t grid) {
  return voxelize(*make_host_scene(cpu), surface, grid);
}

}  // namespace roost::tools
