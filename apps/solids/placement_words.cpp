#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <roost/error.hpp>
#include <sstream>
#include <string>

#include "placement.hpp"

namespace roost::tools {
namespace {

using rows = std::array<vec3, 3>;

/// Rodrigues' formula, with whole quarter turns exact.
rows rotation(vec3 axis, double degrees) {
  const double length = std::hypot(axis[0], axis[1], axis[2]);
  for (auto& a : axis) a /= length;
  const double turn = std::remainder(degrees, 360);
  const bool quarter = std::fmod(turn, 90) == 0;
  double c = std::cos(turn * std::numbers::pi / 180), s = std::sin(turn * std::numbers::pi / 180);
  if (quarter) c = std::round(c), s = std::round(s);
  const auto [x, y, z] = axis;
  return {{{c + x * x * (1 - c), x * y * (1 - c) - z * s, x * z * (1 - c) + y * s},
           {y * x * (1 - c) + z * s, c + y * y * (1 - c), y * z * (1 - c) - x * s},
           {z * x * (1 - c) - y * s, z * y * (1 - c) + x * s, c + z * z * (1 - c)}}};
}

}  // namespace

placement parse_placement(std::string_view text) {
  placement result;
  std::istringstream words{std::string(text)};
  std::string word;
  const auto numbers = [&]<std::size_t N>(std::array<double, N>& to) {
    for (auto& number : to) {
      std::string digits;
      words >> digits;
      char* end = nullptr;
      number = std::strtod(digits.c_str(), &end);
      if (digits.empty() || *end != 0 || !std::isfinite(number)) {
        throw invalid_argument(fmt::format("placement '{}': '{}' needs {} numbers, but has '{}'", text, word,
                                           N, digits.empty() ? "nothing more" : digits));
      }
    }
  };
  while (words >> word) {
    if (word == "rotate") {
      std::array<double, 4> n;
      numbers(n);
      if (n[0] == 0 && n[1] == 0 && n[2] == 0)
        throw invalid_argument(
            fmt::format("placement '{}': the axis of a rotation is 0 0 0; give another", text));
      result.linear = affine{rotation({n[0], n[1], n[2]}, n[3]), {}}.after({result.linear, {}}).rows;
    } else if (word == "move") {
      std::array<double, 3> n;
      numbers(n);
      for (int i = 0; i < 3; ++i) result.move[i] += n[i];
    } else if (word == "scale") {
      std::array<double, 1> n;
      numbers(n);
      if (n[0] == 0)
        throw invalid_argument(fmt::format("placement '{}': scale 0 leaves nothing; give another", text));
      for (auto& row : result.linear) {
        for (auto& entry : row) entry *= n[0];
      }
    } else {
      throw invalid_argument(fmt::format(
          "placement '{}': no '{}' known; write rotate X Y Z DEGREES, move X Y Z or scale S", text, word));
    }
    double most = 0;
    for (const auto& row : {result.linear[0], result.linear[1], result.linear[2], result.move}) {
      for (const double entry : row) most = std::max(most, std::isnan(entry) ? HUGE_VAL : std::abs(entry));
    }
    if (most > 1e100)
      throw invalid_argument(
          fmt::format("placement '{}': takes the mesh too far; give smaller numbers", text));
  }
  return result;
}

}  // namespace roost::tools
