#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

/// A file, in memory if possible, that one process of a fuzzer writes again and again.
class fuzzed_file {
 public:
  explicit fuzzed_file(const std::string& extension)
      : path_(folder() / ("roost_fuzz_" + std::to_string(getpid()) + extension)) {}
  ~fuzzed_file() { std::filesystem::remove(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::string write(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_.string();
  }

 private:
  static std::filesystem::path folder() {
    const std::filesystem::path memory = "/dev/shm";  // which OSS-Fuzz has not
    return std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

/// What must hold.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}
