#pragma once

#include <bit>

#include "index.hpp"
#include "roost/sorted_map.hpp"
#include "roost/two_way_index.hpp"

/// \file
/// Which quads of stars become patterns. Circles cover the sky so densely that one nearly coincides with a
/// circle in any picture; all quads of the brightest stars of a circle are patterns, each once.

namespace roost::tools {

inline constexpr int circle_stars = 7;       // whose quads are taken
inline constexpr double circle_width = 0.8;  // of a level's picture
inline constexpr double circles_across = 9;  // circles are a ninth of their width apart
inline constexpr float stars_apart = 0.05f;  // least distance of two of those stars, in circle widths

/// The brightest stars of a circle, and how many.
struct circle_list {
  std::uint32_t star[circle_stars];
};

struct quad {
  std::uint32_t star[4];
  friend bool operator==(const quad&, const quad&) = default;
};

/// The circles of all levels, one level after the other.
struct all_circles {
  struct level {
    std::uint64_t first;
    std::uint32_t bands, first_band;
  };
  level levels[levels_most + 1];
  const std::uint32_t* bands;

  ROOST_FN int level_of(std::uint64_t circle) const {
    int number = 0;
    while (levels[number + 1].first <= circle) ++number;
    return number;
  }
  ROOST_FN sky_cells::ref_type cells_of(int number) const {
    return {bands + levels[number].first_band, levels[number].bands};
  }
};

/// Lists the stars of each circle.
template <class Place>
struct list_circles {
  all_circles circles;
  star_index_ref<Place> stars;
  circle_list* lists;

  ROOST_FN void operator()(std::size_t i) const {
    constexpr int most = 2 * circle_stars;  // some are too close to each other
    const int level = circles.level_of(i);
    const sky_vector middle =
        circles.cells_of(level).middle(static_cast<std::uint32_t>(i - circles.levels[level].first));
    const float width = static_cast<float>(circle_width) * stars.levels[level].fov, radius = width / 2;
    const auto reach = static_cast<float>(2 * std::sin(static_cast<double>(radius) / 2)),
               reach2 = reach * reach;  // chords
    std::uint32_t best[most] = {};
    int n = 0;
    stars.for_each_near(level, middle, radius, [&](std::uint32_t number) {
      if (n == most && number > best[most - 1]) return false;
      const sky_vector apart = stars.stars[number].at - middle;
      if (dot(apart, apart) > reach2) return true;
      int k = n < most ? n++ : most - 1;
      for (; k > 0 && best[k - 1] > number; --k) best[k] = best[k - 1];
      best[k] = number;
      return true;
    });
    circle_list list;
    int kept = 0;
    const float apart2 = stars_apart * stars_apart * width * width;
    for (int k = 0; k < n && kept < circle_stars; ++k) {
      bool far = true;
      for (int other = 0; other < kept; ++other) {
        const sky_vector apart = stars.stars[best[k]].at - stars.stars[list.star[other]].at;
        far &= dot(apart, apart) >= apart2;
      }
      if (far) list.star[kept++] = best[k];
    }
    for (; kept < circle_stars; ++kept) list.star[kept] = no_star_here;
    lists[i] = list;
  }
  static constexpr std::uint32_t no_star_here = ~std::uint32_t{0};
};

/// Counts, or writes, the quads of each circle that none of the neighbouring circles before it has.
struct take_quads {
  all_circles circles;
  const circle_list* lists;
  std::uint64_t* counts;        // where counts are written,
  const std::uint64_t* places;  // or where each circle's quads begin
  quad* target;

  /// A bit for each star of a list that another circle also has.
  ROOST_FN static std::uint32_t common(const circle_list& list, const circle_list& other) {
    std::uint32_t bits = 0;
    for (int i = 0; i < circle_stars; ++i) {
      bool here = false;
      for (int j = 0; j < circle_stars; ++j) here |= list.star[i] == other.star[j];
      bits |= here ? 1u << i : 0;
    }
    return bits;
  }

  ROOST_FN void operator()(std::size_t i) const {
    const circle_list list = lists[i];
    int n = 0;
    while (n < circle_stars && list.star[n] != ~std::uint32_t{0}) ++n;
    const int level = circles.level_of(i);
    const auto cells = circles.cells_of(level);
    const std::uint64_t first = circles.levels[level].first;
    const auto cell = static_cast<std::uint32_t>(i - first);
    const std::uint32_t band = cells.band_of(cell), here = cell - cells.first[band];
    std::uint32_t covered[3];
    int beside = 0;
    if (here != 0) covered[beside++] = common(list, lists[i - 1]);
    if (band != 0) {
      const std::uint32_t before = cells.cells_of(band - 1);
      const auto near = static_cast<std::uint32_t>(std::uint64_t{here} * before / cells.cells_of(band));
      covered[beside++] = common(list, lists[first + cells.first[band - 1] + near]);
      if (near + 1 < before)
        covered[beside++] = common(list, lists[first + cells.first[band - 1] + near + 1]);
    }
    std::uint64_t taken = 0;
    for (int d = 3; d < n; ++d) {
      for (int c = 2; c < d; ++c) {
        for (int b = 1; b < c; ++b) {
          for (int a = 0; a < b; ++a) {
            const std::uint32_t bits = 1u << a | 1u << b | 1u << c | 1u << d;
            bool had = false;
            for (int k = 0; k < beside; ++k) had |= (bits & covered[k]) == bits;
            if (had) continue;
            if (target != nullptr)
              target[places[i] + taken] = {{list.star[a], list.star[b], list.star[c], list.star[d]}};
            ++taken;
          }
        }
      }
    }
    if (counts != nullptr) counts[i] = taken;
  }
};

/// Quads as patterns.
struct fill_patterns {
  const star* stars;
  const quad* quads;
  star_pattern* patterns;
  ROOST_FN void operator()(std::size_t i) const {
    const quad q = quads[i];
    const sky_vector at[4] = {stars[q.star[0]].at, stars[q.star[1]].at, stars[q.star[2]].at,
                              stars[q.star[3]].at};
    patterns[i] = {{q.star[0], q.star[1], q.star[2], q.star[3]}, shape_of(at)};
  }
};

/// The brightness of a star as an integer for stable sorting.
struct brightness {
  const star* stars;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const float magnitude = stars[i].magnitude;
    std::uint32_t bits;
    memcpy(&bits, &magnitude, sizeof(bits));
    bits ^= bits >> 31 ? ~0u : 1u << 31;  // ascending, also where the numbers are negative
    return std::uint64_t{bits} << 32 | i;
  }
};
struct own_number {
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return static_cast<std::uint32_t>(i); }
};
struct gather_stars {
  const star* from;
  const std::uint32_t* order;
  star* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = from[order[i]]; }
};

/// The result of build_patterns on a place.
template <class Place>
struct built_patterns {
  array<std::uint32_t, Place> order;  // the number of each star in the catalogue
  array<star, Place> stars;
  array<star_pattern, Place> patterns;
};

/// Stars in order, as many as are needed, and their patterns.
template <class Place>
built_patterns<Place> build(const Place& place, std::span<const star> catalogue,
                            const database_limits& limits) {
  built_patterns<Place> result;
  {
    const sorted_map<std::uint64_t, std::uint32_t, Place> sorted(
        place, computed(catalogue.size(), brightness{catalogue.data()}),
        computed(catalogue.size(), own_number{}));
    const std::size_t n = std::min<std::uint64_t>(catalogue.size(), star_index<Place>::enough(limits));
    result.order = array<std::uint32_t, Place>(place, n);
    place.copy(result.order.data(), sorted.values().data(), result.order.bytes());
    result.stars = array<star, Place>(place, n);
    place.for_each(n, gather_stars{catalogue.data(), result.order.data(), result.stars.data()});
    place.synchronize();
  }
  const star_index<Place> index(place, std::as_const(result.stars).span(), limits);

  all_circles circles{};
  std::vector<std::uint32_t> all_bands;
  std::uint64_t count = 0;
  int level = 0;
  for (const double width : star_index<Place>::widths(limits)) {
    const auto bands = sky_cells::bands(width * circle_width / circles_across * std::numbers::pi / 180);
    circles.levels[level++] = {count, static_cast<std::uint32_t>(bands.size() - 1),
                               static_cast<std::uint32_t>(all_bands.size())};
    count += bands.back();
    all_bands.insert(all_bands.end(), bands.begin(), bands.end());
  }
  for (; level <= levels_most; ++level) circles.levels[level] = {~std::uint64_t{0}, 0, 0};
  const auto bands = copy_to(place, all_bands);
  circles.bands = bands.data();

  array<circle_list, Place> lists(place, count);
  place.for_each(count, list_circles<Place>{circles, index.ref(), lists.data()});
  array<std::uint64_t, Place> places(place, count + 1);
  place.fill(places.data(), 0, places.bytes());
  place.for_each(count, take_quads{circles, lists.data(), places.data(), nullptr, nullptr});
  place.exclusive_scan(places.data(), places.data(), count + 1);
  std::uint64_t taken = 0;
  place.copy_to_host(&taken, places.data() + count, sizeof(taken));
  array<quad, Place> quads(place, taken);
  place.for_each(count, take_quads{circles, lists.data(), nullptr, places.data(), quads.data()});
  const auto different = unique(place, std::as_const(quads).span());
  result.patterns = array<star_pattern, Place>(place, different.size());
  place.for_each(different.size(),
                 fill_patterns{result.stars.data(), different.data(), result.patterns.data()});
  place.synchronize();
  return result;
}

/// The same for a database in host memory; returns the milliseconds that it took on the place.
template <class Place>
double build_patterns_on(const Place& place, star_database& database) {
  const auto catalogue = copy_to(place, database.stars);
  const auto start = std::chrono::steady_clock::now();
  const auto built = build(place, std::as_const(catalogue).span(), database.limits);
  const auto end = std::chrono::steady_clock::now();
  database.stars = copy_to_host(place, built.stars);
  database.patterns = copy_to_host(place, built.patterns);
  std::vector<std::string> names(database.stars.size());
  if (!database.names.empty()) {
    const auto order = copy_to_host(place, built.order);
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = std::move(database.names[order[i]]);
  }
  database.names = std::move(names);
  return std::chrono::duration<double, std::milli>(end - start).count();
}

}  // namespace roost::tools
