#pragma once

#include <CLI/CLI.hpp>

/// Adds the command `match`.
void add_match(CLI::App& app);
