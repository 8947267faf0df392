#include "info.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "place_choice.hpp"
#include "roost/host.hpp"

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

double gib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

void info() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  fmt::print("roost {}\n", ROOST_VERSION);
  fmt::print("host: {}, {} threads, {:.1f} GiB of memory, {:.1f} GiB free\n", processor_name(),
             roost::host().threads(), gib(page * static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES))),
             gib(page * static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES))));
  if (!roost::cuda_compiled()) {
    fmt::print("cuda: not in this build; build where nvcc is installed\n");
  } else {
    const auto devices = cuda_device_facts();
    if (devices.empty()) fmt::print("cuda: no device can be used here\n");
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const device_facts& d = devices[i];
      fmt::print(
          "cuda {}: {}, compute {}.{}, {} multiprocessors, {} MiB of L2, {:.1f} GiB of memory, {:.1f} GiB "
          "free\n",
          i, d.name, d.major, d.minor, d.multiprocessors, d.l2 >> 20, gib(d.memory), gib(d.free));
      if (devices.size() > 1) {
        fmt::print("cuda {}: {} NVLinks, {}\n", i, d.links,
                   d.peers.empty()
                       ? "no access to the memory of others: they exchange data through the host"
                       : fmt::format("access to the memory of cuda {}", fmt::join(d.peers, ", ")));
      }
    }
  }
  fmt::print("default place: {}\n", roost::choose_place("auto"));
}

}  // namespace

std::string machine_of(const std::string& place, int threads) {
  const auto devices = place == "cuda" ? cuda_device_facts() : std::vector<device_facts>{};
  const auto what = devices.empty()
                        ? fmt::format("{}, {} threads", processor_name(), roost::host(threads).threads())
                        : devices.front().name;
  return fmt::format("roost {} on {}: {}, {:%Y-%m-%d}", ROOST_VERSION, place, what,
                     fmt::gmtime(std::time(nullptr)));
}

void add_info(CLI::App& app) {
  app.add_subcommand("info", "Lists the places of this machine, their devices and memory")->callback(info);
}

#if !ROOST_WITH_CUDA
bool roost::cuda_compiled() { return false; }
bool roost::cuda_here() { return false; }
std::vector<device_facts> cuda_device_facts() { return {}; }
#endif
