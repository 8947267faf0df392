#pragma once

#include <filesystem>
#include <string_view>

#include "mesh_text.hpp"

/// \file
/// The reader of glTF 2.0. (tinygltf would take `"byteOffset": 12.0` for 0 and accessor 2^32 + 1 for accessor
/// 1 without a word, and look for missing files in the current folder.)

namespace roost::tools {

/// Whether a file is glTF: by its ending, in lower case, or as the first bytes of .glb files say.
bool is_gltf(std::string_view ending, std::string_view content);

/// The triangles of a .gltf or .glb file (`content`) whose other files are named relative to `folder`: the
/// default scene, or the first one, as it stands before any animation. Node transforms, instances
/// (EXT_mesh_gpu_instancing), default weights of morph targets and skins are applied, in doubles;
/// coordinates may be floats or integers (KHR_mesh_quantization). Points and lines are left out.
///
/// Throws invalid_argument, without the file's name, for all that is invalid, and for a file that requires an
/// extension which is not known, or compression.
polygons read_gltf(std::string_view content, const std::filesystem::path& folder);

}  // namespace roost::tools
