// Ordered access: a sorted_map answers what a hash table cannot. Here: what was the
// price at a given moment, that is, at the last change before it; and how many changes
// fall into an interval.
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <roost/roost.hpp>
#include <roost/sorted_map.hpp>
#include <vector>

int main() {
  // 10000 changes, in the order in which they were reported.
  std::vector<std::uint64_t> seconds(10000);
  std::vector<float> prices(seconds.size());
  std::map<std::uint64_t, float> expected;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    seconds[i] = 1000 + roost::mix64(i) % 1000000;
    prices[i] = 100 + static_cast<float>(i % 17);
    expected.emplace(seconds[i], prices[i]);
  }

  roost::host cpu;
  roost::sorted_map history(cpu, seconds, prices);
  const auto ref = history.ref();
  const auto price_at = [&](std::uint64_t second) {
    const std::size_t next = ref.lower_bound(second + 1);  // the first change after it
    return next == 0 ? 0.0f : ref.value_at(next - 1);
  };
  const std::size_t changes = ref.lower_bound(600000) - ref.lower_bound(500000);
  std::printf("%zu changes between 500000 and 600000; at 550000 the price is %.0f\n",
              changes, price_at(550000));

  bool right = history.valid(cpu) && history.size() == expected.size();
  std::size_t i = 0;
  for (const auto& [second, price] : expected) {  // both ascend
    right = right && history.keys()[i] == second && history.values()[i] == price;
    ++i;
  }
  for (std::uint64_t second = 0; second < 1100000; second += 9973) {
    const auto next = expected.upper_bound(second);
    right = right && price_at(second) ==
                         (next == expected.begin() ? 0 : std::prev(next)->second);
  }
  right = right &&
          changes == static_cast<std::size_t>(std::distance(
                         expected.lower_bound(500000), expected.lower_bound(600000)));
  std::puts(right ? "sorted: right" : "sorted: wrong answers");
  return right ? 0 : 1;
}
