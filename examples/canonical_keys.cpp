// Keys with an equality of their own: each is brought to one form before the table sees
// it. Roads have the same length in both directions, and numbers are equal as C++
// compares them: 0.0 is -0.0.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <roost/frozen_map.hpp>
#include <roost/two_way_index.hpp>
#include <vector>

struct road {
  std::uint32_t from, to;
};

ROOST_FN road either_way(const road& r) {
  return r.from <= r.to ? r : road{r.to, r.from};
}

/// Equal numbers have equal bits, and all NaNs are one key.
std::uint32_t bits_of(float x) {
  if (std::isnan(x)) return 0x7fc00000u;
  return std::bit_cast<std::uint32_t>(x == 0 ? 0.0f : x);
}

int main() {
  roost::host cpu;
  const std::vector<road> roads{{1, 2}, {7, 2}, {5, 1}};
  const std::vector<float> km{12.5f, 3.0f, 8.25f};
  const std::vector<road> queries{{2, 1}, {2, 7}, {7, 5}};

  const auto same_form = [](const std::vector<road>& all) {
    return roost::computed(all.size(),
                           [&all](std::size_t i) { return either_way(all[i]); });
  };
  const roost::frozen_map length(cpu, same_form(roads), km);
  std::vector<float> found(queries.size());
  length.find(cpu, same_form(queries), found, -1.0f);

  const std::vector<float> samples{0.0f, -0.0f, 1.5f, std::nanf("1"), -std::nanf("2")};
  const auto bits = roost::computed(samples.size(),
                                    [&](std::size_t i) { return bits_of(samples[i]); });
  const std::size_t different = roost::unique_count(cpu, bits);

  const bool right = found == std::vector<float>{12.5f, 3.0f, -1.0f} && different == 3;
  std::puts(right ? "canonical_keys: right" : "canonical_keys: wrong answers");
  return right ? 0 : 1;
}
