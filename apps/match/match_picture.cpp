#include "match_picture.hpp"

#include <algorithm>
#include <cmath>

namespace roost::tools {
namespace {

using colour = std::array<float, 3>;
constexpr colour reference_colour{255, 150, 40}, query_colour{70, 160, 255}, match_colour{60, 200, 90},
    no_match_colour{225, 60, 50};
constexpr int frame_width = 3;  // pixels

picture empty_picture(int width, int height) {
  const std::size_t n = static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3;
  return {width, height, 3, std::vector<std::uint8_t>(n, 24)};
}

void put(picture& image, int x, int y, const colour& c) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return;
  const std::size_t at =
      (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x)) * 3;
  for (std::size_t i = 0; i < 3; ++i)
    image.pixels[at + i] = static_cast<std::uint8_t>(std::clamp(c[i], 0.f, 255.f));
}

void put_frame(picture& image, const colour& c) {
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      if (x < frame_width || y < frame_width || x >= image.width - frame_width ||
          y >= image.height - frame_width)
        put(image, x, y, c);
    }
  }
}

void paste(picture& onto, const picture& image, int left, int top) {
  for (int y = 0; y < image.height; ++y) {
    const auto row = image.pixels.begin() + static_cast<std::ptrdiff_t>(y) * image.width * 3;
    std::copy_n(row, image.width * 3,
                onto.pixels.begin() + (static_cast<std::ptrdiff_t>(top + y) * onto.width + left) * 3);
  }
}

bool covers(const grey_image& image, image_point p) {
  return p.x >= 0 && p.y >= 0 && p.x <= static_cast<float>(image.width - 1) &&
         p.y <= static_cast<float>(image.height - 1);
}

void put_line(picture& image, image_point from, image_point to, const colour& c) {
  const float x = to.x - from.x, y = to.y - from.y, steps = std::ceil(std::max(std::abs(x), std::abs(y)));
  if (!(steps < 1e5f)) return;
  for (float i = 0; i <= steps; ++i) {
    const float part = i / std::max(1.f, steps);
    const int column = static_cast<int>(std::lround(from.x + part * x)),
              row = static_cast<int>(std::lround(from.y + part * y));
    for (int d = 0; d < 4; ++d) put(image, column + d % 2, row + d / 2, c);
  }
}

/// The mean of `step` x `step` pixels of an image around p.
float shade(const grey_image& image, image_point p, float step) {
  const int reach = std::max(0, static_cast<int>(step / 2));
  const int x = static_cast<int>(std::lround(p.x)), y = static_cast<int>(std::lround(p.y));
  float sum = 0;
  int count = 0;
  for (int r = std::max(0, y - reach); r <= std::min(image.height - 1, y + reach); ++r) {
    for (int c = std::max(0, x - reach); c <= std::min(image.width - 1, x + reach); ++c, ++count)
      sum += image.pixels[static_cast<std::size_t>(r) * static_cast<std::size_t>(image.width) +
                          static_cast<std::size_t>(c)];
  }
  return count == 0 ? 0 : sum / static_cast<float>(count);
}

/// The image as it appears on a canvas: `of` maps the canvas to the image. -1 outside the image.
std::vector<float> on_canvas(const grey_image& image, int width, int height, const plane_map& of) {
  std::vector<float> result(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), -1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const image_point canvas{static_cast<float>(i % static_cast<std::size_t>(width)),
                             static_cast<float>(i / static_cast<std::size_t>(width))};
    const auto p = of(canvas);
    if (covers(image, p)) result[i] = shade(image, p, std::sqrt(std::abs(of.near_to(canvas).area())));
  }
  return result;
}

bool is_edge(const std::vector<float>& shades, int width, int height, int x, int y) {
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) return false;
  const auto at = [&](int c, int r) {
    return shades[static_cast<std::size_t>(r) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(c)];
  };
  const float left = at(x - 1, y), right = at(x + 1, y), above = at(x, y - 1), below = at(x, y + 1);
  if (left < 0 || right < 0 || above < 0 || below < 0) return false;
  return std::hypot(right - left, below - above) > 36;
}

/// The inverse up to a factor, which is positive for maps that do not mirror.
plane_map inverse(const plane_map& map) {
  const auto& m = map.m;
  const auto minor = [&](int a, int d, int b, int c) { return m[a] * m[d] - m[b] * m[c]; };
  plane_map back;
  const float all[] = {minor(4, 8, 5, 7), minor(2, 7, 1, 8), minor(1, 5, 2, 4),
                       minor(5, 6, 3, 8), minor(0, 8, 2, 6), minor(2, 3, 0, 5),
                       minor(3, 7, 4, 6), minor(1, 6, 0, 7), minor(0, 4, 1, 3)};
  std::copy(std::begin(all), std::end(all), back.m);
  return back;
}

/// Draws the outline of an image under a map, whose points are divided by `step`. Parts behind the map's
/// horizon are left out.
void put_outline(picture& image, const grey_image& of, const plane_map& map, float step) {
  constexpr int pieces = 64;  // of a side
  const auto right = static_cast<float>(of.width - 1), down = static_cast<float>(of.height - 1);
  const image_point corners[] = {{0, 0}, {right, 0}, {right, down}, {0, down}};
  const auto on_side = [&](int i) {
    const image_point a = corners[i / pieces % 4], b = corners[(i / pieces + 1) % 4];
    const float part = static_cast<float>(i % pieces) / pieces;
    return image_point{a.x + part * (b.x - a.x), a.y + part * (b.y - a.y)};
  };
  const auto seen = [&](image_point p) { return map.m[6] * p.x + map.m[7] * p.y + map.m[8] > 0; };
  for (int i = 0; i < 4 * pieces; ++i) {
    if (!seen(on_side(i)) || !seen(on_side(i + 1))) continue;
    const image_point from = map(on_side(i)), to = map(on_side(i + 1));
    put_line(image, {from.x / step, from.y / step}, {to.x / step, to.y / step}, match_colour);
  }
}

/// Pixels of the image per pixel of the canvas, so that no side of the canvas is larger than `side`.
float step_of(const grey_image& image, int side) {
  return std::max(1.f, static_cast<float>(std::max(image.width, image.height)) / static_cast<float>(side));
}
int on(int pixels, float step) { return std::max(1, static_cast<int>(static_cast<float>(pixels) / step)); }

picture draw_grey(const grey_image& image, float step) {
  picture result = empty_picture(on(image.width, step), on(image.height, step));
  const auto shades = on_canvas(image, result.width, result.height, similarity{step, 0, 0, 0});
  for (std::size_t i = 0; i < shades.size(); ++i)
    put(result, static_cast<int>(i) % result.width, static_cast<int>(i) / result.width,
        {shades[i], shades[i], shades[i]});
  return result;
}

/// The reference, and on it the query where it matched: the right side of draw_match().
picture draw_overlay(const grey_image& reference, const grey_image& query, const match_result& result,
                     int side) {
  const float step = step_of(reference, side);
  const int width = on(reference.width, step), height = on(reference.height, step);
  const similarity to_reference{step, 0, 0, 0};
  const auto below = on_canvas(reference, width, height, to_reference);
  const auto above = result.matched
                         ? on_canvas(query, width, height, inverse(result.to_reference) * to_reference)
                         : std::vector<float>(below.size(), -1);
  picture image = empty_picture(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto i =
          static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
      const float grey = above[i] < 0 ? below[i] * 0.5f : (below[i] + above[i]) * 0.35f;
      const bool one = is_edge(below, width, height, x, y), other = is_edge(above, width, height, x, y);
      put(image, x, y,
          one && other ? colour{255, 255, 255}
          : one        ? reference_colour
          : other      ? query_colour
                       : colour{grey, grey, grey});
    }
  }
  if (result.matched) put_outline(image, query, result.to_reference, step);
  put_frame(image, result.matched ? match_colour : no_match_colour);
  return image;
}

}  // namespace

picture draw_match(const grey_image& reference, const grey_image& query, const match_result& result,
                   int side) {
  const picture right = draw_overlay(reference, query, result, side);
  const float step = step_of(query, side);
  picture left = draw_grey(query, step);
  for (const auto& p : result.query_points) {
    const int x = static_cast<int>(p.x / step), y = static_cast<int>(p.y / step);
    for (int d = -2; d <= 2; ++d) {
      put(left, x + d, y, query_colour);
      put(left, x, y + d, query_colour);
    }
  }
  constexpr int gap = 12;
  picture both = empty_picture(left.width + gap + right.width, std::max(left.height, right.height));
  paste(both, left, 0, (both.height - left.height) / 2);
  paste(both, right, left.width + gap, (both.height - right.height) / 2);
  return both;
}

picture draw_found(const grey_image& reference, const grey_image& query, const match_result& result,
                   int side) {
  const float step = step_of(query, side);
  picture image = draw_grey(query, step);
  if (result.matched) put_outline(image, reference, inverse(result.to_reference), step);
  put_frame(image, result.matched ? match_colour : no_match_colour);
  return image;
}

picture contact_sheet(const std::vector<picture>& pictures) {
  constexpr int gap = 4;
  const int columns =
      std::max(1, static_cast<int>(std::ceil(std::sqrt(static_cast<double>(pictures.size())))));
  const int rows = (static_cast<int>(pictures.size()) + columns - 1) / columns;
  int width = 1, height = 1;
  for (const auto& image : pictures) {
    width = std::max(width, image.width);
    height = std::max(height, image.height);
  }
  picture sheet = empty_picture(columns * (width + gap) + gap, rows * (height + gap) + gap);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    paste(sheet, pictures[i], gap + static_cast<int>(i) % columns * (width + gap),
          gap + static_cast<int>(i) / columns * (height + gap));
  }
  return sheet;
}

}  // namespace roost::tools
