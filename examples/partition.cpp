// The partition and its way back: for every key of a batch, how often it comes in the
// batch. Copies of a key are in one region, so each region is counted alone, in memory
// that fits a cache, by whichever thread is free. The counts then return to the order
// of the input.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <span>
#include <unordered_map>
#include <vector>

int main() {
  std::vector<std::uint32_t> keys(1000000);
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = static_cast<std::uint32_t>(i * i % 30011);

  roost::host cpu;
  const auto parts = roost::partition(cpu, keys, {.regions = 64, .way_back = true});
  std::vector<std::uint32_t> counts(parts.extent()), result(keys.size());
  cpu.for_each(parts.regions(), [&](std::size_t r) {
    std::unordered_map<std::uint32_t, std::uint32_t> seen;
    const auto begin = parts.begins()[r], end = parts.ends()[r];
    for (auto i = begin; i < end; ++i) ++seen[parts.items()[i].key];
    for (auto i = begin; i < end; ++i) counts[i] = seen[parts.items()[i].key];
  });
  parts.restore(cpu, counts, result);  // result[i] belongs to keys[i]

  std::vector<std::uint32_t> expected(30011);
  for (const auto key : keys) ++expected[key];
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) wrong += result[i] != expected[keys[i]];
  std::printf("%u regions, key %u comes %u times\n", parts.regions(), keys[7],
              result[7]);
  std::puts(wrong == 0 ? "partition: right" : "partition: wrong answers");
  return wrong == 0 ? 0 : 1;
}
