#include "placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <roost/error.hpp>
#include <sstream>
#include <string>

namespace roost::tools {
namespace {

using rows = std::array<vec3, 3>;

rows product(const rows& a, const rows& b) {
  rows result{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) result[i][j] += a[i][k] * b[k][j];
    }
  }
  return result;
}

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

bounds of_corners(const mesh& surface, const affine* where) {
  bounds box;
  for (const auto& t : surface.triangles) {  // vertices that no triangle uses do not count
    for (const auto corner : t) {
      const auto& v = surface.vertices[corner];
      vec3 p{v.x, v.y, v.z};
      for (std::size_t k = 0; k < 3; ++k) p[k] = surface.origin[k] + surface.scale * p[k];
      box.add(where == nullptr ? p : (*where)(p));
    }
  }
  return box;
}

}  // namespace

vec3 affine::operator()(const vec3& p) const {
  vec3 result = shift;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) result[i] += rows[i][k] * p[k];
  }
  return result;
}

affine affine::after(const affine& other) const { return {product(rows, other.rows), (*this)(other.shift)}; }

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
      result.linear = product(rotation({n[0], n[1], n[2]}, n[3]), result.linear);
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

bounds::bounds() {
  low.fill(std::numeric_limits<double>::infinity());
  high.fill(-std::numeric_limits<double>::infinity());
}

void bounds::add(const vec3& p) {
  for (int i = 0; i < 3; ++i) {
    low[i] = std::min(low[i], p[i]);
    high[i] = std::max(high[i], p[i]);
  }
}

void bounds::add(const bounds& other) {
  for (int i = 0; i < 3; ++i) {
    low[i] = std::min(low[i], other.low[i]);
    high[i] = std::max(high[i], other.high[i]);
  }
}

vec3 bounds::centre() const {
  vec3 result;
  for (int i = 0; i < 3; ++i) result[i] = (low[i] + high[i]) / 2;
  return result;
}

double bounds::longest_side() const {
  return std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]});
}

bounds bounds_of(const mesh& surface) { return of_corners(surface, nullptr); }
bounds bounds_of(const mesh& surface, const affine& where) { return of_corners(surface, &where); }

affine place_mesh(const bounds& of_mesh, const placement& how, double unit, const bounds* onto) {
  const auto from = of_mesh.centre();
  auto to = from;
  affine result{how.linear, {}};
  if (onto != nullptr) {
    to = onto->centre();
    const double side = of_mesh.longest_side();
    for (auto& row : result.rows) {
      for (auto& entry : row) entry *= side == 0 ? 1 : onto->longest_side() / side;
    }
  }
  // A mesh that is not turned stays exactly where it is.
  bool turned = false;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) turned = turned || result.rows[i][k] != (i == k ? 1 : 0);
  }
  if (turned) {
    const auto moved = result(from);
    for (int i = 0; i < 3; ++i) result.shift[i] = to[i] - moved[i];
  } else {
    for (int i = 0; i < 3; ++i) result.shift[i] = to[i] - from[i];
  }
  for (int i = 0; i < 3; ++i) result.shift[i] += how.move[i] * unit;
  return result;
}

frame frame_around(const bounds& box, std::uint32_t side) {
  const double length = box.longest_side();
  return {side, box.centre(), length == 0 ? 1 : length};
}

affine to_snapped(const frame& grid, const affine& where, const mesh& of) {
  const double steps = 256.0 * grid.side / grid.length;
  affine result = where;
  const auto origin = where(of.origin);
  for (std::size_t i = 0; i < 3; ++i) {
    for (auto& entry : result.rows[i]) entry *= of.scale * steps;
    result.shift[i] = (origin[i] - grid.centre[i]) * steps + 128.0 * grid.side;
  }
  return result;
}

}  // namespace roost::tools
