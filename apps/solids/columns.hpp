#pragma once

#include "raster.hpp"
#include "roost/kernels.hpp"

/// \file
/// Solids and surfaces as columns of voxels, which are combined, measured and viewed one by one; no dense
/// grid is used. raster.hpp finds where a mesh crosses each column.

namespace roost::tools {

/// Columns along z -> heights. A solid: the voxels at which the column enters and leaves it, alternately,
/// ascending; without a last exit, the column is inside up to the end of the grid. A surface: its voxels,
/// ascending. The values after the last height are `no_height`.
template <class Place>
using column_map = frozen_multimap<std::uint32_t, std::uint16_t, Place>;
using column_run = value_run<std::uint16_t>;

/// The columns of one solid or surface: a directory has a word for each column of the grid with the position
/// of its heights. If all columns are read, each also by its neighbours, reading these words in order is
/// several times as fast as looking up each column in a map.
class column_directory {
 public:
  /// Columns that are all empty.
  column_directory() : words_(nullptr), heights_(nullptr), grid_(0) {}
  /// `words`: of column (u, v), words[u * grid + v].
  column_directory(const std::uint64_t* words, const std::uint16_t* heights, std::uint32_t grid)
      : words_(words), heights_(heights), grid_(grid) {}

  ROOST_FN static std::uint64_t word(std::uint64_t first, std::uint64_t count) {
    return first << count_bits | count;
  }
  /// The heights of column (u, v); none outside of the grid.
  ROOST_FN column_run find(std::uint32_t u, std::uint32_t v) const {
    if (u >= grid_ || v >= grid_) return {};
    const std::uint64_t word = words_[std::size_t{u} * grid_ + v];
    return {heights_ + (word >> count_bits), word & ((1u << count_bits) - 1)};
  }

 private:
  static constexpr int count_bits = 16;  // a column has at most one height more than voxels

  const std::uint64_t* words_;
  const std::uint16_t* heights_;
  std::uint32_t grid_;
};

/// Writes the directory of a map whose heights are in order: each column is looked up once.
template <class Place>
struct list_map {
  typename column_map<Place>::ref_type columns;
  const std::uint16_t* heights;  // of the map
  std::uint32_t grid;
  std::uint64_t* words;

  ROOST_FN void operator()(std::size_t i) const {
    const column_run run =
        columns.find(column_key(static_cast<std::uint32_t>(i / grid), static_cast<std::uint32_t>(i % grid)));
    // After as many heights as there are voxels, all values are no_height.
    words[i] = run.empty() ? 0
                           : column_directory::word(static_cast<std::uint64_t>(run.begin() - heights),
                                                    kernels::smaller<std::uint64_t>(run.size(), grid));
  }
};
/// Writes the directory of heights that lie one column after the other.
struct list_offsets {
  const std::uint64_t* offsets;
  std::uint64_t* words;
  ROOST_FN void operator()(std::size_t i) const {
    words[i] = column_directory::word(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

/// The columns of solids or surfaces in a grid, in memory of a place.
template <class Place>
struct column_set {
  std::uint32_t grid = 0;
  array<std::uint64_t, Place> words;  // the directories of all, one after the other
  array<std::uint16_t, Place> heights;
  column_map<Place> map;  // or null, and the heights are in it

  column_set() = default;
  /// Of a map whose heights are in order. Asynchronous on cuda.
  column_set(const Place& place, std::uint32_t side, column_map<Place> of)
      : grid(side), words(place, std::size_t{side} * side), map(std::move(of)) {
    place.for_each(words.size(), list_map<Place>{map.ref(), map.values().data(), grid, words.data()});
  }
  /// Of heights one column after the other. Asynchronous on cuda.
  column_set(const Place& place, std::uint32_t side, const std::uint64_t* offsets,
             array<std::uint16_t, Place> of)
      : grid(side), words(place, std::size_t{side} * side), heights(std::move(of)) {
    place.for_each(words.size(), list_offsets{offsets, words.data()});
  }

  column_directory ref(std::size_t i = 0) const {
    return {words.data() + i * grid * grid, heights.size() != 0 ? heights.data() : map.values().data(), grid};
  }
  std::size_t bytes() const { return words.bytes() + heights.bytes() + map.bytes(); }
};

inline constexpr std::uint16_t no_height = 0xffff;
/// The only value of a column whose crossings do not add up to 0, if doubts are requested.
inline constexpr std::uint16_t no_answer = 0xfffe;

/// A heap sort for the few columns with very many crossings.
template <class T>
ROOST_RARE_FN void heap_sort(T* values, std::uint64_t n) {
  const auto sink = [&](std::uint64_t i, std::uint64_t end) {
    const T value = values[i];
    for (std::uint64_t child; (child = 2 * i + 1) < end; i = child) {
      if (child + 1 < end && values[child] < values[child + 1]) ++child;
      if (!(value < values[child])) break;
      values[i] = values[child];
    }
    values[i] = value;
  };
  for (std::uint64_t i = n / 2; i-- > 0;) sink(i, n);
  for (std::uint64_t end = n; end-- > 1;) {
    const T largest = values[0];
    values[0] = values[end];
    values[end] = largest;
    sink(0, end);
  }
}

template <class T>
ROOST_FN void sort_few(T* values, std::uint64_t n) {
  if (n > 48) return heap_sort(values, n);
  for (std::uint64_t i = 1; i < n; ++i) {
    const T value = values[i];
    std::uint64_t to = i;
    for (; to > 0 && value < values[to - 1]; --to) values[to] = values[to - 1];
    values[to] = value;
  }
}

/// Turns the crossings of a column (crossing_value) into the heights where it enters and leaves the solid.
/// Returns how many.
struct order_crossings {
  inside_rule rule;
  bool doubts;  ///< no_answer for columns that end inside
  std::uint32_t grid;

  ROOST_FN std::uint64_t operator()(std::uint16_t* values, std::uint64_t n) const {
    sort_few(values, n);
    std::int64_t around = 0;
    bool inside = false;
    std::uint64_t to = 0;
    for (std::uint64_t i = 0; i < n;) {
      const std::uint32_t height = values[i] >> 1;
      for (; i < n && values[i] >> 1 == height; ++i)
        around += rule == inside_rule::odd || (values[i] & 1) == 0 ? 1 : -1;
      const bool now = rule == inside_rule::odd ? around % 2 != 0 : around != 0;
      if (now != inside && height < grid) values[to++] = static_cast<std::uint16_t>(height);
      inside = now;
    }
    if (inside && doubts) {
      to = 0;
      values[to++] = no_answer;
    }
    for (std::uint64_t i = to; i < n; ++i) values[i] = no_height;
    return to;
  }
};

/// Sorts marks and removes repetitions. Returns how many are left.
struct order_voxels {
  ROOST_FN std::uint64_t operator()(std::uint16_t* values, std::uint64_t n) const {
    sort_few(values, n);
    std::uint64_t to = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      if (i == 0 || values[i] != values[i - 1]) values[to++] = values[i];
    }
    for (std::uint64_t i = to; i < n; ++i) values[i] = no_height;
    return to;
  }
};

/// Orders the columns of a map: `order` is order_crossings or order_voxels.
template <class Order>
struct order_values {
  Order order;
  ROOST_FN void operator()(const std::uint32_t&, std::uint16_t* values, std::uint64_t n) const {
    order(values, n);
  }
};

/// Keys of a frame have tags in the bits above those of a column: the number of the solid or surface.
inline constexpr int tag_shift = 24;

/// The marks of a frame for the triangles of one or two meshes, the second mesh's after the first's: the
/// crossings of their solids and, if requested, the voxels of their surfaces, with their tags.
struct tagged_marks {
  snapped_triangles a, b;
  std::uint64_t triangles_of_a;
  std::uint32_t tag_of_a, tag_of_b;  // of solids; the tags of surfaces follow
  bool surfaces;

  class shape : public crossed_lines {
   public:
    ROOST_FN shape(const tagged_marks& from, std::size_t i) : shape(from, i, i < from.triangles_of_a) {}
    ROOST_FN shape(const tagged_marks& from, std::size_t i, bool of_a)
        : crossed_lines({of_a ? from.a.vertices : from.b.vertices, of_a ? from.a.triangles : from.b.triangles,
                         from.a.grid},
                        of_a ? i : i - from.triangles_of_a, from.surfaces ? 0 : 2, 2),
          tag_(of_a ? from.tag_of_a : from.tag_of_b),
          grid_(from.a.grid),
          surfaces_(from.surfaces) {}
    template <class Emit>
    ROOST_FN void run(std::uint32_t first, std::uint32_t end, const Emit& emit) const {
      cross(first, end,
            [&](int axis, std::uint32_t u, std::uint32_t v, std::int64_t toggle, std::int64_t voxel,
                bool turned) {
              if (axis == 2) emit(tag_ | column_key(u, v), crossing_value(toggle, turned));
              if (!surfaces_) return;
              crossed_voxels::put(axis, u, v, voxel, grid_, [&](std::uint32_t column, std::uint16_t z) {
                emit(tag_ | 1u << tag_shift | column, z);
              });
            });
    }

   private:
    std::uint32_t tag_, grid_;
    bool surfaces_;
  };
};

template <class F>
struct counted_items {
  static constexpr int threads = 256;
  static constexpr std::size_t teams = 1024;

  const std::uint64_t* count;
  std::uint64_t room;
  F f;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::uint64_t n = kernels::smaller(*count, room), first = n * index / teams,
                        end = n * (index + 1) / teams;
    kernels::for_each_of(team, static_cast<std::uint32_t>(end - first),
                         [&](std::uint32_t i) { f(first + i); });
  }
};
/// f(i) for all i below *count, which is in memory of the place, and below `room`. Asynchronous on cuda.
template <class Place, class F>
void for_each_counted(const Place& place, const std::uint64_t* count, std::uint64_t room, const F& f) {
  place.launch(counted_items<F>::teams, 0, counted_items<F>{count, room, f});
}

/// The marks of a frame, and where they go: each to the heights of its column, in any order.
struct frame_columns {
  const std::uint32_t* keys;
  const std::uint16_t* values;
  std::uint32_t grid;
  std::uint64_t* starts;  // of the heights of each column of each tag; before, the number of its marks
  std::uint32_t* ranks;   // of each mark among those of its column
  std::uint16_t* heights;

  ROOST_FN std::uint64_t& start_of(std::size_t i) const {
    const std::uint32_t key = keys[i], u = key >> 12 & 4095, v = key & 4095;
    return starts[(std::size_t{key >> tag_shift} * grid + u) * grid + v];
  }
};
struct count_marks : frame_columns {
  ROOST_FN void operator()(std::size_t i) const {
    ranks[i] = static_cast<std::uint32_t>(kernels::fetch_add(start_of(i), std::uint64_t{1}));
  }
};
struct put_marks : frame_columns {
  ROOST_FN void operator()(std::size_t i) const { heights[start_of(i) + ranks[i]] = values[i]; }
};

/// Whether there was room for all marks of a frame, and for the pieces of its lists.
struct had_room {
  const std::uint64_t* marks;
  std::uint64_t room;
  const std::uint64_t* pieces;
  std::size_t lists;
  std::uint64_t entries;  // of each list

  ROOST_FN bool operator()() const {
    bool all = *marks <= room;
    for (std::size_t i = 0; i < lists; ++i) all = all && pieces[i] <= entries;
    return all;
  }
};

/// Turns the marks of column i into its heights, and writes its word of the directory. If marks had no room,
/// columns are empty: some of them would never end, and the frame is going to be repeated.
struct order_column {
  had_room all;
  order_crossings solid;
  bool surfaces;  // of odd tags
  const std::uint64_t* starts;
  std::uint16_t* heights;
  std::uint64_t* words;

  ROOST_FN void operator()(std::size_t i) const {
    const std::uint64_t first = starts[i], n = starts[i + 1] - first;
    std::uint64_t count = 0;
    if (n != 0 && all()) {
      const bool surface = surfaces && i / (std::size_t{solid.grid} * solid.grid) % 2 != 0;
      count = surface ? order_voxels()(heights + first, n) : solid(heights + first, n);
    }
    words[i] = column_directory::word(first, count);
  }
};

ROOST_FN bool is_in(solid_op op, std::uint32_t a_and_b) {
  return (static_cast<std::uint32_t>(op) >> a_and_b & 1) != 0;
}

/// Iterates upwards over a column of a solid or a surface.
class climber {
 public:
  ROOST_FN climber() : at_(nullptr), end_(nullptr) {}
  ROOST_FN explicit climber(const column_run& run) : at_(run.begin()), end_(run.end()) {}
  /// The next height, or no_height.
  ROOST_FN std::uint32_t next() const { return at_ == end_ ? no_height : *at_; }
  /// Whether the next height is `height`; if so, passes it.
  ROOST_FN bool passes(std::uint32_t height) {
    if (next() != height) return false;
    ++at_;
    return true;
  }
  ROOST_FN bool empty() const { return next() >= no_answer; }

 private:
  const std::uint16_t *at_, *end_;
};

/// f(from, to) for each run of inside voxels of a column, below `grid`.
template <class F>
ROOST_FN void for_each_interval(climber column, std::uint32_t grid, const F& f) {
  for (std::uint32_t from; (from = column.next()) < grid;) {
    column.passes(from);
    const std::uint32_t to = kernels::smaller(column.next(), grid);
    column.passes(to);
    f(from, to);
  }
}

/// Whether a voxel is inside the solid that has this column.
ROOST_FN bool is_inside(const column_run& run, std::uint32_t z) {
  bool inside = false;
  for (std::uint64_t i = 0; i < run.size() && run[i] <= z; ++i) inside = !inside;
  return inside;
}

/// Two solids; the second may be missing.
struct solid_pair {
  column_directory a, b;
  solid_op op;
  std::uint32_t grid;

  ROOST_FN climber column_of_a(std::uint32_t x, std::uint32_t y) const { return climber(a.find(x, y)); }
  ROOST_FN climber column_of_b(std::uint32_t x, std::uint32_t y) const {
    return op == solid_op::first ? climber() : climber(b.find(x, y));
  }
};

/// A column of the result of an operation on two solids: emit(height) for each height where it begins or
/// ends.
struct combined_column {
  solid_pair of;

  template <class Emit>
  ROOST_FN void operator()(std::uint32_t x, std::uint32_t y, const Emit& emit) const {
    climber a = of.column_of_a(x, y), b = of.column_of_b(x, y);
    std::uint32_t state = 0;
    bool inside = false;
    for (std::uint32_t z; (z = kernels::smaller(a.next(), b.next())) < of.grid;) {
      if (a.passes(z)) state ^= 1;
      if (b.passes(z)) state ^= 2;
      if (is_in(of.op, state) != inside) emit(static_cast<std::uint16_t>(z));
      inside = is_in(of.op, state);
    }
  }
};

/// The exposed voxels of a column of a combined solid: those with a side to a voxel outside. Calls emit(from,
/// to, why, sides) for voxels from .. to - 1, each with `sides` such sides. `why`: bit 0 if the surface of
/// the first solid is at one of these sides, bit 1 for the second.
struct exposed_column {
  solid_pair of;

  static constexpr int columns = 5;  // its own, and those beside it
  struct seen_voxel {
    std::uint32_t why = 0, sides = 0;
    bool there = false;
  };

  /// A voxel of the middle column, as seen from the other columns, which have these states.
  ROOST_FN seen_voxel seen_from_beside(const std::uint32_t (&state)[columns]) const {
    seen_voxel result{0, 0, true};
    for (int i = 1; i < columns; ++i) {
      if (is_in(of.op, state[i])) continue;
      result.why |= state[0] ^ state[i];
      ++result.sides;
    }
    return result;
  }

  template <class Emit>
  ROOST_FN void operator()(std::uint32_t x, std::uint32_t y, const Emit& emit) const {
    climber a[columns], b[columns];
    a[0] = of.column_of_a(x, y);
    b[0] = of.column_of_b(x, y);
    // An intersection, for example, is empty where either solid is.
    if (a[0].empty() && (b[0].empty() || !is_in(of.op, 2))) return;
    if (b[0].empty() && !is_in(of.op, 1)) return;
    const auto beside = [&](int i, bool there, std::uint32_t u, std::uint32_t v) {
      if (!there) return;
      a[i] = of.column_of_a(u, v);
      b[i] = of.column_of_b(u, v);
    };
    beside(1, x != 0, x - 1, y);
    beside(2, x + 1 != of.grid, x + 1, y);
    beside(3, y != 0, x, y - 1);
    beside(4, y + 1 != of.grid, x, y + 1);

    std::uint32_t state[columns] = {}, below = 0;  // `below`: of the run of voxels below this one
    seen_voxel last;  // the highest voxel so far, not emitted before the one above is known
    const auto end_at = [&](std::uint32_t z, std::uint32_t now) {
      if (!last.there) return;
      if (!is_in(of.op, now)) {
        last.why |= now ^ below;
        ++last.sides;
      }
      if (last.sides != 0) emit(z - 1, z, last.why, last.sides);
      last.there = false;
    };
    for (std::uint32_t z = 0, next; z < of.grid; z = next) {
      next = of.grid;
      for (int i = 0; i < columns; ++i) {
        if (a[i].passes(z)) state[i] ^= 1;
        if (b[i].passes(z)) state[i] ^= 2;
        next = kernels::smaller(next, kernels::smaller(a[i].next(), b[i].next()));
      }
      const std::uint32_t here = state[0];
      end_at(z, here);
      if (is_in(of.op, here)) {
        last = seen_from_beside(state);
        const auto [why, sides, there] = last;
        std::uint32_t from = z;
        if (!is_in(of.op, below)) {
          if (next - z == 1) {
            last = {why | (here ^ below), sides + 1, true};
          } else {
            emit(z, z + 1, why | (here ^ below), sides + 1);
          }
          ++from;
        }
        if (sides != 0 && from + 1 < next) emit(from, next - 1, why, sides);
      }
      below = here;
    }
    end_at(of.grid, 0);
  }
};

/// The voxels of two surfaces in a column, ascending: emit(z, class, owner), each voxel once. `owner`: bit 0
/// for the first surface, bit 1 for the second.
struct classified_column {
  column_directory surface_a, surface_b;
  solid_pair solids;

  template <class Emit>
  ROOST_FN void operator()(std::uint32_t x, std::uint32_t y, const Emit& emit) const {
    climber a(surface_a.find(x, y)), b(surface_b.find(x, y));
    if (a.empty() && b.empty()) return;
    climber solid_a = solids.column_of_a(x, y), solid_b = solids.column_of_b(x, y);
    bool in_a = false, in_b = false;
    for (std::uint32_t z; (z = kernels::smaller(a.next(), b.next())) < solids.grid;) {
      const auto go_to = [&](climber& solid, bool& inside) {
        for (std::uint32_t h; (h = solid.next()) <= z; inside = !inside) solid.passes(h);
      };
      go_to(solid_a, in_a);
      go_to(solid_b, in_b);
      const bool of_a = a.passes(z), of_b = b.passes(z);
      const voxel_class what = of_a && of_b           ? voxel_class::both
                               : (of_a ? in_b : in_a) ? voxel_class::inside
                                                      : voxel_class::outside;
      emit(z, what, (of_a ? 1u : 0u) | (of_b ? 2u : 0u));
    }
  }
};

/// Counts the sides of a solid's voxels to voxels outside.
struct sides_of_column {
  exposed_column column;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    std::uint64_t sum = 0;
    const std::uint32_t grid = column.of.grid;
    column(static_cast<std::uint32_t>(i / grid), static_cast<std::uint32_t>(i % grid),
           [&](std::uint32_t from, std::uint32_t to, std::uint32_t, std::uint32_t sides) {
             sum += std::uint64_t{to - from} * sides;
           });
    return sum;
  }
};

/// The exposed voxels of a column as words. Class 0: on the surface of the first solid, 1: of the second,
/// 2: of both.
template <class Word>
struct exposed_words {
  exposed_column column;

  template <class Emit>
  ROOST_FN void operator()(std::uint32_t x, std::uint32_t y, const Emit& emit) const {
    column(x, y, [&](std::uint32_t from, std::uint32_t to, std::uint32_t why, std::uint32_t) {
      for (std::uint32_t z = from; z < to; ++z) emit(voxel_word<Word>::make(x, y, z, why - 1));
    });
  }
};

/// The classified voxels of a column as words.
template <class Word>
struct classified_words {
  classified_column column;

  template <class Emit>
  ROOST_FN void operator()(std::uint32_t x, std::uint32_t y, const Emit& emit) const {
    column(x, y, [&](std::uint32_t z, voxel_class what, std::uint32_t) {
      emit(voxel_word<Word>::make(x, y, z, static_cast<std::uint32_t>(what)));
    });
  }
};

/// Counts the voxels of two surfaces: those of the first outside and inside, those of the second outside and
/// inside, and those of both.
struct count_classes {
  static constexpr int threads = 256, numbers = 5;
  static constexpr std::uint32_t tile = 256;  // one column per thread

  classified_column column;
  std::uint64_t n;  // columns
  std::uint64_t* counts;

  ROOST_FN static std::uint32_t* scratch(kernels::scratch_memory& memory) {
    return memory.take<std::uint32_t>(numbers);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    kernels::scratch_memory all(memory);
    std::uint32_t* const sums = scratch(all);
    kernels::for_each_of(team, numbers, [&](std::uint32_t k) { sums[k] = 0; });
    team.sync();
    const std::uint64_t first = index * tile;
    const std::uint32_t grid = column.solids.grid;
    std::uint32_t mine[numbers] = {};
    kernels::for_each_of(
        team, static_cast<std::uint32_t>(kernels::smaller<std::uint64_t>(tile, n - first)),
        [&](std::uint32_t i) {
          column(
              static_cast<std::uint32_t>((first + i) / grid), static_cast<std::uint32_t>((first + i) % grid),
              [&](std::uint32_t, voxel_class what, std::uint32_t owner) {
                ++mine[what == voxel_class::both ? 4
                                                 : (owner - 1) * 2 + (what == voxel_class::inside ? 1 : 0)];
              });
        });
    for (int k = 0; k < numbers; ++k) team.add_near(sums[k], mine[k]);
    team.sync();
    kernels::for_each_of(team, numbers,
                         [&](std::uint32_t k) { kernels::fetch_add(counts[k], std::uint64_t{sums[k]}); });
  }
};

/// All inside voxels of a column as words of class 0.
template <class Word>
struct inside_words {
  column_directory solid;
  std::uint32_t grid;

  template <class Emit>
  ROOST_FN void operator()(std::uint32_t x, std::uint32_t y, const Emit& emit) const {
    for_each_interval(climber(solid.find(x, y)), grid, [&](std::uint32_t from, std::uint32_t to) {
      for (std::uint32_t z = from; z < to; ++z) emit(voxel_word<Word>::make(x, y, z, 0));
    });
  }
};

/// A voxel is inside if more of the three columns through it say inside than outside; columns whose crossings
/// do not add up do not count. Emits the heights of a column along z, as combined_column does.
struct voted_column {
  column_directory along[3];
  std::uint32_t grid;

  template <class Emit>
  ROOST_FN void operator()(std::uint32_t x, std::uint32_t y, const Emit& emit) const {
    const column_run upright = along[2].find(x, y);
    bool inside = false;
    for (std::uint32_t z = 0; z < grid; ++z) {
      const int votes = vote(upright, z) + vote(along[0].find(y, z), x) + vote(along[1].find(z, x), y);
      if ((votes > 0) != inside) emit(static_cast<std::uint16_t>(z));
      inside = votes > 0;
    }
  }

 private:
  ROOST_FN static int vote(const column_run& column, std::uint32_t at) {
    if (!column.empty() && column[0] == no_answer) return 0;
    return is_inside(column, at) ? 1 : -1;
  }
};

/// Calls a column with the coordinates of column number i, in the order of x and then y.
template <class Column>
struct count_columns {
  Column column;
  std::uint32_t grid;
  std::uint64_t* counts;
  ROOST_FN void operator()(std::size_t i) const {
    std::uint64_t n = 0;
    column(static_cast<std::uint32_t>(i / grid), static_cast<std::uint32_t>(i % grid),
           [&](const auto&...) { ++n; });
    counts[i] = n;
    if (i == 0) counts[std::size_t{grid} * grid] = 0;  // its offset will be the total
  }
};
template <class Column, class Target>
struct write_columns {
  Column column;
  std::uint32_t grid;
  const std::uint64_t* offsets;
  Target target;
  ROOST_FN void operator()(std::size_t i) const {
    std::uint64_t at = offsets[i];
    const auto x = static_cast<std::uint32_t>(i / grid), y = static_cast<std::uint32_t>(i % grid);
    column(x, y, [&](const auto& what) { target.put(at++, x, y, what); });
  }
};

/// Processes all columns of a grid, in order: first counts what they emit, then writes it. In two steps,
/// since the caller has to make room.
template <class Place, class Column>
class all_columns {
 public:
  /// Counts what columns emit. Synchronises.
  all_columns(const Place& place, std::uint32_t grid, const Column& column)
      : place_(place), grid_(grid), column_(column), offsets_(place, std::size_t{grid} * grid + 1) {
    place.for_each(offsets_.size() - 1, count_columns<Column>{column, grid, offsets_.data()});
    place.exclusive_scan(offsets_.data(), offsets_.data(), offsets_.size());
    place.copy_to_host(&size_, offsets_.data() + offsets_.size() - 1, sizeof(size_));
  }

  /// How many items are emitted.
  std::size_t size() const { return size_; }
  /// For each column, the number of items emitted before it; and the end.
  std::span<const std::uint64_t> offsets() const { return offsets_.span(); }
  /// Calls target.put(i, x, y, what) for each. Asynchronous on cuda.
  template <class Target>
  void write(const Target& target) const {
    place_.for_each(offsets_.size() - 1,
                    write_columns<Column, Target>{column_, grid_, offsets_.data(), target});
  }

 private:
  const Place& place_;
  std::uint32_t grid_;
  Column column_;
  array<std::uint64_t, Place> offsets_;
  std::uint64_t size_ = 0;
};

template <class Word>
struct put_words {
  Word* words;
  std::uint64_t room;
  ROOST_FN void put(std::uint64_t at, std::uint32_t, std::uint32_t, const Word& word) const {
    if (at < room) words[at] = word;
  }
};
/// Converts words of a frame to shorter ones.
template <class Word>
struct as_words {
  const std::uint64_t* words;
  ROOST_FN Word operator()(std::size_t i) const {
    using from = voxel_word<std::uint64_t>;
    const std::uint64_t word = words[i];
    return voxel_word<Word>::make(from::coordinate(word, 0), from::coordinate(word, 1),
                                  from::coordinate(word, 2), from::class_of(word));
  }
};
struct put_heights {
  std::uint16_t* heights;
  ROOST_FN void put(std::uint64_t at, std::uint32_t, std::uint32_t, std::uint16_t height) const {
    heights[at] = height;
  }
};

/// Counts the words that columns emit, and writes them in the order of the columns as far as there is room,
/// in one kernel: for uses where the host does not know earlier counts.
template <class Place, class Word, class Column>
struct write_words {
  static constexpr bool alone = std::is_same_v<Place, host>;
  static constexpr int threads = 128;
  // Columns, one per thread. Threads of a host wait for each other, so tiles are large to make that rare.
  static constexpr std::uint32_t tile = alone ? 4096 : threads;
  static constexpr std::uint32_t buffered = alone ? 3 * tile / 2 : 0;  // words that are made only once

  Column column;
  std::uint32_t grid;
  put_words<Word> target;
  kernels::earlier_teams turns;
  std::uint64_t* total;

  struct pieces {
    std::uint64_t* shared;
    std::uint32_t* counts;
    Word* buffer;
  };
  ROOST_FN static pieces scratch(kernels::scratch_memory& memory) {
    return {memory.take<std::uint64_t>(1), memory.take<std::uint32_t>(alone ? 0 : threads + 1),
            memory.take<Word>(buffered)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    kernels::scratch_memory all(memory);
    const pieces room = scratch(all);
    const std::uint64_t columns = std::uint64_t{grid} * grid, turn = turns.turn(team, room.shared),
                        first = turn * tile, end = kernels::smaller(first + tile, columns);
    std::uint64_t of_tile = 0, before = 0, at = 0;
    const auto for_each_word = [&](const auto& f) {
      for (std::uint64_t i = first + static_cast<std::uint32_t>(team.rank()); i < end; i += Team::size)
        column(static_cast<std::uint32_t>(i / grid), static_cast<std::uint32_t>(i % grid), f);
    };
    const auto write = [&] { for_each_word([&](const Word& word) { target.put(at++, 0, 0, word); }); };
    if constexpr (alone) {
      std::uint32_t held = 0;
      for_each_word([&](const Word& word) {
        if (held < buffered) room.buffer[held] = word;
        ++held;
      });
      of_tile = held;
      before = at = turns.sum_before(team, turn, of_tile, room.shared);
      if (held > buffered) {
        write();
      } else {
        for (std::uint32_t i = 0; i < held; ++i) target.put(at + i, 0, 0, room.buffer[i]);
      }
    } else {
      std::uint32_t mine = 0;
      for_each_word([&](const Word&) { ++mine; });
      const int rank = team.rank();
      room.counts[rank] = mine;
      team.sync();
      team.exclusive_scan(room.counts, room.counts, threads);
      team.sync();
      if (rank == threads - 1) room.counts[threads] = room.counts[rank] + mine;
      team.sync();
      of_tile = room.counts[threads];
      before = turns.sum_before(team, turn, of_tile, room.shared);
      at = before + room.counts[rank];
      write();
    }
    if (end == columns && team.rank() == 0) *total = before + of_tile;
  }

  /// How many teams take turns.
  static std::size_t teams(std::uint32_t grid) {
    return kernels::ceil_div<std::size_t>(std::size_t{grid} * grid, tile);
  }
};

/// The words that columns emit, ascending except for their classes. Synchronises.
template <class Word, class Place, class Column>
array<Word, Place> words_of(const Place& place, std::uint32_t grid, const Column& column) {
  const all_columns<Place, Column> all(place, grid, column);
  array<Word, Place> result(place, all.size());
  all.write(put_words<Word>{result.data(), result.size()});
  place.synchronize();
  return result;
}

/// The solid whose columns emit heights. Synchronises.
template <class Place, class Column>
column_set<Place> solid_of(const Place& place, std::uint32_t grid, const Column& column) {
  const all_columns<Place, Column> all(place, grid, column);
  array<std::uint16_t, Place> heights(place, all.size());
  all.write(put_heights{heights.data()});
  return {place, grid, all.offsets().data(), std::move(heights)};
}

/// How many voxels column i of a combined solid holds.
struct volume_of_column {
  combined_column column;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    std::uint64_t sum = 0;
    bool inside = false;
    const std::uint32_t grid = column.of.grid;
    column(static_cast<std::uint32_t>(i / grid), static_cast<std::uint32_t>(i % grid),
           [&](std::uint16_t height) {
             const std::uint64_t above = grid - height;
             sum += inside ? 0 - above : above;
             inside = !inside;
           });
    return sum;
  }
};

/// How many voxels column i of a surface holds.
struct voxels_of_column {
  column_directory surface;
  std::uint32_t grid;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    std::uint64_t n = 0;
    climber column(surface.find(static_cast<std::uint32_t>(i / grid), static_cast<std::uint32_t>(i % grid)));
    for (std::uint32_t z; (z = column.next()) < grid; column.passes(z)) ++n;
    return n;
  }
};

/// The voxels of a surface in a column as words of class 0.
template <class Word>
struct surface_words {
  column_directory surface;
  std::uint32_t grid;

  template <class Emit>
  ROOST_FN void operator()(std::uint32_t x, std::uint32_t y, const Emit& emit) const {
    climber column(surface.find(x, y));
    for (std::uint32_t z; (z = column.next()) < grid; column.passes(z))
      emit(voxel_word<Word>::make(x, y, z, 0));
  }
};

/// The three coordinates of a vertex as the bits of a key; -0 is 0.
struct vertex_key {
  std::uint32_t at[3];
};
struct vertex_keys {
  const point* vertices;
  ROOST_FN vertex_key operator()(std::size_t i) const {
    const float at[3] = {vertices[i].x + 0.0f, vertices[i].y + 0.0f, vertices[i].z + 0.0f};
    vertex_key result;
    memcpy(result.at, at, sizeof(at));
    return result;
  }
};

/// Side i % 3 of triangle i / 3: the numbers of its two vertices, and its direction.
struct edge_keys {
  const triangle* triangles;
  const std::uint32_t* numbers;  // of the vertices
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint32_t a = from(i), b = to(i);
    return a < b ? std::uint64_t{a} << 32 | b : std::uint64_t{b} << 32 | a;
  }
  ROOST_FN std::uint32_t from(std::size_t i) const { return numbers[triangles[i / 3][i % 3]]; }
  ROOST_FN std::uint32_t to(std::size_t i) const { return numbers[triangles[i / 3][(i + 1) % 3]]; }
};

/// The area of triangles, from the lines through voxel centres along all three axes: a crossing along an axis
/// counts as the component of the unit normal along that axis, in sides of a voxel. A triangle crosses as
/// many lines along an axis as its projection has sides of voxels, which is its area times the same
/// component, and the squares of the components sum to one. Exact for surfaces along the axes that fill the
/// grid; for every surface, it converges as the grid gets finer.
struct facing_triangles {
  static constexpr double one = 1 << 20;  ///< a side of a voxel

  snapped_triangles all;

  /// The absolute component of triangle i's unit normal along an axis, 0 to 1.
  ROOST_FN double share(std::size_t i, int axis) const {
    const snapped &a = all.corner(i, 0), &b = all.corner(i, 1), &c = all.corner(i, 2);
    std::int64_t p[3], q[3];
    for (int k = 0; k < 3; ++k) {
      p[k] = b.at[k] - a.at[k];
      q[k] = c.at[k] - a.at[k];
    }
    double length = 0, along = 0;
    for (int k = 0; k < 3; ++k) {
      const int u = (k + 1) % 3, v = (k + 2) % 3;
      const auto n = static_cast<double>(p[u] * q[v] - p[v] * q[u]);
      if (k == axis) along = fabs(n);
      length = length + product(n, n);
    }
    return length == 0 ? 0 : along / sqrt(length);
  }
};
struct count_rows {
  snapped_triangles all;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return crossed_lines(all, i, 0, 2).pieces(); }
};

/// The corners of a triangle by the numbers of their positions, ascending: equal for coincident triangles.
struct triangle_keys {
  edge_keys edges;
  ROOST_FN vertex_key operator()(std::size_t i) const {
    std::uint32_t at[3] = {edges.from(3 * i), edges.from(3 * i + 1), edges.from(3 * i + 2)};
    sort_few(at, 3);
    return {{at[0], at[1], at[2]}};
  }
};
struct count_same {
  const std::uint32_t* numbers;
  std::uint32_t* counts;
  ROOST_FN void operator()(std::size_t i) const { kernels::fetch_add(counts[numbers[i]], 1u); }
};

/// The contribution of row i of all triangles' rows of lines to the area of a solid's surface, in 2^-20 of a
/// side of a voxel: its crossings in the grid between a voxel inside and one outside, except those on the
/// surface of an earlier solid, too.
struct area_of_row {
  facing_triangles triangles;
  std::uint64_t n;                        // triangles
  const std::uint64_t* offsets;           // of each triangle's first row
  const std::uint32_t *numbers, *counts;  // of coincident triangles, which are counted once
  column_directory solid;
  const column_directory* earlier;
  std::size_t count;  // of earlier solids

  ROOST_FN std::uint64_t operator()(std::size_t row) const {
    const std::uint64_t i =
        kernels::lower_bound<std::uint64_t>(0, n, [&](std::uint64_t at) { return offsets[at] <= row; }) - 1;
    const crossed_lines lines(triangles.all, i, 0, 2);
    const auto piece = static_cast<std::uint32_t>(row - offsets[i]);
    std::uint64_t crossings = 0;
    int along = 0;
    lines.cross(
        piece, piece + 1,
        [&](int axis, std::uint32_t u, std::uint32_t v, std::int64_t toggle, std::int64_t voxel, bool) {
          if (voxel < 0 || voxel >= triangles.all.grid) return;  // outside the grid
          if (!changes(solid, axis, u, v, toggle)) return;
          for (std::size_t k = 0; k < count; ++k) {
            if (changes(earlier[k], axis, u, v, toggle)) return;
          }
          ++crossings;
          along = axis;  // the same for the whole row
        });
    if (crossings == 0) return 0;
    const double each = product(triangles.share(i, along), facing_triangles::one) / counts[numbers[i]];
    return static_cast<std::uint64_t>(product(static_cast<double>(crossings), each) + 0.5);
  }

 private:
  /// Whether a line enters or leaves a solid before its voxel `at`.
  ROOST_FN bool changes(const column_directory& of, int axis, std::uint32_t u, std::uint32_t v,
                        std::int64_t at) const {
    return inside(of, axis, u, v, at) != inside(of, axis, u, v, at - 1);
  }
  ROOST_FN bool inside(const column_directory& of, int axis, std::uint32_t u, std::uint32_t v,
                       std::int64_t at) const {
    if (at < 0 || at >= triangles.all.grid) return false;
    const auto w = static_cast<std::uint32_t>(at);
    return axis == 0   ? is_inside(of.find(w, u), v)
           : axis == 1 ? is_inside(of.find(v, w), u)
                       : is_inside(of.find(u, v), w);
  }
};

}  // namespace roost::tools
