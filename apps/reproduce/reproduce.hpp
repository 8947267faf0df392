#pragma once

#include <CLI/CLI.hpp>

/// `roost reproduce`: repeats the measurements of the papers, and prints their results beside ours.
void add_reproduce(CLI::App& app);
