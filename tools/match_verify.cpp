#include "match_verify.hpp"

namespace roost::tools {

match_times median_of(std::vector<match_times> runs) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(), [](auto& a, auto& b) { return a.all() < b.all(); });
  return *middle;
}

float image_features::diagonal() const {
  return std::hypot(static_cast<float>(width), static_cast<float>(height));
}

point_cells::point_cells(const std::vector<image_point>& points, float side) : side(side) {
  float width = 0, height = 0;
  for (const auto& p : points) {
    width = std::max(width, p.x);
    height = std::max(height, p.y);
  }
  columns = static_cast<int>(width / side) + 1;
  rows = static_cast<int>(height / side) + 1;
  begin.assign(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows) + 1, 0);
  const auto cell = [&](image_point p) {
    return static_cast<std::size_t>(static_cast<int>(p.y / side) * columns + static_cast<int>(p.x / side));
  };
  for (const auto& p : points) ++begin[cell(p) + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  auto next = begin;
  order.resize(points.size());
  for (std::uint32_t i = 0; i < points.size(); ++i) order[next[cell(points[i])]++] = i;
}

similarity similarity_of(image_point a, image_point b, image_point to_a, image_point to_b) {
  const float x = b.x - a.x, y = b.y - a.y, u = to_b.x - to_a.x, v = to_b.y - to_a.y;
  const float norm = x * x + y * y;
  similarity s;
  s.a = (u * x + v * y) / norm;
  s.b = (v * x - u * y) / norm;
  s.x = to_a.x - (s.a * a.x - s.b * a.y);
  s.y = to_a.y - (s.b * a.x + s.a * a.y);
  return s;
}

}  // namespace roost::tools
