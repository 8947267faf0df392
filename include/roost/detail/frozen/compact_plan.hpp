#pragma once

// The geometry of tables with layout compact.

#include <optional>

#include "roost/detail/frozen/compact.hpp"

namespace roost {
namespace detail {

/// How many pairs per sector go to the stash, if sectors of `slots` slots are the home of `mean` pairs on
/// average: models a random split for each try.
[[gnu::noinline]] inline double expected_homeless(double mean, int slots, std::uint32_t tries) {
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
    double come = std::exp(-coming), rest = 1;  // probability that i pairs arrive
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

/// Chooses the geometry of a table. No template, so that it is compiled once for all types.
class compact_planner {
 public:
  struct types {
    bool on_host;
    int pair_bytes, sector_bytes, hash_bits;
    std::size_t item_bytes;  // of a pair in the stash
    std::array<sized_format, 5> formats;
    std::size_t (*region_bytes)(double table_bytes);  // in sectors of 32 bytes
  };

  /// `parts`: see regions_from_parts.
  compact_planner(const types& of, std::size_t n, double load_factor, std::uint32_t parts)
      : of_(of), pairs_(static_cast<double>(n)) {
    if (!(load_factor > 0 && load_factor <= compact::load_factor_most)) {
      raise<invalid_argument>({"roost::compact: load factor ", load_factor, "; give more than 0 and at most ",
                               compact::load_factor_most});
    }
    const double wished = pairs_ * of_.pair_bytes / load_factor;
    const double region_bytes = static_cast<double>(of_.region_bytes(wished)) * of_.sector_bytes / 32;
    check_table_bytes(wished, wished / region_bytes, "roost::compact");
    // 2^31 sectors determine all but two bits of a 4-byte key.
    const double sectors_most = of_.hash_bits == 32 ? 0x1p31 : 0x1p55;
    const double least = pairs_ / (fullest * of_.formats.back().format.slots) * of_.sector_bytes;
    const double bytes = std::min(std::max(wished, least), sectors_most * of_.sector_bytes);
    regions_ = regions_from_parts(std::max(2.0, std::ceil(bytes / region_bytes)), parts);
    bytes_of_region_ = bytes / regions_;
    // The fullest region must hold its pairs, and its stash the pairs that find no slot.
    mean_ = pairs_ / regions_;
    crowd_ =
        std::min(pairs_, mean_ + std::max(4.0, std::sqrt(2 * std::log(regions_)) + 0.5) * std::sqrt(mean_));
    stash_most_ = stash_least + 1 + crowd_ / 16;
  }

  compact::plan run(std::uint64_t seed, int attempt) const {
    const double growth = std::pow(1.125, attempt);
    for (std::size_t format = of_.formats.size() - 1;; --format) {
      const auto size = size_with(format);
      if (!size) continue;
      const double sectors = std::ceil(size->sectors * growth);
      if (format > 0 && !is_chosen(format, sectors)) continue;
      compact::plan p{};
      p.format = static_cast<int>(format);
      p.regions = static_cast<std::uint32_t>(regions_);
      p.region_sectors = static_cast<std::uint32_t>(sectors);
      p.region_stash = static_cast<std::uint32_t>(std::ceil(size->stash * growth));
      p.region_of = {seed_of_attempt(seed, attempt), p.regions};
      return p;
    }
  }

 private:
  static constexpr double region_least = 32;  // sectors: the farthest step of a try
  static constexpr double fullest = 0.95;     // of the slots: above, lookups read many sectors
  static constexpr double stash_least = 8;
  struct region_size {
    double sectors, stash;  // pairs in the stash
  };

  double least_of(std::size_t format) const { return static_cast<double>(of_.formats[format].sectors_least); }

  double stash_of(std::size_t format, double sectors) const {
    const sector_format& f = of_.formats[format].format;
    if (crowd_ <= f.slots * sectors / 3) return stash_least;  // hardly any pair finds no slot
    const double all = std::max(least_of(format), regions_ * sectors);
    const std::uint32_t tries = tries_of(f, static_cast<std::uint64_t>(all), of_.hash_bits);
    const double homeless = sectors * expected_homeless(crowd_ / sectors, f.slots, tries);
    return stash_least + std::ceil(homeless + 3 * std::sqrt(homeless));
  }

  /// Sectors and stash share the requested bytes, unless pairs would then find no slot. Nothing for a format
  /// that needs far more sectors.
  std::optional<region_size> size_with(std::size_t format) const {
    double sectors = std::max(bytes_of_region_ / of_.sector_bytes, region_least);
    if (format > 0 && 4 * regions_ * sectors < least_of(format)) return {};
    double stash = stash_of(format, sectors);
    for (int i = 0; i < 64 && stash <= stash_most_ && sectors > region_least; ++i) {
      const double rest = std::max(
          region_least, (bytes_of_region_ - stash * static_cast<double>(of_.item_bytes)) / of_.sector_bytes);
      if (sectors - rest < 1) break;
      sectors = rest;
      stash = stash_of(format, sectors);
    }
    const int slots = of_.formats[format].format.slots;
    for (; stash > stash_most_ || mean_ > fullest * slots * sectors; stash = stash_of(format, sectors))
      sectors *= 1.01;
    return region_size{sectors, stash};
  }

  /// Whether the table has the sectors that a format needs. A host takes the previous format if that leaves
  /// enough slots free: it gains nothing from more.
  bool is_chosen(std::size_t format, double sectors) const {
    const double roomy = !of_.on_host ? 0 : of_.hash_bits == 64 ? 0.9 : 0.7;
    return regions_ * sectors >= least_of(format) &&
           of_.formats[format - 1].format.slots * sectors * roomy <= mean_;
  }

  const types& of_;
  double pairs_;
  double regions_ = 0, bytes_of_region_ = 0;
  double mean_ = 0, crowd_ = 0;  // pairs of a region, and of the fullest
  double stash_most_ = 0;
};

}  // namespace detail

template <class Place, class Key, class Value>
compact::plan compact::make_plan(std::size_t n, const options& options, int attempt, std::uint32_t parts) {
  using here = table<Place, Key, Value>;
  static constexpr detail::compact_planner::types types{
      .on_host = here::on_host,
      .pair_bytes = here::pair_bytes,
      .sector_bytes = here::sector_bytes,
      .hash_bits = here::hash_bits,
      .item_bytes = sizeof(pair<Key, Value>),
      .formats = here::formats,
      .region_bytes = detail::build_tuning<Place>::compact_region_bytes};
  plan p = detail::compact_planner(types, n, options.load_factor, parts).run(options.seed, attempt);
  p.region_of = detail::regions_of<Key>(p.region_of);
  return p;
}

}  // namespace roost
