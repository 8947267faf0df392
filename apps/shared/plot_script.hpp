#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// A script (`plot`, `opencv`): installed beside this program, or in the source tree; empty if there is none.
std::string script_path(const std::string& name);

/// Runs a script with these arguments, and returns its exit code; -1 if it is missing or cannot run. `read`
/// gets its output, piece by piece; its messages are dropped.
int run_script(const std::string& name, std::vector<std::string> arguments,
               const std::function<void(std::string_view)>& read = {});

/// Runs the script to draw with these arguments. False if it is missing or fails; stderr says why.
bool run_plot(std::vector<std::string> arguments);
