#include "history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "roost/error.hpp"
#include "roost/hash.hpp"

namespace roost::stress {
namespace {

struct weighted {
  const char* what;
  std::uint64_t weight;
};

/// The calls on each kind of table, and how often each comes.
const std::map<std::string, std::vector<weighted>>& calls_of_kinds() {
  static const std::vector<weighted> set{{"insert", 4}, {"erase", 4}, {"erase_if", 1}, {"find", 3},
                                         {"refs", 2},   {"clear", 1}, {"reserve", 1},  {"rehash", 1},
                                         {"shrink", 1}, {"move", 1},  {"check", 1}};
  static const auto with = [](std::vector<weighted> calls, const std::vector<weighted>& more) {
    calls.insert(calls.end(), more.begin(), more.end());
    return calls;
  };
  static const auto map = with(set, {{"assign", 3}, {"add", 3}, {"run", 2}});
  static const std::vector<weighted> built{{"rebuild", 4}, {"find", 4}, {"clear", 1}, {"move", 1}};
  static const std::map<std::string, std::vector<weighted>> all{
      {"map", with(map, {{"insert_if", 2}})},
      {"large_values", with(map, {{"insert_if", 2}})},
      {"set", with(set, {{"insert_if", 2}})},
      {"stadium", with(map, {{"sweep", 1}, {"load", 2}, {"kill", 1}})},
      {"sharded",
       {{"insert", 4},
        {"assign", 3},
        {"add", 3},
        {"erase", 4},
        {"erase_if", 1},
        {"find", 3},
        {"clear", 1},
        {"reserve", 1},
        {"shrink", 1},
        {"move", 1},
        {"check", 1}}},
      {"frozen", built},
      {"sharded_file", with(built, {{"load", 3}, {"kill", 1}})},
      {"embedding",
       {{"learn", 6},
        {"insert", 2},
        {"find", 3},
        {"assign", 2},
        {"erase", 2},
        {"rates", 1},
        {"reserve", 1},
        {"move", 1},
        {"check", 1},
        {"load", 2},
        {"kill", 1}}}};
  return all;
}

std::uint64_t draw_count(draws& random, bool small) {
  const auto size = random.below(10);
  if (size < 1) return random.below(2);
  if (size < 6) return random.below(60);
  if (size < 9 || small) return random.below(5000);
  return random.below(random.below(50) == 0 ? 400'000 : 60'000);
}

call draw_call(draws& random, const std::string& kind) {
  const auto& calls = calls_of_kinds().at(kind);
  std::uint64_t all = 0;
  for (const auto& one : calls) all += one.weight;
  auto left = random.below(all);
  std::size_t i = 0;
  for (; left >= calls[i].weight; ++i) left -= calls[i].weight;
  call one{calls[i].what};
  one.count = draw_count(random, kind == "embedding");
  one.among = random.one_of({1 + random.below(40), 1 + random.below(20'000), ~std::uint64_t{0}});
  one.seed = random.below(1'000'000'000);
  if (random.below(4) == 0) one.refused = 2 + random.below(20);
  return one;
}

[[noreturn]] void refuse(const std::string& text) {
  throw invalid_argument(fmt::format(
      "stress: '{}' is no history; write it as 'KIND SEED: CALL COUNT AMONG SEED REFUSED; CALL ...'", text));
}

}  // namespace

const std::vector<std::string>& all_kinds() {
  static const auto all = [] {
    std::vector<std::string> names;
    for (const auto& [name, calls] : calls_of_kinds()) names.push_back(name);
    return names;
  }();
  return all;
}

history draw_history(std::uint64_t seed, std::uint64_t round, const std::vector<std::string>& kinds) {
  draws random(mix64(seed) + round);
  history all{kinds[random.below(kinds.size())], random.below(1'000'000'000), {}};
  const auto calls = 1 + random.below(40);
  for (std::uint64_t i = 0; i < calls; ++i) all.calls.push_back(draw_call(random, all.kind));
  return all;
}

std::string text_of(const call& one) {
  return fmt::format("{} {} {} {} {}", one.what, one.count, one.among, one.seed, one.refused);
}

std::string text_of(const history& all) {
  std::string text = fmt::format("{} {}", all.kind, all.seed);
  for (std::size_t i = 0; i < all.calls.size(); ++i) text += (i == 0 ? ": " : "; ") + text_of(all.calls[i]);
  return text;
}

history read_history(const std::string& text) {
  history all;
  const auto colon = std::min(text.find(':'), text.size());
  std::string rest;
  std::istringstream head(text.substr(0, colon));
  if (!(head >> all.kind >> all.seed) || head >> rest) refuse(text);
  if (std::ranges::find(all_kinds(), all.kind) == all_kinds().end()) refuse(text);
  std::istringstream calls(text.substr(std::min(colon + 1, text.size())));
  for (std::string part; std::getline(calls, part, ';');) {
    std::istringstream words(part);
    call one;
    if (!(words >> one.what)) continue;
    if (!(words >> one.count >> one.among >> one.seed >> one.refused) || words >> rest || one.among == 0)
      refuse(text);
    all.calls.push_back(one);
  }
  return all;
}

numbers keys_of(const call& one) {
  draws random(one.seed);
  numbers keys(one.count);
  for (auto& key : keys) {
    const auto number = random.below(one.among);
    key = number % 2 == 0 ? number / 2 : ~(number / 2);
  }
  return keys;
}

}  // namespace roost::stress
