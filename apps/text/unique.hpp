#pragma once

#include <CLI/CLI.hpp>

/// `roost unique FILE`: each distinct line, or field of a CSV column, and how often it occurs.
void add_unique(CLI::App& app);
