#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "apps/shared/csv.hpp"
#include "key_tables.hpp"

/// \file
/// Options that the commands for text files share.

namespace roost::tools {

/// --delimiter: one character, or `tab`.
inline CLI::Option* add_delimiter(CLI::App& command, char& delimiter) {
  return command
      .add_option_function<std::string>(
          "-d,--delimiter",
          [&delimiter](const std::string& text) {
            delimiter = text == "tab" || text == "\\t" ? '\t' : text[0];
          },
          "What separates the fields, here and in the output: a character, or tab")
      ->check([](const std::string& text) -> std::string {
        if (text == "tab" || text == "\\t") return {};
        if (text.size() == 1 && text.find_first_of("\"\r\n") == text.npos && text[0] != '\0') return {};
        return "give one character other than a quote or a line end, or tab";
      })
      ->option_text("CHAR=,");
}

inline CLI::Option* add_bad_lines(CLI::App& command, std::string& bad) {
  return command
      .add_option("--bad-lines", bad,
                  "What to do with malformed lines: fail, or skip them and print their number on stderr")
      ->check(CLI::IsMember({"fail", "skip"}))
      ->capture_default_str();
}

/// --limit, --spill and --host-limit.
inline void add_limits(CLI::App& command, table_limits& limits) {
  command
      .add_option("--limit", limits.device_bytes,
                  "GPU memory that keys may take, such as 8GB: those of larger files go through it piece "
                  "by piece; default: three quarters of what is free. With --place host, a part of the "
                  "host's memory stands for it")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("SIZE")
      ->check([](const std::string& text) { return text == "0" ? "0 bytes; give more" : ""; });
  command
      .add_option("--spill", limits.spill_folder,
                  "Folder for a nameless file in which keys wait between two passes where host memory is "
                  "short")
      ->check(CLI::ExistingDirectory)
      ->option_text("DIR");
  command
      .add_option("--host-limit", limits.host_bytes,
                  "Host memory in which keys may wait before they go to --spill; default: all but one GiB")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("SIZE")
      ->needs("--spill");
}

/// The limits for a place, `host` or `cuda`: where `auto` is the host, there is no device that they are of.
inline table_limits limits_at(const std::string& wanted, const std::string& place, table_limits limits) {
  if (wanted == "auto" && place == "host") limits.device_bytes = 0;
  return limits;
}

/// --output, where `-` is standard output, too.
inline CLI::Option* add_output(CLI::App& command, std::string& output) {
  return command
      .add_option_function<std::string>(
          "-o,--output,--out", [&output](const std::string& file) { output = file == "-" ? "" : file; },
          "Output file, which appears when it is complete; default: standard output")
      ->check([](const std::string& file) -> std::string {
        if (file.empty()) return "the name is empty; leave the option out to write to standard output";
        if (file.ends_with(".parquet"))
          return "Parquet is not written here; write a CSV file, and then: python -c \"import polars; "
                 "polars.read_csv('FILE.csv').write_parquet('FILE.parquet')\"";
        for (const auto& [ending, program] : {std::pair{".gz", "gzip"}, std::pair{".zst", "zstd"}}) {
          if (file.ends_with(ending))
            return std::string("the output is not compressed here; leave --output out and add: | ") +
                   program + " >FILE" + ending;
        }
        if (file.ends_with(".xlsx")) return "the output is CSV, whatever its name; give it one in .csv";
        return {};
      })
      ->option_text("FILE");
}

}  // namespace roost::tools
