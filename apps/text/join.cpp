#include "join.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "apps/shared/output_file.hpp"
#include "apps/shared/place_choice.hpp"
#include "fields.hpp"
#include "text_options.hpp"
#include "write_rows.hpp"

namespace {

using roost::tools::bad_lines;
using roost::tools::csv_reader;
using roost::tools::empty_keys;
using roost::tools::join_kind;
using roost::tools::text_rows;

const std::map<std::string, join_kind> kinds{{"inner", join_kind::inner},
                                             {"left", join_kind::left},
                                             {"outer", join_kind::outer},
                                             {"semi", join_kind::semi},
                                             {"anti", join_kind::anti}};

/// How much of the left file is in memory at once.
constexpr std::size_t left_bytes_at_once = std::size_t{32} << 20, left_rows_at_once = left_bytes_at_once / 32;

struct join_options {
  std::string left, right, output;
  std::vector<std::string> on;
  char delimiter = ',';
  std::string kind = "inner", empty = "match", bad = "fail", place = "auto", suffix = "_right";
  int threads = 0;
};

/// The columns that --on names: one name for both files, or two with = between them. A name with = in it that
/// both have is one name.
std::pair<std::size_t, std::size_t> key_columns(const std::string& on, const csv_reader& left,
                                                const csv_reader& right) {
  const auto equals = on.find('=');
  if (equals == on.npos || (left.has_column(on) && right.has_column(on)))
    return {left.column(on), right.column(on)};
  return {left.column(on.substr(0, equals)), right.column(on.substr(equals + 1))};
}

/// Gives names that differ: one that is taken gets the suffix until it is free; where many have one name, a
/// number behind it, so that names stay short.
class free_names {
 public:
  free_names(const std::vector<std::string>& taken, const std::string& suffix)
      : suffix_(suffix), taken_(taken.begin(), taken.end()) {}

  std::string of(const std::string& name) {
    constexpr int most_suffixes = 4;
    auto result = name;
    for (int i = 0; i < most_suffixes && taken_.contains(result); ++i) result += suffix_;
    if (taken_.contains(result)) {
      auto& number = numbers_[name];
      const auto start = std::exchange(result, {});
      do {
        result = start + std::to_string(++number);
      } while (taken_.contains(result));
    }
    taken_.insert(result);
    return result;
  }

 private:
  std::string suffix_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::size_t> numbers_;  // of names that came too often
};

bool has_columns_of_right(join_kind kind) { return kind != join_kind::semi && kind != join_kind::anti; }

/// Rows of two files as rows of one. Lines end as the header of the left file does.
class joined_rows {
 public:
  joined_rows(const csv_reader& left, const csv_reader& right, const std::vector<std::size_t>& left_key,
              const std::vector<std::size_t>& right_key, const join_options& options)
      : delimiter_(options.delimiter), keys_(left_key.size()), key_of_(left.names().size(), no_key) {
    const auto kind = kinds.at(options.kind);
    for (std::size_t k = 0; k < keys_; ++k) {
      if (std::exchange(key_of_[left_key[k]], k) != no_key && kind == join_kind::outer) {
        throw roost::invalid_argument(fmt::format(
            "join: column '{}' of {} is named twice by --on, so that --kind outer cannot write rows "
            "of {} alone; take --kind left",
            roost::tools::printable(left.names()[left_key[k]]), options.left, options.right));
      }
    }
    end_ = left.crlf() ? "\r\n" : "\n";
    for (const auto& name : left.names()) {
      if (!header_.empty() || &name != &left.names().front()) header_ += delimiter_;
      roost::tools::append_field(header_, name, delimiter_);
    }
    if (has_columns_of_right(kind)) {
      free_names names(left.names(), options.suffix);
      std::vector<bool> is_key(right.names().size());
      for (const auto c : right_key) is_key[c] = true;
      for (std::size_t c = 0; c < right.names().size(); ++c) {
        if (is_key[c]) continue;
        header_ += delimiter_;
        roost::tools::append_field(header_, names.of(right.names()[c]), delimiter_);
        blank_ += delimiter_;
      }
    }
    alone_ = key_of_.size() == 1 && blank_.empty();
  }

  std::string header() const { return filled(header_) + end_; }

  /// Adds a row. `right`: null where there is none.
  void add(std::string& to, std::string_view left, const std::string_view* right) const {
    if (alone_) {
      to += filled(left);
    } else {
      to += left;
    }
    if (right == nullptr) {
      to += blank_;
    } else if (!blank_.empty()) {
      to += delimiter_;
      to += *right;
    }
    to += end_;
  }

  /// Adds a row of the right file alone, with its key in the columns of the left one's.
  void add_right(std::string& to, std::string_view key, const std::string_view& right) const {
    std::string left;
    const auto fields = roost::tools::split_key(key, keys_);
    for (std::size_t c = 0; c < key_of_.size(); ++c) {
      if (c != 0) left += delimiter_;
      if (key_of_[c] != no_key) roost::tools::append_field(left, fields[key_of_[c]], delimiter_);
    }
    add(to, left, &right);
  }

 private:
  /// A row of one column must not be an empty line.
  std::string_view filled(std::string_view row) const { return alone_ && row.empty() ? "\"\"" : row; }
  std::string filled(const std::string& row) const { return std::string(filled(std::string_view(row))); }

  static constexpr auto no_key = static_cast<std::size_t>(-1);

  char delimiter_;
  std::size_t keys_;
  std::vector<std::size_t> key_of_;  // of each column of the left file
  std::string end_, header_, blank_;
  bool alone_ = false;
};

/// What is read of two files: their keys, and what is written of their rows.
struct join_choices {
  roost::tools::csv_choice left, right;

  join_choices(const csv_reader& left_file, const csv_reader& right_file, const join_options& options) {
    for (const auto& on : options.on) {
      const auto [l, r] = key_columns(on, left_file, right_file);
      left.columns.push_back(l);
      right.columns.push_back(r);
    }
    left.as_one = right.as_one = true;
    left.text = roost::tools::csv_choice::all;
    right.text = has_columns_of_right(kinds.at(options.kind)) ? roost::tools::csv_choice::others
                                                              : roost::tools::csv_choice::none;
  }
};

void join(const join_options& options) {
  const auto place = roost::choose_place(options.place);
  const auto kind = kinds.at(options.kind);
  roost::tools::expect_other_files({options.output}, {options.left, options.right});
  roost::tools::expect_two_files(options.left, options.right);
  const roost::host cpu(options.threads);
  const roost::tools::csv_format format{options.delimiter,
                                        options.bad == "skip" ? bad_lines::skip : bad_lines::fail};
  csv_reader left(cpu, options.left, format), right(cpu, options.right, format);
  left.rows_go_to(options.output);
  right.rows_go_to(options.output);
  const join_choices choices(left, right, options);
  const joined_rows rows(left, right, choices.left.columns, choices.right.columns, options);
  left.choose(choices.left);
  right.choose(choices.right);

  text_rows b;
  right.read(b);
  roost::tools::output_file out(options.output);
  const auto bytes_of_row = [](const text_rows& rows) {
    return rows.bytes / std::max<std::size_t>(rows.fields.size(), 1);
  };
  std::vector<std::uint8_t> seen(kind == join_kind::outer ? b.fields.size() : 0);
  const auto match = [&](const roost::tools::key_tables& tables) {
    roost::tools::field_matcher::options how;
    how.kind = kind;
    how.empty = options.empty == "never" ? empty_keys::never : empty_keys::match;
    how.key_columns = options.on.size();
    const roost::tools::field_matcher matcher(cpu, tables, b.fields, how);
    bool more = true;
    for (bool first = true; more; first = false) {
      text_rows a;
      more = left.read(a, left_bytes_at_once, left_rows_at_once);
      if (first) out.write(rows.header());
      matcher.match(a.fields, [&](const roost::tools::matches& found) {
        const auto partner = [&](std::size_t i) -> const std::string_view* {
          const bool there = has_columns_of_right(kind) && found.right[i] != roost::no_row<std::uint32_t>;
          return there ? &b.texts[found.right[i]] : nullptr;
        };
        const auto add = [&](std::string& text, std::size_t i) {
          rows.add(text, a.texts[found.left[i]], partner(i));
        };
        roost::tools::write_rows(cpu, out, found.left.size(), add, bytes_of_row(a) + bytes_of_row(b));
        for (std::size_t i = 0; !seen.empty() && i < found.right.size(); ++i) {
          if (found.right[i] != roost::no_row<std::uint32_t>) seen[found.right[i]] = 1;
        }
      });
    }
  };
  roost::tools::use_tables(place, options.threads, match);
  if (kind == join_kind::outer) {
    roost::tools::write_rows(cpu, out, b.fields.size(), [&](std::string& text, std::size_t i) {
      if (!seen[i]) rows.add_right(text, b.fields[i], b.texts[i]);
    });
  }
  out.finish();
  left.report_skipped();
  right.report_skipped();
}

}  // namespace

#if !ROOST_WITH_CUDA
void roost::tools::use_tables_on_cuda(const std::function<void(const key_tables&)>&) {}  // never called
#endif

void add_join(CLI::App& app) {
  auto options = std::make_shared<join_options>();
  CLI::App* const command = app.add_subcommand("join", "Joins two CSV files with headers on columns of each");
  command
      ->add_option(
          "A", options->left,
          "Left CSV file, also of gzip or zstd; the output keeps its row order; - for standard input")
      ->required();
  command
      ->add_option(
          "B", options->right,
          "Right CSV file, which is kept in memory; its other columns are added; - for standard input")
      ->required();
  command
      ->add_option("--on", options->on,
                   "A join column: its name if both files have it, else COLUMN_OF_A=COLUMN_OF_B; repeat it "
                   "for several columns")
      ->required()
      ->allow_extra_args(false)
      ->option_text("COLUMN");
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds) names.push_back(name);
  command
      ->add_option(
          "-k,--kind", options->kind,
          "Rows to write: those of A each with each of its matches in B (inner), also those without a match "
          "(left), then also those of B without a match (outer), those of A with a match, once (semi), those "
          "of A without a match (anti)")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command
      ->add_option("--empty-keys", options->empty,
                   "Whether an empty field as a key is equal to another one, or to none, as NULL in SQL")
      ->check(CLI::IsMember({"match", "never"}))
      ->capture_default_str();
  command->add_option("--suffix", options->suffix, "What is added to names of B's columns that A has as well")
      ->check([](const std::string& text) { return text.empty() ? "give at least one character" : ""; })
      ->capture_default_str();
  roost::tools::add_delimiter(*command, options->delimiter);
  roost::tools::add_output(*command, options->output);
  roost::add_place_options(*command, options->place, options->threads);
  roost::tools::add_bad_lines(*command, options->bad);
  command->footer(
      "Examples:\n"
      "  roost join orders.csv customers.csv --on customer=id --kind left -o all.csv\n"
      "  roost join a.tsv.gz b.tsv --delimiter tab --on year --on country");
  command->callback([options] { join(*options); });
}
