#ifndef __CUDACC__  // the command's own test runs it on both places

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <roost/error.hpp>

#include "apps/stars/centroids.hpp"
#include "apps/stars/solution.hpp"
#include "apps/stars/solver.hpp"
#include "apps/stars/wcs.hpp"
#include "support/keys.hpp"

// Fields of a sky whose stars are known, and of no sky.

namespace test {
namespace {

namespace tools = roost::tools;
using tools::sky_vector;

constexpr float width = 1024, height = 768;

/// A sky of random stars, as many of each magnitude as the real one has.
tools::star_database random_sky(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> side;
  std::uniform_real_distribution<float> part(1e-6f, 1);
  tools::star_database sky;
  sky.limits = {10, 16, 99};
  for (std::size_t i = 0; i < n; ++i) {
    const sky_vector at = unit(sky_vector{side(random), side(random), side(random)});
    sky.stars.push_back({at, 9 + 2 * std::log10(part(random))});
    sky.names.push_back(std::to_string(i));
  }
  return sky;
}

const tools::star_database& sky() {
  static const auto built = [] {
    auto database = random_sky(sanitized ? 12000 : 20000, 1);
    tools::build_patterns_on_host(2, database);
    return database;
  }();
  return built;
}

/// Where a camera points, at random or at `z`.
tools::pointing random_pointing(std::mt19937& random, const sky_vector* z = nullptr) {
  std::normal_distribution<float> side;
  const auto direction = [&] { return unit(sky_vector{side(random), side(random), side(random)}); };
  tools::pointing p{};
  p.z = z != nullptr ? *z : direction();
  const sky_vector aside = direction();
  p.x = unit(aside - dot(aside, p.z) * p.z);
  p.y = cross(p.z, p.x);
  if (random() % 4 == 0) p.y = -1.f * p.y;  // mirrored
  std::uniform_real_distribution<float> degrees(10.3f, 15.7f);
  p.focal = width / 2 / std::tan(degrees(random) * tools::pi / 360);
  return p;
}

/// What the camera sees: the brightest stars with noise, some missing, and as many false ones.
std::vector<tools::centroid> seen(const tools::pointing& p, std::mt19937& random, double missing = 0.15,
                                  double false_ones = 0.2, float noise = 0.4f, float distortion = 0.003f) {
  std::normal_distribution<float> off(0, noise);
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<tools::centroid> all;
  for (const auto& star : sky().stars) {  // the brightest first
    const float away = dot(star.at, p.z);
    if (away < 0.9f) continue;
    float x = p.focal * dot(star.at, p.x) / away, y = p.focal * dot(star.at, p.y) / away;
    const float corner2 = (width * width + height * height) / 4;
    const float bent = 1 + distortion * (x * x + y * y) / corner2;
    x = x * bent + off(random);
    y = y * bent + off(random);
    if (std::abs(x) > width / 2 || std::abs(y) > height / 2 || part(random) < missing) continue;
    all.push_back({x, y});
    if (part(random) < false_ones)
      all.push_back(
          {static_cast<float>(part(random) - 0.5) * width, static_cast<float>(part(random) - 0.5) * height});
    if (all.size() >= 40) break;
  }
  return all;
}

/// Whether a solution points there.
bool is_right(const tools::field_solution& s, const tools::pointing& p) {
  const bool hand = (dot(cross(s.at.x, s.at.y), s.at.z) < 0) == (dot(cross(p.x, p.y), p.z) < 0);
  return s.solved && hand && length(s.at.z - p.z) < 2e-3f && length(s.at.x - p.x) < 1e-2f &&
         std::abs(s.at.focal / p.focal - 1) < 0.01f;
}

std::vector<tools::field_solution> solve(const tools::star_fields& fields,
                                         tools::solve_options options = {}) {
  std::vector<tools::field_solution> result;
  tools::with_solver_on_host(2, sky(), [&](const auto& solver) { result = solver.solve(fields, options); });
  return result;
}

TEST(stars, solves_fields_of_the_whole_sky_and_never_wrongly) {
  std::mt19937 random(2);
  const std::size_t n = sanitized ? 60 : 10000;
  tools::star_fields fields, shuffled;
  std::vector<tools::pointing> truth;
  for (std::size_t i = 0; i < n; ++i) {
    truth.push_back(random_pointing(random));
    auto field = seen(truth.back(), random);
    fields.add(field, {width, height});
    if (i % 20 != 0) continue;  // these take longer, as all quads are tried
    for (std::size_t k = field.size(); k > 1; --k) std::swap(field[k - 1].y, field[random() % k].y);
    shuffled.add(field, {width, height});
  }
  std::size_t right = 0, wrong = 0;
  const auto solutions = solve(fields);
  for (std::size_t i = 0; i < n; ++i) {
    right += is_right(solutions[i], truth[i]);
    wrong += solutions[i].solved && !is_right(solutions[i], truth[i]);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GE(right, n - n / 200);
  for (const auto& solution : solve(shuffled)) EXPECT_FALSE(solution.solved);
}

TEST(stars, solves_at_the_poles_and_where_right_ascension_begins) {
  std::mt19937 random(3);
  const sky_vector places[] = {{0, 0, 1},
                               {0, 0, -1},
                               {1, 0, 0},
                               {-1, 0, 0},
                               unit(sky_vector{0.05f, 0, 1}),
                               unit(sky_vector{-0.05f, 1e-4f, -1}),
                               unit(sky_vector{-1, -1e-3f, 0.4f})};
  tools::star_fields fields;
  std::vector<tools::pointing> truth;
  for (const auto& z : places) {
    truth.push_back(random_pointing(random, &z));
    fields.add(seen(truth.back(), random, 0, 0), {width, height});
  }
  const auto solutions = solve(fields);
  for (std::size_t i = 0; i < truth.size(); ++i) EXPECT_TRUE(is_right(solutions[i], truth[i])) << i;
}

TEST(stars, next_to_a_pole_the_roll_belongs_to_the_right_ascension) {
  for (const double dec : {90.0, -90.0, 89.9999999, -89.99999, 89.999, 30.0}) {
    for (const double ra : {0.0, 40.0, 200.0, 359.0}) {
      for (const bool mirrored : {false, true}) {
        const auto is = tools::position_of(tools::pointing_of(ra, dec, 70, mirrored), {width, height});
        EXPECT_NEAR(is.ra, ra, 1e-3) << dec;
        EXPECT_NEAR(is.roll, 70, 1e-3) << dec << ' ' << ra;
        EXPECT_EQ(is.mirrored, mirrored);
      }
    }
  }
}

TEST(stars, fields_without_an_answer_have_none) {
  std::mt19937 random(4);
  const auto good = seen(random_pointing(random), random, 0, 0);
  tools::star_fields fields;
  fields.add({}, {width, height});
  fields.add(std::span(good).first(1), {width, height});
  fields.add(std::span(good).first(3), {width, height});
  fields.add(std::vector(200, tools::centroid{3, 4}), {width, height});  // all at one place
  std::vector<tools::centroid> line, corner(good.begin(), good.end());
  for (int i = 0; i < 100; ++i) line.push_back({static_cast<float>(i * 10 - 500), 0});
  fields.add(line, {width, height});
  std::uniform_real_distribution<float> anywhere(-0.5f, 0.5f);
  std::vector<tools::centroid> noise(100000);
  for (auto& c : noise) c = {anywhere(random) * width, anywhere(random) * height};
  fields.add(noise, {width, height});
  for (const auto& solution : solve(fields)) EXPECT_FALSE(solution.solved);
  EXPECT_TRUE(solve(tools::star_fields{}).empty());
}

TEST(stars, a_guess_of_the_width_is_kept_to) {
  std::mt19937 random(5);
  auto p = random_pointing(random);
  p.focal = width / 2 / std::tan(12.f * tools::pi / 360);
  tools::star_fields fields;
  fields.add(seen(p, random, 0, 0), {width, height});
  tools::solve_options options;
  options.fov_least = 11.5;
  options.fov_most = 12.5;
  EXPECT_TRUE(is_right(solve(fields, options)[0], p));
  options.fov_least = 14;
  options.fov_most = 15;
  EXPECT_FALSE(solve(fields, options)[0].solved);
}

TEST(stars, the_answer_does_not_depend_on_the_batch) {
  std::mt19937 random(6);
  tools::star_fields all;
  for (int i = 0; i < (sanitized ? 2 : 20); ++i)
    all.add(seen(random_pointing(random), random), {width, height});
  const auto together = solve(all);
  for (std::size_t i = 0; i < all.count(); ++i) {
    tools::star_fields one;
    one.add(std::span(all.centroids).subspan(all.first[i], all.first[i + 1] - all.first[i]), all.sizes[i]);
    const auto alone = solve(one)[0];
    EXPECT_EQ(alone.solved, together[i].solved);
    EXPECT_EQ(alone.matched, together[i].matched);
    EXPECT_EQ(alone.log10_chance, together[i].log10_chance);
  }
}

/// The pointing as a hint, off by so many degrees to one side and so many of roll.
tools::pointing_hint hint_of(const tools::pointing& p, float off, float roll, bool with_focal = true) {
  const float side = off * tools::pi / 180, around = roll * tools::pi / 180;
  const float hand = dot(cross(p.x, p.y), p.z) < 0 ? -1.f : 1.f;
  tools::pointing at = p;
  at.z = unit(p.z + side * p.x);
  at.x = unit(p.x + around * p.y - dot(p.x + around * p.y, at.z) * at.z);
  at.y = hand * cross(at.z, at.x);
  at.focal = with_focal ? p.focal / width : 0;
  return {{at}, 1};
}

TEST(stars, a_hint_that_fits_needs_no_quads_and_one_that_does_not_is_no_loss) {
  std::mt19937 random(8);
  tools::star_fields near, without_focal, far, shuffled;
  std::vector<tools::pointing> truth;
  const std::size_t n = sanitized ? 20 : 400;
  for (std::size_t i = 0; i < n; ++i) {
    truth.push_back(random_pointing(random));
    auto field = seen(truth.back(), random);
    for (auto* fields : {&near, &without_focal, &far}) fields->add(field, {width, height});
    near.hints.push_back(hint_of(truth.back(), 0.8f, 1));
    without_focal.hints.push_back(hint_of(truth.back(), 0.8f, 1, false));
    far.hints.push_back(hint_of(truth.back(), 2, 0));  // beyond the radius of 1 degree
    for (std::size_t k = field.size(); k > 1; --k) std::swap(field[k - 1].y, field[random() % k].y);
    shuffled.add(field, {width, height});
    shuffled.hints.push_back(near.hints.back());
  }
  const auto plain = [&] {
    auto fields = near;
    fields.hints.clear();
    return solve(fields);
  }();
  const auto hinted = solve(near, {.patterns_most = 0}), wide = solve(without_focal, {.patterns_most = 0}),
             fallback = solve(far), by_far = solve(far, {.patterns_most = 0});
  for (std::size_t i = 0; i < n; ++i) {
    for (const auto* s : {&hinted[i], &wide[i]}) {
      EXPECT_TRUE(is_right(*s, truth[i]) && s->hinted && !s->limited) << i;
      EXPECT_LT(length(s->at.z - plain[i].at.z), 2e-4f) << i;
    }
    EXPECT_TRUE(fallback[i].solved == plain[i].solved && !fallback[i].hinted) << i;
    EXPECT_EQ(fallback[i].quad, plain[i].quad);
    EXPECT_TRUE(!by_far[i].solved && by_far[i].limited) << i;
  }
  for (const auto& s : solve(shuffled, {.patterns_most = 0})) EXPECT_FALSE(s.solved);
}

TEST(stars, hints_of_hopeless_fields_and_of_large_radii_are_no_answers) {
  std::mt19937 random(9);
  const auto p = random_pointing(random);
  const auto good = seen(p, random, 0, 0);
  tools::star_fields fields;
  fields.add({}, {width, height});
  fields.add(std::span(good).first(3), {width, height});
  fields.add(std::vector(200, tools::centroid{3, 4}), {width, height});
  fields.add(std::vector(200, tools::centroid{-width / 2, height / 2}), {width, height});
  for (std::size_t i = 0; i < fields.count(); ++i) fields.hints.push_back(hint_of(p, 0, 0));
  for (const double radius : {1e-3, 1., 10.}) {
    for (const auto& s : solve(fields, {.hint_radius = radius})) EXPECT_FALSE(s.solved);
  }
  tools::star_fields wide;
  wide.add(good, {width, height});
  wide.hints.push_back(hint_of(p, 2.5f, 0));
  EXPECT_TRUE(is_right(solve(wide, {.hint_radius = 3, .patterns_most = 0})[0], p));
  const auto none = solve(wide, {.fov_least = 14, .fov_most = 15, .hint_radius = 3});
  EXPECT_EQ(none[0].solved, p.focal < width / 2 / std::tan(13.9f * tools::pi / 360));
}

TEST(stars, a_search_ends_at_its_limit) {
  std::mt19937 random(10);
  tools::star_fields fields;
  for (int i = 0; i < (sanitized ? 10 : 30); ++i) {
    auto field = seen(random_pointing(random), random, 0.3, 0.5);
    if (i % 2 == 0) {
      for (std::size_t k = field.size(); k > 1; --k) std::swap(field[k - 1].y, field[random() % k].y);
    }
    fields.add(field, {width, height});
  }
  const auto whole = solve(fields, {.patterns_most = ~std::uint64_t{0}}), usual = solve(fields);
  std::size_t ended = 0, solved = 0;
  for (const std::uint64_t most : {0, 1, 1000, 10000, 100000}) {
    const auto some = solve(fields, {.patterns_most = most});
    for (std::size_t i = 0; i < fields.count(); ++i) {
      EXPECT_EQ(usual[i].solved, whole[i].solved);
      EXPECT_FALSE(whole[i].limited || usual[i].limited);
      // An answer among the first 64 quads is found whatever the limit is, but for 0.
      if (whole[i].solved && whole[i].quad < 64) EXPECT_EQ(some[i].solved, most != 0);
      if (some[i].solved) EXPECT_EQ(some[i].quad, whole[i].quad);
      EXPECT_TRUE(some[i].solved || some[i].limited);
      EXPECT_FALSE(some[i].solved && some[i].limited);
      EXPECT_TRUE(whole[i].solved || !some[i].solved);
      ended += some[i].limited;
      solved += some[i].solved;
    }
  }
  EXPECT_GT(ended, fields.count() * 5 / 2);
  EXPECT_GT(solved, fields.count() * 2 / 3);
}

TEST(stars, a_position_and_its_pointing_are_the_same) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    const auto p = random_pointing(random);
    const auto at = position_of(p, {width, height});
    const auto again = tools::pointing_of(at.ra, at.dec, at.roll, at.mirrored);
    for (const auto& [a, b] : {std::pair(p.x, again.x), std::pair(p.y, again.y), std::pair(p.z, again.z)})
      EXPECT_LT(length(a - b), 1e-4f);
  }
}

TEST(stars, crowded_fields_are_solved_in_another_order) {
  std::mt19937 random(12);
  const auto p = random_pointing(random);
  auto field = seen(p, random, 0, 0);
  std::uniform_real_distribution<float> part(0, 1);
  std::vector<tools::centroid> leaves(300);
  for (auto& c : leaves) c = {(part(random) - 0.5f) * width, height * (0.3f + 0.2f * part(random))};
  leaves.insert(leaves.end(), field.begin(), field.end());
  tools::star_fields fields;
  fields.add(leaves, {width, height});
  const auto [solutions, orders] =
      solve_crowded(fields, {}, [](const auto& some, const auto& how) { return solve(some, how); });
  ASSERT_TRUE(is_right(solutions[0], p));
  ASSERT_EQ(orders[0].size(), leaves.size());
  for (int k = 0; k < tools::centroids_most; ++k) {
    if (solutions[0].star_of[k] == tools::no_star) continue;
    float x, y;
    ASSERT_TRUE(dot(sky().stars[solutions[0].star_of[k]].at, solutions[0].at.z) > 0.9f);
    const auto s = sky().stars[solutions[0].star_of[k]].at;
    x = p.focal * dot(s, p.x) / dot(s, p.z);
    y = p.focal * dot(s, p.y) / dot(s, p.z);
    const auto c = leaves[orders[0][static_cast<std::size_t>(k)]];
    EXPECT_LT(std::hypot(c.x - x, c.y - y), 12.f);
  }
}

TEST(stars, patterns_are_each_there_once_and_lie_in_a_picture) {
  auto patterns = sky().patterns;
  const auto less = [](const auto& a, const auto& b) {
    return std::lexicographical_compare(a.star, a.star + 4, b.star, b.star + 4);
  };
  std::sort(patterns.begin(), patterns.end(), less);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto& p = patterns[i];
    EXPECT_TRUE(i == 0 || less(patterns[i - 1], p));
    EXPECT_TRUE(std::is_sorted(p.star, p.star + 4));
    EXPECT_LT(p.shape.longest, 16 * tools::pi / 180);
    EXPECT_TRUE(std::is_sorted(p.shape.ratio, p.shape.ratio + 5));
  }
  EXPECT_TRUE(std::is_sorted(sky().stars.begin(), sky().stars.end(),
                             [](const auto& a, const auto& b) { return a.magnitude < b.magnitude; }));
}

class star_files : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("roost_stars_" + std::to_string(std::random_device{}()));
};

TEST_F(star_files, a_database_is_loaded_as_it_was_saved) {
  const auto file = folder_ / "sky";
  save(sky(), file);
  const auto loaded = tools::load_star_database(file);
  EXPECT_EQ(loaded.names, sky().names);
  ASSERT_EQ(loaded.patterns.size(), sky().patterns.size());
  EXPECT_EQ(std::memcmp(loaded.patterns.data(), sky().patterns.data(),
                        loaded.patterns.size() * sizeof(tools::star_pattern)),
            0);
  std::ifstream source(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(source)), {});
  const auto expect_refused = [&](const std::string& what) {
    const auto bad = folder_ / "bad";
    std::ofstream(bad, std::ios::binary) << what;
    EXPECT_THROW(tools::load_star_database(bad), roost::file_error);
  };
  expect_refused("");
  expect_refused("roost stars\n");
  expect_refused(bytes.substr(0, bytes.size() / 2));
  expect_refused(bytes.substr(0, bytes.size() - 1));
  std::string damaged = bytes;
  damaged[bytes.size() / 3] ^= 1;
  expect_refused(damaged);
  EXPECT_THROW(tools::load_star_database(folder_ / "none"), roost::file_error);
  auto broken = sky();
  broken.names[5] = "two\nlines";
  EXPECT_THROW(save(broken, folder_ / "broken"), roost::file_error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "broken"));
}

TEST_F(star_files, stars_are_found_in_a_picture) {
  std::mt19937 random(7);
  std::normal_distribution<float> noise(20, 2);
  tools::grey_image image{400, 300, std::vector<float>(400 * 300)};
  for (auto& pixel : image.pixels) pixel = noise(random);
  const auto add = [&](float x, float y, float light, float sigma) {
    for (int j = 0; j < image.height; ++j) {
      for (int i = 0; i < image.width; ++i) {
        const float dx = static_cast<float>(i) + 0.5f - x, dy = static_cast<float>(j) + 0.5f - y;
        float& pixel = image.pixels[static_cast<std::size_t>(j * image.width + i)];
        pixel = std::min(255.f, pixel + light * std::exp(-(dx * dx + dy * dy) / (2 * sigma * sigma)));
      }
    }
  };
  std::vector<tools::centroid> truth;
  for (int i = 0; i < 12; ++i) {
    truth.push_back({30.3f + 29.7f * static_cast<float>(i), 40.6f + static_cast<float>(i * 53 % 220)});
    add(truth.back().x, truth.back().y, 400 - 30 * static_cast<float>(i), 1.4f);  // the first are saturated
  }
  for (int i = 0; i < 400; ++i) {  // a satellite
    for (int k = 0; k < 2; ++k) image.pixels[static_cast<std::size_t>((150 + i / 3 + k) * 400 + i)] = 200;
  }
  for (int i = 0; i < 50; ++i) image.pixels[random() % image.pixels.size()] = 255;
  const auto found = tools::find_stars(image);
  std::size_t there = 0;
  for (const auto& t : truth) {
    there += static_cast<std::size_t>(std::ranges::any_of(
        found.at, [&](const auto& c) { return std::hypot(c.x + 200 - t.x, c.y + 150 - t.y) < 0.3f; }));
  }
  EXPECT_GE(there, 10u);  // the satellite may hide some
  EXPECT_LE(found.at.size(), 20u);
  EXPECT_TRUE(tools::find_stars(tools::grey_image{400, 300, std::vector<float>(400 * 300)}).at.empty());
  EXPECT_TRUE(tools::find_stars(tools::grey_image{1, 1, {255}}).at.empty());
  for (int i = 0; i < 12000; ++i) image.pixels[random() % image.pixels.size()] = 255;  // a tenth of all
  const auto hot = tools::find_stars(image);
  there = 0;
  for (const auto& t : truth) {
    there += static_cast<std::size_t>(std::ranges::any_of(
        hot.at, [&](const auto& c) { return std::hypot(c.x + 200 - t.x, c.y + 150 - t.y) < 1.5f; }));
  }
  EXPECT_GE(there, 6u);
  for (auto& pixel : image.pixels) pixel = 255;
  EXPECT_TRUE(tools::find_stars(image).at.empty());
}

}  // namespace
}  // namespace test

#endif
