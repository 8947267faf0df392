// Preloaded into examples/processes.cpp: process number ROOST_KILL_RANK is killed, as by kill -9, when it is
// about to send for the time ROOST_KILL_SEND.
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace {

int forks = 0, number = -1;  // of this process; the first one has none
std::atomic<int> sends{0};

template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" pid_t fork() {
  static const auto real = next(&fork, "fork");
  const pid_t result = real();
  if (result == 0) number = forks;
  ++forks;
  return result;
}

extern "C" ssize_t send(int socket, const void* data, size_t bytes, int flags) {
  static const auto real = next(&send, "send");
  static const int victim = std::atoi(std::getenv("ROOST_KILL_RANK")),
                   at = std::atoi(std::getenv("ROOST_KILL_SEND"));
  if (number == victim && ++sends == at) raise(SIGKILL);
  return real(socket, data, bytes, flags);
}
