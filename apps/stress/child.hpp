#pragma once

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

/// \file
/// This program, started again: it can be killed, and it may crash or hang.

namespace roost::stress {

/// The number of the signal that asks this process to end (Ctrl-C), or 0. Nothing waits any longer after it.
inline std::atomic<int> interrupted = 0;

/// A process of this program whose standard output is a pipe. Killed by the destructor.
class child {
 public:
  explicit child(const std::vector<std::string>& arguments);
  child(const child&) = delete;
  ~child();

  /// Its next line; nothing when its output has ended, after so many seconds, or if `interrupted`.
  std::optional<std::string> line(double seconds);
  /// Kills it.
  void kill();
  /// How the process ended, once its output has: "exit code 0", "signal 11 (Segmentation fault)".
  std::string end();
  /// Whether line() has waited in vain.
  bool hangs() const { return hangs_; }

 private:
  pid_t process_ = 0;
  int from_ = -1;
  bool hangs_ = false;
  std::string read_;
};

/// In a child: ends it with its parent, and leaves Ctrl-C to that.
void belong_to(int parent);

}  // namespace roost::stress
