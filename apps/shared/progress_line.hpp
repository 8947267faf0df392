#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace roost::tools {

/// Shows progress, only on a terminal.
class progress_line {
 public:
  void show(const std::string& what) const {
    if (on_) std::fputs(fmt::format("\r\033[K{} ...", what).c_str(), stderr);
  }
  void clear() const {
    if (on_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool on_ = isatty(STDERR_FILENO) == 1;
};

/// Shows how much of a file has been read: five times a second, and not if rows also go to a terminal.
class file_progress {
 public:
  ~file_progress() {
    if (shown_) line_.clear();
  }
  /// Sets where rows go: a file, or standard output if `output` is empty, which is the default.
  void rows_go_to(const std::string& output) { on_ = !output.empty() || isatty(STDOUT_FILENO) == 0; }
  /// `all`: bytes of the file, 0 if that is not known.
  void show(const std::string& name, std::size_t read, std::size_t all) {
    if (!on_ || std::chrono::steady_clock::now() < next_) return;
    next_ = std::chrono::steady_clock::now() + apart;
    shown_ = true;
    const auto of = all == 0 ? std::string() : fmt::format(" of {:.0f}", static_cast<double>(all) / 1e6);
    line_.show(fmt::format("reads {}: {:.0f}{} MB", name, static_cast<double>(read) / 1e6, of));
  }

 private:
  static constexpr std::chrono::milliseconds apart{200};

  progress_line line_;
  bool on_ = isatty(STDOUT_FILENO) == 0, shown_ = false;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + apart;
};

}  // namespace roost::tools
