#pragma once

#include <chrono>

#include "groups.hpp"
#include "matcher.hpp"
#include "roost/detail/partition/select.hpp"
#include "roost/two_way_index.hpp"

/// \file
/// The steps of matcher.hpp as kernels.

namespace roost::tools {

/// Half the shades left and right of it, and so on: rows of a smaller image whose pixels are means of `step`
/// x `step` ones.
struct shrink {
  const float* from;
  int width, step, columns;
  float* to;
  ROOST_FN void operator()(std::size_t i) const {
    const int x = static_cast<int>(i) % columns * step, y = static_cast<int>(i) / columns * step;
    float sum = 0;
    for (int r = 0; r < step; ++r) {
      for (int c = 0; c < step; ++c) sum += from[static_cast<std::size_t>(y + r) * width + x + c];
    }
    to[i] = sum / static_cast<float>(step * step);
  }
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
      const int c = down ? x : inside(x + k, width), r = down ? inside(y + k, height) : y;
      sum += weights[k + 2] * from[static_cast<std::size_t>(r) * width + c];
    }
    to[i] = sum;
  }
  ROOST_FN static int inside(int at, int end) { return at < 0 ? 0 : at >= end ? end - 1 : at; }
};

/// The length of Sobel's gradient, in shades a pixel; none at the border.
struct sobel {
  const float* from;
  int width, height;
  float* to;
  ROOST_FN void operator()(std::size_t i) const {
    const int x = static_cast<int>(i) % width, y = static_cast<int>(i) / width;
    to[i] = 0;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) return;
    const auto at = [&](int dx, int dy) { return from[static_cast<std::size_t>(y + dy) * width + x + dx]; };
    const float across = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1),
                along = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
    to[i] = std::sqrt(across * across + along * along) / 8;
  }
};

/// Whether a pixel is an edge: above the threshold, and the strongest around.
struct is_edge {
  const float* gradient;
  int width, height, apart;
  float threshold;
  ROOST_FN bool operator()(std::size_t i) const {
    const float here = gradient[i];
    if (!(here > threshold)) return false;
    const int x = static_cast<int>(i) % width, y = static_cast<int>(i) / width;
    for (int r = detail::larger(y - apart, 0); r <= detail::smaller(y + apart, height - 1); ++r) {
      for (int c = detail::larger(x - apart, 0); c <= detail::smaller(x + apart, width - 1); ++c) {
        const std::size_t other = static_cast<std::size_t>(r) * width + c;
        if (gradient[other] > here || (gradient[other] == here && other < i)) return false;
      }
    }
    return true;
  }
};

/// The strongest first: a number for sorting.
struct strength {
  const float* gradient;
  const std::uint32_t* pixels;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const float value = gradient[pixels[i]];
    std::uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));  // ascends with the value, which is positive
    return std::uint64_t{~bits} << 32 | i;
  }
};
struct pixel_number {
  const std::uint32_t* pixels;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return pixels[i]; }
};

/// Pixels as points of the image that was shrunk.
struct fill_points {
  const std::uint32_t* pixels;
  int width, step;
  image_point* points;
  ROOST_FN void operator()(std::size_t i) const {
    const float middle = static_cast<float>(step - 1) / 2;
    points[i] = {static_cast<float>(static_cast<int>(pixels[i]) % width * step) + middle,
                 static_cast<float>(static_cast<int>(pixels[i]) / width * step) + middle};
  }
};

/// Which pairs of points are bases: a share of all pairs, by chance, that are neither too short nor too long.
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

  /// So many points does a basis see: all but its own two.
  ROOST_FN std::uint32_t seen() const { return point_count - 2; }
  /// The key of the i-th point that a basis sees.
  ROOST_FN std::uint32_t key(std::uint32_t pair, std::uint32_t i) const {
    const std::uint32_t origin = pair / point_count, end = pair % point_count;
    const std::uint32_t first = detail::smaller(origin, end), second = detail::larger(origin, end);
    i += i >= first ? 1 : 0;
    i += i >= second ? 1 : 0;
    return key(points[origin], points[end], points[i]);
  }
  ROOST_FN static std::uint32_t key(image_point origin, image_point end, image_point p) {
    const float ex = end.x - origin.x, ey = end.y - origin.y, px = p.x - origin.x, py = p.y - origin.y;
    const float scale = basis_units / (ex * ex + ey * ey);
    const float u = (px * ex + py * ey) * scale, v = (py * ex - px * ey) * scale;
    constexpr int middle = 1 << (key_bits - 1);
    const int column = static_cast<int>(std::floor(u + 0.5f)) + middle,
              row = static_cast<int>(std::floor(v + 0.5f)) + middle;
    return static_cast<std::uint32_t>(row) << key_bits | static_cast<std::uint32_t>(column);
  }
};
static_assert(basis_units / basis_least < (1 << (key_bits - 1)) - 2, "all points have keys");

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

/// Votes for one pair of bases, the most first, in one word: the lesser is the better.
inline constexpr std::uint32_t vote_bits = 10;
ROOST_FN std::uint32_t packed_votes(std::uint32_t votes, std::uint32_t basis) {
  return ((1u << vote_bits) - 1 - votes) << (32 - vote_bits) | basis;
}
ROOST_FN std::uint32_t votes_of(std::uint32_t packed) {
  return (1u << vote_bits) - 1 - (packed >> (32 - vote_bits));
}
ROOST_FN std::uint32_t basis_of(std::uint32_t packed) { return packed & ((1u << (32 - vote_bits)) - 1); }

/// What a query's basis finds best, and how many votes it has cast.
struct ballot {
  std::uint32_t best;
  std::uint32_t cast;
};

/// A team counts the votes of a basis of the query in its scratch memory. A warp has a point at a time.
template <class Table>
struct vote_shared {
  static constexpr int threads = 512;
  Table table;
  bases_ref query;
  std::uint32_t bases;  // of the reference
  ballot* ballots;
  std::uint32_t* all;  // where all votes go, or null

  struct parts {
    std::uint32_t *votes, *words;
  };
  ROOST_FN parts scratch(detail::scratch_memory& memory) const {
    parts p;
    p.votes = memory.take<std::uint32_t>(bases);
    p.words = memory.take<std::uint32_t>(2);
    return p;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    detail::scratch_memory pieces(memory);
    const parts p = scratch(pieces);
    for_each_of(team, bases, [&](std::uint32_t i) { p.votes[i] = 0; });
    if (team.rank() == 0) {
      p.words[0] = ~0u;
      p.words[1] = 0;
    }
    team.sync();
    const std::uint32_t pair = query.pairs[index];
    const auto rank = static_cast<std::uint32_t>(team.rank());
    std::uint32_t cast = 0;
    for (std::uint32_t i = rank / Team::near_size; i < query.seen(); i += Team::size / Team::near_size) {
      const value_run<std::uint32_t> run = table.find(query.key(pair, i));
      for (std::uint64_t k = rank % Team::near_size; k < run.size(); k += Team::near_size) {
        team.fetch_add(p.votes[run[k]], 1u);
        ++cast;
      }
    }
    if (cast != 0) team.fetch_add(p.words[1], cast);
    team.sync();
    std::uint32_t best = ~0u;
    for_each_of(team, bases, [&](std::uint32_t i) {
      best = detail::smaller(best, packed_votes(p.votes[i], i));
      if (all != nullptr) all[index * bases + i] = p.votes[i];
    });
    team.fetch_min(p.words[0], best);
    team.sync();
    if (team.rank() == 0) ballots[index] = {p.words[0], p.words[1]};
  }
};

/// The paper's way: a worker has a basis of the query and votes into an array for all of them.
template <class Table, class Index>
struct vote_global {
  Table table;
  bases_ref query;
  Index reference_index, query_index;  // two-way: where a basis has its votes
  std::uint32_t bases, first;          // the first of the query's bases in the array
  std::uint32_t* votes;
  ballot* ballots;

  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t pair = query.pairs[first + i];
    const std::uint64_t row = *query_index.find(pair) - first;
    std::uint32_t cast = 0;
    for (std::uint32_t p = 0; p < query.seen(); ++p) {
      for (const std::uint32_t basis : table.find(query.key(pair, p))) {
        detail::fetch_add(votes[row * bases + *reference_index.find(basis)], 1u);
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
  ROOST_FN std::uint32_t* scratch(detail::scratch_memory& memory) const {
    return memory.take<std::uint32_t>(1);
  }
  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    detail::scratch_memory pieces(memory);
    std::uint32_t* const best = scratch(pieces);
    if (team.rank() == 0) *best = ~0u;
    team.sync();
    std::uint32_t mine = ~0u;
    for_each_of(team, bases, [&](std::uint32_t i) {
      mine = detail::smaller(mine, packed_votes(votes[index * bases + i], i));
    });
    team.fetch_min(*best, mine);
    team.sync();
    if (team.rank() == 0) ballots[first + index].best = *best;
  }
};

/// Whether points of the query lie on points of the reference.
class point_grid {
 public:
  point_grid(const std::vector<image_point>& points, float reach);
  /// The nearest point within the reach, or -1.
  int nearest(image_point p) const;

 private:
  const std::vector<image_point>& points_;
  float reach_;
  int columns_ = 0, rows_ = 0;
  std::vector<std::uint32_t> begin_, order_;
};

/// The verified best of candidates, the most votes first: host code, as there is little to do.
struct image_features {
  std::vector<image_point> points;  // the strongest first; the table has the first ones of them
  int width = 0, height = 0;
  float diagonal() const;
};
void verify_match(const image_features& reference, const image_features& query,
                  const std::vector<similarity>& candidates, double log10_tries, match_result& result);
similarity similarity_of(image_point a, image_point b, image_point to_a, image_point to_b);

inline constexpr int verify_points = 4;       // times as many points as bases are made of, for verification
inline constexpr int candidates_most = 48;    // pairs of bases that are verified
inline constexpr int working_side = 640;      // larger images are shrunk
inline constexpr double edges_apart = 0.012;  // of the diagonal

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
    features_ = find_features(reference, points_);
    times_.points = lap(start);
    find_bases(points_, features_, options_.share, pairs_);
    if (options_.votes == vote_way::global && pairs_.size() != 0)
      index_ = index_type(place_, std::as_const(pairs_).span());
    place_.synchronize();
    times_.bases = lap(start);
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
    place_.synchronize();
    times_.table = lap(start);
    facts_ = {points_.size(), pairs_.size(), items, 0, 0, 0};
    const auto offsets = options_.sorted
                             ? copy_to_host(place_, std::span(sorted_->offsets(), sorted_->size() + 1))
                             : copy_to_host(place_, table_.offsets());
    facts_.keys = offsets.empty() ? 0 : offsets.size() - 1;
    for (std::size_t i = 1; i < offsets.size(); ++i)
      facts_.most = std::max<std::size_t>(facts_.most, offsets[i] - offsets[i - 1]);
    facts_.bytes = options_.sorted ? items * 4 + facts_.keys * 12 : table_.bytes();
  }

  const match_facts& facts() const override { return facts_; }
  const match_times& times() const override { return times_; }

  match_result match(const grey_image& query) const override {
    match_result result;
    auto start = clock::now();
    array<image_point, Place> points;
    const image_features features = find_features(query, points);
    result.times.points = lap(start);
    array<std::uint32_t, Place> pairs;
    find_query_bases(points, features, pairs);
    result.times.bases = lap(start);
    const auto ballots = vote(points, pairs, nullptr);
    result.times.votes = lap(start);

    result.points = points.size();
    result.bases = pairs.size();
    const auto query_pairs = copy_to_host(place_, pairs), own_pairs = copy_to_host(place_, pairs_);
    std::vector<std::uint32_t> order(ballots.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      result.votes += ballots[i].cast;
      result.best_votes.push_back(votes_of(ballots[i].best));
    }
    const std::size_t candidates = std::min<std::size_t>(candidates_most, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(candidates), order.end(),
                      [&](auto a, auto b) {
                        const auto va = votes_of(ballots[a].best), vb = votes_of(ballots[b].best);
                        return va != vb ? va > vb : a < b;
                      });
    std::vector<similarity> tried;
    for (std::size_t i = 0; i < candidates; ++i) {
      const std::uint32_t q = query_pairs[order[i]], r = own_pairs[basis_of(ballots[order[i]].best)];
      const auto nq = static_cast<std::uint32_t>(points.size()),
                 nr = static_cast<std::uint32_t>(points_.size());
      tried.push_back(similarity_of(features.points[q / nq], features.points[q % nq],
                                    features_.points[r / nr], features_.points[r % nr]));
    }
    if (!order.empty()) result.most_votes = result.best_votes[order[0]];
    verify_match(
        features_, features, tried,
        std::log10(std::max(1.0, static_cast<double>(pairs.size()) * static_cast<double>(pairs_.size()))),
        result);
    result.times.verify = lap(start);
    return result;
  }

  std::vector<std::uint32_t> all_votes(const grey_image& query) const override {
    array<image_point, Place> points;
    const image_features features = find_features(query, points);
    array<std::uint32_t, Place> pairs;
    find_query_bases(points, features, pairs);
    array<std::uint32_t, Place> votes(place_, pairs.size() * pairs_.size());
    vote(points, pairs, votes.data());
    return copy_to_host(place_, votes);
  }

 private:
  static double lap(clock::time_point& start) {
    const auto now = clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - start).count();
    start = now;
    return ms;
  }
  static bases_ref ref(const array<image_point, Place>& points, const array<std::uint32_t, Place>& pairs) {
    return {points.data(), static_cast<std::uint32_t>(points.size()), pairs.data()};
  }

  /// The strongest edges of an image; `points`: those that bases are made of.
  image_features find_features(const grey_image& image, array<image_point, Place>& points) const {
    image_features result;
    result.width = image.width;
    result.height = image.height;
    const int side = std::max(image.width, image.height),
              step = std::max(1, (side + working_side - 1) / working_side);
    const int width = image.width / step, height = image.height / step;
    points = array<image_point, Place>(place_, 0);
    if (width < 3 || height < 3) return result;
    const std::size_t n = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
    const auto full = copy_to(place_, image.pixels);
    array<float, Place> a(place_, n), b(place_, n);
    place_.for_each(n, shrink{full.data(), image.width, step, width, a.data()});
    place_.for_each(n, smooth{a.data(), width, height, false, b.data()});
    place_.for_each(n, smooth{b.data(), width, height, true, a.data()});
    place_.for_each(n, sobel{a.data(), width, height, b.data()});
    const double diagonal = std::hypot(width, height);
    const is_edge edge{b.data(), width, height, std::max(1, static_cast<int>(diagonal * edges_apart)),
                       options_.threshold > 0 ? options_.threshold : 1.f};
    const auto edges = detail::select_numbers<std::uint32_t>(place_, n, edge);
    const sorted_map<std::uint64_t, std::uint32_t, Place> sorted(
        place_, computed(edges.size(), strength{b.data(), edges.data()}),
        computed(edges.size(), pixel_number{edges.data()}));
    const auto most = static_cast<std::size_t>(options_.points) * verify_points;
    array<image_point, Place> all(place_, std::min(edges.size(), most));
    place_.for_each(all.size(), fill_points{sorted.values().data(), width, step, all.data()});
    result.points = copy_to_host(place_, all);
    points = array<image_point, Place>(
        place_, std::min<std::size_t>(all.size(), static_cast<std::size_t>(options_.points)));
    place_.copy(points.data(), all.data(), points.bytes());
    return result;
  }

  is_basis basis(const array<image_point, Place>& points, const image_features& features, double share,
                 std::uint32_t seed) const {
    const float diagonal = features.diagonal(), least = basis_least * diagonal, most = basis_most * diagonal;
    return {points.data(),
            static_cast<std::uint32_t>(points.size()),
            least * least,
            most * most,
            static_cast<std::uint32_t>(std::clamp(share, 0.0, 1.0) * 4294967295.0),
            seed};
  }
  void find_bases(const array<image_point, Place>& points, const image_features& features, double share,
                  array<std::uint32_t, Place>& pairs, std::uint32_t seed = 0) const {
    const std::size_t all = points.size() < 3 ? 0 : points.size() * points.size();
    pairs = detail::select_numbers<std::uint32_t>(place_, all,
                                                  basis(points, features, share, options_.seed + seed));
  }
  void find_query_bases(const array<image_point, Place>& points, const image_features& features,
                        array<std::uint32_t, Place>& pairs) const {
    const std::size_t all = points.size() < 3 ? 0 : points.size() * points.size();
    const auto fitting = static_cast<double>(place_.sum(all, count_fitting{basis(points, features, 1, 0)}));
    find_bases(points, features, fitting == 0 ? 0 : options_.query_bases / fitting, pairs, 77);
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
        const vote_shared<table_ref> kernel{table, query, bases, ballots.data(), all};
        place_.launch(pairs.size(), detail::scratch_bytes_of(kernel), kernel);
        return;
      }
      constexpr std::size_t room = std::size_t{256} << 20;
      const index_type query_index(place_, std::as_const(pairs).span());
      const std::size_t rows =
          all != nullptr ? pairs.size() : std::clamp<std::size_t>(room / 4 / bases, 1, pairs.size());
      array<std::uint32_t, Place> own(place_, all != nullptr ? 0 : rows * bases);
      std::uint32_t* const votes = all != nullptr ? all : own.data();
      for (std::size_t first = 0; first < pairs.size(); first += rows) {
        const std::size_t n = std::min(rows, pairs.size() - first);
        place_.fill(votes, 0, n * bases * sizeof(*votes));
        place_.for_each(n, vote_global<table_ref, typename index_type::ref_type>{
                               table, query, index_.ref(), query_index.ref(), bases,
                               static_cast<std::uint32_t>(first), votes, ballots.data()});
        const reduce_votes kernel{votes, bases, static_cast<std::uint32_t>(first), ballots.data()};
        place_.launch(n, detail::scratch_bytes_of(kernel), kernel);
      }
    });
    return copy_to_host(place_, ballots);
  }

  Place place_;
  match_options options_;
  image_features features_;
  array<image_point, Place> points_;
  array<std::uint32_t, Place> pairs_;
  index_type index_;
  table_type table_;
  std::optional<sorted_type> sorted_;
  match_facts facts_;
  match_times times_;
};

}  // namespace roost::tools
