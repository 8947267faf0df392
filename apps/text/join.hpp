#pragma once

#include <CLI/CLI.hpp>

/// `roost join A B --on COLUMN`: the rows of two CSV files that belong together.
void add_join(CLI::App& app);
