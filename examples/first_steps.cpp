// The six lines of the README: build a map, query it in bulk, look up one key, go over
// all pairs.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

int main() {
  const std::vector<std::uint32_t> keys{3, 1, 4}, values{30, 10, 40}, queries{4, 2, 3};
  std::vector<std::uint32_t> results(queries.size());
  std::uint32_t one = 0, sum = 0;

  roost::host cpu;                             // where: this machine, all cores
  roost::frozen_map map(cpu, keys, values);    // keys[i] -> values[i]
  map.find(cpu, queries, results, 99);         // in bulk; 99 for absent keys
  if (auto value = map.find(1)) one = *value;  // one key
  for (auto [key, value] : map) sum += value;  // all pairs, in no defined order
  std::printf("%zu pairs, %.0f %% full\n", map.size(), 100 * map.load_factor());

  const bool right =
      results == std::vector<std::uint32_t>{40, 99, 30} && one == 10 && sum == 80;
  std::puts(right ? "first_steps: right" : "first_steps: wrong answers");
  return right ? 0 : 1;
}
