#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "apps/match/matcher.hpp"

/// \file
/// Images whose similarity is known.

namespace roost::tools {

/// A scene without pixels: boxes and discs, each with its shade, drawn one over the other.
class drawn_scene {
 public:
  drawn_scene(std::uint32_t seed, float width, float height) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> part(0, 1);
    for (int i = 0; i < 70; ++i) {
      const float turn = 6.2832f * part(random), a = (0.02f + 0.1f * part(random)) * width,
                  b = (0.02f + 0.1f * part(random)) * width;
      pieces_.push_back({width * part(random), height * part(random), std::cos(turn) / a, std::sin(turn) / a,
                         b / a, 255 * part(random), part(random) < 0.5f});
    }
  }
  float operator()(image_point p) const {
    for (std::size_t i = pieces_.size(); i-- > 0;) {
      const piece& of = pieces_[i];
      const float dx = p.x - of.x, dy = p.y - of.y;
      const float u = dx * of.c + dy * of.s, v = (dy * of.c - dx * of.s) / of.shape;
      if (of.box ? std::abs(u) < 1 && std::abs(v) < 1 : u * u + v * v < 1) return of.shade;
    }
    return 128;
  }

 private:
  struct piece {
    float x, y, c, s, shape, shade;
    bool box;
  };
  std::vector<piece> pieces_;
};

/// A camera's view of a scene: pixels are means of 2 x 2 samples; with different light, and noise.
inline grey_image photograph(const drawn_scene& of, const similarity& to_scene, int width, int height,
                             float light = 1, float noise = 0, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> more(0, 1);
  grey_image image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float sum = 0;
      for (int i = 0; i < 4; ++i) {
        sum += of(to_scene({static_cast<float>(x) + static_cast<float>(i % 2) / 2 - 0.25f,
                            static_cast<float>(y) + static_cast<float>(i / 2) / 2 - 0.25f}));
      }
      image.pixels.push_back(std::clamp(sum / 4 * light + noise * more(random), 0.f, 255.f));
    }
  }
  return image;
}

/// A rotation (in radians) and a scale around the middle of an image, then a shift to (dx, dy) from the
/// middle of another.
inline similarity around_middle(float scale, float turn, float dx, float dy, int width, int height,
                                int to_width, int to_height) {
  similarity s{scale * std::cos(turn), scale * std::sin(turn), 0, 0};
  const auto at = s({static_cast<float>(width - 1) / 2, static_cast<float>(height - 1) / 2});
  s.x = static_cast<float>(to_width - 1) / 2 + dx - at.x;
  s.y = static_cast<float>(to_height - 1) / 2 + dy - at.y;
  return s;
}

}  // namespace roost::tools
