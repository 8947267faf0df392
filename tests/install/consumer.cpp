// Uses the installed package on the host: builds a small map and asks it.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

int main() {
  const std::vector<std::uint32_t> keys{3, 1, 4}, values{30, 10, 40}, queries{4, 2};
  std::vector<std::uint32_t> results(queries.size());
  roost::host cpu;
  roost::frozen_map map(cpu, keys, values);
  map.find(cpu, queries, results, 7u);
  const bool correct = map.size() == 3 && results == std::vector<std::uint32_t>{40, 7};
  std::puts(correct ? "consumer: correct" : "consumer: wrong answers");
  return correct ? 0 : 1;
}
