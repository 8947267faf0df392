#include "reproduce.hpp"

#include <fmt/format.h>

#include <memory>

#include "apps/shared/info.hpp"
#include "apps/shared/place_choice.hpp"
#include "apps/shared/progress_line.hpp"
#include "match_paper.hpp"
#include "papers.hpp"
#include "solids_paper.hpp"
#include "sparse_paper.hpp"

namespace {

struct reproduce_options : roost::bench::reproduction {
  std::string place = "auto";
};

/// A table in Markdown, as docs/reproduction.md holds it.
void print(const roost::bench::report_table& table) {
  fmt::print("### {}\n\n| {} |\n|{}\n", table.title, fmt::join(table.columns, " | "), [&] {
    std::string rule;
    for (std::size_t i = 0; i < table.columns.size(); ++i) rule += "---|";
    return rule;
  }());
  for (const auto& row : table.rows) fmt::print("| {} |\n", fmt::join(row, " | "));
  fmt::print("\n");
  std::fflush(stdout);
}

void reproduce(reproduce_options& options) {
  using namespace roost::bench;
  const auto place = roost::choose_place(options.place);
  const roost::tools::progress_line line;
  options.progress = [&](const std::string& part) { line.show("measures " + part); };
  options.report = [&](const report_table& table) {
    line.clear();
    print(table);
  };
  fmt::print("{}\n\n", machine_of(place, options.threads));
  const bool on_cuda = place == "cuda";
  on_cuda ? reproduce_cuda(options) : reproduce_host(options);
  if (options.wants("perfect")) on_cuda ? reproduce_perfect_cuda(options) : reproduce_perfect_host(options);
  if (options.wants("solids")) reproduce_solids(options, place);
  if (options.wants("matching")) reproduce_matching(options, place);
  if (options.wants("sparse")) reproduce_sparse(options, place);
  line.clear();
}

}  // namespace

#if !ROOST_WITH_CUDA
void roost::bench::reproduce_cuda(const reproduction&) {}
void roost::bench::reproduce_perfect_cuda(const reproduction&) {}
roost::bench::report_table roost::bench::document_defects_cuda() { return {}; }
#endif

void add_reproduce(CLI::App& app) {
  auto options = std::make_shared<reproduce_options>();
  CLI::App* const command = app.add_subcommand("reproduce",
                                               "Repeats the measurements of the papers that roost "
                                               "implements, and prints the papers' figures and its own "
                                               "as Markdown tables");
  roost::add_place_options(*command, options->place, options->threads);
  command
      ->add_option("--builds", options->builds,
                   "Number of builds of a million keys in which overfull buckets are counted")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--reps", options->repetitions, "Number of timed runs; the median is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--share", options->share,
                   "Share of the papers' numbers of keys, for a quick look: titles and rows keep their names")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  command
      ->add_option(
          "--only", options->parts,
          "Which measurements: cuckoo, copies (several values a key), two-kernel (sets), farrell and stadium "
          "(tables), perfect (spatial hashing), solids (two that move), matching (of pictures), sparse "
          "(voxels of layers); all by default")
      ->check(CLI::IsMember(roost::bench::reproduced_parts))
      ->delimiter(',')
      ->option_text("PART,...");
  command->footer(
      "Examples:\n"
      "  roost reproduce --share 0.01\n"
      "  roost reproduce --only cuckoo,copies\n"
      "  roost reproduce --place cuda > tables.md");
  command->callback([options] { reproduce(*options); });
}
