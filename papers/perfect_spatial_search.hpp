#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

// The construction of Lefebvre and Hoppe, Perfect Spatial Hashing, 2006, in three dimensions, on one thread
// of the host.

namespace roost::bench {

/// The sides of the two tables, and how a key becomes a point: its lowest `bits` bits are z.
struct perfect_spatial_shape {
  std::uint32_t slots = 0;    ///< m: slots a side of the hash table
  std::uint32_t offsets = 0;  ///< r: entries a side of the offset table
  std::uint32_t step = 1;     ///< an entry, with 8 bits per axis, counts steps of this many slots
  std::uint32_t bits = 10;

  std::uint64_t slot_count() const { return std::uint64_t{slots} * slots * slots; }
  std::uint64_t offset_count() const { return std::uint64_t{offsets} * offsets * offsets; }
  std::array<std::uint32_t, 3> point(std::uint32_t key) const {
    const std::uint32_t mask = (1u << bits) - 1;
    return {key >> 2 * bits, key >> bits & mask, key & mask};
  }
  static std::uint64_t number(const std::array<std::uint32_t, 3>& p, std::uint32_t side) {
    return (std::uint64_t{p[0] % side} * side + p[1] % side) * side + p[2] % side;
  }
};

/// An offset table of a shape for distinct keys: x | y << 8 | z << 16 for each entry. The entries with the
/// most keys choose first (they are the most constrained); each takes the first offset, from a random one on,
/// that maps all its keys to free slots. Nothing if an entry finds none, or after `probes` slots were tested.
inline std::optional<std::vector<std::uint32_t>> perfect_spatial_offsets(const perfect_spatial_shape& shape,
                                                                         std::span<const std::uint32_t> keys,
                                                                         std::uint64_t probes) {
  // Keys by entry.
  std::vector<std::uint32_t> begins(shape.offset_count() + 1), sorted(keys.size());
  const auto entry_of = [&](std::uint32_t key) {
    return perfect_spatial_shape::number(shape.point(key), shape.offsets);
  };
  for (const auto key : keys) ++begins[entry_of(key) + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  auto next = begins;
  for (const auto key : keys) sorted[next[entry_of(key)]++] = key;

  std::vector<std::uint32_t> order(shape.offset_count());
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](std::uint32_t entry) { return begins[entry + 1] - begins[entry]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return size(a) > size(b); });

  const std::uint32_t m = shape.slots, choices = (m - 1) / shape.step + 1;  // an axis
  const std::uint64_t all_choices = std::uint64_t{choices} * choices * choices;
  std::vector<bool> taken(shape.slot_count());
  std::vector<std::uint32_t> result(shape.offset_count());
  std::vector<std::array<std::uint32_t, 3>> homes;
  std::vector<std::uint64_t> found;
  std::uint64_t random = 1;
  for (const auto entry : order) {
    if (size(entry) == 0) break;  // so are all following entries
    homes.clear();
    for (std::uint32_t i = begins[entry]; i < begins[entry + 1]; ++i) {
      auto p = shape.point(sorted[i]);
      for (auto& x : p) x %= m;
      homes.push_back(p);
    }
    std::sort(homes.begin(), homes.end());
    if (std::adjacent_find(homes.begin(), homes.end()) != homes.end()) return {};  // none parts these

    random = random * 6364136223846793005u + 1442695040888963407u;
    std::uint64_t choice = (random >> 20) % all_choices, tried = 0;
    for (; tried < all_choices; ++tried, choice = choice + 1 == all_choices ? 0 : choice + 1) {
      const std::array<std::uint32_t, 3> offset{static_cast<std::uint32_t>(choice / choices / choices),
                                                static_cast<std::uint32_t>(choice / choices % choices),
                                                static_cast<std::uint32_t>(choice % choices)};
      found.clear();
      for (auto p : homes) {
        for (int i = 0; i < 3; ++i) p[i] += offset[i] * shape.step;
        const auto slot = perfect_spatial_shape::number(p, m);
        if (taken[slot]) break;
        found.push_back(slot);
      }
      if (probes < found.size() + 1) return {};
      probes -= found.size() + 1;
      if (found.size() == homes.size()) {
        result[entry] = offset[0] | offset[1] << 8 | offset[2] << 16;
        break;
      }
    }
    if (tried == all_choices) return {};
    for (const auto slot : found) taken[slot] = true;
  }
  return result;
}

/// The shape with the smallest offset table that is found, and the table: r begins at (n / 6)^(1/3), as in
/// the paper, grows until a table can be made, and is then minimised by bisection. Each attempt may test 1000
/// slots per key. Nothing if even a table with one entry per key is not enough (a key occurs twice).
struct perfect_spatial_plan {
  perfect_spatial_shape shape;
  std::vector<std::uint32_t> offsets;
};
inline std::optional<perfect_spatial_plan> plan_perfect_spatial(std::span<const std::uint32_t> keys) {
  const auto n = static_cast<double>(keys.size());
  perfect_spatial_shape shape;
  for (const auto key : keys) {
    if (key >> 30 != 0) shape.bits = 11;
  }
  const auto side = [](double count) {
    return std::max(1u, static_cast<std::uint32_t>(std::ceil(std::cbrt(count) - 1e-9)));
  };
  shape.slots = side(n);
  shape.step = (shape.slots + 255) / 256;
  const std::uint64_t probes = std::max<std::uint64_t>(1000 * keys.size(), 1u << 20);
  std::optional<perfect_spatial_plan> best;
  const auto works = [&](std::uint32_t r) {
    // Points that are equal modulo both sides could not be separated; and neighbours that share an entry
    // would also be neighbours in the other table.
    const std::uint32_t rest = shape.slots % r;
    if (std::gcd(shape.slots, r) != 1 || (r > 2 && (rest == 1 || rest == r - 1))) return false;
    shape.offsets = r;
    auto offsets = perfect_spatial_offsets(shape, keys, probes);
    if (!offsets) return false;
    best = {shape, *std::move(offsets)};
    return true;
  };
  std::uint32_t low = side(n / 12), high = side(n / 6);
  const std::uint32_t most = std::max(2 * side(n), 64u);
  // Beside a side that is unusable for any keys, there is a usable one.
  for (;; high += std::max(1u, high / 10)) {
    if (works(high) || works(high + 1)) break;
    if (high > most) return {};
    low = high + 1;
  }
  high = best->shape.offsets;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (works(middle) || (middle + 1 < high && works(middle + 1))) {
      high = std::min(middle, best->shape.offsets);
    } else {
      low = middle + 1;
    }
  }
  return best;
}

}  // namespace roost::bench
