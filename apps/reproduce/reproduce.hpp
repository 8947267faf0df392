#pragma once

#include <CLI/CLI.hpp>

/// `roost reproduce`: measures what the papers measured, theirs beside ours.
void add_reproduce(CLI::App& app);
