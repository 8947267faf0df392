#pragma once

#include <CLI/CLI.hpp>

/// Adds `roost lidar`: a cloud of points as voxels, compared with other tables.
void add_lidar(CLI::App& app);
