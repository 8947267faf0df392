#pragma once

#include <cstdint>
#include <roost/host.hpp>
#include <vector>

#include "apps/shared/voxel.hpp"
#include "scene.hpp"

/// \file
/// Surfaces as sets of voxels.

namespace roost::tools {

/// The keys of all voxels that a surface touches, ascending, each once.
///
/// The mesh is scaled uniformly and centred, so that its longest side fills a grid of `grid` voxels a side. A
/// voxel is in the set exactly if it contains a point of a triangle, as if the surface were sampled
/// infinitely densely: triangles are cut at the planes between voxels, not sampled. A point on such a plane
/// belongs to the voxel above, so a flat side in a plane makes one layer of voxels. Triangles without area
/// count as segments or points.
///
/// Deterministic for any number of threads, and the same on both places. Forgets the meshes of the
/// scene. Throws invalid_argument for a grid of 0 or above 1024, or a mesh without triangles.
std::vector<std::uint32_t> voxelize(scene& on, const mesh& surface, std::uint64_t grid);
std::vector<std::uint32_t> voxelize(const host& cpu, const mesh& surface, std::uint64_t grid);

}  // namespace roost::tools
