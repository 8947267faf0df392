#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// `roost info`: the places of this machine and their memory.
void add_info(CLI::App& app);

/// A line that says on what something was measured: program, place, processor or device, date.
std::string machine_of(const std::string& place, int threads);

/// What a CUDA device is; sizes in bytes.
struct device_facts {
  std::string name;
  int major, minor, multiprocessors;
  std::size_t l2, memory, free;
  int links;               ///< NVLinks that are on
  std::vector<int> peers;  ///< devices whose memory it can access
};

/// The CUDA devices that can be used; none where CUDA is not compiled in.
std::vector<device_facts> cuda_device_facts();
