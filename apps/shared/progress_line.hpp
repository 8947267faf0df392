#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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

/// Shows how much of a file has been read, and how long the rest takes if its size is known: five times a
/// second, and not if rows also go to a terminal.
class file_progress {
 public:
  ~file_progress() {
    if (shown_) line_.clear();
  }
  /// Sets where rows go: a file, or standard output if `output` is empty, which is the default.
  void rows_go_to(const std::string& output) { on_ = !output.empty() || isatty(STDOUT_FILENO) == 0; }
  /// The time left is that at the speed from the first call on; `read`: the bytes read before it.
  void start(std::size_t read) {
    if (begin_ == clock::time_point()) begin_ = clock::now(), read_before_ = read;
  }
  /// `all`: bytes of the file, 0 if that is not known.
  void show(const std::string& name, std::size_t read, std::size_t all) {
    const auto now = clock::now();
    const bool last = shown_ && read == all;  // the line stays until all is counted or joined
    if (!on_ || (now < next_ && !last)) return;
    next_ = now + apart;
    shown_ = true;
    constexpr double mega = 1e6;
    auto text = fmt::format("reads {}: {:.0f}", name, static_cast<double>(read) / mega);
    if (all == 0) return line_.show(text + " MB");
    text +=
        fmt::format(" of {:.0f} MB, {} %", static_cast<double>(all) / mega, 100 * std::min(read, all) / all);
    if (begin_ != clock::time_point() && read_before_ < read && read < all) {
      const auto taken = std::chrono::duration<double>(now - begin_).count();
      const double left = taken * static_cast<double>(all - read) / static_cast<double>(read - read_before_);
      constexpr int seconds_most = 120;
      text += left < seconds_most ? fmt::format(", {:.0f} s left", left)
                                  : fmt::format(", {:.0f} min left", left / 60);
    }
    line_.show(text);
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds apart{200};

  progress_line line_;
  bool on_ = isatty(STDOUT_FILENO) == 0, shown_ = false;
  std::size_t read_before_ = 0;
  clock::time_point begin_, next_ = clock::now() + apart;
};

}  // namespace roost::tools
