#include "plot_script.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace {

/// The reading end of a pipe and the process that writes into it, until both are closed.
struct writing_child {
  pid_t child = 0;
  int from = -1;

  /// Returns the exit code. A child that still writes gets a broken pipe, and ends.
  int wait() {
    if (from >= 0) close(std::exchange(from, -1));
    int status = 0;
    const pid_t waits_for = std::exchange(child, 0);
    while (waits_for != 0) {
      if (waitpid(waits_for, &status, 0) == waits_for) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      if (errno != EINTR) break;
    }
    return -1;
  }
  ~writing_child() { wait(); }
};

}  // namespace

std::string script_path(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const auto program = fs::read_symlink("/proc/self/exe", failure);
  const auto prefix = program.parent_path().parent_path();
  const auto source = fs::path(__FILE__).parent_path() / "../../scripts";
  for (const auto& script : {prefix / "share" / "roost" / name, source / name}) {
    if (fs::exists(script, failure)) return script.string();
  }
  return {};
}

int run_script(const std::string& name, std::vector<std::string> arguments,
               const std::function<void(std::string_view)>& read) {
  const auto script = script_path(name);
  if (script.empty()) return -1;
  arguments.insert(arguments.begin(), script);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  writing_child process;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int ends[2] = {-1, -1};
  if (read) {
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    process.from = ends[0];
  }
  const bool started =
      posix_spawn(&process.child, script.c_str(), &actions, nullptr, argv.data(), environ) == 0;
  if (!started) process.child = 0;
  posix_spawn_file_actions_destroy(&actions);
  if (read) close(ends[1]);
  std::vector<char> piece(read && started ? 1 << 16 : 0);
  while (!piece.empty()) {
    const auto bytes = ::read(process.from, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    read({piece.data(), static_cast<std::size_t>(bytes)});
  }
  return process.wait();
}

bool run_plot(std::vector<std::string> arguments) {
  const int code = run_script("plot", std::move(arguments));
  if (code == -1)
    std::fputs("roost: nothing is drawn: let share/roost/plot be where roost is, and install python3\n",
               stderr);
  return code == 0;
}
