#pragma once

#include <optional>
#include <string_view>

#include "mesh.hpp"

/// \file
/// Meshes without a file.

namespace roost::tools {

/// The mesh of a name: `sphere`, `box` or `torus`, closed, about the origin, 1 wide, facing outwards. `:N`
/// after the name of a round one sets the number of faces around it (64; 3 to 4096). Nothing for another
/// name. Throws invalid_argument for another N.
std::optional<mesh> make_shape(std::string_view name);

}  // namespace roost::tools
