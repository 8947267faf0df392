#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace roost::tools {

/// Replaces single bright pixels, which cannot be stars, by the mean of their neighbours. `pixels`: rows of
/// `width` pixels, without their background; `noise`: of one pixel.
inline void repair_hot_pixels(std::span<float> pixels, std::size_t width, float noise) {
  const auto w = static_cast<std::ptrdiff_t>(width),
             h = static_cast<std::ptrdiff_t>(width == 0 ? 0 : pixels.size() / width);
  const std::vector<float> before(pixels.begin(), pixels.end());
  const auto at = [&](std::ptrdiff_t x, std::ptrdiff_t y) {
    return before[static_cast<std::size_t>(y * w + x)];
  };
  for (std::ptrdiff_t y = 0; y < h; ++y) {
    for (std::ptrdiff_t x = 0; x < w; ++x) {
      const float here = at(x, y);
      if (here < 5 * noise) continue;
      float most = 0, sum = 0;
      int n = 0;
      for (auto j = std::max<std::ptrdiff_t>(y - 1, 0); j <= std::min(y + 1, h - 1); ++j) {
        for (auto i = std::max<std::ptrdiff_t>(x - 1, 0); i <= std::min(x + 1, w - 1); ++i) {
          if (i == x && j == y) continue;
          most = std::max(most, at(i, j));
          sum += at(i, j);
          ++n;
        }
      }
      if (n != 0 && most < 0.2f * here)
        pixels[static_cast<std::size_t>(y * w + x)] = sum / static_cast<float>(n);
    }
  }
}

}  // namespace roost::tools
