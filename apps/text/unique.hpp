#pragma once

#include <CLI/CLI.hpp>

/// `roost unique FILE`: each different line, or field of a CSV column, and how often it comes.
void add_unique(CLI::App& app);
