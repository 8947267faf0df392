#include "centroids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <roost/error.hpp>

#include "hot_pixels.hpp"
#include "table.hpp"

extern "C" {
#include <sep.h>
}

namespace roost::tools {
namespace {

constexpr float sigmas = 4;  // above the background
constexpr int least_pixels = 3;
constexpr double edge_error = 2;  // pixels that a centroid may be beyond the edge

void expect_done(int status) {
  if (status == 0) return;
  char text[128] = {};
  sep_get_errmsg(status, text);
  throw error(fmt::format("stars cannot be found in this picture: {}", text));
}

/// Sorts by brightness, stably.
void sort_by_brightness(std::vector<centroid>& all, const std::vector<double>& brightness) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return brightness[a] > brightness[b]; });
  std::vector<centroid> sorted;
  for (const auto i : order) sorted.push_back(all[i]);
  all = std::move(sorted);
}

}  // namespace

found_centroids find_stars(const grey_image& image) {
  found_centroids result{
      {static_cast<float>(image.width), static_cast<float>(image.height)}, {}, image.lowest_first};
  if (image.width < 16 || image.height < 16) return result;  // too small for four stars
  grey_image flat = image;
  sep_image source{};
  source.data = flat.pixels.data();
  source.dtype = SEP_TFLOAT;
  source.w = flat.width;
  source.h = flat.height;
  sep_bkg* background = nullptr;
  expect_done(sep_background(&source, 64, 64, 3, 3, 0, &background));
  const std::unique_ptr<sep_bkg, decltype(&sep_bkg_free)> background_owner(background, sep_bkg_free);
  expect_done(sep_bkg_subarray(background, flat.pixels.data(), SEP_TFLOAT));
  // A picture with few shades has noise of less than a shade; in a uniform one, nothing is found.
  const auto [least, most] = std::minmax_element(flat.pixels.begin(), flat.pixels.end());
  const float noise = std::max(sep_bkg_globalrms(background), (*most - *least) * 1e-4f);
  if (!(noise > 0)) return result;
  repair_hot_pixels(flat.pixels, static_cast<std::size_t>(flat.width), noise);

  source.data = flat.pixels.data();
  sep_set_extract_pixstack(std::max<std::size_t>(flat.pixels.size(), 300000));
  sep_set_sub_object_limit(1 << 14);
  static constexpr float smooth[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
  sep_catalog* catalogue = nullptr;
  expect_done(sep_extract(&source, sigmas * noise, SEP_THRESH_ABS, least_pixels, smooth, 3, 3,
                          SEP_FILTER_CONV, 32, 0.005, 1, 1.0, &catalogue));
  const std::unique_ptr<sep_catalog, decltype(&sep_catalog_free)> catalogue_owner(catalogue,
                                                                                  sep_catalog_free);
  std::vector<float> lengths(catalogue->a, catalogue->a + catalogue->nobj);
  float usual = 0;
  if (!lengths.empty()) {
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    usual = *middle;
  }
  std::vector<double> brightness;
  for (int i = 0; i < catalogue->nobj; ++i) {
    const bool streak = catalogue->a[i] > 4 * usual && catalogue->a[i] > 4 * catalogue->b[i];
    if (streak || catalogue->tnpix[i] < 2 || !(catalogue->flux[i] > 0)) continue;
    // There, the middle of the first pixel is at 0; here, it is half a pixel from the edge.
    result.at.push_back({static_cast<float>(catalogue->x[i] + 0.5) - result.size.width / 2,
                         static_cast<float>(catalogue->y[i] + 0.5) - result.size.height / 2});
    brightness.push_back(catalogue->flux[i]);
  }
  sort_by_brightness(result.at, brightness);
  return result;
}

found_centroids read_centroids(const std::string& file, star_fields::size size) {
  star_table table(file, bad_lines::skip);
  const auto x = table.find({"x"}), y = table.find({"y"}),
             bright = table.find({"brightness", "flux", "intensity", "counts", "adu"}),
             magnitude = bright ? std::nullopt : table.find({"magnitude", "mag"});
  if (!x) table.refuse_without("the place from the left edge", "x");
  if (!y) table.refuse_without("the place from the upper edge", "y");
  found_centroids result{size, {}};
  std::vector<double> brightness;
  std::size_t bad = 0, far = 0;
  std::string first_bad;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    double at_x = 0, at_y = 0, light = 0;
    std::string why;
    for (const auto& [column, number] :
         {std::pair(x, &at_x), std::pair(y, &at_y), std::pair(bright ? bright : magnitude, &light)}) {
      if (!column || !why.empty() || (table.read(row, *column, *number) && std::abs(*number) < 1e30))
        continue;
      why = fmt::format("has '{}' where a number was expected", table.text(row, *column));
    }
    if (why.empty() && !(at_x >= 0 && at_y >= 0 && at_x <= size.width && at_y <= size.height)) {
      why = fmt::format("is at {}, {}, outside of a picture of {} x {} pixels", at_x, at_y, size.width,
                        size.height);
      const double off = std::max({-at_x, -at_y, at_x - size.width, at_y - size.height});
      far += off > edge_error;
    }
    if (!why.empty()) {
      if (bad++ == 0) first_bad = fmt::format("row {} {}", row + 1, why);
      continue;
    }
    result.at.push_back(
        {static_cast<float>(at_x) - size.width / 2, static_cast<float>(at_y) - size.height / 2});
    brightness.push_back(magnitude ? -light : light);
  }
  if (bad != 0 && (bad == table.rows() || (far > 1 && far > table.rows() / 10))) {
    throw invalid_argument(
        fmt::format("{}: {}{}; {}", file, first_bad,
                    bad == 1 ? std::string() : fmt::format(", and {} rows more are no centroids", bad - 1),
                    far != 0 ? "give another --size" : "correct it"));
  }
  if (bad != 0) {
    fmt::print(stderr, "roost: {}: left out {} of {} rows; {}{}\n", file, bad, table.rows(),
               bad == 1 ? "" : "the first: ", first_bad);
  }
  if (bright || magnitude) sort_by_brightness(result.at, brightness);
  return result;
}

}  // namespace roost::tools
