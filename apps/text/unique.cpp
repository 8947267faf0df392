#include "unique.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "apps/shared/output_file.hpp"
#include "apps/shared/place_choice.hpp"
#include "decimal.hpp"
#include "fields.hpp"
#include "text_options.hpp"
#include "write_rows.hpp"

namespace {

using roost::tools::bad_lines;
using roost::tools::csv_reader;

struct unique_options {
  std::string file = "-", output;
  std::vector<std::string> columns, sums, distinct;
  char delimiter = ',';
  std::string format, sort = "first", bad = "fail", place = "auto";
  std::size_t top = std::numeric_limits<std::size_t>::max();
  roost::tools::table_limits limits;
  int threads = 0;
};

/// How much text, and how many lines, are counted at once, unless more than a quarter of them is distinct.
constexpr std::size_t bytes_at_once = std::size_t{64} << 20, lines_at_once = bytes_at_once / 32;
/// The same for lines in order, which need no table.
constexpr std::size_t ordered_bytes = std::size_t{8} << 20, ordered_lines = ordered_bytes / 8;

using roost::tools::big_vector;
using roost::tools::decimal;

/// Distinct texts and how often each occurred, in their own memory.
class counted_texts {
 public:
  std::size_t size() const { return texts_.size(); }
  std::string_view operator[](std::size_t i) const { return texts_[i]; }
  std::uint64_t count(std::size_t i) const { return counts_[i]; }
  std::size_t bytes() const { return bytes_; }

  /// Counts a text if it must be the last one again, or a new one, because every text so far was behind the
  /// one before it in some order. Otherwise returns false, and later texts go to add().
  bool add_in_order(std::string_view text) {
    if (!texts_.empty()) {
      const auto last = texts_.back();
      const int difference = last.compare(text);
      if (difference == 0) {
        ++counts_.back();
        return true;
      }
      const bool up = difference < 0, longer = last.size() == text.size() ? up : last.size() < text.size();
      orders_ &= (up ? 1U : 2U) | (longer ? 4U : 8U);
      if (orders_ == 0) return false;
    }
    texts_.push_back(keep(text));
    bytes_ += text.size();
    counts_.push_back(1);
    return true;
  }

  /// Counts texts, the first size() of which are those counted before. Returns the number of each text;
  /// numbers of texts counted before do not change.
  std::vector<std::uint32_t> add(const roost::host& cpu, const roost::tools::key_tables& tables,
                                 const roost::tools::text_column& column) {
    auto found = count_fields(cpu, tables, column, counts_);
    const auto before = std::exchange(memory_, {});  // the column views it
    bytes_ = 0;
    for (const auto row : found.rows) bytes_ += column[row].size();
    memory_.emplace_back().reserve(bytes_);
    texts_.clear();
    texts_.reserve(found.rows.size());
    for (const auto row : found.rows) texts_.push_back(keep(column[row]));
    counts_ = std::move(found.counts);
    return std::move(found.numbers);
  }

 private:
  std::string_view keep(std::string_view text) {
    if (memory_.empty() || memory_.back().capacity() - memory_.back().size() < text.size())
      memory_.emplace_back().reserve(std::max(roost::tools::text_piece_bytes, text.size()));
    auto& memory = memory_.back();
    memory.insert(memory.end(), text.begin(), text.end());
    return {memory.data() + memory.size() - text.size(), text.size()};
  }

  big_vector<std::string_view> texts_;
  std::vector<std::uint64_t> counts_;
  std::deque<big_vector<char>> memory_;  // of the texts, which must not move
  std::size_t bytes_ = 0;
  unsigned orders_ = 15;  // that all texts so far are in: of bytes, of sizes and then bytes; up and down
};

/// The exact sum of a column's values for each key. Empty fields have no value.
class summed_column {
 public:
  summed_column(const std::string& file, std::string name) : file_(file), name_(std::move(name)) {}

  /// Adds value i to the sum of key number[i].
  void add(std::size_t keys, std::span<const std::uint32_t> numbers,
           const roost::tools::text_column& values) {
    sums_.resize(keys);
    known_.resize(keys);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto text = values[i];
      if (text.empty()) continue;
      const auto value = roost::tools::read_decimal(text, places_);
      if (!value)
        refuse(fmt::format("'{}' is not a decimal number below 10^20 with at most {} digits after the point",
                           roost::tools::printable(text), roost::tools::decimal_places));
      if (!roost::tools::add_decimal(sums_[numbers[i]], *value)) refuse("a sum goes beyond 10^20");
      known_[numbers[i]] = 1;
    }
  }
  const std::string& name() const { return name_; }
  std::string print(std::size_t key) const {
    return known_[key] != 0 ? roost::tools::print_decimal(sums_[key], places_) : std::string();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw roost::invalid_argument(
        fmt::format("{}: column '{}': {}", file_, roost::tools::printable(name_), why));
  }

  std::string file_, name_;
  int places_ = 0;
  std::vector<decimal> sums_;
  std::vector<std::uint8_t> known_;
};

/// The results for a file.
struct summary {
  counted_texts keys;
  std::vector<counted_texts> pairs;  // of a key and a value, for counts of distinct values
  std::vector<summed_column> sums;
};

/// Puts the keys counted before in front of the rows, each with `others` empty fields.
void put_before(roost::tools::text_rows& rows, const counted_texts& keys, std::size_t others) {
  const auto behind = std::exchange(rows.fields, {});
  for (std::size_t i = 0; i < keys.size(); ++i) {
    rows.fields.push_back(keys[i]);
    rows.fields.resize(rows.fields.size() + others);
  }
  rows.fields.insert(rows.fields.end(), behind.begin(), behind.end());
  rows.bytes += keys.bytes();
}

/// Counts lines while they are in order. Leaves those that were read and not counted in `rows`; returns
/// whether there may be more.
bool count_in_order(roost::tools::text_reader& reader, counted_texts& keys, roost::tools::text_rows& rows) {
  bool more = true;
  while (more && rows.fields.empty()) {
    rows.clear();
    more = reader.read(rows, ordered_bytes, ordered_lines);
    std::ptrdiff_t counted = 0;
    while (counted < std::ssize(rows.fields) && keys.add_in_order(rows.fields[counted])) ++counted;
    rows.fields.erase(rows.fields.begin(), rows.fields.begin() + counted);
  }
  return more;
}

/// Counts the lines of a reader: many lines at a time, then their distinct ones together with the next. So
/// the memory is that of distinct lines, not of all.
void count(const roost::host& cpu, const roost::tools::key_tables& tables, roost::tools::text_reader& reader,
           summary& all) {
  const std::size_t columns = 1 + all.pairs.size() + all.sums.size();
  roost::tools::text_rows rows;
  bool more = columns > 1 || count_in_order(reader, all.keys, rows);
  for (; more || !rows.fields.empty(); rows = {}) {
    const std::size_t before = all.keys.size();
    put_before(rows, all.keys, columns - 1);
    const auto most_bytes = std::max(bytes_at_once, 4 * all.keys.bytes());
    const auto most_lines = std::max(lines_at_once, 4 * before);
    more = more && reader.read(rows, most_bytes, most_lines * columns);
    const auto column = [&](std::size_t c) { return roost::tools::text_column(rows.fields, c, columns); };
    const auto numbers = all.keys.add(cpu, tables, column(0));
    for (std::size_t p = 0; p < all.pairs.size(); ++p) {
      big_vector<std::string_view> texts;
      for (std::size_t i = 0; i < all.pairs[p].size(); ++i) texts.push_back(all.pairs[p][i]);
      const auto fields = column(1 + p);
      for (std::size_t i = before; i < fields.size(); ++i) texts.push_back(fields[i]);
      all.pairs[p].add(cpu, tables, texts);
    }
    for (std::size_t s = 0; s < all.sums.size(); ++s) {
      const auto values = std::span<const std::string_view>(rows.fields).subspan(before * columns);
      all.sums[s].add(all.keys.size(), std::span(numbers).subspan(before),
                      {values, 1 + all.pairs.size() + s, columns});
    }
  }
}

/// The reader of the counted texts: lines, or columns of a CSV file.
std::unique_ptr<roost::tools::text_reader> reader_of(const roost::host& cpu, const unique_options& options) {
  if (options.columns.empty()) return std::make_unique<roost::tools::line_reader>(cpu, options.file);
  auto csv = std::make_unique<csv_reader>(
      cpu, options.file,
      roost::tools::csv_format{options.delimiter, options.bad == "skip" ? bad_lines::skip : bad_lines::fail});
  std::vector<std::size_t> key;
  for (const auto& name : options.columns) key.push_back(csv->column(name));
  roost::tools::csv_choice choice;
  choice.fields.push_back(key);
  for (const auto& name : options.distinct) {  // the value first: the key may have several fields
    choice.fields.push_back({csv->column(name)});
    choice.fields.back().insert(choice.fields.back().end(), key.begin(), key.end());
  }
  for (const auto& name : options.sums) choice.fields.push_back({csv->column(name)});
  csv->choose(choice);
  return csv;
}

/// How many distinct nonempty values occur with each key.
std::vector<std::uint64_t> distinct_values(const roost::host& cpu, const roost::tools::key_tables& tables,
                                           const counted_texts& keys, const counted_texts& pairs) {
  big_vector<std::string_view> texts;
  for (std::size_t i = 0; i < keys.size(); ++i) texts.push_back(keys[i]);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto parts = roost::tools::split_key(pairs[i], 2);
    if (!parts[0].empty()) texts.push_back(parts[1]);
  }
  auto found = count_fields(cpu, tables, texts);
  for (auto& count : found.counts) --count;  // that of the key itself
  return std::move(found.counts);
}

/// Which texts are written, in the order of the output.
std::vector<std::size_t> order_of(const counted_texts& found, const unique_options& options) {
  std::vector<std::size_t> order(found.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options.sort == "count")
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return found.count(i); });
  order.resize(std::min(order.size(), options.top));
  return order;
}

/// The names of the columns of the output, which are unique.
std::vector<std::string> names_of(const unique_options& options) {
  std::vector<std::string> names =
      options.columns.empty() ? std::vector<std::string>{"line"} : options.columns;
  const auto add = [&](std::string name, const char* more) {
    while (std::ranges::find(names, name) != names.end()) name += more;
    names.push_back(name);
  };
  add("count", "_of_rows");
  for (const auto& name : options.sums) add("sum_" + name, "_of_rows");
  for (const auto& name : options.distinct) add("distinct_" + name, "_of_rows");
  return names;
}

void write(const roost::host& cpu, const roost::tools::key_tables& tables, const summary& all,
           const unique_options& options, bool crlf) {
  const auto order = order_of(all.keys, options);
  std::vector<std::vector<std::uint64_t>> distinct;
  for (const auto& pairs : all.pairs) distinct.push_back(distinct_values(cpu, tables, all.keys, pairs));
  roost::tools::output_file out(options.output);
  const bool as_csv = options.format == "csv", lines = options.columns.empty();
  const auto columns = std::max<std::size_t>(options.columns.size(), 1);
  const std::string end = as_csv && crlf ? "\r\n" : "\n";
  const auto add_fields = [&](std::string& line, const auto& fields) {
    for (std::size_t c = 0; c < fields.size(); ++c) {
      if (c != 0) line += options.delimiter;
      roost::tools::append_field(line, fields[c], options.delimiter);
    }
  };
  if (as_csv) {
    std::string header;
    add_fields(header, names_of(options));
    out.write(header + end);
  }
  roost::tools::write_rows(cpu, out, order.size(), [&](std::string& text, std::size_t row) {
    const auto key = order[row];
    const auto line = all.keys[key];
    const fmt::format_int number(all.keys.count(key));
    const std::string_view count(number.data(), number.size());
    if (!as_csv) {  // like uniq -c
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
      for (const auto& sum : all.sums) text += options.delimiter + sum.print(key);
      for (const auto& counts : distinct) text += options.delimiter + std::to_string(counts[key]);
    }
    text += end;
  });
  out.finish();
}

void unique(unique_options options) {
  const auto place = roost::choose_place(options.place);
  const bool more_columns = !options.sums.empty() || !options.distinct.empty();
  if (more_columns && options.format == "uniq")
    throw roost::invalid_argument("unique: --sum and --count-distinct write CSV: leave out --format uniq");
  if (options.format.empty()) options.format = more_columns ? "csv" : "uniq";
  roost::tools::expect_other_files({options.output}, {options.file});
  const roost::host cpu(options.threads);
  const auto reader = reader_of(cpu, options);
  reader->rows_go_to(options.output);
  summary all;
  all.pairs.resize(options.distinct.size());
  for (const auto& name : options.sums)
    all.sums.emplace_back(options.file == "-" ? "standard input" : options.file, name);
  const auto* const csv = dynamic_cast<const csv_reader*>(reader.get());
  const auto limits = roost::tools::limits_at(options.place, place, options.limits);
  roost::tools::use_tables(place, options.threads, limits, [&](const roost::tools::key_tables& tables) {
    count(cpu, tables, *reader, all);
    write(cpu, tables, all, options, csv != nullptr && csv->crlf());
  });
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
  command->add_option("-n,--top", options->top, "Writes at most this many lines of the output")
      ->check([](const std::string& text) { return text == "0" ? "0 lines; give 1 or more" : ""; })
      ->option_text("N");
  const auto add_columns = [&](const char* name, std::vector<std::string>& to, const char* text) {
    command->add_option(name, to, text)->allow_extra_args(false)->option_text("COLUMN")->needs(column);
  };
  add_columns("--sum", options->sums,
              "Adds a column with the exact sum of this column's decimal numbers, without its empty fields; "
              "repeat it for several; the output is CSV");
  add_columns("--count-distinct", options->distinct,
              "Adds a column with the number of different values of this column, other than empty ones; "
              "repeat it for several; the output is CSV");
  command
      ->add_option("--format", options->format,
                   "As uniq -c, or CSV with a header; default: csv with --sum or --count-distinct, else uniq")
      ->check(CLI::IsMember({"uniq", "csv"}));
  roost::tools::add_delimiter(*command, options->delimiter)->needs(column);
  roost::tools::add_output(*command, options->output);
  roost::add_place_options(*command, options->place, options->threads);
  roost::tools::add_limits(*command, options->limits);
  roost::tools::add_bad_lines(*command, options->bad)->needs(column);
  command->footer(
      "Examples:\n"
      "  zcat access.log.*.gz | roost unique --sort count --top 20\n"
      "  roost unique orders.csv.gz --column customer --column year --format csv -o orders_of_customers.csv\n"
      "  roost unique orders.csv --column country --sum amount --count-distinct customer\n"
      "  roost unique large.csv --column id --place cuda --limit 8GB --spill /mnt/disk");
  command->callback([options] { unique(*options); });
}
