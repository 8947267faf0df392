#pragma once

#include <CLI/CLI.hpp>

/// Adds `roost stress`.
void add_stress(CLI::App& app);
