#pragma once

#include <CLI/CLI.hpp>
#include <string>

/// \file
/// What a command line parser tells about itself: help, a man page, and completions for shells, all made from
/// the same options.

namespace roost::tools {

/// Lines of help of at most 100 columns; before the commands are added, which inherit it.
void format_help(CLI::App& app);

/// Refuses integers that CLI11 would take for others: negative ones where none may be, those that are too
/// large for 64 bits, and those that begin with 0, which it reads as octal or hexadecimal. After all options
/// are added.
void refuse_wrong_numbers(CLI::App& app);

/// Throws CLI::ValidationError if a command was expected and this is none, with those that there are.
void expect_commands(const CLI::App& app, int argc, const char* const* argv);

/// `kind`: bash or zsh, a script that completes command lines; or man, a page in roff. `commands` begins with
/// the name of the program.
std::string describe(const CLI::App& app, const std::string& kind);

}  // namespace roost::tools
