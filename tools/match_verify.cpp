#include <algorithm>
#include <cmath>

#include "geometric_hashing.hpp"

namespace roost::tools {

match_times median_of(std::vector<match_times> runs) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(), [](auto& a, auto& b) { return a.all() < b.all(); });
  return *middle;
}

float image_features::diagonal() const {
  return std::hypot(static_cast<float>(width), static_cast<float>(height));
}

point_grid::point_grid(const std::vector<image_point>& points, float reach) : points_(points), reach_(reach) {
  float width = 0, height = 0;
  for (const auto& p : points) {
    width = std::max(width, p.x);
    height = std::max(height, p.y);
  }
  columns_ = static_cast<int>(width / reach) + 1;
  rows_ = static_cast<int>(height / reach) + 1;
  begin_.assign(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_) + 1, 0);
  const auto cell = [&](image_point p) {
    return static_cast<std::size_t>(static_cast<int>(p.y / reach) * columns_ + static_cast<int>(p.x / reach));
  };
  for (const auto& p : points) ++begin_[cell(p) + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  auto next = begin_;
  order_.resize(points.size());
  for (std::uint32_t i = 0; i < points.size(); ++i) order_[next[cell(points[i])]++] = i;
}

int point_grid::nearest(image_point p, float reach) const {
  int best = -1;
  float least = reach * reach;
  const int column = static_cast<int>(std::floor(p.x / reach_)),
            row = static_cast<int>(std::floor(p.y / reach_));
  for (int r = std::max(0, row - 1); r <= std::min(rows_ - 1, row + 1); ++r) {
    for (int c = std::max(0, column - 1); c <= std::min(columns_ - 1, column + 1); ++c) {
      const auto at = static_cast<std::size_t>(r * columns_ + c);
      for (std::uint32_t i = begin_[at]; i < begin_[at + 1]; ++i) {
        const auto& q = points_[order_[i]];
        const float squared = (q.x - p.x) * (q.x - p.x) + (q.y - p.y) * (q.y - p.y);
        if (squared < least) {
          least = squared;
          best = static_cast<int>(order_[i]);
        }
      }
    }
  }
  return best;
}

double point_grid::density(image_point p, std::uint32_t without) const {
  const int column = static_cast<int>(std::floor(p.x / reach_)),
            row = static_cast<int>(std::floor(p.y / reach_));
  const int left = std::clamp(column - 1, 0, columns_ - 1), right = std::clamp(column + 1, 0, columns_ - 1),
            top = std::clamp(row - 1, 0, rows_ - 1), bottom = std::clamp(row + 1, 0, rows_ - 1);
  std::uint32_t count = 0;
  for (int r = top; r <= bottom; ++r) {
    count += begin_[static_cast<std::size_t>(r * columns_ + right) + 1] -
             begin_[static_cast<std::size_t>(r * columns_ + left)];
  }
  const double cells = (right - left + 1) * (bottom - top + 1);
  return (count - std::min(count, without)) / (cells * reach_ * reach_);
}

similarity similarity_of(image_point a, image_point b, image_point to_a, image_point to_b) {
  const float x = b.x - a.x, y = b.y - a.y, u = to_b.x - to_a.x, v = to_b.y - to_a.y;
  const float norm = x * x + y * y;
  similarity s;
  s.a = (u * x + v * y) / norm;
  s.b = (v * x - u * y) / norm;
  s.x = to_a.x - (s.a * a.x - s.b * a.y);
  s.y = to_a.y - (s.b * a.x + s.a * a.y);
  return s;
}

namespace {

/// The similarity with the least squares from some points to others.
similarity fit(const std::vector<std::pair<image_point, image_point>>& pairs) {
  double mx = 0, my = 0, mu = 0, mv = 0;
  for (const auto& [p, q] : pairs) {
    mx += p.x, my += p.y, mu += q.x, mv += q.y;
  }
  const auto n = static_cast<double>(pairs.size());
  mx /= n, my /= n, mu /= n, mv /= n;
  double a = 0, b = 0, norm = 0;
  for (const auto& [p, q] : pairs) {
    const double x = p.x - mx, y = p.y - my, u = q.x - mu, v = q.y - mv;
    a += u * x + v * y;
    b += v * x - u * y;
    norm += x * x + y * y;
  }
  a /= norm;
  b /= norm;
  return {static_cast<float>(a), static_cast<float>(b), static_cast<float>(mu - a * mx + b * my),
          static_cast<float>(mv - b * mx - a * my)};
}

double rms_of(const similarity& s, const std::vector<std::pair<image_point, image_point>>& pairs) {
  double sum = 0;
  for (const auto& [p, q] : pairs) {
    const auto at = s(p);
    sum += (at.x - q.x) * (at.x - q.x) + (at.y - q.y) * (at.y - q.y);
  }
  return std::sqrt(sum / static_cast<double>(pairs.size()));
}

/// The logarithm (10) of the probability that of n points k or more are there by chance, each with p.
double log10_tail(std::size_t n, std::size_t k, double p) {
  if (k == 0) return 0;
  const double share = static_cast<double>(k) / static_cast<double>(n);
  if (share <= p) return 0;
  if (p <= 0) return -300;
  // Chernoff's bound.
  const double rest = share >= 1 ? 0 : (1 - share) * std::log((1 - share) / (1 - p));
  return -static_cast<double>(n) * (share * std::log(share / p) + rest) / std::log(10.0);
}

struct agreement {
  std::size_t covered = 0;
  double density = 0;  // of the reference's points where those of the query are, summed
  std::vector<std::pair<image_point, image_point>> pairs;
};

agreement agree(const image_features& reference, const point_grid& grid, const point_grid& around,
                const image_features& query, const similarity& s, float reach) {
  agreement result;
  std::vector<char> taken(reference.points.size(), 0);
  for (const auto& p : query.points) {
    const auto at = s(p);
    if (at.x < 0 || at.y < 0 || at.x > static_cast<float>(reference.width) ||
        at.y > static_cast<float>(reference.height))
      continue;
    ++result.covered;
    const int i = grid.nearest(at, reach);
    const bool fits = i >= 0 && !taken[static_cast<std::size_t>(i)];
    result.density += around.density(at, fits ? 1 : 0);
    if (!fits) continue;
    taken[static_cast<std::size_t>(i)] = 1;
    result.pairs.emplace_back(p, reference.points[static_cast<std::size_t>(i)]);
  }
  return result;
}

}  // namespace

void verify_match(const image_features& reference, const image_features& query,
                  const std::vector<similarity>& candidates, double log10_tries, match_result& result) {
  result.reference_points = reference.points;
  result.query_points = query.points;
  result.log10_chance = 0;
  if (candidates.empty()) return;
  constexpr float near = 0.006f;  // of the diagonal
  const float reach = std::max(2.f, near * reference.diagonal());
  const point_grid grid(reference.points, reach), around(reference.points, 2.5f * reach);
  const double density = static_cast<double>(reference.points.size()) / static_cast<double>(reference.width) /
                         static_cast<double>(reference.height);
  const auto log10_chance = [&](const agreement& found, float within) {
    if (found.covered < 8 || found.pairs.size() <= 2) return 0.0;
    // Points lie close together in some parts of a picture: there more fit by chance.
    const double here = std::max(density, found.density / static_cast<double>(found.covered));
    const double by_chance = 1 - std::exp(-here * 3.14159265 * within * within);
    // The two points of the basis fit by themselves.
    return log10_tries + log10_tail(found.covered, found.pairs.size() - 2, by_chance);
  };
  struct trial {
    similarity at;
    double chance;
  };
  std::vector<trial> trials;
  for (const auto& s : candidates) {
    const float scale = std::hypot(s.a, s.b);
    if (scale > 0.2f && scale < 5)
      trials.push_back({s, log10_chance(agree(reference, grid, around, query, s, reach), reach)});
  }
  std::stable_sort(trials.begin(), trials.end(), [](auto& a, auto& b) { return a.chance < b.chance; });
  trials.resize(std::min<std::size_t>(trials.size(), 8));
  for (auto& [s, chance] : trials) {
    // Fits what is near, then what is nearer.
    for (const float within :
         {reach, reach, reach, reach * 0.7f, reach * 0.5f, reach * 0.5f, reach * 0.35f}) {
      const agreement now = agree(reference, grid, around, query, s, within);
      if (now.pairs.size() < 4) break;
      s = fit(now.pairs);
      const agreement next = agree(reference, grid, around, query, s, within);
      const double score = log10_chance(next, within);
      if (score < result.log10_chance) {
        result.log10_chance = score;
        result.to_reference = s;
        result.inliers = next.pairs.size();
        result.rms = rms_of(s, next.pairs);
        result.covered = next.covered;
      }
    }
  }
  result.matched = result.log10_chance < -3;
}

}  // namespace roost::tools
