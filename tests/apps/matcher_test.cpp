#ifndef __CUDACC__  // the command's own test runs it on both places

#include "apps/match/matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <roost/error.hpp>
#include <roost/hash.hpp>

#include "apps/match/match_verify.hpp"
#include "apps/reproduce/drawn_scene.hpp"
#include "support/keys.hpp"

// Images found in others whose similarity is known, and images that are in none.

namespace test {
namespace {

namespace tools = roost::tools;
using tools::around_middle;
using tools::grey_image;
using tools::image_point;
using tools::map_kind;
using tools::photograph;
using tools::plane_map;
using tools::similarity;

double corners_off(const plane_map& s, const plane_map& truth, int width, int height) {
  double most = 0;
  for (int i = 0; i < 4; ++i) {
    const image_point p{i % 2 == 0 ? 0 : static_cast<float>(width - 1),
                        i < 2 ? 0 : static_cast<float>(height - 1)};
    const auto a = s(p), b = truth(p);
    most = std::max<double>(most, std::hypot(a.x - b.x, a.y - b.y));
  }
  return most;
}

tools::match_options small() {
  tools::match_options options;
  options.points = 100;
  options.query_bases = 600;
  return options;
}
constexpr int width = 320, height = 240;
const similarity plain;

void with(const grey_image& reference, const tools::match_options& options, const tools::use_matcher& use) {
  tools::with_matcher_on_host(2, reference, options, use);
}

TEST(matcher, finds_turned_scaled_shifted_images_in_other_light) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> part(0, 1);
  std::vector<double> off;
  int tries = 0;
  for (std::uint32_t seed = 1; seed <= (sanitized ? 1u : 4u); ++seed) {
    const tools::drawn_scene world(seed, width, height);
    with(photograph(world, plain, width, height), small(), [&](const tools::matcher& matcher) {
      for (int i = 0; i < (sanitized ? 2 : 5); ++i, ++tries) {
        const float scale = std::exp2(2 * part(random) - 1), larger = std::max(1.f, 1 / scale);
        const int w = scale < 1 ? width : static_cast<int>(width * larger / scale), h = w * 3 / 4;
        const auto truth = around_middle(scale, 6.2832f * part(random), (part(random) - 0.5f) * 0.15f * width,
                                         (part(random) - 0.5f) * 0.15f * height, w, h, width, height);
        const auto found = matcher.match(
            photograph(world, truth, w, h, 0.7f + 0.5f * part(random), 3, static_cast<std::uint32_t>(tries)));
        if (!found.matched) continue;
        off.push_back(corners_off(found.to_reference, truth, w, h));
        EXPECT_LT(off.back(), 12) << "scale " << scale << " of scene " << seed;
        EXPECT_LE(found.inliers, found.covered);
        EXPECT_GT(found.votes, 0u);
      }
    });
  }
  EXPECT_GE(off.size(), static_cast<std::size_t>(tries - tries / 20));
  std::sort(off.begin(), off.end());
  ASSERT_FALSE(off.empty());
  EXPECT_LE(off[off.size() / 2], 2);
}

TEST(matcher, accepts_no_other_image) {  // 210 pairs
  std::vector<grey_image> images;
  for (std::uint32_t seed = 0; seed < (sanitized ? 2u : 15u); ++seed)
    images.push_back(photograph(tools::drawn_scene(100 + seed, width, height), plain, width, height));
  for (std::size_t i = 0; i < images.size(); ++i) {
    with(images[i], small(), [&](const tools::matcher& matcher) {
      for (std::size_t j = 0; j < images.size(); ++j) {
        if (i == j) continue;
        const auto found =
            j == (i + 1) % images.size() ? matcher.match(images[j]) : matcher.match_once(images[j]);
        EXPECT_FALSE(found.matched) << j << " in " << i << ", chance 10^" << found.log10_chance;
      }
    });
  }
}

TEST(matcher, mirrored_is_not_similar_but_upside_down_and_blurred_are) {
  const tools::drawn_scene world(2, width, height);
  const auto image = photograph(world, plain, width, height);
  auto mirrored = image, turned = image, blurred = image;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    mirrored.pixels[i] = image.pixels[i / width * width + width - 1 - i % width];
    turned.pixels[i] = image.pixels[image.pixels.size() - 1 - i];
    float sum = 0;
    for (std::size_t k = 0; k < 9; ++k)
      sum += image.pixels[std::min(i + k % 3 + k / 3 * width, image.pixels.size() - 1)];
    blurred.pixels[i] = sum / 9;
  }
  with(image, small(), [&](const tools::matcher& matcher) {
    EXPECT_FALSE(matcher.match(mirrored).matched);
    const auto around = matcher.match(turned);
    ASSERT_TRUE(around.matched);
    EXPECT_EQ(around.map, map_kind::similarity);
    EXPECT_NEAR(around.to_reference.m[0], -1, 0.01);
    EXPECT_NEAR(around.to_reference.m[2], width - 1, 2);
    EXPECT_TRUE(matcher.match(blurred).matched);
  });
}

/// All pairs of points as bases, and every point's key for each: votes without a table.
std::vector<std::uint32_t> votes_by_hand(std::vector<image_point> reference, std::vector<image_point> query,
                                         double diagonal, const tools::match_options& options) {
  struct basis {
    std::size_t origin, end;
    std::vector<std::pair<long, long>> keys;
  };
  const auto bases_of = [&](const std::vector<image_point>& points) {
    std::vector<basis> bases;
    for (std::size_t i = 0; i < points.size(); ++i) {
      for (std::size_t j = 0; j < points.size(); ++j) {
        const float ex = points[j].x - points[i].x, ey = points[j].y - points[i].y, norm = ex * ex + ey * ey;
        if (std::sqrt(norm) < tools::basis_least * diagonal || std::sqrt(norm) > options.longest * diagonal)
          continue;
        bases.push_back({i, j, {}});
        for (std::size_t k = 0; k < points.size(); ++k) {
          if (k == i || k == j) continue;
          const float px = points[k].x - points[i].x, py = points[k].y - points[i].y;
          const float scale = options.units / norm;
          bases.back().keys.emplace_back(std::lround(std::floor((px * ex + py * ey) * scale + 0.5f)),
                                         std::lround(std::floor((py * ex - px * ey) * scale + 0.5f)));
        }
      }
    }
    return bases;
  };
  const auto ours = bases_of(reference), theirs = bases_of(query);
  std::vector<std::uint32_t> votes;
  for (const auto& q : theirs) {
    for (const auto& r : ours) {
      std::uint32_t count = 0;
      for (const auto& key : q.keys)
        count += static_cast<std::uint32_t>(std::count(r.keys.begin(), r.keys.end(), key));
      votes.push_back(count);
    }
  }
  return votes;
}

TEST(matcher, votes_are_those_of_all_pairs_compared_by_hand) {
  const tools::drawn_scene world(5, width, height);
  const auto reference = photograph(world, plain, width, height);
  const auto query =
      photograph(world, around_middle(0.9f, 1, 5, 3, width, height, width, height), width, height);
  tools::match_options options;
  options.points = 13;
  options.longest = 0.7f;
  options.units = 16;
  options.share = 1;  // every pair that fits
  options.query_bases = 1000000;
  options.votes_bytes = 5000;  // some rows of the array, several times
  std::vector<std::uint32_t> expected;
  for (const bool sorted : {false, true}) {
    for (const auto way : {tools::vote_way::shared, tools::vote_way::global}) {
      options.sorted = sorted;
      options.votes = way;
      with(reference, options, [&](const tools::matcher& matcher) {
        if (expected.empty()) {
          const auto found = matcher.match_once(query);
          const auto first = [&](std::vector<image_point> points) {
            points.resize(std::min<std::size_t>(points.size(), 13));
            return points;
          };
          expected = votes_by_hand(first(found.reference_points), first(found.query_points),
                                   std::hypot(width, height), options);
          EXPECT_GT(*std::max_element(expected.begin(), expected.end()), 4u);
        }
        const auto votes = matcher.all_votes(query);
        EXPECT_EQ(votes, expected);
        // The best of each basis, and all that were cast.
        const auto found = matcher.match_once(query);
        ASSERT_EQ(found.best_votes.size() * matcher.facts().bases, votes.size());
        std::uint64_t sum = 0;
        for (const auto v : votes) sum += v;
        EXPECT_EQ(found.votes, sum);
        for (std::size_t q = 0; q < found.best_votes.size(); ++q) {
          const auto row = votes.begin() + static_cast<std::ptrdiff_t>(q * matcher.facts().bases);
          EXPECT_EQ(found.best_votes[q],
                    *std::max_element(row, row + static_cast<std::ptrdiff_t>(matcher.facts().bases)));
        }
      });
    }
  }
}

/// How many points of a query fall onto a reference, and onto points of it, of which each has one.
std::pair<std::uint32_t, std::uint32_t> explained(const tools::image_features& reference,
                                                  const std::vector<image_point>& query, const plane_map& s,
                                                  float reach) {
  std::uint32_t covered = 0;
  std::vector<bool> taken(reference.points.size());
  for (const auto& p : query) {
    const auto at = s(p);
    if (at.x < 0 || at.y < 0 || at.x > width || at.y > height) continue;
    ++covered;
    const auto off = [&](const image_point& q) {
      return (q.x - at.x) * (q.x - at.x) + (q.y - at.y) * (q.y - at.y);
    };
    const auto nearest = std::min_element(reference.points.begin(), reference.points.end(),
                                          [&](auto& a, auto& b) { return off(a) < off(b); });
    if (off(*nearest) < reach * reach)
      taken[static_cast<std::size_t>(nearest - reference.points.begin())] = true;
  }
  return {covered, static_cast<std::uint32_t>(std::count(taken.begin(), taken.end(), true))};
}

TEST(matcher, one_similarity_of_many_is_recognised_and_refined) {
  std::mt19937 random(6);
  std::uniform_real_distribution<float> part(0, 1);
  const auto anywhere = [&] { return image_point{width * part(random), height * part(random)}; };
  const auto truth = around_middle(0.8f, 1, 9, -4, width, height, width, height);
  tools::image_features reference{{}, width, height};
  std::vector<image_point> query;
  for (int i = 0; i < 300; ++i) {
    query.push_back(anywhere());
    const auto at = truth(query.back());
    reference.points.push_back(i < 150 ? image_point{at.x + part(random) - 0.5f, at.y + part(random) - 0.5f}
                                       : anywhere());
  }
  std::erase_if(reference.points, [](auto& p) { return p.x < 0 || p.y < 0 || p.x > width || p.y > height; });
  std::vector<similarity> wrong;
  std::vector<tools::trial> trials{{truth}};
  for (int i = 0; i < 60; ++i) {
    wrong.push_back(around_middle(0.3f + 2 * part(random), 6 * part(random), 40 * part(random),
                                  40 * part(random), width, height, width, height));
    trials.push_back({wrong.back()});
  }
  auto right = wrong;
  right.push_back({truth.a * 1.004f, truth.b, truth.x + 1, truth.y - 1});

  const roost::host place(2);
  const tools::match_verifier<roost::host> verifier(place, reference, {});
  const auto points = roost::copy_to(place, query);
  verifier.run(points, trials, 0, false);
  for (const auto& t : trials) {
    const auto [covered, fits] = explained(reference, query, t.at, std::max(2.f, 0.006f * 400));
    EXPECT_EQ(t.covered, covered);
    EXPECT_EQ(t.fits, fits);
  }
  EXPECT_LT(trials[0].log10_chance, -30);

  const auto found = verifier.best(points, right, 3).at(0), none = verifier.best(points, wrong, 3).at(0);
  EXPECT_LT(corners_off(found.at, truth, width, height), 0.5);
  EXPECT_LT(found.rms, 0.7);  // noise of 0.41 pixels
  EXPECT_GE(found.fits, 100u);
  EXPECT_LT(found.log10_chance, -30);
  EXPECT_GT(none.log10_chance, -2);
  EXPECT_TRUE(verifier.best(points, {}, 3).empty());
}

/// An image of f(x, y), softened as a camera does.
template <class F>
grey_image drawn(int columns, int rows, const F& f) {
  grey_image image{columns, rows, {}};
  for (int i = 0; i < columns * rows; ++i) {
    float sum = 0;
    for (int k = 0; k < 9; ++k)
      sum += f(static_cast<float>(i % columns) + static_cast<float>(k % 3) / 3,
               static_cast<float>(i / columns) + static_cast<float>(k / 3) / 3);
    image.pixels.push_back(sum / 9);
  }
  return image;
}

/// Lines of letters, each with strokes of its own.
float page(std::uint32_t seed, float x, float y) {
  const auto column = static_cast<std::uint32_t>(std::floor(x / 9)),
             row = static_cast<std::uint32_t>(std::floor(y / 15));
  const auto stroke = static_cast<std::uint32_t>(std::fmod(x, 9) / 2.25f) +
                      4 * static_cast<std::uint32_t>(std::fmod(y, 15) / 2.5f);
  const std::uint32_t letter = roost::mix32(row * 1000 + column, seed);
  return stroke < 16 && letter % 6 != 0 && (letter >> (stroke % 16 + 4) & 1) != 0 ? 20.f : 240.f;
}

TEST(matcher, a_page_is_found_by_its_letters_and_not_by_its_lines) {
  const auto of = [](std::uint32_t seed, const similarity& to_page) {
    return drawn(width, height, [&](float x, float y) {
      const auto p = to_page({x, y});
      return p.x < 0 || p.y < 0 ? 240.f : page(seed, p.x, p.y);
    });
  };
  with(of(1, plain), small(), [&](const tools::matcher& matcher) {
    const auto truth = around_middle(0.9f, 0.3f, 8, 4, width, height, width, height);
    const auto found = matcher.match(of(1, truth));
    ASSERT_TRUE(found.matched);
    EXPECT_LT(corners_off(found.to_reference, truth, width, height), 2);
    EXPECT_GT(found.alike * 10, found.compared * 8);
    for (std::uint32_t other = 2; other < (sanitized ? 3u : 6u); ++other)
      EXPECT_FALSE(matcher.match(of(other, plain)).matched) << other;
    EXPECT_FALSE(matcher.match(of(1, similarity{1, 0, 0, height})).matched) << "what is below";
  });
}

TEST(matcher, a_tiling_has_many_places_and_no_match) {
  const auto board = [](float side, float x, float y) {
    return (static_cast<int>(std::floor(x / side)) + static_cast<int>(std::floor(y / side))) % 2 == 0 ? 30.f
                                                                                                      : 220.f;
  };
  const auto bricks = [](float side, float x, float y) {
    const float row = std::floor(y / side), along = std::fmod(x + std::fmod(row, 2.f) * side, 2 * side);
    return std::fmod(y, side) < side / 5 || along < side / 5 ? 60.f : 190.f;
  };
  const auto each = [&](const auto& tiling) {
    const auto of = [&](float side, float dx) {
      return drawn(width, height, [&](float x, float y) { return tiling(side, x + dx, y); });
    };
    with(of(24, 0), small(), [&](const tools::matcher& matcher) {
      std::size_t most = 0;
      for (const auto& query : {of(24, 0), of(24, 13), of(31, 5)}) {
        const auto found = matcher.match(query);
        EXPECT_FALSE(found.matched);
        most = std::max(most, found.placements);
      }
      EXPECT_GT(most, 3u);
    });
  };
  if (!sanitized) each(board);
  each(bricks);
}

TEST(matcher, a_picture_with_a_symmetry_has_several_places) {
  const tools::drawn_scene world(8, width, height);
  const auto wheel = [&](float parts) {
    return drawn(height, height, [&](float x, float y) {
      const float u = x - height / 2, v = y - height / 2, r = std::hypot(u, v),
                  turn = std::fmod(std::atan2(v, u) + 6.2831853f, 6.2831853f / parts);
      return r > height * 0.48f ? 128.f : world({width / 2 + r * std::cos(turn), r * std::sin(turn)});
    });
  };
  for (const float parts : {2.f, 5.f, 7.f}) {
    const auto image = wheel(parts);
    with(image, small(), [&](const tools::matcher& matcher) {
      const auto found = matcher.match(image);
      EXPECT_FALSE(found.matched) << parts;
      EXPECT_EQ(found.placements, static_cast<std::size_t>(parts));
    });
  }
}

TEST(matcher, what_is_twice_in_a_picture_has_two_places) {
  const tools::drawn_scene world(9, width, height), motif(10, 150, 120);
  constexpr int w = 150, h = 120;
  const auto query = drawn(w, h, [&](float x, float y) { return motif({x, y}); });
  struct second {
    float scale, turn;
  };
  for (const auto& [scale, turn] : {second{0, 0}, second{1, 0.3f}, second{1.5f, 0}, second{0.8f, 2}}) {
    if (sanitized && scale != 1.5f) continue;
    const auto to_motif = around_middle(1 / std::max(scale, 0.1f), turn, 0, 0, 2 * w, 2 * h, w, h);
    const auto reference = drawn(500, 400, [&](float x, float y) {
      const image_point first{x - 10, y - 10}, other = to_motif({x - 190, y - 150});
      const auto inside = [](image_point p) { return p.x >= 0 && p.y >= 0 && p.x < w && p.y < h; };
      if (inside(first)) return motif(first);
      if (scale > 0 && inside(other)) return motif(other);
      return world({x * 0.6f, y * 0.6f}) / 4 + 100;
    });
    with(reference, {}, [&](const tools::matcher& matcher) {
      const auto found = matcher.match(query);
      EXPECT_EQ(found.matched, scale == 0) << scale << ' ' << turn;
      EXPECT_EQ(found.placements, scale == 0 ? 1u : 2u) << scale << ' ' << turn;
    });
  }
}

/// A view of a scene from aside: the map from the view to the scene.
plane_map aside(float stretch, float turn, float tilt) {
  const auto middle = similarity{1, 0, -width / 2, -height / 2};
  plane_map narrower, back;
  narrower.m[0] = std::sqrt(stretch), narrower.m[4] = 1 / std::sqrt(stretch);
  narrower.m[6] = tilt / width;
  back = similarity{1, 0, width / 2, height / 2};
  return back * narrower * plane_map(similarity{std::cos(turn), std::sin(turn), 0, 0}) * plane_map(middle);
}

TEST(matcher, finds_views_from_aside_and_says_which_kind_they_are) {
  struct view {
    float stretch, turn, tilt;
    map_kind kind;
  };
  const tools::drawn_scene world(4, width, height);
  const auto reference = photograph(world, plain, width, height);
  for (const auto& [stretch, turn, tilt, kind] :
       {view{1, 0.5f, 0, map_kind::similarity}, view{1.3f, 2, 0, map_kind::affine},
        view{1.6f, 4, 0, map_kind::affine}, view{1.1f, 1, 0.3f, map_kind::perspective}}) {
    if (sanitized && stretch != 1.3f) continue;
    const auto truth = aside(stretch, turn, tilt);
    const auto query = drawn(width, height, [&](float x, float y) { return world(truth({x, y})); });
    with(reference, {}, [&](const tools::matcher& matcher) {
      const auto found = matcher.match(query);
      ASSERT_TRUE(found.matched) << stretch << ' ' << tilt;
      EXPECT_EQ(found.map, kind) << stretch << ' ' << tilt;
      EXPECT_LT(corners_off(found.to_reference, truth, width, height), 4) << stretch << ' ' << tilt;
    });
    // Of a kind that is asked for: right, or no match.
    for (const auto only : {map_kind::similarity, map_kind::affine, map_kind::perspective}) {
      if (sanitized && only == map_kind::perspective) continue;
      tools::match_options options;
      options.map = only;
      with(reference, options, [&](const tools::matcher& matcher) {
        const auto found = matcher.match(query);
        EXPECT_EQ(found.matched, only >= kind) << stretch << ' ' << tilt << ' ' << static_cast<int>(only);
        if (!found.matched) return;
        EXPECT_EQ(found.map, only);
        EXPECT_LT(corners_off(found.to_reference, truth, width, height), 4) << stretch << ' ' << tilt;
      });
    }
  }
}

TEST(matcher, finds_a_third_of_a_picture) {
  const tools::drawn_scene world(11, 640, 480);
  const auto truth = around_middle(1, 0.7f, 60, -40, 190, 140, 640, 480);
  const auto query = photograph(world, truth, 190, 140, 0.8f, 2);
  with(photograph(world, plain, 640, 480), {}, [&](const tools::matcher& matcher) {
    const auto found = matcher.match(query);
    ASSERT_TRUE(found.matched);
    EXPECT_EQ(found.map, map_kind::similarity);
    EXPECT_LT(corners_off(found.to_reference, truth, 190, 140), 3);
  });
}

std::vector<tools::point_pair> pairs_of(const plane_map& map, int count) {
  std::vector<tools::point_pair> pairs;
  for (int i = 0; i < count; ++i) {
    const image_point p{static_cast<float>(i * 97 % width), static_cast<float>(i * i * 31 % height)};
    pairs.push_back({p, map(p)});
  }
  return pairs;
}

TEST(matcher, maps_are_fitted_to_points) {
  const tools::image_features query{{}, width, height};
  for (const float tilt : {0.f, 0.4f}) {
    const auto truth = aside(1.5f, 1, tilt), near = aside(1.2f, 1.1f, tilt / 2);
    const auto kind = tilt == 0 ? map_kind::affine : map_kind::perspective;
    const int least = tilt == 0 ? 3 : 4;
    for (const int count : {least, least + 1, 40}) {
      const auto found = tools::fitted(kind, pairs_of(truth, count), near, query);
      ASSERT_TRUE(found) << tilt << ' ' << count;
      EXPECT_LT(corners_off(*found, truth, width, height), 0.1) << tilt << ' ' << count;
    }
    EXPECT_FALSE(tools::fitted(kind, pairs_of(truth, least - 1), near, query));
    // Of pairs that are off by as much to all sides, the middle.
    auto off = pairs_of(truth, 40);
    for (const auto& p : pairs_of(truth, 40)) off.push_back(p);
    for (std::size_t i = 0; i < off.size(); ++i) off[i].to.x += i < 40 ? 1 : -1;
    const auto found = tools::fitted(kind, off, truth, query);
    ASSERT_TRUE(found);
    EXPECT_LT(corners_off(*found, truth, width, height), 0.2);
    // Points on a line do not tell.
    auto line = pairs_of(truth, 40);
    for (auto& p : line) p = {{p.from.x, p.from.x / 2}, truth({p.from.x, p.from.x / 2})};
    EXPECT_FALSE(tools::fitted(kind, line, near, query));
  }
}

TEST(matcher, maps_that_no_camera_sees_are_none) {
  const tools::image_features query{{}, width, height};
  const auto is_map = [&](float xx, float yy) {
    plane_map map;
    map.m[0] = xx, map.m[4] = yy;
    return tools::fitted(map_kind::affine, pairs_of(map, 20), map, query).has_value();
  };
  EXPECT_TRUE(is_map(1, 1));
  EXPECT_FALSE(is_map(-1, 1)) << "mirrors";
  EXPECT_TRUE(is_map(-1, -1));
  EXPECT_TRUE(is_map(2.95f, 1));
  EXPECT_FALSE(is_map(3.05f, 1));
  EXPECT_TRUE(is_map(0.5f, 1.45f));
  EXPECT_FALSE(is_map(0.5f, 1.55f));
  EXPECT_TRUE(is_map(4.9f, 4.9f));
  EXPECT_FALSE(is_map(5.1f, 5.1f));
  EXPECT_TRUE(is_map(0.21f, 0.21f));
  EXPECT_FALSE(is_map(0.19f, 0.19f));
  // A map whose horizon crosses the query.
  auto tilted = aside(1, 0, 2.2f);
  EXPECT_FALSE(tools::fitted(map_kind::perspective, pairs_of(tilted, 20), plain, query));
}

TEST(matcher, matches_that_agree_are_told_from_those_that_do_not) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> part(0, 1);
  const tools::image_features query{{}, width, height};
  const auto truth = aside(1.6f, 1, 0);
  for (const int right : {0, 4, 12}) {
    std::vector<tools::patch_match> matches;
    for (int i = 0; i < 60; ++i) {
      const image_point from{width * part(random), height * part(random)},
          to = i < right ? truth(from) : image_point{width * part(random), height * part(random)};
      matches.push_back({from, to, 0.7f + 0.2f * part(random), i < right ? 1 : 6 * part(random)});
    }
    const auto groups = tools::groups_of(matches, query, 1, 30, 6);
    if (right < 5) {  // fewer than make a group
      for (const auto& g : groups) EXPECT_LT(g.pairs.size(), 8u);
      continue;
    }
    ASSERT_FALSE(groups.empty());
    EXPECT_GE(groups[0].pairs.size(), 12u);
    EXPECT_LT(corners_off(groups[0].at, truth, width, height), 6);
  }
  EXPECT_TRUE(tools::groups_of({}, query, 1, 30, 6).empty());
}

TEST(matcher, of_maps_that_fit_the_simplest_is_taken) {
  const auto of = [](map_kind kind, double log10_chance) {
    tools::trial t;
    t.kind = kind;
    t.log10_chance = log10_chance;
    return t;
  };
  const auto like = [](std::uint32_t alike) {
    tools::quarters q;
    q.all = {100, alike};
    return q;
  };
  const auto chosen = [&](double chance, std::uint32_t simple, std::uint32_t freer) {
    return tools::simplest({of(map_kind::affine, chance), of(map_kind::similarity, -20)},
                           {like(freer), like(simple)});
  };
  EXPECT_EQ(chosen(-22, 90, 99), 1u) << "is hardly less probable by chance";
  EXPECT_EQ(chosen(-24, 90, 99), 0u);
  EXPECT_EQ(chosen(-24, 90, 80), 1u) << "looks less alike";
  EXPECT_EQ(chosen(-10, 50, 90), 0u) << "the simpler one is not right";
  EXPECT_EQ(
      tools::simplest({of(map_kind::similarity, -9), of(map_kind::similarity, -5)}, {like(60), like(90)}),
      1u);
}

TEST(matcher, a_map_of_greater_freedom_explains_less) {
  std::mt19937 random(6);
  std::uniform_real_distribution<float> part(0, 1);
  tools::image_features reference{{}, width, height};
  for (int i = 0; i < 200; ++i) reference.points.push_back({width * part(random), height * part(random)});
  const roost::host place(1);
  const tools::match_verifier<roost::host> verifier(place, reference, {});
  std::vector<tools::trial> trials(3);
  trials[1].kind = map_kind::affine, trials[2].kind = map_kind::perspective;
  verifier.run(roost::copy_to(place, reference.points), trials, 0, false);
  const double places = std::log10(width * height / (3.14159265 * 2.4 * 2.4));
  EXPECT_GT(trials[1].log10_chance, trials[0].log10_chance + places);
  EXPECT_GT(trials[2].log10_chance, trials[1].log10_chance + places);
  EXPECT_LT(trials[2].log10_chance, -100);
}

TEST(matcher, maps_that_are_wrong_at_one_end_are_of_one_place) {
  const tools::image_features query{{}, width, height};
  plane_map bent;
  bent.m[6] = 0.1f / width;
  const similarity shifted{1, 0, 9, 0};
  EXPECT_GT(tools::corners_apart(plain, bent, query), 20);
  EXPECT_FLOAT_EQ(tools::mostly_apart(plain, shifted, query), 9);
  EXPECT_LT(tools::mostly_apart(plain, bent, query), tools::corners_apart(plain, bent, query) / 1.5f);
}

TEST(matcher, windows_of_the_right_place_alone_are_alike) {
  const tools::drawn_scene world(7, width, height);
  const auto truth = around_middle(0.8f, 2, 5, 9, width, height, width, height);
  const auto here = photograph(world, truth, width, height, 0.7f, 2),
             there = photograph(world, plain, width, height);
  std::vector<image_point> points;
  for (int i = 0; i < 100; ++i)
    points.push_back({static_cast<float>(20 + i % 10 * 28), static_cast<float>(20 + i / 10 * 20)});
  auto off = truth;
  off.x += 25;
  const std::vector<plane_map> placements{truth, off, similarity{1, 0, 1000, 0}};
  std::vector<float> alike(points.size() * placements.size());
  const tools::compare_windows kernel{{there.pixels.data(), width, height, 1},
                                      {here.pixels.data(), width, height, 1},
                                      points.data(),
                                      static_cast<std::uint32_t>(points.size()),
                                      placements.data(),
                                      alike.data()};
  for (std::size_t i = 0; i < alike.size(); ++i) kernel(i);
  const auto like = tools::likeness_of(points, alike, placements.size());
  EXPECT_GT(like[0].all.compared, 60u);
  EXPECT_GT(like[0].all.share(), 0.7);
  EXPECT_TRUE(like[0].good());
  EXPECT_LT(like[1].all.share(), 0.5);
  EXPECT_EQ(like[2].all.compared, 0u);
  EXPECT_FALSE(like[2].good());

  // Right in three quarters alone is not right.
  std::vector<float> part(points.size(), 0.9f);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].x >= width / 2 && points[i].y >= height / 2) part[i] = 0.1f;
  }
  const auto three = tools::likeness_of(points, part, 1)[0];
  EXPECT_GT(three.all.share(), 0.7);
  EXPECT_FALSE(three.good());
  // Nor is every second one, wherever it is.
  for (std::size_t i = 0; i < points.size(); ++i) part[i] = i % 2 == 0 ? 0.9f : 0.1f;
  EXPECT_FALSE(tools::likeness_of(points, part, 1)[0].good());
}

TEST(matcher, a_second_place_that_is_as_good_is_told) {
  const tools::image_features query{{}, width, height};
  const auto of = [](std::uint32_t compared, std::uint32_t alike) {
    tools::quarters q;
    q.all = {compared, alike};
    return q;
  };
  const auto weighed = [&](float shift, std::uint32_t compared, std::uint32_t alike) {
    tools::verdict verdict;
    verdict.found.log10_chance = -50;
    verdict.like = {150, 120};
    verdict.log10_tries = 2.4;
    verdict.weigh({{similarity{1, 0, shift, 0}}}, {of(compared, alike)}, query, 8);
    return verdict;
  };
  EXPECT_TRUE(weighed(30, 150, 15).matched);
  EXPECT_LT(weighed(30, 150, 15).found.log10_chance, -10);
  EXPECT_EQ(weighed(30, 150, 110).placements, 2u);
  EXPECT_FALSE(weighed(30, 150, 110).matched);
  EXPECT_FALSE(weighed(30, 150, 90).matched) << "not as good, but chance does as much";
  EXPECT_EQ(weighed(30, 150, 90).placements, 1u);
  EXPECT_TRUE(weighed(5, 150, 120).matched) << "is the same place";
  EXPECT_TRUE(weighed(30, 20, 20).matched) << "is seen by few";
}

TEST(matcher, patches_match_elsewhere_than_where_they_are_known_to_lie) {
  tools::patch query{}, other{};
  query.shades[0] = 1;
  query.turn = 0.5f;
  other.shades[0] = 0.8f, other.shades[1] = 0.6f;
  other.turn = 1.5f;
  const image_point points[] = {{10, 10}}, reference_points[] = {{11, 12}, {100, 50}, {60, 60}};
  const tools::patch reference[] = {query, other, {}};
  tools::patch_match match{};
  tools::match_patches{&query, points, reference, reference_points, 3, plain, 8, &match}(0);
  EXPECT_EQ(match.to.x, 100);
  EXPECT_EQ(match.to.y, 50);
  EXPECT_FLOAT_EQ(match.correlation, 0.8f);
  EXPECT_FLOAT_EQ(match.turn, 1);
}

TEST(matcher, images_without_bases_match_nothing) {
  const grey_image flat{64, 48, std::vector<float>(64 * 48, 77)}, dot{1, 1, {255}},
      line{400, 1, std::vector<float>(400, 9)};
  auto edge = flat, noise = flat, two = flat;
  for (std::size_t i = 0; i < edge.pixels.size(); ++i) {
    edge.pixels[i] = i % 64 < 30 ? 20 : 200;
    noise.pixels[i] = static_cast<float>(roost::mix32(static_cast<std::uint32_t>(i), 1) % 256);
    two.pixels[i] = (i / 64 + i % 64) % 2 == 0 ? 0 : 255;
  }
  const auto image = photograph(tools::drawn_scene(1, width, height), plain, width, height);
  const grey_image all[] = {flat, dot, line, edge, noise, two};
  with(image, small(), [&](const tools::matcher& matcher) {
    for (const auto& query : all) EXPECT_FALSE(matcher.match(query).matched) << query.width;
  });
  for (const auto& reference : all) {
    with(reference, small(), [&](const tools::matcher& matcher) {
      EXPECT_FALSE(matcher.match(image).matched);
      EXPECT_EQ(matcher.facts().items == 0, matcher.facts().bases == 0);
    });
  }
}

TEST(matcher, more_bases_than_shared_memory_has_votes_for_are_refused) {
  auto options = small();
  options.points = 300;
  options.share = 1;
  options.longest = 0.7f;
  const auto image = photograph(tools::drawn_scene(1, 640, 480), plain, 640, 480);
  EXPECT_THROW(with(image, options, [](const tools::matcher&) {}), roost::invalid_argument);
}

}  // namespace
}  // namespace test

#endif
