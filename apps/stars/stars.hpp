#pragma once

#include <CLI/CLI.hpp>

/// Adds the command `stars`.
void add_stars(CLI::App& app);
