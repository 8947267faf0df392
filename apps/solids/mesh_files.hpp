#pragma once

#include <filesystem>

#include "surface_mesh.hpp"

/// \file
/// Files of meshes of triangles.

namespace roost::tools {

/// Writes a mesh in the format that the file's name ends in: .ply (binary), .obj, .stl (binary) or .glb;
/// completely, or not at all. `doubles`: floats are too coarse for its coordinates: PLY gets doubles, OBJ
/// gets all digits, and STL and GLB, which hold floats, are refused. `metres`: the unit of its lengths, or 0;
/// GLB, whose lengths are metres, gets a scale. Throws invalid_argument for a refused mesh, and error if the
/// file cannot be written.
void write_triangles(const surface_mesh& mesh, bool doubles, double metres,
                     const std::filesystem::path& file);

}  // namespace roost::tools
