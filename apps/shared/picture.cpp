#include "picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "output_file.hpp"
#include "voxel.hpp"

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

constexpr int samples = 2;       // a pixel is samples x samples samples
constexpr double margin = 0.04;  // white on each side, as a part of the picture
constexpr double gamma = 2.2;    // bytes are light to the power of 1 / gamma
constexpr vec white{1, 1, 1};

/// An orthographic view: where a point of the grid is on the picture, in samples, and back.
struct view {
  vec right, down, away;  // the axes of the picture, of length 1
  double scale = 1;       // samples a voxel
  double left = 0, top = 0;
  double front = 0;  // a depth in front of all voxels

  double row(vec p) const { return dot(p, down) * scale + top; }
  double column(vec p) const { return dot(p, right) * scale + left; }
  vec start(double row, double column) const {
    return (column - left) / scale * right + (row - top) / scale * down;
  }
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

/// The view that shows all voxels as large as possible.
view look(std::span<const std::uint32_t> words, const picture_options& options) {
  const double turn = options.turn * std::numbers::pi / 180,
               tilt = options.look_down * std::numbers::pi / 180;
  const auto axis_up = options.up == axis::x   ? vec{1, 0, 0}
                       : options.up == axis::y ? vec{0, 1, 0}
                                               : vec{0, 0, 1};
  const auto up = options.upside_down ? -1 * axis_up : axis_up;
  const auto front = options.up == axis::z ? vec{0, -1, 0} : vec{0, 0, 1};
  const auto side = cross(up, front);
  const auto to_eye = std::cos(tilt) * (std::cos(turn) * front + std::sin(turn) * side) + std::sin(tilt) * up;
  view result;
  result.away = -1 * unit(to_eye);
  result.right = unit(cross(result.away, up));
  result.down = cross(result.away, result.right);
  box seen;  // in the axes of the picture
  const auto add = [&](vec centre) {
    seen.add({dot(centre, result.right), dot(centre, result.down), dot(centre, result.away)});
  };
  if (options.grid == 0) {
    for (const auto word : words) add(low_corner(word) + 0.5 * cube);
  } else {
    for (int corner = 0; corner < 8; ++corner) {
      const double side = options.grid;
      add({(corner & 1) * side, (corner >> 1 & 1) * side, (corner >> 2) * side});
    }
  }
  const double size = options.side * samples;
  const double across = std::max(seen.high.x - seen.low.x, seen.high.y - seen.low.y) + std::sqrt(3);
  result.scale = size * (1 - 2 * margin) / across;
  result.left = size / 2 - result.scale * (seen.low.x + seen.high.x) / 2;
  result.top = size / 2 - result.scale * (seen.low.y + seen.high.y) / 2;
  result.front = seen.low.z - 2;
  return result;
}

/// What a sample sees: distance, key and face in one number, so that the smaller of two is the
/// nearer.
using seen = std::uint64_t;
constexpr seen nothing = ~seen{0};
float depth_of(seen s) { return std::bit_cast<float>(static_cast<std::uint32_t>(s >> 32)); }
std::uint32_t key_of(seen s) { return static_cast<std::uint32_t>(s) >> 2; }
int face_of(seen s) { return static_cast<int>(s & 3); }

/// The z-buffer: every sample sees the nearest of all cubes.
class z_buffer {
 public:
  z_buffer(const view& from, int side) : from_(from), side_(side), seen_(std::size_t(side) * side, nothing) {
    // A ray crosses the two planes of a cube across an axis one after the other. Nearly parallel rays count
    // as parallel.
    const auto steps = [](double away) {
      return 1 / (std::abs(away) < 1e-6 ? std::copysign(1e-6, away) : away);
    };
    per_voxel_ = {steps(from.away.x), steps(from.away.y), steps(from.away.z)};
  }

  void draw(std::uint32_t word) {
    const auto key = voxel_word<std::uint32_t>::position(word);
    const auto low = low_corner(key), centre = low + 0.5 * cube;
    const auto reach = [&](vec a) {
      return from_.scale * (std::abs(a.x) + std::abs(a.y) + std::abs(a.z)) / 2;
    };
    const auto first = [&](double at) { return std::max(0, int(std::ceil(at - 0.5))); };
    const auto last = [&](double at) { return std::min(side_ - 1, int(std::floor(at - 0.5))); };
    const double middle_row = from_.row(centre), middle_column = from_.column(centre);
    const double height = reach(from_.down), width = reach(from_.right);
    for (int row = first(middle_row - height); row <= last(middle_row + height); ++row) {
      for (int column = first(middle_column - width); column <= last(middle_column + width); ++column) {
        // The ray of this sample is in the cube after the last of three entries and before the
        // first of three exits.
        const auto start = from_.start(row + 0.5, column + 0.5);
        const std::array enter = {entry(low.x - start.x, per_voxel_.x), entry(low.y - start.y, per_voxel_.y),
                                  entry(low.z - start.z, per_voxel_.z)};
        const auto leave = std::min({enter[0] + std::abs(per_voxel_.x), enter[1] + std::abs(per_voxel_.y),
                                     enter[2] + std::abs(per_voxel_.z)});
        const auto face = std::ranges::max_element(enter);
        if (*face >= leave) continue;
        const auto depth =
            std::bit_cast<std::uint32_t>(static_cast<float>(std::max(*face - from_.front, 0.0)));
        see(row, column, seen{depth} << 32 | seen{key} << 2 | static_cast<seen>(face - enter.begin()));
      }
    }
  }

  seen at(int row, int column) const {
    const bool inside = row >= 0 && column >= 0 && row < side_ && column < side_;
    return inside ? seen_[std::size_t(row) * side_ + column] : nothing;
  }
  int side() const { return side_; }

 private:
  static double entry(double low, double per_voxel) {
    return per_voxel > 0 ? low * per_voxel : (low + 1) * per_voxel;
  }

  void see(int row, int column, seen what) {
    const std::atomic_ref sample(seen_[std::size_t(row) * side_ + column]);
    for (auto old = sample.load(std::memory_order_relaxed);
         what < old && !sample.compare_exchange_weak(old, what, std::memory_order_relaxed);) {
    }
  }

  const view& from_;
  int side_;
  vec per_voxel_;  // how far a ray goes from one plane between voxels to the next
  std::vector<seen> seen_;
};

/// Light and colour of the samples of a finished z-buffer. The shape is read from the z-buffer
/// itself: a voxel has no normal.
class shading {
 public:
  /// `words`: ascending, if their classes or shades are the colours; otherwise these show where a voxel is.
  shading(const z_buffer& buffer, const view& from, const box& all, std::span<const std::uint32_t> words,
          const picture_options& options)
      : buffer_(buffer), from_(from), all_(all), words_(words), options_(options) {
    // If cubes are large enough to be seen, their faces differ: the top, and two sides.
    const double visible = std::clamp((from.scale / samples - 3) / 5, 0.0, 1.0);
    const auto top = static_cast<std::size_t>(options.up);
    by_face_[top] = std::lerp(1.0, 1.15, visible);
    by_face_[(top + 1) % 3] = std::lerp(1.0, 0.92, visible);
    by_face_[(top + 2) % 3] = std::lerp(1.0, 0.75, visible);
    const double voxel = from.scale;  // in samples
    // Wide enough to see the slope of a stair of voxels.
    const double reach = std::clamp(3.2 * voxel, 4.0, 60.0);
    for (int i = -4; i <= 4; ++i) {
      for (int j = -4; j <= 4; ++j) near_.push_back(offset(i * reach / 4, j * reach / 4, voxel));
    }
    far_apart_ = 8 * reach / voxel;
    level_ = 0.01 * static_cast<double>(near_.size()) * reach * reach / voxel / voxel;
    for (int ring = 1; ring <= 5; ++ring) {
      const double radius = buffer.side() * 0.011 * ring;
      for (int i = 0; i < 12; ++i) {
        const double angle = (i + 0.5 * ring) * std::numbers::pi / 6;
        around_.push_back(offset(radius * std::sin(angle), radius * std::cos(angle), voxel));
      }
    }
    light_ = unit(-0.80 * from.away + -0.45 * from.right + -0.60 * from.down);
  }

  /// Red, green and blue of a pixel, linear in light: the mean of its samples.
  vec operator()(int row, int column) const {
    vec sum, paint;
    double depth = -1, light = 0;  // of the last sample
    std::uint32_t painted = ~0u;   // the voxel whose colour is `paint`
    for (int i = 0; i < samples * samples; ++i) {
      const int r = row * samples + i / samples, c = column * samples + i % samples;
      const auto s = buffer_.at(r, c);
      if (s == nothing) {
        sum = sum + white;
        continue;
      }
      // Samples of the same part of the surface have about the same light.
      if (depth < 0 || std::abs(depth_of(s) - depth) > far_apart_) {
        depth = depth_of(s);
        light = light_at(r, c, depth);
      }
      if (key_of(s) != painted) painted = key_of(s), paint = colour(painted);
      sum = sum + light * by_face_[face_of(s)] * paint;
    }
    return 1.0 / (samples * samples) * sum;
  }

 private:
  struct step {
    int rows, columns;
    double x, y, length;  // the same in voxels
  };
  static step offset(double rows, double columns, double voxel) {
    const auto r = static_cast<int>(std::lround(rows)), c = static_cast<int>(std::lround(columns));
    return {r, c, c / voxel, r / voxel, std::hypot(c, r) / voxel};
  }

  /// The colour of a voxel, as linear light.
  vec colour(std::uint32_t key) const {
    if (options_.classes || !options_.shades.empty()) {
      const auto word = std::ranges::lower_bound(words_, key, {}, &voxel_word<std::uint32_t>::position);
      const auto linear = [](double byte) { return 0.82 * std::pow(byte / 255, gamma); };  // light adds to it
      if (options_.classes) {
        const auto* const bytes = class_colours[*word >> 30];
        return {linear(bytes[0]), linear(bytes[1]), linear(bytes[2])};
      }
      constexpr double stops[5][3] = {
          {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
      const double at = options_.shades[static_cast<std::size_t>(word - words_.begin())] / 255.0 * 4;
      const auto stop = static_cast<std::size_t>(std::min(at, 3.0));
      const auto mixed = [&](std::size_t c) {
        return linear(std::lerp(stops[stop][c], stops[stop + 1][c], at - static_cast<double>(stop)));
      };
      return {mixed(0), mixed(1), mixed(2)};
    }
    // The position in the bounding box.
    const auto channel = [](double at, double low, double high) {
      const auto t = high > low ? (at - low) / (high - low) : 0.5;
      return std::pow(0.12 + 0.88 * t, gamma);
    };
    const auto v = low_corner(key);
    return {channel(v.x, all_.low.x, all_.high.x), channel(v.y, all_.low.y, all_.high.y),
            channel(v.z, all_.low.z, all_.high.z)};
  }

  /// The light on a sample: of the plane through the surface around it (least squares), less what
  /// rises above that plane and hides the sky.
  double light_at(int row, int column, double depth) const {
    double n = 0, sx = 0, sy = 0, sz = 0, sxx = 0, sxy = 0, syy = 0, sxz = 0, syz = 0;
    for (const auto& [rows, columns, x, y, length] : near_) {
      const auto s = buffer_.at(row + rows, column + columns);
      if (s == nothing) continue;
      const double z = depth_of(s) - depth;
      if (std::abs(z) > far_apart_) continue;  // another part of the surface
      n += 1, sx += x, sy += y, sz += z;
      sxx += x * x, sxy += x * y, syy += y * y, sxz += x * z, syz += y * z;
    }
    // z = a x + b y + c, biased slightly towards level, so that a few points do not make it steep.
    const double cxx = sxx - sx * sx / n + level_, cyy = syy - sy * sy / n + level_;
    const double cxy = sxy - sx * sy / n, cxz = sxz - sx * sz / n, cyz = syz - sy * sz / n;
    const double determinant = cxx * cyy - cxy * cxy;
    const double a = (cxz * cyy - cyz * cxy) / determinant;
    const double b = (cyz * cxx - cxz * cxy) / determinant;

    double hidden = 0;
    for (const auto& [rows, columns, x, y, length] : around_) {
      const auto s = buffer_.at(row + rows, column + columns);
      if (s == nothing) continue;
      const double slope = (depth + a * x + b * y - depth_of(s)) / length;
      // Small slopes are rounding, and parts far above are in front and take no light from here.
      hidden += std::clamp(slope - 0.1, 0.0, 1.0) * std::clamp(4 - slope, 0.0, 1.0);
    }
    const auto normal = unit(a * from_.right + b * from_.down + -1 * from_.away);
    const auto open = 1 - 0.9 * hidden / static_cast<double>(around_.size());
    return (0.34 + 0.86 * std::max(0.0, dot(normal, light_))) * open;
  }

  const z_buffer& buffer_;
  const view& from_;
  const box& all_;
  std::span<const std::uint32_t> words_;
  const picture_options& options_;
  std::array<double, 3> by_face_;  // how bright a face across an axis is
  std::vector<step> near_, around_;
  double far_apart_;  // in voxels
  double level_;
  vec light_;
};

}  // namespace

picture draw_voxels(const host& cpu, std::span<const std::uint32_t> words, const picture_options& options) {
  picture result{options.side, options.side, 3,
                 std::vector<std::uint8_t>(std::size_t(options.side) * options.side * 3, 255)};
  if (words.empty()) return result;
  const auto from = look(words, options);
  box all;
  for (const auto word : words) all.add(low_corner(word));
  z_buffer buffer(from, options.side * samples);
  cpu.for_each(words.size(), [&](std::size_t i) { buffer.draw(words[i]); });
  const shading shade(buffer, from, all, words, options);
  cpu.launch(static_cast<std::size_t>(options.side), 0, [&](auto, std::size_t row, auto*) {
    for (int column = 0; column < options.side; ++column) {
      const auto light = shade(static_cast<int>(row), column);
      auto* const pixel = &result.pixels[(row * options.side + column) * 3];
      const auto byte = [](double linear) {
        return static_cast<std::uint8_t>(
            std::lround(255 * std::pow(std::clamp(linear, 0.0, 1.0), 1 / gamma)));
      };
      pixel[0] = byte(light.x), pixel[1] = byte(light.y), pixel[2] = byte(light.z);
    }
  });
  return result;
}

void write_png(const picture& image, const std::filesystem::path& file) {
  std::string png;
  const auto append = [](void* to, void* bytes, int n) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), static_cast<std::size_t>(n));
  };
  if (!stbi_write_png_to_func(append, &png, image.width, image.height, image.channels, image.pixels.data(),
                              image.width * image.channels))
    throw std::bad_alloc();
  output_file out(file.string());
  out.write(png);
  out.finish();
}

}  // namespace roost::tools
