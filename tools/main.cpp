#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "bench.hpp"
#include "info.hpp"
#include "join.hpp"
#include "reproduce.hpp"
#include "unique.hpp"
#include "voxels.hpp"

// Exit codes: 0 done, 1 it failed (one line on stderr says why), 2 an answer was wrong, above 100 the command line was wrong.
int main(int argc, char** argv) {
  CLI::App app("roost: hash tables for GPUs and CPUs");
  app.set_version_flag("--version", ROOST_VERSION);
  app.require_subcommand(1);
  add_info(app);
  add_bench(app);
  add_voxels(app);
  add_reproduce(app);
  add_join(app);
  add_unique(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::bad_alloc&) {
    std::fputs("roost: no memory; take fewer keys\n", stderr);
    return 1;
  } catch (const std::exception& e) {
    std::fputs(fmt::format("roost: {}\n", e.what()).c_str(), stderr);  // fmt::print throws where nobody hears it
    return 1;
  }
  return 0;
}
