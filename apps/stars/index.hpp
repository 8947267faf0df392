#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

#include "database.hpp"
#include "roost/frozen_multimap.hpp"
#include "roost/kernels.hpp"

/// \file
/// The stars of every part of the sky, the brightest first, on a place: a multimap from cells to stars, for
/// each of several widths of pictures.

namespace roost::tools {

inline constexpr int levels_most = 16;
inline constexpr double level_step = 1.5;        // between the widths of two levels
inline constexpr double cells_across = 4;        // cells across a picture of a level's width, about
inline constexpr std::uint32_t cell_stars = 12;  // stars of a cell that count: the brightest
inline constexpr std::uint32_t level_bits = 28;  // of a key: the cell; above it the level

/// The stars, for kernels.
template <class Place>
struct star_index_ref {
  struct level {
    float fov;  // radians
    std::uint32_t bands, first;
  };
  typename frozen_multimap<std::uint32_t, std::uint32_t, Place>::ref_type cells;
  const star* stars;
  const std::uint32_t* bands;
  level levels[levels_most];
  int count;

  ROOST_FN sky_cells::ref_type cells_of(int number) const {
    return {bands + levels[number].first, levels[number].bands};
  }
  /// The level whose pictures are nearest in width.
  ROOST_FN int level_of(float fov) const {
    int best = 0;
    for (int i = 1; i < count; ++i) {
      if (fov * fov > levels[i].fov * levels[i - 1].fov) best = i;
    }
    return best;
  }
  /// Calls f(star's number) for bright stars around a direction, and some farther ones; in each cell the
  /// brightest first. f returns whether to continue with its cell.
  template <class F>
  ROOST_FN void for_each_near(int number, sky_vector direction, float radius, const F& f) const {
    cells_of(number).for_each_near(direction, radius, [&](std::uint32_t cell) {
      const auto run = cells.find(static_cast<std::uint32_t>(number) << level_bits | cell);
      const std::uint64_t n = kernels::smaller<std::uint64_t>(run.size(), cell_stars);
      for (std::uint64_t i = 0; i < n && f(run[i]); ++i) {
      }
    });
  }
};

/// Key i of the multimap: for the brightest stars of each level, one level after the other.
struct level_cell {
  const star* stars;
  const std::uint32_t* bands;
  struct level {
    std::uint64_t first;  // item
    std::uint32_t bands, first_band;
  };
  level levels[levels_most + 1];

  ROOST_FN int level_of(std::uint64_t item) const {
    int number = 0;
    while (levels[number + 1].first <= item) ++number;
    return number;
  }
  ROOST_FN std::uint32_t operator()(std::uint64_t item) const {
    const int number = level_of(item);
    const sky_cells::ref_type cells{bands + levels[number].first_band, levels[number].bands};
    const std::uint32_t cell = cells.cell_of(stars[item - levels[number].first].at);
    return static_cast<std::uint32_t>(number) << level_bits | cell;
  }
};
struct level_star {
  level_cell cells;
  ROOST_FN std::uint32_t operator()(std::uint64_t item) const {
    return static_cast<std::uint32_t>(item - cells.levels[cells.level_of(item)].first);
  }
};

struct fill_keys {
  level_cell cell;
  std::uint32_t* keys;
  ROOST_FN void operator()(std::size_t i) const { keys[i] = cell(i); }
};

/// Owns what a star_index_ref refers to.
template <class Place>
class star_index {
 public:
  /// `stars`: in memory of the place, the brightest first; they must outlive this.
  star_index(const Place& place, std::span<const star> stars, const database_limits& limits) {
    ref_.emplace(make(place, stars, limits));
  }
  const star_index_ref<Place>& ref() const { return *ref_; }

  /// The widths of the levels in degrees.
  static std::vector<double> widths(const database_limits& limits) {
    std::vector<double> all{limits.fov_least};
    while (all.back() * 1.2 < limits.fov_most && all.size() < levels_most)
      all.push_back(std::min(all.back() * level_step, limits.fov_most));
    return all;
  }
  /// How many of the brightest stars are enough for a level, even where the sky has the fewest.
  static std::uint64_t enough(std::uint32_t cells) { return std::uint64_t{3} * cell_stars * cells; }
  static std::vector<std::uint32_t> bands(double width) {
    return sky_cells::bands(width / cells_across * std::numbers::pi / 180);
  }
  /// How many stars are enough for all levels.
  static std::uint64_t enough(const database_limits& limits) {
    return enough(bands(limits.fov_least).back());
  }

 private:
  star_index_ref<Place> make(const Place& place, std::span<const star> stars, const database_limits& limits) {
    std::vector<std::uint32_t> all_bands;
    level_cell cell{stars.data(), nullptr, {}};
    typename star_index_ref<Place>::level levels[levels_most] = {};
    int count = 0;
    std::uint64_t items = 0;
    for (const double width : widths(limits)) {
      const auto bands = star_index::bands(width);
      const auto first = static_cast<std::uint32_t>(all_bands.size()),
                 n = static_cast<std::uint32_t>(bands.size() - 1);
      levels[count] = {static_cast<float>(width * std::numbers::pi / 180), n, first};
      cell.levels[count] = {items, n, first};
      items += std::min<std::uint64_t>(stars.size(), enough(bands.back()));
      all_bands.insert(all_bands.end(), bands.begin(), bands.end());
      ++count;
    }
    for (int i = count; i <= levels_most; ++i) cell.levels[i] = {~std::uint64_t{0}, 0, 0};
    bands_ = copy_to(place, all_bands);
    cell.bands = bands_.data();
    array<std::uint32_t, Place> keys(place, items);
    place.for_each(items, fill_keys{cell, keys.data()});
    cells_ = frozen_multimap<std::uint32_t, std::uint32_t, Place>(place, std::as_const(keys).span(),
                                                                  computed(items, level_star{cell}));
    star_index_ref<Place> result{cells_.ref(), stars.data(), bands_.data(), {}, count};
    std::copy_n(levels, levels_most, result.levels);
    return result;
  }

  array<std::uint32_t, Place> bands_;
  frozen_multimap<std::uint32_t, std::uint32_t, Place> cells_;
  std::optional<star_index_ref<Place>> ref_;
};

/// The shape of four points of the sky, or of directions that a picture shows.
ROOST_FN quad_shape shape_of(const sky_vector (&at)[4]) {
  float chord[6];
  int n = 0;
  ROOST_UNROLL
  for (int i = 0; i < 3; ++i) {
    ROOST_UNROLL
    for (int j = i + 1; j < 4; ++j) {
      const float here = length(at[i] - at[j]);
      int k = n++;
      for (; k > 0 && chord[k - 1] > here; --k) chord[k] = chord[k - 1];
      chord[k] = here;
    }
  }
  quad_shape shape{};
  shape.longest = chord[5];
  ROOST_UNROLL
  for (int i = 0; i < quad_shape::ratios; ++i)
    shape.ratio[i] = static_cast<std::uint16_t>(std::fmin(65535.f, chord[i] / chord[5] * 65536));
  return shape;
}

/// The key of a shape: the leading bits of its ratios.
inline constexpr std::uint32_t ratio_bits = 5;
ROOST_FN std::uint32_t pattern_key(const std::uint32_t (&bins)[quad_shape::ratios]) {
  std::uint32_t key = 0;
  for (const std::uint32_t bin : bins) key = key << ratio_bits | bin;
  return key;
}
struct key_of_pattern {
  const star_pattern* patterns;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    std::uint32_t bins[quad_shape::ratios];
    for (int r = 0; r < quad_shape::ratios; ++r)
      bins[r] = std::uint32_t{patterns[i].shape.ratio[r]} >> (16 - ratio_bits);
    return pattern_key(bins);
  }
};

}  // namespace roost::tools
