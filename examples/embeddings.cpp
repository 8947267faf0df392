// Rows of numbers that are learned, by ids without end, in a table of 4,000 rows.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <roost/embedding/embedding_table.hpp>
#include <vector>

int main() {
  roost::host cpu;
  constexpr std::uint32_t dim = 8;
  constexpr std::size_t n = 2000;
  roost::embedding_table<roost::host> table(
      cpu, {.dim = dim, .capacity = 4000, .rates = {.learning_rate = 0.1f}});

  std::vector<std::int64_t> ids(n);
  std::vector<std::uint32_t> slots(n);
  std::vector<float> rows(n * dim), gradients(n * dim);
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    for (std::size_t i = 0; i < n; ++i) {  // half of them new at each step
      const std::size_t number =
          i % 2 == 0 ? i : i + n * static_cast<std::size_t>(step);
      ids[i] = static_cast<std::int64_t>(roost::mix64(number));
    }
    table.look_up(cpu, {.ids = ids}, slots, rows);
    double error = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {  // all numbers are to become 1
      gradients[i] = 2 * (rows[i] - 1);
      if (i / dim % 2 == 0) error += (rows[i] - 1) * (rows[i] - 1);
    }
    table.update(cpu, {.ids = ids}, slots, gradients);
    (step == 0 ? first : last) = error / (n / 2 * dim);
  }

  const roost::embedding_counts counts = table.counts(cpu);
  std::printf("error %.3f, then %.6f; %zu ids have rows, %llu lost theirs\n", first,
              last, table.size(cpu), static_cast<unsigned long long>(counts.evicted));
  // Ids that come each time kept their rows, and no lookup went without one.
  return last < 1e-3 && counts.unplaced == 0 && counts.evicted > 100000 ? 0 : 1;
}
