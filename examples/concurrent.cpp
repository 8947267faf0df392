// A word count while the text comes in, and a map that grows.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

struct tally {
  std::uint64_t count;
  double sum;
};
struct add {
  ROOST_FN tally operator()(const tally& a, const tally& b) const {
    return {a.count + b.count, a.sum + b.sum};
  }
};

int main() {
  const std::vector<std::uint32_t> words{7, 3, 7, 7, 3, 9}, ones(words.size(), 1);
  roost::host cpu;
  roost::concurrent_map<std::uint32_t, std::uint32_t> counts(cpu);  // grows in bulk
  counts.insert_or_apply(cpu, words, ones, roost::plus());  // in bulk: a group-by
  auto ref = counts.ref();  // one by one, from any number of threads; it does not grow
  std::atomic<int> lost = 0;
  cpu.for_each(1000, [=, &lost](std::size_t i) {
    const auto done = ref.insert_or_apply(i % 2 == 0 ? 7u : 3u, 1u, roost::plus());
    if (done == roost::insertion::full) ++lost;  // reserve() makes room before
  });
  if (auto n = ref.find(7)) std::printf("7 came %u times\n", *n);
  ref.erase(9);
  const bool good = lost == 0 && ref.find(7).value_or(0) == 503 &&
                    ref.find(3).value_or(0) == 502 && !ref.contains(9) &&
                    counts.size(cpu) == 2 && counts.valid(cpu);

  using map = roost::concurrent_map<std::uint32_t, std::uint32_t>;
  using what = roost::operation_kind;
  map mixed(cpu, 100);
  const std::vector<roost::operation<std::uint32_t, std::uint32_t>> operations{
      {what::insert, 1, 10}, {what::insert, 2, 20}, {what::erase, 3, 0}};
  std::vector<roost::operation_result<std::uint32_t>> results(operations.size());
  mixed.run(cpu, operations, results);  // all at the same time

  const std::vector<tally> lengths{{1, 2.5}, {1, 1}, {1, 3.5}, {1, 6}, {1, 1}, {1, 4}};
  roost::concurrent_map<std::uint32_t, tally> tallies(cpu);
  tallies.insert_or_apply(cpu, words, lengths, add());
  tallies.reserve(cpu, 1000);  // entries for changes through refs
  auto tally_of = tallies.ref();
  cpu.for_each(100, [=, &lost](std::size_t i) {
    const auto done = tally_of.insert_or_apply(i % 2 == 0 ? 7u : 3u, {1, 0.5}, add());
    if (done == roost::insertion::full) ++lost;
  });
  if (auto mean = tally_of.find(7))
    std::printf("7 is %g long in the mean\n",
                mean->sum / static_cast<double>(mean->count));
  const tally seven = tally_of.find(7).value_or({});
  if (seven.count != 53 || seven.sum != 37 || tallies.size(cpu) != 3 ||
      !tallies.valid(cpu))
    return 1;
  return good && results[0].done && results[1].done && !results[2].done &&
                 mixed.size(cpu) == 2
             ? 0
             : 1;
}
