#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// A script (`plot`, `opencv`): installed beside this program, or of the source tree; empty if there is none.
std::string script_path(const std::string& name);

/// Runs a script with these arguments, and returns its exit code; -1 where it is not there or cannot run.
/// `read` gets what it prints, piece by piece, and its messages are dropped.
int run_script(const std::string& name, std::vector<std::string> arguments,
               const std::function<void(std::string_view)>& read = {});

/// Lets the script draw with these arguments. False if it is not there, or cannot: why is said on stderr.
bool run_plot(std::vector<std::string> arguments);
