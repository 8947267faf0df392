#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Lets scripts/plot of the source tree draw with these arguments. False if it is not there, or cannot.
bool run_plot(std::vector<std::string> arguments);
