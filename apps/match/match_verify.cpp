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

std::vector<similarity> similarities_of(std::vector<patch_match> matches, float scale, float least) {
  constexpr float alike = 0.6f, turn_off = 0.35f, scale_off = 1.4f;
  constexpr std::size_t most = 128, of_each = 2;
  std::erase_if(matches, [](const patch_match& m) { return m.correlation < alike; });
  std::stable_sort(matches.begin(), matches.end(),
                   [](auto& a, auto& b) { return a.correlation > b.correlation; });
  matches.resize(std::min(matches.size(), most));
  const auto fits = [&](const similarity& s, const patch_match& m) {
    const float off = std::atan2(s.b, s.a) - m.turn;
    return std::cos(off) > std::cos(turn_off);
  };
  std::vector<similarity> result;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    std::size_t found = 0;
    for (std::size_t k = 0; k < matches.size() && found < of_each; ++k) {
      const patch_match &a = matches[i], &b = matches[k];
      if (std::hypot(a.from.x - b.from.x, a.from.y - b.from.y) < least) continue;
      const similarity s = similarity_of(a.from, b.from, a.to, b.to);
      const float size = std::hypot(s.a, s.b) / scale;
      if (size > scale_off || size < 1 / scale_off || !fits(s, a) || !fits(s, b)) continue;
      result.push_back(s);
      ++found;
    }
  }
  return result;
}

likeness& likeness::operator+=(float correlation) {
  constexpr float alike_least = 0.7f;
  ++compared;
  alike += correlation > alike_least ? 1 : 0;
  return *this;
}

bool quarters::good() const {
  constexpr std::uint32_t few = 8;  // windows that tell nothing
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
  const auto known = [&](const similarity& s) {
    return corners_apart(s, found.at, query) < same_place ||
           std::any_of(
               rivals.begin(), rivals.end(),
               [&](const similarity& r) { return corners_apart(s, r, query) < same_place; });
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

float corners_apart(const similarity& a, const similarity& b, const image_features& query) {
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

/// Points of a query where a similarity lays them, on the reference: the strongest.
std::vector<image_point> laid_points(const similarity& found, const image_features& query,
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

/// A turn around a point.
similarity turned(int degrees, image_point centre) {
  const float radians = static_cast<float>(degrees) * 0.017453292f, c = std::cos(radians),
              s = std::sin(radians);
  return {c, s, centre.x - c * centre.x + s * centre.y, centre.y - s * centre.x - c * centre.y};
}

/// How many pairs of two sets of points a shift lays onto each other: votes for shifts in bins.
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
  /// f(votes, shift) for each shift that has some: four bins that meet at a corner.
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

std::vector<trial> other_placements(const similarity& found, const image_features& query,
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
    const auto to = turn({found.x, found.y});
    votes.each([&](std::uint32_t sum, image_point shift) {
      if (degrees == 0 && std::abs(shift.x) < 2.5f * bin && std::abs(shift.y) < 2.5f * bin) return;
      peaks.push_back({sum,
                       {{turn.a * found.a - turn.b * found.b, turn.b * found.a + turn.a * found.b,
                         to.x + shift.x, to.y + shift.y}}});
    });
  }
  std::stable_sort(peaks.begin(), peaks.end(), [](auto& a, auto& b) { return a.votes > b.votes; });
  std::vector<trial> trials;
  for (const auto& p : peaks) trials.push_back(p.at);
  return apart({}, trials, query, 3 * bin, kept);
}

}  // namespace roost::tools
