#pragma once

#include <CLI/CLI.hpp>

/// `roost voxels MESH`: the voxels of a mesh as keys of tables: Figure 3 of Alcantara et al. for
/// any mesh, and a picture.
void add_voxels(CLI::App& app);
