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

/// The contents of files: a solid, its exposed voxels, and the position of the grid.
struct voxel_model {
  frame grid;
  solid_columns columns;
  std::vector<std::uint64_t> exposed;  ///< as voxel_word, ascending
  std::optional<bool> smooth;          ///< meshes: see mesh_of_voxels; nothing: only .obj, .stl and .glb
  double metres = 0;                   ///< the unit of lengths; 0: unknown
};

/// The kinds of files, by the endings of their names.
enum class voxel_format {
  mesh,       ///< .ply: the exposed sides, as quads that face outwards; or a smooth mesh of triangles
  triangles,  ///< .obj, .stl, .glb: a mesh of triangles
  points,     ///< .points.ply: the centres of the exposed voxels, with colours and classes
  binvox,     ///< .binvox: all voxels inside, in runs
  vox,        ///< .vox, MagicaVoxel: the exposed voxels, in models of up to 256^3; a palette of classes
  slices,     ///< a folder, ending in /: z0000.png ..., white inside; x goes right, y down
  vdb         ///< .vdb: a fog volume of OpenVDB, 1 inside; only where roost was built with OpenVDB
};

/// Throws invalid_argument for a name whose ending is none of these, and for .vdb without OpenVDB.
voxel_format format_of(const std::filesystem::path& file);

/// The files that write_voxels writes for a grid with `side` voxels a side.
std::vector<std::string> files_of_voxels(const std::filesystem::path& file, std::size_t side);

/// Writes a file in the format of its name's ending; completely, or not at all. A file of that name is
/// replaced. Coordinates are those of the meshes. Throws error if it cannot be written, and invalid_argument
/// for an empty mesh of triangles, or one whose numbers are too large for the format's floats.
void write_voxels(const voxel_model& model, const std::filesystem::path& file);

/// Writes a .vdb file: see vdb_file.cpp.
bool has_vdb();
void write_vdb(const voxel_model& model, const std::filesystem::path& file);

}  // namespace roost::tools
