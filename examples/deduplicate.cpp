// Taking duplicates out: the different keys of a batch with a frozen_set, and the first
// row of each with a frozen_map.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <unordered_map>
#include <vector>

int main() {
  // A million visits, many by the same visitor.
  std::vector<std::uint64_t> visits(1000000);
  for (std::size_t i = 0; i < visits.size(); ++i)
    visits[i] = roost::mix64(i * i % 30011);

  roost::host cpu;
  roost::frozen_set visitors(cpu, visits);
  std::vector<std::uint64_t> distinct(visitors.size());
  visitors.retrieve_all(cpu, distinct);  // each once, in no defined order
  std::printf("%zu visits, %zu visitors, %zu duplicates\n", visits.size(),
              visitors.size(), visitors.statistics().duplicates);

  // Of pairs with the same key the first one wins: so this maps each visitor to his
  // first visit.
  const auto row = [](std::size_t i) { return static_cast<std::uint32_t>(i); };
  roost::frozen_map first_visit(cpu, visits, roost::computed(visits.size(), row));

  std::unordered_map<std::uint64_t, std::uint32_t> expected;
  for (std::uint32_t i = 0; i < visits.size(); ++i) expected.emplace(visits[i], i);
  bool right = distinct.size() == expected.size() &&
               first_visit.size() == expected.size() &&
               visitors.statistics().duplicates == visits.size() - expected.size();
  for (const auto key : distinct) right = right && expected.contains(key);
  for (const auto [key, visit] : first_visit)
    right = right && expected.at(key) == visit;
  std::sort(distinct.begin(), distinct.end());
  right =
      right && std::adjacent_find(distinct.begin(), distinct.end()) == distinct.end();
  std::puts(right ? "deduplicate: right" : "deduplicate: wrong answers");
  return right ? 0 : 1;
}
