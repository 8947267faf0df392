// A kernel of your own that runs on every place: how many values each of 64 bins gets.
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <roost/kernels.hpp>
#include <vector>

struct count_values {
  static constexpr int threads = 256;  // of a team on cuda
  static constexpr std::uint32_t bins = 64, tile = 4096;
  const std::uint32_t* values;
  std::size_t n;
  std::uint64_t* counts;  // of each bin, zeros at first

  ROOST_FN std::uint32_t* scratch(roost::kernels::scratch_memory& memory) const {
    return memory.take<std::uint32_t>(bins);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index,
                           std::byte* memory) const {
    using namespace roost::kernels;
    scratch_memory all(memory);
    std::uint32_t* const mine = scratch(all);
    for_each_of(team, bins, [&](std::uint32_t b) { mine[b] = 0; });
    team.sync();
    const std::size_t first = index * tile;
    const auto count =
        static_cast<std::uint32_t>(smaller<std::size_t>(tile, n - first));
    for_each_of(team, count, [&](std::uint32_t i) {
      team.fetch_add(mine[values[first + i] % bins], 1u);
    });
    team.sync();
    for_each_of(team, bins,
                [&](std::uint32_t b) { fetch_add(counts[b], std::uint64_t{mine[b]}); });
  }
};

int main() {
  const roost::host place;  // or roost::cuda place(stream), with arrays of its memory
  std::vector<std::uint32_t> values(1'000'000);
  std::iota(values.begin(), values.end(), 0u);
  std::vector<std::uint64_t> counts(count_values::bins);

  const count_values run{values.data(), values.size(), counts.data()};
  place.launch(roost::kernels::ceil_div<std::size_t>(values.size(), count_values::tile),
               roost::kernels::scratch_bytes_of(run), run);
  place.synchronize();

  bool right = true;
  for (const std::uint64_t count : counts)
    right &= count == values.size() / count_values::bins;
  std::puts(right ? "bins: right" : "bins: wrong answers");
  return right ? 0 : 1;
}
