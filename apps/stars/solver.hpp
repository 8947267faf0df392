#pragma once

#include <functional>

#include "database.hpp"

/// \file
/// Builds patterns and solves fields on a place; one source for both places, compiled separately.

namespace roost::tools {

/// A point of light in a picture, in pixels from its middle: x to the right, y down.
struct centroid {
  float x, y;
};

/// Where a picture points. A direction s of the sky is at pixel (focal * s.x / s.z, focal * s.y / s.z) of the
/// axes x, y and z, from the middle of the picture.
struct pointing {
  sky_vector x, y, z;  ///< to the right, down, and away; mirrored pictures have a left-handed system
  float focal;         ///< pixels
};

/// Where a field may point: about where an earlier one of the same camera did. Two directions, if it may be
/// mirrored or not.
struct pointing_hint {
  pointing at[2] = {};  ///< of pictures one pixel wide; focal 0: unknown
  int count = 0;
};

/// The fields to solve: each has centroids [first, next field's first) of one array, the brightest first.
struct star_fields {
  struct size {
    float width, height;  ///< pixels
  };
  std::vector<centroid> centroids;
  std::vector<std::uint32_t> first{0};  ///< of each field, and the end
  std::vector<size> sizes;
  std::vector<pointing_hint> hints{};  ///< of each field, or empty

  std::size_t count() const { return sizes.size(); }
  void add(std::span<const centroid> field, size of) {
    centroids.insert(centroids.end(), field.begin(), field.end());
    first.push_back(static_cast<std::uint32_t>(centroids.size()));
    sizes.push_back(of);
  }
};

/// How to solve.
struct solve_options {
  double fov_least = 0, fov_most = 0;  ///< degrees, of the picture's width; 0: the database's limits
  double chance_most = 1e-6;           ///< the most probability of chance for a solution
  int quad_stars = 24;                 ///< all quads of this many brightest centroids are looked up
  double hint_radius = 1;              ///< degrees: how far a field may point from its hint
  /// A field whose quads have been compared with this many patterns has no solution; checked after every 64
  /// quads. 0: only hints are tried.
  std::uint64_t patterns_most = std::uint64_t{1} << 22;
};

/// How many centroids of a field, the brightest, are used.
inline constexpr int centroids_most = 128;
inline constexpr std::uint32_t no_star = ~std::uint32_t{0};

/// The result for a field.
struct field_solution {
  bool solved = false;
  bool hinted = false;   ///< solved by the hint, without looking up quads
  bool limited = false;  ///< not all quads were looked up, because of patterns_most
  pointing at{};
  float log10_chance = 0;                 ///< that as many stars fit by chance, for all quads that were tried
  float rms = 0;                          ///< pixels, of the matched stars
  std::uint32_t matched = 0;              ///< stars
  std::uint32_t quad = 0;                 ///< the number of quads looked up before
  std::uint32_t star_of[centroids_most];  ///< of each centroid, or no_star
};

/// The times, in milliseconds.
struct solver_times {
  double upload = 0, solve = 0, download = 0;
};

/// A database on a place.
class star_solver {
 public:
  virtual ~star_solver() = default;
  virtual std::vector<field_solution> solve(const star_fields& fields, const solve_options& options,
                                            solver_times* times = nullptr) const = 0;
  /// The milliseconds for looking up the first quads of all fields: directly, and by region.
  virtual std::pair<double, double> time_lookups(const star_fields& fields,
                                                 const solve_options& options) const = 0;
};

using use_solver = std::function<void(const star_solver&)>;

/// Fills in the patterns of a database with stars and limits, and removes unneeded stars; on the host, or on
/// the current CUDA device. Returns the milliseconds on the place, without copies.
double build_patterns_on_host(int threads, star_database& database);
double build_patterns_on_cuda(star_database& database);
void with_solver_on_host(int threads, const star_database& database, const use_solver& use);
void with_solver_on_cuda(const star_database& database, const use_solver& use);

}  // namespace roost::tools
