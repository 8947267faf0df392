#include "unique.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include "apps/shared/output_file.hpp"
#include "apps/shared/place_choice.hpp"
#include "fields.hpp"
#include "text_options.hpp"
#include "write_rows.hpp"

namespace {

using roost::tools::bad_lines;
using roost::tools::csv_reader;

struct unique_options {
  std::string file = "-", output;
  std::vector<std::string> columns;
  char delimiter = ',';
  std::string format = "uniq", sort = "first", bad = "fail", place = "auto";
  std::size_t top = std::numeric_limits<std::size_t>::max();
  int threads = 0;
};

/// How much text is counted at once, and how many lines of it, unless more than a quarter of it is different.
constexpr std::size_t bytes_at_once = std::size_t{128} << 20, lines_at_once = bytes_at_once / 32;

/// Different texts and how often each came. Those of all text that was counted before are kept in `text`.
struct counted_texts {
  roost::tools::big_vector<std::string_view> texts;
  std::vector<std::uint64_t> counts;
  roost::tools::big_vector<char> text;
};

/// Counts what a reader has: many lines at a time, then what was different among them together with the next.
/// So the memory is that of different lines, not of all.
counted_texts count(const roost::host& cpu, const roost::tools::key_tables& tables,
                    roost::tools::text_reader& reader, roost::tools::text_rows& rows) {
  counted_texts result;
  for (std::size_t most_bytes = bytes_at_once, most_lines = lines_at_once;;) {
    rows.fields = result.texts;
    rows.bytes = result.text.size();
    const bool more = reader.read(rows, most_bytes, most_lines);
    const auto found = count_fields(cpu, tables, rows.fields, result.counts);
    result.texts.clear();
    result.texts.reserve(found.rows.size());
    for (const auto row : found.rows) result.texts.push_back(rows.fields[row]);
    result.counts = found.counts;
    if (!more) return result;
    roost::tools::big_vector<char> kept;
    const auto bytes = [](std::size_t sum, std::string_view s) { return sum + s.size(); };
    kept.reserve(std::accumulate(result.texts.begin(), result.texts.end(), std::size_t{0}, bytes));
    for (auto& text : result.texts) {
      kept.insert(kept.end(), text.begin(), text.end());
      text = std::string_view(kept.data() + kept.size() - text.size(), text.size());
    }
    result.text = std::move(kept);
    rows.clear();
    most_bytes = std::max(bytes_at_once, 4 * result.text.size());
    most_lines = std::max(lines_at_once, 4 * result.texts.size());
  }
}

/// The reader of what is counted: lines, or columns of a CSV file.
std::unique_ptr<roost::tools::text_reader> reader_of(const roost::host& cpu, const unique_options& options) {
  if (options.columns.empty()) return std::make_unique<roost::tools::line_reader>(cpu, options.file);
  auto csv = std::make_unique<csv_reader>(
      cpu, options.file,
      roost::tools::csv_format{options.delimiter, options.bad == "skip" ? bad_lines::skip : bad_lines::fail});
  roost::tools::csv_choice choice;
  for (const auto& name : options.columns) choice.columns.push_back(csv->column(name));
  choice.as_one = true;
  csv->choose(choice);
  return csv;
}

/// Which of the texts are written, in their order.
std::vector<std::size_t> order_of(const counted_texts& found, const unique_options& options) {
  std::vector<std::size_t> order(found.texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options.sort == "count")
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return found.counts[i]; });
  order.resize(std::min(order.size(), options.top));
  return order;
}

void write(const roost::host& cpu, const counted_texts& found, const unique_options& options, bool crlf) {
  const auto order = order_of(found, options);
  roost::tools::output_file out(options.output);
  const bool as_csv = options.format == "csv", lines = options.columns.empty();
  const auto columns = std::max<std::size_t>(options.columns.size(), 1);
  const std::string end = as_csv && crlf ? "\r\n" : "\n";
  const auto add_fields = [&](std::string& line, const auto& fields) {
    for (std::size_t c = 0; c < columns; ++c) {
      if (c != 0) line += options.delimiter;
      roost::tools::append_field(line, fields[c], options.delimiter);
    }
  };
  if (as_csv) {
    std::string header, count = "count";
    add_fields(header, lines ? std::vector<std::string>{"line"} : options.columns);
    while (std::ranges::find(options.columns, count) != options.columns.end()) count += "_of_rows";
    out.write(header + options.delimiter + count + end);
  }
  roost::tools::write_rows(cpu, out, order.size(), [&](std::string& text, std::size_t row) {
    const auto line = found.texts[order[row]];
    const fmt::format_int number(found.counts[order[row]]);
    const std::string_view count(number.data(), number.size());
    if (!as_csv) {  // as uniq -c does
      constexpr std::size_t width = 7;
      text.append(width - std::min(width, count.size()), ' ');
      text += count;
      text += ' ';
    }
    if (lines && !as_csv) {
      text += line;
    } else if (columns == 1) {
      roost::tools::append_field(text, line, options.delimiter);
    } else {
      add_fields(text, roost::tools::split_key(line, columns));
    }
    if (as_csv) {
      text += options.delimiter;
      text += count;
    }
    text += end;
  });
  out.finish();
}

void unique(const unique_options& options) {
  const auto place = roost::choose_place(options.place);
  roost::tools::expect_other_files({options.output}, {options.file});
  const roost::host cpu(options.threads);
  const auto reader = reader_of(cpu, options);
  reader->rows_go_to(options.output);
  roost::tools::text_rows rows;
  counted_texts found;
  roost::tools::use_tables(place, options.threads, [&](const roost::tools::key_tables& tables) {
    found = count(cpu, tables, *reader, rows);
  });
  const auto* const csv = dynamic_cast<const csv_reader*>(reader.get());
  write(cpu, found, options, csv != nullptr && csv->crlf());
  reader->report_skipped();
}

}  // namespace

void add_unique(CLI::App& app) {
  auto options = std::make_shared<unique_options>();
  CLI::App* const command = app.add_subcommand("unique",
                                               "Counts the distinct lines of a file, or fields of CSV "
                                               "columns, in order of first occurrence");
  command->add_option("file", options->file,
                      "Input file, also of gzip or zstd; default, and -: standard input");
  auto* const column =
      command
          ->add_option("-c,--column", options->columns,
                       "Reads the file as CSV with a header, and counts the fields of this column; repeat it "
                       "to count the combinations of several columns")
          ->allow_extra_args(false)
          ->option_text("COLUMN");
  command
      ->add_option("-s,--sort", options->sort,
                   "Order of the output: first occurrence, or count, the most frequent first")
      ->check(CLI::IsMember({"first", "count"}))
      ->capture_default_str();
  command->add_option("-n,--top", options->top, "Writes so many lines of the output at most")
      ->check(CLI::Range(std::size_t{1}, std::numeric_limits<std::size_t>::max()))
      ->option_text("N");
  command->add_option("--format", options->format, "Output: as uniq -c writes it, or CSV with a header")
      ->check(CLI::IsMember({"uniq", "csv"}))
      ->capture_default_str();
  roost::tools::add_delimiter(*command, options->delimiter)->needs(column);
  roost::tools::add_output(*command, options->output);
  roost::add_place_options(*command, options->place, options->threads);
  roost::tools::add_bad_lines(*command, options->bad)->needs(column);
  command->footer(
      "Examples:\n"
      "  zcat access.log.*.gz | roost unique --sort count --top 20\n"
      "  roost unique orders.csv.gz --column customer --column year --format csv -o orders_of_customers.csv");
  command->callback([options] { unique(*options); });
}
