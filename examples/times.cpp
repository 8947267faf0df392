// Order inside groups: the last quote before each trade, windows of time, and visits.
#include <cstdint>
#include <cstdio>
#include <roost/ordered/asof_join.hpp>
#include <roost/ordered/rolling.hpp>
#include <roost/ordered/running.hpp>
#include <roost/ordered/sessions.hpp>
#include <vector>

int main() {
  const roost::host cpu;

  // The last quote of its symbol at or before each trade.
  const std::vector<std::uint32_t> quoted{1, 2, 1}, traded{1, 1, 2};
  const std::vector<std::int64_t> quote_times{0, 2, 5}, trade_times{4, 5, 1};
  const auto quotes = roost::asof_join(cpu, traded, trade_times, quoted, quote_times);
  bool right = quotes[0] == 0 && quotes[1] == 2;
  right = right && quotes[2] == roost::no_row<std::uint32_t>;

  // One grouping serves several results. Rows may come in any order of time.
  const std::vector<std::uint32_t> sensors{1, 1, 1, 2};
  const std::vector<std::int64_t> seconds{420, 0, 240, 300};
  const std::vector<double> celsius{22, 20, 21, 5};
  const auto rows = roost::group_rows(cpu, sensors, seconds);
  const auto minutes = roost::windows_by_time(cpu, rows, seconds, {.before = 300});
  const auto sums =
      roost::combine_windows(cpu, rows, minutes, celsius, roost::plus(), 0.0);
  const auto counts = roost::window_sizes(cpu, rows, minutes);
  const auto highest = roost::running(cpu, rows, celsius, roost::maximum());
  right = right && sums[0] / counts[0] == 21.5 && highest[2] == 21;

  // Visits end with a pause of more than two minutes. They are groups, too.
  const auto visits = roost::sessions(cpu, rows, seconds, 200);
  const auto of_visits = roost::combine_groups(cpu, visits, celsius, roost::maximum());
  right = right && visits.group_count() == 3 && of_visits.size() == 3;

  std::puts(right ? "right" : "WRONG");
  return right ? 0 : 1;
}
