#pragma once

#include <roost/roost.hpp>

#include "mesh.hpp"
#include "roost/kernels.hpp"
#include "scene.hpp"

/// \file
/// Rasterises triangles into a grid, on a place: finds where they cross the lines through the centres of the
/// voxels, in integers, so that both places and any number of threads give the same result.

namespace roost::tools {

/// A product that is not fused with a following sum, so that both places round alike.
ROOST_FN double product(double a, double b) {
#if ROOST_ON_DEVICE
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

/// A vertex in steps of 1/256 voxel.
struct snapped {
  std::int32_t at[3];
};

/// Snaps vertices. Coordinates beyond `farthest_steps` are clamped to it, so that products of two coordinates
/// fit in 63 bits; scenes refuse triangles with such a corner.
struct snap_vertices {
  static constexpr double least = -farthest_steps, most = farthest_steps;

  const point* vertices;
  affine to_grid;
  snapped* target;

  ROOST_FN void operator()(std::size_t i) const {
    const point p = vertices[i];
    for (int k = 0; k < 3; ++k) {
      const vec3& row = to_grid.rows[k];
      const double at = product(row[0], p.x) + product(row[1], p.y) + product(row[2], p.z) + to_grid.shift[k];
      const double step = at + 0.5 < least ? least : at + 0.5 > most ? most : at + 0.5;
      const auto below =
          static_cast<std::int32_t>(step);  // or one above, for negative ones; like floor(), but faster
      target[i].at[k] = below - (below > step ? 1 : 0);
    }
  }
};

/// The quotient, rounded up (below: rounded down); b > 0.
ROOST_FN std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q + (a % b > 0 ? 1 : 0);
}
ROOST_FN std::int64_t divide_down(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q - (a % b < 0 ? 1 : 0);
}

/// The key of a column of voxels. (Grids have at most 2^12 voxels a side.)
ROOST_FN std::uint32_t column_key(std::uint32_t u, std::uint32_t v) { return u << 12 | v; }

/// A crossing of a column by a triangle: toggle << 1 | turned. `toggle`: the first voxel of the column whose
/// centre is not below the crossing, 0 to grid. `turned`: the triangle faces down the column.
ROOST_FN std::uint16_t crossing_value(std::int64_t toggle, bool turned) {
  return static_cast<std::uint16_t>(toggle << 1 | (turned ? 1 : 0));
}

/// 1 for corner i % 3 of triangle i / 3 if it is farther away than `farthest_steps`.
struct is_too_far {
  const point* vertices;
  const triangle* triangles;
  affine to_grid;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const point p = vertices[triangles[i / 3][i % 3]];
    for (int k = 0; k < 3; ++k) {
      const vec3& row = to_grid.rows[k];
      const double at = product(row[0], p.x) + product(row[1], p.y) + product(row[2], p.z) + to_grid.shift[k];
      if (!(fabs(at + 0.5) <= farthest_steps)) return 1;
    }
    return 0;
  }
};

/// Snapped triangles in memory of a place.
struct snapped_triangles {
  const snapped* vertices;
  const triangle* triangles;
  std::uint32_t grid;

  ROOST_FN const snapped& corner(std::size_t i, int k) const { return vertices[triangles[i][k]]; }
};

/// One triangle, and the lines through voxel centres that it crosses along some axes. A line is crossed if
/// its point is in the projected triangle; a point on an edge counts if an infinitesimal step to the left,
/// and a still smaller one down, would bring it inside (the top-left rule). So a line crosses a closed
/// surface equally often from both sides, even through edges and corners. Pieces are rows of lines.
class crossed_lines {
 public:
  /// Along axes first to last. The columns of an axis have the coordinates of the next two axes, cyclically.
  ROOST_FN crossed_lines(const snapped_triangles& all, std::size_t i, int first, int last)
      : grid_(static_cast<std::int32_t>(all.grid)) {
    const snapped &a = all.corner(i, 0), &b = all.corner(i, 1), &c = all.corner(i, 2);
    measure(0, a, b, c);
    measure(1, a, b, c);
    measure(2, a, b, c);
    const auto rows = [&](int axis, int across, int along_rows) {
      const bool any = axis >= first && axis <= last && count_[across] > 0 && count_[along_rows] > 0;
      rows_[axis] = any ? count_[along_rows] : 0;
    };
    rows(0, 1, 2);
    rows(1, 2, 0);
    rows(2, 0, 1);
    // Products of three coordinates then fit in 63 bits.
    const auto is_near = [&](int axis, int k) { return at_[axis][k] >= -near && at_[axis][k] < 3 * near; };
    near_ = is_near(0, 0) && is_near(0, 1) && is_near(0, 2) && is_near(1, 0) && is_near(1, 1) &&
            is_near(1, 2) && is_near(2, 0) && is_near(2, 1) && is_near(2, 2);
  }

  ROOST_FN std::uint32_t pieces() const { return static_cast<std::uint32_t>(rows_[0] + rows_[1] + rows_[2]); }
  /// Whether one worker can process the triangle quickly.
  ROOST_FN bool is_small() const {
    const auto small = [&](int axis, int across) {
      return rows_[axis] == 0 || (rows_[axis] <= 16 && count_[across] <= 16);
    };
    return small(0, 1) && small(1, 2) && small(2, 0);
  }

  /// Calls f(axis, u, v, toggle, voxel, turned) for each line of pieces first to end - 1 that is crossed.
  /// `voxel`: the voxel of the crossing, which may be outside the grid (-1: below, grid: above); the far side
  /// of the grid belongs to the last voxel.
  template <class F>
  ROOST_FN void cross(std::uint32_t first, std::uint32_t end, const F& f) const {
    const auto from = static_cast<std::int32_t>(first), to = static_cast<std::int32_t>(end);
    cross_rows<0>(from, to, f);
    cross_rows<1>(from - rows_[0], to - rows_[0], f);
    cross_rows<2>(from - rows_[0] - rows_[1], to - rows_[0] - rows_[1], f);
  }

 private:
  static constexpr std::int64_t few = 8;  // lines that are tested one by one
  static constexpr std::int32_t near = 256 * finest_scene / 2;

  // All indices are constants, so that everything stays in registers.

  ROOST_FN void measure(int axis, const snapped& a, const snapped& b, const snapped& c) {
    // So that voxel centres are multiples of 256.
    const std::int32_t p = a.at[axis] - 128, q = b.at[axis] - 128, r = c.at[axis] - 128;
    at_[axis][0] = p;
    at_[axis][1] = q;
    at_[axis][2] = r;
    const std::int32_t low = kernels::smaller(p, kernels::smaller(q, r)),
                       high = kernels::larger(p, kernels::larger(q, r));
    first_[axis] = kernels::larger(0, (low + 255) >> 8);
    count_[axis] = kernels::smaller(grid_, (high >> 8) + 1) - first_[axis];
  }

  template <int Axis, class F>
  ROOST_FN void cross_rows(std::int32_t first, std::int32_t end, const F& f) const {
    for (std::int32_t row = kernels::larger(0, first); row < kernels::smaller(end, rows_[Axis]); ++row)
      cross_row<Axis>(row, f);
  }

  /// An edge function along a row of lines.
  struct edge {
    std::int64_t du, dv;
    std::int64_t value;      // at a line, less `least`
    std::int64_t least = 0;  // of lines inside: 1 if points on the edge are outside

    /// For a triangle with an area.
    ROOST_FN void begin(bool turned) {
      if (turned) du = -du, dv = -dv, value = -value;
      least = dv > 0 || (dv == 0 && du < 0) ? 1 : 0;
      value -= least;
    }
    ROOST_FN std::int64_t weight() const { return value + least; }
    ROOST_FN void go_on(std::int64_t lines) { value -= lines * (256 * dv); }
    /// Restricts first to end - 1 to the lines inside this edge.
    ROOST_FN void clip(std::int64_t& first, std::int64_t& end) const {
      if (dv < 0) first = kernels::larger(first, divide_up(-value, -256 * dv));
      if (dv > 0) end = kernels::smaller(end, divide_down(value, 256 * dv) + 1);
      if (dv == 0 && value < 0) end = 0;
    }
  };

  struct crossing {
    std::int64_t toggle, voxel;
  };
  /// Where a line crosses the plane through three corners of these heights; the weights are c for corner 1
  /// and a for corner 2, out of `area`.
  template <class Wide>
  ROOST_FN static crossing crossing_at(Wide w0, Wide w1, Wide w2, std::int64_t c, std::int64_t a,
                                       std::int64_t area, std::int32_t grid) {
    const Wide height = (w1 - w0) * c + (w2 - w0) * a + w0 * area;
    const Wide whole = Wide{256} * area, top = grid;
    const Wide quotient = height / whole;
    Wide toggle = quotient + (height % whole > 0 ? 1 : 0);
    Wide voxel = height + whole / 2 >= toggle * whole ? toggle : toggle - 1;
    if (height + whole / 2 == top * whole) voxel = top - 1;
    voxel = voxel < 0 ? -1 : voxel > top ? top : voxel;
    toggle = toggle < 0 ? 0 : toggle > top ? top : toggle;
    return {static_cast<std::int64_t>(toggle), static_cast<std::int64_t>(voxel)};
  }
  /// For a triangle that extends far beyond the grid. All arguments by value: an address would force them out
  /// of registers.
  ROOST_RARE_FN static crossing far_crossing_at(std::int32_t w0, std::int32_t w1, std::int32_t w2,
                                                std::int64_t c, std::int64_t a, std::int64_t area,
                                                std::int32_t grid) {
    __extension__ using wide = __int128;
    return crossing_at<wide>(w0, w1, w2, c, a, area, grid);
  }

  template <int Axis, class F>
  ROOST_FN void cross_row(std::int32_t row, const F& f) const {
    constexpr int across = (Axis + 1) % 3, along_rows = (Axis + 2) % 3;
    const std::int32_t first = first_[across], v = first_[along_rows] + row;
    // Edge functions at line (first, v): their sum is twice the area.
    const auto from_to = [&](int p, int q) {
      const std::int64_t du = at_[across][q] - at_[across][p], dv = at_[along_rows][q] - at_[along_rows][p];
      return edge{du, dv, dv * (at_[across][p] - 256 * first) - du * (at_[along_rows][p] - 256 * v)};
    };
    edge a = from_to(0, 1), b = from_to(1, 2), c = from_to(2, 0);
    std::int64_t area = a.value + b.value + c.value;
    if (area == 0) return;
    const bool turned = area < 0;
    area = turned ? -area : area;
    a.begin(turned);
    b.begin(turned);
    c.begin(turned);
    std::int64_t line = 0, end = count_[across];
    if (end > few) {
      a.clip(line, end);
      b.clip(line, end);
      c.clip(line, end);
      a.go_on(line);
      b.go_on(line);
      c.go_on(line);
    }
    for (; line < end; ++line) {
      if ((a.value | b.value | c.value) >= 0) {
        const std::int32_t w0 = at_[Axis][0], w1 = at_[Axis][1], w2 = at_[Axis][2];
        const crossing at = near_ ? crossing_at<std::int64_t>(w0, w1, w2, c.weight(), a.weight(), area, grid_)
                                  : far_crossing_at(w0, w1, w2, c.weight(), a.weight(), area, grid_);
        f(Axis, static_cast<std::uint32_t>(first + line), static_cast<std::uint32_t>(v), at.toggle, at.voxel,
          turned);
      }
      a.go_on(1);
      b.go_on(1);
      c.go_on(1);
    }
  }

  std::int32_t at_[3][3];  // along each axis, of each corner
  std::int32_t grid_;
  std::int32_t first_[3], count_[3];  // of the lines in the triangle's box along each axis
  std::int32_t rows_[3];              // of lines along each axis
  bool near_;                         // all corners are at most half the finest grid outside of it
};

/// The marks of a triangle for a solid: each crossing of a column along one axis, as crossing_value.
struct crossings_along {
  snapped_triangles all;
  int axis;

  class shape : public crossed_lines {
   public:
    ROOST_FN shape(const crossings_along& from, std::size_t i)
        : crossed_lines(from.all, i, from.axis, from.axis) {}
    template <class Emit>
    ROOST_FN void run(std::uint32_t first, std::uint32_t end, const Emit& emit) const {
      cross(first, end,
            [&](int, std::uint32_t u, std::uint32_t v, std::int64_t toggle, std::int64_t, bool turned) {
              emit(column_key(u, v), crossing_value(toggle, turned));
            });
    }
  };
};

/// The surface voxels of a triangle: those in which it crosses a line through the voxel's centre along an
/// axis. No path from voxel to voxel through their sides passes through the surface without them (they are
/// 6-separating). Key: the column along z; value: the voxel's z.
struct crossed_voxels {
  snapped_triangles all;

  /// Emits a voxel in which a line along an axis is crossed.
  template <class Emit>
  ROOST_FN static void put(int axis, std::uint32_t u, std::uint32_t v, std::int64_t voxel, std::uint32_t grid,
                           const Emit& emit) {
    if (voxel < 0 || voxel >= grid) return;
    const auto w = static_cast<std::uint32_t>(voxel);
    const std::uint32_t x = axis == 0   ? w
                            : axis == 1 ? v
                                        : u,
                        y = axis == 0   ? u
                            : axis == 1 ? w
                                        : v,
                        z = axis == 0   ? v
                            : axis == 1 ? u
                                        : w;
    emit(column_key(x, y), static_cast<std::uint16_t>(z));
  }

  class shape : public crossed_lines {
   public:
    ROOST_FN shape(const crossed_voxels& from, std::size_t i)
        : crossed_lines(from.all, i, 0, 2), grid_(from.all.grid) {}
    template <class Emit>
    ROOST_FN void run(std::uint32_t first, std::uint32_t end, const Emit& emit) const {
      cross(first, end,
            [&](int axis, std::uint32_t u, std::uint32_t v, std::int64_t, std::int64_t voxel, bool) {
              put(axis, u, v, voxel, grid_, emit);
            });
    }

   private:
    std::uint32_t grid_;
  };
};

/// The part of a triangle between planes: at most seven corners, in voxels.
class polygon {
 public:
  ROOST_FN void clear() { size_ = 0; }
  ROOST_FN void add(const vec3& corner) { corners_[size_++] = corner; }
  ROOST_FN int size() const { return size_; }
  ROOST_FN const vec3& operator[](int i) const { return corners_[i]; }

  /// The lowest and the highest coordinate along an axis.
  ROOST_FN double low(int axis) const {
    double result = corners_[0][axis];
    for (int i = 1; i < size_; ++i) result = kernels::smaller(result, corners_[i][axis]);
    return result;
  }
  ROOST_FN double high(int axis) const {
    double result = corners_[0][axis];
    for (int i = 1; i < size_; ++i) result = kernels::larger(result, corners_[i][axis]);
    return result;
  }

  /// Writes the part below a plane perpendicular to an axis to `below`, the part above to `above`. Corners on
  /// the plane belong to both. Either may be null, or this.
  ROOST_FN void cut(int axis, double plane, polygon* below, polygon* above) const {
    polygon low, high;
    for (int i = 0; i < size_; ++i) {
      const vec3 &a = corners_[i], &b = corners_[i + 1 == size_ ? 0 : i + 1];
      if (a[axis] <= plane) low.add(a);
      if (a[axis] >= plane) high.add(a);
      if ((a[axis] < plane && b[axis] > plane) || (a[axis] > plane && b[axis] < plane)) {
        const vec3 c = a[axis] < b[axis] ? crossing(a, b, axis, plane) : crossing(b, a, axis, plane);
        low.add(c);
        high.add(c);
      }
    }
    if (below != nullptr) *below = low;
    if (above != nullptr) *above = high;
  }

 private:
  /// Where an edge crosses a plane: computed from its lower end, so that two triangles agree.
  ROOST_FN static vec3 crossing(const vec3& a, const vec3& b, int axis, double plane) {
    const double t = (plane - a[axis]) / (b[axis] - a[axis]);
    vec3 result;
    for (int i = 0; i < 3; ++i) result[i] = i == axis ? plane : a[i] + product(t, b[i] - a[i]);
    return result;
  }

  vec3 corners_[16];  // 7 in theory; rounding could bend a side and make it 13
  int size_ = 0;
};

/// All voxels that a triangle touches: those that contain a point of it. A point on a plane between voxels
/// belongs to the voxel above, or to the last one on the far side of the grid. The triangle is cut at the
/// planes, not sampled, and its corners are not snapped. Key: the column along z; value: the voxel's z.
struct touched_voxels {
  const point* vertices;
  const triangle* triangles;
  affine to_grid;  // in steps of 1/256 voxel
  std::uint32_t grid;

  class shape {
   public:
    ROOST_FN shape(const touched_voxels& from, std::size_t i) : grid_(from.grid) {
      for (int corner = 0; corner < 3; ++corner) {
        const point p = from.vertices[from.triangles[i][corner]];
        vec3 at;
        for (int k = 0; k < 3; ++k) {
          const vec3& row = from.to_grid.rows[k];
          at[k] = product(row[0], p.x) + product(row[1], p.y) + product(row[2], p.z) + from.to_grid.shift[k];
          at[k] = without_rounding(at[k] / 256);
        }
        whole_.add(at);
      }
      for (int axis = 0; axis < 3 && whole_.size() != 0; ++axis) {
        if (whole_.low(axis) < 0) whole_.cut(axis, 0, nullptr, &whole_);
        if (whole_.size() != 0 && whole_.high(axis) > grid_) whole_.cut(axis, grid_, &whole_, nullptr);
      }
      slabs_ = layers(whole_, 0, first_);
    }
    ROOST_FN std::uint32_t pieces() const { return slabs_; }
    ROOST_FN bool is_small() const {
      return slabs_ <= 16 && whole_.high(1) - whole_.low(1) <= 16 && whole_.high(2) - whole_.low(2) <= 16;
    }
    template <class Emit>
    ROOST_FN void run(std::uint32_t first, std::uint32_t end, const Emit& emit) const {
      for (std::uint32_t piece = first; piece < end; ++piece) run_slab(piece, emit);
    }

   private:
    template <class Emit>
    ROOST_FN void run_slab(std::uint32_t piece, const Emit& emit) const {
      polygon rest = whole_, part;
      const std::uint32_t x = first_ + piece;
      if (piece != 0) rest.cut(0, x, nullptr, &rest);
      if (piece + 1 != slabs_) rest.cut(0, x + 1, &rest, nullptr);
      std::uint32_t y = 0, z = 0;
      for (std::uint32_t rows = layers(rest, 1, y); rows != 0; --rows, ++y) {
        if (rows != 1) {
          rest.cut(1, y + 1, &part, &rest);
        } else {
          part = rest;
        }
        for (std::uint32_t left = layers(part, 2, z); left != 0; --left, ++z)
          emit(column_key(x, y), static_cast<std::uint16_t>(z));
      }
    }

    /// A mesh that fills the grid reaches its sides in spite of rounding.
    ROOST_FN double without_rounding(double at) const {
      const double end = grid_;
      return fabs(at) < 1e-6 ? 0 : fabs(at - end) < 1e-6 ? end : at;
    }

    /// The number of layers of voxels along an axis that a polygon is in, and the first of them.
    ROOST_FN std::uint32_t layers(const polygon& of, int axis, std::uint32_t& first) const {
      if (of.size() == 0) return 0;
      const auto layer = [&](double at) {
        return static_cast<std::uint32_t>(kernels::smaller(kernels::larger(at, 0.0), grid_ - 1.0));
      };
      first = layer(of.low(axis));
      return layer(of.high(axis)) - first + 1;
    }

    polygon whole_;
    std::uint32_t grid_, first_ = 0, slabs_;
  };
};

/// Pairs of key and value in memory of a place.
template <class Key, class Value, class Place>
struct marks {
  array<Key, Place> keys_room;
  array<Value, Place> values_room;
  std::size_t size = 0;

  std::span<const Key> keys() const { return keys_room.span().first(size); }
  std::span<const Value> values() const { return values_room.span().first(size); }
  std::size_t bytes() const { return keys_room.bytes() + values_room.bytes(); }
};

/// Where marks are written to, by all teams.
template <class Key, class Value>
struct marks_target {
  Key* keys;
  Value* values;
  std::uint64_t room;
  std::uint64_t* count;  // including those that find no room

  ROOST_FN void put(std::uint64_t at, const Key& key, const Value& value) const {
    if (at >= room) return;
    keys[at] = key;
    values[at] = value;
  }
};

/// Writes the marks that a team's items make: each(i, emit) calls emit(key, value) for each mark of item i. A
/// block counts them first, to reserve room for all at once; a host thread fills a buffer, to compute them
/// only once.
template <class Place, class Key, class Value>
struct marks_writer {
  static constexpr int threads = 128;
  static constexpr bool alone = std::is_same_v<Place, host>;
  static constexpr std::uint32_t buffered = 1024;

  marks_target<Key, Value> target;

  struct pieces {
    std::uint64_t* first;
    std::uint32_t* counts;
    Key* keys;
    Value* values;
  };
  ROOST_FN static pieces scratch(kernels::scratch_memory& memory) {
    return {memory.take<std::uint64_t>(1), memory.take<std::uint32_t>(alone ? 1 : threads),
            memory.take<Key>(alone ? buffered : 0), memory.take<Value>(alone ? buffered : 0)};
  }

  template <class Team, class Each>
  ROOST_FN void write(const Team& team, const pieces& room, std::uint32_t items, const Each& each) const {
    if constexpr (alone) {
      std::uint32_t held = 0;
      const auto flush = [&] {
        const std::uint64_t first = kernels::fetch_add(*target.count, std::uint64_t{held});
        const std::uint64_t fit = target.room - kernels::smaller(first, target.room),
                            n = kernels::smaller<std::uint64_t>(held, fit);
        if (n != 0) memcpy(target.keys + first, room.keys, n * sizeof(Key));
        if (n != 0) memcpy(target.values + first, room.values, n * sizeof(Value));
        held = 0;
      };
      for (std::uint32_t i = 0; i < items; ++i) {
        each(i, [&](const Key& key, const Value& value) {
          room.keys[held] = key;
          room.values[held] = value;
          if (++held == buffered) flush();
        });
      }
      flush();
    } else {
      std::uint32_t mine = 0;
      kernels::for_each_of(team, items,
                           [&](std::uint32_t i) { each(i, [&](const Key&, const Value&) { ++mine; }); });
      const auto rank = static_cast<std::uint32_t>(team.rank());
      room.counts[rank] = mine;
      team.sync();
      team.exclusive_scan(room.counts, room.counts, threads);
      team.sync();
      if (rank == threads - 1)
        *room.first = kernels::fetch_add(*target.count, std::uint64_t{room.counts[rank]} + mine);
      team.sync();
      std::uint64_t at = *room.first + room.counts[rank];
      kernels::for_each_of(team, items, [&](std::uint32_t i) {
        each(i, [&](const Key& key, const Value& value) { target.put(at++, key, value); });
      });
      team.sync();  // before the scratch is used again
    }
  }
};

/// The pieces of shapes that are too large for one worker: shape << 32 | piece.
struct piece_list {
  std::uint64_t* entries;
  std::uint64_t room;
  std::uint64_t* count;
};

/// Processes small shapes at once, and puts the pieces of large ones in the list.
template <class Place, class Shapes, class Key, class Value>
struct raster_shapes : marks_writer<Place, Key, Value> {
  using writer = marks_writer<Place, Key, Value>;
  static constexpr std::uint32_t tile = writer::alone ? 2048 : 512;

  Shapes shapes;
  std::uint64_t n;
  piece_list large;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    kernels::scratch_memory all(memory);
    const auto room = writer::scratch(all);
    const std::uint64_t first = index * tile;
    const auto count = static_cast<std::uint32_t>(kernels::smaller<std::uint64_t>(tile, n - first));
    const auto put_aside = [&](std::uint64_t shape, std::uint32_t count_of) {
      const std::uint64_t at = kernels::fetch_add(*large.count, std::uint64_t{count_of});
      for (std::uint32_t piece = 0; piece < count_of && at + piece < large.room; ++piece)
        large.entries[at + piece] = shape << 32 | piece;
    };
    bool large_here = false;
    this->write(team, room, count, [&](std::uint32_t i, const auto& emit) {
      const typename Shapes::shape here(shapes, first + i);
      if (here.is_small()) {
        here.run(0, here.pieces(), emit);
      } else if (writer::alone) {
        put_aside(first + i, here.pieces());
      } else {
        large_here = true;  // the block runs this twice
      }
    });
    if (!large_here) return;
    kernels::for_each_of(team, count, [&](std::uint32_t i) {
      const typename Shapes::shape here(shapes, first + i);
      if (!here.is_small()) put_aside(first + i, here.pieces());
    });
  }
};

/// Processes the pieces of the list.
template <class Place, class Shapes, class Key, class Value>
struct raster_pieces : marks_writer<Place, Key, Value> {
  using writer = marks_writer<Place, Key, Value>;
  static constexpr std::size_t teams = writer::alone ? 64 : 1024;
  static constexpr std::uint32_t tile = writer::alone ? 16 : writer::threads;

  Shapes shapes;
  piece_list large;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    kernels::scratch_memory all(memory);
    const auto room = writer::scratch(all);
    const std::uint64_t n = kernels::smaller(*large.count, large.room);
    for (std::uint64_t first = index * tile; first < n; first += teams * tile) {
      const auto count = static_cast<std::uint32_t>(kernels::smaller<std::uint64_t>(tile, n - first));
      this->write(team, room, count, [&](std::uint32_t i, const auto& emit) {
        const std::uint64_t entry = large.entries[first + i];
        const typename Shapes::shape here(shapes, entry >> 32);
        const auto piece = static_cast<std::uint32_t>(entry);
        here.run(piece, piece + 1, emit);
      });
    }
  }
};

/// Shapes whose keys have a tag in higher bits, which distinguishes them from other shapes' keys.
template <class Shapes>
struct tagged_shapes {
  Shapes shapes;
  std::uint32_t tag;

  class shape : public Shapes::shape {
   public:
    ROOST_FN shape(const tagged_shapes& from, std::size_t i)
        : Shapes::shape(from.shapes, i), tag_(from.tag) {}
    template <class Emit>
    ROOST_FN void run(std::uint32_t first, std::uint32_t end, const Emit& emit) const {
      Shapes::shape::run(first, end, [&](std::uint32_t key, auto value) { emit(tag_ | key, value); });
    }

   private:
    std::uint32_t tag_;
  };
};

/// Appends the marks of n shapes to the existing ones. Counts them, and the pieces of large shapes, even if
/// there is no room for them. Asynchronous on cuda.
template <class Key, class Value, class Place, class Shapes>
void raster_into(const Place& place, const Shapes& shapes, std::size_t n,
                 const marks_target<Key, Value>& target, const piece_list& large) {
  using small_kernel = raster_shapes<Place, Shapes, Key, Value>;
  using large_kernel = raster_pieces<Place, Shapes, Key, Value>;
  const small_kernel small{{target}, shapes, n, large};
  place.launch(kernels::ceil_div<std::size_t>(n, small_kernel::tile), kernels::scratch_bytes_of(small),
               small);
  const large_kernel rest{{target}, shapes, large};
  place.launch(large_kernel::teams, kernels::scratch_bytes_of(rest), rest);
}

/// All marks of n shapes, in arbitrary order. `room`: the number that the first attempt has memory for; if
/// there are more, they are computed again. Synchronises.
template <class Key, class Value, class Place, class Shapes>
marks<Key, Value, Place> raster(const Place& place, const Shapes& shapes, std::size_t n, std::size_t room) {
  array<std::uint64_t, Place> counts(place, 2);
  for (std::size_t entries = 1024;;) {  // three times at most: then there is enough room for both
    marks<Key, Value, Place> result{array<Key, Place>(place, room), array<Value, Place>(place, room)};
    array<std::uint64_t, Place> list(place, entries);
    place.fill(counts.data(), 0, counts.bytes());
    raster_into<Key, Value>(place, shapes, n,
                            {result.keys_room.data(), result.values_room.data(), room, counts.data()},
                            {list.data(), entries, counts.data() + 1});
    std::uint64_t counted[2];
    place.copy_to_host(counted, counts.data(), sizeof(counted));
    if (counted[0] <= room && counted[1] <= entries) {
      result.size = counted[0];
      return result;
    }
    room = kernels::larger<std::size_t>(room, counted[0]);
    entries = kernels::larger<std::size_t>(entries, counted[1]);
  }
}

}  // namespace roost::tools
