#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <sstream>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace roost::tools {
namespace {

using apps = std::vector<const CLI::App*>;

apps commands_of(const CLI::App& app) {
  apps result;
  for (const auto* command : app.get_subcommands(std::function<bool(const CLI::App*)>{})) {
    if (!command->get_name().empty()) result.push_back(command);
  }
  return result;
}

/// The options that help shows; those without a group are hidden.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

/// -o, --output ...
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() != 0; }

/// The choices of an option: CLI11 lists them as {a,b} or {a->1,b->2} after the type.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const auto type = option.get_type_name();
  const auto open = type.find('{'), close = type.find('}');
  std::vector<std::string> choices;
  if (open == type.npos || close == type.npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');)
    choices.push_back(choice.substr(0, choice.find("->")));
  return choices;
}

std::string replaced(std::string_view text, char what, std::string_view with) {
  std::string result;
  for (const char c : text) c == what ? result += with : result += c;
  return result;
}

/// Words in lines of at most `width`.
std::string wrapped(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::string result, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      result += line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line;
}

class narrow_formatter final : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), 100 - get_column_width());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_name(),
                             wrapped(command->get_description(), 100 - get_column_width()),
                             get_column_width());
    return out.str();
  }
  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description(), 100) + "\n";
  }
  /// "meshes..." even if their number is limited.
  std::string make_option_usage(const CLI::Option* option) const override {
    const auto text = CLI::Formatter::make_option_usage(option);
    const auto number = text.find("(1x)");
    return number == text.npos ? text : text.substr(0, number) + "...";
  }
  /// Puts long lists of choices below the name.
  std::string make_option_opts(const CLI::Option* option) const override {
    const auto text = CLI::Formatter::make_option_opts(option);
    return text.size() < 60 ? text : " " + broken(text);
  }

 private:
  /// Breaks lines after commas.
  static std::string broken(const std::string& text) {
    auto result = wrapped(replaced(text, ',', ", "), 90);
    for (std::size_t at = 0; (at = result.find('\n', at)) != result.npos; at += 6)
      result.replace(at, 1, "\n     ");
    std::string joined;
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i] == ' ' && i > 0 && result[i - 1] == ',') continue;
      joined += result[i];
    }
    return joined;
  }
};

/// f(command, path) for the program and all commands of commands; the path of the program is empty, those of
/// its commands begin with a blank.
template <class F>
void for_each_command(const CLI::App& app, const std::string& path, const F& f) {
  f(app, path);
  for (const auto* command : commands_of(app))
    for_each_command(*command, path + ' ' + command->get_name(), f);
}

std::string names_of_commands(const CLI::App& app) {
  std::string result;
  for (const auto* command : commands_of(app)) result += (result.empty() ? "" : " ") + command->get_name();
  return result;
}

std::string bash_completion(const CLI::App& app) {
  std::string commands, values, words;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    if (!path.empty()) {
      const auto last = path.rfind(' ');
      commands += fmt::format("{}\"{} {}\"", commands.empty() ? "" : " | ", path.substr(0, last),
                              path.substr(last + 1));
    }
    std::string options;
    for (const auto* option : options_of(command)) {
      for (const auto& name : names_of(*option)) options += name + ' ';
      const auto choices = choices_of(*option);
      if (choices.empty() || names_of(*option).empty()) continue;
      std::vector<std::string> patterns;
      for (const auto& name : names_of(*option)) patterns.push_back(fmt::format("\"{} {}\"", path, name));
      values += fmt::format("    {}) words=\"{}\" ;;\n", fmt::join(patterns, " | "), fmt::join(choices, " "));
    }
    words += fmt::format("    \"{}\") commands=\"{}\" options=\"{}\" ;;\n", path, names_of_commands(command),
                         options);
  });
  return fmt::format(
      R"(# bash completion for {0}; `{0} --generate bash` prints it
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local path="" word words="" commands="" options=""
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
    {1}) path="$path $word" ;;
    esac
  done
  case "$path $before" in
{2}  esac
  case "$path" in
{3}  esac
  if [[ -z $words && $current == -* ]]; then
    words=$options
  elif [[ -z $words ]]; then
    words=$commands
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _{0} {0}
)",
      app.get_name(), commands, values, words);
}

/// A word of zsh in single quotes, in which brackets and colons are special.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return replaced(result, '\'', "'\\''");
}

std::string zsh_completion(const CLI::App& app) {
  std::string functions;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    const auto function = fmt::format("_{}{}", app.get_name(), replaced(path, ' ', "_"));
    const auto commands = commands_of(command);
    functions += fmt::format("{}() {{\n  local curcontext=$curcontext state line\n  _arguments -C -s -S",
                             path.empty() ? function + "_program" : function);
    for (const auto* option : options_of(command)) {
      const auto names = names_of(*option);
      if (names.empty()) continue;
      std::string value;
      if (takes_value(*option)) {
        const auto choices = choices_of(*option);
        value = ":value:" + (choices.empty() ? "_files" : fmt::format("({})", fmt::join(choices, " ")));
      }
      for (const auto& name : names) {
        functions += fmt::format(" \\\n    '{}{}[{}]{}'", option->get_items_expected_max() > 1 ? "*" : "",
                                 name, zsh_text(option->get_description()), value);
      }
    }
    if (commands.empty()) {
      functions += " \\\n    '*:file:_files'\n}\n\n";
      return;
    }
    functions += " \\\n    '1:command:->command' '*::argument:->argument'\n  case $state in\n  command)\n";
    functions += "    local -a commands=(\n";
    for (const auto* c : commands)
      functions += fmt::format("      '{}:{}'\n", c->get_name(), zsh_text(c->get_description()));
    functions += "    )\n    _describe command commands ;;\n  argument)\n    case $words[1] in\n";
    for (const auto* c : commands) {
      functions +=
          fmt::format("    {0}) _{1}{2}_{0} ;;\n", c->get_name(), app.get_name(), replaced(path, ' ', "_"));
    }
    functions += "    esac ;;\n  esac\n}\n\n";
  });
  return fmt::format(
      "#compdef {0}\n# zsh completion for {0}; `{0} --generate zsh` prints it\n\n{1}_{0}_program \"$@\"\n",
      app.get_name(), functions);
}

/// Text of roff: no line is a request, and a hyphen stays a hyphen.
std::string roff(std::string_view text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    begins = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string man_page(const CLI::App& app) {
  std::string page =
      fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", "ROOST",
                  app.get_name(), ROOST_VERSION, app.get_name(), "hash tables for GPUs and CPUs");
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    if (path.empty() || !commands_of(command).empty()) return;
    page += fmt::format(".B {}{}\n[options]", app.get_name(), roff(path));
    for (const auto* option : options_of(command)) {
      if (!names_of(*option).empty()) continue;
      const std::string more = option->get_items_expected_max() > 1 ? " ..." : "";
      page += option->get_required() ? fmt::format(" {}{}", option->get_name(), more)
                                     : fmt::format(" [{}{}]", option->get_name(), more);
    }
    page += "\n.br\n";
  });
  page +=
      ".SH DESCRIPTION\nMeasures hash tables and uses them: on text files, meshes and pictures of stars.\n";
  page += ".SH COMMANDS\n";
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    if (!path.empty()) {
      page += fmt::format(".SS {}{}\n{}.\n", app.get_name(), roff(path), roff(command.get_description()));
    }
    for (const auto* option : options_of(command)) {
      const auto names = names_of(*option);
      std::string value;
      if (takes_value(*option) && !names.empty()) {
        const auto choices = choices_of(*option);
        value = choices.empty() ? " VALUE" : fmt::format(" {{{}}}", fmt::join(choices, ", "));
      }
      if (!option->get_default_str().empty()) value += " = " + option->get_default_str();
      const auto name = names.empty() ? option->get_name() : fmt::format("{}", fmt::join(names, ", "));
      page += fmt::format(".TP\n.B {}{}\n{}.\n", roff(name), roff(value), roff(option->get_description()));
    }
    if (const auto footer = command.get_footer(); !path.empty() && !footer.empty())
      page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(footer));
  });
  page +=
      ".SH EXIT STATUS\n0: done. 1: it failed, and one line on standard error says why. 2: an answer was "
      "wrong. 3: there is no answer. 64: the command line was wrong, and one line on standard error says "
      "what to change.\n";
  return page;
}

/// Describes the error in a number that CLI11 would read as another one; a unit may follow the number.
template <class Number>
std::string wrong_number(const std::string& text) {
  if (std::is_unsigned_v<Number> && text.starts_with('-'))
    return fmt::format("{} is negative; give a number without a minus", text);
  Number number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc::result_out_of_range)
    return fmt::format("{} does not fit in 64 bits; give a number that is nearer to 0", text);
  const auto digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
  const bool other_base = digits.size() > 1 && digits[0] == '0' &&
                          std::string_view("0123456789xX").find(digits[1]) != std::string_view::npos;
  if (failure != std::errc() || other_base)
    return fmt::format("{} is not a decimal number; give one such as 10", text.empty() ? "nothing" : text);
  return {};
}

/// How many letters are inserted, left out, replaced, or exchanged with the next to turn one word into
/// another.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), above, next(b.size() + 1);  // above: of two letters before
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), row[j] + 1, next[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], above[j - 2] + 1);
    }
    above = std::exchange(row, next);
  }
  return row.back();
}

}  // namespace

void format_help(CLI::App& app) {
  auto formatter = std::make_shared<narrow_formatter>();
  formatter->column_width(26);
  app.formatter(formatter);
}

void refuse_wrong_numbers(CLI::App& app) {
  for (auto* option : app.get_options(std::function<bool(CLI::Option*)>{})) {
    const auto type = option->get_type_name();  // the first one is checked first
    if (type.starts_with("UINT")) option->transform(CLI::Validator(wrong_number<std::uint64_t>, ""));
    if (type.starts_with("INT")) option->transform(CLI::Validator(wrong_number<std::int64_t>, ""));
  }
  for (auto* command : app.get_subcommands(std::function<bool(CLI::App*)>{})) refuse_wrong_numbers(*command);
}

void expect_commands(const CLI::App& app, int argc, const char* const* argv) {
  const auto commands = commands_of(app);
  if (commands.empty() || (argc > 1 && argv[1][0] == '-')) return;
  for (const auto* command : commands) {
    if (argc > 1 && command->get_name() == argv[1]) return expect_commands(*command, argc - 1, argv + 1);
  }
  const auto wrong = argc > 1 ? fmt::format("'{}' is not a command", argv[1]) : "a command is missing";
#if ROOST_SMALL_TOOL
  constexpr std::string_view others = "; ./scripts/demo --whole builds the others";
#else
  constexpr std::string_view others;
#endif
  std::vector<std::string> names;
  for (const auto* command : commands) names.push_back(command->get_name());
  throw CLI::ParseError(
      fmt::format("{}; commands: {}{}{}", wrong, replaced(names_of_commands(app), ' ', ", "), others,
                  argc > 1 ? suggestion(argv[1], names) : ""),
      CLI::ExitCodes::ExtrasError);
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const auto& name : names) {
    const std::size_t distance = edits(word, name);
    if (distance >= least) continue;
    least = distance;
    best = name;
  }
  return best.empty() ? best : fmt::format("; did you mean {}?", best);
}

std::string describe(const CLI::App& app, const std::string& kind) {
  return kind == "man" ? man_page(app) : kind == "zsh" ? zsh_completion(app) : bash_completion(app);
}

}  // namespace roost::tools
