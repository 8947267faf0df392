#include "plot_script.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

bool run_plot(std::vector<std::string> arguments) {
  const auto script =
      (std::filesystem::path(__FILE__).parent_path().parent_path() / "scripts" / "plot").string();
  arguments.insert(arguments.begin(), script);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = 1;
  return std::filesystem::exists(script) &&
         posix_spawn(&child, script.c_str(), nullptr, nullptr, argv.data(), environ) == 0 &&
         waitpid(child, &status, 0) == child && status == 0;
}
