// Choosing a layout and its options, and reading how a build went.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

template <class Map>
bool report(const char* name, const roost::host& cpu, const Map& map, std::size_t n) {
  const roost::frozen_statistics& s = map.statistics();
  std::printf("%-20s load %.2f, %.1f bytes a pair, %.2f probes, %d restarts\n", name,
              s.load_factor, static_cast<double>(s.bytes) / static_cast<double>(n),
              map.mean_probes(cpu), s.restarts);
  return map.size() == n && map.valid(cpu);
}

int main() {
  const std::size_t n = 1 << 20;
  const auto key = [](std::size_t i) {
    return roost::mix32(static_cast<std::uint32_t>(i));
  };
  const auto value = [](std::size_t i) { return static_cast<std::uint32_t>(i); };
  const roost::computed keys(n, key);
  const roost::computed values(n, value);
  roost::host cpu;

  roost::frozen_map usual(cpu, keys, values);
  // As small as its input.
  roost::frozen_map small(cpu, keys, values, {.load_factor = 1.0});
  using bucketed_map =
      roost::frozen_map<std::uint32_t, std::uint32_t, roost::host, roost::bucketed>;
  bucketed_map bucketed(cpu, keys, values);  // plain slots, for keys of any size

  bool right = report("compact", cpu, usual, n);
  right = report("compact, 1.0", cpu, small, n) && right;
  right = report("bucketed", cpu, bucketed, n) && right;
  right = right && small.bytes() < usual.bytes() && usual.bytes() <= bucketed.bytes();
  std::puts(right ? "layouts: right" : "layouts: wrong answers");
  return right ? 0 : 1;
}
