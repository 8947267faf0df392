#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// The script that draws plots: installed beside this program, or of the source tree; empty if there is none.
std::string plot_script();

/// Lets the script draw with these arguments. False if it is not there, or cannot.
bool run_plot(std::vector<std::string> arguments);
