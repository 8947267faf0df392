#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "apps/measure/timing.hpp"
#include "bit_grid.hpp"
#include "columns.hpp"
#include "fill.hpp"
#include "roost/kernels.hpp"

/// \file
/// A scene on a place.

namespace roost::tools {

/// A moment in the work of a place. On cuda it is reached when the device has finished earlier work.
template <class Place>
class moment;

template <>
class moment<host> {
 public:
  void mark(const host&) { at_ = std::chrono::steady_clock::now(); }
  double milliseconds_to(const moment& later) const {
    return std::chrono::duration<double, std::milli>(later.at_ - at_).count();
  }

 private:
  std::chrono::steady_clock::time_point at_;
};

#if defined(__CUDACC__)
template <>
class moment<roost::cuda> {
 public:
  void mark(const roost::cuda& place) {
    if (event_ == nullptr) {
      cudaEvent_t made = nullptr;
      kernels::check(cudaEventCreate(&made), "cudaEventCreate");
      event_.reset(made);
    }
    kernels::check(cudaEventRecord(event_.get(), place.stream()), "cudaEventRecord");
  }
  /// Waits until `later` is reached.
  double milliseconds_to(const moment& later) const {
    kernels::check(cudaEventSynchronize(later.event_.get()), "cudaEventSynchronize");
    float result = 0;
    kernels::check(cudaEventElapsedTime(&result, event_.get(), later.event_.get()), "cudaEventElapsedTime");
    return result;
  }

 private:
  struct destroy {
    void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, destroy> event_;
};
#endif

/// Times of steps that run once or repeatedly. Waits for a step only when the step runs again, or when all
/// times are requested.
template <class Place>
class stopwatch {
 public:
  template <class F>
  void time(const Place& place, const char* step, const F& f) {
    const auto known = std::ranges::find(steps_, step, &entry::name);
    entry& here = known == steps_.end() ? steps_.emplace_back() : *known;
    here.name = step;
    here.settle();
    here.start.mark(place);
    f();
    here.stop.mark(place);
    here.runs = true;
  }
  step_times medians() {
    step_times result;
    for (auto& step : steps_) {
      step.settle();
      if (!step.times.empty()) result.emplace_back(step.name, bench::median(step.times));
    }
    return result;
  }

 private:
  static constexpr std::size_t most = 1000;  // the most times of a step: the latest
  struct entry {
    std::string name;
    std::vector<double> times;
    moment<Place> start, stop;
    bool runs = false;  // its last time is not known yet

    void settle() {
      if (!runs) return;
      runs = false;
      if (times.size() == most) times.erase(times.begin());
      times.push_back(start.milliseconds_to(stop));
    }
  };
  std::vector<entry> steps_;
};

struct edge_turns {
  edge_keys edges;
  ROOST_FN std::int32_t operator()(std::size_t i) const {
    const std::uint32_t a = edges.from(i), b = edges.to(i);
    return a < b ? 1 : a > b ? -1 : 0;
  }
};
struct is_open_edge {
  const std::uint64_t *edges, *counts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return edges[i] >> 32 != (edges[i] & 0xffffffff) && counts[i] % 2 != 0 ? 1 : 0;
  }
};
struct is_turned_edge {
  const std::int32_t* turns;
  const std::uint64_t* counts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return turns[i] != 0 && counts[i] % 2 == 0 ? 1 : 0;
  }
};

/// The bytes that are available on a place.
inline std::size_t bytes_there(const host&) { return detail::bytes_available_on_host(); }
#if defined(__CUDACC__)
inline std::size_t bytes_there(const roost::cuda& place) {
  std::size_t free = 0, total = 0;
  kernels::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free + device_memory_pool::of(place.device()).kept();
}
#endif

template <class Place>
class scene_on : public scene {
 public:
  explicit scene_on(const Place& place) : place_(place) {}

  std::string place_name() const override { return bench::place_name(place_); }
  std::size_t expect_room(std::uint32_t grid, std::size_t at_once = 1) const override;
  void set_mesh(std::size_t i, const mesh& surface) override;
  std::size_t meshes() const override { return meshes_.size(); }
  mesh_faults faults(std::size_t i) override;
  void place_mesh(std::size_t i, std::uint32_t grid, const affine& to_snapped) override;
  void make_solid(std::size_t i, inside_rule rule) override;
  void make_surface(std::size_t i, bool all_touched) override;
  void combine(solid_op op) override;
  frame_counts make_frame(const frame_plan& plan) override;
  step_times frame_times() override { return frame_times_.medians(); }
  std::uint64_t count_exposed() override;
  std::uint64_t volume() override { return volume_of(last_pair()); }
  solid_facts facts_of_mesh(std::size_t i) override;
  solid_facts facts_of_result() override;
  class_counts classes() override;
  class_counts classes_of_mesh(std::size_t i) override;
  fill_facts fill() override;
  bit_grid_facts bit_grid(solid_op op) override;
  std::vector<std::uint32_t> voxels32(voxel_set which) override { return voxels<std::uint32_t>(which); }
  std::vector<std::uint64_t> voxels64(voxel_set which) override { return voxels<std::uint64_t>(which); }
  lit_voxels lit(voxel_set which) override;
  solid_columns columns() override;

 protected:
  /// Memory that a frame may need more of: marks, pieces of each list, and words.
  struct frame_room {
    std::size_t marks, pieces, words;
  };
  void reserve_frame(const frame_plan& plan, const frame_room& room);
  /// All of a frame's work on the place, in the memory that is reserved. For at most two meshes, and corners
  /// that are not too far away, it is asynchronous on cuda and could be captured as a graph.
  /// time(step, f): calls f.
  template <class Time>
  void launch_frame(const frame_plan& plan, const Time& time);
  /// Waits for it. Returns whether there was room for all; if not, sets `room` to what is known to be needed.
  bool read_frame(const frame_plan& plan, frame_room& room);

 private:
  using map = column_map<Place>;
  using set = column_set<Place>;
  using frame_words = write_words<Place, std::uint64_t, exposed_words<std::uint64_t>>;
  struct part {
    array<point, Place> vertices;
    array<triangle, Place> triangles;
    array<snapped, Place> snapped_vertices;
    affine to_snapped;
    bounds box;  // of all vertices
    set solid, surface;
    bool in_frame = false;  // instead, both are among the columns of the last frame
    stopwatch<Place> times;

    snapped_triangles all(std::uint32_t grid) const {
      return {snapped_vertices.data(), triangles.data(), grid};
    }
  };

  touched_voxels touched(const part& of) const {
    return {of.vertices.data(), of.triangles.data(), of.to_snapped, grid_};
  }
  set solid_along(part& of, int axis, bool doubts, inside_rule rule);
  /// The solid and the surface of mesh i.
  column_directory solid(std::size_t i) const {
    return meshes_[i].in_frame ? frame_.ref(solid_number(i)) : meshes_[i].solid.ref();
  }
  column_directory surface(std::size_t i) const {
    if (!meshes_[i].in_frame) return meshes_[i].surface.ref();
    return frame_surfaces_ ? frame_.ref(solid_number(i) + 1) : column_directory();
  }
  /// The number of a solid in the last frame: if there are surfaces, each follows its solid.
  std::size_t solid_number(std::size_t i) const { return frame_surfaces_ ? 2 * i : i; }
  std::size_t columns_of_grid() const { return std::size_t{grid_} * grid_; }
  solid_pair alone(const column_directory& solid) const { return {solid, solid, solid_op::first, grid_}; }
  void snap(part& of, std::uint32_t grid, const affine& to_snapped);
  void expect_within_reach(const part& of, std::uint32_t grid, const affine& to_snapped) const;
  /// Combines all but the last of more than two meshes.
  void combine_before_last(solid_op op);
  /// The result of combine(), as a solid of its own.
  const set& combined();
  std::size_t frame_lists(const frame_plan& plan) const;
  std::size_t frame_cells(std::uint32_t grid) const;
  void mark_frame(const frame_plan& plan);
  void group_frame();
  void order_frame(const frame_plan& plan);
  void write_frame_words(std::size_t lists);
  void leave_frame();
  void count_classes_into(std::uint64_t* counts) const;
  std::uint64_t volume_of(const solid_pair& of) const {
    return place_.sum(columns_of_grid(), volume_of_column{{of}});
  }
  /// The operands of the last operation.
  solid_pair last_pair() const;
  classified_column classified() const;
  solid_facts facts(const column_directory& solid, const solid_pair& seen, stopwatch<Place>& times);
  /// The part of a solid's area that belongs to mesh i and to none of the `earlier` meshes before it.
  double area_of(std::size_t i, const column_directory& solid, std::size_t earlier) const;
  template <class Word>
  array<Word, Place> voxels_here(voxel_set which);
  template <class Word>
  std::vector<Word> voxels(voxel_set which) {
    return copy_to_host(place_, voxels_here<Word>(which));
  }
  const std::array<std::uint64_t, 5>& class_numbers();
  part& mesh_at(std::size_t i);
  /// Forgets the results for meshes that will change.
  void forget() {
    class_numbers_.reset();
    frame_exposed_.reset();
  }

  Place place_;
  std::uint32_t grid_ = 0;
  std::vector<part> meshes_;
  std::optional<set> before_last_;  // all but the last of more than two meshes, combined
  std::optional<set> result_;
  solid_op op_ = solid_op::first;
  stopwatch<Place> result_times_, frame_times_;
  std::optional<std::array<std::uint64_t, 5>> class_numbers_;

  // For frames: the columns of all meshes, and memory that the next frame reuses.
  set frame_;
  bool frame_surfaces_ = false;  // of two meshes
  marks<std::uint32_t, std::uint16_t, Place> frame_marks_;
  array<std::uint32_t, Place> frame_ranks_;
  array<std::uint64_t, Place> frame_starts_, frame_pieces_, frame_words_;
  // Numbers of a frame: marks, words, classes, and the pieces of each list. Then the turns of write_words.
  static constexpr std::size_t marks_at = 0, words_at = 1, classes_at = 2, pieces_at = 7;
  array<std::uint64_t, Place> frame_numbers_;
  std::optional<std::uint64_t> frame_exposed_;  // words of the last frame, while nothing has changed
};

template <class Place>
std::size_t scene_on<Place>::expect_room(std::uint32_t grid, std::size_t at_once) const {
  // Marks for which raster() has room at once, the scratch memory of their grouping, and directories of
  // columns.
  const std::size_t bytes = std::size_t{144} * at_once * grid * grid, there = bytes_there(place_);
  if (bytes > there) {
    kernels::raise<out_of_memory>({"a grid of ", grid, "^3 voxels takes about ", bytes >> 20, " MiB, and ",
                                   there >> 20, " MiB are free; take a coarser grid"});
  }
  return bytes;
}

template <class Place>
typename scene_on<Place>::part& scene_on<Place>::mesh_at(std::size_t i) {
  if (i >= meshes_.size())
    kernels::raise<invalid_argument>({"scene: there is no mesh ", i, " of ", meshes_.size()});
  return meshes_[i];
}

template <class Place>
void scene_on<Place>::set_mesh(std::size_t i, const mesh& surface) {
  if (i > meshes_.size())
    kernels::raise<invalid_argument>({"scene: mesh ", i, " cannot be set, there are ", meshes_.size()});
  part fresh;
  stopwatch<Place> times;
  times.time(place_, "upload", [&] {
    fresh.vertices = copy_to(place_, surface.vertices);
    fresh.triangles = copy_to(place_, surface.triangles);
  });
  fresh.times = std::move(times);
  for (const point& p : surface.vertices) fresh.box.add({p.x, p.y, p.z});
  forget();
  if (i == meshes_.size()) {
    meshes_.push_back(std::move(fresh));
  } else {
    meshes_[i] = std::move(fresh);
  }
}

template <class Place>
mesh_faults scene_on<Place>::faults(std::size_t i) {
  const part& of = mesh_at(i);
  const std::size_t sides = 3 * of.triangles.size();
  const auto vertices =
      unique_inverse(place_, computed(of.vertices.size(), vertex_keys{of.vertices.data()}), index_order::any);
  const edge_keys keys{of.triangles.data(), vertices.inverse.data()};
  const auto edges = group_by(place_, computed(sides, keys), computed(sides, edge_turns{keys}), plus());
  return {place_.sum(edges.size(), is_open_edge{edges.keys.data(), edges.counts.data()}),
          place_.sum(edges.size(), is_turned_edge{edges.values.data(), edges.counts.data()})};
}

template <class Place>
typename scene_on<Place>::set scene_on<Place>::solid_along(part& of, int axis, bool doubts,
                                                           inside_rule rule) {
  marks<std::uint32_t, std::uint16_t, Place> crossings;
  map grouped;
  of.times.time(place_, "cross", [&] {
    crossings = raster<std::uint32_t, std::uint16_t>(place_, crossings_along{of.all(grid_), axis},
                                                     of.triangles.size(), 2 * std::size_t{grid_} * grid_);
  });
  of.times.time(place_, "group", [&] { grouped = map(place_, crossings.keys(), crossings.values()); });
  set result;
  of.times.time(place_, "order", [&] {
    grouped.for_each_key(place_, order_values<order_crossings>{{rule, doubts, grid_}});
    result = set(place_, grid_, std::move(grouped));
  });
  return result;
}

inline void expect_grid(std::uint32_t grid) {
  if (grid == 0 || grid > finest_scene) {
    kernels::raise<invalid_argument>(
        {"a grid of ", grid, " voxels a side cannot be made; ask for 1 to ", finest_scene});
  }
}

/// For most meshes, the box shows that they are near enough, without a test of each corner.
template <class Place>
void scene_on<Place>::expect_within_reach(const part& of, std::uint32_t grid,
                                          const affine& to_snapped) const {
  bool within = true;
  for (std::size_t k = 0; k < 3; ++k) {
    double low = to_snapped.shift[k], high = low;
    for (std::size_t i = 0; i < 3; ++i) {
      const double a = to_snapped.rows[k][i] * of.box.low[i], b = to_snapped.rows[k][i] * of.box.high[i];
      low += std::min(a, b);
      high += std::max(a, b);
    }
    within = within && low > -farthest_steps / 2 && high < farthest_steps / 2;
  }
  if (within || of.triangles.size() == 0) return;
  const is_too_far too_far{of.vertices.data(), of.triangles.data(), to_snapped};
  if (place_.sum(3 * of.triangles.size(), too_far) != 0) {
    kernels::raise<invalid_argument>({"a mesh reaches more than ", std::uint64_t{1} << 21,
                                      " voxels out of a grid of ", grid,
                                      "^3; take a grid that covers more, or a coarser one"});
  }
}

template <class Place>
void scene_on<Place>::snap(part& of, std::uint32_t grid, const affine& to_snapped) {
  expect_grid(grid);
  expect_within_reach(of, grid, to_snapped);
  grid_ = grid;
  forget();
  of.to_snapped = to_snapped;
  if (of.snapped_vertices.size() != of.vertices.size())
    of.snapped_vertices = array<snapped, Place>(place_, of.vertices.size());
  place_.for_each(of.vertices.size(),
                  snap_vertices{of.vertices.data(), to_snapped, of.snapped_vertices.data()});
}

template <class Place>
void scene_on<Place>::place_mesh(std::size_t i, std::uint32_t grid, const affine& to_snapped) {
  part& of = mesh_at(i);
  of.times.time(place_, "snap", [&] { snap(of, grid, to_snapped); });
}

template <class Place>
void scene_on<Place>::make_solid(std::size_t i, inside_rule rule) {
  part& of = mesh_at(i);
  forget();
  of.in_frame = false;
  if (rule != inside_rule::vote) {
    of.solid = solid_along(of, 2, false, rule);
    return;
  }
  const set along[3] = {solid_along(of, 0, true, rule), solid_along(of, 1, true, rule),
                        solid_along(of, 2, true, rule)};
  of.times.time(place_, "vote", [&] {
    const voted_column column{{along[0].ref(), along[1].ref(), along[2].ref()}, grid_};
    of.solid = solid_of(place_, grid_, column);
  });
}

template <class Place>
void scene_on<Place>::make_surface(std::size_t i, bool all_touched) {
  part& of = mesh_at(i);
  forget();
  of.in_frame = false;
  marks<std::uint32_t, std::uint16_t, Place> voxels;
  const std::size_t room = 6 * std::size_t{grid_} * grid_, n = of.triangles.size();
  of.times.time(place_, "surface: cross", [&] {
    const auto make = [&](const auto& shapes) {
      voxels = raster<std::uint32_t, std::uint16_t>(place_, shapes, n, room);
    };
    if (all_touched) {
      make(touched(of));
    } else {
      make(crossed_voxels{of.all(grid_)});
    }
  });
  map grouped;
  of.times.time(place_, "surface: group", [&] { grouped = map(place_, voxels.keys(), voxels.values()); });
  of.times.time(place_, "surface: order", [&] {
    grouped.for_each_key(place_, order_values<order_voxels>());
    of.surface = set(place_, grid_, std::move(grouped));
  });
}

template <class Place>
void scene_on<Place>::combine(solid_op op) {
  result_times_.time(place_, "combine", [&] {
    combine_before_last(op);
    combined();
  });
}

template <class Place>
void scene_on<Place>::combine_before_last(solid_op op) {
  op_ = meshes_.size() == 1 ? solid_op::first : op;
  result_.reset();
  before_last_.reset();
  frame_exposed_.reset();
  for (std::size_t i = 1; i + 1 < meshes_.size(); ++i) {
    const column_directory before = before_last_ ? before_last_->ref() : solid(0);
    before_last_ = solid_of(place_, grid_, combined_column{{before, solid(i), op, grid_}});
  }
}

template <class Place>
auto scene_on<Place>::combined() -> const set& {
  if (!result_) result_ = solid_of(place_, grid_, combined_column{last_pair()});
  return *result_;
}

template <class Place>
solid_pair scene_on<Place>::last_pair() const {
  if (meshes_.empty()) kernels::raise<invalid_argument>({"scene: there is no mesh to combine"});
  return {before_last_ ? before_last_->ref() : solid(0), solid(meshes_.size() - 1), op_, grid_};
}

template <class Place>
frame_counts scene_on<Place>::make_frame(const frame_plan& plan) {
  const std::size_t count = meshes_.size(), columns = std::size_t{plan.grid} * plan.grid;
  if (count == 0 || plan.to_snapped.size() != count) {
    kernels::raise<invalid_argument>(
        {"scene: a frame of ", plan.to_snapped.size(), " meshes asked for, and there are ", count});
  }
  expect_grid(plan.grid);
  leave_frame();
  frame_surfaces_ = count == 2;
  const auto time = [&](const char* step, const auto& f) { frame_times_.time(place_, step, f); };
  if (plan.rule == inside_rule::vote) {
    time("meshes", [&] {
      for (std::size_t i = 0; i < count; ++i) {
        place_mesh(i, plan.grid, plan.to_snapped[i]);
        make_solid(i, plan.rule);
        if (frame_surfaces_) make_surface(i, plan.all_touched);
      }
    });
  }
  frame_room room{count * (frame_surfaces_ ? 8 : 2) * columns, 1024, 4 * columns};
  try {
    do {  // four times at most: then pieces, marks and words have room
      reserve_frame(plan, room);
      launch_frame(plan, time);
    } while (!read_frame(plan, room));
  } catch (...) {
    leave_frame();
    throw;
  }
  for (part& of : meshes_) {
    if (!of.in_frame) continue;
    of.solid = {};
    of.surface = {};
  }
  return {*frame_exposed_, frame_surfaces_ ? classes() : class_counts()};
}

/// Forgets what the last frame has made.
template <class Place>
void scene_on<Place>::leave_frame() {
  for (part& of : meshes_) of.in_frame = false;
  before_last_.reset();
  result_.reset();
  forget();
}

/// The lists of pieces: pairs of meshes have one, and so has each mesh whose touched voxels are marked.
template <class Place>
std::size_t scene_on<Place>::frame_lists(const frame_plan& plan) const {
  if (plan.rule == inside_rule::vote) return 0;
  return kernels::ceil_div<std::size_t>(meshes_.size(), 2) +
         (frame_surfaces_ && plan.all_touched ? meshes_.size() : 0);
}

/// The columns of all solids and surfaces.
template <class Place>
std::size_t scene_on<Place>::frame_cells(std::uint32_t grid) const {
  return (frame_surfaces_ ? 2 : 1) * meshes_.size() * grid * grid;
}

template <class Place>
void scene_on<Place>::reserve_frame(const frame_plan& plan, const frame_room& room) {
  const auto reserve = [&](auto& memory, std::size_t n) {
    if (memory.size() >= n) return;
    memory = {};  // before there is more
    memory = std::remove_reference_t<decltype(memory)>(place_, n);
  };
  const std::size_t lists = frame_lists(plan), cells = frame_cells(plan.grid);
  reserve(frame_numbers_, pieces_at + lists + kernels::earlier_teams::words(frame_words::teams(plan.grid)));
  reserve(frame_words_, room.words);
  if (lists == 0) return;
  reserve(frame_pieces_, lists * room.pieces);
  reserve(frame_marks_.keys_room, room.marks);
  const std::size_t marks = frame_marks_.keys_room.size();
  reserve(frame_marks_.values_room, marks);
  reserve(frame_ranks_, marks);
  reserve(frame_.heights, marks);
  reserve(frame_starts_, cells + 1);
  reserve(frame_.words, cells);
}

template <class Place>
template <class Time>
void scene_on<Place>::launch_frame(const frame_plan& plan, const Time& time) {
  place_.fill(frame_numbers_.data(), 0, frame_numbers_.bytes());
  if (plan.rule != inside_rule::vote) {
    time("snap", [&] {
      for (std::size_t i = 0; i < meshes_.size(); ++i) snap(meshes_[i], plan.grid, plan.to_snapped[i]);
    });
    time("cross", [&] { mark_frame(plan); });
    time("group", [&] { group_frame(); });
    time("order", [&] { order_frame(plan); });
    for (part& of : meshes_) of.in_frame = true;
  }
  if (meshes_.size() > 2) {
    time("combine", [&] { combine_before_last(plan.op); });
  } else {
    combine_before_last(plan.op);
  }
  time("exposed", [&] { write_frame_words(frame_lists(plan)); });
  if (frame_surfaces_) time("classes", [&] { count_classes_into(frame_numbers_.data() + classes_at); });
}

template <class Place>
bool scene_on<Place>::read_frame(const frame_plan& plan, frame_room& room) {
  std::vector<std::uint64_t> seen(pieces_at + frame_lists(plan));
  place_.copy_to_host(seen.data(), frame_numbers_.data(), seen.size() * sizeof(seen[0]));
  bool fit = true;
  const auto expect = [&](std::uint64_t n, std::size_t there, std::size_t& wanted) {
    if (n <= there) return;
    fit = false;
    wanted = std::max<std::size_t>(wanted, n + n / 8);  // the next frame may have more
  };
  expect(seen[marks_at], frame_marks_.keys_room.size(), room.marks);
  expect(seen[words_at], frame_words_.size(), room.words);
  for (std::size_t i = pieces_at; i < seen.size(); ++i)
    expect(seen[i], frame_pieces_.size() / frame_lists(plan), room.pieces);
  if (!fit) return false;
  frame_exposed_ = seen[words_at];
  if (frame_surfaces_) {
    auto& classes = class_numbers_.emplace();
    std::copy_n(&seen[classes_at], classes.size(), classes.begin());
  }
  return true;
}

/// Marks the crossings of all solids and, if there are, the voxels of all surfaces.
template <class Place>
void scene_on<Place>::mark_frame(const frame_plan& plan) {
  const std::size_t count = meshes_.size(), entries = frame_pieces_.size() / frame_lists(plan);
  const auto tag = [&](std::size_t i) { return static_cast<std::uint32_t>(solid_number(i)) << tag_shift; };
  std::size_t list = 0;
  const auto mark = [&](const auto& shapes, std::size_t n) {
    raster_into<std::uint32_t, std::uint16_t>(
        place_, shapes, n,
        {frame_marks_.keys_room.data(), frame_marks_.values_room.data(), frame_marks_.keys_room.size(),
         frame_numbers_.data() + marks_at},
        {frame_pieces_.data() + list * entries, entries, frame_numbers_.data() + pieces_at + list});
    ++list;
  };
  for (std::size_t i = 0; i < count; i += 2) {
    const part &a = meshes_[i], &b = meshes_[std::min(i + 1, count - 1)];
    const std::size_t of_a = a.triangles.size(), of_b = i + 1 < count ? b.triangles.size() : 0;
    mark(tagged_marks{a.all(grid_), b.all(grid_), of_a, tag(i), tag(i + 1),
                      frame_surfaces_ && !plan.all_touched},
         of_a + of_b);
  }
  for (std::size_t i = 0; i < count && frame_surfaces_ && plan.all_touched; ++i) {
    const part& of = meshes_[i];
    mark(tagged_shapes<touched_voxels>{touched(of), tag(i) | 1u << tag_shift}, of.triangles.size());
  }
}

/// Puts the marks of each column together, in any order. Columns are few enough for a counter each.
template <class Place>
void scene_on<Place>::group_frame() {
  const std::size_t cells = frame_cells(grid_), room = frame_marks_.keys_room.size();
  std::uint64_t *const starts = frame_starts_.data(), *const count = frame_numbers_.data() + marks_at;
  const frame_columns columns{
      frame_marks_.keys_room.data(), frame_marks_.values_room.data(), grid_, starts, frame_ranks_.data(),
      frame_.heights.data()};
  place_.fill(starts, 0, (cells + 1) * sizeof(std::uint64_t));
  for_each_counted(place_, count, room, count_marks{columns});
  place_.exclusive_scan(starts, starts, cells + 1);
  for_each_counted(place_, count, room, put_marks{columns});
}

template <class Place>
void scene_on<Place>::order_frame(const frame_plan& plan) {
  const std::size_t lists = frame_lists(plan);
  const std::uint64_t* const numbers = frame_numbers_.data();
  frame_.grid = grid_;
  place_.for_each(frame_cells(grid_), order_column{{numbers + marks_at, frame_marks_.keys_room.size(),
                                                    numbers + pieces_at, lists, frame_pieces_.size() / lists},
                                                   {plan.rule, false, grid_},
                                                   frame_surfaces_,
                                                   frame_starts_.data(),
                                                   frame_.heights.data(),
                                                   frame_.words.data()});
}

/// Writes the exposed voxels of the result, and counts them.
template <class Place>
void scene_on<Place>::write_frame_words(std::size_t lists) {
  std::uint64_t* const numbers = frame_numbers_.data();
  const frame_words run{{{last_pair()}},
                        grid_,
                        {frame_words_.data(), frame_words_.size()},
                        kernels::earlier_teams(numbers + pieces_at + lists),
                        numbers + words_at};
  place_.launch(frame_words::teams(grid_), kernels::scratch_bytes_of(run), run);
}

/// The facts about a solid, and about the exposed voxels of its operands.
template <class Place>
solid_facts scene_on<Place>::facts(const column_directory& solid, const solid_pair& seen,
                                   stopwatch<Place>& times) {
  const exposed_words<std::uint64_t> exposed{{seen}};
  solid_facts result;
  result.volume_voxels = volume_of(alone(solid));
  result.exposed = all_columns(place_, grid_, exposed).size();
  result.sides = place_.sum(columns_of_grid(), sides_of_column{{alone(solid)}});
  result.milliseconds = times.medians();
  return result;
}

template <class Place>
double scene_on<Place>::area_of(std::size_t i, const column_directory& solid, std::size_t earlier) const {
  const part& of = meshes_[i];
  const std::size_t n = of.triangles.size();
  const facing_triangles triangles{of.all(grid_)};
  array<std::uint64_t, Place> offsets(place_, n + 1);
  place_.fill(offsets.data() + n, 0, sizeof(std::uint64_t));
  kernels::write_numbers(place_, n, count_rows{triangles.all}, offsets.data());
  place_.exclusive_scan(offsets.data(), offsets.data(), offsets.size());
  std::uint64_t rows = 0;
  place_.copy_to_host(&rows, offsets.data() + n, sizeof(rows));
  const auto vertices =
      unique_inverse(place_, computed(of.vertices.size(), vertex_keys{of.vertices.data()}), index_order::any);
  const auto same = unique_inverse(
      place_, computed(n, triangle_keys{{of.triangles.data(), vertices.inverse.data()}}), index_order::any);
  array<std::uint32_t, Place> counts(place_, same.keys.size());
  place_.fill(counts.data(), 0, counts.bytes());
  place_.for_each(n, count_same{same.inverse.data(), counts.data()});
  std::vector<column_directory> others;
  for (std::size_t k = 0; k < earlier; ++k) others.push_back(this->solid(k));
  const auto before = copy_to(place_, others);
  const auto sum = place_.sum(rows, area_of_row{triangles, n, offsets.data(), same.inverse.data(),
                                                counts.data(), solid, before.data(), earlier});
  return static_cast<double>(sum) / facing_triangles::one;
}

template <class Place>
solid_facts scene_on<Place>::facts_of_mesh(std::size_t i) {
  part& of = mesh_at(i);
  auto result = facts(solid(i), alone(solid(i)), of.times);
  result.area = area_of(i, solid(i), 0);
  result.voxels = place_.sum(columns_of_grid(), voxels_of_column{surface(i), grid_});
  result.bytes = of.in_frame ? frame_.bytes() : of.solid.bytes() + of.surface.bytes();
  return result;
}

template <class Place>
std::uint64_t scene_on<Place>::count_exposed() {
  std::uint64_t count = 0;
  result_times_.time(place_, "exposed", [&] {
    const exposed_words<std::uint64_t> exposed{{last_pair()}};
    count = words_of<std::uint64_t>(place_, grid_, exposed).size();
  });
  return count;
}

template <class Place>
solid_facts scene_on<Place>::facts_of_result() {
  auto facts_of = facts(combined().ref(), last_pair(), result_times_);
  for (std::size_t i = 0; i < meshes_.size(); ++i) facts_of.area += area_of(i, combined().ref(), i);
  facts_of.voxels = facts_of.exposed;
  facts_of.bytes = combined().bytes();
  return facts_of;
}

template <class Place>
classified_column scene_on<Place>::classified() const {
  if (meshes_.size() < 2) kernels::raise<invalid_argument>({"scene: voxels are classified for two meshes"});
  return {surface(0), surface(1), {solid(0), solid(1), solid_op::combined, grid_}};
}

template <class Place>
void scene_on<Place>::count_classes_into(std::uint64_t* counts) const {
  const count_classes count{classified(), columns_of_grid(), counts};
  place_.launch(kernels::ceil_div<std::size_t>(count.n, count_classes::tile),
                kernels::scratch_bytes_of(count), count);
}

template <class Place>
const std::array<std::uint64_t, 5>& scene_on<Place>::class_numbers() {
  if (class_numbers_) return *class_numbers_;
  std::array<std::uint64_t, 5> numbers;
  result_times_.time(place_, "classes", [&] {
    array<std::uint64_t, Place> counts(place_, numbers.size());
    place_.fill(counts.data(), 0, counts.bytes());
    count_classes_into(counts.data());
    place_.copy_to_host(numbers.data(), counts.data(), counts.bytes());
  });
  return class_numbers_.emplace(numbers);
}

template <class Place>
class_counts scene_on<Place>::classes() {
  const auto& n = class_numbers();
  return {n[0] + n[2], n[1] + n[3], n[4]};
}

template <class Place>
class_counts scene_on<Place>::classes_of_mesh(std::size_t i) {
  const auto& n = class_numbers();
  return {n[2 * i], n[2 * i + 1], n[4]};
}

template <class Place>
fill_facts scene_on<Place>::fill() {
  if (meshes_.size() < 2) kernels::raise<invalid_argument>({"scene: a fill is of two meshes"});
  if (grid_ > 1024) kernels::raise<invalid_argument>({"scene: a fill is of grids of up to 1024^3 voxels"});
  fill_facts result;
  stopwatch<Place> times;
  filled_surface<Place> surfaces[2];
  times.time(place_, "hash", [&] {
    for (std::size_t i = 0; i < 2; ++i)
      surfaces[i] =
          hash_points(place_, touched(meshes_[i]), meshes_[i].all(grid_), meshes_[i].triangles.size());
  });
  times.time(place_, "fill", [&] {
    for (std::size_t i = 0; i < 2; ++i) fill_surface(place_, surfaces[i], surfaces[1 - i], grid_, {}, result);
  });
  for (std::size_t i = 0; i < 2; ++i) add_facts(place_, surfaces[i], solid(1 - i), i == 0, result);
  result.milliseconds = times.medians();
  return result;
}

template <class Place>
bit_grid_facts scene_on<Place>::bit_grid(solid_op op) {
  const bit_rows rows(grid_);
  const std::size_t count = std::min<std::size_t>(meshes_.size(), 2);
  array<std::uint32_t, Place> grids[2], combined;
  bit_grid_facts result;
  stopwatch<Place> times;
  for (std::size_t i = 0; i < count; ++i) {
    auto& bits = grids[i];
    times.time(place_, i == 0 ? "fill first" : "fill second", [&] {
      const auto crossings =
          raster<std::uint32_t, std::uint16_t>(place_, crossings_along{meshes_[i].all(grid_), 2},
                                               meshes_[i].triangles.size(), 2 * std::size_t{grid_} * grid_);
      bits = array<std::uint32_t, Place>(place_, rows.size());
      place_.fill(bits.data(), 0, bits.bytes());
      place_.for_each(crossings.size,
                      flip_crossings{crossings.keys().data(), crossings.values().data(), rows, bits.data()});
      place_.for_each(std::size_t{grid_} * grid_, fill_row{rows, bits.data()});
    });
  }
  times.time(place_, "combine", [&] {
    combined = array<std::uint32_t, Place>(place_, rows.size());
    place_.for_each(rows.size(), combine_words{count == 1 ? solid_op::first : op, grids[0].data(),
                                               count == 1 ? nullptr : grids[1].data(), combined.data()});
  });
  const exposed_bits exposed{rows, combined.data()};
  times.time(place_, "exposed", [&] {
    const std::size_t n = std::size_t{grid_} * grid_;
    array<std::uint64_t, Place> offsets(place_, n + 1);
    place_.fill(offsets.data() + n, 0, sizeof(std::uint64_t));
    kernels::write_numbers(place_, n, count_exposed_row{exposed}, offsets.data());
    place_.exclusive_scan(offsets.data(), offsets.data(), offsets.size());
    place_.copy_to_host(&result.exposed, offsets.data() + n, sizeof(std::uint64_t));
    array<std::uint64_t, Place> words(place_, result.exposed);
    place_.for_each(n, write_exposed_row<std::uint64_t>{exposed, offsets.data(), words.data()});
  });
  result.volume_voxels = place_.sum(rows.size(), count_word{combined.data()});
  result.bytes = (count + 1) * rows.size() * sizeof(std::uint32_t);
  result.milliseconds = times.medians();
  return result;
}

template <class Place>
template <class Word>
array<Word, Place> scene_on<Place>::voxels_here(voxel_set which) {
  if (sizeof(Word) == 4 && grid_ > 1024)
    kernels::raise<invalid_argument>({"scene: voxels of grids above 1024^3 do not fit 32 bits"});
  if (meshes_.empty())
    kernels::raise<invalid_argument>({"scene: there is no mesh whose voxels could be read"});
  array<Word, Place> result;
  const auto read = [&](const char* step, const auto& column) {
    result_times_.time(place_, step, [&] { result = words_of<Word>(place_, grid_, column); });
  };
  switch (which) {
    case voxel_set::exposed:
      if (frame_exposed_) {
        result = array<Word, Place>(place_, *frame_exposed_);
        kernels::write_numbers(place_, result.size(), as_words<Word>{frame_words_.data()}, result.data());
        place_.synchronize();
        break;
      }
      read("exposed", exposed_words<Word>{{last_pair()}});
      break;
    case voxel_set::surface:
      read("surface", surface_words<Word>{surface(0), grid_});
      break;
    case voxel_set::surfaces:
      read("classified", classified_words<Word>{classified()});
      break;
    case voxel_set::solid:
      read("voxels", inside_words<Word>{combined().ref(), grid_});
      break;
  }
  return result;
}

template <class Place>
lit_voxels scene_on<Place>::lit(voxel_set which) {
  const auto words = voxels_here<std::uint32_t>(which);
  array<std::uint32_t, Place> around(place_, words.size());
  result_times_.time(place_, "around", [&] {
    const bit_rows rows(grid_);
    array<std::uint32_t, Place> bits(place_, rows.size());
    place_.fill(bits.data(), 0, bits.bytes());
    if (which == voxel_set::exposed || which == voxel_set::solid) {
      place_.for_each(std::size_t{grid_} * grid_, fill_column{combined().ref(), rows, bits.data()});
    } else {
      place_.for_each(words.size(), set_voxel{words.data(), rows, bits.data()});
    }
    place_.for_each(words.size(), look_around{words.data(), rows, bits.data(), around.data()});
    place_.synchronize();  // before the bits go
  });
  return {copy_to_host(place_, words), copy_to_host(place_, around)};
}

template <class Place>
solid_columns scene_on<Place>::columns() {
  const all_columns all(place_, grid_, combined_column{alone(combined().ref())});
  array<std::uint16_t, Place> heights(place_, all.size());
  all.write(put_heights{heights.data()});
  return {grid_, copy_to_host(place_, all.offsets()), copy_to_host(place_, heights)};
}

}  // namespace roost::tools
