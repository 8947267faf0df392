#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/shared/picture.hpp"
#include "scene.hpp"

/// \file
/// Files of voxels, for other programs.

namespace roost::tools {

/// What files are made of: a solid, its voxels that can be seen, and where the grid lies.
struct voxel_model {
  frame grid;
  solid_columns columns;
  std::vector<std::uint64_t> exposed;  ///< as voxel_word has them, ascending
  std::optional<bool> smooth;          ///< meshes: see mesh_of_voxels; nothing: .obj, .stl and .glb alone
  double metres = 0;                   ///< a unit of lengths; 0: not known
};

/// The kinds of files, and what their names end in.
enum class voxel_format {
  mesh,  ///< .ply: the sides that can be seen, as quads that look outwards; or a smooth mesh of triangles
  triangles,  ///< .obj, .stl, .glb: a mesh of triangles
  points,     ///< .points.ply: the centres of the voxels that can be seen, with colours and classes
  binvox,     ///< .binvox: all voxels inside, in runs
  vox,     ///< .vox, MagicaVoxel: the voxels that can be seen, in models of up to 256^3; a palette of classes
  slices,  ///< a folder, ending in /: z0000.png ..., white inside; x goes right, y down
  vdb      ///< .vdb: a fog volume of OpenVDB, 1 inside; only where roost was built with OpenVDB
};

/// Throws invalid_argument for a name whose ending is none of these, and for .vdb without OpenVDB.
voxel_format format_of(const std::filesystem::path& file);

/// What write_voxels writes of a grid with so many voxels a side.
std::vector<std::string> files_of_voxels(const std::filesystem::path& file, std::size_t side);

/// Writes a file of the format that its name ends in; all of it, or none. A file of that name is replaced.
/// Coordinates are those of the meshes. Throws error if it cannot be written, and invalid_argument for a mesh
/// of triangles of nothing, or one whose numbers are too large for the format's floats.
void write_voxels(const voxel_model& model, const std::filesystem::path& file);

/// Writes a .vdb file. Of vdb_file.cpp.
bool has_vdb();
void write_vdb(const voxel_model& model, const std::filesystem::path& file);

}  // namespace roost::tools
