#include "unique.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "fields.hpp"
#include "place_choice.hpp"

namespace {

using roost::tools::bad_lines;

struct unique_options {
  std::string file, output;
  std::optional<std::string> column;
  std::string bad = "fail", place = "auto";
  int threads = 0;
};

/// Writes a count for people as `uniq -c` does.
void write_count(roost::tools::text_writer& out, std::uint64_t count) {
  out.write(fmt::format("{:>7} ", count));
}

void unique(const unique_options& options) {
  const auto place = roost::choose_place(options.place);
  roost::tools::expect_another_file(options.output, options.file);
  std::optional<roost::tools::csv_file> csv;
  roost::tools::text_table lines;
  if (options.column) {
    csv = roost::tools::read_csv(options.file, options.bad == "skip" ? bad_lines::skip : bad_lines::fail);
  } else {
    lines = roost::tools::read_lines(options.file);
  }
  const auto texts = csv ? csv->fields(csv->column(*options.column)) : lines.column_from(0, 0);
  roost::tools::text_writer out(options.output);

  roost::tools::different_fields found;
  const auto count = [&](const roost::tools::key_tables& tables) {
    found = count_fields(roost::host(options.threads), tables, texts);
  };
  roost::tools::use_tables(place, options.threads, count);

  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    write_count(out, found.counts[i]);
    if (csv) {
      write_field(out, texts[found.rows[i]]);
    } else {
      out.write(texts[found.rows[i]]);
    }
    out.write("\n");
  }
  out.finish();
  if (csv) report_skipped(*csv);
}

}  // namespace

void add_unique(CLI::App& app) {
  auto options = std::make_shared<unique_options>();
  CLI::App* const command = app.add_subcommand("unique",
                                               "Counts the distinct lines of a file, or fields of a CSV "
                                               "column, in order of first occurrence");
  command->add_option("file", options->file, "Input file; - for standard input")->required();
  auto* const column =
      command->add_option("--column", options->column,
                          "Reads the file as CSV with a header, and counts the fields of this column");
  command->add_option("--output", options->output, "Output file; default: standard output");
  roost::add_place_options(*command, options->place, options->threads);
  command
      ->add_option(
          "--bad-lines", options->bad,
          "What to do with malformed lines of the CSV: fail, or skip them and print their number on stderr")
      ->check(CLI::IsMember({"fail", "skip"}))
      ->capture_default_str()
      ->needs(column);
  command->callback([options] { unique(*options); });
}
