#include "stress.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "apps/shared/place_choice.hpp"
#include "apps/shared/progress_line.hpp"
#include "child.hpp"
#include "worker.hpp"

namespace roost::stress {
namespace {

struct stress_options : work {
  stress_options() { kinds = all_kinds(), place = "auto", seconds = 10; }
  std::optional<std::uint64_t> wanted_seed;
  double patience = 300;
  bool worker = false, saver = false;
};

using clock = std::chrono::steady_clock;

/// A folder for the files of the tables, gone at the end.
class own_folder {
 public:
  explicit own_folder(const std::string& wanted) {
    const std::filesystem::path in =
        wanted.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(wanted);
    path_ = (in / "roost-stress-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr)
      throw file_error(fmt::format("{}: no folder can be made here: {}; give another one with --folder",
                                   in.string(), std::strerror(errno)));
  }
  own_folder(const own_folder&) = delete;
  ~own_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What was done with a kind of table.
struct tally {
  std::size_t rounds = 0, calls = 0, keys = 0, refusals = 0, kills = 0;
  void operator+=(const tally& other) {
    rounds += other.rounds, calls += other.calls, keys += other.keys;
    refusals += other.refusals, kills += other.kills;
  }
};
using tallies = std::map<std::string, tally>;

struct failure {
  std::string what;
  std::size_t call = 0;  // number of calls: at the last check
};

std::vector<std::string> arguments_of(const work& all) {
  std::vector<std::string> words{"--worker",
                                 "--place",
                                 all.place,
                                 "--threads",
                                 std::to_string(all.threads),
                                 "--in",
                                 all.folder,
                                 "--seed",
                                 std::to_string(all.seed),
                                 "--first",
                                 std::to_string(all.first_round),
                                 "--seconds",
                                 fmt::format("{}", all.seconds),
                                 "--kinds",
                                 fmt::format("{}", fmt::join(all.kinds, ","))};
  if (!all.with.empty()) words.insert(words.end(), {"--with", all.with});
  if (!all.calls.empty()) words.insert(words.end(), {"--calls", all.calls});
  return words;
}

/// Follows a worker to its end. `round`: becomes the last one that it began. `line`: shows it.
std::optional<failure> watch(const work& all, double patience, std::uint64_t& round, tallies& done,
                             const tools::progress_line* shown = nullptr) {
  child worker(arguments_of(all));
  failure found;
  while (const auto line = worker.line(patience)) {
    std::istringstream words(*line);
    std::string first, kind;
    words >> first;
    if (first == "round") {
      words >> round;
      found.call = 0;
      if (shown != nullptr) shown->show(fmt::format("round {}", round));
    } else if (first == "call") {
      words >> found.call;
    } else if (first == "failed") {
      found.what = line->substr(first.size() + 1);
      return found;
    } else if (first == "ok") {
      tally one{.rounds = 1};
      words >> kind >> one.calls >> one.keys >> one.refusals >> one.kills;
      done[kind] += one;
    }
  }
  if (interrupted) return {};
  if (worker.hangs()) {
    found.what = fmt::format("no answer for {} seconds", patience);
    return found;
  }
  const auto end = worker.end();
  if (end == "exit code 0") return {};
  found.what = "the process ended with " + end;
  return found;
}

/// Makes a history that fails shorter.
class shrinking {
 public:
  shrinking(const work& all, double patience) : work_(all), patience_(patience) {}

  /// Whether it fails when it is played again. `tries`: how often at most.
  bool fails(const history& of, int tries = 1) {
    work_.calls = text_of(of);
    for (int i = 0; i < tries && !interrupted; ++i) {
      ++tries_;
      std::uint64_t round = 0;
      tallies ignored;
      if (auto found = watch(work_, patience_, round, ignored)) {
        last_ = *found;
        return true;
      }
    }
    return false;
  }

  /// Leaves out calls, by halves, then takes smaller numbers, as long as it fails and for a minute at most.
  history shortest(history of) {
    for (std::size_t some = std::max<std::size_t>(of.calls.size() / 2, 1); some != 0; some /= 2) {
      for (std::size_t end = of.calls.size(); end != 0 && in_time(); end -= std::min(end, some)) {
        auto shorter = of;
        const auto first = shorter.calls.begin() + static_cast<std::ptrdiff_t>(end - std::min(end, some));
        shorter.calls.erase(first, shorter.calls.begin() + static_cast<std::ptrdiff_t>(end));
        if (fails(shorter)) of = shorter;
      }
    }
    for (std::size_t i = 0; i < of.calls.size(); ++i) {
      const auto smaller = [&](std::uint64_t call::* number, std::uint64_t to) {
        auto other = of;
        other.calls[i].*number = to;
        const bool good = of.calls[i].*number != to && in_time() && fails(other);
        if (good) of = other;
        return good;
      };
      smaller(&call::refused, 0);
      if (smaller(&call::count, 1)) continue;
      while (smaller(&call::count, of.calls[i].count / 2)) continue;
    }
    return of;
  }

  int tries() const { return tries_; }
  const failure& last() const { return last_; }

 private:
  static constexpr double most_seconds = 60;
  bool in_time() const { return !interrupted && seconds_since(start_) < most_seconds; }

  work work_;
  double patience_;
  clock::time_point start_ = clock::now();
  int tries_ = 0;
  failure last_;
};

std::string replay_of(const work& all, const history& of) {
  return fmt::format("roost stress --place {} --threads {} --calls '{}'", all.place, all.threads,
                     text_of(of));
}

void print_failure(const history& of, const failure& found) {
  const auto at = found.call < of.calls.size() ? fmt::format("call {} of {} ({})", found.call + 1,
                                                             of.calls.size(), text_of(of.calls[found.call]))
                                               : fmt::format("the check after {} calls", of.calls.size());
  fmt::print("FAILED: {} {}, {}: {}\n", of.kind, of.seed, at, found.what);
  std::fflush(stdout);
}

/// Prints the shortest history found that fails, too.
void print_shrunk(const work& all, history of, const failure& found, double patience) {
  of.calls.resize(std::min(of.calls.size(), found.call + 1));
  constexpr int again = 5;
  shrinking search(all, patience);
  if (search.fails(of, again)) {
    of = search.shortest(of);
    fmt::print("Shrunk to {} call{} in {} tries; the last that failed: {}\n", of.calls.size(),
               of.calls.size() == 1 ? "" : "s", search.tries(), search.last().what);
    fmt::print("  {} {}\n", of.kind, of.seed);
    for (const auto& one : of.calls) fmt::print("  {}\n", text_of(one));
  } else {
    fmt::print("It does not fail again in {} tries: it may depend on threads or time\n", search.tries());
  }
  fmt::print("To play it again: {}\n", replay_of(all, of));
}

void print_summary(const tallies& done, double seconds) {
  tally sum;
  fmt::print("{:<14} {:>9} {:>10} {:>12} {:>10} {:>8}\n", "kind", "rounds", "calls", "keys", "refusals",
             "kills");
  const auto print = [](const std::string& kind, const tally& one) {
    fmt::print("{:<14} {:>9} {:>10} {:>12} {:>10} {:>8}\n", kind, one.rounds, one.calls, one.keys,
               one.refusals, one.kills);
  };
  for (const auto& [kind, one] : done) {
    print(kind, one);
    sum += one;
  }
  print("all", sum);
  fmt::print("{:.1f} s\n", seconds);
}

void stress(stress_options options) {
  if (options.saver) return save_until_killed(options);
  if (options.worker) return play(options);
  options.place = choose_place(options.place);
  options.seed = options.wanted_seed ? *options.wanted_seed : std::random_device()();
  std::optional<history> only;
  if (!options.calls.empty()) only = read_history(options.calls);
  const auto kinds =
      options.kinds == all_kinds() ? "" : fmt::format(" --kinds {}", fmt::join(options.kinds, ","));
  fmt::print("roost stress --seed {} --place {} --threads {}{}\n", options.seed, options.place,
             options.threads, kinds);
  std::fflush(stdout);
  const auto stop = [](int number) { interrupted = number; };
  for (const int number : {SIGINT, SIGTERM}) signal(number, stop);
  std::optional<own_folder> folder(options.folder);
  options.folder = folder->path();
  const auto start = clock::now();
  tallies done;
  std::uint64_t round = 0;
  const tools::progress_line line;
  const auto found = watch(options, options.patience, round, done, &line);
  line.clear();
  if (found) {
    const auto of = only ? *only : round_of(options, round);
    print_failure(of, *found);
    if (!only) print_shrunk(options, of, *found, options.patience);
  }
  print_summary(done, seconds_since(start));
  folder.reset();
  if (interrupted) {
    std::fflush(stdout);
    signal(interrupted, SIG_DFL);
    raise(interrupted);
  }
  if (found) throw error(fmt::format("stress: seed {}, round {}: {}", options.seed, round, found->what));
}

}  // namespace

#if !ROOST_WITH_CUDA
table_pointer table_on_cuda(const history&, const setting&) { return nullptr; }
#endif

}  // namespace roost::stress

void add_stress(CLI::App& app) {
  using namespace roost::stress;
  auto options = std::make_shared<stress_options>();
  CLI::App* const command = app.add_subcommand(
      "stress",
      "Makes random calls on tables beside the state that they should have, refuses them memory, kills "
      "processes that save them, and compares; a history that fails is made short and printed");
  command
      ->add_option("-s,--seed", options->wanted_seed,
                   "Seed of all rounds; default: a random one, which is printed")
      ->option_text("N");
  command->add_option("--seconds", options->seconds, "How long; then the round in progress ends")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command
      ->add_option("--kinds", options->kinds,
                   fmt::format("Which tables: {}; all by default", fmt::join(all_kinds(), ", ")))
      ->check(CLI::IsMember(all_kinds()))
      ->delimiter(',')
      ->option_text("KIND,...");
  command
      ->add_option("--calls", options->calls,
                   "Plays this history, as a failure prints it, instead of random ones")
      ->option_text("HISTORY");
  command->add_option("--patience", options->patience, "A call that takes longer, in seconds, is a failure")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command
      ->add_option("--folder", options->folder,
                   "Where the files of the tables are; default: that for temporary files")
      ->check(CLI::ExistingDirectory)
      ->option_text("FOLDER");
  roost::add_place_options(*command, options->place, options->threads);
  const auto hidden = [&](const char* name, auto& to) { command->add_option(name, to)->group(""); };
  command->add_flag("--worker", options->worker)->group("");  // for its own processes
  command->add_flag("--saver", options->saver)->group("");
  hidden("--in", options->folder);  // which may be gone when they begin
  hidden("--parent", options->parent);
  hidden("--first", options->first_round);
  hidden("--with", options->with);  // for its tests: spoil, crash or hang ends each history
  command->footer(
      "Examples:\n"
      "  roost stress --seconds 3600 --seed 1\n"
      "  roost stress --kinds stadium,embedding --folder /mnt/disk\n"
      "  roost stress --calls 'map 17: insert 300 40 5 0; erase 3 40 6 0'");
  command->callback([options] {
    if (options->worker && options->wanted_seed) options->seed = *options->wanted_seed;
    stress(*options);
  });
}
