// Columns in host memory, worked on piece by piece by a device with little memory.
// Here a host stands for the device; with a GPU it is roost::cuda gpu{stream}.
#include <cstdint>
#include <cstdio>
#include <roost/out_of_core/out_of_core.hpp>
#include <roost/roost.hpp>
#include <vector>

int main() {
  // Orders, whose customers come again and again, and the customers of one country.
  std::vector<std::uint64_t> customers, ours;
  std::vector<double> amounts;
  for (std::uint64_t i = 0; i < 500000; ++i) {
    customers.push_back(i * 7919 % 100003);
    amounts.push_back(static_cast<double>(i % 1000) / 100);
    if (i % 3 == 0 && i < 300000) ours.push_back(i);
  }

  const roost::host gpu(2);  // or roost::cuda gpu{stream};
  const std::size_t bytes = std::size_t{16} << 20;
  roost::out_of_core place(roost::host(), gpu, {.device_bytes = bytes});
  const auto sums = roost::group_by(place, customers, amounts, roost::plus());
  const auto rows = roost::inner_join(place, customers, ours);
  // sums.keys, sums.values, rows.left and rows.right are arrays of the host.

  // The same calls in memory.
  const roost::host cpu;
  const auto expected = roost::inner_join(cpu, customers, ours);
  if (rows.size() != expected.size() || sums.size() != 100003) return 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.left[i] != expected.left[i] || rows.right[i] != expected.right[i])
      return 1;
  }

  // What is done is reported. A call that is stopped gives back all its memory.
  roost::out_of_core stops(
      roost::host(), gpu,
      {.device_bytes = bytes, .progress = [](std::size_t done, std::size_t all) {
         if (2 * done > all) throw "stopped";
       }});
  try {
    static_cast<void>(roost::unique(stops, customers));
    return 1;
  } catch (const char*) {
  }
  std::printf("%zu customers, %zu orders of ours\n", sums.size(), rows.size());
  return 0;
}
