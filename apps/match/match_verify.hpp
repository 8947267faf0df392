#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "matcher.hpp"
#include "roost/kernels.hpp"
#include "roost/place.hpp"

/// \file
/// Which of many maps is right, if any: maps are tested on all points of a query, and refined on those that
/// fit. A team tests a map. Similarities come from votes; matching patches give more similarities, affine
/// maps and homographies, which are refined on the host.

namespace roost::tools {

/// The points of an image, the strongest first, and its size.
struct image_features {
  std::vector<image_point> points;
  int width = 0, height = 0;
  float coarser = 1;
  float diagonal() const;
  image_point middle() const { return {static_cast<float>(width) / 2, static_cast<float>(height) / 2}; }
};

/// Interpolates between the pixels of a picture; its border repeats.
ROOST_FN float between(const float* pixels, int width, int height, float x, float y) {
  const float column = std::floor(x), row = std::floor(y), u = x - column, v = y - row;
  const auto inside = [](int at, int end) { return at < 0 ? 0 : at >= end ? end - 1 : at; };
  const int left = inside(static_cast<int>(column), width),
            right = inside(static_cast<int>(column) + 1, width);
  const float* const above = pixels + static_cast<std::size_t>(inside(static_cast<int>(row), height)) * width;
  const float* const below =
      pixels + static_cast<std::size_t>(inside(static_cast<int>(row) + 1, height)) * width;
  return (1 - v) * ((1 - u) * above[left] + u * above[right]) +
         v * ((1 - u) * below[left] + u * below[right]);
}

/// A picture at the size at which it was analysed: each pixel is `step` pixels of the original.
struct shades_ref {
  const float* pixels;
  int width, height;
  float step;
  /// The shade at a point of the picture; false outside.
  ROOST_FN bool at(image_point p, float& shade) const {
    const float x = (p.x + 0.5f) / step - 0.5f, y = (p.y + 0.5f) / step - 0.5f;
    if (!(x >= 0 && y >= 0 && x <= static_cast<float>(width - 1) && y <= static_cast<float>(height - 1)))
      return false;
    shade = between(pixels, width, height, x, y);
    return true;
  }
};

/// The similarity that maps two points to two given points.
similarity similarity_of(image_point a, image_point b, image_point to_a, image_point to_b);

/// Points in square cells: those of cell (column, row) are begin[row * columns + column] to the next begin of
/// `order`, so that the cells of a row follow each other.
struct point_cells {
  point_cells(const std::vector<image_point>& points, float side);
  float side;
  int columns = 0, rows = 0;
  std::vector<std::uint32_t> begin, order;
};

/// Cells in memory of a place.
struct cells_ref {
  float side;
  int columns, rows;
  const std::uint32_t* begin;
  ROOST_FN int column(image_point p) const { return static_cast<int>(std::floor(p.x / side)); }
  ROOST_FN int row(image_point p) const { return static_cast<int>(std::floor(p.y / side)); }
  /// Where the points of some cells of a row begin, and end.
  ROOST_FN std::uint32_t first(int row, int left) const { return begin[row * columns + left]; }
  ROOST_FN std::uint32_t last(int row, int right) const { return begin[row * columns + right + 1]; }
};

/// The reference's points in memory of a place.
struct reference_ref {
  static constexpr std::uint32_t none = ~0u;
  cells_ref near, around;
  const image_point* points;  // in the order of the cells of `near`
  std::uint32_t count;
  float width, height;
  double density;  // points a pixel

  ROOST_FN bool covers(image_point p) const { return p.x >= 0 && p.y >= 0 && p.x <= width && p.y <= height; }
  /// The nearest point within `reach`, which is at most the side of the cells of `near`.
  ROOST_FN std::uint32_t nearest(image_point p, float reach) const {
    std::uint32_t best = none;
    float least = reach * reach;
    const int column = near.column(p), row = near.row(p), left = kernels::larger(0, column - 1),
              right = kernels::smaller(near.columns - 1, column + 1);
    if (left > right) return none;
    for (int r = kernels::larger(0, row - 1); r <= kernels::smaller(near.rows - 1, row + 1); ++r) {
      for (std::uint32_t i = near.first(r, left); i < near.last(r, right); ++i) {
        const image_point q = points[i];
        const float squared = (q.x - p.x) * (q.x - p.x) + (q.y - p.y) * (q.y - p.y);
        if (squared < least) {
          least = squared;
          best = i;
        }
      }
    }
    return best;
  }
  /// The points per pixel around a point, not counting `without` of them.
  ROOST_FN double density_at(image_point p, std::uint32_t without) const {
    const auto inside = [](int at, int end) { return at < 0 ? 0 : at >= end ? end - 1 : at; };
    const int left = inside(around.column(p) - 1, around.columns),
              right = inside(around.column(p) + 1, around.columns),
              top = inside(around.row(p) - 1, around.rows), bottom = inside(around.row(p) + 1, around.rows);
    std::uint32_t found = 0;
    for (int r = top; r <= bottom; ++r) found += around.last(r, right) - around.first(r, left);
    const double cells = (right - left + 1) * (bottom - top + 1);
    return (found - kernels::smaller(found, without)) / (cells * around.side * around.side);
  }
};

/// How well a map explains a query.
struct agreement {
  std::uint32_t covered = 0, fits = 0;     // points that a map places on the reference, and on points of it
  double density = 0;                      // of the reference's points around those of the query, summed
  double off2 = 0;                         // the sum of the squared errors of points that fit
  double x = 0, y = 0, u = 0, v = 0;       // their coordinates, and of the points that they fit, summed
  double along = 0, across = 0, norm = 0;  // x u + y v, x v - y u, x x + y y

  ROOST_FN agreement& operator+=(const agreement& more) {
    covered += more.covered, fits += more.fits;
    density += more.density, off2 += more.off2;
    x += more.x, y += more.y, u += more.u, v += more.v;
    along += more.along, across += more.across, norm += more.norm;
    return *this;
  }
  /// Adds a mapped point, and the point that it fits.
  ROOST_FN void add(image_point at, image_point to) {
    ++fits;
    off2 += (at.x - to.x) * (at.x - to.x) + (at.y - to.y) * (at.y - to.y);
    const double px = at.x, py = at.y, qx = to.x, qy = to.y;
    x += px, y += py, u += qx, v += qy;
    along += px * qx + py * qy;
    across += px * qy - py * qx;
    norm += px * px + py * py;
  }
  /// The similarity with the least squares for the points that fit.
  ROOST_FN similarity best() const {
    const double n = fits, mx = x / n, my = y / n, mu = u / n, mv = v / n;
    const double length = norm - n * (mx * mx + my * my), a = (along - n * (mx * mu + my * mv)) / length,
                 b = (across - n * (mx * mv - my * mu)) / length;
    return {static_cast<float>(a), static_cast<float>(b), static_cast<float>(mu - a * mx + b * my),
            static_cast<float>(mv - b * mx - a * my)};
  }
};

/// A bound (Chernoff) on log10 of the probability that k or more of n points fit by chance, each with
/// probability p.
ROOST_FN double log10_tail(double n, double k, double p) {
  const double share = k / n;
  if (share <= p) return 0;
  if (p <= 0) return -300;
  const double rest = share >= 1 ? 0 : (1 - share) * std::log((1 - share) / (1 - p));
  return -n * (share * std::log(share / p) + rest) / std::log(10.0);
}

/// The most log10 of the probability that a match is chance.
inline constexpr double chance_most = -3;

/// A map, and how well it fits.
struct trial {
  plane_map at;
  map_kind kind = map_kind::similarity;
  double log10_chance = 0;
  double rms = 0;
  std::uint32_t fits = 0, covered = 0;
};

/// Computes the probability that a map explains as much by chance. `refines`: also rotates, scales and shifts
/// the map to minimise it.
struct try_similarities {
  static constexpr int threads = 128;
  static constexpr std::uint32_t outside = ~1u;
  reference_ref reference;
  const image_point* query;
  std::uint32_t points;  // of the query
  double log10_tries;    // pairs of bases that were compared
  bool refines;
  trial* trials;

  struct parts {
    agreement* sums;
    std::uint32_t *nearest, *owner;  // of a query point: the reference point; of that: its query point
  };
  ROOST_FN parts scratch(kernels::scratch_memory& memory) const {
    parts p;
    p.sums = memory.take<agreement>(threads);
    p.nearest = memory.take<std::uint32_t>(points);
    p.owner = memory.take<std::uint32_t>(reference.count);
    return p;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    kernels::scratch_memory pieces(memory);
    const parts p = scratch(pieces);
    const float reach = reference.near.side;
    trial best = trials[index];
    if (!refines) {
      best = judged(agree(team, p, best.at, reach), best, reach);
    } else {
      // Fits near points, then nearer ones.
      const float widths[] = {reach, reach, reach, reach * 0.7f, reach * 0.5f, reach * 0.5f, reach * 0.35f};
      trial next = best;
      best.log10_chance = 0;
      agreement now;
      float before = 0;
      for (const float within : widths) {
        if (within != before) now = agree(team, p, next.at, within);
        before = within;
        if (now.fits < 4) break;
        next.at = plane_map(now.best()) * next.at;
        now = agree(team, p, next.at, within);
        next = judged(now, next, within);
        if (next.log10_chance < best.log10_chance) best = next;
      }
    }
    if (team.rank() == 0) trials[index] = best;
  }

 private:
  /// A point of the reference fits only one of the query, the strongest.
  template <class Team>
  ROOST_FN agreement agree(const Team& team, const parts& p, const plane_map& s, float within) const {
    kernels::for_each_of(team, reference.count, [&](std::uint32_t i) { p.owner[i] = reference_ref::none; });
    team.sync();
    kernels::for_each_of(team, points, [&](std::uint32_t i) {
      const image_point at = s(query[i]);
      const std::uint32_t near = reference.covers(at) ? reference.nearest(at, within) : outside;
      p.nearest[i] = near;
      if (near < outside) team.fetch_min(p.owner[near], i);
    });
    team.sync();
    agreement mine;
    kernels::for_each_of(team, points, [&](std::uint32_t i) {
      const std::uint32_t near = p.nearest[i];
      if (near == outside) return;
      const image_point at = s(query[i]);
      const bool fits = near != reference_ref::none && p.owner[near] == i;
      ++mine.covered;
      mine.density += reference.density_at(at, fits ? 1 : 0);
      if (fits) mine.add(at, reference.points[near]);
    });
    return sum_of(team, p.sums, mine);
  }

  /// The sum of the workers' values, for all workers, in a fixed order.
  template <class Team>
  ROOST_FN static agreement sum_of(const Team& team, agreement* sums, const agreement& mine) {
    static_assert((Team::size & (Team::size - 1)) == 0 && Team::size <= threads);
    sums[team.rank()] = mine;
    for (int half = Team::size / 2; half != 0; half /= 2) {
      team.sync();
      if (team.rank() < half) sums[team.rank()] += sums[team.rank() + half];
    }
    team.sync();
    const agreement all = sums[0];
    team.sync();
    return all;
  }

  ROOST_FN trial judged(const agreement& found, const trial& t, float within) const {
    const double rms = found.fits == 0 ? 0 : std::sqrt(found.off2 / found.fits);
    return {t.at, t.kind,     log10_chance(found, within, static_cast<int>(t.kind)),
            rms,  found.fits, found.covered};
  }
  /// `more`: points that define a map, besides the two of a basis.
  ROOST_FN double log10_chance(const agreement& found, float within, int more) const {
    if (found.covered < 8 || found.fits <= 2u + more) return 0;
    // In some parts of a picture, points are dense: there, more fit by chance.
    const double here = kernels::larger(reference.density, found.density / found.covered);
    const double by_chance = 1 - std::exp(-here * 3.14159265 * within * within);
    // The points that define the map always fit; each can be in as many places as can be distinguished.
    const double area = 3.14159265 * reference.near.side * reference.near.side,
                 places = reference.width * reference.height / area;
    return log10_tries + more * std::log10(kernels::larger(1., places)) +
           log10_tail(found.covered, found.fits - 2 - more, by_chance);
  }
};

/// The similarity of the pictures around a point of the query that a map places: the correlation of shades in
/// a window, from -1 to 1.
struct compare_windows {
  static constexpr int side = 4;                // samples on each side of the middle
  static constexpr float none = -2, apart = 2;  // nothing to compare; pixels between samples
  shades_ref reference, query;
  const image_point* points;
  std::uint32_t count;
  const plane_map* placements;
  float* alike;

  ROOST_FN void operator()(std::size_t i) const {
    const plane_map& s = placements[i / count];
    const image_point middle = points[i % count], to = s(middle);
    const plane_map::near j = s.near_to(middle);
    const float area = j.area(),
                step = apart * kernels::larger(reference.step, query.step * std::sqrt(std::abs(area)));
    double n = 0, f = 0, g = 0, ff = 0, gg = 0, fg = 0;
    for (int row = -side; row <= side; ++row) {
      for (int column = -side; column <= side; ++column) {
        const float u = static_cast<float>(column) * step, v = static_cast<float>(row) * step;
        float here, there;
        if (!reference.at({to.x + u, to.y + v}, there) ||
            !query.at({middle.x + (j.yy * u - j.xy * v) / area, middle.y + (j.xx * v - j.yx * u) / area},
                      here))
          continue;
        n += 1, f += here, g += there;
        ff += here * here, gg += there * there, fg += here * there;
      }
    }
    const double whole = (2 * side + 1) * (2 * side + 1), left = ff - f * f / n, right = gg - g * g / n;
    alike[i] = n < whole / 2 || left < n ? none
               : right < n               ? 0.f
                                         : static_cast<float>((fg - f * g / n) / std::sqrt(left * right));
  }
};

/// The surroundings of a point in a picture, rotated towards the light.
struct patch {
  static constexpr int side = 4, size = (2 * side + 1) * (2 * side + 1);  // samples, as compare_windows has
  float shades[size];  // their sum is 0, and that of their squares is 1; all 0 at the border of the picture
  float turn;
};

struct describe_points {
  shades_ref shades;
  const image_point* points;
  patch* patches;

  ROOST_FN void operator()(std::size_t i) const {
    patch& to = patches[i];
    if (fill(points[i], to)) return;
    for (float& s : to.shades) s = 0;
  }

 private:
  ROOST_FN bool fill(image_point p, patch& to) const {
    constexpr int around = 8;  // pixels
    float x = 0, y = 0, shade;
    for (int v = -around; v <= around; ++v) {
      for (int u = -around; u <= around; ++u) {
        if (u * u + v * v > around * around) continue;
        if (!shades.at({p.x + static_cast<float>(u) * shades.step, p.y + static_cast<float>(v) * shades.step},
                       shade))
          return false;
        x += static_cast<float>(u) * shade, y += static_cast<float>(v) * shade;
      }
    }
    to.turn = std::atan2(y, x);
    const float step = compare_windows::apart * shades.step, c = step * std::cos(to.turn),
                s = step * std::sin(to.turn);
    float sum = 0, squares = 0;
    for (int k = 0; k < patch::size; ++k) {
      const auto u = static_cast<float>(k % (2 * patch::side + 1) - patch::side),
                 v = static_cast<float>(k / (2 * patch::side + 1) - patch::side);
      if (!shades.at({p.x + c * u - s * v, p.y + s * u + c * v}, to.shades[k])) return false;
      sum += to.shades[k];
    }
    for (float& value : to.shades) {
      value -= sum / patch::size;
      squares += value * value;
    }
    if (!(squares > patch::size)) return false;
    for (float& value : to.shades) value /= std::sqrt(squares);
    return true;
  }
};

/// Points of a query and of a reference that look alike.
struct patch_match {
  image_point from, to;
  float correlation, turn;
};
/// The best match of each of a query's points, other than those that a known placement explains.
struct match_patches {
  const patch* query;
  const image_point* points;
  const patch* reference;
  const image_point* reference_points;
  std::uint32_t count;  // of these
  plane_map known;
  float same_place;  // 0: nothing is known
  patch_match* matches;

  ROOST_FN void operator()(std::size_t i) const {
    const image_point at = known(points[i]);
    patch_match best{points[i], at, 0, 0};
    for (std::uint32_t j = 0; j < count; ++j) {
      const float x = reference_points[j].x - at.x, y = reference_points[j].y - at.y;
      if (x * x + y * y < same_place * same_place) continue;
      float correlation = 0;
      for (int k = 0; k < patch::size; ++k) correlation += query[i].shades[k] * reference[j].shades[k];
      if (correlation > best.correlation)
        best = {points[i], reference_points[j], correlation, reference[j].turn - query[i].turn};
    }
    matches[i] = best;
  }
};
/// Similarities on which two matches agree, in position and rotation; `scale`: about the expected one. Pairs
/// of points of a query less than `least` apart are not used: they are too imprecise.
std::vector<similarity> similarities_of(std::vector<patch_match> matches, float scale, float least);

/// A point of a query, and where it belongs in the reference.
struct point_pair {
  image_point from, to;
};
/// The map with the least squares for some pairs, in the reference, of a kind that is not a similarity;
/// `near` is about where it is. Nothing if the pairs do not determine it, or if no camera sees such a map: it
/// mirrors, or is stretched by more than `stretch_most` or scaled by more than `scale_most` in a corner of
/// the query.
std::optional<plane_map> fitted(map_kind kind, const std::vector<point_pair>& pairs, const plane_map& near,
                                const image_features& query);
inline constexpr float stretch_most = 3, scale_most = 5;

/// Affine maps on which three matches agree with others, the map with the most matches first, and the matches
/// that fit. `scale`, `least`: as above. `reach`: how far a match may be off, in the reference.
struct match_group {
  plane_map at;
  std::vector<point_pair> pairs;
};
inline constexpr std::size_t groups_most = 4, looks_most = 5;
std::vector<match_group> groups_of(std::vector<patch_match> matches, const image_features& query, float scale,
                                   float least, float reach);

/// How many windows were compared, and how many match.
struct likeness {
  std::uint32_t compared = 0, alike = 0;
  double share() const { return compared == 0 ? 0 : static_cast<double>(alike) / compared; }
  likeness& operator+=(float correlation);
};
/// The same for each quarter of the windows (upper left, upper right ...), to recognise a placement that is
/// right in only a part of a query.
struct quarters {
  likeness all, of[4];
  bool good() const;
};
/// The likeness of each placement, from the results of compare_windows for a query's points.
std::vector<quarters> likeness_of(const std::vector<image_point>& points, const std::vector<float>& windows,
                                  std::size_t placements);

/// How far apart two maps place a query: its farthest corner; or the median of nine points, so that two maps
/// of the same place are near each other even if one is wrong at one end.
float corners_apart(const plane_map& a, const plane_map& b, const image_features& query);
float mostly_apart(const plane_map& a, const plane_map& b, const image_features& query);

/// The first trials that place the corners of a query at least `distance` apart from each other and from
/// known trials.
std::vector<trial> apart(std::vector<trial> known, const std::vector<trial>& trials,
                         const image_features& query, float distance, std::size_t most);

/// Other placements of a query on a reference, rotated and shifted, that map many points to points. If a
/// picture repeats itself, they are as good as the one that was found; otherwise they show how much these two
/// pictures match by chance.
std::vector<trial> other_placements(const plane_map& found, const image_features& query,
                                    const image_features& reference);

/// The trial with the most matching windows; a simpler kind if it explains nearly as much.
std::size_t simplest(const std::vector<trial>& trials, const std::vector<quarters>& like);

/// A query's best placement, and the evidence for it.
struct verdict {
  trial found;
  likeness like;
  std::vector<plane_map> rivals;  // other placements that are about as good
  double by_chance = 0.02;        // the greatest share of windows that match in other placements; at least
  double log10_tries = 0;
  std::uint32_t placements = 1;
  bool matched = false;

  /// Compares the placement with others: whether one of them is as good, and how probable it is that as many
  /// windows match by chance. Placements less than `same_place` apart are one.
  void weigh(const std::vector<trial>& others, const std::vector<quarters>& like_of_others,
             const image_features& query, float same_place);
};

/// A reference on which maps are tried.
template <class Place>
class match_verifier {
 public:
  match_verifier(const Place& place, const image_features& reference, const shades_ref& shades)
      : place_(place),
        reference_(reference),
        shades_(shades),
        own_near_(reference.points, std::max(2.f, 0.006f * reference.diagonal())) {
    const point_cells& near = own_near_;
    const point_cells around(reference.points, 2.5f * near.side);
    std::vector<image_point>& points = own_points_;
    for (const auto i : near.order) points.push_back(reference.points[i]);
    points_ = copy_to(place, points);
    near_ = copy_to(place, near.begin);
    around_ = copy_to(place, around.begin);
    const auto ref = [](const point_cells& cells, const auto& begin) {
      return cells_ref{cells.side, cells.columns, cells.rows, begin.data()};
    };
    patches_ = array<patch, Place>(place, points.size());
    place.for_each(points.size(), describe_points{shades, points_.data(), patches_.data()});
    const auto width = static_cast<float>(reference.width), height = static_cast<float>(reference.height);
    ref_ = {ref(near, near_),
            ref(around, around_),
            points_.data(),
            static_cast<std::uint32_t>(points.size()),
            width,
            height,
            static_cast<double>(points.size()) / width / height};
    own_ref_ = ref_;
    own_ref_.near = ref(near, near.begin);
    own_ref_.points = points.data();
  }

  /// Tries similarities on a query's points, and `refines` them or not. `log10_tries`: pairs of bases that
  /// were compared.
  void run(const array<image_point, Place>& query, std::vector<trial>& trials, double log10_tries,
           bool refines) const {
    if (trials.empty()) return;
    array<trial, Place> there(place_, trials.size());
    place_.copy_from_host(there.data(), trials.data(), there.bytes());
    const try_similarities kernel{ref_,        query.data(), static_cast<std::uint32_t>(query.size()),
                                  log10_tries, refines,      there.data()};
    place_.launch(trials.size(), kernels::scratch_bytes_of(kernel), kernel);
    place_.copy_to_host(trials.data(), there.data(), there.bytes());
  }

  /// The best of the candidates, refined and judged by points, the best first.
  std::vector<trial> best(const array<image_point, Place>& query, const std::vector<similarity>& candidates,
                          double log10_tries) const {
    auto trials = of_any_size(candidates);
    run(query, trials, log10_tries, false);
    std::stable_sort(trials.begin(), trials.end(), better);
    trials.resize(std::min<std::size_t>(trials.size(), refined));
    run(query, trials, log10_tries, true);
    std::stable_sort(trials.begin(), trials.end(), better);
    return trials;
  }

  /// Judges whether one of the candidates is right, or a map of another kind; `kind`: considers only this
  /// kind.
  verdict judge(const array<image_point, Place>& points, const image_features& query,
                const shades_ref& shades, const std::vector<similarity>& candidates, double log10_tries,
                std::optional<map_kind> kind) const {
    verdict result;
    auto trials = best(points, candidates, log10_tries);
    if (kind != map_kind::similarity) add_maps(points, query, shades, trials);
    if (kind) std::erase_if(trials, [&](const trial& t) { return t.kind != *kind; });
    if (trials.empty()) return result;
    result.found = *std::min_element(trials.begin(), trials.end(), better);
    std::erase_if(trials, [](const trial& t) { return t.log10_chance >= chance_most; });
    if (trials.empty()) return result;
    const auto like = compare(points, query, shades, trials);
    const std::size_t first = simplest(trials, like);
    result.found = trials[first];
    result.like = like[first].all;
    if (!like[first].good()) {
      result.found.log10_chance = 0;
      return result;
    }
    result.log10_tries = std::log10(trials.size() + candidates.size());
    auto others = other_placements(result.found.at, query, reference_);
    run(points, others, log10_tries, true);
    others.insert(others.end(), trials.begin(), trials.end());
    result.weigh(others, compare(points, query, shades, others), query, same_place());
    return result;
  }

  /// Compares the result with placements where the pictures match around points, except for matches that it
  /// explains.
  void hold_against_rivals(const array<image_point, Place>& points, const image_features& query,
                           const shades_ref& shades, verdict& result) const {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(points.size(), windows));
    if (count == 0) return;
    auto matches = matches_of(points, count, shades, result.found.at, same_place());
    // For an oblique view, the other placements are rotations, scalings and shifts of the query as mapped
    // onto the reference.
    const plane_map base = result.found.kind == map_kind::similarity ? plane_map() : result.found.at;
    const auto near = base.near_to(query.middle());
    const float size = std::sqrt(near.area()), turn = std::atan2(near.yx - near.xy, near.xx + near.yy);
    for (auto& m : matches) m.from = base(m.from), m.turn -= turn;
    auto others = of_any_size(similarities_of(std::move(matches), shades_.step / shades.step / size,
                                              basis_least * query.diagonal() * size));
    for (auto& t : others) t.at = t.at * base;
    run(points, others, 0, false);
    std::stable_sort(others.begin(), others.end(), better);
    others = apart({result.found}, others, query, same_place(), rivals);
    run(points, others, 0, true);
    result.weigh(others, compare(points, query, shades, others), query, same_place());
  }

  /// Placements of a query less than this far apart, in pixels of the reference, are one.
  float same_place() const { return 4 * ref_.near.side; }

 private:
  static constexpr std::size_t refined = 8, rivals = 24, windows = 256;

  /// For some points of a query, the most similar points of the reference, except for known matches.
  std::vector<patch_match> matches_of(const array<image_point, Place>& points, std::uint32_t count,
                                      const shades_ref& shades, const plane_map& known,
                                      float same_place) const {
    array<patch, Place> patches(place_, count);
    place_.for_each(count, describe_points{shades, points.data(), patches.data()});
    array<patch_match, Place> matches(place_, count);
    place_.for_each(count, match_patches{patches.data(), points.data(), patches_.data(), points_.data(),
                                         ref_.count, known, same_place, matches.data()});
    return copy_to_host(place_, matches);
  }

  /// Adds maps on which patches agree: similarities, affine maps and homographies, refined on the points that
  /// fit.
  void add_maps(const array<image_point, Place>& points, const image_features& query,
                const shades_ref& shades, std::vector<trial>& trials) const {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(points.size(), windows));
    if (count == 0) return;
    constexpr float reach = 3;  // of the points
    std::vector<trial> more;
    for (const auto& g :
         groups_of(matches_of(points, count, shades, {}, 0), query, shades_.step / shades.step,
                   basis_least * query.diagonal(), reach * own_near_.side)) {
      agreement all;
      for (const auto& p : g.pairs) all.add(p.from, p.to);
      more.push_back({all.best()});
      const auto affine = refitted(map_kind::affine, g.at, query);
      if (affine) more.push_back({*affine, map_kind::affine});
      const auto start = fitted(map_kind::perspective, g.pairs, g.at, query);
      const auto perspective = refitted(map_kind::perspective, start ? *start : g.at, query);
      if (perspective) more.push_back({*perspective, map_kind::perspective});
    }
    // The number of tries: the groups of all looks, each of which moves its two points to where most points
    // fit.
    run(points, more, std::log10(groups_most * looks_most * std::pow(reach, 4.)), true);
    trials.insert(trials.end(), more.begin(), more.end());
  }

  /// A map refined on the points of a query that fit: the nearest points within a shrinking reach.
  std::optional<plane_map> refitted(map_kind kind, plane_map at, const image_features& query) const {
    std::vector<point_pair> pairs;
    for (const float part : {1.f, 1.f, 1.f, 0.7f, 0.7f, 0.5f, 0.5f}) {
      pairs.clear();
      for (const auto& p : query.points) {
        const image_point to = at(p);
        const std::uint32_t i =
            own_ref_.covers(to) ? own_ref_.nearest(to, part * own_near_.side) : reference_ref::none;
        if (i != reference_ref::none) pairs.push_back({p, own_points_[i]});
      }
      const auto next = fitted(kind, pairs, at, query);
      if (!next) return std::nullopt;
      at = *next;
    }
    return at;
  }

  static std::vector<trial> of_any_size(const std::vector<similarity>& candidates) {
    std::vector<trial> trials;
    for (const auto& s : candidates) {
      const float scale = std::hypot(s.a, s.b);
      if (scale > 0.2f && scale < 5) trials.push_back({s});
    }
    return trials;
  }

  /// How similar the pictures are where maps place the query.
  std::vector<quarters> compare(const array<image_point, Place>& points, const image_features& query,
                                const shades_ref& shades, const std::vector<trial>& trials) const {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(points.size(), windows));
    std::vector<plane_map> placements;
    for (const auto& t : trials) placements.push_back(t.at);
    const auto there = copy_to(place_, placements);
    array<float, Place> alike(place_, placements.size() * count);
    place_.for_each(alike.size(),
                    compare_windows{shades_, shades, points.data(), count, there.data(), alike.data()});
    return likeness_of(query.points, copy_to_host(place_, alike), placements.size());
  }

  static bool better(const trial& a, const trial& b) { return a.log10_chance < b.log10_chance; }

  Place place_;
  const image_features& reference_;
  shades_ref shades_;
  array<image_point, Place> points_;
  array<patch, Place> patches_;  // around the points
  array<std::uint32_t, Place> near_, around_;
  point_cells own_near_;
  std::vector<image_point> own_points_;  // on the host, for refinement there
  reference_ref ref_, own_ref_;
};

}  // namespace roost::tools
