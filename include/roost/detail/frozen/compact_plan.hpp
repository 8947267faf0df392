#pragma once

// The geometry of tables with layout compact.

#include "roost/detail/frozen/compact.hpp"

namespace roost {
namespace detail {

/// How many pairs per sector go to the stash, if sectors of `slots` slots are the home of `mean` pairs on
/// average: models a random split for each try.
inline double expected_homeless(double mean, int slots, std::uint32_t tries) {
  std::array<double, 33> filled{1};  // [i]: probability that a sector holds i pairs
  const auto held = [&] {
    double sum = 0;
    for (int j = 1; j <= slots; ++j) sum += j * filled[static_cast<std::size_t>(j)];
    return sum;
  };
  double coming = mean;
  for (std::uint32_t t = 0; t < tries && coming > 1e-12; ++t) {
    const double before = held();
    std::array<double, 33> next{};
    double come = std::exp(-coming), rest = 1;  // probability that i pairs come
    for (int i = 0; i < slots; come *= coming / ++i) {
      for (int j = 0; i + j < slots; ++j)
        next[static_cast<std::size_t>(i + j)] += come * filled[static_cast<std::size_t>(j)];
    }
    for (int j = 0; j < slots; ++j) rest -= next[static_cast<std::size_t>(j)];
    next[static_cast<std::size_t>(slots)] = std::max(0.0, rest);
    filled = next;
    coming = std::max(0.0, coming - (held() - before));
  }
  return coming;
}

}  // namespace detail

template <class Place, class Key, class Value>
compact::plan compact::make_plan(std::size_t n, const options& options, int attempt, std::uint32_t parts) {
  using here = table<Place, Key, Value>;
  using tuned = detail::build_tuning<Place>;
  if (!(options.load_factor > 0 && options.load_factor <= load_factor_most)) {
    detail::raise<invalid_argument>({"roost::compact: load factor ", options.load_factor,
                                     " asked for; give more than 0 and at most ", load_factor_most});
  }
  constexpr double region_least = 32;  // sectors: the farthest step of a try
  const double pairs = static_cast<double>(n);
  const double wished = pairs * here::pair_bytes / options.load_factor;
  const double region_bytes =
      static_cast<double>(tuned::compact_region_bytes(wished) * here::sector_bytes / 32);
  detail::check_table_bytes(wished, wished / region_bytes, "roost::compact");
  const double sectors_most =
      here::hash_bits == 32 ? 0x1p31 : 0x1p55;  // 2^31 sectors determine all but two bits of a 4-byte key
  constexpr double fullest = 0.95;              // of the slots: above, lookups read many sectors
  constexpr double roomy = here::on_host ? 0.7 : 0;  // a host gains nothing from more slots than that
  const double least_bytes = pairs / (fullest * here::formats.back().format.slots) * here::sector_bytes;
  const double asked = std::min(std::max(wished, least_bytes), sectors_most * here::sector_bytes);
  const double regions = detail::regions_from_parts(std::max(2.0, std::ceil(asked / region_bytes)), parts);
  // The fullest region must hold its pairs, and its stash the pairs that find no slot.
  const double mean = pairs / regions;
  const double crowd =
      std::min(pairs, mean + std::max(4.0, std::sqrt(2 * std::log(regions)) + 0.5) * std::sqrt(mean));
  constexpr double stash_least = 8;
  const double stash_most = stash_least + 1 + crowd / 16;
  plan p{};
  for (p.format = static_cast<int>(here::formats.size()) - 1;; --p.format) {
    const auto& [sectors_least, format] = here::formats[static_cast<std::size_t>(p.format)];
    const auto least = static_cast<double>(sectors_least);
    const int slots = format.slots;
    const auto stash_of = [&](double sectors) {
      if (crowd <= slots * sectors / 3) return stash_least;  // hardly any pair finds no slot
      const double all = std::max(least, regions * sectors);
      const double homeless =
          sectors * detail::expected_homeless(crowd / sectors, slots,
                                              here::tries_of(p.format, static_cast<std::uint64_t>(all)));
      return stash_least + std::ceil(homeless + 3 * std::sqrt(homeless));
    };
    // Sectors and stash share the requested bytes, unless pairs would then find no slot.
    double sectors = std::max(asked / regions / here::sector_bytes, region_least);
    if (p.format > 0 && 4 * regions * sectors < least) continue;  // skips plans that are far too small
    double stash = stash_of(sectors);
    for (int i = 0; i < 64 && stash <= stash_most && sectors > region_least; ++i) {
      const double rest =
          std::max(region_least, (asked / regions - stash * sizeof(pair<Key, Value>)) / here::sector_bytes);
      if (sectors - rest < 1) break;
      sectors = rest;
      stash = stash_of(sectors);
    }
    for (; stash > stash_most || mean > fullest * slots * sectors; stash = stash_of(sectors)) sectors *= 1.01;
    sectors = std::ceil(sectors * std::pow(1.125, attempt));
    if (p.format > 0 && regions * sectors < least) continue;
    if (p.format > 0 &&
        here::formats[static_cast<std::size_t>(p.format - 1)].format.slots * sectors * roomy > mean)
      continue;
    p.regions = static_cast<std::uint32_t>(regions);
    p.region_sectors = static_cast<std::uint32_t>(sectors);
    p.region_stash = static_cast<std::uint32_t>(std::ceil(stash * std::pow(1.125, attempt)));
    p.region_of = {detail::seed_of_attempt(options.seed, attempt), p.regions};
    return p;
  }
}

}  // namespace roost
