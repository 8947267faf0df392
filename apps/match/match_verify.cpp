#include "match_verify.hpp"

#include <span>

namespace roost::tools {

match_times median_of(std::vector<match_times> runs) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(), [](auto& a, auto& b) { return a.all() < b.all(); });
  return *middle;
}

float image_features::diagonal() const {
  return std::hypot(static_cast<float>(width), static_cast<float>(height));
}

point_cells::point_cells(const std::vector<image_point>& points, float side) : side(side) {
  float width = 0, height = 0;
  for (const auto& p : points) {
    width = std::max(width, p.x);
    height = std::max(height, p.y);
  }
  columns = static_cast<int>(width / side) + 1;
  rows = static_cast<int>(height / side) + 1;
  begin.assign(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows) + 1, 0);
  const auto cell = [&](image_point p) {
    return static_cast<std::size_t>(static_cast<int>(p.y / side) * columns + static_cast<int>(p.x / side));
  };
  for (const auto& p : points) ++begin[cell(p) + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  auto next = begin;
  order.resize(points.size());
  for (std::uint32_t i = 0; i < points.size(); ++i) order[next[cell(points[i])]++] = i;
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

/// The matches that are most alike.
void keep_best(std::vector<patch_match>& matches) {
  constexpr float alike = 0.6f;
  constexpr std::size_t most = 128;
  std::erase_if(matches, [](const patch_match& m) { return m.correlation < alike; });
  std::stable_sort(matches.begin(), matches.end(),
                   [](auto& a, auto& b) { return a.correlation > b.correlation; });
  matches.resize(std::min(matches.size(), most));
}

/// Whether two matches agree on a rotation, and on a scale within a factor of `scale_off` of `scale`.
bool agree(const patch_match& a, const patch_match& b, const similarity& s, float scale, float scale_off,
           float turn_off) {
  const float size = std::hypot(s.a, s.b) / scale, turn = std::atan2(s.b, s.a);
  return size <= scale_off && size >= 1 / scale_off && std::cos(turn - a.turn) > std::cos(turn_off) &&
         std::cos(turn - b.turn) > std::cos(turn_off);
}

}  // namespace

std::vector<similarity> similarities_of(std::vector<patch_match> matches, float scale, float least) {
  constexpr std::size_t of_each = 2;
  keep_best(matches);
  std::vector<similarity> result;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    std::size_t found = 0;
    for (std::size_t k = 0; k < matches.size() && found < of_each; ++k) {
      const patch_match &a = matches[i], &b = matches[k];
      if (std::hypot(a.from.x - b.from.x, a.from.y - b.from.y) < least) continue;
      const similarity s = similarity_of(a.from, b.from, a.to, b.to);
      if (!agree(a, b, s, scale, 1.4f, 0.35f)) continue;
      result.push_back(s);
      ++found;
    }
  }
  return result;
}

std::vector<match_group> groups_of(std::vector<patch_match> matches, const image_features& query, float scale,
                                   float least, float reach) {
  constexpr std::size_t of_each = 10, few = 5;
  keep_best(matches);
  const std::size_t n = matches.size();
  const auto pair = [&](std::size_t i) { return point_pair{matches[i].from, matches[i].to}; };
  const auto fit = [&](std::size_t i, std::size_t k) {  // also for an oblique view
    const patch_match &a = matches[i], &b = matches[k];
    return std::hypot(a.from.x - b.from.x, a.from.y - b.from.y) > least &&
           agree(a, b, similarity_of(a.from, b.from, a.to, b.to), scale, 2, 0.6f);
  };
  std::vector<match_group> groups;
  const auto add = [&](const std::vector<point_pair>& three) {
    const auto at = fitted(map_kind::affine, three, {}, query);
    if (!at) return;
    match_group group{*at, {}};
    for (std::size_t i = 0; i < n; ++i) {
      const image_point to = (*at)(matches[i].from);
      if (std::hypot(to.x - matches[i].to.x, to.y - matches[i].to.y) < reach) group.pairs.push_back(pair(i));
    }
    if (group.pairs.size() >= few) groups.push_back(std::move(group));
  };
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<std::size_t> with;
    for (std::size_t k = i + 1; k < n && with.size() < of_each; ++k) {
      if (fit(i, k)) with.push_back(k);
    }
    for (std::size_t b = 1; b < with.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        if (fit(with[a], with[b])) add({pair(i), pair(with[a]), pair(with[b])});
      }
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](auto& a, auto& b) { return a.pairs.size() > b.pairs.size(); });
  std::vector<match_group> result;
  for (auto& g : groups) {
    if (result.size() == groups_most) break;
    const auto same = [&](const match_group& r) { return mostly_apart(r.at, g.at, query) < 2 * reach; };
    if (std::any_of(result.begin(), result.end(), same)) continue;
    if (const auto at = fitted(map_kind::affine, g.pairs, g.at, query)) g.at = *at;
    result.push_back(std::move(g));
  }
  return result;
}

namespace {

/// Whether a camera may see a query as a map lays it.
bool is_seen(const plane_map& map, const image_features& query) {
  for (const float x : {0.f, static_cast<float>(query.width)}) {
    for (const float y : {0.f, static_cast<float>(query.height)}) {
      const auto near = map.near_to({x, y});
      const float area = near.area(), w = map.m[6] * x + map.m[7] * y + map.m[8],
                  squares = near.xx * near.xx + near.xy * near.xy + near.yx * near.yx + near.yy * near.yy;
      if (!(w > 0 && area < scale_most * scale_most && area * scale_most * scale_most > 1 &&
            squares < (stretch_most + 1 / stretch_most) * area))
        return false;
    }
  }
  return true;
}

/// Solves n linear equations: rows of n factors and the right side. False if they are singular.
bool solve(double (&rows)[8][9], int n, double least) {
  for (int i = 0; i < n; ++i) {
    int best = i;
    for (int r = i + 1; r < n; ++r) best = std::abs(rows[r][i]) > std::abs(rows[best][i]) ? r : best;
    std::swap(rows[i], rows[best]);
    if (!(std::abs(rows[i][i]) > least)) return false;
    for (int r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = rows[r][i] / rows[i][i];
      for (int c = i; c < n; ++c) rows[r][c] -= factor * rows[i][c];
      rows[r][8] -= factor * rows[i][8];
    }
  }
  for (int i = 0; i < n; ++i) rows[i][8] /= rows[i][i];
  return true;
}

}  // namespace

std::optional<plane_map> fitted(map_kind kind, const std::vector<point_pair>& pairs, const plane_map& near,
                                const image_features& query) {
  // Relative to the middle of the query, in units of half its diagonal, so that all numbers are about 1.
  const image_point middle = query.middle(), to_middle = near(middle);
  const double size = query.diagonal() / 2;
  const int n = kind == map_kind::affine ? 6 : 8;
  if (pairs.size() * 2 < static_cast<std::size_t>(n)) return std::nullopt;
  const auto w_at = [&](image_point p) {
    return static_cast<double>(near.m[6] * p.x + near.m[7] * p.y + near.m[8]);
  };
  double rows[8][9] = {};
  for (const auto& p : pairs) {
    const double x = (p.from.x - middle.x) / size, y = (p.from.y - middle.y) / size,
                 u = (p.to.x - to_middle.x) / size, v = (p.to.y - to_middle.y) / size,
                 weight = n == 6 ? 1 : w_at(middle) / w_at(p.from);
    const double of[2][9] = {{x, y, 1, 0, 0, 0, -x * u, -y * u, u}, {0, 0, 0, x, y, 1, -x * v, -y * v, v}};
    for (const auto& f : of) {
      for (int r = 0; r < n; ++r) {
        for (int c = 0; c < 9; ++c) rows[r][c] += weight * weight * f[r] * f[c];
      }
    }
  }
  if (!solve(rows, n, 1e-6)) return std::nullopt;
  double h[9] = {0, 0, 0, 0, 0, 0, 0, 0, 1};
  for (int i = 0; i < n; ++i) h[i] = rows[i][8];
  for (int r = 0; r < 9; r += 3) {
    h[r] /= size, h[r + 1] /= size;
    h[r + 2] -= h[r] * middle.x + h[r + 1] * middle.y;
  }
  plane_map map;
  for (int c = 0; c < 3; ++c) {
    map.m[c] = static_cast<float>((size * h[c] + to_middle.x * h[6 + c]) / h[8]);
    map.m[3 + c] = static_cast<float>((size * h[3 + c] + to_middle.y * h[6 + c]) / h[8]);
    map.m[6 + c] = static_cast<float>(h[6 + c] / h[8]);
  }
  return is_seen(map, query) ? std::optional(map) : std::nullopt;
}

likeness& likeness::operator+=(float correlation) {
  constexpr float alike_least = 0.7f;
  ++compared;
  alike += correlation > alike_least ? 1 : 0;
  return *this;
}

bool quarters::good() const {
  constexpr std::uint32_t few = 8;  // too few windows to judge by
  if (all.compared < few || all.share() < 0.55) return false;
  return std::all_of(std::begin(of), std::end(of),
                     [](const likeness& q) { return q.compared < few || q.share() > 0.25; });
}

std::vector<quarters> likeness_of(const std::vector<image_point>& points, const std::vector<float>& windows,
                                  std::size_t placements) {
  std::vector<quarters> result(placements);
  const std::size_t count = placements == 0 ? 0 : windows.size() / placements;
  for (std::size_t p = 0; p < placements; ++p) {
    const float* const found = windows.data() + p * count;
    std::vector<float> x, y;
    for (std::size_t i = 0; i < count; ++i) {
      if (found[i] == compare_windows::none) continue;
      x.push_back(points[i].x);
      y.push_back(points[i].y);
    }
    if (x.empty()) continue;
    const auto middle = [](std::vector<float>& values) {
      const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), half, values.end());
      return *half;
    };
    const float column = middle(x), row = middle(y);
    for (std::size_t i = 0; i < count; ++i) {
      if (found[i] == compare_windows::none) continue;
      result[p].all += found[i];
      result[p].of[(points[i].x < column ? 0 : 1) + (points[i].y < row ? 0 : 2)] += found[i];
    }
  }
  return result;
}

void verdict::weigh(const std::vector<trial>& others, const std::vector<quarters>& like_of_others,
                    const image_features& query, float same_place) {
  constexpr double as_good = 0.8;
  const auto known = [&](const plane_map& s) {
    return mostly_apart(s, found.at, query) < same_place ||
           std::any_of(
               rivals.begin(), rivals.end(),
               [&](const plane_map& r) { return mostly_apart(s, r, query) < same_place; });
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    const likeness& other = like_of_others[i].all;
    if (other.compared * 3 < like.compared || known(others[i].at)) continue;
    by_chance = std::max(by_chance, other.share());
    if (other.share() >= as_good * like.share()) rivals.push_back(others[i].at);
  }
  placements = static_cast<std::uint32_t>(rivals.size()) + 1;
  // Windows overlap: about a third of them are independent.
  const double windows = like.compared / 3.,
               chance = log10_tries + log10_tail(windows, like.alike / 3., by_chance);
  found.log10_chance = std::min(0., std::max(found.log10_chance, chance));
  matched = placements == 1 && found.log10_chance < chance_most;
}

std::vector<trial> apart(std::vector<trial> known, const std::vector<trial>& trials,
                         const image_features& query, float distance, std::size_t most) {
  std::vector<trial> result;
  for (const auto& t : trials) {
    if (result.size() == most) break;
    const auto near = [&](const trial& k) { return corners_apart(k.at, t.at, query) < distance; };
    if (std::any_of(known.begin(), known.end(), near)) continue;
    known.push_back(t);
    result.push_back(t);
  }
  return result;
}

std::size_t simplest(const std::vector<trial>& trials, const std::vector<quarters>& like) {
  const auto worth = [&](std::size_t i) { return like[i].all.share() * like[i].all.alike; };
  std::size_t best = trials.size();
  for (const auto kind : {map_kind::similarity, map_kind::affine, map_kind::perspective}) {
    std::size_t of_kind = trials.size();
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (trials[i].kind == kind && (of_kind == trials.size() || worth(i) > worth(of_kind))) of_kind = i;
    }
    if (of_kind == trials.size()) continue;
    if (best == trials.size() || !like[best].good() ||
        (trials[of_kind].log10_chance < trials[best].log10_chance + chance_most &&
         worth(of_kind) > 0.95 * worth(best)))
      best = of_kind;
  }
  return best;
}

float mostly_apart(const plane_map& a, const plane_map& b, const image_features& query) {
  std::array<float, 9> off;
  for (std::size_t i = 0; i < off.size(); ++i) {
    const image_point p{static_cast<float>(query.width) * static_cast<float>(i % 3) / 2,
                        static_cast<float>(query.height) * static_cast<float>(i / 3) / 2};
    const auto q = a(p), r = b(p);
    off[i] = std::hypot(q.x - r.x, q.y - r.y);
  }
  std::nth_element(off.begin(), off.begin() + 4, off.end());
  return off[4];
}

float corners_apart(const plane_map& a, const plane_map& b, const image_features& query) {
  float most = 0;
  for (const float x : {0.f, static_cast<float>(query.width)}) {
    for (const float y : {0.f, static_cast<float>(query.height)}) {
      const auto p = a({x, y}), q = b({x, y});
      most = std::max(most, std::hypot(p.x - q.x, p.y - q.y));
    }
  }
  return most;
}

namespace {

/// The strongest points of a query that a map places on the reference, in its coordinates.
std::vector<image_point> laid_points(const plane_map& found, const image_features& query,
                                     const image_features& reference, std::size_t most) {
  std::vector<image_point> laid;
  for (const auto& p : query.points) {
    const auto at = found(p);
    if (at.x < 0 || at.y < 0 || at.x > static_cast<float>(reference.width) ||
        at.y > static_cast<float>(reference.height))
      continue;
    laid.push_back(at);
    if (laid.size() == most) break;
  }
  return laid;
}

/// A rotation around a point.
similarity turned(int degrees, image_point centre) {
  const float radians = static_cast<float>(degrees) * 0.017453292f, c = std::cos(radians),
              s = std::sin(radians);
  return {c, s, centre.x - c * centre.x + s * centre.y, centre.y - s * centre.x - c * centre.y};
}

/// How many pairs of points of two sets a shift makes coincide: votes for shifts in bins.
class shift_votes {
 public:
  static constexpr int side = 256, middle = side / 2;
  explicit shift_votes(float bin) : bin_(bin), votes_(std::size_t{side} * side) {}

  void count(const std::vector<image_point>& from, std::span<const image_point> to) {
    std::fill(votes_.begin(), votes_.end(), 0);
    for (const auto& p : from) {
      for (const auto& q : to) {
        const int column = static_cast<int>(std::floor((q.x - p.x) / bin_)) + middle,
                  row = static_cast<int>(std::floor((q.y - p.y) / bin_)) + middle;
        if (column >= 0 && row >= 0 && column < side && row < side)
          ++votes_[static_cast<std::size_t>(row * side + column)];
      }
    }
  }
  /// f(votes, shift) for each shift with at least 4 votes in the four bins that meet at a corner.
  template <class F>
  void each(const F& f) const {
    for (int row = 1; row < side; ++row) {
      for (int column = 1; column < side; ++column) {
        const std::uint32_t* const corner = votes_.data() + row * side + column;
        const std::uint32_t sum = corner[0] + corner[-1] + corner[-side] + corner[-side - 1];
        if (sum >= 4)
          f(sum,
            image_point{static_cast<float>(column - middle) * bin_, static_cast<float>(row - middle) * bin_});
      }
    }
  }

 private:
  float bin_;
  std::vector<std::uint32_t> votes_;
};

}  // namespace

std::vector<trial> other_placements(const plane_map& found, const image_features& query,
                                    const image_features& reference) {
  constexpr std::size_t points = 300, kept = 24;
  const float bin = 2 * reference.diagonal() / shift_votes::side;
  const auto laid = laid_points(found, query, reference, points);
  if (laid.empty()) return {};
  image_point centre{0, 0};
  for (const auto& p : laid) {
    centre.x += p.x / static_cast<float>(laid.size());
    centre.y += p.y / static_cast<float>(laid.size());
  }
  struct peak {
    std::uint32_t votes;
    trial at;
  };
  std::vector<peak> peaks;
  shift_votes votes(bin);
  for (const int degrees : {0, 30, 45, 60, 90, 120, 135, 150, 180, 210, 225, 240, 270, 300, 315, 330}) {
    const similarity turn = turned(degrees, centre);
    std::vector<image_point> from;
    for (const auto& p : laid) from.push_back(turn(p));
    votes.count(from, std::span(reference.points).first(std::min(points, reference.points.size())));
    votes.each([&](std::uint32_t sum, image_point shift) {
      if (degrees == 0 && std::abs(shift.x) < 2.5f * bin && std::abs(shift.y) < 2.5f * bin) return;
      const similarity moved{turn.a, turn.b, turn.x + shift.x, turn.y + shift.y};
      peaks.push_back({sum, {plane_map(moved) * found}});
    });
  }
  std::stable_sort(peaks.begin(), peaks.end(), [](auto& a, auto& b) { return a.votes > b.votes; });
  std::vector<trial> trials;
  for (const auto& p : peaks) trials.push_back(p.at);
  return apart({}, trials, query, 3 * bin, kept);
}

}  // namespace roost::tools
