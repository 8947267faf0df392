#include "worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "child.hpp"

namespace roost::stress {
namespace {

using clock = std::chrono::steady_clock;

/// Writes a line to the parent, at once.
void tell(std::string line) {
  for (char& letter : line)
    if (static_cast<unsigned char>(letter) < ' ') letter = '?';
  line += '\n';
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(1);
}

/// Of the tables of one history.
std::filesystem::path files_of(const work& all) { return std::filesystem::path(all.folder) / "tables"; }

table_pointer table_of(const work& all, const history& of) {
  const setting in{all.threads, files_of(all)};
  return all.place == "cuda" ? table_on_cuda(of, in) : table_on_host(of, in);
}

/// The nth call of one that saves until it is killed.
call nth_change(const call& one, const char* what, std::uint64_t n) {
  return {what, one.count, one.among, one.seed + n, 0};
}

/// Kills a process that changes and saves the table, and continues with its file, which must have the state
/// of the last save that it reported, or of the next one.
void kill_a_save(const work& all, const history& of, const call& one, tested_table& table) {
  if (*table.change() == '\0') throw invalid_argument("stress: this kind of table has no call 'kill'");
  const auto file = files_of(all) / "killed";
  const auto start = clock::now();
  table.save(file);
  const double a_save = seconds_since(start);
  table.adopt(file);
  const call change = nth_change(one, table.change(), 0);
  child saver({"--saver", "--calls", text_of(history{of.kind, of.seed, {change}}), "--place", all.place,
               "--threads", std::to_string(all.threads), "--in", all.folder});
  constexpr double patience = 300;
  expect(saver.line(patience).has_value(), "a process that loads the saved table has ended or hangs");
  draws random(one.seed);
  const double wait = 4 * a_save * static_cast<double>(random.below(1000)) / 1000;
  std::this_thread::sleep_for(std::chrono::duration<double>(wait));
  saver.kill();
  std::uint64_t saved = 0;
  while (saver.line(patience)) ++saved;
  for (std::uint64_t i = 1; i <= saved; ++i) table.make(nth_change(change, table.change(), i));
  if (!table.is_in(file)) {
    table.make(nth_change(change, table.change(), saved + 1));
    if (!table.is_in(file))
      throw difference(
          fmt::format("the file of a killed process has neither save {} nor {}", saved, saved + 1));
  }
  table.adopt(file);
}

struct counts {
  std::size_t calls = 0, kills = 0;
};

void make_call(const work& all, const history& of, const call& one, tested_table& table, counts& count) {
  ++count.calls;
  if (one.what == "kill") {
    kill_a_save(all, of, one, table);
    ++count.kills;
  } else if (one.what == "spoil") {
    table.spoil();
  } else if (one.what == "crash") {
    std::abort();
  } else if (one.what == "hang") {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  } else {
    table.make(one);
  }
}

/// Returns whether the history was right.
bool play_one(const work& all, const history& of, clock::time_point start) {
  std::filesystem::remove_all(files_of(all));
  std::filesystem::create_directory(files_of(all));
  counts count;
  try {
    const auto table = table_of(all, of);
    for (std::size_t i = 0; i < of.calls.size(); ++i) {
      if (all.calls.empty() && seconds_since(start) > all.seconds && of.calls[i].what != all.with) continue;
      tell(fmt::format("call {}", i));
      make_call(all, of, of.calls[i], *table, count);
    }
    tell(fmt::format("call {}", of.calls.size()));
    table->check();
    tell(fmt::format("ok {} {} {} {} {}", of.kind, count.calls, table->keys(), table->refusals(),
                     count.kills));
    return true;
  } catch (const std::exception& e) {
    tell(fmt::format("failed {}", e.what()));
    return false;
  }
}

}  // namespace

void throw_difference(const char* where, std::uint64_t key, std::optional<std::uint64_t> is,
                      std::optional<std::uint64_t> should) {
  const auto text = [](const auto& value) { return value ? fmt::format("value {:#x}", *value) : "no value"; };
  throw difference(
      fmt::format("{}: key {:#x} has {} and should have {}", where, key, text(is), text(should)));
}

history round_of(const work& all, std::uint64_t round) {
  auto of = draw_history(all.seed, round, all.kinds);
  if (!all.with.empty()) of.calls.push_back({all.with, 0, 1, 0, 0});
  return of;
}

void play(const work& all) {
  belong_to(all.parent);
  const auto start = clock::now();
  if (!all.calls.empty()) return static_cast<void>(play_one(all, read_history(all.calls), start));
  auto round = all.first_round;
  do {
    tell(fmt::format("round {}", round));
  } while (play_one(all, round_of(all, round++), start) && seconds_since(start) < all.seconds);
}

void save_until_killed(const work& all) {
  belong_to(all.parent);
  const auto of = read_history(all.calls);
  const auto& change = of.calls.at(0);
  const auto file = files_of(all) / "killed";
  const auto table = table_of(all, of);
  table->adopt(file);
  tell("ready");
  constexpr std::uint64_t most = 1'000'000;
  for (std::uint64_t i = 1; i <= most; ++i) {
    table->make(nth_change(change, change.what.c_str(), i));
    table->save(file);
    tell(std::to_string(i));
  }
}

}  // namespace roost::stress
