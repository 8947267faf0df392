#include "plot_script.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

std::string plot_script() {
  namespace fs = std::filesystem;
  std::error_code failure;
  const auto program = fs::read_symlink("/proc/self/exe", failure);
  const auto prefix = program.parent_path().parent_path();
  for (const auto& script : {prefix / "share" / "roost" / "plot",
                             fs::path(__FILE__).parent_path().parent_path() / "scripts" / "plot"}) {
    if (fs::exists(script, failure)) return script.string();
  }
  return {};
}

bool run_plot(std::vector<std::string> arguments) {
  const auto script = plot_script();
  arguments.insert(arguments.begin(), script);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = 1;
  return !script.empty() &&
         posix_spawn(&child, script.c_str(), nullptr, nullptr, argv.data(), environ) == 0 &&
         waitpid(child, &status, 0) == child && status == 0;
}
