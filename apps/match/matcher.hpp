#pragma once

#include <array>
#include <functional>
#include <optional>

#include "apps/shared/image_file.hpp"
#include "roost/kernels.hpp"

/// \file
/// Geometric hashing (Alcantara et al. 2009, section 6) on a place: which turn, scale and shift lays a query
/// image onto a reference image, or which affine map or homography does. One source for both places, compiled
/// apart.

namespace roost::tools {

/// A point of an image, in pixels from the middle of its first one.
struct image_point {
  float x, y;
};

/// p -> (a * p.x - b * p.y + x, b * p.x + a * p.y + y): a turn with a scale, then a shift.
struct similarity {
  float a = 1, b = 0, x = 0, y = 0;
  ROOST_FN image_point operator()(image_point p) const {
    return {a * p.x - b * p.y + x, b * p.x + a * p.y + y};
  }
};

/// What a map may do; each kind can do what those before it can.
enum class map_kind {
  similarity,  ///< turn, scale and shift
  affine,      ///< keep parallels: a view from aside and far away
  perspective  ///< keep straight lines: a homography, a view from aside
};

/// A map of the plane, by a matrix of 3 x 3, row by row: (x, y, 1) comes to (X, Y, W), the point to
/// (X / W, Y / W).
struct plane_map {
  float m[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  plane_map() = default;
  ROOST_FN plane_map(const similarity& s) : m{s.a, -s.b, s.x, s.b, s.a, s.y, 0, 0, 1} {}
  ROOST_FN image_point operator()(image_point p) const {
    const float w = m[6] * p.x + m[7] * p.y + m[8];
    return {(m[0] * p.x + m[1] * p.y + m[2]) / w, (m[3] * p.x + m[4] * p.y + m[5]) / w};
  }
  /// First `first`, then this.
  ROOST_FN plane_map operator*(const plane_map& first) const {
    plane_map both;
    for (int i = 0; i < 9; ++i) {
      const int row = i / 3 * 3, column = i % 3;
      both.m[i] =
          m[row] * first.m[column] + m[row + 1] * first.m[column + 3] + m[row + 2] * first.m[column + 6];
    }
    return both;
  }
  /// What it does close to a point: steps (x, y) come to steps (xx x + xy y, yx x + yy y).
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
  shared   ///< a team has a basis of the query, and its votes in scratch memory
};

struct match_options {
  float threshold = 0;          ///< least gradient of an edge, in shades a pixel; 0: 1
  int points = 200;             ///< feature points, at most: the strongest edges
  int query_bases = 1000;       ///< of the query that vote, about
  double share = 1.0 / 3;       ///< of the reference's pairs that become bases
  float longest = 0.35f;        ///< basis, as a part of the image's diagonal
  float units = 24;             ///< so many is a basis long when coordinates are rounded; units_most at most
  std::optional<map_kind> map;  ///< otherwise the simplest that fits
  vote_way votes = vote_way::shared;
  std::size_t votes_bytes = std::size_t{256} << 20;  ///< of the array of votes in global memory, at most
  bool corners = true;  ///< the points are edges that turn; otherwise the strongest edges, as the paper's
  bool sorted = false;  ///< a sorted list instead of a hash table
  std::uint32_t seed = 1;
};

/// Numbers of the steps, in milliseconds.
struct match_times {
  double points = 0, bases = 0, table = 0, votes = 0, verify = 0;
  double all() const { return points + bases + table + votes + verify; }
};

/// Of several runs, the one with the median of all steps together.
match_times median_of(std::vector<match_times> runs);

/// What the reference's table holds.
struct match_facts {
  std::size_t points = 0, bases = 0, items = 0, keys = 0, most = 0;  ///< most: values of a key
  std::size_t bytes = 0;                                             ///< of the table
};

/// What came of a query.
struct match_result {
  bool matched = false;
  map_kind map = map_kind::similarity;
  plane_map to_reference;
  std::size_t points = 0, bases = 0;      ///< of the query
  std::uint64_t votes = 0;                ///< of all bases together
  std::uint32_t most_votes = 0;           ///< for one pair of bases
  std::size_t inliers = 0;                ///< query points beside a reference point
  std::size_t covered = 0;                ///< query points that fall onto the reference
  std::size_t compared = 0, alike = 0;    ///< windows around query points, and those that look alike
  std::size_t placements = 1;             ///< that are equally good; with several it is no match
  int looks = 0;                          ///< how often the query was looked at, finer or coarser
  double rms = 0;                         ///< of these, how far from their reference points, in its pixels
  double log10_chance = 0;                ///< that so many fit, for all pairs of bases, and are alike
  std::vector<std::uint32_t> best_votes;  ///< of each basis of the query
  std::vector<image_point> query_points, reference_points;
  match_times times;
};

/// A reference image and its table on a place.
class matcher {
 public:
  virtual ~matcher() = default;
  virtual const match_facts& facts() const = 0;
  /// What building the table took.
  virtual const match_times& times() const = 0;
  /// Looks at the query as it is, then coarser and finer, until it matches or has several places. The result
  /// is that of the best look; votes and times are those of all.
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

// Pieces that a test repeats by other means.

/// A basis is at least this part of the image's diagonal long.
inline constexpr float basis_least = 0.12f;
/// A key has a point's coordinates as a basis sees it (its end is at (match_options::units, 0)), each rounded
/// down after a half is added, in so many bits.
inline constexpr int key_bits = 10;
/// With more, bases of the finest look would not have keys for all points.
inline constexpr float units_most = 30;

}  // namespace roost::tools
