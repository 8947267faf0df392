#pragma once

#include <array>
#include <functional>
#include <optional>

#include "apps/shared/image_file.hpp"
#include "roost/kernels.hpp"

/// \file
/// Geometric hashing (Alcantara et al. 2009, section 6) on a place: finds the rotation, scale and shift, or
/// the affine map or homography, that maps a query image to a reference image. One source for both places,
/// compiled separately.

namespace roost::tools {

/// A point of an image, in pixels from the middle of its first one.
struct image_point {
  float x, y;
};

/// p -> (a * p.x - b * p.y + x, b * p.x + a * p.y + y): a rotation and a scale, then a shift.
struct similarity {
  float a = 1, b = 0, x = 0, y = 0;
  ROOST_FN image_point operator()(image_point p) const {
    return {a * p.x - b * p.y + x, b * p.x + a * p.y + y};
  }
};

/// The kind of a map; each kind includes those before it.
enum class map_kind {
  similarity,  ///< rotation, scale and shift
  affine,      ///< preserves parallels: an oblique view from far away
  perspective  ///< preserves straight lines: a homography, an oblique view
};

/// A map of the plane, by a matrix of 3 x 3, row by row: (x, y, 1) is mapped to (X, Y, W), the point to (X /
/// W, Y / W).
struct plane_map {
  float m[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  plane_map() = default;
  ROOST_FN plane_map(const similarity& s) : m{s.a, -s.b, s.x, s.b, s.a, s.y, 0, 0, 1} {}
  ROOST_FN image_point operator()(image_point p) const {
    const float w = m[6] * p.x + m[7] * p.y + m[8];
    return {(m[0] * p.x + m[1] * p.y + m[2]) / w, (m[3] * p.x + m[4] * p.y + m[5]) / w};
  }
  /// Applies `first`, then this.
  ROOST_FN plane_map operator*(const plane_map& first) const {
    plane_map both;
    for (int i = 0; i < 9; ++i) {
      const int row = i / 3 * 3, column = i % 3;
      both.m[i] =
          m[row] * first.m[column] + m[row + 1] * first.m[column + 3] + m[row + 2] * first.m[column + 6];
    }
    return both;
  }
  /// Its derivative at a point: steps (x, y) become steps (xx x + xy y, yx x + yy y).
  struct near {
    float xx, xy, yx, yy;
    ROOST_FN float area() const { return xx * yy - xy * yx; }
  };
  ROOST_FN near near_to(image_point p) const {
    const float w = m[6] * p.x + m[7] * p.y + m[8];
    const image_point at = (*this)(p);
    return {(m[0] - at.x * m[6]) / w, (m[1] - at.x * m[7]) / w, (m[3] - at.y * m[6]) / w,
            (m[4] - at.y * m[7]) / w};
  }
};

/// How bases vote.
enum class vote_way {
  global,  ///< into an array of bases x bases in the memory of the place, as the paper does
  shared   ///< a team has a basis of the query, with its votes in scratch memory
};

struct match_options {
  float threshold = 0;          ///< least gradient of an edge, in shades a pixel; 0: 1
  int points = 200;             ///< the most feature points: the strongest edges
  int query_bases = 1000;       ///< the approximate number that vote
  double share = 1.0 / 3;       ///< the part of the reference's pairs that become bases
  float longest = 0.35f;        ///< the longest basis, as a part of the image's diagonal
  float units = 24;             ///< the length of a basis when coordinates are rounded; at most units_most
  std::optional<map_kind> map;  ///< nothing: the simplest that fits
  vote_way votes = vote_way::shared;
  std::size_t votes_bytes = std::size_t{256} << 20;  ///< the most, for votes in global memory
  bool corners = true;  ///< points are edges that turn; otherwise the strongest edges, as in the paper
  bool sorted = false;  ///< a sorted list instead of a hash table
  std::uint32_t seed = 1;
};

/// The times of the steps, in milliseconds.
struct match_times {
  double points = 0, bases = 0, table = 0, votes = 0, verify = 0;
  double all() const { return points + bases + table + votes + verify; }
};

/// Of several runs, the one with the median of all steps together.
match_times median_of(std::vector<match_times> runs);

/// The contents of the reference's table.
struct match_facts {
  std::size_t points = 0, bases = 0, items = 0, keys = 0, most = 0;  ///< most: values of a key
  std::size_t bytes = 0;                                             ///< of the table
};

/// The result of a query.
struct match_result {
  bool matched = false;
  map_kind map = map_kind::similarity;
  plane_map to_reference;
  std::size_t points = 0, bases = 0;    ///< of the query
  std::uint64_t votes = 0;              ///< of all bases together
  std::uint32_t most_votes = 0;         ///< for one pair of bases
  std::size_t inliers = 0;              ///< query points beside a reference point
  std::size_t covered = 0;              ///< query points that are mapped onto the reference
  std::size_t compared = 0, alike = 0;  ///< windows around query points, and how many match
  std::size_t placements = 1;           ///< equally good ones; more than one is no match
  int looks = 0;                        ///< how often the query was looked at, finer or coarser
  double rms = 0;  ///< of the inliers' distances to their reference points, in pixels of the reference
  double log10_chance = 0;                ///< that as many fit and match by chance, for all pairs of bases
  std::vector<std::uint32_t> best_votes;  ///< of each basis of the query
  std::vector<image_point> query_points, reference_points;
  match_times times;
};

/// A reference image and its table on a place.
class matcher {
 public:
  virtual ~matcher() = default;
  virtual const match_facts& facts() const = 0;
  /// The times of building the table.
  virtual const match_times& times() const = 0;
  /// Looks at the query as it is, then coarser and finer, until it matches or has more than one placement.
  /// The result is that of the best look, with the votes and times of all.
  virtual match_result match(const grey_image& query) const = 0;
  /// Looks at it once, as it is.
  virtual match_result match_once(const grey_image& query) const = 0;
  /// All votes: of reference basis r for query basis q at [q * facts().bases + r]. For small images.
  virtual std::vector<std::uint32_t> all_votes(const grey_image& query) const = 0;
};

using use_matcher = std::function<void(const matcher&)>;
void with_matcher_on_host(int threads, const grey_image& reference, const match_options& options,
                          const use_matcher& use);
void with_matcher_on_cuda(const grey_image& reference, const match_options& options, const use_matcher& use);

// Pieces that a test recomputes independently.

/// A basis is at least this part of the image's diagonal long.
inline constexpr float basis_least = 0.12f;
/// A key holds a point's coordinates relative to a basis (whose end is at (match_options::units, 0)), each
/// rounded to the nearest integer in this many bits.
inline constexpr int key_bits = 10;
/// With more units, bases of the finest look would not have keys for all points.
inline constexpr float units_most = 30;

}  // namespace roost::tools
