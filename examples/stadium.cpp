// Records of any size under keys of any size: a stadium_map, changed by all threads at
// once, kept in a file and loaded from there.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <roost/stadium/stadium_file.hpp>
#include <vector>

struct digest {  // 16 bytes without padding: compared byte by byte
  std::uint64_t high, low;
};
struct page {
  char url[80];
  std::uint32_t visits;
};

digest digest_of(std::uint64_t number) {
  return {roost::mix64(number), roost::mix64(number, 1)};
}
page page_of(std::uint64_t number) {
  page result{};
  std::snprintf(result.url, sizeof(result.url), "https://example.org/%llu",
                static_cast<unsigned long long>(number));
  return result;
}

int main() {
  constexpr std::size_t n = 100000;
  std::vector<digest> keys(n);
  std::vector<page> pages(n);
  for (std::size_t i = 0; i < n; ++i) keys[i] = digest_of(i), pages[i] = page_of(i);

  roost::host cpu;
  roost::stadium_map<digest, page> map(cpu, n, {.load_factor = 0.9});
  map.insert(cpu, keys, pages);

  // All threads at once: the even ones are visited, every tenth is taken out.
  auto ref = map.ref();
  std::atomic<int> lost = 0;
  cpu.for_each(n, [&](std::size_t i) {
    if (i % 10 == 5) ref.erase(keys[i]);
    if (i % 2 != 0) return;
    page visited = *ref.find(keys[i]);
    ++visited.visits;
    if (ref.insert_or_assign(keys[i], visited) == roost::insertion::full) ++lost;
  });
  bool right = lost == 0 && map.size(cpu) == n - n / 10;

  // The cost of lookups of absent keys: they hardly ever read a page.
  std::vector<digest> strangers(n);
  for (std::size_t i = 0; i < n; ++i) strangers[i] = digest_of(n + i);
  const roost::lookup_costs costs = map.costs(cpu, strangers);
  std::printf("%zu strangers: %.1f tickets and %.3f pages read for each\n",
              costs.queries, static_cast<double>(costs.tickets) / n,
              static_cast<double>(costs.bodies) / n);
  right = right && costs.found == 0 && costs.bodies < n / 5;

  const auto file = std::filesystem::temp_directory_path() / "roost_example_pages";
  roost::save(cpu, map, file);
  const auto loaded = roost::load_stadium_map<digest, page>(cpu, file);
  std::filesystem::remove(file);

  for (std::size_t i = 0; i < n; ++i) {
    const auto found = loaded.ref().find(keys[i]);
    right = right && found.has_value() == (i % 10 != 5);
    if (found) right = right && std::strcmp(found->url, pages[i].url) == 0;
    if (found) right = right && found->visits == (i % 2 == 0);
  }
  std::puts(right ? "stadium: right" : "stadium: wrong answers");
  return right ? 0 : 1;
}
