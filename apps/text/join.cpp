#include "join.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
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

const std::map<std::string, join_kind> kinds{{"inner", join_kind::inner}, {"left", join_kind::left},
                                             {"right", join_kind::left},  // with the sides exchanged
                                             {"outer", join_kind::outer}, {"semi", join_kind::semi},
                                             {"anti", join_kind::anti}};

/// How much of the file that is not kept is in memory at once.
constexpr std::size_t streamed_bytes = std::size_t{32} << 20, streamed_rows = streamed_bytes / 32;

struct join_options {
  std::string left, right, output;
  std::vector<std::string> on, columns;
  char delimiter = ',';
  std::string kind = "inner", empty = "match", bad = "fail", place = "auto", suffix = "_right";
  roost::tools::table_limits limits;
  int threads = 0;

  /// Whether the output is in the order of the right file, with all of its rows.
  bool is_right() const { return kind == "right"; }
};

/// The columns that --on names: one name for both files, or two with = between them. A name with = in it that
/// both files have is one name.
std::pair<std::size_t, std::size_t> key_columns(const std::string& on, const csv_reader& left,
                                                const csv_reader& right) {
  const auto equals = on.find('=');
  if (equals == on.npos || (left.has_column(on) && right.has_column(on)))
    return {left.column(on), right.column(on)};
  return {left.column(on.substr(0, equals)), right.column(on.substr(equals + 1))};
}

/// Makes names unique: a taken name gets the suffix until it is free; if many columns share a name, then a
/// number, so that names stay short.
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
  std::unordered_map<std::string, std::size_t> numbers_;  // of names that occurred too often
};

bool has_columns_of_right(join_kind kind) { return kind != join_kind::semi && kind != join_kind::anti; }

/// Rows of two files as rows of one. Line ends are those of the left file's header.
class joined_rows {
 public:
  using columns = std::vector<std::size_t>;

  joined_rows(const csv_reader& left, const csv_reader& right, const columns& left_key,
              const columns& right_key, const join_options& options)
      : delimiter_(options.delimiter), keys_(left_key.size()), key_of_(left.names().size(), no_key) {
    const auto kind = kinds.at(options.kind);
    for (std::size_t k = 0; k < keys_; ++k) {
      if (std::exchange(key_of_[left_key[k]], k) != no_key &&
          (kind == join_kind::outer || options.is_right())) {
        throw roost::invalid_argument(fmt::format(
            "join: column '{}' of {} is named twice by --on, so that --kind {} cannot write rows "
            "of {} alone; take --kind left",
            roost::tools::printable(left.names()[left_key[k]]), options.left, options.kind, options.right));
      }
    }
    end_ = left.crlf() ? "\r\n" : "\n";
    std::vector<std::string> names = left.names();
    for (std::size_t c = 0; c < names.size(); ++c) left_.push_back(c);
    if (has_columns_of_right(kind)) {
      free_names free(names, options.suffix);
      for (std::size_t c = 0; c < right.names().size(); ++c) {
        if (std::ranges::find(right_key, c) != right_key.end()) continue;
        right_.push_back(c);
        names.push_back(free.of(right.names()[c]));
      }
    }
    if (!options.columns.empty()) names = choose(names, options);
    for (const auto& name : names) {
      if (&name != &names.front()) header_ += delimiter_;
      roost::tools::append_field(header_, name, delimiter_);
    }
    if (!right_.empty()) blank_.assign(right_.size() - 1, delimiter_);
    alone_ = left_.size() + right_.size() == 1;
  }

  std::string header() const { return std::string(filled(header_)) + end_; }
  /// The columns of each file that are written.
  const columns& of_left() const { return left_; }
  const columns& of_right() const { return right_; }

  /// Adds a row. `right`: null if there is none.
  void add(std::string& to, std::string_view left, const std::string_view* right) const {
    const std::string_view second = right == nullptr ? std::string_view(blank_) : *right;
    if (alone_) {
      to += filled(left_.empty() ? second : left);
    } else {
      to += left;
      if (!left_.empty() && !right_.empty()) to += delimiter_;
      if (!right_.empty()) to += second;
    }
    to += end_;
  }

  /// Adds a row of the right file alone, with its key in the columns of the left one's.
  void add_right(std::string& to, std::string_view key, const std::string_view& right) const {
    std::string left;
    const auto fields = roost::tools::split_key(key, keys_);
    for (const auto c : left_) {
      if (c != left_.front()) left += delimiter_;
      if (key_of_[c] != no_key) roost::tools::append_field(left, fields[key_of_[c]], delimiter_);
    }
    add(to, left, &right);
  }

 private:
  /// Keeps only the columns that --column names. Returns their names.
  std::vector<std::string> choose(const std::vector<std::string>& names, const join_options& options) {
    std::vector<bool> is_chosen(names.size());
    for (const auto& name : options.columns)
      is_chosen[roost::tools::find_name("the output", names, name)] = true;
    std::vector<std::string> kept;
    columns left, right;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!is_chosen[i]) continue;
      kept.push_back(names[i]);
      i < left_.size() ? left.push_back(left_[i]) : right.push_back(right_[i - left_.size()]);
    }
    left_ = std::move(left), right_ = std::move(right);
    return kept;
  }

  /// A row of one column must not be an empty line.
  std::string_view filled(std::string_view row) const { return alone_ && row.empty() ? "\"\"" : row; }

  static constexpr auto no_key = static_cast<std::size_t>(-1);

  char delimiter_;
  std::size_t keys_;
  columns key_of_;        // of each column of the left file
  columns left_, right_;  // that are written
  std::string end_, header_, blank_;
  bool alone_ = false;
};

/// Rows without the rest of their file, in their own memory.
class kept_rows {
 public:
  void add(const text_rows& from, std::span<const std::uint32_t> rows) {
    std::size_t bytes = 0;
    const auto text = [&](std::size_t row) {
      return from.texts.empty() ? std::string_view() : from.texts[row];
    };
    for (const auto row : rows) bytes += from.fields[row].size() + text(row).size();
    auto& memory = memory_.emplace_back();
    memory.reserve(bytes);
    const auto keep = [&](std::string_view it) {
      memory.insert(memory.end(), it.begin(), it.end());
      return std::string_view(memory.data() + memory.size() - it.size(), it.size());
    };
    for (const auto row : rows) {
      rows_.fields.push_back(keep(from.fields[row]));
      if (!from.texts.empty()) rows_.texts.push_back(keep(from.texts[row]));
    }
    rows_.bytes += bytes;
  }
  text_rows take() { return std::move(rows_); }

 private:
  text_rows rows_;
  std::deque<roost::tools::big_vector<char>> memory_;
};

std::size_t bytes_of_row(const text_rows& rows) {
  return rows.bytes / std::max<std::size_t>(rows.fields.size(), 1);
}

/// The size of a file; nothing for standard input and other files without one.
std::optional<std::uintmax_t> size_of(const std::string& file) {
  std::error_code failed;
  const auto size =
      std::filesystem::is_regular_file(file, failed) ? std::filesystem::file_size(file, failed) : 0;
  return failed || size == 0 ? std::nullopt : std::optional(size);
}

/// A join of two files.
class file_join {
 public:
  explicit file_join(const join_options& options)
      : options_(options),
        cpu_(options.threads),
        format_{options.delimiter, options.bad == "skip" ? bad_lines::skip : bad_lines::fail},
        left_(cpu_, options.left, format_),
        right_(cpu_, options.right, format_),
        rows_(left_, right_, key(true), key(false), options) {
    left_.rows_go_to(options.output);
    right_.rows_go_to(options.output);
    left_.choose({{key(true)}, rows_.of_left()});
    roost::tools::csv_choice of_right{{key(false)}, rows_.of_right()};
    if (!has_columns_of_right(kinds.at(options.kind))) of_right.text.reset();
    right_.choose(std::move(of_right));
  }

  void run(const std::string& place) {
    roost::tools::output_file out(options_.output);
    const auto limits = roost::tools::limits_at(options_.place, place, options_.limits);
    roost::tools::use_tables(place, options_.threads, limits, [&](const roost::tools::key_tables& tables) {
      options_.is_right() ? match_right(tables, out) : match_left(tables, out);
    });
    out.finish();
    left_.report_skipped();
    right_.report_skipped();
  }

 private:
  using key_tables = roost::tools::key_tables;
  using output_file = roost::tools::output_file;

  /// The columns of the key, of the left or of the right file.
  std::vector<std::size_t> key(bool of_left) const {
    std::vector<std::size_t> columns;
    for (const auto& on : options_.on) {
      const auto [l, r] = key_columns(on, left_, right_);
      columns.push_back(of_left ? l : r);
    }
    return columns;
  }

  roost::tools::field_matcher matcher(const key_tables& tables, const text_rows& of, join_kind kind) const {
    roost::tools::field_matcher::options how;
    how.kind = kind;
    how.empty = options_.empty == "never" ? empty_keys::never : empty_keys::match;
    how.key_columns = options_.on.size();
    return {cpu_, tables, of.fields, how};
  }

  /// Whether the left file is smaller: then it is read whole, and only matching rows of the right file are
  /// kept.
  bool keeps_left() const {
    const auto left = size_of(options_.left), right = size_of(options_.right);
    return kinds.at(options_.kind) != join_kind::outer && left && right && *left < *right;
  }

  /// Reads rows that are to be matched with the kept rows of the other file: if each batch costs as much as
  /// that file, as many.
  static bool read_some(csv_reader& from, text_rows& rows, const text_rows& kept,
                        const roost::tools::field_matcher& with) {
    const std::size_t least = with.rows_at_once();
    return from.read(rows, std::max(streamed_bytes, least == 0 ? 0 : kept.bytes),
                     std::max(streamed_rows, least));
  }

  /// The rows of the right file that match some row of the left file, which is read whole.
  text_rows right_of(const key_tables& tables, const text_rows& a, kept_rows& kept) {
    const auto with_a = matcher(tables, a, join_kind::semi);
    for (bool more = true; more;) {
      text_rows b;
      more = read_some(right_, b, a, with_a);
      with_a.match(b.fields, [&](const roost::tools::matches& found) { kept.add(b, found.left); });
    }
    return kept.take();
  }

  /// Writes matches in the order of the left file.
  void match_left(const key_tables& tables, output_file& out) {
    const auto kind = kinds.at(options_.kind);
    text_rows a, b;
    kept_rows kept;
    const bool whole = keeps_left();
    if (whole) {
      left_.read(a);
      b = right_of(tables, a, kept);
    } else {
      right_.read(b);
    }
    std::vector<std::uint8_t> seen(kind == join_kind::outer ? b.fields.size() : 0);
    const auto with_b = matcher(tables, b, kind);
    bool more = !whole;
    for (bool first = true; first || more; first = false) {
      if (more) {
        a = {};
        more = read_some(left_, a, b, with_b);
      }
      if (first) out.write(rows_.header());
      with_b.match(a.fields, [&](const roost::tools::matches& found) {
        const auto add = [&](std::string& text, std::size_t i) {
          const bool there = has_columns_of_right(kind) && found.right[i] != roost::no_row<std::uint32_t>;
          rows_.add(text, a.texts[found.left[i]], there ? &b.texts[found.right[i]] : nullptr);
        };
        roost::tools::write_rows(cpu_, out, found.left.size(), add, bytes_of_row(a) + bytes_of_row(b));
        for (std::size_t i = 0; !seen.empty() && i < found.right.size(); ++i) {
          if (found.right[i] != roost::no_row<std::uint32_t>) seen[found.right[i]] = 1;
        }
      });
    }
    if (kind != join_kind::outer) return;
    roost::tools::write_rows(cpu_, out, b.fields.size(), [&](std::string& text, std::size_t i) {
      if (!seen[i]) rows_.add_right(text, b.fields[i], b.texts[i]);
    });
  }

  /// Writes matches in the order of the right file.
  void match_right(const key_tables& tables, output_file& out) {
    text_rows a;
    left_.read(a);
    const auto with_a = matcher(tables, a, join_kind::left);
    bool more = true;
    for (bool first = true; more; first = false) {
      text_rows b;
      more = read_some(right_, b, a, with_a);
      if (first) out.write(rows_.header());
      with_a.match(b.fields, [&](const roost::tools::matches& found) {
        const auto add = [&](std::string& text, std::size_t i) {
          const auto row = found.left[i];
          found.right[i] == roost::no_row<std::uint32_t>
              ? rows_.add_right(text, b.fields[row], b.texts[row])
              : rows_.add(text, a.texts[found.right[i]], &b.texts[row]);
        };
        roost::tools::write_rows(cpu_, out, found.left.size(), add, bytes_of_row(a) + bytes_of_row(b));
      });
    }
  }

  const join_options& options_;
  roost::host cpu_;
  roost::tools::csv_format format_;
  csv_reader left_, right_;
  joined_rows rows_;
};

void join(const join_options& options) {
  const auto place = roost::choose_place(options.place);
  roost::tools::expect_other_files({options.output}, {options.left, options.right});
  roost::tools::expect_two_files(options.left, options.right);
  file_join(options).run(place);
}

}  // namespace

#if !ROOST_WITH_CUDA
// Never called.
void roost::tools::use_tables_on_cuda(const use_tables_with&) {}
void roost::tools::use_limited_tables_on_cuda(int, const table_limits&, const use_tables_with&) {}
std::size_t roost::tools::cuda_bytes_free() { return 0; }
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
          "Right CSV file, whose other columns are added; - for standard input. Kept in memory; of two "
          "regular files, the smaller one is, with the matching rows of the larger")
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
          "of A without a match (anti); those of B, in its order, each with each of its matches in A or "
          "alone "
          "(right)")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command
      ->add_option("-c,--column", options->columns,
                   "Writes only this column, by its name in the output; repeat it for several; they keep "
                   "their order")
      ->allow_extra_args(false)
      ->option_text("COLUMN");
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
  roost::tools::add_limits(*command, options->limits);
  roost::tools::add_bad_lines(*command, options->bad);
  command->footer(
      "Examples:\n"
      "  roost join orders.csv customers.csv --on customer=id --kind left -o all.csv\n"
      "  roost join a.tsv.gz b.tsv --delimiter tab --on year --on country\n"
      "  roost join a.csv large.csv --on id --place cuda --limit 8GB --spill /mnt/disk");
  command->callback([options] { join(*options); });
}
