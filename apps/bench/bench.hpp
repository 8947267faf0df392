#pragma once

#include <CLI/CLI.hpp>

/// `roost bench`: measures tables against each other, every answer checked.
void add_bench(CLI::App& app);
