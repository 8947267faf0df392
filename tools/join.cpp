#include "join.hpp"

#include <memory>
#include <utility>

#include "fields.hpp"
#include "place_choice.hpp"

namespace {

using roost::tools::bad_lines;
using roost::tools::csv_file;
using roost::tools::join_kind;

struct join_options {
  std::string left, right, on, output;
  std::string kind = "inner", bad = "fail", place = "auto";
  int threads = 0;
};

join_kind kind_of(const std::string& name) {
  if (name == "left") return join_kind::left;
  if (name == "semi") return join_kind::semi;
  return name == "anti" ? join_kind::anti : join_kind::inner;
}

/// The columns that --on names: one name for both files, or two with = between them. A name with = in it that
/// both have is one name.
std::pair<std::size_t, std::size_t> key_columns(const std::string& on, const csv_file& left,
                                                const csv_file& right) {
  const auto equals = on.find('=');
  if (equals == on.npos || (left.has_column(on) && right.has_column(on)))
    return {left.column(on), right.column(on)};
  return {left.column(on.substr(0, equals)), right.column(on.substr(equals + 1))};
}

/// Writes rows of two files as rows of one. Lines end as the header of the left file does.
class joined_writer {
 public:
  /// `right`: null for the columns of the left file alone. `without`: the column of the right file that is
  /// left out.
  joined_writer(roost::tools::text_writer& out, const csv_file& left, const csv_file* right,
                std::size_t without)
      : out_(out), left_(left), right_(right), without_(without) {
    columns_ = left.table.columns + (right == nullptr ? 0 : right->table.columns - 1);
  }

  static constexpr std::size_t none = ~std::size_t{0};

  /// Row 0 is the header. The fields of the right file are empty for `none`.
  void write(std::size_t left_row, std::size_t right_row) {
    const bool alone = columns_ == 1;
    for (std::size_t c = 0; c < left_.table.columns; ++c) {
      if (c != 0) out_.write(",");
      write_field(out_, left_.table.field(left_row, c), alone);
    }
    for (std::size_t c = 0; right_ != nullptr && c < right_->table.columns; ++c) {
      if (c == without_) continue;
      out_.write(",");
      if (right_row != none) write_field(out_, right_->table.field(right_row, c));
    }
    out_.write(left_.crlf ? "\r\n" : "\n");
  }

 private:
  roost::tools::text_writer& out_;
  const csv_file& left_;
  const csv_file* right_;
  std::size_t without_, columns_;
};

void join(const join_options& options) {
  const auto place = roost::choose_place(options.place);
  const auto kind = kind_of(options.kind);
  const auto on_bad = options.bad == "skip" ? bad_lines::skip : bad_lines::fail;
  roost::tools::expect_another_file(options.output, options.left);
  roost::tools::expect_another_file(options.output, options.right);
  if (options.left == "-" && options.right == "-")
    throw roost::invalid_argument("standard input can be one of the two files only; name the other one");
  const auto left = roost::tools::read_csv(options.left, on_bad);
  const auto right = roost::tools::read_csv(options.right, on_bad);
  const auto [left_key, right_key] = key_columns(options.on, left, right);
  roost::tools::text_writer out(options.output);

  const bool pairs = kind == join_kind::inner || kind == join_kind::left;
  joined_writer rows(out, left, pairs ? &right : nullptr, right_key);
  rows.write(0, 0);
  const auto write = [&](const roost::tools::matches& found) {
    for (std::size_t i = 0; i < found.left.size(); ++i) {
      const bool matched = pairs && found.right[i] != roost::no_row<std::uint32_t>;
      rows.write(std::size_t{found.left[i]} + 1, matched ? std::size_t{found.right[i]} + 1 : rows.none);
    }
  };
  const auto match = [&, l = left_key, r = right_key](const roost::tools::key_tables& tables) {
    join_columns(roost::host(options.threads), tables, kind, left.fields(l), right.fields(r), write);
  };
  roost::tools::use_tables(place, options.threads, match);
  out.finish();
  report_skipped(left);
  report_skipped(right);
}

}  // namespace

#if !ROOST_WITH_CUDA
void roost::tools::use_tables_on_cuda(const std::function<void(const key_tables&)>&) {}  // never called
#endif

void add_join(CLI::App& app) {
  auto options = std::make_shared<join_options>();
  CLI::App* const command =
      app.add_subcommand("join", "Joins two CSV files with headers on one column of each");
  command
      ->add_option("A", options->left, "Left CSV file; the output keeps its row order; - for standard input")
      ->required();
  command
      ->add_option("B", options->right, "Right CSV file; its other columns are added; - for standard input")
      ->required();
  command
      ->add_option("--on", options->on, "The join column if both files have it, else COLUMN_OF_A=COLUMN_OF_B")
      ->required();
  command
      ->add_option(
          "--kind", options->kind,
          "Rows of A to write: each with each of its matches in B (inner), also those without a match "
          "(left), those with a match, once (semi), those without a match (anti)")
      ->check(CLI::IsMember({"inner", "left", "semi", "anti"}))
      ->capture_default_str();
  command->add_option("--output", options->output, "Output file; default: standard output");
  roost::add_place_options(*command, options->place, options->threads);
  command
      ->add_option("--bad-lines", options->bad,
                   "What to do with malformed lines: fail, or skip them and print their number on stderr")
      ->check(CLI::IsMember({"fail", "skip"}))
      ->capture_default_str();
  command->callback([options] { join(*options); });
}
