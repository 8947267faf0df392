#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// \file
/// Descriptions of a command line parser: help, a man page, and shell completions, all made from the same
/// options.

namespace roost::tools {

/// Limits help to 100 columns. Call it before the commands are added, which inherit it.
void format_help(CLI::App& app);

/// Refuses integers that CLI11 would read as others: negative ones for unsigned options, those too large for
/// 64 bits, and those that begin with 0, which it reads as octal or hexadecimal. Call it after all options
/// are added.
void refuse_wrong_numbers(CLI::App& app);

/// Throws CLI::ParseError, which lists the commands, if the next word should be one and is not, or is
/// missing.
void expect_commands(const CLI::App& app, int argc, const char* const* argv);

/// "; did you mean NAME?" with the one of these names that a word is likely to stand for, or nothing.
std::string suggestion(const std::string& word, const std::vector<std::string>& names);

/// `kind`: bash or zsh, a script that completes command lines; or man, a page in roff. `commands` begins with
/// the name of the program.
std::string describe(const CLI::App& app, const std::string& kind);

}  // namespace roost::tools
