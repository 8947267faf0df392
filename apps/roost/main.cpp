#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <string>

#include "apps/bench/bench.hpp"
#include "apps/lidar/lidar.hpp"
#include "apps/match/match.hpp"
#include "apps/reproduce/reproduce.hpp"
#include "apps/shared/info.hpp"
#include "apps/solids/voxels.hpp"
#include "apps/stars/stars.hpp"
#include "apps/stress/stress.hpp"
#include "apps/text/join.hpp"
#include "apps/text/unique.hpp"
#include "describe.hpp"

namespace {

/// An error's text with ? for line ends and other control characters, which names of files and columns may
/// have.
std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

/// What a value that is "VALUE not in {A,B}" is likely to stand for.
std::string suggested_value(const std::string& text, std::size_t set) {
  const auto begin = text.rfind(' ', set - 1) + 1;
  auto value = text.substr(begin, set - begin);
  if (value == "full") value = "outer";  // as a join is called elsewhere
  std::vector<std::string> names;
  std::istringstream list(text.substr(set + 9, text.size() - set - 10));
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return roost::tools::suggestion(value, names);
}

constexpr int wrong_command_line = 64;  // EX_USAGE of sysexits.h

/// What is wrong with a command line, on one line.
std::string usage_error(const CLI::App& app, int argc, char** argv, const CLI::ParseError& error) {
  std::string path;  // of the command
  const auto* command = &app;
  for (int i = 1; i < argc; ++i) {
    const auto next =
        command->get_subcommands([&](const CLI::App* one) { return one->get_name() == argv[i]; });
    if (next.empty()) break;
    command = next.front();
    path += command->get_name() + ' ';
  }
  std::string text = error.what();
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const auto unknown = app.remaining(true);  // what() lists them from the last to the first
  if (!unknown.empty() && (kind == CLI::ExitCodes::ExtrasError || kind == CLI::ExitCodes::RequiredError)) {
    text = fmt::format("{}: no such option or argument", fmt::join(unknown, " "));
    std::vector<std::string> names;
    for (const auto* option : command->get_options()) {
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    }
    const auto first = unknown.front().substr(0, unknown.front().find('='));
    if (first.starts_with("--")) text += roost::tools::suggestion(first, names);
  } else if (const auto set = text.find(" not in {"); set != text.npos && text.ends_with('}')) {
    text += suggested_value(text, set);
  } else if (kind == CLI::ExitCodes::ArgumentMismatch && text.ends_with(" missing")) {
    text = text.substr(0, text.find(": ")) + ": give a value";
  }
  const auto prefix = path.empty() ? "" : path.substr(0, path.size() - 1) + ": ";
  return fmt::format("roost: {}{} (see roost {}--help)\n", prefix, one_line(text), path);
}

/// Returns the exit code: `code`, or 1 if this text or earlier output cannot be written to standard output.
int print_last(int code, const std::string& text = {}) {
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (written && std::ferror(stdout) == 0) return code;
  const std::string why =
      written ? "" : fmt::format(" ({})", std::strerror(errno));  // an earlier failure has not kept errno
  std::fputs(
      fmt::format(
          "roost: standard output: cannot be written{}; check the directory, its permissions and its space\n",
          why)
          .c_str(),
      stderr);
  return 1;
}

}  // namespace

// Exit codes: 0 success, 1 failure (one line on stderr says why), 2 a wrong answer, 3 no answer, 64 a
// command line that cannot be parsed (one line, too). The last line of the help says so.
int main(int argc, char** argv) {
  CLI::App app("roost: hash tables for GPUs and CPUs");
  app.name("roost");
  app.set_version_flag("-V,--version", ROOST_VERSION);
  app.require_subcommand(1);
  roost::tools::format_help(app);
  const auto generate = [&app](const std::string& kind) {
    throw CLI::CallForVersion(roost::tools::describe(app, kind), 0);
  };
  app.add_option_function<std::string>("--generate", generate, "Prints a completion script or the man page")
      ->check(CLI::IsMember({"bash", "zsh", "man"}))
      ->group("");  // for packagers
  add_info(app);
  add_bench(app);
  add_voxels(app);
#if !ROOST_SMALL_TOOL
  add_reproduce(app);
  add_join(app);
  add_unique(app);
  add_stars(app);
  add_lidar(app);
  add_match(app);
  add_stress(app);
#endif
  app.footer(
      "roost COMMAND --help lists the options of a command, with examples.\n"
      "Exit codes: 0 success, 1 failure, 2 a wrong answer, 3 no answer, 64 a command line that cannot be "
      "read."
#if ROOST_SMALL_TOOL
      "\nThis command is what ./scripts/demo shows; ./scripts/demo --whole builds the whole one."
#endif
  );
  roost::tools::refuse_wrong_numbers(app);
  try {
    roost::tools::expect_commands(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0 && e.get_name() != "RuntimeError") {
      std::fputs(usage_error(app, argc, argv, e).c_str(), stderr);
      return wrong_command_line;
    }
    std::ostringstream help;
    const int code = app.exit(e, help);
    return print_last(code, help.str());
  } catch (const std::bad_alloc&) {
    std::fputs("roost: no memory; take fewer keys or smaller files\n", stderr);
    return 1;
  } catch (const std::exception& e) {
    std::fputs(fmt::format("roost: {}\n", one_line(e.what())).c_str(),
               stderr);  // fmt::print would throw with nothing to catch it
    return 1;
  }
  return print_last(0);
}
