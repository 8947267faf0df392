#pragma once

#include <chrono>
#include <span>
#include <string>

#include "apps/measure/sorted_groups.hpp"
#include "apps/shared/brought_to.hpp"
#include "match_verify.hpp"
#include "roost/kernels.hpp"
#include "roost/two_way_index.hpp"

/// \file
/// The steps of matcher.hpp as kernels.

namespace roost::tools {

/// A larger or smaller image: its pixels are means of samples x samples interpolated points of another.
struct resample {
  const float* from;
  int width, height, columns;
  float step;  // pixels of the other image per pixel of this one
  int samples;
  float* to;
  ROOST_FN void operator()(std::size_t i) const {
    const float part = step / static_cast<float>(samples),
                left = static_cast<float>(static_cast<int>(i) % columns) * step + part / 2 - 0.5f,
                top = static_cast<float>(static_cast<int>(i) / columns) * step + part / 2 - 0.5f;
    float sum = 0;
    for (int r = 0; r < samples; ++r) {
      for (int c = 0; c < samples; ++c)
        sum += between(from, width, height, left + static_cast<float>(c) * part,
                       top + static_cast<float>(r) * part);
    }
    to[i] = sum / static_cast<float>(samples * samples);
  }
  ROOST_FN static int inside(int at, int end) { return at < 0 ? 0 : at >= end ? end - 1 : at; }
};

/// Smooths with the binomial 1 4 6 4 1, along one axis; the border repeats.
struct smooth {
  const float* from;
  int width, height;
  bool down;
  float* to;
  ROOST_FN void operator()(std::size_t i) const {
    constexpr float weights[5] = {1 / 16.f, 4 / 16.f, 6 / 16.f, 4 / 16.f, 1 / 16.f};
    const int x = static_cast<int>(i) % width, y = static_cast<int>(i) / width;
    float sum = 0;
    for (int k = -2; k <= 2; ++k) {
      const int c = down ? x : resample::inside(x + k, width), r = down ? resample::inside(y + k, height) : y;
      sum += weights[k + 2] * from[static_cast<std::size_t>(r) * width + c];
    }
    to[i] = sum;
  }
};

/// Sobel's gradient, in shades per pixel: its length, and the products of its components; 0 at the border.
struct sobel {
  const float* from;
  int width, height;
  float *length, *xx, *xy, *yy;
  ROOST_FN void operator()(std::size_t i) const {
    const int x = static_cast<int>(i) % width, y = static_cast<int>(i) / width;
    float across = 0, along = 0;
    if (x != 0 && y != 0 && x != width - 1 && y != height - 1) {
      const auto at = [&](int dx, int dy) { return from[static_cast<std::size_t>(y + dy) * width + x + dx]; };
      across = (at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)) / 8;
      along = (at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1)) / 8;
    }
    length[i] = std::sqrt(across * across + along * along);
    xx[i] = across * across;
    xy[i] = across * along;
    yy[i] = along * along;
  }
};

/// How much the gradients around a pixel of an edge turn: the root of the smaller eigenvalue of their
/// moments.
struct turning {
  const float *xx, *xy, *yy;
  float* to;
  ROOST_FN void operator()(std::size_t i) const {
    const float half = (xx[i] - yy[i]) / 2;
    const float least = (xx[i] + yy[i]) / 2 - std::sqrt(half * half + xy[i] * xy[i]);
    to[i] = least > 0 ? std::sqrt(least) : 0;
  }
};

/// Whether a pixel is a point: on an edge, and stronger than those around it.
struct is_point {
  const float *gradient, *strength;
  int width, height, apart;
  float threshold;
  ROOST_FN bool operator()(std::size_t i) const {
    const float here = strength[i];
    const int x = static_cast<int>(i) % width, y = static_cast<int>(i) / width;
    if (!(gradient[i] > threshold) || !(here > 0) || x == 0 || y == 0 || x == width - 1 || y == height - 1)
      return false;
    for (int r = kernels::larger(y - apart, 0); r <= kernels::smaller(y + apart, height - 1); ++r) {
      for (int c = kernels::larger(x - apart, 0); c <= kernels::smaller(x + apart, width - 1); ++c) {
        const std::size_t other = static_cast<std::size_t>(r) * width + c;
        if (strength[other] > here || (strength[other] == here && other < i)) return false;
      }
    }
    return true;
  }
};

/// A number for sorting, the strongest first.
struct by_strength {
  const float* strength;
  const std::uint32_t* pixels;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const float value = strength[pixels[i]];
    std::uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));  // ascends with the value, which is positive
    return std::uint64_t{~bits} << 32 | i;
  }
};
struct pixel_number {
  const std::uint32_t* pixels;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return pixels[i]; }
};

/// Pixels as points of the original image: the maximum of a parabola through their neighbours.
struct fill_points {
  const std::uint32_t* pixels;
  const float* strength;
  int width;
  float step;
  image_point* points;
  ROOST_FN void operator()(std::size_t i) const {
    const float* const here = strength + pixels[i];
    const float x = static_cast<float>(static_cast<int>(pixels[i]) % width) + top(here[-1], here[0], here[1]),
                y = static_cast<float>(static_cast<int>(pixels[i]) / width) +
                    top(here[-width], here[0], here[width]);
    points[i] = {(x + 0.5f) * step - 0.5f, (y + 0.5f) * step - 0.5f};
  }
  ROOST_FN static float top(float before, float here, float after) {
    const float bend = before - 2 * here + after;
    return bend < 0 ? kernels::larger(-0.5f, kernels::smaller(0.5f, (before - after) / (2 * bend))) : 0.f;
  }
};

/// Which pairs of points are bases: a random share of all pairs that are neither too short nor too long.
struct is_basis {
  const image_point* points;
  std::uint32_t count;
  float least2, most2;
  std::uint32_t chance;  // in 2^32
  std::uint32_t seed;
  ROOST_FN bool fits(std::size_t pair) const {
    const image_point o = points[pair / count], e = points[pair % count];
    const float dx = e.x - o.x, dy = e.y - o.y, length2 = dx * dx + dy * dy;
    return length2 >= least2 && length2 <= most2;
  }
  ROOST_FN bool operator()(std::size_t pair) const {
    return fits(pair) && mix32(static_cast<std::uint32_t>(pair), seed) <= chance;
  }
};
struct count_fitting {
  is_basis basis;
  ROOST_FN std::uint64_t operator()(std::size_t pair) const { return basis.fits(pair) ? 1 : 0; }
};

/// Bases of an image, as pairs of points.
struct bases_ref {
  const image_point* points;
  std::uint32_t point_count;
  const std::uint32_t* pairs;
  float units;  // the length of a basis

  /// How many points a basis sees: all but its own two.
  ROOST_FN std::uint32_t seen() const { return point_count - 2; }
  /// The key of the i-th point that a basis sees.
  ROOST_FN std::uint32_t key(std::uint32_t pair, std::uint32_t i) const {
    const std::uint32_t origin = pair / point_count, end = pair % point_count;
    const std::uint32_t first = kernels::smaller(origin, end), second = kernels::larger(origin, end);
    i += i >= first ? 1 : 0;
    i += i >= second ? 1 : 0;
    return key(points[origin], points[end], points[i]);
  }
  ROOST_FN std::uint32_t key(image_point origin, image_point end, image_point p) const {
    const float ex = end.x - origin.x, ey = end.y - origin.y, px = p.x - origin.x, py = p.y - origin.y;
    const float scale = units / (ex * ex + ey * ey);
    const float u = (px * ex + py * ey) * scale, v = (py * ex - px * ey) * scale;
    constexpr int middle = 1 << (key_bits - 1);
    const int column = static_cast<int>(std::floor(u + 0.5f)) + middle,
              row = static_cast<int>(std::floor(v + 0.5f)) + middle;
    return static_cast<std::uint32_t>(row) << key_bits | static_cast<std::uint32_t>(column);
  }
};

/// The key and the value of item i of a table: the value is the number of its basis, or the basis itself.
struct item_key {
  bases_ref bases;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    const std::uint32_t seen = bases.seen();
    return bases.key(bases.pairs[i / seen], static_cast<std::uint32_t>(i % seen));
  }
};
struct item_value {
  bases_ref bases;
  bool number;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    const auto basis = static_cast<std::uint32_t>(i / bases.seen());
    return number ? basis : bases.pairs[basis];
  }
};
struct fill_items {
  item_key key;
  item_value value;
  std::uint32_t *keys, *values;
  ROOST_FN void operator()(std::size_t i) const {
    keys[i] = key(i);
    values[i] = value(i);
  }
};

struct shorten {
  const std::uint32_t* values;
  std::uint16_t* numbers;
  ROOST_FN void operator()(std::size_t i) const { numbers[i] = static_cast<std::uint16_t>(values[i]); }
};

/// The votes for a pair of bases and its number in one word: the smallest word is the best pair. A point of
/// the query can vote for a pair more than once, so votes are not bounded by the number of points.
using packed_votes = unsigned long long;  // the type of atomicMin
ROOST_FN packed_votes pack(std::uint32_t votes, std::uint32_t basis) {
  return static_cast<packed_votes>(~votes) << 32 | basis;
}

/// The best match of a query's basis, and how many votes it has cast.
struct ballot {
  packed_votes best;
  std::uint32_t cast;
  std::uint32_t votes() const { return ~static_cast<std::uint32_t>(best >> 32); }
  std::uint32_t basis() const { return static_cast<std::uint32_t>(best); }
};

/// A team counts the votes of one of the query's bases in its scratch memory. A warp processes a point at a
/// time.
template <class Table>
struct vote_shared {
  static constexpr int threads = 512;
  static constexpr std::uint32_t held = 4;  // votes that a worker reads before it casts them
  Table table;
  const std::uint32_t* values;   // of the table
  const std::uint16_t* numbers;  // the same in half the memory, since most reads are of these
  bases_ref query;
  std::uint32_t bases;  // of the reference
  ballot* ballots;
  std::uint32_t* all;  // gets all votes; or null

  struct parts {
    packed_votes* best;
    std::uint32_t *cast, *votes;
  };
  ROOST_FN parts scratch(kernels::scratch_memory& memory) const {
    parts p;
    p.best = memory.take<packed_votes>(1);
    p.cast = memory.take<std::uint32_t>(1);
    p.votes = memory.take<std::uint32_t>(bases);
    return p;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    kernels::scratch_memory pieces(memory);
    const parts p = scratch(pieces);
    for_each_of(team, bases, [&](std::uint32_t i) { p.votes[i] = 0; });
    if (team.rank() == 0) {
      *p.best = ~packed_votes{0};
      *p.cast = 0;
    }
    team.sync();
    const std::uint32_t pair = query.pairs[index];
    const auto rank = static_cast<std::uint32_t>(team.rank());
    std::uint32_t cast = 0;
    for (std::uint32_t i = rank / Team::near_size; i < query.seen(); i += Team::size / Team::near_size) {
      const value_run<std::uint32_t> run = table.find(query.key(pair, i));
      if (run.empty()) continue;
      const std::uint16_t* const found = numbers + (run.data() - values);
      constexpr std::uint32_t near = Team::near_size;
      const auto size = static_cast<std::uint32_t>(run.size()), first = rank % near;
      for (std::uint32_t k = first; k < size; k += held * near) {
        std::uint16_t basis[held] = {};
        ROOST_UNROLL
        for (std::uint32_t h = 0; h < held; ++h) {
          if (k + h * near < size) basis[h] = found[k + h * near];
        }
        ROOST_UNROLL
        for (std::uint32_t h = 0; h < held; ++h) {
          if (k + h * near < size) team.fetch_add(p.votes[basis[h]], 1u);
        }
      }
      if (first == 0) cast += size;
    }
    if (cast != 0) team.fetch_add(*p.cast, cast);
    team.sync();
    packed_votes best = ~packed_votes{0};
    for_each_of(team, bases, [&](std::uint32_t i) {
      best = kernels::smaller(best, pack(p.votes[i], i));
      if (all != nullptr) all[index * bases + i] = p.votes[i];
    });
    team.fetch_min(*p.best, best);
    team.sync();
    if (team.rank() == 0) ballots[index] = {*p.best, *p.cast};
  }
};

/// The paper's method: each worker has a basis of the query and adds its votes to an array for all of them.
template <class Table, class Index>
struct vote_global {
  Table table;
  bases_ref query;
  Index reference_index, query_index;  // two-way: the position of a basis's votes
  std::uint32_t bases, first;          // the first of the query's bases in the array
  std::uint32_t* votes;
  ballot* ballots;

  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t pair = query.pairs[first + i];
    const std::uint64_t row = *query_index.find(pair) - first;
    std::uint32_t cast = 0;
    for (std::uint32_t p = 0; p < query.seen(); ++p) {
      for (const std::uint32_t basis : table.find(query.key(pair, p))) {
        kernels::fetch_add(votes[row * bases + *reference_index.find(basis)], 1u);
        ++cast;
      }
    }
    ballots[first + row].cast = cast;
  }
};

/// The most votes of each row of that array.
struct reduce_votes {
  static constexpr int threads = 256;
  const std::uint32_t* votes;
  std::uint32_t bases, first;
  ballot* ballots;
  ROOST_FN packed_votes* scratch(kernels::scratch_memory& memory) const {
    return memory.take<packed_votes>(1);
  }
  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    kernels::scratch_memory pieces(memory);
    packed_votes* const best = scratch(pieces);
    if (team.rank() == 0) *best = ~packed_votes{0};
    team.sync();
    packed_votes mine = ~packed_votes{0};
    for_each_of(team, bases,
                [&](std::uint32_t i) { mine = kernels::smaller(mine, pack(votes[index * bases + i], i)); });
    team.fetch_min(*best, mine);
    team.sync();
    if (team.rank() == 0) ballots[first + index].best = *best;
  }
};

inline constexpr int verify_points = 4;                  // for verification, times the points that form bases
inline constexpr std::size_t shared_bases_most = 56000;  // 4 bytes each in the 227 KiB of a block
static_assert(shared_bases_most <= 1 << 16, "their numbers have 16 bits");
inline constexpr int candidates_most = 250;                        // pairs of bases that are verified
inline constexpr int working_side = 640;                           // larger images are shrunk
inline constexpr float coarseness[] = {1, 1.41f, 0.71f, 2, 0.5f};  // looks at a query, until one matches
static_assert(std::size(coarseness) == looks_most);
static_assert(units_most / (basis_least * 0.5f) < (1 << (key_bits - 1)) - 2, "all points have keys");
inline constexpr double points_apart = 0.012;  // of the diagonal

template <class Place>
class matcher_on final : public matcher {
  using table_type = frozen_multimap<std::uint32_t, std::uint32_t, Place>;
  using sorted_type = bench::sorted_groups<Place, std::uint32_t, std::uint32_t>;
  using index_type = two_way_index<std::uint32_t, Place>;
  using clock = std::chrono::steady_clock;

 public:
  matcher_on(const Place& place, const grey_image& reference, const match_options& options)
      : place_(place), options_(options) {
    auto start = clock::now();
    features_ = find_features(placed_image(place_, reference), 1, points_, shades_);
    verifier_.emplace(place_, features_, shades_.ref());
    times_.points = lap(start);
    find_bases(points_, features_, options_.share, pairs_);
    own_pairs_ = copy_to_host(place_, pairs_);
    if (options_.votes == vote_way::global && pairs_.size() != 0)
      index_ = index_type(place_, std::as_const(pairs_).span());
    place_.synchronize();
    times_.bases = lap(start);
    if (options_.votes == vote_way::shared && pairs_.size() > shared_bases_most) {
      throw invalid_argument(
          std::to_string(pairs_.size()) + " bases are more than shared memory has votes for (" +
          std::to_string(shared_bases_most) +
          "); take fewer points (in Python points=, else --k), a smaller --share or --votes global");
    }
    const bases_ref bases = ref(points_, pairs_);
    const std::size_t items = pairs_.size() == 0 ? 0 : pairs_.size() * bases.seen();
    const bool number = options_.votes == vote_way::shared;
    array<std::uint32_t, Place> keys(place_, items), values(place_, items);
    place_.for_each(items, fill_items{{bases}, {bases, number}, keys.data(), values.data()});
    const auto keys_in = std::as_const(keys).span();
    const auto values_in = std::as_const(values).span();
    if (options_.sorted) {
      sorted_.emplace(place_, keys_in, values_in);
    } else {
      table_ = table_type(place_, keys_in, values_in);
    }
    if (options_.votes == vote_way::shared) {
      numbers_ = array<std::uint16_t, Place>(place_, items);
      place_.for_each(items, shorten{table_values(), numbers_.data()});
    }
    place_.synchronize();
    times_.table = lap(start);
    facts_ = {base_points(points_), pairs_.size(), items, 0, 0, 0};
    const auto offsets = options_.sorted
                             ? copy_to_host(place_, std::span(sorted_->offsets(), sorted_->size() + 1))
                             : copy_to_host(place_, table_.offsets());
    facts_.keys = offsets.empty() ? 0 : offsets.size() - 1;
    for (std::size_t i = 1; i < offsets.size(); ++i)
      facts_.most = std::max<std::size_t>(facts_.most, offsets[i] - offsets[i - 1]);
    facts_.bytes = numbers_.bytes() + (options_.sorted ? items * 4 + facts_.keys * 12 : table_.bytes());
  }

  const match_facts& facts() const override { return facts_; }
  const match_times& times() const override { return times_; }

  match_result match(const grey_image& query) const override {
    match_result best;
    std::uint64_t votes = 0;
    double tries = 0;
    int looks = 0;
    auto start = clock::now();
    const placed_image image(place_, query);
    match_times times;
    times.points = lap(start);
    for (const float coarser : coarseness) {
      match_result now = look(image, coarser, tries, coarseness);
      votes += now.votes;
      times.points += now.times.points;
      times.bases += now.times.bases;
      times.votes += now.times.votes;
      times.verify += now.times.verify;
      if (looks == 0 || now.matched || now.placements > 1 || now.log10_chance < best.log10_chance)
        best = std::move(now);
      ++looks;
      if (best.matched || best.placements > 1) break;
    }
    best.looks = looks;
    best.votes = votes;
    best.times = times;
    return best;
  }

  match_result match_once(const grey_image& query) const override {
    double tries = 0;
    auto start = clock::now();
    const placed_image image(place_, query);
    const double brought = lap(start);
    match_result result = look(image, 1, tries, {});
    result.times.points += brought;
    return result;
  }

  std::vector<std::uint32_t> all_votes(const grey_image& query) const override {
    array<image_point, Place> points;
    placed_shades shades;
    const image_features features = find_features(placed_image(place_, query), 1, points, shades);
    array<std::uint32_t, Place> pairs;
    find_query_bases(points, features, pairs);
    array<std::uint32_t, Place> votes(place_, pairs.size() * pairs_.size());
    vote(points, pairs, votes.data());
    return copy_to_host(place_, votes);
  }

 private:
  /// An image whose pixels are in memory of the place.
  struct placed_image {
    placed_image(const Place& place, const grey_image& image)
        : width(image.width), height(image.height), pixels(brought_to(place, std::span(image.pixels))) {}
    int width, height;
    decltype(brought_to(std::declval<const Place&>(), std::span<const float>())) pixels;
  };

  /// The same image at the size at which it is analysed.
  struct placed_shades {
    array<float, Place> pixels;
    int width = 0, height = 0;
    float step = 1;
    shades_ref ref() const { return {pixels.data(), width, height, step}; }
  };

  /// Looks at the query once, and for rivals at this coarseness and at others. `tries`: pairs of bases
  /// compared so far; this call adds its own.
  match_result look(const placed_image& query, float coarser, double& tries,
                    std::span<const float> others) const {
    match_result result;
    auto start = clock::now();
    array<image_point, Place> points;
    placed_shades shades;
    const image_features features = find_features(query, coarser, points, shades);
    result.times.points = lap(start);
    array<std::uint32_t, Place> pairs;
    find_query_bases(points, features, pairs);
    result.times.bases = lap(start);
    const auto ballots = vote(points, pairs, nullptr);
    result.times.votes = lap(start);

    result.points = base_points(points);
    result.bases = pairs.size();
    const auto query_pairs = copy_to_host(place_, pairs);
    std::vector<std::uint32_t> order(ballots.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      result.votes += ballots[i].cast;
      result.best_votes.push_back(ballots[i].votes());
    }
    const std::size_t candidates = std::min<std::size_t>(candidates_most, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(candidates), order.end(),
                      [&](auto a, auto b) {
                        const auto va = ballots[a].votes(), vb = ballots[b].votes();
                        return va != vb ? va > vb : a < b;
                      });
    std::vector<similarity> tried;
    for (std::size_t i = 0; i < candidates; ++i) {
      const std::uint32_t q = query_pairs[order[i]], r = own_pairs_[ballots[order[i]].basis()];
      const std::uint32_t nq = base_points(points), nr = base_points(points_);
      tried.push_back(similarity_of(features.points[q / nq], features.points[q % nq],
                                    features_.points[r / nr], features_.points[r % nr]));
    }
    if (!order.empty()) result.most_votes = result.best_votes[order[0]];
    tries += static_cast<double>(pairs.size()) * static_cast<double>(pairs_.size());
    verdict judged = verifier_->judge(points, features, shades.ref(), tried, std::log10(std::max(1.0, tries)),
                                      options_.map);
    if (judged.matched) verifier_->hold_against_rivals(points, features, shades.ref(), judged);
    for (const float other : others) {
      if (judged.matched && other != coarser) look_for_rivals(query, other, judged);
    }
    const trial& found = judged.found;
    result.map = found.kind;
    result.to_reference = found.at;
    result.log10_chance = found.log10_chance;
    result.inliers = found.fits;
    result.covered = found.covered;
    result.rms = found.rms;
    result.matched = judged.matched;
    result.compared = judged.like.compared;
    result.alike = judged.like.alike;
    result.placements = judged.placements;
    result.query_points = features.points;
    result.reference_points = features_.points;
    result.times.verify = lap(start);
    return result;
  }

  /// Whether a query also fits elsewhere, at any rotation; each look expects a different scale.
  void look_for_rivals(const placed_image& query, float coarser, verdict& judged) const {
    array<image_point, Place> points;
    placed_shades shades;
    const image_features features = find_features(query, coarser, points, shades);
    verifier_->hold_against_rivals(points, features, shades.ref(), judged);
  }

  static double lap(clock::time_point& start) {
    const auto now = clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - start).count();
    start = now;
    return ms;
  }
  bases_ref ref(const array<image_point, Place>& points, const array<std::uint32_t, Place>& pairs) const {
    return {points.data(), base_points(points), pairs.data(), options_.units};
  }
  /// How many of an image's points, the first ones, form bases.
  std::uint32_t base_points(const array<image_point, Place>& points) const {
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(points.size(), static_cast<std::size_t>(options_.points)));
  }

  /// The strongest points of an image, also in memory of the place. `coarser`: the factor by which pixels are
  /// larger than usual.
  image_features find_features(const placed_image& image, float coarser, array<image_point, Place>& points,
                               placed_shades& shades) const {
    image_features result;
    result.width = image.width;
    result.height = image.height;
    result.coarser = coarser;
    const float usual = std::max(1.f, static_cast<float>(std::max(image.width, image.height)) / working_side);
    const float step = usual * coarser;
    const int width = static_cast<int>(static_cast<float>(image.width) / step),
              height = static_cast<int>(static_cast<float>(image.height) / step);
    points = array<image_point, Place>(place_, 0);
    if (width < 3 || height < 3) return result;
    const std::size_t n = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
    array<float, Place> a(place_, n), b(place_, n), xx(place_, n), xy(place_, n), yy(place_, n);
    const int samples = static_cast<int>(std::ceil(step));
    place_.for_each(n,
                    resample{image.pixels.data(), image.width, image.height, width, step, samples, a.data()});
    const auto soft = [&](array<float, Place>& values, array<float, Place>& free) {
      place_.for_each(n, smooth{values.data(), width, height, false, free.data()});
      place_.for_each(n, smooth{free.data(), width, height, true, values.data()});
    };
    soft(a, b);
    place_.for_each(n, sobel{a.data(), width, height, b.data(), xx.data(), xy.data(), yy.data()});
    shades = {std::move(a), width, height, step};
    array<float, Place> turns;
    const float* strength = b.data();
    if (options_.corners) {
      array<float, Place> free(place_, n);
      for (auto* const values : {&xx, &xy, &yy}) soft(*values, free);
      place_.for_each(n, turning{xx.data(), xy.data(), yy.data(), free.data()});
      turns = std::move(free);
      strength = turns.data();
    }
    const double diagonal = result.diagonal() / usual;
    const is_point point{b.data(),
                         strength,
                         width,
                         height,
                         std::max(1, static_cast<int>(diagonal * points_apart)),
                         options_.threshold > 0 ? options_.threshold : 1.f};
    const auto found = kernels::select_numbers<std::uint32_t>(place_, n, point);
    const sorted_map<std::uint64_t, std::uint32_t, Place> sorted(
        place_, computed(found.size(), by_strength{strength, found.data()}),
        computed(found.size(), pixel_number{found.data()}));
    const auto most = static_cast<std::size_t>(options_.points) * verify_points;
    points = array<image_point, Place>(place_, std::min(found.size(), most));
    place_.for_each(points.size(), fill_points{sorted.values().data(), strength, width, step, points.data()});
    result.points = copy_to_host(place_, points);
    return result;
  }

  is_basis basis(const array<image_point, Place>& points, const image_features& features, double share,
                 std::uint32_t seed) const {
    const float diagonal = features.diagonal() * features.coarser, least = basis_least * diagonal,
                most = options_.longest * diagonal;
    return {points.data(),
            base_points(points),
            least * least,
            most * most,
            static_cast<std::uint32_t>(std::clamp(share, 0.0, 1.0) * 4294967295.0),
            seed};
  }
  std::size_t all_pairs(const array<image_point, Place>& points) const {
    const std::size_t n = base_points(points);
    return n < 3 ? 0 : n * n;
  }
  void find_bases(const array<image_point, Place>& points, const image_features& features, double share,
                  array<std::uint32_t, Place>& pairs, std::uint32_t seed = 0) const {
    pairs = kernels::select_numbers<std::uint32_t>(place_, all_pairs(points),
                                                   basis(points, features, share, options_.seed + seed));
  }
  void find_query_bases(const array<image_point, Place>& points, const image_features& features,
                        array<std::uint32_t, Place>& pairs) const {
    const auto fitting =
        static_cast<double>(place_.sum(all_pairs(points), count_fitting{basis(points, features, 1, 0)}));
    find_bases(points, features, fitting == 0 ? 0 : options_.query_bases / fitting, pairs, 77);
  }

  const std::uint32_t* table_values() const {
    return options_.sorted ? sorted_->values() : table_.values().data();
  }
  template <class F>
  void with_table(const F& f) const {
    if (options_.sorted) {
      f(bench::sorted_runs<Place>{{sorted_->keys(), sorted_->offsets(), sorted_->size()}, sorted_->values()});
    } else {
      f(table_.ref());
    }
  }

  std::vector<ballot> vote(const array<image_point, Place>& points, const array<std::uint32_t, Place>& pairs,
                           std::uint32_t* all) const {
    if (pairs.size() == 0 || pairs_.size() == 0) return {};
    array<ballot, Place> ballots(place_, pairs.size());
    const auto bases = static_cast<std::uint32_t>(pairs_.size());
    const bases_ref query = ref(points, pairs);
    with_table([&](const auto& table) {
      using table_ref = std::remove_cvref_t<decltype(table)>;
      if (options_.votes == vote_way::shared) {
        const vote_shared<table_ref> kernel{
            table, table_values(), numbers_.data(), query, bases, ballots.data(), all};
        place_.launch(pairs.size(), kernels::scratch_bytes_of(kernel), kernel);
        return;
      }
      const index_type query_index(place_, std::as_const(pairs).span());
      const std::size_t rows =
          all != nullptr ? pairs.size()
                         : std::clamp<std::size_t>(options_.votes_bytes / 4 / bases, 1, pairs.size());
      array<std::uint32_t, Place> own(place_, all != nullptr ? 0 : rows * bases);
      std::uint32_t* const votes = all != nullptr ? all : own.data();
      for (std::size_t first = 0; first < pairs.size(); first += rows) {
        const std::size_t n = std::min(rows, pairs.size() - first);
        place_.fill(votes, 0, n * bases * sizeof(*votes));
        place_.for_each(n, vote_global<table_ref, typename index_type::ref_type>{
                               table, query, index_.ref(), query_index.ref(), bases,
                               static_cast<std::uint32_t>(first), votes, ballots.data()});
        const reduce_votes kernel{votes, bases, static_cast<std::uint32_t>(first), ballots.data()};
        place_.launch(n, kernels::scratch_bytes_of(kernel), kernel);
      }
    });
    return copy_to_host(place_, ballots);
  }

  Place place_;
  match_options options_;
  image_features features_;
  placed_shades shades_;
  std::optional<match_verifier<Place>> verifier_;
  array<image_point, Place> points_;
  array<std::uint32_t, Place> pairs_;
  std::vector<std::uint32_t> own_pairs_;  // the same
  index_type index_;
  table_type table_;
  std::optional<sorted_type> sorted_;
  array<std::uint16_t, Place> numbers_;  // the table's values, for votes in shared memory
  match_facts facts_;
  match_times times_;
};

}  // namespace roost::tools
