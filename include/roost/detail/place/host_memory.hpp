#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "roost/detail/place/config.hpp"

// How much memory the host has: the system's, within the limits of the control groups that this process is in
// (a container is one). The system grants larger requests, and kills the process when it uses them.

namespace roost::detail {

/// A file of the system, by the functions of C: streams of C++ read every number as 0 in a library that was
/// linked with its own copy of libstdc++ and loaded beside another one.
using system_file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
inline system_file open_file(const std::string& file) {
  return {std::fopen(file.c_str(), "re"), &std::fclose};
}

/// A number of bytes that is a file's first word. False if there is no such file, or another word.
inline bool read_bytes(const std::string& file, std::size_t& bytes) {
  const auto in = open_file(file);
  return in && std::fscanf(in.get(), "%zu", &bytes) == 1;
}

/// The sum of the numbers that follow some words in a file.
inline std::size_t sum_behind(const std::string& file, std::initializer_list<std::string_view> words) {
  const auto in = open_file(file);
  std::size_t sum = 0, number = 0;
  for (char word[64]; in && std::fscanf(in.get(), "%63s", word) == 1;) {
    const bool wanted = std::find(words.begin(), words.end(), std::string_view(word)) != words.end();
    if (wanted && std::fscanf(in.get(), "%zu", &number) == 1) sum += number;
  }
  return sum;
}

/// The files with the limits of a control group.
struct memory_group {
  std::string limit, used, facts;
  std::string_view active_files, inactive_files;  // words in `facts`

  /// For version 2 of control groups, or version 1.
  [[gnu::cold]] memory_group(const std::string& folder, bool second)
      : limit(folder + (second ? "/memory.max" : "/memory.limit_in_bytes")),
        used(folder + (second ? "/memory.current" : "/memory.usage_in_bytes")),
        facts(folder + "/memory.stat"),
        active_files(second ? "active_file" : "total_active_file"),
        inactive_files(second ? "inactive_file" : "total_inactive_file") {}
};

/// The control groups of this process, from its own to the root. A container sees its own as the root, and
/// nothing under the name that it may have outside.
[[gnu::cold]] inline std::vector<memory_group> memory_groups(const std::string& root) {
  std::vector<memory_group> result;
  const auto list = open_file(root + "/proc/self/cgroup");  // number:controllers:path
  for (char text[4096]; list && std::fgets(text, sizeof(text), list.get()) != nullptr;) {
    const std::string line(text, std::strcspn(text, "\n"));
    const auto controllers = line.find(':') + 1, path_at = line.find(':', controllers) + 1;
    if (controllers == 0 || path_at == 0) continue;
    const bool second = path_at == controllers + 1;
    if (!second && line.substr(controllers, path_at - controllers - 1) != "memory") continue;
    const std::string groups = root + (second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    const std::string path = line.substr(path_at);
    for (auto end = path.size(); end != 0 && end != path.npos; end = path.rfind('/', end - 1))
      result.emplace_back(groups + path.substr(0, end), second);
    result.emplace_back(groups, second);
  }
  return result;
}

/// An upper bound for any allocation: all memory and swap, within the limits of the process's control groups;
/// the largest number if the system does not say. `root`: where the system's files are.
inline std::size_t read_bytes_of_host(const std::string& root) {
  const std::string facts = root + "/proc/meminfo";
  std::size_t most = sum_behind(facts, {"MemTotal:"}) << 10;
  if (most == 0) most = ~std::size_t{0};
  for (const auto& group : memory_groups(root)) {
    std::size_t limit = 0;
    if (read_bytes(group.limit, limit)) most = smaller(most, limit);
  }
  return most + smaller(sum_behind(facts, {"SwapTotal:"}) << 10, ~most);
}

/// The same for this machine, read once.
inline std::size_t bytes_of_host() {
  static const std::size_t bytes = read_bytes_of_host("");
  return bytes;
}

/// The memory that the system says is still available to programs, within the limits of the process's control
/// groups. Reads files of the system at each call.
inline std::size_t bytes_available_on_host(const std::string& root = "") {
  std::size_t most = sum_behind(root + "/proc/meminfo", {"MemAvailable:"}) << 10;
  if (most == 0) most = ~std::size_t{0};
  for (const auto& group : memory_groups(root)) {
    std::size_t limit = 0, used = 0;
    if (!read_bytes(group.limit, limit) || !read_bytes(group.used, used)) continue;
    const std::size_t files =  // which the system drops when programs need memory
        sum_behind(group.facts, {group.active_files, group.inactive_files});
    most = smaller(most, limit - smaller(limit, used - smaller(used, files)));
  }
  return most;
}

/// Whether so much can be had now. Small amounts always can, so that their allocations read no files.
inline bool host_has_room(std::size_t bytes) {
  if (bytes < std::size_t{1} << 30) return true;
  const std::size_t available = bytes_available_on_host(), swap = sum_behind("/proc/meminfo", {"SwapFree:"})
                                                                  << 10;
  return bytes <= available || bytes - available <= swap;
}

}  // namespace roost::detail
