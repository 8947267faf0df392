#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "roost/error.hpp"

namespace roost {

/// The places of this program and machine. cuda_here: compiled in, and there is a device.
bool cuda_compiled();
bool cuda_here();

/// The options --place and --threads of a command.
inline void add_place_options(CLI::App& command, std::string& place, int& threads) {
  command.add_option("-p,--place", place, "Where to run")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
  command.add_option("-j,--threads", threads, "Number of host threads; 0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
}

/// Resolves `auto`, `host` or `cuda`; throws device_error for a place that is not available.
inline std::string choose_place(const std::string& wanted) {
  if (wanted == "auto") return cuda_here() ? "cuda" : "host";
  if (wanted == "cuda" && !cuda_compiled()) {
    throw device_error(
        "this roost was built without CUDA; take --place host, or build it where nvcc is installed");
  }
  if (wanted == "cuda" && !cuda_here()) {
    throw device_error(
        "no CUDA device can be used here; take --place host, or check the driver with nvidia-smi");
  }
  return wanted;
}

}  // namespace roost
