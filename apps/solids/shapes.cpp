#include "shapes.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <numbers>
#include <roost/error.hpp>

namespace roost::tools {
namespace {

constexpr double full_turn = 2 * std::numbers::pi;

mesh box() {
  mesh result;
  for (int i = 0; i < 8; ++i)
    result.vertices.push_back({(i & 1) - 0.5f, (i >> 1 & 1) - 0.5f, static_cast<float>(i >> 2) - 0.5f});
  result.triangles = {{0, 2, 3}, {0, 3, 1}, {4, 5, 7}, {4, 7, 6}, {0, 1, 5}, {0, 5, 4},
                      {2, 6, 7}, {2, 7, 3}, {0, 4, 6}, {0, 6, 2}, {1, 3, 7}, {1, 7, 5}};
  return result;
}

/// Points on circles of latitude, n around, and two poles.
mesh sphere(std::uint32_t n) {
  mesh result;
  const std::uint32_t rings = std::max(n / 2, 2u);
  result.vertices.push_back({0, 0, -0.5f});
  for (std::uint32_t i = 1; i < rings; ++i) {
    const double up = std::numbers::pi * i / rings;
    for (std::uint32_t j = 0; j < n; ++j) {
      const double around = full_turn * j / n;
      result.vertices.push_back({static_cast<float>(std::sin(up) * std::cos(around) / 2),
                                 static_cast<float>(std::sin(up) * std::sin(around) / 2),
                                 static_cast<float>(-std::cos(up) / 2)});
    }
  }
  result.vertices.push_back({0, 0, 0.5f});
  const auto at = [&](std::uint32_t ring, std::uint32_t j) {
    return ring == 0 ? 0 : ring == rings ? 1 + (rings - 1) * n : 1 + (ring - 1) * n + j % n;
  };
  for (std::uint32_t i = 0; i < rings; ++i) {
    for (std::uint32_t j = 0; j < n; ++j) {
      const auto a = at(i, j), b = at(i, j + 1), c = at(i + 1, j + 1), d = at(i + 1, j);
      if (a != b) result.triangles.push_back({a, b, c});
      if (c != d) result.triangles.push_back({a, c, d});
    }
  }
  return result;
}

/// A ring whose tube is a fifth as thick as the ring is wide.
mesh torus(std::uint32_t n) {
  mesh result;
  const std::uint32_t m = std::max(n / 2, 3u);
  for (std::uint32_t i = 0; i < n; ++i) {
    const double around = full_turn * i / n;
    for (std::uint32_t j = 0; j < m; ++j) {
      const double through = full_turn * j / m, far = 0.35 + 0.15 * std::cos(through);
      result.vertices.push_back({static_cast<float>(far * std::cos(around)),
                                 static_cast<float>(far * std::sin(around)),
                                 static_cast<float>(0.15 * std::sin(through))});
    }
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t j = 0; j < m; ++j) {
      const auto at = [&](std::uint32_t u, std::uint32_t v) { return u % n * m + v % m; };
      const auto a = at(i, j), b = at(i + 1, j), c = at(i + 1, j + 1), d = at(i, j + 1);
      result.triangles.push_back({a, b, c});
      result.triangles.push_back({a, c, d});
    }
  }
  return result;
}

}  // namespace

std::optional<mesh> make_shape(std::string_view name) {
  const auto kind = name.substr(0, name.find(':'));
  if (kind != "sphere" && kind != "box" && kind != "torus") return {};
  std::uint32_t n = 64;
  if (kind.size() != name.size()) {
    const auto digits = name.substr(kind.size() + 1);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (kind == "box" || failure != std::errc() || end != digits.data() + digits.size() || n < 3 || n > 4096)
      throw invalid_argument(
          fmt::format("{}: no such shape; take box, sphere:N or torus:N with N from 3 to 4096", name));
  }
  return kind == "box" ? box() : kind == "sphere" ? sphere(n) : torus(n);
}

}  // namespace roost::tools
