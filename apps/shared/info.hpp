#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// `roost info`: the places of this machine and their memory.
void add_info(CLI::App& app);

/// A line that describes a measurement: program, place, processor or device, date.
std::string machine_of(const std::string& place, int threads);

/// The properties of a CUDA device; sizes in bytes.
struct device_facts {
  std::string name;
  int major, minor, multiprocessors;
  std::size_t l2, memory, free;
  int links;               ///< active NVLinks
  std::vector<int> peers;  ///< devices whose memory it can access
};

/// The usable CUDA devices; none if CUDA is not compiled in.
std::vector<device_facts> cuda_device_facts();
