#pragma once

#include <chrono>
#include <limits>

#include "index.hpp"
#include "roost/kernels.hpp"
#include "solver.hpp"

/// \file
/// Solves fields: quads of a picture's brightest centroids are looked up by their shape; each pattern that
/// fits gives a direction of the picture, and a likelihood over all stars and centroids decides whether it is
/// right. A team has a field, and each of its workers a quad. A hint about the direction is tried before all
/// quads.

namespace roost::tools {

inline constexpr int assumed_most = 24;       // widths of the picture that are tried
inline constexpr float shape_error = 0.004f;  // of a ratio of distances
inline constexpr int quad_stars_most = 32;
inline constexpr std::uint32_t limit_step = 64;  // quads of a device's team: all places stop at the same one
inline constexpr float near_enough = 0.004f;  // how far a star of a hint may be off, in widths of the picture
inline constexpr int vote_side = 64;          // of the grid of cells in which shifts of a hint are counted

/// A database, for kernels.
template <class Place>
struct solver_ref {
  star_index_ref<Place> sky;
  typename frozen_multimap<std::uint32_t, star_pattern, Place>::ref_type patterns;
};

/// A field in a team's scratch memory: its brightest centroids, and a grid to find the nearest one.
struct field_view {
  static constexpr int grid = 16;
  float width, height;
  int count;
  const centroid* at;
  const std::uint32_t* begin;  // of each cell of the grid, in `order`
  const std::uint32_t* order;

  ROOST_FN int column(float x) const { return cell(x / width + 0.5f); }
  ROOST_FN int row(float y) const { return cell(y / height + 0.5f); }
  ROOST_FN static int cell(float part) {
    const int at = static_cast<int>(std::floor(part * grid));
    return at < 0 ? 0 : at >= grid ? grid - 1 : at;
  }
  /// The nearest centroid within a distance, or -1.
  ROOST_FN int nearest(float x, float y, float distance, float& squared) const {
    int best = -1;
    squared = distance * distance;
    for (int r = row(y - distance); r <= row(y + distance); ++r) {
      const std::uint32_t end = begin[r * grid + column(x + distance) + 1];
      for (std::uint32_t i = begin[r * grid + column(x - distance)]; i < end; ++i) {
        const auto c = static_cast<int>(order[i]);
        const float dx = at[c].x - x, dy = at[c].y - y, here = dx * dx + dy * dy;
        if (here < squared || (here == squared && c < best)) {
          squared = here;
          best = c;
        }
      }
    }
    return best;
  }
};

/// The set of centroids that are taken.
class centroid_set {
 public:
  ROOST_FN bool has(int i) const { return words_[i / 64] >> i % 64 & 1; }
  ROOST_FN void add(int i) { words_[i / 64] |= std::uint64_t{1} << i % 64; }

 private:
  std::uint64_t words_[centroids_most / 64] = {};
};

/// Where a direction is in a picture; false if it is behind the camera.
ROOST_FN bool project(const pointing& p, sky_vector direction, float& x, float& y) {
  const float away = dot(direction, p.z);
  if (away < 0.05f) return false;
  x = p.focal * dot(direction, p.x) / away;
  y = p.focal * dot(direction, p.y) / away;
  return true;
}

/// Which star each of four directions is: of all orders, the one whose distances fit best.
ROOST_FN void match_four(const sky_vector (&seen)[4], const sky_vector (&stars)[4], int (&order)[4]) {
  float chord[4][4], between[4][4], all_seen = 0, all_between = 0;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < i; ++j) {
      chord[i][j] = chord[j][i] = length(seen[i] - seen[j]);
      between[i][j] = between[j][i] = length(stars[i] - stars[j]);
      all_seen += chord[i][j];
      all_between += between[i][j];
    }
  }
  const float scale = all_between / all_seen;
  for (int i = 0; i < 4; ++i) order[i] = i;
  float least = std::numeric_limits<float>::max();
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      for (int c = 0; c < 4; ++c) {
        if (a == b || a == c || b == c) continue;
        const int tried[4] = {a, b, c, 6 - a - b - c};
        float error = 0;
        for (int i = 0; i < 4; ++i) {
          for (int j = 0; j < i; ++j) {
            const float off = chord[i][j] * scale - between[tried[i]][tried[j]];
            error += off * off;
          }
        }
        if (error < least) {
          least = error;
          for (int i = 0; i < 4; ++i) order[i] = tried[i];
        }
      }
    }
  }
}

/// Where a picture points if four of its centroids are these stars, in any order, and its focal length is
/// about `focal`.
ROOST_FN pointing point_at(const centroid (&seen)[4], const sky_vector (&stars)[4], float focal) {
  sky_vector v[4];
  for (int i = 0; i < 4; ++i) v[i] = unit({seen[i].x, seen[i].y, focal});
  int order[4];
  match_four(v, stars, order);
  // In the tangent planes at the middles of both quads, one is a rotation of the other, mirrored or not: z ->
  // turn * z or turn * conj(z). If the length of `turn` is not 1, the focal length is corrected by it.
  const sky_vector middle = unit(stars[0] + stars[1] + stars[2] + stars[3]);
  const tangent_axes sky(middle);
  pointing result{};
  result.focal = focal;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) v[i] = unit({seen[i].x, seen[i].y, result.focal});
    const sky_vector centre = unit(v[0] + v[1] + v[2] + v[3]);
    const tangent_axes picture(centre);
    float x[4], y[4], u[4], w[4], mx = 0, my = 0, mu = 0, mw = 0;
    for (int i = 0; i < 4; ++i) {
      const float away = dot(v[i], centre), off = dot(stars[order[i]], middle);
      mx += x[i] = dot(v[i], picture.first) / away;
      my += y[i] = dot(v[i], picture.second) / away;
      mu += u[i] = dot(stars[order[i]], sky.first) / off;
      mw += w[i] = dot(stars[order[i]], sky.second) / off;
    }
    float direct_re = 0, direct_im = 0, mirror_re = 0, mirror_im = 0, norm = 0;
    for (int i = 0; i < 4; ++i) {
      const float a = x[i] - mx / 4, b = y[i] - my / 4, c = u[i] - mu / 4, d = w[i] - mw / 4;
      direct_re += c * a + d * b;
      direct_im += d * a - c * b;
      mirror_re += c * a - d * b;
      mirror_im += d * a + c * b;
      norm += a * a + b * b;
    }
    const float direct = direct_re * direct_re + direct_im * direct_im,
                mirror = mirror_re * mirror_re + mirror_im * mirror_im;
    const bool mirrored = mirror > direct;
    const float size = std::sqrt(mirrored ? mirror : direct);
    const float re = (mirrored ? mirror_re : direct_re) / size,
                im = (mirrored ? mirror_im : direct_im) / size;
    const float sign = mirrored ? -1.f : 1.f;
    const float stretch = size / norm;
    // The middle of the picture's quad is at m * turn from the middle of the sky's.
    const float shift_u = mu / 4 - stretch * (re * mx / 4 - sign * im * my / 4),
                shift_w = mw / 4 - stretch * (im * mx / 4 + sign * re * my / 4);
    const sky_vector away = unit(middle + shift_u * sky.first + shift_w * sky.second);
    sky_vector first = re * sky.first + im * sky.second;
    first = unit(first - dot(first, away) * away);
    const sky_vector second = sign * cross(away, first);
    const auto of_sky = [&](sky_vector c) {
      return dot(c, picture.first) * first + dot(c, picture.second) * second + dot(c, centre) * away;
    };
    result.x = of_sky({1, 0, 0});
    result.y = of_sky({0, 1, 0});
    result.z = of_sky({0, 0, 1});
    result.focal /= stretch;
  }
  return result;
}

/// The sky that a picture shows if it points in a given direction.
struct shown_sky {
  int level;
  float radius;  // to the picture's corners, radians
  float limit;   // stars with greater numbers are less likely to be seen
  ROOST_FN float weight(std::uint32_t star) const { return 1 / (1 + static_cast<float>(star) / limit); }
};
template <class Place>
ROOST_FN shown_sky sky_of(const star_index_ref<Place>& sky, const field_view& field, const pointing& at) {
  const float w = field.width / at.focal, h = field.height / at.focal;
  return {sky.level_of(2 * std::atan(w / 2)), std::atan(std::sqrt(w * w + h * h) / 2),
          // Twice as many stars as centroids, for a sky of average density.
          2 * static_cast<float>(field.count) * 4 * pi / (w * h)};
}

/// The logarithm of the likelihood ratio of the centroids, without those of the quad, between a picture that
/// points there and random positions. Each centroid is from a star with probability 1/2, otherwise at a
/// random position; a star's probability is proportional to its weight, and its position is off by some
/// pixels, more if it is far from the quad. If a picture points elsewhere, this is above x in at most one of
/// exp(x) cases.
template <class Place>
ROOST_FN float log_odds(const star_index_ref<Place>& sky, const field_view& field, const pointing& at,
                        const int (&quad)[4]) {
  const shown_sky shown = sky_of(sky, field, at);
  float cx = 0, cy = 0, spread = 0;
  centroid_set taken;
  for (const int i : quad) {
    cx += field.at[i].x / 4;
    cy += field.at[i].y / 4;
    taken.add(i);
  }
  for (const int i : quad) {
    const float dx = field.at[i].x - cx, dy = field.at[i].y - cy;
    spread += (dx * dx + dy * dy) / 4;
  }
  const float sigma = 0.0008f * field.width, area = field.width * field.height;
  float gain[centroids_most];
  int matched = 0;
  float weights = 0;
  sky.for_each_near(shown.level, at.z, shown.radius, [&](std::uint32_t star) {
    float x, y;
    if (!project(at, sky.stars[star].at, x, y)) return true;
    if (std::abs(x) > field.width / 2 || std::abs(y) > field.height / 2) return true;
    const float weight = shown.weight(star);
    weights += weight;
    const float off2 = ((x - cx) * (x - cx) + (y - cy) * (y - cy)) / spread;
    const float variance = sigma * sigma * (1 + 0.5f * off2);
    float squared;
    const int c = field.nearest(x, y, 8 * std::sqrt(variance), squared);
    if (c < 0 || taken.has(c)) return true;
    taken.add(c);
    const float t = squared / (2 * variance);
    const float density = (0.5f * std::exp(-t) + 0.5f / 9 * std::exp(-t / 9)) / (2 * pi * variance);
    gain[matched++] = weight * area * density;
    return true;
  });
  float sum = static_cast<float>(field.count - 4) * -0.6931472f;  // log(1 / 2)
  for (int i = 0; i < matched; ++i) sum += std::log(1 + gain[i] / weights);
  return sum;
}

/// Solves four linear equations, given as a matrix and the right side. The matrix must be positive definite,
/// so no pivoting is needed; false if it is not.
ROOST_FN bool solve_equations(double (&a)[4][5], double (&result)[4]) {
  for (int p = 0; p < 4; ++p) {
    if (!(a[p][p] > 1e-9)) return false;
    for (int r = p + 1; r < 4; ++r) {
      const double factor = a[r][p] / a[p][p];
      for (int c = p; c < 5; ++c) a[r][c] -= factor * a[p][c];
    }
  }
  for (int p = 3; p >= 0; --p) {
    double value = a[p][4];
    for (int c = p + 1; c < 4; ++c) value -= a[p][c] * result[c];
    result[p] = value / a[p][p];
  }
  return true;
}

/// Rotates a picture by small angles around its axes.
ROOST_FN void turn(pointing& at, float p, float q, float r) {
  const float hand = dot(cross(at.x, at.y), at.z) < 0 ? -1.f : 1.f;
  const sky_vector x = at.x, y = at.y, z = at.z;
  at.z = unit(z + p * y - q * x);
  at.x = x + q * z - r * y;
  at.x = unit(at.x - dot(at.x, at.z) * at.z);
  at.y = hand * cross(at.z, at.x);
}

/// Matches stars with centroids, each with the nearest within a distance, and rotates the picture so that
/// they fit better: one Gauss-Newton step for three angles and the focal length. Returns the number of
/// matches.
template <class Place>
ROOST_FN int refine(const star_index_ref<Place>& sky, const field_view& field, pointing& at, float distance,
                    std::uint32_t* star_of, float& rms) {
  float off2[centroids_most] = {};
  for (int i = 0; i < field.count; ++i) star_of[i] = no_star;
  const shown_sky shown = sky_of(sky, field, at);
  sky.for_each_near(shown.level, at.z, shown.radius * 1.05f, [&](std::uint32_t star) {
    float x, y, squared;
    if (!project(at, sky.stars[star].at, x, y)) return true;
    if (std::abs(x) > field.width / 2 + distance || std::abs(y) > field.height / 2 + distance) return true;
    const int c = field.nearest(x, y, distance, squared);
    if (c < 0 || (star_of[c] != no_star && off2[c] <= squared)) return true;
    star_of[c] = star;
    off2[c] = squared;
    return true;
  });
  double a[4][5] = {};  // the normal equations
  double sum = 0;
  int n = 0;
  for (int i = 0; i < field.count; ++i) {
    if (star_of[i] == no_star) continue;
    const sky_vector s = sky.stars[star_of[i]].at;
    const float dx = dot(s, at.x), dy = dot(s, at.y), dz = dot(s, at.z), f = at.focal / dz;
    const float u = dx / dz, w = dy / dz;
    // The derivatives by angles around x, y and z, and by the logarithm of the focal length.
    const float by[2][4] = {{-u * w * at.focal, at.focal + u * u * at.focal, -f * dy, f * dx},
                            {-at.focal - w * w * at.focal, u * w * at.focal, f * dx, f * dy}};
    const float left[2] = {field.at[i].x - f * dx, field.at[i].y - f * dy};
    for (int k = 0; k < 2; ++k) {
      sum += static_cast<double>(left[k]) * left[k];
      for (int r = 0; r < 4; ++r) {
        for (int c = 0; c < 4; ++c) a[r][c] += static_cast<double>(by[k][r]) * by[k][c];
        a[r][4] += static_cast<double>(by[k][r]) * left[k];
      }
    }
    ++n;
  }
  rms = n == 0 ? 0 : static_cast<float>(std::sqrt(sum / n));
  if (n < 3) return n;
  double step[4];
  if (!solve_equations(a, step)) return n;
  turn(at, static_cast<float>(step[0]), static_cast<float>(step[1]), static_cast<float>(step[2]));
  at.focal *= static_cast<float>(std::exp(step[3]));
  return n;
}

/// The shifts, in pixels, that move a star of a hint onto a centroid, for the brightest of both.
template <class Place>
struct hint_shifts {
  static constexpr int bright_most = 24;

  const star_index_ref<Place>& sky;
  const field_view& field;
  const pointing& at;
  float radius, reach;  // the greatest shift, in radians and pixels

  template <class F>
  ROOST_FN void for_each(const F& f) const {
    const shown_sky shown = sky_of(sky, field, at);
    const int bright = kernels::smaller(field.count, bright_most);
    const float faintest = shown.limit * static_cast<float>(bright) / static_cast<float>(field.count);
    sky.for_each_near(shown.level, at.z, shown.radius + radius, [&](std::uint32_t star) {
      if (static_cast<float>(star) > faintest) return false;
      float x, y;
      if (!project(at, sky.stars[star].at, x, y)) return true;
      for (int c = 0; c < bright; ++c) {
        const float dx = field.at[c].x - x, dy = field.at[c].y - y;
        if (std::abs(dx) < reach && std::abs(dy) < reach) f(dx, dy);
      }
      return true;
    });
  }
};

/// Rotates a hint by the shift on which most stars and centroids agree, using cells that overlap so that four
/// have each shift. Returns the number of shifts, or 0; `spread`: the standard deviation of the shifts that
/// agree, in pixels.
template <class Place>
ROOST_FN int shift_hint(const star_index_ref<Place>& sky, const field_view& field, float radius,
                        std::uint16_t* votes, pointing& at, float& spread) {
  const float reach = at.focal * std::tan(radius);
  const float step = std::fmax(0.01f * field.width, reach / (vote_side / 2 - 1.5f));
  const int half = static_cast<int>(std::ceil(reach / step)), side = 2 * half + 2;
  const hint_shifts<Place> shifts{sky, field, at, radius, reach};
  const auto cell = [&](float d) { return static_cast<int>(std::floor(d / step)) + half; };
  for (int i = 0; i < side * side; ++i) votes[i] = 0;
  int all = 0;
  shifts.for_each([&](float dx, float dy) {
    std::uint16_t* const here = votes + cell(dy) * side + cell(dx);
    ++here[0];
    ++here[1];
    ++here[side];
    ++here[side + 1];
    ++all;
  });
  int best = 0;
  for (int i = 1; i < side * side; ++i) best = votes[i] > votes[best] ? i : best;
  float sum_x = 0, sum_y = 0, squares = 0;
  int n = 0;
  shifts.for_each([&](float dx, float dy) {
    const int right = best % side - cell(dx), down = best / side - cell(dy);
    if (right < 0 || right > 1 || down < 0 || down > 1) return;
    sum_x += dx;
    sum_y += dy;
    squares += dx * dx + dy * dy;
    ++n;
  });
  if (n == 0) return 0;
  const float mean_x = sum_x / static_cast<float>(n), mean_y = sum_y / static_cast<float>(n);
  spread = std::sqrt(std::fmax(0.f, squares / static_cast<float>(n) - mean_x * mean_x - mean_y * mean_y));
  turn(at, -mean_y / at.focal, mean_x / at.focal, 0);
  return all;
}

/// The binomial coefficient, for small numbers.
ROOST_FN constexpr std::uint32_t choose(std::uint32_t n, std::uint32_t k) {
  if (n < k) return 0;
  std::uint32_t result = 1;
  for (std::uint32_t i = 0; i < k; ++i) result = result * (n - i) / (i + 1);
  return result;
}

/// The centroids of a quad; quads of the brightest centroids come first.
ROOST_FN void quad_of(std::uint32_t number, int (&quad)[4]) {
  for (std::uint32_t k = 4; k > 0; --k) {
    std::uint32_t n = k - 1;
    while (choose(n + 1, k) <= number) ++n;
    number -= choose(n, k);
    quad[k - 1] = static_cast<int>(n);
  }
}

/// The widths of a picture that are tried: their focal lengths, and the least and most for which a solution
/// counts, in widths.
struct assumed_widths {
  struct width {
    float focal, least, most;
  };
  width widths[assumed_most];
  int count = 0;
};

/// Calls f(pattern) for all patterns with about this shape. Adds the number of patterns compared to
/// `compared`.
template <class Patterns, class F>
ROOST_FN void for_each_like(const Patterns& patterns, const quad_shape& shape, std::uint64_t& compared,
                            const F& f) {
  constexpr int bins = 1 << ratio_bits, shift = 16 - ratio_bits;
  constexpr int error = static_cast<int>(shape_error * 65536);
  int low[quad_shape::ratios];
  std::uint32_t two = 0;  // bits of the ratios that may be in the next bin
  for (int i = 0; i < quad_shape::ratios; ++i) {
    const int ratio = shape.ratio[i];
    low[i] = kernels::larger(ratio - error, 0) >> shift;
    two |= (kernels::smaller(ratio + error, 65535) >> shift) != low[i] ? 1u << i : 0;
  }
  static_assert(2 * error < 65536 / bins);
  for (std::uint32_t which = 0; which < 1u << quad_shape::ratios; ++which) {
    if ((which & ~two) != 0) continue;
    std::uint32_t bin[quad_shape::ratios];
    for (int i = 0; i < quad_shape::ratios; ++i)
      bin[i] = static_cast<std::uint32_t>(low[i]) + (which >> i & 1);
    const auto run = patterns.find(pattern_key(bin));
    compared += run.size();
    for (const star_pattern& pattern : run) {
      bool like = true;
      for (int i = 0; i < quad_shape::ratios; ++i) {
        const int off = pattern.shape.ratio[i] - shape.ratio[i];
        like &= off <= error && -off <= error;
      }
      if (like && !f(pattern)) return;
    }
  }
}

/// Solves one field per team.
template <class Place>
struct solve_fields {
  static constexpr int threads = 64;

  solver_ref<Place> database;
  assumed_widths assumed;
  const centroid* centroids;
  const std::uint32_t* first;
  const star_fields::size* sizes;
  const pointing_hint* hints;  // null if there are none
  float hint_radius;           // radians
  int quad_stars;
  float log_chance_most;
  std::uint64_t patterns_most;
  field_solution* results;

  struct parts {
    centroid* at;
    std::uint32_t *begin, *order;
    int* chosen;  // for quads
    std::uint32_t* words;
    enum word { chosen_count, winner };
    std::uint64_t* compared;
    std::uint16_t* votes;
  };
  ROOST_FN parts scratch(kernels::scratch_memory& memory) const {
    parts p;
    p.at = memory.take<centroid>(centroids_most);
    p.begin = memory.take<std::uint32_t>(field_view::grid * field_view::grid + 1);
    p.order = memory.take<std::uint32_t>(centroids_most);
    p.chosen = memory.take<int>(quad_stars_most);
    p.words = memory.take<std::uint32_t>(2);
    p.compared = memory.take<std::uint64_t>(1);
    p.votes = memory.take<std::uint16_t>(hints == nullptr ? 0 : vote_side * vote_side);
    return p;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    kernels::scratch_memory all(memory);
    const parts p = scratch(all);
    const field_view field = load(team, index, p);
    const int chosen = static_cast<int>(p.words[parts::chosen_count]);
    const std::uint32_t quads = choose(static_cast<std::uint32_t>(chosen), 4);
    field_solution& result = results[index];
    if (team.rank() == 0) {
      result.solved = result.hinted = result.limited = false;
      if (hints != nullptr && solve_hint(field, hints[index], p.votes, result)) p.words[parts::winner] = 0;
    }
    team.sync();
    if (team.read(p.words[parts::winner]) != none) return;
    for (std::uint32_t tile = 0; tile < quads; tile += Team::size) {
      if (tile % limit_step == 0 && team.read(*p.compared) >= patterns_most) {
        if (team.rank() == 0) result.limited = true;
        return;
      }
      team.sync();
      const std::uint32_t number = tile + static_cast<std::uint32_t>(team.rank());
      int quad[4];
      pointing at;
      float chance = 0;
      bool good = false;
      if (number < quads) {
        quad_of(number, quad);
        for (int& q : quad) q = p.chosen[q];
        std::uint64_t compared = 0;
        good = solve_quad(field, quad, number, at, chance, compared);
        team.fetch_add(*p.compared, compared);
      }
      if (good) team.fetch_min(p.words[parts::winner], number);
      team.sync();
      const std::uint32_t winner = team.read(p.words[parts::winner]);
      if (winner == none) continue;
      if (winner == number) finish(field, at, chance, number, 0.01f, 6, result);
      return;
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  template <class Team>
  ROOST_FN field_view load(const Team& team, std::size_t index, const parts& p) const {
    constexpr int grid = field_view::grid, cells = grid * grid;
    const auto count =
        static_cast<int>(kernels::smaller<std::uint32_t>(first[index + 1] - first[index], centroids_most));
    const field_view field{sizes[index].width, sizes[index].height, count, p.at, p.begin, p.order};
    for_each_of(team, cells + 1, [&](std::uint32_t i) { p.begin[i] = 0; });
    if (team.rank() == 0) {
      p.words[parts::winner] = none;
      *p.compared = 0;
    }
    team.sync();
    for_each_of(team, static_cast<std::uint32_t>(count), [&](std::uint32_t i) {
      const centroid at = centroids[first[index] + i];
      p.at[i] = at;
      team.fetch_add(p.begin[field.row(at.y) * grid + field.column(at.x)], 1u);
    });
    team.sync();
    team.exclusive_scan(p.begin, p.begin, cells + 1);
    team.sync();
    if (team.rank() == 0) {
      for (int i = 0; i < count; ++i) {
        std::uint32_t& place = p.begin[field.row(p.at[i].y) * grid + field.column(p.at[i].x)];
        p.order[place++] = static_cast<std::uint32_t>(i);
      }
      for (int cell = cells; cell > 0; --cell) p.begin[cell] = p.begin[cell - 1];
      p.begin[0] = 0;
      // Of stars that are close together, only the brightest is used in quads.
      const float apart = 0.02f * field.width;
      int n = 0;
      for (int i = 0; i < count && n < quad_stars; ++i) {
        bool far = true;
        for (int k = 0; k < n; ++k) {
          const float dx = p.at[i].x - p.at[p.chosen[k]].x, dy = p.at[i].y - p.at[p.chosen[k]].y;
          far &= dx * dx + dy * dy >= apart * apart;
        }
        if (far) p.chosen[n++] = i;
      }
      p.words[parts::chosen_count] = static_cast<std::uint32_t>(n);
    }
    team.sync();
    return field;
  }

  /// Whether some pattern matches the quad, and if so, where the picture points.
  ROOST_FN bool solve_quad(const field_view& field, const int (&quad)[4], std::uint32_t number, pointing& at,
                           float& chance, std::uint64_t& compared) const {
    const centroid seen[4] = {field.at[quad[0]], field.at[quad[1]], field.at[quad[2]], field.at[quad[3]]};
    const float tries =
        std::log(static_cast<float>((number + 1) * static_cast<std::uint32_t>(assumed.count)));
    bool solved = false;
    for (int a = 0; a < assumed.count && !solved; ++a) {
      const assumed_widths::width width = assumed.widths[a];
      const float focal = width.focal * field.width;
      const sky_vector v[4] = {unit({seen[0].x, seen[0].y, focal}), unit({seen[1].x, seen[1].y, focal}),
                               unit({seen[2].x, seen[2].y, focal}), unit({seen[3].x, seen[3].y, focal})};
      const quad_shape shape = shape_of(v);
      if (!(shape.longest > 0)) return false;
      for_each_like(database.patterns, shape, compared, [&](const star_pattern& pattern) {
        const float implied = width.focal * shape.longest / pattern.shape.longest;
        if (implied < width.least || implied > width.most) return true;
        const star* const stars = database.sky.stars;
        const sky_vector sky[4] = {stars[pattern.star[0]].at, stars[pattern.star[1]].at,
                                   stars[pattern.star[2]].at, stars[pattern.star[3]].at};
        const pointing tried = point_at(seen, sky, implied * field.width);
        const float here = tries - log_odds(database.sky, field, tried, quad);
        if (!(here <= log_chance_most)) return true;
        at = tried;
        chance = here;
        solved = true;
        return false;
      });
    }
    return solved;
  }

  /// Whether the picture points about where a hint says. If the hint has no focal length, those of all widths
  /// are tried.
  ROOST_FN bool solve_hint(const field_view& field, const pointing_hint& hint, std::uint16_t* votes,
                           field_solution& result) const {
    constexpr float step = 1.04f;
    float least = assumed.widths[0].least, most = assumed.widths[0].most;
    for (int a = 1; a < assumed.count; ++a) {
      least = std::fmin(least, assumed.widths[a].least);
      most = std::fmax(most, assumed.widths[a].most);
    }
    pointing best{};
    float likeliest = std::numeric_limits<float>::max();
    for (int i = 0; i < hint.count; ++i) {
      const float known = hint.at[i].focal;
      const int focals = known > 0 ? 1 : static_cast<int>(std::log(most / least) / std::log(step)) + 1;
      for (int k = 0; k < focals; ++k) {
        pointing at = hint.at[i];
        at.focal = field.width * (known > 0 ? known : least * std::pow(step, static_cast<float>(k) + 0.5f));
        float chance = std::log(static_cast<float>(focals * hint.count));
        if (!fits(field, votes, result.star_of, at, chance) || chance >= likeliest) continue;
        if (at.focal < least * field.width || at.focal > most * field.width) continue;
        if (length(at.z - hint.at[i].z) > 2 * std::sin(hint_radius / 2)) continue;
        likeliest = chance;
        best = at;
        result.hinted = true;
      }
    }
    if (result.hinted) finish(field, best, likeliest, 0, near_enough, 2, result);
    return result.hinted;
  }

  /// Shifts and rotates a hint to where it fits best, and returns whether it fits; `chance` has the logarithm
  /// of the number of tries. The four brightest centroids that match stars are not counted, to make up for
  /// the choice.
  ROOST_FN bool fits(const field_view& field, std::uint16_t* votes, std::uint32_t* star_of, pointing& at,
                     float& chance) const {
    float spread = 0, rms = 0;
    const int shifts = shift_hint(database.sky, field, hint_radius, votes, at, spread);
    if (shifts < 4) return false;
    float distance = std::fmin(0.02f * field.width, std::fmax(3 * spread, near_enough * field.width));
    for (int round = 0; round < 4; ++round) {
      refine(database.sky, field, at, distance, star_of, rms);
      if (distance <= near_enough * field.width) break;
      distance = std::fmin(distance / 2, std::fmax(3 * rms, near_enough * field.width));
    }
    int quad[4], n = 0;
    for (int c = 0; c < field.count && n < 4; ++c) {
      if (star_of[c] != no_star) quad[n++] = c;
    }
    if (n < 4) return false;
    chance += std::log(static_cast<float>(shifts)) - log_odds(database.sky, field, at, quad);
    return chance <= log_chance_most;
  }

  ROOST_FN void finish(const field_view& field, pointing at, float chance, std::uint32_t number, float near,
                       int rounds, field_solution& result) const {
    float distance = near * field.width, rms = 0;
    int matched = 0;
    for (int round = 0; round < rounds; ++round) {
      matched = refine(database.sky, field, at, distance, result.star_of, rms);
      distance = std::fmin(distance, std::fmax(3 * rms, 0.002f * field.width));
    }
    result.solved = true;
    result.at = at;
    result.log10_chance = chance / 2.302585f;
    result.rms = rms;
    result.matched = static_cast<std::uint32_t>(matched);
    result.quad = number;
  }
};

/// The keys of the first quads of each field, to compare ways of looking them up.
struct fill_quad_keys {
  static constexpr std::uint32_t each = 128;
  float focal;
  const centroid* centroids;
  const std::uint32_t* first;
  const star_fields::size* sizes;
  std::uint32_t* keys;
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t field = i / each;
    const std::uint32_t count = first[field + 1] - first[field];
    const auto number = static_cast<std::uint32_t>(i % each);
    keys[i] = 0;
    if (number >= choose(kernels::smaller<std::uint32_t>(count, quad_stars_most), 4)) return;
    int quad[4];
    quad_of(number, quad);
    sky_vector v[4];
    for (int k = 0; k < 4; ++k) {
      const centroid at = centroids[first[field] + static_cast<std::uint32_t>(quad[k])];
      v[k] = unit({at.x, at.y, focal * sizes[field].width});
    }
    const star_pattern like{{}, shape_of(v)};
    keys[i] = key_of_pattern{&like}(0);
  }
};

/// The widths to try between two, in degrees. The wider a picture is, the more its shapes depend on its
/// width.
inline assumed_widths widths_to_try(double least, double most) {
  const auto tangent = [](double degrees) { return std::tan(degrees * std::numbers::pi / 360); };
  const double low = tangent(least) * 0.97, high = tangent(most) * 1.03;
  // The error of a ratio is about the difference of the squares.
  const double steps = std::clamp(std::ceil((high * high - low * low) / (4 * shape_error)), 1.0,
                                  static_cast<double>(assumed_most));
  assumed_widths result;
  result.count = static_cast<int>(steps);
  const auto at = [&](double step) {
    return std::sqrt(low * low + (high * high - low * low) * step / steps);
  };
  for (int i = 0; i < result.count; ++i) {
    const auto focal = [](double half) { return static_cast<float>(0.5 / half); };
    // Slightly more than from one to the next, as the scale of a quad is not exact either.
    result.widths[i] = {focal(at(i + 0.5)), focal(at(i + 1) * 1.01), focal(at(i) * 0.99)};
  }
  return result;
}

template <class Place>
class solver_on final : public star_solver {
  using patterns_map = frozen_multimap<std::uint32_t, star_pattern, Place>;

 public:
  solver_on(const Place& place, const star_database& database)
      : place_(place),
        limits_(database.limits),
        stars_(copy_to(place, database.stars)),
        index_(place, std::as_const(stars_).span(), limits_) {
    const auto patterns = copy_to(place, database.patterns);
    patterns_ = patterns_map(place, computed(patterns.size(), key_of_pattern{patterns.data()}),
                             std::as_const(patterns).span());
  }

  std::vector<field_solution> solve(const star_fields& fields, const solve_options& options,
                                    solver_times* times) const override {
    return solve_on(place_, fields, options, times);
  }
  /// The same on a place with a different number of threads.
  std::vector<field_solution> solve_on(const Place& place, const star_fields& fields,
                                       const solve_options& options, solver_times* times = nullptr) const {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    const auto centroids = copy_to(place, fields.centroids);
    const auto first = copy_to(place, fields.first);
    const auto sizes = copy_to(place, fields.sizes);
    const auto hints = copy_to(place, fields.hints);
    array<field_solution, Place> results(place, fields.count());
    place.synchronize();
    const auto uploaded = clock::now();
    const solve_fields<Place> kernel{{index_.ref(), patterns_.ref()},
                                     assumed(options),
                                     centroids.data(),
                                     first.data(),
                                     sizes.data(),
                                     fields.hints.empty() ? nullptr : hints.data(),
                                     static_cast<float>(options.hint_radius * std::numbers::pi / 180),
                                     std::clamp(options.quad_stars, 4, quad_stars_most),
                                     static_cast<float>(std::log(options.chance_most)),
                                     options.patterns_most,
                                     results.data()};
    place.launch(fields.count(), kernels::scratch_bytes_of(kernel), kernel);
    place.synchronize();
    const auto solved = clock::now();
    auto answers = copy_to_host(place, results);
    const auto done = clock::now();
    if (times != nullptr) {
      const auto ms = [](auto from, auto to) {
        return std::chrono::duration<double, std::milli>(to - from).count();
      };
      *times = {ms(start, uploaded), ms(uploaded, solved), ms(solved, done)};
    }
    return answers;
  }

  std::pair<double, double> time_lookups(const star_fields& fields,
                                         const solve_options& options) const override {
    const auto centroids = copy_to(place_, fields.centroids);
    const auto first = copy_to(place_, fields.first);
    const auto sizes = copy_to(place_, fields.sizes);
    array<std::uint32_t, Place> keys(place_, fields.count() * fill_quad_keys::each),
        counts(place_, keys.size());
    const auto widths = assumed(options);
    place_.for_each(keys.size(), fill_quad_keys{widths.widths[widths.count / 2].focal, centroids.data(),
                                                first.data(), sizes.data(), keys.data()});
    const auto time = [&](path way) {
      double best = std::numeric_limits<double>::max();
      for (int run = 0; run < 4; ++run) {  // the first one warms up
        place_.synchronize();
        const auto start = std::chrono::steady_clock::now();
        patterns_.count(place_, std::as_const(keys).span(), counts, {.path = way});
        place_.synchronize();
        const auto end = std::chrono::steady_clock::now();
        if (run != 0) best = std::min(best, std::chrono::duration<double, std::milli>(end - start).count());
      }
      return best;
    };
    const double direct = time(path::direct);
    return {direct, time(path::regional)};
  }

 private:
  assumed_widths assumed(const solve_options& options) const {
    return widths_to_try(options.fov_least > 0 ? options.fov_least : limits_.fov_least,
                         options.fov_most > 0 ? options.fov_most : limits_.fov_most);
  }

  Place place_;
  database_limits limits_;
  array<star, Place> stars_;
  star_index<Place> index_;
  patterns_map patterns_;
};

}  // namespace roost::tools
