#include "child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "roost/error.hpp"

extern char** environ;

namespace roost::stress {

child::child(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw error(fmt::format("stress: no pipe: {}; close other programs", std::strerror(errno)));
  std::vector<char*> words{const_cast<char*>("roost"), const_cast<char*>("stress")};
  for (const auto& one : arguments) words.push_back(const_cast<char*>(one.c_str()));
  const std::string parent = std::to_string(getpid());
  words.insert(words.end(), {const_cast<char*>("--parent"), const_cast<char*>(parent.c_str()), nullptr});
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int failed = posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  from_ = ends[0];
  if (failed == 0) return;
  ::close(from_);
  throw error(fmt::format("stress: no process: {}; close other programs", std::strerror(failed)));
}

child::~child() {
  kill();
  ::close(from_);
}

std::optional<std::string> child::line(double seconds) {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + std::chrono::duration<double>(seconds);
  for (std::size_t end; (end = read_.find('\n')) == std::string::npos;) {
    const double left = std::chrono::duration<double>(until - clock::now()).count();
    pollfd what{from_, POLLIN, 0};
    if (interrupted || left <= 0 || poll(&what, 1, std::min(static_cast<int>(left * 1000) + 1, 100)) < 0) {
      if (interrupted || left <= 0) {
        hangs_ = !interrupted;
        return {};
      }
      continue;
    }
    if (what.revents == 0) continue;
    char some[4096];
    const auto n = ::read(from_, some, sizeof(some));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    read_.append(some, static_cast<std::size_t>(n));
  }
  const auto end = read_.find('\n');
  const std::string first = read_.substr(0, end);
  read_.erase(0, end + 1);
  return first;
}

void child::kill() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
}

std::string child::end() {
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
  return WIFSIGNALED(status) ? fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                             : fmt::format("exit code {}", WEXITSTATUS(status));
}

void belong_to(int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
}

}  // namespace roost::stress
