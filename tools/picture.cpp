#include "picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <numbers>
#include <string>

#include "voxelize.hpp"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace roost::tools {
namespace {

struct vec {
  double x = 0, y = 0, z = 0;
  friend vec operator+(vec a, vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend vec operator*(double s, vec a) { return {s * a.x, s * a.y, s * a.z}; }
};
double dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
vec cross(vec a, vec b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
vec unit(vec a) { return 1 / std::sqrt(dot(a, a)) * a; }

constexpr int samples = 2;        // a pixel is samples x samples samples
constexpr double margin = 0.04;   // white on each side, as a part of the picture

/// An orthographic view: where a point is on the picture, in samples, and how far away.
struct view {
  vec right, down, away;
  double scale = 1, left = 0, top = 0, front = 0;

  double column(vec p) const { return dot(p, right) * scale + left; }
  double row(vec p) const { return dot(p, down) * scale + top; }
};

struct box {
  vec low{1e9, 1e9, 1e9}, high{-1e9, -1e9, -1e9};
  void add(vec p) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
  }
};

vec low_corner(std::uint32_t key) {
  const auto v = voxel_of(key);
  return {double(v.x), double(v.y), double(v.z)};
}

constexpr vec cube{1, 1, 1};

/// The view that shows all voxels as large as they fit.
view look(std::span<const std::uint32_t> keys, const picture_options& options) {
  const double turn = options.turn * std::numbers::pi / 180, tilt = options.look_down * std::numbers::pi / 180;
  const auto front = options.up == axis::y ? vec{0, 0, 1} : options.up == axis::z ? vec{0, -1, 0} : vec{0, 0, 1};
  const auto up = options.up == axis::y ? vec{0, 1, 0} : options.up == axis::z ? vec{0, 0, 1} : vec{1, 0, 0};
  const auto side = cross(up, front);
  const auto to_eye = std::cos(tilt) * (std::cos(turn) * front + std::sin(turn) * side) + std::sin(tilt) * up;
  view result;
  result.away = -1 * unit(to_eye);
  result.right = unit(cross(result.away, up));
  result.down = cross(result.away, result.right);
  box seen;  // in the axes of the picture
  for (const auto key : keys) {
    const auto centre = low_corner(key) + 0.5 * cube;
    seen.add({dot(centre, result.right), dot(centre, result.down), dot(centre, result.away)});
  }
  const double size = options.side * samples;
  const double across = std::max(seen.high.x - seen.low.x, seen.high.y - seen.low.y) + std::sqrt(3);
  result.scale = size * (1 - 2 * margin) / across;
  result.left = size / 2 - result.scale * (seen.low.x + seen.high.x) / 2;
  result.top = size / 2 - result.scale * (seen.low.y + seen.high.y) / 2;
  result.front = seen.low.z - 2;
  return result;
}

/// What a sample sees: distance, key and face in one number, so that the smaller of two is the nearer.
using seen = std::uint64_t;
constexpr seen nothing = ~seen{0};
float depth_of(seen s) { return std::bit_cast<float>(static_cast<std::uint32_t>(s >> 32)); }
std::uint32_t key_of(seen s) { return static_cast<std::uint32_t>(s) >> 2; }
int face_of(seen s) { return static_cast<int>(s & 3); }

/// The z-buffer: every sample sees the nearest of all cubes.
class z_buffer {
 public:
  z_buffer(const view& from, int side) : from_(from), side_(side), seen_(std::size_t(side) * side, nothing) {}

  void draw(std::uint32_t key) {
    const auto low = low_corner(key);
    const auto centre = low + 0.5 * cube;
    const auto reach = [&](vec a) { return from_.scale * (std::abs(a.x) + std::abs(a.y) + std::abs(a.z)) / 2; };
    const auto first = [&](double at) { return std::max(0, int(std::ceil(at - 0.5))); };
    const auto last = [&](double at) { return std::min(side_ - 1, int(std::floor(at - 0.5))); };
    const double c = from_.column(centre), r = from_.row(centre), across = reach(from_.right), along = reach(from_.down);
    for (int row = first(r - along); row <= last(r + along); ++row) {
      for (int column = first(c - across); column <= last(c + across); ++column) {
        // The ray of this sample, where it enters and leaves the cube: the last entry and the first exit of three pairs of planes.
        const auto start = (column + 0.5 - from_.left) / from_.scale * from_.right + (row + 0.5 - from_.top) / from_.scale * from_.down;
        double enter = -std::numeric_limits<double>::infinity(), leave = -enter;
        int face = 0;
        const auto plane_pair = [&](double at, double towards, double near, int axis) {
          if (std::abs(towards) < 1e-12) {
            if (at < near || at >= near + 1) leave = -std::numeric_limits<double>::infinity();
            return;
          }
          const double a = (near - at) / towards, b = (near + 1 - at) / towards;
          if (std::min(a, b) > enter) enter = std::min(a, b), face = axis;
          leave = std::min(leave, std::max(a, b));
        };
        plane_pair(start.x, from_.away.x, low.x, 0);
        plane_pair(start.y, from_.away.y, low.y, 1);
        plane_pair(start.z, from_.away.z, low.z, 2);
        if (enter >= leave) continue;
        const auto depth = std::bit_cast<std::uint32_t>(static_cast<float>(std::max(enter - from_.front, 0.0)));
        see(row, column, seen{depth} << 32 | seen{key} << 2 | static_cast<seen>(face));
      }
    }
  }

  seen at(int row, int column) const { return seen_[std::size_t(row) * side_ + column]; }
  int side() const { return side_; }

 private:
  void see(int row, int column, seen what) {
    const std::atomic_ref sample(seen_[std::size_t(row) * side_ + column]);
    for (auto old = sample.load(std::memory_order_relaxed);
         what < old && !sample.compare_exchange_weak(old, what, std::memory_order_relaxed);) {
    }
  }

  view from_;
  int side_;
  std::vector<seen> seen_;
};

/// Light and colour of the samples of a finished z-buffer.
class shading {
 public:
  shading(const z_buffer& buffer, const view& from, const box& all, axis up) : buffer_(buffer), from_(from), all_(all), up_(up) {}

  /// Linear red, green and blue of a sample.
  vec operator()(int row, int column) const {
    const auto s = buffer_.at(row, column);
    if (s == nothing) return {1, 1, 1};
    const auto [normal, open] = surface(row, column, depth_of(s));
    const auto light = unit(-0.75 * from_.away + -0.45 * from_.right + -0.65 * from_.down);
    const double lit = std::max(0.0, dot(normal, light));
    const double edge = cube_side();
    const double faces[] = {0.82, 0.82, 0.82};
    (void)faces;
    double brightness = (0.30 + 0.80 * lit) * open;
    if (edge > 4) {
      const int f = face_of(s);
      const double by_face = f == int(up_) ? 1.12 : f == (int(up_) + 1) % 3 ? 0.92 : 0.78;
      brightness *= std::lerp(1.0, by_face, std::clamp((edge - 4) / 6, 0.0, 1.0));
    }
    const auto v = low_corner(key_of(s));
    const auto along = [](double at, double low, double high) { return high > low ? (at - low) / (high - low) : 0.5; };
    const auto channel = [&](double t) { return std::pow(0.12 + 0.88 * t, 2.2) * brightness; };
    return {channel(along(v.x, all_.low.x, all_.high.x)), channel(along(v.y, all_.low.y, all_.high.y)),
            channel(along(v.z, all_.low.z, all_.high.z))};
  }

 private:
  double cube_side() const { return from_.scale / samples; }  // of a voxel, in pixels

  struct patch {
    vec normal;
    double open;  // 1: nothing near rises above the surface; 0: it lies at the bottom of a pit
  };

  /// The plane through the surface around a sample (least squares), and how open the sky above it is.
  patch surface(int row, int column, double depth) const {
    const double voxel = from_.scale;  // in samples
    const double reach = std::clamp(2.5 * voxel, 3.0, 60.0);
    const double step = reach / 4;
    double n = 0, sx = 0, sy = 0, sz = 0, sxx = 0, sxy = 0, syy = 0, sxz = 0, syz = 0;
    for (int i = -4; i <= 4; ++i) {
      for (int j = -4; j <= 4; ++j) {
        const int r = row + int(std::lround(i * step)), c = column + int(std::lround(j * step));
        if (r < 0 || c < 0 || r >= buffer_.side() || c >= buffer_.side()) continue;
        const auto s = buffer_.at(r, c);
        if (s == nothing) continue;
        const double x = (c - column) / voxel, y = (r - row) / voxel, z = depth_of(s) - depth;
        if (std::abs(z) > 3 * reach / voxel) continue;  // another surface
        n += 1, sx += x, sy += y, sz += z, sxx += x * x, sxy += x * y, syy += y * y, sxz += x * z, syz += y * z;
      }
    }
    // z = a x + b y + c
    const double cxx = sxx - sx * sx / n + 1e-6, cxy = sxy - sx * sy / n, cyy = syy - sy * sy / n + 1e-6;
    const double cxz = sxz - sx * sz / n, cyz = syz - sy * sz / n, determinant = cxx * cyy - cxy * cxy;
    const double a = (cxz * cyy - cyz * cxy) / determinant, b = (cyz * cxx - cxz * cxy) / determinant;
    const auto normal = unit(a * from_.right + b * from_.down + -1 * from_.away);
    // Sky: samples on rings around; those that rise above the plane hide it.
    double hidden = 0, looked = 0;
    for (int ring = 1; ring <= 4; ++ring) {
      const double radius = buffer_.side() * 0.012 * ring;
      for (int k = 0; k < 12; ++k) {
        const double angle = (k + 0.5 * ring) * std::numbers::pi / 6;
        const int r = row + int(std::lround(radius * std::sin(angle))), c = column + int(std::lround(radius * std::cos(angle)));
        looked += 1;
        if (r < 0 || c < 0 || r >= buffer_.side() || c >= buffer_.side()) continue;
        const auto s = buffer_.at(r, c);
        if (s == nothing) continue;
        const double distance = radius / voxel;
        const double plane = a * (c - column) / voxel + b * (r - row) / voxel;
        const double rise = (depth + plane - depth_of(s)) / distance;
        hidden += std::clamp(rise - 0.1, 0.0, 1.0) * std::clamp(4 - rise, 0.0, 1.0);
      }
    }
    return {normal, 1 - 0.9 * hidden / looked};
  }

  const z_buffer& buffer_;
  const view& from_;
  const box& all_;
  axis up_;
};

}  // namespace

picture draw_voxels(const host& cpu, std::span<const std::uint32_t> keys, const picture_options& options) {
  picture result{options.side, std::vector<std::uint8_t>(std::size_t(options.side) * options.side * 3, 255)};
  if (keys.empty()) return result;
  const auto from = look(keys, options);
  box all;
  for (const auto key : keys) all.add(low_corner(key));
  z_buffer buffer(from, options.side * samples);
  cpu.for_each(keys.size(), [&](std::size_t i) { buffer.draw(keys[i]); });
  const shading shade(buffer, from, all, options.up);
  cpu.launch(static_cast<std::size_t>(options.side), 0, [&](auto, std::size_t row, auto*) {
    for (int column = 0; column < options.side; ++column) {
      vec sum;
      for (int i = 0; i < samples * samples; ++i) {
        sum = sum + shade(int(row) * samples + i / samples, column * samples + i % samples);
      }
      auto* const pixel = &result.pixels[(row * options.side + column) * 3];
      const auto byte = [](double linear) {
        return static_cast<std::uint8_t>(std::lround(255 * std::pow(std::clamp(linear, 0.0, 1.0), 1 / 2.2)));
      };
      const auto mean = 1.0 / (samples * samples) * sum;
      pixel[0] = byte(mean.x), pixel[1] = byte(mean.y), pixel[2] = byte(mean.z);
    }
  });
  return result;
}

void write_png(const picture& image, const std::filesystem::path& file) {
  std::string png;
  const auto append = [](void* to, void* bytes, int n) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), static_cast<std::size_t>(n));
  };
  std::ofstream stream(file, std::ios::binary);
  if (!stbi_write_png_to_func(append, &png, image.side, image.side, 3, image.pixels.data(), image.side * 3) ||
      !stream.write(png.data(), static_cast<std::streamsize>(png.size())).flush()) {
    throw error(fmt::format("{}: the picture cannot be written; check the directory, its permissions and its space", file.string()));
  }
}

}  // namespace roost::tools
